"""Draws of partitions, drawn: how many groups, who belongs together, and whether chains agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.labels import Array
from permix.partitions import similarity_matrix
from permix.plots.style import COLORS, checked_figure, new_axes, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A similarity picture has no more pixels than this; larger data are drawn as an even sample of rows.
MAX_SIMILARITY_ROWS = 1500


def draw_number(draws: Array, things: str = "groups", *, ax: Axes | None = None) -> Axes:
    """Draw the posterior of a number, one bar a number, chains side by side; ``draws`` is (chain, draw)."""
    axes = new_axes(ax)
    numbers = np.arange(draws.min(), draws.max() + 1)
    width = 0.8 / len(draws)
    for chain, row in enumerate(draws):
        share = [(row == number).mean() for number in numbers]
        shift = (chain - (len(draws) - 1) / 2) * width
        axes.bar(numbers + shift, share, width, color=COLORS[chain % len(COLORS)], label=f"chain {chain + 1}")
    if len(numbers) <= 15:
        axes.set_xticks(numbers)
    axes.set_xlabel(f"number of {things}")
    axes.set_ylabel("posterior probability")
    axes.set_title(f"How many {things}?")
    if len(draws) > 1:
        axes.legend(fontsize="small", frameon=False)
    return axes


def draw_similarity(
    labels: Array, draws: Array, things: str = "observations", *, ax: Axes | None = None
) -> Axes:
    """Draw the probability that two are in one group, sorted by ``labels``; ``draws`` is (chain, draw, n)."""
    axes = new_axes(ax)
    order = np.argsort(labels, kind="stable")
    if len(order) > MAX_SIMILARITY_ROWS:
        order = order[np.linspace(0, len(order) - 1, MAX_SIMILARITY_ROWS).astype(np.int64)]
    chances = similarity_matrix(draws[..., order])
    image = axes.imshow(chances, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label="probability of the same group")
    who = "Who belongs" if things == "observations" else f"Which {things} belong"
    axes.set_title(f"{who} together?")
    axes.set_xlabel(f"{things}, sorted by group")
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def draw_traces(quantities: Sequence[tuple[str, Array]], *, figure: Figure | None = None) -> Figure:
    """Draw quantities of every draw, one panel each, a line for each chain.

    Chains that agree lie on top of each other; a chain that stays above or below the others is stuck.
    """
    figure = checked_figure(figure, 8, 0.6 + 2.0 * len(quantities))
    panels = figure.subplots(len(quantities), 1, sharex=True, squeeze=False).ravel()
    for axes, (name, draws) in zip(panels, quantities, strict=True):
        for chain, row in enumerate(draws):
            line: dict[str, Any] = {"color": COLORS[chain % len(COLORS)], "linewidth": 0.8, "alpha": 0.8}
            axes.plot(np.arange(1, len(row) + 1), row, label=f"chain {chain + 1}", **line)
        axes.ticklabel_format(axis="y", useOffset=False, style="plain")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylabel(name)
        if draws.dtype.kind in "iu":
            axes.yaxis.set_major_locator(whole_numbers())
    panels[-1].set_xlabel("draw")
    if len(quantities[0][1]) > 1:
        panels[0].legend(fontsize="small", frameon=False, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
    return figure


def n_groups(fit: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the posterior of the number of groups, one bar a number, chains side by side."""
    return draw_number(fit.draws.arrays["n_groups"], ax=ax)


def traces(fit: Any, *, figure: Figure | None = None) -> Figure:
    """Draw the number of groups and the log joint of every draw, a line for each chain."""
    names = {"number of groups": "n_groups", "log joint": "log_joint"}
    return draw_traces([(name, fit.draws.arrays[of]) for name, of in names.items()], figure=figure)
