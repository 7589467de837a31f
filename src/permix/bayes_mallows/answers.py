"""What the command line asks of Bayesian Mallows models."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.bayes_mallows import completions
from permix.bayes_mallows.careless import agent_error_rows
from permix.bayes_mallows.data import reader_for
from permix.bayes_mallows.fit import BayesianMallowsFit, fit_bayes_mallows
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.predict import assign, draw_rankings
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
    score_of,
)
from permix.cli.votes import Votes
from permix.cli.votes import choose as choose
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError
from permix.estimators.preference_input import without_pairs
from permix.estimators.recommend import N_DRAWS
from permix.runtime.seeds import generator

# Items that --what top counts as the top unless told otherwise.
TOP = 3


def fit_data(votes: Votes, settings: BayesianMallowsParameters) -> BayesianMallowsFit:
    """Fit the model to a file of votes."""
    return fit_bayes_mallows(reader_for(settings)(votes.table), settings)


def labels(fit: BayesianMallowsFit, votes: Votes) -> Answer:
    """Say which group each row that was fitted is in."""
    return membership(votes.agents, fit.probabilities, fit.counts)


def groups(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say which group each agent comes from, and how probable one is that the data did not have."""
    votes = read_over_items(data.votes, fit.items)
    agents = data.votes.agents_of(votes)
    joint = assign(fit, votes, question.seed)
    known, novelty = joint[:, :-1], joint[:, -1]
    shown = known.shape[1] if question.wide else 0
    numbers = np.round(np.column_stack([known.max(axis=1), novelty, known[:, :shown]]), 6).tolist()
    best = (known.argmax(axis=1) + 1).tolist()
    rows = ([agent, group, *some] for agent, group, some in zip(agents, best, numbers, strict=True))
    title = "group, its probability (how_sure), and that of a group the data did not have (new)"
    columns = ["agent", "group", "how_sure", "new", *[f"p{j + 1}" for j in range(shown)]]
    return Answer(f"{count_of(len(agents), 'row')}: {title}", columns, rows).with_counts(votes.counts)


def ranking(fit: BayesianMallowsFit, data: NewData, question: Question) -> tuple[Any, list[Any]]:
    """Complete each agent's ranking."""
    votes = read_over_items(data.votes, fit.items)
    completed, _ = completions.complete(fit, votes, question.samples or N_SAMPLES, question.seed)
    return completed, data.votes.agents_of(votes)


def pairwise(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say, for pairs that are not certain, which item comes first and how probable that is."""
    n_samples = question.samples or N_SAMPLES

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        said = votes[np.arange(first, first + len(block))]  # comparisons included
        seed = np.random.SeedSequence([question.seed, first])
        means, errors, _ = completions.pairwise(fit, said, None, n_samples, seed)
        return means, errors, np.ones(len(block), dtype=np.bool_)

    votes = read_over_items(data.votes, fit.items)
    firm = votes if fit.settings.errors is None else without_pairs(votes)
    return pairs_answer(firm, data.votes.agents_of(votes), question.top, n_samples, ask)


def recommend(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say which of the items that an agent does not mention the agent would rank best."""
    n_samples = question.samples or N_DRAWS
    return recommended(
        fit.items,
        data,
        question,
        lambda votes, rng: completions.complete(fit, votes, n_samples, rng)[1],
    )


def top(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say how probable it is that each item is among the first of an agent's full ranking."""
    votes, k = read_over_items(data.votes, fit.items), min(question.top or TOP, len(fit.items))
    agents = data.votes.agents_of(votes)
    chances = completions.in_top(fit, votes, k, question.samples or N_SAMPLES, question.seed)
    order = np.argsort(-chances, axis=1, kind="stable")
    rows = (
        [agent, fit.items[item], round(float(row[item]), 4)]
        for agent, row, items in zip(agents, chances, order.tolist(), strict=True)
        for item in items
        if row[item] > 0.0
    )
    title = f"{count_of(len(agents), 'row')}: probability that an item is among the first {k}"
    return Answer(title, ["agent", "item", "probability"], rows)


def score(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    return score_of(fit, fit.items, data, question)


def careless(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say how often each agent that was fitted errs."""
    if not fit.settings.errors_per_agent:
        raise DataError(
            "agents have rates of their own where they are fitted with ", Argument("errors_per_agent", True)
        )
    if data.file is not None:
        raise DataError("rates are known of the agents that were fitted; leave out the file")
    found = agent_error_rows(fit)
    told = "share of comparisons that are wrong, with a 90 % interval, largest first"
    rows = (
        [
            *list(row.values())[:2],
            *(round(row[name], 4) for name in ("rate", "low", "high")),
            "yes" if row["careless"] else "no",
        ]
        for row in found
    )
    return Answer(f"{count_of(len(found), 'agent')}: {told}", list(found[0]), rows)


def sample(fit: BayesianMallowsFit, size: int, seed: int) -> Any:
    """Draw new rankings."""
    return Rankings._from_arrays(draw_rankings(fit, size, generator(seed))[0], fit.items)


def checks(fit: BayesianMallowsFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.items, data, question)
