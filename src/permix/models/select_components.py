"""How many components? As many as help to predict people who were not fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.base import RandomState, generator
from permix.errors import ConvergenceWarning, DataError, PermixWarning
from permix.models.mallows_fit import MallowsFit, MallowsSettings, fit_mallows
from permix.models.mallows_predict import score_samples
from permix.models.preference_input import as_preferences
from permix.sampling.status import StatusLine

if TYPE_CHECKING:
    import pandas as pd

    from permix.models.mallows_mixture import MallowsMixture

# With fewer agents held out, errors of means are themselves rough.
FEW_AGENTS = 30
RULES = ("best", "one-se")


class _Trial(NamedTuple):
    """One number of components: what training reached, and what held-out rows got."""

    n_components: int
    train: float
    scores: Array  # ln P of each held-out row
    errors: Array  # its Monte Carlo error
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class ComponentSelection:
    """What :func:`select_components` found.

    Attributes
    ----------
    table : DataFrame
        One row for each number of components, see below.
    best : int
        The number with the largest held-out log-likelihood.
    one_standard_error : int
        The smallest number that is not worse than the best by more than one standard error of the
        difference. Both are measured on the same agents, so the differences are paired: close to the best
        their error is much smaller than the errors of the two values would suggest.
    chosen : int
        One of the two, as ``rule`` says.
    model : MallowsMixture
        Fitted with ``chosen`` components: to the training part, or to all data after ``refit=True`` and
        after cross-validation.
    n_train, n_validation : int
        Agents fitted and agents held out, over all folds.
    n_folds : int
        1 for a single split.
    interrupted : bool
        Whether the user stopped the search: larger numbers were not tried.

    Notes
    -----
    Columns of ``table``: ``n_components``; ``train`` and ``validation``, mean log-likelihood of an agent
    that was fitted and of one that was not; ``standard_error`` of ``validation``, over agents and Monte
    Carlo draws together; ``monte_carlo_error``, the part of it that is due to random numbers (256
    particles per row); ``difference`` to the best value and ``difference_error``, paired; ``n_iter`` and
    ``converged`` of the fits. Errors are NaN where a single row was held out.
    """

    table: pd.DataFrame
    best: int
    one_standard_error: int
    chosen: int
    fit: MallowsFit | None
    n_train: int
    n_validation: int
    n_folds: int
    interrupted: bool

    @property
    def model(self) -> MallowsMixture:
        """The fitted mixture with ``chosen`` components."""
        from permix.models.mallows_mixture import MallowsMixture

        if self.fit is None:
            raise DataError(
                "cross-validation was stopped before the model was fitted to all data; "
                f"fit it with MallowsMixture({self.chosen})"
            )
        return MallowsMixture._from_fit(self.fit)

    def __repr__(self) -> str:
        held_out = f"{self.n_folds} folds" if self.n_folds > 1 else f"{self.n_validation:,} agents held out"
        shown = self.table[["n_components", "train", "validation", "standard_error", "difference"]]
        note = "\n  stopped by the user: larger numbers were not tried" if self.interrupted else ""
        return (
            f"ComponentSelection: best {self.best}, within one standard error {self.one_standard_error} "
            f"({held_out})\n{shown.to_string(index=False, float_format='{:.3f}'.format)}{note}"
        )


def select_components(
    data: Any,
    n_components: Iterable[int] = range(1, 11),
    *,
    validation: Any = None,
    test_size: float | int = 0.25,
    n_folds: int | None = None,
    rule: Literal["best", "one-se"] = "best",
    refit: bool = False,
    random_state: RandomState = None,
    **settings: Any,
) -> ComponentSelection:
    """Choose the number of components of a :class:`MallowsMixture` by held-out likelihood.

    Parameters
    ----------
    data : Rankings, Preferences, or 2-D integer array
        As in :meth:`MallowsMixture.fit`.
    n_components : iterable of int
        The numbers to try.
    validation : the same, optional
        Data to judge by. Left out, a part of the agents in ``data`` is held out.
    test_size : float or int
        Share or number of agents held out, where there is neither ``validation`` nor ``n_folds``.
    n_folds : int, optional
        Cross-validation: every agent is held out once. It takes so many times as long as a single split.
    rule : {"best", "one-se"}
        Which number ``model`` has: the best, or the smallest that is within one standard error of it.
    refit : bool
        Fit the chosen model once more, to all of ``data``. Always so after cross-validation.
    random_state : int, SeedSequence, Generator or None
        Seed of the split, the fits and the scores; they are the same for all numbers of components.
    **settings
        Those of :class:`MallowsMixture`: ``n_restarts``, ``n_particles``, ``progress``, ….

    Returns
    -------
    ComponentSelection

    Notes
    -----
    Interrupted (Ctrl-C), it keeps the numbers that were finished and says so.

    Examples
    --------
    >>> import permix
    >>> made = permix.datasets.make_mallows_mixture(400, 5, 2, dispersion=0.3, random_state=4)
    >>> chosen = permix.select_components(made.data, range(1, 4), random_state=0, n_restarts=4)
    >>> chosen.one_standard_error
    2
    >>> chosen.table.shape
    (3, 9)
    """
    numbers = _checked_numbers(n_components)
    if rule not in RULES:
        raise DataError(f"rule={rule!r} must be one of {', '.join(map(repr, RULES))}")
    table = as_preferences(data)
    seeds = generator(random_state).integers(2**32, size=3).tolist()
    folds = list(_folds(table, validation, test_size, n_folds, seeds[0]))
    held_out_counts = np.concatenate([test.counts for _, test in folds])
    if held_out_counts.sum() < 2:
        raise DataError("one agent alone says nothing about errors; hold out at least two")
    asked = MallowsSettings(random_state=seeds[1], **settings)
    fewest = min(train.n_agents for train, _ in folds)
    if numbers[-1] > fewest:
        raise DataError(
            f"{numbers[-1]} components are more than the {fewest} agents to fit; try at most {fewest}"
        )
    _warn_if_few(int(held_out_counts.sum()), len(folds), validation is not None)
    trials, fits, interrupted = _all_trials(numbers, folds, asked, seeds[2])
    report = _report(trials, held_out_counts)
    best = trials[int(np.argmax(report["validation"]))].n_components
    within_error = _smallest_within_error(report)
    chosen = best if rule == "best" else within_error
    unsettled = [str(trial.n_components) for trial in trials if not trial.converged]
    if unsettled:
        warnings.warn(
            f"EM did not converge with {', '.join(unsettled)} component(s); raise max_iter={asked.max_iter} "
            "or tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    fit = fits.get(chosen)
    if (fit is None or refit) and not interrupted:
        fit = fit_mallows(table, replace(asked, n_components=chosen))
    return ComponentSelection(
        table=report,
        best=best,
        one_standard_error=within_error,
        chosen=chosen,
        fit=fit,
        n_train=sum(train.n_agents for train, _ in folds),
        n_validation=int(held_out_counts.sum()),
        n_folds=len(folds),
        interrupted=interrupted,
    )


def _warn_if_few(n_agents: int, n_folds: int, given: bool) -> None:
    if n_agents >= FEW_AGENTS:
        return
    advice = "" if n_folds > 1 or given else "; n_folds=5 holds everybody out once"
    warnings.warn(
        f"only {n_agents} agents are held out, too few to tell numbers of components apart{advice}",
        PermixWarning,
        stacklevel=3,
    )


def _checked_numbers(n_components: Iterable[int]) -> list[int]:
    if isinstance(n_components, str) or not isinstance(n_components, Iterable):
        raise DataError(f"n_components={n_components!r} must be several numbers, such as range(1, 6)")
    numbers = list(n_components)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise DataError(f"n_components has {number!r}; all must be whole numbers, 1 or more")
    if not numbers:
        raise DataError("n_components is empty; give at least one number")
    return sorted({int(number) for number in numbers})


def _folds(
    table: Preferences, validation: Any, test_size: float | int, n_folds: int | None, seed: int
) -> Iterator[tuple[Preferences, Preferences]]:
    """Pairs of a part to fit and a part to judge by; agents are divided, not rows."""
    if validation is not None:
        if n_folds is not None:
            raise DataError("validation data and n_folds exclude each other; leave one out")
        yield table, as_preferences(validation, table.items)
    elif n_folds is None:
        yield table.split(test_size, seed)
    else:
        n = table.n_agents
        if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= n:
            raise DataError(f"n_folds={n_folds!r} must be a whole number from 2 to the {n} agents")
        rng = np.random.default_rng(seed)
        rest = table
        parts = []
        for left in range(int(n_folds), 1, -1):
            rest, part = rest.split(rest.n_agents // left, rng)
            parts.append(part)
        parts.append(rest)
        for number, part in enumerate(parts):
            others = parts[:number] + parts[number + 1 :]
            yield Preferences.concat(others), part


def _all_trials(
    numbers: list[int],
    folds: list[tuple[Preferences, Preferences]],
    asked: MallowsSettings,
    score_seed: int,
) -> tuple[list[_Trial], dict[int, MallowsFit], bool]:
    """Try all numbers of components; also their fits (for a single split), and whether the user stopped."""
    trials: list[_Trial] = []
    fits: dict[int, MallowsFit] = {}
    quiet = replace(asked, progress=False)  # one display at a time
    with StatusLine(asked.progress) as status:
        for index, number in enumerate(numbers):
            plural = "" if number == 1 else "s"
            status.update(
                "choosing the number of components: "
                f"{number} component{plural} ({_ordinal(index + 1)} of {len(numbers)} numbers)"
            )
            try:
                trial, fit = _trial(folds, replace(quiet, n_components=number), score_seed)
            except KeyboardInterrupt:
                if not trials:
                    raise
                done = ", ".join(str(trial.n_components) for trial in trials)
                warnings.warn(
                    f"stopped by the user; kept what was finished: {done} component(s)",
                    PermixWarning,
                    stacklevel=3,
                )
                return trials, fits, True
            trials.append(trial)
            if len(folds) == 1:
                fits[number] = replace(fit, settings=replace(asked, n_components=number))
    return trials, fits, False


def _ordinal(number: int) -> str:
    """Return "1st", "2nd", "3rd", "4th", "11th".

    Examples
    --------
    >>> [_ordinal(number) for number in (1, 2, 3, 4, 11, 12, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '21st', '112th']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 11 <= number % 100 <= 13 else ending}"


