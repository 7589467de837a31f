"""Matrices without groups: one block of all cells, or a block for every column."""

from __future__ import annotations

import numpy as np

from permix.cocluster.block_predict import BlockDraw, BlockPredictive
from permix.cocluster.cells.encoded_matrix import EncodedMatrix

#: What simple models are called.
ONE_BLOCK, BY_COLUMN = "one group", "independent columns"


def simple_predictives(matrix: EncodedMatrix) -> dict[str, BlockPredictive]:
    """Return what is said of cells if all were one block, and if every column were one, by name."""
    found = {}
    for name, classes in ((ONE_BLOCK, np.zeros(matrix.n_columns)), (BY_COLUMN, np.arange(matrix.n_columns))):
        of_columns = classes.astype(np.int32)
        table = np.arange(int(of_columns.max()) + 1, dtype=np.int64)[None]
        draw = BlockDraw(np.zeros(matrix.n_rows, dtype=np.int32), of_columns, table, np.zeros(1), -np.inf)
        found[name] = BlockPredictive(matrix, [draw])
    return found
