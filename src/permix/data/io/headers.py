"""Whether the first line of a table names its columns: found by what is in it, or asked for.

The first line holds names when it says so (``voter``, ``rating``, ``rank1``, …), when words in it stand
over columns of numbers, or when all is text that does not occur again below. It is a row when it holds
numbers over numbers, or what the lines below hold too. Where it could be both, the caller must say: no row
is dropped in silence.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np

from permix.data.cells_codes import stands_for_nothing
from permix.data.io.column_names import ABOUT_AGENTS, LISTS, USUAL_NAMES, plain
from permix.data.io.containers.lines import Lines
from permix.data.io.table_columns import BLANK, DECIMAL_COMMA, DECIMAL_COMMAS_BESIDE, refuse_same_names
from permix.data.io.text_files import PathLike, shorten
from permix.errors import (
    Argument,
    DataError,
    FileFormatError,
    FileWithoutRows,
    Message,
    PermixWarning,
    about_parameters,
)

# Not "None" or "none", which are answers that people give.
NOTHING = BLANK
_ROLES = frozenset().union(*USUAL_NAMES.values()) | {"id", "name", "index", "#"}

Fields = list[list[str]]
# From so many lines on, numbers of a row come back below.
MANY_LINES = 50
# Rankings of a column that are looked at to see whether it holds any.
MOST_RANKINGS = 1000
# Words that columns of lists are called by, besides those for places with a number.
PLACE_WORDS = ABOUT_AGENTS | frozenset(
    [
        *("best", "next", "middle", "last", "worst", "top", "bottom", "most", "least"),
        *("favorite", "favourite"),
    ]
)


def is_usual_name(text: str) -> bool:
    """Whether a column of votes or ratings is usually called so."""
    return plain(text) in _ROLES


def is_number(text: str, delimiter: str = ",") -> bool:
    """Whether an entry is a number, or blank; where semicolons or tabs separate them, 1,5 is a number."""
    try:  # with _, Python's own way of grouping digits, files do not mean a number
        return text in NOTHING or ("_" not in text and float(text) is not None)
    except ValueError:
        return delimiter in DECIMAL_COMMAS_BESIDE and re.fullmatch(DECIMAL_COMMA, text) is not None


def split_header(
    path: PathLike, lines: Lines, header: bool | None, decide: Callable[[Fields], bool]
) -> tuple[list[str] | None, Lines]:
    """Return the names of the columns (None where no line has them) and the other lines of a table.

    ``decide`` says of all lines whether the first holds names, where the caller did not.
    """
    numbers, fields = lines.numbers, lines.fields
    if lines.named and header is False:
        with about_parameters():
            raise DataError(f"{path} names its columns: ", Argument("header", False), " is for text files")
    if not (lines.named or (decide(fields) if header is None else header)):
        return None, lines
    refuse_same_names(path, fields[0], numbers[0])
    if len(fields) == 1:
        raise FileWithoutRows(f"{path}: a header, but no rows after it", path)
    return fields[0], lines._replace(numbers=numbers[1:], fields=fields[1:])


def warn_of_no_header(path: PathLike, first: list[str], called: str) -> None:
    """Say that the first line was taken for a row."""
    said = (
        f"{path}: no line names the columns, so line 1 ({shorten(', '.join(first), 40)!r}) is read "
        f"as data and the columns are called {called} and so on. If line 1 holds names, say "
    )
    way_out = (Argument("header", True), "; ", Argument("header", False), " silences this warning")
    warnings.warn(PermixWarning(said, *way_out), stacklevel=4)


def warn_of_lone_name(path: PathLike, name: str, below: Lines) -> None:
    """Say that a word above rankings was taken for their name, unless such columns are called so."""
    ranked = any(row and ">" in _with_signs(row[0]) for row in below.fields[:MOST_RANKINGS])
    if ranked and plain(name) not in LISTS and not is_usual_name(name):
        said = f"{path}: line 1 ({shorten(name, 40)!r}) is taken for the name of the rankings below it; "
        either = (
            "if it is one, say ",
            Argument("header", False),
            "; ",
            Argument("header", True),
            " silences this warning",
        )
        warnings.warn(PermixWarning(said, *either), stacklevel=4)


def has_header(
    path: PathLike,
    fields: Fields,
    *,
    number: Callable[[str], bool] = is_number,
    known: Callable[[str], bool] = is_usual_name,
    numbers_may_be_names: bool = False,
) -> bool:
    """Whether the first line holds names; an error where that is open.

    ``number`` and ``known`` say whether an entry is a number (or blank) and a usual name for a column;
    ``numbers_may_be_names`` whether columns are called by numbers all the time, as numbered items are.
    """
    first, body = fields[0], fields[1:]
    if _lists_items(fields):
        return False
    if not body:
        return not all(number(entry) for entry in first)
    below = [{row[place] for row in body} for place in range(len(first))]
    if any(known(entry) and entry not in below[place] for place, entry in enumerate(first)):
        return True
    filled = [place for place, entry in enumerate(first) if entry not in NOTHING]
    words = [place for place in filled if not number(first[place]) and not stands_for_nothing(first[place])]
    over_numbers = {
        place for place in filled if below[place] - NOTHING and all(number(entry) for entry in below[place])
    }
    numbers_over = over_numbers.difference(words)
    # Numbers over numbers: those of data, unless they could be names, as 2019, 2020, 2021 are.
    values = [first[place] for place in filled if place in numbers_over]
    plausible = len(set(values)) == len(values) and all(re.fullmatch(r"[0-9]+", entry) for entry in values)
    if over_numbers & set(words):
        if values and not plausible:
            word = first[min(over_numbers & set(words))]
            raise unsure_of_header(path, first, f" ({word!r} is a word, {values[0]} is a number)")
        return True
    if words:
        again = set().union(*below)
        if any(first[place] in again for place in words) or len({first[p] for p in words}) < len(words):
            return False
        if values and plausible:
            raise unsure_of_header(path, first, f" ({values[0]} could be a name or a value)")
        return not values
    if not filled or not plausible:
        return False
    if _comes_back(first, body, values):
        return False
    saved_index = first[0] == "" and "" not in below[0]
    if saved_index and _counts(values):
        return True
    if numbers_may_be_names or saved_index or _counts(values) or _counts(values[1:]):
        raise unsure_of_header(path, first, " (numbers can be names, too)")
    if not all(re.fullmatch(r"[-+]?[0-9]+", entry) for place in filled for entry in below[place] - NOTHING):
        raise unsure_of_header(path, first, " (they are whole numbers, and those below are not)")
    return False


def orders_have_header(
    path: PathLike, fields: Fields, *, known: Callable[[str], bool] = is_usual_name
) -> bool:
    """Whether the first line of lists of items holds names of columns; an error where that is open.

    Entries are items, whatever they look like: what tells is whether they come back below. Where words do
    not, few lines leave open whether somebody listed items that nobody else did, unless some of the words are
    those that columns are called by. No ballot is lost in silence.
    """
    first, body = fields[0], fields[1:]
    if _lists_items(fields):
        return False
    again = {entry for row in body for entry in row}
    if any((known(entry) or plain(entry) in PLACE_WORDS) and entry not in again for entry in first):
        return True
    named = [entry for entry in first if entry not in NOTHING]
    if any(is_number(entry) for entry in named):
        return has_header(path, fields, known=known, numbers_may_be_names=True)
    if not body or any(entry in again for entry in named):
        return False
    if any(all(is_number(entry) for entry in column) for column in zip(*body, strict=True)):
        return True  # a word over numbers
    if len(body) < MANY_LINES:
        raise unsure_of_header(path, first, " (nothing in it comes back below)")
    return True


def _lists_items(fields: Fields) -> bool:
    """Whether an entry of the first line is a ranking as those below it are, such as A>B>C over B>A>C.

    With one item or with ties alone it is one where items below are called so; half-written rankings are for
    the reader to refuse.
    """
    for place, entry in enumerate(fields[0]):
        below = [row[place] for row in fields[1:] if len(row) > place]
        if not any(">" in _with_signs(each) for each in below[:MOST_RANKINGS]):
            continue
        if ">" in _with_signs(entry):
            return True
        items = _items(entry)
        if items and any(items & _items(each) for each in below):
            return True
    return False


def _with_signs(text: str) -> str:
    """Return a ranking with the signs of the one notation, whatever stands between its items."""
    return re.sub("&gt;|[<≻≺→»]", ">", text)


def _items(text: str) -> set[str]:
    parts = (part.strip() for part in re.split("[>=∼≈≃]", _with_signs(text)))
    return {part for part in parts if part}


def _comes_back(first: list[str], body: Fields, values: list[str]) -> bool:
    """Whether numbers of a first line stand below in the same columns, over many lines.

    Those of ids and ratings do. Names of items may as well, where items are 1, 2, 3, … and ranks stand below.
    """
    if len(body) < MANY_LINES:
        return False
    consecutive = sorted(map(int, values)) in ([*range(len(values))], [*range(1, len(values) + 1)])
    again = sum(any(row[place] == entry for row in body) for place, entry in enumerate(first) if entry)
    return not consecutive and again >= 2


def _counts(entries: list[str]) -> bool:
    """Whether whole numbers go up in steps of one, at least three of them."""
    return len(entries) > 2 and bool(np.all(np.diff([int(entry) for entry in entries]) == 1))


def unsure_of_header(path: PathLike, first: list[str], why: str = "") -> FileFormatError:
    """Return the error that asks whether the first line names the columns."""
    shown = shorten(", ".join(first), 40)
    said = f"{path}, line 1: {shown!r} could name the columns or be a row{why}; say "
    either = (Argument("header", True), " or ", Argument("header", False))
    return FileFormatError(Message(said, *either), path, 1)
