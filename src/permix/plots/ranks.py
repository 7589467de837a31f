"""Items and their ranks, drawn: what pictures of several ranking models share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.labels import Array
from permix.estimators.checks import Whole
from permix.plots.items import DARK as DARK
from permix.plots.items import ItemStyle
from permix.plots.style import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Larger mixtures are drawn as their largest groups, long rankings as their first items.
MAX_PANELS = 12
MAX_ITEMS = 20
MAX_NAME = 28


def draw_ranks(
    axes: Axes,
    names: Sequence[Any],
    interval: tuple[Array, Array, Array],
    last: int,
    color: str,
    style: ItemStyle,
) -> None:
    """Draw items from top to bottom: mean rank, and a line from a low to a high one.

    Items have the color of their party, where that is known, else that of the group.
    """
    mean, low, high = interval
    n_shown = len(mean)
    places = np.arange(1, n_shown + 1)
    colors = style.of(names, color)
    axes.hlines(places, low, high, color=colors, linewidth=5, alpha=0.35)
    axes.scatter(mean, places, s=20, c=colors, zorder=3)
    axes.set_yticks(places, [shortened(style.label(name, MAX_NAME), MAX_NAME) for name in names])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylim(n_shown + 0.6, 0.4)
    axes.set_xlim(1 - 0.03 * last, 1.03 * last)
    axes.set_xticks(rank_ticks(last))
    axes.set_xlabel("rank (1 = best)", fontsize="small")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)


def rank_ticks(last: int) -> list[int]:
    """Every rank where there are few, else the first and some round ones."""
    if last <= 12:
        return list(range(1, last + 1))
    step = next(step for size in range(10) for step in (5 * 10**size, 10 * 10**size) if last <= 6 * step)
    return [1, *range(step, last + 1, step)]


def groups_title(n_drawn: int, n_groups: int, n_shown: int, n_items: int, top: str = "top ") -> str:
    """Say how many groups and items there are, and how many of them are drawn."""
    many = f"the {n_drawn} largest of " if n_drawn < n_groups else ""
    some = f"{top}{n_shown} of " if n_shown < n_items else ""
    return f"{many}{n_groups} group{'s' if n_groups > 1 else ''}, {some}{n_items:,} items"


def checked_max_items(max_items: int) -> int:
    """Refuse a picture without items."""
    return int(Whole(1)("max_items", max_items))
