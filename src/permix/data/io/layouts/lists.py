"""Rankings in one cell: ``Ann>Bob>Cy``, with ``=`` for ties, or ``Ann;Bob;Cy``."""

from __future__ import annotations

import re
import warnings

import numpy as np

from permix.data.io.column_names import BLANKS, LISTS, plain
from permix.data.io.layouts import notation
from permix.data.io.layouts.comparisons import holds_verdicts
from permix.data.io.layouts.counts import holds_counts
from permix.data.io.layouts.detection import position
from permix.data.io.layouts.doubtful_entries import refuse_codes_among_numbers
from permix.data.io.marks import is_mark, says_several
from permix.data.io.table_columns import Table, is_blank, missing_mask, naturals
from permix.data.labels import Array, Label, as_objects
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, PermixWarning

SEPARATORS = (">", ";", "|", ",")
# A name that no column has.
LISTED = "a ranking in each cell"


_COUNTED = re.compile(r"[0-9]+\s*[xX×*]\s*\S.*|.*\S\s*[*×^]\s*[0-9]+|.*\S\s+[0-9]+\s*[xX×]")
# A list of whole numbers and nothing else, as JSON writes it.
_NUMBERS_ALONE = re.compile(r"\s*\[\s*[0-9]{1,6}(\s*,\s*[0-9]{1,6})*\s*\]\s*")
# Marks that may stand between tied items, or be parts of names.
_TIED = re.compile(BLANKS + r"(?:[,~/&+]|\band\b)\s*")
# Items with a number before or after them.
_NUMBERED = re.compile(r"\(?([0-9]{1,4})(?:[.:]\s|\))\s*(\S.*)")
_NUMBER_AFTER = re.compile(r"(.*[^\s0-9])\s*[:(]\s*([0-9]{1,4})\)?")
# Cells with several items, in which the same pairs stand, that tell whether somebody ordered them.
FEWEST_LISTS = 4


def with_lists(table: Table, layout: str) -> Table:
    """Call a column of rankings in one cell ``LISTED``, so that it is taken for nothing else."""
    if layout not in ("auto", "orders"):
        return table
    roles = {place for role in ("agent", "count", "unlisted") for place in table.places(role)}
    said = layout == "orders" and len(table.names) - len(roles) <= 1
    for place, called in enumerate(table.names):
        if position(called) is not None or re.fullmatch(r"rank\d+", plain(called)):
            continue  # one item of an ordering, whatever marks are in its name
        if layout == "auto" and holds_verdicts(table, place):
            continue
        if place in roles and (plain(called) not in LISTS or holds_counts(table, place)):
            continue
        named = said or table.numbered or plain(called) in LISTS
        if named and layout == "auto":
            _refuse_what_may_be_ranks(table, place)
        column = notation.unified(table, place, named)
        mark = _separator(column)
        if mark is not None:
            column = _without_numbers(table, place, column, mark)
        _refuse_worst_first(table, place, column)
        if mark == ">" or (mark and (named or (mark == ";" and _are_permutations(column)))):
            if layout != "orders":
                _refuse_checked_boxes(table, place, column, mark)
            if mark == "," and layout != "orders" and not _parts_move(column):
                row = next(row for row, entry in enumerate(column) if "," in str(entry))
                raise DataError(
                    f"{table.where(row)}: the comma in {str(column[row])!r} could separate items or be part "
                    "of a name. If it separates items, say ",
                    Argument("layout", "orders"),
                    "; if not, call the column otherwise",
                )
            names, columns = list(table.names), list(table.columns)
            names[place], columns[place] = LISTED, _without_nobody(table, column, mark)
            return table._replace(names=names, columns=columns)
    return table


def _refuse_what_may_be_ranks(table: Table, place: int) -> None:
    """Ask about lists such as ``[2, 1, 3]`` in a column called ranks: items, or the rank of each item."""
    column = table.columns[place]
    if column.dtype.kind != "O" or not plain(table.names[place]).startswith("rank"):
        return
    numbers: set[tuple[int, ...]] = set()
    for entry in column.tolist():
        if is_blank(entry):
            continue
        if not isinstance(entry, str) or not _NUMBERS_ALONE.fullmatch(entry):
            return
        numbers.add(tuple(sorted(int(number) for number in re.findall("[0-9]+", entry))))
    row = next(iter(numbers), ())
    if len(numbers) == 1 and len(row) > 1 and row in (tuple(range(len(row))), tuple(range(1, len(row) + 1))):
        at = next(at for at, entry in enumerate(column.tolist()) if not is_blank(entry))
        raise DataError(
            f"{table.where(at)}, column {table.names[place]!r}: {column[at]!r} could list items, best first, "
            "or hold the rank of each item. If it lists items, say ",
            *(Argument("layout", "orders"), "; if not, write a column for each item"),
        )


