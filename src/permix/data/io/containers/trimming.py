"""What stands around a table in a file that people made: titles, notes, totals, empty columns.

All of it is left out with a warning that names the line; columns without a name and without an entry are left
out in silence, since there is nothing in them.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence

from permix.data.io.column_names import USUAL_NAMES, plain
from permix.data.io.containers.summary_rows import n_by_name, n_summing_up
from permix.data.io.text_files import PathLike, shorten
from permix.errors import DataError, PermixWarning

# Lines before a table that may be titles.
MOST_TITLES = 20
_TOTALS = frozenset(
    [
        *("total", "totals", "sum", "average", "mean", "median", "grandtotal", "subtotal", "count", "counts"),
        *("summe", "gesamt", "mittelwert", "insgesamt", "totale", "moyenne", "somme", "promedio", "suma"),
        *("avg", "mode", "overall", "grandmean", "stdev", "std", "standarddeviation", "durchschnitt"),
    ]
)
_RESULT = re.compile(
    r"(?:overall|mean|average|avg|median|total|combined|final|group|consensus)"
    r"(?:rank|ranking|score|rating|position|place|order|vote|point|result)s?"
)
_USUAL = frozenset().union(*USUAL_NAMES.values())
_RANK = re.compile(r"(?:rank|choice|pos|position|place|pref|preference)[0-9]+")
_LETTER = re.compile(r"[^\W\d_]")
# Notes below tables, which no line of a table has: alone in a line, and nowhere above.
_NOTE = re.compile(
    r"(?:(?:data\s+)?sources?|(?:foot)?notes?|remarks?|comments?|disclaimer|quelle|anmerkung|fuente|nota|"
    r"base|basis|sample(?:\s+size)?|universe|population|weighting)\s*[:.]\s*\S.*"
    r"|(?:n|base|sample(?:\s+size)?)\s*[=:]\s*[0-9][0-9.,' ]*(?:\s\D*)?"
    r"|(?:grand\s+|sub)?totals?\b(?:[^:=]*[:=])?\s*[0-9][0-9.,' ]*"
    r"|[0-9][0-9.,]*\s+(?:rows?|records?|responses?|respondents?|ballots?|votes?|entries)\.?"
    r"|(?:the )?end|eof"
    r"|end of (?:file|data|report|table|document|export)\b.*"
    r"|(?:generated|exported|downloaded|printed|retrieved|(?:last )?updated)\s+(?:on|by|at|from)\b.*"
    r"|(?:copyright\b|©|\(c\)\s|https?://).*",
    re.IGNORECASE | re.DOTALL,
)
# What a sign begins that refers to something above: ``* preliminary``, ``† without late answers``.
_FOOTNOTE = re.compile(r"(?:\*+|†|‡|§|¹|²|³)\s*[^\W\d_].*", re.DOTALL)
TITLES = "taken for a title and left out"
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,\u00a0 ']*%?")


def trimmed(
    path: PathLike, numbers: list[int], rows: list[list[str]], unit: str = "line"
) -> tuple[list[int], list[list[str]]]:
    """Return the lines of the table itself, and where each stands in the file."""
    first = n_titles(rows)
    if first:
        say_left_out(path, numbers[:first], rows[:first], TITLES, unit)
        numbers, rows = numbers[first:], rows[first:]
    last = end_of(path, numbers, rows, unit)
    numbers, rows = without_names_again(path, numbers[:last], rows[:last], unit)
    begin = n_by_name(path, numbers, rows, unit, first=True)
    if begin:
        what = f"taken for {'a line' if begin == 1 else 'lines'} of totals and left out"
        say_left_out(path, numbers[1 : begin + 1], rows[1 : begin + 1], what, unit)
        numbers, rows = [numbers[0], *numbers[begin + 1 :]], [rows[0], *rows[begin + 1 :]]
    return numbers, _without_blank_columns(rows)


def without_names_again(
    path: PathLike, numbers: list[int], rows: list[list[str]], unit: str = "line", names: bool = False
) -> tuple[list[int], list[list[str]]]:
    """Leave out lines that say the names of the columns once more, as where files were put together.

    Two ballots may be alike: the first line holds ``names`` where one of them is usual for a column, or all
    that stands below some words is numbers.
    """
    first = rows[0] if rows else []
    if first not in rows[1:] or not (names or _are_names(first, [row for row in rows if row != first])):
        return numbers, rows
    again = [at for at, row in enumerate(rows) if at and row == first]
    _refuse_another_table(path, rows, again[0], numbers[again[0]], unit)
    lines, same = [numbers[at] for at in again], [rows[at] for at in again]
    say_left_out(path, lines, same[:1], "taken for the names of the columns once more and left out", unit)
    kept = [at for at, row in enumerate(rows) if not at or row != first]
    return [numbers[at] for at in kept], [rows[at] for at in kept]


def _refuse_another_table(
    path: PathLike, rows: Sequence[Sequence[str]], at: int, number: int, unit: str
) -> None:
    """Refuse names of columns that come once more where nothing below stands above, as of another contest."""
    parts = [
        Counter(entry for row in part for entry in row if entry) for part in (rows[1:at], rows[at + 1 :])
    ]
    entries = [{each for each in part if not _NUMBER.fullmatch(each)} - set(rows[0]) for part in parts]
    again = [sum(1 for each in found if part[each] > 1) for found, part in zip(entries, parts, strict=True)]
    if min(again) > 1 and not entries[0] & entries[1]:
        raise DataError(
            f"{path}, {unit} {number}: the names of the columns come once more, and no entry below them "
            "stands above: another table seems to begin, such as one of another contest; put each into a file"
        )


def _are_names(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    if not others or not all(entry and not _NUMBER.fullmatch(entry) for entry in first):
        return False
    usual = sum(1 for name in first if plain(name) in _USUAL or _RANK.fullmatch(plain(name)))
    of_columns = [[row[place] for row in others if len(row) > place] for place in range(len(first))]
    measured = [all(map(_NUMBER.fullmatch, filter(None, column))) and any(column) for column in of_columns]
    return bool(usual) or any(measured)


def n_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return how many lines stand above the first line of a table.

    They have one entry at most, where the lines of the table have several, and it does not come back below: a
    list of one item would be a ballot.
    """
    first = next((at for at, row in enumerate(rows[: MOST_TITLES + 1]) if _n_filled(row) > 1), 0)
    if not first or len(rows) < first + 2 or _n_filled(rows[first + 1]) < 2:
        return 0
    width = len(rows[first])
    whole = [row for row in rows[:first] if len(row) >= width and any(row)]  # could be a row of the table
    said = {row[0] for row in whole}
    names = all(entry and not _NUMBER.fullmatch(entry) for entry in rows[first][: _width(rows[first])])
    if whole and (width < 3 or not names or not all(map(_LETTER.search, said))):
        return 0
    if said and any(entry in said for row in rows[first:] for entry in row):
        return 0
    return first


