"""The numbers of Mallows models, without cancellation or overflow for any dispersion.

A Mallows model inserts the i-th item of its center ``k`` places up from the end of the i - 1 items before it
with P(k) ∝ exp(-λ k), k = 0..i-1, λ = -ln φ in [0, inf] (Doignon, Pekeč & Regenwetter 2004; Lu & Boutilier
2014, theorem 6). The number k is the item's displacement; the displacements are independent and their sum
is the Kendall distance from the center. With a λ of its own for every item this is the weighted Kendall
distance of section 2.2.3. Everything below is a sum over items of a function of λ and the number of places.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel

# B_2k / (2k)!, k = 1..10, of 1/(e^x - 1) = 1/x - 1/2 + Σ B_2k x^(2k-1) / (2k)!; at x = 1 the next is 5e-17
# of the first.
_SERIES = np.array(
    [
        1 / 12,
        -1 / 720,
        1 / 30240,
        -1 / 1209600,
        1 / 47900160,
        -691 / 1307674368000,
        1 / 74724249600,
        -3617 / 10670622842880000,
        43867 / 5109094217170944000,
        -174611 / 802857662698291200000,
    ]
)
# Items whose places reach so far that e^(-λ places) places² is below rounding all have the same term.
_FAR = 80.0


@kernel
def _regular(x):
    """Return 1/(e^x - 1) - 1/x + 1/2 for x in [0, 1]."""
    square = x * x
    total = 0.0
    for k in range(_SERIES.size - 1, -1, -1):
        total = total * square + _SERIES[k]
    return total * x


@kernel
def _regular_slope(x):
    """Return the derivative of :func:`_regular`, 1/x² - 1/(4 sinh²(x/2)), for x in [0, 1]."""
    square = x * x
    total = 0.0
    for k in range(_SERIES.size - 1, -1, -1):
        total = total * square + (2 * k + 1) * _SERIES[k]
    return total


# One item that may be inserted at ``places`` places.


@kernel
def log_normalizer_step(decay, places):
    """Return ln(1 + φ + … + φ^(places-1)), φ = exp(-decay)."""
    if places == 1:
        return 0.0
    if places * decay < 1e-17:  # also keeps zero and denormal numbers out of the quotient
        return np.log(places)
    # The sum less one, so that it keeps its digits when φ is tiny.
    return np.log1p(np.exp(-decay) * (np.expm1(-(places - 1) * decay) / np.expm1(-decay)))


@kernel
def displacement_moments(decay, places):
    """Return mean and variance of k on 0..places-1 with P(k) ∝ exp(-decay k)."""
    reach = places * decay
    if places == 1:
        return 0.0, 0.0
    if reach <= 1.0:
        mean = 0.5 * (places - 1) + _regular(decay) - places * _regular(reach)
        return mean, places * places * _regular_slope(reach) - _regular_slope(decay)
    # That of the unbounded geometric distribution less what lies beyond the last place.
    near, far = -np.expm1(-decay), np.exp(-reach)
    outside = places / (1.0 - far)
    mean = np.exp(-decay) / near
    return mean - outside * far, mean / near - outside * outside * far


@kernel
def log_probability_step(decay, displacement, places):
    """Return ln P(k = displacement), also for decay = inf."""
    if displacement == 0:
        return -log_normalizer_step(decay, places)
    return -decay * displacement - log_normalizer_step(decay, places)


# The whole model, one decay for all items.


@kernel
def log_normalizer(decay, n):
    """Return ln Z = Σ_i ln(1 + φ + … + φ^(i-1)) over n items."""
    total = 0.0
    for places in range(2, n + 1):
        term = log_normalizer_step(decay, places)
        if (places - 1) * decay > _FAR:
            return total + (n - places + 1) * term
        total += term
    return total


@kernel
def distance_moments(decay, n):
    """Return mean, -d ln Z / dλ, and variance, d² ln Z / dλ², of the Kendall distance from the center."""
    mean, variance = 0.0, 0.0
    for places in range(2, n + 1):
        mean_here, variance_here = displacement_moments(decay, places)
        alike = 1
        if (places - 1) * decay > _FAR:
            alike = n - places + 1
        mean += alike * mean_here
        variance += alike * variance_here
        if alike > 1:
            break
    return mean, variance


@kernel
def dispersion_from_mean(mean, n):
    """Return the λ = -ln φ whose expected Kendall distance over n items is ``mean``.

    This is the maximum-likelihood λ when ``mean`` is the average distance of data from the center. A mean
    of 0 gives inf (φ = 0); n(n-1)/4 and more give 0 (φ = 1: the center is no better than any other).

    Newton's method on ln mean, which is nearly linear in λ at both ends, inside a shrinking bracket.
    """
    if mean <= 0.0:
        return np.inf
    if mean >= 0.25 * n * (n - 1):
        return 0.0
    # E[d] < (n - 1) φ / (1 - φ); equality bounds λ from above, with one to spare for rounding.
    low, high = 0.0, 1.0 + np.log(n - 1 + mean) - np.log(mean)
    decay = min(high, (0.25 * n * (n - 1) - mean) / distance_moments(0.0, n)[1])
    for _ in range(200):
        found, variance = distance_moments(decay, n)
        excess = np.log(found) - np.log(mean) if found < 0.5 * mean else np.log1p((found - mean) / mean)
        if excess > 0.0:
            low = decay
        else:
            high = decay
        proposed = 0.5 * (low + high)
        if variance > 0.0:  # it underflows with φ
            newton = decay + excess * found / variance
            if low <= newton <= high:
                proposed = newton
        if abs(proposed - decay) <= 2e-16 * decay:
            return proposed
        decay = proposed
    return decay


# The whole model, a decay for each item in the order of insertion; the first has one place only.


@kernel
def weighted_log_normalizer(decays):
    """Return ln Z with decay ``decays[i]`` for the item inserted at step i."""
    total = 0.0
    for i in range(1, decays.size):
        total += log_normalizer_step(decays[i], i + 1)
    return total


@kernel
def log_insertion_matrix(decays):
    """Return ln p_ij, row i = insertion step, column j = place 0..i; minus infinity above the diagonal."""
    n = decays.size
    out = np.full((n, n), -np.inf)
    for i in range(n):
        log_total = log_normalizer_step(decays[i], i + 1)
        out[i, i] = -log_total
        for j in range(i):
            out[i, j] = -decays[i] * (i - j) - log_total
    return out


@kernel
def discordance_by_gap(decay, n):
    """Return q[g] = P(the worse of two items, g apart in the center, is ranked first), g = 1..n-1.

    Mallows' (1957) P(better first) = h(g+1) - h(g), h(k) = k/(1-φ^k), rearranged so that neither small λ nor
    small q loses digits. ``q[0]`` is 0.
    """
    out = np.zeros(n)
    near = -np.expm1(-decay)
    for gap in range(1, n):
        longer = (gap + 1) * decay
        if longer <= 1.0:
            out[gap] = 0.5 - ((gap + 1) * _regular(longer) - gap * _regular(gap * decay))
        else:
            far = -np.expm1(-gap * decay)
            spread = gap * near - np.exp(-decay) * far
            out[gap] = np.exp(-gap * decay) * spread / (far * -np.expm1(-longer))
    return out


@kernel
def pairwise_by_step(decay, n):
    """Return P(i-th item of the center before the j-th), 0 on the diagonal."""
    discordance = discordance_by_gap(decay, n)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            out[i, j] = discordance[i - j]
            out[j, i] = 1.0 - discordance[i - j]
    return out
