"""A Mondrian tree, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.partitions.mondrian import MondrianTree
from permix.plots.style import BORDER, COLORS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_tree(tree: MondrianTree, *, ax: Axes | None = None) -> Axes:
    """Draw the blocks of a Mondrian tree, rows downwards and columns to the right."""
    axes = new_axes(ax, 4.8, 4.8)
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    row_low, row_high, column_low, column_high = tree.rectangles[0]
    whole = (row_high - row_low) * (column_high - column_low)
    for leaf in np.flatnonzero(tree.axis < 0):
        top, bottom, left, right = tree.rectangles[leaf]
        number = int(tree.blocks[leaf])
        tint = 0.35 * np.array(to_rgb(COLORS[number % len(COLORS)])) + 0.65
        look: dict[str, Any] = {"facecolor": tint, "edgecolor": BORDER, "linewidth": 1.4}
        axes.add_patch(Rectangle((left, top), right - left, bottom - top, **look))
        if tree.n_blocks <= 60 and min(right - left, bottom - top) > 0.05 * np.sqrt(whole):
            axes.text((left + right) / 2, (top + bottom) / 2, str(number + 1), ha="center", va="center")
    axes.set_xlim(column_low, column_high)
    axes.set_ylim(row_high, row_low)
    axes.set_aspect("equal")
    axes.set_xlabel("columns")
    axes.set_ylabel("rows")
    blocks = "1 block" if tree.n_blocks == 1 else f"{tree.n_blocks:,} blocks"
    axes.set_title(f"{blocks}, budget {float(tree.budgets[0]):g}", fontsize="medium")
    for side in axes.spines.values():
        side.set_linewidth(1.4)
        side.set_color(BORDER)
    return axes
