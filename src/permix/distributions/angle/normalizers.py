"""The sum over all rankings of exp(Σ_r tilt of the item at rank r · score of rank r), and its gradient."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.distributions.angle.balanced_jit import balanced_log_sum_and_mean
from permix.distributions.angle.scores import vmf_log_sum
from permix.distributions.angle.subset_table_jit import log_sum_and_mean

# Two tables over subsets of the items, and whether sums are balanced: None where they are exact, for then
# compiled code leaves balancing out altogether.
Tables = tuple[Array, Array, bool | None]


def work_space(normalizer: str, n_items: int) -> Tables:
    """Return what exact or balanced sums need."""
    size = 1 << n_items if normalizer == "exact" else 0
    return np.empty(size), np.empty(size), None if size else True


def log_sum(normalizer: str, tilts: Array, scores: Array) -> float:
    """Return ln of the sum under a normalizer: exact, balanced or vmf."""
    if normalizer == "vmf":
        return vmf_log_sum(float(np.linalg.norm(tilts)), len(tilts))
    none = np.empty(0)
    exact = (np.empty(1 << len(tilts)), none, None) if normalizer == "exact" else (none, none, True)
    return _log_sum(tilts, scores, exact, none)


def log_sum_and_gradient(tilts: Array, scores: Array, tables: Tables) -> tuple[float, Array]:
    """Return ln of the exact or balanced sum and its gradient in the tilts: the mean score of each item."""
    mean = np.empty(len(tilts))
    return _log_sum(tilts, scores, tables, mean), mean


def log_sums_and_gradients(normalizer: str, tilts: Array, scores: Array) -> tuple[Array, Array]:
    """Return the same for rows of tilts: ln of the sums, and the mean scores (rows, items)."""
    tables = work_space(normalizer, len(scores))
    found = [log_sum_and_gradient(row, scores, tables) for row in tilts]
    return np.array([log_sum for log_sum, _ in found]), np.array([mean for _, mean in found])


def _log_sum(tilts: Array, scores: Array, tables: Tables, mean: Array) -> float:
    table, back, balanced = tables
    if balanced:
        return float(balanced_log_sum_and_mean(tilts, scores, mean))
    return float(log_sum_and_mean(tilts, scores, table, back, mean))
