"""Exports of Dominion by msgspec: the rest is skipped, and marks are read when they are needed."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec


class Contest(TypedDict, total=False):
    """A contest on a card."""

    Id: Any
    OutstackConditionIds: msgspec.Raw
    Marks: msgspec.Raw


class Card(TypedDict, total=False):
    """A card of a ballot."""

    Contests: list[Contest]


class Ballot(TypedDict, total=False):
    """A ballot as it was scanned, or as it was adjudicated."""

    PrecinctPortionId: Any
    IsCurrent: Any
    Cards: list[Card] | None
    Contests: list[Contest]


class Session(TypedDict, total=False):
    """What a tabulator did with one ballot."""

    TabulatorId: Any
    BatchId: Any
    RecordId: Any
    CountingGroupId: Any
    Original: Ballot | None
    Modified: Ballot | None


class Export(TypedDict, total=False):
    """A file ``CvrExport_1.json``."""

    Sessions: list[Session]


decode = msgspec.json.Decoder(Export).decode


def plain(value: Any) -> Any:
    """Return what was left unread as plain values."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
