"""Figure 4 of Lu & Boutilier (2014): the Monte Carlo log-likelihood (equation 28) against the exact one.

50 agents reveal a fifth of their pairs. The log-likelihood is taken under a random mixture that did not
make the data (weights from Dirichlet(5, …), centers uniform, dispersions uniform from 0
to 1), exactly by the down-sets of every agent's partial order and by T draws of AMP per agent and component.
20 instances for each setting. The paper shows box plots only, on axes from 0.98 to 1.04 (varying the
items), 1 to 1.08 (components) and 1 to 1.15 (T).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.likelihoods import (
    exact_log_likelihoods,
    monte_carlo_log_likelihoods,
    random_mixture,
)
from benchmarks.reproduce.report import Outcome, draw_boxes, run_from_command_line
from permix.datasets import make_mallows_mixture

AXES = {"items": "0.98-1.04", "groups": "1-1.08", "draws": "1-1.15"}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_instances: int = 20
    n_agents: int = 50
    n_items: tuple[int, ...] = (4, 5, 6, 7, 8, 9)
    n_components: tuple[int, ...] = (1, 2, 3, 5, 7, 10)
    n_draws: tuple[int, ...] = (1, 2, 5, 10, 20, 40, 120)
    seed: int = 0


QUICK = Sizes(n_instances=8, n_items=(4, 9), n_components=(1, 5, 10), n_draws=(1, 5, 20, 120))


def instance(
    n_items: int, n_components: int, n_draws: tuple[int, ...], n_agents: int, rng: np.random.Generator
) -> list[float]:
    """Monte Carlo over exact log-likelihood, for several T on the same data and parameters."""
    made = make_mallows_mixture(
        n_agents,
        n_items,
        n_components,
        dispersion=0.5,
        observed="pairs",
        pair_fraction=0.2,
        random_state=rng,
    )
    components = random_mixture(n_components, n_items, rng)
    exact = exact_log_likelihoods(made.data, components).sum()
    return [
        float(monte_carlo_log_likelihoods(made.data, components, draws, rng).sum() / exact)
        for draws in n_draws
    ]


def run(sizes: Sizes) -> Outcome:
    """Compute the three panels."""
    series: dict[str, dict[str, list[float]]] = {"items": {}, "groups": {}, "draws": {}}
    rng = np.random.default_rng(sizes.seed)
    for m in sizes.n_items:
        found = [instance(m, 3, (5,), sizes.n_agents, rng)[0] for _ in range(sizes.n_instances)]
        series["items"][str(m)] = found
    for k in sizes.n_components:
        found = [instance(8, k, (5,), sizes.n_agents, rng)[0] for _ in range(sizes.n_instances)]
        series["groups"][str(k)] = found
    several = [instance(8, 1, sizes.n_draws, sizes.n_agents, rng) for _ in range(sizes.n_instances)]
    for draws, values in zip(sizes.n_draws, zip(*several, strict=True), strict=True):
        series["draws"][str(draws)] = list(values)
    rows: list[list[Any]] = []
    for varied, panel in series.items():
        for label, values in panel.items():
            least, low, middle, high, most = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
            numbers = [f"{value:.4f}" for value in (middle, low, high, least, most)]
            rows.append([varied, label, AXES[varied], *numbers])
    return Outcome(
        "Figure 4: Monte Carlo over exact log-likelihood",
        ["varied", "value", "paper's axis", "median", "25%", "75%", "smallest", "largest"],
        rows,
        [
            "The caption calls it the ratio of the true to the approximate value. Estimates of a "
            "likelihood are unbiased, so those of its logarithm are too low (Jensen), and "
            "log-likelihoods are negative: true over approximate lies below 1. The paper's axes lie "
            "above 1, so it plots approximate over true, as here.",
            "The exact value is a sum over the down-sets of the partial order, not over all rankings.",
            "The panel of T has the same data and parameters for every T.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's three box-and-whisker plots."""
    labels = {"items": "items", "groups": "groups", "draws": "T"}
    name = "approximate / exact log-likelihood"
    draw_boxes(figure, [(labels[key], name, values) for key, values in outcome.series.items()])


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
