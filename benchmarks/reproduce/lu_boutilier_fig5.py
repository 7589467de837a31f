"""Figure 5 of Lu & Boutilier (2014): EM on synthetic data, held-out log-likelihood over that of the truth.

Weights from Dirichlet(5, …), centers uniform, dispersions uniform on 0.2 to 0.8; training
agents reveal each pair with probability alpha, as many test agents give full rankings. One of alpha, items,
components and agents varies; the others stay at alpha = 0.2, 20 items, 3 components, 50 agents for each
component. 20 instances for each setting. The paper shows averages in a plot only, on axes from 1 to 1.25
(alpha, items), 1.15 (components) and 1.08 (agents): larger is worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.likelihoods import full_log_likelihoods, random_mixture
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.sushi import reveal
from permix.estimators.agent_answers import sample_rankings
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters

AXES = {"alpha": "1-1.25", "items": "1-1.25", "groups": "1-1.15", "agents": "1-1.08"}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default. It does not say how many restarts it used."""

    n_instances: int = 20
    alphas: tuple[float, ...] = (0.1, 0.2, 0.5, 0.7, 1.0)
    n_items: tuple[int, ...] = (10, 20, 50, 100)
    n_components: tuple[int, ...] = (1, 2, 3, 5, 10)
    n_agents: tuple[int, ...] = (100, 150, 500, 1000)
    n_init: int = 10
    seed: int = 0


QUICK = Sizes(
    n_instances=3,
    alphas=(0.1, 0.5, 1.0),
    n_items=(10, 20),
    n_components=(1, 3),
    n_agents=(150,),
    n_init=3,
)


def instance(
    alpha: float, n_items: int, n_components: int, n_agents: int, n_init: int, rng: np.random.Generator
) -> float:
    """Held-out log-likelihood of the learned mixture over that of the true one."""
    truth = random_mixture(n_components, n_items, rng, 0.2, 0.8)
    train, _ = sample_rankings(truth, n_agents, rng)
    test, _ = sample_rankings(truth, n_agents, rng)
    fit = fit_mallows(
        reveal(train, alpha, rng),
        MallowsParameters(
            n_components=n_components,
            n_init=n_init,
            random_state=int(rng.integers(2**32)),
            progress=False,
        ),
    )
    learned = full_log_likelihoods(test, fit.components).sum()
    return float(learned / full_log_likelihoods(test, truth).sum())


def run(sizes: Sizes) -> Outcome:
    """Compute the four panels."""
    settings: list[tuple[str, Any, float, int, int, int]] = []
    settings += [("alpha", alpha, alpha, 20, 3, 150) for alpha in sizes.alphas]
    settings += [("items", m, 0.2, m, 3, 150) for m in sizes.n_items]
    settings += [("groups", k, 0.2, 20, k, 50 * k) for k in sizes.n_components]
    settings += [("agents", n, 0.2, 20, 3, n) for n in sizes.n_agents]
    rng = np.random.default_rng(sizes.seed)
    rows: list[list[Any]] = []
    series: dict[str, dict[str, list[float]]] = {name: {} for name in AXES}
    for varied, label, alpha, m, k, n in settings:
        values = [instance(alpha, m, k, n, sizes.n_init, rng) for _ in range(sizes.n_instances)]
        series[varied][str(label)] = values
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        numbers = [f"{np.mean(values):.4f}", f"{error:.4f}", f"{np.median(values):.4f}", f"{max(values):.4f}"]
        rows.append([varied, str(label), AXES[varied], *numbers])
        tell(f"{varied} {label}: median {numbers[2]}")
    return Outcome(
        "Figure 5: held-out log-likelihood, learned over true",
        ["varied", "value", "paper's axis", "mean", "standard error", "median", "largest"],
        rows,
        [
            "Test agents give full rankings, so their log-likelihood is in closed form; the paper's T = "
            "10 draws of AMP are exact here too.",
            f"Restarts are not stated in the paper; here {sizes.n_init} for each fit.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's four plots of averages, with two standard errors."""
    figure.set_size_inches(9, 6.4)
    axes = figure.subplots(2, 2).ravel()
    names = {"alpha": "α", "items": "items", "groups": "groups", "agents": "agents"}
    for axis, (varied, panel) in zip(axes, outcome.series.items(), strict=True):
        means = [np.mean(values) for values in panel.values()]
        errors = [2 * np.std(values, ddof=1) / np.sqrt(len(values)) for values in panel.values()]
        axis.errorbar(list(panel), means, yerr=errors, marker="o", capsize=3)
        axis.set_xlabel(names[varied])
        axis.set_ylabel("log-likelihood, learned / true")


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
