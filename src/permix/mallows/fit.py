"""The work behind :class:`permix.MallowsMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import numpy as np

from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.share_errors import share_errors
from permix.mallows.em import total_log_likelihood
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import MixturePosterior
from permix.mallows.restarts import best_of_restarts
from permix.mallows.results import MallowsFit
from permix.mallows.rounds.statistics import responsibilities
from permix.runtime.threads import at_most

# By which decays are moved for the derivative of ln P(row).
STEP = 1e-5


def fit_mallows(
    preferences: Preferences, settings: MallowsParameters, smaller: MallowsComponents | None = None
) -> MallowsFit:
    """Fit a mixture by (Monte Carlo) EM from several starts and keep the best.

    Most of them begin with a ``smaller`` mixture of fewer components, where there is one.
    """
    which = preferences.equal_rows()  # agents who say the same are one row, with a count
    distinct = preferences._bare().collapse()
    profile = Profile.of(distinct)
    found = best_of_restarts(profile, settings, smaller)
    best, components = found.best, found.best.components
    with at_most(settings.n_jobs):
        # Exact where sums are affordable, and otherwise with more particles than in a round.
        rng = np.random.default_rng(np.random.SeedSequence(found.key.tolist()))
        posterior = MixturePosterior(components, distinct, 8 * settings.n_particles, rng)
        joint = posterior.log_joint
        probabilities = responsibilities(joint, np.logaddexp.reduce(joint, axis=1))
        scores = None
        if components.n_components > 1 and not posterior.errors.any():
            moved = components.with_values(components.weights, components.centers, components.decays + STEP)
            scores = probabilities * (MixturePosterior(moved, distinct, 2, rng).log_joint - joint) / STEP
    return MallowsFit(
        settings=settings,
        components=components,
        probabilities=probabilities[which],
        counts=np.array(preferences.counts),
        log_likelihood=total_log_likelihood(joint, posterior.errors, profile.counts),
        history=best.history,
        start_log_likelihoods=found.reached,
        group_matches=found.agreement.matches,
        converged=best.converged,
        interrupted=found.interrupted,
        share_errors=share_errors(probabilities, profile.counts, components.weights, scores),
        restart_shares=found.agreement.shares,
    )
