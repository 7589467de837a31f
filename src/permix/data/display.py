"""How Rankings and Preferences look: plain text and notebook HTML."""

from __future__ import annotations

from html import escape

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings

N_ROWS = 5
N_ENTRIES = 8  # items or comparisons shown of one row
N_LETTERS = 40  # of one name


def text_of(table: AgentTable) -> str:
    """Say what the table is, its sizes and its first rows."""
    lines = [headline(table)]
    counted = bool((table.counts != 1).any())
    for row in range(min(len(table), N_ROWS)):
        count = f" × {int(table.counts[row]):,}" if counted else ""
        lines.append(f"  {_short(_agent(table, row))}: {statement(table, row)}{count}")
    if len(table) > N_ROWS:
        lines.append(f"  … {len(table) - N_ROWS:,} more rows")
    return "\n".join(lines)


def html_of(table: AgentTable) -> str:
    """Return the same as a small HTML table; all names are escaped."""
    rows = [
        f"<tr><td>{escape(_short(_agent(table, row)))}</td><td style='text-align:left'>"
        f"{escape(statement(table, row))}</td><td>{int(table.counts[row]):,}</td></tr>"
        for row in range(min(len(table), N_ROWS))
    ]
    more = f"<p>… {len(table) - N_ROWS:,} more rows</p>" if len(table) > N_ROWS else ""
    return (
        f"<div><p><b>{escape(headline(table))}</b></p><table><thead><tr><th>agent</th><th>statement</th>"
        f"<th>count</th></tr></thead><tbody>{''.join(rows)}</tbody></table>{more}</div>"
    )


def headline(table: AgentTable) -> str:
    """First line: kind, sizes, shape of the statements."""
    n = table.n_agents
    if (table.counts != 1).any():
        agents = f"{n:,} votes ({_number(len(table), 'row')})"
    else:
        agents = _number(n, "agent")
    shape = _rankings_shape(table) if isinstance(table, Rankings) else _preferences_shape(table)
    return f"{type(table).__name__}: {agents} over {_number(table.n_items, 'item')}, {shape}"


def _rankings_shape(table: Rankings) -> str:
    if len(table) == 0:
        return "no rows"
    if table.is_full:
        return "full"
    kind = {"below": "top lists", "unknown": "subset rankings", "mixed": "top lists and subset rankings"}
    return f"{kind[table.unlisted]} of {_span(table.lengths)}"


def _preferences_shape(table: AgentTable) -> str:
    assert isinstance(table, Preferences)
    parts = []
    if len(table.level_items):
        sizes = np.diff(table.level_indptr)
        parts.append(f"levels of {_span(sizes[sizes > 0])}")
    if len(table.pairs):
        parts.append(_number(len(table.pairs), "comparison"))
    if not table.consistent.all():
        parts.append(f"{_number(int((~table.consistent).sum()), 'agent')} with contradictions")
    return ", ".join(parts) or "no statements"


def statement(table: AgentTable, row: int) -> str:
    """One row in words."""
    if isinstance(table, Rankings):
        length = int(table.lengths[row])
        groups = [[item] for item in table.orders[row, : min(length, N_ENTRIES)].tolist()]
        return _chain(table, groups, length, length, bool(table.unlisted_below[row]))
    assert isinstance(table, Preferences)
    parts = []
    first, last = int(table.level_indptr[row]), int(table.level_indptr[row + 1])
    if last > first:
        shown = min(last, first + N_ENTRIES)
        levels = table.levels[first:shown]
        members = table.level_items[first:shown]
        groups = [members[levels == level].tolist() for level in np.unique(levels)]
        cut_group = shown < last and table.levels[shown] == table.levels[shown - 1]
        parts.append(
            _chain(table, groups, last - first, shown - first, bool(table.rest_below[row]), cut_group)
        )
    first, last = int(table.pair_indptr[row]), int(table.pair_indptr[row + 1])
    shown_pairs = table.pairs[first : min(last, first + N_ENTRIES)].tolist()
    parts += [f"{_name(table, better)} ≻ {_name(table, worse)}" for better, worse in shown_pairs]
    if last - first > N_ENTRIES:
        parts.append(f"… ({last - first} comparisons)")
    text = ", ".join(parts) or "(nothing stated)"
    return text if table.consistent[row] else f"{text} (contradictory)"


def _chain(
    table: AgentTable, groups: list[list[int]], length: int, shown: int, below: bool, cut_group: bool = False
) -> str:
    words = []
    for place, group in enumerate(groups):
        names = [_name(table, item) for item in group]
        if cut_group and place == len(groups) - 1:
            names.append("…")
        words.append(names[0] if len(names) == 1 else "{" + ", ".join(names) + "}")
    if min(shown, N_ENTRIES) < length and not cut_group:
        words.append("…")
    if length == table.n_items:
        return " ≻ ".join(words)
    if below:
        return " ≻ ".join([*words, "rest"])
    return f"{' ≻ '.join(words)} ({length} of {table.n_items} items)"


def _agent(table: AgentTable, row: int) -> str:
    return str(row if table._agents is None else table._agents[row])


def _name(table: AgentTable, item: int) -> str:
    return _short(str(table.items[item]))


def _short(name: str) -> str:
    flat = "".join(letter if letter.isprintable() else "·" for letter in name)
    return flat if len(flat) <= N_LETTERS else flat[: N_LETTERS - 1] + "…"


def _span(sizes: Array) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return _number(low, "item") if low == high else f"{low:,} to {high:,} items"


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
