"""EM and variational inference for mixtures of angle-based models on full rankings: one climb from one start.

Both repeat one pass over the data. A *point* is where a climb stands: it says what a pass
starts from, and what to make of its sums:

* :class:`Likelihood`: maximum likelihood, equations 2 and 3;
* :class:`Variational`: the posterior q, algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from permix.angle.components import EMPTY, AngleComponents, AnglePrior, UsedNormalizer, cap_of
from permix.angle.data import AngleData
from permix.angle.maximum import maximize
from permix.data.labels import Array
from permix.distributions.angle.concentration import ConcentrationPosterior, newton_concentration
from permix.distributions.angle.gamma_jit import gamma_divergence, gamma_expectations
from permix.distributions.angle.normalizers import work_space

# Inner steps of an exact M-step: EM needs progress, not the maximum; the next pass goes on from there.
EXACT_STEPS = 25


class VariationalPosterior(NamedTuple):
    """q(κ, θ, τ): κ_k ~ Gamma(a_k, b_k), θ_k | κ_k ~ von Mises–Fisher(m_k, β_k κ_k), τ ~ Dirichlet(d)."""

    shapes: Array  # a
    rates: Array  # b
    lengths: Array  # β
    directions: Array  # m (K, items)
    counts: Array  # d
    guarded: Array  # where the rate was raised, since the normalizer would give probabilities above one

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.shapes)

    def taken(self, order: Array) -> VariationalPosterior:
        """Return it with its components in another order."""
        return VariationalPosterior(*(value[order] for value in self))

    @property
    def mean_concentrations(self) -> Array:
        """E[κ_k] = a_k / b_k."""
        return np.asarray(self.shapes / self.rates)

    @property
    def mean_weights(self) -> Array:
        """E[τ_k]."""
        return np.asarray(self.counts / self.counts.sum())


class Run(NamedTuple):
    """Where a climb ended: parameters or posterior, ln P(data) or the evidence bound, and it by pass."""

    point: Any
    objective: float
    history: list[float]
    converged: bool = False
    interrupted: bool = False


class Likelihood:
    """Maximum likelihood: weights, directions, concentrations."""

    def __init__(
        self,
        weights: Array,
        directions: Array,
        concentrations: Array,
        normalizer: UsedNormalizer,
        data: AngleData,
        guarded: Array | None = None,
    ) -> None:
        self.components = AngleComponents(data.items, weights, directions, concentrations, normalizer)
        self.guarded = np.zeros(len(weights), dtype=bool) if guarded is None else guarded
        self.tilts, self.offsets = self.components.tilts, self.components.offsets

    def objective(self, total: float) -> float:
        """Return ln P(data) given Σ ln density."""
        return total

    def following(self, sums: Array, masses: Array, data: AngleData) -> Likelihood:
        """Return the maximum of the likelihood given the sums of one pass: the M-step."""
        k, t = self.tilts.shape
        directions, kappas = self.components.directions.copy(), self.components.concentrations.copy()
        guarded = np.zeros(k, dtype=bool)
        in_tilts = self.components.normalizer != "vmf"
        tables = work_space(self.components.normalizer, t)
        for g in range(k):
            if masses[g] < EMPTY:
                continue
            mean = sums[:, g] / masses[g]
            if in_tilts:
                tilts, _, _ = maximize(mean, data.scores, self.tilts[g], tables, EXACT_STEPS)
                tilts = tilts - tilts.mean()
                kappas[g] = np.linalg.norm(tilts)
                if kappas[g] > 0.0:
                    directions[g] = tilts / kappas[g]
                continue
            r = float(np.linalg.norm(mean))
            if r == 0.0:
                kappas[g] = 0.0
                continue
            directions[g] = mean / r
            cap = cap_of(directions[g], data.scores)
            kappas[g] = min(newton_concentration(0.5 * (t - 3.0), min(r, 1.0 - 1e-12)), cap)
            guarded[g] = kappas[g] == cap
        return Likelihood(
            masses / masses.sum(), directions, kappas, self.components.normalizer, data, guarded
        )


class Variational:
    """The variational posterior under the von Mises–Fisher normalizer."""

    def __init__(self, posterior: VariationalPosterior, prior: AnglePrior) -> None:
        from scipy.special import gammaln, psi

        self.posterior, self.prior = posterior, prior
        q, order = posterior, 0.5 * (posterior.directions.shape[1] - 3.0)
        k = q.n_components
        each = list(zip(q.lengths, q.shapes, q.rates, strict=True))
        parts = [gamma_expectations(order, length, prior.strength, a, b) for length, a, b in each]
        pull, moment, gain = np.array(parts).T
        # E[κ θ] has length E[κ A(βκ)]; the paper's a/b would be that of a direction known for sure.
        self.tilts = pull[:, None] * q.directions
        log_weights = psi(q.counts) - psi(q.counts.sum())
        self.offsets = log_weights - gammaln(posterior.directions.shape[1] + 1.0) - moment
        divergence = sum(gamma_divergence(q.shapes[g], q.rates[g], prior.shape, prior.rate) for g in range(k))
        pulled = q.lengths - np.einsum("kt,kt->k", prior.pulls, q.directions)
        self.divergence = float(divergence + (pull * pulled - gain).sum())
        if k > 1:
            d0 = np.full(k, prior.pseudo_count)
            self.divergence += float(
                gammaln(q.counts.sum())
                - gammaln(d0.sum())
                - (gammaln(q.counts) - gammaln(d0)).sum()
                + ((q.counts - d0) * log_weights).sum()
            )

    @property
    def guarded(self) -> Array:
        """Components whose concentration was held back."""
        return self.posterior.guarded

    def objective(self, total: float) -> float:
        """Return the evidence lower bound (equation 14) given Σ ln Σ_k exp(ρ), expectations by quadrature."""
        return total - self.divergence

    def following(self, sums: Array, masses: Array, data: AngleData) -> Variational:
        """Return the posterior given the sums of one pass (equations 15 and 19 to 22)."""
        return Variational(updated(self.posterior, self.prior, sums, masses, data.scores), self.prior)


def updated(
    before: VariationalPosterior | None, prior: AnglePrior, sums: Array, masses: Array, scores: Array
) -> VariationalPosterior:
    """Return q given Σ p y (items, K) and Σ p (K,).

    The Gamma of each κ maximizes the evidence bound itself, so that the bound never falls; see
    :func:`permix.angle.published.published_gamma` for what the paper has in its place.
    """
    t, k = sums.shape
    order = 0.5 * (t - 3.0)
    shapes, rates, lengths = np.empty(k), np.empty(k), np.empty(k)
    directions, guarded = np.empty((k, t)), np.zeros(k, dtype=bool)
    known = (prior.strength, prior.shape, prior.rate)
    for g in range(k):
        vector = sums[:, g] + prior.pulls[g]
        lengths[g] = np.linalg.norm(vector)
        if lengths[g] > 0.0:
            directions[g] = vector / lengths[g]
        elif before is not None:
            directions[g] = before.directions[g]
        else:
            directions[g] = scores  # of length one, too
        if prior.bound == "tight":
            posterior = ConcentrationPosterior(order, masses[g], lengths[g], *known)
            if before is None or before.guarded[g] or masses[g] < 1.0:
                a, b = posterior.laplace_gamma()
                n_steps = 25
            else:  # the next pass goes on
                a, b, n_steps = before.shapes[g], before.rates[g], 2
            shapes[g], rates[g] = posterior.nearest_gamma(a, b, n_steps)
        else:
            from permix.angle.published import published_gamma

            shapes[g], rates[g] = published_gamma(order, sums[:, g], masses[g], lengths[g], prior)
        cap = cap_of(directions[g], scores)
        if shapes[g] / rates[g] > cap:
            rates[g], guarded[g] = shapes[g] / cap, True
    return VariationalPosterior(shapes, rates, lengths, directions, prior.pseudo_count + masses, guarded)


def climb(
    point: Any, data: AngleData, max_iter: int, tol: float, follow: Callable[[float], bool] | None = None
) -> Run:
    """Repeat passes until the objective gains less than ``tol`` an agent.

    ``follow`` sees every objective and says whether to go on.
    """
    history: list[float] = []
    for _ in range(max_iter):
        total, sums, masses = data.weighed(point.tilts, point.offsets)
        history.append(point.objective(total))
        if len(history) > 1 and abs(history[-1] - history[-2]) < tol * data.n_agents:
            return Run(point, history[-1], history, converged=True)
        if follow is not None and not follow(history[-1]):
            return Run(point, history[-1], history, interrupted=True)
        point = point.following(sums, masses, data)
    total = data.weighed(point.tilts, point.offsets)[0]
    history.append(point.objective(total))
    return Run(point, history[-1], history, converged=abs(history[-1] - history[-2]) < tol * data.n_agents)
