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

from typing import Protocol

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.em_jit import ROUNDING
from permix.mallows.rounds.statistics import Statistics


class ExactRows(Protocol):
    """Rows whose probabilities are closed forms or sums."""

    counts: Array  # (rows,): agents behind each row

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; with a generator components are drawn.

        Without ``look`` centers are to stay, and ``wins`` are not needed.
        """

    def log_joint(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | component k), (K, rows)."""

    def gains(self, components: MallowsComponents, k: int, shares: Array) -> Array:
        """Return by how much the log-likelihood rises if two neighbors in center k change places, (m - 1,).

        ``shares`` (rows,) is P(component k | row).
        """


def exchange_neighbors(
    parts: list[ExactRows], components: MallowsComponents, least: float
) -> MallowsComponents:
    """Let neighbors in centers change places, the best first, while the likelihood rises by ``least``."""
    joints = [part.log_joint(components) for part in parts]
    evidences = [np.logaddexp.reduce(joint, axis=0) for joint in joints]
    total = sum(
        float((part.counts * evidence).sum()) for part, evidence in zip(parts, evidences, strict=True)
    )
    least = max(least, ROUNDING * abs(total))
    all_shares = [np.exp(joint - evidence) for joint, evidence in zip(joints, evidences, strict=True)]
    at, in_vain = 0, 0
    while in_vain < components.n_components:
        pairs = zip(parts, all_shares, strict=True)
        gains = np.sum([part.gains(components, at, shares[at]) for part, shares in pairs], axis=0)
        best = int(np.argmax(gains))
        if gains[best] <= least:
            at, in_vain = (at + 1) % components.n_components, in_vain + 1
            continue
        in_vain = 0
        centers = components.centers.copy()
        centers[at, [best, best + 1]] = centers[at, [best + 1, best]]
        components = MallowsComponents(components.items, components.weights, centers, components.decays)
        for part, joint, shares in zip(parts, joints, all_shares, strict=True):
            new = part.log_joint(components)[at]
            shares[at] *= np.exp(new - joint[at])
            shares /= shares.sum(axis=0)
            joint[at] = new
    return components
