"""Exact answers about a ranking distribution given preferences, where they can be had.

Two ways. *Partition*: the preferences put all items into groups, one above the other; then the allowed
places of every insertion are known beforehand and AMP is exact (Lu & Boutilier 2014, proposition 16).
*Down-sets*: the sum over all rankings by dynamic programming over the down-sets of the partial order, where
these are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning import amp_plans_jit as plans
from permix.distributions.conditioning import downsets_jit as downsets
from permix.distributions.conditioning.amp_insertions_jit import GENERAL, GEOMETRIC, step_probabilities
from permix.distributions.conditioning.draws import Jobs, amp_draws, log_mean_exp
from permix.distributions.insertion_jit import insertion_marginals
from permix.runtime.seeds import stream_key

# Down-sets of a partial order beyond which exact sums are given up: 18 unrelated items have as many. They
# take some tenths of a second.
MOST_DOWN_SETS = 2**18
MOST_WORDS = 2**23  # of memory for the sets


@dataclass(frozen=True, eq=False)
class Problem:
    """One agent's preferences and one model, as arrays for compiled code."""

    arrays: Any  # PreferenceArrays of one agent
    center: Array  # int32: the central ordering
    models: Any  # InsertionModels of one model

    @property
    def n_items(self) -> int:
        return len(self.center)

    @cached_property
    def ranks(self) -> Array:
        return np.argsort(self.center)

    @cached_property
    def plan(self) -> Any:
        return plans.make_plan(self.arrays, 0, self.ranks, plans.room_for_plan(self.n_items))

    @cached_property
    def is_possible(self) -> bool | None:
        """Whether P(v) > 0; None where only draws can tell, as some places have probability zero."""
        if self.models.kind == GENERAL:
            zeros = bool(np.any(self.models.probabilities[0][np.tril_indices(self.n_items)] == 0.0))
            return None if zeros else True
        certain = np.flatnonzero(np.isinf(self.models.decays[0]))
        if not len(certain):
            return True
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        # Do the preferences allow that these steps come after all earlier ones?
        n = self.n_items
        steps, below, _ = plans.relation_bits(self.arrays, 0, self.ranks)
        better, worse = (steps[side] for side in np.nonzero(plans.relation_matrix(below)))
        # The certain step before covers everything up to it.
        earlier = np.arange(n)
        later = certain[np.minimum(np.searchsorted(certain, earlier, side="right"), len(certain) - 1)]
        kept = later > earlier
        edges = (np.concatenate([better, earlier[kept]]), np.concatenate([worse, later[kept]]))
        graph = coo_array((np.ones(len(edges[0])), edges), shape=(n, n))
        n_parts, _ = connected_components(graph, connection="strong")
        return bool(n_parts == n)  # no cycle

    def jobs(self, times: int = 1) -> Jobs:
        """One agent under one model, so many times."""
        only = np.zeros(times, dtype=np.int64)
        return Jobs.of(self.arrays, only, only, self.center[None], self.models)

    def amp(self, key: Array, size: int) -> tuple[Array, Array]:
        """Orderings drawn by AMP, and ln P - ln q of each."""
        orders, _, log_weights = amp_draws(key, 0, self.jobs(), size)
        return orders[0], log_weights[0]

    def importance(self, key: Array, n_samples: int) -> tuple[float, float]:
        """Estimate ln P(v) by importance sampling, with its standard error (equation 28)."""
        value, error = log_mean_exp(amp_draws(key, 0, self.jobs(), n_samples, with_orders=False)[2][0])
        return float(value), float(error)


