"""Pictures of a clustering by blurring mean-shift."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit
from permix.plots.style import COLORS, checked_figure, new_axes, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_GROUPS = 20
MAX_CENTER = 60


def overview(fit: MeanShiftFit, *, figure: Figure | None = None) -> Figure:
    """Draw the groups: their centers, and how many agents are in each."""
    figure = checked_figure(figure, 8.0, 1.2 + 0.3 * min(len(fit.centers), MAX_GROUPS))
    groups(fit, ax=figure.subplots())
    return figure


def groups(fit: MeanShiftFit, *, ax: Axes | None = None) -> Axes:
    """Draw a bar for each group, as long as its share of the agents, beside its center."""
    axes = new_axes(ax)
    centers = fit.centers
    n, n_shown = len(centers), min(len(centers), MAX_GROUPS)
    places = np.arange(1, n_shown + 1)
    axes.barh(places, 100 * centers.counts[:n_shown] / centers.n_agents, color=COLORS[0])
    names = [" ≻ ".join(names) for names in fit.center_names[:n_shown]]
    axes.set_yticks(places, [f"{shortened(name, MAX_CENTER)}  {k}" for k, name in enumerate(names, 1)])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.set_ylim(n_shown + 0.6, 0.4)
    axes.set_xlabel("% of the agents")
    many = f"the {n_shown} largest of " if n_shown < n else ""
    axes.set_title(f"{many}{n:,} group{'' if n == 1 else 's'} and their centers", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


PICTURES = {"overview": overview, "groups": groups}
