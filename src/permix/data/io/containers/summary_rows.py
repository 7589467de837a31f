"""Lines at the end or the beginning of a table that sum up all others: means, deviations, winners.

Taken for agents they would vote. What tells is their content: the line holds the mean (deviation, sum,
largest, smallest number, …) of each column as computed, or its name is a word where all other lines are
numbered. The first are left out by the caller with a warning, and so are the second where the name says what
they are; of other names the user is asked.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from permix.data.io.column_names import USUAL_NAMES, plain
from permix.data.io.text_files import PathLike, shorten
from permix.data.labels import Array
from permix.errors import DataError, PermixWarning

# Lines at either end that are looked at, different names among them, and the fewest others.
_MOST_LINES, _MOST_NAMES, _FEWEST_OTHERS = 8, 5, 3
# Shorter names say nothing.
_FEWEST_LETTERS = 3
# Names of statistics, which persons may have as well: they need numbers that agree, or numbered agents.
_STATISTIC = re.compile(
    r"(?:class|group|column|col|overall|grand|sample|panel|total)?"
    r"(?:averages?|avg|means?|medians?|modes?|sums?|totals?|counts?|max|maximum|min|minimum|range|"
    r"sd|std|stdev|stddev|std?deviation|standarddev|standarddeviation|variances?|var|se|sem|stderr|"
    r"standarderror|highest|lowest|overall|mittelwert|summe|moyenne|promedio)"
    r"(?:score|rating|value|point|rank|mark)?s?"
)
# What a line of results is called, which is said where agents have names.
_OF_RESULTS = frozenset(
    [
        *("rank", "ranks", "place", "winner", "winners", "elected", "result", "results", "finalrank"),
        *("finalresult", "weight", "weights", "score", "scores", "position", "finalscore", "standing"),
    ]
)
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,]([0-9]+))?(?:[eE][-+]?[0-9]+)?")
_NUMBERED = re.compile(r"([^\W\d_]{0,20}[ _.#-]?)([0-9]+)")
_LETTER = re.compile(r"[^\W\d_]")
_PLACE = re.compile(r"(?:rank|choice|pos|position|place|pref|preference)[0-9]+")
_OF_AGENTS = USUAL_NAMES["agent"] | {"id", "name", "#", "", "no", "nr", "ballot", "response", "row"}


class _Body(NamedTuple):
    """The lines that are summed up."""

    rows: Sequence[Sequence[str]]
    columns: dict[int, Array | None]  # those looked at; None: not of numbers

    def column(self, place: int) -> Array | None:
        if place not in self.columns:
            entries = [row[place] for row in self.rows if len(row) > place and row[place]]
            numbers = [_number(entry) for entry in entries]
            whole = len(numbers) > 1 and None not in numbers
            self.columns[place] = np.array(numbers, dtype=np.float64) if whole else None
        return self.columns[place]


def n_summing_up(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the last lines sum up those above, the first line being names of columns."""
    if not rows or len(rows[0]) < 3:
        return 0
    lexical = 0
    for row in rows[: -_MOST_LINES - 1 : -1]:
        if len(rows) - lexical <= _FEWEST_OTHERS + 1 or not _could_sum_up(row):
            break
        lexical += 1
    for n in range(lexical, 0, -1):
        above, last = rows[1 : len(rows) - n], rows[len(rows) - n :]
        body = _Body(above, {})
        numbered = _are_numbered(above)
        if all(_sums_up(row, body, numbered) for row in last):
            ids = {row[0] for row in last}
            if not any(row[0] in ids for row in above if row):
                return n
    return 0


