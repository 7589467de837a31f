"""Pictures of co-clusterings: the matrix in the order of its blocks, and Mondrian trees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.data.cells import Cells
from permix.errors import DataError
from permix.families.cells import CellFamily
from permix.models.cocluster_fit import BlockFit
from permix.partitions.mondrian import MondrianTree
from permix.plots.style import COLOURS, NO_MATPLOTLIB, finished, new_figure, shortened, whole_figure
from permix.posterior.blocks import BlockDraw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]

# The picture has no more pixels than this on a side; larger matrices are drawn as means of patches.
MAX_SIDE = 1000
# Patches of a large and mostly empty matrix hold about so many filled cells, so that colours can be seen.
CELLS_PER_PATCH = 4
SMALL_SIDE = 120
MAX_NAMES = 40
MAX_NAME = 18
MISSING = "#ECECEC"
BORDER = "#1A1A1A"
# From pale to dark without the darkest end, where borders would be lost.
ORDERED = "YlGnBu"
MAX_LEVELS = 12


class _Colours(NamedTuple):
    """Numbers that are drawn, and how they become colours."""

    values: Array
    colours: Colormap
    scale: Normalize
    labels: tuple[str, ...] | None
    ordered: bool
    extend: str


def blocks(model: Any, path: str | os.PathLike[str] | None = None, ax: Axes | None = None) -> Figure:
    """Draw the matrix with rows and columns in the order of their clusters, and the borders of its blocks.

    Missing cells are pale grey. A large matrix is drawn as patches of neighbouring cells within a block: the
    mean of numbers, the most frequent of other levels.

    Parameters
    ----------
    model : CoClustering, CoClusteringEnsemble or their fit
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib figure
    """
    fit = getattr(model, "_fit", model)
    if not isinstance(fit, BlockFit):
        raise DataError(f"{type(model).__name__} is not a fitted co-clustering; plots.blocks draws these")
    return draw_blocks(fit.blocks, fit.known_cells, fit.family, path, ax)


def draw_blocks(
    draw: BlockDraw,
    cells: Cells,
    family: CellFamily,
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw cells under a partition into blocks; :func:`blocks` is for people."""
    n_rows, n_columns = cells.shape
    if ax is None:
        width, height = _size(cells)
        axes = new_figure(width, height).subplots()
    else:
        axes = ax
    row_order = np.argsort(draw.row_classes, kind="stable")
    column_order = np.argsort(draw.column_classes, kind="stable")
    look = _colours(cells, family)
    _draw_cells(axes, cells, look, draw, row_order, column_order)
    _draw_borders(axes, draw)
    axes.set_xlim(0, n_columns)
    axes.set_ylim(n_rows, 0)
    _name_lines(axes, cells, draw, row_order, column_order)
    _explain_colours(axes, look)
    n_blocks = len(np.unique(draw.table))
    axes.set_title(
        f"{_counted(n_blocks, 'block')}: {_counted(len(draw.table), 'cluster')} of rows, "
        f"{_counted(draw.table.shape[1], 'cluster')} of columns",
        fontsize="medium",
        pad=_room_above(draw),
    )
    return finished(whole_figure(axes), path)


def mondrian(
    tree: MondrianTree, path: str | os.PathLike[str] | None = None, ax: Axes | None = None
) -> Figure:
    """Draw the blocks of a Mondrian tree, rows downwards and columns to the right.

    Parameters
    ----------
    tree : MondrianTree
        Such as ``permix.mondrian.sample(2.0)`` or ``model.tree_``.
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib figure
    """
    if not isinstance(tree, MondrianTree):
        raise DataError(f"{type(tree).__name__} is no MondrianTree; plots.blocks draws fitted models")
    axes = new_figure(4.8, 4.8).subplots() if ax is None else ax
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    row_low, row_high, column_low, column_high = tree.rectangles[0]
    whole = (row_high - row_low) * (column_high - column_low)
    for leaf in np.flatnonzero(tree.axis < 0):
        top, bottom, left, right = tree.rectangles[leaf]
        number = int(tree.blocks[leaf])
        tint = 0.35 * np.array(to_rgb(COLOURS[number % len(COLOURS)])) + 0.65
        axes.add_patch(
            Rectangle(
                (left, top), right - left, bottom - top, facecolor=tint, edgecolor=BORDER, linewidth=1.4
            )
        )
        if tree.n_blocks <= 60 and min(right - left, bottom - top) > 0.05 * np.sqrt(whole):
            axes.text((left + right) / 2, (top + bottom) / 2, str(number + 1), ha="center", va="center")
    axes.set_xlim(column_low, column_high)
    axes.set_ylim(row_high, row_low)
    axes.set_aspect("equal")
    axes.set_xlabel("columns")
    axes.set_ylabel("rows")
    axes.set_title(
        f"{_counted(tree.n_blocks, 'block')}, budget {float(tree.budgets[0]):g}", fontsize="medium"
    )
    for side in axes.spines.values():
        side.set_linewidth(1.4)
        side.set_color(BORDER)
    return finished(whole_figure(axes), path)


