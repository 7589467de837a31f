"""Pictures of mixtures of angle-based models: the scores of the items in every group, and the climb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.angle.fit import AngleFit
from permix.angle.results import component_table, consensus_table, objective_name
from permix.data.labels import Array
from permix.errors import DataError
from permix.plots.history_picture import draw_history, how_it_ended
from permix.plots.items import ItemStyle, add_legend, color_ticks, item_style
from permix.plots.ranks import DARK, MAX_NAME, MAX_PANELS, checked_max_items, groups_title
from permix.plots.style import MARKERS, checked_axes, checked_figure, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ITEMS = 100
# Inches of a line for one item: the least, and what each group on it needs.
LINE, LINE_OF_GROUP = 0.21, 0.085
WIDTH = 6.4
BAR = 0.5
LEGEND_COLUMNS = 2


class Scores(NamedTuple):
    """What is drawn of one group: a name, and its items' scores; ``low`` and ``high`` are None for EM."""

    name: str
    scores: Array
    low: Array | None
    high: Array | None


def groups(fit: AngleFit, *, max_items: int = MAX_ITEMS, ax: Axes | None = None) -> Axes:
    """Draw the score of every item in each center, with its 90 % interval, a color for each group.

    Items go from top to bottom as the largest group ranks them. Left is preferred; how far apart two items
    are says how sure people of the group are about their order. Fits by EM have no intervals.

    At most ``max_items`` items are drawn, those with the most extreme scores in any group.
    """
    drawn, style = scores_of(fit), item_style(fit, fit.components.items)
    return draw_groups(fit.components.items, drawn, fit.components.n_components, max_items, ax, style)


def draw_groups(
    items: tuple[Any, ...],
    drawn: list[Scores],
    n_groups: int,
    max_items: int,
    ax: Axes | None,
    style: ItemStyle,
) -> Axes:
    """Draw the scores of items in some of ``n_groups`` groups."""
    shown = _shown_items(drawn, checked_max_items(max_items))
    height = scores_height(len(shown), len(drawn))
    axes = new_figure(WIDTH, height).subplots() if ax is None else checked_axes(ax)
    draw_scores(axes, items, drawn, shown, style)
    some = f"{len(shown)} of {len(items):,} items, the most extreme" if len(shown) < len(items) else ""
    many = f"the {len(drawn)} largest of {n_groups} groups" if len(drawn) < n_groups else ""
    if some or many:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{'; '.join(part for part in (some, many) if part)}")
    return axes


def scores_height(n_items: int, n_groups: int) -> float:
    """Inches that a picture of so many items and groups needs."""
    legend = 0.2 * -(-n_groups // LEGEND_COLUMNS)
    return 1.0 + legend + max(LINE, LINE_OF_GROUP * n_groups) * max(n_items, 4)


def draw_scores(
    axes: Axes, items: tuple[Any, ...], drawn: list[Scores], shown: Array, style: ItemStyle
) -> None:
    """Draw items from top to bottom, on each line one dot and whisker for each group, the first uppermost."""
    n, k = len(shown), len(drawn)
    places = np.arange(n)
    # Groups share the line of an item; they keep off the next line's.
    step = 0.72 / k
    axes.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    for row in range(0, n, 2):  # bands lead the eye from a name to its dots
        axes.axhspan(row - 0.5, row + 0.5, color="0.965", linewidth=0, zorder=-1)
    for number, group in enumerate(drawn):
        y = places + (number - (k - 1) / 2) * step
        color = DARK[number % len(DARK)]
        if group.low is not None and group.high is not None:
            axes.hlines(y, group.low[shown], group.high[shown], color=color, linewidth=1.6, alpha=0.75)
        marker, size = MARKERS[(number // len(DARK)) % len(MARKERS)], 4.5 if k <= 4 else 3.5
        axes.plot(group.scores[shown], y, marker, color=color, markersize=size, label=group.name, zorder=3)
    axes.set_yticks(places, [shortened(style.label(items[i], MAX_NAME), MAX_NAME) for i in shown])
    color_ticks(axes.get_yticklabels(), [items[i] for i in shown], style)
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlabel("score (left = preferred)", fontsize="small")
    axes.spines[["top", "right", "left"]].set_visible(False)
    look = {"fontsize": "small", "frameon": False, "handletextpad": 0.3, "columnspacing": 1.2}
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=min(k, LEGEND_COLUMNS), **look)


def overview(fit: AngleFit, *, figure: Figure | None = None) -> Figure:
    """Draw a mixture of angle-based models: shares and concentrations of its groups, and their scores."""
    items, n_groups, drawn = fit.components.items, fit.components.n_components, scores_of(fit)
    shown = _shown_items(drawn, MAX_ITEMS)
    height, bars = max(2.6, scores_height(len(shown), len(drawn))), 1.0 + BAR * max(len(drawn), 3)
    figure = checked_figure(figure, WIDTH + 3.0, height)
    # Few bars are not blown up to the height of a long list of items.
    grid = figure.add_gridspec(
        2, 2, width_ratios=[1.0, 2.4], height_ratios=[min(bars, height - 0.1), max(height - bars, 0.1)]
    )
    left, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])
    _draw_weights(left, fit, len(drawn))
    style = item_style(fit, items)
    draw_scores(right, items, drawn, shown, style)
    add_legend(figure, style)
    title = groups_title(len(drawn), n_groups, len(shown), len(items), top="")
    sure = "" if fit.posterior is None else " with 90 % intervals"
    figure.suptitle(f"{title}: scores of the centers{sure}", fontsize="medium")
    return figure


