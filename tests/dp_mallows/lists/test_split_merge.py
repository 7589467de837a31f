"""Probabilities of the parts of split and merge proposals: they sum to one and say what is done."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest

from permix.dp_mallows.lists.clusters_jit import log_likelihoods
from permix.dp_mallows.lists.many_items_jit import ByList
from permix.dp_mallows.lists.pair_counts_jit import ByPair, add_pairs
from permix.dp_mallows.lists.split_merge_jit import (
    SEARCH_DECAY,
    blind_allocation,
    gather,
    log_partner,
    log_split_prior,
    propose_center,
    smart_allocation,
)
from permix.dp_mallows.lists.top_lists_jit import Members, sum_skips
from permix.kernels.streams import new_stream, open_stream
from permix.partitions import DirichletProcess, MixtureOfFiniteMixtures, PitmanYor
from tests.dp_mallows.list_cases import FIVE, model_of, placed
from tests.dp_mallows.lists.test_top_lists import naive_skips
from tests.every_run import first_in_every_run, turns_in_every_run
from tests.oracles.dp_mallows import mixture_of_finite_mixtures, pitman_yor
from tests.oracles.mixtures import total_variation, total_variation_bound

N_ITEMS = 4
# Agents 0 to 6; agent 6 is in nobody's cluster.
LISTS = (*FIVE, (0, 1), (1, 0, 3))
MODEL = model_of(LISTS, N_ITEMS)


def stream(seed=0):
    opened = new_stream()
    open_stream(opened, 1, 2, 0, seed)
    return opened


def gathered(model, side, wanted=3):
    members = Members(np.empty(len(side), np.int32), np.empty(len(side)))
    n = gather(model.lists, side, wanted, members)
    return Members(members.lists[:n].copy(), members.times[:n].copy())


def source_of(model, members, way="counted"):
    """Lists as a cluster, pairs counted or lists read."""
    if way == "read":
        return ByList(model.lists, np.array([0, len(members.lists)]), members)
    pairs = np.zeros((1, model.n_stages, model.n_items, model.n_items))
    for d, times in zip(*members, strict=True):
        add_pairs(model.lists, d, times, pairs[0])
    return ByPair(pairs, np.full(1, -1, dtype=np.int32))


def test_gathering():
    side = np.array([1, 2, 0, 1, 1, 2, 0], dtype=np.int64)
    list_of = MODEL.lists.list_of
    for wanted, agents in ((1, [0, 3, 4]), (2, [1, 5]), (3, [0, 1, 3, 4, 5])):
        members = gathered(MODEL, side, wanted)
        numbers, counts = np.unique(list_of[agents], return_counts=True)
        np.testing.assert_array_equal(members.lists, numbers)
        np.testing.assert_array_equal(members.times, counts)


def smart(model, side, first, second, draw, out, seed=0):
    members, anchors = gathered(model, side), np.array([first, second])
    where = (
        source_of(model, members),
        model.lists,
        side,
        members,
        len(members.lists),
        anchors,
        model.tables,
        model.n_items,
    )
    return smart_allocation(stream(seed), *where, draw, out)


@pytest.mark.parametrize(("first", "second"), first_in_every_run([(0, 2), (4, 3), (2, 0), (1, 5)], 2))
def test_smart_allocations_are_a_distribution(first, second):
    side = np.array([1, 1, 1, 1, 1, 1, 0], dtype=np.int64)
    free = [i for i in range(6) if i not in (first, second)]
    distribution = {}
    for choice in product((1, 2), repeat=4):
        out = np.zeros(7, dtype=np.int64)
        out[free], out[first], out[second] = choice, 1, 2
        given = out.copy()
        # As a merge weighs it: who is on which side must not matter for the distribution.
        distribution[choice] = math.exp(smart(MODEL, out, first, second, False, out))
        np.testing.assert_array_equal(out, given)
    assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
    counts = dict.fromkeys(distribution, 0)
    for seed in range(4000):
        out = side.copy()
        value = smart(MODEL, side, first, second, True, out, seed)
        assert (out[first], out[second], out[6]) == (1, 2, 0)
        choice = tuple(out[free].tolist())
        assert math.exp(value) == pytest.approx(distribution[choice], rel=1e-12)
        counts[choice] += 1
    exact = np.array(list(distribution.values()))
    frequencies = np.array(list(counts.values())) / 4000
    assert total_variation(frequencies, exact) < total_variation_bound(exact, 4000)


def test_smart_allocations_of_many_lists():
    """A split of so many that a part of them is looked at weighs as the merge that undoes it does."""
    rng = np.random.default_rng(0)
    lists = [tuple(rng.permutation(9)[: rng.integers(3, 7)]) for _ in range(1500)]
    model = model_of(lists, 9)
    side = (rng.random(1500) < 0.9).astype(np.int64)
    first, second = np.flatnonzero(side)[[5, 77]]
    assert len(gathered(model, side).lists) > 1000
    out = side.copy()
    value = smart(model, side, first, second, True, out)
    assert 0 < np.count_nonzero(out == 1) < np.count_nonzero(side)
    assert smart(model, out, first, second, False, out) == value
    assert value < 0.0


def test_blind_allocations_are_a_distribution():
    side = np.array([1, 1, 0, 1, 1, 0, 0], dtype=np.int64)
    distribution = {}
    for choice in product((1, 2), repeat=3):
        out = np.array([choice[0], 1, 0, *choice[1:], 0, 0], dtype=np.int64)
        distribution[choice] = math.exp(blind_allocation(stream(), side, 1, False, out))
    assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
    counts = dict.fromkeys(distribution, 0)
    for seed in range(4000):
        out = side.copy()
        value = blind_allocation(stream(seed), side, 1, True, out)
        choice = (int(out[0]), int(out[3]), int(out[4]))
        assert out[1] == 1
        assert not out[[2, 5, 6]].any()
        assert math.exp(value) == pytest.approx(distribution[choice], rel=1e-12)
        counts[choice] += 1
    exact = np.array(list(distribution.values()))
    frequencies = np.array(list(counts.values())) / 4000
    assert total_variation(frequencies, exact) < total_variation_bound(exact, 4000)


@pytest.mark.parametrize(
    ("agents", "way"), turns_in_every_run([(2,), (0, 1, 3), (1, 5, 4, 2)], ["counted", "read"])
)
def test_centers_are_proposed_from_a_distribution(agents, way):
    side = np.zeros(7, dtype=np.int64)
    side[list(agents)] = 1
    members = gathered(MODEL, side)

    def propose(center, draw, seed=0):
        order = np.array(center, dtype=np.int32)
        places = np.argsort(order).astype(np.int16)
        where = (source_of(MODEL, members, way), MODEL.tables)
        value = propose_center(stream(seed), *where, draw, order, places, *np.empty((2, MODEL.n_stages)))
        assert np.array_equal(places[order], np.arange(N_ITEMS))
        return tuple(order.tolist()), value

    distribution = {}
    for center in permutations(range(N_ITEMS)):
        kept, value = propose(center, False)
        assert kept == center
        distribution[center] = math.exp(value)
    assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
    counts = dict.fromkeys(distribution, 0)
    for seed in range(4000):
        center, value = propose((2, 1, 3, 0), True, seed)
        assert math.exp(value) == pytest.approx(distribution[center], rel=1e-12)
        counts[center] += 1
    exact = np.array(list(distribution.values()))
    frequencies = np.array(list(counts.values())) / 4000
    assert total_variation(frequencies, exact) < total_variation_bound(exact, 4000)


def test_likelihood_of_a_part():
    side = np.array([1, 1, 0, 0, 1, 1, 0], dtype=np.int64)
    members = gathered(MODEL, side)
    center = np.array([2, 0, 3, 1])
    totals, counts = np.empty((2, 1, MODEL.n_stages))
    places = np.argsort(center).astype(np.int16)
    sum_skips(MODEL.lists, members, 0, len(members.lists), places, totals[0], counts[0])
    value = np.empty(1)
    log_likelihoods(MODEL.tables, totals, counts, value)
    state = placed(MODEL, np.where(side, 0, 1), [center, np.arange(4)])
    assert value[0] == pytest.approx(state.cluster_log_likelihoods()[0], abs=1e-12)


def test_partners():
    """Weights are size × exp(-0.5 Σ skips) of all clusters but one's own, and of that which a split makes."""
    centers = [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)]
    state = placed(MODEL, [0, 0, 1, 2, 1, 2, 2], centers)
    lists, clusters = MODEL.lists, state.clusters
    new, new_size = (2, 0, 1, 3), 5
    for agent, apart in ((0, 0), (3, 2), (2, 1)):
        row = LISTS[agent][: N_ITEMS - 1]
        weights = np.array(
            [
                size * math.exp(-SEARCH_DECAY * sum(naive_skips(row, list(center))))
                for size, center in zip((2, 2, 3, new_size), (*centers, new), strict=True)
            ]
        )
        weights[apart] = 0.0
        distribution = weights[:3] / weights[:3].sum()
        counts = np.zeros(3)
        for seed in range(2000):
            k, value = log_partner(lists, lists.list_of[agent], clusters, 3, apart, -1, stream(seed))
            assert value == pytest.approx(math.log(distribution[k]), abs=1e-12)
            counts[k] += 1
        assert total_variation(counts / 2000, distribution) < total_variation_bound(distribution, 2000)
        # The cluster a split is about to make.
        clusters.sizes[3], clusters.places[:, 3] = new_size, np.argsort(new)
        _, value = log_partner(lists, lists.list_of[agent], clusters, 4, apart, 3, stream())
        clusters.sizes[3] = 0
        assert value == pytest.approx(math.log(weights[3] / weights.sum()), abs=1e-12)


@pytest.mark.parametrize(
    ("prior", "oracle"),
    [
        (DirichletProcess(0.3), pitman_yor(0.3, 0.0)),
        (PitmanYor(0.5, 0.4), pitman_yor(0.5, 0.4)),
        (MixtureOfFiniteMixtures(2.0, 0.5), mixture_of_finite_mixtures(2.0, 0.5)),
    ],
)
def test_prior_of_a_split(prior, oracle):
    whole, split = (0, 0, 0, 0, 0, 1, 1, 2), (0, 0, 0, 1, 1, 2, 2, 3)
    tables = prior.tables(8)
    assert log_split_prior(np.exp(tables.opening), tables.discount, 3, 3.0, 2.0) == pytest.approx(
        math.log(oracle(split) / oracle(whole)), abs=1e-12
    )
