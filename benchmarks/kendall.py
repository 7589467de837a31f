"""Kendall distances against scipy's kendalltau, a compiled loop over pairs of items, and merge counting."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads
from scipy.stats import kendalltau

from benchmarks.timing import best_time
from permix.data.distances import distance_matrix
from permix.kernels.fenwick import count_inversions
from permix.runtime.threads import at_most


@njit(nogil=True, parallel=True)
def naive_matrix(ranks: np.ndarray) -> np.ndarray:
    """Every pair of rankings, every pair of items."""
    m, n = ranks.shape
    out = np.zeros((m, m), np.int64)
    for a in prange(m):
        for b in range(a + 1, m):
            count = 0
            for i in range(n):
                for j in range(i):
                    count += (ranks[a, i] < ranks[a, j]) != (ranks[b, i] < ranks[b, j])
            out[a, b] = count
            out[b, a] = count
    return out


@njit(nogil=True)
def merge_count(values: np.ndarray) -> int:
    """Inversions by bottom-up merge sort, the textbook O(n log n)."""
    n = values.size
    source, target = values.copy(), np.empty_like(values)
    width, inversions = 1, 0
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or source[i] <= source[j]):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
                    inversions += middle - i
        source, target = target, source
        width *= 2
    return inversions


def run() -> list[dict[str, object]]:
    """Compare, on one thread, matrices of distances and one long pair."""
    threads = get_num_threads()
    set_num_threads(1)
    try:
        with at_most(1):
            return [*_matrices(), *_pairs()]
    finally:
        set_num_threads(threads)


def _matrices() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    rng = np.random.default_rng(0)
    for m, n in ((1000, 10), (300, 100), (60, 1000)):
        orders = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)
        ranks = np.argsort(orders, axis=1)
        pairs = m * (m - 1) / 2
        ours = best_time(lambda o=orders: distance_matrix(o)) / pairs
        naive = best_time(lambda r=ranks: naive_matrix(r)) / pairs
        assert (distance_matrix(orders) == naive_matrix(ranks)).all()

        def scipy_pairs(r: np.ndarray = ranks) -> None:
            for k in range(100):
                kendalltau(r[k % 10], r[k % 49 + 10], method="asymptotic")

        scipy_time = best_time(scipy_pairs) / 100
        what = f"Kendall matrix, {m} rankings of {n} items"
        rows.append(_row(what, ours, scipy_time, "per pair; scipy.stats.kendalltau"))
        rows.append(_row(what, ours, naive, "per pair; compiled O(n²) loop"))
    return rows


def _pairs() -> list[dict[str, object]]:
    rng = np.random.default_rng(1)
    rows: list[dict[str, object]] = []
    for n, m in ((1000, 50), (100_000, 2)):
        many = [rng.permutation(n) for _ in range(m)]  # several, or the processor learns one by heart
        assert count_inversions(many[0], n, n) == merge_count(many[0])
        ours = best_time(lambda x=many, n=n: [count_inversions(v, n, n) for v in x]) / m
        merge = best_time(lambda x=many: [merge_count(v) for v in x]) / m
        rows.append(_row(f"inversions of one ranking of {n} items", ours, merge, "compiled merge count"))
    return rows


def _row(what: str, ours: float, reference: float, note: str) -> dict[str, object]:
    return {"what": what, "ours": ours, "reference": reference, "ratio": reference / ours, "note": note}


if __name__ == "__main__":
    for row in run():
        print(
            "{what:45} ours {ours:.3g} s, reference {reference:.3g} s, ratio {ratio:.1f} ({note})".format(
                **row
            )
        )
