"""The choice of a number of groups, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.labels import Array
from permix.errors import DataError
from permix.plots.style import COLORS, new_axes, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def choice(selection: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the log-likelihood of agents held out, with its standard error, by number of groups.

    Where a criterion was asked for, such as DIC, that is drawn instead. A frame or dict with the columns
    ``n_components``, ``train``, ``validation`` and ``standard_error`` will do as well.
    """
    table = getattr(selection, "table", selection)
    if getattr(selection, "criterion", "held-out") != "held-out":
        return _criterion_choice(selection, ax)
    try:
        numbers, train, validation, error = (
            np.asarray(table[name], dtype=np.float64)
            for name in ("n_components", "train", "validation", "standard_error")
        )
    except (KeyError, TypeError, IndexError, ValueError):
        raise DataError(
            "choice draws what select_components returns: a table with the columns n_components, "
            f"train, validation and standard_error, not {type(selection).__name__}"
        ) from None
    axes = new_axes(ax)
    best = int(np.nanargmax(validation))
    axes.plot(numbers, train, ".--", color="0.6", label="agents fitted")
    axes.errorbar(
        numbers,
        validation,
        yerr=error,
        fmt="o-",
        color=COLORS[0],
        markersize=4,
        capsize=3,
        label="agents held out",
    )
    _mark_choice(axes, selection, numbers, validation, best)
    axes.set_ylabel("log-likelihood per agent")
    axes.legend(fontsize="small", frameon=False)
    return axes


def _criterion_choice(selection: Any, ax: Axes | None) -> Axes:
    """Draw a criterion on all data by number of groups."""
    numbers = selection.table["n_components"].to_numpy(dtype=np.float64)
    values = selection.table[selection.criterion].to_numpy(dtype=np.float64)
    axes = new_axes(ax)
    axes.plot(numbers, values, "o-", color=COLORS[0], markersize=4)
    _mark_choice(axes, selection, numbers, values, numbers.tolist().index(selection.best))
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.set_ylabel(f"{selection.criterion.upper()} (small = good)")
    axes.legend(fontsize="small", frameon=False)
    return axes


def _mark_choice(axes: Axes, selection: Any, numbers: Array, values: Array, best: int) -> None:
    """Draw a ring around the best number and a line at the one chosen, and name the axis of numbers."""
    axes.plot(
        numbers[best],
        values[best],
        "o",
        color=COLORS[5],
        markersize=9,
        fillstyle="none",
        markeredgewidth=1.8,
        label=f"best: {numbers[best]:.0f}",
    )
    chosen = getattr(selection, "chosen", numbers[best])
    if chosen != numbers[best]:
        axes.axvline(chosen, color="0.7", linestyle=":", zorder=0, label=f"chosen: {chosen}")
    if len(numbers) <= 20:
        axes.set_xticks(numbers)
    else:
        axes.xaxis.set_major_locator(whole_numbers())
    axes.set_xlabel("number of groups")
    axes.set_title("How many groups?")
