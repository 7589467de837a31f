"""Importance draws and exchanges against enumeration and the exact table; mixing with 1000 items."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from permix.distributions.angle import draws_jit as kernels
from permix.distributions.angle.normalizers import log_sum
from permix.distributions.angle.scores import standard_scores
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream
from tests.every_run import first_in_every_run
from tests.oracles.ranking_models import total_variation, total_variation_bound

KEY = np.array([7, 8], np.uint64)


def direction_of(t, kind="normal"):
    rng = np.random.default_rng(t)
    raw = {"aligned": np.arange(t), "normal": rng.normal(size=t), "heavy": rng.standard_t(3, size=t)}[kind]
    centered = raw - raw.mean()
    return centered / np.linalg.norm(centered)


@kernel
def exchange_rows(key, sweep, first, last, tilts, scores, n_exchanges, rows):
    stream = new_stream()
    for row in range(first, last):
        open_stream(stream, key[0], key[1], sweep, row)
        kernels.exchange(stream, tilts, scores, n_exchanges, rows[row])


def importance(tilts, scores, n):
    u, v = kernels.balancing_potentials(tilts, scores)
    orders, log_weights = np.empty((n, len(tilts)), np.int32), np.empty(n)
    kernels.sample_rows(KEY, 0, n, tilts, scores, u, v, 0, orders, log_weights)
    return u, v, orders, log_weights


def log_probabilities(tilts, scores):
    weights = {r: float(tilts[list(r)] @ scores) for r in permutations(range(len(tilts)))}
    total = logsumexp(list(weights.values()))
    return {r: w - total for r, w in weights.items()}


@pytest.mark.parametrize("kind", ["aligned", "normal", "heavy"])
@pytest.mark.parametrize("t", [2, 5, 60, 300])
@pytest.mark.parametrize("per_item", [0.0, 2.0, 30.0])
def test_potentials_balance_the_matrix(t, kind, per_item):
    tilts, scores = per_item * t * direction_of(t, kind), standard_scores(t)
    u, v = kernels.balancing_potentials(tilts, scores)
    matrix = np.exp(np.outer(tilts, scores) - u[:, None] - v)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=0), 1.0, rtol=2e-3)


def log_proposal(order, tilts, scores, u, v):
    """Return ln of the probability of an ordering; what is left of a row by subtraction, as in the draws."""
    left, unused, total = list(range(len(order))), np.ones(len(order)), 0.0
    for rank in range(len(order) - 1):
        here = np.maximum(np.exp(tilts[left] * scores[rank] - u[left] - v[rank]), 1e-300)
        unused[left] -= here
        odds = here / np.maximum(unused[left], 1e-15)
        total += np.log(odds[left.index(order[rank])] / odds.sum())
        left.remove(order[rank])
    return total


def naive_log_proposal(order, tilts, scores, u, v, hazard=False):
    """Multiply the odds of each item against those left; ``hazard`` divides by P(this rank or later)."""
    matrix = np.exp(np.outer(tilts, scores) - u[:, None] - v)
    total = 0.0
    for rank in range(len(order) - 1):
        left = list(order[rank:])
        later = matrix[left, rank if hazard else rank + 1 :].sum(axis=1)
        odds = matrix[left, rank] / later
        total += np.log(odds[0] / odds.sum())
    return total


@pytest.mark.parametrize("concentration", [0.0, 1.0, 6.0, 25.0])
def test_proposal_by_enumeration(concentration):
    t, n = 5, 50_000
    tilts, scores = concentration * direction_of(t), standard_scores(t)
    u, v, orders, log_weights = importance(tilts, scores, n)
    distribution = {r: log_proposal(r, tilts, scores, u, v) for r in permutations(range(t))}
    assert np.exp(list(distribution.values())).sum() == pytest.approx(1.0, abs=1e-12)
    for (
        order,
        log_q,
    ) in distribution.items():  # what is left of a row by subtraction loses digits where it is tiny
        assert log_q == pytest.approx(naive_log_proposal(order, tilts, scores, u, v), abs=1e-6)
    for order, log_weight in zip(orders[:200], log_weights[:200], strict=True):
        assert log_weight == pytest.approx(
            tilts[order] @ scores - distribution[tuple(order.tolist())], abs=1e-9
        )
    bound = total_variation_bound(n, 120)
    assert total_variation(orders, {r: np.exp(q) for r, q in distribution.items()}) < bound
    if concentration == 6.0:
        hazards = {r: naive_log_proposal(r, tilts, scores, u, v, hazard=True) for r in distribution}
        assert max(abs(hazards[r] - distribution[r]) for r in distribution) > 0.1
        assert total_variation(orders, {r: np.exp(q) for r, q in hazards.items()}) > bound
        # Close to the model already: its Kullback–Leibler divergence from the draws is small.
        truth = log_probabilities(tilts, scores)
        assert sum(np.exp(q) * (q - truth[r]) for r, q in distribution.items()) < 0.02


def test_two_items_are_drawn_exactly():
    tilts, scores = np.array([0.8, -0.8]), standard_scores(2)
    _, _, _, log_weights = importance(tilts, scores, 50)
    np.testing.assert_allclose(log_weights, log_sum("exact", tilts, scores), atol=1e-12)


@pytest.mark.parametrize("kind", ["aligned", "normal", "heavy"])
@pytest.mark.parametrize("per_item", [0.5, 2.0, 10.0, 100.0, 1e4])
def test_weights_estimate_the_sum(kind, per_item):
    t, n = 14, 4000
    tilts, scores = per_item * t * direction_of(t, kind), standard_scores(t)
    exact = log_sum("exact", tilts, scores)
    _, _, orders, log_weights = importance(tilts, scores, n)
    weights = np.exp(log_weights - exact)
    error = weights.std(ddof=1) / np.sqrt(n)
    assert abs(weights.mean() - 1.0) < 4 * error + 1e-9
    assert weights.sum() ** 2 / (weights @ weights) > 0.8 * n
    if per_item == 2.0:  # draws of one distribution weighted as if from another
        other = kernels.balancing_potentials(0.5 * tilts, scores)
        some = orders[:800]
        log_q = np.array([log_proposal(r.tolist(), 0.5 * tilts, scores, *other) for r in some])
        wrong = np.exp(tilts[some] @ scores - log_q - exact)
        assert abs(wrong.mean() - 1.0) > 4 * wrong.std(ddof=1) / np.sqrt(len(some))


@pytest.mark.parametrize("t", [2, 3, 4, 9, 16])
def test_distances_come_from_all_scales_alike(t):
    distribution = distance_probabilities(t)
    stream = new_stream()
    n = 40_000
    counts = np.zeros(t)
    for row in range(n):
        open_stream(stream, KEY[0], KEY[1], 0, row)
        counts[kernels.exchange_distance(stream, t)] += 1
    assert counts[0] == 0
    spread = np.sqrt(distribution * (1 - distribution) / n)
    assert (np.abs(counts / n - distribution) <= 5 * spread).all()
    if t == 9:
        even = np.r_[0.0, np.full(t - 1, 1 / (t - 1))]
        assert (np.abs(counts / n - even) > 5 * np.sqrt(even * (1 - even) / n)).any()


def distance_probabilities(t):
    """P(distance = d): a power of two below t with equal chances, then evenly up to the next or to t - 1."""
    scales = [1 << k for k in range(t.bit_length()) if 1 << k < t]
    distribution = np.zeros(t)
    for least in scales:
        reach = range(least, min(2 * least, t))
        distribution[list(reach)] += 1 / (len(scales) * len(reach))
    return distribution


def exchange_matrix(tilts, scores, distribution, always=False):
    """Exact transition matrix of one exchange over all orderings."""
    t = len(tilts)
    orders = list(permutations(range(t)))
    index = {order: k for k, order in enumerate(orders)}
    matrix = np.zeros((len(orders), len(orders)))
    for order in orders:
        for distance in range(1, t):
            for upper in range(t - distance):
                lower = upper + distance
                new = list(order)
                new[upper], new[lower] = new[lower], new[upper]
                gain = (tilts[new] - tilts[list(order)]) @ scores
                accept = 1.0 if always else min(1.0, np.exp(gain))
                chance = distribution[distance] / (t - distance)
                matrix[index[order], index[tuple(new)]] += chance * accept
                matrix[index[order], index[order]] += chance * (1 - accept)
    return orders, matrix


def test_exchanges_leave_the_model_invariant():
    t, n = 4, 30_000
    tilts, scores = 5.0 * direction_of(t), standard_scores(t)
    orders, matrix = exchange_matrix(tilts, scores, distance_probabilities(t))
    truth = np.exp(list(log_probabilities(tilts, scores).values()))
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(truth @ matrix, truth, atol=1e-15)
    broken = exchange_matrix(tilts, scores, distance_probabilities(t), always=True)[1]
    assert np.abs(truth @ broken - truth).max() > 0.01
    # The compiled step is that matrix, from every ordering.
    bound = total_variation_bound(n, 24)
    for k, order in enumerate(orders):
        rows = np.tile(np.array(order, np.int32), (n, 1))
        exchange_rows(KEY, k, 0, n, tilts, scores, 1, rows)
        assert total_variation(rows, dict(zip(orders, matrix[k], strict=True))) < bound
    assert total_variation(rows, dict(zip(orders, broken[-1], strict=True))) > bound


def test_draws_are_the_model_and_do_not_depend_on_how_rows_are_divided():
    t, n = 4, 40_000
    tilts, scores = 6.0 * direction_of(t), standard_scores(t)
    u, v = kernels.balancing_potentials(tilts, scores)
    draws, pieces = np.empty((n, t), np.int32), np.empty((1000, t), np.int32)
    kernels.sample_rows(KEY, 0, n, tilts, scores, u, v, 40, draws, np.empty(n))
    for first in range(0, 1000, 100):
        kernels.sample_rows(KEY, first, first + 100, tilts, scores, u, v, 40, pieces, np.empty(n))
    np.testing.assert_array_equal(draws[:1000], pieces)
    bound = total_variation_bound(n, 24)
    assert total_variation(draws, {r: np.exp(p) for r, p in log_probabilities(tilts, scores).items()}) < bound
    assert (
        total_variation(draws, {r: np.exp(p) for r, p in log_probabilities(0.8 * tilts, scores).items()})
        > bound
    )


def adjacent_exchanges(rng, tilts, scores, n_exchanges, rows):
    """Twin that exchanges neighbors alone: invariant, but it needs t² times more steps."""
    chains = np.arange(len(rows))
    for _ in range(n_exchanges):
        upper = rng.integers(len(tilts) - 1, size=len(rows))
        above, below = rows[chains, upper], rows[chains, upper + 1]
        gain = (tilts[below] - tilts[above]) * (scores[upper] - scores[upper + 1])
        taken = np.log(rng.random(len(rows))) < gain
        rows[chains[taken], upper[taken]] = below[taken]
        rows[chains[taken], upper[taken] + 1] = above[taken]


@pytest.mark.parametrize("kind", first_in_every_run(["normal", "aligned"]))
def test_thousand_items_at_concentration_2t_from_opposite_starts(kind):
    t, n_chains, sweeps = 1000, 48, 50
    direction = direction_of(t, kind)
    tilts, scores = 2.0 * t * direction, standard_scores(t)
    # Truth: the importance draws, whose weights are nearly equal.
    _, _, orders, log_weights = importance(tilts, scores, 96)
    weights = np.exp(log_weights - log_weights.max())
    assert weights.sum() ** 2 / (weights @ weights) > 0.9 * len(weights)
    weights /= weights.sum()
    items = np.argsort(direction)[[0, t // 4, t // 2, t - 1]]
    truth = weights @ statistics(orders, direction, items)
    spread = statistics(orders, direction, items).std(axis=0)
    starts = {
        "mode": np.tile(np.argsort(direction).astype(np.int32), (n_chains, 1)),
        "uniform": np.random.default_rng(1).permuted(
            np.tile(np.arange(t, dtype=np.int32), (n_chains, 1)), axis=1
        ),
    }
    for rows in starts.values():
        slow = rows.copy()
        exchange_rows(KEY, 1, 0, n_chains, tilts, scores, sweeps * t, rows)
        error = spread * np.sqrt(1 / n_chains + 1 / 90)
        assert (np.abs(statistics(rows, direction, items).mean(axis=0) - truth) < 4 * error).all()
        if kind == "normal":
            adjacent_exchanges(np.random.default_rng(2), tilts, scores, 5000, slow)
            assert abs(statistics(slow, direction, items).mean(axis=0) - truth)[0] > 4 * error[0]


def test_thousand_items_forget_where_they_were():
    t, n_chains = 1000, 120
    direction = direction_of(t)
    tilts, scores = 2.0 * t * direction, standard_scores(t)
    _, _, rows, _ = importance(tilts, scores, n_chains)
    items = np.argsort(direction)[[t // 10, t // 2, t - 1]]
    before = statistics(rows, direction, items)
    exchange_rows(KEY, 2, 0, n_chains, tilts, scores, t, rows)
    soon = correlations(before, statistics(rows, direction, items))
    exchange_rows(KEY, 3, 0, n_chains, tilts, scores, 49 * t, rows)
    late = correlations(before, statistics(rows, direction, items))
    assert (soon > 0.4).all()
    assert (np.abs(late) < 4 / np.sqrt(n_chains)).all()


def statistics(orders, direction, items):
    """θ'y and the ranks of some items, one row per ordering."""
    ranks = np.argsort(orders, axis=1)
    return np.column_stack([standard_scores(orders.shape[1])[ranks] @ direction, ranks[:, items]])


def correlations(a, b):
    return np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a.T, b.T, strict=True)])
