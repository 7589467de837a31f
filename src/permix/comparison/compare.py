"""Which model says most about people who were not fitted? All score the same rows, held out once."""

from __future__ import annotations

import re
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from permix.comparison.forms import Form, divided, form_of
from permix.comparison.result import ModelComparison, Scored, comparison_of
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixError, PermixWarning
from permix.estimators.checks import Real, Whole
from permix.estimators.comparable import Comparable, Way, comparable_of
from permix.estimators.known import memberships_of
from permix.estimators.registry import MODELS, Model, find_plug_ins, part
from permix.runtime.executors import Executor, Recipe, new_token
from permix.runtime.interrupts import Deadline, Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import RandomState, seed_sequence

# Numbers of groups that finite mixtures choose from, and agents that each group should have at least.
MOST_GROUPS = 10
LEAST_AGENTS = 10
# With a limit of time, models are compared on so many first, and on more if that is quick enough.
FIRST = {"votes": 2000, "matrix": 10_000, "table": 1000}
# Of the time left, for the first part and for others; if there is no result, so many times fewer are tried.
FIRST_SHARE, LAST_SHARE, SMALLER, LEAST_LOOKED_AT = 0.75, 0.9, 4, 100
# A larger part should take so much of the time left, if time grows as this power of the size.
AFFORDED, GROWTH = 0.6, 1.2
# Of the time of a model, the share for fitting it: the rest is for scoring.
FITTING = 0.8
# Of the time of a finite mixture, the share for choosing its number of groups.
CHOOSING = 0.7
# Words of a left-out model whose time ran out.
NO_TIME = "was not finished in the time it was given"
# Words of one that was not finished, or not begun, when the user stopped.
STOPPED = "was not finished when the comparison was stopped"
# What models say that were interrupted, and what is true where the clock did it, up to so much of its time.
ENDED = re.compile("interrupted|stopped (by|early)")
RAN_OUT, ALL_BUT = "time ran out before it came to its end", 0.99
# Forms of data that are spoken of without an article.
PLURAL = ("votes", "classes")


class OutOfTime(DataError):
    """Time ran out before any model could be compared."""


class Candidate(NamedTuple):
    """A model that suits the data, and one way to fit it."""

    about: Model
    compared: Comparable
    way: Way


def compare(
    data: Any,
    models: str | Iterable[str] = "all",
    *,
    test_size: float | None = None,
    n_folds: int | None = None,
    max_size: int | None = None,
    minutes: float | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    random_state: RandomState = None,
    keep_fits: bool = False,
    executor: Executor | None = None,
) -> ModelComparison:
    """Compare all models that suit the data by how probable they make data that they did not see.

    Parameters
    ----------
    data : Rankings, Preferences, Cells, or data frame
        Votes, of which agents are held out; a matrix, of which cells are; or a table, of which rows are.
    models : "all", or names
        Names as in ``permix fit`` ("mallows") or of classes ("MallowsMixture").
    test_size : float, optional
        Share of agents (cells, rows) held out. Left out, a quarter, if that is 100 at least; of fewer,
        everything is held out once, in three parts.
    n_folds : int, optional
        Cross-validation with so many parts: it takes so many times as long.
    max_size : int, optional
        Look at no more than so many agents (cells, rows), drawn at random.
    minutes : float, optional
        A limit: what is left of it is shared evenly by the models that are left. Large data are compared in
        part first, and in as large a part as there is time for then (``max_size`` turns that off). Chains are
        cut short, if need be their burn-in, too; a model that has nothing to show by then is listed with
        that reason. What cannot be stopped, such as compiling on the first run, comes on top.
    n_jobs, progress
        As in every estimator.
    random_state : int, SeedSequence, Generator or None
        Seed of the parts, the fits and the scores.
    keep_fits : bool
        Keep the last fit of each model, in ``entries``.
    executor : Executor, optional
        Where models are fitted: ``permix.runtime.on_dask.OnDask(client)`` spreads models and parts over the
        workers of a Dask cluster, with the same result. Not with ``minutes``. Left out, in turn here.

    Returns
    -------
    ModelComparison
        ``verdict``, in words; ``table``, a row for each model and each baseline; ``left_out``, the models
        that do not suit the data, with reasons.

    Notes
    -----
    All models score the same event of the same agents: that somebody who was asked the same (who ranked as
    many items, or those items, or compared those pairs) gives just this answer. Its probability is the sum
    over all full rankings that agree with the answer, and sums to one over all answers to the same question.
    So models of full rankings, top lists and comparisons stand side by side. Models whose probabilities do
    not sum to one are left out, with the reason.

    Everything a model learns, it learns from the part that is fitted: numbers of groups of finite mixtures
    are chosen there, by holding out a part of it (:func:`permix.select_components`).

    Interrupted (Ctrl-C), models that were finished are kept.

    Examples
    --------
    >>> import permix
    >>> made = permix.datasets.make_mallows_mixture(400, 5, 2, dispersion=0.3, random_state=4)
    >>> found = permix.compare(made.data, ["mallows", "kde"], random_state=0)
    >>> found.best, found.beats_baseline
    ('mallows', True)
    >>> int(found.table.loc["mallows", "groups"])
    2
    """
    clock = Clock(None if minutes is None else 60.0 * Real(above=0.0)("minutes", minutes))
    if minutes is not None and executor is not None:
        raise DataError(
            "give ", Argument("minutes"), " or an executor, not both: a limit is shared by models in turn"
        )
    form = form_of(data)
    table = form.read(data)
    n_all = form.size(table)
    size = n_all if max_size is None else Whole(8)("max_size", max_size)
    asked = Asked(form, table, models, test_size, n_folds, n_jobs, progress, keep_fits, executor)
    entropy = seed_sequence(random_state)
    if clock.limit is None or max_size is not None or n_all <= 2 * FIRST[form.name]:
        return _compared(asked, min(size, n_all), entropy, clock)
    return _in_time(asked, n_all, entropy, clock)


