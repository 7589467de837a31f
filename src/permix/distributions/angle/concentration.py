"""Concentration of angle-based models under the von Mises–Fisher normalizer: estimates, bounds, posterior.

A cluster of N rankings is seen through β m = β₀ m₀ + Σ y (length β, unit direction m). With M(x) = ln E exp(x
u₁) over the unit sphere of the zero-sum plane (``log_sphere_moment`` of order ν = (t-3)/2), the direction
given κ is von Mises–Fisher(m, βκ), and

    ln p(κ | Y) = (a₀-1) ln κ - b₀ κ + M(βκ) - M(β₀κ) - N M(κ) + constant.

The paper counts the direction in t dimensions, with Bessel functions of order (t-2)/2 for it; but y sums to
zero, so the component of θ along (1, …, 1) is seen by nobody, and probabilities would not sum to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import log_sphere_moment, sphere_moments
from permix.distributions.angle.gamma_jit import NEGLIGIBLE, nearest_gamma

LEAST, MOST = 1e-12, 1e12
_SIXTEENTHS = np.arange(1.0, 17.0)[:, None] / 16.0
# Moments without compiling anything: slower by a factor of 50, so for a few of them.
INTERPRETED: Callable[..., Any] = sphere_moments.py_func


def newton_concentration(order: float, r: float, moments: Callable[..., Any] = sphere_moments) -> float:
    """Solve I_{ν+1}(κ)/I_ν(κ) = r for κ, 0 <= r < 1: Banerjee's start, then Newton steps (equation 3)."""
    if not r > 0.0:
        return 0.0
    if r >= 1.0:
        return np.inf
    p = 2.0 * order + 2.0
    kappa = r * (p - r * r) / (1.0 - r * r)
    for _ in range(100):
        _, ratio, slope = moments(order, kappa)
        # The ratio is concave in κ, so a step from the left cannot overshoot far; never below a tenth.
        following = max(kappa - (ratio - r) / slope, 0.1 * kappa)
        if abs(following - kappa) <= 1e-14 * kappa:
            return float(following)
        kappa = following
    return float(kappa)


def concentration_cap(n_items: int, reach: float, moments: Callable[..., Any] = sphere_moments) -> float:
    """Return the largest κ at which the approximate normalizer gives no ranking a probability above one.

    ``reach`` is the largest θ'y of all rankings. f(κ) = κ reach - ln t! - M(κ) is concave and negative at 0;
    where its maximum is not positive there is no limit (infinity).
    """
    order, log_factorial = 0.5 * (n_items - 3.0), math.lgamma(n_items + 1.0)

    def is_below(kappa: float) -> bool:
        return bool(kappa * reach - log_factorial - moments(order, kappa)[0] <= 0.0)

    low, high = 0.0, newton_concentration(order, min(reach, 1.0 - 1e-12), moments)
    if is_below(high):
        return np.inf
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low


def draw_from_grid(rng: np.random.Generator, nodes: Array, probabilities: Array) -> float:
    """Draw κ: a node by its probability, then evenly within half a step in ln κ.

    With some hundred nodes over the whole posterior the steps are far below its width.
    """
    last = len(nodes) - 1
    chosen = min(int(np.searchsorted(np.cumsum(probabilities), rng.random(), side="right")), last)
    step = math.log(nodes[-1] / nodes[0]) / last
    low = 0.0 if chosen == 0 else -0.5
    high = 0.0 if chosen == last else 0.5
    return float(nodes[chosen] * math.exp(step * (low + (high - low) * rng.random())))


