"""What is said while shards are read, repeated where people see it: warnings, and which shards are empty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from permix.data.labels import some_names
from permix.errors import PermixWarning, ShardError

# Warnings of shards that are repeated one by one.
MOST_NOTES = 5
# Warnings for those who write programs, as of libraries that read files.
FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)


class SomeFacts(Protocol):
    """What is known of a shard, whatever it holds; one without rows notes why."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings while it was read."""


Found = TypeVar("Found", bound=SomeFacts)


def said_to_users(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return the words of warnings, each once."""
    meant = (each for each in caught if not issubclass(each.category, FOR_PROGRAMMERS))
    return tuple(dict.fromkeys(str(each.message) for each in meant))


def without_empty(
    sources: Sequence[tuple[str, Any]], facts: Sequence[Found]
) -> tuple[list[tuple[str, Any]], list[Found]]:
    """Leave out the shards that have no rows, as a filter of a Dask frame makes them; warn."""
    kept = [at for at, each in enumerate(facts) if each.n_rows]
    if len(kept) < len(facts):
        empty = [at for at, each in enumerate(facts) if not each.n_rows]
        names = [sources[at][0] for at in empty]
        why = facts[empty[0]].notes[0].removeprefix(f"{names[0]}: ")
        if not kept:
            raise ShardError(f"no shard has rows; of {names[0]} it was said: {why}")
        have, are = ("has", "is") if len(empty) == 1 else ("have", "are")
        counted = f"{len(empty):,} of {len(facts):,} shards {have} no rows, and {are} left out"
        said = f"{counted}: {some_names(names)} ({why})"
        warnings.warn(PermixWarning(said), stacklevel=4)
    return [sources[at] for at in kept], [facts[at] for at in kept]


def repeat_notes(notes: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Warn of what reading warned of, once for the same words in many shards."""
    of_note: dict[str, list[tuple[str, str]]] = {}
    for said, name in zip(notes, names, strict=True):
        for note in said:
            of_note.setdefault(note.replace(name, "shard"), []).append((name, note))
    for at, where in enumerate(of_note.values()):
        if at == MOST_NOTES:
            more = f"{len(of_note) - MOST_NOTES} more warnings came while shards were read"
            warnings.warn(PermixWarning(more), stacklevel=4)
            return
        name, note = where[0]
        beside = f" and {len(where) - 1} more" if len(where) > 1 else ""
        said = note if note.startswith(name) and not beside else f"{name}{beside}: {note}"
        warnings.warn(PermixWarning(said), stacklevel=4)
