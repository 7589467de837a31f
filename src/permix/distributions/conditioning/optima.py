"""Optima of mixtures that climbs found, and starts between them: components of two, matched by their centers.

Bad optima of mixtures differ from good ones by a few components, and different ones have different parts
right; so crossing them finds in tens of climbs what starting anew finds in thousands (for k-means: Gribel &
Vidal 2019). Many optima differ by a few places of items only. Of such a family the best alone is kept,
or soon all would be of one family, and crossing them would lead nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents

# Optima kept for crossing.
MOST_KEPT = 10
# Optima are of one family if their centers differ by less than this share of the largest difference.
ONE_FAMILY = 0.07
# How often one component is anew: never finds too little, always takes longer.
ANEW = 0.5


class Climbed(Protocol):
    """Where a climb ended."""

    @property
    def components(self) -> MallowsComponents:
        """The mixture."""

    @property
    def log_likelihood(self) -> float:
        """How high that is."""


R = TypeVar("R", bound=Climbed)


class Optima(Generic[R]):
    """Different optima, the best first; those that differ by less than ``within`` in height are one."""

    def __init__(self, n_agents: int, within: float, known: Sequence[R] = ()) -> None:
        self.runs = list(known)
        self.n_agents, self.within = n_agents, within

    def add(self, run: R) -> None:
        """Take an optimum in, unless its family has a better one."""
        if any(run is known for known in self.runs):
            return
        mixture = run.components
        nearest = ONE_FAMILY * mixture.n_components * mixture.n_items**2 / 2
        family = [
            known
            for known in self.runs
            if abs(known.log_likelihood - run.log_likelihood) <= self.within
            or matched(mixture.centers, known.components.centers)[1] <= nearest
        ]
        if all(run.log_likelihood > known.log_likelihood for known in family):
            kept = [known for known in self.runs if all(known is not each for each in family)]
            self.runs = sorted([*kept, run], key=lambda each: -float(each.log_likelihood))[:MOST_KEPT]

    def crossed(self, rng: np.random.Generator, center: Callable[[], Array]) -> MallowsComponents:
        """Return components of two optima, better ones more often; one may be a ``center`` that is new."""
        first, second = (int(rng.integers(len(self.runs), size=2).min()) for _ in range(2))
        if first == second:
            second = int(rng.integers(len(self.runs) - 1))
            second += second >= first
        one, other = self.runs[first].components, self.runs[second].components
        k = one.n_components
        partners = matched(one.centers, other.centers)[0]
        from_other = rng.random(k) < 0.5
        weights = np.where(from_other, other.weights[partners], one.weights)
        decays = np.where(from_other, other.decays[partners], one.decays)
        centers = np.where(from_other[:, None], other.centers[partners], one.centers)
        # One that nobody belongs to is replaced first.
        idle = np.flatnonzero(weights * self.n_agents < 0.5)
        if len(idle) or rng.random() < ANEW:
            which = int(rng.choice(idle if len(idle) else k))
            centers[which], decays[which] = center(), np.median(decays)
            weights[which] = max(weights[which], 1.0 / k)
        return one.with_values(weights / weights.sum(), centers, decays)


def matched(centers: Array, others: Array) -> tuple[Array, int]:
    """Match centers, the nearest first; return the partner of each, and by how many places they differ."""
    ranks, of_others = np.argsort(centers, axis=1), np.argsort(others, axis=1)
    k = len(centers)
    differences = np.abs(ranks[:, None] - of_others).sum(axis=2)
    partners, taken, total, left = [-1] * k, [False] * k, 0, k
    for pair in np.argsort(differences, axis=None, kind="stable").tolist():
        i, j = divmod(pair, k)
        if partners[i] < 0 and not taken[j]:
            partners[i], taken[j] = j, True
            total += int(differences[i, j])
            left -= 1
            if not left:
                break
    return np.array(partners), total
