"""Rankings and preferences from CSV files and data frames, and back.

Four layouts, detected by the rules in :mod:`permix.data.io.table_layouts` or named by the caller.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from permix.data.attributes import Attributes, from_text
from permix.data.ballots import Entry
from permix.data.comparisons import Comparisons
from permix.data.csr import indptr_of
from permix.data.io import comparison_layouts, table_layouts, table_lists
from permix.data.io.column_names import plain
from permix.data.io.comparison_layouts import Compared
from permix.data.io.containers.lines import read_lines
from permix.data.io.forms import rank_words, scales, surveys
from permix.data.io.headers import (
    has_header,
    is_usual_name,
    orders_have_header,
    split_header,
    warn_of_no_header,
)
from permix.data.io.table_columns import Table, decimal_points, missing_mask, naturals, numbers
from permix.data.io.table_writer import Layout
from permix.data.io.table_writer import write_table as write_table
from permix.data.io.text_files import PathLike
from permix.data.labels import Array, Label, as_objects, clean_items, encode_agents, encode_items, repeats
from permix.data.levels import Scores
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings, repeated_item
from permix.errors import Argument, DataError, Part, PermixWarning, Wording

Unlisted = Literal["below", "unknown"]
# Columns of long tables that nobody named.
_LONG = {"pairs": ("agent", "better", "worse"), "ratings": ("agent", "item", "rating")}
_FILL = "; fill it or drop the row"
READ_LAYOUTS = (*table_layouts.LAYOUTS, *comparison_layouts.COMPARED)
# Numbers with marks between thousands.
COMMAS, POINTS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+"), re.compile(r"[0-9]{1,3}(\.[0-9]{3})+")
# Comparisons that a count may stand for.
MOST_COMPARISONS = 50_000_000


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
    ties: Literal["drop", "both", "error"] = "drop",
    group_columns: Label | Iterable[Label] = (),
    contest: str | None = None,
    categories: Iterable[str] | None = None,
) -> Rankings | Preferences:
    """Read rankings or preferences from a pandas or polars data frame.

    Parameters
    ----------
    frame : data frame
    layout : {"auto", "orders", "ranks", "pairs", "ratings", "matches", "choices", "best-worst"}
        * ``orders``: columns ``pos1, pos2, …``, ``1st, 2nd, …`` or ``first, second, …``, entries are
          items, best first; blank, 0 or NaN at the end of a row is padding.
        * ``ranks``: one column per item, entries are ranks, 1 = best; blank, 0 or NaN = not ranked. Words
          such as ``1st``, ``Second choice``, ``=2`` or ``Not ranked`` are ranks, too.
        * ``pairs``: one row per comparison with columns for agent, better and worse item.
        * ``ratings``: one row per rating with columns for agent, item and rating, or one column per item;
          numbers, of which the highest is the best, or words of a scale, such as ``Strongly agree``.
        * ``matches``: two items and the winner in each row, such as ``model_a, model_b, winner``.
        * ``choices``: items that were shown and the one chosen; ``best-worst``: the best and the worst one.
          A row for each task, or one for each item of a task.
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
        For comparisons, as in :meth:`permix.Preferences.from_pairs`.
    ignore : name or sequence of names
        Columns to leave out.
    ties : {"drop", "both", "error"}
        For matches: ties are left out, count as a vote for either side, or are an error. How many there were
        is in ``metadata["CLEANING"]``.
    group_columns : name or sequence of names
        Columns that say something of the agents, such as precinct, age or region: they become
        ``covariates``, which no model uses and with which groups are compared afterwards.
    contest : str, optional
        The question, where several have columns ``Question [Item]``.
    categories : list of str, optional
        For ratings in words: all words, best first. Left out, what the words say.

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
    table = Table.of_frame(frame)
    about = (unlisted, agent_column, count_column, on_cycle, ignore, ties, group_columns, contest, categories)
    return from_table(table, layout, items, *about)


