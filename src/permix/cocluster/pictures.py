"""Pictures of co-clusterings: the matrix in the order of its blocks, its groups, its chains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from permix.cocluster.block_predict import BlockDraw
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.fit import BlockFit, Side
from permix.data.attributes import in_short
from permix.data.cells import Cells
from permix.data.labels import Array
from permix.errors import DataError, ParameterError
from permix.estimators.checks import Choice
from permix.plots.items import color_ticks, item_style
from permix.plots.mondrian_picture import draw_tree
from permix.plots.partition_pictures import draw_number, draw_similarity, draw_traces
from permix.plots.style import BORDER, COLORS, checked_figure, new_axes, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

Of = Literal["rows", "columns"]

# The picture has no more pixels than this on a side; larger matrices are drawn as means of patches.
MAX_SIDE = 1000
# Patches of a large and mostly empty matrix hold about so many filled cells, so that colors can be seen.
CELLS_PER_PATCH = 4
SMALL_SIDE = 120
MAX_NAMES = 60
MAX_NAME, MAX_TEXT = 18, 44
# Points: what a name and a number of a group take up, and how thick two neighboring blocks may be
# before the border between them would hide them.
NAME_ROOM = 7.5
NUMBER_ROOM = 6.5
BORDER_ROOM = 2.5
THINNEST, THICKEST = 0.3, 1.6
MISSING = "#ECECEC"
# From pale to dark without the darkest end, where borders would be lost.
ORDERED = "YlGnBu"
MAX_LEVELS = 12


class _Side(NamedTuple):
    """Rows or columns in the order in which they are drawn, and the points that each takes up."""

    what: str
    classes: Array
    order: Array
    names: tuple[str, ...] | None
    room: float

    @property
    def edges(self) -> Array:
        """Where each class starts, and the end."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.classes))])


class _Colors(NamedTuple):
    """Numbers that are drawn, and how they become colors."""

    values: Array
    colors: Colormap
    scale: Normalize
    labels: tuple[str, ...] | None
    ordered: bool
    extend: str


def blocks(fit: BlockFit, *, ax: Axes | None = None) -> Axes:
    """Draw the matrix with rows and columns in the order of their groups, and the borders of its blocks.

    Missing cells are pale gray. A large matrix is drawn as patches of neighboring cells within a block: the
    mean of numbers, the most frequent of other levels. Groups without room for a number have none, which is
    said beside them; between those too thin to be seen apart no border is drawn.
    """
    cells = fit.known_cells
    if fit.known.items:
        cells = cells._with(item_attributes=fit.known.items)
    axes = draw_blocks(fit.blocks, cells, fit.family, ax=ax)
    style = item_style(fit, [cells.column_name(at) for at in range(cells.n_columns)])
    order = np.argsort(fit.blocks.column_classes, kind="stable")
    if style.colors and len(axes.get_xticklabels()) == len(order):
        color_ticks(axes.get_xticklabels(), [cells.column_name(int(at)) for at in order], style)
    return axes


def overview(fit: BlockFit, *, figure: Figure | None = None) -> Figure:
    """Draw the matrix in the order of its blocks, as :func:`blocks` does, in a figure."""
    figure = checked_figure(figure, *_size(fit.known_cells, fit.blocks))
    blocks(fit, ax=figure.subplots())
    return figure


def draw_blocks(draw: BlockDraw, cells: Cells, family: CellFamily, *, ax: Axes | None = None) -> Axes:
    """Draw cells under a partition into blocks; :func:`blocks` is for people."""
    axes = new_axes(ax, *_size(cells, draw))
    look = _colors(cells, family)
    _explain_colors(axes, look)  # first: the scale takes its room from the matrix
    rows, columns = _sides(axes, cells, draw)
    _draw_cells(axes, cells, look, draw, [rows.order, columns.order])
    _draw_borders(axes, draw.table, rows, columns)
    axes.set_xlim(0, cells.n_columns)
    axes.set_ylim(cells.n_rows, 0)
    _name_lines(axes, rows)
    _name_lines(axes, columns)
    if cells.n_cells < cells.n_rows * cells.n_columns:
        above = axes.get_xlabel()
        axes.set_xlabel(f"{above}{', ' if above else ''}missing cells in gray")
    n_blocks, n_rows, n_columns = len(np.unique(draw.table)), *draw.table.shape
    groups = f"{_counted(n_rows, 'group')} of rows, {_counted(n_columns, 'group')} of columns"
    room = 14.0 if _numbered(columns) else 6.0
    axes.set_title(f"{_counted(n_blocks, 'block')}: {groups}", fontsize="medium", pad=room)
    return axes


