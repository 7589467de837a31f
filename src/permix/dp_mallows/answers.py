"""What ``predict`` says with models of top lists: mixtures of generalized Mallows models, and mean-shift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.cli.answers import Answer, give, give_rankings
from permix.cli.inspect import ReadOptions
from permix.cli.output import count_of
from permix.cli.predict import N_SAMPLES, Question, pairs_answer, read_over_items

if TYPE_CHECKING:
    from permix.baselines.mean_shift_fit import MeanShiftFit
    from permix.dp_mallows.fit import DPMallowsFit
    from permix.dp_mallows.predict import ListPredictive


def predict_lists(
    fit: DPMallowsFit, file: ReadOptions, question: Question, output: Path | None, as_json: bool
) -> None:
    """Answer about new agents: where they belong, what comes next, what they did not state."""
    from permix.dp_mallows.predict import ListPredictive
    from permix.estimators.ranking_lists import as_top_lists

    votes = read_over_items(file, fit.items)
    agents, lists = file.agents_of(votes), as_top_lists(votes)
    predictive = ListPredictive.of(fit)
    if question.what == "ranking":
        give_rankings(predictive.complete(lists, question.length), agents, output, as_json)
    elif question.what == "pairwise":
        give(_pairwise(predictive, votes, agents, question), output, as_json)
    else:
        give(_membership(predictive, lists, agents), output, as_json)


def _membership(predictive: ListPredictive, lists: Any, agents: list[Any]) -> Answer:
    """Say which cluster each agent comes from, whether from any, and how probable the list is."""
    joint = predictive.assign(lists)
    known, novelty = joint[:, :-1], joint[:, -1]
    totals = known.sum(axis=1)
    best = known.max(axis=1) / np.where(totals > 0.0, totals, 1.0)
    scores, _ = predictive.log_predictive(lists)
    mean = predictive.mean_log_predictive(lists)
    return Answer(
        f"{count_of(len(agents), 'row')}: cluster, the probability of a kind the data did not have (new), "
        "and the log probability of the list",
        ["agent", "cluster", "probability", "new", "log_predictive"],
        zip(
            agents,
            (known.argmax(axis=1) + 1).tolist(),
            np.round(best, 6).tolist(),
            np.round(novelty, 6).tolist(),
            np.round(scores, 6).tolist(),
            strict=True,
        ),
        facts={"mean_log_predictive": float(mean), "monte_carlo_error": mean.standard_error},
    ).with_counts(lists.counts)


def _pairwise(predictive: ListPredictive, votes: Any, agents: list[Any], question: Question) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    from permix.dp_mallows.pairs import EXACT_STEPS, predict_pairwise
    from permix.estimators.ranking_lists import as_top_lists

    n_samples, n = question.samples or N_SAMPLES, predictive.n_items

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # Chosen here and not by "auto", since errors of 0 do not tell: draws may all agree.
        steps = len(predictive.clusters.centers) * (n**3 / 6.0 + len(block) * n * (n - 1) / 2.0)
        exact = steps <= EXACT_STEPS
        before, errors = predict_pairwise(
            predictive,
            as_top_lists(block),
            method="exact" if exact else "sampled",
            n_samples=n_samples,
            random_state=np.random.SeedSequence([question.seed, first]),
            return_standard_error=True,
        )
        return before, errors, np.full(len(block), not exact)

    return pairs_answer(votes, agents, question.top, n_samples, ask)


def nearest_centers(fit: MeanShiftFit, file: ReadOptions) -> Answer:
    """Say which center of a mean-shift clustering each list is most probably from."""
    from permix.baselines.mean_shift_fit import top_lists

    votes = read_over_items(file, fit.items)
    agents, lists = file.agents_of(votes), top_lists(votes)
    scores = fit.log_density(lists)
    return Answer(
        f"{count_of(len(agents), 'row')}: cluster, and log probability under Mallows models at the centers",
        ["agent", "cluster", "log_density"],
        zip(agents, (fit.predict(lists) + 1).tolist(), np.round(scores, 6).tolist(), strict=True),
        facts={"mean_log_density": float(np.average(scores, weights=lists.counts))},
    ).with_counts(lists.counts)
