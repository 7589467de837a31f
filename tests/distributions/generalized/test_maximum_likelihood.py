"""Maximum likelihood of one generalized Mallows model against all centers with SciPy's optimizer."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from permix import Rankings
from permix.distributions.generalized import list_statistics
from permix.distributions.generalized import maximum_likelihood as generalized_mallows_fit
from permix.distributions.generalized.center_search_jit import (
    best_theta,
    profile,
    search_centers,
    stage_maximum,
)
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.distributions.generalized.list_statistics_jit import dense_counts, pair_costs, skip_totals
from permix.distributions.generalized.maximum_likelihood import fit_generalized_mallows
from permix.errors import DataError
from tests.every_run import first_in_every_run
from tests.oracles import generalized_mallows as oracle


def random_lists(seed, n, n_lists, shortest=1):
    """Lists that are far from one center for even seeds, near for odd ones."""
    rng = np.random.default_rng(seed)
    theta = np.full(n - 1, 0.2) if seed % 2 == 0 else rng.exponential(1.0, n - 1)
    lengths = rng.integers(shortest, n + 1, n_lists)
    return GeneralizedMallows(rng.permutation(n), theta).sample(n_lists, random_state=seed, lengths=lengths)


def plain(table):
    """Data for the oracle."""
    return [
        (tuple(order[:length].tolist()), int(count))
        for order, length, count in zip(table.orders, table.lengths, table.counts, strict=True)
    ]


def ranks_of(table, center):
    ranks = np.empty(table.n_items, dtype=np.int64)
    ranks[list(center)] = np.arange(table.n_items)
    return ranks


# Statistics.


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("n", [2, 5, 9])
def test_skips_from_the_statistics(n, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(list_statistics, "DENSE_UP_TO", 0)
        monkeypatch.setattr(list_statistics, "CHUNK", 7)
    table = random_lists(n, n, 25).collapse()
    short = Rankings.from_orders(table.orders[:, : n - 2] if n > 2 else table.orders, n_items=n)
    factor = np.linspace(0.5, 1.5, n)
    for parts in ([(table, np.ones(n))], [(table, np.ones(n)), (short, factor)]):
        stats = list_statistics.list_statistics(parts)
        center = np.random.default_rng(1).permutation(n).tolist()
        ranks = ranks_of(table, center)[stats.items]
        found = np.empty(len(stats.lists))
        skip_totals(stats, ranks, found)
        lists, exact = oracle.totals(plain(table), center)
        if len(parts) == 2:
            more_lists, more = oracle.totals(plain(short), center)
            lists[: len(more)] += factor[: len(more)] * more_lists
            exact[: len(more)] += factor[: len(more)] * more
        assert np.allclose(found, exact, rtol=1e-12, atol=1e-12)
        assert np.allclose(stats.lists, lists, rtol=1e-12)
        # The same totals as a Kemeny score, for any decays; unnamed items cost what the last column says.
        theta = np.linspace(0.1, 2.0, len(lists))
        m = len(stats.items)
        costs = np.empty((m, m + 1))
        pair_costs(stats, theta, costs)
        before = ranks[None, :] < ranks[:, None]
        unnamed = ranks - before.sum(axis=1)
        assert (costs[:, :m] * before).sum() + costs[:, m] @ unnamed == pytest.approx(theta @ exact)


def test_items_that_no_list_names_take_no_room():
    table = Rankings.from_orders([[5000, 3], [3, 9999]], n_items=10_000)
    stats = list_statistics.list_statistics([(table, np.ones(10_000))])
    assert stats.items.tolist() == [3, 5000, 9999]
    assert stats.totals.shape == (2, 3)
    fit = fit_generalized_mallows(table)
    assert fit.model.center[0] == 3
    assert set(fit.model.center[:3]) == {3, 5000, 9999}
    assert fit.model.center[3:6] == (0, 1, 2)


# Decays.


@pytest.mark.parametrize("m", [1, 2, 5, 40])
@pytest.mark.parametrize("mean", [1e-6, 0.01, 0.3, 0.49])
def test_decay_of_a_stage(m, mean):
    lists = 1000.0
    skips = mean * m * lists
    value, theta = oracle.best_stage(skips, lists, m)
    assert stage_maximum(skips, lists, m) == pytest.approx(value, rel=1e-10)
    assert best_theta(skips, lists, m) == pytest.approx(theta, rel=1e-5)
    distribution = oracle.skip_distribution(best_theta(skips, lists, m), m)
    assert sum(s * p for s, p in enumerate(distribution)) == pytest.approx(mean * m, rel=1e-9)


def test_decays_at_the_ends():
    assert best_theta(0.0, 7.0, 3) == np.inf
    assert stage_maximum(0.0, 7.0, 3) == 0.0
    for skips in (10.5, 21.0):  # half of the largest skip, as by chance; and more
        assert best_theta(skips, 7.0, 3) == 0.0
        assert stage_maximum(skips, 7.0, 3) == pytest.approx(-7 * np.log(4))


# The whole.


@pytest.mark.parametrize("seed", first_in_every_run(range(8), 3))
@pytest.mark.parametrize(("n", "n_lists"), [(3, 4), (4, 6), (5, 10), (5, 60)])
def test_maximum_over_all_centers(n, n_lists, seed):
    table = random_lists(seed, n, n_lists)
    every = oracle.maximum_likelihood(plain(table.collapse()), n)
    fit = fit_generalized_mallows(table)
    best = max(value for value, _ in every.values())
    assert fit.proven
    assert fit.log_likelihood == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert fit.model.log_prob(table).sum() == pytest.approx(best, rel=1e-9, abs=1e-9)
    value, theta = every[fit.model.center]
    assert value == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert np.allclose(fit.theta, theta, rtol=1e-4, atol=1e-6)
    lists, skips = oracle.totals(plain(table), fit.model.center)
    assert fit.n_lists.tolist() == lists.tolist()
    assert np.allclose(fit.mean_skips, skips / lists)


def test_the_comparison_rejects_decays_of_the_wrong_stage():
    """A center at the decays of another stage stays below the maximum by more than the tolerance above."""
    table = random_lists(1, 5, 60)
    fit = fit_generalized_mallows(table)
    shifted = GeneralizedMallows(fit.model.center, np.roll(fit.model.theta, 1))
    assert shifted.log_prob(table).sum() < fit.log_likelihood - 1e-3


def test_alternation_alone_can_miss_the_maximum_and_says_so():
    """What the search is for: some start ends below the best center, and is not called proven."""
    missed = 0
    for seed in range(0, 60, 2):
        table = random_lists(seed, 6, 5)
        alone = fit_generalized_mallows(table, n_starts=1, max_nodes=0)
        full = fit_generalized_mallows(table)
        assert not alone.proven
        assert full.proven
        assert alone.log_likelihood <= full.log_likelihood + 1e-9
        missed += alone.log_likelihood < full.log_likelihood - 1e-6
    assert missed > 0


def test_the_search_by_itself_finds_the_maximum():
    """Without a start; lists that hardly agree have many centers that are nearly as good."""
    n = 6
    for seed in range(0, 60, 2):
        table = random_lists(seed, n, 5)
        stats = list_statistics.list_statistics([(table, np.ones(n))])
        m, n_stages = len(stats.items), len(stats.lists)
        counts = dense_counts(stats)
        skips, theta = np.empty(n_stages), np.empty(n_stages)
        best = -np.inf
        for ranks in permutations(range(m)):  # the same items in all orders
            skip_totals(stats, np.array(ranks), skips)
            best = max(best, profile(skips, stats.lists, n, theta))
        order = np.arange(m)
        found, complete = search_centers(counts, stats.lists, n, 10**6, 1e-9, -np.inf, order)
        assert complete
        assert found == pytest.approx(best, rel=1e-9)
        assert not search_centers(counts, stats.lists, n, 2, 1e-9, -np.inf, order)[1]
    assert not fit_generalized_mallows(random_lists(0, 6, 5), max_nodes=2).proven


def test_many_items_and_local_search(monkeypatch):
    n = 20
    truth = GeneralizedMallows(np.random.default_rng(0).permutation(n), np.linspace(1.5, 0.6, 10), beyond=0.5)
    lists = truth.sample(400, random_state=1, lengths=10)
    fit = fit_generalized_mallows(lists)
    assert fit.proven
    assert fit.log_likelihood >= truth.log_prob(lists).sum()
    # The standard error is 1 / sqrt(N Var); five of them leave one failure in two million per stage.
    deviation = 1.0 / np.sqrt(400 * _skip_variances(truth)[:10])
    assert np.all(np.abs(fit.theta - truth.theta[:10]) < 5 * deviation)
    monkeypatch.setattr(generalized_mallows_fit, "SUBSETS_UP_TO", 2)
    eight = random_lists(1, 8, 40)
    assert fit_generalized_mallows(eight).log_likelihood == pytest.approx(
        fit_generalized_mallows(eight, n_starts=20).log_likelihood, rel=1e-12
    )


def _skip_variances(model):
    from permix.kernels.mallows import displacement_moments

    return np.array([displacement_moments(x, model.n_items - j)[1] for j, x in enumerate(model.theta)])


def test_ends_are_told():
    lists = Rankings.from_orders([["a", "b"], ["a", "c"], ["a", "d"]], items=["a", "b", "c", "d"])
    fit = GeneralizedMallows.fit(lists)
    assert fit.theta.tolist() == [np.inf, 0.0]
    assert fit.log_likelihood == pytest.approx(-3 * np.log(3))
    text = repr(fit)
    assert "infinite theta (no list ever skipped an item) at stage 1" in text
    assert "theta 0 (skips as by chance, or more) at stage 2" in text
    assert "no list says anything about stages 3 and later" in text
    assert "no center is better" in text


def test_counts_are_lists_and_names_do_not_matter():
    lists = random_lists(1, 5, 30)
    fit = fit_generalized_mallows(lists)
    assert fit_generalized_mallows(lists.collapse()).log_likelihood == pytest.approx(fit.log_likelihood)
    renamed = Rankings.from_orders(
        [[f"item {4 - item}" for item in order[order >= 0]] for order in lists.orders],
        items=[f"item {k}" for k in range(5)],
    )
    other = fit_generalized_mallows(renamed)
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-12)
    assert other.model.log_prob(renamed).sum() == pytest.approx(fit.log_likelihood, rel=1e-12)
    twice = Rankings.from_orders(lists.orders, n_items=5, counts=np.full(30, 2))
    assert fit_generalized_mallows(twice).log_likelihood == pytest.approx(2 * fit.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_items(n):
    fit = fit_generalized_mallows(Rankings.from_orders([list(range(n))] * 2, n_items=n))
    assert fit.proven
    assert fit.log_likelihood == 0.0
    assert fit.model.center == tuple(range(n))


def test_bad_input():
    with pytest.raises(DataError, match="must be Rankings, not list"):
        GeneralizedMallows.fit([[0, 1]])
    with pytest.raises(DataError, match="no rows"):
        GeneralizedMallows.fit(Rankings.from_orders([[0, 1]])[:0])
    with pytest.raises(DataError, match=r"agent 'bo'.*subset.*unlisted='below'"):
        GeneralizedMallows.fit(Rankings.from_orders([[0, 1]], n_items=3, unlisted="unknown", agents=["bo"]))
    with pytest.raises(DataError, match="n_starts=0"):
        GeneralizedMallows.fit(Rankings.from_orders([[0, 1]]), n_starts=0)
    with pytest.raises(DataError, match="max_nodes=-1"):
        GeneralizedMallows.fit(Rankings.from_orders([[0, 1]]), max_nodes=-1)
