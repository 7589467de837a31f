"""Whether agents of different shards are called the same, found without holding all names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array, some_names

# Names that are compared: those with the smallest hashes of all shards. They are a sample of all names, and
# the same names are in it wherever they are.
MOST_COMPARED = 4096
BYTES = 8


class SomeNames(NamedTuple):
    """The names of a shard with the smallest hashes."""

    hashes: Array  # ascending
    names: tuple[str, ...]
    all_there: bool  # whether there are no others
    count_rows: bool  # whether they are 0, 1, … or 1, 2, …: each shard may begin anew


NO_NAMES = SomeNames(np.empty(0, np.uint64), (), True, False)


def some_of(names: Any) -> SomeNames:
    """Choose some of the names of a shard."""
    if names is None:
        return NO_NAMES
    texts = [str(name) for name in (names.tolist() if isinstance(names, np.ndarray) else names)]
    hashes = np.array([_hash(text) for text in texts], dtype=np.uint64)
    chosen = np.argsort(hashes, kind="stable")[:MOST_COMPARED]
    return SomeNames(
        hashes[chosen], tuple(texts[at] for at in chosen), len(texts) <= MOST_COMPARED, _count_rows(names)
    )


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=BYTES).digest(), "little")


def _count_rows(names: Any) -> bool:
    """Say whether names are 0, 1, … or 1, 2, …."""
    given = np.asarray(names)
    if given.dtype.kind not in "iu" or not len(given):
        return False
    return bool(given[0] in (0, 1) and (np.diff(given) == 1).all())


def said_of_several(found: Sequence[SomeNames], shards: Sequence[str], what: str) -> str:
    """Return words about names that are in several shards, or nothing.

    Those with the smallest hashes of all are compared: a name below the largest hash that every shard gave
    completely is among those of each shard that has it. Numbers that count the rows of two shards are no
    names; where one of these goes on with other numbers, they are, as in a file that was cut in two.
    """
    ends = [int(each.hashes[-1]) for each in found if not each.all_there]
    most = min(ends, default=2 ** (8 * BYTES) - 1)
    first_seen: dict[str, int] = {}
    twice: dict[str, tuple[int, int]] = {}
    for at, each in enumerate(found):
        n = int(np.searchsorted(each.hashes, np.uint64(most), side="right"))
        for name in each.names[:n]:
            if name in first_seen:
                if not (each.count_rows and found[first_seen[name]].count_rows):
                    twice.setdefault(name, (first_seen[name], at))
            else:
                first_seen[name] = at
    if not twice:
        return ""
    name, (one, other) = next(iter(sorted(twice.items())))
    many = f"{len(twice):,} of {len(first_seen):,} {what}s looked at"
    return (
        f"{some_names([name])} is in {shards[one]} and in {shards[other]}; {many} are in two shards or "
        f"more, and count in each. All that belongs to one {what} must be in one file"
    )
