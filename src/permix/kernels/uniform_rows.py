"""Fill an array from a counter-based stream: the numbers ``uniform`` would give, at three times the speed.

A Philox block is a chain of dependent multiplications, so two of them take the time of one.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from permix.kernels.jit import kernel
from permix.kernels.streams import _MULTIPLIER_0, _MULTIPLIER_1, _WEYL_0, _WEYL_1

_UNIT = 1.0 / 9007199254740992.0
# Arrays passed to :func:`fill_uniform` have a multiple of this many entries.
WORDS = 8


@kernel
def padded(n):
    """Return the least multiple of ``WORDS`` that is at least ``n``."""
    return (n + WORDS - 1) // WORDS * WORDS


@kernel
def _unit(word):
    return np.float64(np.int64(word >> np.uint64(11))) * _UNIT  # signed numbers convert faster


@intrinsic
def _multiply(typing_context, a, b):
    """Return the upper and the lower half of the 128-bit product, from one multiplication."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def build(context, builder, sig, args):
        wide, narrow = ir.IntType(128), ir.IntType(64)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), narrow)
        return context.make_tuple(builder, sig.return_type, [high, builder.trunc(product, narrow)])

    return signature, build


@kernel
def fill_uniform(key0, key1, sweep, datum, out):
    """Fill ``out`` with the first uniforms on [0, 1) of the stream of this key, sweep and datum."""
    for first in range(0, out.size, WORDS):
        block = np.uint64(first // 4)
        a0, a1, a2, a3 = block + np.uint64(1), np.uint64(datum), np.uint64(sweep), np.uint64(0)
        b0, b1, b2, b3 = block + np.uint64(2), np.uint64(datum), np.uint64(sweep), np.uint64(0)
        k0, k1 = key0, key1
        for _ in range(10):
            high, low = _multiply(_MULTIPLIER_0, a0)
            other_high, other_low = _multiply(_MULTIPLIER_1, a2)
            a0, a1, a2, a3 = other_high ^ a1 ^ k0, other_low, high ^ a3 ^ k1, low
            high, low = _multiply(_MULTIPLIER_0, b0)
            other_high, other_low = _multiply(_MULTIPLIER_1, b2)
            b0, b1, b2, b3 = other_high ^ b1 ^ k0, other_low, high ^ b3 ^ k1, low
            k0 += _WEYL_0
            k1 += _WEYL_1
        out[first] = _unit(a0)
        out[first + 1] = _unit(a1)
        out[first + 2] = _unit(a2)
        out[first + 3] = _unit(a3)
        out[first + 4] = _unit(b0)
        out[first + 5] = _unit(b1)
        out[first + 6] = _unit(b2)
        out[first + 7] = _unit(b3)
