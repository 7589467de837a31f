"""What all pictures share: colors, a place to draw, and names that fit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from permix.errors import DataError
from permix.registries import part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

# Okabe & Ito's eight colors, told apart by color-blind readers; markers go on where colors end.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BORDER = "#1A1A1A"
NO_MATPLOTLIB = 'plots need matplotlib: pip install "permix[plot]"'


def matplotlib_part(place: str) -> Any:
    """Import something of matplotlib, which is an extra."""
    try:
        return part(place)
    except ImportError as error:
        raise DataError(NO_MATPLOTLIB) from error


def new_figure(width: float, height: float) -> Figure:
    """Make a figure that no window knows of."""
    make: type[Figure] = matplotlib_part("matplotlib.figure:Figure")
    return make(figsize=(width, height), layout="constrained")


def new_axes(ax: Axes | None, width: float = 5.0, height: float = 4.0) -> Axes:
    """Return the axes given, or those of a new figure of a size."""
    if ax is not None:
        return checked_axes(ax)
    subplots = matplotlib_part("matplotlib.pyplot:subplots")
    axes: Axes = subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def checked_axes(ax: Axes) -> Axes:
    """Refuse what nobody can draw into, above all a file name."""
    if not isinstance(ax, matplotlib_part("matplotlib.axes:Axes")):
        raise DataError(
            f"ax must be matplotlib axes to draw into, such as plt.subplots()[1], not {_given(ax)}; to write "
            'a picture, save its figure: plots.similarity(model).figure.savefig("x.png")'
        )
    return ax


def checked_figure(figure: Figure | None, width: float, height: float) -> Figure:
    """Return the figure given, or a new one of a size; refuse what nobody can draw into."""
    if figure is None:
        return new_figure(width, height)
    if not hasattr(figure, "subplots"):
        raise DataError(
            f"figure must be a matplotlib figure, not {_given(figure)}; to write a picture, save it: "
            'plots.overview(model).savefig("x.png")'
        )
    return figure


def _given(target: Any) -> str:
    is_path = isinstance(target, str | os.PathLike)
    return f"the file name {os.fspath(target)!r}" if is_path else type(target).__name__


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