@dataclass(frozen=True, eq=False)
class Partition:
    """The preferences put all items into groups, one above the other."""

    problem: Problem

    @cached_property
    def log_normalizer(self) -> float:
        """Logarithm of P(v)."""
        return self.problem.importance(np.zeros(2, dtype=np.uint64), 1)[0]

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw orderings from the posterior."""
        return self.problem.amp(stream_key(rng), size)[0]

    def marginals(self) -> tuple[Array, Array]:
        """P(step has rank r) and P(step before step); within a group by insertion, groups independent."""
        plan, arrays, n = self.problem.plan, self.problem.arrays, self.problem.n_items
        lows, highs = np.zeros(n, dtype=np.int64), np.arange(n)
        if plan.n_constrained:
            lows, highs = plan.base_low.astype(np.int64), plan.base_high.astype(np.int64)
        level = np.zeros(n, dtype=np.int64)
        if len(arrays.levels):
            level[:] = arrays.levels[-1] + 1
            level[self.problem.ranks[arrays.level_items]] = arrays.levels
        before = (level[:, None] < level[None, :]).astype(np.float64)
        at_rank = np.zeros((n, n))
        start = 0
        for value in range(int(level.max()) + 1):
            group = np.flatnonzero(level == value)
            probabilities = step_probabilities(self.problem.models, 0, group, lows[group], highs[group])
            positions, inside = insertion_marginals(probabilities)
            at_rank[group, start : start + len(group)] = positions.T
            before[np.ix_(group, group)] = inside
            start += len(group)
        return at_rank, before


@dataclass(frozen=True, eq=False)
class FewDownSets:
    """The partial order has few down-sets; ``first`` to ``last - 1`` are the steps from the first to the last
    item it speaks of (free items before the first can be left out of geometric models only).
    """

    problem: Problem
    first: int
    last: int
    lattice: Any

    @cached_property
    def _edge_weights(self) -> Array:
        return np.asarray(downsets.edge_log_weights(self.lattice, self.problem.models, 0))

    @cached_property
    def _sums(self) -> Array:
        return np.asarray(downsets.sums_below(self.lattice, self._edge_weights))

    @property
    def log_normalizer(self) -> float:
        """Logarithm of P(v)."""
        return float(self._sums[0])

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw orderings from the posterior."""
        problem = self.problem
        blocks = np.empty((size, self.last - self.first), dtype=np.int32)
        downsets.sample_downsets(rng, self.lattice, self._edge_weights, self._sums, blocks)
        out = np.empty((size, problem.n_items), dtype=np.int32)
        downsets.complete_blocks(rng, problem.models, 0, self.first, self.last, blocks, problem.center, out)
        return out

    def marginals(self) -> tuple[Array, Array]:
        """P(step has rank r) and P(step before step)."""
        first, last, n = self.first, self.last, self.problem.n_items
        passed = downsets.edge_probabilities(self.lattice, self._edge_weights, self._sums)
        at_rank, before = np.zeros((n, n)), np.zeros((n, n))
        block = slice(first, last)
        found = downsets.downset_marginals(self.lattice, passed, last - first)
        at_rank[block, : last - first], before[block, block] = found
        # Free items join at the lower end of the center, then at the upper end, where places count backwards.
        steps = np.arange(n)
        chances = step_probabilities(self.problem.models, 0, steps, np.zeros(n, dtype=np.int64), steps)
        while last < n:
            downsets.extend_marginals(at_rank, before, first, last, chances[last - first])
            last += 1
        while first > 0:
            backwards = chances[last - first, last - first :: -1].copy()
            downsets.extend_marginals(at_rank, before, first, last, backwards)
            first -= 1
        return at_rank, before


def exact_way(problem: Problem) -> tuple[Problem, Partition | FewDownSets | None]:
    """Return a way to exact answers, None where there is no affordable one; and the problem it solves.

    The problem is the same one, stated as levels where comparisons amount to that.
    """
    if problem.plan.partitioned:
        return problem, Partition(problem)
    steps, below_bits, above_bits = plans.relation_bits(problem.arrays, 0, problem.ranks)
    below, above = plans.relation_matrix(below_bits), plans.relation_matrix(above_bits)
    n = problem.n_items
    related = below.any(axis=1) | above.any(axis=1)
    n_above = above.sum(axis=1)
    group_sizes = np.bincount(n_above, minlength=n + 1)[n_above]
    everywhere = len(steps) == n and bool(np.all(n_above + below.sum(axis=1) + group_sizes == n))
    if everywhere or not related.any():
        # Incomparable is an equivalence. (Items with as many above them are never related to each other.)
        levels = np.unique(n_above, return_inverse=True)[1] if everywhere else np.zeros(0, dtype=np.int64)
        items = problem.center[steps] if everywhere else np.zeros(0, dtype=np.int32)
        order = np.argsort(levels, kind="stable")
        alone = Preferences._from_arrays(
            items=range(max(len(items), 1)),
            level_indptr=np.array([0, len(items)]),
            level_items=items[order],
            levels=levels[order],
            rest_below=True,
        )
        problem = Problem(alone.arrays(), problem.center, problem.models)
        return problem, Partition(problem)
    # Free items before the first constrained one stand alone in geometric models.
    first = int(steps[related][0]) if problem.models.kind == GEOMETRIC else 0
    last = int(steps[related][-1]) + 1
    size = last - first
    limit = max(1, min(MOST_DOWN_SETS, MOST_WORDS // ((size + 63) // 64)))
    # Free items and the items of one level are unrelated; n of these alone have 2^n down-sets.
    unrelated = size - int(related.sum()) + int(np.bincount(n_above[related]).max())
    if 2**unrelated > limit:
        return problem, None
    whole = np.zeros((size, size), dtype=np.bool_)
    inside = np.flatnonzero(related)
    numbers = steps[inside] - first
    whole[np.ix_(numbers, numbers)] = below[np.ix_(inside, inside)]
    lattice = downsets.build_downsets(relation_rows(whole.T), relation_rows(whole), size, limit)
    return problem, FewDownSets(problem, first, last, lattice) if lattice.n_sets > 0 else None


def relation_rows(relation: Array) -> Array:
    """Write the rows of a square matrix of booleans as bits, 64 to a word."""
    padding = -len(relation) % 64 if len(relation) else 64
    packed = np.packbits(np.pad(relation, ((0, 0), (0, padding))), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)
