"""Pictures of angle-based models: the scores of the items in every kind, and curves of classifiers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.angle.fit import AngleFit
from permix.angle.results import consensus_table
from permix.data.labels import Array
from permix.errors import DataError
from permix.mallows.pictures import DARK, MAX_NAME, MAX_PANELS
from permix.plots.style import MARKERS, checked_axes, finished, new_axes, new_figure, shortened, whole_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ITEMS = 100
# Inches of a line for one item: the least, and what each kind on it needs.
LINE, LINE_OF_KIND = 0.21, 0.085
WIDTH = 6.4
BAR = 0.5
LEGEND_COLUMNS = 2


class _Scores(NamedTuple):
    """What is drawn of one kind: a name, and its items' scores; ``low`` and ``high`` are None for EM."""

    name: str
    scores: Array
    low: Array | None
    high: Array | None


def consensus_scores(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    max_items: int = MAX_ITEMS,
    ax: Axes | None = None,
) -> Axes:
    """Draw the consensus score of every item, with its 90 % interval, a colour for each component.

    Items go from top to bottom as the largest component ranks them. Left is preferred; how far apart two
    items are says how sure people of the component are about their order. Fits by EM have no intervals.

    Parameters
    ----------
    model : AngleMixture, its fit, or AngleClassifier
        Of a classifier, the classes are drawn.
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    max_items : int
        Draw at most this many items, those with the most extreme scores in any component.
    ax : matplotlib axes, optional
        Where to draw; by default a figure whose height follows the number of items.

    Returns
    -------
    matplotlib axes
    """
    if max_items < 1:
        raise DataError(f"max_items={max_items!r} must be 1 or more")
    items, kinds, n_kinds = _kinds_of(model)
    shown = _shown_items(kinds, max_items)
    if ax is None:
        axes = new_figure(WIDTH, scores_height(len(shown), len(kinds))).subplots()
    else:
        axes = checked_axes(ax)
    draw_scores(axes, [items[i] for i in shown], [_taken(kind, shown) for kind in kinds])
    some = f"{len(shown)} of {len(items):,} items, the most extreme" if len(shown) < len(items) else ""
    many = f"the {len(kinds)} largest of {n_kinds} components" if len(kinds) < n_kinds else ""
    if some or many:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{'; '.join(part for part in (some, many) if part)}")
    finished(whole_figure(axes), path)
    return axes


