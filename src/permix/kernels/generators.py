# mypy: ignore-errors
"""Random generators as arguments of kernels.

Numba asks Python's ctypes for the addresses of a generator's functions at every call, which takes 12 µs: more
than many a step of a chain. NumPy has them in one struct (``bitgen_t`` in ``numpy/random/bitgen.h``), which
``bit_generator.capsule`` points to.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.pythonapi import NativeValue, _unboxers
from numba.core.typing.typeof import typeof_impl

# The first words of the struct, by the names that Numba has for them.
WORDS = ("state", "fnptr_next_uint64", "fnptr_next_uint32", "fnptr_next_double")
KIND = types.NumPyRandomGeneratorType("generator")

typeof_impl.register(np.random.Generator)(lambda value, context: KIND)


@cache
def read_from_capsules() -> None:
    """Let what is compiled from now on unpack generators so."""
    from numba.core import boxing  # registers Numba's own way

    def unpack(kind, generator, c):
        builder, pyapi = c.builder, c.pyapi
        failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
        made = cgutils.create_struct_proxy(kind)(c.context, builder)
        functions = cgutils.create_struct_proxy(boxing._bit_gen_type)(c.context, builder)
        with ExitStack() as stack:
            owner = pyapi.object_getattr_string(generator, "bit_generator")
            with cgutils.early_exit_if_null(builder, stack, owner):
                pass
            capsule = pyapi.object_getattr_string(owner, "capsule")
            pyapi.decref(owner)  # the generator keeps it
            with cgutils.early_exit_if_null(builder, stack, capsule):
                pass
            kind_of_get = ir.FunctionType(cgutils.voidptr_t, [pyapi.pyobj, cgutils.voidptr_t])
            get = pyapi._get_function(kind_of_get, name="PyCapsule_GetPointer")
            name = c.context.insert_const_string(builder.module, "BitGenerator")
            place = builder.call(get, [capsule, name])
            pyapi.decref(capsule)
            with cgutils.early_exit_if_null(builder, stack, place):
                pass
            words = builder.bitcast(place, c.context.get_value_type(types.uintp).as_pointer())
            for at, word in enumerate(WORDS):
                setattr(functions, word, builder.load(cgutils.gep_inbounds(builder, words, at)))
            functions.state_address = functions.state
            functions.parent = owner
            made.bit_generator = functions._getvalue()
            made.parent = generator
            made.meminfo = pyapi.nrt_meminfo_new_from_pyobject(cgutils.voidptr_t(None), generator)
            builder.store(cgutils.false_bit, failed)
        return NativeValue(made._getvalue(), is_error=builder.load(failed))

    _unboxers.functions[types.NumPyRandomGeneratorType] = unpack