def _trial(
    folds: list[tuple[Preferences, Preferences]], settings: MallowsSettings, score_seed: int
) -> tuple[_Trial, MallowsFit]:
    """Fit and score all folds; an interrupted fit is no fit to compare."""
    fits, scores, errors = [], [], []
    for train, test in folds:
        fit = fit_mallows(train, settings)
        if fit.interrupted:
            raise KeyboardInterrupt
        score, error = score_samples(fit.components, test, random_state=score_seed)
        fits.append(fit)
        scores.append(score)
        errors.append(error)
    n_train = sum(train.n_agents for train, _ in folds)
    trial = _Trial(
        n_components=settings.n_components,
        train=sum(float(fit.log_likelihood) for fit in fits) / n_train,
        scores=np.concatenate(scores),
        errors=np.concatenate(errors),
        n_iter=max(fit.n_iterations for fit in fits),
        converged=all(fit.converged for fit in fits),
    )
    return trial, fits[0]


def mean_and_errors(scores: Array, errors: Array, counts: Array) -> tuple[float, float, float]:
    """Mean score of an agent, its standard error, and the part of it that is Monte Carlo error.

    The spread between rows holds the Monte Carlo error of each row already. Agents who gave the same row
    share that row's error, so it does not average out between them: this is the term added.

    Examples
    --------
    >>> mean_and_errors(np.array([1.0, 3.0]), np.zeros(2), np.array([1, 1]))
    (2.0, 1.0, 0.0)
    """
    n = float(counts.sum())
    mean = float(counts @ scores) / n
    spread = float(counts @ (scores - mean) ** 2) / (n - 1.0)
    noise = float(counts**2.0 @ errors**2) / n**2
    shared = noise - float(counts @ errors**2) / n**2
    return mean, float(np.sqrt(spread / n + shared)), float(np.sqrt(noise))


