"""Pictures of a density estimate of rankings: how wide its bumps are, and how that was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.baselines.kde.fit import KDEFit
from permix.data.distances import distance
from permix.data.rankings import Rankings
from permix.distributions.mallows import Mallows
from permix.plots.style import COLORS, checked_figure, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distances are counted in so many draws as have this many cells, and drawn as at most so many bars.
MOST_CELLS = 200_000
MAX_BARS = 40


def overview(fit: KDEFit, *, figure: Figure | None = None) -> Figure:
    """Draw how far rankings lie from the agent they are around, and the scores of the dispersions tried."""
    searched = len(fit.tried) > 0
    figure = checked_figure(figure, 9.0 if searched else 5.0, 3.8)
    panels = figure.subplots(1, 2 if searched else 1, squeeze=False).ravel()
    _draw_distances(fit, panels[0])
    if searched:
        _draw_scores(fit, panels[1])
    return figure


def _draw_distances(fit: KDEFit, axes: Axes) -> None:
    n_items = fit.preferences.n_items
    around = Mallows(range(n_items), fit.dispersion)
    drawn = around.sample(max(1000, MOST_CELLS // n_items), random_state=0)
    distances = np.asarray(distance(drawn, Rankings.from_orders([around.center])), dtype=np.int64)
    last = int(np.quantile(distances, 0.999))
    width = -(-(last + 1) // MAX_BARS)
    heights = np.bincount(distances // width) / len(distances) / width
    shown = np.arange(last // width + 1)
    axes.bar((shown + 0.5) * width - 0.5, heights[shown], 0.9 * width, color=COLORS[0])
    axes.xaxis.set_major_locator(whole_numbers())
    axes.set_xlabel("pairs of items in another order")
    axes.set_ylabel("probability")
    axes.set_title(f"How far from the agent? (dispersion {fit.dispersion:.3g})", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_scores(fit: KDEFit, axes: Axes) -> None:
    dispersions, scores = fit.tried[fit.tried[:, 1] > -np.inf].T
    best = int(scores.argmax())
    axes.plot(dispersions, scores, "-", marker=".", color=COLORS[0])
    axes.plot(dispersions[best], scores[best], "o", color=COLORS[5], label=f"best: {dispersions[best]:.3g}")
    axes.set_xlabel("dispersion")
    axes.set_ylabel("mean log probability of an agent left out")
    axes.set_title("How wide should it be?", fontsize="medium")
    axes.legend(fontsize="small", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


PICTURES = {"overview": overview}
