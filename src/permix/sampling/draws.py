"""What chains hand over: arrays over chain and draw, in the smallest type that holds them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from permix.sampling.protocol import Array

# Name of a move -> [changes proposed, changes made].
Tally = dict[str, list[int]]
# Consecutive draws of one chain: name -> array whose first axis is the draw.
Block = dict[str, Array]
# The last axis of arrays whose names begin so may differ in length between draws: they are padded at the end,
# whole numbers with -1 and others with NaN.
RAGGED = ("tree_", "group_")
# Arrays of so many bytes wait on disk until it is known which draws are kept.
LARGE = 2**24


@dataclass(frozen=True)
class Draws:
    """The kept draws of all chains: arrays of shape (chain, draw, ...).

    Integer arrays within a draw, such as labels, are stored in the smallest integer type; scalars keep 64
    bits. ``statistics`` are ``moves``, the names of the moves; ``proposed`` and ``accepted``, totals after
    burn-in, of shape (chain, move); and ``seconds``, the time spent per chain, earlier runs of a store
    included. Saved models have no ``seconds``: the same fit gives the same file.
    """

    arrays: dict[str, Array]
    statistics: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False  # whether Ctrl-C ended the run early
    n_draws: int = 0  # per chain
    n_made: int = 0  # per chain after burn-in; more than ``n_draws`` where the rest was not kept
    ended: str = "asked"  # why no more were made: one of permix.convergence.ENDINGS
    n_stored: int = 0  # per chain that the store holds, more when an earlier run was longer
    seeds: tuple[dict[str, Any], ...] = ()  # per chain, what rebuilds its ``numpy.random.SeedSequence``


def smallest(array: Array) -> Array:
    """Return integers in the smallest type that holds them, unsigned where none is negative."""
    if array.dtype.kind not in "iu" or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    dtype = np.min_scalar_type(high) if low >= 0 else np.min_scalar_type(min(low, -high - 1))
    return array.astype(dtype, copy=False)


def own_copy(record: Mapping[str, float | int | Array]) -> dict[str, Array]:
    """Copy one draw, since a state may return arrays that it goes on changing."""
    kept: dict[str, Array] = {}
    if not record:
        raise ValueError("a draw must hold at least one quantity")
    for name, value in record.items():
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"a draw holds numbers only, but {name!r} has type {array.dtype}")
        kept[name] = smallest(array).copy() if array.ndim else array.copy()
    return kept


def stack(records: Sequence[Mapping[str, Array]]) -> Block:
    """Join draws of one chain into a block."""
    names = list(records[0])
    for record in records:
        if list(record) != names:
            raise ValueError(f"every draw must hold the same quantities: {names}, then {list(record)}")
    block = {}
    for name in names:
        values = [record[name] for record in records]
        if name.startswith(RAGGED):
            longest = max(value.shape[-1] for value in values)
            values = [_padded(value, longest) for value in values]
        block[name] = np.stack(values)
    return block


def _padded(array: Array, length: int) -> Array:
    """Return the array with its last axis made longer."""
    missing = (*array.shape[:-1], length - array.shape[-1])
    # Joining widens unsigned types, which have no -1, by itself.
    whole = array.dtype.kind in "iu"
    padding = np.full(missing, -1, np.int8) if whole else np.full(missing, np.nan)
    return np.concatenate([array, padding], axis=-1)


def on_disk(block: Block) -> Block:
    """Return a block whose large arrays are in files without a name, which end with the process."""
    return {name: _mapped(array) if array.nbytes >= LARGE else array for name, array in block.items()}


def _mapped(array: Array) -> Array:
    with tempfile.TemporaryFile() as file:
        np.ascontiguousarray(array).tofile(file)
        file.flush()
        return np.memmap(file, array.dtype, "r", shape=array.shape)  # keeps the file


def numbers_in(block: Block) -> int:
    """Return how many numbers a draw holds, but for those whose length differs between draws."""
    return sum(array[:1].size for name, array in block.items() if not name.startswith(RAGGED))


def length(block: Block) -> int:
    """Return the number of draws in a block."""
    return len(next(iter(block.values())))


def assemble(chains: Sequence[Sequence[Block]], kept: Array) -> dict[str, Array]:
    """Join some draws of every chain, given by their numbers, into arrays of shape (chain, draw, ...)."""
    chosen = [_of_blocks(chain, kept) for chain in chains]
    arrays: dict[str, Array] = {}
    for name in chains[0][0]:
        parts = [[block[name][where] for block, where in blocks] for blocks in chosen]
        if name.startswith(RAGGED):
            longest = max(part.shape[-1] for chain in parts for part in chain)
            parts = [[_padded(part, longest) for part in chain] for chain in parts]
        shapes = {part.shape[1:] for chain in parts for part in chain}
        if len(shapes) > 1:
            raise ValueError(f"{name!r} must have one shape in every draw, but has {sorted(shapes)}")
        shape = shapes.pop()
        kind = np.result_type(*{part.dtype for chain in parts for part in chain})
        joined = np.empty((len(parts), len(kept), *shape), kind)
        for chain, into in zip(parts, joined, strict=True):
            np.concatenate(chain, out=into)
        # Over everything: the type must not depend on how draws were cut into blocks.
        arrays[name] = smallest(joined) if shape else joined
    return arrays


def _of_blocks(blocks: Sequence[Block], kept: Array) -> list[tuple[Block, Array]]:
    """Return the blocks that have draws to be kept, each with where these are."""
    ends = np.cumsum([length(block) for block in blocks])
    found = []
    for block, end in zip(blocks, ends, strict=True):
        first, last = np.searchsorted(kept, (end - length(block), end))
        if last > first:
            found.append((block, kept[first:last] - (end - length(block))))
    return found
