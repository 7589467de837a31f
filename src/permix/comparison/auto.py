"""Look at the data, try the models that suit them, and fit the best: ``fit_auto`` and ``permix fit auto``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from permix.comparison.compare import (
    NO_TIME,
    STOPPED,
    Candidate,
    Clock,
    OutOfTime,
    chosen_number,
    compare,
    suiting,
)
from permix.comparison.describe import describe, what_suits
from permix.comparison.forms import FORMS, Form, form_of
from permix.comparison.result import UNSTABLE, ModelComparison, Scored, paired
from permix.data.agent_table import AgentTable
from permix.errors import Argument, PermixWarning
from permix.estimators.baselines import times_as_probable
from permix.estimators.checks import Real
from permix.estimators.known import with_known
from permix.estimators.preference_input import as_preferences
from permix.estimators.registry import part
from permix.estimators.wording import listed
from permix.runtime.interrupts import Deadline, Interrupts
from permix.runtime.seeds import RandomState, seed_sequence
from permix.selection.held_out import CLEARLY

# Models are tried on no more than this: what is best there is best on more, but for the number of groups.
MOST_TRIED = {"votes": 4000, "matrix": 20_000, "table": 2000}
# Shares of the time: for comparing models, and of what is then left, for choosing a number of groups.
COMPARING, CHOOSING, FITTING = 0.45, 0.5, 0.9
# A model whose groups recur is preferred to a better one whose do not, if that costs hardly anything: nats.
HARDLY = 0.1
# The same, if it has so much of what the better one gains on the best baseline: groups are what is asked for.
MOST = 2.0 / 3.0
MORE = (Argument("minutes"),)
NOTHING_COMPARED = "Time ran out before any model could be compared"
OF_THE_PART = (
    "There was no time to try numbers of groups on all data, so that {number}, which predicted best where "
    "models were compared, are fitted."
)
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class AutoFit:
    """What :func:`permix.fit_auto` found.

    Attributes
    ----------
    said : tuple of str
        What the data are, which models suit them, which was chosen and why, in sentences.
    comparison : ModelComparison or None
        What the choice rests on; None where time ran out before any model was compared.
    chosen : str
        The model, as ``permix fit`` names it.
    model : fitted estimator
        Fitted to all data, or, where ``partial``, to the part that models were compared on.
    n_groups : int or None
        The number of groups, where the model has to be told it.
    fit, selection
        What is behind the model, and behind its number of groups.
    partial : bool
        Whether the user stopped, or time ran out, before the model was fitted to all data.
    cut_short : bool
        Whether time ran out while it was fitted to all data: what was done until then is here.
    """

    said: tuple[str, ...]
    comparison: ModelComparison | None
    chosen: str
    n_groups: int | None
    fit: Any
    selection: Any = None
    partial: bool = False
    cut_short: bool = False
    interrupted: bool = False
    about: Any = field(default=None, repr=False)  # the model as the registry has it

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return part(self.about.estimator)._from_fit(self.fit)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return, as tables of words and numbers, what a file keeps of how the model was chosen."""
        sentences = {"chosen": [{"said": sentence} for sentence in self.said]}
        if ending := self._ending():
            sentences["ending"] = [{"what": what, "value": value} for what, value in ending.items()]
        if self.comparison is None:
            return sentences
        if not self.comparison.beats_baseline:
            doubt = f"{self.comparison.no_better}; the groups that {self.chosen} shows may not be there."
            sentences["no_better"] = [{"said": doubt}]
        rows = self.comparison.table.reset_index().to_dict(orient="records")
        plain = [
            {str(name): None if value != value else value for name, value in row.items()} for row in rows
        ]
        return {**sentences, "comparison": plain}

    def _ending(self) -> dict[str, str]:
        """Say who stopped the fit, and what it was made on; nothing where it came to its end."""
        if not (self.interrupted or self.cut_short):
            return {}
        told, found = {"stopped": "user" if self.interrupted else "time"}, self.comparison
        if self.partial and found is not None:
            n, unit = found.n_fitted // found.n_folds, FORMS[found.form].unit
            about = "about " if found.n_folds > 1 else ""  # parts that differ by one
            told["made on"] = f"{about}{n:,} of {found.n_all:,} {unit}s"
        return told

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, and how it was chosen, to one file; :func:`permix.load` reads it."""
        from permix.estimators.archive import write_model

        write_model(self.fit, path, self.tables())

    def __repr__(self) -> str:
        return "AutoFit: " + " ".join(self.said)


def fit_auto(
    data: Any,
    *,
    minutes: float = 5.0,
    max_size: int | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    random_state: RandomState = None,
    say: Say | None = None,
) -> AutoFit:
    """Fit the model that predicts best, of those that suit the data.

    Parameters
    ----------
    data : Rankings, Preferences, Cells, or data frame
        Votes, a matrix, or a table, as in :func:`permix.compare`.
    minutes : float
        How long it may take, about: for comparing models a little less than half, the rest for the fit. What
        cannot be stopped, such as compiling on the first run, comes on top.
    max_size : int, optional
        Models are compared on no more than so many agents (cells, rows), drawn at random; left out, 4,000
        agents, 20,000 cells, or 2,000 rows. The chosen one is fitted to all.
    n_jobs, progress
        As in every estimator.
    random_state : int, SeedSequence, Generator or None
        Seed of everything. Results are the same for the same seed unless time runs out.
    say : callable, optional
        Called with a line about each stage when it begins.

    Returns
    -------
    AutoFit
        ``model``, the fitted estimator; ``said``, how it was chosen, in words.

    Notes
    -----
    The model with the largest score is chosen, of those that find groups. Of models that are as good within
    two standard errors, it is the one whose groups are found again most. A model whose groups are mostly not
    found again gives way to one whose are, if that makes an answer less probable by a tenth at most, or
    leaves two thirds of what is gained on the best baseline (in nats): ``compare`` says what predicts best,
    this who belongs together.

    Interrupted (Ctrl-C) or out of time, it keeps what was done: the fit so far, or the best model's fit to
    the part on which models were compared.

    Examples
    --------
    >>> import permix
    >>> made = permix.datasets.make_mallows_mixture(120, 4, 2, dispersion=0.2, random_state=4)
    >>> found = permix.fit_auto(made.data, minutes=1.0, random_state=0)  # doctest: +SKIP
    >>> found.chosen  # doctest: +SKIP
    'mallows'
    """
    clock = Clock(60.0 * Real(above=0.0)("minutes", minutes))
    speak: Say = (lambda line: None) if say is None else say
    form = form_of(data)
    table = form.read(data)
    candidates, left_out = suiting(form, table, "all")
    said = [describe(form, data if form.name == "votes" else table), what_suits(candidates, left_out)]
    for sentence in said:
        speak(sentence)
    n, most = form.size(table), MOST_TRIED[form.name] if max_size is None else max_size
    seed = random_state if isinstance(random_state, int) else _drawn(random_state)
    limit = COMPARING * (clock.left or 0.0)
    where = f"{most:,} of {n:,} {form.unit}s" if n > most else f"{n:,} {form.unit}s"
    tried = f"{len(candidates)} models" if len(candidates) > 1 else "1 model with baselines"
    stages = "3" if any(candidate.about.selection for candidate in candidates) else "2"
    speak(f"stage 1 of {stages}: comparing {tried} on {where}, at most {limit / 60.0:.1f} min")
    with Interrupts() as interrupts:
        comparison: ModelComparison | None = None
        winner: Scored | None = None
        try:
            compared = compare(
                data,
                max_size=max(most, 8),
                minutes=limit / 60.0,
                n_jobs=n_jobs,
                progress=progress,
                random_state=seed,
                keep_fits=True,
            )
        except OutOfTime:
            candidate = next(one for one in candidates if one.compared.pace)  # one that finds groups
            more = [f"{NOTHING_COMPARED}, so that {candidate.way.label}, the first that suits, is fitted."]
        else:
            comparison = compared
            winner, why = choice_of(compared, form)
            more = [compared.verdict, *why, *late_ones(compared)]
            candidate = next(one for one in candidates if one.way.label == winner.label)
        found = AutoFit(
            said=(*said, *more),
            comparison=comparison,
            chosen=candidate.way.label,
            n_groups=None,
            fit=None if winner is None else winner.fit,
            partial=True,
            about=candidate.about,
        )
        if interrupts.interrupted:
            return replace(found, interrupted=True)
        whole = as_preferences(data) if isinstance(data, AgentTable) else table
        settings = {"random_state": seed, "n_jobs": n_jobs, "progress": progress, **candidate.way.options}
        final = Final(candidate, whole, settings, clock, speak, stages)
        groups = np.nan if winner is None else winner.groups
        return final.fitted(found, 1 if np.isnan(groups) else int(groups))


def _drawn(random_state: RandomState) -> int:
    return int(seed_sequence(random_state).generate_state(1)[0])


def late_ones(comparison: ModelComparison) -> list[str]:
    """Say which models had too little time, or none at all."""
    said = []
    for reason, when in ((NO_TIME, "in the time given"), (STOPPED, "when the comparison was stopped")):
        late = [name for name, why in comparison.left_out.items() if why == reason]
        if late:
            verb = "was" if len(late) == 1 else "were"
            said.append(f"{listed(late)} {verb} not finished {when}, and might be better.")
    return said


def choice_of(comparison: ModelComparison, form: Form) -> tuple[Scored, list[str]]:
    """Return the model to fit, and why it is not the one with the largest score, if it is not."""
    entries = comparison.entries
    best = entries[0]
    with_groups = [entry for entry in entries if not np.isnan(entry.groups)] or list(entries)
    counts = comparison.counts
    chosen, why = with_groups[0], []
    if chosen is not best:
        factor = times_as_probable(paired(chosen, best, counts)[0])
        no_better = "" if beats(chosen, comparison) else ", which is no better than a simple description"
        why.append(
            f"{best.label} finds no groups; under {chosen.label}, the best model that does, {form.said} is "
            f"{factor} times as probable{no_better}."
        )
    near = [entry for entry in with_groups if _is_near(entry, chosen, counts)]
    stablest = max(near, key=lambda entry: (_stability(entry), entry is chosen))
    if _stability(stablest) > _stability(chosen) + 0.05:
        why.append(
            f"{stablest.label} is fitted: it is as good as {chosen.label}, and its groups are found again "
            "more often."
        )
        chosen = stablest
    if chosen.stability < UNSTABLE:
        loss = {entry.label: paired(entry, chosen, counts)[0] for entry in with_groups}
        steady = [
            e
            for e in with_groups
            if e.stability >= UNSTABLE and (loss[e.label] >= -HARDLY or _keeps_most(e, chosen, comparison))
        ]
        if steady:
            other = max(steady, key=lambda entry: loss[entry.label])
            why.append(
                f"{other.label} is fitted, since groups of {chosen.label} are mostly not found again, and "
                f"those of {other.label} are (that of {form.member} by {other.stability:.0%} of the other "
                f"chains or restarts, on average), while {form.said} is "
                f"{times_as_probable(loss[other.label])} times as probable."
            )
            chosen = other
    return chosen, why


def beats(entry: Scored, comparison: ModelComparison) -> bool:
    """Say whether a model is better than the best baseline by two standard errors."""
    difference, error = paired(entry, comparison.simple, comparison.counts)
    return difference > CLEARLY * error


def _keeps_most(entry: Scored, best: Scored, comparison: ModelComparison) -> bool:
    """Say whether a model has most of what another gains on the best baseline."""
    gains = [paired(each, comparison.simple, comparison.counts)[0] for each in (entry, best)]
    return beats(entry, comparison) and gains[0] >= MOST * gains[1]


def _stability(entry: Scored) -> float:
    """Return how stable groups are; what is not known is neither good nor bad."""
    return UNSTABLE if np.isnan(entry.stability) else entry.stability


def _is_near(entry: Scored, best: Scored, counts: Any) -> bool:
    difference, error = paired(entry, best, counts)
    return difference >= -CLEARLY * error


@dataclass
class Final:
    """The fit of the chosen model to all data, in the time that is left."""

    candidate: Candidate
    data: Any
    settings: dict[str, Any]
    clock: Clock
    say: Say
    stages: str

    def fitted(self, found: AutoFit, groups: int) -> AutoFit:
        """Choose the number of groups, where the model has to be told, and fit."""
        about, compared, way = self.candidate
        number, selection, stage = None, None, 2
        known = {name: value for name, value in self.settings.items() if name in compared.parameters.declared}
        if about.selection and "n_components" not in way.options:
            self.say(f"stage 2 of {self.stages}: choosing the number of groups of {way.label} on all data")
            number, selection = self._number(known, groups)
            known["n_components"], stage = number, 3
            if selection is None:
                said = OF_THE_PART.format(number=number)
                self.say(said)
                found = replace(found, said=(*found.said, said))
        left = FITTING * (self.clock.left or 0.0)
        with_k = f" with {number} group{'' if number == 1 else 's'}" if number is not None else ""
        self.say(
            f"stage {stage} of {self.stages}: fitting {way.label}{with_k}, at most {left / 60.0:.1f} min"
        )
        with Interrupts() as interrupts, Deadline(left) as deadline, warnings.catch_warnings():
            # They cannot know who stopped it; it is said with the fit.
            said = "(interrupted after|stopped early|interrupted: this is the best)"
            warnings.filterwarnings("ignore", said, PermixWarning)
            try:
                fit = compared.fit(self.data, compared.parameters(**known))
            except KeyboardInterrupt:  # neither the user nor the clock left enough for a result
                if found.fit is None:
                    if interrupts.interrupted:
                        raise
                    raise OutOfTime("time ran out before there was a fit; allow more ", *MORE) from None
                return replace(found, n_groups=number, interrupted=interrupts.interrupted, cut_short=True)
        return replace(
            found,
            n_groups=number,
            fit=with_known(fit, self.data),
            selection=selection,
            partial=False,
            cut_short=deadline.passed and bool(getattr(fit, "interrupted", False)),
            interrupted=interrupts.interrupted,
        )

    def _number(self, known: dict[str, Any], groups: int) -> tuple[int, Any]:
        """Choose the number of groups on all data, in half of the time left; else that of the part."""
        most = max(10, groups + 5)
        with Deadline(CHOOSING * (self.clock.left or 0.0)) as deadline, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "stopped (by the user|early)", PermixWarning)
            try:
                selection = chosen_number(self.candidate.about, self.data._bare().collapse(), known, most)
            except KeyboardInterrupt:
                return groups, None
        late = deadline.passed and selection.interrupted
        if late and selection.at_limit and groups > selection.chosen:
            # More groups were better as long as there was time: the part, where all were tried, knows more.
            return groups, None
        return selection.chosen, replace(selection, out_of_time=late)
