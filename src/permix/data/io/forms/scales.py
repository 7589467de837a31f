"""Words of a scale, such as ``Strongly agree`` or ``If need be``: which is better than which.

Words that say that there is no answer (``Don't know``, ``No opinion``) are no ratings.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from permix.data.cells_codes import suspected_codes
from permix.data.io.categories import word_value
from permix.data.io.column_names import plain
from permix.data.io.table_columns import Table, is_blank, numbers
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixWarning

UNANSWERED = frozenset(
    [
        *("dontknow", "don'tknow", "don’tknow", "noopinion", "noanswer", "prefernottosay", "notapplicable"),
        *("prefernottoanswer", "na", "n/a", "noresponse", "notsure", "cantsay", "skipped", "skip", "-", "?"),
    ]
)
_LEADING = re.compile(r"\s*([0-9]{1,3})\s*[-–—:.=(]\s*(\D.*?)\)?\s*")
# Words of one scale that anybody would make.
MOST_WORDS = 12


def could_be_scale(table: Table, places: list[int]) -> bool:
    """Whether all entries of some columns are words of a scale, at least two of them better than another."""
    words = _words(table, places)
    if not 1 < len(words) <= MOST_WORDS:
        return False
    scores = [_score(word) for word in words]
    known = {score for score in scores if score is not None and score == score}
    return None not in scores and len(known) > 1


def scored(table: Table, places: list[int], order: str | Iterable[str] | None) -> list[Array]:
    """Return ratings, higher is better, of columns of numbers or of words of one scale; NaN is no rating.

    ``order`` are all words, best first, where their meaning does not say which is better.
    """
    found = [numbers(table.columns[place]) for place in places]
    if order is None and all(column is not None for column in found):
        return [column for column in found if column is not None]
    words = _words(table, places)
    scores = _by_order(table, words, order) if order is not None else _by_meaning(table, places, words)
    shown = sorted({word for word in words if scores[word] == scores[word]}, key=lambda word: -scores[word])
    nothing = [word for word in words if scores[word] != scores[word]]
    said = f"{table.source}: ratings in words, best first: {', '.join(map(repr, shown))}"
    said += f"; no rating: {', '.join(map(repr, nothing))}" if nothing else ""
    warnings.warn(said, PermixWarning, stacklevel=5)
    return [
        np.array(
            [np.nan if is_blank(entry) else scores[_text(entry)] for entry in table.columns[place].tolist()]
        )
        for place in places
    ]


def _text(entry: object) -> str:
    return " ".join(str(entry).split())


def _words(table: Table, places: list[int]) -> list[str]:
    found: dict[str, None] = {}
    for place in places:
        found |= dict.fromkeys(_text(entry) for entry in table.columns[place].tolist() if not is_blank(entry))
        if len(found) > 1000:
            break
    return list(found)


def _score(word: str) -> float | None:
    """How good a word is; NaN where it says that there is no answer, None where it is not known."""
    return float("nan") if plain(word) in UNANSWERED else word_value(word)


def _by_order(table: Table, words: list[str], order: str | Iterable[str]) -> dict[str, float]:
    if isinstance(order, str):
        said = " is for the categories of a .cat file; of words, name all, best first"
        raise DataError(f"{table.source}: ", Argument("categories", order), said)
    listed = [_text(word) for word in order]
    strange = [word for word in words if word not in listed and plain(word) not in UNANSWERED]
    if strange:
        raise DataError(
            f"{table.source}: {strange[0]!r} is none of the words that were named, best first: "
            f"{', '.join(map(repr, listed))}; name all of them with ",
            Argument("categories"),
        )
    return {word: float(len(listed) - listed.index(word)) if word in listed else np.nan for word in words}


def _by_meaning(table: Table, places: list[int], words: list[str]) -> dict[str, float]:
    scores = {word: _score(word) for word in words}
    labeled = {word: found for word in words if (found := _LEADING.fullmatch(word)) is not None}
    plain_numbers = {word for word in words if re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", word)}
    if labeled and len(labeled) + len(plain_numbers) == len(words):
        return _by_number(table, words, labeled)
    strange = [word for word in words if scores[word] is None and word not in plain_numbers]
    if plain_numbers and not strange:  # numbers and words of a scale do not compare
        strange = [word for word in words if word not in plain_numbers]
    if strange:
        silent = [word for word in words if word not in plain_numbers] if plain_numbers else []
        silent = silent if len(silent) <= MOST_WORDS // 2 else []
        column = next(p for p in places if strange[0] in map(_text, table.columns[p].tolist()))
        row = [_text(entry) for entry in table.columns[column].tolist()].index(strange[0])
        raise DataError(
            f"{table.where(row)}, column {table.names[column]!r}: rating {strange[0]!r} is not a number, nor "
            "a word whose place on a scale is known; name all words, best first, with ",
            Argument("categories"),
            *(", or leave the column out with ", Argument("ignore", table.names[column])),
            *((", or, if they are no answers, say ", Argument("missing", silent)) if silent else ()),
        )
    return {word: score for word, score in scores.items() if score is not None}


def _by_number(table: Table, words: list[str], labeled: dict[str, re.Match[str]]) -> dict[str, float]:
    """Ratings such as ``5 - Strongly agree``: by the number, unless the words go the other way."""
    ratings = {word: float(labeled[word][1] if word in labeled else word) for word in words}
    values = {word: word_value(found[2]) for word, found in labeled.items()}
    meant = sorted((ratings[word], value) for word, value in values.items() if value is not None)
    downward = len(meant) > 1 and all(b[1] <= a[1] for a, b in pairwise(meant)) and meant[0][1] > meant[-1][1]
    return {word: -rating if downward else rating for word, rating in ratings.items()}


def refuse_codes(table: Table, columns: list[Array]) -> None:
    """Refuse ratings such as 99 among 1 to 5, which would be the best of all; warn of 9 or 0 among them."""
    values = np.column_stack(columns)
    found = suspected_codes(values.astype(np.float64), fewest=1, ratings=True)
    far = [suspect for suspect in found if suspect.far]
    if far:
        codes = [suspect.code for suspect in far]
        row = int(np.argmax(np.isin(values, codes).any(axis=1)))
        first = values[row][np.isin(values[row], codes)][0]
        listed = [first, *(code for code in codes if code != first)]
        raise DataError(
            f"{table.where(row)}: {' and '.join(f'{code:g}' for code in listed)} may say that there is no "
            f"answer, as the other ratings go from {far[0].low:g} to {far[0].high:g}: say ",
            _missing(listed),
            ", or write another number if it is a rating",
        )
    near = found or suspected_codes(values.astype(np.float64))
    warned = [suspect for suspect in near if not suspect.far and (suspect.code >= 0 or suspect.high > 1)]
    if warned:
        each = [
            f"{suspect.code:g} stands in {suspect.n:,} {'cell' if suspect.n == 1 else 'cells'}"
            for suspect in warned
        ]
        said = f"{table.source}: {' and '.join(each)}, while the other ratings are {warned[0].low:g} to "
        said += f"{warned[0].high:g}; it is read as a rating. If it says that there is no answer, say "
        way_out = _missing([suspect.code for suspect in warned])
        warnings.warn(PermixWarning(said, way_out), stacklevel=5)


def _missing(codes: list[float]) -> Argument:
    """Return the argument that names all codes."""
    told = [f"{code:g}" for code in codes]
    return Argument("missing", told if len(told) > 1 else told[0])
