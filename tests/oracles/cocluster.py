"""Co-clusterings by enumeration: cells are predicted one after another, nothing is cached or tabulated.

``Naive`` describes a cell family in the user's units. ``flaw`` makes broken twins, which comparisons with
the package must reject: "missing" takes missing cells for cells with the first value of the family,
"prior" forgets the prior of the partitions, "columns" that of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import nbinom, t

from tests.oracles.partitions import Rule, restricted_growth_strings, sequential_probability

# ln p(value | values seen in the block so far)
Predictive = Callable[[float, Sequence[float]], float]


def levels_predictive(pseudo_count: float, n_levels: int) -> Predictive:
    def predictive(x, seen):
        return math.log((list(seen).count(x) + pseudo_count) / (len(seen) + pseudo_count * n_levels))

    return predictive


def poisson_predictive(shape: float, rate: float) -> Predictive:
    def predictive(x, seen):
        after = rate + len(seen)
        return float(nbinom.logpmf(x, shape + sum(seen), after / (after + 1.0)))

    return predictive


def gaussian_predictive(mean: float, strength: float, shape: float, rate: float) -> Predictive:
    """Normal-inverse-gamma: μ ~ N(mean, σ²/strength), 1/σ² ~ Gamma(shape, rate)."""

    def predictive(x, seen):
        n = len(seen)
        average = float(np.mean(seen)) if n else 0.0
        scatter = float(np.sum((np.asarray(seen) - average) ** 2))
        strength_n = strength + n
        mean_n = (strength * mean + n * average) / strength_n
        shape_n = shape + n / 2
        rate_n = rate + 0.5 * scatter + 0.5 * strength * n * (average - mean) ** 2 / strength_n
        scale = math.sqrt(rate_n * (strength_n + 1.0) / (shape_n * strength_n))
        return float(t.logpdf(x, 2 * shape_n, mean_n, scale))

    return predictive


@dataclass(frozen=True)
class Naive:
    """A cell family, and which value a careless reader takes missing cells for."""

    predictive: Predictive
    first_value: float


def log_cells(naive: Naive, values: Sequence[float]) -> float:
    """ln p(values of one block) by the chain rule."""
    return sum(naive.predictive(x, values[:i]) for i, x in enumerate(values))


def log_matrix(
    naive: Naive, X: np.ndarray, rows: Sequence[int], columns: Sequence[int], flaw: str | None = None
) -> float:
    """ln p(filled cells of X | partitions of rows and columns); NaN is missing."""
    if flaw == "missing":
        X = np.where(np.isnan(X), naive.first_value, X)
    total = 0.0
    for k in set(rows):
        for h in set(columns):
            block = X[np.ix_(np.array(rows) == k, np.array(columns) == h)]
            total += log_cells(naive, block[~np.isnan(block)].tolist())
    return total


def exact_grid_posterior(
    naive: Naive, X: np.ndarray, row_rule: Rule, column_rule: Rule, flaw: str | None = None
) -> tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], np.ndarray]:
    """Every pair of a partition of the rows and one of the columns, and their probabilities."""
    pairs = list(product(restricted_growth_strings(X.shape[0]), restricted_growth_strings(X.shape[1])))
    scores = np.empty(len(pairs))
    for place, (rows, columns) in enumerate(pairs):
        prior = 1.0 if flaw == "prior" else sequential_probability(rows, row_rule)
        prior *= 1.0 if flaw in ("prior", "columns") else sequential_probability(columns, column_rule)
        log_prior = math.log(prior) if prior > 0 else -math.inf
        scores[place] = log_prior + log_matrix(naive, X, rows, columns, flaw)
    weights = np.exp(scores - scores.max())
    return pairs, weights / weights.sum()


def exact_mixed_posterior(
    naive: Naive, X: np.ndarray, n_clusters: tuple[int, int], pseudo_counts: tuple[float, float], flaw=None
) -> tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], np.ndarray, np.ndarray]:
    """Clusters of every filled cell, row by row: all assignments, their probabilities and log joints.

    Broken twins: "shares" lets all cells of the matrix have one common set of shares; "columns" forgets
    the prior of column clusters.
    """
    filled = [(int(r), int(c)) for r, c in np.argwhere(~np.isnan(X))]
    n = len(filled)
    states = list(product(product(range(n_clusters[0]), repeat=n), product(range(n_clusters[1]), repeat=n)))
    scores = np.empty(len(states))
    for place, (z1, z2) in enumerate(states):
        score = 0.0
        blocks: dict[tuple[int, int], list[float]] = {}
        for axis, z in enumerate((z1, z2)):
            seen: dict[int, list[int]] = {}
            for cell, k in zip(filled, z, strict=True):
                line = 0 if flaw == "shares" else cell[axis]
                before = seen.setdefault(line, [])
                if not (flaw == "columns" and axis == 1):
                    a = pseudo_counts[axis]
                    score += math.log((before.count(k) + a) / (len(before) + a * n_clusters[axis]))
                before.append(k)
        for cell, k, h in zip(filled, z1, z2, strict=True):
            blocks.setdefault((k, h), []).append(float(X[cell]))
        scores[place] = score + sum(log_cells(naive, values) for values in blocks.values())
    weights = np.exp(scores - scores.max())
    return states, weights / weights.sum(), scores
