"""Tables with a row for each comparison, task or rating."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from permix.data.ballots import Entry
from permix.data.comparisons import Comparisons
from permix.data.csr import indptr_of
from permix.data.io.forms import scales
from permix.data.io.layouts.comparisons import Compared
from permix.data.io.marks import says_nobody, says_several
from permix.data.io.table_columns import Table, naturals, numbers, numbers_of
from permix.data.io.text_files import shorten
from permix.data.labels import Array, Label, encode_agents, encode_items
from permix.data.levels import Scores
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError

# What to do about a row without an agent or an item.
FILL = "; fill it or drop the row"
# Comparisons that a count may stand for.
MOST_COMPARISONS = 50_000_000


def _one(table: Table, role: str) -> int:
    places = table.places(role)
    if len(places) != 1:
        found = "no column" if not places else "more than one column"
        raise DataError(
            f"{table.source}: {found} for the {role}; the columns are {', '.join(map(repr, table.names))}; "
            f"call one of them {role!r}"
        )
    return places[0]


def agents_of_rows(table: Table, agent: int | None, layout: str) -> tuple[Array, Entry | None]:
    """Return the agent of each row; where nobody is named, each comparison is one of its own."""
    if agent is not None:
        return table.filled(agent, FILL), None
    if layout == "pairs":
        nobody = Entry("no column names the agents", "each comparison is an agent of its own", table.n_rows)
        return np.arange(table.n_rows), nobody
    raise DataError(f"{table.source}: no column for the agent; name it with ", Argument("agent_column"))


def read_pairs(
    table: Table, names: tuple[Label, ...] | None, ids: Array, counts: Array, on_cycle: str
) -> Preferences:
    """Read comparisons: a better and a worse item in each row."""
    places = (_one(table, "better"), _one(table, "worse"))
    columns = [table.filled(place, FILL).astype(object) for place in places]
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


def read_compared(
    table: Table,
    names: tuple[Label, ...] | None,
    agent: int | None,
    counts: Array,
    stated: Compared,
    on_cycle: str,
) -> Preferences:
    """Comparisons of items that were shown.

    A count says how often an agent stated a row; where no column names the agents, of how many agents it is.
    """
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
    per_agent = None
    pairs = np.column_stack([codes[stated.better], codes[stated.worse]])
    if agent is None:
        differs = np.zeros(table.n_rows, dtype=np.bool_)
        differs[stated.row] = counts[stated.row] != counts[stated.task]
        table.refuse(differs, "the rows of a task have different counts; give each task one count")
        tasks, ids = np.unique(stated.task[stated.better], return_inverse=True)
        per_agent, ids = counts[tasks], ids + 1
        n_tasks = int(per_agent.sum())
        audit.append(
            Entry("no column names the agents", "each comparison or task is an agent of its own", n_tasks)
        )
    else:
        ids = table.filled(agent, FILL)[row]
        silent = len(set(table.columns[agent].tolist())) - len(set(ids.tolist()))
        if silent:
            audit.append(Entry("agents without a comparison", "left out", silent, left_out=silent))
        times = counts[row]
        ids, pairs = np.repeat(ids, times), np.repeat(pairs, times, axis=0)
    n_agents, agents, row_of = encode_agents(ids, None, table.where)
    indptr = indptr_of(np.bincount(row_of, minlength=n_agents))
    sorted_by = np.argsort(row_of, kind="stable")
    comparisons = Comparisons(found, agents, indptr, pairs[sorted_by])
    read = Preferences._from_comparisons(comparisons, per_agent, on_cycle)
    done = [entry._asdict() for entry in audit]
    return read._replaced(metadata={**read.metadata, "CLEANING": done}) if done else read


def read_ratings(
    table: Table,
    names: tuple[Label, ...] | None,
    ids: Array,
    counts: Array,
    unrated: str,
    categories: Iterable[str] | None,
    rank: int | None = None,
) -> Preferences:
    """Ratings, one a line, or ranks (1 = best) in the column ``rank``."""
    item = table.filled(_one(table, "item"), FILL)
    rating = _one(table, "rating") if rank is None else rank
    silent: list[Entry] = []
    if rank is not None:
        values = -numbers_of(table, rank, ": rank")
        table.refuse(values > -1, "ranks count from 1")
        scales.refuse_codes(table, [-values])
    elif numbers(table.columns[rating]) is None:
        values = scales.scored(table, [rating], categories)[0]
    else:
        values = numbers_of(table, rating, ": rating")
        scales.refuse_codes(table, [values])
    if np.isnan(values).any():
        names = encode_items(item, names, None, table.where)[0]  # with those that nobody rates
        what = "rating" if rank is None else "rank"
        silent = _silent(ids, np.isnan(values), unrated, what)
        kept = np.flatnonzero(~np.isnan(values))
        if not len(kept):
            raise DataError(f"{table.source}: no line has a {what}")
        table, item, ids, counts = table.take(kept), item[kept], ids[kept], counts[kept]
        values = values[kept]
    odd = table.columns[rating][np.argmax(~np.isfinite(values))] if len(values) else None
    table.refuse(~np.isfinite(values), f"rating {shorten(str(odd), 30)!r} is not a finite number")
    found, codes = encode_items(item, names, None, table.where)
    n_agents, agents, row_of = encode_agents(ids, None, table.where)
    table.refuse(codes < 0, "the item is missing; leave the row out")
    scores = Scores(found, n_agents, agents, row_of, codes, values, table.where)
    per_agent = _counts_per_agent(table, counts, row_of, n_agents)
    read = Preferences._from_scores(scores, unrated == "below", per_agent)
    done = [entry._asdict() for entry in silent]
    return read._replaced(metadata={**read.metadata, "CLEANING": done}) if done else read


def refuse_ranks_beyond(table: Table, agent: int, rank: int, names: tuple[Label, ...] | None) -> None:
    """Refuse ranks that no item can have: they may say that there is no answer, as 99 does.

    Lines that say that nobody is ranked have a rank, too.
    """
    ranks = numbers_of(table, rank, ": rank")
    lines = Counter(table.columns[agent].tolist()).most_common(1)[0][1]
    n_items = len(set(table.columns[_one(table, "item")].tolist()) | set(names or ()))
    beyond = ranks > max(n_items, lines)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise DataError(
            f"{table.where(row)}: rank {ranks[row]:g}, but there are {n_items:,} items. If the number says "
            "that there is no answer, say ",
            Argument("missing", f"{ranks[row]:g}"),
            "; otherwise number the ranks 1, 2, …, or name all items with ",
            Argument("items"),
        )


def without_marks(table: Table, agent: int) -> tuple[Array | None, list[Entry]]:
    """Return the lines that rank an item, where others say that nobody is ranked, and what was left out.

    Overvotes are refused: what they do to a ballot, rules of cleaning say, which need a column for each rank.
    """
    item = _one(table, "item")
    entries = [entry if isinstance(entry, str) else "" for entry in table.columns[item].tolist()]
    several = np.array([says_several(entry) for entry in entries])
    if several.any():
        at = int(np.argmax(several))
        raise DataError(
            f"{table.where(at)}: {entries[at]!r} is a mark and no item. Write a row for each ballot, with "
            "columns rank1, rank2, …: then marks are read by rules"
        )
    nobody = np.array([bool(entry) and says_nobody(entry) for entry in entries])
    if not nobody.any():
        return None, []
    ids = table.columns[agent]
    which = tuple(sorted({entry for entry, says in zip(entries, nobody.tolist(), strict=True) if says})[:5])
    audit = [Entry("lines that say that nobody is ranked", "left out", int(nobody.sum()), which)]
    silent = len(set(ids[nobody].tolist()) - set(ids[~nobody].tolist()))
    if silent:
        audit.append(Entry("agents who rank nobody", "left out", silent, left_out=silent))
    kept = np.flatnonzero(~nobody)
    if not len(kept):
        raise DataError(f"{table.source}: no line ranks an item")
    return kept, audit


def _silent(ids: Array, blank: Array, unrated: str, what: str) -> list[Entry]:
    """Say how many agents have lines without a rank or rating, and how many of them have no other."""
    with_blank, with_rank = set(ids[blank].tolist()), set(ids[~blank].tolist())
    silent = len(with_blank - with_rank)
    found = []
    if with_blank & with_rank:
        done = f"the items are {'below the others' if unrated == 'below' else 'unknown'}"
        found.append(Entry(f"lines without a {what}", done, len(with_blank & with_rank)))
    if silent:
        found.append(Entry(f"agents without a {what}", "left out", silent, left_out=silent))
    return found


def _counts_per_agent(table: Table, counts: Array, row_of: Array, n_agents: int) -> Array:
    per_agent = np.ones(n_agents, dtype=np.int64)
    per_agent[row_of[::-1]] = counts[::-1]  # the first row of an agent counts
    differs = per_agent[row_of] != counts
    table.refuse(differs, "an agent's rows have different counts; give each agent one count")
    return per_agent
