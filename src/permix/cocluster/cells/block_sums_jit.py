# mypy: ignore-errors
"""What the cells of every block add up to, compiled, for every prior of blocks."""

from __future__ import annotations

from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior, log_block
from permix.kernels.jit import implements, kernel


def move_cell(stats, n, sums, code, block, sign):
    """Add a cell with value ``code`` to a block under the prior ``stats``, or take it out (sign -1)."""
    raise NotImplementedError("move_cell is implemented per prior; call it from compiled code")


@implements(move_cell, of=CountPrior)
def _move_level(stats, n, sums, code, block, sign):
    n[block] += sign
    sums[block, code] += sign


@implements(move_cell, of=MomentPrior)
def _move_number(stats, n, sums, code, block, sign):
    n[block] += sign
    sums[block, 0] += sign * code
    sums[block, 1] += sign * code * code
    if n[block] == 0:  # nothing is left of rounding
        sums[block, 0] = sums[block, 1] = 0.0


@kernel
def add_cells(prior, starts, others, codes, row_classes, column_classes, table, n, sums):
    """Add all cells to the blocks in which their rows' and columns' classes meet, row by row."""
    for row in range(starts.shape[0] - 1):
        for cell in range(starts[row], starts[row + 1]):
            block = table[row_classes[row], column_classes[others[cell]]]
            move_cell(prior, n, sums, codes[cell], block, 1)


@kernel
def log_blocks(prior, n, sums):
    """Return ln p(all cells given their blocks), parameters integrated out."""
    value = 0.0
    for block in range(n.shape[0]):
        value += log_block(prior, n[block], sums[block])
    return value
