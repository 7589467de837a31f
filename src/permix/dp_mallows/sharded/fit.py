"""Fits to agents in shards.

Chains go over all agents, of whom the client keeps a random sample: labels of draws, the point estimate and
what is said about rows are those of the sample; sizes, centers and decays are those of all.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from permix.data.agent_table import refuse_too_many_agents
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.data.shards.sharded import Sharded
from permix.dp_mallows.decay_prior import LearnDecayPrior
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.fit import (
    LEARNING_GROUPS,
    MANY_AGENTS,
    MAX_CLUSTER_DRAWS,
    DPMallowsFit,
    first_state,
    fit_table,
    summarized,
    sweep_move,
)
from permix.dp_mallows.moves import Centers
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.sharded.moves import PlaceAll, ShardedSplitMerge
from permix.dp_mallows.sharded.singles import Singles
from permix.dp_mallows.sharded.state import CENTERS, SIZES, THETA, ShardedModel, ShardedState
from permix.dp_mallows.sharded.work import Placing, add_looks, longest_list, look
from permix.dp_mallows.state import ListModel, list_model
from permix.errors import Argument, DataError, ShardError
from permix.estimators.ranking_lists import as_top_lists
from permix.kernels.streams import draw_key
from permix.moves import Concentration, Cycle, Move
from permix.moves.state import first_concentration
from permix.posterior.estimated import spaced
from permix.runtime.fingerprint import digest
from permix.runtime.seeds import seed_sequence, stream_key
from permix.sampling import Draws, run_chains

# So many agents are on record, and as many are what chains start with.
ON_RECORD = 2000
# A cluster's counts of pairs (stages × items²) travel after every sweep: two megabytes at most.
MOST_PAIRS = 2**18
# Sweeps over the agents on record, before chains begin with all.
SWEEPS_BEFORE = 20


def fit_shards(data: Sharded, settings: DPMallowsParameters) -> DPMallowsFit:
    """Run chains on top lists in shards; few agents are fitted as a table, by its sampler."""
    if settings.sampler != "exact":
        raise DataError(
            Argument("sampler", settings.sampler),
            " visits one ranking after another; data in shards take exact",
        )
    try:
        if data.n_agents <= MANY_AGENTS:
            few = data.distinct(MANY_AGENTS)
            assert few is not None
            fit = fit_table(as_top_lists(few), settings)
            return dataclasses.replace(fit, sampled_from=data.n_agents)
        return _fit_shards(data, settings)
    finally:
        data.forget()


def _fit_shards(data: Sharded, settings: DPMallowsParameters) -> DPMallowsFit:
    refuse_too_many_agents(np.array([data.n_agents]))
    if settings.assignments == "collapsed":
        raise DataError(
            Argument("assignments", "collapsed"),
            " visits agents one by one; in shards they are placed in parallel",
        )
    n_stages = stages_of(data)
    key = stream_key(seed_sequence(settings.random_state).spawn(1)[0])
    on_record, sample = sampled(data, key, ON_RECORD)
    model = sharded_model(data, on_record, sample, n_stages, settings)
    draws = run_chains(
        [partial(first_sharded_state, model, settings, chain) for chain in range(settings.n_chains)],
        sharded_sweep(settings),
        **settings.for_chains(data.n_agents * n_stages),
        fingerprint={
            "model": "DPMallowsMixture",
            "shards": True,
            "agents": data.n_agents,
            "split_merge": settings.split_merge,
            "n_initial_clusters": settings.n_initial_clusters,
            "prior": settings.partition_prior().describe(),
            "prior_strength": settings.strength,
            "prior_rate": model.rates.tolist(),
            "learned": sorted(model.learned),
            "data": digest({"pairs": all_pairs(model), "of": on_record, "items": model.lists.items}),
        },
    )
    clusters = _clusters(draws, model, settings)
    kept = {name: values for name, values in draws.arrays.items() if name not in (SIZES, CENTERS, THETA)}
    draws = dataclasses.replace(draws, arrays=kept)
    fit = summarized(sample, settings, draws, clusters)
    return dataclasses.replace(fit, sampled_from=data.n_agents)


def stages_of(data: Sharded) -> int:
    """Return the length of the longest list, at most the number of items less one; refuse what is no list."""
    found = data.map(longest_list)
    for said, recipe in zip(found, data.recipes, strict=True):
        if isinstance(said, str):
            raise ShardError(f"{recipe.name}: {said}")
    n_stages = int(max(found))
    if n_stages * data.n_items**2 > MOST_PAIRS:
        raise DataError(
            f"{data.n_items} items in lists of up to {n_stages} make {n_stages * data.n_items**2:,} counts "
            f"for each group, which travel in every iteration; in shards DPMallowsMixture takes "
            f"{MOST_PAIRS:,}: cut the lists, fit a part as one table, or use permix.MallowsMixture"
        )
    return n_stages


def sampled(data: Sharded, key: Array, most: int) -> tuple[Array, Rankings]:
    """Return the numbers of agents drawn at random, in their order, and their lists, one row each."""
    drawn = data.chosen(most, key)
    return drawn.agents, as_top_lists(drawn.table)


def sharded_model(
    data: Sharded, on_record: Array, sample: Rankings, n_stages: int, settings: DPMallowsParameters
) -> ShardedModel:
    """Return data and prior as a chain's client sees them."""
    initial = settings.n_initial_clusters
    most = settings.partition_prior().most_clusters(data.n_agents)
    if initial is not None and initial > min(most, len(on_record)):
        raise DataError(
            Argument("n_initial_clusters", initial), f" are more than {min(most, len(on_record))}"
        )
    orders, lengths, counts = (np.asarray(a) for a in (sample.orders, sample.lengths, sample.counts))
    known = (settings.rates, settings.strength, settings.partition_prior(), settings.learned())
    # The integrals are tabulated for all agents, and for all stages.
    model = list_model(
        orders, lengths, counts, data.n_items, *known, n_agents=data.n_agents, n_stages=n_stages
    )
    given = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    return ShardedModel(**given, data=data, on_record=on_record)


