# mypy: ignore-errors
"""Compiled priors over partitions.

Dirichlet process and Pitman-Yor process are one two-parameter family (Pitman 1995, with concentration
alpha and discount sigma, 0 for the Dirichlet process). With data seated in K clusters of sizes n_k the
next one

    joins cluster k        with weight n_k - sigma,
    opens a new cluster    with weight alpha + K sigma.

Finite mixtures have the first weight with sigma = -g for a pseudo-count g, and as the second whatever the
prior on the number of components makes of it: a table over K. One compiled type serves them all, be the
number known (a finite symmetric Dirichlet: g (m - K) for m components) or not (a mixture of finite
mixtures: g V_n(K+1)/V_n(K), Miller & Harrison 2018). The table belongs to one number of data n, that of the
whole partition: the weights are those of the last datum given all others.

A sampler calls the functions of the contract with a prior's NamedTuple; Numba picks the implementation
by its type.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from permix.kernels.jit import is_instance, kernel

# Smallest concentration the auxiliary-variable update may return: its logarithm must stay finite.
SMALLEST_CONCENTRATION = 1e-300


class DirichletProcessPrior(NamedTuple):
    """Dirichlet process as compiled code sees it."""

    concentration: float


class PitmanYorPrior(NamedTuple):
    """Pitman-Yor process as compiled code sees it."""

    concentration: float
    discount: float


class FiniteMixturePrior(NamedTuple):
    """Partitions of n data by finite mixtures, of a known number of components or not."""

    pseudo_count: float
    log_one: float  # ln g V_n(1)
    log_new: np.ndarray  # (at most n,) log weight of a new cluster beside 0, 1, ...; minus infinity beyond


# --- the contract -------------------------------------------------------------------------------


def log_weight_existing(prior, size):
    """Log unnormalised weight of joining a cluster that has ``size`` members."""
    raise NotImplementedError(f"no compiled log_weight_existing for {type(prior).__name__}")


def log_weight_new(prior, n_clusters):
    """Log unnormalised weight of opening a cluster beside ``n_clusters`` occupied ones."""
    raise NotImplementedError(f"no compiled log_weight_new for {type(prior).__name__}")


def log_partition(prior, sizes, n_clusters):
    """Log probability of the partition with these cluster sizes.

    Reads ``sizes[:n_clusters]``; entries that are 0 are empty slots and are skipped.
    """
    raise NotImplementedError(f"no compiled log_partition for {type(prior).__name__}")


@overload(log_weight_existing)
def _log_weight_existing(prior, size):
    if is_instance(prior, DirichletProcessPrior):
        return lambda prior, size: math.log(size)
    if is_instance(prior, PitmanYorPrior):
        return lambda prior, size: math.log(size - prior.discount)
    if is_instance(prior, FiniteMixturePrior):
        return lambda prior, size: math.log(size + prior.pseudo_count)
    return None


@overload(log_weight_new)
def _log_weight_new(prior, n_clusters):
    if is_instance(prior, DirichletProcessPrior):
        return lambda prior, n_clusters: math.log(prior.concentration)
    if is_instance(prior, PitmanYorPrior):

        def pitman_yor(prior, n_clusters):
            weight = prior.concentration + prior.discount * n_clusters
            # The first datum opens a cluster even where concentration <= 0.
            return math.log(weight) if weight > 0.0 else 0.0

        return pitman_yor
    if is_instance(prior, FiniteMixturePrior):

        def finite(prior, n_clusters):
            # Between whole numbers, which slopes ask for, weights go on in a straight line.
            whole = int(n_clusters)
            size = prior.log_new.shape[0]
            log_below = prior.log_new[whole] if whole < size else -np.inf
            share = n_clusters - whole
            if share == 0.0 or log_below == -np.inf:
                return log_below
            log_above = prior.log_new[whole + 1] if whole + 1 < size else -np.inf
            return log_below + math.log(1.0 - share + share * math.exp(log_above - log_below))

        return finite
    return None


@overload(log_partition)
def _log_partition(prior, sizes, n_clusters):
    if is_instance(prior, DirichletProcessPrior):
        return lambda prior, sizes, n_clusters: log_two_parameter_partition(
            prior.concentration, 0.0, sizes, n_clusters
        )
    if is_instance(prior, PitmanYorPrior):
        return lambda prior, sizes, n_clusters: log_two_parameter_partition(
            prior.concentration, prior.discount, sizes, n_clusters
        )
    if is_instance(prior, FiniteMixturePrior):
        return lambda prior, sizes, n_clusters: log_finite_mixture_partition(
            prior.pseudo_count, prior.log_one, prior.log_new, sizes, n_clusters
        )
    return None


# --- the two-parameter family -------------------------------------------------------------------


@kernel
def log_rising_factorial(x, n):
    """Log of x (x + 1) ... (x + n - 1) for x > 0, to full relative precision even for huge x.

    The difference of two log-gamma values loses all digits when x >> n; here the first factors are
    multiplied out until Stirling's series is exact to rounding, and its leading terms are
    subtracted by hand.
    """
    total = 0.0
    x = float(x)
    left = float(n)
    while left > 0.0 and x < 16.0:
        total += math.log(x)
        x += 1.0
        left -= 1.0
    if left <= 0.0:
        return total
    end = x + left
    main = (x - 0.5) * math.log1p(left / x) - left + left * math.log(end)
    return total + main + (_stirling_tail(end) - _stirling_tail(x))


@kernel
def _stirling_tail(x):
    """The part of log Gamma(x) beyond (x - 1/2) log x - x + log(2 pi) / 2."""
    square = 1.0 / (x * x)
    return (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x


@kernel
def log_two_parameter_partition(concentration, discount, sizes, n_clusters):
    """Exchangeable partition probability function (Pitman 1995, Proposition 9), in logs."""
    concentration = float(concentration)
    discount = float(discount)
    total = 0.0
    n = 0
    occupied = 0
    for slot in range(n_clusters):
        size = int(sizes[slot])
        if size == 0:
            continue
        if occupied > 0:
            total += math.log(concentration + occupied * discount)
        total += log_rising_factorial(1.0 - discount, size - 1)
        occupied += 1
        n += size
    if n == 0:
        return 0.0
    return total - log_rising_factorial(concentration + 1.0, n - 1)


@kernel
def log_finite_mixture_partition(pseudo_count, log_one, log_new, sizes, n_clusters):
    """V_n(K) times g (g + 1) ... (g + n_k - 1) of every cluster, in logs; the table is that of n data."""
    total = 0.0
    occupied = 0
    for slot in range(n_clusters):
        size = int(sizes[slot])
        if size == 0:
            continue
        if occupied > 0:
            if occupied >= log_new.shape[0]:
                return -np.inf
            total += log_new[occupied]
        total += log_rising_factorial(1.0 + pseudo_count, size - 1)
        occupied += 1
    return total + log_one if occupied > 0 else 0.0


@kernel
def expected_two_parameter_clusters(concentration, discount, n):
    """Prior mean of the number of clusters; exact by recursion, because P(new | K) is linear in K."""
    expected = 1.0 if n > 0 else 0.0
    for seated in range(1, n):
        expected += (concentration + discount * expected) / (concentration + seated)
    return expected


@kernel
def sample_two_parameter(rng, concentration, discount, max_clusters, labels):
    """Fill each row of ``labels`` with a draw, numbered by first appearance; O(1) a datum on average."""
    n_draws, n = labels.shape
    sizes = np.empty(n, np.int64)
    for draw in range(n_draws):
        row = labels[draw]
        n_clusters = 0
        for seated in range(n):
            new_weight = concentration + discount * n_clusters
            if seated == 0 or (
                n_clusters < max_clusters and rng.random() * (concentration + seated) < new_weight
            ):
                label = n_clusters
                sizes[label] = 0
                n_clusters += 1
            elif discount >= 0.0:
                # A uniform earlier datum names its cluster with weight n_k; thinning makes it n_k - sigma.
                label = row[int(rng.random() * seated)]
                while rng.random() * sizes[label] < discount:
                    label = row[int(rng.random() * seated)]
            elif rng.random() * (seated - discount * n_clusters) < seated:
                label = row[int(rng.random() * seated)]
            else:
                label = int(rng.random() * n_clusters)
            row[seated] = label
            sizes[label] += 1


# --- learning the concentration -----------------------------------------------------------------


@kernel
def update_concentration(rng, concentration, shape, rate, n_clusters, n):
    """One auxiliary-variable update of a Dirichlet process' concentration under Gamma(shape, rate).

    Escobar & West (1995), equations 13 and 14: eta ~ Beta(alpha + 1, n), then alpha from a mixture
    of Gamma(shape + K, rate - log eta) and Gamma(shape + K - 1, rate - log eta). Leaves
    p(alpha | K, n) invariant.
    """
    if n == 0:
        return max(_draw_gamma(rng, shape) / rate, SMALLEST_CONCENTRATION)
    # -log eta as log(1 + Y / X) with two Gamma draws: exact where eta would round to 0 or 1.
    minus_log_eta = math.log1p(rng.standard_gamma(float(n)) / rng.standard_gamma(concentration + 1.0))
    new_rate = rate + minus_log_eta
    first = shape + n_clusters - 1.0
    if rng.random() * (first + n * new_rate) < first:
        new_shape = shape + n_clusters
    else:
        new_shape = first
    return max(_draw_gamma(rng, new_shape) / new_rate, SMALLEST_CONCENTRATION)


@kernel
def _draw_gamma(rng, shape):
    """Gamma(shape, 1); for small shapes through Gamma(shape + 1) U^(1 / shape), which underflows later."""
    if shape >= 1.0:
        return rng.standard_gamma(shape)
    return math.exp(math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape)


# --- entries from Python ------------------------------------------------------------------------


@kernel
def partition_log_prob(prior, sizes):
    """:func:`log_partition`, callable from Python."""
    return log_partition(prior, sizes, len(sizes))


@kernel
def seat_log_weights(prior, sizes):
    """Log weights of joining each cluster and, last, of opening a new one."""
    n_clusters = len(sizes)
    weights = np.empty(n_clusters + 1)
    for cluster in range(n_clusters):
        weights[cluster] = log_weight_existing(prior, sizes[cluster])
    weights[n_clusters] = log_weight_new(prior, n_clusters)
    return weights
