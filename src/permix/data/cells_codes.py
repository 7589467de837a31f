"""Values that stand for nothing, such as -1 or 99: those the user names, and those that look like it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from permix.data.cells_checks import as_floats, shown
from permix.data.io.marks import NO_ANSWER
from permix.data.io.table_columns import is_blank
from permix.data.labels import Array, as_objects, is_missing
from permix.errors import Argument, DataError, PermixWarning

#: One value or several that stand for missing; None for none.
Missing = Any
# What people write where they have no number, and the least share of cells for it to be worth a word.
USUAL_CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)
LEAST_SHARE = 0.01
# The same below a scale that has no numbers below 0, and above one of a few answers.
_BELOW, ABOVE = (-1.0, -2.0), (7.0, 8.0, 9.0)
_CODES = tuple(sorted({*map(float, NO_ANSWER), *USUAL_CODES, *_BELOW}))
# Scales run from 1 to one of these; 0 is looked for below those that questionnaires have, in so many cells.
_SCALES, _SCALES_ABOVE_ZERO, _FEWEST_CELLS = range(3, 8), (4, 5, 7), 30
# In so many ratings a gap tells; a scale may go from -1 to here.
_FEWEST_RATINGS, _HIGHEST_WITH_A_NEGATIVE = 12, 3.0


class MissingCodes:
    """Values that stand for missing, compared as numbers where both sides are numbers, else as text.

    Parameters
    ----------
    missing : number, str, or a list of these, optional

    Examples
    --------
    >>> MissingCodes([-1, "refused"]).blanked(np.array([3, -1, 4]))
    array([ 3., nan,  4.])
    """

    def __init__(self, missing: Missing = None) -> None:
        listed = _listed(missing)
        self.texts: dict[str, object] = {}
        self.numbers: dict[float, object] = {}
        for code in listed:
            if isinstance(code, str):
                self.texts[code.strip()] = code
            number = _as_number(code)
            if number is not None:
                self.numbers[number] = code
        self._unseen = list(listed)

    def __bool__(self) -> bool:
        return bool(self.texts or self.numbers)

    def blanked(self, values: Array) -> Array:
        """Return values with NaN or None in place of the codes."""
        if not self:
            return values
        if values.dtype.kind in "biuf":
            floats = as_floats(values)
            for number, code in self.numbers.items():
                found = floats == number
                if found.any():
                    self._seen(code)
                    floats[found] = np.nan
            return floats
        if values.dtype.kind not in "OUT":
            return values
        entries = values.tolist()
        verdicts: dict[Any, bool] = {}
        kept = []
        for entry in entries:
            key = (isinstance(entry, str), entry)
            try:
                verdict = verdicts.get(key)
                if verdict is None:
                    verdict = verdicts[key] = self.holds(entry)
            except TypeError:  # not hashable: no value of a cell, and refused as such later
                verdict = False
            kept.append(None if verdict else entry)
        return as_objects(kept)

    def holds(self, entry: object) -> bool:
        """Whether a value is one of the codes."""
        if isinstance(entry, str) and entry.strip() in self.texts:
            self._seen(self.texts[entry.strip()])
            return True
        number = _as_number(entry)
        if number is not None and number in self.numbers:
            self._seen(self.numbers[number])
            return True
        return False

    def _seen(self, code: object) -> None:
        self._unseen = [other for other in self._unseen if other is not code]

    def warn_of_unseen(self) -> None:
        """Say which codes no cell holds."""
        for code in self._unseen:
            said = (f"no cell holds {code!r}, which ", Argument("missing", code), " says stands for nothing")
            warnings.warn(PermixWarning(*said), stacklevel=4)


def _listed(missing: Missing) -> list[object]:
    if missing is None:
        return []
    if isinstance(missing, str) or not isinstance(missing, Iterable):
        missing = [missing]
    listed = [code.item() if isinstance(code, np.generic) else code for code in missing]
    for code in listed:
        if not isinstance(code, str | int | float) or isinstance(code, bool):
            raise DataError(
                Argument("missing"),
                f": {shown(code)} is neither a number nor text; name the value, or a list of them, that "
                "stands for missing cells",
            )
    return [code for code in listed if not (is_blank(code) or is_missing(code))]


def _as_number(entry: object) -> float | None:
    if isinstance(entry, str):
        if "_" in entry:
            return None
    elif not isinstance(entry, int | float | np.number):
        return None
    try:
        number = float(entry)
    except (ValueError, OverflowError):
        return None
    return number if number == number else None


def stands_for_nothing(value: object) -> bool:
    """Say whether a value looks like what people write where they have none: -1, 99, "?", "-".

    Examples
    --------
    >>> [stands_for_nothing(value) for value in (-99, "?", 3, "good")]
    [True, True, False, False]
    """
    if isinstance(value, str):
        return not any(map(str.isalnum, value))
    return value in USUAL_CODES


class SuspectedCode(NamedTuple):
    """A number that may stand for no answer, while all others are ``low`` to ``high``.

    ``far`` where it lies farther from them than answers do; else it stands beside a scale that has it not.
    """

    code: float
    n: int
    low: float
    high: float
    far: bool


def suspected_codes(
    values: Array, fewest: int | None = None, *, ratings: bool = False
) -> list[SuspectedCode]:
    """Return numbers that look like codes for missing: far from all others, or beside a scale such as 1 to 5.

    ``fewest`` cells must hold one; left out, 1 in 100, and two. ``ratings`` says that the values are of a
    scale, and no counts: then a gap below 7, 8 or 9 tells in few cells and above a scale from 0, too.

    Examples
    --------
    >>> [found.code for found in suspected_codes(np.array([1.0, 2.0, 3.0, 98.0, 98.0, 99.0, 99.0]))]
    [98.0, 99.0]
    """
    if values.dtype.kind != "f" or not values.size:
        return []
    present, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    filled = dict(zip(present.tolist(), counts.tolist(), strict=True))
    enough = max(2, LEAST_SHARE * values.size) if fewest is None else fewest
    likely = [code for code in _CODES if filled.get(code, 0) >= enough]
    others = [value for value in filled if value not in likely]
    if not others:
        return []
    low, high = min(others), max(others)
    below = [code for code in likely if code in _BELOW]
    found = []
    for code in likely:
        far = max(low - code, code - high) > high - low or code < 0.0 <= low
        if ratings and below == [code] == [-1.0] and low == 0.0 and 1.0 < high <= _HIGHEST_WITH_A_NEGATIVE:
            found.append(SuspectedCode(code, filled[code], low, high, far=False))
            continue
        if below == [-1.0] and code == -1.0:  # unless they are votes against and for
            far = low >= 0.0 and not low == high == 1.0
        elif code in _BELOW:  # unless the scale goes as far to the other side of 0
            far = low >= 0.0 and high > -min(below)
        if far:
            found.append(SuspectedCode(code, filled[code], low, high, code not in _BELOW or len(others) > 2))
    return found or (_above_a_gap(filled) if ratings else []) or _beside_a_scale(filled, enough)


def _above_a_gap(filled: dict[float, int]) -> list[SuspectedCode]:
    """Return 7, 8 and 9 above a gap over ratings 0, 1, 2, … or 1, 2, 3, …, or 8 over 1 to 7, all given."""
    first = min(filled)
    top = next(k for k in range(len(filled) + 1) if first + k not in filled) + first - 1.0
    extra = sorted(value for value in filled if value > top)
    if first not in (0.0, 1.0) or top - first < 1.0 or sum(filled.values()) < _FEWEST_RATINGS:
        return []
    if first == 1.0 and top == 8.0 and not extra:
        extra, top = [8.0], 7.0
    elif not extra or not set(extra) <= set(ABOVE) or min(extra) <= top + 1.0:
        return []
    return [SuspectedCode(value, filled[value], first, top, far=False) for value in extra]


def _beside_a_scale(filled: dict[float, int], enough: float) -> list[SuspectedCode]:
    """Return 8 and 9, or 0, beside answers 1, 2, …, all of which are given, as in a scale from 1 to 5."""
    top = next(k for k in range(len(filled) + 1) if k + 1.0 not in filled)
    scale = [float(answer) for answer in range(1, top + 1)]
    extra = [value for value in filled if value not in scale]
    if top not in _SCALES or not extra or sum(filled.values()) < _FEWEST_CELLS:
        return []
    if any(filled[value] < enough for value in extra):
        return []
    above = all(value in ABOVE for value in extra) and min(extra) > top + 1 and max(extra) > 7.0
    # Counts, and votes from 0 to 5, have one peak: 0 is less frequent than 1, or the most frequent of all.
    zero = extra == [0.0] and top in _SCALES_ABOVE_ZERO and filled[1.0] < filled[0.0] < max(filled.values())
    if not (above or zero):
        return []
    return [SuspectedCode(value, filled[value], 1.0, float(top), False) for value in extra]


def warn_of_codes(values: Array) -> None:
    """Warn of a number that lies far from all others and fills many cells, as codes for missing do."""
    for code, n, low, high, _ in suspected_codes(values):
        hold = f"{low:g} to {high:g}" if low < high else f"{low:g}"
        said = (
            f"{code:g} fills {100 * n / values.size:.3g}% of the cells, while all others hold {hold}; if it "
            "stands for missing, say "
        )
        way_out = Argument("missing", int(code) if code == int(code) else code)
        warnings.warn(PermixWarning(said, way_out), stacklevel=4)
