"""What the M-step needs of agents, and how agents are shared out to components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.mallows.em_jit import NEGLIGIBLE, maximize


class Statistics(NamedTuple):
    """What the M-step needs; sums over agents."""

    members: Array  # (K,): expected number of agents of each component
    rankings: Array  # (K,): weight of the rankings behind ``wins``
    wins: Array  # (K, m, m): weight of "a before b", stated by partitioned rows or drawn for the others
    blocks: Array  # (K, m + 1): weight of blocks of each size in partitioned rows
    against: Array  # (K,): weight of stated pairs that go against the present center, in partitioned rows
    spreads: Array  # (K,): sum of P(k | row) (1 - P(k | row)) over agents in exact steps

    @classmethod
    def zeros(cls, k: int, m: int) -> Statistics:
        """Nothing yet."""
        return cls(*map(np.zeros, ((k,), (k,), (k, m, m), (k, m + 1), (k,), (k,))))


NO_BONUSES = np.empty(0)


def improve(
    statistics: Statistics,
    look: bool,
    most: float,
    centers: Array,
    decays: Array,
    bonuses: Array = NO_BONUSES,
) -> None:
    """Improve decays, up to ``most``, and where ``look`` centers, in place."""
    maximize(*statistics[1:5], bonuses, look, most, centers, decays)


def responsibilities(joint: Array, evidence: Array) -> Array:
    """P(component | row) from ln of the joint; rows without any possible component get zeros."""
    with np.errstate(invalid="ignore"):
        shares = np.exp(joint - evidence[:, None])
    shares[~(shares >= NEGLIGIBLE)] = 0.0
    return np.asarray(shares)


def shared_out(joint: Array, counts: Array, rng: np.random.Generator | None) -> tuple[float, Array]:
    """Return the log-likelihood, and the weight of each row in each component, (K, rows).

    ``joint`` (K, rows) is ln π_k P(row | k). With a generator the agents of a row are drawn, not shared out.
    """
    evidence = np.logaddexp.reduce(joint, axis=0)
    shares = responsibilities(joint.T, evidence)
    if rng is None:
        weights = shares * counts[:, None]
    else:
        shares /= np.maximum(shares.sum(axis=1), NEGLIGIBLE)[:, None]
        weights = rng.multinomial(counts.astype(np.int64), shares).astype(np.float64)
    return float((counts * evidence).sum()), np.ascontiguousarray(weights.T)
