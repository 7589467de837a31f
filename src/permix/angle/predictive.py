"""The density of a new ranking under a fitted mixture of angle-based models, parameters integrated out."""

from __future__ import annotations

from math import lgamma
from typing import Literal, NamedTuple, get_args

import numpy as np

from permix.angle.ascent import VariationalPosterior
from permix.angle.components import AngleComponents, cap_of
from permix.angle.data import AngleData
from permix.angle.direct import Evidence
from permix.angle.rows import row_log_probabilities
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle.bessel_jit import log_sphere_moment
from permix.distributions.angle.concentration import LEAST
from permix.distributions.angle.gamma_jit import gamma_nodes
from permix.distributions.angle.scores import draw_direction, standard_scores
from permix.errors import Argument, DataError
from permix.estimators.checks import Choice
from permix.runtime.seeds import RandomState

# Predictive densities are averaged over so many draws, evenly spaced.
PREDICTIVE_DRAWS = 200
# Draws out of a variational posterior; of any, at most so many numbers are kept (draws x components x items).
VARIATIONAL_DRAWS = 1000
MOST_NUMBERS = 20_000_000


class AnglePosteriorDraws(NamedTuple):
    """Draws of the parameters over chain and draw: (chain, draw, K), and of directions (…, items)."""

    weights: Array
    concentrations: Array
    directions: Array

    @classmethod
    def out_of(cls, q: VariationalPosterior) -> AnglePosteriorDraws:
        """Draw from a variational posterior, with a fixed seed."""
        rng = np.random.default_rng(0)
        k, t = q.directions.shape
        n = int(np.clip(MOST_NUMBERS // (k * t), 50, VARIATIONAL_DRAWS))
        weights = rng.dirichlet(q.counts, size=n) if k > 1 else np.ones((n, 1))
        scores = standard_scores(t)
        caps = [cap_of(direction, scores) for direction in q.directions]
        kappas = np.clip(rng.gamma(q.shapes, 1.0 / q.rates, size=(n, k)), LEAST, caps)
        directions = [
            [draw_direction(rng, direction, kappa) for kappa in lengths]
            for direction, lengths in zip(q.directions, (q.lengths * kappas).T, strict=True)
        ]
        return cls(weights[None], kappas[None], np.array(directions).transpose(1, 0, 2)[None])

    def evenly_spaced(self, n: int) -> tuple[Array, Array, Array]:
        """Return about n of the draws of all chains: weights, concentrations, directions."""
        weights, kappas, directions = (value.reshape(-1, *value.shape[2:]) for value in self)
        rows = np.unique(np.linspace(0, len(weights) - 1, n).round().astype(int))
        return weights[rows], kappas[rows], directions[rows]


Method = Literal["auto", "plug-in", "quadrature", "second-order"]


class DirectionPosterior(NamedTuple):
    """A component whose direction given κ is von Mises–Fisher: θ is integrated in closed form, κ on nodes.

    ``shape`` and ``rate`` are those of the Gamma distribution of κ, or of the nearest one.
    """

    weight: float
    length: float
    direction: Array
    shape: float
    rate: float
    nodes: Array
    probabilities: Array

    @classmethod
    def of_variational(cls, q: VariationalPosterior) -> list[DirectionPosterior]:
        """Return those of a variational posterior."""
        found = []
        for known in zip(q.mean_weights, q.lengths, q.directions, q.shapes, q.rates, strict=True):
            nodes, weights = gamma_nodes(*known[3:])
            found.append(cls(*known, nodes, weights / weights.sum()))
        return found

    @classmethod
    def of_evidence(cls, evidence: Evidence) -> list[DirectionPosterior]:
        """Return that of one component by quadrature."""
        nodes, probabilities, _ = evidence.grid(257)
        shape, rate = evidence.posterior.nearest_gamma(*evidence.posterior.laplace_gamma(), 25)
        return [cls(1.0, evidence.length, evidence.direction, shape, rate, nodes, probabilities)]


class Predictive(NamedTuple):
    """The density of a new ranking, parameters integrated out.

    In closed form, or averaged over draws; with neither, and for rows that are not full, at the point
    estimates.
    """

    components: AngleComponents
    closed: list[DirectionPosterior] | None
    draws: AnglePosteriorDraws | None

    def log_densities(
        self, rankings: Rankings, method: Method = "auto", random_state: RandomState = 0
    ) -> tuple[Array, Array]:
        """Return ln p(row | data) of every row and its Monte Carlo error.

        Rows that are not full have that at the point estimates, whose error is 0 where its sum is exact.
        """
        Choice(*get_args(Method))("method", method)
        if method == "quadrature" and self.closed is None and self.draws is None:
            plug_in = Argument("method", "plug-in")
            raise DataError("EM has no posterior to integrate over; ", plug_in, " is what there is")
        if method == "second-order" and self.closed is None:
            vi, quadrature = Argument("inference", "vi"), Argument("inference", "quadrature")
            expands = " expands the posterior of one concentration per group, which "
            have = " with one group and full rankings, have"
            raise DataError(Argument("method", method), expands, vi, ", and ", quadrature, have)
        values, errors = np.empty(len(rankings)), np.zeros(len(rankings))
        full = rankings.lengths == rankings.n_items
        if not full.all():
            found = row_log_probabilities(self.components, rankings[~full], random_state=random_state)
            values[~full], errors[~full] = found
        if full.any():
            values[full] = self._full(AngleData(rankings if full.all() else rankings[full]), method)
        return values, errors

    def _full(self, data: AngleData, method: Method) -> Array:
        densities = np.empty(len(data.rankings))
        if method == "plug-in" or (self.closed is None and self.draws is None):
            data.posterior(self.components.tilts, self.components.offsets, densities=densities)
            return densities
        if self.closed is not None:
            return self._closed(data, self.closed, second_order=method == "second-order")
        assert self.draws is not None
        total = np.full(len(densities), -np.inf)
        weights, kappas, directions = self.draws.evenly_spaced(PREDICTIVE_DRAWS)
        for parts in zip(weights, directions, kappas, strict=True):
            drawn = AngleComponents(data.items, *parts, self.components.normalizer)
            data.posterior(drawn.tilts, drawn.offsets, densities=densities)
            total = np.logaddexp(total, densities)
        return total - np.log(len(weights))

    def _closed(self, data: AngleData, posteriors: list[DirectionPosterior], *, second_order: bool) -> Array:
        total = np.full(len(data.rankings), -np.inf)
        for known in posteriors:
            cosines = np.empty(len(data.rankings))
            data.posterior(known.direction[None, :], np.zeros(1), densities=cosines)
            # η = ‖y + β m‖ (section 3.2).
            eta = np.sqrt(1.0 + known.length**2 + 2.0 * known.length * cosines)
            if second_order:
                from permix.angle.published import second_order_density

                value = second_order_density(data.n_items, eta, known.length, known.shape, known.rate)
            else:
                value = integrated_density(data.n_items, eta, known.length, known.nodes, known.probabilities)
            total = np.logaddexp(total, np.log(known.weight) + value)
        return total


def integrated_density(n_items: int, eta: Array, length: float, nodes: Array, probabilities: Array) -> Array:
    """Return ln ∫ C(κ) exp(M(ηκ) - M(βκ)) q(κ) dκ of rows with η = ‖y + β m‖ (equation 13).

    The integral over θ of C(κ) exp(κ θ'y) under von Mises–Fisher(m, βκ) is closed (equation 25).
    """
    order = 0.5 * (n_items - 3.0)
    total = np.full(len(eta), -np.inf)
    for node, probability in zip(nodes, probabilities, strict=True):
        if probability > 0.0:
            value = np.log(probability) - log_sphere_moment(order, np.array([1.0, length]) * node).sum()
            total = np.logaddexp(total, value + log_sphere_moment(order, eta * node))
    return total - lgamma(n_items + 1.0)
