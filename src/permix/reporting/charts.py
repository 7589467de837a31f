"""Figures from numbers: bars, dots with intervals, heat maps, and the table that says the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.reporting.content import Cell, Figure, Table
from permix.reporting.svg import CHARACTER, Drawing
from permix.reporting.words import number, percent, told_apart

# Shades of heat maps and tables, from 0 to this.
DARKEST = 10
# Figures are this wide beside their labels, so that their text can be read on a telephone without zooming.
WIDTH = 290.0
LINE = 22.0
LABELS = (70.0, 230.0)
# Names over columns rise at most so high.
MOST_HEAD = 150.0


class Interval(NamedTuple):
    """A line of a chart: a name, a number with the ends of its interval, and one to compare it with."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    other: float | None = None


class Axis(NamedTuple):
    """What is along a chart, from where to where, and how its numbers are written."""

    name: str
    low: float
    high: float
    written: Any = number
    ticks: tuple[float, ...] = ()


def nice_ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Return round numbers from one end to the other.

    Examples
    --------
    >>> nice_ticks(0, 1), nice_ticks(1, 14)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (5.0, 10.0))
    """
    if not high > low:
        return (float(low),)
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(round(k * step, 12) + 0.0 for k in range(first, last + 1))


def dots(
    title: str,
    description: str,
    rows: Sequence[Interval],
    axis: Axis,
    columns: tuple[str, str, str, str],
) -> Figure:
    """Draw a dot and a line for each row, and a diamond where there is a number to compare with.

    ``columns`` name, in the table: what rows are, the numbers, the intervals, and the other numbers.
    """
    compared = any(row.other is not None for row in rows)
    legend = [("dot", columns[1])]
    if any(row.low is not None for row in rows):
        legend.append(("rng", columns[2]))
    if compared:
        legend.append(("other", columns[3]))
    top = 18.0 * len(legend) + 24
    labels = room_for([axis.name, *(row.name for row in rows)])
    drawing = Drawing(labels + WIDTH, top + LINE * len(rows) + 6)
    _legend(drawing, legend, labels)
    left, right = labels + 12, labels + WIDTH - 14
    span = max(axis.high - axis.low, 1e-12)

    def place(value: float) -> float:
        return left + (right - left) * (min(max(value, axis.low), axis.high) - axis.low) / span

    bottom = top + LINE * len(rows)
    ticks = axis.ticks or nice_ticks(axis.low, axis.high)
    for tick, said in zip(ticks, _ticks_written(ticks, axis.written), strict=True):
        drawing.line(place(tick), top - 4, place(tick), bottom, "grid")
        drawing.text(place(tick), top - 8, said, "num", anchor="middle")
    if axis.name:
        drawing.text(0, top - 8, axis.name, "num", room=labels)
    for at, row in enumerate(rows):
        y = top + LINE * (at + 0.5)
        drawing.text(labels, y + 4, row.name, anchor="end", room=labels)
        if row.low is not None and row.high is not None:
            ends = place(row.low), place(row.high)
            drawing.rectangle(ends[0] - 1.5, y - 4, max(ends[1] - ends[0], 0) + 3, 8, "rng")
        if row.other is not None and not math.isnan(row.other):
            drawing.diamond(place(row.other), y, 5, "other")
        if not math.isnan(row.value):
            drawing.circle(place(row.value), y, 4.5, "dot")
    return Figure(title, description, drawing.done(title, description), _numbers(title, rows, axis, columns))


def _ticks_written(ticks: Sequence[float], written: Any) -> list[str]:
    """Write the numbers along an axis; those that would read the same get the digits that tell them apart."""
    said = [written(tick) for tick in ticks]
    if len(set(said)) == len(said):
        return said
    sign = "%" if written is percent else ""
    said = told_apart([100.0 * tick if sign else tick for tick in ticks])
    while all("." in text and text.endswith(("0", ".")) for text in said):
        said = [text[:-1] for text in said]
    return [f"{text}{sign}" for text in said]


def room_for(names: Sequence[str]) -> float:
    """Return how many pixels labels take, within limits."""
    longest = max((len(name) for name in names), default=1)
    return min(max(CHARACTER * longest + 4, LABELS[0]), LABELS[1])


def _legend(drawing: Drawing, legend: Sequence[tuple[str, str]], x: float) -> None:
    for at, (kind, said) in enumerate(legend):
        y = 10 + 18.0 * at
        if kind == "rng":
            drawing.rectangle(x - 12, y - 4, 24, 8, kind)
        elif kind == "other":
            drawing.diamond(x, y, 5, kind)
        else:
            drawing.circle(x, y, 4.5, kind)
        drawing.text(x + 20, y + 4, said, "num")


def _numbers(title: str, rows: Sequence[Interval], axis: Axis, columns: tuple[str, ...]) -> Table:
    """Say the same as a table."""
    shown = [columns[0], columns[1]]
    ranges = any(row.low is not None for row in rows)
    compared = any(row.other is not None for row in rows)
    shown += [columns[2]] * ranges + [columns[3]] * compared
    table: list[tuple[Cell, ...]] = []
    for row in rows:
        cells: list[Cell] = [row.name, axis.written(row.value)]
        if ranges:
            ends = None if row.low is None or row.high is None else (row.low, row.high)
            cells.append("–" if ends is None else f"{axis.written(ends[0])} to {axis.written(ends[1])}")
        if compared:
            cells.append("–" if row.other is None else axis.written(row.other))
        table.append(tuple(cells))
    return Table(title, tuple(shown), tuple(table))


def bars(
    title: str,
    description: str,
    rows: Sequence[Interval],
    columns: tuple[str, str, str],
    *,
    most: float | None = None,
    written: Any = percent,
) -> Figure:
    """Draw a bar for each row, with a thin line for its interval, and its number behind it."""
    labels = room_for([row.name for row in rows])
    drawing = Drawing(labels + WIDTH, LINE * len(rows) + 8)
    left, right = labels + 10, labels + WIDTH - 96
    ends = [row.value if row.high is None else max(row.high, row.value) for row in rows]
    longest = most or max((end for end in ends if not math.isnan(end)), default=1.0) or 1.0
    scale = (right - left) / longest
    for at, row in enumerate(rows):
        y = 4 + LINE * at
        drawing.text(labels, y + 15, row.name, anchor="end", room=labels)
        drawing.rectangle(left, y + 3, max(scale * row.value, 1), LINE - 7, "bar")
        said, end = written(row.value), left + scale * row.value
        if row.low is not None and row.high is not None:
            middle = y + LINE / 2 - 0.5
            low, high = left + scale * row.low, left + scale * row.high
            drawing.line(low, middle, high, middle, "whisker")
            for x in (low, high):
                drawing.line(x, middle - 4, x, middle + 4, "whisker")
            said, end = f"{said} ({_bare(written(row.low))}–{_bare(written(row.high))})", max(end, high)
        drawing.text(end + 7, y + 15, said, "val")
    axis = Axis("", 0, longest, written)
    table = _numbers(title, rows, axis, (*columns, ""))
    return Figure(title, description, drawing.done(title, description), table)


def _bare(text: str) -> str:
    return text.removesuffix("%")


def shade_of(value: float, low: float, high: float) -> int | None:
    """Return the shade of a number between two others."""
    if value is None or math.isnan(value):
        return None
    part = 0.5 if high <= low else (value - low) / (high - low)
    return round(DARKEST * min(max(part, 0.0), 1.0))


def heat(
    title: str,
    description: str,
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    corner: str,
    low: float,
    high: float,
    written: Any = percent,
    diverging: bool = False,
    in_cells: Any = None,
    texts: Sequence[Sequence[str]] | None = None,
    cell: float = 30.0,
) -> Figure:
    """Draw a number in every cell on a ground that is the darker the larger it is.

    ``diverging``: from one color over a neutral one to another. ``in_cells`` writes the numbers in the
    picture, which are shorter; ``texts`` are written instead of the numbers that colors stand for.
    """
    kind = "d" if diverging else "s"
    longest = max((len(name) for name in columns), default=1)
    turned = longest * CHARACTER > cell - 2
    head = min(22 + 0.78 * CHARACTER * longest, MOST_HEAD) if turned else 20.0
    slant = 0.62 * head if turned else 0.0
    n_rows, n_columns = values.shape
    labels = room_for(rows)
    tall = min(0.87 * cell, 27.0)
    drawing = Drawing(labels + 6 + cell * n_columns + slant + 6, head + tall * n_rows + 4)
    write = in_cells or written
    for j, name in enumerate(columns):
        x = labels + 6 + cell * (j + 0.5)
        if turned:
            drawing.text(x, head - 6, name, room=(head - 10) / 0.78, turned=True)
        else:
            drawing.text(x, head - 6, name, anchor="middle")
    places: dict[int, list[tuple[float, float]]] = {}
    inside = []
    for i in range(n_rows):
        drawing.text(labels, head + tall * (i + 0.5) + 4, rows[i], anchor="end", room=labels)
        for j in range(n_columns):
            x, y = labels + 6 + cell * j, head + tall * i
            shade = shade_of(float(values[i, j]), low, high)
            if shade is None:
                continue
            places.setdefault(shade, []).append((x, y))
            said = write(float(values[i, j])) if texts is None else texts[i][j]
            inside.append((x + cell / 2, y + tall / 2 + 4, said, f"on {kind}t{shade}"))
    for shade in sorted(places):
        drawing.squares(places[shade], cell - 1, tall - 1, f"{kind}{shade}")
    for x, y, text, style in inside:
        drawing.text(x, y, text, style, anchor="middle")
    cells = tuple(
        (rows[i], *(None if math.isnan(v) else written(v) for v in map(float, values[i])))
        if texts is None
        else (rows[i], *texts[i])
        for i in range(n_rows)
    )
    table = Table(title, (corner, *columns), cells)
    return Figure(title, description, drawing.done(title, description), table)


def picture(
    title: str,
    description: str,
    shades: Array,
    borders: tuple[Sequence[tuple[float, float, float, float]], float, float],
    numbers: Table,
    *,
    diverging: bool = False,
    marks: Sequence[tuple[float, float, str]] = (),
) -> Figure:
    """Draw a matrix as small squares, -1 for what is empty, with lines over it.

    ``borders``: lines in cells of the matrix, and its numbers of rows and columns. ``marks`` are texts, at
    places in the same units.
    """
    lines, n_rows, n_columns = borders
    ratio = min(max(n_rows / n_columns, 0.35), 1.4)
    width = 420.0
    height = width * ratio
    drawing = Drawing(width + 40, height + 34)
    left, top = 26.0, 22.0
    tall, wide = height / shades.shape[0], width / shades.shape[1]
    drawing.rectangle(left, top, width, height, "empty")
    for shade in np.unique(shades[shades >= 0]).tolist():
        found = np.argwhere(shades == shade).tolist()
        corners = [(left + wide * j, top + tall * i) for i, j in found]
        drawing.squares(corners, wide + 0.3, tall + 0.3, f"{'d' if diverging else 's'}{shade}")
    for x1, y1, x2, y2 in lines:
        across = (left + width * x1 / n_columns, left + width * x2 / n_columns)
        down = (top + height * y1 / n_rows, top + height * y2 / n_rows)
        drawing.line(across[0], down[0], across[1], down[1], "cut")
    for x, y, said in marks:
        drawing.text(
            left + width * x / n_columns if x >= 0 else left - 5,
            top + height * y / n_rows + 4 if y >= 0 else top - 6,
            said,
            "num",
            anchor="middle" if x >= 0 else "end",
        )
    return Figure(title, description, drawing.done(title, description), numbers)