def _refuse_worst_first(table: Table, place: int, column: Array) -> None:
    """Refuse rankings such as ``A<B<C``."""
    texts = [str(entry) for entry in column[~missing_mask(column)]] if column.dtype.kind == "O" else []
    if texts and all(re.fullmatch("[^<>]+(<[^<>]+)+", text) for text in texts):
        raise DataError(
            f"{table.source}: column {table.names[place]!r} holds {texts[0]!r}; write the best item first, "
            "with > between the items"
        )


def _without_numbers(table: Table, place: int, column: Array, mark: str) -> Array:
    """Return a column of lists without ``1.``, ``2.``, … before the items, where these are their places.

    Where an item has the same number in all cells, the number is part of its name.
    """
    filled = np.flatnonzero(~missing_mask(column)).tolist()
    lists = {row: _parts(column[row], mark) for row in filled}
    for pattern, number, name in ((_NUMBERED, 1, 2), (_NUMBER_AFTER, 2, 1)):
        found = {row: [pattern.fullmatch(part) for part in parts] for row, parts in lists.items()}
        matches = [match for row in filled for match in found[row] if match is not None]
        if not matches or any(match is None for row in filled for match in found[row]):
            continue
        if len({(match[number], match[name]) for match in matches}) == len(
            {match[name] for match in matches}
        ):
            continue
        for row, parts in found.items():
            said = [int(match[number]) for match in parts if match is not None]
            if pattern is not _NUMBERED or said != list(range(1, len(said) + 1)):
                raise DataError(
                    f"{table.where(row)}: the numbers in {str(column[row])!r} could be ranks, scores or "
                    "parts of names; list the items alone, best first"
                )
        plain_lists = column.copy()
        for row, parts in found.items():
            plain_lists[row] = mark.join(match[name] for match in parts if match is not None)
        return plain_lists
    return column


def _without_nobody(table: Table, column: Array, mark: str) -> Array:
    """Leave out words that say that nobody is listed, where they end a list; refuse other marks."""
    entries = column.tolist()
    lists = {row: _parts(entry, mark) for row, entry in enumerate(entries) if not is_blank(entry)}
    words = {part for parts in lists.values() for part in parts if is_mark(part)}
    words -= {word for word in words if all(word in parts and parts[-1] != word for parts in lists.values())}
    if not words:
        return column
    for row, parts in lists.items():
        while parts and parts[-1] in words and not says_several(parts[-1]):
            parts.pop()
        for word in (part for part in parts if part in words):
            raise DataError(
                f"{table.where(row)}: {word!r} in {str(entries[row])!r} is a mark, not an item; write the "
                "ranks into columns rank1, rank2, …, where marks are read by rules, or rename the item"
            )
        entries[row] = mark.join(parts) or None
    said = f"{table.source}: {', '.join(map(repr, sorted(words)[:3]))} at the end of lists is read as no item"
    warnings.warn(f"{said}; call the item otherwise if it is one", PermixWarning, stacklevel=5)
    return as_objects(entries)


def _parts(entry: object, mark: str) -> list[str]:
    return [part.strip() for part in str(entry).strip().rstrip(mark).split(mark) if part.strip()]


def _are_permutations(column: Array) -> bool:
    """Whether all cells list the same items, some in another order: so forms write rankings."""
    lists = [_parts(entry, ";") for entry in column[~missing_mask(column)]]
    whole = lists and len(set(lists[0])) > 1 and all(sorted(each) == sorted(lists[0]) for each in lists)
    return bool(whole) and any(each != lists[0] for each in lists)


def _refuse_checked_boxes(table: Table, place: int, column: Array, mark: str) -> None:
    """Ask about lists that all keep one order, as the boxes of a form do that somebody checked."""
    if mark == ">":
        return
    lists = [each for entry in column[~missing_mask(column)] if len(each := _parts(entry, mark)) > 1]
    pairs: dict[tuple[str, str], int] = {}
    for each in lists:
        for at, item in enumerate(each):
            for later in each[at + 1 :]:
                pairs[item, later] = pairs.get((item, later), 0) + 1
    again = sum(n - 1 for n in pairs.values())
    if len(lists) < FEWEST_LISTS or again < FEWEST_LISTS - 1 or any(pair[::-1] in pairs for pair in pairs):
        return
    if len({tuple(sorted(each)) for each in lists}) == 1:
        return  # everybody ordered the same items, and all agree
    raise DataError(
        f"{table.source}: the items in column {table.names[place]!r} stand in the same order in every cell, "
        "as boxes of a form do that were checked. If the order is what people prefer, say ",
        Argument("layout", "orders"),
        "; boxes that were checked are read from columns of 0 and 1, one for each item",
    )


def _parts_move(column: Array) -> bool:
    """Whether what commas separate stands at different places, as items do and parts of names do not."""
    places: dict[str, set[int]] = {}
    for entry in column[~missing_mask(column)]:
        for place, part in enumerate(str(entry).split(",")):
            places.setdefault(part.strip(), set()).add(place)
    moving = sum(len(found) > 1 for found in places.values())
    return 2 * moving >= len(places)


