"""What an array of an archive may be: a type, a shape by named dimensions, and constraints on its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.errors import DataError

Array = npt.NDArray[Any]
# Probabilities sum to one, and directions have length one, up to rounding.
ROUNDING = 1e-6
# Counts of agents add up to less than this, so that sums of them are exact.
MOST_AGENTS = 2.0**62

TYPES: dict[str, Callable[[np.dtype[Any]], bool]] = {
    "real": lambda dtype: dtype == np.float64,
    "int": lambda dtype: dtype.kind in "iu",
    "int32": lambda dtype: dtype == np.int32,
    "int64": lambda dtype: dtype == np.int64,
    "uint64": lambda dtype: dtype == np.uint64,
    "bool": lambda dtype: dtype == np.bool_,
    "text": lambda dtype: dtype.kind == "U",
    "real or text": lambda dtype: dtype == np.float64 or dtype.kind == "U",
    "number": lambda dtype: dtype.kind in "iuf",
}


def require(condition: bool, what: str) -> None:
    """Refuse an archive in which something is not what a fit writes."""
    if not condition:
        raise DataError(f"{what}: not what a fit writes")


class Field(NamedTuple):
    """One array.

    Dimensions have names, which all arrays of an archive agree on, or sizes; one may be empty only if its
    name ends in "?". A constraint takes the array and the sizes, and says whether the values are possible.
    """

    type: str  # one of ``TYPES``
    shape: tuple[str | int, ...]
    constraints: tuple[Callable[[Array, Mapping[str, int]], bool], ...] = ()
    optional: bool = False  # whether a fit may leave it out


def field(type: str, *shape: str | int, where: Any = (), optional: bool = False) -> Field:
    """Declare an array; ``where`` is a constraint or several."""
    constraints = where if isinstance(where, tuple) else (where,)
    return Field(type, shape, constraints, optional)


def check_arrays(fields: Mapping[str, Field], arrays: Mapping[str, Array]) -> dict[str, int]:
    """Check all arrays against their fields; return the sizes of the dimensions."""
    needed = {name for name, about in fields.items() if not about.optional}
    require(needed <= set(arrays) <= set(fields), "arrays")
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        about = fields[name]
        require(TYPES[about.type](array.dtype) and array.ndim == len(about.shape), name)
        for size, dimension in zip(array.shape, about.shape, strict=True):
            if isinstance(dimension, int):
                require(size == dimension, name)
            else:
                require(sizes.setdefault(dimension, size) == size, name)
                require(size > 0 or dimension.endswith("?"), name)
    for name, array in arrays.items():
        for constraint in fields[name].constraints:
            require(bool(constraint(array, sizes)), name)
    return sizes


def finite(array: Array, sizes: Mapping[str, int]) -> bool:
    """No infinity and no NaN."""
    return bool(np.isfinite(array).all())


def positive(array: Array, sizes: Mapping[str, int]) -> bool:
    """Finite and above zero."""
    return bool(np.all((array > 0) & np.isfinite(array)))


def not_negative(array: Array, sizes: Mapping[str, int]) -> bool:
    """Finite, zero or more."""
    return bool(np.all((array >= 0) & np.isfinite(array)))


def simplex(array: Array, sizes: Mapping[str, int]) -> bool:
    """Along the last axis, probabilities that sum to one."""
    return not_negative(array, sizes) and bool(np.all(np.abs(array.sum(axis=-1) - 1.0) < ROUNDING))


def counts(array: Array, sizes: Mapping[str, int]) -> bool:
    """Numbers of agents, one or more each; as floats they cannot overflow while they are summed."""
    return bool(np.all(array > 0)) and float(array.astype(np.float64).sum()) < MOST_AGENTS


def permutations(array: Array, sizes: Mapping[str, int]) -> bool:
    """Along the last axis, every number from 0 on once."""
    return np.array_equal(np.sort(array, axis=-1), np.broadcast_to(np.arange(array.shape[-1]), array.shape))


def directions(array: Array, sizes: Mapping[str, int]) -> bool:
    """Along the last axis, vectors of length one whose entries sum to zero."""
    if not finite(array, sizes):
        return False
    off = np.abs(np.linalg.norm(array, axis=-1) - 1.0)
    return bool(np.all(off < ROUNDING) and np.all(np.abs(array.sum(axis=-1)) < ROUNDING))


def below(dimension: str) -> Callable[[Array, Mapping[str, int]], bool]:
    """Return a constraint: whole numbers from 0 to below the size of a dimension."""

    def constraint(array: Array, sizes: Mapping[str, int]) -> bool:
        return array.size == 0 or (int(array.min()) >= 0 and int(array.max()) < sizes[dimension])

    return constraint


def partition(array: Array, sizes: Mapping[str, int]) -> bool:
    """Labels of one partition: every number from 0 to the largest occurs."""
    return int(array.min()) >= 0 and len(np.unique(array)) == int(array.max()) + 1
