"""What the command line asks of density estimates of rankings."""

from __future__ import annotations

from permix.baselines.kde.fit import KDEFit, fit_kde
from permix.baselines.kde.parameters import KDEParameters
from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import score_of
from permix.cli.votes import Votes
from permix.estimators.preference_input import as_preferences


def fit_data(votes: Votes, settings: KDEParameters) -> KDEFit:
    """Fit the estimator to a file of votes."""
    return fit_kde(as_preferences(votes.table), settings)


def score(fit: KDEFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    return score_of(fit, fit.preferences.items, data, question)


sample = KDEFit.sample


def checks(fit: KDEFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.preferences.items, data, question)
