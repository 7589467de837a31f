"""Parts that archives of several models share: names of items, a log-likelihood, draws, a point estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.convergence import ASKED, ENDINGS
from permix.data.labels import Label, clean_items
from permix.distributions.base import Estimate
from permix.estimators import fields
from permix.estimators.archive import Content, Saved
from permix.estimators.checks import Check, Choice, Made, Real, Switch, Whole
from permix.estimators.fields import Array, Field, field, require

if TYPE_CHECKING:
    from permix.data.agent_table import AgentTable
    from permix.data.preferences import Preferences
    from permix.partitions.point_estimate import PointEstimate
    from permix.sampling.draws import Draws


def _items(names: Any) -> tuple[Label, ...]:
    require(isinstance(names, list) and len(names) > 0, "items")
    items = clean_items(names)
    # Floats and the like would be tidied to names that no fit writes.
    require(all(type(name) is type(item) for name, item in zip(names, items, strict=True)), "items")
    return items


ITEMS = Made(_items, "a list of names", to_json=list)


def log_likelihood_pair(value: Estimate) -> Array:
    """Return a log-likelihood and its error as files hold them."""
    return np.array([float(value), value.standard_error])


def log_likelihood_of(pair: Array, *, may_be_unknown: bool = False) -> Estimate:
    """Return a log-likelihood with its error; NaN, twice, where a model may not know it."""
    known = bool(np.isfinite(pair).all()) and pair[1] >= 0.0
    require(known or (may_be_unknown and bool(np.isnan(pair).all())), "log-likelihood")
    return Estimate(float(pair[0]), float(pair[1]))


LOG_LIKELIHOOD = field("real", 2)
# Facts and arrays of a finite mixture of distributions of rankings.
MIXTURE_FACTS: Mapping[str, Check] = {"items": ITEMS, "converged": Switch(), "interrupted": Switch()}
MIXTURE_FIELDS = {
    "weights": field("real", "groups", where=fields.simplex),
    "probabilities": field("real", "rows", "groups", where=fields.simplex),
    "counts": field("int64", "rows", where=fields.counts),
    "log_likelihood": LOG_LIKELIHOOD,
    # Mean scores under permix.estimators.baselines.KEPT; the command line finds them.
    "baselines": field("real", 3, where=fields.finite, optional=True),
}


def pack_mixture(fit: Any) -> Content:
    """Return what files of all such mixtures hold."""
    facts = {name: bool(getattr(fit, name)) for name in ("converged", "interrupted")}
    arrays = {"probabilities": fit.probabilities, "counts": fit.counts, "weights": fit.components.weights}
    arrays["log_likelihood"] = log_likelihood_pair(fit.log_likelihood)
    arrays |= {} if fit.baselines is None else {"baselines": fit.baselines}
    return Content({"items": fit.components.items, **facts}, arrays)


# How many agents there are, of whom the rows of a fit are a sample.
SAMPLED_FROM = field("int64", 1, optional=True)


def pack_sampled_from(fit: Any) -> dict[str, Array]:
    """Return that number, where there is one."""
    return {} if fit.sampled_from is None else {"sampled_from": np.array([fit.sampled_from])}


def sampled_from(arrays: Mapping[str, Array]) -> int | None:
    """Return it as it was saved; there are no fewer agents than in the sample."""
    if "sampled_from" not in arrays:
        return None
    n_agents = int(arrays["sampled_from"][0])
    require(n_agents >= int(arrays["counts"].sum()), "agents of a sample")
    return n_agents


def list_of(kind: type, what: str) -> Made:
    """Return the check of a list whose entries are of one type."""

    def checked(value: Any) -> list[Any]:
        require(isinstance(value, list) and all(isinstance(entry, kind) for entry in value), what)
        return list(value)

    return Made(checked, f"a list of {what}", to_json=list)


# Facts about draws; ``moves`` are the names of the moves made.
DRAW_FACTS: Mapping[str, Check] = {
    "moves": list_of(str, "names"),
    "seeds": list_of(dict, "seeds"),
    "interrupted": Switch(),
    "n_made": Whole(0),
    "ended": Choice(*ENDINGS),
}
# Those of a fit without draws, which may have been interrupted all the same.
NO_DRAWS: Mapping[str, Any] = {"moves": [], "seeds": [], "n_made": 0, "ended": ASKED}


def draw_fields(optional: bool = False, **quantities: Field) -> dict[str, Field]:
    """Return the fields of draws; quantities have the dimensions "chains" and "draws" before their own."""
    counted = field("int", "chains", "moves?", where=fields.not_negative, optional=optional)
    return {
        f"draws/{name}": about._replace(shape=("chains", "draws", *about.shape), optional=optional)
        for name, about in quantities.items()
    } | {f"statistics/{name}": counted for name in ("proposed", "accepted")}


def number(*, optional: bool = False) -> Field:
    """Return the field of a finite number of each draw."""
    return field("number", where=fields.finite, optional=optional)


def pack_draws(draws: Draws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the facts and the arrays of draws."""
    arrays = {f"draws/{name}": array for name, array in draws.arrays.items()}
    for name in ("proposed", "accepted"):
        arrays[f"statistics/{name}"] = np.asarray(draws.statistics[name])
    ended = {"interrupted": bool(draws.interrupted), "n_made": draws.n_made, "ended": draws.ended}
    return {"moves": list(draws.statistics["moves"]), "seeds": list(draws.seeds), **ended}, arrays


