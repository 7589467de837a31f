"""What an archive of :class:`permix.DPMallowsMixture` holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.estimators import archive_parts as parts
from permix.estimators import fields
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import under
from permix.estimators.fields import field, require
from permix.moves.state import first_concentration, learned_concentration
from permix.partitions import PartitionPrior

# Every agent has a label in memory.
MOST_AGENTS = 2**48
# What chains may learn of the prior of the decays, with dimensions after chains and draws.
LEARNED: dict[str, tuple[str, ...]] = {"prior_strength": (), "prior_rate": ("stages",)}
CLUSTERS = ("starts", "sizes", "centers", "theta", "labels", "concentration")


def _pack(fit: DPMallowsFit) -> Content:
    data = fit.rankings
    facts, arrays, _ = parts.pack_partitions(fit)
    arrays |= {"data/orders": data.orders, "data/counts": data.counts}
    arrays |= {f"clusters/{name}": np.asarray(getattr(fit.clusters, name)) for name in CLUSTERS}
    arrays |= parts.pack_agents("data/", data)
    if fit.sampled_from is not None:
        arrays["sampled_from"] = np.array([fit.sampled_from])
    return Content({"items": fit.items, **facts}, arrays)


def _build(saved: Saved) -> DPMallowsFit:
    settings, facts, arrays, sizes = saved[:4]
    require(sizes["items"] == len(facts["items"]) > 1, "items")
    rankings = _rankings(facts["items"], under("data/", arrays))
    require(sizes["observations"] == rankings.n_agents, "labels")
    prior = settings.partition_prior()
    sampled_from = int(arrays["sampled_from"][0]) if "sampled_from" in arrays else None
    sample = sampled_from is not None and sampled_from > rankings.n_agents
    require(sampled_from is None or rankings.n_agents <= sampled_from < MOST_AGENTS, "agents of a sample")
    learned = learned_concentration(prior) is not None
    draws, estimate = parts.partitions_of(saved, learned, of_sample=sample)
    clusters = _clusters(under("clusters/", arrays), prior, sampled_from if sample else None)
    for name in LEARNED:
        require((name in draws.arrays) == (name in settings.learned()), name)
    longest = min(int(rankings.lengths.max()), rankings.n_items - 1)
    # Others than those of the sample may have given longer lists.
    require(longest <= sizes["stages"] <= (rankings.n_items - 1 if sample else longest), "decays")
    settings.rates(sizes["stages"])
    return DPMallowsFit(
        settings, facts["items"], rankings, draws, estimate, clusters, sampled_from=sampled_from
    )


def _rankings(items: tuple[Any, ...], data: dict[str, Array]) -> Rankings:
    """Rebuild the lists, which must be as constructors of Rankings leave them."""
    orders = data["orders"]
    listed = orders >= 0
    require(orders.shape[1] <= len(items) and bool(np.all(orders >= -1)), "lists")
    require(bool(np.all(orders < len(items))), "item numbers")
    require(bool(np.all(listed[:, 0])) and not np.any(listed[:, 1:] & ~listed[:, :-1]), "lists")
    require(bool(listed[:, -1].any()), "lists")
    ascending = np.sort(orders, axis=1)
    require(not np.any((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] >= 0)), "lists")
    require(int(data["counts"].sum()) < MOST_AGENTS, "counts")
    return Rankings._from_arrays(orders, items, data["counts"], parts.agents_of(data))


def _clusters(found: dict[str, Array], prior: PartitionPrior, sampled_from: int | None) -> ClusterDraws:
    """Rebuild centers and decays of the draws; labels may be those of a sample of so many agents."""
    starts, sizes, labels = found["starts"], found["sizes"], found["labels"]
    n_draws, n = labels.shape
    require(len(starts) == n_draws + 1 and starts[0] == 0 and starts[-1] == len(sizes), "groups")
    numbers = np.diff(starts)
    require(bool(np.all((numbers > 0) & (numbers <= (sampled_from or n)))), "groups")
    for d in range(n_draws):
        counted, here = np.bincount(labels[d], minlength=int(numbers[d])), sizes[starts[d] : starts[d + 1]]
        if sampled_from is None:
            require(np.array_equal(counted, here), "group sizes")
        else:
            require(len(counted) == len(here) and bool(np.all(counted <= here)), "group sizes")
            require(int(here.sum()) == sampled_from, "group sizes")
    if learned_concentration(prior) is not None:
        require(bool(np.all(found["concentration"] > 0.0)), "concentration")
    else:
        require(bool(np.all(found["concentration"] == first_concentration(prior))), "concentration")
    return ClusterDraws(**found, prior=prior)


SCHEMA = Schema(
    parameters=DPMallowsParameters,
    pack=_pack,
    build=_build,
    facts={"items": parts.ITEMS, **parts.PARTITION_FACTS},
    arrays={
        **parts.PARTITION_FIELDS,
        **{
            f"draws/{name}": field("real", "chains", "draws", *shape, where=fields.positive, optional=True)
            for name, shape in LEARNED.items()
        },
        "data/orders": field("int32", "rows", "places"),
        "data/counts": field("int64", "rows", where=fields.counts),
        **parts.AGENT_FIELDS,
        "sampled_from": field("int64", 1, optional=True),
        "clusters/starts": field("int64", "starts"),
        "clusters/sizes": field("int64", "clusters", where=fields.positive),
        "clusters/centers": field("int32", "clusters", "items", where=fields.permutations),
        "clusters/theta": field("real", "clusters", "stages", where=fields.not_negative),
        "clusters/labels": field("int32", "group draws", "observations", where=fields.below("observations")),
        "clusters/concentration": field("real", "group draws", where=fields.finite),
    },
)
