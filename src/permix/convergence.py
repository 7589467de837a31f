"""R-hat and effective sample size of quantities over chains, on plain arrays of shape (chain, draw).

Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and localization: an
improved R-hat". ArviZ has the same functions, and the tests hold these against them; loading ArviZ's takes
0.7 s, which is a third of the time in which the command line may start.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
# Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and
# localization: an improved R-hat", recommend to trust draws only below this value.
REPORTABLE = 1.01
# Chains of partitions mix slowly, and an R-hat between the two values says "more draws", not "disagree".
THRESHOLD = 1.05
# ... and to have at least so many effective draws per chain.
FEWEST_EFFECTIVE = 100
# R-hat splits each chain, and a variance needs two draws.
FEWEST_DRAWS = 4
# How rarely chains that agree may be reported: the probability per quantity is about this.
FALSE_ALARM = 1e-3
# Digits in which numbers that should be equal are, though computed in another order.
DIGITS = 10
# What is said of quantities; the last two say that draws suffice.
DISAGREE, MORE_DRAWS, TOO_FEW, NOT_FINITE = (
    "chains disagree",
    "more draws needed",
    "too few draws",
    "not finite",
)
CONSTANT, FINE = "constant", ""
# What ended chains: their number of draws was given, draws sufficed, the longest run allowed, or the user.
ASKED, ENOUGH, LIMIT, INTERRUPTED = ENDINGS = ("asked", "enough", "limit", "interrupted")


class Trust(NamedTuple):
    """How far draws of a quantity can be trusted: NaN where that cannot be known."""

    note: str
    r_hat: float = math.nan
    ess_bulk: float = math.nan
    ess_tail: float = math.nan

    @property
    def suffices(self) -> bool:
        """Whether nothing is wrong with the draws."""
        return self.note in (FINE, CONSTANT)


def trust_in(values: FloatArray) -> Trust:
    """Judge the draws of one quantity, (chain, draw), by R-hat and by effective numbers of draws."""
    if not np.all(np.isfinite(values)):
        return Trust(NOT_FINITE)
    if np.all(values == values[0, 0]):
        return Trust(CONSTANT)
    if _at_least_two(values).shape[1] < FEWEST_DRAWS:
        return Trust(TOO_FEW)
    found, bulk, tail = r_hat(values), ess_bulk(values), ess_tail(values)
    if found > largest_allowed(values):
        return Trust(DISAGREE, found, bulk, tail)
    enough = min(bulk, tail) >= FEWEST_EFFECTIVE * len(values)
    precise = found <= largest_allowed(values, REPORTABLE)
    return Trust(FINE if enough and precise else MORE_DRAWS, found, bulk, tail)


def r_hat(values: FloatArray) -> float:
    """Return the rank-normalized split R-hat of an array over chain and draw.

    It is 1 for a constant, infinite when every chain is stuck at a place of its own, and NaN for
    values that are not finite or fewer than four draws per chain. The halves of a single chain count
    as two chains.
    """
    values = _at_least_two(values)
    if values.shape[1] < FEWEST_DRAWS or not np.all(np.isfinite(values)):
        return math.nan
    if np.all(values == values[0, 0]):
        return 1.0
    half = values.shape[1] // 2
    if all(np.all(part == part[0]) for chain in values for part in (chain[:half], chain[-half:])):
        return math.inf
    return rank_r_hat(values)


def largest_allowed(values: FloatArray, threshold: float = THRESHOLD) -> float:
    """Return the R-hat of these chains above which they are said to disagree."""
    return max(threshold, noise_ceiling(*_at_least_two(values).shape))


def _at_least_two(values: FloatArray) -> FloatArray:
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return np.stack([values[0, :half], values[0, values.shape[1] - half :]])


def noise_ceiling(n_chains: int, n_draws: int) -> float:
    """Return what R-hat of independent draws exceeds with probability 0.001.

    For m half chains of n independent normal draws, between over within variance follows an F distribution
    with m - 1 and m (n - 1) degrees of freedom, and R-hat² = (n - 1)/n + F/n.
    """
    from scipy.special import fdtri

    m, n = 2 * n_chains, n_draws // 2
    if n < 2:
        return math.inf
    ratio = float(fdtri(m - 1, m * (n - 1), 1.0 - FALSE_ALARM))
    return math.sqrt((n - 1 + ratio) / n)


def without_rounding_errors(values: FloatArray) -> FloatArray:
    """Make equal what differs by rounding alone.

    Chains that are nearly always at the same partition have its likelihood with the rounding errors of the
    way they came. Ranks would take these for a difference between chains.
    """
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    if largest == 0.0:
        return values
    return np.round(values, min(DIGITS - 1 - math.floor(math.log10(largest)), 300))


def rank_r_hat(values: FloatArray) -> float:
    """Return the larger of the rank-normalized split R-hat of location and of spread (equations 4 and 14)."""
    halves = _split(values)
    folded = np.abs(halves - np.median(halves))
    return max(float(_r_hats(_rank_normalized(chains))) for chains in (halves, folded))


def split_r_hat(values: FloatArray) -> FloatArray:
    """Return the split R-hat of many quantities, (chain, draw, ...): NaN for fewer than four draws.

    Without ranks, which is quicker and enough for quantities that have no long tails, such as ranks of items.
    """
    if values.shape[1] < 4:
        return np.full(values.shape[2:], np.nan)
    return _r_hats(_split(np.asarray(values, dtype=np.float64)))


def ess_mean(values: FloatArray) -> float:
    """Return the effective number of draws for the mean; all of them where nothing changes."""
    if values.shape[1] < 4 or np.ptp(values) == 0.0:
        return float(values.size)
    return min(_ess(_split(values)), float(values.size))


def ess_bulk(values: FloatArray) -> float:
    """Return the effective number of draws for the center of the distribution."""
    return _ess(_rank_normalized(_split(values)))


def ess_tail(values: FloatArray) -> float:
    """Return the smaller effective number of draws for the 5 % and the 95 % quantile."""
    return min(_ess(_split((values <= np.quantile(values, p)).astype(np.float64))) for p in (0.05, 0.95))


def mcse_mean(values: FloatArray) -> float:
    """Return the Monte Carlo standard error of the mean."""
    return float(values.std(ddof=1)) / math.sqrt(_ess(_split(values)))


def _split(values: FloatArray) -> FloatArray:
    """Let the halves of every chain count as chains; the middle draw of an odd chain is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])


