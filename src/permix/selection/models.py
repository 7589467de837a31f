"""What choosing a number of components must know about each kind of mixture."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.labels import Array
from permix.errors import DataError, PermixWarning

if TYPE_CHECKING:
    import pandas as pd

    from permix.angle.fit import AngleFit
    from permix.angle.settings import AngleSettings
    from permix.data.rankings import Rankings
    from permix.mallows.fit import MallowsFit

# Held-out rows whose probability is found by annealing, at most so many in each fold: they take tenths of a
# second each.
MOST_ANNEALED = 200
# Up to so many items the error of an approximate normaliser takes less than a second.
MOST_CHECKED_ITEMS = 500


@dataclass(frozen=True)
class SelectableModel:
    """A kind of mixture.

    Attributes
    ----------
    estimator : str
        Name of its estimator.
    read : function of (data, items or None)
        Data as the fit takes them.
    settings : function of keywords
        What a user may choose, checked; with ``n_components``, ``max_iter`` and ``progress``.
    fit : function of (data, settings)
    score : function of (fit, data, seed)
        Ln P of each row and its Monte Carlo error.
    affordable : function of (data, Generator)
        The data, or a random part of the agents where scoring all takes too long.
    check_criterion : function of (criterion, data, settings)
        Refuse a criterion that cannot be had, before anything is fitted.
    criterion : function of (criterion, fit, data)
        Its value, and the number of parameters (maybe effective) in it.
    columns : function of fits
        Further columns of the table, from the fits to all folds.
    remark : function of the table
        What a user must know about them, if anything.
    estimator_of : function of a fit
        The fitted estimator.
    """

    estimator: str
    read: Callable[..., Any]
    settings: Callable[..., Any]
    fit: Callable[[Any, Any], Any]
    score: Callable[[Any, Any, int], tuple[Array, Array]]
    affordable: Callable[[Any, np.random.Generator], Any]
    check_criterion: Callable[[str, Any, Any], None]
    criterion: Callable[[str, Any, Any], tuple[float, float]]
    columns: Callable[[Sequence[Any]], dict[str, Any]]
    remark: Callable[[pd.DataFrame], str | None]
    estimator_of: Callable[[Any], Any]


def mallows_model(fit: Callable[[Any, Any], Any]) -> SelectableModel:
    """Describe :class:`permix.MallowsMixture`, fitted by ``fit``."""
    from permix.estimators.preference_input import as_preferences
    from permix.mallows.predict import score_samples
    from permix.mallows.settings import MallowsSettings

    def score(fit: MallowsFit, data: Any, seed: int) -> tuple[Array, Array]:
        return score_samples(fit.components, data, random_state=seed)

    def refuse(criterion: str, *_: Any) -> Any:
        raise DataError(
            f"criterion={criterion!r} counts parameters, but the central rankings of a MallowsMixture are "
            "not numbers that could be counted; use criterion='held-out'"
        )

    def estimator_of(fit: MallowsFit) -> Any:
        from permix.mallows.estimator import MallowsMixture

        return MallowsMixture._from_fit(fit)

    return SelectableModel(
        estimator="MallowsMixture",
        read=as_preferences,
        settings=MallowsSettings,
        fit=fit,
        score=score,
        affordable=lambda data, rng: data,
        check_criterion=refuse,
        criterion=refuse,
        columns=lambda fits: {},
        remark=lambda table: None,
        estimator_of=estimator_of,
    )


def angle_model(fit: Callable[[Any, Any], Any]) -> SelectableModel:
    """Describe :class:`permix.AngleMixture`, fitted by ``fit``."""
    from permix.angle.data import as_rankings

    def fit_without_remarks(rankings: Rankings, settings: AngleSettings) -> AngleFit:
        """Fit; what is said about all fits together is not said about each."""
        with warnings.catch_warnings():
            said = (
                ".*von Mises–Fisher normaliser",
                "not converged after",
                "interrupted: this is",
                "component [0-9]+: all its members",
            )
            for text in said:
                warnings.filterwarnings("ignore", message=text, category=PermixWarning)
            fitted: AngleFit = fit(rankings, settings)
        return fitted

    def estimator_of(fit: AngleFit) -> Any:
        from permix.angle.estimator import AngleMixture

        return AngleMixture._from_fit(fit)

    return SelectableModel(
        estimator="AngleMixture",
        read=as_rankings,
        settings=_angle_settings,
        fit=fit_without_remarks,
        score=_angle_scores,
        affordable=_affordable,
        check_criterion=_check_angle_criterion,
        criterion=_angle_criterion,
        columns=_normalizer_columns,
        remark=_normalizer_remark,
        estimator_of=estimator_of,
    )


def _angle_settings(**settings: Any) -> AngleSettings:
    from permix.angle.settings import AngleSettings

    asked = AngleSettings(**settings)
    if asked.store is not None:
        raise DataError(
            "store keeps the chains of one fit, but here there are many; leave it out, and pass it to "
            "AngleMixture with the number that was chosen"
        )
    return asked


def _angle_scores(fit: AngleFit, rankings: Rankings, seed: int) -> tuple[Array, Array]:
    """Score rows as :meth:`permix.AngleMixture.score_samples` does, with Monte Carlo errors."""
    from permix.angle.predict import joint_log_probabilities, normalised

    scores, errors = np.empty(len(rankings)), np.zeros(len(rankings))
    full = rankings.lengths == rankings.n_items
    rows = np.flatnonzero(full)
    if len(rows):
        scores[rows] = fit.predictive.log_densities(rankings[rows])
    rows = np.flatnonzero(~full)
    if len(rows):
        joint, noise = joint_log_probabilities(fit.components, rankings[rows], random_state=seed)
        shares, scores[rows] = normalised(joint)
        errors[rows] = np.sqrt(((shares * noise) ** 2).sum(axis=1))  # components are independent
    return scores, errors


def _affordable(rankings: Rankings, rng: np.random.Generator) -> Rankings:
    """Keep agents in random order until there are ``MOST_ANNEALED`` different rows that need annealing.

    Agents with other rows are left out in the same proportion, so that those kept stand for all.
    """
    from permix.distributions.angle.completions import is_cheap

    dear = ~is_cheap(rankings)
    if dear.sum() <= MOST_ANNEALED:
        return rankings
    rows = rng.permutation(rankings.rows_of_agents())
    new = np.zeros(len(rows), dtype=bool)
    new[np.unique(rows, return_index=True)[1]] = True
    n_dear = np.cumsum(new & dear[rows])
    kept = rows[: np.searchsorted(n_dear, MOST_ANNEALED, side="right")]
    return rankings._with_counts(np.bincount(kept, minlength=len(rankings)))


def _check_angle_criterion(criterion: str, rankings: Rankings, settings: AngleSettings) -> None:
    from permix.distributions.angle.completions import is_cheap

    if criterion in ("dic", "waic") and settings.inference == "em":
        raise DataError(
            f"criterion={criterion!r} averages over a posterior, which inference='em' has not; use "
            "criterion='bic' or 'aic', or inference='sir'"
        )
    dear = np.flatnonzero(~is_cheap(rankings))
    if len(dear):
        raise DataError(
            f"{rankings.row_name(int(dear[0]))} ranks {rankings.lengths[dear[0]]} of {rankings.n_items} "
            f"items ({len(dear)} such rows): its likelihood has no affordable sum, and a criterion needs "
            "all. Use criterion='held-out', which can do with some rows"
        )


def _angle_criterion(criterion: str, fit: AngleFit, rankings: Rankings) -> tuple[float, float]:
    from permix.angle.results import criteria, n_parameters

    if criterion in ("aic", "bic"):
        parameters = n_parameters(fit.components)
        price = 2.0 if criterion == "aic" else float(np.log(rankings.n_agents))
        return price * parameters - 2.0 * float(fit.log_likelihood), float(parameters)
    found = criteria(fit, rankings, doubts=criterion == "waic")
    return getattr(found, criterion), getattr(found, f"{criterion}_parameters")


def _normalizer_columns(fits: Sequence[AngleFit]) -> dict[str, Any]:
    """Say how far normalising sums are off, for the worst component of all fits that has an agent at all.

    The concentration of one that has none is that of the prior, and nobody is scored by it.
    """
    components = fits[0].components
    worst = np.nan
    if components.normalizer == "exact" or components.n_items <= MOST_CHECKED_ITEMS:
        worst = max(
            (
                float(error)
                for fit in fits
                for error, agents in zip(fit.normalizer_errors, fit.counts @ fit.probabilities, strict=True)
                if agents >= 1.0
            ),
            key=abs,
        )
    return {
        "normalizer": components.normalizer,
        "normalizer_error": worst,
        "guarded": any(bool(fit.guarded.any()) for fit in fits),
    }


def _normalizer_remark(table: pd.DataFrame) -> str | None:
    from permix.angle.fit import NOTABLE_ERROR

    far = (table["normalizer_error"].abs() > NOTABLE_ERROR) | table["guarded"]
    off = table[far & (table["normalizer"] == "vmf")]
    if off.empty:
        return None
    numbers = ", ".join(map(str, off["n_components"]))
    known = off["normalizer_error"].abs().max()
    how_far = "" if np.isnan(known) else f" by up to {known:.2f} nats"
    return (
        f"with {numbers} component(s) the von Mises–Fisher normaliser is off{how_far}: probabilities do not "
        "sum to one, and concentrated components seem better than they are, so too many may be chosen. "
        "Leave normalizer out, with inference='em' or 'sir'"
    )
