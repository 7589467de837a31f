"""The choice of a number of groups, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.errors import DataError
from permix.plots.style import COLORS, new_axes, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def choice(selection: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the log-likelihood of agents held out, with its standard error, by number of groups.

    Where a criterion was asked for, such as DIC, that is drawn instead. A frame or dict with the columns
    ``n_groups``, ``train``, ``validation`` and ``standard_error`` will do as well.
    """
    table = getattr(selection, "table", selection)
    criterion = getattr(selection, "criterion", "held-out")
    held_out = criterion == "held-out"
    names = ("n_groups", *(("validation", "standard_error", "train") if held_out else (criterion,)))
    try:
        numbers, values, *others = (np.asarray(table[name], dtype=np.float64) for name in names)
    except (KeyError, TypeError, IndexError, ValueError):
        raise DataError(
            "choice draws what select_components returns: a table with the columns n_groups, "
            f"train, validation and standard_error, not {type(selection).__name__}"
        ) from None
    axes = new_axes(ax)
    line: dict[str, Any] = {"color": COLORS[0], "markersize": 4}
    if held_out:
        error, train = others
        axes.plot(numbers, train, ".--", color="0.6", label="agents fitted")
        axes.errorbar(numbers, values, yerr=error, fmt="o-", capsize=3, label="agents held out", **line)
        axes.set_ylabel("log-likelihood per agent")
    else:
        axes.plot(numbers, values, "o-", **line)
        axes.ticklabel_format(axis="y", useOffset=False, style="plain")
        axes.set_ylabel(f"{criterion.upper()} (small = good)")
    place = int(np.nanargmax(values) if held_out else np.nanargmin(values))
    best = numbers[place]
    ring: dict[str, Any] = {"color": COLORS[5], "markersize": 9, "fillstyle": "none", "markeredgewidth": 1.8}
    axes.plot(best, values[place], "o", label=f"best: {best:.0f}", **ring)
    chosen = getattr(selection, "chosen", best)
    if chosen != best:
        axes.axvline(chosen, color="0.7", linestyle=":", zorder=0, label=f"chosen: {chosen}")
    if len(numbers) <= 20:
        axes.set_xticks(numbers)
    else:
        axes.xaxis.set_major_locator(whole_numbers())
    axes.set_xlabel("number of groups")
    axes.set_title("How many groups?")
    axes.legend(fontsize="small", frameon=False)
    return axes