def draws_of(saved: Saved) -> Draws:
    """Return the draws that were saved."""
    from permix.sampling.draws import Draws

    moves = saved.facts["moves"]
    require(saved.sizes["moves?"] == len(moves), "moves")
    return Draws(
        arrays=under("draws/", saved.arrays),
        statistics={"moves": moves, **under("statistics/", saved.arrays)},
        interrupted=saved.facts["interrupted"],
        n_draws=saved.sizes["draws"],
        n_made=saved.facts["n_made"],
        ended=saved.facts["ended"],
        seeds=tuple(saved.facts["seeds"]),
    )


def under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class Record(Check):
    """Several values by name, each with a check of its own; None if ``optional``."""

    def __init__(self, checks: Mapping[str, Check], *, optional: bool = False) -> None:
        self.checks = checks
        self.special = (None,) if optional else ()

    def convert(self, value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != set(self.checks):
            return NotImplemented
        return {name: check(name, value[name]) for name, check in self.checks.items()}

    def must_be(self) -> str:
        return f"a record of {', '.join(self.checks)}"


# A point estimate of a partition.
ESTIMATE_FACTS: Mapping[str, Check] = {
    "loss": Choice("vi", "binder"),
    "expected_loss": Real(),
    "best_draw_loss": Real(),
    "n_runs": Whole(0),
}
# Facts and arrays of a model whose draws are partitions: labels, scalars, and a point estimate.
PARTITION_FACTS = {**DRAW_FACTS, **ESTIMATE_FACTS}
PARTITION_FIELDS = {
    **draw_fields(
        optional=False,
        labels=field("int", "observations", where=fields.below("observations")),
        **dict.fromkeys(("n_groups", "largest_group", "log_likelihood", "log_joint"), number()),
    ),
    "draws/concentration": field("real", "chains", "draws", where=fields.positive, optional=True),
    "point_estimate": field("int", "observations", where=(fields.below("observations"), fields.partition)),
}


def pack_partitions(fit: Any) -> Content:
    """Return the draws and the point estimate of a fit."""
    facts, arrays = pack_draws(fit.draws)
    facts |= {name: getattr(fit.estimate, name) for name in ESTIMATE_FACTS}
    return Content(facts, {**arrays, "point_estimate": np.asarray(fit.estimate.labels)})


def partitions_of(saved: Saved, learned: bool, *, of_sample: bool = False) -> tuple[Draws, PointEstimate]:
    """Return draws and point estimate; ``learned``: whether the draws have a concentration.

    Labels that are those of a sample may lack groups.
    """
    draws = draws_of(saved)
    numbers, found = draws.arrays["labels"].max(axis=2).astype(np.int64) + 1, draws.arrays["n_groups"]
    require(bool(np.all(numbers <= found)) if of_sample else np.array_equal(found, numbers), "n_groups")
    require(len(draws.seeds) == saved.sizes["chains"], "seeds")
    require(("concentration" in draws.arrays) == learned, "concentration")
    return draws, estimate_from(saved.arrays["point_estimate"], saved.facts)


def estimate_from(labels: Array, facts: Mapping[str, Any]) -> PointEstimate:
    """Return a point estimate with these labels."""
    from permix.partitions.point_estimate import PointEstimate

    return PointEstimate(
        labels=labels,
        n_clusters=int(labels.max()) + 1,
        sizes=np.bincount(labels),
        **{name: facts[name] for name in ESTIMATE_FACTS},
    )


# The arrays of Preferences; how many items there are is said by their names.
STATEMENTS = {
    "level_indptr": field("int64", "ends", where=fields.not_negative),
    "level_items": field("int32", "listed?", where=fields.not_negative),
    "levels": field("int32", "listed?", where=fields.not_negative),
    "rest_below": field("bool", "rows"),
    "pair_indptr": field("int64", "ends", where=fields.not_negative),
    "pairs": field("int32", "pairs?", 2, where=fields.not_negative),
    "counts": field("int64", "rows", where=fields.counts),
}


def preference_fields(prefix: str) -> dict[str, Field]:
    """Return the fields of preferences under names that begin so."""
    return {prefix + name: about for name, about in STATEMENTS.items()}


def pack_preferences(prefix: str, table: Preferences) -> dict[str, Array]:
    """Return what agents said as arrays, without their ids."""
    return {prefix + name: np.asarray(getattr(table, name)) for name in STATEMENTS}


def preferences_of(
    items: tuple[Label, ...], found: Mapping[str, Any], *, may_contradict: bool = False, **about: Any
) -> Preferences:
    """Rebuild what agents said, which must be as constructors of Preferences leave it.

    Agents may contradict themselves in data of models of errors alone.
    """
    from permix.data.preferences import Preferences
    from permix.kernels.posets import consistent_agents

    n, n_items = len(found["counts"]), len(items)
    require(n_items > 1, "items")
    listed, levels, pairs = found["level_items"], found["levels"], found["pairs"]
    for indptr, entries in ((found["level_indptr"], listed), (found["pair_indptr"], pairs)):
        require(indptr.shape == (n + 1,) and indptr[0] == 0 and indptr[-1] == len(entries), "rows")
        require(bool(np.all(np.diff(indptr) >= 0)), "rows")
        require(bool(np.all(entries < n_items)), "item numbers")
    require(bool(np.all(pairs[:, 0] != pairs[:, 1])), "pairs")
    sizes = np.diff(found["level_indptr"])
    row = np.repeat(np.arange(n), sizes)
    require(len(np.unique(row * n_items + listed)) == len(listed), "items of levels")
    begins = np.zeros(len(levels), dtype=np.bool_)
    begins[found["level_indptr"][:-1][sizes > 0]] = True
    steps = np.diff(levels, prepend=0)
    require(bool(np.all(levels[begins] == 0) and np.all((steps >= 0) & (steps <= 1) | begins)), "levels")
    below = found["rest_below"]
    require(not np.any(below & (sizes == 0)) and bool(np.all(below[sizes == n_items])), "rest")
    table = Preferences._from_arrays(items=items, **found, **about)
    consistent = consistent_agents(table.arrays(), n_items)
    require(may_contradict or bool(consistent.all()), "comparisons")
    return table._replaced(consistent=consistent)


# Ids of the agents fitted, where they were given.
AGENT_FIELDS = {
    "data/agents": field("text", "rows", optional=True),
    "data/agents_are_numbers": field("bool", "rows", optional=True),
}


def pack_agents(prefix: str, table: AgentTable) -> dict[str, Array]:
    """Return ids as text, and which are numbers, since they may be numbers and text together."""
    if table._agents is None:
        return {}
    ids = table._agents.tolist()
    return {
        f"{prefix}agents": np.array([str(name) for name in ids]),
        f"{prefix}agents_are_numbers": np.array([isinstance(name, int) for name in ids]),
    }


def agents_of(found: Mapping[str, Array]) -> Array | None:
    """Return the ids that were saved, if any."""
    require(("agents" in found) == ("agents_are_numbers" in found), "agents")
    if "agents" not in found:
        return None
    names, numbers = found["agents"].tolist(), found["agents_are_numbers"].tolist()
    ids = [int(name) if number else name for name, number in zip(names, numbers, strict=True)]
    require([str(name) for name in ids] == names, "agents")
    return np.array(ids, dtype=object)