def _separator(column: Array) -> str | None:
    if column.dtype.kind != "O":
        return None
    texts = [str(entry) for entry in column[~missing_mask(column)]]
    for mark in SEPARATORS:
        several = sum(mark in text.strip(mark) for text in texts)
        if 2 * several >= len(texts) > 0:  # one item alone is a list as well
            return mark
        if mark == ">" and several and _stand_alone_elsewhere(texts):
            return mark
    return None


def _stand_alone_elsewhere(texts: list[str]) -> bool:
    """Whether something between arrows is all that stands in another cell, as where most rank one item."""
    ranked = {part.strip() for text in texts if ">" in text for part in re.split("[>=]", text)}
    return any(text.strip() in ranked for text in texts if ">" not in text)


def _look_at_ties(table: Table, rows: list[list[list[str]]]) -> None:
    """Take ``A~B`` for a tie where A and B are items; refuse other marks between items, and counts."""
    alone = {item for groups in rows for group in groups for item in group if not _TIED.search(item)}
    counted = sum(any(_COUNTED.fullmatch(item) for item in (*groups[0], *groups[-1])) for groups in rows)
    for row, groups in enumerate(rows):
        for at, group in enumerate(groups):
            for item in group:
                if 2 * counted >= len(rows) and _COUNTED.fullmatch(item):
                    why = "seems to hold a count: counts stand in a column of their own, or as '12: A>B'"
                    raise DataError(f"{table.where(row)}: {item!r} {why}")
                parts = _TIED.split(item)
                if len(parts) < 2 or not all(part in alone for part in parts):
                    continue
                if "~" not in item:
                    why = f"seems to be {' and '.join(map(repr, parts))}, tied; write = between tied items"
                    raise DataError(f"{table.where(row)}: {item!r} {why}")
                groups[at] = [part for each in group for part in _TIED.split(each)]


def _warn_of_ends(table: Table, column: Array) -> None:
    """Say that rankings end with ``>``, as where the last item was cut off."""
    ends = [row for row, entry in enumerate(column.tolist()) if str(entry).rstrip().endswith(">")]
    if ends:
        have = "ranking ends" if len(ends) == 1 else "rankings end"
        warnings.warn(
            f"{table.where(ends[0])}: {len(ends):,} {have} with '>' and no item after it, and the rest is "
            "read as it stands; look whether something was cut off",
            PermixWarning,
            stacklevel=5,
        )


def items_of(cell: object) -> list[str]:
    """Return the items of a ranking in a cell."""
    return [part.strip() for part in re.split("[>=;|,]", str(cell)) if part.strip()]


def read_lists(
    table: Table,
    place: int,
    names: tuple[Label, ...] | None,
    below: Array,
    counts: Array,
    agents: Array | None,
) -> Rankings | Preferences:
    """Read a column of lists, best first."""
    column = table.columns[place]
    mark = _separator(column)
    assert mark is not None
    rows: list[list[list[str]]] = []
    for row, entry in enumerate(column.tolist()):
        text = str(entry).strip()
        other = next((each for each in SEPARATORS[:2] if each != mark and each in text), None)
        if other is not None:
            raise DataError(
                f"{table.where(row)}: {mark!r} and {other!r} both separate items; use one: {text!r}"
            )
        groups = [
            [part.strip() for part in (re.split("=", group) if mark == ">" else [group])]
            for group in text.rstrip(mark).split(mark)
        ]
        if mark == ">" and "<" in text:
            raise DataError(
                f"{table.where(row)}: '<' and '>' both stand in {text!r}; write the best item first"
            )
        if any(not item for group in groups for item in group):
            raise DataError(f"{table.where(row)}: an item is missing in {text!r}")
        flat = [item for group in groups for item in group]
        odd = next((item for item in flat if mark == ">" and notation.open_brackets(item)), None)
        if odd is not None:
            raise DataError(
                f"{table.where(row)}: {odd!r} has a bracket that is not closed; tied items are written as "
                "A>{B,C} or A>B=C"
            )
        if len(set(flat)) < len(flat):
            twice = next(item for item in flat if flat.count(item) > 1)
            raise DataError(f"{table.where(row)}: {twice!r} is listed twice")
        rows.append(groups)
    if mark == ">":
        _look_at_ties(table, rows)
        _warn_of_ends(table, column)
    every = (item for groups in rows for group in groups for item in group)
    notation.refuse_counts(table, (groups[0][0] for groups in rows), every)
    entries = naturals(as_objects([item for groups in rows for group in groups for item in group])).tolist()
    if names is None:
        refuse_codes_among_numbers(table.source, dict.fromkeys(entries), of_cells=False)
    named = iter(entries)
    levels = [[[next(named) for _ in group] for group in groups] for groups in rows]
    read = Preferences.from_levels(levels, items=names, rest_below=below, counts=counts, agents=agents)
    return read if any(len(group) > 1 for groups in rows for group in groups) else read.to_rankings()
