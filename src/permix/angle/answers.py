"""What ``predict`` says with mixtures of angle-based models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from permix.cli.answers import Answer, give, give_rankings
from permix.cli.inspect import ReadOptions
from permix.cli.output import count_of
from permix.cli.predict import MAX_COLUMNS, N_SAMPLES, Question, pairs_answer, read_over_items

if TYPE_CHECKING:
    from permix.angle.fit import AngleFit
    from permix.data import Rankings


def predict_angle(
    fit: AngleFit, file: ReadOptions, question: Question, output: Path | None, as_json: bool
) -> None:
    """Answer about new agents: which component they come from, and what they did not state."""
    from permix.angle.completions import complete
    from permix.angle.data import as_rankings

    if question.what == "components" and question.samples is not None:
        raise typer.BadParameter("with an AngleMixture, --samples belongs to --what ranking or pairwise")
    votes = read_over_items(file, fit.components.items)
    agents, rankings = file.agents_of(votes), as_rankings(votes, fit.components.items)
    n_samples = question.samples or N_SAMPLES
    if question.what == "ranking":
        completed, _ = complete(fit.components, rankings, n_samples, question.seed)
        give_rankings(completed, agents, output, as_json)
    elif question.what == "pairwise":
        give(_pairwise(fit, votes, agents, question, n_samples), output, as_json)
    else:
        give(_membership(fit, rankings, agents, output is not None or as_json), output, as_json)


def _membership(fit: AngleFit, rankings: Rankings, agents: list[Any], wide: bool) -> Answer:
    """Say which component each agent comes from, and how usual the row is."""
    from permix.angle.predict import row_probabilities

    probabilities = row_probabilities(fit.components, rankings)
    densities = fit.predictive.log_densities(rankings)
    k = fit.components.n_components
    shown = k if wide or k <= MAX_COLUMNS else 0
    rows = (
        [
            agent,
            int(row.argmax()) + 1,
            round(float(row.max()), 6),
            round(float(density), 6),
            *np.round(row[:shown], 6).tolist(),
        ]
        for agent, row, density in zip(agents, probabilities, densities, strict=True)
    )
    return Answer(
        f"{count_of(len(agents), 'row')}: most probable component, and log probability of what the row says",
        ["agent", "component", "probability", "log_probability", *[f"p{j + 1}" for j in range(shown)]],
        rows,
        facts={"mean_log_probability": float(np.average(densities, weights=rankings.counts))},
    ).with_counts(rankings.counts)


def _pairwise(fit: AngleFit, votes: Any, agents: list[Any], question: Question, n_samples: int) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    from permix.angle.completions import predict_pairwise
    from permix.angle.data import as_rankings

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rankings = as_rankings(block, fit.components.items)
        rng = np.random.default_rng([question.seed, first])  # every block has numbers of its own
        before = predict_pairwise(fit.components, rankings, None, n_samples, rng)
        errors = np.sqrt(before * (1.0 - before) / n_samples)
        return before, errors, np.ones(len(block), dtype=np.bool_)

    return pairs_answer(votes, agents, question.top, n_samples, ask)
