"""Rankings and preferences from CSV files and data frames, and back.

Four layouts, detected by the rules in :mod:`permix.data.io.layouts.detection` or named by the caller.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from permix.data.attributes import Attributes, from_text
from permix.data.ballots import Ballots, Entry
from permix.data.cells_codes import Missing, MissingCodes
from permix.data.io.ballots.contest_column import (
    ContestColumn,
    candidates_of_lists,
    column_holding,
    contest_column,
    known_columns,
    rows_of,
    separating_column,
)
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.column_names import LONG_RANKS, plain
from permix.data.io.containers.lines import read_lines
from permix.data.io.forms import rank_words, surveys
from permix.data.io.headers import (
    has_header,
    is_number,
    is_usual_name,
    orders_have_header,
    split_header,
    warn_of_lone_name,
    warn_of_no_header,
)
from permix.data.io.layouts import comparisons, detection, lists, no_items, turning
from permix.data.io.layouts.counts import counts_of, refuse_weights_of_agents, refuse_what_may_count
from permix.data.io.layouts.doubtful_entries import (
    refuse_codes_in_columns,
    refuse_counted_notes,
    refuse_one_mark,
)
from permix.data.io.layouts.long import (
    FILL,
    agents_of_rows,
    read_compared,
    read_pairs,
    read_ratings,
    refuse_ranks_beyond,
    without_marks,
)
from permix.data.io.layouts.pair_words import opposed
from permix.data.io.layouts.wide import (
    read_orders,
    read_ranks,
    read_wide_ratings,
    refuse_numbers_among_names,
)
from permix.data.io.marks import refuse_sets
from permix.data.io.roles import refuse_items_said, roles_of, with_items
from permix.data.io.table_columns import Table, decimal_points, missing_mask, numbers
from permix.data.io.table_writer import Layout
from permix.data.io.table_writer import write_table as write_table
from permix.data.io.text_files import PathLike
from permix.data.labels import Array, Label, clean_items, repeats
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, NoRows, PermixWarning

Unlisted = Literal["below", "unknown"]
# Columns of long tables that nobody named.
_LONG = {"pairs": ("agent", "better", "worse"), "ratings": ("agent", "item", "rating")}
_FOR_AGENT = " for the agent"
READ_LAYOUTS = (*detection.LAYOUTS, *comparisons.COMPARED)


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
    missing: Missing = None,
    item_columns: Label | Iterable[Label] = (),
    rename: Mapping[str, str] | None = None,
    transpose: bool = False,
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
    missing : number, str, or a list of these, optional
        Values that stand for no answer, such as -1 or 99, in columns of items, ranks or ratings.
    item_columns : name or sequence of names
        Columns that are items though they are called as something else is, such as Weight, Votes or
        Education, where each column is an item.
    rename : mapping of str to str, optional
        Columns that are read as though they were called otherwise: ``{"essay": "item"}``.
    transpose : bool
        Whether to turn the table around first: each row is an item, named in the first column, and each other
        column an agent.

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
    votes: Rankings | Preferences = from_table(
        table, layout, items, *about, missing, item_columns, rename, transpose
    )
    return votes


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
    if layout == "auto" and {"comment-id", "participant"} & set(map(str, table.names)):
        votes = _of_polis(path, table, options)
        if votes is not None:
            return votes
    noted: dict[str, Any] = {}
    read: Rankings | Preferences = from_table(table, layout, **options, note=noted)
    return read._replaced(metadata={**read.metadata, **noted})


def read_marked(
    path: PathLike,
    layout: str = "auto",
    delimiter: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
    **options: Any,
) -> Rankings | Preferences | Ballots:
    """Read a table as ``read_table`` does, but lists that need rules of cleaning as they were marked."""
    noted: dict[str, Any] = {}
    table = _table_of_file(path, delimiter, header, layout, sheet)
    read = from_table(table, layout, **options, note=noted, marks=True)
    known = {**read.metadata, **noted}
    return replace(read, metadata=known) if isinstance(read, Ballots) else read._replaced(metadata=known)


def _of_polis(path: PathLike, table: Table, options: dict[str, Any]) -> Preferences | None:
    """Read a Polis conversation from a file that is no CSV; None where the table is another."""
    from permix.data.io.polis import kind_by_names, read_polis_votes

    if kind_by_names(table.names) is None or set(options) - {"group_columns", "ignore", "moderated"}:
        return None
    given = [options.get(name, ()) for name in ("group_columns", "ignore")]
    beside, left = ([str(name)] if isinstance(name, str | int) else list(map(str, name)) for name in given)
    return read_polis_votes(path, beside, left, table, options.get("moderated"))


def _table_of_file(
    path: PathLike, delimiter: str | None, header: bool | None, layout: str, sheet: str | None
) -> Table:
    whole = read_lines(path, delimiter, sheet, ragged=layout == "orders")
    if header is None and not whole.named:
        whole = surveys.header_lines(path, whole)
    sides = comparisons.names_of_sides(whole.fields[0])
    decide = partial(
        has_header,
        path,
        number=partial(is_number, delimiter=whole.delimiter),
        known=lambda name: is_known(name) or name in sides,
        numbers_may_be_names=True,
    )
    if layout == "orders":
        decide = partial(orders_have_header, path, known=is_known)
    found, lines = split_header(path, whole, header, decide)
    names = found
    if header is None and not whole.named and found is not None and len(found) == 1:
        warn_of_lone_name(path, found[0], lines)
    if names is None:
        names = [str(place) for place in range(1, len(lines.fields[0]) + 1)]
        if len(names) - (layout == "ratings" and len(names) == 4) == len(_LONG.get(layout, ())):
            names[:3] = _LONG[layout]  # and a time, which is not used
        if header is None:
            warn_of_no_header(path, lines.fields[0], ", ".join(names[:2]))
    table = Table.of_lines(path, list(names), lines)._replace(numbered=found is None)
    table.columns[:] = [decimal_points(column, whole.delimiter) for column in table.columns]
    return table


def is_known(name: str) -> bool:
    """Whether the name of a column says what it holds."""
    return is_usual_name(name) or (detection.is_place(name) and not name.isdecimal())


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
    missing: Missing = None,
    item_columns: Label | Iterable[Label] = (),
    rename: Mapping[str, str] | None = None,
    transpose: bool = False,
    note: dict[str, Any] | None = None,
    marks: bool = False,
) -> Any:
    """Read rankings or preferences from a table by what its columns are called; see :func:`from_frame`.

    ``note`` takes what else is known: ``LAYOUT``, ``TABLE`` (its columns, and which names the agents) and
    ``OTHER COLUMNS``, those of a form that are set apart. With ``marks``, lists of items that have gaps, or
    an item twice, are returned as Ballots.
    """
    note = {} if note is None else note
    table = turning.renamed(table, rename or {}).without(ignore)
    table, beside = (turning.transposed(table) if transpose else table).set_apart(group_columns)
    table = with_items(table, item_columns)
    sides = opposed(table.names) if layout in ("auto", "pairs") else None
    if sides is not None and not (table.places("better") and table.places("worse")):
        table = turning.renamed(
            table, {str(table.names[sides[0]]): "better", str(table.names[sides[1]]): "worse"}
        )
    column = _contest_column(table, layout, agent_column, count_column, contest)
    if column is not None:
        named = {name: name for name in column.contests}
        chosen = chosen_contest(named, contest, table.source, way_out=column.way_out())
        rows = rows_of(table.columns[column.place], chosen)
        if column.n_blank:
            said = f"{table.source}: {column.n_blank:,} of {table.n_rows:,} rows name no contest in column "
            warnings.warn(f"{said}{column.name!r}, and are left out", PermixWarning, stacklevel=4)
        table = table.take(rows).without([table.names[column.place]])
        beside = {name: entries[rows] for name, entries in beside.items()}
        contest = None
    note["TABLE"] = {"columns": [str(name) for name in table.names], "agent": None}
    if column is not None:
        note["TABLE"] |= {"contest": chosen, "contest column": column.name}
    elif contest is not None or layout in ("auto", "orders"):
        known = {agent_column, count_column}
        series = detection.one_of_several_series(table, contest, known)
        if series is not None:
            table, note["TABLE"]["contest"], contest = *series, None
    if layout in ("auto", "orders", "ranks", "ratings"):
        table, of_form = surveys.answers_of(table, contest, agent_column, count_column)
        if of_form:
            note["OTHER COLUMNS"] = of_form
    elif contest is not None:
        raise DataError(Argument("contest"), " says nothing about ", Argument("layout", layout))
    table = lists.with_lists(table, layout)
    if layout not in ("auto", *READ_LAYOUTS):
        raise DataError(f"layout is one of auto, {', '.join(READ_LAYOUTS)}, not {layout!r}")
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    if table.n_rows == 0:
        raise NoRows(f"{table.source}: there are no rows")
    names = None if items is None else clean_items(items)
    agent, count, mark, wide = roles_of(table, layout, agent_column, count_column)
    for place in wide:
        if table.names[place] == "":
            raise DataError(
                f"{table.source}: column {place + 1} has no name; name it, so that it is clear whether it is "
                "a place, an item or something else"
            )
    note["TABLE"]["agent"] = None if agent is None else str(table.names[agent])
    note["TABLE"]["count"] = None if count is None else str(table.names[count])
    counts: Array = np.ones(table.n_rows, dtype=np.int64)
    if count is not None:
        table, counts, counted = counts_of(table, count)
        if agent is not None and count_column is None:
            refuse_weights_of_agents(table, agent, count, counts)
        beside = {name: column[counted] for name, column in beside.items()}
    covariates = from_text(beside)
    if missing is not None:
        codes = MissingCodes(missing)
        holds = set(wide) - set(table.places("item"))
        columns = [
            codes.blanked(column) if at in holds else column for at, column in enumerate(table.columns)
        ]
        codes.warn_of_unseen()
        table = table._replace(columns=columns)
    if lists.LISTED in table.names:
        others = [str(table.names[place]) for place in wide if table.names[place] != lists.LISTED]
        if others:
            raise DataError(
                f"{table.source}: a column holds whole rankings, and {others[0]!r} is something else; leave "
                "it out with ",
                Argument("ignore", others[0]),
                *(", or, if it counts agents or names them, say ", Argument("count_column", others[0])),
                *(" or ", Argument("agent_column", others[0])),
            )
        refuse_items_said(table, item_columns, "a column holds whole rankings")
        note["LAYOUT"] = "a ranking in each cell"
        spoken = _Spoken.of(table, wide, counts, covariates)
        table, counts, covariates = spoken.table, spoken.counts, spoken.covariates
        agents = None if agent is None else table.filled(agent, FILL)
        below = _below(table, mark, unlisted or "below")
        if names is None and count is not None:
            refuse_counted_notes([table.columns[wide[0]]], counts, table.where, parts=lists.items_of)
        listed = lists.read_lists(table, wide[0], names, below, counts, agents)
        return spoken.told(listed)
    is_long = bool(agent is not None and table.places("item") and table.places("rating"))
    long_rank = detection.long_rank(table, agent) if layout in ("auto", "ranks") else None
    if long_rank is not None:
        table = rank_words.with_ranks(table, [long_rank], "ranks")
        long_rank = long_rank if numbers(table.columns[long_rank]) is not None else None
    unread = wide if count is None and count_column is None else []
    if long_rank is not None and agent is not None:
        refuse_what_may_count(table, set(unread) - {long_rank})
        no_items.refuse_what_may_rate(table, agent, long_rank)
        if layout == "auto":
            no_items.warn_of_either_direction(table, agent, long_rank, are_ranks=True)
        refuse_items_said(table, item_columns, "each row is the rank of one item")
        note["LAYOUT"] = "ranks, one a line"
        note["TABLE"] |= _unread(table, wide, [long_rank, *table.places("item")])
        refuse_ranks_beyond(table, agent, long_rank, names)
        kept, left_out = without_marks(table, agent)
        if kept is not None:
            table, counts = table.take(kept), counts[kept]
            covariates = covariates.take(kept) if covariates else covariates
        ids = table.filled(agent, FILL)
        found = read_ratings(table, names, ids, counts, unlisted or "below", None, rank=long_rank)
        if left_out:
            audit = [*(entry._asdict() for entry in left_out), *found.metadata.get("CLEANING", ())]
            found = found._replaced(metadata={**found.metadata, "CLEANING": audit})
        return found._replaced(covariates=_of_agents(table, covariates, ids, found.agents))
    paired = bool(table.places("better") and table.places("worse"))
    of_pairs = layout == "auto" and (paired or comparisons.detect(table, agent) is not None)
    if layout in ("auto", "ranks") and not is_long and not of_pairs and not _are_places(table, wide):
        table = rank_words.with_ranks(table, wide, layout)
    if layout == "auto" and is_long and agent is not None:
        no_items.warn_of_either_direction(table, agent, table.places("rating")[0], are_ranks=False)
    if layout == "auto":
        called = note["TABLE"]["columns"]
        compared = comparisons.detect(table, agent)
        layout = compared or detection.detect_layout(table, agent, wide, called)
        if layout == "ratings":
            no_items.refuse_grades(table)
    if layout == "pairs" and comparisons.winners_tied(table):
        layout = "matches"
    note["LAYOUT"] = layout
    if layout != "ranks" and (layout != "ratings" or table.places("item")):
        refuse_items_said(table, item_columns, f"the layout is {layout}")
    if layout in (*comparisons.COMPARED, "pairs") or (layout == "ratings" and table.places("item")):
        refuse_what_may_count(table, set(unread) - set(table.places("rating")))
    if layout in comparisons.COMPARED:
        if agent_column is None and comparisons.holds_answers(table, layout, agent):
            agent, note["TABLE"]["agent"] = None, None
        stated = comparisons.compared(table, layout, agent, ties, counts)
        note["TABLE"] |= _unread(table, wide, comparisons.columns_read(table, layout))
        found = read_compared(table, names, agent, counts, stated, on_cycle)
        if not covariates:
            return found
        if agent is None:  # each row or task is an agent, called by its number
            rows = np.unique(stated.task[stated.better])
            return found._replaced(covariates=covariates.take(rows[found.agents.astype(np.int64) - 1]))
        ids = table.filled(agent, FILL)
        return found._replaced(covariates=_of_agents(table, covariates, ids, found.agents))
    if layout == "ratings" and not table.places("item"):
        detection.refuse_few_columns(table, wide)
        if categories is None:
            detection.refuse_ratings_downward(table, wide, note["TABLE"]["columns"])
        if names is None:
            no_items.refuse_beside_ratings(table, wide, note["TABLE"]["columns"])
        spoken = _Spoken.of(table, wide, counts, covariates)
        table, counts = spoken.table, spoken.counts
        about = {"counts": counts, "agents": None if agent is None else table.filled(agent, FILL)}
        below = _below(table, mark, unlisted or "unknown")
        note["TABLE"] |= _range_of(table, wide)
        return spoken.told(read_wide_ratings(table, names, wide, below, categories, **about))
    if layout in _LONG:
        ids, nobody = agents_of_rows(table, agent, layout)
        read = [at for role in _LONG[layout][1:] for at in table.places(role)]
        note["TABLE"] |= _unread(table, wide, read)
        if layout == "ratings":
            note["TABLE"] |= _range_of(table, table.places("rating"))
        if layout == "pairs":
            found = read_pairs(table, names, ids, counts, on_cycle)
        else:
            found = read_ratings(table, names, ids, counts, unlisted or "unknown", categories)
        if nobody and agent_column is None:
            found = found._replaced(metadata={**found.metadata, "CLEANING": [nobody._asdict()]})
        return found._replaced(covariates=_of_agents(table, covariates, ids, found.agents))
    if layout == "orders":
        detection.refuse_other_columns(table, wide, named_items=names is not None)
        if names is None:
            detection.refuse_places_as_items(table, wide)
            for place in wide:
                refuse_sets(table.source, table.columns[place].tolist())
            refuse_numbers_among_names(table, wide)
            table = detection.without_nobody(table, detection.ordered_places(table, wide))
            refuse_codes_in_columns(table, wide)
            _refuse_what_is_no_item(table, wide, None if count is None else counts)
    elif names is None:
        no_items.refuse_beside_ranks(table, wide, note["TABLE"]["columns"])
    spoken = _Spoken.of(table, wide, counts, covariates, zero_is_none=layout == "ranks")
    table, counts, covariates = spoken.table, spoken.counts, spoken.covariates
    agents = None if agent is None else table.filled(agent, FILL)
    below = _below(table, mark, unlisted or "below")
    result: Rankings | Preferences | Ballots
    about = {"counts": counts, "agents": agents}
    if layout == "orders":
        result = read_orders(table, names, detection.ordered_places(table, wide), below, marks, **about)
    else:
        result = read_ranks(table, names, wide, below, **about)
    result = spoken.told(result)
    known = [] if agents is None else agents.tolist()
    for first, row in islice(repeats(known), 1):
        said = f"{table.where(row)}: agent {known[row]!r} has a row already ({table.where(first)}); both are "
        # The line that called the reader.
        warnings.warn(f"{said}kept. Drop one if it is the same ballot twice", PermixWarning, stacklevel=3)
    return result


def _refuse_what_is_no_item(table: Table, wide: list[int], counts: Array | None) -> None:
    """Ask about totals below ballots, and about a sign that is all that stands in several columns."""
    columns = [table.columns[place] for place in wide]
    if counts is not None:
        refuse_counted_notes(columns, counts, table.where)
    filled = [column[~missing_mask(column)] for column in columns]
    found = {str(entry) for column in filled for entry in column[:1]}
    if len(found) == 1 and len({str(entry) for column in filled for entry in column}) == 1:
        refuse_one_mark(table.source, next(iter(found)), sum(1 for column in filled if len(column)))


def _unread(table: Table, wide: Iterable[int], read: Iterable[int]) -> dict[str, list[str]]:
    """Return the columns of a long table that no layout reads, where there are some."""
    known = set(read)
    left = [str(table.names[place]) for place in wide if place not in known]
    return {"unread": left} if left else {}


def _range_of(table: Table, places: Iterable[int]) -> dict[str, float]:
    """Return the ends of ratings that are numbers."""
    columns = [numbers(table.columns[place]) for place in places]
    known = [each[np.isfinite(each)] for each in columns if each is not None]
    if len(known) < len(columns) or not any(map(len, known)):
        return {}
    said = np.concatenate(known)
    return {"from": float(said.min()), "to": float(said.max())}


def _contest_column(
    table: Table, layout: str, agent_column: object, count_column: object, asked: str | None = None
) -> ContestColumn | None:
    """Return the column that says of which contest a row is, in a table whose entries are items."""
    item, rated = table.places("item"), table.places("rating")
    places = [place for place, name in enumerate(table.names) if detection.is_place(name)]
    candidates = item or places or candidates_of_lists(table.names, table.columns)
    agents = (
        table.places("agent") if agent_column in (None, False) else [table.named(agent_column, _FOR_AGENT)]
    )
    tasks = layout == "auto" and item and comparisons.detect(table, next(iter(agents), None)) is not None
    if not candidates or tasks or layout in comparisons.COMPARED:
        return None
    roles = {table.names[at] for role in ("agent", "count") for at in table.places(role)}
    names = known_names = known_columns(table.names, {agent_column, count_column, *roles, *table.items})
    ranked = [at for at, name in enumerate(names) if item and plain(name) in LONG_RANKS]
    names = ["" if at in (*ranked, *rated) else name for at, name in enumerate(names)]
    found = contest_column(names, table.columns, candidates, of_lines=bool(item))
    if found is None and item and len(ranked) == 1 and len(agents) == 1:
        others = ["" if at in (*item, *agents) else name for at, name in enumerate(names)]
        found = separating_column(others, table.columns, agents[0], ranked[0])
    if found is None and item and len(rated) == 1 and len(agents) == 1 and not ranked:
        others = ["" if at in (*item, *agents, *rated) else name for at, name in enumerate(names)]
        found = separating_column(others, table.columns, agents[0], rated[0], whole=True)
    if asked is not None and (found is None or asked not in found.contests):
        others = ["" if at in candidates else name for at, name in enumerate(known_names)]
        found = column_holding(others, table.columns, asked, table.source) or found
    return found


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
        left_out = [Entry("rows without an answer", "left out", self.silent, left_out=self.silent)]
        if isinstance(votes, Ballots):
            return replace(votes, covariates=self.covariates, audit=tuple(left_out if self.silent else ()))
        if self.covariates:
            votes = votes._replaced(covariates=self.covariates)
        if not self.silent:
            return votes
        return votes._replaced(metadata={**votes.metadata, "CLEANING": [left_out[0]._asdict()]})


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


def _below(table: Table, mark: int | None, unlisted: str) -> Array:
    if mark is None:
        return np.full(table.n_rows, unlisted == "below")
    words = table.columns[mark]
    for row, word in enumerate(words):
        if word not in ("below", "unknown"):
            raise DataError(f"{table.where(row)}: column 'unlisted' says 'below' or 'unknown', not {word!r}")
    return np.asarray(words == "below", dtype=np.bool_)


def _are_places(table: Table, wide: list[int]) -> bool:
    """Whether columns are called places of an ordering, so that their entries are items."""
    return all(detection.position(table.names[place]) for place in wide)
