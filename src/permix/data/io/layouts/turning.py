"""Tables with a row for each item and a column for each agent, turned around; and columns called anew."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from permix.data.io.column_names import LONG_RANKS, plain
from permix.data.io.layouts import no_items
from permix.data.io.table_columns import Table, missing_mask, numbers
from permix.data.labels import Label, as_objects, repeats
from permix.errors import Argument, DataError, Part, Wording


def renamed(table: Table, names: Mapping[str, str]) -> Table:
    """Return a table some of whose columns are read as though they were called otherwise."""
    found = list(table.names)
    for old, new in names.items():
        found[table.named(old, " to rename")] = str(new)
    for first, _ in repeats([str(name) for name in found]):
        raise DataError(
            f"{table.source}: two columns would be called {str(found[first])!r}; rename the other"
        )
    return table._replace(names=found)


def as_renaming(names: Mapping[str, str]) -> Wording:
    """Return how the library and the command line are told to rename columns."""
    flags = " ".join(f"--rename {shlex.quote(f'{old}={new}')}" for old, new in names.items())
    return Wording(f"rename={dict(names)!r}", flags)


def transposed(table: Table) -> Table:
    """Return the table with a row for each column but the first, which names the items."""
    if len(table.names) < 2:
        raise DataError(f"{table.source}: one column cannot be turned around; it names items, and no agent")
    items, agents = table.columns[0], table.names[1:]
    table.refuse(missing_mask(items), f"nothing in column {table.names[0]!r}, which names the items")
    names: list[Label] = ["agent", *(str(item) for item in items.tolist())]
    for first, _ in repeats([str(name) for name in names[1:]]):
        raise DataError(f"{table.source}: two rows are of the item {str(names[first + 1])!r}; keep one")
    if "agent" in names[1:]:
        raise DataError(f"{table.source}: an item is called 'agent', as the agents are; call it otherwise")
    cells = np.array([as_objects(column.tolist()) for column in table.columns[1:]], dtype=object)
    columns = [as_objects([str(agent) for agent in agents]), *(as_objects(row) for row in cells.T.tolist())]
    where, source = table.names, table.source
    return Table(names, columns, lambda row: f"{source}, column {str(where[row + 1])!r}", source)


AGENTS = re.compile(
    r"(?:agent|assessor|critic|evaluator|expert|judge|juror|participant|person|rater|respondent|reviewer|"
    r"subject|user|voter)[0-9]+"
)
_TURN_AROUND = ": a row for each {} and a column for each agent, as it seems: "


def refuse_turned_around(table: Table, wide: list[int], text: list[int]) -> None:
    """Refuse a row for each item or place, and a column for each agent."""
    first, others = wide[0], wide[1:]
    by_item = text == [first] and table.places("item") == [first]
    values = numbers(table.columns[first])
    counts = values is not None and np.array_equal(values, np.arange(1, table.n_rows + 1))
    by_place = plain(table.names[first]) in LONG_RANKS and counts and text == others
    named = [place for place in others if AGENTS.fullmatch(plain(table.names[place]))]
    if len(others) > 1 and by_place:
        raise DataError(
            table.source, _TURN_AROUND.format("place"), "turn the table around, so that each agent has a row"
        )
    if len(others) > 1 and by_item and not named:
        about = [name for name in map(str, table.names) if plain(name) in no_items.SAY_SOMETHING]
        if about:
            raise DataError(
                f"{table.source}: a row for each item, as it seems, and column {about[0]!r} sums up what "
                "agents said: that does not say who said what; write a row for each agent"
            )
    if len(named) > 1 and first in text:
        left = [place for place in others if place not in named]
        raise DataError(
            table.source,
            _TURN_AROUND.format("item"),
            *_by_row_of_item(table.names[first], [table.names[place] for place in left]),
        )


def _by_row_of_item(name: Label, ignore: Sequence[Label] = ()) -> tuple[Part, ...]:
    """Say how a table with a row for each item is read."""
    others: tuple[Part, ...] = (" and ", Argument("ignore", list(ignore))) if ignore else ()
    return (
        f"if {name!r} names the items, turn it around with ",
        Argument("transpose", True),
        *others,
        " (numbers that are ratings, of which the highest is the best, need ",
        Argument("layout", "ratings"),
        ", too)",
    )


def refuse_numbered_agents(table: Table) -> None:
    """Refuse columns that are all called as agents are, ``voter1``, ``voter2``, …."""
    said = _TURN_AROUND.format("item")
    raise DataError(f"{table.source}{said}turn the table around, so that each agent has a row")
