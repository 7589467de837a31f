# mypy: ignore-errors
"""The finite-n Beta integral of Meilă & Chen (2010, equation 14), predictive distributions, and draws of θ.

With N lists that skip S items in total at a stage, where m + 1 items are left to choose from, and the prior
of equation 7, the density of the stage's decay is ∝ exp(-a θ) ψ_m(θ)^-c with a = ν r + S and c = ν + N, where
ψ_m(θ) = 1 + e^-θ + ... + e^-mθ. Its integral over θ > 0 is the paper's B̃eta(a, c + 1, m); no Beta
approximation is needed.

Integrals are trapezoidal sums in u = ln θ over a fixed fine grid on which ln ψ is tabulated: the integrand is
analytic within π/2 of the real line, so steps of 0.25, or of 0.7/√(1 + c) where it is narrower, leave
relative errors below 1e-8. Towards θ = 0 it falls like θ, and the rest of the sum is a geometric series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.by_reference import by_reference
from permix.kernels.jit import kernel
from permix.kernels.mallows import displacement_moments, log_normalizer_step
from permix.kernels.streams import exponential, uniform

# Terms below e^-34 of the largest are left out.
DROP = 34.0
WIDEST_STEP = 0.25
STEP_PER_DEVIATION = 0.7
LOWEST_LOG_THETA = -21.0
# The geometric series takes over where the exponent, less u, is this near to its limit at θ = 0.
NEARLY_FLAT = 1e-4
MAX_NODES = 1024


@by_reference
class StageTables(NamedTuple):
    """The grid, with ln ψ of every stage, and the prior."""

    step: float
    log_theta: np.ndarray  # (nodes,)
    theta: np.ndarray
    fade: np.ndarray  # exp(-θ)
    log_psi: np.ndarray  # (stages, nodes)
    psi: np.ndarray  # (stages, nodes)
    skips: np.ndarray  # (stages,): m_j = n - 1 - j, the largest skip
    prior_a: np.ndarray  # (stages,): ν r_j
    prior_c: float  # ν
    prior_log_integral: np.ndarray  # (stages,)


def stage_tables(
    n_items: int, n_stages: int, rates: np.ndarray, strength: float, n_lists: int, least_a: float = np.inf
) -> StageTables:
    """Tabulate the first ``n_stages`` stages of lists over ``n_items`` for clusters of up to ``n_lists``.

    ``least_a`` is the least ν r that the tables must serve, where that is less than the least of these.
    """
    prior_a = np.ascontiguousarray(strength * np.asarray(rates, dtype=float)[:n_stages])
    # The narrowest integrand has deviation 1/√(1 + c) in u, because θ² Var(skip) <= 1.
    finest = STEP_PER_DEVIATION / np.sqrt(3.0 + strength + n_lists)
    halvings = max(0, int(np.ceil(np.log2(WIDEST_STEP / finest))))
    step = WIDEST_STEP / 2.0**halvings
    # Beyond this even an empty cluster's integrand has dropped: ψ is 1 and exp(-a θ) alone decides.
    highest = max(4.0, np.log(2.0 * DROP / min(prior_a.min(), least_a))) if n_stages else 4.0
    n_nodes = int(np.ceil((highest - LOWEST_LOG_THETA) / step)) + 2
    log_theta = LOWEST_LOG_THETA + step * np.arange(n_nodes)
    theta = np.exp(log_theta)
    skips = n_items - 1 - np.arange(n_stages, dtype=np.int64)
    log_psi, psi = np.empty((2, n_stages, n_nodes))
    tables = StageTables(
        step,
        log_theta,
        theta,
        np.exp(-theta),
        log_psi,
        psi,
        skips,
        prior_a,
        float(strength),
        np.zeros(n_stages),
    )
    _tabulate(tables)
    np.exp(log_psi, out=psi)
    return tables


@kernel
def _tabulate(tables):
    """Fill ln ψ and the integrals of the prior."""
    for stage in range(tables.skips.size):
        for i in range(tables.theta.size):
            tables.log_psi[stage, i] = log_normalizer_step(tables.theta[i], tables.skips[stage] + 1)
        tables.prior_log_integral[stage] = log_integral(tables, stage, tables.prior_a[stage], tables.prior_c)


@kernel
def _exponent(tables, stage, a, c, i):
    return tables.log_theta[i] - a * tables.theta[i] - c * tables.log_psi[stage, i]


@kernel
def find_peak(tables, stage, a, c):
    """Return the node where the integrand θ exp(-a θ) ψ^-c is largest; it rises before and falls after."""
    last = tables.theta.size - 1
    guess = np.log(np.log1p(c / a) + 1.0 / (a + c))  # the mode for m = infinity, roughly
    low = min(max(np.int64((guess - LOWEST_LOG_THETA) / tables.step), 0), last - 1)
    high = low
    width = 4
    if _exponent(tables, stage, a, c, low + 1) > _exponent(tables, stage, a, c, low):
        while True:  # rises at low: look for a node to the right where it falls
            high = min(low + width, last)
            if high == last or _exponent(tables, stage, a, c, high) >= _exponent(
                tables, stage, a, c, high + 1
            ):
                break
            low = high
            width *= 4
    else:
        while True:
            low = max(high - width, 0)
            if low == 0 or _exponent(tables, stage, a, c, low + 1) > _exponent(tables, stage, a, c, low):
                break
            high = low
            width *= 4
    while high - low > 1:
        middle = (low + high) // 2
        if _exponent(tables, stage, a, c, middle + 1) > _exponent(tables, stage, a, c, middle):
            low = middle
        else:
            high = middle
    if _exponent(tables, stage, a, c, low) >= _exponent(tables, stage, a, c, high):
        return low
    return high


@kernel
def _stride(tables, stage, c, peak):
    """Return how many grid steps one step of the sum takes.

    0.7/√(1 + c) is always fine enough. Where the integrand is wider than that, as for skips that are nearly
    uniform, half of its deviation at the peak is too, as long as it also resolves the flank at θ = ln c,
    where ψ^-c leaves 1.
    """
    always = min(0.25, STEP_PER_DEVIATION / np.sqrt(1.0 + c))
    _, variance = displacement_moments(tables.theta[peak], tables.skips[stage] + 1)
    deviation = 1.0 / np.sqrt(1.0 + c * variance * tables.theta[peak] ** 2)
    widest = max(always, min(0.15, 0.5 * deviation, 0.5 / np.log(2.0 + c)))
    return max(np.int64(widest / tables.step), 1)


@kernel
def _fall(tables, stage, a, c, peak, i):
    """Return the exponent at node ``i`` less that at the peak, without cancellation of large numbers."""
    return (
        tables.log_theta[i]
        - tables.log_theta[peak]
        - a * (tables.theta[i] - tables.theta[peak])
        - c * (tables.log_psi[stage, i] - tables.log_psi[stage, peak])
    )


@kernel
def _is_flat(tables, stage, c, flat, i):
    """Say whether, below node ``i``, the exponent less u is linear in θ to 1e-7, and near its limit."""
    reach = tables.skips[stage] * tables.theta[i]
    return abs(flat) < NEARLY_FLAT and c * reach * reach < 2e-6


@kernel
def log_integral(tables, stage, a, c):
    """Return ln ∫ exp(-a θ) ψ_m(θ)^-c dθ = ln B̃eta(a, c + 1, m) for a stage of ``tables``."""
    peak = find_peak(tables, stage, a, c)
    stride = _stride(tables, stage, c, peak)
    top, top_psi, top_u = tables.theta[peak], tables.log_psi[stage, peak], tables.log_theta[peak]
    total = 1.0
    i = peak + stride
    while i < tables.theta.size:
        d = _fall(tables, stage, a, c, peak, i)
        if d < -DROP:
            break
        total += np.exp(d)
        i += stride
    at_zero = a * top + c * (top_psi - np.log(tables.skips[stage] + 1.0))
    i = peak
    while True:
        flat = c * (top_psi - tables.log_psi[stage, i]) - a * (tables.theta[i] - top) - at_zero
        if _is_flat(tables, stage, c, flat, i) or i - stride < 0:
            # Terms e^(u + limit) (1 + slope θ) at the nodes that are left, two geometric series.
            fade = np.exp(-stride * tables.step)
            tail = fade / (1.0 - fade) + flat * fade * fade / (1.0 - fade * fade)
            total += np.exp(tables.log_theta[i] - top_u + at_zero) * tail
            break
        i -= stride
        d = _fall(tables, stage, a, c, peak, i)
        if d < -DROP:
            break
        total += np.exp(d)
    return top_u - a * top - c * top_psi + np.log(total * stride * tables.step)


@kernel
def _add_node(tables, stage, i, log_weight, n, fades, psis, weights):
    fades[n] = tables.fade[i]
    psis[n] = tables.psi[stage, i]
    weights[n] = np.exp(log_weight)
    return weights[n]


@kernel
def predictive_nodes(tables, stage, a, c, most_added, most_removed, fades, psis, weights):
    """Write exp(-θ), ψ(θ) and normalized weights that stand for the density of θ.

    Returns how many there are and ln of the integral.

    Sums over them are right to 1e-8 also for densities with a raised by up to ``most_added`` or lowered by up
    to ``most_removed`` (one more list, or one less).
    """
    peak = find_peak(tables, stage, a, c)
    stride = _stride(tables, stage, c + 1.0, peak)
    top, top_psi, top_u = tables.theta[peak], tables.log_psi[stage, peak], tables.log_theta[peak]
    n = 0
    i = peak
    total = 0.0
    best = -np.inf
    while i < tables.theta.size and n < MAX_NODES - 1:
        d = _fall(tables, stage, a, c, peak, i)
        shifted = d + most_removed * (tables.theta[i] - top)
        best = max(best, shifted)
        if d < -DROP and shifted < best - DROP:
            break
        total += _add_node(tables, stage, i, d, n, fades, psis, weights)
        n += 1
        i += stride
    at_zero = a * top + c * (top_psi - np.log(tables.skips[stage] + 1.0))
    best = -np.inf
    i = peak
    while True:
        flat = c * (top_psi - tables.log_psi[stage, i]) - a * (tables.theta[i] - top) - at_zero
        if (
            i - stride < 0
            or n == MAX_NODES - 1
            or (_is_flat(tables, stage, c, flat, i) and most_added * tables.theta[i] < NEARLY_FLAT)
        ):
            fade = np.exp(-stride * tables.step)
            tail = fade / (1.0 - fade) + flat * fade * fade / (1.0 - fade * fade)
            fades[n] = 1.0 - tables.theta[i] * fade / (1.0 + fade)  # at the weights' mean of the θ left
            psis[n] = tables.psi[stage, i]
            weights[n] = np.exp(tables.log_theta[i] - top_u + at_zero) * tail
            total += weights[n]
            n += 1
            break
        i -= stride
        d = _fall(tables, stage, a, c, peak, i)
        shifted = d - most_added * (tables.theta[i] - top)
        best = max(best, shifted)
        if d < -DROP and shifted < best - DROP:
            break
        total += _add_node(tables, stage, i, d, n, fades, psis, weights)
        n += 1
    for q in range(n):
        weights[q] /= total
    return n, top_u - a * top - c * top_psi + np.log(total * stride * tables.step)


# Exact draws of θ.


@kernel
def theta_mode(a, c, m):
    """Return where exp(-a θ) ψ_m(θ)^-c is largest; 0 when it falls from the start."""
    if c * 0.5 * m <= a:
        return 0.0
    # The slope c E(skip) - a falls in θ: bracket from the answer for m = infinity, which is too high.
    low, high = 0.0, np.log1p(c / a)
    theta = high
    for _ in range(200):
        mean, variance = displacement_moments(theta, m + 1)
        slope = c * mean - a
        if slope > 0.0:
            low = theta
        else:
            high = theta
        if high - low <= 1e-14 * high:
            break
        step = theta + slope / (c * variance)
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - theta) <= 1e-13 * high:
            return step
        theta = step
    return theta


@kernel
def _log_density(theta, a, c, m):
    return -a * theta - c * log_normalizer_step(theta, m + 1)


@kernel
def draw_theta(stream, a, c, m):
    """Draw θ > 0 with density ∝ exp(-a θ) ψ_m(θ)^-c.

    The density is log-concave, so tangents one deviation from the mode and a level between them lie above it;
    what is drawn under this hat is accepted with the ratio of the two (about three tries in four).
    """
    mode = theta_mode(a, c, m)
    mean, variance = displacement_moments(mode, m + 1)
    slope = min(c * mean - a, 0.0)  # at the mode: below zero only where the mode is 0
    reach = 1.0 / np.sqrt(c * variance) if c * variance > 0.0 else np.inf
    if slope < 0.0:
        reach = min(reach, -1.0 / slope)
    top = _log_density(mode, a, c, m)
    right = mode + reach
    right_fall = top - _log_density(right, a, c, m)
    right_mean, _ = displacement_moments(right, m + 1)
    right_slope = a - c * right_mean  # > 0
    # Where the tangent comes down to the level of the mode.
    knee_right = right - right_fall / right_slope
    left = mode - reach
    if left > 0.0:
        left_fall = top - _log_density(left, a, c, m)
        left_mean, _ = displacement_moments(left, m + 1)
        left_slope = c * left_mean - a  # > 0
        knee_left = left + left_fall / left_slope
        mass_left = -np.expm1(-left_slope * knee_left) / left_slope
    else:
        left_slope, knee_left, mass_left = 1.0, 0.0, 0.0
    mass_right = 1.0 / right_slope
    mass_flat = knee_right - knee_left
    total = mass_left + mass_flat + mass_right
    while True:
        u = uniform(stream) * total
        if u < mass_flat:
            theta = knee_left + u
            hat = 0.0
        elif u < mass_flat + mass_right:
            over = exponential(stream) / right_slope
            theta = knee_right + over
            hat = -right_slope * over
        else:
            under = -np.log1p(uniform(stream) * np.expm1(-left_slope * knee_left)) / left_slope
            theta = knee_left - under
            hat = -left_slope * under
        if theta > 0.0 and -exponential(stream) <= _log_density(theta, a, c, m) - top - hat:
            return theta
