"""Models compared on data held out, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.errors import DataError
from permix.plots.style import COLORS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Standard errors to either side, as in the words of a comparison.
WIDTH = 2.0
# Models that are further behind than so many times the nearest few are named at the edge.
FAR = 8.0


def draw_comparison(found: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how far each model and each baseline is behind the best model, the best on top.

    Differences are paired (both score the same agents, cells or rows), in nats, with two standard errors of
    the difference to either side: an interval that holds 0 may be chance. What is very far behind stands at
    the edge, with its difference in words, so that the others can be told apart.
    """
    table = getattr(found, "table", None)
    if table is None or not {"difference", "difference_error", "kind"} <= set(table.columns):
        raise DataError(f"comparison draws what permix.compare returns, not {type(found).__name__}")
    differences = np.asarray(table["difference"], dtype=np.float64)
    errors = WIDTH * np.asarray(table["difference_error"], dtype=np.float64)
    axes = new_axes(ax, 6.4, 1.3 + 0.36 * len(table))
    near = np.sort(differences - errors)[::-1][: max(2, len(table) // 2)]
    edge = min(FAR * float(near.min()), -1e-3)
    rows = zip(table.index, table["kind"], differences, errors, strict=True)
    for place, (_, kind, difference, error) in enumerate(rows):
        color = COLORS[0] if kind == "model" else "0.45"
        if difference < edge:
            axes.annotate(
                f"◂ {difference:,.3g}", (edge, place), color=color, ha="left", va="center", fontsize="small"
            )
            continue
        marker = "o" if kind == "model" else "s"
        axes.errorbar(difference, place, xerr=error, fmt=marker, color=color, capsize=3, markersize=5)
    axes.axvline(0.0, color="0.7", linestyle=":", zorder=0)
    axes.set_yticks(range(len(table)), list(table.index))
    axes.set_ylim(len(table) - 0.5, -0.5)
    low = max(edge, float((differences - errors).min()))
    axes.set_xlim(low - 0.06 * abs(low), max(float((differences + errors).max()), 0.0) + 0.06 * abs(low))
    axes.set_xlabel("difference to the best model, in nats (bars: two standard errors)")
    axes.set_title(f"Which model predicts best? {found.best}")
    return axes