def mondrian(fit: BlockFit, *, ax: Axes | None = None) -> Axes:
    """Draw the nested cuts of the point estimate, rows downwards and columns to the right."""
    if fit.tree is None:
        raise DataError("a grid has no nested cuts to draw; plots.blocks draws its blocks")
    return draw_tree(fit.tree, ax=ax)


def n_groups(fit: BlockFit, *, of: Of = "rows", ax: Axes | None = None) -> Axes:
    """Draw the posterior of the number of groups of rows, or of columns."""
    return draw_number(fit.draws.arrays[f"n_{_side_of(of)}_groups"], f"groups of {of}", ax=ax)


def similarity(fit: BlockFit, *, of: Of = "rows", ax: Axes | None = None) -> Axes:
    """Draw the probability that two rows, or two columns, are in one group, sorted by group."""
    what = _side_of(of)
    return draw_similarity(fit.labels(what), fit.cluster_draws(what), of, ax=ax)


def traces(fit: BlockFit, *, figure: Figure | None = None) -> Figure:
    """Draw the number of blocks and the log joint of every draw, a line for each chain."""
    names = {"number of blocks": "n_blocks", "log joint": "log_joint"}
    return draw_traces([(what, fit.draws.arrays[name]) for what, name in names.items()], figure=figure)


def _side_of(of: Of) -> Side:
    if of not in ("rows", "columns"):
        raise ParameterError("of", of, Choice("rows", "columns").must_be())
    return "row" if of == "rows" else "column"


# -- cells -----------------------------------------------------------------------------------------


def _colors(cells: Cells, family: CellFamily) -> _Colors:
    """Choose colors: levels that are few get one each, numbers a scale."""
    import matplotlib
    from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize

    levels, ordered = getattr(family, "levels", None), family.levels_are_numbers
    if levels is not None and not (ordered and len(levels) > MAX_LEVELS):
        n = len(levels)
        palette: Any = [matplotlib.colors.to_rgba(color) for color in COLORS[:n]]
        if ordered:
            palette = matplotlib.colormaps[ORDERED](np.linspace(0.12, 0.85, n) if n > 1 else [0.5])
        elif n > len(COLORS):
            palette = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, n))
        codes = family.encode(cells.values).astype(np.float64)
        scale = BoundaryNorm(np.arange(n + 1) - 0.5, n)
        labels = tuple(shortened(level, MAX_NAME) for level in levels)
        return _Colors(codes, ListedColormap(palette), scale, labels, ordered, "neither")
    values = cells.values.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    extend = "neither"
    if high > low:
        # A few extreme cells shall not take the colors from all others.
        inner_low, inner_high = np.quantile(values, [0.01, 0.99])
        if inner_high > inner_low and high - low > 2 * (inner_high - inner_low):
            cut = (inner_low > low, inner_high < high)
            extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(cut, "neither")
            low, high = float(inner_low), float(inner_high)
    else:
        low, high = low - 0.5, high + 0.5
    base = matplotlib.colormaps[ORDERED](np.linspace(0.05, 0.85, 256))
    return _Colors(values, ListedColormap(base), Normalize(low, high), None, True, extend)


