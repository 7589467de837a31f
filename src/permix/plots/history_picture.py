"""A climb from several starts, drawn: how the best one rose, and where the others ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.plots.style import COLORS, new_axes, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_history(
    values: Array,
    errors: Array,
    reached: Array,
    *,
    of: str = "log-likelihood",
    step: str = "iteration",
    ax: Axes | None = None,
) -> Axes:
    """Draw what was reached after every step of the best run, and where every start ended.

    The band is two Monte Carlo standard errors wide to either side, where there are any.
    """
    axes = new_axes(ax)
    steps = np.arange(1, len(values) + 1)
    axes.plot(steps, values, "-", marker="." if len(steps) <= 60 else "", color=COLORS[0], label="best run")
    if np.nanmax(errors, initial=0.0) > 0:
        low, high = values - 2 * errors, values + 2 * errors
        axes.fill_between(steps, low, high, color=COLORS[0], alpha=0.25, linewidth=0)
    if len(reached) > 1:
        beyond = np.full(len(reached), steps[-1] + max(1.0, 0.04 * len(steps)))
        label = f"where {len(reached)} starts ended"
        axes.plot(beyond, reached, "_", color=COLORS[5], markersize=11, label=label)
        axes.legend(fontsize="small", frameon=False)
    # The marks of the starts stand beyond the last step and have no number.
    axes.set_xticks([tick for tick in whole_numbers().tick_values(1, steps[-1]) if 1 <= tick <= steps[-1]])
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.set_xlabel(step)
    axes.set_ylabel(of)
    return axes


def how_it_ended(converged: bool, interrupted: bool, n_steps: int, step: str, plural: str) -> str:
    """Return a title that says whether a climb settled."""
    state = "interrupted" if interrupted else "converged" if converged else "stopped before it converged"
    return f"{state} after {n_steps} {step if n_steps == 1 else plural}"
