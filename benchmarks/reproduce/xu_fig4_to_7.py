"""Figures 4 to 7 of Xu, Alvo & Yu (2018): accuracy and time of maximum likelihood, SIR and VI.

Kullback-Leibler divergence of the estimated model from the true one over the number of rankings N and of
items t, κ = 1 (given for figures 6 and 7; taken for figures 4 and 5 as well); the proposal of the paper's
SIR is a Gamma distribution with mean κ̂ and variance 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.xu_shared import divergence, draw_lines, estimates, mean_of, quiet, simulated

# Which of the estimates of a method: E[κ] times m, or E[κθ].
POINT, SHRUNK = 0, -1


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    figure4_items: tuple[int, ...] = (10, 20, 50)
    figure4_rankings: tuple[int, ...] = (25, 50, 100, 200, 300, 400, 500)
    figure6_items: tuple[int, ...] = (3, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
    figure6_rankings: tuple[int, ...] = (100, 200, 500)
    concentration: float = 1.0
    variance: float = 1.0
    n_repetitions: int = 10
    seed: int = 0


QUICK = Sizes(
    figure4_rankings=(25, 100, 500),
    figure6_items=(3, 10, 20, 50, 100),
    figure6_rankings=(100, 500),
    n_repetitions=4,
)


def measure(t: int, n: int, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
    """Return time and divergences by method on one data set."""
    truth, rankings = simulated(t, n, sizes.concentration, rng)
    with quiet():
        found = estimates(rankings, sizes.variance, rng)
    return {
        name: {"seconds": seconds, "kld": [divergence(truth, tilts) for tilts in several]}
        for name, (seconds, several) in found.items()
    }


def run(sizes: Sizes) -> Outcome:
    """Measure all pairs of t and N."""
    rng = np.random.default_rng(sizes.seed)
    with quiet():
        estimates(simulated(5, 20, 1.0, rng)[1], 1.0, rng)  # compiles
    rows: list[list[Any]] = []
    series: dict[str, Any] = {}
    ratios: list[float] = []
    wanted = [("4, 5", t, n) for t in sizes.figure4_items for n in sizes.figure4_rankings]
    wanted += [("6, 7", t, n) for n in sizes.figure6_rankings for t in sizes.figure6_items]
    methods = ("MLE", "SIR, the paper's proposal", "SIR, ours", "VI", "quadrature")
    methods += ("quadrature, flat prior", "uniform")
    for figures, t, n in wanted:
        tell(f"figures {figures}: t = {t}, N = {n}")
        runs = [measure(t, n, sizes, rng) for _ in range(sizes.n_repetitions)]
        row: list[Any] = [figures, t, n]
        for name in methods:
            value, error = mean_of(runs, lambda run, name=name: run[name]["kld"][POINT])
            row.append(f"{value:.4f} ± {error:.4f}")
            kind = f"t = {t}" if figures == "4, 5" else f"N = {n}"
            x = n if figures == "4, 5" else t
            seconds = float(np.median([run[name]["seconds"] for run in runs]))
            series.setdefault((figures, kind), {}).setdefault(name, []).append((x, value, seconds))
        value, error = mean_of(runs, lambda run: run["VI"]["kld"][SHRUNK])
        row.append(f"{value:.4f} ± {error:.4f}")
        times = {name: float(np.median([run[name]["seconds"] for run in runs])) for name in methods}
        row += [f"{1e3 * times[name]:.2f}" for name in methods[:4]]
        ratios.append(times["SIR, ours"] / times["VI"])
        rows.append(row)
    return Outcome(
        f"Figures 4 to 7: KLD from the true model and time; means over {sizes.n_repetitions} data sets",
        [
            "figures",
            "t",
            "N",
            "MLE",
            "SIR, paper's",
            "SIR, ours",
            "VI",
            "quadrature",
            "flat prior",
            "uniform model",
            "E[κθ], VI",
            "ms: MLE",
            "SIR, paper's",
            "SIR, ours",
            "VI",
        ],
        rows,
        [
            "KLD with E[κ] and the mean direction, as in the paper; 'E[κθ]': the posterior mean of the "
            "tilts. By the exact normalizer up to 20 items, above by the approximation, whose error at "
            "κ = 1 is below 1e-5.",
            "'SIR, paper's' has the flat prior and the Gamma proposal of variance 1; 'SIR, ours', 'VI' "
            "and 'quadrature' have κ ~ Gamma(0.1, 0.1). 'flat prior' is quadrature with the flat one: what "
            "is left between it and 'SIR, paper's' is the proposal.",
            "Where an estimate is no better than the uniform model, the data say nothing, and the prior all.",
            f"SIR takes {min(ratios):.0f} to {max(ratios):.0f} times as long as VI (median "
            f"{np.median(ratios):.0f}; the paper 50 to 100), 1000 of 10,000 candidates; our SIR weighs its "
            "candidates one at a time in Python, which is most of its time.",
        ],
        {f"{figures}|{kind}": curves for (figures, kind), curves in series.items()},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw divergences over N, and over t."""
    panels = []
    for title, curves in outcome.series.items():
        figures, kind = title.split("|")
        shown = {name: ([p[0] for p in points], [p[1] for p in points]) for name, points in curves.items()}
        panels.append((kind, "N" if figures == "4, 5" else "t", "KLD", shown))
    draw_lines(figure, panels, logarithmic=True)


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
