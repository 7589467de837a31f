"""What every estimator is: its parameters, a fit behind it, files, and a score."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from permix.data.agent_table import AgentTable
from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.archive import write_model
from permix.estimators.baselines import KEPT, ScoreComparison, compared, mean_scores
from permix.estimators.parameters import Parameters, parameter_section, signature_of
from permix.estimators.registry import has_part, model_of, part
from permix.posterior import summary, to_datatree
from permix.posterior.checks import N_REPLICATES, FitChecks

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators.

    A subclass names its declared parameters, ``class MyModel(Estimator, parameters=MyParameters)``, which
    gives it the constructor and the parameter list of its docstring. It has ``fit``, which calls ``_adopt``,
    and ``_adopt(fit)``, which shows a fit under scikit-learn's names.
    """

    _parameters_class: ClassVar[type[Parameters]]
    _shared_attributes: ClassVar[str] = ""  # what docstrings of all subclasses list last
    _fit: Any

    def __init_subclass__(cls, *, parameters: type[Parameters] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if parameters is None:
            return
        cls._parameters_class = parameters
        signature = signature_of(parameters.declared)

        def __init__(self: Any, *args: Any, **given: Any) -> None:
            try:
                values = signature.bind(*args, **given)
            except TypeError as error:
                raise TypeError(f"{cls.__name__}() {error}{_near(given, parameters.declared)}") from None
            values.apply_defaults()
            for name, value in values.arguments.items():
                setattr(self, name, value)

        own = signature.parameters.values()
        first = type(next(iter(own)))("self", next(iter(own)).POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = signature.replace(parameters=[first, *own])  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        __init__.__module__ = cls.__module__
        cls.__init__ = __init__  # type: ignore[method-assign]
        section = parameter_section(parameters.declared)
        cls.__doc__ = _completed(cls.__doc__ or "", section, cls._shared_attributes)

    def _settings(self) -> Any:
        """Return the parameters, checked."""
        return self._parameters_class(**self.get_params(deep=False))

    def _adopt(self, fit: Any) -> Self:
        """Show a fit under scikit-learn's names."""
        raise NotImplementedError

    @classmethod
    def _from_fit(cls, fit: Any) -> Self:
        return cls(**fit.settings.as_dict())._adopt(fit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, a zip of JSON and ``.npy``; :func:`permix.load` reads it."""
        write_model(self._fitted(), path)

    def by_covariate(
        self, name: str, values: Any = None, *, bands: int | None = None, random_state: Any = 0
    ) -> pd.DataFrame:
        """Return how groups go with something known of the rows that was not fitted, such as a precinct.

        Parameters
        ----------
        name : str
            One of the ``covariates`` of the data that were fitted, or what ``values`` are called.
        values : sequence, optional
            An entry for each row that was fitted, where the data had no such covariate.
        bands : int, optional
            Numbers of which there are many are put into so many bands with about equally many agents each;
            0: no bands. Left out, 4 where there are more than 12 different numbers.
        random_state : seed
            Of the intervals.

        Returns
        -------
        DataFrame
            A row for each value and group (counted from 0, as in ``labels_``): ``share_of_value``, of the
            agents with that value, those in the group; ``share_of_group``, of the members of the group, those
            with that value; both with ``_low`` and ``_high``, an interval from 5 % to 95 % (:mod:`its making
            <permix.estimators.by_covariate>`). ``attrs["verdict"]`` says whether groups go with the covariate
            more than by chance, and ``attrs["note"]`` what intervals hold. Values are in a column of their
            name; those of a covariate called ``group`` or as another column are in ``group_value``.
        """
        from permix.estimators.by_covariate import group_frame, group_table

        return group_frame(group_table(self._fitted(), name, bands, random_state, values))

    def fit_checks(
        self, X: Any = None, *, n_replicates: int = N_REPLICATES, random_state: Any = 0
    ) -> FitChecks:
        """Return whether the model fits at all: posterior predictive checks in the terms of the data.

        Parameters
        ----------
        X : data, optional
            Those that were fitted; left out, those that the fit keeps. Mixtures of rankings whose fits keep
            none say so.
        n_replicates : int
            Data sets to draw from the model, at least 100.
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        FitChecks
            ``verdict``, in words, and tables of observed numbers beside those of replicated data. Rankings:
            first choices, pairwise majorities, lengths of lists by first choice, agreement between two
            agents. Tables: means, spreads, flatness (spread over range) and correlations of columns.
            Matrices: means of rows and of columns, and levels.
        """
        fit = self._fitted()
        about = model_of(fit)
        if not has_part(about.checks):
            raise DataError(f"there are no checks of {about.named}")
        checked: FitChecks = part(about.checks)(fit, self._data_to_check(X), n_replicates, random_state)
        return checked

    def _data_to_check(self, X: Any) -> Any:
        """Return data for checks as they take them; None for those that the fit keeps."""
        return X

    _what_is_scored: ClassVar[str] = "A row"

    def _data_to_compare(self, X: Any, fitted_to: Any) -> tuple[Any, Any]:
        """Return data as baselines take them, and those that they are fitted to, or None."""
        raise NotImplementedError

    def _fitted(self) -> Any:
        """Return the fit; there must be one."""
        check_is_fitted(self)
        return self._fit


def of_fitted(get: Callable[[Any], Any], doc: str) -> Any:
    """Return an attribute of fitted estimators that is computed when it is asked for."""

    def attribute(self: Any) -> Any:
        check_is_fitted(self)
        return get(self)

    return property(attribute, doc=doc)


class ScoreMixin:
    """Models of the data: how probable rows are. They have ``_log_densities``."""

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        """Return ln p of every row, and its Monte Carlo error."""
        raise NotImplementedError

    def score_samples(self, X: Any, *, return_error: bool = False) -> Any:
        """Return ln of the predictive probability, or density, of each row.

        Parameters
        ----------
        X : data
            As in :meth:`fit`.
        return_error : bool
            Return the Monte Carlo errors as well, 0 where the value is exact.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        scores, errors = self._log_densities(X)
        return (scores, errors) if return_error else scores

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive probability of an agent; a row counts as often as its count says."""
        counts = X.counts if isinstance(X, AgentTable) else None  # a frame may have a column of that name
        return float(np.average(self.score_samples(X), weights=counts))

    def _kept(self) -> Any:
        """Return the data that were fitted, in a form that :meth:`score` takes."""
        estimator: Any = self
        for name in ("rankings", "preferences"):
            if hasattr(estimator._fitted(), name):
                return getattr(estimator._fitted(), name)
        raise DataError(
            f"the fit of {type(self).__name__} keeps no data: pass those that were fitted, or new ones, "
            "score_against_baselines(X)"
        )

    def score_against_baselines(self, X: Any = None, fitted_to: Any = None) -> ScoreComparison:
        """Return :meth:`score` beside that of simpler models, in nats and in words.

        Parameters
        ----------
        X : data, optional
            As in :meth:`fit`. Left out, those that were fitted, where the fit keeps them. Mixtures of
            Mallows and angle-based models and mean-shift keep none, and say so; fits made by the command
            keep the comparison.
        fitted_to : data, optional
            What simpler models are fitted to. Left out, the data that the fit keeps; where it keeps none,
            ``X`` itself, which is to the advantage of the simpler models if ``X`` is new.

        Returns
        -------
        ScoreComparison
            Rankings: *uniform*, all answers alike; *one group*; *empirical*, the shares of those who said the
            same, with one agent's worth spread evenly. Tables and matrices: *one group*, or one block;
            *independent columns*; *uniform* where all cells have levels.
        """
        estimator: Any = self
        fit = estimator._fitted()
        if X is None:
            known = getattr(fit, "baselines", None)
            if known is not None:
                own = float(fit.log_likelihood) / int(fit.counts.sum())
                scores = dict(zip(KEPT, known.tolist(), strict=True))
                return compared(own, scores, estimator._what_is_scored)
            X = self._kept()
        score = self.score(X)  # which refuses what cannot be compared
        counts = X.counts if isinstance(X, AgentTable) else None
        rows = part(model_of(fit).baselines)(fit, *estimator._data_to_compare(X, fitted_to))
        return compared(score, mean_scores(rows, counts), estimator._what_is_scored)


class DrawsMixin:
    """Models that keep draws of Markov chains: their fits have ``draws``."""

    _tree: Any = None  # made when asked for: xarray takes a second to import

    @property
    def posterior_(self) -> xr.DataTree:
        """All draws in ArviZ's schema, put together when they are first asked for."""
        fit = self._fitted()  # type: ignore[attr-defined]
        if self._tree is None:
            self._tree = self._datatree(fit)
        return self._tree

    def _datatree(self, fit: Any) -> xr.DataTree:
        return to_datatree(fit.draws)

    def diagnostics(self) -> pd.DataFrame:
        """Return mean, spread, effective sample size and R-hat of every scalar quantity of the chains."""
        return summary(self._fitted().draws)  # type: ignore[attr-defined]


def _completed(docstring: str, parameters: str, attributes: str) -> str:
    """Put the list of parameters where numpydoc has it, after the introduction, and add shared attributes."""
    import inspect

    text = inspect.cleandoc(docstring)
    introduction, heading, rest = text.partition("\nAttributes\n---")
    if not heading:
        return f"{text}\n\n{parameters}\n"
    own, gap, after = rest.partition("\n\n")
    return f"{introduction}\n{parameters}\n{heading}{own}{attributes}{gap}{after}"


def _near(given: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return what an unknown parameter may have meant, for an error."""
    from difflib import get_close_matches

    near = [match for name in given if name not in known for match in get_close_matches(name, known, 1, 0.75)]
    return f"; did you mean {near[0]!r}?" if near else ""
