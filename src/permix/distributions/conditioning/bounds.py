"""Bounds on the probability that a Mallows ranking agrees with preferences (Lu & Boutilier 2014).

Theorem 17 drops transitivity: every pair the preferences leave open may go either way. Theorem 19 keeps those
rankings only in which a largest set of mutually unrelated items stands together, those above it before
and the others behind; what is left of its sums is done exactly where that is cheap. Where it is not, only the
rankings count in which one half of the items stands before the other, and so on: a sum of fewer rankings is a
bound as well. Both theorems hold with a dispersion for every item: what a pair in the wrong order costs
depends on its later item in the center.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.amp_insertions_jit import weighted_models
from permix.distributions.conditioning.amp_plans_jit import relation_bits, relation_matrix
from permix.distributions.conditioning.downsets_jit import build_downsets, edge_log_weights, sums_below
from permix.distributions.conditioning.exact import relation_rows
from permix.kernels.mallows import weighted_log_normalizer

# Down-sets of a part beyond which it is cut in two instead of summed exactly.
CHEAP_DOWN_SETS = 4096


class Bounds(NamedTuple):
    """Bounds on ln P(v)."""

    lower: float
    upper: float


def bounds(arrays: Any, ranks: Array, decays: Array) -> Bounds:
    """Bounds for one agent; ``decays`` are λ by step, ``ranks`` the rank vector of the center."""
    steps, below_bits, _ = relation_bits(arrays, 0, ranks)
    below = relation_matrix(below_bits)
    log_total = float(weighted_log_normalizer(decays))
    # No probability exceeds one, which near φ = 1 says more than theorem 17. Where the bounds meet, rounding
    # must not turn them around.
    upper = min(_upper(steps, below, decays) - log_total, 0.0)
    return Bounds(min(_Lower(steps, below, decays).total() - log_total, upper), upper)


def _upper(steps: Array, below: Array, decays: Array) -> float:
    """Theorem 17: ln of φ^(pairs against the center) (1 + φ)^(open pairs), pair by pair."""
    n = len(decays)
    against, settled = np.zeros(n), np.zeros(n)
    earlier = np.tril(np.ones(below.shape, dtype=np.bool_), -1)
    against[steps] = (below & earlier).sum(axis=1)
    settled[steps] = against[steps] + (below.T & earlier).sum(axis=1)
    open_pairs = np.arange(n) - settled
    return _times(-decays, against) + float(np.sum(open_pairs * np.log1p(np.exp(-decays))))


def _times(values: Array, counts: Array) -> float:
    """Sum of products where nothing times infinity is nothing."""
    there = counts > 0
    return float(np.sum(values[there] * counts[there]))


class _Lower(NamedTuple):
    """Theorem 19 for the constrained items of an agent and all free ones."""

    steps: Array
    below: Array
    decays: Array

    def total(self) -> float:
        """Return ln of the bound on the sum over all rankings that agree."""
        free = np.setdiff1d(np.arange(len(self.decays)), self.steps)
        widest = largest_antichain(self.below)
        above = self.below[:, widest].any(axis=1)
        top, bottom = np.flatnonzero(above), np.flatnonzero(~above & ~widest)
        middle = np.sort(np.concatenate([self.steps[widest], free]))
        cost = self._crossing(self.steps[top], middle) + self._crossing(middle, self.steps[bottom])
        cost += self._crossing(self.steps[top], self.steps[bottom])
        inside = float(weighted_log_normalizer(self.decays[middle]))
        return cost + inside + self._part(top) + self._part(bottom)

    def _crossing(self, first: Array, second: Array) -> float:
        """Return ln of what it costs that all of the ``first`` steps stand before the ``second``."""
        return _times(-self.decays[first], np.searchsorted(np.sort(second), first))

    def _part(self, items: Array) -> float:
        """Return ln of the sum over the rankings of a part, or of a bound on it."""
        if len(items) < 2:
            return 0.0
        exact = self._exact(items)
        if exact is not None:
            return exact
        # Those with fewest items above them first, then by the center: no item before one that is above it.
        n_above = self.below[np.ix_(items, items)].sum(axis=0)
        items = items[np.argsort(n_above, kind="stable")]
        first, second = np.sort(items[: len(items) // 2]), np.sort(items[len(items) // 2 :])
        return self._crossing(self.steps[first], self.steps[second]) + self._part(first) + self._part(second)

    def _exact(self, items: Array) -> float | None:
        below = self.below[np.ix_(items, items)]
        decays = self.decays[self.steps[items]]
        lattice = build_downsets(relation_rows(below.T), relation_rows(below), len(items), CHEAP_DOWN_SETS)
        if lattice.n_sets < 0:
            return None
        weights = edge_log_weights(lattice, weighted_models(decays[None, :]), 0)
        return float(sums_below(lattice, weights)[0] + weighted_log_normalizer(decays))


def largest_antichain(below: Array) -> Array:
    """Mask of a largest set of mutually unrelated items (Dilworth's theorem by a matching).

    ``below[a, b]``: a is above b; transitively closed.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    size = len(below)
    if size == 0:
        return np.zeros(0, dtype=np.bool_)
    partner = maximum_bipartite_matching(csr_array(below), perm_type="column")  # of every row, or -1
    row_of = np.full(size, -1)
    row_of[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    # König: from unmatched rows along edges to columns and back along the matching.
    row_seen = partner < 0
    column_seen = np.zeros(size, dtype=np.bool_)
    waiting = np.flatnonzero(row_seen).tolist()
    while waiting:
        fresh = np.flatnonzero(below[waiting.pop()] & ~column_seen)
        column_seen[fresh] = True
        rows = row_of[fresh]
        rows = rows[~row_seen[rows]]
        row_seen[rows] = True
        waiting += rows.tolist()
    return row_seen & ~column_seen
