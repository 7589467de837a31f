"""Tables with a row for each item and a column for each agent, turned around; and columns called anew."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import numpy as np

from permix.data.io.table_columns import Table, missing_mask
from permix.data.labels import Label, as_objects, repeats
from permix.errors import DataError, Wording


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