# -- cells -----------------------------------------------------------------------------------------


def _colours(cells: Cells, family: CellFamily) -> _Colours:
    """Choose colours: levels that are few get one each, numbers a scale."""
    try:
        import matplotlib
        from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error
    levels = getattr(family, "levels", None)
    if levels is not None:
        codes = family.encode(cells.values)
        ordered = all(isinstance(level, int | float) for level in levels)
        if ordered and len(levels) > MAX_LEVELS:
            levels = None
        else:
            n = len(levels)
            palette: Any
            if ordered:
                palette = matplotlib.colormaps[ORDERED](np.linspace(0.12, 0.85, n) if n > 1 else [0.5])
            elif n <= len(COLOURS):
                palette = [matplotlib.colors.to_rgba(colour) for colour in COLOURS[:n]]
            else:
                palette = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, n))
            return _Colours(
                codes.astype(np.float64),
                ListedColormap(palette),
                BoundaryNorm(np.arange(n + 1) - 0.5, n),
                tuple(shortened(level, MAX_NAME) for level in levels),
                ordered,
                "neither",
            )
    values = cells.values.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    extend = "neither"
    if high > low:
        # A few extreme cells shall not take the colours from all others.
        inner_low, inner_high = np.quantile(values, [0.01, 0.99])
        if inner_high > inner_low and high - low > 2 * (inner_high - inner_low):
            extend = {(1, 1): "both", (1, 0): "min", (0, 1): "max", (0, 0): "neither"}[
                int(inner_low > low), int(inner_high < high)
            ]
            low, high = float(inner_low), float(inner_high)
    else:
        low, high = low - 0.5, high + 0.5
    base = matplotlib.colormaps[ORDERED](np.linspace(0.05, 0.85, 256))
    return _Colours(values, ListedColormap(base), Normalize(low, high), None, True, extend)


