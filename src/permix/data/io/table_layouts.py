"""Which of four layouts a table has: explicit rules, and an error where two layouts would fit.

pairs
    A column for the better and one for the worse item (``better``/``worse``, ``winner``/``loser``,
    ``prefers``/``over`` and the like).
ratings
    An agent column, an item column and a ``rating``/``score``/``stars`` column.
orders
    Columns ``pos1 … post`` (also ``position``, ``place``, ``choice``, ``pref``), ``1st``, ``2nd``, … or
    ``first``, ``second``, …; entries are items.
ranks
    Other columns, one per item, whose rows are all rankings: 1 to k without gaps, or with ties in one of
    the usual ways (1 1 3, 1 1 2, 2 2 3, 1.5 1.5 3). A table of scores from 1 to 5 is not.

Columns called ``rank1 …``, ``X1 …``, ``V1 …`` or by bare numbers say nothing: text in them makes
orders, an entry twice in a row makes ranks, and whole numbers fit both, so the caller must say.
"""

from __future__ import annotations

import re

import numpy as np

from permix.data.io.column_names import LONG_RANKS, plain
from permix.data.io.table_columns import Table, is_blank, missing_mask, numbers
from permix.data.labels import Array, Label, some_names
from permix.errors import Argument, DataError, Part, Wording

LAYOUTS = ("orders", "ranks", "pairs", "ratings")

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth"),
)
_PLACE = "(?:choice|pick|place|position|preference|pref|pos)"
_POSITION = re.compile(rf"{_PLACE}(\d+)\Z|(\d+)(?:st|nd|rd|th){_PLACE}?\Z|({'|'.join(_ORDINALS)}){_PLACE}?\Z")
_RANKS = Argument("layout", "ranks")
_OR_NAME_IT = (", or name it with ", Argument("agent_column"), " or ", Argument("count_column"))
_MANY_ROWS = 20
_MATRIX = (
    "; the matrix is described by --layout long, and permix fit cocluster --layout long finds its groups"
)
_SAYS_NOTHING = re.compile(r"(?:rank|x|v|var|col|column)?(\d+)\Z")
_FOR_NUMBERS = Wording(
    "tables of answers or measurements go to permix.DPMixture",
    "tables of answers or measurements are for permix fit dp-mixture",
)
_FOR_RATINGS = Wording(
    "ratings (higher is better) go to permix.Preferences.from_ratings",
    "ratings (higher is better) stand in lines agent, item, rating and are read with --layout ratings",
)


def position(name: Label) -> int | None:
    """Place in an ordering that a column name says: ``pos3``, ``3rd`` and ``Third choice`` give 3."""
    match = _POSITION.match(plain(name))
    if match is None:
        return None
    words = match.group(3)
    return _ORDINALS.index(words) + 1 if words else int(match.group(1) or match.group(2))


def is_place(name: Label) -> bool:
    """Whether a column name could be a place in an ordering: ``pos3``, ``Third choice``, ``rank3``, ``3``."""
    return position(name) is not None or _SAYS_NOTHING.match(plain(name)) is not None


def refuse_other_columns(table: Table, wide: list[int], named_items: bool) -> None:
    """Refuse columns that hold no items of an ordering beside others that do.

    The names tell where some are names of places and others are not. Where none is, a column tells that
    shares no entry with the others, while those share some; one entry all the way down could be a favorite of
    everybody, unless there are many rows. ``named_items`` says that the caller has listed the items, so that
    a stranger is noticed anyway.
    """
    # Columns that nobody named are called 1, 2, …, which tells nothing.
    places = [] if table.numbered else [place for place in wide if is_place(table.names[place])]
    others = [place for place in wide if place not in places]
    why = f"it is not called a place, as {table.names[places[0]]!r} is" if places else ""
    if not places:
        others = [] if named_items else _strangers(table, wide)
        why = "it shares no entry with the others"
    if others:
        names = [table.names[place] for place in others]
        raise DataError(
            f"{table.source}: column {names[0]!r} does not look like a place in an ordering: {why}, and "
            f"its entries ({some_names(_entries(table, others[0])[:3])}) would become items. Leave it "
            "out with ",
            Argument("ignore", names[0]),
            *_beside(names[0]),
            *_OR_NAME_IT,
            "; if it is a place, ",
            "rename it" if places else Wording("pass items=[...]", "call the columns pos1, pos2, …"),
        )


