"""Checks of many orderings in one pass and without copies of them."""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel


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
