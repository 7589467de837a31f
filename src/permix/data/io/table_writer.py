"""Writing rankings and preferences as CSV, TSV or Parquet in one of four layouts."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, product
from typing import Literal

import numpy as np

from permix.data.agent_table import refuse_to_write
from permix.data.io.categories import categories_of_levels
from permix.data.io.column_names import USUAL_NAMES, column_places
from permix.data.io.containers.excel_writer import write_sheet
from permix.data.io.containers.parquet import write_columns
from permix.data.io.containers.text import DELIMITERS
from permix.data.io.layouts.detection import LAYOUTS, position
from permix.data.io.marks import is_mark
from permix.data.io.preflib_writer import level_groups
from permix.data.io.table_columns import BLANK
from permix.data.io.text_files import PathLike, plain_suffix, write_text
from permix.data.io.written_names import refuse_table_names
from permix.data.labels import Array, Label, repeats, some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, PermixWarning, Wording
from permix.kernels.pairwise_counts import PreferenceArrays

MOST_PAIRS = 10_000_000
Layout = Literal["auto", "orders", "ranks", "pairs", "ratings", "matches", "choices", "best-worst"]


def write_table(obj: Rankings | Preferences, path: PathLike, layout: Layout = "auto") -> None:
    """Write rankings or preferences as CSV; TSV, Parquet or Excel where the name ends so; ``.gz`` compresses.

    Parameters
    ----------
    obj : Rankings or Preferences
    path : path
    layout : {"auto", "orders", "ranks", "pairs", "ratings"}
        ``auto``: orders for rankings, ranks for preferences by levels, pairs for comparisons. Columns
        ``agent``, ``count`` and ``unlisted`` are added where they say something. For ratings, the
        worst category of a ``.cat`` file becomes 1, the next 2, and so on; of other levels, each agent's
        worst does. As pairs, levels and rankings become comparisons of
        each level with the next one.

    Raises
    ------
    DataError
        When the layout cannot hold what the object states, or a name would not come back as it is: item
        names and agent ids that read as an empty cell (``NA``, ``NaN``, ``nan``), begin or end with blanks,
        span lines or look like another one, and, for ranks, item names like those of other columns
        (``count``, ``user``, …).

    Warns
    -----
    PermixWarning
        When some item is in no row and the layout is not ranks: the table does not hold it.
    """
    refuse_to_write(obj)
    refuse_table_names(obj.items, obj._agents, BLANK)
    if layout == "auto":
        layout = "orders" if isinstance(obj, Rankings) else "pairs" if len(obj.pairs) else "ranks"
    if layout not in LAYOUTS:
        raise DataError(f"layout is one of auto, {', '.join(LAYOUTS)}, not {layout!r}")
    writers = {"orders": _orders_out, "ranks": _ranks_out, "pairs": _pairs_out, "ratings": _ratings_out}
    header, body = writers[layout](obj)
    if plain_suffix(path) == "parquet":
        columns = [list(column) for column in zip(*body, strict=True)]
        write_columns(path, [str(name) for name in header], columns)
        return
    if plain_suffix(path) == "xlsx":
        write_sheet(path, header, body)
        return
    text = io.StringIO()
    delimiter = "\t" if plain_suffix(path) in ("tsv", "tab") else ","
    # Quotes keep other marks in names out of the reader's guess at the delimiter.
    marked = any(set(DELIMITERS) & set(str(name)) for name in header)
    quoting: Literal[0, 1] = csv.QUOTE_ALL if marked else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerow(header)
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(body)
    write_text(path, text.getvalue())


Rows = tuple[list[Label], Iterable[Sequence[object]]]


def _front(obj: Rankings | Preferences, below: Array) -> tuple[list[Label], list[list[object]]]:
    """Columns before the data proper: agent, count, unlisted, each only where it says something."""
    columns: dict[Label, list[object]] = {}
    if obj._agents is not None:
        columns["agent"] = obj.agents.tolist()
    if np.any(obj.counts != 1):
        columns["count"] = obj.counts.tolist()
    if not below.all():
        columns["unlisted"] = ["below" if entry else "unknown" for entry in below]
    columns |= _covariates(obj, columns)
    return list(columns), [[column[row] for column in columns.values()] for row in range(len(obj))]


def _covariates(obj: Rankings | Preferences, others: Iterable[Label]) -> dict[Label, list[object]]:
    """Return what is known of the agents, in columns whose names nothing else has."""
    for name in obj.covariates:
        if name in others or position(name) or any(column_places([name], role) for role in USUAL_NAMES):
            raise DataError(f"a covariate is called {name!r}, like a column of votes; use another name")
    found: dict[Label, list[object]] = {}
    for name in obj.covariates:
        column = obj.covariates.column(name)
        codes, words = column.codes()
        found[name] = [words[code] if code >= 0 else "" for code in codes.tolist()]
    return found


def _orders_out(obj: Rankings | Preferences) -> Rows:
    for name in obj.items:
        if is_mark(str(name)):
            said = f"the item name {name!r} may be read as a place left empty; rename it, or use "
            raise DataError(said, Argument("layout", "ranks"))
    rankings = obj if isinstance(obj, Rankings) else obj.to_rankings()
    _warn_of_items_left_out(rankings.items, rankings.orders[rankings.orders >= 0], "orders")
    header, front = _front(rankings, rankings.unlisted_below)
    header += [f"pos{place + 1}" for place in range(rankings.orders.shape[1])]
    names = (*rankings.items, "")  # index -1 is padding
    orders = zip(front, rankings.orders.tolist(), strict=True)
    return header, ([*before, *(names[item] for item in row)] for before, row in orders)


def _ranks_out(obj: Rankings | Preferences) -> Rows:
    stated = obj.arrays()
    _refuse_pairs(stated, "ranks")
    ranks = np.zeros((len(obj), obj.n_items), dtype=np.int64)
    ranks[_row_of_entry(stated), stated.level_items] = stated.levels + 1
    header, front = _front(obj, stated.rest_below)
    _refuse_items_like_columns(header, obj.items)
    rows = zip(front, ranks.tolist(), strict=True)
    return [*header, *obj.items], ([*before, *(rank or "" for rank in row)] for before, row in rows)


def _refuse_items_like_columns(front: list[Label], items: Sequence[Label]) -> None:
    """Refuse item names for which a reader would take their columns for something else."""
    columns = [*front, *items]
    places = {role: column_places(columns, role) for role in USUAL_NAMES}
    for role in ("agent", "count", "unlisted"):
        for place in places[role]:
            if place >= len(front):
                said = f"an item is called {columns[place]!r}, like a column of the table (role: {role})"
                raise DataError(f"{said}; use ", Argument("layout", "orders"), " or another name")
    if places["better"] and places["worse"]:
        looks = "pairs"
    elif places["agent"] and places["item"] and places["rating"]:
        looks = "ratings"
    elif all(position(name) for name in items):
        looks = "orders"
    else:
        return
    raise DataError(
        f"with items called {some_names(items)} a table of ranks looks like one of {looks}; use other "
        "names or ",
        Argument("layout", "orders"),
    )


def _pairs_out(obj: Rankings | Preferences) -> Rows:
    stated = obj if isinstance(obj, Preferences) else Preferences.from_rankings(obj)
    n_pairs = np.diff(stated.pair_indptr)
    rest = np.where(stated.rest_below, stated.n_items - np.diff(stated.level_indptr), 0).tolist()
    for row, groups in enumerate(level_groups(stated)):
        sizes = [*map(len, groups), rest[row]]
        n_pairs[row] += sum(upper * lower for upper, lower in pairwise(sizes))
    if (total := int(n_pairs.sum())) > MOST_PAIRS:
        said = f"these are {total:,} pairs, and more than {MOST_PAIRS:,} are not written; use "
        raise DataError(said, Argument("layout", "ranks"), " or ", Argument("layout", "orders"))
    if not n_pairs.all():
        raise DataError(
            f"{stated.row_name(int(np.argmin(n_pairs)))} states nothing, which a table of pairs cannot hold"
        )
    _refuse_agents_twice(stated, "pairs")
    compared = np.fromiter(chain.from_iterable(pair for _, *pair in _comparisons(stated)), np.int32)
    _warn_of_items_left_out(stated.items, compared, "pairs")
    items = stated.items
    rows = ((who, items[better], items[worse]) for who, better, worse in _comparisons(stated))
    return _long_out(stated, ["better", "worse"], rows)


def _long_out(stated: Preferences, names: list[Label], rows: Iterable[tuple[int, Label, Label]]) -> Rows:
    """Rows (agent's row, entry, entry) with agents by name, and with counts where they say something."""
    agents = stated.agents.tolist()
    after: dict[Label, list[object]] = {} if np.all(stated.counts == 1) else {"count": stated.counts.tolist()}
    after |= _covariates(stated, ["agent", *names])
    told = list(zip(*after.values(), strict=True)) if after else [()] * len(stated)
    return ["agent", *names, *after], ([agents[who], *entries, *told[who]] for who, *entries in rows)


def _comparisons(stated: Preferences) -> Iterator[tuple[int, int, int]]:
    """Yield (row, better, worse): each level over the next, the last over the rest, then what is stated.

    A comparison that levels gave already has one of its votes then.
    """
    ends, pairs = stated.pair_indptr.tolist(), stated.pairs.tolist()
    for row, groups in enumerate(level_groups(stated)):
        if stated.rest_below[row]:
            listed = set(chain.from_iterable(groups))
            groups.append([item for item in range(stated.n_items) if item not in listed])
        compared = pairs[ends[row] : ends[row + 1]]
        given = set()
        for upper, lower in pairwise(groups):
            for pair in product(upper, lower):
                yield (row, *pair)
                if compared:
                    given.add(pair)
        for better, worse in compared:
            if (better, worse) in given:
                given.remove((better, worse))
            else:
                yield row, better, worse


def _ratings_out(obj: Rankings | Preferences) -> Rows:
    stated = obj if isinstance(obj, Preferences) else Preferences.from_rankings(obj)
    _refuse_pairs(stated, "ratings")
    short = np.diff(stated.level_indptr) < stated.n_items
    if np.any(short & stated.rest_below):
        row = int(np.argmax(short & stated.rest_below))
        said = f"{stated.row_name(row)} puts the unlisted items below, which a table of ratings cannot hold"
        raise DataError(f"{said}; use ", Argument("layout", "ranks"))
    _refuse_agents_twice(stated, "ratings")
    _warn_of_items_left_out(stated.items, stated.level_items, "ratings")
    row_of = _row_of_entry(stated)
    # Ratings from 1: of categories, the same for everybody; otherwise of each agent's own levels.
    category = categories_of_levels(stated)
    if category is not None:
        scores = len(stated.metadata["CATEGORY ORDER"]) - category
    else:
        worst = stated.levels[stated.level_indptr[1:] - 1]
        scores = worst[row_of] - stated.levels + 1
    names = [stated.items[item] for item in stated.level_items.tolist()]
    return _long_out(stated, ["item", "rating"], zip(row_of.tolist(), names, scores.tolist(), strict=True))


def _row_of_entry(stated: Preferences | PreferenceArrays) -> Array:
    return np.repeat(np.arange(len(stated.level_indptr) - 1), np.diff(stated.level_indptr))


def _refuse_agents_twice(obj: Preferences, layout: str) -> None:
    agents = obj.agents.tolist()
    for first, row in repeats(agents):
        raise DataError(
            f"rows {first + 1} and {row + 1} are both of agent {agents[row]!r}, and a "
            f"table of {layout} would make one agent of them; give them different ids or use ",
            Argument("layout", "ranks"),
        )


def _warn_of_items_left_out(items: Sequence[Label], written: Array, layout: str) -> None:
    present = np.zeros(len(items), dtype=np.bool_)
    present[written] = True
    if not present.all():
        names = [items[place] for place in np.flatnonzero(~present).tolist()]
        said = f"no row mentions {some_names(names)}, and a table of {layout} holds only items that some row "
        way_out = Wording("read it back with items=[...], or use layout='ranks'", "use --to-layout ranks")
        # The line that called write_table.
        warnings.warn(PermixWarning(f"{said}mentions; ", way_out), stacklevel=4)


def _refuse_pairs(obj: Preferences | PreferenceArrays, layout: str) -> None:
    if len(obj.pairs):
        raise DataError(
            "comparisons do not fit ", Argument("layout", layout), "; use ", Argument("layout", "pairs")
        )