def _report(trials: list[_Trial], counts: Array) -> pd.DataFrame:
    import pandas as pd

    means = [mean_and_errors(trial.scores, trial.errors, counts) for trial in trials]
    unknown = np.nan if len(counts) < 2 else 0.0  # one row alone says nothing about the spread of rows
    best = trials[int(np.argmax([mean for mean, _, _ in means]))]
    rows = []
    for trial, (mean, error, noise) in zip(trials, means, strict=True):
        # Draws are common to both, so their errors cancel in part: added as if they did not, to be safe.
        both = np.zeros_like(trial.errors) if trial is best else np.hypot(trial.errors, best.errors)
        difference, difference_error, _ = mean_and_errors(trial.scores - best.scores, both, counts)
        rows.append(
            {
                "n_components": trial.n_components,
                "train": trial.train,
                "validation": mean,
                "standard_error": error + unknown,
                "monte_carlo_error": noise,
                "difference": difference,
                "difference_error": difference_error + (0.0 if trial is best else unknown),
                "n_iter": trial.n_iter,
                "converged": trial.converged,
            }
        )
    return pd.DataFrame(rows)


def _smallest_within_error(report: pd.DataFrame) -> int:
    near = report["difference"] + report["difference_error"].fillna(0.0) >= 0.0
    return int(report["n_components"][near].min())
