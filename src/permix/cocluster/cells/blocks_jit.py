# mypy: ignore-errors
"""Marginal likelihood of the cells of one block, its parameters integrated out.

A prior is a NamedTuple; the functions below are declared once and implemented per prior. A block is known by
``n``, its number of cells, and ``sums``, what its cells add up to in each of some slots:

- :class:`CountPrior`, cells in levels under a Dirichlet prior: slot j counts the cells at level j (equation
  5.12 of Wang, Laskey, Domeniconi & Jordan 2011). With several groups of levels each cell has one level in
  each group, as the base co-clusterings of an ensemble have.
- :class:`MomentPrior`, numbers: slot 0 is their sum and slot 1 the sum of their squares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.kernels.jit import implements, kernel

POISSON, GAUSSIAN = 0, 1
# Longer tables of logarithms cost more to read than the logarithms cost to compute.
LONGEST_TABLE = 1 << 21
# Shorter ones are filled before a compiler would have started.
LONG_TABLE = 10_000


class CountPrior(NamedTuple):
    """Levels with one pseudo-count for all of them; tables of ln Γ(a + n) - ln Γ(a) by n."""

    slot_table: np.ndarray  # of one level
    total_table: np.ndarray  # of all levels, summed over groups
    pseudo_count: float
    n_levels: np.ndarray  # (groups,) levels in each group


class MomentPrior(NamedTuple):
    """Numbers: Poisson under a Gamma prior, or Gaussian under a normal-inverse-gamma prior with mean zero."""

    family: int
    strength: float  # how many cells the prior of the mean is worth
    shape: float
    rate: float


def log_block(prior, n, sums):
    """Return ln p(cells) of a block."""
    raise NotImplementedError("log_block is implemented per prior; call it from compiled code")


def log_gain(prior, n, sums, m, slots, values, first, last):
    """Return ln p(cells and ``m`` more) - ln p(cells).

    The further cells add ``values[a]`` to slot ``slots[a]``, for entries ``first`` to ``last - 1``.
    """
    raise NotImplementedError("log_gain is implemented per prior; call it from compiled code")


@kernel
def log_rising(base, n):
    """Return ln Γ(base + n) - ln Γ(base)."""
    return math.lgamma(base + n) - math.lgamma(base)


def rising_table(base, length):
    """Return a table of ln Γ(base + n) - ln Γ(base), n = 0 ... length - 1; long ones are compiled."""
    return (_rising_table if length > LONG_TABLE else _fill_rising_table)(float(base), length)


def _fill_rising_table(base, length):
    table = np.empty(length)
    total = 0.0
    compensation = 0.0
    for n in range(length):
        table[n] = total
        # Kahan summation: a million terms would lose five digits otherwise.
        term = math.log(base + n) - compensation
        larger = total + term
        compensation = (larger - total) - term
        total = larger
    return table


_rising_table = kernel(_fill_rising_table)


def count_prior(pseudo_count: float, n_levels: np.ndarray, n_cells: int) -> CountPrior:
    """Return the prior of cells in levels, with tables long enough for ``n_cells``."""
    length = min(n_cells + 2, LONGEST_TABLE)
    totals = np.zeros(length)
    for levels in np.asarray(n_levels, dtype=np.int64):
        totals += rising_table(pseudo_count * levels, length)
    return CountPrior(
        rising_table(pseudo_count, length),
        totals,
        float(pseudo_count),
        np.array(n_levels, dtype=np.int64),
    )


@kernel
def slot_rise(prior, n):
    """Return ln Γ(a + n) - ln Γ(a) of one level."""
    if n < prior.slot_table.shape[0]:
        return prior.slot_table[n]
    return log_rising(prior.pseudo_count, n)


@kernel
def total_rise(prior, n):
    """Return ln Γ(a L + n) - ln Γ(a L) of all L levels, summed over groups."""
    if n < prior.total_table.shape[0]:
        return prior.total_table[n]
    total = 0.0
    for group in range(prior.n_levels.shape[0]):
        total += log_rising(prior.pseudo_count * prior.n_levels[group], n)
    return total


@implements(log_block, of=CountPrior, argument="prior")
def _log_block_of_counts(prior, n, sums):
    total = -total_rise(prior, n)
    for slot in range(sums.shape[0]):
        if sums[slot] > 0:
            total += slot_rise(prior, sums[slot])
    return total


@implements(log_gain, of=CountPrior, argument="prior")
def _log_gain_of_counts(prior, n, sums, m, slots, values, first, last):
    if m == 0:
        return 0.0
    gain = total_rise(prior, n) - total_rise(prior, n + m)
    for a in range(first, last):
        if values[a] != 0:
            present = sums[slots[a]]
            gain += slot_rise(prior, present + values[a]) - slot_rise(prior, present)
    return gain


@kernel
def log_moments(prior, n, total, squares):
    """Return ln p of n numbers by their sum and the sum of their squares, without Σ ln x! of counts."""
    if n == 0:
        return 0.0
    if prior.family == POISSON:
        value = (
            prior.shape * math.log(prior.rate) - math.lgamma(prior.shape) + math.lgamma(prior.shape + total)
        )
        return value - (prior.shape + total) * math.log(prior.rate + n)
    strength = prior.strength + n
    shape = prior.shape + 0.5 * n
    # Never below the prior's: rounding must not make the spread of equal numbers negative.
    rate = prior.rate + max(0.5 * (squares - total * total / strength), 0.0)
    value = math.lgamma(shape) - math.lgamma(prior.shape) + 0.5 * math.log(prior.strength / strength)
    value += prior.shape * math.log(prior.rate) - shape * math.log(rate)
    return value - 0.5 * n * math.log(2.0 * math.pi)


@implements(log_block, of=MomentPrior, argument="prior")
def _log_block_of_moments(prior, n, sums):
    return log_moments(prior, n, sums[0], sums[1])


@implements(log_gain, of=MomentPrior, argument="prior")
def _log_gain_of_moments(prior, n, sums, m, slots, values, first, last):
    if m == 0:
        return 0.0
    total, squares = sums[0], sums[1]
    for a in range(first, last):
        if slots[a] == 0:
            total += values[a]
        else:
            squares += values[a]
    return log_moments(prior, n + m, total, squares) - log_moments(prior, n, sums[0], sums[1])
