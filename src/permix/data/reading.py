"""How a file of votes was read, in one line."""

from __future__ import annotations

from typing import Any

# Layouts of tables, as ``LAYOUT`` of the metadata names them.
LAYOUTS = {
    "ranks": "a column for each item with its rank, 1 is the best",
    "ranks, one a line": "a line for each agent and item with its rank, 1 is the best",
    "orders": "a column for each place, the best first",
    "a ranking in each cell": "a ranking in each cell, the best first",
    "ratings": "ratings, the highest is the best",
    "matches": "matches of two items, with the winner of each",
    "choices": "choices of one item among those shown",
    "best-worst": "the best and the worst of the items shown",
    "pairs": "comparisons of two items, the one preferred and the other",
}


def how_it_was_read(votes: Any) -> str:
    """Say the layout, what is the best in it, and which columns were set apart.

    Of what was not read from a file of votes, and where nothing was chosen, "".
    """
    from permix.data.io.categories import category_names

    known = getattr(votes, "metadata", None) or {}
    layout = known.get("LAYOUT")
    said = LAYOUTS.get(layout, f"{layout}") if layout else known.get("FORMAT", "")
    named = category_names(known)
    if layout == "ratings" and named:
        said = f"ratings in words, the best first: {', '.join(map(str, named))}"
    if not said or not isinstance(said, str):
        return ""
    found = known.get("TABLE")
    table = found if isinstance(found, dict) else {}
    if table.get("from") is not None and layout == "ratings" and not named:
        said = f"ratings from {table['from']:g} to {table['to']:g}, the highest is the best"
    parts = [f"Read as: {said}"]
    if table.get("agent"):
        parts.append(f"{table['agent']} names the agents")
    if table.get("count"):
        parts.append(f"{table['count']} counts them")
    if table.get("contest"):
        column = table.get("contest column")
        parts.append(f"the contest is {table['contest']}" + (f" (column {column})" if column else ""))
    if table.get("unread"):
        parts.append(f"not used: {', '.join(table['unread'])}")
    others = known.get("OTHER COLUMNS")
    apart = [*(votes.covariates or ()), *(others if isinstance(others, list) else ())]
    if apart:
        parts.append(f"set apart: {', '.join(map(str, apart))}")
    return "; ".join(parts) + "."
