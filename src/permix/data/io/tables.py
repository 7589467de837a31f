"""Rankings and preferences from CSV files and data frames, and back.

Four layouts, detected by the rules in :mod:`permix.data.io.table_layouts` or named by the caller.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from permix.data.io.headers import has_header, is_usual_name, split_header, warn_of_no_header
from permix.data.io.table_columns import (
    Table,
    guess_delimiter,
    missing_mask,
    naturals,
    numbers,
    table_from_frame,
    table_of_lines,
)
from permix.data.io.table_layouts import (
    LAYOUTS,
    detect_layout,
    is_place,
    ordered_places,
    position,
    refuse_other_columns,
)
from permix.data.io.table_writer import Layout
from permix.data.io.table_writer import write_table as write_table
from permix.data.io.text_files import PathLike, read_text
from permix.data.labels import Array, Label, clean_items, encode_agents, encode_items
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, PermixWarning, Wording

Unlisted = Literal["below", "unknown"]
# Columns of long tables that nobody named.
_LONG = {"pairs": ("agent", "better", "worse"), "ratings": ("agent", "item", "rating")}


def from_frame(
    frame: Any,
    layout: Layout = "auto",
    *,
    items: Iterable[Label] | None = None,
    unlisted: Unlisted | None = None,
    agent_column: str | Literal[False] | None = None,
    count_column: str | Literal[False] | None = None,
    on_cycle: Literal["error", "drop", "keep"] = "error",
    ignore: Label | Iterable[Label] = (),
) -> Rankings | Preferences:
    """Read rankings or preferences from a pandas or polars data frame.

    Parameters
    ----------
    frame : data frame
    layout : {"auto", "orders", "ranks", "pairs", "ratings"}
        * ``orders``: columns ``pos1, pos2, …``, ``1st, 2nd, …`` or ``first, second, …``, entries are
          items, best first; blank, 0 or NaN at the end of a row is padding.
        * ``ranks``: one column per item, entries are ranks, 1 = best; blank, 0 or NaN = not ranked.
        * ``pairs``: one row per comparison with columns for agent, better and worse item.
        * ``ratings``: one row per rating with columns for agent, item and rating, higher is better.
        * ``auto``: found from column names and entries; an error where two layouts would fit.
    items : sequence of names, optional
        All items, in the order wanted. Left out, the names found.
    unlisted : {"below", "unknown"}, optional
        What it means for an item not to be listed or rated. Left out, "below" for orders and ranks and
        "unknown" for ratings; comparisons list nothing. In orders and ranks a column ``unlisted`` with one
        of the two words in each row goes first.
    agent_column, count_column : str or False, optional
        Columns with the agent's id and with the number of agents a row stands for. Found by usual names
        (``agent``, ``user``, ``voter``, ``id``, …; ``count``, ``n``, ``freq``, …; a column without a name
        holds agents); ``False`` means that there is none. Rows with count 0 are left out. For pairs,
        ``agent_column=False`` makes every row an agent of its own. In orders and ranks an agent may have
        several rows; a warning names the first who has.
    on_cycle : {"error", "drop", "keep"}
        For pairs, as in :meth:`permix.Preferences.from_pairs`.
    ignore : name or sequence of names
        Columns to leave out, such as a precinct beside the places of an ordering.

    Returns
    -------
    Rankings or Preferences
        Rankings for orders, and for ranks without ties; Preferences for everything else.

    Examples
    --------
    >>> import pandas as pd
    >>> from permix.data import from_frame
    >>> from_frame(pd.DataFrame({"1st": ["tea", "milk"], "2nd": ["milk", None], "count": [3, 1]}))
    Rankings: 4 votes (2 rows) over 2 items, top lists of 1 to 2 items
      0: tea ≻ milk × 3
      1: milk ≻ rest × 1
    """
    table = table_from_frame(frame)
    return from_table(table, layout, items, unlisted, agent_column, count_column, on_cycle, ignore)


def read_table(
    path: PathLike,
    layout: Layout = "auto",
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    **options: Any,
) -> Rankings | Preferences:
    """Read rankings or preferences from a CSV or TSV file, plain or gzipped.

    ``options`` are all that :func:`from_frame` takes; ``delimiter`` is a tab for ``.tsv`` and otherwise the
    most frequent of comma, semicolon, tab and ``|`` in the first line. ``header`` says whether the first line
    names the columns; left out, it is found by what is in it (``headers``), a warning says where it was taken
    for a row, and an error asks where it could be both. Without a header, columns are called 1, 2, …;
    the three columns of pairs and ratings are taken in the order given above. Entries that are whole numbers
    throughout become integers. Errors give the line of the file, the first being line 1.

    Examples
    --------
    >>> votes = permix.read_table("votes.csv", layout="ranks")  # doctest: +SKIP
    """
    return from_table(_table_of_file(path, delimiter, header, layout), layout, **options)


def _table_of_file(path: PathLike, delimiter: str | None, header: bool | None, layout: str) -> Table:
    text = read_text(path)
    decide = partial(has_header, path, known=_is_known, numbers_may_be_names=True)
    names, lines, rows = split_header(path, text, delimiter or guess_delimiter(path, text), header, decide)
    if names is None:
        names = [str(place) for place in range(1, len(rows[0]) + 1)]
        if len(names) == len(_LONG.get(layout, ())):
            names = list(_LONG[layout])
        if header is None:
            warn_of_no_header(path, rows[0], ", ".join(names[:2]))
    return table_of_lines(path, list(names), lines, rows)


def _is_known(name: str) -> bool:
    return is_usual_name(name) or (is_place(name) and not name.isdecimal())


def from_table(
    table: Table,
    layout: str,
    items: Iterable[Label] | None = None,
    unlisted: str | None = None,
    agent_column: object = None,
    count_column: object = None,
    on_cycle: str = "error",
    ignore: Label | Iterable[Label] = (),
) -> Rankings | Preferences:
    """Read a table by what its columns are called; see :func:`from_frame`."""
    table = table.without(ignore)
    if layout not in ("auto", *LAYOUTS):
        raise DataError(f"layout is one of auto, {', '.join(LAYOUTS)}, not {layout!r}")
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    if table.n_rows == 0:
        raise DataError(f"{table.source}: there are no rows")
    names = None if items is None else clean_items(items)
    count = table.find(count_column, "count")
    if count is not None:
        table, counts = _counts(table, count)
    else:
        counts = np.ones(table.n_rows, dtype=np.int64)
    agent = table.find(agent_column, "agent")
    if agent is None and agent_column is None and "" in table.names:
        agent = table.names.index("")
    mark = table.find(None, "unlisted")
    wide = [place for place in range(len(table.names)) if place not in (count, agent, mark)]
    if layout == "auto":
        layout = detect_layout(table, agent, wide)
    per_row = None if count is None else counts
    if layout in _LONG:
        ids = _agents_of_rows(table, agent, agent_column, layout)
        if layout == "pairs":
            return _pairs(table, names, ids, per_row, on_cycle)
        return _ratings(table, names, ids, per_row, unlisted or "unknown")
    agents = None if agent is None else _required(table, agent)
    below = _below(table, mark, unlisted or "below")
    result: Rankings | Preferences
    if layout == "orders":
        refuse_other_columns(table, wide, named_items=names is not None)
        ordered = ordered_places(table, wide)
        result = _orders(table, names, ordered, below, counts=counts, agents=agents)
    else:
        result = _ranks(table, names, wide, below, counts=counts, agents=agents)
    if agents is not None:
        _warn_of_agents_twice(table, agents)
    return result


# -- columns -------------------------------------------------------------------------------------


def _required(table: Table, place: int) -> Array:
    """Column in which every row needs an entry."""
    blank = missing_mask(table.columns[place])
    if blank.any():
        row = int(np.argmax(blank))
        raise DataError(
            f"{table.where(row)}: nothing in column {table.names[place]!r}; fill it or drop the row"
        )
    return naturals(table.columns[place])


def _counts(table: Table, place: int) -> tuple[Table, Array]:
    """Counts as integers, and the table without the rows that nobody stated."""
    column = table.columns[place]
    values = numbers(column)
    if values is None:
        row = next(row for row in range(len(column)) if numbers(column[row : row + 1]) is None)
        raise DataError(f"{table.where(row)}: count {column[row]!r} is not a number")
    bad = ~((values >= 0) & (values < 2**53) & (np.floor(values) == values))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{table.where(row)}: count {column[row]!r} is not a whole number from 0 on")
    stated = np.flatnonzero(values > 0)
    if stated.size == 0:
        raise DataError(f"{table.source}: all counts are 0")
    return table.take(stated), values[stated].astype(np.int64)


def _below(table: Table, mark: int | None, unlisted: str) -> Array:
    if mark is None:
        return np.full(table.n_rows, unlisted == "below")
    words = table.columns[mark]
    for row, word in enumerate(words):
        if word not in ("below", "unknown"):
            raise DataError(f"{table.where(row)}: column 'unlisted' says 'below' or 'unknown', not {word!r}")
    return np.asarray(words == "below", dtype=np.bool_)


# -- wide layouts --------------------------------------------------------------------------------


def _warn_of_agents_twice(table: Table, agents: Array) -> None:
    first: dict[object, int] = {}
    for row, agent in enumerate(agents.tolist()):
        if first.setdefault(agent, row) != row:
            warnings.warn(
                f"{table.where(row)}: agent {agent!r} has a row already ({table.where(first[agent])}); both "
                "are kept. Drop one if it is the same ballot twice",
                PermixWarning,
                stacklevel=4,  # the line that called the reader
            )
            return


def _orders(
    table: Table, names: tuple[Label, ...] | None, places: list[int], below: Array, **about: Any
) -> Rankings:
    if names is None:
        _refuse_numbers_among_names(table, places)
    flat = naturals(np.column_stack([table.columns[place].astype(object) for place in places]).ravel())
    width = len(places)
    flat = _without_zeros(table, flat, width, names)
    if flat.dtype.kind == "O" and all(entry is None for entry in flat):
        raise DataError(f"{table.source}: no row lists an item")

    def where(position: int) -> str:
        row, column = divmod(position, width)
        return f"{table.where(row)}, column {table.names[places[column]]!r}"

    items, codes = encode_items(flat, names, None, where)
    orders = codes.reshape(-1, width)
    listed = orders >= 0
    _refuse(table, ~listed.any(axis=1), "no item is listed; drop the row")
    gap = (listed[:, 1:] & ~listed[:, :-1]).any(axis=1)
    _refuse(table, gap, "an entry is blank, but another follows; close the gap")
    ascending = np.sort(orders, axis=1)
    twice = (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] >= 0)
    if twice.any():
        row, place = np.argwhere(twice)[0]
        raise DataError(f"{table.where(int(row))}: {items[ascending[row, place]]!r} is listed twice")
    return Rankings._from_arrays(orders, items, unlisted_below=below, **about)


def _refuse_numbers_among_names(table: Table, places: list[int]) -> None:
    """Refuse a column of numbers next to columns of names, unless all are called places of an ordering."""
    if all(position(table.names[place]) for place in places):
        return
    values = [numbers(table.columns[place]) for place in places]
    text = [place for place, column in zip(places, values, strict=True) if column is None]
    for place, column in zip(places, values, strict=True):
        if text and column is not None and not np.isnan(column).all():
            raise DataError(
                f"{table.source}: column {table.names[place]!r} holds numbers while "
                f"{table.names[text[0]]!r} holds names, so they are not places of one ordering. A column "
                "that counts or names agents is set apart with ",
                Argument("count_column"),
                " or ",
                Argument("agent_column"),
                "; if numbers are names of items, pass items=[...]",
            )


def _without_zeros(table: Table, flat: Array, width: int, names: tuple[Label, ...] | None) -> Array:
    """Decide whether 0 is an item or padding, and put None where it is padding."""
    zero = np.asarray(flat == 0).reshape(-1, width)
    if names is not None:
        padding = 0 not in names
    elif not zero.any():
        return flat
    else:
        entries = flat.reshape(-1, width)
        given = np.asarray(entries != None) & ~zero  # noqa: E711 (elementwise)
        followed = zero & (np.cumsum(given[:, ::-1], axis=1)[:, ::-1] > 0)
        repeated = zero.sum(axis=1) > 1
        if repeated.any() and followed.any():
            row = int(np.argmax(followed.any(axis=1)))
            raise DataError(
                f"{table.where(row)}: 0 stands before another item here, but twice in one row on "
                f"{table.where(int(np.argmax(repeated)))}; leave places without an item blank"
            )
        if not repeated.any() and not followed.any():
            row = int(np.argmax(zero.any(axis=1)))
            raise DataError(
                f"{table.where(row)}: 0 could be an item or a place left empty; pass items= with the names, "
                "with or without 0"
            )
        padding = bool(repeated.any())
    if not padding:
        return flat
    result = flat.astype(object)
    result[zero.ravel()] = None
    return result


def _ranks(
    table: Table, names: tuple[Label, ...] | None, places: list[int], below: Array, **about: Any
) -> Rankings | Preferences:
    columns = {table.names[place]: place for place in places}
    if names is not None:
        for name in names:
            if name not in columns:
                raise DataError(f"{table.source}: no column for item {name!r}")
        places = [columns[name] for name in names]
    items = clean_items(table.names[place] for place in places)
    ranks = np.empty((table.n_rows, len(places)))
    for target, place in enumerate(places):
        column = table.columns[place]
        values = numbers(column)
        if values is None:
            row = next(row for row in range(len(column)) if numbers(column[row : row + 1]) is None)
            raise DataError(
                f"{table.where(row)}, column {table.names[place]!r}: rank {column[row]!r} is not a number; "
                "columns that hold no ranks are left out with items=[...]"
            )
        bad = (values < 0) | np.isinf(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{table.where(row)}, column {table.names[place]!r}: rank {column[row]!r} is not a "
                "positive number; ranks count from 1, blank or 0 = not ranked"
            )
        if names is None and np.nanmax(values, initial=0) > len(places):
            raise DataError(
                f"{table.source}: column {table.names[place]!r} goes up to {np.nanmax(values):g}, but "
                f"ranks of {len(places)} items end at {len(places)}. If it counts agents, say ",
                Argument("count_column", table.names[place]),
                "; columns that are no items are left out by naming the items: items=[...]",
            )
        ranks[:, target] = values
    ranks[ranks == 0] = np.nan
    given = ~np.isnan(ranks)
    _refuse(table, ~given.any(axis=1), "no item is ranked; drop the row")
    ascending = np.sort(ranks, axis=1)
    if np.any(ascending[:, 1:] == ascending[:, :-1]):
        tied = Preferences.from_ranks(ranks, items=items, **about)
        return tied._replaced(rest_below=below)
    strict = Rankings.from_ranks(ranks, items=items, **about)
    return strict._replaced(unlisted_below=below)


def _refuse(table: Table, bad: Any, why: str) -> None:
    if bad.any():
        raise DataError(f"{table.where(int(np.argmax(bad)))}: {why}")


# -- long layouts --------------------------------------------------------------------------------


def _one(table: Table, role: str) -> int:
    places = table.places(role)
    if len(places) != 1:
        found = "no column" if not places else "more than one column"
        raise DataError(
            f"{table.source}: {found} for the {role}; the columns are {', '.join(map(repr, table.names))}; "
            f"call one of them {role!r}"
        )
    return places[0]


def _agents_of_rows(table: Table, agent: int | None, agent_column: object, layout: str) -> Array:
    if agent is not None:
        return _required(table, agent)
    if agent_column is False and layout == "pairs":
        return np.arange(table.n_rows)
    way_out = Wording("; agent_column=False makes every row an agent of its own", "")
    raise DataError(
        f"{table.source}: no column for the agent; name it with ",
        Argument("agent_column"),
        *([way_out] if layout == "pairs" else []),
    )


def _pairs(
    table: Table, names: tuple[Label, ...] | None, ids: Array, counts: Array | None, on_cycle: str
) -> Preferences:
    places = (_one(table, "better"), _one(table, "worse"))
    columns = [_required(table, place).astype(object) for place in places]
    both = naturals(np.column_stack(columns).ravel())
    found, codes = encode_items(both, names, None, lambda position: table.where(position // 2))
    pairs = codes.reshape(-1, 2)
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        row = int(np.argmax(same))
        raise DataError(f"{table.where(row)}: {found[pairs[row, 0]]!r} is compared with itself")
    n_agents, agents, row_of = encode_agents(ids, None, table.where)
    per_agent = _counts_per_agent(table, counts, row_of, n_agents)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row_of, minlength=n_agents))))
    stated = Preferences._from_arrays(
        items=found,
        pair_indptr=indptr,
        pairs=pairs[np.argsort(row_of, kind="stable")],
        counts=per_agent,
        agents=agents,
    )
    return stated._with_cycles(on_cycle)


def _ratings(
    table: Table, names: tuple[Label, ...] | None, ids: Array, counts: Array | None, unrated: str
) -> Preferences:
    item = _required(table, _one(table, "item"))
    column = table.columns[_one(table, "rating")]
    values = numbers(column)
    if values is None or not np.isfinite(values).all():
        row = next(
            r
            for r in range(table.n_rows)
            if (v := numbers(column[r : r + 1])) is None or not np.isfinite(v[0])
        )
        raise DataError(
            f"{table.where(row)}: rating {column[row]!r} is not a number; drop rows without a rating"
        )
    found, codes = encode_items(item, names, None, table.where)
    n_agents, agents, row_of = encode_agents(ids, None, table.where)
    key = row_of.astype(np.int64) * len(found) + codes
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    if again.size:
        first, second = order[again[0]], order[again[0] + 1]
        raise DataError(
            f"{table.where(int(second))}: agent {ids[second]!r} rates {found[codes[second]]!r} a second time "
            f"(first: {table.where(int(first))}); keep one"
        )
    rows = np.column_stack([row_of.astype(float), codes.astype(float), values])
    result = Preferences.from_ratings(
        rows, items=range(len(found)), agents=range(n_agents), unrated=unrated, layout="long"
    )
    per_agent = _counts_per_agent(table, counts, row_of, n_agents)
    return result._replaced(items=found, agents=agents, counts=per_agent)


def _counts_per_agent(table: Table, counts: Array | None, row_of: Array, n_agents: int) -> Array:
    per_agent = np.ones(n_agents, dtype=np.int64)
    if counts is not None:
        per_agent[row_of[::-1]] = counts[::-1]  # the first row of an agent counts
        differs = per_agent[row_of] != counts
        _refuse(table, differs, "an agent's rows have different counts; give each agent one count")
    return per_agent
