"""Pictures of a fitted mixture of Mallows models: its components, how it was fitted, how many there are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.angle.fit import AngleFit
from permix.baselines.kde_density import KernelDensity
from permix.data.labels import Array
from permix.distributions.mallows import Mallows
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mixture.fit import MixtureFit
from permix.errors import DataError
from permix.mallows.fit import MallowsFit
from permix.mallows.results import climbing_iterations
from permix.plots.style import COLOURS, finished, new_axes, new_figure, shortened, whole_figure, whole_numbers
from permix.selection.select_components import ComponentSelection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Larger mixtures are drawn as their largest components.
MAX_PANELS = 12
MAX_ITEMS = 20
MAX_NAME = 28
# Exact rank probabilities take n³ operations; with more items than this they are taken from draws.
MAX_EXACT_ITEMS = 400
N_DRAWS = 4000
INTERVAL = (0.05, 0.95)
# Dots of a light yellow are lost on white.
DARK = tuple(colour for colour in COLOURS if colour != "#F0E442")


def components(
    model: Any, path: str | os.PathLike[str] | None = None, *, max_items: int = MAX_ITEMS
) -> Figure:
    """Draw each component: its items from the top of its center, with the ranks they have in its rankings.

    A dot is an item's expected rank under the component, its line goes from the 5 % to the 95 % quantile of
    that rank: short lines are what the people of a component agree on.

    Parameters
    ----------
    model : MallowsMixture or its fit
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    max_items : int
        Draw at most this many items, those at the top of each center.

    Returns
    -------
    matplotlib figure
    """
    if max_items < 1:
        raise DataError(f"max_items={max_items!r} must be 1 or more")
    mixture = _fit_of(model).components
    n_panels, n_shown = min(mixture.n_components, MAX_PANELS), min(mixture.n_items, max_items)
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    figure = new_figure(4.4 * n_columns, (1.1 + 0.24 * max(n_shown, 4)) * n_rows + 0.4)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    laws = [mixture.component(k) for k in range(n_panels)]
    intervals = [rank_intervals(law, n_shown) for law in laws]
    # One scale for all panels, so that lengths compare: all of a short list, the needed part of a long one.
    last = mixture.n_items
    if n_shown < last:
        last = min(round(1.05 * max(int(high.max()) for _, _, high in intervals)), last)
    for k, axes in enumerate(panels[:n_panels]):
        draw_ranks(axes, laws[k].center[:n_shown], intervals[k], last, DARK[k % len(DARK)])
        axes.set_title(
            f"kind {k + 1} · {100 * mixture.weights[k]:.1f} % · dispersion {mixture.dispersions[k]:.2g}",
            fontsize="medium",
        )
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    some = f"top {n_shown} of " if n_shown < mixture.n_items else ""
    many = f"the {n_panels} largest of " if n_panels < mixture.n_components else ""
    plural = "s" if mixture.n_components > 1 else ""
    figure.suptitle(
        f"{many}{mixture.n_components} component{plural}, {some}{mixture.n_items:,} items:\n"
        "expected rank and where 90 % of the ranks lie",
        fontsize="medium",
    )
    return finished(figure, path)


def draw_ranks(
    axes: Axes, names: Sequence[Any], interval: tuple[Array, Array, Array], last: int, colour: str
) -> None:
    """Draw items from top to bottom: mean rank, and a line from a low to a high one."""
    mean, low, high = interval
    n_shown = len(mean)
    places = np.arange(1, n_shown + 1)
    axes.hlines(places, low, high, color=colour, linewidth=5, alpha=0.35)
    axes.plot(mean, places, "o", color=colour, markersize=4.5)
    axes.set_yticks(places, [shortened(name, MAX_NAME) for name in names])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylim(n_shown + 0.6, 0.4)
    axes.set_xlim(1 - 0.03 * last, 1.03 * last)
    axes.set_xticks(rank_ticks(last))
    axes.set_xlabel("rank (1 = best)", fontsize="small")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)


def rank_ticks(last: int) -> list[int]:
    """Every rank where there are few, else the first and some round ones."""
    if last <= 12:
        return list(range(1, last + 1))
    step = next(step for size in range(10) for step in (5 * 10**size, 10 * 10**size) if last <= 6 * step)
    return [1, *range(step, last + 1, step)]


def rank_intervals(component: Mallows, n_shown: int) -> tuple[Array, Array, Array]:
    """Return mean, 5 % and 95 % quantile of the rank, 1 = best, of the first items of the center.

    Exact up to 400 items, from 4000 draws beyond.
    """
    items = np.asarray(component.center_order[:n_shown])
    n = component.n_items
    if n <= MAX_EXACT_ITEMS:
        law = component.rank_marginals()[items]
    else:
        ranks = component.sample(N_DRAWS, random_state=0).ranks()[:, items].astype(np.int64)
        law = np.stack([np.bincount(column - 1, minlength=n) / N_DRAWS for column in ranks.T])
    upto = np.cumsum(law, axis=1)
    low, high = ((upto < level * upto[:, -1:]).sum(axis=1) + 1 for level in INTERVAL)
    return law @ np.arange(1, n + 1), low, high


def em_history(model: Any, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw how the log-likelihood rose in the best run, and where the other restarts ended.

    The band is two Monte Carlo standard errors wide to either side; exact fits have none.

    Parameters
    ----------
    model : MallowsMixture or its fit
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    fit = _fit_of(model)
    if fit.n_iterations == 0:
        raise DataError("the fit was stopped before its first iteration, so there is no history to draw")
    axes = new_axes(ax)
    steps = np.arange(1, fit.n_iterations + 1)
    values, errors = np.asarray(fit.history)[:, 0], np.asarray(fit.history)[:, 1]
    axes.plot(steps, values, "-", marker="." if len(steps) <= 60 else "", color=COLOURS[0], label="best run")
    if np.nanmax(errors, initial=0.0) > 0:
        axes.fill_between(
            steps, values - 2 * errors, values + 2 * errors, color=COLOURS[0], alpha=0.25, linewidth=0
        )
    reached = np.asarray(fit.restart_log_likelihoods)
    if len(reached) > 1:
        axes.plot(
            np.full(len(reached), steps[-1] + max(1.0, 0.04 * len(steps))),
            reached,
            "_",
            color=COLOURS[5],
            markersize=11,
            label=f"where {len(reached)} restarts ended",
        )
        axes.legend(fontsize="small", frameon=False)
    # The marks of the restarts stand beyond the last iteration and have no number.
    axes.set_xticks([tick for tick in whole_numbers().tick_values(1, steps[-1]) if 1 <= tick <= steps[-1]])
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.set_xlabel("iteration")
    axes.set_ylabel("log-likelihood")
    state = (
        "interrupted" if fit.interrupted else "converged" if fit.converged else "stopped before it converged"
    )
    n = climbing_iterations(fit)
    axes.set_title(f"{state} after {n} iteration{'s' if n > 1 else ''}")
    finished(whole_figure(axes), path)
    return axes


def component_choice(
    selection: Any, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the log-likelihood of agents held out, with its standard error, by number of components.

    Where a criterion was asked for, such as DIC, that is drawn instead.

    Parameters
    ----------
    selection : ComponentSelection, or a frame or dict with the columns of its table
        ``n_components``, ``train``, ``validation``, ``standard_error``.
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    table = getattr(selection, "table", selection)
    if getattr(selection, "criterion", "held-out") != "held-out":
        return _criterion_choice(selection, path, ax)
    try:
        numbers, train, validation, error = (
            np.asarray(table[name], dtype=np.float64)
            for name in ("n_components", "train", "validation", "standard_error")
        )
    except (KeyError, TypeError, IndexError, ValueError):
        raise DataError(
            "component_choice draws what select_components returns: a table with the columns n_components, "
            f"train, validation and standard_error, not {type(selection).__name__}"
        ) from None
    axes = new_axes(ax)
    best = int(np.nanargmax(validation))
    axes.plot(numbers, train, ".--", color="0.6", label="agents fitted")
    axes.errorbar(
        numbers,
        validation,
        yerr=error,
        fmt="o-",
        color=COLOURS[0],
        markersize=4,
        capsize=3,
        label="agents held out",
    )
    _mark_choice(axes, selection, numbers, validation, best)
    axes.set_ylabel("log-likelihood per agent")
    axes.legend(fontsize="small", frameon=False)
    finished(whole_figure(axes), path)
    return axes


def _criterion_choice(
    selection: ComponentSelection, path: str | os.PathLike[str] | None, ax: Axes | None
) -> Axes:
    """Draw a criterion on all data by number of components."""
    numbers = selection.table["n_components"].to_numpy(dtype=np.float64)
    values = selection.table[selection.criterion].to_numpy(dtype=np.float64)
    axes = new_axes(ax)
    axes.plot(numbers, values, "o-", color=COLOURS[0], markersize=4)
    _mark_choice(axes, selection, numbers, values, numbers.tolist().index(selection.best))
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.set_ylabel(f"{selection.criterion.upper()} (small = good)")
    axes.legend(fontsize="small", frameon=False)
    finished(whole_figure(axes), path)
    return axes


def _mark_choice(axes: Axes, selection: Any, numbers: Array, values: Array, best: int) -> None:
    """Draw a ring around the best number and a line at the one chosen, and name the axis of numbers."""
    axes.plot(
        numbers[best],
        values[best],
        "o",
        color=COLOURS[5],
        markersize=9,
        fillstyle="none",
        markeredgewidth=1.8,
        label=f"best: {numbers[best]:.0f}",
    )
    chosen = getattr(selection, "chosen", numbers[best])
    if chosen != numbers[best]:
        axes.axvline(chosen, color="0.7", linestyle=":", zorder=0, label=f"chosen: {chosen}")
    if len(numbers) <= 20:
        axes.set_xticks(numbers)
    else:
        axes.xaxis.set_major_locator(whole_numbers())
    axes.set_xlabel("number of components")
    axes.set_title("How many components?")


def _fit_of(model: Any) -> MallowsFit:
    """What a fitted estimator holds; a fit is taken as it is."""
    fit = getattr(model, "_fit", model)
    if isinstance(fit, MallowsFit):
        return fit
    if isinstance(model, ComponentSelection):
        raise DataError(
            "a ComponentSelection compares mixtures: pass its .model, or draw it with plots.component_choice"
        )
    if isinstance(fit, KernelDensity) or type(model).__name__ == "MallowsKDE":
        raise DataError("a MallowsKDE has no components; this picture is for a MallowsMixture")
    if isinstance(fit, MixtureFit):
        raise DataError("a DPMixture is no mixture of Mallows models; draw it with plots.overview")
    if isinstance(fit, DPMallowsFit):
        raise DataError(
            "a DPMallowsMixture has clusters with a decay for each rank; draw it with plots.kinds"
        )
    if isinstance(fit, AngleFit):
        raise DataError("an AngleMixture has scores of items; draw it with plots.consensus_scores")
    raise DataError(f"{type(model).__name__} is not a fitted mixture; call fit first")