def read_table(
    path: PathLike,
    layout: Layout = "auto",
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
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
    table = _table_of_file(path, delimiter, header, layout, sheet)
    noted: dict[str, Any] = {}
    read = from_table(table, layout, **options, note=noted)
    return read._replaced(metadata={**read.metadata, **noted})


def _table_of_file(
    path: PathLike, delimiter: str | None, header: bool | None, layout: str, sheet: str | None
) -> Table:
    whole = read_lines(path, delimiter, sheet, ragged=layout == "orders")
    if header is None and not whole.named:
        whole = surveys.header_lines(path, whole)
    decide = partial(has_header, path, known=is_known, numbers_may_be_names=True)
    if layout == "orders":
        decide = partial(orders_have_header, path, known=is_known)
    found, lines = split_header(path, whole, header, decide)
    names = found
    if names is None:
        names = [str(place) for place in range(1, len(lines.fields[0]) + 1)]
        if len(names) - (layout == "ratings" and len(names) == 4) == len(_LONG.get(layout, ())):
            names[:3] = _LONG[layout]  # and a time, which is not used
        if header is None:
            warn_of_no_header(path, lines.fields[0], ", ".join(names[:2]))
    table = Table.of_lines(path, list(names), lines)._replace(numbered=found is None)
    if whole.delimiter == ";":
        table.columns[:] = [decimal_points(column) for column in table.columns]
    return table


def is_known(name: str) -> bool:
    """Whether the name of a column says what it holds."""
    return is_usual_name(name) or (table_layouts.is_place(name) and not name.isdecimal())


def from_table(
    table: Table,
    layout: str,
    items: Iterable[Label] | None = None,
    unlisted: str | None = None,
    agent_column: object = None,
    count_column: object = None,
    on_cycle: str = "error",
    ignore: Label | Iterable[Label] = (),
    ties: str = "drop",
    group_columns: Label | Iterable[Label] = (),
    contest: str | None = None,
    categories: Iterable[str] | None = None,
    note: dict[str, Any] | None = None,
) -> Rankings | Preferences:
    """Read a table by what its columns are called; see :func:`from_frame`.

    ``note`` takes what else is known: ``LAYOUT``, ``TABLE`` (its columns, and which names the agents) and
    ``OTHER COLUMNS``, those of a form that are set apart.
    """
    note = {} if note is None else note
    table, beside = table.without(ignore).set_apart(group_columns)
    note["TABLE"] = {"columns": [str(name) for name in table.names], "agent": None}
    if layout in ("auto", "orders", "ranks", "ratings"):
        table, of_form = surveys.answers_of(table, contest, agent_column, count_column)
        if of_form:
            note["OTHER COLUMNS"] = of_form
    elif contest is not None:
        raise DataError(Argument("contest"), " says nothing about ", Argument("layout", layout))
    table = table_lists.with_lists(table, layout)
    if layout not in ("auto", *READ_LAYOUTS):
        raise DataError(f"layout is one of auto, {', '.join(READ_LAYOUTS)}, not {layout!r}")
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    if table.n_rows == 0:
        raise DataError(f"{table.source}: there are no rows")
    names = None if items is None else clean_items(items)
    count = table.find(count_column, "count")
    if count is not None and count_column is None and not _could_count(table, count):
        count = None
    counts: Array = np.ones(table.n_rows, dtype=np.int64)
    if count is not None:
        table, counts, counted = _counts(table, count)
        beside = {name: column[counted] for name, column in beside.items()}
    covariates = from_text(beside)
    agent = table.find(agent_column, "agent")
    if agent is None and agent_column is None and table.names[:1] == [""]:
        agent = 0
    for place, name in enumerate(table.names):
        if name == "" and place != agent:
            raise DataError(
                f"{table.source}: column {place + 1} has no name; name it, so that it is clear whether it is "
                "a place, an item or something else"
            )
    note["TABLE"]["agent"] = None if agent is None else str(table.names[agent])
    mark = table.find(None, "unlisted")
    wide = [place for place in range(len(table.names)) if place not in (count, agent, mark)]
    if table_lists.LISTED in table.names:
        others = [str(table.names[place]) for place in wide if table.names[place] != table_lists.LISTED]
        if others:
            raise DataError(
                f"{table.source}: a column holds whole rankings, and {others[0]!r} is something else; leave "
                "it out with ",
                Argument("ignore", others[0]),
                *(", or, if it counts agents or names them, say ", Argument("count_column", others[0])),
                *(" or ", Argument("agent_column", others[0])),
            )
        note["LAYOUT"] = "a ranking in each cell"
        spoken = _Spoken.of(table, wide, counts, covariates)
        table, counts, covariates = spoken.table, spoken.counts, spoken.covariates
        agents = None if agent is None else table.filled(agent, _FILL)
        below = _below(table, mark, unlisted or "below")
        listed = table_lists.read_lists(table, wide[0], names, below, counts, agents)
        return spoken.told(listed)
    is_long = bool(agent is not None and table.places("item") and table.places("rating"))
    long_rank = table_layouts.long_rank(table, agent) if layout in ("auto", "ranks") else None
    if long_rank is not None and agent is not None:
        note["LAYOUT"] = "ranks, one a line"
        ids = table.filled(agent, _FILL)
        found = _ratings(table, names, ids, counts, unlisted or "below", None, rank=long_rank)
        return found._replaced(covariates=_of_agents(table, covariates, ids, found.agents))
    if layout in ("auto", "ranks") and not is_long and not _are_places(table, wide):
        table = rank_words.with_ranks(table, wide, layout)
    if layout == "auto":
        called = note["TABLE"]["columns"]
        compared = comparison_layouts.detect(table, agent)
        layout = compared or table_layouts.detect_layout(table, agent, wide, called)
    note["LAYOUT"] = layout
    if layout in comparison_layouts.COMPARED:
        stated = comparison_layouts.compared(table, layout, agent, ties)
        found = _compared(table, names, agent, counts, stated, on_cycle)
        if not covariates:
            return found
        if agent is None:  # each row or task is an agent, called by its number
            rows = np.unique(stated.row[stated.better])
            return found._replaced(covariates=covariates.take(rows[found.agents.astype(np.int64) - 1]))
        ids = table.filled(agent, _FILL)
        return found._replaced(covariates=_of_agents(table, covariates, ids, found.agents))
    if layout == "ratings" and not table.places("item"):
        table_layouts.refuse_few_columns(table, wide)
        spoken = _Spoken.of(table, wide, counts, covariates)
        table, counts = spoken.table, spoken.counts
        about = {"counts": counts, "agents": None if agent is None else table.filled(agent, _FILL)}
        below = _below(table, mark, unlisted or "unknown")
        return spoken.told(_wide_ratings(table, names, wide, below, categories, **about))
    if layout in _LONG:
        ids, nobody = _agents_of_rows(table, agent, layout)
        if layout == "pairs":
            found = _pairs(table, names, ids, counts, on_cycle)
        else:
            found = _ratings(table, names, ids, counts, unlisted or "unknown", categories)
        if nobody and agent_column is None:
            found = found._replaced(metadata={**found.metadata, "CLEANING": [nobody._asdict()]})
        return found._replaced(covariates=_of_agents(table, covariates, ids, found.agents))
    if layout == "orders":
        table_layouts.refuse_other_columns(table, wide, named_items=names is not None)
        if names is None:
            _refuse_numbers_among_names(table, wide)
            table = table_layouts.without_nobody(table, table_layouts.ordered_places(table, wide))
    spoken = _Spoken.of(table, wide, counts, covariates, zero_is_none=layout == "ranks")
    table, counts, covariates = spoken.table, spoken.counts, spoken.covariates
    agents = None if agent is None else table.filled(agent, _FILL)
    below = _below(table, mark, unlisted or "below")
    result: Rankings | Preferences
    about = {"counts": counts, "agents": agents}
    if layout == "orders":
        result = _orders(table, names, table_layouts.ordered_places(table, wide), below, **about)
    else:
        result = _ranks(table, names, wide, below, **about)
    result = spoken.told(result)
    known = [] if agents is None else agents.tolist()
    for first, row in islice(repeats(known), 1):
        said = f"{table.where(row)}: agent {known[row]!r} has a row already ({table.where(first)}); both are "
        # The line that called the reader.
        warnings.warn(f"{said}kept. Drop one if it is the same ballot twice", PermixWarning, stacklevel=3)
    return result


class _Spoken(NamedTuple):
    """The rows of a table in which something is said, and how many are left out."""

    table: Table
    counts: Array
    covariates: Attributes
    silent: int  # agents who say nothing
    n_rows: int  # their rows

    @classmethod
    def of(
        cls,
        table: Table,
        wide: list[int],
        counts: Array,
        covariates: Attributes,
        zero_is_none: bool = False,
    ) -> _Spoken:
        """Leave out the rows whose columns ``wide`` are all blank."""
        says = np.zeros(table.n_rows, dtype=np.bool_)
        for place in wide:
            column = table.columns[place]
            values = numbers(column) if zero_is_none else None
            says |= ~missing_mask(column) if values is None else ~np.isnan(values) & (values != 0)
        if says.all():
            return cls(table, counts, covariates, 0, 0)
        rows = np.flatnonzero(says)
        if not len(rows):
            raise DataError(f"{table.source}: no row lists an item")
        silent = int(counts[~says].sum())
        known = covariates.take(rows) if covariates else covariates
        return cls(table.take(rows), counts[rows], known, silent, int(np.count_nonzero(~says)))

    def told(self, votes: Any) -> Any:
        """Return votes with what is known of the agents, and with what was left out."""
        if self.covariates:
            votes = votes._replaced(covariates=self.covariates)
        if not self.silent:
            return votes
        entry = Entry("rows without an answer", "left out", self.silent, left_out=self.silent)
        return votes._replaced(metadata={**votes.metadata, "CLEANING": [entry._asdict()]})


# -- columns -------------------------------------------------------------------------------------


def _numbers(table: Table, place: int, what: str, *way_out: Part) -> Array:
    """Return a column as floats; refuse what is no number."""
    column = table.columns[place]
    values = numbers(column)
    if values is None:
        row = next(row for row in range(len(column)) if numbers(column[row : row + 1]) is None)
        raise DataError(f"{table.where(row)}{what} {column[row]!r} is not a number", *way_out)
    return values


def _of_agents(table: Table, covariates: Attributes, ids: Array, agents: Array) -> Attributes:
    """Return covariates of agents out of those of the lines that each has, which must agree."""
    if not covariates:
        return covariates
    place = {agent: at for at, agent in enumerate(agents.tolist())}
    of_line = np.array([place.get(agent, -1) for agent in ids.tolist()])  # -1: left out for a contradiction
    first = np.zeros(len(agents), dtype=np.int64)
    lines = np.flatnonzero(of_line >= 0)[::-1]
    first[of_line[lines]] = lines
    for name in covariates:
        entries = covariates.column(name).codes()[0]
        differs = (entries != entries[first[of_line]]) & (of_line >= 0)
        table.refuse(differs, f"column {name!r} differs from that of an earlier line of the same agent")
    return covariates.take(first)


def _counts(table: Table, place: int) -> tuple[Table, Array, Array]:
    """Return the table without the rows that nobody stated, counts as integers, and the rows kept."""
    values = _whole_counts(table, place)
    bad = ~((values >= 0) & (values < 2**53) & (np.floor(values) == values))
    count = table.columns[place][np.argmax(bad)]
    table.refuse(bad, f"count {count!r} is not a whole number from 0 on")
    stated = np.flatnonzero(values > 0)
    if stated.size == 0:
        raise DataError(f"{table.source}: all counts are 0")
    return table.take(stated), values[stated].astype(np.int64), stated


def _could_count(table: Table, place: int) -> bool:
    """Whether a column that may weigh rows, or be a measurement called weight, holds whole numbers."""
    if plain(table.names[place]) not in ("weight", "weights"):
        return True
    values = numbers(table.columns[place])
    return values is None or bool(np.all(values == np.floor(values)))


def _whole_counts(table: Table, place: int) -> Array:
    """Return counts; 1,234 is a number of thousands, 1.000 could be two numbers and is refused."""
    column = table.columns[place]
    entries = [entry if isinstance(entry, str) else "" for entry in column.tolist()]
    for row, entry in enumerate(entries):
        if POINTS.fullmatch(entry):
            raise DataError(
                f"{table.where(row)}: count {entry!r} could be {entry.replace('.', '')} or have decimals; "
                "write it without points"
            )
    if any(COMMAS.fullmatch(entry) for entry in entries):
        whole = [
            entry.replace(",", "") if COMMAS.fullmatch(str(entry)) else entry for entry in column.tolist()
        ]
        table = table._replace(
            columns=[*table.columns[:place], as_objects(whole), *table.columns[place + 1 :]]
        )
    return _numbers(table, place, ": count")


def _below(table: Table, mark: int | None, unlisted: str) -> Array:
    if mark is None:
        return np.full(table.n_rows, unlisted == "below")
    words = table.columns[mark]
    for row, word in enumerate(words):
        if word not in ("below", "unknown"):
            raise DataError(f"{table.where(row)}: column 'unlisted' says 'below' or 'unknown', not {word!r}")
    return np.asarray(words == "below", dtype=np.bool_)


# -- wide layouts --------------------------------------------------------------------------------


def _orders(
    table: Table, names: tuple[Label, ...] | None, places: list[int], below: Array, **about: Any
) -> Rankings:
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
    table.refuse(~listed.any(axis=1), "no item is listed; drop the row")
    gap = (listed[:, 1:] & ~listed[:, :-1]).any(axis=1)
    table.refuse(gap, "an entry is blank, but another follows; close the gap")
    row, item = repeated_item(orders, len(items))
    if row >= 0:
        raise DataError(f"{table.where(row)}: {items[item]!r} is listed twice")
    return Rankings._from_arrays(orders, items, unlisted_below=below, **about)


def _refuse_numbers_among_names(table: Table, places: list[int]) -> None:
    """Refuse a column of numbers next to columns of names, unless all are called places of an ordering."""
    if all(table_layouts.position(table.names[place]) for place in places):
        return
    values = [numbers(table.columns[place]) for place in places]
    text = [place for place, column in zip(places, values, strict=True) if column is None]
    for place, column in zip(places, values, strict=True):
        if text and column is not None and not np.isnan(column).all():
            raise DataError(
                f"{table.source}: column {table.names[place]!r} holds numbers while "
                f"{table.names[text[0]]!r} holds names, so they are not places of one ordering. A column "
                "that counts or names agents is set apart with ",
                *(Argument("count_column"), " or ", Argument("agent_column")),
                "; if numbers are names of items, ",
                Wording("pass items=[...]", "call the columns pos1, pos2, …"),
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
                f"{table.where(row)}: 0 could be an item or a place left empty; ",
                Wording(
                    "pass items= with the names, with or without 0",
                    "leave such places blank, or call the item otherwise",
                ),
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
        left_out = ("; columns that hold no ranks are left out with ", Wording("items=[...]", "--ignore"))
        values = _numbers(table, place, f", column {table.names[place]!r}: rank", *left_out)
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
                "; columns that are no items are left out ",
                Wording("by naming the items: items=[...]", "with --ignore"),
            )
        ranks[:, target] = values
    ranks[ranks == 0] = np.nan
    given = ~np.isnan(ranks)
    table.refuse(~given.any(axis=1), "no item is ranked; drop the row")
    ascending = np.sort(ranks, axis=1)
    if np.any(ascending[:, 1:] == ascending[:, :-1]):
        tied = Preferences.from_ranks(ranks, items=items, **about)
        return tied._replaced(rest_below=below)
    strict = Rankings.from_ranks(ranks, items=items, **about)
    return strict._replaced(unlisted_below=below)


def _are_places(table: Table, wide: list[int]) -> bool:
    """Whether columns are called places of an ordering, so that their entries are items."""
    return all(table_layouts.position(table.names[place]) for place in wide)


def _wide_ratings(
    table: Table,
    names: tuple[Label, ...] | None,
    places: list[int],
    below: Array,
    categories: Iterable[str] | None,
    **about: Any,
) -> Preferences:
    """Ratings in a column for each item, higher is better."""
    if names is not None:
        columns = {table.names[place]: place for place in places}
        missing = [name for name in names if name not in columns]
        if missing:
            raise DataError(f"{table.source}: no column for item {missing[0]!r}")
        places = [columns[name] for name in names]
    items = clean_items(table.names[place] for place in places)
    ratings = np.column_stack(scales.scored(table, places, categories))
    bad = np.isinf(ratings)
    table.refuse(bad.any(axis=1), "a rating is not finite")
    given = ~np.isnan(ratings)
    table.refuse(~given.any(axis=1), "no item is rated; drop the row")
    read = Preferences.from_ratings(ratings, items=items, layout="matrix", **about)
    return read._replaced(rest_below=below | given.all(axis=1))


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


def _agents_of_rows(table: Table, agent: int | None, layout: str) -> tuple[Array, Entry | None]:
    """Return the agent of each row; where nobody is named, each comparison is one of its own."""
    if agent is not None:
        return table.filled(agent, _FILL), None
    if layout == "pairs":
        nobody = Entry("no column names the agents", "each row is one of its own", table.n_rows)
        return np.arange(table.n_rows), nobody
    raise DataError(f"{table.source}: no column for the agent; name it with ", Argument("agent_column"))


def _pairs(
    table: Table, names: tuple[Label, ...] | None, ids: Array, counts: Array, on_cycle: str
) -> Preferences:
    places = (_one(table, "better"), _one(table, "worse"))
    columns = [table.filled(place, _FILL).astype(object) for place in places]
    both = naturals(np.column_stack(columns).ravel())
    found, codes = encode_items(both, names, None, lambda position: table.where(position // 2))
    pairs = codes.reshape(-1, 2)
    table.refuse((pairs < 0).any(axis=1), "an item is missing; leave the row out")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        row = int(np.argmax(same))
        raise DataError(f"{table.where(row)}: {found[pairs[row, 0]]!r} is compared with itself")
    n_agents, agents, row_of = encode_agents(ids, None, table.where)
    per_agent = _counts_per_agent(table, counts, row_of, n_agents)
    indptr = indptr_of(np.bincount(row_of, minlength=n_agents))
    stated = Comparisons(found, agents, indptr, pairs[np.argsort(row_of, kind="stable")])
    return Preferences._from_comparisons(stated, per_agent, on_cycle)


def _compared(
    table: Table,
    names: tuple[Label, ...] | None,
    agent: int | None,
    counts: Array,
    stated: Compared,
    on_cycle: str,
) -> Preferences:
    """Comparisons of items that were shown; a count says how often a row was stated."""
    found, codes = encode_items(
        naturals(stated.entries), names, None, lambda position: table.where(int(stated.row[position]))
    )
    if (codes < 0).any():
        where = table.where(int(stated.row[np.argmax(codes < 0)]))
        raise DataError(f"{where}: an item is missing or called NA; fill it in or rename it")
    row = stated.row[stated.better]
    if int(counts[row].sum()) > MOST_COMPARISONS:
        raise DataError(f"{table.source}: the counts stand for more than {MOST_COMPARISONS:,} comparisons")
    audit = list(stated.audit)
    if agent is None:
        # One agent a row, or a task of several rows: the first of its rows.
        audit.append(
            Entry("no column names the agents", "each row or task is one of its own", len(set(row.tolist())))
        )
        ids = np.unique(row, return_inverse=True)[1] + 1
    else:
        ids = table.filled(agent, _FILL)[row]
        silent = len(set(table.columns[agent].tolist())) - len(set(ids.tolist()))
        if silent:
            audit.append(Entry("agents without a comparison", "left out", silent, left_out=silent))
    times = counts[row]
    pairs = np.repeat(np.column_stack([codes[stated.better], codes[stated.worse]]), times, axis=0)
    n_agents, agents, row_of = encode_agents(np.repeat(ids, times), None, table.where)
    indptr = indptr_of(np.bincount(row_of, minlength=n_agents))
    sorted_by = np.argsort(row_of, kind="stable")
    read = Preferences._from_comparisons(Comparisons(found, agents, indptr, pairs[sorted_by]), None, on_cycle)
    done = [entry._asdict() for entry in audit]
    return read._replaced(metadata={**read.metadata, "CLEANING": done}) if done else read


def _ratings(
    table: Table,
    names: tuple[Label, ...] | None,
    ids: Array,
    counts: Array,
    unrated: str,
    categories: Iterable[str] | None,
    rank: int | None = None,
) -> Preferences:
    """Ratings, one a line, or ranks (1 = best) in the column ``rank``."""
    item = table.filled(_one(table, "item"), _FILL)
    rating = _one(table, "rating") if rank is None else rank
    if rank is not None:
        values = -_numbers(table, rank, ": rank", "; drop rows without a rank")
        table.refuse(~(values <= -1), "ranks count from 1; drop rows without a rank")
    elif numbers(table.columns[rating]) is None:
        values = scales.scored(table, [rating], categories)[0]
        answered = np.flatnonzero(~np.isnan(values) | missing_mask(table.columns[rating]))
        table, item, ids, counts = table.take(answered), item[answered], ids[answered], counts[answered]
        values = values[answered]
    else:
        values = _numbers(table, rating, ": rating", "; drop rows without a rating")
    odd = table.columns[rating][np.argmax(~np.isfinite(values))] if len(values) else None
    table.refuse(~np.isfinite(values), f"rating {odd!r} is not a number; drop rows without a rating")
    found, codes = encode_items(item, names, None, table.where)
    n_agents, agents, row_of = encode_agents(ids, None, table.where)
    table.refuse(codes < 0, "the item is missing; leave the row out")
    scores = Scores(found, n_agents, agents, row_of, codes, values, table.where)
    per_agent = _counts_per_agent(table, counts, row_of, n_agents)
    return Preferences._from_scores(scores, unrated == "below", per_agent)


def _counts_per_agent(table: Table, counts: Array, row_of: Array, n_agents: int) -> Array:
    per_agent = np.ones(n_agents, dtype=np.int64)
    per_agent[row_of[::-1]] = counts[::-1]  # the first row of an agent counts
    differs = per_agent[row_of] != counts
    table.refuse(differs, "an agent's rows have different counts; give each agent one count")
    return per_agent
