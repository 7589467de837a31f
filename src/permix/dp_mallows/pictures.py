"""Pictures of a Dirichlet-process mixture of generalized Mallows models: groups, and how sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.results import ClusterSummaries, weighted_quantiles
from permix.errors import DataError
from permix.plots.partition_pictures import draw_number, draw_similarity, draw_traces
from permix.plots.ranks import DARK, MAX_PANELS, draw_ranks, rank_ticks
from permix.plots.style import checked_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ITEMS = 12
# Inches of a panel: its width, a line of an item, and the decays below.
WIDTH, LINE, DECAYS = 4.4, 0.24, 1.5
# Intervals of decays that fewer lists than this inform do not stretch the scale.
INFORMED = 10


def groups(fit: DPMallowsFit, *, figure: Figure | None = None, max_items: int = MAX_ITEMS) -> Figure:
    """Draw each group: the first items of its center with their ranks, and below them the decay by rank.

    A dot is the posterior median and a line goes from 5 % to 95 %. They describe the *center* of a group:
    how sure we are where an item stands in it. The decay says how surely members choose, at each rank, what
    the center has next. Hollow dots are ranks that no list of the group reaches: there the prior speaks.

    Parameters
    ----------
    fit : DPMallowsFit
    figure : matplotlib figure, optional
        Where to draw.
    max_items : int
        Draw at most this many items, those at the top of each center.

    Returns
    -------
    matplotlib figure

    Notes
    -----
    The largest groups are drawn, twelve at most. Groups of one agent are left out where others are not.
    """
    if max_items < 1:
        raise DataError(f"max_items={max_items!r} must be 1 or more")
    summaries = ClusterSummaries(fit)
    n_panels = min(max(int((fit.cluster_sizes > 1).sum()), 1), MAX_PANELS)
    n_items, n_shown = len(fit.items), min(len(fit.items), max_items)
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    heights = [0.7 + LINE * max(n_shown, 4), DECAYS]
    figure = checked_figure(figure, WIDTH * n_columns, sum(heights) * n_rows + 0.6)
    panels = figure.subplots(2 * n_rows, n_columns, squeeze=False, height_ratios=heights * n_rows)
    tables = [summaries.center_table(e).head(n_shown) for e in range(n_panels)]
    # One scale for all panels, so that lengths compare; of long lists the part that most of the lines need.
    last = n_items
    if n_shown < n_items:
        last = min(max(int(table["rank_high"].max()) for table in tables), n_items, 3 * n_shown)
    for e, table in enumerate(tables):
        upper, lower = panels[2 * (e // n_columns) : 2 * (e // n_columns) + 2, e % n_columns]
        color = DARK[e % len(DARK)]
        low, high = (table[name].to_numpy() for name in ("rank_low", "rank_high"))
        draw_ranks(
            upper, table["item"].tolist(), (_median_ranks(summaries, e, n_shown), low, high), last, color
        )
        upper.set_title(_title(summaries, e), fontsize="medium")
        _draw_decays(lower, summaries, e, color, _highest(summaries, n_panels))
    for axes in panels.ravel(order="F"):
        if not axes.has_data():
            axes.set_visible(False)
    figure.suptitle(_suptitle(fit, n_panels, n_shown), fontsize="medium")
    return figure


def _median_ranks(summaries: ClusterSummaries, e: int, n_shown: int) -> Array:
    """Return medians, 1 = best: a few members in clusters far away move a mean out of the interval."""
    rows, shares = summaries.members(e)
    ranks = summaries.ranks[summaries.centers.orders[e, :n_shown]][:, rows]
    return weighted_quantiles(ranks, shares, (0.5,))[0].astype(np.int64) + 1


def _title(summaries: ClusterSummaries, e: int) -> str:
    n = len(summaries.fit.labels)
    low, high = 100 * summaries.size_intervals[:, e] / n
    return f"group {e + 1} · {100 * summaries.shares[e]:.1f} % ({low:.1f}–{high:.1f})"


def _suptitle(fit: DPMallowsFit, n_panels: int, n_shown: int) -> str:
    many = f"the {n_panels} largest of " if n_panels < fit.n_clusters else ""
    some = f"top {n_shown} of " if n_shown < len(fit.items) else ""
    plural = "s" if fit.n_clusters > 1 else ""
    return (
        f"{many}{fit.n_clusters} group{plural}, {some}{len(fit.items):,} items:\n"
        "rank in the center and decay by rank: median and 90 % interval"
    )


def _highest(summaries: ClusterSummaries, n_panels: int) -> float:
    """Return the top of the scale of decays: all intervals that data inform fit below it."""
    informed = summaries.lists_at_stage[:n_panels] >= INFORMED
    ends = np.where(informed, summaries.theta_intervals[1, :n_panels], summaries.theta[:n_panels])
    return 1.1 * float(ends.max())


def _draw_decays(axes: Axes, summaries: ClusterSummaries, e: int, color: str, highest: float) -> None:
    rows, shares = summaries.members(e)
    theta = weighted_quantiles(summaries.fit.clusters.theta[rows].T, shares, (0.5,))[0]
    low, high = summaries.theta_intervals[:, e]
    ranks = np.arange(1, len(theta) + 1)
    reached = summaries.lists_at_stage[e] > 0
    axes.vlines(ranks, low, high, color=color, linewidth=5, alpha=0.35)
    axes.plot(ranks[reached], theta[reached], "o", color=color, markersize=4.5)
    axes.plot(ranks[~reached], theta[~reached], "o", color=color, markersize=4.5, fillstyle="none")
    cut = high > highest
    if cut.any():
        axes.plot(ranks[cut], np.full(cut.sum(), 0.97 * highest), "^", color=color, markersize=4)
    axes.set_ylim(0.0, highest)
    axes.set_xlim(0.4, len(ranks) + 0.6)
    axes.set_xticks(rank_ticks(len(ranks)))
    axes.set_xlabel("rank", fontsize="small")
    axes.set_ylabel("decay", fontsize="small")
    axes.tick_params(labelsize="small")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def n_groups(fit: DPMallowsFit, *, ax: Axes | None = None) -> Axes:
    """Draw the posterior of the number of groups, one bar a number, chains side by side."""
    return draw_number(fit.draws.arrays["n_clusters"], ax=ax)


def similarity(fit: DPMallowsFit, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that two agents are in one group, agents sorted by group."""
    return draw_similarity(fit.labels, fit.draws.arrays["labels"], "agents", ax=ax)


def traces(fit: DPMallowsFit, *, figure: Figure | None = None) -> Figure:
    """Draw the number of groups and the log joint of every draw, a line for each chain."""
    draws = fit.draws.arrays
    return draw_traces(
        [("number of groups", draws["n_clusters"]), ("log joint", draws["log_joint"])], figure=figure
    )


PICTURES = {
    "overview": groups,
    "groups": groups,
    "n_groups": n_groups,
    "similarity": similarity,
    "traces": traces,
}
