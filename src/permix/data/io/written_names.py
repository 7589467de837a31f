"""Names that a text file would give back changed, or not at all: refused before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from permix.data.labels import Array, Label
from permix.errors import DataError

_NEGATIVE = re.compile(r"-[0-9]+\Z")


def refuse_names(names: Iterable[Label], what: str, blank: Collection[str] = ()) -> None:
    """Refuse names that a reader would change, take for an empty cell (``blank``) or for one another."""
    written: dict[str, Label] = {}
    for name in names:
        text = str(name)
        if trouble := _trouble(text, blank):
            raise DataError(f"the {what} name {name!r} {trouble}; rename the {what} before writing")
        if (other := written.setdefault(text, name)) != name:
            raise DataError(
                f"{what} names {other!r} and {name!r} look the same in a file; rename one of them"
            )


def refuse_table_names(items: Iterable[Label], agents: Array | None, blank: Collection[str]) -> None:
    """Refuse item names and agent ids that would not come back from a table."""
    refuse_names(items, "item", blank)
    for name in items:
        if _NEGATIVE.match(str(name)):
            raise DataError(
                f"the item name {name!r} reads as a negative number, which marks places left empty; "
                "rename the item before writing"
            )
    if agents is not None and agents.dtype.kind == "O":
        refuse_names(agents.tolist(), "agent", blank)


def _trouble(text: str, blank: Collection[str]) -> str:
    if "\n" in text or "\r" in text:
        return "spans lines, which the file cannot hold"
    if text in blank:
        return "would be read as an empty cell"
    if text != text.strip():
        return "begins or ends with blanks, which are taken off when the file is read"
    if text.startswith("\ufeff"):
        return "begins with a byte order mark, which is taken off when the file is read"
    return ""
