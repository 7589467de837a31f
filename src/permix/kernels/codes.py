"""Three codes of an ordering relative to a reference ordering, both ways, in O(n log n).

With sigma the reference and pi the coded ordering (both list items best first, 0-based):

``stage``
    ``s[j]``: how many items that pi has not used before rank j stand before ``pi[j]`` in sigma (Meilă &
    Chen's s_j). Indexed by the ranks of pi; defined for top-t lists too, with t numbers.
``inversion``
    ``v[a]``: how many items that stand after ``sigma[a]`` in sigma stand before it in pi. Indexed by the
    ranks of sigma.
``insertion``
    ``p[a]``: at which place, 0..a, ``sigma[a]`` is inserted into the list of ``sigma[:a]`` when pi is
    built by repeated insertion (Lu & Boutilier count places from 1). Indexed by the ranks of sigma.

The sums of the stage and of the inversion code, and the sum of ``a - p[a]``, are each the Kendall distance
between pi and sigma (for a top-t list: the number of pairs it orders against sigma).

Kernels for one row take the reference as a rank vector where they look items up and as an ordering where
they write items; a caller in a hot loop has both. Those for many rows (plural names) take the ordering.
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


# One ordering.


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
def order_from_stage_code(code, length, reference_order, out):
    """Write into ``out[:length]`` the list whose stage code is ``code[:length]``."""
    take_in_turn(code, length, reference_order.size, False, out)
    for j in range(length):
        out[j] = reference_order[out[j]]


@kernel
def inversion_code(ranks, reference_order, out):
    """Write the inversion code of the full ordering with rank vector ``ranks`` into ``out``."""
    insertion_code(ranks, reference_order, out)
    for a in range(ranks.size):
        out[a] = ranks[reference_order[a]] - out[a]


@kernel
def insertion_code(ranks, reference_order, out):
    """Write the insertion code of the full ordering with rank vector ``ranks`` into ``out``."""
    n = ranks.size
    places = np.empty(n, np.int64)
    for a in range(n):
        places[a] = ranks[reference_order[a]]
    count_smaller_before(places, n, n, out)


@kernel
def order_from_inversion_code(code, reference_order, out):
    """Write into ``out`` the ordering whose inversion code is ``code``."""
    n = reference_order.size
    places = np.empty(n, np.int64)
    # The best item of the reference has v items before it, all later ones: it takes the v-th free place.
    take_in_turn(code, n, n, False, places)
    for a in range(n):
        out[places[a]] = reference_order[a]


@kernel
def order_from_insertion_code(code, reference_order, out):
    """Write into ``out`` the ordering whose insertion code is ``code``."""
    n = reference_order.size
    places = np.empty(n, np.int64)
    # The item inserted last is where it was put; the one before it is there among the places left; and so on.
    take_in_turn(code, n, n, True, places)
    for a in range(n):
        out[places[a]] = reference_order[a]


# Many orderings, one per row; -1 pads what lies beyond a row's length.


@kernel
def stage_codes(orders, lengths, reference_order):
    """Return the stage codes of all rows, padded by -1."""
    ranks = np.empty(reference_order.size, np.int64)
    invert_order(reference_order, ranks)
    out = np.full(orders.shape, -1, np.int32)
    for row in range(orders.shape[0]):
        stage_code(orders[row], lengths[row], ranks, out[row])
    return out


@kernel
def orders_from_stage_codes(codes, lengths, reference_order):
    """Return the orderings (top lists, padded by -1) with these stage codes."""
    out = np.full(codes.shape, -1, np.int32)
    for row in range(codes.shape[0]):
        order_from_stage_code(codes[row], lengths[row], reference_order, out[row])
    return out


@kernel
def inversion_codes(orders, reference_order):
    """Return the inversion codes of full orderings."""
    ranks = np.empty(reference_order.size, np.int64)
    out = np.empty(orders.shape, np.int32)
    for row in range(orders.shape[0]):
        invert_order(orders[row], ranks)
        inversion_code(ranks, reference_order, out[row])
    return out


@kernel
def orders_from_inversion_codes(codes, reference_order):
    """Return the full orderings with these inversion codes."""
    out = np.empty(codes.shape, np.int32)
    for row in range(codes.shape[0]):
        order_from_inversion_code(codes[row], reference_order, out[row])
    return out


@kernel
def insertion_codes(orders, reference_order):
    """Return the insertion codes of full orderings."""
    ranks = np.empty(reference_order.size, np.int64)
    out = np.empty(orders.shape, np.int32)
    for row in range(orders.shape[0]):
        invert_order(orders[row], ranks)
        insertion_code(ranks, reference_order, out[row])
    return out


@kernel
def orders_from_insertion_codes(codes, reference_order):
    """Return the full orderings with these insertion codes."""
    out = np.empty(codes.shape, np.int32)
    for row in range(codes.shape[0]):
        order_from_insertion_code(codes[row], reference_order, out[row])
    return out