class Asked(NamedTuple):
    """What is to be compared on which data, and how."""

    form: Form
    table: Any
    models: str | Iterable[str]
    test_size: float | None
    n_folds: int | None
    n_jobs: int | None
    progress: bool | None
    keep_fits: bool
    executor: Executor | None


def _in_time(asked: Asked, n_all: int, entropy: np.random.SeedSequence, clock: Clock) -> ModelComparison:
    """Compare on a part of the data, then on the largest that there is time for, judged by the last."""
    size, found = FIRST[asked.form.name], None
    while True:
        began, left = time.monotonic(), clock.left or 0.0
        share = FIRST_SHARE if found is None else LAST_SHARE
        try:
            larger = _compared(asked, size, entropy, Clock(share * left), fewer_for_time=size < n_all)
        except (OutOfTime, KeyboardInterrupt) as error:
            if found is not None:
                return found if isinstance(error, OutOfTime) else _stopped(found)
            size //= SMALLER
            if isinstance(error, KeyboardInterrupt) or size < LEAST_LOOKED_AT:
                raise
            continue
        if found is not None and len(larger.entries) < len(found.entries):
            return _stopped(found) if larger.interrupted else found
        found = larger
        taken, left = time.monotonic() - began, clock.left or 0.0
        # Work grows somewhat faster than data; what is compiled once is counted here, to be safe.
        most = int(size * (AFFORDED * left / taken) ** (1.0 / GROWTH))
        late = any(why == NO_TIME for why in found.left_out.values())
        cut = late or any(entry.cut_short for entry in found.entries)
        if found.interrupted or cut or size == n_all or most < 2 * size:
            return found
        size = min(most, n_all)


def _stopped(found: ModelComparison) -> ModelComparison:
    warnings.warn("stopped by the user; kept what was found on fewer", PermixWarning, stacklevel=4)
    return replace(found, interrupted=True)


def _compared(
    asked: Asked, size: int, entropy: np.random.SeedSequence, clock: Clock, fewer_for_time: bool = False
) -> ModelComparison:
    """Compare on so many units."""
    form, table, models = asked.form, asked.table, asked.models
    n_all = form.size(table)
    rng = np.random.default_rng(entropy)
    if size < n_all:
        table = form.some(table, size, rng)
    candidates, left_out = suiting(form, table, models)
    folds = divided(form, table, asked.test_size, asked.n_folds, rng)
    folds, n_left = _affordable(form, candidates, folds, rng)
    engine = Engine(form, folds, entropy, asked.n_jobs, clock, asked.keep_fits, asked.executor)
    with Interrupts() as interrupts, Display(asked.progress) as display:
        display.begin("comparing models", len(candidates) * len(folds), alike=False)
        simple = suiting(form, table, "all")[0]
        scored, dropped = engine.run(candidates, interrupts, display)
        left_out |= dropped
        n_done = engine.n_done
        display.update("baselines")
        baselines = engine.baselines(simple) if scored else {}
    stopped = interrupts.interrupted
    if not scored:
        if stopped:
            raise KeyboardInterrupt
        why = "; ".join(f"{name} {reason}" for name, reason in left_out.items())
        if any(reason == NO_TIME for reason in left_out.values()):
            more = ("; allow more ", Argument("minutes"), ", or look at fewer, with ", Argument("max_size"))
            raise OutOfTime(f"no model could be compared: {why}", *more)
        raise DataError(f"no model could be compared: {why}")
    if stopped:
        done = ", ".join(entry.label for entry in scored)
        warnings.warn(f"stopped by the user; kept what was finished: {done}", PermixWarning, stacklevel=3)
    return comparison_of(
        form,
        scored,
        baselines,
        engine.counts,
        left_out,
        n_fitted=sum(form.size(train) for train, _ in folds[:n_done]),
        n_folds=n_done,
        n_folds_asked=len(folds),
        n_all=n_all,
        n_looked_at=form.size(table),
        n_unscored=n_left,
        interrupted=stopped,
        fewer_for_time=fewer_for_time,
    )


