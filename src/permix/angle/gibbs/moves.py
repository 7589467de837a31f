"""The moves of chains of angle-based mixtures (section 4): rows, weights, concentrations and directions.

One iteration is a cycle of three. :class:`Allocation` draws the completions of incomplete rows given their
components, and the components of all rows given completions; :class:`Weights` the weights given those; and
the third the concentrations and directions, in which the modes of inference differ:

* :func:`by_quadrature`: κ from p(κ | Y) on a grid, then θ | κ, which is von Mises–Fisher: an exact draw;
* :func:`by_resampling`: κ out of candidates from a Gamma distribution, the present κ among them, by weight.
  Resampling with the present state among the candidates leaves the posterior invariant, however few
  candidates there are;
* :func:`by_variational_gamma`: κ from the variational Gamma, as the paper does: close to the posterior;
* :class:`MetropolisTilts`, under the exact or the balanced normalizer: Metropolis steps of κθ. Where exact
  sums are expensive, the steps are those of a cheaper posterior, and where they end is one proposal for the
  exact one (:class:`DelayedTilts`): an odd number of steps of two types in turn is the same forwards and
  backwards, so it is accepted by the ratio of the two posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from permix.angle.ascent import ENOUGH, updated
from permix.angle.components import AnglePrior, is_expensive
from permix.angle.direct import Evidence
from permix.angle.exact_jit import metropolis_tilts
from permix.angle.gibbs.state import AngleState
from permix.angle.parameters import AngleParameters
from permix.angle.quasi_newton import Summed, climbed
from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import sphere_moments
from permix.distributions.angle.concentration import LEAST, draw_from_grid, newton_concentration
from permix.distributions.angle.normalizers import Tables, log_sum, log_sum_and_gradient, work_space
from permix.kernels.random import log_dirichlet
from permix.moves.base import Cycle, Info, Move

# Candidates of κ in each iteration of SIR within Gibbs; the paper takes 100.
N_CANDIDATES = 100
# Nodes of the grid that a draw of κ comes from.
N_NODES = 256
# Metropolis steps of κθ in each iteration under the exact normalizer, and under the balanced one.
EXACT_STEPS, BALANCED_STEPS = 40, 12
# The same, an odd number, before one exact sum accepts or rejects them, where such sums are expensive.
PROPOSING_STEPS = 13
# Most steps to the balanced maximum, around which the cheaper posterior is made.
CENTER_STEPS = 50


def gibbs_sweep(settings: AngleParameters, n_items: int) -> Move:
    """Return one iteration of the sampler for so many items."""
    normalizer = settings.normalizer_for(n_items)
    parameters: Move
    if is_expensive(normalizer, n_items):
        parameters = DelayedTilts()
    elif normalizer != "vmf":
        parameters = MetropolisTilts(EXACT_STEPS if normalizer == "exact" else BALANCED_STEPS)
    else:
        parameters = ConcentrationMove(KAPPAS[settings.inference])
    return Cycle([Allocation(), Weights(), parameters])


class Allocation(Move):
    """Draw completions, then components of rows, and add up the scores by component."""

    def step(self, rng: np.random.Generator, state: AngleState) -> Info:
        state.sweep(rng)
        return Info("allocation", state.model.n_rows, state.model.n_rows)


class Weights(Move):
    """Draw the weights of the components given how many rows each has."""

    def step(self, rng: np.random.Generator, state: AngleState) -> Info:
        if len(state.weights) > 1:
            logs = np.empty(len(state.weights))
            log_dirichlet(rng, state.model.prior.pseudo_count + state.masses, logs)
            state.weights = np.exp(logs)
            state.weights /= state.weights.sum()
        return Info("weights", 1, 1)


class ConcentrationMove(Move):
    """Draw κ of every component under the von Mises–Fisher normalizer, then θ | κ, which is closed."""

    def __init__(self, kappa: Callable[[np.random.Generator, AngleState, Evidence, int], float]) -> None:
        self.kappa = kappa

    def step(self, rng: np.random.Generator, state: AngleState) -> Info:
        k, prior = len(state.weights), state.model.prior
        for g in range(k):
            evidence = Evidence.of(state.sums[:, g], state.masses[g], prior, state.model.data.scores, g)
            state.kappas[g] = self.kappa(rng, state, evidence, g)
            state.directions[g] = evidence.directions_given(state.kappas[g : g + 1], rng)[0]
        return Info("parameters", k, k)


def by_quadrature(rng: np.random.Generator, state: AngleState, evidence: Evidence, g: int) -> float:
    """Draw κ of component g from its posterior on a grid."""
    return draw_from_grid(rng, *evidence.grid(N_NODES)[:2])


def by_resampling(rng: np.random.Generator, state: AngleState, evidence: Evidence, g: int) -> float:
    """Draw κ of component g out of weighted candidates, the present one among them."""
    shape, rate = evidence.proposal()
    drawn = rng.gamma(shape, 1.0 / rate, size=N_CANDIDATES)
    candidates = np.maximum(np.append(drawn, state.kappas[g]), LEAST)
    log_weights = evidence.log_weights(candidates, shape, rate)
    below = np.cumsum(np.exp(log_weights - log_weights.max()))
    return float(candidates[np.searchsorted(below, rng.random() * below[-1], side="right")])


def by_variational_gamma(rng: np.random.Generator, state: AngleState, evidence: Evidence, g: int) -> float:
    """Draw κ of component g from its variational Gamma, as the paper does: chains go to an approximation.

    The move still counts as exact, so that chains may use it after burn-in: whoever asks for
    ``inference="vi"`` asks for the approximation.
    """
    model, here = state.model, slice(g, g + 1)
    sums, masses = state.sums[:, here], state.masses[here]
    q = updated(None, model.prior.of_component(g), sums, masses, model.data.scores)
    return float(np.clip(rng.gamma(q.shapes[0], 1.0 / q.rates[0]), LEAST, evidence.cap))


KAPPAS = {"quadrature": by_quadrature, "sir": by_resampling, "vi": by_variational_gamma}


class MetropolisTilts(Move):
    """Metropolis steps of κθ under a normalizer whose sums are cheap."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps

    def step(self, rng: np.random.Generator, state: AngleState) -> Info:
        accepted = 0
        for g in range(len(state.weights)):
            tilts = np.ascontiguousarray(state.tilts[g])
            accepted += _steps_of(rng, state, g, state.sums[:, g], tilts, state.tables, self.n_steps)
            state.move_to(g, tilts)
        return Info("parameters", self.n_steps * len(state.weights), accepted)