def _beside(name: Label) -> tuple[Part, ...]:
    return ", keep it beside the votes with ", Wording(f"group_columns=[{name!r}]", f"--group-column {name}")


def _entries(table: Table, place: int) -> list[str]:
    column = table.columns[place]
    return list(dict.fromkeys(str(entry) for entry in column[~missing_mask(column)]))


def _strangers(table: Table, wide: list[int]) -> list[int]:
    if len(wide) < 3 or table.n_rows < 2:
        return []
    found = {place: set(_entries(table, place)) for place in wide}
    # In few lines without a header, a column of ids has a different entry in each.
    least = table.n_rows if table.numbered else 2
    alone = [
        place
        for place in wide
        if (len(found[place]) >= least or table.n_rows >= _MANY_ROWS)
        and not any(found[place] & found[other] for other in wide if other != place)
    ]
    return alone if len(alone) <= len(wide) - 2 else []


def detect_layout(table: Table, agent: int | None, wide: list[int]) -> str:
    """Name the layout of a table; ``wide`` are the columns that are no agent, count or mark."""
    if table.places("better") and table.places("worse"):
        return "pairs"
    if agent is not None and table.places("item") and table.places("rating"):
        return "ratings"
    if not wide:
        raise DataError(f"{table.source}: no columns are left to read rankings from")
    names = [table.names[place] for place in wide]
    positions = [position(name) for name in names]
    if None not in positions:
        return "orders"
    if any(positions):
        first = next(name for name, place in zip(names, positions, strict=True) if place)
        odd = names[positions.index(None)]
        raise DataError(
            f"{table.source}: some columns are places in an ordering ({first!r}), but {odd!r} is not; "
            "leave it out with ",
            Argument("ignore", odd),
            *_beside(odd),
            *_OR_NAME_IT,
        )
    if table.numbered and _could_be_ratings(table):
        more = " and a time" if len(table.names) == 4 else ""
        raise DataError(
            f"{table.source}: lines without a header that look like agent, item, rating{more}; say ",
            *(Argument("layout", "ratings"), " to compare what each agent rated"),
            Wording(", or read the matrix with permix.read_cells(path, layout='long')", _MATRIX),
        )
    values = [numbers(table.columns[place]) for place in wide]
    text = [place for place, column in zip(wide, values, strict=True) if column is None]
    says_nothing = all(_SAYS_NOTHING.match(plain(name)) for name in names)
    if says_nothing and text:
        return "orders"
    if text:
        raise DataError(f"{table.source}: ", *_why_text_is_no_ranks(table, wide, text))
    ranks = np.column_stack([column for column in values if column is not None])
    if says_nothing and not _repeats(ranks) and not np.any((ranks < 0) | (np.floor(ranks) < ranks)):
        raise DataError(
            f"{table.source}: columns {', '.join(map(repr, names[:2]))}, … of whole numbers could be "
            "orders (column = place, entry = item) or ranks (column = item, entry = its rank); say ",
            *(Argument("layout", "orders"), " or ", _RANKS),
        )
    bad = first_row_that_is_no_ranking(ranks)
    if bad is None:
        return "ranks"
    _refuse_one_that_is_no_rank(table, wide, ranks)
    possible = not np.any((ranks < 0) | (ranks > len(wide)))
    otherwise = ("ranks (1 = best) that count in another way are read with ", _RANKS, "; ")
    raise DataError(
        f"{table.where(bad)}: these numbers are not a ranking from 1 on: ",
        *(otherwise if possible else ()),
        *(_FOR_RATINGS, "; ", _FOR_NUMBERS),
        ". A column that counts or names agents is set apart with ",
        *(Argument("count_column"), " or ", Argument("agent_column")),
        *((". If each row is one statement: ", *_long_advice(table)) if _looks_long(table) else ()),
    )


def _refuse_one_that_is_no_rank(table: Table, wide: list[int], ranks: Array) -> None:
    """Name the one column without which all rows are rankings."""
    if len(wide) < 3:
        return
    whole = np.all(np.isnan(ranks) | ((ranks >= 0) & (np.floor(ranks) == ranks)), axis=0)
    beyond = np.nanmax(ranks, axis=0, initial=0) > len(wide)
    for at in np.flatnonzero(whole & beyond)[:1].tolist():
        if first_row_that_is_no_ranking(np.delete(ranks, at, axis=1)) is None:
            name = table.names[wide[at]]
            raise DataError(
                f"{table.source}: all columns but {name!r} are ranks. If it counts agents, say ",
                *(Argument("count_column", name), "; if it names them, ", Argument("agent_column", name)),
                *("; otherwise leave it out with ", Argument("ignore", name)),
            )


