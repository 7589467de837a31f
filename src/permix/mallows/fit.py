"""The work behind :class:`permix.MallowsMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import numpy as np

from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.agent_answers import same_for_equal_rows
from permix.mallows.em import responsibilities, total_log_likelihood
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import DRAWS, MixturePosterior
from permix.mallows.restarts import best_of_restarts
from permix.mallows.results import MallowsFit
from permix.runtime.threads import at_most


def fit_mallows(
    preferences: Preferences, settings: MallowsParameters, smaller: MallowsComponents | None = None
) -> MallowsFit:
    """Fit a mixture by (Monte Carlo) EM from several starts and keep the best.

    Most of them begin with a ``smaller`` mixture of fewer components, where there is one.
    """
    profile = Profile.of(preferences)
    best, reached, key, interrupted = best_of_restarts(profile, settings, smaller)
    components = best.components.sorted_by_weight()
    # Exact where sums are affordable, and otherwise with more particles than in a round.
    rng = np.random.default_rng(np.random.SeedSequence(key.tolist()))
    with at_most(settings.n_jobs):
        posterior = MixturePosterior(components, preferences, 8 * settings.n_particles, rng)
    joint = posterior.log_joint
    probabilities = responsibilities(joint, np.logaddexp.reduce(joint, axis=1))
    if np.any(posterior.ways == DRAWS):
        probabilities = same_for_equal_rows(probabilities, preferences)
    return MallowsFit(
        settings=settings,
        components=components,
        probabilities=probabilities,
        counts=np.array(profile.counts),
        log_likelihood=total_log_likelihood(joint, posterior.errors, profile.counts),
        history=best.history,
        start_log_likelihoods=reached,
        converged=best.converged,
        interrupted=interrupted,
    )
