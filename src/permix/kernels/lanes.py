"""Additions of four numbers at once, which Numba makes of loops alone and not of what stands side by side."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 4


@intrinsic
def add_four(typing_context, target, at, a, b, c, d):
    """Add four numbers to ``target[at]``, ``target[at + 1]``, …, of an array with one axis."""
    signature = types.void(target, types.int64, *[types.float64] * LANES)

    def build(context, builder, sig, args):
        lanes = ir.VectorType(ir.DoubleType(), LANES)
        added = ir.Constant(lanes, ir.Undefined)
        for lane in range(LANES):
            added = builder.insert_element(added, args[2 + lane], ir.Constant(ir.IntType(32), lane))
        array = context.make_array(sig.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(array.data, [args[1]]), lanes.as_pointer())
        present = builder.load(place)
        present.align = 8
        builder.store(builder.fadd(present, added), place, align=8)
        return context.get_dummy_value()

    return signature, build
