"""Chains over agents in shards draw from the posterior, and the same bits however agents are divided."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.data.shards.sharded import Sharded
from permix.dp_mallows.moves import Centers
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.sharded.fit import sampled, sharded_model, stages_of
from permix.dp_mallows.sharded.moves import PlaceAll, ShardedSplitMerge
from permix.dp_mallows.sharded.singles import Singles
from permix.dp_mallows.sharded.state import ShardedState
from permix.kernels.streams import draw_key
from permix.moves import Cycle
from permix.runtime.executors import Here
from tests.dp_mallows.list_cases import agrees, visits_of
from tests.dp_mallows.test_moves import CASES, posterior


def state_of(name, n_shards=1, seed=0, n_clusters=2):
    """A state of a case whose agents are all on record."""
    case = CASES[name]
    lists = permix.Rankings.from_orders([list(row) for row in case.lists], items=range(4))
    data = Sharded.of(lists, n_shards, Here(1))
    settings = DPMallowsParameters(
        prior=case.prior, prior_strength=case.strength, prior_rate=case.rates, n_initial_clusters=n_clusters
    )
    on_record, sample = sampled(data, np.array([1, 2], dtype=np.uint64), 10)
    assert on_record.tolist() == list(range(len(case.lists)))
    state = ShardedState(sharded_model(data, on_record, sample, stages_of(data), settings), 0)
    rng = np.random.default_rng(seed)
    places = np.stack([rng.permutation(4) for _ in range(n_clusters)], axis=1).astype(np.int16)
    nobody = np.full(n_clusters, -1, dtype=np.int64)
    state.place(places, np.ones((3, n_clusters)), np.ones(n_clusters), draw_key(rng), nobody)
    return state


MOVES = {"split-merge": [PlaceAll, ShardedSplitMerge], "singles": [PlaceAll, Singles], "places": [PlaceAll]}


def chain(name):
    return Cycle([*(move() for move in MOVES[name]), Centers()])


@pytest.mark.parametrize(("name", "moves"), [("five", "split-merge"), ("pitman-yor", "singles")])
def test_chains_visit_partitions_as_often_as_the_posterior_says(name, moves):
    enumeration = posterior(name)
    visits = visits_of(state_of(name, 2), chain(moves), enumeration.partitions, 2000, seed=1)
    assert agrees(visits, enumeration.partitions, enumeration.chances)
