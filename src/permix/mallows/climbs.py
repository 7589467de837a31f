"""Climbs of EM where every E-step is exact.

EM judges centers by completed data, with the agents shared out as the present centers have it, and so keeps
them too long. If the pairs of a set change places in center k, the log-likelihood changes by
Σ_i ln(1 + r_i (e^(λ x_i) - 1)), where r_i is P(k | row i) and x_i is how many of these pairs row i has the
new way round less those that it has the old way round; for small λ that is λ Σ r x + λ²/2 Σ r (1 - r) x².
EM sees the first term. The second is about λ²/2 Σ r (1 - r) for each pair, whichever pairs these are: a
*bold* round gives every pair that changes places this bonus. Where the likelihood does not rise then, it is
taken back.

Where no center changes so, neighbors in centers change places by the likelihood itself (``exchanges``), and
where that finds nothing either, weights and dispersions alone go on, in long steps: SQUAREM (Varadhan &
Roland 2008), a step of which is taken back where the likelihood falls. A last look at centers ends the climb.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.base import Estimate
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.em_jit import ROUNDING
from permix.mallows.rounds.exchanges import exchanged

if TYPE_CHECKING:
    from permix.mallows.em import MallowsEM

# Logarithms of weights are kept above this in long steps.
LEAST_WEIGHT = 1e-12
LONGEST_STEP = 64.0
# Several exchanges at once must bring this much of what the best would bring alone.
ENOUGH = 0.25


class Follow(NamedTuple):
    """How a run talks to who started it: report(iteration, log-likelihood), and whether to stop."""

    report: Callable[[int, float], object]
    stopped: Callable[[], bool]


class Run(NamedTuple):
    """Where one run of EM ended."""

    components: MallowsComponents
    log_likelihood: Estimate
    history: Array
    converged: bool


class ExactClimb:
    """One climb; ``history`` has the log-likelihood of every round that counted."""

    def __init__(self, em: MallowsEM, follow: Follow) -> None:
        self.em, self.follow = em, follow
        self.rise = em.settings.tol * em.n_agents
        self.history: list[float] = []
        self.ended = False  # by the user, or out of rounds

    def run(self, components: MallowsComponents, rng: np.random.Generator, n_drawn: int) -> Run:
        """Climb; in the first ``n_drawn`` rounds agents are drawn and not shared out."""
        for sweep in range(n_drawn):
            value, statistics = self.em.exact_step(components, rng)
            self.follow.report(sweep + 1, value)
            if self.follow.stopped():
                return Run(components, Estimate(value), np.array([(value, 0.0)]), False)
            # One more member each: a component that nobody was drawn for could otherwise never come back.
            statistics = statistics._replace(members=statistics.members + 1.0)
            components = self.em.m_step(components, statistics)
        components, converged = self._climb(components)
        history = np.zeros((len(self.history), 2))
        history[:, 0] = self.history
        return Run(components, Estimate(self.history[-1]), history, converged)

    def _climb(self, components: MallowsComponents) -> tuple[MallowsComponents, bool]:
        """Return where the climb ends, and whether that is where nothing rises any more."""
        em, rested, bold = self.em, -math.inf, self.em.bold  # until that fails
        way_back: Callable[[], MallowsComponents] | None = None
        enough = 0.0  # what the last step must bring, or another one is made instead
        while True:
            value, statistics = em.exact_step(components)
            if way_back is not None and not value > self.history[-1] + enough:
                components, way_back = way_back(), None
                bold = bold and enough > 0.0
                continue
            if self._note(value):
                return components, False
            plain, enough = partial(em.m_step, components, statistics), 0.0
            if bold:
                following, way_back = plain(bold=True), plain
            if not bold or np.array_equal(following.centers, components.centers):
                following, way_back = plain(), None
            if not np.array_equal(following.centers, components.centers):
                components = following
                continue
            least = max(self.rise, ROUNDING * abs(value))
            exchanges = em.exchanges(components, statistics, least)
            if exchanges:
                best = max(exchanges, key=lambda each: each.gain)
                way_back = partial(exchanged, components, [best]) if len(exchanges) > 1 else None
                components, enough = exchanged(components, exchanges), ENOUGH * best.gain
                continue
            if value - rested <= self.rise:
                return components, True
            components, way_back = self._rest(following, value), None
            rested = self.history[-1]
            if self.ended:
                return components, False

    def _note(self, value: float) -> bool:
        """Keep the log-likelihood of a round; say whether the climb has to end."""
        self.history.append(value)
        self.follow.report(len(self.history), value)
        self.ended = len(self.history) >= self.em.settings.max_iter or self.follow.stopped()
        return self.ended

    def _rest(self, components: MallowsComponents, reached: float) -> MallowsComponents:
        """Let the centers stay: two rounds of EM, and a long step in their direction, while that rises."""
        points: list[MallowsComponents] = []
        while True:
            trial = _farther([*points, components], self.em.most) if len(points) == 2 else components
            value, statistics = self.em.exact_step(trial, look=False)
            rises = value - reached > self.rise
            if (
                trial is not components and not rises
            ):  # a long step that led nowhere says nothing of short ones
                points = []
                continue
            if self._note(value) or not rises:
                return trial
            reached = value
            points = [] if len(points) == 2 else [*points, trial]
            components = self.em.m_step(trial, statistics, look=False)


def _farther(points: list[MallowsComponents], most: float) -> MallowsComponents:
    """Return where three points of EM lead, or the last one where they lead nowhere."""
    places = np.array([(np.maximum(each.weights, LEAST_WEIGHT), each.decays) for each in points])
    np.log(places[:, 0], out=places[:, 0])
    first, second = np.diff(places, axis=0)
    change = float(((second - first) ** 2).sum())
    if change == 0.0:
        return points[2]
    step = min(max(1.0, math.sqrt(float((first**2).sum()) / change)), LONGEST_STEP)
    weights, decays = places[0] + 2.0 * step * first + step * step * (second - first)
    weights = np.exp(weights)
    return points[2].with_values(weights / weights.sum(), points[2].centers, np.clip(decays, 0.0, most))