def suiting(form: Form, table: Any, models: str | Iterable[str]) -> tuple[list[Candidate], dict[str, str]]:
    """Return the models that suit the data, and why others do not, by the names of their commands."""
    find_plug_ins()
    wanted = None if models == "all" else set(_chosen(models))
    candidates, left_out = [], {}
    for about in MODELS.values():
        if wanted is not None and about.name not in wanted:
            continue
        compared, name = comparable_of(about), _name(about)
        if compared is None:
            left_out[name] = "does not say how it is compared"
        elif compared.form != form.name:
            left_out[name] = f"is for {'' if compared.form in PLURAL else 'a '}{compared.form}"
        elif (reason := compared.suits(table)) is not None:
            left_out[name] = reason
        elif wanted is None and compared.if_named:
            left_out[name] = compared.if_named
        else:
            candidates += [Candidate(about, compared, way) for way in compared.ways(table)]
    if not candidates:
        told = left_out if wanted is not None else _of_this_form(left_out, form)
        why = "; ".join(f"{name} {reason}" for name, reason in (told or left_out).items())
        as_what = form.name if form.name in PLURAL else f"a {form.name}"
        raise DataError(f"no model suits these data as {as_what}: {why}")
    if wanted is None:  # nobody asked for models of other data
        left_out = _of_this_form(left_out, form)
    return sorted(candidates, key=lambda candidate: candidate.compared.pace), left_out


def _of_this_form(left_out: dict[str, str], form: Form) -> dict[str, str]:
    """Leave out what is said of models of other data, which nobody asked for."""
    others = {_name(about) for about in MODELS.values() if _form(about) != form.name}
    return {name: why for name, why in left_out.items() if name not in others}


def _form(about: Model) -> str:
    compared = comparable_of(about)
    return "" if compared is None else compared.form


def _name(about: Model) -> str:
    """Return what people call a model: the word of its command; its class, where that has another model."""
    if not about.command:
        return about.name
    command = part(about.command)
    return str(command.name) if command.parameters is _parameters(about) else about.name


def _parameters(about: Model) -> Any:
    compared = comparable_of(about)
    return None if compared is None else compared.parameters


def _chosen(models: str | Iterable[str]) -> Iterator[str]:
    """Yield names of classes, of models that were named by class or command."""
    known = {_name(about): about.name for about in MODELS.values()} | {name: name for name in MODELS}
    for name in [models] if isinstance(models, str) else list(models):
        if name not in known:
            words = ", ".join(sorted(_name(about) for about in MODELS.values()))
            raise DataError(f"there is no model {name!r}; known are {words}")
        yield known[name]


def _affordable(
    form: Form, candidates: list[Candidate], folds: list[tuple[Any, Any]], rng: np.random.Generator
) -> tuple[list[tuple[Any, Any]], int]:
    """Leave out of all parts to score what takes one of the models too long; also how many units that is."""
    kept = []
    for train, test in folds:
        scored = test
        for candidate in candidates:
            scored = candidate.compared.affordable(scored, rng)
        kept.append((train, scored))
    return kept, sum(form.size(test) for _, test in folds) - sum(form.size(test) for _, test in kept)


