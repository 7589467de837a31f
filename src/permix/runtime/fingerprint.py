"""A fingerprint of data: a store made for other data is refused, and a shard that changed is noticed."""

from __future__ import annotations

import hashlib
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
