# mypy: ignore-errors
"""What the cells of every block of a grid add up to, compiled, for every law of blocks."""

from __future__ import annotations

from permix.cocluster.cells.blocks_jit import CountLaw, MomentLaw, log_block
from permix.kernels.jit import implements, kernel


def move_cell(stats, cells, sums, code, k, j, sign):
    """Add a cell with value ``code`` to block (k, j) under the law ``stats``, or take it out (sign -1)."""
    raise NotImplementedError("move_cell is implemented per law; call it from compiled code")


@implements(move_cell, of=CountLaw)
def _move_level(stats, cells, sums, code, k, j, sign):
    cells[k, j] += sign
    sums[k, j, code] += sign


@implements(move_cell, of=MomentLaw)
def _move_number(stats, cells, sums, code, k, j, sign):
    cells[k, j] += sign
    if cells[k, j] == 0:  # nothing is left of rounding
        sums[k, j, 0] = 0.0
        sums[k, j, 1] = 0.0
    else:
        sums[k, j, 0] += sign * code
        sums[k, j, 1] += sign * code * code


@kernel
def add_grid_cells(law, starts, others, codes, row_labels, column_labels, cells, sums):
    """Add all cells to the blocks of their rows' and columns' clusters, row by row."""
    for row in range(starts.shape[0] - 1):
        for cell in range(starts[row], starts[row + 1]):
            move_cell(law, cells, sums, codes[cell], row_labels[row], column_labels[others[cell]], 1)


@kernel
def log_blocks(law, cells, sums):
    """Return ln p(all cells given their blocks), parameters integrated out."""
    value = 0.0
    for k in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            value += log_block(law, cells[k, j], sums[k, j])
    return value