def scores_height(n_items: int, n_kinds: int) -> float:
    """Inches that a picture of so many items and kinds needs."""
    legend = 0.2 * -(-n_kinds // LEGEND_COLUMNS)
    return 1.0 + legend + max(LINE, LINE_OF_KIND * n_kinds) * max(n_items, 4)


def draw_scores(axes: Axes, names: list[Any], kinds: list[_Scores]) -> None:
    """Draw items from top to bottom, on each line one dot and whisker for each kind, the first uppermost."""
    n, k = len(names), len(kinds)
    places = np.arange(n)
    # Kinds share the line of an item; they keep off the next line's.
    step = 0.72 / k
    axes.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    for row in range(0, n, 2):  # bands lead the eye from a name to its dots
        axes.axhspan(row - 0.5, row + 0.5, color="0.965", linewidth=0, zorder=-1)
    for number, kind in enumerate(kinds):
        y = places + (number - (k - 1) / 2) * step
        colour = DARK[number % len(DARK)]
        if kind.low is not None and kind.high is not None:
            axes.hlines(y, kind.low, kind.high, color=colour, linewidth=1.6, alpha=0.75)
        marker = MARKERS[(number // len(DARK)) % len(MARKERS)]
        axes.plot(
            kind.scores, y, marker, color=colour, markersize=4.5 if k <= 4 else 3.5, label=kind.name, zorder=3
        )
    axes.set_yticks(places, [shortened(name, MAX_NAME) for name in names])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlabel("score (left = preferred)", fontsize="small")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=min(k, LEGEND_COLUMNS),
        fontsize="small",
        frameon=False,
        handletextpad=0.3,
        columnspacing=1.2,
    )


def angle_overview(model: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a mixture of angle-based models: shares and concentrations of its components, and their scores."""
    fit = _fit_of(model)
    items, kinds, n_kinds = _kinds_of(fit)
    shown = _shown_items(kinds, MAX_ITEMS)
    height, bars = max(2.6, scores_height(len(shown), len(kinds))), 1.0 + BAR * max(len(kinds), 3)
    figure = new_figure(WIDTH + 3.0, height)
    # Few bars are not blown up to the height of a long list of items.
    grid = figure.add_gridspec(
        2, 2, width_ratios=[1.0, 2.4], height_ratios=[min(bars, height - 0.1), max(height - bars, 0.1)]
    )
    left, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])
    _draw_weights(left, fit, len(kinds))
    draw_scores(right, [items[i] for i in shown], [_taken(kind, shown) for kind in kinds])
    some = f"{len(shown)} of " if len(shown) < len(items) else ""
    many = f"the {len(kinds)} largest of " if len(kinds) < n_kinds else ""
    sure = "" if fit.posterior is None else " with 90 % intervals"
    figure.suptitle(
        f"{many}{n_kinds} component{'s' if n_kinds > 1 else ''}, {some}{len(items):,} items: "
        f"consensus scores{sure}",
        fontsize="medium",
    )
    return finished(figure, path)


def _draw_weights(axes: Axes, fit: AngleFit, n_shown: int) -> None:
    """Draw shares of the components as bars, with what is known about their concentrations beside them."""
    components, posterior = fit.components, fit.posterior
    weights = 100 * components.weights[:n_shown]
    places = np.arange(n_shown)
    axes.barh(places, weights, 0.6, color=[DARK[k % len(DARK)] for k in range(n_shown)], alpha=0.85)
    for k in range(n_shown):
        text = f"concentration {fit.concentrations[k]:.3g}"
        if posterior is not None:
            low, high = np.quantile(posterior.concentrations[..., k], [0.05, 0.95])
            text += f" ({low:.3g}–{high:.3g})"
        axes.text(0.0, k + 0.36, text, va="top", fontsize="x-small", color="0.25")
    axes.set_yticks(places, [f"component {k + 1}" for k in range(n_shown)])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylim(max(n_shown, 3) - 0.2, -0.5)
    axes.set_xlim(0.0, max(100.0 if n_shown == 1 else 1.15 * float(weights.max()), 1.0))
    axes.set_xlabel("share in %", fontsize="small")
    axes.spines[["top", "right", "left"]].set_visible(False)


def roc(
    y_true: Any,
    probabilities: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the receiver operating characteristic of a classifier, with the area under it in the legend.

    Parameters
    ----------
    y_true : sequence
        The class of each row.
    probabilities : ndarray (rows,) or (rows, classes), or a dict of these by name
        Probability, or any score, of the last class in sorted order; or those of all classes, such as
        ``predict_proba`` returns. With more than two classes every class has a curve against the rest.
        A dict draws several classifiers of two classes into one picture.
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.
    sample_weight : sequence, optional
        How often each row counts, such as ``rankings.counts``.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import permix
    >>> axes = permix.plots.roc(["no", "no", "yes", "yes"], [0.1, 0.4, 0.35, 0.8])
    >>> axes.get_legend().get_texts()[0].get_text()
    'AUC 0.750'
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    truth = np.asarray(y_true)
    classes = np.unique(truth)
    curves = _curves(truth, classes, probabilities)
    if sample_weight is not None and np.shape(sample_weight) != truth.shape:
        raise DataError(f"sample_weight has shape {np.shape(sample_weight)}, but there are {len(truth)} rows")
    axes = new_axes(ax)
    axes.plot([0, 1], [0, 1], ":", color="0.6", linewidth=1)
    for number, (name, positive, score) in enumerate(curves):
        wrong, right, _ = roc_curve(truth == positive, score, sample_weight=sample_weight)
        area = roc_auc_score(truth == positive, score, sample_weight=sample_weight)
        label = f"{name}: AUC {area:.3f}" if name else f"AUC {area:.3f}"
        axes.plot(wrong, right, color=DARK[number % len(DARK)], linewidth=1.8, label=label)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    against = f"class {classes[-1]}" if len({positive for _, positive, _ in curves}) == 1 else "the class"
    axes.set_xlabel(f"share of the others taken for {against}")
    axes.set_ylabel(f"share of {against} found")
    axes.legend(loc="lower right", fontsize="small", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    finished(whole_figure(axes), path)
    return axes


def _curves(truth: Array, classes: Array, probabilities: Any) -> list[tuple[str, Any, Array]]:
    """Return name, class and score of every curve; what does not fit the rows and classes is refused."""
    if truth.ndim != 1 or len(classes) < 2:
        raise DataError("y_true must give the class of each row, and have two classes or more")
    named = probabilities if isinstance(probabilities, Mapping) else {"": probabilities}
    curves = []
    for name, given in named.items():
        score = np.asarray(given, dtype=np.float64)
        if score.shape[:1] != truth.shape or not np.isfinite(score).all():
            raise DataError(
                f"probabilities{f' of {name!r}' if name else ''} have shape {score.shape}; give one finite "
                f"number, or one for each class, for each of the {len(truth)} rows"
            )
        if score.ndim == 1 and len(classes) == 2:
            curves.append((str(name), classes[-1], score))
        elif score.ndim != 2 or score.shape[1] != len(classes):
            raise DataError(
                f"there are {len(classes)} classes in y_true, but probabilities have shape {score.shape}"
            )
        elif len(classes) == 2:
            curves.append((str(name), classes[-1], score[:, 1]))
        elif len(named) > 1:
            raise DataError("several classifiers in one picture must have two classes; draw one at a time")
        else:
            curves += [(str(label), label, score[:, k]) for k, label in enumerate(classes)]
    return curves


def _kinds_of(model: Any) -> tuple[tuple[Any, ...], list[_Scores], int]:
    """Return items, what is drawn of each component or class, the largest first, and how many there are."""
    if hasattr(model, "_fits") and hasattr(model, "classes_"):
        kinds = [
            kind._replace(name=str(label) if len(of_class) == 1 else f"{label}, {kind.name}")
            for label, fit in zip(model.classes_, model._fits, strict=True)
            for of_class in [_kinds_of(fit)[1]]
            for kind in of_class
        ]
        return model.items_, kinds[:MAX_PANELS], len(kinds)
    fit = _fit_of(model)
    components, table = fit.components, consensus_table(fit)
    number = {item: i for i, item in enumerate(components.items)}
    kinds = []
    for k in range(min(components.n_components, MAX_PANELS)):
        part = table[table["component"] == k + 1]
        place = np.argsort([number[item] for item in part["item"]])
        low, high = (part[name].to_numpy()[place] if name in part else None for name in ("low", "high"))
        name = f"component {k + 1} · {100 * components.weights[k]:.1f} %"
        kinds.append(_Scores(name, part["score"].to_numpy()[place], low, high))
    return components.items, kinds, components.n_components


def _shown_items(kinds: list[_Scores], most: int) -> Array:
    """Return the items to draw as the first kind ranks them: all, or those that stand out in any kind."""
    scores = np.stack([kind.scores for kind in kinds])
    kept = np.arange(scores.shape[1])
    if len(kept) > most:
        kept = np.argsort(-np.abs(scores).max(axis=0), kind="stable")[:most]
    return np.asarray(kept[np.argsort(scores[0, kept], kind="stable")])


def _taken(kind: _Scores, items: Array) -> _Scores:
    return _Scores(kind.name, *(None if value is None else value[items] for value in kind[1:]))  # type: ignore[arg-type]


def _fit_of(model: Any) -> AngleFit:
    """What a fitted estimator holds; a fit is taken as it is."""
    fit = getattr(model, "_fit", model)
    if isinstance(fit, AngleFit):
        return fit
    if type(model).__name__ in ("AngleMixture", "AngleClassifier"):
        raise DataError(f"the {type(model).__name__} is not fitted; call fit first")
    raise DataError(
        "consensus_scores draws a fitted AngleMixture or AngleClassifier, not a "
        f"{type(model).__name__}; see plots.overview"
    )
