"""Normalizer of the angle-based model: the subset table against slower sums, and the error beyond it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from benchmarks.timing import best_time, timed
from permix import Angle
from permix.distributions.angle.normalizers import log_sum
from permix.distributions.angle.scores import standard_scores
from permix.distributions.angle.subset_table_jit import log_sum_and_mean
from permix.kernels.bits import popcount


@njit(nogil=True)
def enumerated_log_sum(tilts: np.ndarray, scores: np.ndarray) -> float:
    """Sum over all orderings, each from the one before by one exchange (Heap's algorithm)."""
    t = tilts.size
    order = tilts.copy()
    energy = np.sum(order * scores)
    largest = np.sum(np.sort(tilts) * scores)
    total = math.exp(energy - largest)
    counts = np.zeros(t, np.int64)
    i = 1
    while i < t:
        if counts[i] < i:
            j = 0 if i % 2 == 0 else counts[i]
            energy += (order[i] - order[j]) * (scores[j] - scores[i])
            order[i], order[j] = order[j], order[i]
            total += math.exp(energy - largest)
            counts[i] += 1
            i = 1
        else:
            counts[i] = 0
            i += 1
    return largest + math.log(total)


@njit(nogil=True)
def log_domain_log_sum(tilts: np.ndarray, scores: np.ndarray) -> float:
    """Fill the same table in logarithms."""
    t = tilts.size
    table = np.zeros(1 << t)
    for subset in range(1, 1 << t):
        score = scores[popcount(np.uint64(subset)) - 1]
        largest = -np.inf
        for i in range(t):
            if subset >> i & 1:
                largest = max(largest, table[subset ^ (1 << i)] + tilts[i] * score)
        total = 0.0
        for i in range(t):
            if subset >> i & 1:
                total += math.exp(table[subset ^ (1 << i)] + tilts[i] * score - largest)
        table[subset] = largest + math.log(total)
    return float(table[-1])


def run() -> list[dict[str, object]]:
    """Compare speed, then errors."""
    return _speed() + _error_of_the_approximation() + _error_beyond_the_table()


def _speed() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for t in (10, 16, 20):
        model = Angle(np.random.default_rng(t).normal(size=t), 2.0 * t)
        tilts, scores = model.tilts.copy(), standard_scores(t)
        table, back, mean = np.empty(1 << t), np.empty(1 << t), np.empty(t)
        alone = best_time(lambda a=tilts, y=scores: log_sum("exact", a, y))
        both = best_time(lambda a=tilts, y=scores, f=table, g=back, m=mean: log_sum_and_mean(a, y, f, g, m))
        slow = best_time(lambda a=tilts, y=scores: log_domain_log_sum(a, y))
        exact = log_sum("exact", tilts, scores)
        assert math.isclose(log_domain_log_sum(tilts, scores), exact, rel_tol=1e-10)
        rows.append(_row(f"ln sum, {t} items", alone, slow, "seconds; the same table in logarithms"))
        rows.append(_row(f"ln sum and gradient, {t} items", both, slow, "seconds; sum alone in logarithms"))
        if t == 10:
            enumeration = best_time(lambda a=tilts, y=scores: enumerated_log_sum(a, y), repeats=1)
            assert math.isclose(enumerated_log_sum(tilts, scores), exact, rel_tol=1e-9)
            rows.append(_row(f"ln sum, {t} items", alone, enumeration, "seconds; all 3,628,800 orderings"))
    return rows


def _error_of_the_approximation() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for t in (3, 6, 10, 20):
        directions = {
            "a ranking": np.arange(t),
            "two halves": np.arange(t) >= t // 2,
            "one item apart": np.arange(t) == 0,
        }
        for factor in (0.5, 1.0, 2.0):
            for name, direction in directions.items():
                model = Angle(direction.astype(float), factor * t, normalizer="vmf")
                error = float(model.normalizer_error())
                exact = model.log_normalizer() + error
                what = f"vMF ln sum, {t} items, concentration {factor:g} t, {name}"
                note = f"nats; error {error:+.4f}, or {-100 * error / exact:+.3f}%"
                rows.append(_row(what, model.log_normalizer(), exact, note))
    return rows


def _error_beyond_the_table() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    Angle(range(50), 1.0).normalizer_error()  # compile
    for t in (50, 200, 1000):
        for factor in (1.0, 2.0):
            for name in ("a ranking", "normal"):
                direction = np.arange(t) if name == "a ranking" else np.random.default_rng(t).normal(size=t)
                model = Angle(direction, factor * t)
                seconds, error = timed(model.normalizer_error)
                what = f"vMF ln sum, {t} items, concentration {factor:g} t, {name}"
                note = f"nats; error {error:+.3f} ± {error.standard_error:.3f} in {seconds:.2f} s"
                rows.append(_row(what, model.log_normalizer(), model.log_normalizer() + error, note))
    return rows


def _row(what: str, ours: float, reference: float, note: str) -> dict[str, object]:
    return {"what": what, "ours": ours, "reference": reference, "ratio": reference / ours, "note": note}


if __name__ == "__main__":
    for row in run():
        print(
            "{what:58} ours {ours:.6g}, reference {reference:.6g}, ratio {ratio:.3f} ({note})".format(**row)
        )
