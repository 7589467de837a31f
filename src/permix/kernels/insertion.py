"""Exact draws of orderings: repeated insertion, and stages of a generalized Mallows model.

Both write down small independent numbers first (where each item is inserted; how many better items each
stage skips) and then turn them into an ordering by "take the k-th that is still free".
"""

from __future__ import annotations

import numpy as np

from permix.kernels.fenwick import take_in_turn
from permix.kernels.jit import kernel
from permix.kernels.orders import ordering_from_places
from permix.kernels.random import truncated_geometric_log


@kernel
def sample_mallows(rng, center, theta, out):
    """Fill the rows of ``out`` with Mallows draws, P(r) ∝ exp(-theta d(r, center)), by repeated insertion.

    Item i goes ``k`` places up from the end of the i items before it with P(k) ∝ exp(-theta k)
    (Doignon, Pekeč & Regenwetter 2004); ``theta`` may be 0 (uniform) or inf (the center).
    """
    n = center.size
    places = np.empty(n, np.int64)
    slots = np.empty(n, np.int64)
    for row in range(out.shape[0]):
        for i in range(n):
            places[i] = i - truncated_geometric_log(rng, theta, i + 1)
        ordering_from_places(center, places, slots, out[row])


@kernel
def sample_top_lists(rng, center, theta, lengths, out):
    """Fill ``out[row, :lengths[row]]`` with top lists of a generalized Mallows model.

    Stage j skips s_j of the items that are left, P(s_j) ∝ exp(-theta[j] s_j) on 0..n-1-j (Meilă &
    Chen 2010, equation 2); a list of t items needs the first t stages only, whatever n is. Entries
    beyond the length are left alone.
    """
    n = center.size
    skipped = np.empty(n, np.int64)
    taken = np.empty(n, np.int64)
    for row in range(out.shape[0]):
        t = lengths[row]
        for j in range(t):
            skipped[j] = truncated_geometric_log(rng, theta[j], n - j)
        take_in_turn(skipped, t, n, False, taken)
        for j in range(t):
            out[row, j] = center[taken[j]]
