"""What all pictures share: colours, a place to draw, and names that fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from permix.errors import DataError
from permix.files import atomic_writer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

# Okabe & Ito's eight colours, told apart by colour-blind readers; markers go on where colours end.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
NO_MATPLOTLIB = 'plots need matplotlib: pip install "permix[plot]"'


def new_figure(width: float, height: float) -> Figure:
    """Make a figure that no window knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error
    return Figure(figsize=(width, height), layout="constrained")


def new_axes(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return checked_axes(ax)
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error
    return plt.subplots(figsize=(5, 4), layout="constrained")[1]


def checked_axes(ax: Any) -> Axes:
    """Refuse what nobody can draw into, above all a file name."""
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error
    if not isinstance(ax, Axes):
        given = f"the file name {os.fspath(ax)!r}" if isinstance(ax, str | os.PathLike) else type(ax).__name__
        raise DataError(
            f"ax must be matplotlib axes to draw into, such as plt.subplots()[1], not {given}; to write a "
            'picture, give path="x.png" where there is a path, and otherwise save the figure: '
            'plots.similarity(model).figure.savefig("x.png")'
        )
    return ax


def finished(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """Write a figure, whole or not at all, where a path was given; its ending says how."""
    if path is not None:
        if not isinstance(path, str | os.PathLike):
            raise DataError(f"path must be a file name, not {type(path).__name__}; axes go to ax=")
        with atomic_writer(path) as handle:
            figure.savefig(handle, dpi=130, format=Path(path).suffix.removeprefix(".") or None)
    return figure


def whole_figure(axes: Axes) -> Figure:
    """Return the figure that axes stand in, not the part of it."""
    from matplotlib.figure import SubFigure

    figure = axes.figure
    return figure.figure if isinstance(figure, SubFigure) else figure


def shortened(name: Any, most: int) -> str:
    """Cut a long name in its middle, where names differ least; ``$`` is no mathematics."""
    text = " ".join(str(name).split())
    if len(text) > most:
        tail = (most - 1) // 3
        text = f"{text[: most - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"
    return text.replace("$", r"\$")


def whole_numbers() -> MaxNLocator:
    """Ticks for an axis that counts."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)
