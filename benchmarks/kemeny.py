"""Kemeny orderings: subsets against all permutations, and how far exact methods reach."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.timing import timed
from permix import kemeny
from permix.kernels.subset_orders import best_order_by_subsets


def random_weights(n: int, seed: int = 0) -> np.ndarray:
    """Weights with no structure: one component, nothing to decompose."""
    weights = np.random.default_rng(seed).random((n, n))
    np.fill_diagonal(weights, 0)
    return weights


def all_permutations(weights: np.ndarray) -> float:
    """Score of the best of all n! orderings, each scored by one NumPy expression."""
    n = len(weights)
    upper = np.triu_indices(n, 1)
    best = np.inf
    for order in itertools.permutations(range(n)):
        index = np.array(order)
        best = min(best, weights[index[upper[1]], index[upper[0]]].sum())
    return float(best)


def by_subsets(weights: np.ndarray) -> float:
    """The dynamic program alone."""
    return best_order_by_subsets(weights)[1]


def run() -> list[dict[str, object]]:
    """Compare times, same matrices on both sides where both can solve them."""
    by_subsets(random_weights(12))
    rows: list[dict[str, object]] = []
    naive_time = 0.0
    for n in (8, 9):
        weights = random_weights(n)
        naive_time, naive = timed(all_permutations, weights)
        ours_time, ours = timed(by_subsets, weights)
        assert np.isclose(ours, naive)
        rows.append(_row(f"exact Kemeny, {n} items", ours_time, naive_time, "all permutations, NumPy scores"))
    for n in (16, 20):
        ours_time, _ = timed(by_subsets, random_weights(n))
        note = "reference: all permutations of 9 items"
        rows.append(_row(f"exact Kemeny, {n} items", ours_time, naive_time, note))
    rng = np.random.default_rng(1)
    votes = np.array([rng.permutation(40) for _ in range(15)])
    ranks = np.argsort(votes, axis=1)
    weights = (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0).astype(float)
    kemeny(weights, method="exact")
    exact_time, exact = timed(kemeny, weights, "exact")
    local_time, local = timed(kemeny, weights, "local")
    assert exact.optimal
    gap = 100 * (local.score / exact.score - 1)
    note = f"reference: local search, {gap:.2f} % above the optimum"
    rows.append(_row("exact Kemeny, 40 items, 15 random voters", exact_time, local_time, note))
    return rows


def _row(what: str, ours: float, reference: float, note: str) -> dict[str, object]:
    return {"what": what, "ours": ours, "reference": reference, "ratio": reference / ours, "note": note}


if __name__ == "__main__":
    for row in run():
        print(
            "{what:45} ours {ours:.3g} s, reference {reference:.3g} s, ratio {ratio:.3g} ({note})".format(
                **row
            )
        )
