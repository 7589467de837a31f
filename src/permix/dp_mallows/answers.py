"""What the command line asks of Dirichlet-process mixtures of generalized Mallows models."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.output import count_of
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import (
    N_SAMPLES,
    membership,
    pairs_answer,
    read_over_items,
    recommended,
    score_facts,
    score_of,
)
from permix.cli.votes import Votes
from permix.dp_mallows.fit import DPMallowsFit, fit_dp_mallows
from permix.dp_mallows.pairs import predict_pairwise, takes_seconds
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.predict import ListPredictive, distinct
from permix.estimators.ranking_lists import as_top_lists
from permix.estimators.recommend import N_DRAWS
from permix.runtime.progress import Display


def fit_data(votes: Votes, settings: DPMallowsParameters) -> DPMallowsFit:
    """Fit the mixture to a file of votes."""
    return fit_dp_mallows(as_top_lists(votes.table), settings)


def labels(fit: DPMallowsFit, votes: Votes) -> Answer:
    """Say which group each row that was fitted is in."""
    return membership(votes.agents, fit.probabilities, fit.rankings.counts)


def groups(fit: DPMallowsFit, data: NewData, question: Question) -> Answer:
    """Say which group each agent comes from, whether from any, and how probable the list is."""
    votes = read_over_items(data.votes, fit.items)
    agents, lists = data.votes.agents_of(votes), as_top_lists(votes)
    predictive = ListPredictive(fit)
    with Display(None) as display, display.counting_rows("lists", 2 * len(distinct(lists)[0])):
        joint = predictive.assign(lists)
        scores, _, mean = predictive.log_probabilities(lists)
    known, novelty = joint[:, :-1], joint[:, -1]
    best = known.max(axis=1)
    numbers = (np.round(values, 6).tolist() for values in (best, novelty, scores))
    return Answer(
        f"{count_of(len(agents), 'row')}: group, its probability (how_sure), that of a group the data did "
        "not have (new), and the log probability of the list",
        ["agent", "group", "how_sure", "new", "log_probability"],
        zip(agents, (known.argmax(axis=1) + 1).tolist(), *numbers, strict=True),
        facts={**score_facts(float(mean), votes), "monte_carlo_error": mean.standard_error},
    ).with_counts(lists.counts)


def ranking(fit: DPMallowsFit, data: NewData, question: Question) -> tuple[Any, list[Any]]:
    """Continue each agent's list."""
    votes = read_over_items(data.votes, fit.items)
    completed = ListPredictive(fit).complete(as_top_lists(votes), question.length)
    return completed, data.votes.agents_of(votes)


def pairwise(fit: DPMallowsFit, data: NewData, question: Question) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    votes = read_over_items(data.votes, fit.items)
    predictive, n_samples = ListPredictive(fit), question.samples or N_SAMPLES
    n_pairs = predictive.n_items * (predictive.n_items - 1) // 2

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # Chosen here and not by "auto", since errors of 0 do not tell: draws may all agree.
        exact = takes_seconds(predictive, len(block) * n_pairs)
        before, errors = predict_pairwise(
            predictive,
            as_top_lists(block),
            method="exact" if exact else "sampled",
            n_samples=n_samples,
            random_state=np.random.SeedSequence([question.seed, first]),
            return_error=True,
        )
        return before, errors, np.full(len(block), not exact)

    return pairs_answer(votes, data.votes.agents_of(votes), question.top, n_samples, ask)


def recommend(fit: DPMallowsFit, data: NewData, question: Question) -> Answer:
    """Say which of the items that an agent does not list the agent would rank best."""
    predictive, n_samples = ListPredictive(fit), question.samples or N_DRAWS
    return recommended(
        fit.items,
        data,
        question,
        lambda votes, rng: predictive.expected_ranks(as_top_lists(votes), n_samples, rng),
    )


def score(fit: DPMallowsFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    return score_of(fit, fit.items, data, question)


def sample(fit: DPMallowsFit, size: int, seed: int, length: int | None) -> Any:
    """Draw new lists."""
    return ListPredictive(fit).sample(size, length, seed)[0]


def checks(fit: DPMallowsFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.items, data, question)
