"""Pictures of fitted models. Needs matplotlib: ``pip install "permix[plot]"``.

Every picture takes a fitted model. Those with one panel accept ``ax`` and return matplotlib axes; those with
several accept ``figure`` and return a figure. Saving is matplotlib's:
``plots.overview(model).savefig("x.png")``.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from permix.errors import DataError
from permix.estimators.registry import fit_of, model_of, part

# What can be drawn, and what each picture shows. Which of them a model has is said in its ``pictures.py``.
PICTURES = {
    "overview": "Draw what the fit found at a glance.",
    "groups": "Draw what each group is like.",
    "heat": "Draw how probable every rank of every item is in the center of each group.",
    "n_groups": "Draw the posterior of the number of groups.",
    "similarity": "Draw the probability that two observations are in one group, sorted by group.",
    "traces": "Draw the number of groups and the log joint of every draw, a line for each chain.",
    "history": "Draw how the log-likelihood rose in the best run, and where the other starts ended.",
    "blocks": "Draw a matrix in the order of its blocks.",
    "mondrian": "Draw the nested cuts of a Mondrian co-clustering.",
    "roc": "Draw the ROC curve of a classifier.",
}

# How a picture says that it must not be trusted.
WARNED: dict[str, Any] = {"color": "#b00020", "fontsize": "small", "fontweight": "bold", "va": "bottom"}

__all__ = ["by_covariate", "checks", "choice", "save", *PICTURES]


def _picture(name: str) -> Callable[..., Any]:
    def draw(model: Any, **options: Any) -> Any:
        fit = fit_of(model)
        about = model_of(fit)
        has_some = about.pictures and importlib.util.find_spec(about.pictures) is not None
        pictures = part(about.pictures).PICTURES if has_some else {}
        if name not in pictures:
            others = [other for other in PICTURES if other in pictures]
            way_out = f"; it has {', '.join(others)}" if others else ""
            raise DataError(f"there is no picture {name!r} of {about.named}{way_out}")
        return _with_verdict(pictures[name](fit, **options), fit)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"""{PICTURES[name]}

    Parameters
    ----------
    model : fitted estimator
        A model that has no such picture says which it has.
    **options
        ``ax`` (or ``figure``, where there are several panels) to draw into. Rankings: ``max_items`` of
        ``groups`` and ``heat``. Matrices: ``of="columns"`` of ``n_groups`` and ``similarity``. ``roc``: ``X``
        and ``y``.

    Returns
    -------
    matplotlib axes or figure
    """
    return draw


def _with_verdict(drawn: Any, fit: Any) -> Any:
    """Write on a picture that chains disagree, so that it does not say more than they do."""
    draws = getattr(fit, "draws", None)
    if draws is not None and draws.seeds:
        from permix.posterior.diagnostics import verdict_on

        verdict = verdict_on(draws)
        if verdict.converged is False:
            named = ", ".join(f"{name} (R-hat {r_hat:.3g})" for name, r_hat in verdict.offending.items())
            figure = getattr(drawn, "figure", drawn)
            engine = figure.get_layout_engine()
            if engine is not None and hasattr(engine, "get") and "rect" in engine.get():
                engine.set(rect=(0.0, 0.4 / figure.get_figheight(), 1.0, 1.0 - 0.4 / figure.get_figheight()))
            figure.text(0.01, 0.005, f"NOT CONVERGED: the chains disagree on {named}", wrap=True, **WARNED)
    return drawn


overview = _picture("overview")
groups = _picture("groups")
heat = _picture("heat")
n_groups = _picture("n_groups")
similarity = _picture("similarity")
traces = _picture("traces")
history = _picture("history")
blocks = _picture("blocks")
roc = _picture("roc")


def mondrian(model: Any, *, ax: Any = None) -> Any:
    """Draw the nested cuts of a Mondrian co-clustering, or a tree such as ``permix.mondrian.sample(2.0)``."""
    if hasattr(model, "to_preorder"):
        return part("permix.plots.mondrian_picture:draw_tree")(model, ax=ax)
    return _picture("mondrian")(model, ax=ax)


def by_covariate(model: Any, name: str, values: Any = None, *, ax: Any = None) -> Any:
    """Draw groups by covariate: see :func:`permix.plots.covariate_picture.draw_by_covariate`."""
    draw = part("permix.plots.covariate_picture:draw_by_covariate")
    return _with_verdict(draw(model, name, values, ax=ax), fit_of(model))


def choice(selection: Any, *, ax: Any = None) -> Any:
    """Draw what numbers of groups were judged by: see :func:`permix.plots.choice_picture.choice`."""
    return part("permix.plots.choice_picture:choice")(selection, ax=ax)


def checks(found: Any, *, ax: Any = None) -> Any:
    """Draw what ``model.fit_checks(X)`` found: see :func:`permix.plots.checks_picture.draw_checks`."""
    return part("permix.plots.checks_picture:draw_checks")(found, ax=ax)


def comparison(found: Any, *, ax: Any = None) -> Any:
    """Draw what :func:`permix.compare` found: see :func:`permix.plots.comparison_picture.draw_comparison`."""
    return part("permix.plots.comparison_picture:draw_comparison")(found, ax=ax)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the overview of a fitted model to a .png, .svg or .pdf file, whole or not at all."""
    save_figure(overview(model), path)


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all."""
    from permix.files import atomic_writer

    with atomic_writer(path) as handle:
        figure.savefig(handle, dpi=130, format=Path(path).suffix.removeprefix(".") or None)
