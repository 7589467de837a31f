"""EM and variational inference for mixtures of angle-based models: climbs from several starts, the best kept.

Both repeat one pass over the data. A *point* is where a climb stands: it says what a pass
starts from, and what to make of its sums:

* :class:`Likelihood`: maximum likelihood, equations 2 and 3;
* :class:`Variational`: the posterior q, algorithms 1 and 2.

Under a proper normalizer EM is bent towards where it goes, see ``quasi_newton``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from permix.angle.components import EMPTY, AngleComponents, AnglePrior, cap_of, is_expensive
from permix.angle.parameters import AngleParameters
from permix.angle.passes.sums import Passes
from permix.angle.quasi_newton import Summed, rise
from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import bessel_ratio
from permix.distributions.angle.concentration import INTERPRETED, ConcentrationPosterior, newton_concentration
from permix.distributions.angle.gamma_jit import gamma_divergence, gamma_expectations
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence
from permix.runtime.threads import at_most

# Inner steps of an exact M-step: EM needs progress, not the maximum; the next pass goes on from there. A
# likelihood that has no maximum (all rankings alike) is followed until an agent has so little left to gain.
EXACT_STEPS, ENOUGH = 25, 1e-10
# Entries (rows x items) of the part on which starts are tried, where there are many more.
TRIAL_ENTRIES = 200_000
# Entries of the dense table from which seeds are chosen.
SEED_ENTRIES = 2_000_000
# How close to its seed a start puts half of the rankings: the mean cosine.
START_COSINE = 0.7
# One of so many starts is fresh where others have a smaller mixture to begin with, and half as many are made.
FRESH_SHARE = 3


class VariationalPosterior(NamedTuple):
    """q(κ, θ, τ): κ_k ~ Gamma(a_k, b_k), θ_k | κ_k ~ von Mises–Fisher(m_k, β_k κ_k), τ ~ Dirichlet(d)."""

    shapes: Array  # a
    rates: Array  # b
    lengths: Array  # β
    directions: Array  # m (K, items)
    counts: Array  # d
    guarded: Array  # where the rate was raised, since the normalizer would give probabilities above one

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


class Likelihood:
    """Maximum likelihood: weights, directions, concentrations."""

    def __init__(self, components: AngleComponents, guarded: Array | None = None) -> None:
        self.components = components
        self.guarded = np.zeros(components.n_components, dtype=bool) if guarded is None else guarded
        self.tilts = components.tilts

    @property
    def offsets(self) -> Array:
        return self.components.offsets

    def objective(self, total: float) -> float:
        return total

    def following(self, sums: Array, masses: Array, data: Passes) -> Likelihood:
        """Return the maximum of the likelihood given the sums of one pass: the M-step."""
        found, weights = self.components, masses / masses.sum()
        if found.normalizer != "vmf":
            known = Summed(sums.T, masses, data.scores)
            return Likelihood(rise(replace(found, weights=weights), known, EXACT_STEPS, ENOUGH)[0])
        k, t = self.tilts.shape
        directions, kappas = found.directions.copy(), found.concentrations.copy()
        guarded = np.zeros(k, dtype=bool)
        for g in np.flatnonzero(masses >= EMPTY):
            mean = sums[:, g] / masses[g]
            r = float(np.linalg.norm(mean))
            if r == 0.0:
                kappas[g] = 0.0
                continue
            directions[g] = mean / r
            kappas[g] = newton_concentration(0.5 * (t - 3.0), min(r, 1.0 - 1e-12))
            cap = cap_of(directions[g], data.scores, kappas[g])
            kappas[g], guarded[g] = min(kappas[g], cap), kappas[g] >= cap
        parts = (weights, directions, kappas)
        return Likelihood(AngleComponents(found.items, *parts, found.normalizer), guarded)


class Variational:
    """The variational posterior under the von Mises–Fisher normalizer."""

    def __init__(self, posterior: VariationalPosterior, prior: AnglePrior) -> None:
        from scipy.special import gammaln, psi

        self.posterior, self.prior, self.guarded = posterior, prior, posterior.guarded
        q, (k, t) = posterior, posterior.directions.shape
        each = zip(q.lengths, q.shapes, q.rates, strict=True)
        parts = [gamma_expectations(0.5 * (t - 3.0), length, prior.strength, a, b) for length, a, b in each]
        pull, moment, gain = np.array(parts).T
        # E[κ θ] has length E[κ A(βκ)]; the paper's a/b would be that of a direction known for sure.
        self.tilts = pull[:, None] * q.directions
        log_weights = psi(q.counts) - psi(q.counts.sum())
        self.offsets = log_weights - gammaln(t + 1.0) - moment
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

    def objective(self, total: float) -> float:
        """Return the evidence lower bound (equation 14) given Σ ln Σ_k exp(ρ), expectations by quadrature."""
        return total - self.divergence

    def following(self, sums: Array, masses: Array, data: Passes) -> Variational:
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
        else:
            directions[g] = scores if before is None else before.directions[g]  # both of length one
        if prior.bound == "tight":
            posterior = ConcentrationPosterior(order, masses[g], lengths[g], *known)
            if before is None or before.guarded[g] or masses[g] < 1.0:
                start, n_steps = posterior.laplace_gamma(), 25
            else:  # the next pass goes on
                start, n_steps = (before.shapes[g], before.rates[g]), 2
            shapes[g], rates[g] = posterior.nearest_gamma(*start, n_steps)
        else:
            from permix.angle.published import published_gamma

            shapes[g], rates[g] = published_gamma(order, sums[:, g], masses[g], lengths[g], prior)
        cap = cap_of(directions[g], scores, shapes[g] / rates[g])
        if shapes[g] / rates[g] > cap:
            rates[g], guarded[g] = shapes[g] / cap, True
    return VariationalPosterior(shapes, rates, lengths, directions, prior.pseudo_count + masses, guarded)


def climb(
    point: Any, data: Passes, max_iter: int, tol: float, follow: Callable[[float], bool] | None = None
) -> Run:
    """Repeat passes until the objective gains less than ``tol`` an agent.

    ``follow`` sees every objective and says whether to go on.
    """
    if isinstance(point, Likelihood) and point.components.normalizer != "vmf":
        components, history, converged = rise(point.components, data, max_iter, tol, follow)
        return Run(Likelihood(components), history[-1], history, converged)
    history = []
    while True:
        total, sums, masses = data.weighed(point.tilts, point.offsets)
        history.append(point.objective(total))
        converged = len(history) > 1 and abs(history[-1] - history[-2]) < tol * data.n_agents
        ended = converged or len(history) > max_iter
        if ended or (follow is not None and not follow(history[-1])):
            return Run(point, history[-1], history, converged)
        point = point.following(sums, masses, data)


class Climbed(NamedTuple):
    """The best run, and what every start reached (scaled to all agents where tried on a part), and where."""

    run: Run
    reached: Array
    interrupted: bool
    points: tuple[Any, ...] = ()  # where each start ended, if there are several


def best_of_restarts(
    data: Passes, settings: AngleParameters, smaller: AngleComponents | None = None
) -> Climbed:
    """Fit full rankings by EM or variational inference.

    With a ``smaller`` mixture most starts are that one with more components, at rankings far from its own.
    """
    prior = AnglePrior.of(settings, data.items)
    with at_most(settings.n_jobs), Display(settings.progress) as display:
        if settings.n_components > 1 or not data.is_full:
            return _several(data, settings, prior, display, smaller)
        run = single(data, settings, prior)
        return Climbed(run, np.array([run.objective]), False)


def single(data: Passes, settings: AngleParameters, prior: AnglePrior) -> Run:
    """Fit one component: Σ y says all, so one pass over the data is enough."""
    sums, n = data.sum_of_scores[:, None], np.array([float(data.n_agents)])
    point: Any
    if settings.inference == "em":
        point = first_point(np.zeros((1, data.n_items)), data, settings, prior)
        if point.components.normalizer == "vmf":
            point = point.following(sums, n, data)
        else:
            known = Summed(sums.T, n, data.scores)
            point = Likelihood(rise(point.components, known, settings.max_iter, 1e-3 * ENOUGH)[0])
    else:
        point = Variational(updated(None, prior, sums, n, data.scores), prior)
    objective = point.objective(data.total_log_density(point.tilts, point.offsets))
    return Run(point, objective, [objective], converged=True)


def first_point(tilts: Array, data: Passes, settings: AngleParameters, prior: AnglePrior) -> Any:
    """Return the point of components with these tilts and equal weights."""
    k, t = tilts.shape
    kappas = np.linalg.norm(tilts, axis=1)
    known = kappas > 0.0
    directions = np.tile(np.arange(t) - (t - 1) / 2.0, (k, 1))
    directions[known] = tilts[known]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if settings.inference == "em":
        parts = (np.full(k, 1.0 / k), directions, kappas)
        return Likelihood(AngleComponents(data.items, *parts, settings.normalizer_for(t)))
    n = data.n_agents / k
    # As sure of the tilts as if each component had its share of the agents.
    lengths = n * bessel_ratio(0.5 * (t - 3.0), np.maximum(kappas, 1e-6))
    shapes = np.full(k, max(n, 1.0))
    rates, counts = shapes / np.maximum(kappas, 1e-6), np.full(k, prior.pseudo_count + n)
    posterior = VariationalPosterior(shapes, rates, lengths, directions, counts, np.zeros(k, dtype=bool))
    return Variational(posterior, prior)


def seeded_tilts(
    data: Passes, k: int, rng: np.random.Generator, smaller: AngleComponents | None = None
) -> Array:
    """Choose k rankings far apart (k-means++ on the sphere) and return tilts towards them.

    The first tilts are those of a ``smaller`` mixture, where there is one.
    """
    some = data.some(max(k, SEED_ENTRIES // data.n_items), rng)
    y, counts = some.dense(), some.counts
    tilts, gap = np.empty((0, data.n_items)), np.ones(len(y))
    if smaller is not None:
        tilts, gap = smaller.tilts, 1.0 - (y @ smaller.directions.T).max(axis=1)
    chosen: list[int] = []
    for _ in range(k - len(tilts)):
        weight = counts * np.maximum(gap, 0.0)
        weight = weight if weight.sum() > 0.0 else counts
        chosen.append(int(rng.choice(len(y), p=weight / weight.sum())))
        gap = np.minimum(gap, 1.0 - y @ y[chosen[-1]])
    order = 0.5 * (data.n_items - 3.0)
    seeds = newton_concentration(order, START_COSINE, INTERPRETED) * y[chosen]
    return np.concatenate([tilts, seeds])


def weighted(point: Any, weights: Array) -> Any:
    """Return a point of maximum likelihood with other weights; a variational one as it is."""
    known = isinstance(point, Likelihood)
    return Likelihood(replace(point.components, weights=weights)) if known else point


def _several(
    data: Passes,
    settings: AngleParameters,
    prior: AnglePrior,
    display: Display,
    smaller: AngleComponents | None = None,
) -> Climbed:
    k = settings.n_components
    n_starts = settings.n_init if k > 1 else 1
    n_fresh = n_starts
    if smaller is not None:
        n_starts = max(2, n_starts // 2)
        n_fresh = max(1, n_starts // FRESH_SHARE)
    seeds = seed_sequence(settings.random_state).spawn(n_starts + 1)
    rng = np.random.default_rng(seeds[-1])
    trial, quick = data, settings
    if data.is_full and is_expensive(settings.normalizer_for(data.n_items), data.n_items):
        quick = settings.replaced(normalizer="balanced")  # where exact sums are expensive, the best has them
    if settings.n_init > 1 and data.n_rows * data.n_items > 2 * TRIAL_ENTRIES:
        trial = data.some(max(20 * k, TRIAL_ENTRIES // data.n_items), rng)
    scale = data.n_agents / trial.n_agents
    best: Run | None = None
    reached: list[float] = []
    points = []
    with Interrupts() as interrupts:

        def follow(objective: float) -> bool:
            display.update(f"objective {objective:,.2f}", len(reached))
            return not interrupts.stopped

        display.begin("trying starts", len(seeds) - 1)
        for at, seed in enumerate(seeds[:-1]):
            tilts, base = np.zeros((1, data.n_items)), None if at < n_fresh else smaller
            if k > 1:  # one component needs no seed: from all rankings alike there is one way up
                tilts = seeded_tilts(trial, k, np.random.default_rng(seed), base)
            point = first_point(tilts, trial, quick, prior)
            if base is not None:
                weights = np.append(base.weights * base.n_components, np.ones(k - base.n_components)) / k
                point = weighted(point, weights)
            run = climb(point, trial, quick.max_iter, quick.tol, follow)
            reached.append(run.objective * scale)
            points.append(run.point)
            if best is None or run.objective > best.objective:
                best = run
            if interrupts.stopped:
                break
        assert best is not None
        if trial is not data or quick is not settings:
            display.begin(f"fitting all {data.n_agents:,} agents")
            point = first_point(best.point.tilts, data, settings, prior)
            if settings.inference == "em":
                point = weighted(point, best.point.components.weights)
            best = climb(point, data, settings.max_iter, settings.tol, follow)  # one pass if interrupted
    return Climbed(best, np.array(reached), interrupts.interrupted, tuple(points))
