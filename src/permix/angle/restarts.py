"""Climbs of angle-based mixtures from several starts; the best one is the fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from permix.angle.ascent import Likelihood, Run, Variational, VariationalPosterior, climb, updated
from permix.angle.components import AnglePrior, is_expensive
from permix.angle.data import AngleData
from permix.angle.parameters import AngleParameters
from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import bessel_ratio
from permix.distributions.angle.concentration import INTERPRETED, newton_concentration
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence
from permix.runtime.threads import at_most

# Entries (rows x items) of the part on which starts are tried, where there are many more.
TRIAL_ENTRIES = 200_000
# Entries of the dense table from which seeds are chosen.
SEED_ENTRIES = 2_000_000
# Where exact sums are expensive, starts are tried with balanced ones, and until a pass gains less than this
# per agent; the best one goes on exactly.
COARSE_TOL = 1e-5
# How close to its seed a start puts half of the rankings: the mean cosine.
START_COSINE = 0.7


class Climbed(NamedTuple):
    """The best run, and what every start reached (scaled to all agents where tried on a part)."""

    run: Run
    reached: Array
    interrupted: bool


def best_of_restarts(data: AngleData, settings: AngleParameters) -> Climbed:
    """Fit full rankings by EM or variational inference."""
    prior = AnglePrior.of(settings, data.items)
    with at_most(settings.n_jobs), Display(settings.progress) as display:
        if settings.n_components == 1 and data.is_full:
            run = single(data, settings, prior)
            return Climbed(run, np.array([run.objective]), False)
        return _several(data, settings, prior, display)


def single(data: AngleData, settings: AngleParameters, prior: AnglePrior) -> Run:
    """Fit one component: Σ y says all, so one pass over the data is enough."""
    sums, n = data.sum_of_scores[:, None], np.array([float(data.n_agents)])
    point: Any
    if settings.inference == "em":
        point = first_point(np.zeros((1, data.n_items)), data, settings, prior)
        value = -np.inf
        for _ in range(settings.max_iter):  # once is enough under "vmf"; exact steps go on until they settle
            point = point.following(sums, n, data)
            before, value = value, data.total_log_density(point.tilts, point.offsets)
            if abs(value - before) <= 1e-12 * abs(value):
                break
    else:
        point = Variational(updated(None, prior, sums, n, data.scores), prior)
    objective = point.objective(data.total_log_density(point.tilts, point.offsets))
    return Run(point, objective, [objective], converged=True)


def first_point(tilts: Array, data: AngleData, settings: AngleParameters, prior: AnglePrior) -> Any:
    """Return the point of components with these tilts and equal weights."""
    k, t = tilts.shape
    kappas = np.linalg.norm(tilts, axis=1)
    known = kappas > 0.0
    directions = np.tile(np.arange(t) - (t - 1) / 2.0, (k, 1))
    directions[known] = tilts[known]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if settings.inference == "em":
        normalizer = settings.normalizer_for(data.n_items)
        return Likelihood(np.full(k, 1.0 / k), directions, kappas, normalizer, data)
    n = data.n_agents / k
    # As sure of the tilts as if each component had its share of the agents.
    lengths = n * bessel_ratio(0.5 * (t - 3.0), np.maximum(kappas, 1e-6))
    shapes = np.full(k, max(n, 1.0))
    rates, counts = shapes / np.maximum(kappas, 1e-6), np.full(k, prior.pseudo_count + n)
    posterior = VariationalPosterior(shapes, rates, lengths, directions, counts, np.zeros(k, dtype=bool))
    return Variational(posterior, prior)


def seeded_tilts(data: AngleData, k: int, rng: np.random.Generator) -> Array:
    """Choose k rankings far apart (k-means++ on the sphere) and return tilts towards them."""
    some = data.some(max(k, SEED_ENTRIES // data.n_items), rng)
    y, counts = some.dense(), some.counts
    chosen = [int(rng.choice(len(y), p=counts / counts.sum()))]
    gap = 1.0 - y @ y[chosen[0]]
    for _ in range(k - 1):
        weight = counts * np.maximum(gap, 0.0)
        total = weight.sum()
        share = weight / total if total > 0.0 else counts / counts.sum()
        chosen.append(int(rng.choice(len(y), p=share)))
        gap = np.minimum(gap, 1.0 - y @ y[chosen[-1]])
    order = 0.5 * (data.n_items - 3.0)
    return np.asarray(newton_concentration(order, START_COSINE, INTERPRETED) * y[chosen])


def _several(data: AngleData, settings: AngleParameters, prior: AnglePrior, display: Display) -> Climbed:
    k = settings.n_components
    seeds = seed_sequence(settings.random_state).spawn((settings.n_init if k > 1 else 1) + 1)
    rng = np.random.default_rng(seeds[-1])
    trial, quick = data, settings
    if is_expensive(settings.normalizer_for(data.n_items), data.n_items):
        quick = settings.replaced(normalizer="balanced", tol=max(settings.tol, COARSE_TOL))
    if settings.n_init > 1 and len(data.rankings) * data.n_items > 2 * TRIAL_ENTRIES:
        trial = data.some(max(20 * k, TRIAL_ENTRIES // data.n_items), rng)
    scale = data.n_agents / trial.n_agents
    best: Run | None = None
    reached: list[float] = []
    with Interrupts() as interrupts:

        def follow(objective: float) -> bool:
            display.update(f"objective {objective:,.2f}", len(reached))
            return not interrupts.stopped

        display.begin("trying starts", settings.n_init)
        for seed in seeds[:-1]:
            # One component needs no seed: from all rankings alike there is one way up.
            tilts = np.zeros((1, data.n_items))
            if k > 1:
                tilts = seeded_tilts(trial, k, np.random.default_rng(seed))
            run = climb(first_point(tilts, trial, quick, prior), trial, quick.max_iter, quick.tol, follow)
            reached.append(run.objective * scale)
            if best is None or run.objective > best.objective:
                best = run
            if interrupts.stopped:
                break
        assert best is not None
        if (trial is not data or quick is not settings) and not interrupts.stopped:
            display.begin(f"fitting all {data.n_agents:,} agents")
            point = first_point(best.point.tilts, data, settings, prior)
            if quick is not settings:
                found, weights = point.components, best.point.components.weights
                point = Likelihood(weights, found.directions, found.concentrations, found.normalizer, data)
            best = climb(point, data, settings.max_iter, settings.tol, follow)
    return Climbed(best, np.array(reached), interrupts.interrupted)
