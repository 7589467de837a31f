"""The same rows over more items."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Label
from permix.data.rankings import Rankings


def over_more_items(table: Any, items: tuple[Label, ...], below: Any = None) -> Any:
    """Return the same rows over more items; ``below`` says whose rest, the new items too, is below."""
    position = {name: index for index, name in enumerate(items)}
    new = np.array([position[name] for name in table.items] + [-1], dtype=np.int32)
    if isinstance(table, Rankings):
        below = table.unlisted_below if below is None else below
        return table._replaced(items=items, orders=new[table.orders], unlisted_below=below)
    below = table.rest_below if below is None else below
    return table._replaced(
        items=items, level_items=new[table.level_items], pairs=new[table.pairs], rest_below=below
    )
