"""EM where weights depend on columns of agents, from the best mixture whose weights do not.

In turns, coefficients are climbed with the components as they are (``agent_weights.logit``), and centers and
dispersions by EM with the weights of all rows as they are. Both raise the likelihood, until nothing does.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from permix.data.labels import Array, some_names
from permix.data.preferences import Preferences
from permix.distributions.agent_weights.design import Design
from permix.distributions.agent_weights.logit import log_weights, maximize, posterior
from permix.distributions.agent_weights.model import (
    AgentWeights,
    Slopes,
    covariance_of,
    mean_share_errors,
    rebased,
    shares_by_point,
)
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import PermixWarning
from permix.mallows.climbs import Follow
from permix.mallows.em import total_log_likelihood
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import posterior_of
from permix.mallows.restarts import Search, rows_of
from permix.mallows.results import MallowsFit
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.threads import at_most

# Turns of coefficients and components; with drawn rankings, whose likelihood has noise, so many.
MOST_TURNS, DRAWN_TURNS = 100, 4
# By which decays are moved for derivatives of ln P(row).
STEP = 1e-3
LEAST_WEIGHT = 1e-6


def fit_by_agent(preferences: Preferences, settings: MallowsParameters, found: Search) -> MallowsFit:
    """Go on from what was ``found`` without the columns."""
    names = settings.weights_by
    assert names is not None
    columns = preferences.covariates.select(names)
    distinct, which = preferences._replaced(covariates=columns).collapsed_rows()
    climb = _Climb(distinct, Design.of(preferences, names), settings, found)
    with at_most(settings.n_jobs), Interrupts() as interrupts, Display(settings.progress) as display:
        display.begin("EM, weights that depend on columns")

        def report(iteration: int, value: float) -> None:
            display.update(f"iteration {iteration} · log-likelihood {value:,.1f}")

        converged = climb.run(Follow(report, lambda: interrupts.stopped))
        stopped = found.interrupted or interrupts.interrupted
    order = np.argsort(-climb.weights, kind="stable")
    components, log_f, errors = climb.ended(order)
    priors = np.exp(log_weights(climb.matrix, rebased(climb.coefficients, order)))
    assert components.by_agent is not None
    with np.errstate(divide="ignore"):
        joint = log_f + np.log(priors)
    history = np.zeros((len(climb.history), 2))
    history[:, 0] = climb.history
    _warn_if_unlimited(components.by_agent)
    by_agent = components.by_agent
    return MallowsFit(
        settings=settings,
        components=components,
        probabilities=posterior(log_f, priors)[which],
        counts=np.array(preferences.counts),
        log_likelihood=total_log_likelihood(joint, errors, distinct.counts),
        history=np.concatenate([found.best.history, history]),
        start_log_likelihoods=found.reached,
        group_matches=found.agreement.matches[:, order],
        converged=found.best.converged and converged,
        interrupted=stopped,
        share_errors=mean_share_errors(
            climb.matrix, climb.counts, by_agent.coefficients, by_agent.covariance
        ),
        restart_shares=found.agreement.shares[:, order],
        resampled_shares=None if found.resampled is None else found.resampled[:, order],
    )


class _Climb:
    """Components, coefficients, and what the log-likelihood was after each turn."""

    def __init__(
        self, table: Preferences, design: Design, settings: MallowsParameters, found: Search
    ) -> None:
        self.table, self.design, self.settings = table, design, settings
        self.matrix, self.counts = design.matrix(table), table.counts.astype(np.float64)
        self.components = found.best.components
        self.coefficients = np.zeros((design.n_columns, self.components.n_components))
        weights = np.maximum(self.components.weights, LEAST_WEIGHT)
        self.coefficients[0] = np.log(weights / weights[0])
        self.key = found.key
        self._rows = log_weights(self.matrix, self.coefficients)
        self.em = rows_of(Profile.of(table), settings).em(self.key, self._rows)
        self.history: list[float] = []

    def run(self, follow: Follow) -> bool:
        """Climb; return whether nothing rises any more."""
        least = self.settings.tol * self.counts.sum()
        for turn in range(MOST_TURNS):
            log_f, errors = self.log_probabilities(self.components)
            self.coefficients, value = maximize(log_f, self.matrix, self.counts, self.coefficients)
            if turn == 0:  # what weights that are the same for all come to, by the same numbers
                alone = maximize(log_f, self.matrix[:, :1], self.counts, self.coefficients[:1])
                self.without = alone[1]
            self.history.append(value)
            follow.report(turn + 1, value)
            self._rows[:] = log_weights(self.matrix, self.coefficients)
            if errors.any() and turn + 1 >= DRAWN_TURNS:
                return True
            if turn and value - self.history[-2] <= least and not errors.any():
                return True
            if follow.stopped():
                return False
            run = self.em.climb(self.components, follow, 0)
            if not self.em.exact:
                run = self.em.average(run, follow)
            self.components = run.components
        return False

    @property
    def weights(self) -> Array:
        """Mean weights over all agents."""
        return np.asarray(self.counts @ np.exp(self._rows) / self.counts.sum())

    def ended(self, order: Array) -> tuple[MallowsComponents, Array, Array]:
        """Return components in this order, ln P(row | component) and its errors."""
        last, design = self.components, self.design
        coefficients = rebased(self.coefficients, order)
        weights = self.weights[order]
        components = last.with_values(weights / weights.sum(), last.centers[order], last.decays[order])
        log_f, errors = self.log_probabilities(components)
        slopes = None if errors.any() else self._slopes(components)
        covariance = covariance_of(log_f, self.matrix, self.counts, coefficients, slopes)
        effects = shares_by_point(design, self.matrix, self.counts, coefficients, covariance)
        gain = max(self.history[-1] - self.without, 0.0)
        found = AgentWeights(design, coefficients, covariance, effects, gain)
        return replace(components, by_agent=found), log_f, errors

    def log_probabilities(self, components: MallowsComponents) -> tuple[Array, Array]:
        """Return ln P(row | component), (rows, K), and its standard errors; by the same random numbers."""
        rng = np.random.default_rng(np.random.SeedSequence(self.key.tolist()))
        found = posterior_of(components, self.table, 8 * self.settings.n_particles, rng)
        return found.log_probabilities, found.errors

    def _slopes(self, components: MallowsComponents) -> Slopes:
        decays = np.clip(components.decays, STEP, self.em.most)
        low, here, high = (
            self.log_probabilities(
                components.with_values(components.weights, components.centers, decays + step)
            )[0]
            for step in (-STEP, 0.0, STEP)
        )
        return Slopes((high - low) / (2.0 * STEP), (high - 2.0 * here + low) / STEP**2)


def _warn_if_unlimited(found: AgentWeights) -> None:
    """Say of which groups and values the likelihood knows no finite coefficient."""
    without = ~np.isfinite(found.errors)
    if not without.any():
        return
    named = [
        ("the others", ""),
        *((term.name, word) for term in found.design.terms for word in term.coefficients),
    ]
    where = [
        f"group {k + 1} at {name}{f' {word}' if word else ''}"
        for k in range(1, found.n_components)
        for at, (name, word) in enumerate(named)
        if without[at, k]
    ]
    warnings.warn(
        PermixWarning(
            f"no finite coefficient fits best for {some_names(where)}: the votes put all agents with that "
            "value, or none, into one group. The shares are as good as the others; intervals of these "
            "coefficients have no end. Join rare values, or leave the column out"
        ),
        stacklevel=4,
    )