def _rank_normalized(values: FloatArray) -> FloatArray:
    """Replace values by normal scores of their ranks, ties sharing their mean rank."""
    from scipy.special import ndtri

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    scores: FloatArray = ndtri((mean_rank[inverse] - 0.375) / (values.size + 0.25))
    return scores.reshape(values.shape)


def _r_hats(chains: FloatArray) -> FloatArray:
    """R-hat of each quantity, (chain, draw, ...): 1 for what never changes, infinite for stuck chains."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n - 1) / n + between / within)
    return np.where((within == 0.0) & (between == 0.0), 1.0, ratio)


def _ess(chains: FloatArray) -> float:
    """Effective sample size by Geyer's initial monotone sequence over autocorrelations of all chains."""
    m, n = chains.shape
    # Autocovariances by Fourier transforms, padded so that the ends of a chain do not meet.
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), length, axis=1)
    covariance = (np.fft.irfft(spectrum * spectrum.conj(), length, axis=1)[:, :n] / n).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (float(chains.mean(axis=1).var(ddof=1)) if m > 1 else 0.0)
    if total == 0.0:
        return float(m * n)
    correlation = 1.0 - (within - covariance) / total
    correlation[0] = 1.0
    # Sums of neighboring pairs are positive and decreasing in theory: stop where noise takes over (or, at
    # the latest, at the last pair worth estimating), and let none exceed the one before it.
    last = max((n - 3) // 2, 0)
    pairs = correlation[0 : 2 * last + 1 : 2] + correlation[1 : 2 * last + 2 : 2]
    negative = np.flatnonzero(pairs < 0)
    stop = int(negative[0]) if negative.size else last
    kept = np.minimum.accumulate(pairs[:stop])
    # Of the pair at which the sum stops only the even lag counts, and only once.
    even = float(correlation[2 * stop])
    rest = even if even > 0 or pairs[stop] >= 0 else 0.0
    time = -1.0 + 2.0 * float(kept.sum()) + rest
    # Antithetic chains may beat independent draws, but not without bound.
    return m * n / max(time, 1.0 / math.log10(m * n))
