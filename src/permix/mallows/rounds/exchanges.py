"""Exchanges of neighbors in centers, judged by the likelihood itself.

EM judges a center by completed data, with the agents shared out as the present centers have it: a bound from
below, and as centers are discrete it stops at centers that are not even the best among their neighbors. Let a
stand right before b in the center of component k, and let them change places. Every ranking with a before b
becomes less probable by the factor φ, every other one more probable by 1/φ, and Z stays. So what an agent
said gets the factor

    1 + r (p φ + (1 - p)/φ - 1),

where r is P(k | v) and p is P(a before b | v, k) before the change: the likelihood of all m - 1 changed
centers follows from one E-step, exactly. Rows that partition the items have p = 1 or 0 where they state the
pair, and where they do not the factor is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.rounds.statistics import Statistics


class ExactRows(Protocol):
    """Rows whose probabilities are closed forms or sums."""

    counts: Array  # (rows,): agents behind each row; can be set, to more than 0
    bounded: bool  # whether ``gain_bounds`` hold: rows say which way round pairs are, or nothing of them

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; with a generator components are drawn.

        Without ``look`` centers are to stay, and ``wins`` are not needed.
        """

    def log_joint(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | component k), (K, rows)."""

    def shares(self, k: int) -> Array:
        """Return P(component k | row), (rows,), at the components of the last E-step, which drew nothing."""

    def gains(
        self, components: MallowsComponents, k: int, shares: Array, leads: Array, least: float
    ) -> Array:
        """Return by how much the log-likelihood rises if two neighbors in center k change places, (m - 1,).

        ``shares`` (rows,) is P(component k | row), and ``leads`` (m - 1,) is by how much the weight of pairs
        as the center has them exceeds that of the other way round. Gains that are not above ``least``, nor
        the best, may be given as minus infinity.
        """


class Exchange(NamedTuple):
    """A center that should be another one, such as with two neighbors in each other's place."""

    k: int
    center: Array
    gain: float


def find_exchanges(
    parts: Sequence[ExactRows], components: MallowsComponents, statistics: Statistics, least: float
) -> list[Exchange]:
    """Return the best exchange of every center that raises the log-likelihood by more than ``least``.

    The components are those of the last E-step, which found the statistics.
    """
    wins, spreads = statistics.wins, statistics.spreads
    centers = components.centers
    of_center = np.arange(len(centers))[:, None]
    leads = wins[of_center, centers[:, :-1], centers[:, 1:]]
    leads = leads - wins[of_center, centers[:, 1:], centers[:, :-1]]
    promising = np.arange(len(centers))
    if all(part.bounded for part in parts):
        bounds = gain_bounds(leads, components.decays[:, None], spreads[:, None])
        promising = np.flatnonzero((bounds > least).any(axis=1))
    found = []
    # Where gains of several parts are added up, each has to find all of them.
    least_of_part = least if len(parts) == 1 else -np.inf
    for k in promising.tolist():
        each = [part.gains(components, k, part.shares(k), leads[k], least_of_part) for part in parts]
        gains = each[0] if len(each) == 1 else np.sum(each, axis=0)
        best = int(np.argmax(gains))
        if gains[best] > least:
            center = centers[k].copy()
            center[[best, best + 1]] = center[[best + 1, best]]
            found.append(Exchange(k, center, float(gains[best])))
    return found


def gain_bounds(leads: Array, decay: Any, spread: Any) -> Array:
    """Return what exchanges of neighbors gain at most, where rows partition the items.

    With r = P(k | v) and s the lead of a pair, the gain as a function of λ has the derivative -s at 0, and
    its second derivative is at most e^λ Σ r (1 - r), the spread, so that it is no more than
    (e^λ - 1 - λ) Σ r (1 - r) - λ s.
    """
    return np.asarray(spread * (np.expm1(decay) - decay) - decay * leads)


def exchanged(components: MallowsComponents, exchanges: Sequence[Exchange]) -> MallowsComponents:
    """Return components with the centers that they should have."""
    centers = components.centers.copy()
    for k, center, _ in exchanges:
        centers[k] = center
    return components.with_values(components.weights, centers, components.decays)