def _width(row: Sequence[str]) -> int:
    return max((place + 1 for place, entry in enumerate(row) if entry), default=0)


def end_of(
    path: PathLike,
    numbers: Sequence[int],
    rows: Sequence[Sequence[str]],
    unit: str = "line",
    *,
    lists: bool = False,
) -> int:
    """Return how many lines there are before notes, totals and blank lines at the end of a table.

    Of ``lists``, whose lines may have one entry and where numbers may be items, only what reads as a note is
    left out.
    """
    last = len(rows)
    while last > 1:
        row = rows[last - 1]
        if not any(row):
            last -= 1
            continue
        after_gap = numbers[last - 1] > numbers[last - 2] + 1 or not any(rows[last - 2])
        after_gap = after_gap or _is_total(rows[last - 2], rows[: last - 2])
        begins = _is_note(row[0])
        note = begins or (after_gap and len(rows[0]) > 1 and not lists)
        note = note and _n_filled(row) == 1
        note = note and bool(_LETTER.search(row[0])) and _is_new(row, rows[: last - 1])
        if not note and (lists or not _is_total(row, rows[: last - 1])):
            break
        what = "a note" if note else "a line of totals"
        say_left_out(path, [numbers[last - 1]], [row], f"taken for {what} and left out", unit)
        last -= 1
    if not lists:
        last -= _n_that_sum_up(path, numbers[:last], rows[:last], unit)
    _warn_of_a_lone_end(path, numbers, rows[:last], unit)
    return last


def _n_that_sum_up(path: PathLike, numbers: Sequence[int], rows: Sequence[Sequence[str]], unit: str) -> int:
    """Return how many of the last lines sum up the others, and say which."""
    n = n_summing_up(rows)
    n += n_by_name(path, numbers[: len(rows) - n], rows[: len(rows) - n], unit)
    if n:
        first = len(rows) - n
        what = f"taken for {'a line' if n == 1 else 'lines'} of totals and left out"
        say_left_out(path, numbers[first:], rows[first:], what, unit)
    return n


