"""How far restarts agree: how many reached the best optimum, and which of its groups recur in the others."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import Profile, log_normalizers
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.em import MallowsEM


def group_matches(em: MallowsEM, found: MallowsComponents, others: list[MallowsComponents]) -> Array:
    """Return how well each group of ``found`` is matched in each of the others, (others, groups).

    The match of two groups is the Jaccard index of their agents, each in the most probable group; of a group
    with nobody it is 0.
    """
    labels, counts = _labels(em, found)
    k = found.n_components
    matches = np.zeros((len(others), k))
    for at, other in enumerate(others):
        joint = labels * k + _labels(em, other)[0]
        both = np.bincount(joint, counts, k * k).reshape(k, k)
        either = both.sum(axis=1)[:, None] + both.sum(axis=0) - both
        matches[at] = (both / np.maximum(either, 1e-300)).max(axis=1)
    return matches


def _labels(em: MallowsEM, components: MallowsComponents) -> tuple[Array, Array]:
    """Return the most probable component of every different row, and how many agents say it."""
    if em.exact:
        joints = [part.log_joint(components) for part in em.parts]
        counts = np.concatenate([part.counts for part in em.parts])
        return np.concatenate([joint.argmax(axis=0) for joint in joints]), counts
    profile: Profile = em.profile
    values = log_normalizers(components, profile, em.settings.n_particles, em.key, n_sets=2)[0]
    rows = profile.stated
    return (values + components.log_weights)[rows].argmax(axis=1), profile.counts[rows].astype(np.float64)