def _draw_cells(
    axes: Axes, cells: Cells, look: _Colours, draw: BlockDraw, row_order: Array, column_order: Array
) -> None:
    n_rows, n_columns = cells.shape
    row_place, column_place = _inverse(row_order), _inverse(column_order)
    patch = _patch_sizes(cells)
    # A patch is what one small rectangle and one block have in common: none crosses a border.
    n_across = n_columns // patch[1] + 1
    n_blocks = int(draw.table.max()) + 1

    def patch_of(row: Array, column: Array, block: Array) -> Array:
        return ((row // patch[0]) * n_across + column // patch[1]) * n_blocks + block

    cell_blocks = draw.block_of(cells.rows, cells.columns)
    where = patch_of(row_place[cells.rows], column_place[cells.columns], cell_blocks)
    rows, columns = _pixel_lines(n_rows)[:, None], _pixel_lines(n_columns)[None, :]
    pixels = patch_of(rows, columns, draw.block_of(row_order[rows], column_order[columns]))
    shown = _patched(where, pixels, look)
    colours = look.colours.with_extremes(bad=MISSING)
    rgba = colours(look.scale(np.ma.masked_invalid(shown)))
    axes.imshow(
        (255 * rgba).astype(np.uint8),
        extent=(0, n_columns, n_rows, 0),
        aspect="auto",
        interpolation="nearest" if max(cells.shape) <= 200 else "antialiased",
        origin="upper",
        rasterized=True,
    )


def _patched(where: Array, pixels: Array, look: _Colours) -> Array:
    """Return for each pixel the mean of its patch, or its most frequent level; NaN where it is empty."""
    patches, of_cell = np.unique(where, return_inverse=True)
    if look.ordered:
        seen = np.bincount(of_cell, weights=look.values) / np.bincount(of_cell)
    else:
        n = len(look.labels or ())
        pairs, count = np.unique(of_cell * n + look.values.astype(np.int64), return_counts=True)
        by_count = np.argsort(count, kind="stable")  # the most frequent is written last
        seen = np.empty(len(patches))
        seen[pairs[by_count] // n] = pairs[by_count] % n
    place = np.minimum(np.searchsorted(patches, pixels), len(patches) - 1)
    return np.where(patches[place] == pixels, seen[place], np.nan)


def _patch_sizes(cells: Cells) -> tuple[int, int]:
    """Rows and columns of a patch: 1 by 1 unless the matrix is large, or large and mostly empty."""
    n_rows, n_columns = cells.shape
    row, column = -(-n_rows // MAX_SIDE), -(-n_columns // MAX_SIDE)
    share = cells.n_cells / (n_rows * n_columns)
    if min(cells.shape) <= SMALL_SIDE or share > 0.5:
        return row, column
    side = round(np.sqrt(CELLS_PER_PATCH / share))
    return (
        max(row, min(side, -(-n_rows // SMALL_SIDE))),
        max(column, min(side, -(-n_columns // SMALL_SIDE))),
    )


def _pixel_lines(n: int) -> Array:
    """Which line each pixel of the picture shows."""
    n_pixels = min(n, MAX_SIDE)
    return ((np.arange(n_pixels) + 0.5) * n / n_pixels).astype(np.int64)


def _inverse(order: Array) -> Array:
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


# -- borders and names -----------------------------------------------------------------------------


def _draw_borders(axes: Axes, draw: BlockDraw) -> None:
    """Draw a line wherever two neighbouring classes lie in different blocks: grids and nested cuts alike."""
    from matplotlib.collections import LineCollection

    row_edges, column_edges = _edges(draw.row_classes), _edges(draw.column_classes)
    table = draw.table
    segments = []
    for i in range(len(table) - 1):
        for start, stop in _runs(table[i] != table[i + 1]):
            segments.append([(column_edges[start], row_edges[i + 1]), (column_edges[stop], row_edges[i + 1])])
    for j in range(table.shape[1] - 1):
        for start, stop in _runs(table[:, j] != table[:, j + 1]):
            segments.append([(column_edges[j + 1], row_edges[start]), (column_edges[j + 1], row_edges[stop])])
    many = max(table.shape)
    width = 1.6 if many <= 12 else 1.1 if many <= 30 else 0.6
    for colour, breadth in (("white", 2.2 * width), (BORDER, width)):
        axes.add_collection(
            LineCollection(segments, colors=colour, linewidths=breadth, capstyle="butt", zorder=3)
        )
    for side in axes.spines.values():
        side.set_color(BORDER)
        side.set_linewidth(width)
        side.set_zorder(4)


def _edges(classes: Array) -> Array:
    """Where each class starts in the sorted order, and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(classes))])


def _runs(different: Array) -> list[tuple[int, int]]:
    """Start and stop of each run of True."""
    change = np.flatnonzero(np.diff(np.r_[False, different, False].astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in zip(change[::2], change[1::2], strict=True)]


def _name_lines(axes: Axes, cells: Cells, draw: BlockDraw, row_order: Array, column_order: Array) -> None:
    """Name rows and columns where there are few, and number their classes on the other side."""
    for axis, order, name_of, named, what, n in (
        (axes.yaxis, row_order, cells.row_name, cells.row_names, "rows", cells.n_rows),
        (axes.xaxis, column_order, cells.column_name, cells.column_names, "columns", cells.n_columns),
    ):
        if n <= MAX_NAMES and named is not None:
            labels = [shortened(name_of(int(line)), MAX_NAME) for line in order]
            axis.set_ticks(np.arange(n) + 0.5, labels, fontsize="x-small" if n > 20 else "small")
            if what == "columns" and (n > 12 or max(map(len, labels)) > 6):
                axis.set_tick_params(rotation=90)
        else:
            axis.set_ticks([])
            axis.set_label_text(f"{n:,} {what}")
        axis.set_tick_params(length=0)
    if cells.n_cells < cells.n_rows * cells.n_columns:
        above = axes.get_xlabel()
        axes.set_xlabel(f"{above}{', ' if above else ''}missing cells in grey")
    for edge, centre in _class_centres(draw.row_classes):
        axes.annotate(
            str(edge + 1),
            (1, centre),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="x-small",
            color="#555555",
        )
    for edge, centre in _class_centres(draw.column_classes):
        axes.annotate(
            str(edge + 1),
            (centre, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize="x-small",
            color="#555555",
        )


def _class_centres(classes: Array) -> list[tuple[int, float]]:
    """Classes with room for a number, and where their middle is."""
    edges = _edges(classes)
    n = len(classes)
    return [
        (k, (edges[k] + edges[k + 1]) / 2)
        for k in range(len(edges) - 1)
        if edges[k + 1] - edges[k] >= 0.025 * n
    ]


def _room_above(draw: BlockDraw) -> float:
    return 14.0 if _class_centres(draw.column_classes) else 6.0


def _explain_colours(axes: Axes, look: _Colours) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.patches import Patch

    figure = axes.figure
    if look.labels is None or (look.ordered and len(look.labels) > 2):
        bar = figure.colorbar(
            ScalarMappable(look.scale, look.colours), ax=axes, extend=look.extend, fraction=0.05, pad=0.06
        )
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize="small")
        if look.labels is not None:
            bar.set_ticks(range(len(look.labels)), labels=list(look.labels))
            bar.ax.minorticks_off()
        return
    n = len(look.labels)
    handles = [Patch(facecolor=look.colours(k), label=look.labels[k]) for k in range(min(n, 20))]
    if n > 20:
        handles.append(Patch(facecolor="none", label=f"… {n - 20} more"))
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.06, 1.0),
        frameon=False,
        fontsize="small",
        handlelength=1.0,
        handleheight=1.0,
        borderaxespad=0.0,
    )


def _size(cells: Cells) -> tuple[float, float]:
    """Inches: about the shape of the matrix, within what a page holds."""
    ratio = float(np.clip(cells.n_rows / cells.n_columns, 0.4, 2.2))
    side = 6.0
    width, height = (side, side * ratio) if ratio <= 1 else (side / ratio**0.5, side * ratio**0.5)
    return width + 1.3, min(height, 9.0) + 0.8


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
