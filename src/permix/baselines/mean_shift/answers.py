"""What the command line asks of blurring mean-shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit, fit_mean_shift
from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.cli.answers import Answer
from permix.cli.output import count_of
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import read_over_items
from permix.cli.votes import Votes
from permix.data.labels import Array
from permix.estimators.ranking_lists import as_top_lists


def fit_data(votes: Votes, settings: MeanShiftParameters) -> MeanShiftFit:
    """Find the groups of a file of votes."""
    return fit_mean_shift(as_top_lists(votes.table), settings)


def labels(fit: MeanShiftFit, votes: Votes) -> Answer:
    """Say which group each row that was fitted moved to, and how probable that is from where it was."""
    lists = as_top_lists(votes.table)
    return _answer("group", ["agent", "group", "probability"], votes.agents, fit.row_labels, fit, lists)


def groups(fit: MeanShiftFit, data: NewData, question: Question) -> Answer:
    """Say which center each list is most probably from, and how probable the list is."""
    votes = read_over_items(data.votes, fit.items)
    agents, lists = data.votes.agents_of(votes), as_top_lists(votes)
    scores = fit.log_density(lists)
    return _answer(
        "most probable group, and log probability under Mallows models at the centers",
        ["agent", "group", "probability", "log_density"],
        agents,
        fit.predict(lists),
        fit,
        lists,
        np.round(scores, 6).tolist(),
        facts={"mean_log_density": float(np.average(scores, weights=lists.counts))},
    )


def _answer(
    what: str,
    columns: list[str],
    agents: list[Any],
    chosen: Array,
    fit: MeanShiftFit,
    lists: Any,
    *more: list[Any],
    facts: dict[str, float] | None = None,
) -> Answer:
    probability = fit.predict_proba(lists)[np.arange(len(lists)), chosen]
    return Answer(
        f"{count_of(len(agents), 'row')}: {what}",
        columns,
        zip(agents, (chosen + 1).tolist(), np.round(probability, 6).tolist(), *more, strict=True),
        facts=facts or {},
    ).with_counts(lists.counts)
