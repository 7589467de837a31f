"""Pictures of a fitted mixture of Mallows models: its groups, and how it was fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.distributions.mallows import Mallows
from permix.errors import DataError
from permix.mallows.results import MallowsFit, climbing_iterations
from permix.plots.history_picture import draw_history, how_it_ended
from permix.plots.items import add_legend, item_style
from permix.plots.ranks import DARK, MAX_ITEMS, MAX_PANELS, checked_max_items, draw_ranks, groups_title
from permix.plots.style import checked_figure
from permix.posterior.intervals import ranks_holding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Exact rank probabilities take n³ operations; with more items than this they are taken from draws.
MAX_EXACT_ITEMS = 400
N_DRAWS = 4000
INTERVAL = (0.05, 0.95)


def groups(fit: MallowsFit, *, figure: Figure | None = None, max_items: int = MAX_ITEMS) -> Figure:
    """Draw each group: its items from the top of its center, with the ranks they have in its rankings.

    A dot is an item's expected rank in the group, its line goes from the 5 % to the 95 % quantile of that
    rank: short lines are what the people of a group agree on.

    At most ``max_items`` items are drawn, those at the top of each center.
    """
    mixture = fit.components
    n_panels = min(mixture.n_components, MAX_PANELS)
    n_shown = min(mixture.n_items, checked_max_items(max_items))
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    figure = checked_figure(figure, 4.4 * n_columns, (1.1 + 0.24 * max(n_shown, 4)) * n_rows + 0.4)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    style = item_style(fit, mixture.items)
    distributions = [mixture.component(k) for k in range(n_panels)]
    intervals = [rank_intervals(distribution, n_shown) for distribution in distributions]
    # One scale for all panels, so that lengths compare: all of a short list, the needed part of a long one.
    last = mixture.n_items
    if n_shown < last:
        last = min(round(1.05 * max(int(high.max()) for _, _, high in intervals)), last)
    digits = 2 if mixture.distance == "kendall" else 4
    for k, axes in enumerate(panels[:n_panels]):
        center, color = distributions[k].center[:n_shown], DARK[k % len(DARK)]
        draw_ranks(axes, center, intervals[k], last, color, style)
        axes.set_title(
            f"group {k + 1} · {100 * mixture.weights[k]:.1f} % · "
            f"dispersion {mixture.dispersions[k]:.{digits}g}",
            fontsize="medium",
        )
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    title = groups_title(n_panels, mixture.n_components, n_shown, mixture.n_items)
    figure.suptitle(f"{title}:\nexpected rank and where 90 % of the ranks lie", fontsize="medium")
    add_legend(figure, style)
    return figure


def rank_intervals(component: Mallows, n_shown: int) -> tuple[Array, Array, Array]:
    """Return mean, 5 % and 95 % quantile of the rank, 1 = best, of the first items of the center.

    Ends are widened to the mean where it lies outside.

    Exact up to 400 items, from 4000 draws beyond.
    """
    items = np.asarray(component.center_order[:n_shown])
    n = component.n_items
    if n <= MAX_EXACT_ITEMS:
        marginals = component.rank_marginals()[items]
    else:
        ranks = component.sample(N_DRAWS, random_state=0).ranks()[:, items].astype(np.int64)
        marginals = np.stack([np.bincount(column - 1, minlength=n) / N_DRAWS for column in ranks.T])
    upto = np.cumsum(marginals, axis=1)
    low, high = ((upto < level * upto[:, -1:]).sum(axis=1) + 1 for level in INTERVAL)
    mean = marginals @ np.arange(1, n + 1)
    return mean, *ranks_holding(mean, low, high)


def history(fit: MallowsFit, *, ax: Axes | None = None) -> Axes:
    """Draw how the log-likelihood rose in the best run, and where the other starts ended.

    The band is two Monte Carlo standard errors wide to either side; exact fits have none.
    """
    if fit.n_iterations == 0:
        raise DataError("the fit was stopped before its first iteration, so there is no history to draw")
    values, errors = np.asarray(fit.history).T
    axes = draw_history(values, errors, np.asarray(fit.start_log_likelihoods), ax=ax)
    n = climbing_iterations(fit)
    axes.set_title(how_it_ended(fit.converged, fit.interrupted, n, "iteration", "iterations"))
    return axes


PICTURES = {"overview": groups, "groups": groups, "history": history}
