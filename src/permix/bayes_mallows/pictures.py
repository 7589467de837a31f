"""Pictures of a Bayesian Mallows model: groups, ranks in their centers, and how sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.bayes_mallows.consensus import rank_probabilities
from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.results import GroupSummaries
from permix.bayes_mallows.words import dispersion_words
from permix.plots.items import add_legend, color_ticks, item_style
from permix.plots.partition_pictures import draw_similarity, n_groups, traces
from permix.plots.ranks import (
    DARK,
    MAX_ITEMS,
    MAX_NAME,
    MAX_PANELS,
    checked_max_items,
    draw_ranks,
    groups_title,
    rank_ticks,
)
from permix.plots.style import checked_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches of a panel: its width, and a line of an item.
WIDTH, LINE = 4.4, 0.24
# Numbers are written into cells of so few ranks.
MOST_WRITTEN = 15


def groups(fit: BayesianMallowsFit, *, figure: Figure | None = None, max_items: int = MAX_ITEMS) -> Figure:
    """Draw each group: the first items of its center with their ranks, and how united the group is.

    A dot is the posterior mean of a rank and a line goes from 5 % to 95 %: they describe the *center* of a
    group, and how sure we are where an item stands in it.

    At most ``max_items`` items are drawn, those at the top of each center, of the largest groups, twelve at
    most. Groups of one agent are left out where others are not.
    """
    summaries = GroupSummaries(fit)
    figure, panels, n_shown = _panels(fit, figure, max_items)
    style, n_items = item_style(fit, fit.items), len(fit.items)
    tables = [summaries.center_columns(e, 1) for e in range(len(panels))]
    last = n_items
    if n_shown < n_items:
        reach = max(int(max(table["rank_high"][:n_shown])) for table in tables)
        last = min(max(reach, n_shown), n_items)
    for e, (table, axes) in enumerate(zip(tables, panels, strict=True)):
        mean, low, high = (
            np.asarray(table[of][:n_shown]) for of in ("expected_rank", "rank_low", "rank_high")
        )
        draw_ranks(axes, table["item"][:n_shown], (mean, low, high), last, DARK[e % len(DARK)], style)
        axes.set_title(_title(fit, summaries, e), fontsize="medium")
    title = groups_title(len(panels), fit.n_clusters, n_shown, n_items)
    figure.suptitle(f"{title}:\nrank in the center, mean and 90 % interval", fontsize="medium")
    add_legend(figure, style)
    return figure


def heat(fit: BayesianMallowsFit, *, figure: Figure | None = None, max_items: int = MAX_ITEMS) -> Figure:
    """Draw, for each group, how probable every rank of every item is in its center.

    Items are in the order of the consensus; a dark cell alone in its row is a sure place. At most
    ``max_items`` items are drawn, those at the top of each center.
    """
    summaries = GroupSummaries(fit)
    figure, panels, n_shown = _panels(fit, figure, max_items)
    style, n_items = item_style(fit, fit.items), len(fit.items)
    orders = [np.asarray(summaries.centers.orders[e, :n_shown]) for e in range(len(panels))]
    chances = [rank_probabilities(summaries, e)[order] for e, order in enumerate(orders)]
    last = n_items
    if n_shown < n_items:
        last = max(n_shown, *(int(np.flatnonzero(each.max(axis=0) >= 0.01).max()) + 1 for each in chances))
    for e, axes in enumerate(panels):
        values = chances[e][:, :last]
        image = axes.imshow(values, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
        names = [fit.items[item] for item in orders[e].tolist()]
        axes.set_yticks(range(n_shown), [shortened(style.label(name, MAX_NAME), MAX_NAME) for name in names])
        color_ticks(axes.get_yticklabels(), names, style)
        ticks = rank_ticks(last)
        axes.set_xticks([tick - 1 for tick in ticks], [str(tick) for tick in ticks])
        axes.tick_params(length=0, labelsize="small")
        axes.set_xlabel("rank in the center (1 = best)", fontsize="small")
        if fit.n_clusters > 1:
            axes.set_title(f"group {e + 1} · {100 * summaries.shares[e]:.1f} %", fontsize="medium")
        if last <= MOST_WRITTEN:
            for row, column in np.argwhere(values >= 0.005).tolist():
                value = values[row, column]
                axes.text(
                    column,
                    row,
                    f"{100 * value:.0f}",
                    ha="center",
                    va="center",
                    fontsize="x-small",
                    color="white" if value > 0.6 else "black",
                )
    figure.colorbar(image, ax=panels, label="probability", shrink=0.6)
    title = groups_title(len(panels), fit.n_clusters, n_shown, n_items)
    figure.suptitle(f"{title}:\nhow probable each rank is, in percent", fontsize="medium")
    add_legend(figure, style)
    return figure


def _panels(fit: BayesianMallowsFit, figure: Figure | None, max_items: int) -> tuple[Figure, list[Axes], int]:
    """Return a figure, axes for the groups that are drawn, and how many items are."""
    n_panels = min(max(int((fit.cluster_sizes > 1).sum()), 1), MAX_PANELS)
    n_shown = min(len(fit.items), checked_max_items(max_items))
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    figure = checked_figure(figure, WIDTH * n_columns, (1.1 + LINE * max(n_shown, 4)) * n_rows + 0.4)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    return figure, list(panels[:n_panels]), n_shown


def _title(fit: BayesianMallowsFit, summaries: GroupSummaries, e: int) -> str:
    said = f"dispersion {dispersion_words(summaries, e)}"
    return said if fit.n_clusters == 1 else f"group {e + 1} · {100 * summaries.shares[e]:.1f} %\n{said}"


def similarity(fit: BayesianMallowsFit, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that two agents are in one group, agents sorted by group."""
    return draw_similarity(fit.labels, fit.draws.arrays["labels"], "agents", ax=ax)


PICTURES = {
    "overview": groups,
    "groups": groups,
    "heat": heat,
    "n_groups": n_groups,
    "similarity": similarity,
    "traces": traces,
}
