"""Pictures of classifiers by angle-based models: the scores of the items in every class, and ROC curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.angle.classifier.fit import AngleClassifierFit
from permix.angle.data import as_rankings
from permix.angle.pictures import MAX_ITEMS, draw_groups, scores_of
from permix.data.labels import Array
from permix.errors import DataError
from permix.plots.items import item_style
from permix.plots.ranks import DARK, MAX_PANELS
from permix.plots.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def groups(fit: AngleClassifierFit, *, max_items: int = MAX_ITEMS, ax: Axes | None = None) -> Axes:
    """Draw the score of every item in the center of every class, with its 90 % interval where there is one.

    At most ``max_items`` items are drawn, those with the most extreme scores in any class.
    """
    drawn = []
    for label, of_class in zip(fit.classes, fit.fits, strict=True):
        scores = scores_of(of_class)
        names = [str(label)] if len(scores) == 1 else [f"{label}, {group.name}" for group in scores]
        drawn += [group._replace(name=name) for group, name in zip(scores, names, strict=True)]
    style = item_style(fit, fit.items)
    return draw_groups(fit.items, drawn[:MAX_PANELS], len(drawn), max_items, ax, style)


def roc(fit: AngleClassifierFit, *, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the receiver operating characteristic, with the area under it in the legend.

    With more than two classes every class has a curve against the rest.
    """
    rankings = as_rankings(X, fit.items)
    probabilities = np.exp(fit.log_probabilities(rankings))
    return draw_roc(y, probabilities, sample_weight=rankings.counts, ax=ax)


def draw_roc(y_true: Any, probabilities: Any, *, sample_weight: Any = None, ax: Axes | None = None) -> Axes:
    """Draw ROC curves of any classifiers.

    ``probabilities``, or any scores, are those of the last class in sorted order, or of all classes, such as
    ``predict_proba`` returns; a dict of them draws several classifiers of two classes into one picture.

    Examples
    --------
    >>> axes = draw_roc(["no", "no", "yes", "yes"], [0.1, 0.4, 0.35, 0.8])
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


PICTURES = {"overview": groups, "groups": groups, "roc": roc}
