"""Which of four layouts a table has: explicit rules, and an error where two layouts would fit.

pairs
    A column for the better and one for the worse item (``better``/``worse``, ``winner``/``loser``,
    ``top_item``/``bottom_item``).
ratings
    An agent column, an item column and a ``rating``/``score`` column.
orders
    Columns ``pos1 … post`` (also ``position``, ``place``, ``choice``, ``pref``) or ``1st``, ``2nd``, …;
    entries are items.
ranks
    Other columns, one per item, whose rows are all rankings: 1 to k without gaps, or with ties in one of
    the usual ways (1 1 3, 1 1 2, 2 2 3, 1.5 1.5 3). A table of scores from 1 to 5 is not.

Columns called ``rank1 …``, ``X1 …``, ``V1 …`` or by bare numbers say nothing: text in them makes
orders, an entry twice in a row makes ranks, and whole numbers fit both, so the caller must say.
"""

from __future__ import annotations

import re

import numpy as np

from permix.data.labels import Array
from permix.data.table_columns import BETTER, ITEM, RATING, WORSE, Table, numbers, plain
from permix.errors import DataError

LAYOUTS = ("orders", "ranks", "pairs", "ratings")

_POSITION = re.compile(
    r"(?:pos|position|place|choice|pref|preference)(\d+)\Z|(\d+)(?:st|nd|rd|th)(?:choice)?\Z"
)
_SAYS_NOTHING = re.compile(r"(?:rank|x|v|var|col|column)?(\d+)\Z")


def detect_layout(table: Table, agent: int | None, wide: list[int]) -> str:
    """Name the layout of a table; ``wide`` are the columns that are no agent, count or mark."""
    if table.places(BETTER) and table.places(WORSE):
        return "pairs"
    if agent is not None and table.places(ITEM) and table.places(RATING):
        return "ratings"
    if not wide:
        raise DataError(f"{table.source}: no columns are left to read rankings from")
    names = [table.names[place] for place in wide]
    positions = [_POSITION.match(plain(name)) for name in names]
    if all(positions):
        return "orders"
    if any(positions):
        odd = next(name for name, match in zip(names, positions, strict=True) if not match)
        raise DataError(
            f"{table.source}: some columns are places in an ordering ({_first(names, positions)!r}), but "
            f"{odd!r} is not; drop it, or name it with agent_column= or count_column="
        )
    values = [numbers(table.columns[place]) for place in wide]
    text = [place for place, column in zip(wide, values, strict=True) if column is None]
    says_nothing = all(_SAYS_NOTHING.match(plain(name)) for name in names)
    if says_nothing and text:
        return "orders"
    if text:
        raise DataError(
            f"{table.source}: column {table.names[text[0]]!r} holds text, so the columns are not ranks of "
            "items, and they are not called pos1, pos2, … as places of an ordering are; say layout='orders', "
            "or drop columns that are neither"
        )
    ranks = np.column_stack([column for column in values if column is not None])
    if says_nothing:
        if _repeats(ranks):
            return "ranks"
        raise DataError(
            f"{table.source}: columns {', '.join(map(repr, names[:2]))}, … of whole numbers could be orders "
            "(column = place, entry = item) or ranks (column = item, entry = its rank); say "
            "layout='orders' or layout='ranks'"
        )
    bad = first_row_that_is_no_ranking(ranks)
    if bad is not None:
        raise DataError(
            f"{table.where(bad)}: the numbers could be ranks (1 = best) or ratings (higher is better), "
            "and are not a ranking from 1 on; say layout='ranks' for the first, and use "
            "permix.Preferences.from_ratings for the second. A column that counts or names agents is "
            "set apart with count_column= or agent_column="
        )
    return "ranks"


def ordered_places(table: Table, wide: list[int]) -> list[int]:
    """Columns of an ordering in the order of their numbers, which must run from 1."""
    matches = [
        _POSITION.match(plain(table.names[place])) or _SAYS_NOTHING.match(plain(table.names[place]))
        for place in wide
    ]
    if not all(matches):
        return wide  # the caller said layout="orders": columns as they stand
    number = [int(next(filter(None, match.groups()))) for match in matches if match]
    placed = sorted(zip(number, wide, strict=True))
    first = placed[0][0]
    if [place for place, _ in placed] != list(range(first, first + len(wide))) or first > 1:
        raise DataError(
            f"{table.source}: the places of the ordering are {', '.join(map(str, sorted(number)))}; they "
            "must run from 1 without a gap"
        )
    return [column for _, column in placed]


def _first(names: list[int | str], found: list[re.Match[str] | None]) -> int | str:
    return next(name for name, match in zip(names, found, strict=True) if match)


def _repeats(values: Array) -> bool:
    """Whether some row holds the same number twice, other than 0 and blank."""
    ascending = np.sort(values, axis=1)
    return bool(np.any((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != 0)))


def first_row_that_is_no_ranking(values: Array) -> int | None:
    """First row whose numbers (0 and NaN = not ranked) break the convention for ties that fits most rows."""
    from scipy.stats import rankdata

    ranks = np.where(np.isnan(values) | (values == 0), np.inf, values)  # not ranked: behind all others
    ranked = np.isfinite(ranks)
    failing = [
        np.any(ranked & (ranks != rankdata(ranks, method=method, axis=1)), axis=1)
        for method in ("min", "max", "average", "dense")
    ]
    best = min(failing, key=lambda rows: int(rows.sum()))
    return int(np.argmax(best)) if best.any() else None
