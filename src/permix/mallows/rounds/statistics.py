"""What the M-step needs of agents, and how agents are shared out to components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.tournaments_jit import count_drawn
from permix.mallows.em_jit import NEGLIGIBLE, maximize
from permix.runtime.threads import over_rows


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


def systematic(joint: Array, uniforms: Array, local: Array, cluster: Array, n_sets: int) -> Array:
    """Choose ``n_sets`` rows of work for every agent, in proportion to π_k times the estimate of P(v).

    ``joint`` (agents, K, sets) holds the logarithms; rows of work are numbered as the pairs
    (local, cluster), each with its sets.
    """
    n_agents, k, _ = joint.shape
    number = np.full((n_agents, k), -1, dtype=np.int64)
    number[local, cluster] = np.arange(len(local))
    flat = joint.reshape(n_agents, -1)
    with np.errstate(invalid="ignore"):
        weights = np.exp(flat - flat.max(axis=1)[:, None])
    possible = np.isfinite(weights).all(axis=1)
    cumulative = np.cumsum(weights, axis=1)
    chosen = []
    for draw in range(n_sets):
        points = (draw + uniforms) / n_sets * cumulative[:, -1]
        place = (cumulative <= points[:, None]).sum(axis=1)
        place = np.minimum(place, flat.shape[1] - 1)
        rows = number[np.arange(n_agents), place // n_sets] * n_sets + place % n_sets
        chosen.append(rows[possible])
    return np.concatenate(chosen)


def add_tournaments(weights: Array, clusters: Array, places: Array, wins: Array) -> None:
    """Count drawn rankings, component by component; ``weights`` are whole numbers."""
    order = np.lexsort((weights, clusters))
    ends = np.searchsorted(clusters[order], np.arange(len(wins) + 1))

    def work(first: int, last: int) -> None:
        for k in range(first, last):
            count_drawn(int(ends[k]), int(ends[k + 1]), order, places, weights, wins[k])

    over_rows(work, len(wins), places.size)
