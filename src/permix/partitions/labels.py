"""Label vectors: what is accepted, and the one canonical form everything else works on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from permix.errors import DataError

IntArray: TypeAlias = npt.NDArray[np.int32]


def canonical_labels(labels: npt.ArrayLike) -> IntArray:
    """Number groups by first appearance, from 0.

    Two label vectors describe the same partition exactly when their canonical labels are equal.

    Parameters
    ----------
    labels : array-like of int
        One label vector ``(n,)``, or any stack of them with observations last; each vector is
        renumbered on its own. Any integers may serve as labels, negative ones included.

    Returns
    -------
    ndarray of int32
        Same shape as ``labels``.

    Examples
    --------
    >>> from permix.partitions import canonical_labels
    >>> canonical_labels([7, 7, -1, 3, -1])
    array([0, 0, 1, 2, 1], dtype=int32)
    """
    from permix.partitions.geometry_jit import canonicalise

    array = _integers(labels)
    if array.ndim == 0:
        raise DataError("labels is a single number; give one label for each observation")
    if array.size == 0:
        return np.zeros(array.shape, np.int32)
    low, high = int(array.min()), int(array.max())
    if high - low >= max(1024, 8 * array.size) or low < -(2**62) or high >= 2**62:
        # A lookup table over the raw values would be too long, or they do not fit signed integers.
        array = np.unique(array, return_inverse=True)[1].reshape(array.shape)
        low, high = 0, int(array.max())
    out = np.empty(array.shape, np.int32)
    n = array.shape[-1]
    rows, into = array.reshape(-1, n), out.reshape(-1, n)
    step = max(1, 1_000_000 // n)  # few at a time, since their 64-bit copy is larger than they are
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        canonicalise(rows[some].astype(np.int64) - low, into[some], high - low + 1)
    return out


def as_labels(labels: npt.ArrayLike, what: str = "labels") -> IntArray:
    """One label vector in canonical form."""
    array = _integers(labels, what)
    if array.ndim != 1:
        raise DataError(f"{what} has shape {array.shape}; expected (n,), one label for each observation")
    return canonical_labels(array)


def as_draws(draws: npt.ArrayLike) -> IntArray:
    """Draws as a canonical (draws, n) array; chains, if there are any, are put one after another."""
    array = _integers(draws, "draws")
    if array.ndim not in (2, 3):
        raise DataError(
            f"draws has shape {array.shape}; expected (draws, observations) or (chains, draws, observations)"
        )
    array = array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1])
    if array.shape[0] == 0:
        raise DataError("draws holds no draw; give at least one label vector")
    return canonical_labels(array)


def _integers(labels: npt.ArrayLike, what: str = "labels") -> npt.NDArray[np.integer]:
    array = np.asarray(labels)
    if array.size == 0 and array.dtype == np.float64:  # what numpy makes of an empty list
        return array.astype(np.int64)
    if array.dtype == np.bool_:
        return array.astype(np.int8)
    if not np.issubdtype(array.dtype, np.integer):
        raise DataError(
            f"{what} must be integers, not {array.dtype}; "
            "number names with np.unique(names, return_inverse=True)[1]"
        )
    return array
