"""The matrix in the order of its groups, and nested cuts, as small pictures of reports."""

from __future__ import annotations

import numpy as np

from permix.cocluster.cells.group_values import GroupValues
from permix.cocluster.fit import BlockFit
from permix.data.labels import Array
from permix.reporting.charts import DARKEST, picture
from permix.reporting.content import Cell, Figure, Table
from permix.reporting.words import count_of

# Squares along a side of the picture.
SIDE = 64
# Blocks that the table of cuts lists.
MOST_BLOCKS = 40
Segment = tuple[float, float, float, float]


def matrix_picture(fit: BlockFit, values: GroupValues) -> Figure:
    """Draw the cells, rows and columns sorted by group; of many cells, means of neighbors."""
    n_rows, n_columns = fit.shape
    orders = [np.argsort(values.row_labels, kind="stable"), np.argsort(values.column_labels, kind="stable")]
    places = [np.argsort(order) for order in orders]
    size = (min(n_rows, SIDE), min(n_columns, SIDE))
    where = (places[0][values.rows] * size[0] // n_rows) * size[1]
    where += places[1][values.columns] * size[1] // n_columns
    cells = values.cells[values.leading]
    n = np.bincount(where, minlength=size[0] * size[1])
    with np.errstate(invalid="ignore"):
        means = np.bincount(where, cells, size[0] * size[1]) / n
    low, high = (0.0, 1.0) if values.is_share else np.quantile(cells, (0.02, 0.98))
    span = max(float(high) - float(low), 1e-12)
    shades = np.full(means.shape, -1)
    filled = n > 0
    shades[filled] = np.rint(DARKEST * np.clip((means[filled] - low) / span, 0.0, 1.0)).astype(int)
    what = f"share of “{values.names[values.leading]}”" if values.is_share else "value"
    squares = "" if size == (n_rows, n_columns) else " Each square is the mean of neighboring cells."
    return picture(
        "The matrix in the order of its groups",
        f"Rows and columns sorted by group, with lines between blocks; the stronger the color, the larger "
        f"the {what}. Empty where nothing is known.{squares}",
        shades.reshape(size),
        (
            borders(fit.blocks.table, _edges(values.row_labels), _edges(values.column_labels)),
            n_rows,
            n_columns,
        ),
        _block_table(fit, values),
        marks=_marks(values),
    )


def cut_picture(fit: BlockFit, values: GroupValues) -> Figure:
    """Draw the nested cuts on the unit square, in the shades of their blocks."""
    tree = fit.tree
    assert tree is not None
    rows = (np.arange(SIDE) + 0.5) / SIDE
    low_row, high_row, low_column, high_column = tree.rectangles[0]
    blocks = tree.locate(
        low_row + rows * (high_row - low_row), low_column + rows * (high_column - low_column)
    )
    means = _block_means(fit, values)
    found = tree.blocks[tree.axis < 0]
    low, high = np.nanmin(means), np.nanmax(means)
    shades = np.full(blocks.shape, -1)
    known = np.isfinite(means[blocks])
    shades[known] = np.rint(DARKEST * (means[blocks][known] - low) / max(high - low, 1e-12)).astype(int)
    lines: list[Segment] = []
    for node in np.flatnonzero(tree.axis >= 0).tolist():
        r0, r1, c0, c1 = tree.rectangles[node]
        cut = float(tree.cuts[node])
        line = (c0, cut, c1, cut) if tree.axis[node] == 0 else (cut, r0, cut, r1)
        x1, y1, x2, y2 = line
        lines.append((x1 - low_column, y1 - low_row, x2 - low_column, y2 - low_row))
    return picture(
        "The nested cuts",
        f"{count_of(len(found), 'block')} made by {count_of(tree.n_cuts, 'cut')}, rows downwards and "
        "columns to the right; each cut divides one block. The stronger the color, the larger the mean.",
        shades,
        (lines, float(high_row - low_row), float(high_column - low_column)),
        _cut_table(fit),
    )


def _block_means(fit: BlockFit, values: GroupValues) -> Array:
    """Return the mean of the leading measure in every leaf of the tree; NaN where a leaf has no cell."""
    tree = fit.tree
    assert tree is not None
    assert fit.best_draw is not None
    draw = fit.block_draw(fit.best_draw)
    leaf = draw.block_of(values.rows, values.columns)
    n = np.bincount(leaf, minlength=tree.n_blocks)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(leaf, values.cells[values.leading], tree.n_blocks) / n)


def _cut_table(fit: BlockFit) -> Table:
    """List the cuts in the order in which they divide the matrix."""
    tree = fit.tree
    assert tree is not None
    rows = []
    for at, node in enumerate(np.flatnonzero(tree.axis >= 0).tolist()):
        if at >= MOST_BLOCKS:
            break
        r0, r1, c0, c1 = tree.rectangles[node]
        what = "rows" if tree.axis[node] == 0 else "columns"
        rows.append(
            (
                f"cut {at + 1}",
                what,
                f"{tree.cuts[node]:.2f}",
                f"{r0:.2f} to {r1:.2f}",
                f"{c0:.2f} to {c1:.2f}",
            )
        )
    left = tree.n_cuts - len(rows)
    note = f"{left:,} more cuts are not listed." if left > 0 else ""
    return Table("The nested cuts", ("cut", "divides", "at", "of rows", "of columns"), tuple(rows), note)


def _block_table(fit: BlockFit, values: GroupValues) -> Table:
    """List the blocks with most cells."""
    n, means = values.by_column_group
    order = np.argsort(-n, axis=None, kind="stable")[:MOST_BLOCKS]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"rows {i + 1}, columns {j + 1}",
            int(n[i, j]),
            *(values.written(float(measure[i, j])) for measure in means),
        )
        for i, j in np.column_stack(np.unravel_index(order, n.shape)).tolist()
        if n[i, j]
    )
    return Table("Blocks with most cells", ("groups", "filled cells", *values.names), rows)


def _edges(labels: Array) -> list[int]:
    return [0, *np.cumsum(np.bincount(labels)).tolist()]


def borders(table: Array, rows: list[int], columns: list[int]) -> list[Segment]:
    """Return a line wherever neighboring groups lie in different blocks, in one piece as far as it goes."""
    found: list[Segment] = []
    for upright, (blocks, along, across) in enumerate(((table, rows, columns), (table.T, columns, rows))):
        for at in range(len(blocks) - 1):
            start = None
            for place in range(blocks.shape[1] + 1):
                apart = place < blocks.shape[1] and blocks[at, place] != blocks[at + 1, place]
                if apart and start is None:
                    start = place
                elif not apart and start is not None:
                    line = (across[start], along[at + 1], across[place], along[at + 1])
                    found.append((line[1], line[0], line[3], line[2]) if upright else line)
                    start = None
    return found


def _marks(values: GroupValues) -> list[tuple[float, float, str]]:
    """Number the groups that have room for it, beside the picture."""
    marks = []
    for down, labels in ((True, values.row_labels), (False, values.column_labels)):
        edges = _edges(labels)
        for k in range(len(edges) - 1):
            if edges[k + 1] - edges[k] >= 0.035 * len(labels):
                middle = (edges[k] + edges[k + 1]) / 2
                marks.append((-1.0, middle, str(k + 1)) if down else (middle, -1.0, str(k + 1)))
    return marks