class ConcentrationPosterior(NamedTuple):
    """p(κ | Y): the order ν of the moments, N, β and the prior β₀, a₀, b₀."""

    order: float
    n: float
    length: float
    prior_length: float
    prior_shape: float
    prior_rate: float

    def gain(self, kappas: Any) -> Any:
        """Return g(κ) = M(βκ) - M(β₀κ) - N M(κ), what the rankings say."""
        value = log_sphere_moment(self.order, self.length * kappas)
        value = value - self.n * log_sphere_moment(self.order, kappas)
        if self.prior_length:
            value = value - log_sphere_moment(self.order, self.prior_length * kappas)
        return value

    def log_density(self, kappas: Any) -> Any:
        """Return ln p(κ | Y) as a density of ln κ, without its constant."""
        return self.prior_shape * np.log(kappas) - self.prior_rate * kappas + self.gain(kappas)

    def slopes(self, kappa: float) -> tuple[float, float]:
        """Return the first and the second derivative of :meth:`log_density` in ln κ."""
        first = second = -self.prior_rate * kappa
        for weight, length in ((1.0, self.length), (-self.n, 1.0), (-1.0, self.prior_length)):
            if length:
                x = length * kappa
                _, ratio, slope = sphere_moments(self.order, x)
                first += weight * x * ratio
                second += weight * x * (ratio + x * slope)
        return first + self.prior_shape, second

    def mode(self, cap: float = np.inf) -> float:
        """Return the mode of ln κ, from ``LEAST`` to the cap or ``MOST``: Newton's steps between bounds."""
        low, high = math.log(LEAST), math.log(min(cap, MOST))
        if self.slopes(math.exp(high))[0] >= 0.0:
            return math.exp(high)
        r = min(self.length / max(self.n, 1.0), 0.999)
        u = math.log(max(r * (2.0 * self.order + 2.0 - r * r) / (1.0 - r * r), LEAST))
        while high - low >= 1e-10:
            u = u if low < u < high else 0.5 * (low + high)
            first, second = self.slopes(math.exp(u))
            low, high = (u, high) if first > 0.0 else (low, u)
            step = -first / second if second < 0.0 else np.inf
            if abs(step) < 1e-12:
                return math.exp(u)
            u += step
        return math.exp(0.5 * (low + high))

    def grid(self, cap: float, n_nodes: int) -> tuple[Array, Array, float]:
        """Return nodes κ, equally spaced in ln κ, their probabilities and ln of the integral over ln κ.

        The nodes span all that is within e^-37 of the mode, up to ``cap``.
        """
        mode = math.log(self.mode(cap))
        top = float(self.log_density(math.exp(mode)))
        room = np.array([mode - math.log(LEAST), math.log(min(cap, MOST)) - mode])
        sides = np.array([-1.0, 1.0])
        # Outwards in steps that double until negligible on both sides, then twice within the last of them.
        outer = np.minimum(1e-3 * 2.0 ** np.arange(17)[:, None], room)
        for _ in range(3):
            far = self.log_density(np.exp(mode + sides * outer)) < top - NEGLIGIBLE
            far[-1] = True
            last = far.argmax(axis=0)
            high = outer[last, (0, 1)]
            low = outer[last - 1, (0, 1)] * (last > 0)
            outer = low + (high - low) * _SIXTEENTHS
        ends = mode + sides * high
        nodes = np.exp(np.linspace(ends[0], ends[1], n_nodes))
        weights = np.exp(self.log_density(nodes) - top)
        weights[[0, -1]] *= 0.5  # matters where the cap cuts
        total = weights.sum()
        log_integral = top + math.log(total * (ends[1] - ends[0]) / (n_nodes - 1.0))
        return nodes, weights / total, log_integral

    def laplace_gamma(self) -> tuple[float, float]:
        """Return the Gamma distribution with the mode and the curvature of p(κ | Y) in ln κ."""
        mode = self.mode()
        shape = max(-self.slopes(mode)[1], 0.5 * min(self.prior_shape, 1.0))
        return shape, shape / mode

    def nearest_gamma(self, shape: float, rate: float, max_iter: int) -> tuple[float, float]:
        """Return the Gamma nearest to p(κ | Y), from another one in up to so many steps."""
        return nearest_gamma(*self, shape, rate, max_iter)
