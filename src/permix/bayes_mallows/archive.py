"""What an archive of :class:`permix.BayesianMallowsMixture` holds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from permix.bayes_mallows.by_agent.archive import COLUMN_FIELDS, columns_of, pack_columns
from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.following.record import Followed
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.data.labels import Array
from permix.estimators import archive_parts as parts
from permix.estimators import fields
from permix.estimators.agent_weights.archive import WEIGHT_TERMS
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import under
from permix.estimators.fields import field, require
from permix.moves.state import learned_concentration

# What chains draw of errors: of everybody, and of each agent where asked for.
OF_ERRORS = {"bernoulli": {"error_rate"}, "logistic": {"error_level", "error_slope"}, None: set()}
EVERY = ("error_rate", "error_level", "error_slope")


def _of_errors(settings: BayesianMallowsParameters) -> set[str]:
    names: set[str] = OF_ERRORS[settings.errors]
    return names | ({f"agent_{name}" for name in names} if settings.errors_per_agent else set())


def _pack(fit: BayesianMallowsFit) -> Content:
    facts, arrays, _ = parts.pack_partitions(fit)
    arrays |= parts.pack_preferences("data/", fit.preferences)
    arrays |= parts.pack_agents("data/", fit.preferences)
    arrays |= pack_columns(fit)
    terms = None if fit.columns is None else fit.columns.design.terms
    updates = [each.to_json() for each in fit.followed]
    return Content({"items": fit.items, "updates": updates, "weight_terms": terms, **facts}, arrays)


def _build(saved: Saved) -> BayesianMallowsFit:
    settings, facts, arrays, sizes = saved[:4]
    require(sizes["items"] == len(facts["items"]) > 1, "items")
    found = under("data/", arrays)
    agents = parts.agents_of(found)
    statements = {name: found[name] for name in parts.STATEMENTS}
    table = parts.preferences_of(
        facts["items"], statements, may_contradict=settings.errors is not None, agents=agents
    )
    require(sizes["observations"] == table.n_agents, "labels")
    prior = settings.partition_prior()
    draws, estimate = parts.partitions_of(saved, learned_concentration(prior) is not None)
    _check_groups(draws.arrays, prior.most_clusters(int(table.n_agents)))
    there = {name for name in draws.arrays if "error_" in name}
    require(there == _of_errors(settings), "errors")
    followed = tuple(Followed.from_json(each, sizes["chains"]) for each in facts["updates"])
    columns = columns_of(saved, len(table))
    parts_of = (settings, facts["items"], table, draws, estimate)
    return BayesianMallowsFit(*parts_of, followed=followed, columns=columns)


def _check_groups(arrays: Mapping[str, Array], most: int) -> None:
    """Check that groups are those of the labels, in every draw."""
    sizes, labels = arrays["group_sizes"].astype(np.int64), arrays["labels"].astype(np.int64)
    n_groups = sizes.shape[-1]
    require(n_groups <= most and int(labels.max()) < n_groups, "groups")
    flat = labels.reshape(-1, labels.shape[-1])
    counted = np.stack([np.bincount(row, minlength=n_groups) for row in flat]).reshape(sizes.shape)
    require(np.array_equal(np.maximum(sizes, 0), counted) and bool(np.all(sizes != 0)), "group sizes")
    used = sizes > 0
    for name in ("group_shares", "group_decays"):
        values = arrays[name]
        require(np.array_equal(np.isfinite(values), used) and bool(np.all(values[used] > 0.0)), name)
    require(bool(np.all(np.nansum(arrays["group_shares"], axis=-1) <= 1.0 + fields.ROUNDING)), "shares")
    centers = np.moveaxis(arrays["group_centers"].astype(np.int64), 2, 3)
    require(fields.permutations(centers[used], {}), "centers")
    require(bool(np.all(centers[~used] == -1)), "centers")


SCHEMA = Schema(
    parameters=BayesianMallowsParameters,
    pack=_pack,
    build=_build,
    facts={
        "items": parts.ITEMS,
        "updates": parts.list_of(dict, "updates"),
        "weight_terms": WEIGHT_TERMS,
        **parts.PARTITION_FACTS,
    },
    arrays={
        **parts.PARTITION_FIELDS,
        "draws/dispersion": field("real", "chains", "draws", where=fields.positive),
        "draws/distance": field("real", "chains", "draws", where=fields.not_negative),
        **{
            f"draws/{name}": field("real", "chains", "draws", where=fields.not_negative, optional=True)
            for name in EVERY
        },
        **{
            f"draws/agent_{name}": field(
                "real", "chains", "draws", "observations", where=fields.not_negative, optional=True
            )
            for name in EVERY
        },
        "draws/group_sizes": field("int", "chains", "draws", "groups"),
        "draws/group_shares": field("real", "chains", "draws", "groups"),
        "draws/group_decays": field("real", "chains", "draws", "groups"),
        "draws/group_centers": field("int", "chains", "draws", "items", "groups"),
        **parts.preference_fields("data/"),
        **parts.AGENT_FIELDS,
        **COLUMN_FIELDS,
    },
)