def _warn_of_a_lone_end(
    path: PathLike, numbers: Sequence[int], rows: Sequence[Sequence[str]], unit: str
) -> None:
    """Say that the last line holds one entry that stands nowhere above, where all other lines hold several.

    Of rankings in one cell, several are those between arrows.
    """
    if len(rows) < 4 or _n_several(rows[-1]) != 1 or not _is_new(rows[-1], rows[:-1]):
        return
    told = next(entry for entry in rows[-1] if entry)
    parts = {part.strip() for row in rows[1:-1] for entry in row for part in entry.split(">")}
    if told in parts or not _LETTER.search(told) or any(_n_several(row) < 2 for row in rows[1:-1]):
        return
    warnings.warn(
        f"{path}: {unit} {numbers[len(rows) - 1]} holds {shorten(told, 40)!r} alone, which stands nowhere "
        "else, and is read like all others; if it is a note, take it out",
        PermixWarning,
        stacklevel=5,
    )


def _n_several(row: Sequence[str]) -> int:
    """Return how many entries a line has, those between arrows in one cell included."""
    return sum(entry.count(">") + 1 for entry in row if entry)


def _is_note(entry: str) -> bool:
    """Whether an entry reads as a note, whatever stands above it."""
    told = entry.strip()
    return _NOTE.fullmatch(told.strip("-=*_ ")) is not None or _FOOTNOTE.fullmatch(told) is not None


def _n_filled(row: Sequence[str]) -> int:
    return sum(1 for entry in row if entry)


def _is_new(row: Sequence[str], above: Sequence[Sequence[str]]) -> bool:
    """Whether no entry of a line stands above it."""
    entries = {entry for entry in row if entry}
    return not any(entry in entries for line in above for entry in line)


def _is_total(row: Sequence[str], above: Sequence[Sequence[str]]) -> bool:
    """Whether a line begins with a word for totals and has nothing but numbers after it."""
    filled = [entry for entry in row if entry]
    if not filled or len(above) < 2 or len(row) < 2:
        return False
    word = re.sub(r"[\W_]", "", filled[0]).lower()
    if word == "n" and not _counts_words(row, above):  # may name somebody, unless it counts the lines above
        return set(filled[1:]) == {str(sum(1 for line in above[1:] if any(line)))}
    if word not in _TOTALS and not _RESULT.fullmatch(word):
        return _counts_words(row, above)
    return all(_NUMBER.fullmatch(entry) for entry in filled[1:]) and _is_new([filled[0]], above)


def _counts_words(row: Sequence[str], above: Sequence[Sequence[str]]) -> bool:
    """Whether a line begins with a new word, and goes on with numbers where only words stand above."""
    told = [place for place, entry in enumerate(row) if entry and place]
    if len(above) < 4 or not row[0] or not told or not all(_NUMBER.fullmatch(row[place]) for place in told):
        return False
    higher = (line[place] for line in above[1:] for place in told if len(line) > place and line[place])
    return not any(map(_NUMBER.fullmatch, higher)) and _is_new([row[0]], above)


def _without_blank_columns(rows: list[list[str]]) -> list[list[str]]:
    """Leave out columns in which nothing stands; those inside the table where its first line has names."""
    if not rows:
        return rows
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    names = rows[0]
    if all(names) and len(names) == usual:
        return rows
    width = max(map(len, rows))
    filled = [False] * width
    for row in rows:
        for place, entry in enumerate(row):
            if entry:
                filled[place] = True
    right = max((place for place in range(width) if filled[place]), default=-1) + 1
    named = sum(1 for name in names if name and not _NUMBER.fullmatch(name)) > 1
    kept = [place for place in range(right) if filled[place] or not named]
    if len(kept) == width:
        return rows
    return [[row[place] for place in kept if place < len(row)] for row in rows]


def say_left_out(
    path: PathLike, numbers: Sequence[int], rows: Sequence[Sequence[str]], what: str, unit: str = "line"
) -> None:
    """Warn that some lines are left out, and name them."""
    said = "; ".join(shorten(" ".join(entry for entry in row if entry), 40) for row in rows[:3])
    of = f"{unit}s {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{unit} {numbers[0]}"
    are = "are" if len(numbers) > 1 else "is"
    warnings.warn(f"{path}: {of} ({said!r}) {are} {what}", PermixWarning, stacklevel=5)
