"""Co-clustering samplers as one writes them in NumPy: the sweeps that compiled code is compared with.

They keep sufficient statistics and score all levels of a block at once, so they are no straw men: what is
missing is compiled code, caches of logarithms, and the knowledge that a row changes few blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.special import gammaln

# What a line (a row or a column) has: its labels in each class of the other axis, (classes, slots).
Histogram = Callable[[int], np.ndarray]


class NaiveLines:
    """Gibbs over the lines of one axis of any partition into blocks (equations 5.13 and 5.14, corrected).

    Parameters
    ----------
    histogram : callable
        Cells of a line by class of the other axis and slot.
    classes : ndarray
        Class of each line, 0 ... n_classes - 1.
    table : ndarray of shape (classes of lines, classes of the other axis)
        Block where they meet.
    log_weights : callable
        Prior weights of the classes by their sizes.
    pseudo_count : float
        Of a slot.
    group_sizes : ndarray
        Slots of each group; a cell has one slot in each.
    """

    def __init__(
        self,
        histogram: Histogram,
        classes: np.ndarray,
        table: np.ndarray,
        log_weights: Callable[[np.ndarray], np.ndarray],
        pseudo_count: float,
        group_sizes: np.ndarray,
    ) -> None:
        self.histogram = histogram
        self.classes = classes.copy()
        self.table = table
        self.log_weights = log_weights
        self.pseudo_count = pseudo_count
        self.group_sizes = np.asarray(group_sizes)
        self.group_starts = np.concatenate([[0], np.cumsum(self.group_sizes)[:-1]])
        self.counts = np.zeros((int(table.max()) + 1, int(self.group_sizes.sum())))
        for line in range(len(classes)):
            self._add(line, int(classes[line]), 1.0)

    def _add(self, line: int, k: int, sign: float) -> None:
        np.add.at(self.counts, self.table[k], sign * self.histogram(line))

    def log_evidence(self, counts: np.ndarray) -> np.ndarray:
        """Log marginal likelihood of each of some blocks."""
        a = self.pseudo_count
        totals = np.add.reduceat(counts, self.group_starts, axis=1)
        prior = a * self.group_sizes
        of_slots = (gammaln(a + counts) - gammaln(a)).sum(axis=1)
        return of_slots - (gammaln(prior + totals) - gammaln(prior)).sum(axis=1)

    def visit(self, line: int, rng: np.random.Generator) -> None:
        """Draw the class of one line given all else."""
        self._add(line, int(self.classes[line]), -1.0)
        cells = self.histogram(line)
        sizes = np.bincount(np.delete(self.classes, line), minlength=len(self.table))
        scores = self.log_weights(sizes)
        for k, blocks in enumerate(self.table):
            touched, inverse = np.unique(blocks, return_inverse=True)
            here = self.counts[touched]
            added = here.copy()
            np.add.at(added, inverse, cells)
            scores[k] += (self.log_evidence(added) - self.log_evidence(here)).sum()
        weights = np.exp(scores - scores.max())
        self.classes[line] = rng.choice(len(weights), p=weights / weights.sum())
        self._add(line, int(self.classes[line]), 1.0)

    def sweep(self, rng: np.random.Generator, lines: Iterable[int]) -> None:
        """Visit lines."""
        for line in lines:
            self.visit(line, rng)


def cells_histogram(
    starts: np.ndarray,
    others: np.ndarray,
    codes: np.ndarray,
    other_classes: np.ndarray,
    n_levels: int,
    n_classes: int,
) -> Histogram:
    """Return histograms of the filled cells of lines."""

    def histogram(line: int) -> np.ndarray:
        inside = slice(starts[line], starts[line + 1])
        flat = other_classes[others[inside]] * n_levels + codes[inside]
        return np.bincount(flat, minlength=n_classes * n_levels).reshape(n_classes, n_levels)

    return histogram


def labels_histogram(
    starts: np.ndarray,
    others: np.ndarray,
    slots: np.ndarray,
    other_classes: np.ndarray,
    n_slots: int,
    n_classes: int,
) -> Histogram:
    """Return histograms of the block ids that all bases gave to the filled cells of lines."""

    def histogram(line: int) -> np.ndarray:
        inside = slice(starts[line], starts[line + 1])
        flat = other_classes[others[inside]][:, None] * n_slots + slots[inside]
        return np.bincount(flat.ravel(), minlength=n_classes * n_slots).reshape(n_classes, n_slots)

    return histogram


def bases_histogram(ids: list[np.ndarray], other_classes: np.ndarray, n_classes: int) -> Histogram:
    """Return histograms of the block ids that all bases gave to the cells of lines."""
    sizes = [int(table.max()) + 1 for table in ids]

    def histogram(line: int) -> np.ndarray:
        parts = [
            np.bincount(other_classes * n + table[line], minlength=n_classes * n).reshape(n_classes, n)
            for table, n in zip(ids, sizes, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    return histogram


def consensus_sweep(
    rng: np.random.Generator,
    labels: np.ndarray,
    table: np.ndarray,
    beta: float,
    concentration: float,
    lines: Iterable[int],
) -> None:
    """Gibbs over lines of a grid consensus (equations 4.7 and 4.8, corrected); changes ``labels``."""
    n_labels = table.max(axis=0) + 1
    for line in lines:
        others = np.arange(len(table)) != line
        clusters, inverse = np.unique(labels[others], return_inverse=True)
        sizes = np.bincount(inverse)
        weights = sizes.astype(float)
        for m in range(table.shape[1]):
            same = np.bincount(inverse, weights=table[others, m] == table[line, m])
            weights *= (same + beta / n_labels[m]) / (sizes + beta)
        weights = np.append(weights, concentration / np.prod(n_labels, dtype=float))
        chosen = rng.choice(len(weights), p=weights / weights.sum())
        labels[line] = clusters[chosen] if chosen < len(clusters) else labels.max() + 1
