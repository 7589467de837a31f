"""Groups split and merged, with their centers and decays: where their number is open."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from permix.bayes_mallows.chain.division_jit import divide
from permix.bayes_mallows.chain.state import GroupState
from permix.data.labels import Array
from permix.moves.base import Info, Move


@dataclasses.dataclass
class SplitMerge(Move):
    """Propose to split a group, or to merge two, half of the time each (Metropolis).

    A group opens else only around a single agent, at a center drawn from the prior, and lasts where that is
    near others by luck: with thousands of agents never.
    """

    n_proposals: int = 4

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        made = sum(self.propose(rng, state) for _ in range(self.n_proposals))
        if made:
            state.settle()
        return Info("splits and merges", self.n_proposals, made)

    def propose(self, rng: np.random.Generator, state: GroupState) -> bool:
        """Propose once; statistics other than sizes are left as they were."""
        splitting, labels, n_groups = bool(rng.random() < 0.5), state.labels, state.n_clusters
        first = int(rng.integers(state.n))
        old = int(labels[first])
        others = np.flatnonzero((labels == old) == splitting)
        others = others[others != first]
        if not len(others) or (splitting and state.prior.opening[n_groups] == -np.inf):
            return False
        second = int(rng.choice(others))
        new = n_groups if splitting else int(labels[second])
        pool = np.flatnonzero((labels == old) | (labels == new))
        side = np.where(labels[pool] == old, 1, 2).astype(np.int8)
        centers, decays = np.zeros((3, state.model.n_items), np.int32), np.ones(3)
        kept = ((0, old),) if splitting else ((1, old), (2, new))
        for row, group in kept:
            centers[row], decays[row] = state.centers[group], state.decays[group]
        model, anchors = state.model, np.array([first, second])
        log_ratio = divide(
            rng,
            model.metric,
            model.sums.table,
            model.prior,
            state.members,
            pool,
            anchors,
            splitting,
            side,
            centers,
            decays,
        )
        log_ratio -= model.sums.log_z(model.prior.center_decay)  # of the prior of the second center
        sizes = np.bincount(side, minlength=3)[1:]
        log_ratio += log_prior_of_two(state, old, new, sizes) + log_choice_of_two(state.n, sizes)
        if rng.standard_exponential() < (-log_ratio if splitting else log_ratio):
            return False
        if splitting:
            state.make_room(n_groups + 1)
            labels[pool[side == 2]] = new
            state.n_clusters += 1
            for row, group in ((1, old), (2, new)):
                state.centers[group], state.decays[group] = centers[row], decays[row]
            state.sizes[[old, new]] = sizes
        else:
            labels[pool] = old
            state.centers[old], state.decays[old] = centers[0], decays[0]
            state.settle()
        return True


def log_prior_of_two(state: GroupState, old: int, new: int, sizes: Array) -> float:
    """Return ln of the prior probability of the partition where two groups are two, over that of one."""
    rest = np.delete(state.sizes_in_use, [group for group in (old, new) if group < state.n_clusters])
    two, one = np.append(rest, sizes), np.append(rest, sizes.sum())
    return state.prior.log_prob(two) - state.prior.log_prob(one)


def log_choice_of_two(n_agents: int, sizes: Array) -> float:
    """Return ln of how probable anchors are if two groups are to be merged, over that of a split."""
    return math.log(sizes.sum() - 1.0) - math.log(n_agents - sizes[0])
