"""A fingerprint of data: a store made for other data is refused, and a shard that changed is noticed."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt


def digest(arrays: dict[str, npt.NDArray[Any]]) -> str:
    """Fingerprint of named arrays of numbers or text."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        if array.dtype.kind == "O":  # text: bytes of an array of objects are where they lie in memory
            digest.update(repr(array.tolist()).encode())
        else:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def fingerprint(value: Any) -> str:
    """Fingerprint of parameters: plain values, arrays, and tuples, data classes and functions of these."""
    digest = hashlib.sha256()
    _tell(value, digest.update)
    return digest.hexdigest()


def _tell(value: Any, update: Any) -> None:
    if value is None or isinstance(value, bool | int | str | bytes):
        update(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(value, float):
        update(f"float {float(value).hex()};".encode())
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind == "O":
            raise TypeError("arrays of objects have no fingerprint")
        update(f"array {array.dtype.str} {array.shape} ".encode())
        update(np.ascontiguousarray(array).tobytes())
    elif isinstance(value, tuple | list):
        update(f"{type(value).__qualname__} {len(value)}(".encode())
        for each in value:
            _tell(each, update)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        update(f"{type(value).__qualname__}(".encode())
        for field in dataclasses.fields(value):
            _tell(getattr(value, field.name), update)
    elif isinstance(value, partial):
        _tell((value.func, value.args, tuple(sorted(value.keywords.items()))), update)
    elif hasattr(value, "__qualname__"):
        update(f"{value.__module__}.{value.__qualname__};".encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no fingerprint")
