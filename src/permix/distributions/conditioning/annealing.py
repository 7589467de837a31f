"""ln P(v) by annealed importance sampling, where draws from AMP tell too little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.amp_insertions_jit import GENERAL, geometric_models
from permix.distributions.conditioning.amp_plans_jit import relation_bits, relation_matrix
from permix.distributions.conditioning.annealing_jit import annealed_rows
from permix.distributions.conditioning.draws import log_mean_exp
from permix.distributions.conditioning.exact import Problem
from permix.distributions.conditioning.local_moves_jit import local_models
from permix.kernels.mallows import displacement_moments, log_normalizer, weighted_log_normalizer
from permix.runtime.threads import over_rows

# Variance of the logarithm of a run's weight that the steps are chosen for, were sweeps perfect.
VARIANCE = 1.0
FEWEST_STEPS, MOST_STEPS = 8, 4000
FEWEST_RUNS = 1 / 8  # share of runs that must count; about e^-VARIANCE of them do
# Draws of AMP under the uniform model, how many of them must count, and sweeps before a run begins.
N_STARTS, FEWEST_STARTS, N_FIRST = 10_000, 20, 10
# Steps × items² of one run, up to which "auto" takes it upon itself: some hundredths of a second.
AFFORDABLE = 3e7


def can_anneal(problem: Problem) -> bool:
    """Say whether the model is one that the uniform one can be changed into step by step."""
    return problem.models.kind != GENERAL and bool(np.isfinite(problem.models.decays).all())


def is_affordable(problem: Problem) -> bool:
    """Say whether annealing can be done, and in a time that nobody need have asked for."""
    most_steps = AFFORDABLE / problem.n_items**2
    if not can_anneal(problem) or most_steps < FEWEST_STEPS:
        return False
    return len(ladder(problem.models.decays[0])) <= most_steps


def ladder(decays: Array) -> Array:
    """Shares 0..1 of the decays at which to stop, so that every step changes the model as much.

    The variance of a step is that of λ·k under the model, without preferences, times its length squared.
    """
    shares = np.linspace(0.0, 1.0, 65) ** 3  # most happens near the uniform model
    speed = np.zeros(len(shares))
    for at, share in enumerate(shares):
        variances = [displacement_moments(share * decays[i], i + 1)[1] for i in range(1, len(decays))]
        speed[at] = np.sqrt(np.sum(decays[1:] ** 2 * np.array(variances)))
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(shares))])
    n_steps = int(np.clip(np.ceil(passed[-1] ** 2 / VARIANCE), FEWEST_STEPS, MOST_STEPS))
    return np.interp(np.linspace(0.0, passed[-1], n_steps + 1), passed, shares)


def _uniform_draws(problem: Problem, key: Array) -> tuple[float, float, Array, Array]:
    """Estimate ln P(v) under the uniform model, with its error, the draws it is from, and their log-weights.

    The uniform model is the same around every center, so one is taken that suits AMP. With free items last,
    AMP is exact for levels over some of the items; for the rest the better of two orders of the constrained.
    """
    models = geometric_models(np.zeros(1), problem.n_items)
    steps, _, above = relation_bits(problem.arrays, 0, problem.ranks)
    free = np.setdiff1d(np.arange(problem.n_items), steps)
    by_rank = steps[np.argsort(relation_matrix(above).sum(axis=1), kind="stable")]
    tries = []
    for constrained in (by_rank, steps):
        center = problem.center[np.concatenate([constrained, free])]
        orders, weights = replace(problem, center=center, models=models).amp(key, N_STARTS)
        value, error = log_mean_exp(weights)
        tries.append((float(value), float(error), orders, weights))
    return min(tries, key=lambda found: found[1])


def annealed_log_normalizer(problem: Problem, key: Array, n_runs: int) -> tuple[float, float, bool]:
    """Estimate ln P(v), with its standard error, and say whether both can be trusted.

    P(v) under the uniform model is estimated from draws by AMP; some of these, chosen by weight, are where
    the runs start.
    """
    decays, n = problem.models.decays[0], problem.n_items
    value, error, orders, weights = _uniform_draws(problem, key)
    shares = np.cumsum(np.exp(weights - weights.max()))
    chosen = np.searchsorted(shares, shares[-1] * (np.arange(n_runs) + 0.5) / n_runs)
    starts = np.ascontiguousarray(orders[chosen])
    ranks = np.asarray(problem.ranks, dtype=np.int64)
    models = local_models(problem.models._replace(decays=ladder(decays)[:, None] * decays))
    log_weights = np.empty(n_runs)
    key = key + np.uint64(1)  # other streams than those of the starts
    work = (key, problem.arrays, ranks, models, starts, N_FIRST, log_weights)
    over_rows(annealed_rows, n_runs, n * len(models.decays), *work)
    ratio, ratio_error = (float(found) for found in log_mean_exp(log_weights))
    value += ratio + log_normalizer(0.0, n) - weighted_log_normalizer(decays)
    good = N_STARTS / (1.0 + N_STARTS * error**2) >= FEWEST_STARTS
    good &= 1.0 / (1.0 + n_runs * ratio_error**2) >= FEWEST_RUNS
    return float(value), float(np.hypot(error, ratio_error)), bool(good)