def _draw_cells(axes: Axes, cells: Cells, look: _Colors, draw: BlockDraw, order: list[Array]) -> None:
    n_rows, n_columns = cells.shape
    row_place, column_place = map(np.argsort, order)
    patch = _patch_sizes(cells)

    def patch_of(row: Array, column: Array, block: Array) -> Array:
        # A patch is what one small rectangle and one block have in common: none crosses a border.
        small = (row // patch[0]) * (n_columns // patch[1] + 1) + column // patch[1]
        return small * draw.n_blocks + block

    cell_blocks = draw.block_of(cells.rows, cells.columns)
    where = patch_of(row_place[cells.rows], column_place[cells.columns], cell_blocks)
    rows, columns = _pixel_lines(n_rows)[:, None], _pixel_lines(n_columns)[None, :]
    pixels = patch_of(rows, columns, draw.block_of(order[0][rows], order[1][columns]))
    shown = np.ma.masked_invalid(_patched(where, pixels, look))
    rgba = look.colors.with_extremes(bad=MISSING)(look.scale(shown))
    axes.imshow(
        (255 * rgba).astype(np.uint8),
        extent=(0, n_columns, n_rows, 0),
        aspect="auto",
        interpolation="nearest",  # anything else mixes neighbors, and cells with what is missing
        origin="upper",
        rasterized=True,
    )


def _patched(where: Array, pixels: Array, look: _Colors) -> Array:
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
    most_rows, most_columns = -(-n_rows // SMALL_SIDE), -(-n_columns // SMALL_SIDE)
    return max(row, min(side, most_rows)), max(column, min(side, most_columns))


def _pixel_lines(n: int) -> Array:
    """Which line each pixel of the picture shows."""
    n_pixels = min(n, MAX_SIDE)
    return ((np.arange(n_pixels) + 0.5) * n / n_pixels).astype(np.int64)


# -- borders and names -----------------------------------------------------------------------------


def _sides(axes: Axes, cells: Cells, draw: BlockDraw) -> tuple[_Side, _Side]:
    """Rows and columns sorted by class, and the room that the axes give them."""
    box, points = axes.get_window_extent(), 72 / axes.figure.dpi
    sides = []
    for what, classes, names, extent in (
        ("row", draw.row_classes, cells.row_names, box.height),
        ("column", draw.column_classes, _column_labels(cells), box.width),
    ):
        order = np.argsort(classes, kind="stable")
        room = extent * points / len(order)
        shown = None
        if names is not None and len(order) <= MAX_NAMES and room >= NAME_ROOM:
            most = MAX_TEXT if what == "column" and "text" in cells.item_attributes else MAX_NAME
            shown = tuple(shortened(in_short(names[line], most), most) for line in order)
        sides.append(_Side(what, classes, order, shown, room))
    return sides[0], sides[1]


def _column_labels(cells: Cells) -> Sequence[str] | None:
    return cells.column_labels() if cells.item_attributes else cells.column_names


def _draw_borders(axes: Axes, table: Array, rows: _Side, columns: _Side) -> None:
    """Draw a line wherever two neighboring classes lie in different blocks: grids and nested cuts alike."""
    from matplotlib.collections import LineCollection

    segments, widths = [], []
    for upright, (lines, ends) in enumerate(((rows, columns), (columns, rows))):
        breadths = _border_widths(table.T if upright else table, lines.edges * lines.room)
        for place, breadth in zip(lines.edges[1:-1], breadths, strict=True):
            for start, stop in _runs(breadth > 0):
                line = [(ends.edges[start], place), (ends.edges[stop], place)]
                segments.append([point[::-1] for point in line] if upright else line)
                widths.append(breadth[start:stop].min())
    look: dict[str, Any] = {"capstyle": "butt", "zorder": 3}
    for color, factor in (("white", 2.2), (BORDER, 1.0)):
        thickness = factor * np.array(widths)
        axes.add_collection(LineCollection(segments, colors=color, linewidths=thickness, **look))
    for side in axes.spines.values():
        side.set_color(BORDER)
        side.set_linewidth(max(widths, default=THICKEST))
        side.set_zorder(4)


def _border_widths(table: Array, edges: Array) -> Array:
    """Return the points of the line after each class, in every column of classes; 0 where there is none.

    Lines are the thinner the less room the blocks beside them have, so that they never cover much of the
    picture; between two blocks that are both too thin to be seen apart there is none.
    """
    widths = np.zeros((len(table) - 1, table.shape[1]))
    for column in range(table.shape[1]):
        cuts = np.flatnonzero(np.diff(table[:, column]))
        thickness = np.diff(edges[np.r_[0, cuts + 1, len(table)]])
        one, other = thickness[:-1], thickness[1:]
        width = np.clip(np.minimum(one, other) / 20, THINNEST, THICKEST)
        widths[cuts, column] = np.where(np.maximum(one, other) >= BORDER_ROOM, width, 0.0)
    return widths


def _runs(different: Array) -> list[tuple[int, int]]:
    """Start and stop of each run of True."""
    change = np.flatnonzero(np.diff(np.r_[False, different, False])).tolist()
    return list(zip(change[::2], change[1::2], strict=True))


def _name_lines(axes: Axes, side: _Side) -> None:
    """Name rows or columns where there is room, and number their classes on the other side."""
    axis = axes.yaxis if side.what == "row" else axes.xaxis
    if side.names is None:
        axis.set_ticks([])
    else:
        large = side.room >= 10.5
        axis.set_ticks(np.arange(len(side.order)) + 0.5, side.names, fontsize="small" if large else "x-small")
        if side.what == "column" and 5 * max(map(len, side.names)) + 4 > side.room:
            axis.set_tick_params(rotation=90)
    axis.set_tick_params(length=0)
    axis.set_label_text(_side_label(side))
    upright = side.what == "row"
    for number, center in _numbered(side):
        axes.annotate(
            str(number),
            (1, center) if upright else (center, 1),
            xycoords=("axes fraction", "data") if upright else ("data", "axes fraction"),
            xytext=(4, 0) if upright else (0, 3),
            textcoords="offset points",
            ha="left" if upright else "center",
            va="center" if upright else "baseline",
            fontsize="x-small",
            color="#555555",
        )


def _side_label(side: _Side) -> str:
    """Say how many lines there are where they have no names, and which groups have no number."""
    n_classes, n_numbered = len(side.edges) - 1, len(_numbered(side))
    lines = _counted(len(side.order), side.what)
    if n_numbered == n_classes:
        return lines if side.names is None else ""
    said = {0: "too thin to be numbered", 1: "the largest is numbered"}
    shown = said.get(n_numbered, f"the {n_numbered} largest are numbered")
    return f"{lines} in {_counted(n_classes, 'group')}\n{shown}"


def _numbered(side: _Side) -> list[tuple[int, float]]:
    """Numbers, from 1, of the classes with room for one, and where their middle is."""
    classes = list(pairwise(side.edges))
    needed = NUMBER_ROOM if side.what == "row" else 3 + 4.5 * len(str(len(classes)))
    roomy = [(k, a, b) for k, (a, b) in enumerate(classes, 1) if (b - a) * side.room >= needed]
    return [(k, (a + b) / 2) for k, a, b in roomy]


def _explain_colors(axes: Axes, look: _Colors) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.patches import Patch

    if look.labels is None or (look.ordered and len(look.labels) > 2):
        colors = ScalarMappable(look.scale, look.colors)
        bar = axes.figure.colorbar(colors, ax=axes, extend=look.extend, fraction=0.05, pad=0.06)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize="small")
        if look.labels is not None:
            bar.set_ticks(range(len(look.labels)), labels=list(look.labels))
            bar.ax.minorticks_off()
        return
    n = len(look.labels)
    handles = [Patch(facecolor=look.colors(k), label=look.labels[k]) for k in range(min(n, 20))]
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


def _size(cells: Cells, draw: BlockDraw) -> tuple[float, float]:
    """Inches: about the shape of the matrix, within what a page holds, with room for groups and names."""
    ratio = float(np.clip(cells.n_rows / cells.n_columns, 0.4, 2.2))
    side = 6.0
    width, height = (side, side * ratio) if ratio <= 1 else (side / ratio**0.5, side * ratio**0.5)
    height = max(min(height, 9.0), min(side, 0.15 * draw.table.shape[0]))
    width = max(width, min(side, 0.15 * draw.table.shape[1]))
    # Names need a line each along their side, and their length beside the other.
    named_rows = cells.row_names is not None and cells.n_rows <= MAX_NAMES
    named_columns = cells.column_names is not None and cells.n_columns <= MAX_NAMES
    height = max(height, named_rows * cells.n_rows * 1.2 * NAME_ROOM / 72)
    width = max(width, named_columns * cells.n_columns * 1.2 * NAME_ROOM / 72)
    return width + 1.3 + 0.5 * named_rows, height + 0.8 + 0.5 * named_columns


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


PICTURES = {draw.__name__: draw for draw in (overview, blocks, mondrian, n_groups, similarity, traces)}
