"""Sums over the rankings that agree with incomplete ones, and draws of them, by name and in threads."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from permix.data.rankings import Rankings
from permix.distributions.angle import completions as angle_completions
from permix.distributions.angle.completions import log_compatible_sums, sample_completions
from permix.distributions.angle.completions_jit import QUICK_TERMS, n_terms
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError
from permix.runtime import threads


def tilts_of(n_components, t, concentration, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n_components, t))
    rows -= rows.mean(axis=1, keepdims=True)
    return concentration * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def mixed_rows(n_rows, t, seed=1, lengths=None):
    rng = np.random.default_rng(seed)
    sizes = [
        int(rng.integers(1, t + 1)) if lengths is None else lengths[row % len(lengths)]
        for row in range(n_rows)
    ]
    orders = [rng.permutation(t)[:size].tolist() for size in sizes]
    unlisted = ["below" if row % 2 else "unknown" for row in range(n_rows)]
    return Rankings.from_orders(orders, n_items=t, unlisted=unlisted)


def agrees(order, listed, below):
    if below:
        return list(order[: len(listed)]) == listed
    return [item for item in order if item in listed] == listed


def enumerated(rankings, tilts):
    scores = standard_scores(rankings.n_items)
    every = list(permutations(range(rankings.n_items)))
    weights = np.exp(np.array([tilts[:, order] @ scores for order in every]))
    rows = []
    for row in range(len(rankings)):
        listed = rankings.orders[row, : rankings.lengths[row]].tolist()
        kept = [agrees(order, listed, rankings.unlisted_below[row]) for order in every]
        rows.append(np.log(weights[kept].sum(axis=0)))
    return np.array(rows)


def test_sums_of_rows_of_every_kind():
    rankings, tilts = mixed_rows(40, 6), tilts_of(3, 6, 5.0)
    assert rankings.unlisted == "mixed"
    sums, errors = log_compatible_sums(rankings, tilts)
    np.testing.assert_allclose(sums, enumerated(rankings, tilts), rtol=1e-12, atol=1e-12)
    assert (errors == 0.0).all()
    assert not np.allclose(sums, enumerated(rankings, -tilts), rtol=1e-3)


def test_all_lists_of_a_kind_share_the_whole():
    """Probabilities of all top-2 lists add up to 1, and so do those of all orders of a subset."""
    tilts = tilts_of(2, 7, 6.0)
    # One item out of an unknown rest agrees with every ranking.
    whole = log_compatible_sums(Rankings.from_orders([[3]], n_items=7, unlisted="unknown"), tilts)[0]
    for rows, unlisted in ((permutations(range(7), 2), "below"), (permutations([4, 1, 6]), "unknown")):
        table = Rankings.from_orders([list(row) for row in rows], n_items=7, unlisted=unlisted)
        shares = np.exp(log_compatible_sums(table, tilts)[0] - whole)
        np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-12)


def test_one_table_for_all_top_lists_says_what_tables_of_their_own_say(monkeypatch):
    """Also where a list is so improbable that the common table underflows."""
    for t, length in ((4, 3.0), (9, 12.0), (9, 2500.0)):
        rankings, tilts = mixed_rows(300, t, lengths=list(range(1, t + 1))), tilts_of(2, t, length)
        with monkeypatch.context() as patch:
            patch.setattr(angle_completions, "MOST_TABLED_ITEMS", 0)
            alone, _ = log_compatible_sums(rankings, tilts)
        together, errors = log_compatible_sums(rankings, tilts)
        assert not errors.any()
        np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-9)
        with monkeypatch.context() as patch:  # what is below taken for unknown
            patch.setattr(angle_completions, "MOST_TABLED_ITEMS", 0)
            twin = Rankings.from_orders(
                [row[:n].tolist() for row, n in zip(rankings.orders, rankings.lengths, strict=True)],
                n_items=t,
                unlisted="unknown",
            )
            assert not np.allclose(together, log_compatible_sums(twin, tilts)[0], atol=0.1)


def test_annealing_where_tables_would_be_too_large(monkeypatch):
    rankings, tilts = mixed_rows(60, 9, lengths=[1, 2, 3, 4, 5]), tilts_of(2, 9, 12.0)
    exact, _ = log_compatible_sums(rankings, tilts)
    monkeypatch.setattr(angle_completions, "MOST_TERMS", 0)
    monkeypatch.setattr(angle_completions, "MOST_TABLED_ITEMS", 0)
    sums, errors = log_compatible_sums(rankings, tilts, n_particles=100, random_state=3)
    z = (sums - exact) / errors
    assert np.abs(z).max() < 5.0
    assert np.mean(z**2) < 2.0
    again, _ = log_compatible_sums(rankings, tilts, n_particles=100, random_state=3)
    other, _ = log_compatible_sums(rankings, tilts, n_particles=100, random_state=4)
    assert np.array_equal(sums, again)
    assert not np.array_equal(sums, other)


def test_a_hundred_items():
    """Two ways to the same number: a list without tilts counts, and more particles have smaller errors."""
    rankings = mixed_rows(4, 100, lengths=[10])
    count, errors = log_compatible_sums(rankings, np.zeros((1, 100)))
    expected = [sum(np.log(np.arange(11, 101))), sum(np.log(np.arange(1, 91)))] * 2
    np.testing.assert_allclose(count[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(errors, 0.0, atol=1e-12)
    tilts = tilts_of(1, 100, 50.0)
    few, few_errors = log_compatible_sums(rankings, tilts, n_particles=16, random_state=5)
    many, many_errors = log_compatible_sums(rankings, tilts, n_particles=128, random_state=6)
    assert (many_errors < few_errors).all()
    assert (np.abs(few - many) < 5.0 * np.hypot(few_errors, many_errors)).all()


def test_threads_do_not_matter(monkeypatch):
    rankings, tilts = mixed_rows(50, 12), tilts_of(2, 12, 20.0)
    labels = np.arange(50) % 2
    monkeypatch.setattr(angle_completions, "MOST_TERMS", 2000)

    def results():
        sums, errors = log_compatible_sums(rankings, tilts, n_particles=4)
        return sums, errors, sample_completions(rankings, tilts, labels, n_sweeps=3, random_state=1)

    with threads.at_most(1):
        alone = results()
    monkeypatch.setattr(threads, "WORTH_THREADS", 0)
    with threads.at_most(3):
        several = results()
    for one, other in zip(alone, several, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("t", [5, 30])
def test_completions_agree_with_their_rows(t):
    rankings, tilts = mixed_rows(60, t), tilts_of(2, t, 2.0 * t)
    orders = sample_completions(rankings, tilts, np.arange(60) % 2, n_sweeps=5, random_state=0)
    for row in range(60):
        listed = rankings.orders[row, : rankings.lengths[row]].tolist()
        assert sorted(orders[row].tolist()) == list(range(t))
        assert agrees(orders[row].tolist(), listed, rankings.unlisted_below[row])


@pytest.mark.parametrize("by_table", [False, True])
def test_completions_follow_their_component(by_table):
    """Mean exponents against the exact slope of ln of the sum, in both components, by moves and by tables."""
    t, n = (6, 2000) if by_table else (12, 2000)
    listed = [3, 1, 4][: t // 3]
    assert (n_terms(len(listed), False, t) <= QUICK_TERMS) == by_table
    tilts, step = tilts_of(2, t, 8.0), 1e-4
    rankings = Rankings.from_orders([listed] * n, n_items=t, unlisted="unknown")
    labels = np.arange(n) % 2
    orders = sample_completions(rankings, tilts, labels, n_sweeps=30, random_state=2)
    scores = standard_scores(t)
    for component in (0, 1):
        up, _ = log_compatible_sums(rankings[:1], (1 + step) * tilts)
        down, _ = log_compatible_sums(rankings[:1], (1 - step) * tilts)
        slope = (up - down)[0, component] / (2 * step)
        found = tilts[component][orders[labels == component]] @ scores
        assert abs(found.mean() - slope) < 4.0 * found.std() / np.sqrt(n / 2)
        other = tilts[component][orders[labels != component]] @ scores
        assert abs(other.mean() - slope) > 8.0 * found.std() / np.sqrt(n / 2)


def test_what_is_refused():
    rankings = mixed_rows(3, 5)
    with pytest.raises(DataError, match=r"shape \(5,\)"):
        log_compatible_sums(rankings, np.zeros(5))
    with pytest.raises(DataError, match="5 columns"):
        log_compatible_sums(rankings, np.zeros((2, 4)))
    with pytest.raises(DataError, match="group 1 has nan for item 2"):
        log_compatible_sums(rankings, [[0.0] * 5, [0, 0, np.nan, 0, 0]])
    with pytest.raises(DataError, match="n_particles"):
        log_compatible_sums(rankings, np.zeros((1, 5)), n_particles=1)
    with pytest.raises(DataError, match="n_sweeps"):
        sample_completions(rankings, np.zeros((1, 5)), n_sweeps=0)
    with pytest.raises(DataError, match="3 whole numbers"):
        sample_completions(rankings, np.zeros((1, 5)), [0, 0])
    with pytest.raises(DataError, match="1 group"):
        sample_completions(rankings, np.zeros((1, 5)), [0, 1, 0])


def test_no_rows():
    empty = mixed_rows(2, 5)[:0]
    sums, errors = log_compatible_sums(empty, np.zeros((2, 5)))
    assert sums.shape == errors.shape == (0, 2)
    assert sample_completions(empty, np.zeros((2, 5))).shape == (0, 5)
