"""How the columns of a table whose rows are single statements are to be called."""

from __future__ import annotations

from permix.data.io.column_names import plain
from permix.data.io.layouts.pair_words import opposed
from permix.data.io.layouts.turning import as_renaming
from permix.data.io.table_columns import Table, is_blank, missing_mask, numbers
from permix.errors import Part


def item_of_ratings(table: Table) -> int | None:
    """Return the column that may name the items, where agents and ratings have columns called so.

    Each agent has several lines, with a different item in each, and items come back.
    """
    agents, ratings = table.places("agent"), table.places("rating")
    if len(agents) != 1 or len(ratings) != 1 or table.places("item"):
        return None
    ids = [str(entry) for entry in table.columns[agents[0]].tolist()]
    if len(set(ids)) == len(ids) or numbers(table.columns[ratings[0]]) is None:
        return None
    for place, column in enumerate(table.columns):
        if place in (agents[0], ratings[0]) or numbers(column) is not None or missing_mask(column).any():
            continue
        said = list(zip(ids, map(str, column.tolist()), strict=True))
        if len(set(said)) == len(said):
            return place
    return None


def to_rename(table: Table) -> tuple[Part, ...]:
    """Say how to rename the columns of ratings or comparisons, one a line, as far as that can be known."""
    names = [str(name) for name in table.names]
    item = item_of_ratings(table)
    if item is not None:
        return f"if {names[item]!r} names the items, say ", as_renaming({names[item]: "item"})
    second, third = (_entries(table, place) for place in (1, 2))
    if second & third:  # in comparisons some item is better in one and worse in another
        return _comparisons(table, names)
    new = {old: new for old, new in zip(names, ("agent", "item"), strict=False) if plain(old) != new}
    if numbers(table.columns[2]) is None:
        rated = {**new, names[2]: "rating"}
        return "ratings need columns called agent, item and rating: say ", as_renaming(rated)
    return (
        "ratings need columns called agent, item and rating, ranks those called agent, item and rank. If the "
        f"highest number in {names[2]!r} is the best, say ",
        as_renaming({**new, names[2]: "rating"}),
        "; if it ranks the items (1 is the best), ",
        as_renaming({**new, names[2]: "rank"}),
        "; if the lowest is the best otherwise, such as a time, write it with a minus first",
    )


def _comparisons(table: Table, names: list[str]) -> tuple[Part, ...]:
    sides = opposed(table.names, for_advice=True)
    agent = {} if plain(names[0]) == "agent" else {names[0]: "agent"}
    said = "comparisons need columns called agent, better and worse"
    if sides is not None and 0 not in sides:
        better, worse = (names[at] for at in sides)
        return (
            f"{said}. If {better!r} holds the item preferred, say ",
            as_renaming({**agent, better: "better", worse: "worse"}),
        )
    return (
        f"{said}, or the two items in item1 and item2 and who won in winner. If {names[1]!r} holds the item "
        "preferred, say ",
        as_renaming({**agent, names[1]: "better", names[2]: "worse"}),
        f"; if {names[2]!r} does, ",
        as_renaming({**agent, names[2]: "better", names[1]: "worse"}),
    )


def _entries(table: Table, place: int) -> set[str]:
    return {str(entry) for entry in table.columns[place].tolist() if not is_blank(entry)}
