"""Rows of different lengths in one array: ``entries[indptr[i]:indptr[i + 1]]`` belong to row i."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

import numpy as np

from permix.data.labels import Array


def fits_one_key(*sizes: int) -> bool:
    """Say whether a number for every combination fits into a 64-bit integer.

    Sorting such numbers in place is several times quicker than sorting by several keys.
    """
    return prod(sizes) < 2**62


def indptr_of(sizes: Array) -> Array:
    """Row pointer of rows with these sizes."""
    indptr = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    return indptr


def equal_pair(keys: Array) -> Iterator[tuple[int, int]]:
    """Yield the first two places of the smallest key that is there twice, or nothing where none is."""
    ascending = np.sort(keys)
    for key in ascending[1:][ascending[1:] == ascending[:-1]][:1]:
        first, second = np.flatnonzero(keys == key)[:2].tolist()
        yield first, second


def gather(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """Row pointer of some rows, and the positions of their entries."""
    sizes = np.diff(indptr)[rows]
    taken = indptr_of(sizes)
    return taken, np.arange(taken[-1]) + np.repeat(indptr[rows] - taken[:-1], sizes)


def row_bytes(head: Array, *parts: tuple[Array, Array]) -> list[bytes]:
    """Bytes of every row: its entry of ``head``, then its entries of every part, all 32-bit integers.

    ``head`` must fix the sizes of the parts (indptr, entries), so that two rows have equal bytes only if they
    are equal; entries have one or two dimensions.
    """
    widths = [1 if entries.ndim == 1 else entries.shape[1] for _, entries in parts]
    sizes = [np.diff(indptr) for indptr, _ in parts]
    total = np.full(len(head), head.shape[1], dtype=np.int64)
    for width, size in zip(widths, sizes, strict=True):
        total += width * size
    starts = indptr_of(total)
    stream = np.empty(starts[-1], dtype=np.int32)
    at = starts[:-1].copy()
    for column in range(head.shape[1]):
        stream[at] = head[:, column]
        at += 1
    for width, size, (indptr, entries) in zip(widths, sizes, parts, strict=True):
        places = width * np.arange(len(entries)) + np.repeat(at - width * indptr[:-1], size)
        for column, values in enumerate([entries] if entries.ndim == 1 else entries.T):
            stream[places + column] = values
        at += width * size
    data = stream.tobytes()
    return [data[start:end] for start, end in pairwise((4 * starts).tolist())]