class DelayedTilts(Move):
    """Propose by Metropolis steps under a cheaper posterior; accept or reject by one exact sum.

    The cheaper posterior has the balanced sum, plus the difference to the exact one expanded to first order
    at the balanced maximum, which depends on the rankings alone.
    """

    def step(self, rng: np.random.Generator, state: AngleState) -> Info:
        scores, t = state.model.data.scores, state.model.data.n_items
        cheap, exact = work_space("balanced", t), state.tables
        accepted = 0
        for g in range(len(state.weights)):
            mass = state.masses[g]
            slope = np.zeros(t)
            if mass > 0.0:
                known = Summed(state.sums[:, g][None] / mass, np.ones(1), scores)
                found = climbed(slope[None], np.zeros(1), "balanced", known, CENTER_STEPS, ENOUGH)
                center = found[0].tilts[0]
                expected, balanced = (log_sum_and_gradient(center, scores, way)[1] for way in (exact, cheap))
                slope = expected - balanced
                slope -= slope.mean()  # the balanced sum is in the zero-sum plane up to rounding alone
            before = np.ascontiguousarray(state.tilts[g])
            after = before.copy()
            sums = state.sums[:, g] - mass * slope
            n_accepted = _steps_of(rng, state, g, sums, after, cheap, PROPOSING_STEPS)
            gain = log_sum("exact", after, scores) - log_sum("balanced", after, scores)
            gain -= state.log_sums[g] - log_sum("balanced", before, scores)
            gain -= slope @ (after - before)
            if decided(rng, -mass * gain):
                accepted += n_accepted
                state.move_to(g, after)
        return Info("parameters", PROPOSING_STEPS * len(state.weights), accepted)


def _steps_of(
    rng: np.random.Generator, state: AngleState, g: int, sums: Array, tilts: Array, tables: Tables, n: int
) -> int:
    known = (state.masses[g], np.ascontiguousarray(sums), state.model.prior.pulls[g], state.model.prior)
    return metropolis_steps(rng, *known, state.model.data.scores, tilts, tables, n)


def metropolis_steps(
    rng: np.random.Generator,
    mass: float,
    sums: Array,
    pull: Array,
    prior: AnglePrior,
    scores: Array,
    tilts: Array,
    tables: Tables,
    n_steps: int,
) -> int:
    """Move ``tilts`` by Metropolis steps given Σ y and β₀ m₀; return how many were accepted."""
    t, length = len(sums), float(np.linalg.norm(sums))
    order = 0.5 * (t - 3.0)
    kappa = max(newton_concentration(order, min(length / max(mass, 1.0), 0.98)), 1.0)
    _, ratio, slope = sphere_moments(order, kappa)
    width = 1.2 * (t - 1.0) ** (-1.0 / 6.0)
    deviation = 1.0 / sqrt(slope * (mass + 1.0))  # of κ under a von Mises–Fisher
    widths = (width * sqrt(kappa / (ratio * (mass + 1.0))), width * deviation, 2.4 / kappa * deviation)
    if length > 1e-9 * (1.0 + mass):
        mean = sums / length
    else:  # the rankings cancel: any direction of the plane
        mean = np.full(t, -sqrt(1.0 - 1.0 / t) / (t - 1.0))
        mean[0] = sqrt(1.0 - 1.0 / t)
    known = (mass, sums, pull, prior.strength, prior.shape, prior.rate, scores, *tables)
    return int(metropolis_tilts(rng, known, tilts, mean, widths, n_steps))


def decided(rng: np.random.Generator, log_ratio: float) -> bool:
    """Accept with probability min(1, exp(log_ratio))."""
    return bool(log_ratio >= -rng.standard_exponential())
