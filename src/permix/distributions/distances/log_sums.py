"""ln Z(λ) = ln Σ exp(-λ d(ranking, center)) over all rankings, exact, for many λ at once."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from permix.data.labels import Array
from permix.errors import DataError

# A table over all subsets of 20 items, and all partitions of 70, take seconds for all decays of a table.
MOST_SUBSETS = 20
MOST_PARTITIONS = 70


def is_exact(distance: str, n_items: int) -> bool:
    """Whether :func:`log_sums` has the sum over all rankings of so many items."""
    most = {"spearman": MOST_SUBSETS, "ulam": MOST_PARTITIONS}.get(distance)
    return most is None or n_items <= most


def log_sums(distance: str, n_items: int, decays: Array) -> Array:
    """Return ln Z for each decay λ ≥ 0, λ = 0 included.

    kendall: Π (1 - q^i) / (1 - q), q = e^(-λ). cayley: Π (1 + i q). hamming: rankings with d items
    elsewhere are C(n, d) times the derangements of d. footrule: n steps of a recursion over up to n / 2
    open places. spearman: sums over subsets of items. ulam: hook lengths.

    Examples
    --------
    >>> import math, numpy as np
    >>> bool(np.isclose(log_sums("footrule", 50, np.zeros(1))[0], math.lgamma(51)))
    True
    """
    if not is_exact(distance, n_items):
        most = MOST_SUBSETS if distance == "spearman" else MOST_PARTITIONS
        raise DataError(
            f"distance={distance!r}: there is no exact sum over rankings of more than {most} items"
        )
    decays = np.asarray(decays, np.float64)
    by_name = {"kendall": _kendall, "cayley": _cayley, "footrule": _footrule, "spearman": _spearman}
    if distance in by_name:
        return by_name[distance](n_items, decays)
    log_counts = log_counts_of(distance, n_items)
    d = np.flatnonzero(np.isfinite(log_counts))
    return _log_sum_exp(log_counts[d] - np.multiply.outer(decays, d))


@lru_cache(maxsize=64)
def log_counts_of(distance: str, n_items: int) -> Array:
    """Return ln of the number of rankings at each distance 0, 1, …, n: hamming and ulam."""
    d = np.arange(n_items + 1)
    with np.errstate(divide="ignore"):
        if distance == "hamming":
            log_factorials = np.array([math.lgamma(k + 1.0) for k in range(n_items + 1)])
            log_pairs = log_factorials[-1] - log_factorials - log_factorials[::-1]
            # Derangements of d are the share Σ_{k ≤ d} (-1)^k / k! of permutations.
            signs = np.where(d % 2, -1.0, 1.0) * np.exp(-log_factorials)
            return np.asarray(log_pairs + log_factorials + np.log(_partial_sums(signs)))
        return np.asarray(np.log(_ulam_shares(n_items))[::-1] + math.lgamma(n_items + 1.0))


def _partial_sums(terms: Array) -> Array:
    sums = np.cumsum(terms)
    sums[1:2] = 0.0  # 1 - 1: nothing of a single item is elsewhere
    return sums


def _ulam_shares(n_items: int) -> Array:
    from permix.distributions.distances.partitions_jit import add_shapes

    shares = np.zeros(n_items + 1)
    add_shapes(n_items, shares)
    return shares


def _log_sum_exp(terms: Array) -> Array:
    largest = terms.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1)))


def _kendall(n_items: int, decays: Array) -> Array:
    small = np.maximum(decays, 1e-300)  # the ratio of both tends to i
    out = np.zeros(decays.shape)
    for i in range(2, n_items + 1):
        out += np.log(np.expm1(-i * small) / np.expm1(-small))
    return out


def _cayley(n_items: int, decays: Array) -> Array:
    q, out = np.exp(-decays), np.zeros(decays.shape)
    for i in range(1, n_items):
        out += np.log1p(i * q)
    return out


def _footrule(n_items: int, decays: Array) -> Array:
    """Walk over positions; h of the items so far, and of the positions, are matched later.

    F_i(h) = q^(2h) [(2h + 1) F_{i-1}(h) + h F_{i-1}(h-1) + (h+1) F_{i-1}(h+1)], F_0(0) = 1, Z = F_n(0): h!
    times the weights of the ways, so that steps are symmetric and all stays within the range of doubles.
    """
    half = n_items // 2
    h = np.arange(half + 1.0)
    factor = np.exp(-2.0 * np.multiply.outer(decays, h))
    ways = np.zeros(factor.shape)
    ways[..., 0] = 1.0
    out = np.zeros(decays.shape)
    for _ in range(n_items):
        following = (2.0 * h + 1.0) * ways
        following[..., 1:] += h[1:] * ways[..., :-1]
        following[..., :-1] += h[1:] * ways[..., 1:]
        following *= factor
        scale = following.max(axis=-1)
        ways = following / scale[..., None]
        out += np.log(scale)
    return np.asarray(out + np.log(ways[..., 0]))


def _spearman(n_items: int, decays: Array) -> Array:
    from permix.distributions.angle.subset_table_jit import fill_table

    gaps = np.arange(n_items)[:, None] - np.arange(n_items)
    table, out = np.empty(1 << n_items), np.empty(decays.size)
    for at, decay in enumerate(decays.ravel()):
        out[at] = math.log(fill_table(np.exp(-decay * (gaps * gaps)), table))
    return out.reshape(decays.shape)
