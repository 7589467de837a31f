"""Writing rankings and preferences as CSV or TSV in one of four layouts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.data.table_layouts import LAYOUTS
from permix.data.text_files import PathLike, plain_suffix, write_text
from permix.errors import DataError

Layout = Literal["auto", "orders", "ranks", "pairs", "ratings"]


def write_table(obj: Rankings | Preferences, path: PathLike, layout: Layout = "auto") -> None:
    """Write rankings or preferences as CSV (TSV where the name ends in ``.tsv``; ``.gz`` compresses).

    Parameters
    ----------
    obj : Rankings or Preferences
    path : path
    layout : {"auto", "orders", "ranks", "pairs", "ratings"}
        ``auto``: orders for rankings, ranks for preferences by levels, pairs for comparisons. Columns
        ``agent``, ``count`` and ``unlisted`` are added where they say something. For ratings, an agent's
        worst level becomes 1, the next 2, and so on.

    Raises
    ------
    DataError
        When the layout cannot hold what the object states.
    """
    if layout == "auto":
        layout = "orders" if isinstance(obj, Rankings) else "pairs" if len(obj.pairs) else "ranks"
    if layout not in LAYOUTS:
        raise DataError(f"layout is one of auto, {', '.join(LAYOUTS)}, not {layout!r}")
    if layout == "orders":
        header, body = _orders_out(obj)
    elif layout == "ranks":
        header, body = _ranks_out(obj)
    elif layout == "pairs":
        header, body = _pairs_out(obj)
    else:
        header, body = _ratings_out(obj)
    text = io.StringIO()
    delimiter = "\t" if plain_suffix(path) in ("tsv", "tab") else ","
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(body)
    write_text(path, text.getvalue())


Rows = tuple[list[Label], Iterable[Sequence[object]]]


def _front(obj: Rankings | Preferences, below: Array | None) -> tuple[list[Label], list[list[object]]]:
    """Columns before the data proper: agent, count, unlisted, each only where it says something."""
    header: list[Label] = []
    columns: list[list[object]] = []
    if obj._agents is not None:
        header.append("agent")
        columns.append(list(obj.agents.tolist()))
    if np.any(obj.counts != 1):
        header.append("count")
        columns.append(list(obj.counts.tolist()))
    if below is not None and not below.all():
        header.append("unlisted")
        columns.append(["below" if entry else "unknown" for entry in below])
    return header, [list(row) for row in zip(*columns, strict=True)] if columns else [
        [] for _ in range(len(obj))
    ]


def _orders_out(obj: Rankings | Preferences) -> Rows:
    rankings = obj if isinstance(obj, Rankings) else obj.to_rankings()
    header, front = _front(rankings, rankings.unlisted_below)
    width = rankings.orders.shape[1]
    header += [f"pos{place + 1}" for place in range(width)]
    names = (*rankings.items, "")  # index -1 is padding
    body = (
        [*before, *(names[item] for item in row)]
        for before, row in zip(front, rankings.orders.tolist(), strict=True)
    )
    return header, body


def _ranks_out(obj: Rankings | Preferences) -> Rows:
    if isinstance(obj, Rankings):
        below, ranks = obj.unlisted_below, obj.ranks(missing=0.0).astype(np.int64)
    else:
        _refuse_pairs(obj, "ranks")
        below = obj.rest_below | (np.diff(obj.level_indptr) == obj.n_items)
        ranks = np.zeros((len(obj), obj.n_items), dtype=np.int64)
        ranks[_row_of_entry(obj), obj.level_items] = obj.levels + 1
    header, front = _front(obj, below)
    taken = {str(name) for name in obj.items}
    for name in header:
        if name in taken:
            raise DataError(
                f"an item is called {name!r}, like a column of the table; use layout='orders' or another name"
            )
    body = (
        [*before, *(rank or "" for rank in row)] for before, row in zip(front, ranks.tolist(), strict=True)
    )
    return [*header, *obj.items], body


def _pairs_out(obj: Rankings | Preferences) -> Rows:
    if isinstance(obj, Rankings) or len(obj.level_items):
        raise DataError("levels and rankings become very many pairs; use layout='ranks' or 'orders'")
    silent = np.diff(obj.pair_indptr) == 0
    if silent.any():
        raise DataError(
            f"{obj.row_name(int(np.argmax(silent)))} states nothing, which a table of pairs cannot hold"
        )
    agent = np.repeat(np.arange(len(obj)), np.diff(obj.pair_indptr))
    counted = bool(np.any(obj.counts != 1))
    header: list[Label] = ["agent", "better", "worse", *(["count"] if counted else [])]
    agents, items, counts = obj.agents.tolist(), obj.items, obj.counts.tolist()
    body = (
        [agents[who], items[better], items[worse], *([counts[who]] if counted else [])]
        for who, (better, worse) in zip(agent.tolist(), obj.pairs.tolist(), strict=True)
    )
    return header, body


def _ratings_out(obj: Rankings | Preferences) -> Rows:
    stated = obj if isinstance(obj, Preferences) else Preferences.from_rankings(obj)
    _refuse_pairs(stated, "ratings")
    short = np.diff(stated.level_indptr) < stated.n_items
    if np.any(short & stated.rest_below):
        row = int(np.argmax(short & stated.rest_below))
        raise DataError(
            f"{stated.row_name(row)} puts the unlisted items below, which a table of ratings cannot hold; "
            "use layout='ranks'"
        )
    row_of = _row_of_entry(stated)
    worst = stated.levels[stated.level_indptr[1:] - 1]
    counted = bool(np.any(stated.counts != 1))
    header: list[Label] = ["agent", "item", "rating", *(["count"] if counted else [])]
    agents, items, counts = stated.agents.tolist(), stated.items, stated.counts.tolist()
    scores = (worst[row_of] - stated.levels + 1).tolist()
    body = (
        [agents[who], items[item], score, *([counts[who]] if counted else [])]
        for who, item, score in zip(row_of.tolist(), stated.level_items.tolist(), scores, strict=True)
    )
    return header, body


def _row_of_entry(obj: Preferences) -> Array:
    return np.repeat(np.arange(len(obj)), np.diff(obj.level_indptr))


def _refuse_pairs(obj: Preferences, layout: str) -> None:
    if len(obj.pairs):
        other = (
            "; it states levels as well, so write the two parts to two files" if len(obj.level_items) else ""
        )
        raise DataError(f"comparisons do not fit layout={layout!r}; use layout='pairs'{other}")
