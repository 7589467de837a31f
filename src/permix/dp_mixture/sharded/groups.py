"""What the sums of groups say under a family: statistics, and parameters that rows are placed by.

Sums are those of an encoding, which do not change with what is learned of the family's hyper-parameters.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.dp_mixture.sharded.encodings import Answers, Numbers, Vectors, Words
from permix.families import Categorical, Family, Gaussian, GaussianDiagonal, GaussianNIW, Multinomial
from permix.families.mixed_jit import KNOWN_NOISE, MEAN, PRECISION, RATE, SHAPE, STRENGTH, MixedStats
from permix.families.niw_jit import SMALLEST_PIVOT, NIWStats
from permix.moves.sharded.encodings import Encoding
from permix.moves.sharded.state import log_gammas


class Groups(abc.ABC):
    """How a family reads the sums of groups."""

    encoding: Encoding
    #: Numbers as they are encoded are no larger.
    largest: float = 1.0

    @abc.abstractmethod
    def statistics(self, family: Any, sums: Array) -> Any:
        """Return what compiled code knows of groups with these sums; predictives cannot be asked of it."""

    @abc.abstractmethod
    def table(self, rng: np.random.Generator | None, family: Any, sums: Array) -> Array:
        """Return what rows score in groups: under parameters drawn, or posterior means of them."""

    @abc.abstractmethod
    def most_apart(self, table: Array) -> float:
        """Return how far apart the scores of a row in two groups are at most."""


class NumberGroups(Groups):
    """Independent columns of numbers, with gaps or without."""

    encoding: Numbers

    def __init__(self, center: Array, unit: Array, largest: float) -> None:
        self.encoding, self.unit, self.largest = Numbers(center, unit), unit, largest

    def statistics(self, family: Gaussian | GaussianDiagonal, sums: Array) -> MixedStats:
        n, first, second = np.moveaxis(self.encoding.numbers(sums), -1, 0)
        stats = dataclasses.replace(family, gaps=True).statistics(len(sums))
        assert isinstance(stats, MixedStats)
        strength, rate = stats.priors[:, STRENGTH], stats.priors[:, RATE]
        shift = first * self.unit / np.maximum(n, 1.0)
        scatter = np.maximum(second - first**2 / np.maximum(n, 1.0), 0.0) * self.unit**2
        stats.entries[:] = n.T
        stats.means[:] = (stats.priors[:, MEAN] + n * shift / (strength + n)).T
        stats.rates[:] = (rate + 0.5 * (scatter + strength * n / (strength + n) * shift**2)).T
        return stats

    def table(self, rng: np.random.Generator | None, family: Any, sums: Array) -> Array:
        stats = self.statistics(family, sums)
        prior, n = stats.priors, stats.entries
        if stats.kinds[0] == KNOWN_NOISE:
            precision = np.broadcast_to(prior[:, [PRECISION]], n.shape)
        else:
            shape = prior[:, [SHAPE]] + 0.5 * n
            precision = (shape if rng is None else np.exp(log_gammas(rng, shape))) / stats.rates
        center = stats.means - prior[:, [MEAN]]
        if rng is not None:
            spread = np.sqrt(precision * (prior[:, [STRENGTH]] + n))
            center = center + rng.standard_normal(n.shape) / spread
        precision, center = precision * self.unit[:, None] ** 2, center / self.unit[:, None]
        height = 0.5 * (np.log(precision) - precision * center**2)
        return np.ascontiguousarray(np.stack([height, precision * center, -0.5 * precision], axis=1))

    def most_apart(self, table: Array) -> float:
        apart = np.abs(table[:, :, 0] - table[:, :, 1])
        return float((apart * self.largest ** np.arange(3)).sum())


class VectorGroups(Groups):
    """Numbers with full covariances."""

    def __init__(self, center: Array, unit: Array, largest: float) -> None:
        self.encoding, self.center, self.unit, self.largest = Vectors(center, unit), center, unit, largest

    def statistics(self, family: GaussianNIW, sums: Array) -> NIWStats:
        return self._with_scales(family, sums)[0]

    def _with_scales(self, family: GaussianNIW, sums: Array) -> tuple[NIWStats, Array]:
        """Return the statistics, and the scale matrices whose factors they have."""
        k, d = len(sums), len(self.unit)
        both = sums.sum(axis=-1)
        n, first = both[:, 0], both[:, 1 : 1 + d]
        products = np.empty((k, d, d))
        at, other = np.tril_indices(d)
        products[:, at, other] = products[:, other, at] = both[:, 1 + d :]
        shift = first / n[:, None]
        scatter = (products - n[:, None, None] * _outer(shift)) * np.outer(self.unit, self.unit)
        shift = shift * self.unit
        stats = family.statistics(k)
        strength = stats.prior_strength
        weight = strength * n / (strength + n)
        scale = np.asarray(family.scale) + scatter + weight[:, None, None] * _outer(shift)
        stats.counts[:], stats.sums[:] = n, n[:, None] * (self.center + shift)
        stats.means[:] = self.center + (n / (strength + n))[:, None] * shift
        stats.factors[:] = _factors(scale)
        stats.log_det[:] = np.log(np.diagonal(stats.factors, axis1=1, axis2=2)).sum(axis=1)
        return stats, scale

    def table(self, rng: np.random.Generator | None, family: GaussianNIW, sums: Array) -> Array:
        stats = self.statistics(family, sums)
        k, d = stats.means.shape
        freedom, strength = stats.degrees_of_freedom + stats.counts, stats.prior_strength + stats.counts
        # The scale is C C' with a lower triangle C, and the precision F'F with F = A' C^-1, where A A' has
        # Bartlett's decomposition, from the last column to the first.
        root = np.sqrt(np.diagonal(stats.factors, axis1=1, axis2=2))
        lower = np.swapaxes(np.triu(stats.factors, 1) + np.eye(d), 1, 2) * root[:, None, :]
        table = np.zeros((k, 2 + d, d))
        for group in range(k):
            left = np.diag(np.full(d, np.sqrt(freedom[group])))
            if rng is not None:
                left = np.tril(rng.standard_normal((d, d)), -1)
                spread = 0.5 * (freedom[group] - np.arange(d)[::-1])
                np.fill_diagonal(left, np.sqrt(2.0 * rng.standard_gamma(spread)))
            factor = np.tril(np.linalg.solve(lower[group].T, left.T).T)
            center = stats.means[group] - self.center
            if rng is not None:
                center = center + np.linalg.solve(factor, rng.standard_normal(d)) / np.sqrt(strength[group])
            table[group, 0, 0] = np.log(np.diag(factor) * self.unit).sum()
            table[group, 1] = center / self.unit
            table[group, 2:] = factor * self.unit
        return table

    def most_apart(self, table: Array) -> float:
        far = np.abs(table[:, 2:]) @ (np.abs(table[:, 1]) + self.largest)[:, :, None]
        return float(abs(table[0, 0, 0] - table[1, 0, 0]) + 0.5 * (far**2).sum(axis=(1, 2)).max())


class AnswerGroups(Groups):
    """Answers, some of them missing."""

    encoding: Answers

    def __init__(self, family: Categorical) -> None:
        self.encoding = Answers(family)
        self.n_levels = np.array([len(column) for column in family.levels or ()])

    def statistics(self, family: Categorical, sums: Array) -> Any:
        stats = family.statistics(len(sums))
        counts = self._by_level(sums)
        stats.counts[:], stats.totals[:] = counts.T, sums.sum(axis=-1).T
        stats.log_weights[:] = np.log(stats.pseudo_counts[:, None] + stats.counts)
        stats.log_totals[:] = np.log(stats.pseudo_totals[:, None] + stats.totals)
        return stats

    def _by_level(self, sums: Array) -> Array:
        """Return sums with one column for each level that there is."""
        there = np.arange(self.encoding.n_slots) < self.n_levels[:, None]
        return np.asarray(sums[:, there])

    def table(self, rng: np.random.Generator | None, family: Categorical, sums: Array) -> Array:
        table = np.zeros((len(self.n_levels), self.encoding.n_slots, len(sums)))
        assert family.pseudo_count is not None
        for column, n_levels in enumerate(self.n_levels.tolist()):
            shapes = sums[:, column, :n_levels] + family.pseudo_count
            table[column, :n_levels] = _log_shares(rng, shapes).T
        return table

    def most_apart(self, table: Array) -> float:
        return float(np.abs(table[:, :, 0] - table[:, :, 1]).max(axis=1).sum())


class WordGroups(Groups):
    """Counts."""

    encoding: Words

    def __init__(self, family: Multinomial, largest: float) -> None:
        self.encoding, self.largest = Words(family, family.n_features), largest

    def statistics(self, family: Multinomial, sums: Array) -> Any:
        stats = family.statistics(len(sums))
        counts = self.encoding.numbers(sums)[..., 1]
        stats.counts[:], stats.totals[:] = counts.T, counts.sum(axis=1)
        stats.log_weights[:] = np.log(stats.pseudo_counts[:, None] + stats.counts)
        return stats

    def table(self, rng: np.random.Generator | None, family: Multinomial, sums: Array) -> Array:
        shapes = self.encoding.numbers(sums)[..., 1] + np.asarray(family.pseudo_count)
        log_shares = _log_shares(rng, shapes).T
        return np.ascontiguousarray(np.stack([np.zeros_like(log_shares), log_shares], axis=1))

    def most_apart(self, table: Array) -> float:
        return float(np.abs(table[:, 1, 0] - table[:, 1, 1]).sum() * self.largest)


def groups_of(family: Family, unit: Array, largest: float) -> Groups:
    """Return how a resolved family reads sums; its prior mean is what numbers are measured from."""
    if isinstance(family, Categorical):
        return AnswerGroups(family)
    if isinstance(family, Multinomial):
        return WordGroups(family, largest)
    assert isinstance(family, GaussianNIW | Gaussian | GaussianDiagonal)
    center = np.asarray(family.prior_mean, dtype=np.float64)
    kind = VectorGroups if isinstance(family, GaussianNIW) else NumberGroups
    return kind(center, unit, largest)


def _log_shares(rng: np.random.Generator | None, shapes: Array) -> Array:
    """Return ln of shares, along the last axis: drawn, or means."""
    if rng is None:
        return np.asarray(np.log(shapes) - np.log(shapes.sum(axis=-1, keepdims=True)))
    drawn = log_gammas(rng, shapes)
    return np.asarray(drawn - np.logaddexp.reduce(drawn, axis=-1, keepdims=True))


def _outer(vectors: Array) -> Array:
    return np.asarray(vectors[:, :, None] * vectors[:, None, :])


def _factors(scales: Array) -> Array:
    """Return L' and D of matrices L D L', as statistics hold them; rounding leaves a rest of every pivot."""
    left, d = scales.copy(), scales.shape[1]
    factors = np.zeros_like(scales)
    for c in range(d):
        pivot = np.maximum(left[:, c, c], SMALLEST_PIVOT * scales[:, c, c])
        column = left[:, c, c + 1 :] / pivot[:, None]
        factors[:, c, c], factors[:, c, c + 1 :] = pivot, column
        left[:, c + 1 :, c + 1 :] -= pivot[:, None, None] * _outer(column)
    return factors