def _draw_weights(axes: Axes, fit: AngleFit, n_shown: int) -> None:
    """Draw shares of the groups as bars, with what is known about their concentrations beside them."""
    table = component_table(fit)
    weights = 100 * table["share"].to_numpy()[:n_shown]
    places = np.arange(n_shown)
    axes.barh(places, weights, 0.6, color=[DARK[k % len(DARK)] for k in range(n_shown)], alpha=0.85)
    for k in range(n_shown):
        text = f"concentration {table['concentration'][k]:.3g}"
        if "low" in table:
            text += f" ({table['low'][k]:.3g}–{table['high'][k]:.3g})"
        axes.text(0.0, k + 0.36, text, va="top", fontsize="x-small", color="0.25")
    axes.set_yticks(places, [f"group {k + 1}" for k in range(n_shown)])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylim(max(n_shown, 3) - 0.2, -0.5)
    axes.set_xlim(0.0, max(100.0 if n_shown == 1 else 1.15 * float(weights.max()), 1.0))
    axes.set_xlabel("share in %", fontsize="small")
    axes.spines[["top", "right", "left"]].set_visible(False)


def history(fit: AngleFit, *, ax: Axes | None = None) -> Axes:
    """Draw how the log-likelihood or the evidence bound rose in the best climb, and where others ended."""
    if fit.draws is not None:
        raise DataError("draws from the posterior do not climb; diagnostics() says whether chains agree")
    values = np.asarray(fit.history)
    what = {"elbo": "evidence lower bound"}.get(objective_name(fit), "log-likelihood")
    reached = np.asarray(fit.start_objectives)
    axes = draw_history(values, np.zeros(len(values)), reached, of=what, step="pass", ax=ax)
    axes.set_title(how_it_ended(fit.converged, fit.interrupted, len(values), "pass", "passes"))
    return axes


def scores_of(fit: AngleFit) -> list[Scores]:
    """Return what is drawn of each group, the largest first."""
    components, table = fit.components, consensus_table(fit)
    drawn = []
    for k in range(min(components.n_components, MAX_PANELS)):
        part = table[table["group"] == k]
        place = np.argsort(components.orders[k])
        low, high = (part[name].to_numpy()[place] if name in part else None for name in ("low", "high"))
        name = f"group {k + 1} · {100 * components.weights[k]:.1f} %"
        drawn.append(Scores(name, part["score"].to_numpy()[place], low, high))
    return drawn


def _shown_items(drawn: list[Scores], most: int) -> Array:
    """Return the items to draw as the first group ranks them: all, or those that stand out in any group."""
    scores = np.stack([group.scores for group in drawn])
    kept = np.arange(scores.shape[1])
    if len(kept) > most:
        kept = np.argsort(-np.abs(scores).max(axis=0), kind="stable")[:most]
    return np.asarray(kept[np.argsort(scores[0, kept], kind="stable")])


PICTURES = {"overview": overview, "groups": groups, "history": history}
