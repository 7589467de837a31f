"""How many groups? As many as help to predict people who were not fitted, or as a criterion says."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from permix.data.agent_table import AgentTable
from permix.errors import Argument, ConvergenceWarning, DataError, PermixWarning, about_parameters
from permix.estimators.checks import Choice, Whole
from permix.estimators.known import with_known
from permix.estimators.registry import MODELS, Model, part
from permix.estimators.selectable import Selectable
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import RandomState, generator
from permix.selection.criteria import ByCriterion
from permix.selection.held_out import HeldOut, mean_and_errors
from permix.selection.recurrence import recurring

if TYPE_CHECKING:
    import pandas as pd

Table = TypeVar("Table", bound=AgentTable)

__all__ = ["ComponentSelection", "mean_and_errors", "select_components"]

# With fewer agents held out, errors of means are themselves rough.
FEW_AGENTS = 30
RULES = Choice("best", "one-se")
CRITERIA = Choice("held-out", "dic", "waic", "bic", "aic")
TEST_SIZE = 0.25
# With fewer agents in that share, everybody is held out once instead, in so many parts.
LEAST_HELD_OUT = 200
N_FOLDS = 5
# Where the best is the largest number tried, larger ones follow, up to so many times it.
MOST_TIMES = 2


@dataclass(frozen=True, eq=False)
class ComponentSelection:
    """What :func:`select_components` found.

    Attributes
    ----------
    table : DataFrame
        One row for each number of groups, see below.
    best : int
        The number with the largest held-out log-likelihood, or with the smallest criterion.
    one_standard_error : int or None
        The smallest number that is not worse than the best by more than one standard error of the
        difference. Both are measured on the same agents, so the differences are paired: close to the best
        their error is much smaller than the errors of the two values would suggest. None for a criterion,
        which has no such error.
    chosen : int
        One of the two, as ``rule`` says.
    model : fitted estimator
        With ``chosen`` groups: to the training part, or to all data after ``refit=True``, after
        cross-validation, and for a criterion.
    fit : object or None
        What is behind it.
    n_train, n_validation : int
        Agents fitted and agents scored that were not, over all folds.
    n_folds : int
        1 for a single split; 0 for a criterion, where nobody is held out.
    interrupted : bool
        Whether the user stopped the search: larger numbers were not tried.
    untried : tuple of int
        Numbers that were not tried, because the user stopped or smaller ones got clearly worse.
    n_beyond : int
        How many numbers were tried beyond those asked for, because the largest of these was the best.
    at_limit : bool
        Whether the best number is the largest that was tried, so that a larger one may be better still.
    estimator : str
        Name of the estimator, such as "MallowsMixture".
    out_of_time : bool
        Whether it was a limit of time that stopped the search.
    criterion : {"held-out", "dic", "waic", "bic", "aic"}
        What numbers were compared by.
    recurs : mapping of int to bool
        After ``refit=True``, for models that are fitted from several starts: whether all groups of the chosen
        number recur in every restart that fits as well, and, where they do not, the same of smaller numbers
        down to the first where they do. These are fitted anew, to at most 6,000 agents.

    Notes
    -----
    Columns of ``table``: ``n_groups``; ``train`` and ``validation``, mean log-likelihood of an agent
    that was fitted and of one that was not; ``standard_error`` of ``validation``, over agents and Monte
    Carlo draws together; ``monte_carlo_error``, the part of it that is due to random numbers (256
    particles per row, 64 for angle-based models); ``difference`` to the best value and
    ``difference_error``, paired; ``n_iter`` and ``converged`` of the fits. Errors are NaN where a single row
    was held out.

    For a criterion: ``n_groups``; ``log_likelihood`` of all data at the point estimates; a column with
    the name of the criterion; ``parameters`` in it, effective ones for DIC and WAIC; ``n_iter``,
    ``converged``.

    Bayesian Mallows models add ``distance``, how far agents are from the center of their group on average:
    its elbow is another way to choose. Angle-based models add ``normalizer``, the one used, and
    ``normalizer_error``, by how much ln of the true sum over rankings exceeds the one used, for the worst
    group with any agents (NaN above 500 items).
    """

    table: pd.DataFrame
    best: int
    one_standard_error: int | None
    chosen: int
    fit: Any
    n_train: int
    n_validation: int
    n_folds: int
    interrupted: bool
    untried: tuple[int, ...] = ()
    n_beyond: int = 0
    at_limit: bool = False
    estimator: str = "MallowsMixture"
    out_of_time: bool = False
    criterion: Literal["held-out", "dic", "waic", "bic", "aic"] = "held-out"
    recurs: Mapping[int, bool] = field(default_factory=dict)

    @property
    def not_tried(self) -> str:
        """Why larger numbers were not tried; empty where all were and a smaller one is best."""
        if self.at_limit and not self.interrupted:
            return f"the best number, {self.best}, is the largest that was tried: a larger one may be better"
        stopped = "time ran out" if self.out_of_time else "stopped by the user"
        why = stopped if self.interrupted else "clearly worse than the best"
        return f"{why}: larger numbers were not tried" if self.untried else ""

    @property
    def model(self) -> Any:
        """The fitted mixture with ``chosen`` groups."""
        if self.fit is None:
            stopped = "cross-validation was stopped before the model was fitted to all data"
            raise DataError(f"{stopped}; fit it with {self.estimator}({self.chosen})")
        return part(MODELS[self.estimator].estimator)._from_fit(self.fit)

    def __repr__(self) -> str:
        if self.criterion == "held-out":
            who = f"{self.n_folds} folds" if self.n_folds > 1 else f"{self.n_validation:,} agents held out"
            found = f"best {self.best}, within one standard error {self.one_standard_error} ({who})"
            columns = ["n_groups", "train", "validation", "standard_error", "difference"]
        else:
            found = f"best {self.best} by {self.criterion.upper()} ({self.n_train:,} agents)"
            columns = ["n_groups", "log_likelihood", self.criterion, "parameters"]
        shown = self.table[columns].to_string(index=False, float_format="{:.3f}".format)
        note = f"\n  {self.not_tried}" if self.not_tried else ""
        return f"ComponentSelection: {found}\n{shown}{note}"


def select_components(
    data: Any,
    n_components: Iterable[int] = range(1, 11),
    *,
    model: Any = "mallows",
    criterion: Literal["held-out", "dic", "waic", "bic", "aic"] = "held-out",
    validation: Any = None,
    test_size: float | int | None = None,
    n_folds: int | None = None,
    most: int | None = None,
    rule: Literal["best", "one-se"] | None = None,
    refit: bool = False,
    random_state: RandomState = None,
    **settings: Any,
) -> ComponentSelection:
    """Choose the number of groups of a mixture by held-out likelihood, or by a criterion.

    Parameters
    ----------
    data : Rankings, Preferences, or 2-D integer array
        As in the ``fit`` of the model.
    n_components : iterable of int
        The numbers to try. Where the best of them is the largest, larger ones follow, see ``most``.
    model : {"mallows", "angle", "bayes-mallows"} or estimator
        :class:`MallowsMixture`, :class:`AngleMixture` or :class:`BayesianMallowsMixture`; an estimator, not
        fitted, brings its parameters.
    criterion : {"held-out", "dic", "waic", "bic", "aic"}
        "held-out": ln P of agents who were not fitted. The others fit all data and take the smallest
        value; they serve angle-based models alone. "dic" and "waic" average over the posterior (inference
        "sir"); "bic" and "aic" take the likelihood at the point estimates.
    validation : the same as data, optional
        Data to judge by. Left out, a part of the agents in ``data`` is held out.
    test_size : float or int, optional
        Share or number of agents held out, where there is neither ``validation`` nor ``n_folds``. Left out, a
        quarter, if that is at least 200 agents; of fewer, cross-validation with five folds: a few dozen
        agents cannot tell numbers of groups apart.
    n_folds : int, optional
        Cross-validation: every agent is held out once. It takes so many times as long as a single split.
    most : int, optional
        As long as the best number is the largest tried, the next larger one is tried, up to this; left
        out, twice the largest of ``n_components``. The largest itself turns that off.
    rule : {"one-se", "best"}, optional
        Which number ``model`` has: the smallest that is within one standard error of the best, or the best.
        Left out, the first, so that no group is there by chance alone; for criteria the best.
    refit : bool
        Fit the chosen model once more, to all of ``data``. Always so after cross-validation.
    random_state : int, SeedSequence, Generator or None
        Seed of the split, the fits and the scores; they are the same for all numbers of groups. Left
        out, that of the estimator, if one was given.
    **settings
        Those of the model: ``n_init``, ``progress``, ….

    Returns
    -------
    ComponentSelection

    Notes
    -----
    Interrupted (Ctrl-C), it keeps the numbers that were finished and says so. When three numbers in a row are
    clearly worse than the best, by two standard errors of the difference or by 10 in a criterion, larger ones
    are not tried.

    Numbers are tried from the smallest to the largest. Fits of :class:`MallowsMixture` after the first take
    most of their starts from the fit before, with groups added at agents drawn at random; the others are
    fresh. So a fit may be better than that of the estimator alone with the same seed.

    ``normalizer="vmf"`` of angle-based models is refused: probabilities do not sum to one under it, and every
    way to compare would favor concentrated groups.

    Probabilities of incomplete rankings with many unlisted items take long. Where more than 200 rows of a
    fold are such under an angle-based model, a random part of its agents is scored.

    Examples
    --------
    >>> import permix
    >>> made = permix.datasets.make_mallows_mixture(400, 5, 2, dispersion=0.3, random_state=4)
    >>> chosen = permix.select_components(made.data, range(1, 4), random_state=0, n_init=4)
    >>> chosen.one_standard_error
    2
    >>> chosen.table.shape
    (3, 9)
    """
    numbers = _checked_numbers(n_components)
    limit = MOST_TIMES * numbers[-1] if most is None else Whole(numbers[-1])("most", most)
    criterion = CRITERIA("criterion", criterion)
    rule = RULES("rule", rule or ("one-se" if criterion == "held-out" else "best"))
    about, given = _model(model)
    selectable: Selectable = part(about.selection)
    table = selectable.read(data)
    random_state = given.get("random_state") if random_state is None else random_state
    seeds = generator(random_state).integers(2**32, size=3).tolist()
    asked = selectable.parameters(**{**given, **settings, "random_state": seeds[1]})
    if getattr(asked, "store", None) is not None:
        many = "store keeps the chains of one fit, but here there are many; leave it out, and pass it to "
        raise DataError(f"{many}{about.name} with the number that was chosen")
    selectable.check_settings(table, [asked.replaced(n_components=k) for k in (numbers[0], numbers[-1])])
    judge: HeldOut | ByCriterion
    if criterion == "held-out":
        others = None if validation is None else selectable.read(validation, table.items)
        if validation is None and n_folds is None and test_size is None:
            few = TEST_SIZE * table.n_agents < LEAST_HELD_OUT
            n_folds = min(N_FOLDS, table.n_agents // 2) if few and table.n_agents >= 4 else None
        test_size = TEST_SIZE if test_size is None else test_size
        folds = list(_folds(table, others, test_size, n_folds, seeds[0]))
        judge = HeldOut(selectable, _affordable(selectable, folds, seeds[2]), seeds[2])
        if judge.n_validation < 2:
            raise DataError("one agent alone says nothing about errors; hold out at least two")
    else:
        with about_parameters():
            _refuse_for_criteria(criterion, rule, validation, test_size, n_folds)
        selectable.check_criterion(criterion, table, asked)
        judge = ByCriterion(selectable, table, criterion)
    if numbers[-1] > judge.fewest:
        raise DataError(
            f"{numbers[-1]} groups are more than the {judge.fewest} agents to fit; try at most {judge.fewest}"
        )
    if judge.n_folds:
        _warn_if_few(judge.n_validation, judge.n_folds, validation is not None)
    n_asked = len(numbers)
    numbers, trials, fits, interrupted = _all_trials(numbers, min(limit, judge.fewest), judge, asked)
    report = judge.table(trials)
    best, within_error = judge.best(report), judge.within_error(report)
    chosen = best if rule == "best" or within_error is None else within_error
    _warn_of_fits(selectable, report, asked)
    fit = fits.get(chosen)
    if (fit is None or (refit and judge.n_folds)) and not interrupted:
        whole = asked.replaced(n_components=chosen)
        fit = selectable.fit(table, whole) if fit is None else selectable.refit(table, whole, fit)
    recurs = {}
    if refit and fit is not None and not (interrupted or fit.interrupted):
        smaller = [number for number in numbers if number < chosen]
        # With the seed that a fit of one of these numbers by itself would have.
        own = random_state if isinstance(random_state, int) else seeds[1]
        alone = asked.replaced(n_components=chosen, random_state=own)
        recurs = recurring(selectable, table, alone, fit, smaller, seeds[2])
    if fit is not None:  # a part of the rows has covariates of its own, which nobody asks about
        fit = with_known(fit, table if fit.n_known[0] == len(table) else table._bare())
    return ComponentSelection(
        table=report,
        best=best,
        one_standard_error=within_error,
        chosen=chosen,
        fit=fit,
        n_train=judge.n_train,
        n_validation=judge.n_validation,
        n_folds=judge.n_folds,
        interrupted=interrupted,
        untried=tuple(numbers[len(trials) :]),
        n_beyond=max(len(trials) - n_asked, 0),
        at_limit=best == numbers[len(trials) - 1] and best > 1,
        estimator=about.name,
        criterion=criterion,
        recurs=recurs,
    )


def _model(model: Any) -> tuple[Model, dict[str, Any]]:
    """Return a model by the name of its command, or that of an estimator with its parameters."""
    names = {part(about.command).name: about for about in MODELS.values() if about.selection}
    if isinstance(model, str):
        return names[Choice(*names)("model", model)], {}
    about = MODELS.get(type(model).__name__)
    if about is None or about not in names.values() or not hasattr(model, "get_params"):
        known = ", ".join(sorted(about.name for about in names.values()))
        raise DataError(f"model must be {Choice(*names).must_be()}, or one of these estimators: {known}")
    given = model.get_params(deep=False)
    return about, {name: value for name, value in given.items() if name != "n_components"}


def _refuse_for_criteria(criterion: str, rule: str, validation: Any, test_size: Any, n_folds: Any) -> None:
    """Refuse what makes sense for agents held out only."""
    asked, held_out = Argument("criterion", criterion), Argument("criterion", "held-out")
    if rule == "one-se":
        use = (" does not have; use ", Argument("rule", "best"), ", or ", held_out)
        raise DataError(Argument("rule", rule), " needs errors, which ", asked, *use)
    given = {"validation": validation is not None, "test_size": test_size is not None}
    given["n_folds"] = n_folds is not None
    why = " is computed on all data, and nobody is held out; leave out "
    for name, is_given in given.items():
        if is_given:
            raise DataError(asked, why, Argument(name), ", or use ", held_out)


def _affordable(model: Selectable, folds: list[tuple[Any, Any]], seed: int) -> list[tuple[Any, Any]]:
    """Leave out of the parts to score what would take too long, and say so."""
    rng = np.random.default_rng(seed)
    kept = [(train, model.affordable(test, rng)) for train, test in folds]
    n, n_kept = (sum(test.n_agents for _, test in parts) for parts in (folds, kept))
    if n_kept < n:
        why = "rankings with so many unlisted items have probabilities that take long to find"
        said = f"{n_kept:,} of {n:,} agents held out are scored, drawn at random: {why}"
        warnings.warn(said, PermixWarning, stacklevel=3)
    return kept


def _warn_of_fits(selectable: Selectable, report: pd.DataFrame, asked: Any) -> None:
    unsettled = report["n_groups"][~report["converged"]]
    if len(unsettled):
        said = f"the fit did not converge with {', '.join(map(str, unsettled))} group(s); raise "
        warnings.warn(ConvergenceWarning(selectable.unsettled(said, asked)), stacklevel=3)


def _warn_if_few(n_agents: int, n_folds: int, given: bool) -> None:
    if n_agents >= FEW_AGENTS:
        return
    advice = () if n_folds > 1 or given else ("; ", Argument("n_folds", 5), " holds everybody out once")
    few = f"only {n_agents} agents are held out, too few to tell numbers of groups apart"
    warnings.warn(PermixWarning(few, *advice), stacklevel=3)


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
    table: Table, validation: Table | None, test_size: float | int, n_folds: int | None, seed: int
) -> Iterator[tuple[Table, Table]]:
    """Pairs of a part to fit and a part to judge by; agents are divided, not rows."""
    if validation is not None:
        if n_folds is not None:
            raise DataError("validation data and n_folds exclude each other; leave one out")
        yield table, validation
    elif n_folds is None:
        yield table.split(test_size, seed)
    else:
        n_folds = Whole(2, table.n_agents)("n_folds", n_folds)
        rng = np.random.default_rng(seed)
        rest, parts = table, []
        for left in range(n_folds, 1, -1):
            rest, part = rest.split(rest.n_agents // left, rng)
            parts.append(part)
        parts.append(rest)
        for number, part in enumerate(parts):
            yield type(table).concat(parts[:number] + parts[number + 1 :]), part


def _all_trials(
    numbers: list[int], limit: int, judge: HeldOut | ByCriterion, asked: Any
) -> tuple[list[int], list[Any], dict[int, Any], bool]:
    """Try all numbers of groups, and larger ones up to ``limit`` as long as the largest is the best.

    Also the numbers, their fits (but for folds), and whether the user stopped.
    """
    trials: list[Any] = []
    fits: dict[int, Any] = {}
    quiet = asked.replaced(progress=False)  # one display at a time
    numbers = list(numbers)
    with Interrupts() as interrupts, Display(asked.progress) as display:
        display.begin("choosing the number of groups", sum(numbers))  # work grows with the number
        if len(numbers) > 1:
            display.lines[0].most = sum(numbers) + sum(range(numbers[-1] + 1, limit + 1))
        while len(trials) < len(numbers):
            number = numbers[len(trials)]
            display.update(f"trying {number}, from {numbers[0]} to {numbers[-1]}")
            try:
                trial, fit = judge.trial(quiet.replaced(n_components=number))
            except KeyboardInterrupt:  # the fit itself was cut short
                if not trials:
                    raise
                interrupts.note()
                break
            trials.append(trial)
            if fit is not None:
                fits[number] = replace(fit, settings=asked.replaced(n_components=number))
            display.update("", done=sum(numbers[: len(trials)]))
            if interrupts.interrupted or judge.is_enough(trials):
                break
            at_end = len(trials) == len(numbers) > 1 and number < limit
            if at_end and judge.best(judge.table(trials)) == number:
                numbers.append(number + 1)
                display.update("", total=sum(numbers))
    interrupted = interrupts.interrupted and len(trials) < len(numbers)
    if interrupted:
        done = ", ".join(map(str, numbers[: len(trials)]))
        said = f"stopped by the user; kept what was finished: {done} group(s)"
        warnings.warn(said, PermixWarning, stacklevel=3)
    return numbers, trials, fits, interrupted
