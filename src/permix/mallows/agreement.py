"""How far restarts agree: which groups of the best recur in the others, and how large they are there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import Profile, log_normalizers
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.share_errors import NINETY
from permix.mallows.em import MallowsEM

# A group is no version of another with which it has fewer agents in common (Jaccard).
LEAST_ALIKE = 1.0 / 3.0


class Agreement(NamedTuple):
    """The groups of one mixture beside those of others."""

    matches: Array  # (others, groups): how well each group is matched, as Jaccard index of agents
    # (others, groups): how large what matches it is, in mixtures that the data do not tell from this one by
    # chance alone; NaN in those that are worse, and where nothing is like it.
    shares: Array


def agreement(em: MallowsEM, found: MallowsComponents, others: list[MallowsComponents]) -> Agreement:
    """Compare the groups of ``found`` with those of each of the others.

    Agents count for their most probable group; the match of a group with nobody is 0. Another mixture is
    worse if the sum of the differences of ln P(agent) is more than 1.645 of its standard errors below 0.
    """
    own, counts = _log_joint(em, found)
    labels, k, n_agents = own.argmax(axis=1), found.n_components, counts.sum()
    matches, shares = np.zeros((2, len(others), k))
    for at, other in enumerate(others):
        joint = _log_joint(em, other)[0]
        alike = in_common(labels, joint.argmax(axis=1), counts, k)
        matches[at] = alike.max(axis=1)
        with np.errstate(invalid="ignore"):
            gains = np.logaddexp.reduce(joint, axis=1) - np.logaddexp.reduce(own, axis=1)
            total = counts @ gains
            error = np.sqrt(max(counts @ gains**2 - total**2 / n_agents, 0.0))
        as_good = total >= -NINETY * error - 1e-6 * n_agents
        there = other.weights[alike.argmax(axis=1)]
        shares[at] = np.where(as_good & (matches[at] >= LEAST_ALIKE), there, np.nan)
    return Agreement(matches, shares)


def in_common(labels: Array, others: Array, counts: Array, k: int) -> Array:
    """Return the Jaccard index of agents of each group and each of the others, (k, k)."""
    both = np.bincount(labels * k + others, counts, k * k).reshape(k, k)
    either = both.sum(axis=1)[:, None] + both.sum(axis=0) - both
    return np.asarray(both / np.maximum(either, 1e-300))


def _log_joint(em: MallowsEM, components: MallowsComponents) -> tuple[Array, Array]:
    """Return ln P(row, component) of every different row, and how many agents say it."""
    if em.exact:
        return em.log_joint(components)
    profile: Profile = em.profile
    values = log_normalizers(components, profile, em.settings.n_particles, em.key, n_sets=2)[0]
    rows = profile.stated
    return (values + components.log_weights)[rows], profile.counts[rows].astype(np.float64)