def _could_be_ratings(table: Table) -> bool:
    """Whether lines hold two ids, of which no pair comes back, and one of few values."""
    if len(table.names) not in (3, 4) or table.n_rows < _MANY_ROWS:
        return False
    first, second, third = (column.tolist() for column in table.columns[:3])
    few = len(set(third)) <= 21 and numbers(table.columns[2]) is not None
    back = len(set(first)) < len(first) and len(set(second)) < len(second)
    n_pairs = len(set(zip(first, second, strict=True)))
    wide_range = max(len(set(first)), len(set(second))) > len(set(third))
    return few and back and wide_range and n_pairs >= 0.95 * table.n_rows


def _why_text_is_no_ranks(table: Table, wide: list[int], text: list[int]) -> tuple[Part, ...]:
    """Parts of a message about text in columns whose names say nothing about their role."""
    if _looks_long(table):
        said = "each row seems to be one statement, but the column names do not say so: "
        return said, *_long_advice(table)
    held = (
        f"column {table.names[text[0]]!r} holds text, so the columns are not ranks of items, and they are "
        "not called pos1, pos2, … as places of an ordering are"
    )
    if _could_be_orders(table, wide, text):
        return f"{held}; say ", Argument("layout", "orders"), " if each row lists items, best first"
    said = f"this does not look like rankings: {held}. Where only some columns are ranks, name them with "
    only = Wording(", items=[...]; ", " and leave out the others with --ignore; ")
    return said, _RANKS, only, _FOR_NUMBERS


def _looks_long(table: Table) -> bool:
    """Whether rows seem to be single statements of agents who come back."""
    if table.places("item") and any(plain(name) in LONG_RANKS for name in table.names):
        return True
    if len(table.names) != 3:
        return False
    first = [str(entry) for entry in table.columns[0][~missing_mask(table.columns[0])]]
    return len(set(first)) < len(first)


def _long_advice(table: Table) -> tuple[str | Argument, ...]:
    names = [str(name) for name in table.names]
    ranked = [name for name in names if plain(name) in LONG_RANKS]
    if ranked:
        item = next((names[place] for place in table.places("item")), "item")
        agent = next((names[place] for place in table.places("agent")), names[0])
        return (
            f"ranks need one column per item, as frame.pivot(index={agent!r}, columns={item!r}, "
            f"values={ranked[0]!r}).reset_index() makes in pandas; then ",
            _RANKS,
        )
    rated = numbers(table.columns[2]) is not None
    new = ("agent", "item", "rating") if rated else ("agent", "better", "worse")
    renamed = ", ".join(f"{old!r}: {name!r}" for old, name in zip(names, new, strict=True))
    return (
        "ratings need columns called agent, item, rating (higher is better), comparisons agent, better, "
        f"worse. Rename {', '.join(map(repr, names))} in the header line, or with "
        f"frame.rename(columns={{{renamed}}})",
    )


def _could_be_orders(table: Table, wide: list[int], text: list[int]) -> bool:
    """Whether rows of text list different items, some of which stand in more than one column."""
    if len(text) < len(wide):
        return False
    columns = [table.columns[place] for place in wide]
    for row in zip(*columns, strict=True):
        listed = [entry for entry in row if not is_blank(entry)]
        if len(set(listed)) < len(listed):
            return False
    found = [set(column[~missing_mask(column)]) for column in columns]
    return table.n_rows == 1 or len(set().union(*found)) < sum(map(len, found))


def ordered_places(table: Table, wide: list[int]) -> list[int]:
    """Columns of an ordering in the order of their numbers, which must run from 1 if the file has them."""
    if table.numbered:
        return wide
    number: list[int] = []
    for place in wide:
        name = table.names[place]
        at = position(name)
        if at is None:
            match = _SAYS_NOTHING.match(plain(name))
            if match is None:
                return wide  # the caller said layout="orders": columns as they stand
            at = int(match.group(1))
        number.append(at)
    placed = sorted(zip(number, wide, strict=True))
    first = placed[0][0]
    if [place for place, _ in placed] != list(range(first, first + len(wide))) or first > 1:
        raise DataError(
            f"{table.source}: the places of the ordering are {', '.join(map(str, sorted(number)))}; they "
            "must run from 1 without a gap"
        )
    return [column for _, column in placed]


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
