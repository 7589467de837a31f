"""Warnings that came while shards were read, repeated where people see them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from permix.errors import PermixWarning

# Warnings of shards that are repeated one by one.
MOST_NOTES = 5


def repeat_notes(notes: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Warn of what reading warned of, once for the same words in many shards."""
    of_note: dict[str, list[str]] = {}
    for said, name in zip(notes, names, strict=True):
        for note in said:
            of_note.setdefault(note.replace(name, "shard"), []).append(name)
    for at, (note, where) in enumerate(of_note.items()):
        if at == MOST_NOTES:
            more = f"{len(of_note) - MOST_NOTES} more warnings came while shards were read"
            warnings.warn(PermixWarning(more), stacklevel=4)
            return
        beside = f" and {len(where) - 1} more" if len(where) > 1 else ""
        warnings.warn(PermixWarning(f"{where[0]}{beside}: {note}"), stacklevel=4)
