"""Categories of a PrefLib ``.cat`` file as a matrix: agents by items, the category as value."""

from __future__ import annotations

import numpy as np

from permix.data.cells import Cells
from permix.data.io.categories import categories_of_levels, category_names
from permix.data.io.preflib import read_preflib
from permix.data.io.text_files import PathLike
from permix.data.labels import as_objects
from permix.data.preferences import Preferences
from permix.errors import DataError

# Which category is best does not matter to a matrix, so nobody is asked.
ANY_ORDER = "best-first"


def read_categories(path: PathLike, new_rows: bool = False) -> Cells:
    """Read a ``.cat`` file; a row with a count becomes so many rows."""
    votes = read_preflib(path, categories=ANY_ORDER)
    assert isinstance(votes, Preferences)
    names, of_level = category_names(votes.metadata), categories_of_levels(votes)
    if names is None or of_level is None:
        raise DataError(f"{path}: the categories of some rows cannot be told apart")
    counts = np.asarray(votes.counts)
    lengths = np.diff(votes.level_indptr)
    # Cells of row i, repeated for each of its agents.
    first = np.cumsum(counts) - counts
    rows, columns, values = [], [], []
    for i in range(len(counts)):
        cells = slice(int(votes.level_indptr[i]), int(votes.level_indptr[i + 1]))
        for copy in range(int(counts[i])):
            rows.append(np.full(lengths[i], first[i] + copy))
            columns.append(votes.level_items[cells])
            values.append(of_level[cells])
    at, item, code = (np.concatenate(parts) for parts in (rows, columns, values))
    order = np.lexsort((item, at))
    words = as_objects([names[each] for each in code[order].tolist()])
    shape = (int(counts.sum()), votes.n_items)
    called = [str(name) for name in votes.items]
    origin = f"from {path}, categories {', '.join(map(repr, names))}"
    return Cells(at[order], item[order], words, shape, None, called, origin, new_rows=new_rows)
