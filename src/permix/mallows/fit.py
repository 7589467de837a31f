"""The work behind :class:`permix.MallowsMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.base import Estimate
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.agent_answers import same_for_equal_rows
from permix.mallows.em import responsibilities, total_log_likelihood
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import DRAWS, MixturePosterior
from permix.mallows.restarts import best_of_restarts
from permix.runtime.threads import at_most


@dataclass(frozen=True, eq=False)
class MallowsFit:
    """A fitted mixture with all that is needed to use it."""

    model: ClassVar[str] = "MallowsMixture"

    settings: MallowsParameters
    components: MallowsComponents  # the largest first
    probabilities: Array  # (rows, K): P(component | what the row says) for the rows that were fitted
    counts: Array  # (rows,): how many agents each of those rows stands for
    log_likelihood: Estimate  # ln P(data), equation 26; its standard error is 0 where all E-steps were exact
    history: Array  # (iterations, 2): log-likelihood and its standard error along the best run
    # What every restart reached; the best one is kept. Where starts were tried on a part of very many agents,
    # scaled to all of them.
    restart_log_likelihoods: Array
    converged: bool  # whether the best run stopped because nothing improved any more
    interrupted: bool  # whether the user stopped the fit: what was best then is here

    @property
    def labels(self) -> Array:
        """The most probable component of every row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def n_iterations(self) -> int:
        """Iterations of the best run."""
        return len(self.history)


def fit_mallows(preferences: Preferences, settings: MallowsParameters) -> MallowsFit:
    """Fit a mixture by (Monte Carlo) EM from several starts and keep the best."""
    profile = Profile.of(preferences)
    climbed = best_of_restarts(profile, settings)
    components = climbed.best.components.sorted_by_weight()
    # Exact where sums are affordable, and otherwise with more particles than in a round.
    rng = np.random.default_rng(np.random.SeedSequence(climbed.key.tolist()))
    with at_most(settings.n_jobs):
        posterior = MixturePosterior.of(components, preferences, 8 * settings.n_particles, rng)
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
        history=climbed.best.history,
        restart_log_likelihoods=climbed.reached,
        converged=climbed.best.converged,
        interrupted=climbed.interrupted,
    )
