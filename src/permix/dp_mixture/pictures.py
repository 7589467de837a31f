"""Pictures of a fitted mixture: the groups, how many there are, and who belongs together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.dp_mixture.fit import MixtureFit
from permix.plots.partition_pictures import draw_similarity, n_groups, traces
from permix.plots.style import COLORS, MARKERS, checked_figure, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# More groups than this have no colors and names of their own: of so many the largest are drawn so.
MOST_NAMED, NAMED_OF_MANY, LONG = 16, 12, 8
OTHERS = "0.75"


def groups(fit: MixtureFit, *, ax: Axes | None = None) -> Axes:
    """Draw the data, colored by group: one or two columns as they are, more as their principal axes.

    Of more than 16 groups the 12 largest are colored, and the rows of all others are gray.
    """
    axes = new_axes(ax)
    points, names = _plane(fit)
    n_named = fit.n_clusters if fit.n_clusters <= MOST_NAMED else NAMED_OF_MANY
    others = fit.labels >= n_named
    style: dict[str, Any] = {"s": 14, "alpha": 0.75, "linewidths": 0}
    for k in range(n_named):
        x, y = points[fit.labels == k].T
        color, marker = COLORS[k % len(COLORS)], MARKERS[(k // len(COLORS)) % len(MARKERS)]
        axes.scatter(x, y, color=color, marker=marker, label=f"{k + 1} ({len(x):,})", **style)
    if others.any():
        label = f"{fit.n_clusters - n_named:,} others ({int(others.sum()):,})"
        axes.scatter(*points[others].T, color=OTHERS, label=label, zorder=0, **style)
    title = f"{fit.n_clusters} group{'s' if fit.n_clusters > 1 else ''} of {fit.n:,} observations"
    axes.set(xlabel=names[0], ylabel=names[1], title=title)
    # A long legend would hide what it is about.
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if n_named > LONG else {}
    axes.legend(title="group (size)", fontsize="small", framealpha=0.9, edgecolor="none", **beside)
    return axes


def similarity(fit: MixtureFit, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that two observations are in one group, observations sorted by group."""
    return draw_similarity(fit.labels, fit.draws.arrays["labels"], ax=ax)


def overview(fit: MixtureFit, *, figure: Figure | None = None) -> Figure:
    """Draw the groups, how many there are, and who belongs together, side by side."""
    figure = checked_figure(figure, 14, 4.2)
    left, middle, right = figure.subplots(1, 3)
    groups(fit, ax=left)
    n_groups(fit, ax=middle)
    similarity(fit, ax=right)
    return figure


def _plane(fit: MixtureFit) -> tuple[np.ndarray, tuple[str, str]]:
    """Two coordinates for every observation and their names."""
    points, as_they_are = fit.family.points(fit.data)
    # What is missing is drawn at the mean of its column.
    points = np.where(np.isnan(points), np.nanmean(points, axis=0), points)
    names = fit.columns
    if as_they_are and points.shape[1] == 1:
        # One column: spread the points sideways a little so that they can be told apart.
        spread = np.random.default_rng(0).uniform(-1, 1, len(points))
        return np.column_stack([points[:, 0], spread]), (names[0], "")
    if as_they_are and points.shape[1] == 2:
        return points, (names[0], names[1])
    u, s, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    axes = u[:, :2] * s[:2]
    if axes.shape[1] < 2:
        axes = np.column_stack([axes, np.zeros(len(axes))])
    share = s**2 / max(float((s**2).sum()), 1e-300)
    second = share[1] if len(share) > 1 else 0.0
    return axes, (f"first principal axis ({share[0]:.0%})", f"second principal axis ({second:.0%})")


PICTURES = {
    "overview": overview,
    "groups": groups,
    "n_groups": n_groups,
    "similarity": similarity,
    "traces": traces,
}
