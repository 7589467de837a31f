"""What a fitted mixture of angle-based models says about rankings, seen or new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from permix.angle.components import AngleComponents, cap_of
from permix.angle.data import AngleData
from permix.angle.direct import Evidence
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle import concentration_jit as kernels
from permix.distributions.angle.angle_jit import standard_scores
from permix.distributions.angle.bessel_jit import bessel, log_sphere_moment
from permix.distributions.angle.completions import log_compatible_sums
from permix.errors import DataError

if TYPE_CHECKING:
    from permix.angle.fit import AngleFit

# Predictive densities are averaged over so many draws, evenly spaced.
PREDICTIVE_DRAWS = 200
# Draws out of a variational posterior, of at most so many numbers.
VARIATIONAL_DRAWS = 1000
MOST_NUMBERS = 20_000_000


def joint_log_probabilities(
    components: AngleComponents, rankings: Rankings, *, n_particles: int = 64, random_state: Any = 0
) -> tuple[Array, Array]:
    """Return ln P(component, what the row says) and its Monte Carlo error (rows, K)."""
    sums, errors = log_compatible_sums(
        rankings, components.tilts, n_particles=n_particles, random_state=random_state
    )
    return sums + components.offsets, errors


def row_probabilities(components: AngleComponents, rankings: Rankings, random_state: Any = 0) -> Array:
    """Return P(component | what the row says) (rows, K) at the components' parameters.

    Full rows and rows with few unlisted items have exact sums. For the rest, components and completions are
    drawn in turn, and the probabilities given the completions averaged: that needs no sum over rankings.
    """
    from permix.distributions.angle.completions import is_cheap

    out = np.ones((len(rankings), components.n_components))
    if components.n_components == 1:
        return out
    cheap = is_cheap(rankings)
    rows = np.flatnonzero(cheap)
    if len(rows):
        out[rows] = normalised(joint_log_probabilities(components, rankings[rows])[0])[0]
    rows = np.flatnonzero(~cheap)
    if len(rows):
        from permix.angle.chain import shares_by_sweeps

        out[rows] = shares_by_sweeps(components, rankings[rows], random_state)
    return out


def normalised(joint: Array) -> tuple[Array, Array]:
    """Return P(component | row) and ln P(row) of joint log-probabilities (rows, K)."""
    largest = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - largest)
    total = shares.sum(axis=1, keepdims=True)
    return shares / total, (largest + np.log(total))[:, 0]


@dataclass(frozen=True, eq=False)
class AnglePosteriorDraws:
    """Draws of the parameters over chain and draw.

    Attributes
    ----------
    weights, concentrations : ndarray (chain, draw, K)
    directions : ndarray (chain, draw, K, items)
    """

    weights: Array
    concentrations: Array
    directions: Array

    @classmethod
    def of(cls, fit: AngleFit) -> AnglePosteriorDraws | None:
        """Return the draws of a fit; out of q for variational inference, with a fixed seed."""
        if fit.draws is not None:
            arrays = fit.draws.arrays
            return cls(arrays["weights"], arrays["concentrations"], arrays["directions"])
        q = fit.variational
        if q is None:
            return None
        rng = np.random.default_rng(0)
        k, t = q.directions.shape
        n = int(np.clip(MOST_NUMBERS // (k * t), 50, VARIATIONAL_DRAWS))
        weights = rng.dirichlet(q.counts, size=n) if k > 1 else np.ones((n, 1))
        scores = standard_scores(t)
        caps = [cap_of(direction, scores) for direction in q.directions]
        kappas = np.clip(rng.gamma(q.shapes, 1.0 / q.rates, size=(n, k)), kernels.LEAST, caps)
        directions = np.empty((n, k, t))
        from permix.distributions.angle.angle_jit import draw_direction

        for g in range(k):
            for row in range(n):
                draw_direction(rng, q.directions[g], q.lengths[g] * kappas[row, g], directions[row, g])
        return cls(weights[None], kappas[None], directions[None])

    def evenly_spaced(self, n: int) -> tuple[Array, Array, Array]:
        """Return about n of the draws of all chains: weights, concentrations, directions."""
        flat = [
            value.reshape(-1, *value.shape[2:])
            for value in (self.weights, self.concentrations, self.directions)
        ]
        rows = np.unique(np.linspace(0, len(flat[0]) - 1, n).round().astype(int))
        return flat[0][rows], flat[1][rows], flat[2][rows]


Method = Literal["auto", "plug-in", "quadrature", "second-order"]
METHODS = ("auto", "plug-in", "quadrature", "second-order")


@dataclass(frozen=True, eq=False)
class Predictive:
    """The density of a new ranking, parameters integrated out.

    Attributes
    ----------
    components : AngleComponents
        Point estimates, for rows that are not full and where nothing else is known.
    laws : list of (weight, β, m, shape, rate, nodes, probabilities) or None
        Components whose direction given κ is von Mises–Fisher: θ is integrated in closed form, κ on nodes.
    draws : AnglePosteriorDraws or None
    """

    components: AngleComponents
    laws: list[tuple[float, float, Array, float, float, Array, Array]] | None
    draws: AnglePosteriorDraws | None

    @classmethod
    def of(cls, fit: AngleFit) -> Predictive:
        """Prepare the predictive density of a fit."""
        if fit.variational is not None:
            q = fit.variational
            laws = []
            for g in range(q.n_components):
                nodes, weights = kernels.gamma_nodes(q.shapes[g], q.rates[g])
                laws.append(
                    (
                        float(q.mean_weights[g]),
                        float(q.lengths[g]),
                        q.directions[g],
                        float(q.shapes[g]),
                        float(q.rates[g]),
                        nodes,
                        weights / weights.sum(),
                    )
                )
            return cls(fit.components, laws, None)
        if fit.evidence is not None:
            evidence: Evidence = fit.evidence
            nodes, probabilities, _ = evidence.grid(257)
            shape, rate = kernels.laplace_gamma(*evidence.known)
            shape, rate = kernels.nearest_gamma(*evidence.known, shape, rate, 25)
            law = (1.0, evidence.length, evidence.direction, shape, rate, nodes, probabilities)
            return cls(fit.components, [law], None)
        return cls(fit.components, None, fit.posterior)

    def log_densities(self, rankings: Rankings, method: Method = "auto") -> Array:
        """Return ln p(row | data) for every row; rows that are not full at the point estimates."""
        if method not in METHODS:
            raise DataError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}")
        if method == "quadrature" and self.laws is None and self.draws is None:
            raise DataError("EM has no posterior to integrate over; method='plug-in' is what there is")
        if method == "second-order" and self.laws is None:
            raise DataError(
                "method='second-order' expands a law of one concentration per component, which "
                "inference='vi', and 'quadrature' with one component and full rankings, have"
            )
        out = np.empty(len(rankings))
        full = rankings.lengths == rankings.n_items
        rows = np.flatnonzero(~full)
        if len(rows):
            out[rows] = normalised(joint_log_probabilities(self.components, rankings[rows])[0])[1]
        rows = np.flatnonzero(full)
        if len(rows):
            data = AngleData.of(rankings if len(rows) == len(rankings) else rankings[rows])
            out[rows] = self._full(data, method)
        return out

    def _full(self, data: AngleData, method: Method) -> Array:
        densities = np.empty(len(data.rankings))
        if method == "plug-in" or (self.laws is None and self.draws is None):
            data.weighed(self.components.tilts, self.components.offsets, densities=densities)
            return densities
        if self.laws is not None:
            return self._closed(data, second_order=method == "second-order")
        assert self.draws is not None
        total = np.full(len(densities), -np.inf)
        weights, kappas, directions = self.draws.evenly_spaced(PREDICTIVE_DRAWS)
        for row in range(len(weights)):
            drawn = AngleComponents(
                data.items, weights[row], directions[row], kappas[row], self.components.normalizer
            )
            data.weighed(drawn.tilts, drawn.offsets, densities=densities)
            total = np.logaddexp(total, densities)
        return total - np.log(len(weights))

    def _closed(self, data: AngleData, *, second_order: bool) -> Array:
        assert self.laws is not None
        total = np.full(len(data.rankings), -np.inf)
        for weight, length, direction, shape, rate, nodes, probabilities in self.laws:
            cosines = np.empty(len(data.rankings))
            data.weighed(direction[None, :], np.zeros(1), densities=cosines)
            # η = ‖y + β m‖ (section 3.2).
            eta = np.sqrt(1.0 + length * length + 2.0 * length * cosines)
            if second_order:
                value = second_order_density(data.n_items, eta, length, shape, rate)
            else:
                value = np.empty(len(eta))
                kernels_predictive(data.n_items, eta, length, nodes, probabilities, value)
            total = np.logaddexp(total, np.log(weight) + value)
        return total


def kernels_predictive(
    n_items: int, eta: Array, length: float, nodes: Array, probabilities: Array, out: Array
) -> None:
    """Fill ``out`` with ln ∫ C(κ) V(βκ) / V(ηκ) q(κ) dκ (equation 13 with θ integrated out)."""
    from permix.angle.predictive_jit import predictive_rows

    predictive_rows(float(n_items), eta, length, nodes, probabilities, out)


def second_order_density(n_items: int, eta: Array, length: float, shape: float, rate: float) -> Array:
    """Return ln q(y | Y) by the expansion of ln l(κ) in κ and ln κ about κ̄ (section 3.2, equations 25 to 28).

    With ln l(κ) + ν ln κ = M(ηκ) - M(βκ) - M(κ) up to constants, the expansion r, s of the paper follows from
    first and second derivatives of the right-hand side.
    """
    from math import lgamma, log

    order = 0.5 * (n_items - 3.0)
    kappa = kernels.gamma_mode(shape, rate)
    out = np.empty(len(eta))
    for row, e in enumerate(eta):
        value = -log_sphere_moment(order, kappa) - log_sphere_moment(order, length * kappa)
        value += log_sphere_moment(order, e * kappa)
        _, a1, s1 = bessel(order, e * kappa)
        _, a2, s2 = bessel(order, length * kappa)
        _, a3, s3 = bessel(order, kappa)
        first = e * a1 - length * a2 - a3
        second = e * e * s1 - length * length * s2 - s3
        # value(κ) ≈ value - r (κ - κ̄) + s (ln κ - ln κ̄): equal first and second derivatives at κ̄.
        s = -second * kappa * kappa
        r = s / kappa - first
        integral = lgamma(shape + s) - lgamma(shape) + shape * log(rate) - (shape + s) * log(rate + r)
        out[row] = -lgamma(n_items + 1.0) + value + r * kappa - s * log(kappa) + integral
    return out