@dataclass
class Clock:
    """How much time is left, if there is a limit."""

    limit: float | None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """Seconds left; None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - (time.monotonic() - self.began))

    def share(self, n: int) -> float | None:
        """Seconds for the next of n pieces of work."""
        left = self.left
        return None if left is None else left / n


class Part(NamedTuple):
    """What a model makes of one part that was held out."""

    scores: Array
    errors: Array
    groups: float
    stability: float
    seconds: float
    cut_short: bool
    notes: tuple[str, ...]
    fit: Any


@dataclass
class Engine:
    """Fits and scores models on the same parts of the data."""

    form: Form
    folds: list[tuple[Any, Any]]
    entropy: np.random.SeedSequence
    n_jobs: int | None
    clock: Clock
    keep_fits: bool = False
    executor: Executor | None = None  # for fits; left out, here, one after another
    n_done: int = 0  # folds that all models have scored

    @property
    def done(self) -> list[tuple[Any, Any]]:
        """The folds that all models have scored."""
        return self.folds[: self.n_done]

    @property
    def counts(self) -> Array:
        """How many units each scored row stands for, over all folds."""
        return np.concatenate([self.form.counts(test) for _, test in self.done])

    def run(
        self, candidates: list[Candidate], interrupts: Interrupts, display: Display
    ) -> tuple[list[Scored], dict[str, str]]:
        """Return what models make of all folds, and why others make nothing of them.

        All models score one fold before any scores the next: where time runs out, those that were finished
        are compared on the folds that all have scored.
        """
        going = {candidate.way.label: candidate for candidate in candidates}
        parts: dict[str, list[Part]] = {label: [] for label in going}
        left_out: dict[str, str] = {}
        known = self._elsewhere(candidates)
        for fold in range(len(self.folds)):
            began, labels = time.monotonic(), list(going)
            found: dict[str, Part] = {}
            for number, label in enumerate(labels):
                display.update(self._stage(label, fold))
                one = known.get((label, fold)) or self.scored(
                    going[label], fold, self.clock.share(len(labels) - number)
                )
                if interrupts.interrupted:  # cut short by the user, however far it came
                    break
                display.step()
                if isinstance(one, Part):
                    found[label] = one
                elif fold == 0:
                    left_out[label] = one
                    del going[label]
                else:  # it was finished before: this part is nobody's
                    break
            if interrupts.interrupted and fold == 0:  # what was finished can still be compared
                left_out |= {label: STOPPED for label in going if label not in found}
                going = {label: going[label] for label in found}
            if len(found) < len(going):
                break
            for label, one in found.items():
                parts[label].append(one)
            self.n_done = fold + 1 if found else 0
            left = self.clock.left
            if interrupts.interrupted or (left is not None and left < time.monotonic() - began):
                break
        return [self._joined(going[label], parts[label]) for label in going if parts[label]], left_out

    def _elsewhere(self, candidates: list[Candidate]) -> dict[tuple[str, int], Part | str]:
        """Return what models make of folds, where these are left to an executor."""
        if self.executor is None:
            return {}
        bare = replace(self, folds=[], executor=None)
        asked = [(each, fold) for each in candidates for fold in range(len(self.folds))]
        token = new_token()
        # All that a task needs goes with it, once.
        tasks = [
            Recipe(
                f"{token}-{at}",
                f"{each.way.label}, part {fold + 1}",
                Task,
                (bare, each, fold, *self.folds[fold]),
            )
            for at, (each, fold) in enumerate(asked)
        ]
        found = self.executor.map_shards(_scored, tasks)
        self.executor.forget(tasks)
        places = [(each.way.label, fold) for each, fold in asked]
        return dict(zip(places, found, strict=True))

    def _stage(self, label: str, fold: int) -> str:
        left = self.clock.left
        limit = "" if left is None else f", at most {left / 60.0:.1f} min"
        of_all = f", part {fold + 1} of {len(self.folds)}" if len(self.folds) > 1 else ""
        return f"{label}{of_all}{limit}"

    def _joined(self, candidate: Candidate, parts: list[Part]) -> Scored:
        return Scored(
            candidate.way.label,
            candidate.about.name,
            np.concatenate([one.scores for one in parts]),
            np.concatenate([one.errors for one in parts]),
            float(np.median([one.groups for one in parts])),
            float(np.mean([one.stability for one in parts])),
            sum(one.seconds for one in parts),
            any(one.cut_short for one in parts),
            tuple(dict.fromkeys(said for one in parts for said in one.notes)),
            parts[-1].fit,
        )

    def seed(self, *words: object) -> int:
        """Return a seed that depends on what it is for, and not on what else is compared."""
        known = [zlib.crc32(str(word).encode()) for word in words]
        base = self.entropy.generate_state(4).tolist()
        return int(np.random.SeedSequence([*base, *known]).generate_state(1)[0])

    def baselines(self, candidates: list[Candidate]) -> dict[str, Array]:
        """Return ln p of all that was held out under simpler models, by name."""
        for candidate in candidates:
            found = []
            for fold, (train, test) in enumerate(self.done):
                seed = self.seed("baselines", fold)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PermixWarning)  # about models nobody asked for
                    found.append(candidate.compared.baselines(train, test, candidate.way.options, seed))
            if found[0]:
                return {name: np.concatenate([of[name] for of in found]) for name in found[0]}
        raise DataError(f"no model of a {self.form.name} says what simpler models are")

    def scored(self, candidate: Candidate, fold: int, seconds: float | None) -> Part | str:
        """Return what a model makes of one fold, or why it makes nothing of it."""
        label, began, (train, test) = candidate.way.label, time.monotonic(), self.folds[fold]
        for_fit = None if seconds is None else FITTING * seconds
        with warnings.catch_warnings(record=True) as caught, Deadline(seconds) as for_all:
            warnings.simplefilter("always")
            try:
                with Deadline(for_fit) as deadline:
                    fit, cut_short = self.fitted(candidate, train, self.seed(label, fold), for_fit)
                cut_short, fitting = cut_short or deadline.passed, time.monotonic() - began
                improper = candidate.compared.improper(fit)
                if improper is not None:
                    return improper
                scores, errors = candidate.compared.score(fit, test, self.seed("score", fold))
            except KeyboardInterrupt:
                return NO_TIME if deadline.passed or for_all.passed else STOPPED
            except PermixError as error:
                return f"failed: {error}"
        if not np.isfinite(scores).all():
            return f"makes {int((~np.isfinite(scores)).sum())} of the answers held out impossible"
        notes = tuple(str(w.message) for w in caught if issubclass(w.category, PermixWarning))
        if for_fit is not None and fitting >= ALL_BUT * CHOOSING * for_fit:
            notes = in_time_given(notes)
        found = groups_and_stability(fit)
        kept = fit if self.keep_fits else None
        return Part(scores, errors, *found, time.monotonic() - began, cut_short, notes, kept)

    def fitted(
        self, candidate: Candidate, data: Any, seed: int, seconds: float | None = None
    ) -> tuple[Any, bool]:
        """Fit a model with its defaults, and say whether time ran out before numbers of groups were tried.

        Finite mixtures choose a number of groups on these data alone.
        """
        about, compared, way = candidate
        common = {"random_state": seed, "progress": None, "n_jobs": self.n_jobs, **way.options}
        known = {name: value for name, value in common.items() if name in compared.parameters.declared}
        if not about.selection or "n_components" in way.options:
            return compared.fit(data, compared.parameters(**known)), False
        with Deadline(None if seconds is None else CHOOSING * seconds) as deadline:
            chosen = chosen_number(about, data, known)
        if chosen.n_folds > 1 and chosen.fit is not None:  # to all of these data
            return chosen.fit, deadline.passed
        fit = compared.fit(data, compared.parameters(n_components=chosen.chosen, **known))
        return fit, deadline.passed


class Task(NamedTuple):
    """A model and a part of the data, for an executor."""

    engine: Engine
    candidate: Candidate
    fold: int
    train: Any
    test: Any


def _scored(task: Task, _: Any) -> Part | str:
    folds = [(task.train, task.test)] * (task.fold + 1)  # seeds go by the number of the fold
    return replace(task.engine, folds=folds).scored(task.candidate, task.fold, None)


def in_time_given(notes: Sequence[str]) -> tuple[str, ...]:
    """Return what models warned of, where the clock ended them: they cannot know that it was no user.

    Examples
    --------
    >>> in_time_given(["stopped by the user; kept what was finished: 1, 2 group(s)", "few agents"])
    ('time ran out before it came to its end', 'few agents')
    """
    return tuple(dict.fromkeys(RAN_OUT if ENDED.match(note) else note for note in notes))


def chosen_number(about: Model, data: Any, settings: Mapping[str, Any], most: int = MOST_GROUPS) -> Any:
    """Choose the number of groups of a finite mixture by holding out a part of the data."""
    select = part("permix.selection.select_components:select_components")
    numbers = range(1, max(1, min(most, data.n_agents // LEAST_AGENTS)) + 1)
    return select(data, numbers, model=part(about.command).name, **settings)


def groups_and_stability(fit: Any) -> tuple[float, float]:
    """Return how many groups a fit has, and how stable they are; NaN: not known.

    Stable is the share of the chains, or of the other restarts, that find the group of an agent, on average.
    """
    if not hasattr(fit, "memberships"):
        return np.nan, np.nan
    found = memberships_of(fit)
    if found.recur is None:
        return float(found.n_groups), np.nan
    weights = np.ones(len(found.labels)) if found.counts is None else found.counts
    return float(found.n_groups), float(weights @ found.recur[found.labels]) / float(weights.sum())
