"""Which column of a table names the agents, which counts them, and which are left for votes.

The caller may say; else names and entries decide together. A column called as counts or agents usually are,
between items that were ranked or rated, may be an item of that name: where its numbers could be either, the
caller is asked, and every role that was found is said where votes are described.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from permix.data.io.column_names import LONG_RANKS, ROW_NUMBERS, plain
from permix.data.io.forms.scales import could_be_scale
from permix.data.io.layouts import comparisons, detection, no_items
from permix.data.io.layouts.counts import could_count
from permix.data.io.table_columns import Table, numbers
from permix.data.labels import Array, Label
from permix.errors import Argument, DataError

# Names that no item has.
_COUNTS_FOR_SURE = frozenset(
    ["nagents", "nvoters", "numberofballots", "numberofvotes", "numberofvoters", "multiplicity", "anzahl"]
)
# In two rows, 1 and 2 may be ranks.
_FEWEST_ROWS = 3
# Layouts whose rows are ranks or ratings of items that columns are called by.
_OF_ITEMS = ("auto", "ranks", "ratings")


class Roles(NamedTuple):
    """Places of the columns that have a role; ``wide`` are all others."""

    agent: int | None
    counts: int | None
    mark: int | None  # says of each row whether items that are not listed are below or unknown
    wide: list[int]


def with_items(table: Table, said: Label | Iterable[Label]) -> Table:
    """Return a table that knows which columns are items, because the caller says so."""
    said = [said] if isinstance(said, str | int) else list(said)
    places = [table.named(name, " for an item") for name in said]
    told = table._replace(items=table.items | {str(table.names[place]) for place in places})
    if said and told.places("item") and told.places("rating"):
        refuse_items_said(table, said, "each row is the rating of one item")
    return told


def refuse_items_said(table: Table, said: object, what: str) -> None:
    """Refuse names of columns of items for a table that has no such columns."""
    if said not in ((), None, []):
        raise DataError(
            f"{table.source}: {what}, so no column is an item; ", Argument("item_columns"), " is for others"
        )


def roles_of(table: Table, layout: str, agent_column: object, count_column: object) -> Roles:
    """Decide the roles of the columns of a table."""
    mark = table.find(None, "unlisted")
    agent = table.find(agent_column, "agent")
    if agent is None and agent_column is None and table.names[:1] == [""]:
        agent = 0
    count = table.find(count_column, "count")
    if layout in _OF_ITEMS and not _has_rows_of_statements(table, layout, agent):
        if agent is not None and agent_column is None and table.names[agent] != "":
            votes = _others(table, (agent, count, mark))
            if _is_item(table, agent, votes, layout, "agent_column"):
                agent = None
        if count is not None and count_column is None:
            votes = _others(table, (agent, count, mark))
            if _is_item(table, count, votes, layout, "count_column"):
                count = None
    if agent is None and agent_column is None and layout in _OF_ITEMS and _numbers_rows(table, 0):
        agent = 0
    if count is not None and count_column is None and not could_count(table, count):
        count = count if all(_is_place(table, at) for at in _others(table, (count, agent))) else None
    return Roles(agent, count, mark, _others(table, (agent, count, mark)))


def _numbers_rows(table: Table, place: int) -> bool:
    """Whether a column is called as one that numbers the rows, and does so from 0 or 1 on."""
    if table.n_rows < _FEWEST_ROWS or plain(table.names[place]) not in ROW_NUMBERS:
        return False
    if str(table.names[place]) in table.items:
        return False
    here = numbers(table.columns[place])
    rows = np.arange(table.n_rows)
    return here is not None and (np.array_equal(here, rows) or np.array_equal(here, rows + 1))


def _others(table: Table, known: Sequence[int | None]) -> list[int]:
    return [place for place in range(len(table.names)) if place not in known]


def _is_place(table: Table, place: int) -> bool:
    return detection.is_place(table.names[place])


def _has_rows_of_statements(table: Table, layout: str, agent: int | None) -> bool:
    """Whether each row is a rating, a rank or a comparison of items that stand in it."""
    ranked = any(plain(name) in LONG_RANKS for name in table.names)
    if table.places("item") and (table.places("rating") or ranked):
        return True
    return layout == "auto" and comparisons.detect(table, agent) is not None


def _is_item(table: Table, place: int, votes: list[int], layout: str, role: str) -> bool:
    """Whether a column called as one with a role is an item after all; ask where it could be both.

    ``votes`` are the columns that are items for sure.
    """
    if len(votes) < 2 or all(_is_place(table, at) for at in votes):
        return False
    name = table.names[place]
    if role == "count_column" and plain(name) in _COUNTS_FOR_SURE:
        return False
    here, found = numbers(table.columns[place]), [numbers(table.columns[at]) for at in votes]
    columns = [column for column in found if column is not None]
    if len(columns) < len(votes):  # words: of a scale, or of something else
        return here is None and layout == "ratings" and not columns and could_be_scale(table, [place, *votes])
    if here is None or not np.nan_to_num(here).any():
        return False
    if layout != "ratings":
        verdict = _by_ranks(np.column_stack(columns), here)
        if verdict is not None:
            return verdict
    if role == "count_column" and name == "count" and place < min(votes) and layout != "ratings":
        return False  # so permix writes ranks with ties
    if not _same_scale(np.concatenate(columns), here):
        return False
    if role == "agent_column" and len(set(here.tolist())) == len(here):
        return False
    whole = bool(np.all(here == np.floor(here)))
    if role == "count_column" and not whole:
        return True  # counts are whole, and the others have such fractions, too
    does = "counts" if role == "count_column" else "names"
    raise DataError(
        f"{table.source}: column {name!r} is called as one that {does} agents is, and holds numbers such as "
        f"those of {table.names[votes[0]]!r}: it could be an item. If it {does} agents, say ",
        *(Argument(role, name), "; if it is an item, say ", Argument("item_columns", [name])),
    )


def _by_ranks(others: Array, here: Array) -> bool | None:
    """Whether a column is an item because rows are rankings with it alone, or none because without it alone.

    None where both could be. Numbers that are no ranks either way are no items: the layout is asked for.
    """
    whole = np.column_stack([others, here])
    strict = no_items.are_strict(whole).all(), no_items.are_strict(others).all()
    if strict[0] == strict[1] and not strict[0]:
        no_ranking = detection.first_row_that_is_no_ranking
        tied = no_ranking(whole) is None, no_ranking(others) is None
        if not any(tied):
            return False
        return None if all(tied) else tied[0]
    return None if all(strict) else bool(strict[0])


def _same_scale(others: Array, here: Array) -> bool:
    """Whether the numbers of a column are such as others hold: between their ends, or a step beside."""
    known, said = others[np.isfinite(others)], here[np.isfinite(here)]
    if not len(known):
        return False
    low, high = float(known.min()), float(known.max())
    whole = bool(np.all(known == np.floor(known)))
    step = 1.0 if whole and high > 1.0 else 0.0
    if whole and not np.all(said == np.floor(said)):
        return False
    return bool(min(low - step, 1.0) <= said.min() and said.max() <= high + step)
