# mypy: ignore-errors
"""NamedTuples of arrays that compiled code passes on as one pointer.

Numba passes a NamedTuple by value: every call between kernels takes a dozen arrays of seven and more numbers
each apart and puts them together again, and each of these numbers is work for the compiler. A class under
``@by_reference`` is unpacked once, where Python calls a kernel; kernels pass on where it lies. They read its
fields as before. They cannot make one, nor return one: what they make themselves stays a plain NamedTuple.
"""

from __future__ import annotations

import hashlib

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.extending import NativeValue, register_model, typeof_impl, unbox
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.typeof import _typeof_tuple


class Reference(types.BaseNamedTuple):
    """Where a NamedTuple lies; for dispatch, and for the names of entries in the cache, it is one."""

    def __init__(self, named):
        self.named = named
        self.types = tuple(named)
        self.count = len(self.types)
        self.fields = named.fields
        self.instance_class = named.instance_class
        super().__init__(f"reference({named})")

    def __getitem__(self, i):
        return self.types[i]

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(self.types)

    @property
    def iterator_type(self):
        """None: kernels do not iterate over fields."""

    @property
    def key(self):
        return self.named

    @property
    def mangling_args(self):
        # Short: names of compiled functions hold those of all their arguments.
        return self.instance_class.__name__, (hashlib.sha256(str(self.named).encode()).hexdigest()[:16],)


def referred(named):
    """Return the type that an argument of this type of NamedTuple has: a reference if its class says so."""
    return Reference(named) if getattr(named, "instance_class", None) in _CLASSES else named


_CLASSES: set[type] = set()


def by_reference(cls):
    """Pass NamedTuples of this class by reference."""
    _CLASSES.add(cls)
    typeof_impl.register(cls)(lambda value, context: Reference(_typeof_tuple(value, context)))
    return cls


@register_model(Reference)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, manager.lookup(kind.named).get_value_type().as_pointer())


@unbox(Reference)
def _unpack(kind, value, c):
    builder = c.builder
    place = cgutils.alloca_once(builder, c.context.get_value_type(kind.named), zfill=True)
    failed = cgutils.false_bit
    held = []
    for index, part in enumerate(kind):
        item, field = c.pyapi.tuple_getitem(value, index), cgutils.gep_inbounds(builder, place, 0, index)
        if isinstance(part, (types.Array, types.Number, types.Boolean)):
            wrong = builder.call(_unpacking(c.context, builder.module, part), [item, field])
        else:  # a tuple within the tuple
            unpacked = c.unbox(part, item)
            builder.store(unpacked.value, field)
            wrong = unpacked.is_error
            held.append((part, unpacked))
        failed = builder.or_(failed, wrong)
    # No instruction, but LLVM does not see through it. Fields never change, it is told below; it must not
    # conclude that they are what lay there before.
    same = ir.FunctionType(place.type, [place.type])
    pointer = builder.asm(same, "", "=r,0,~{memory}", [place], side_effect=True)

    def give_back():
        for part, unpacked in held:
            if unpacked.cleanup is not None:
                unpacked.cleanup()
            c.context.nrt.decref(builder, part, unpacked.value)

    return NativeValue(pointer, is_error=failed, cleanup=give_back)


def _unpacking(context, module, part):
    """Return the function that unpacks an array or a number: one for all such fields of a kernel."""
    field = context.get_value_type(part)
    kind = ir.FunctionType(cgutils.bool_t, [cgutils.voidptr_t, field.as_pointer()])
    function = cgutils.get_or_insert_function(module, kind, f"permix.unpack.{part}")
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block())
        value, place = function.args
        unpacked = context.get_python_api(builder).to_native_value(part, value)
        builder.store(unpacked.value, place)
        # Python keeps the arrays of its arguments until the kernel is done.
        context.nrt.decref(builder, part, unpacked.value)
        builder.ret(unpacked.is_error)
    return function


@lower_getattr_generic(Reference)
def _field(context, builder, kind, value, name):
    index = kind.fields.index(name)
    field = builder.load(cgutils.gep_inbounds(builder, value, 0, index))
    # Nothing writes to fields, so that loops over arrays need not read again where they lie.
    field.set_metadata("invariant.load", builder.module.add_metadata([]))
    if isinstance(kind[index], types.Array):
        # Not counted, see above.
        position = context.data_model_manager[kind[index]].get_field_position("meminfo")
        owner = field.type.elements[position]
        field = builder.insert_value(field, owner(None), position)
    return impl_ret_borrowed(context, builder, kind[index], field)
