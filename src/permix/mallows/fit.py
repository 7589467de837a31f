"""The work behind :class:`permix.MallowsMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from permix.data.preferences import Preferences
from permix.data.shards.sharded import Sharded
from permix.distributions.agent_weights.design import Design
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import Argument, DataError
from permix.estimators.share_errors import share_errors
from permix.mallows.em import N_SETS, total_log_likelihood
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import posterior_of
from permix.mallows.restarts import MOST_EXACT, Everybody, best_of_restarts
from permix.mallows.results import MallowsFit
from permix.mallows.rounds.drawn import Draws
from permix.mallows.rounds.sharded import ShardedRounds, n_sampled
from permix.mallows.rounds.statistics import responsibilities
from permix.runtime.seeds import seed_sequence, stream_key
from permix.runtime.threads import at_most

# By which decays are moved for the derivative of ln P(row).
STEP = 1e-5


def fit_mallows(
    preferences: Preferences | Sharded, settings: MallowsParameters, other: MallowsComponents | None = None
) -> MallowsFit:
    """Fit a mixture by (Monte Carlo) EM from several starts and keep the best.

    An ``other`` mixture is one of fewer components that most of them begin with, or one of as many that was
    fitted to a part of the agents.
    """
    if isinstance(preferences, Sharded):
        for name in ("weights_by", "distance"):
            if getattr(settings, name) != MallowsParameters.declared[name].default:
                raise DataError(Argument(name), " is for data in one table, not in shards")
        return _fit_shards(preferences, settings, other)
    return _fit_rows(preferences, settings, other)


def _fit_shards(data: Sharded, settings: MallowsParameters, other: MallowsComponents | None) -> MallowsFit:
    """Fit agents in shards: starts are tried on a sample, and the best goes on with everybody.

    Where what agents say fits into the memory of the client, as it would for a table, it is fitted there.
    """
    try:
        few = data.distinct(2 * MOST_EXACT)
        if few is not None:
            return replace(_fit_rows(few, settings, other), sampled_from=data.n_agents)
        key = stream_key(seed_sequence(settings.random_state).spawn(1)[0])
        sample = data.sample(MOST_EXACT, key)
        drawn = n_sampled(data) > 0
        most = -math.log(settings.min_dispersion)
        rows = ShardedRounds(data, settings.n_components, most, drawn, _repeats(sample, data.n_agents))
        return _fit_rows(sample, settings, other, Everybody(rows, data.n_agents))
    finally:
        data.forget()


def _repeats(sample: Preferences, n_agents: int) -> float:
    """Return how many of all agents say the same as one drawn at random, estimated from a sample."""
    counts, n = sample.counts.astype(np.float64), sample.n_agents
    return 1.0 + (n_agents - 1) * float((counts * (counts - 1)).sum()) / max(n * (n - 1), 1)


def _fit_rows(
    preferences: Preferences,
    settings: MallowsParameters,
    other: MallowsComponents | None,
    everybody: Everybody | None = None,
) -> MallowsFit:
    """Fit a table, and then ``everybody``, of whom it is a sample."""
    if settings.weights_by:  # refused before anything takes long
        Design.of(preferences, settings.weights_by)
    which = preferences.equal_rows()  # agents who say the same are one row, with a count
    distinct = preferences._bare().collapse()
    profile = Profile.of(distinct)
    found = best_of_restarts(profile, settings, other, everybody)
    if settings.weights_by:
        from permix.mallows.by_agent.fit import fit_by_agent

        return fit_by_agent(preferences, settings, found)
    best, components = found.best, found.best.components
    with at_most(settings.n_jobs):
        # Exact where sums are affordable, and otherwise with more particles than in a round.
        rng = np.random.default_rng(np.random.SeedSequence(found.key.tolist()))
        posterior = posterior_of(components, distinct, 8 * settings.n_particles, rng)
        joint = posterior.log_joint
        probabilities = responsibilities(joint, np.logaddexp.reduce(joint, axis=1))
        scores = None
        if components.n_components > 1 and not posterior.errors.any():
            moved = components.with_values(components.weights, components.centers, components.decays + STEP)
            scores = probabilities * (posterior_of(moved, distinct, 2, rng).log_joint - joint) / STEP
    errors = share_errors(probabilities, profile.counts, components.weights, scores)
    log_likelihood = total_log_likelihood(joint, posterior.errors, profile.counts)
    if everybody is not None:  # the information of all, as the sample has it
        errors = errors * math.sqrt(profile.n_agents / everybody.n_agents)
        log_likelihood = best.log_likelihood
        if not everybody.rows.exact:
            draws = Draws(found.key, 0, N_SETS, 8 * settings.n_particles)
            log_likelihood = everybody.rows.drawn_log_likelihood(components, draws)
    return MallowsFit(
        settings=settings,
        components=components,
        probabilities=probabilities[which],
        counts=np.array(preferences.counts),
        log_likelihood=log_likelihood,
        history=best.history,
        start_log_likelihoods=found.reached,
        group_matches=found.agreement.matches,
        converged=best.converged,
        interrupted=found.interrupted,
        share_errors=errors,
        restart_shares=found.agreement.shares,
        resampled_shares=found.resampled,
        sampled_from=None if everybody is None else everybody.n_agents,
    )