def all_pairs(model: ShardedModel) -> Array:
    """Return the counts of pairs of all agents, by which a store knows the data again."""
    shape = model.shape
    one = Placing(
        np.zeros((model.n_items, 1), dtype=np.uint64),
        np.zeros((model.n_stages, 1)),
        np.zeros(1),
        np.zeros(2, dtype=np.uint64),
        np.full(1, -1, dtype=np.int64),
        (),
        -1,
    )
    assert model.data is not None
    return np.asarray(model.data.map(look, (shape, one, model.on_record), add_looks).pairs)


def sharded_sweep(settings: DPMallowsParameters) -> Cycle:
    """Return what one iteration does."""
    moves: list[Move] = [PlaceAll(), *([ShardedSplitMerge()] if settings.split_merge else []), Singles()]
    if settings.learned():
        moves.append(LearnDecayPrior(LEARNING_GROUPS))
    return Cycle([*moves, Concentration(), Centers()])


def first_sharded_state(
    model: ShardedModel, settings: DPMallowsParameters, chain: int, rng: np.random.Generator
) -> ShardedState:
    """Place all agents by the clusters that some sweeps over those on record arrive at.

    As chains over tables do, these start from few clusters and from many in turn.
    """
    assert model.data is not None
    part = of_those_on_record(model)
    start = first_state(part, settings, rng, chain)
    move = sweep_move(settings, part.n_agents, len(part.lists.starts) - 1)
    for _ in range(SWEEPS_BEFORE):
        move.step(rng, start)
    n = start.n_clusters
    state = ShardedState(model, chain)
    state.concentration = start.concentration
    state.take_learned(start.learned())
    places, theta = start.clusters.places[:, :n].copy(), start.clusters.theta[:n].T
    shares, nobody = start.sizes_in_use.astype(np.float64), np.full(n, -1, dtype=np.int64)
    state.place(places, theta, shares, draw_key(rng), nobody)
    return state


def of_those_on_record(model: ShardedModel) -> ListModel:
    """Return the model of the agents on record alone."""
    return ListModel(**{field.name: getattr(model, field.name) for field in dataclasses.fields(ListModel)})


def _clusters(draws: Draws, model: ShardedModel, settings: DPMallowsParameters) -> ClusterDraws:
    """Return sizes, centers and decays of evenly spaced draws, as the chains had them."""
    arrays = draws.arrays
    n_chains, n_draws = arrays["n_groups"].shape
    which = spaced(n_chains * n_draws, MAX_CLUSTER_DRAWS)
    numbers = arrays["n_groups"].reshape(-1)[which].astype(np.int64)

    def rows(name: str, width: int) -> Array:
        flat = arrays[name].reshape(n_chains * n_draws, -1)[which]
        found = [row[: n * width].reshape(n, width) for row, n in zip(flat, numbers, strict=True)]
        return np.concatenate(found)

    if "concentration" in arrays:
        concentration = arrays["concentration"].reshape(-1)[which].astype(float)
    else:
        concentration = np.full(len(which), first_concentration(model.prior))
    labels = arrays["labels"].reshape(n_chains * n_draws, -1)[which]
    return ClusterDraws(
        starts=np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64),
        sizes=rows(SIZES, 1)[:, 0].astype(np.int64),
        centers=rows(CENTERS, model.n_items).astype(np.int32),
        theta=rows(THETA, model.n_stages).astype(np.float64),
        labels=np.ascontiguousarray(labels, dtype=np.int32),
        concentration=concentration,
        prior=model.prior,
    )
