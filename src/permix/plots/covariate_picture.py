"""Groups by covariate, drawn: where the agents of each precinct belong, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.estimators.by_covariate import group_table
from permix.estimators.registry import fit_of
from permix.plots.items import DARK
from permix.plots.style import MARKERS, checked_axes, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_VALUES, MAX_GROUPS, MAX_NAME = 30, 7, 24
LINE = 0.3


def draw_by_covariate(model: Any, name: str, values: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw, for each value of a covariate, the share of its agents in each group.

    Parameters
    ----------
    model : fitted estimator
    name : str
        A covariate of the data that were fitted, or what ``values`` are called.
    values : sequence, optional
        An entry for each row that was fitted, where the data had no such covariate.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
        Lines go from 5 % to 95 %; a dashed line is the share of all agents.
    """
    found = group_table(fit_of(model), name, values=values)
    n_values, n_groups = min(len(found.values), MAX_VALUES), min(found.of_value.shape[1], MAX_GROUPS)
    height = 1.6 + LINE * max(n_values, 3) * (1 + 0.25 * (n_groups - 1))
    axes = new_figure(7.0, height).subplots() if ax is None else checked_axes(ax)
    places = np.arange(n_values)
    step = 0.72 / n_groups
    for row in range(0, n_values, 2):
        axes.axhspan(row - 0.5, row + 0.5, color="0.965", linewidth=0, zorder=-1)
    for k in range(n_groups):
        mean, low, high = (100 * found.of_value[:n_values, k, end] for end in range(3))
        y, color = places + (k - (n_groups - 1) / 2) * step, DARK[k % len(DARK)]
        axes.axvline(100 * found.overall[k], color=color, linewidth=0.8, linestyle="--", alpha=0.6, zorder=0)
        axes.hlines(y, low, high, color=color, linewidth=1.8, alpha=0.75)
        axes.plot(mean, y, MARKERS[0], color=color, markersize=4, label=f"group {k + 1}", zorder=3)
    names = [f"{shortened(v, MAX_NAME)} ({n:,})" for v, n in zip(found.values, found.agents, strict=True)]
    axes.set_yticks(places, names[:n_values])
    axes.set_ylim(n_values - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    some = f"; the {n_values} most frequent of {len(found.values)}" if n_values < len(found.values) else ""
    many = (
        f"; the {n_groups} largest of {found.of_value.shape[1]} groups"
        if n_groups < found.of_value.shape[1]
        else ""
    )
    axes.set_xlabel(f"% of the agents, 5 % to 95 %; dashed: of all{some}{many}", fontsize="small")
    used = "was used in the fit" if found.used else "was not used in the fit"
    axes.set_title(f"groups by {shortened(name, MAX_NAME)}, which {used}", fontsize="medium", pad=24)
    style = {"fontsize": "small", "frameon": False, "handletextpad": 0.3, "columnspacing": 1.2}
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_groups, **style)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return axes
