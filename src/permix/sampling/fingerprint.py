"""A fingerprint of data: a store made for other data is refused."""

from __future__ import annotations

import hashlib

import numpy as np

from permix.sampling.protocol import Array


def digest(arrays: dict[str, Array]) -> str:
    """Fingerprint of named arrays."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
