"""Pictures of a Dirichlet-process mixture of generalized Mallows models: groups, and how sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.results import ClusterSummaries
from permix.plots.items import add_legend, item_style
from permix.plots.partition_pictures import draw_similarity, n_groups, traces
from permix.plots.ranks import DARK, MAX_PANELS, checked_max_items, draw_ranks, groups_title, rank_ticks
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

    A dot is the posterior mean and a line goes from 5 % to 95 %, as in tables. They describe the *center* of
    a group: how sure we are where an item stands in it. The decay says how surely members choose, at each
    rank, what the center has next. Hollow dots are ranks that no list of the group reaches: there the prior
    speaks.

    At most ``max_items`` items are drawn, those at the top of each center.
    The largest groups are drawn, twelve at most. Groups of one agent are left out where others are not.
    """
    summaries = ClusterSummaries(fit)
    n_panels = min(max(int((fit.cluster_sizes > 1).sum()), 1), MAX_PANELS)
    n_items = len(fit.items)
    n_shown = min(n_items, checked_max_items(max_items))
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    heights = [0.7 + LINE * max(n_shown, 4), DECAYS]
    figure = checked_figure(figure, WIDTH * n_columns, sum(heights) * n_rows + 0.6)
    panels = figure.subplots(2 * n_rows, n_columns, squeeze=False, height_ratios=heights * n_rows)
    style = item_style(fit, fit.items)
    tables = [summaries.center_table(e, summaries.length).head(n_shown) for e in range(n_panels)]
    # One scale for all panels, so that lengths compare; of long lists the part that most of the lines need.
    informed = summaries.lists_at_stage[:n_panels] >= INFORMED
    ends = np.where(informed, summaries.theta_intervals[1, :n_panels], summaries.theta[:n_panels])
    highest, last = 1.1 * float(ends.max()), n_items
    if n_shown < n_items:
        last = min(max(int(table["rank_high"].max()) for table in tables), n_items, 3 * n_shown)
    for e, table in enumerate(tables):
        upper, lower = panels[2 * (e // n_columns) : 2 * (e // n_columns) + 2, e % n_columns]
        color = DARK[e % len(DARK)]
        mean, low, high = (table[name].to_numpy() for name in ("expected_rank", "rank_low", "rank_high"))
        draw_ranks(upper, table["item"].tolist(), (mean, low, high), last, color, style)
        low, high = 100 * summaries.share_intervals[:, e]
        share = f"{100 * summaries.shares[e]:.1f} % ({low:.1f}–{high:.1f})"
        upper.set_title(f"group {e + 1} · {share}", fontsize="medium")
        _draw_decays(lower, summaries, e, color, highest)
    for axes in panels.ravel(order="F"):
        if not axes.has_data():
            axes.set_visible(False)
    title = groups_title(n_panels, fit.n_clusters, n_shown, n_items)
    what = "rank in the center and decay by rank: mean and 90 % interval"
    figure.suptitle(f"{title}:\n{what}", fontsize="medium")
    add_legend(figure, style)
    return figure


def _draw_decays(axes: Axes, summaries: ClusterSummaries, e: int, color: str, highest: float) -> None:
    theta = summaries.theta[e]
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


def similarity(fit: DPMallowsFit, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that two agents are in one group, agents sorted by group."""
    return draw_similarity(fit.labels, fit.draws.arrays["labels"], "agents", ax=ax)


PICTURES = {
    "overview": groups,
    "groups": groups,
    "n_groups": n_groups,
    "similarity": similarity,
    "traces": traces,
}
