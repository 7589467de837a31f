"""Two machine instructions that Numba does not offer by itself, and selection inside a word."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from permix.kernels.jit import kernel


@intrinsic
def popcount(typing_context, word):
    """Count the set bits of a ``uint64``."""
    signature = types.int64(types.uint64)

    def build(context, builder, sig, args):
        return builder.ctpop(args[0])

    return signature, build


@intrinsic
def multiply(typing_context, a, b):
    """Return the upper and the lower half of the 128-bit product of two ``uint64``."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def build(context, builder, sig, args):
        wide, narrow = ir.IntType(128), ir.IntType(64)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), narrow)
        return context.make_tuple(builder, sig.return_type, [high, builder.trunc(product, narrow)])

    return signature, build


@kernel
def bits_below(k):
    """Return a word whose bits 0..k-1 are set, ``0 <= k < 64``."""
    return (np.uint64(1) << np.uint64(k)) - np.uint64(1)


@kernel
def select_bit(word, k):
    """Return the position of the ``k``-th set bit (0-based); the word must have more than ``k``."""
    position = np.uint64(0)
    for half in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)):
        in_lower_half = popcount((word >> position) & ((np.uint64(1) << half) - np.uint64(1)))
        if k >= in_lower_half:
            k -= in_lower_half
            position += half
    return np.int64(position)
