"""Orderings as arrays: ranks, repeated items, and two codes relative to a reference, in O(n log n).

With sigma the reference and pi the coded ordering (both list items best first, 0-based):

``stage``
    ``s[j]``: how many items that pi has not used before rank j stand before ``pi[j]`` in sigma (Meilă &
    Chen's s_j). Indexed by the ranks of pi; defined for top-t lists too, with t numbers.
``insertion``
    ``p[a]``: at which place, 0..a, ``sigma[a]`` is inserted into the list of ``sigma[:a]`` when pi is
    built by repeated insertion (Lu & Boutilier count places from 1). Indexed by the ranks of sigma.

The sum of the stage code and the sum of ``a - p[a]`` are each the Kendall distance between pi and sigma (for
a top-t list: the number of pairs it orders against sigma).
"""

from __future__ import annotations

import numpy as np

from permix.kernels.fenwick import count_smaller_before, take_in_turn
from permix.kernels.jit import kernel


@kernel
def invert_order(order, out):
    """Set ``out[item]`` to the rank of the item in a full ``order`` (or the reverse: it is an involution)."""
    for rank in range(order.size):
        out[order[rank]] = rank


@kernel
def first_repeated(orders, n_items):
    """Return the first row in which an item is listed twice, and that item; (-1, -1) if there is none."""
    seen_in = np.full(n_items, -1, np.int64)
    for row in range(orders.shape[0]):
        for place in range(orders.shape[1]):
            item = orders[row, place]
            if item >= 0:
                if seen_in[item] == row:
                    return row, np.int64(item)
                seen_in[item] = row
    return -1, -1


@kernel
def stage_code(order, length, reference_ranks, out):
    """Write the stage code of the top-``length`` list ``order[:length]`` into ``out[:length]``."""
    places = np.empty(length, np.int64)
    for j in range(length):
        places[j] = reference_ranks[order[j]]
    count_smaller_before(places, length, reference_ranks.size, out)
    for j in range(length):
        out[j] = places[j] - out[j]


@kernel
def insertion_code(ranks, reference_order, out):
    """Write the insertion code of the full ordering with rank vector ``ranks`` into ``out``."""
    n = ranks.size
    places = np.empty(n, np.int64)
    for a in range(n):
        places[a] = ranks[reference_order[a]]
    count_smaller_before(places, n, n, out)


@kernel
def ordering_from_places(center, places, slots, out):
    """Set ``out`` to the ordering whose insertion code relative to ``center`` is ``places``.

    ``slots`` is scratch of the same length. Read backwards, the last item inserted stands at its
    place for good, and each earlier one at the ``places[i]``-th slot that is left.
    """
    n = center.size
    take_in_turn(places, n, n, True, slots)
    for i in range(n):
        out[slots[i]] = center[i]
