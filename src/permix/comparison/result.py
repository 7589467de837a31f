"""What a comparison of models found: a table, and what it means in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.comparison.forms import FORMS, Form
from permix.data.labels import Array
from permix.estimators.baselines import WORDS, times_as_probable
from permix.estimators.wording import listed
from permix.selection.held_out import CLEARLY, mean_and_errors

if TYPE_CHECKING:
    import pandas as pd

# What ends the name of a baseline in tables.
BASELINE = " (baseline)"
# Where fewer chains, or other restarts, find the group of an agent, groups are not to be relied on.
UNSTABLE = 0.5


class Scored(NamedTuple):
    """One model: ln p of everything that was held out, and what it found on the way."""

    label: str
    model: str  # its class; "" for a baseline
    scores: Array
    errors: Array  # Monte Carlo errors of the scores
    groups: float = np.nan
    stability: float = np.nan
    seconds: float = np.nan
    cut_short: bool = False
    notes: tuple[str, ...] = ()
    fit: Any = None


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """What :func:`permix.compare` found.

    Attributes
    ----------
    verdict : str
        What the comparison means, in a few sentences.
    table : DataFrame
        A row for each model and each baseline, the best first, see Notes.
    best : str
        The model with the largest score.
    baseline : str
        The best of the baselines.
    beats_baseline : bool
        Whether the best model is better than that by more than two standard errors of the difference.
    tied : tuple of str
        Models that are not worse than the best by more than two standard errors of the difference.
    left_out : dict
        Models that were not compared, and why.
    notes : dict
        What fits warned of, by model.
    form : {"votes", "matrix", "table"}
        What was compared.
    n_all, n_looked_at : int
        Agents (cells, rows) in the data, and of these, those that were looked at.
    n_fitted, n_held_out, n_folds : int
        Of those, how many were fitted and scored, over all folds, and the number of folds.
    n_folds_asked : int
        The number of folds before time ran out.
    n_unscored : int
        Held out, but left out of the scores of all models, since scoring takes one of them too long.
    interrupted : bool
        Whether the user stopped it before all models were compared.
    fewer_for_time : bool
        Whether ``n_looked_at`` is what the limit of time allowed.

    Notes
    -----
    Columns of ``table``: ``kind``, model or baseline; ``score``, the mean ln of the probability (of a table:
    density) of what was held out, in nats; ``error``, its standard error over agents and Monte Carlo draws;
    ``monte_carlo_error``, the part of it that is due to random numbers; ``difference`` to the best model and
    ``difference_error``: paired, both score the same agents; ``times``, how many times as probable as under
    the best baseline, in the geometric mean; ``groups``, the median over folds; ``stability``, which
    share of the chains, or of the other restarts, finds the group of an agent, on average; ``seconds``;
    ``cut_short``, whether time ran out.
    """

    verdict: str
    table: pd.DataFrame
    best: str
    baseline: str
    beats_baseline: bool
    tied: tuple[str, ...]
    left_out: dict[str, str]
    notes: dict[str, tuple[str, ...]]
    form: str
    n_all: int
    n_looked_at: int
    n_fitted: int
    n_held_out: int
    n_folds: int
    n_folds_asked: int
    n_unscored: int
    interrupted: bool
    fewer_for_time: bool = False  # whether time allowed for no more than were looked at
    entries: tuple[Scored, ...] = ()  # models, the best first
    simple: Any = None  # the best baseline
    counts: Any = None  # how many agents each row stands for that was scored

    @property
    def no_better(self) -> str:
        """That no model is better than the best baseline, in words; empty where one is."""
        gain, error = paired(self.entries[0], self.simple, self.counts)
        if self.beats_baseline:
            return ""
        name = self.simple.label.removesuffix(BASELINE)
        which = f" ({'a plain list of the answers with their shares' if name == 'empirical' else name})"
        return f"{no_better(FORMS[self.form], gain < -CLEARLY * error)}{which}"

    def __repr__(self) -> str:
        shown = self.table[
            ["score", "difference", "difference_error", "times", "groups", "stability", "seconds"]
        ]
        text = shown.to_string(float_format="{:.4g}".format, na_rep="")
        return f"ModelComparison: {self.verdict}\n{text}"


def comparison_of(
    form: Form,
    models: list[Scored],
    baselines: Mapping[str, Array],
    counts: Array,
    left_out: dict[str, str],
    *,
    n_fitted: int,
    n_folds: int,
    n_folds_asked: int,
    n_all: int,
    n_looked_at: int,
    n_unscored: int,
    interrupted: bool,
    fewer_for_time: bool = False,
) -> ModelComparison:
    """Put models and baselines side by side."""
    import pandas as pd

    simple = [
        Scored(f"{name}{BASELINE}", "", values, np.zeros_like(values)) for name, values in baselines.items()
    ]
    means = {entry.label: mean_and_errors(entry.scores, entry.errors, counts) for entry in [*models, *simple]}

    def by_score(entry: Scored) -> float:
        return -means[entry.label][0]

    models, simple = sorted(models, key=by_score), sorted(simple, key=by_score)
    best, baseline = models[0], simple[0]
    rows = []
    for entry in sorted([*models, *simple], key=by_score):
        mean, error, noise = means[entry.label]
        difference, difference_error = paired(entry, best, counts)
        row = {
            "model": entry.label,
            "kind": "model" if entry.model else "baseline",
            "score": mean,
            "error": error,
            "monte_carlo_error": noise,
            "difference": difference,
            "difference_error": difference_error,
            "times": float(np.exp(np.clip(mean - means[baseline.label][0], -700.0, 700.0))),
            **{name: getattr(entry, name) for name in ("groups", "stability", "seconds", "cut_short")},
        }
        rows.append(row)
    table = pd.DataFrame(rows).set_index("model")
    near = [entry.label for entry in models[1:] if _near(entry, best, counts)]
    gain, gain_error = paired(best, baseline, counts)
    beats = gain > CLEARLY * gain_error
    said = [in_words(form, models, simple, counts, beats)]
    if n_folds < n_folds_asked:
        why = "the comparison was stopped" if interrupted else "time ran out"
        verb = "was" if n_folds == 1 else "were"
        said.append(
            f"Only {n_folds} of {n_folds_asked} parts of the {form.unit}s {verb} held out and scored, since "
            f"{why}: errors are larger than they need be."
        )
    if fewer_for_time:
        said.append(
            f"Models were compared on {n_looked_at:,} of {n_all:,} {form.unit}s, drawn at random: more could "
            "not have been fitted in the time given."
        )
    return ModelComparison(
        verdict=" ".join(said),
        table=table,
        best=best.label,
        baseline=baseline.label.removesuffix(BASELINE),
        beats_baseline=beats,
        tied=tuple(near),
        left_out=dict(left_out),
        notes={entry.label: entry.notes for entry in models if entry.notes},
        form=form.name,
        n_all=n_all,
        n_looked_at=n_looked_at,
        n_fitted=n_fitted,
        n_held_out=int(counts.sum()),
        n_folds=n_folds,
        n_folds_asked=n_folds_asked,
        n_unscored=n_unscored,
        interrupted=interrupted,
        fewer_for_time=fewer_for_time,
        entries=tuple(models),
        simple=baseline,
        counts=counts,
    )


def paired(entry: Scored, other: Scored, counts: Array) -> tuple[float, float]:
    """Return the mean difference of two scores of the same rows, and its standard error."""
    if entry is other:
        return 0.0, 0.0
    # Errors of the two are added as if they were independent: both may rest on draws of their own.
    both = np.hypot(entry.errors, other.errors)
    difference, error, _ = mean_and_errors(entry.scores - other.scores, both, counts)
    return difference, error


def _near(entry: Scored, best: Scored, counts: Array) -> bool:
    difference, error = paired(entry, best, counts)
    return difference >= -CLEARLY * error


def in_words(form: Form, models: list[Scored], simple: list[Scored], counts: Array, beats: bool) -> str:
    """Say what the comparison means; models and baselines are sorted, the best first."""
    best, baseline = models[0], simple[0]
    gain, error = paired(best, baseline, counts)
    name = baseline.label.removesuffix(BASELINE)
    low, high = (_factor(gain + side * CLEARLY * error) for side in (-1.0, 1.0))
    factor = f"{_factor(gain)} times as probable as {WORDS[name]} ({low} to {high})"
    if not beats:
        lost = gain < -CLEARLY * error
        sure, as_good = ("", "better") if lost else (", which may be chance", "as well")
        said = [
            f"{no_better(form, lost)}: under the best, {best.label}, {form.said} is on average "
            f"{factor}{sure}.",
            f"Many gave the very same answers, and a list of these predicts {as_good}."
            if name == "empirical"
            else "It finds no second group."
            if best.groups == 1.0
            else "Groups that it shows may not be there.",
        ]
    else:
        said = [f"{best.label} predicts best: {form.said} is on average {factor}."]
        one = next((entry for entry in simple[1:] if entry.label == f"one group{BASELINE}"), None)
        if one is not None and best.groups > 1.0:
            more = _factor(paired(best, one, counts)[0])
            said.append(f"Knowing groups makes it {more} times as probable as if all were one group.")
    if best.stability < UNSTABLE:
        found = f"{best.stability:.0%}" if best.stability > 0.0 else "none"
        said.append(
            f"Do not rely on the groups of {best.label}: other chains or restarts find other groups (that of "
            f"{form.member} is found again by {found} of them, on average). It is good at predicting, not at "
            "saying who belongs together."
        )
    if late := [entry.label for entry in models if entry.cut_short]:
        said.append(f"{listed(late)} had less time than needed, and might do better with more.")
    near = [entry.label for entry in models[1:] if _near(entry, best, counts)]
    # What had less time than needed is beaten by nothing yet.
    worse = [entry for entry in models[1:] if entry.label not in near and not entry.cut_short]
    if near:
        verb = "is" if len(near) == 1 else "are"
        said.append(f"{listed(near)} {verb} as good, within chance.")
    if worse:
        each = [_behind(entry, best, counts) for entry in worse]
        said.append(f"Under {listed(each)} it is less probable than under {best.label}.")
    return " ".join(said)


def no_better(form: Form, worse: bool) -> str:
    """Say that the best baseline predicts as well as the best model, or better."""
    compared = "as well as" if worse else "better than"
    return f"No model predicts {form.unit}s that were held out {compared} a simple description does"


def _behind(entry: Scored, best: Scored, counts: Array) -> str:
    return f"{entry.label} ({_factor(paired(entry, best, counts)[0])} times)"


def _factor(difference: float) -> str:
    """Write exp of a difference, with digits enough to tell the ends of an interval apart."""
    return f"{np.exp(difference):.2f}" if abs(difference) < 2.3 else times_as_probable(difference)
