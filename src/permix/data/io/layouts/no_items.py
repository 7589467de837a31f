"""Columns beside items that hold something else: numbers of agents, what is known of them, sums.

Between ranks or ratings such a column would be an item, and could win. Where that is likely, the caller is
asked; of matrices, which may hold anything, a warning tells.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence

import numpy as np

from permix.data.cells_codes import ABOVE
from permix.data.io.column_names import HARDLY_ITEMS, plain
from permix.data.io.marks import NO_ANSWER
from permix.data.io.table_columns import Table, numbers
from permix.data.labels import Array, Label
from permix.errors import Argument, DataError, Part, PermixWarning

_RANKS = Argument("layout", "ranks")
_WEIGHT = re.compile(
    r"w|wt|wts|wgt|wght|weights?|(?:survey|final|sample|sampling|design|case|person|post|p)(?:wt|weights?)"
)
_SUMS = frozenset(["total", "totals", "sum", "overall", "mean", "average", "avg", "score", "gesamt", "somme"])
# Columns of tables with a row for each item that say what agents said on the whole.
SAY_SOMETHING = frozenset(
    [
        *("mean", "average", "avg", "median", "total", "sum", "votes", "wins", "losses", "draws", "played"),
        *("won", "lost", "share", "percent", "n", "count", "sd", "std", "min", "max", "meanrank", "avgrank"),
    ]
)
# Rows in which a column that is not called a sum adds up the others by more than chance.
_MANY_ROWS = 20
# Columns and rows of which one that never differs is told.
_FEWEST_BESIDE = 3
# Ratings up to here are of a scale of a few steps.
_MOST_OF_A_SCALE = 10.0
# Columns of lines that may hold ranks or ratings.
_EITHER = ("preference", "level")
# How far a mean may be from that of the others: it may be rounded to two places.
_ROUNDED = 0.0051
# The worst grade of schools where 1 is the best.
_WORST_GRADE = 6


def set_apart(name: Label) -> tuple[Part, ...]:
    """Say how a column is kept beside the votes, or left out."""
    return (
        *("keep it beside the votes with ", Argument("group_columns", [name])),
        *(", or leave it out with ", Argument("ignore", name)),
    )


def _is_item(name: Label) -> tuple[Part, ...]:
    return "; if it is an item, say ", Argument("item_columns", [name])


def refuse_beside_ratings(table: Table, places: Sequence[int], called: Collection[str]) -> None:
    """Refuse a column between ratings that is called as what is known of agents is, or sums up the others.

    ``called`` are the names of all columns as the file has them: the items of a question are items.
    """
    for place in _hardly_items(table, places, called):
        name = table.names[place]
        raise DataError(
            f"{table.source}: column {name!r} says something of the agents, as it seems, and would be an "
            "item: ",
            *(*set_apart(name), *_is_item(name)),
        )
    _refuse_a_weight(table, places)
    refuse_a_constant(table, places)
    for place, what in sums(table, places).items():
        if str(table.names[place]) in table.items:
            continue
        name = table.names[place]
        raise DataError(
            f"{table.source}: column {name!r} is the {what} of the others, and would be an item: ",
            *(*set_apart(name), *_is_item(name)),
        )


def _refuse_a_weight(table: Table, places: Sequence[int]) -> None:
    """Refuse a column that is called a weight, or whose numbers are of another kind than all others."""
    for place, why in _of_another_kind(table, places).items():
        if str(table.names[place]) in table.items:
            continue
        name = table.names[place]
        raise DataError(
            f"{table.source}: column {name!r} {why}, and would be an item: if it counts agents, say ",
            *(Argument("count_column", name), " (whole numbers); else ", *set_apart(name)),
            *_is_item(name),
        )


def _of_another_kind(table: Table, places: Sequence[int]) -> dict[int, str]:
    """Return columns that are called weights, or hold no numbers such as all others hold, and why."""
    found = {place: numbers(table.columns[place]) for place in places}
    columns = {place: column for place, column in found.items() if column is not None}
    columns = {p: each[np.isfinite(each) & ~np.isin(each, NO_ANSWER)] for p, each in columns.items()}
    columns = {place: column for place, column in columns.items() if len(column) > 2}
    if len(columns) < 3:
        return {}
    letters = sum(len(plain(table.names[place])) == 1 for place in columns)
    odd: dict[int, str] = {}
    for place, column in columns.items():
        name = plain(table.names[place])
        if _WEIGHT.fullmatch(name) and (len(name) > 1 or letters == 1) and column.min() > 0:
            odd[place] = "seems to be a weight"
            continue
        others = np.concatenate([column for other, column in columns.items() if other != place])
        low, high = float(others.min()), float(others.max())
        whole = bool(np.all(others == np.floor(others)))
        coded = set(np.unique(column)) <= {0.0, 1.0, *ABOVE} and 2 * np.count_nonzero(column > 1) < len(
            column
        )
        if set(np.unique(others)) == {0.0, 1.0} and column.max() > 1 and not coded:
            odd[place] = f"goes up to {column.max():g}, while all others hold 0 and 1"
        elif whole and high > low and 2 * np.count_nonzero(column != np.floor(column)) > len(column):
            odd[place] = "holds fractions, while all others hold whole numbers"
        elif low < high <= _MOST_OF_A_SCALE and np.median(column) > max(12.0, 3.0 * high):
            odd[place] = f"goes up to {column.max():g}, while all others hold {low:g} to {high:g}"
    return odd if 2 * len(odd) < len(columns) else {}


def refuse_beside_ranks(table: Table, places: Sequence[int], called: Collection[str]) -> None:
    """Refuse a column between ranks that is called as what is known of agents is, unless all fit together."""
    found = _hardly_items(table, places, called)
    columns = [numbers(table.columns[place]) for place in places] if found else []
    ranks = [column for column in columns if column is not None]
    if not found:
        _refuse_among_marks(table, places)
    refuse_a_constant(table, places)
    if not found or len(ranks) < len(columns) or are_strict(np.column_stack(ranks)).all():
        return
    name = table.names[found[0]]
    raise DataError(
        f"{table.source}: column {name!r} says something of the agents, as it seems, and would be an item, "
        "though rows are no rankings with it: ",
        *(*set_apart(name), *_is_item(name)),
    )


def _refuse_among_marks(table: Table, places: Sequence[int]) -> None:
    """Refuse a weight beside columns of 0 and 1, such as approvals: 1 would be the first rank of several."""
    columns = [numbers(table.columns[place]) for place in places]
    marks = [column for column in columns if column is not None and set(np.unique(column)) <= {0.0, 1.0}]
    if len(marks) == len(columns) - 1 and len(marks) > 1:
        _refuse_a_weight(table, places)


def warn_beside_cells(table: Table, places: Sequence[int]) -> None:
    """Tell columns of a matrix that are called as what is known of agents is, or sum up the others."""
    found: dict[int, str] = dict.fromkeys(_hardly_items(table, places, None), "says something of the rows")
    found |= {place: f"is the {what} of the others" for place, what in sums(table, places).items()}
    for place, what in found.items():
        said = (
            f"{table.source}: column {table.names[place]!r} {what}, as it seems, and is part of the matrix; "
        )
        warnings.warn(PermixWarning(said, *set_apart(table.names[place])), stacklevel=6)


def refuse_a_constant(table: Table, places: Sequence[int]) -> None:
    """Ask about a first or last column with one number in all rows, between ranks or ratings that differ.

    An item may have it; so may what is the same of all agents, such as a wave or their consent.
    """
    found = [numbers(table.columns[place]) for place in places]
    if len(places) < _FEWEST_BESIDE or table.n_rows < _FEWEST_BESIDE:
        return
    whole = [column is not None and not np.isnan(column).any() for column in found]
    same = [
        full and len(set(column)) == 1
        for full, column in zip(whole, found, strict=True)
        if column is not None
    ]
    if len(same) < len(found) or sum(same) != 1 or not (same[0] or same[-1]):
        return
    values = np.concatenate([column for column in found if column is not None])
    place = places[0] if same[0] else places[-1]
    name = table.names[place]
    column = found[0] if same[0] else found[-1]
    if column is None or str(name) in table.items or np.nanmax(values) <= 1 or column[0] == 0:
        return  # approvals, of which nobody may have one
    others = np.column_stack([each for each in (found[1:] if same[0] else found[:-1]) if each is not None])
    if column[0] == 1 and np.all(np.nanmin(np.where(others > 0, others, np.inf), axis=1) > 1):
        return  # all rank it first, and nothing else
    raise DataError(
        f"{table.source}: column {name!r} holds {column[0]:g} in every row: it could be an item, or say "
        "something that is the same of all agents. ",
        *(part if at else "K" + str(part)[1:] for at, part in enumerate(set_apart(name))),
        *_is_item(name),
    )


def _hardly_items(table: Table, places: Sequence[int], called: Collection[str] | None) -> list[int]:
    """Return columns called as what is known of agents is, where most are called otherwise."""
    found = [
        place
        for place in places
        if plain(table.names[place]) in HARDLY_ITEMS
        and (called is None or str(table.names[place]) in called)
        and str(table.names[place]) not in table.items
    ]
    return found if 2 * len(found) < len(places) else []


def sums(table: Table, places: Sequence[int]) -> dict[int, str]:
    """Return the columns that hold the sum or the mean of the others in every row, and which it is."""
    columns = {place: numbers(table.columns[place]) for place in places}
    known = {place: column for place, column in columns.items() if column is not None}
    if len(known) < 3 or table.n_rows < 2:
        return {}
    values = np.column_stack(list(known.values()))
    given = np.isfinite(values)
    filled = np.where(given, values, 0.0)
    others = filled.sum(axis=1)[:, None] - filled
    n_others = given.sum(axis=1)[:, None] - given
    differ = np.ptp(filled, axis=0) > 0
    whole = given.all(axis=0) & differ & (n_others > 0).all(axis=0)
    is_sum = whole & np.all(np.isclose(filled, others), axis=0)
    is_mean = whole & np.all(np.abs(filled - others / np.maximum(n_others, 1)) <= _ROUNDED, axis=0)
    found = {}
    for at, place in enumerate(known):
        named = plain(table.names[place]) in _SUMS
        if (is_sum[at] or is_mean[at]) and (named or table.n_rows >= _MANY_ROWS):
            found[place] = "sum" if is_sum[at] else "mean"
    return found


def are_strict(ranks: Array) -> Array:
    """Say which rows of ranks (NaN or 0 is not ranked) go from 1 on without ties and gaps."""
    filled = np.sort(np.where(np.isnan(ranks) | (ranks <= 0), np.inf, ranks), axis=1)
    expected = np.arange(1, ranks.shape[1] + 1)
    return np.all(np.isinf(filled) | (filled == expected), axis=1)


def refuse_a_stranger(table: Table, wide: list[int], ranks: Array) -> None:
    """Ask about a column without which all rows are rankings without ties, while with it most have one.

    It is given in every row, and may number the agents or say something else of them.
    """
    if len(wide) < 3 or table.n_rows < 2:
        return
    filled = np.nan_to_num(ranks)
    # Without it, each row of m ranks adds up to 1 + … + m.
    m = np.sum(filled > 0, axis=1)[:, None] - (filled > 0)
    could_be = (filled.sum(axis=1)[:, None] - filled == m * (m + 1) / 2).all(axis=0)
    could_be &= ~np.isnan(ranks).any(axis=0) & (m > 1).any(axis=0)
    for at in np.flatnonzero(could_be).tolist():
        place, rest, here = wide[at], np.delete(ranks, at, axis=1), ranks[:, at]
        if str(table.names[place]) in table.items:
            continue
        tied = (rest == here[:, None]).any(axis=1) | (here == 0)
        name = table.names[place]
        known = plain(name) in HARDLY_ITEMS or np.array_equal(here, np.arange(1, len(here) + 1))
        # An item that is the last of all, tied now and then, is the largest in its rows.
        inside = np.any(here < np.nan_to_num(rest).max(axis=1))
        likely = len(tied) > 3 and 4 * tied.sum() >= 3 * len(tied) and inside
        if (tied.all() or (tied.any() and known) or likely) and are_strict(rest).all():
            raise DataError(
                f"{table.source}: without column {name!r} all rows are rankings, and with it "
                f"{'each has' if tied.all() else f'{tied.sum():,} of {len(tied):,} have'} a tie: "
                "it could be an item, or say something of the agents. If it names them, say ",
                *(Argument("agent_column", name), "; if it counts them, ", Argument("count_column", name)),
                *("; leave it out with ", Argument("ignore", name), "; if it is an item, say "),
                Argument("item_columns", [name]),
            )


def refuse_what_may_rate(table: Table, agent: int, rank: int) -> None:
    """Ask about lines with a ``preference`` or ``level`` that do not go 1, 2, 3, … for each agent.

    They may be ratings.
    """
    name = table.names[rank]
    ranks = numbers(table.columns[rank])
    if plain(name) not in _EITHER or ranks is None:
        return
    by_agent: dict[object, list[float]] = {}
    for who, given in zip(table.columns[agent].tolist(), ranks.tolist(), strict=True):
        by_agent.setdefault(who, []).extend([given] if given == given else [])
    if any(sorted(said) != list(range(1, len(said) + 1)) for said in by_agent.values()):
        raise DataError(
            f"{table.source}: column {name!r} may hold ranks, of which 1 is the best, or ratings, of which "
            "the highest is; call it 'rank' or 'rating'"
        )


def refuse_grades(table: Table) -> None:
    """Ask about lines with a ``grade`` from 1 to 6: of those of schools, 1 is the best in some countries."""
    for place in table.places("item") and table.places("rating"):
        given = numbers(table.columns[place])
        if plain(table.names[place]) != "grade" or given is None or not np.isfinite(given).any():
            continue
        if np.nanmin(given) >= 1 and np.nanmax(given) <= _WORST_GRADE:
            raise DataError(
                f"{table.source}: of column {table.names[place]!r} the highest number could be the best, or "
                "1, as in schools. If the highest is, say ",
                *(Argument("layout", "ratings"), "; if 1 is, write 7 less the grade instead"),
            )


def warn_of_either_direction(table: Table, agent: int, place: int, are_ranks: bool) -> None:
    """Say how lines are read of which each agent has 1, 2, 3, … once: they may be ranks or ratings."""
    name, said = table.names[place], numbers(table.columns[place])
    called = _EITHER if are_ranks else ("value", "vote", "rating", "score", "points")
    if said is None or plain(name) not in called:
        return
    by_agent: dict[object, list[float]] = {}
    for who, given in zip(table.columns[agent].tolist(), said.tolist(), strict=True):
        by_agent.setdefault(who, []).append(given)
    if max(map(len, by_agent.values())) < 3 or not all(
        sorted(given) == list(range(1, len(given) + 1)) for given in by_agent.values()
    ):
        return
    read, other = (
        ("ranks, of which 1 is the best", "rating") if are_ranks else ("ratings, higher is better", "rank")
    )
    turned = f"if {'the highest' if are_ranks else '1'} is the best, call the column {other!r}"
    warnings.warn(
        f"{table.source}: column {name!r} holds 1, 2, 3, … once for each agent, and is read as {read}; "
        f"{turned}",
        PermixWarning,
        stacklevel=5,
    )
