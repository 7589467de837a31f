"""What all pictures share: colors, a place to draw, and names that fit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from permix.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

# Okabe & Ito's eight colors, told apart by color-blind readers; markers go on where colors end.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BORDER = "#1A1A1A"
NO_MATPLOTLIB = 'plots need matplotlib: pip install "permix[plot]"'


def new_figure(width: float, height: float) -> Figure:
    """Make a figure that no window knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error
    return Figure(figsize=(width, height), layout="constrained")


def new_axes(ax: Axes | None, width: float = 5.0, height: float = 4.0) -> Axes:
    """Return the axes given, or those of a new figure of a size."""
    if ax is not None:
        return checked_axes(ax)
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


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
            'picture, save its figure: plots.similarity(model).figure.savefig("x.png")'
        )
    return ax


def checked_figure(figure: Any, width: float, height: float) -> Figure:
    """Return the figure given, or a new one of a size; refuse what nobody can draw into."""
    if figure is None:
        return new_figure(width, height)
    if not hasattr(figure, "subplots"):
        given = (
            f"the file name {os.fspath(figure)!r}"
            if isinstance(figure, str | os.PathLike)
            else type(figure).__name__
        )
        raise DataError(
            f"figure must be a matplotlib figure, not {given}; to write a picture, save it: "
            'plots.overview(model).savefig("x.png")'
        )
    return figure


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
