"""Rankings drawn around a center, at any of the six distances but Kendall's (which is repeated insertion)."""

from __future__ import annotations

import math

import numpy as np

from permix.data.labels import Array
from permix.distributions.distances.log_sums import MOST_PARTITIONS, log_counts_of
from permix.distributions.distances.normalizer import normalizer
from permix.errors import DataError
from permix.kernels.streams import fill_uniform
from permix.runtime.threads import over_rows


def draw_orders(distance: str, decay: float, order: Array, size: int, key: Array) -> Array:
    """Draw orderings with P(r) ∝ exp(-decay × distance to ``order``), (size, items).

    cayley: items change places with those before them. hamming: how many items are elsewhere, which, and a
    permutation without fixed places. footrule: backwards through the table of its sum. ulam: a shape, two
    tableaux drawn evenly, and the permutation that belongs to them. spearman: the angle-based model, exact up
    to 20 items and the end of a Markov chain beyond.
    """
    n = len(order)
    out = np.empty((size, n), dtype=np.int32)
    if math.isinf(decay):
        out[:] = order
        return out
    if distance == "spearman":
        return _spearman(decay, order, size, key)
    if distance == "ulam":
        _ulam(decay, order, key, out)
        return out
    from permix.distributions.distances import draws_jit

    if distance == "cayley":
        over_rows(lambda a, b: draws_jit.cayley_rows(key, a, b, decay, order, out), size, n)
    elif distance == "hamming":
        logs = log_counts_of("hamming", n) - decay * np.arange(n + 1)
        ends = np.cumsum(np.exp(logs - normalizer("hamming", n).log_z(decay)))
        ends /= ends[-1]
        over_rows(lambda a, b: draws_jit.hamming_rows(key, a, b, ends, order, out), size, 3 * n)
    else:
        table = draws_jit.footrule_table(n, decay)
        over_rows(lambda a, b: draws_jit.footrule_rows(key, a, b, table, order, out), size, 3 * n)
    return out


def _spearman(decay: float, order: Array, size: int, key: Array) -> Array:
    """Σ (r - ρ)² = constant - 2 r·ρ: the angle-based model whose direction is the center."""
    from permix.distributions.angle.angle import Angle

    n = len(order)
    if n == 1:
        return np.zeros((size, 1), dtype=np.int32)
    model = Angle(np.argsort(order).astype(np.float64), decay * n * (n * n - 1) / 6)
    return model._draw(size, key)


def _ulam(decay: float, order: Array, key: Array, out: Array) -> None:
    from permix.distributions.distances.partitions_jit import draw_shapes, ulam_rows

    size, n = out.shape
    if n > MOST_PARTITIONS:
        raise DataError(f"distance='ulam' draws rankings of up to {MOST_PARTITIONS} items, but there are {n}")
    targets = np.empty(size)
    uniforms = np.empty(8)
    for row in range(size):  # the numbers of a row are its own, whatever the size of the sample
        fill_uniform(key[0], key[1], 0, row, uniforms)
        targets[row] = uniforms[0]
    targets *= math.exp(normalizer("ulam", n).log_z(decay) - math.lgamma(n + 1.0))
    rows = np.argsort(targets, kind="stable")
    shapes, sorted_shapes = np.empty((size, n), np.int64), np.zeros((size, n), np.int64)
    draw_shapes(n, decay, targets[rows], sorted_shapes)
    shapes[rows] = sorted_shapes
    over_rows(lambda a, b: ulam_rows(key, a, b, shapes, order, out), size, 20 * n)
