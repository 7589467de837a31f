"""What the command line asks of density estimates of rankings."""

from __future__ import annotations

import numpy as np

from permix.baselines.kde.fit import KDEFit, fit_kde
from permix.baselines.kde.parameters import KDEParameters
from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.output import count_of
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import read_over_items, score_facts
from permix.cli.votes import Votes
from permix.estimators.preference_input import as_preferences


def fit_data(votes: Votes, settings: KDEParameters) -> KDEFit:
    """Fit the estimator to a file of votes."""
    return fit_kde(as_preferences(votes.table), settings)


def density(fit: KDEFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    votes = read_over_items(data.votes, fit.preferences.items)
    agents = data.votes.agents_of(votes)
    values, errors = fit.log_probability(votes)
    return Answer(
        f"{count_of(len(agents), 'row')}: log probability, with its Monte Carlo error",
        ["agent", "log_probability", "standard_error"],
        zip(agents, values.tolist(), errors.tolist(), strict=True),
        facts=score_facts(float(np.average(values, weights=votes.counts)), votes),
    ).with_counts(votes.counts)


sample = KDEFit.sample


def checks(fit: KDEFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.preferences.items, data, question)
