"""What the command line asks of mixtures of Mallows models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import (
    N_PARTICLES,
    N_SAMPLES,
    membership,
    pairs_answer,
    read_over_items,
    recommended,
    score_of,
)
from permix.cli.votes import Votes
from permix.cli.votes import choose as choose
from permix.estimators.agent_answers import Questions, sample_rankings
from permix.estimators.baselines import kept_baselines
from permix.estimators.preference_input import as_preferences
from permix.estimators.recommend import N_DRAWS
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import DRAWS, posterior_of
from permix.mallows.predict import complete, pair_matrices, predict_proba
from permix.mallows.results import MallowsFit


def fit_data(votes: Votes, settings: MallowsParameters) -> MallowsFit:
    """Fit the mixture to a file of votes."""
    return fit_mallows(as_preferences(votes.table), settings)


def with_baselines(fit: MallowsFit, votes: Votes) -> MallowsFit:
    """Return the fit with scores to compare its own with."""
    table = as_preferences(votes.table)
    one = fit
    if fit.components.n_components > 1:
        one = fit_mallows(
            table, fit.settings.replaced(n_components=1, n_init=1, weights_by=None, progress=False)
        )
    if one.interrupted:
        return fit
    return replace(fit, baselines=kept_baselines(table, float(one.log_likelihood) / int(table.n_agents)))


def labels(fit: MallowsFit, votes: Votes) -> Answer:
    """Say which group each row that was fitted is in."""
    return membership(votes.agents, fit.probabilities, fit.counts)


def groups(fit: MallowsFit, data: NewData, question: Question) -> Answer:
    """Say which group each agent comes from."""
    votes = read_over_items(data.votes, fit.components.items)
    probabilities = predict_proba(fit.components, votes, random_state=question.seed, **question.draws)
    return membership(data.votes.agents_of(votes), probabilities, votes.counts, wide=question.wide)


def ranking(fit: MallowsFit, data: NewData, question: Question) -> tuple[Any, list[Any]]:
    """Complete each agent's ranking."""
    votes = read_over_items(data.votes, fit.components.items)
    completed = complete(fit.components, votes, random_state=question.seed, **question.draws)
    return completed, data.votes.agents_of(votes)


def pairwise(fit: MallowsFit, data: NewData, question: Question) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    components, n_samples = fit.components, question.samples or N_SAMPLES

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng([question.seed, first])  # every block has numbers of its own
        n = len(block)
        posterior = posterior_of(components, block, max(N_PARTICLES, n_samples), rng)
        questions = Questions.all_pairs(n, components.n_items)
        means, errors = posterior.before(questions, n_samples, rng)
        before = pair_matrices(n, questions, means, 1.0 - means)
        return before, pair_matrices(n, questions, errors, errors), posterior.ways == DRAWS

    votes = read_over_items(data.votes, components.items)
    return pairs_answer(votes, data.votes.agents_of(votes), question.top, n_samples, ask)


def recommend(fit: MallowsFit, data: NewData, question: Question) -> Answer:
    """Say which of the items that an agent does not mention the agent would rank best."""

    def ranks(votes: Any, rng: Any) -> Any:
        n_samples = question.samples or N_DRAWS
        return complete(fit.components, votes, n_samples=n_samples, random_state=rng, return_ranks=True)[1]

    return recommended(fit.components.items, data, question, ranks)


def score(fit: MallowsFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    return score_of(fit, fit.components.items, data, question)


def sample(fit: MallowsFit, size: int, seed: int) -> Any:
    """Draw new rankings."""
    return sample_rankings(fit.components, size, random_state=seed)[0]


def checks(fit: MallowsFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.components.items, data, question)
