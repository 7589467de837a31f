"""The permutation move on lists leaves the posterior of partitions and centers invariant."""

from __future__ import annotations

import copy
import math
import warnings
from itertools import permutations

import numpy as np
import pytest

import permix
from permix.data.rankings import Rankings
from permix.dp_mallows.fit import burn_in_move, fit_dp_mallows, start_state, sweep_move
from permix.dp_mallows.lists.center_moves_jit import center_scratch
from permix.dp_mallows.lists.permutation_jit import choose_clusters, log_of_segment, weigh_center
from permix.dp_mallows.permutation import LIKENESS, PSEUDO_COUNT, ListPermutation, Surrogate
from permix.dp_mallows.seating import Centers, CollapsedSeating
from permix.dp_mallows.settings import DPMallowsSettings
from permix.errors import DataError
from permix.kernels.streams import new_stream, open_stream
from permix.moves import Concentration, Cycle
from permix.partitions import DirichletProcess, Gamma, PitmanYor
from tests.dp_mallows.list_cases import FIVE, agrees, check_statistics, model_of, placed, seated, visits_of
from tests.every_run import first_in_every_run
from tests.oracles.dp_mallows import (
    Enumeration,
    dirichlet_process,
    gamma_dirichlet_process,
    gaps,
    pitman_yor,
)
from tests.oracles.mixtures import total_variation, total_variation_bound

STRENGTH, RATES = 1.5, (0.4, 1.0, 2.0)
GAMMA = Gamma(2.0, 1.5)
PRIORS = {
    "dp": (DirichletProcess(0.7), dirichlet_process(0.7)),
    "pitman-yor": (PitmanYor(0.2, 0.6), pitman_yor(0.2, 0.6)),
    "learned": (DirichletProcess(GAMMA), gamma_dirichlet_process(GAMMA.shape, GAMMA.rate)),
}
ORACLES = {name: Enumeration(FIVE, 4, law, STRENGTH, RATES) for name, (_, law) in PRIORS.items()}
# All clusters at once, and only some of them, with few of the segments or all; with clusters of two large.
OPTIONS = {
    "all clusters": {"n_chosen": 100.0, "n_clusters": 2.0},
    "some clusters": {"n_chosen": 1.0, "n_clusters": 2.5, "large": 2.0},
    "all are large": {"n_chosen": 100.0, "n_clusters": 2.0, "large": 1.0},
    "narrow beam": {"n_chosen": 100.0, "width": 2, "large": 3.0},
    "approximate": {"method": "approximate", "n_chosen": 2.0, "n_clusters": 3.0},
    "scans": {"order": "markov", "n_chosen": 100.0, "large": 2.0},
    "given concentration": {"integrate": False, "n_chosen": 100.0},
}


def state_of(prior):
    return seated(model_of(FIVE, 4, PRIORS[prior][0], STRENGTH, RATES))


def chain_agrees(prior, moves, n_steps, seed=1):
    oracle = ORACLES[prior]
    visits = visits_of(state_of(prior), Cycle(moves), oracle.partitions, n_steps, seed)
    return agrees(visits, oracle.partitions, oracle.chances)


# Chains.


@pytest.mark.parametrize(
    ("prior", "options"),
    [
        ("dp", "all clusters"),
        ("dp", "some clusters"),
        ("dp", "all are large"),
        ("dp", "narrow beam"),
        ("dp", "scans"),
        ("pitman-yor", "some clusters"),
        ("pitman-yor", "approximate"),
        ("learned", "all clusters"),
        ("learned", "some clusters"),
    ],
)
def test_alone(prior, options):
    assert chain_agrees(prior, [ListPermutation(**OPTIONS[options])], 5000)


