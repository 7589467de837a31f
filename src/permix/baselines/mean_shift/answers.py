"""What the command line asks of blurring mean-shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit, fit_mean_shift
from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.output import count_of
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import read_over_items, score_facts, score_of
from permix.cli.votes import Votes
from permix.data.labels import Array
from permix.estimators.ranking_lists import as_top_lists


def fit_data(votes: Votes, settings: MeanShiftParameters) -> MeanShiftFit:
    """Find the groups of a file of votes."""
    return fit_mean_shift(as_top_lists(votes.table), settings)


def labels(fit: MeanShiftFit, votes: Votes) -> Answer:
    """Say which group each row that was fitted moved to, and how probable that is from where it was."""
    lists = as_top_lists(votes.table)
    return _answer("group", votes.agents, fit.row_labels, fit, lists)


def groups(fit: MeanShiftFit, data: NewData, question: Question) -> Answer:
    """Say which center each list is most probably from, and how probable the list is."""
    votes = read_over_items(data.votes, fit.items)
    lists = as_top_lists(votes)
    scores = fit.log_probability(lists)
    what = "most probable group, and log probability under Mallows models at the centers"
    answer = _answer(
        what, data.votes.agents_of(votes), fit.predict(lists), fit, lists, log_probability=scores
    )
    return answer._replace(facts=score_facts(float(np.average(scores, weights=lists.counts)), votes))


def score(fit: MeanShiftFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    return score_of(fit, fit.items, data, question)


def _answer(
    what: str, agents: list[Any], chosen: Array, fit: MeanShiftFit, lists: Any, **more: Array
) -> Answer:
    numbers = {"how_sure": fit.predict_proba(lists)[np.arange(len(lists)), chosen], **more}
    columns = [np.round(values, 6).tolist() for values in numbers.values()]
    rows = zip(agents, (chosen + 1).tolist(), *columns, strict=True)
    title = f"{count_of(len(agents), 'row')}: {what}"
    return Answer(title, ["agent", "group", *numbers], rows).with_counts(lists.counts)


def checks(fit: MeanShiftFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.items, data, question)
