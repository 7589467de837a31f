"""Rows of tied groups, best first, as rankings or preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from permix.data.ballots import Entry, no_votes
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings

Groups = list[list[str]]


def as_votes(
    rows: Sequence[Groups],
    counts: Sequence[int],
    items: Sequence[str],
    metadata: dict[str, Any],
    audit: Sequence[Entry] = (),
    below: bool = True,
    agents: Sequence[str] | None = None,
) -> Rankings | Preferences:
    """Return rankings, or preferences where items are tied; the audit goes into the metadata."""
    about = {**metadata, "CLEANING": [entry._asdict() for entry in audit]} if audit else metadata
    tied = Preferences.from_levels(
        rows, items=list(items), rest_below=below, counts=list(counts), agents=agents
    )
    tied = tied._replaced(metadata=about)
    return tied if any(len(group) > 1 for row in rows for group in row) else tied.to_rankings()


def empty_and_idle(blank: int, idle: int) -> list[Entry]:
    """Say how many ballots name nobody, and how many rows stand for no ballot."""
    audit = []
    if blank:
        audit.append(Entry("ballots without a choice", "left out", blank, left_out=blank))
    if idle:
        audit.append(no_votes(idle))
    return audit