def n_by_name(
    path: PathLike, numbers: Sequence[int], rows: Sequence[Sequence[str]], unit: str, first: bool = False
) -> int:
    """Return how many lines at the end, or the beginning, are called statistics where others are numbered.

    Lines of other names are asked about. Where agents have names, one may be called as lines of results are:
    that is said.
    """
    if not rows or len(rows[0]) < 2 or _PLACE.fullmatch(plain(rows[0][0])):
        return 0
    if _NUMBER.fullmatch(rows[0][0]) or not (_LETTER.search(rows[0][0]) or plain(rows[0][0]) in _OF_AGENTS):
        return 0
    if not first and len(rows) > _FEWEST_OTHERS and not _are_numbered(rows[1:2], fewest=1):
        _warn_of_results(path, numbers[-1], rows[-1], unit)
        return 0
    order = range(1, len(rows)) if first else range(len(rows) - 1, 0, -1)
    odd: list[int] = []
    names: set[str] = set()
    for at in order:
        entry = rows[at][0] if rows[at] else ""
        if not entry or not _LETTER.search(entry) or _NUMBERED.fullmatch(entry):
            break
        if first and not _could_sum_up(rows[at]):
            break
        names.add(entry)
        odd.append(at)
        if len(names) > _MOST_NAMES:
            return 0
    others = rows[len(odd) + 1 :] if first else rows[1 : len(rows) - len(odd)]
    if not odd or len(others) < _FEWEST_OTHERS or len(odd) > len(others):
        return 0
    if not _are_numbered(others):
        return 0
    for at in odd:
        told = _word(rows[at][0])
        if len(told) < _FEWEST_LETTERS and not _STATISTIC.fullmatch(told):
            return 0
        if not _STATISTIC.fullmatch(told):
            raise DataError(
                f"{path}, {unit} {numbers[at]}: {shorten(rows[at][0], 40)!r} stands in column "
                f"{rows[0][0]!r}, where all other lines have numbers such as {others[0][0]!r}: it may be a "
                "line of results or weights, and would count as one more. Take the line out, or, if it is "
                "like all others, give it a number as well"
            )
    return len(odd)


def _warn_of_results(path: PathLike, number: int, row: Sequence[str], unit: str) -> None:
    """Say that the last line is called as one of results is, and is read all the same."""
    if _word(row[0]) in _OF_RESULTS:
        warnings.warn(
            f"{path}: {unit} {number} is called {shorten(row[0], 40)!r}, as a line of results is, and is "
            "read like all others; take it out if it sums them up",
            PermixWarning,
            stacklevel=6,
        )


def _word(entry: str) -> str:
    return re.sub(r"[\W_]", "", entry).lower()


def _are_numbered(rows: Sequence[Sequence[str]], fewest: int = _FEWEST_OTHERS) -> bool:
    """Whether the first entries of all lines are numbers, or a word with numbers: ``T1``, ``T2``."""
    if len(rows) < fewest:
        return False
    before: set[str] = set()
    for row in rows:
        found = _NUMBERED.fullmatch(row[0]) if row else None
        if found is None:
            return False
        before.add(found[1])
        if len(before) > 1:
            return False
    return True


def _could_sum_up(row: Sequence[str]) -> bool:
    """Whether a line has a word, or nothing, and then at least two numbers and nothing else."""
    filled = [entry for entry in row[1:] if entry]
    word = bool(row) and (not row[0] or (_LETTER.search(row[0]) and not _NUMBERED.fullmatch(row[0])))
    return bool(word) and len(filled) > 1 and all(map(_NUMBER.fullmatch, filled))


def _sums_up(row: Sequence[str], body: _Body, numbered: bool) -> bool:
    """Whether all numbers of a line are one statistic of their columns, to the places they are given to."""
    known: set[str] | None = None
    n_fractions = n_places = 0
    for place, entry in enumerate(row):
        if not place or not entry:
            continue
        values, match = body.column(place), _NUMBER.fullmatch(entry)
        said = _number(entry)
        if values is None or said is None or match is None:
            return False
        step = 0.5 * 10.0 ** -len(match[1] or "")
        here = {name for name, value in _statistics(values) if abs(value - said) <= step * 1.001 + 1e-9}
        known = here if known is None else known & here
        if not known:
            return False
        n_places += 1
        n_fractions += said != int(said)
    if not known or n_places < 2:
        return False
    if 2 * n_fractions >= n_places and n_fractions > 1 and known - {"max", "min", "sum"}:
        return True
    return numbered or not row[0] or bool(_STATISTIC.fullmatch(_word(row[0])))


def _statistics(values: Array) -> list[tuple[str, float]]:
    n, mean = len(values), float(values.mean())
    spread = float(((values - mean) ** 2).sum())
    found = [
        *(("mean", mean), ("median", float(np.median(values))), ("sum", float(values.sum()))),
        *(("max", float(values.max())), ("min", float(values.min())), ("count", float(n))),
        *(("variance", spread / (n - 1)), ("variance of all", spread / n)),
    ]
    return [*found, ("sd", found[-2][1] ** 0.5), ("sd of all", found[-1][1] ** 0.5)]


def _number(entry: str) -> float | None:
    return float(entry.replace(",", ".")) if _NUMBER.fullmatch(entry) else None
