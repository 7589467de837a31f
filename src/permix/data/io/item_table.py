"""A table of attributes of items, such as party, color or text: a line for each item, called by name."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

from permix.data.attributes import NONE, Attributes, from_text
from permix.data.io.column_names import USUAL_NAMES, plain
from permix.data.io.containers.lines import read_lines
from permix.data.io.headers import has_header, split_header
from permix.data.io.text_files import PathLike
from permix.data.labels import Label, repeats, some_names
from permix.errors import DataError, PermixWarning

NAMES = USUAL_NAMES["item"] | {"name", "commentid"}


def read_item_table(path: PathLike) -> tuple[list[str], Attributes]:
    """Read names of items and what is known of each.

    The column called item, candidate, name and the like has the names, or else the first one.
    """
    decide = partial(has_header, path, known=lambda name: plain(name) in NAMES)
    names, lines = split_header(path, read_lines(path), None, decide)
    rows = lines.fields
    if names is None:
        raise DataError(f"{path}: the first line of a table of items names its columns, such as item, party")
    at = next((place for place, name in enumerate(names) if plain(name) in NAMES), 0)
    items = [row[at] for row in rows]
    for first, again in repeats(items):
        at_line = f"{path}, {lines.unit} {lines.numbers[again]}"
        raise DataError(f"{at_line}: {items[again]!r} has a line already ({lines.numbers[first]})")
    others = [place for place in range(len(names)) if place != at]
    if not others:
        raise DataError(f"{path}: a column of names and no other; there is nothing to know of the items")
    return items, from_text({names[place]: [row[place] for row in rows] for place in others})


def attributes_from(path: PathLike, items: Sequence[Label], known: Attributes = NONE) -> Attributes:
    """Return what a table says of these items, beside what is known of them already; the table goes first."""
    listed, told = read_item_table(path)
    here = {str(name) for name in items}
    if not here & set(listed):
        raise DataError(
            f"{path} names none of the items: it has {some_names(listed[:3])}, the data have "
            f"{some_names([str(name) for name in list(items)[:3]])}"
        )
    strange = [name for name in listed if name not in here]
    missing = [str(name) for name in items if str(name) not in set(listed)]
    for names, said in ((strange, "are no items of the data"), (missing, "are items without a line")):
        if names:
            warnings.warn(
                f"{path}: {len(names)} {said}: {some_names(names[:3])}", PermixWarning, stacklevel=3
            )
    found = told.over(listed, [str(name) for name in items])
    columns = {name: known.column(name) for name in known} | {name: found.column(name) for name in found}
    return Attributes.of(columns)