@pytest.mark.parametrize(
    ("prior", "options"),
    first_in_every_run(
        [("dp", "approximate"), ("pitman-yor", "all clusters"), ("learned", "given concentration")]
    ),
)
def test_after_other_moves(prior, options):
    moves = [Concentration(), CollapsedSeating(), Centers(), ListPermutation(**OPTIONS[options])]
    assert chain_agrees(prior, moves, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("options", OPTIONS)
def test_long_chains(prior, options):
    moves = [Concentration(), ListPermutation(**OPTIONS[options])]
    if options == "narrow beam":  # which never has all lists in one cluster
        moves[1:1] = [CollapsedSeating(), Centers()]
    assert chain_agrees(prior, moves, 30_000, seed=2)


@pytest.mark.parametrize("options", ["all clusters", "some clusters"])
def test_centers(options):
    """Partitions with centers, by the center of an agent's cluster, that only this move changes."""
    state = state_of("dp")
    move = ListPermutation(**OPTIONS[options])
    rng = np.random.default_rng(7)
    draws = []
    for _ in range(10_000):
        move.step(rng, state)
        draws.append((state.labels.tolist(), state.centers().tolist(), np.empty((state.n_clusters, 0))))
    for agent in (0, 3):
        for name, gap in gaps(ORACLES["dp"], draws, agent).items():
            assert gap.n_effective > 400, name
            assert gap.distance < gap.bound, name


# Wrong chains.


class WithoutCenterRatio(ListPermutation):
    def _log_ratio(self, head, target, centers, surrogate):
        return head + target - surrogate


class WithoutSurrogateRatio(ListPermutation):
    def _log_ratio(self, head, target, centers, surrogate):
        return head + target - centers


class WithoutCount(ListPermutation):
    def _log_ratio(self, head, target, centers, surrogate):
        return target - centers - surrogate


class WithoutMetropolis(ListPermutation):
    def _log_ratio(self, head, target, centers, surrogate):
        return math.inf


class BySizeUnweighed(ListPermutation):
    """Clusters take part by their size, but the weights of clusters do not say so."""

    def _rearrange(self, rng, state, part):
        self._room.log_chances[:] = 0.0
        return super()._rearrange(rng, state, part)


@pytest.mark.parametrize(
    "twin",
    first_in_every_run(
        [WithoutCenterRatio, BySizeUnweighed, WithoutSurrogateRatio, WithoutCount, WithoutMetropolis], 2
    ),
)
def test_wrong_ratios_are_rejected(twin):
    options = OPTIONS["all are large" if twin is BySizeUnweighed else "all clusters"]
    assert not chain_agrees("dp", [Centers(), twin(**options)], 5000)


# The parts of the ratio.


class Watched(ListPermutation):
    """Remembers what it weighed."""

    def _log_ratio(self, *terms):
        self.terms = terms
        return super()._log_ratio(*terms)


def test_target_is_what_the_log_joint_changes_by():
    model = model_of(FIVE, 4, DirichletProcess(0.7), STRENGTH, RATES)
    state = seated(model)
    rng = np.random.default_rng(3)
    move = Watched(n_chosen=2.0, n_clusters=2.0)
    n_changes = 0
    for _ in range(300):
        before, n_before = state.log_likelihood(), state.n_clusters
        labels, centers = state.labels.copy(), state.centers()
        taken = move.step(rng, state).accepted
        check_statistics(state)
        if taken:
            n_changes += 1
            change = state.log_likelihood() - before - math.log(24) * (state.n_clusters - n_before)
            assert move.terms[1] == pytest.approx(change, abs=1e-8)
            assert state.n_moved > 0
        else:
            np.testing.assert_array_equal(state.labels, labels)
            np.testing.assert_array_equal(state.centers(), centers)
    assert n_changes > 30


@pytest.mark.parametrize("members", [(0,), (4,), (0, 2), (1, 3, 4)])
def test_proposals_of_centers_are_a_law(members):
    model = model_of(FIVE, 4, strength=STRENGTH, rates=RATES)
    labels = [0 if i in members else 1 for i in range(5)]
    scores = ORACLES["dp"]._scores(tuple(ORACLES["dp"].observed[i] for i in members))
    order, scratch, stream = np.array(members), center_scratch(4), new_stream()
    open_stream(stream, 1, 2, 0, 0)

    def weigh(draw, center, places, totals, counts):
        segment = (order, 0, len(order), draw)
        given = (np.array(center, dtype=np.int32), places, totals, counts)
        return weigh_center(stream, model.lists, model.tables, model.opening, *segment, *given, scratch)

    law = {}
    for number, center in enumerate(permutations(range(4))):
        clusters = placed(model, labels, [center, range(4)]).clusters
        given = clusters.places[:, 0].copy(), clusters.totals[0].copy(), clusters.counts[0].copy()
        log_joint, log_proposal = weigh(False, center, *given)
        law[center] = math.exp(log_proposal)
        assert log_joint == pytest.approx(scores[number], abs=1e-8)
        right = clusters.places[:, 0], clusters.totals[0], clusters.counts[0]
        for array, kept in zip(given, right, strict=True):
            np.testing.assert_array_equal(array, kept)
    exact = np.array(list(law.values()))
    assert exact.sum() == pytest.approx(1.0, abs=1e-9)
    if len(members) == 1:  # the true law
        np.testing.assert_allclose(exact, np.exp(scores - np.logaddexp.reduce(scores)), atol=1e-8)
    counts = dict.fromkeys(law, 0)
    for _ in range(3000):
        places = np.empty(4, dtype=np.int16)
        log_joint, log_proposal = weigh(True, range(4), places, *np.empty((2, model.n_stages)))
        center = tuple(np.argsort(places).tolist())
        counts[center] += 1
        assert math.exp(log_proposal) == pytest.approx(law[center], abs=1e-9)
        assert log_joint == pytest.approx(scores[list(law).index(center)], abs=1e-8)
    seen = np.array(list(counts.values())) / 3000
    assert total_variation(seen, exact) < total_variation_bound(exact, 3000)


def naive_surrogate(lists, n_items, n_stages):
    total = 0.0
    for i, row in enumerate(lists):
        for j, item in enumerate(row):
            weights = np.full(n_items, PSEUDO_COUNT)
            for other in lists[:i]:
                for place, mentioned in enumerate(other):
                    weights[mentioned] += LIKENESS ** abs(place - j)
            left = [x for x in range(n_items) if x not in row[:j]]
            total += math.log(weights[item] / weights[left].sum())
    return total


def test_surrogate():
    rng = np.random.default_rng(0)
    lists = [tuple(rng.permutation(12)[: rng.integers(1, 12)].tolist()) for _ in range(9)]
    model = model_of(lists, 12)
    stats = Surrogate(12, model.n_stages).statistics(1)
    for first, last in ((0, 9), (3, 4), (2, 7)):
        order = rng.permutation(9)
        found = log_of_segment(stats, model.lists, order, first, last)
        naive = naive_surrogate([lists[i] for i in order[first:last]], 12, model.n_stages)
        assert found == pytest.approx(naive, abs=1e-10)
        # It leaves the slot empty.
        assert not stats.weights.any()
        assert not stats.totals.any()


def test_clusters_take_part_by_size():
    labels = np.repeat(np.arange(3, dtype=np.int32), (1, 4, 16))
    sizes = np.array([1, 4, 16])
    rng = np.random.default_rng(0)
    seen = np.zeros(3)
    agents, own_labels, own_sizes = np.empty(21, np.int64), np.empty(21, np.int32), np.empty(21, np.int64)
    for _ in range(4000):
        n_chosen, n = choose_clusters(rng, labels, sizes, 3, 0.8, 4.0, agents, own_labels, own_sizes)
        chosen = np.unique(labels[agents[:n]])
        assert len(chosen) == n_chosen
        np.testing.assert_array_equal(chosen[own_labels[:n]], labels[agents[:n]])
        np.testing.assert_array_equal(own_sizes[:n_chosen], sizes[chosen])
        seen[chosen] += 1
    np.testing.assert_allclose(seen / 4000, [0.8, 0.8, 0.2], atol=5 * math.sqrt(0.25 / 4000))


# Use.


def test_settings_are_checked():
    for wrong in ({"method": "exact"}, {"n_chosen": 0.0}, {"large": -1.0}, {"width": 0}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            ListPermutation(**wrong)
    with pytest.raises(DataError, match="permutation=True belongs to sampler='exact'"):
        DPMallowsSettings(sampler="beta-gibbs", permutation=True)
    with pytest.raises(DataError, match="permutation must be one of"):
        DPMallowsSettings(permutation="yes")


def votes():
    rng = np.random.default_rng(4)
    rows = [np.argsort(np.arange(6) * (0.8 if i % 2 else -0.8) + rng.gumbel(size=6)) for i in range(50)]
    return Rankings.from_orders([row[: rng.integers(1, 6)].tolist() for row in rows], n_items=6)


def chosen(**options):
    few = {"n_draws": 40, "n_burn_in": 10, "n_chains": 2, "random_state": 3, "progress": False}
    return DPMallowsSettings(permutation=True, **(few | options))


@pytest.mark.parametrize("split_merge", [True, False])
def test_the_number_of_clusters_is_learned_in_burn_in_and_survives_it(split_merge):
    settings = chosen(split_merge=split_merge)
    move = sweep_move(settings)
    burn_in = burn_in_move(settings, 0, move)
    assert move.exact
    assert not burn_in.exact
    fresh = copy.deepcopy((move, burn_in))
    rng = np.random.default_rng(2)
    state = start_state(votes(), settings, rng)
    for _ in range(12):
        burn_in.step(rng, state)
    # As a chain is resumed: everything into new objects.
    move_again, burn_in_again = fresh
    move_again.restore(move.checkpoint())
    burn_in_again.restore(burn_in.checkpoint())
    other = start_state(votes(), settings, np.random.default_rng(99))
    other.restore(state.checkpoint())
    again = copy.deepcopy(rng)
    for step in range(20):
        one, two = (burn_in, burn_in_again) if step < 5 else (move, move_again)
        assert one.step(rng, state) == two.step(again, other)
        for key, value in state.record().items():
            np.testing.assert_array_equal(value, other.record()[key])
    permutation = next(part for part in move.moves if isinstance(part, ListPermutation))
    learned = permutation.checkpoint()["expected"]
    for _ in range(5):
        move.step(rng, state)
    assert permutation.checkpoint()["expected"] == learned > 0


def test_fits_and_files(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains this short disagree
        one, other = (fit_dp_mallows(votes(), chosen(n_jobs=n_jobs)) for n_jobs in (1, 2))
        model = permix.DPMallowsMixture(
            permutation=True, n_draws=40, n_burn_in=10, random_state=3, progress=False
        ).fit(votes())
        without = permix.DPMallowsMixture(n_draws=40, n_burn_in=10, random_state=3, progress=False).fit(
            votes()
        )
    for name, array in one.draws.arrays.items():
        np.testing.assert_array_equal(other.draws.arrays[name], array)
    np.testing.assert_array_equal(model.posterior_["posterior"]["labels"], one.draws.arrays["labels"])
    assert not np.array_equal(without.posterior_["posterior"]["labels"], one.draws.arrays["labels"])
    statistics = one.draws.statistics
    place = list(statistics["moves"]).index("permutation")
    for chain in range(2):
        assert statistics["proposed"][chain][place] == 40
        assert 0 < statistics["accepted"][chain][place] < 40
    model.save(tmp_path / "model.permix")
    loaded = permix.load(tmp_path / "model.permix")
    assert loaded.permutation is True
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
