"""What the command line asks of mixtures of angle-based models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import typer

from permix.angle.completions import complete, predict_pairwise
from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_angle, fit_as_asked, way_of
from permix.angle.parameters import AngleParameters, refuse_comparisons
from permix.angle.results import CRITERION_DRAWS, criteria
from permix.angle.rows import row_probabilities
from permix.cli.answers import Answer
from permix.cli.checks import checks_of
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
from permix.data.rankings import Rankings
from permix.estimators.agent_answers import sample_rankings
from permix.estimators.baselines import kept_baselines
from permix.estimators.preference_input import as_preferences
from permix.estimators.recommend import N_DRAWS

# DIC and WAIC average over hundreds of draws: by default where that takes no more steps than this, seconds.
CRITERION_STEPS = 2e9


def choose(given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters among the options given; whether criteria are wanted is none of them."""
    wanted = given.pop("criteria", None)
    if wanted and given.get("inference", "em") == "em":
        lacking = "--criteria averages over a posterior, which --inference em does not have"
        raise typer.BadParameter(f"{lacking}; AIC and BIC are always shown")
    if wanted:
        refuse_comparisons(given.get("normalizer", "auto"))
    return given


def fit_data(votes: Votes, settings: AngleParameters) -> AngleFit:
    """Fit the mixture to a file of votes."""
    rankings = as_rankings(votes.table)
    if way_of(rankings, settings) != "chains":  # nothing to keep while it runs
        settings = settings.replaced(store=None)
    return fit_as_asked(rankings, settings)


def with_baselines(fit: AngleFit, votes: Votes) -> AngleFit:
    """Return the fit with scores to compare its own with, unless its probabilities do not sum to one."""
    if fit.components.normalizer == "vmf":
        return fit
    rankings = as_rankings(votes.table)
    one = fit_angle(rankings, AngleParameters(1, progress=False, random_state=0))
    if one.interrupted or not np.isfinite(float(one.log_likelihood)):
        return fit
    score = float(one.log_likelihood) / int(rankings.n_agents)
    return replace(fit, baselines=kept_baselines(as_preferences(rankings), score))


def labels(fit: AngleFit, votes: Votes) -> Answer:
    """Say which group each row that was fitted is in."""
    return membership(votes.agents, fit.probabilities, fit.counts)


def measures(fit: AngleFit, votes: Votes, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return DIC and WAIC, where there is a posterior and they were asked for or take seconds."""
    wanted = values["criteria"]
    if fit.settings.inference == "em" or fit.components.normalizer == "vmf" or wanted is False:
        return {}
    rankings = as_rankings(votes.table)
    if wanted is None and not _takes_seconds(fit, rankings):
        return {}
    return criteria(fit, rankings)._asdict()


def _takes_seconds(fit: AngleFit, rankings: Rankings) -> bool:
    k, t = fit.components.n_components, rankings.n_items
    table = 2.0**t * t if fit.components.normalizer == "exact" else 0.0
    return rankings.is_full and CRITERION_DRAWS * k * (float(len(rankings)) * t + table) <= CRITERION_STEPS


def groups(fit: AngleFit, data: NewData, question: Question) -> Answer:
    """Say which group each agent comes from, and how usual what the row says is."""
    rankings, agents = _rankings(fit, data)
    shares = row_probabilities(fit.components, rankings)
    answer = membership(agents, shares, rankings.counts, wide=question.wide)
    densities, _ = fit.predictive.log_densities(rankings)
    place = answer.columns.index("how_sure") + 1
    rows = (
        [*row[:place], round(float(density), 6), *row[place:]]
        for row, density in zip(answer.rows, densities, strict=True)
    )
    return answer._replace(
        title=f"{answer.title}, and log probability of what the row says",
        columns=[*answer.columns[:place], "log_probability", *answer.columns[place:]],
        rows=rows,
        # A score, which probabilities that do not sum to one have not.
        facts={}
        if fit.components.normalizer == "vmf"
        else score_facts(float(np.average(densities, weights=rankings.counts)), as_preferences(rankings)),
    )


def ranking(fit: AngleFit, data: NewData, question: Question) -> tuple[Any, list[Any]]:
    """Complete each agent's ranking."""
    rankings, agents = _rankings(fit, data)
    completed, _ = complete(fit.components, rankings, question.samples or N_SAMPLES, question.seed)
    return completed, agents


def pairwise(fit: AngleFit, data: NewData, question: Question) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    components, n_samples = fit.components, question.samples or N_SAMPLES

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rankings = as_rankings(block, components.items)
        rng = np.random.default_rng([question.seed, first])  # every block has numbers of its own
        before = predict_pairwise(components, rankings, None, n_samples, rng)
        errors = np.sqrt(before * (1.0 - before) / n_samples)
        return before, errors, np.ones(len(block), dtype=np.bool_)

    votes = read_over_items(data.votes, components.items)
    return pairs_answer(votes, data.votes.agents_of(votes), question.top, n_samples, ask)


def recommend(fit: AngleFit, data: NewData, question: Question) -> Answer:
    """Say which of the items that an agent does not mention the agent would rank best."""
    components, n_samples = fit.components, question.samples or N_DRAWS
    return recommended(
        components.items,
        data,
        question,
        lambda votes, rng: complete(components, as_rankings(votes, components.items), n_samples, rng)[1],
    )


def score(fit: AngleFit, data: NewData, question: Question) -> Answer:
    """Say how probable what each agent said is."""
    return score_of(fit, fit.components.items, data, question)


def sample(fit: AngleFit, size: int, seed: int) -> Any:
    """Draw new rankings."""
    return sample_rankings(fit.components, size, random_state=seed)[0]


def _rankings(fit: AngleFit, data: NewData) -> tuple[Rankings, list[Any]]:
    votes = read_over_items(data.votes, fit.components.items)
    return as_rankings(votes, fit.components.items), data.votes.agents_of(votes)


def checks(fit: AngleFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, fit.components.items, data, question)
