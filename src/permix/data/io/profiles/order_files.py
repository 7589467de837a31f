"""Lists of item numbers as Kamishima's sushi data have them: ``10 1``, then ``0 10 5 0 3 …`` in each line.

The first line has the number of items; the others a label, how many items are listed, and their numbers,
counted from 0, best first.
"""

from __future__ import annotations

import numpy as np

from permix.data.io.text_files import PathLike, read_text, shorten
from permix.data.rankings import Rankings, padded, repeated_item
from permix.errors import DataError, FileFormatError

MOST_ITEMS = 1_000_000


def read_order_file(path: PathLike, unlisted: str | None = None) -> Rankings:
    """Read such a file; items are called by their numbers.

    ``unlisted`` says what items that are not listed mean: "unknown", since items that were not shown are not
    listed either, or "below".
    """
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    lines = [line.split() for line in read_text(path).split("\n")]
    n_items = int(lines[0][0])
    if n_items > MOST_ITEMS:
        raise FileFormatError(f"{path}, line 1: {n_items:,} items are more than are read", path, 1)
    items, sizes = [], []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        listed = [int(entry) if entry.isdecimal() else -1 for entry in line]
        if len(listed) < 3 or listed[1] != len(listed) - 2:
            why = "a line has a label, the number of items, and so many items"
            raise FileFormatError(f"{path}, line {number}: {why}: {shorten(' '.join(line))!r}", path, number)
        if min(listed) < 0 or max(listed[2:]) >= n_items:
            why = f"items are numbers from 0 to {n_items - 1}"
            raise FileFormatError(f"{path}, line {number}: {why}: {shorten(' '.join(line))!r}", path, number)
        items += listed[2:]
        sizes.append(len(listed) - 2)
    if not sizes:
        raise FileFormatError(f"{path}: no line lists items", path)
    orders = padded(np.array(items, np.int32), np.array(sizes))
    row, item = repeated_item(orders, n_items)
    if row >= 0:
        raise FileFormatError(f"{path}: list {row + 1} has item {item} twice", path)
    return Rankings._from_arrays(orders, tuple(range(n_items)), unlisted_below=unlisted == "below")
