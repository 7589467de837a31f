"""Observed numbers beside those of data drawn from a model, as fit_checks found them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.errors import DataError
from permix.plots.style import checked_axes, new_figure, shortened
from permix.posterior.checks import FitChecks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of more numbers, the most unusual ones are drawn.
MOST_NUMBERS = 30
MOST_LETTERS = 40
LINE, WIDTH = 0.22, 7.0
INSIDE, OUTSIDE = "#4c72b0", "#c44e52"


def draw_checks(found: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how far observed numbers are from the mean of replicated data, in halves of their 95 % interval.

    The band is that interval. Numbers outside are red; the most unusual ones are drawn, thirty at most.
    """
    if not isinstance(found, FitChecks):
        raise DataError(
            "this picture is of what model.fit_checks(X) returns: plots.checks(model.fit_checks(X))"
        )
    table = found.table.sort_values("tail", kind="stable").head(MOST_NUMBERS)
    table = table.sort_values("aspect", kind="stable")
    low, high = table["low"].to_numpy(), table["high"].to_numpy()
    half = np.maximum(0.5 * (high - low), 1e-12)
    off = (table["observed"].to_numpy() - 0.5 * (low + high)) / half
    n = len(table)
    axes = new_figure(WIDTH, 1.2 + LINE * max(n, 4)).subplots() if ax is None else checked_axes(ax)
    axes.axvspan(-1.0, 1.0, color="0.92", linewidth=0)
    axes.axvline(0.0, color="0.7", linewidth=0.8)
    places = np.arange(n)
    # What no replicate had would stretch the scale beyond use.
    axes.scatter(
        np.clip(off, -6.0, 6.0), places, c=[OUTSIDE if abs(each) > 1 else INSIDE for each in off], s=22
    )
    names = zip(table["aspect"], table["entry"], strict=True)
    axes.set_yticks(places, [shortened(f"{aspect}: {entry}", MOST_LETTERS) for aspect, entry in names])
    axes.tick_params(labelsize="small")
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlabel("observed, in halves of the 95 % interval under the model", fontsize="small")
    axes.set_title(f"{n} of {len(found.table)} numbers" if n < len(found.table) else "", fontsize="small")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return axes
