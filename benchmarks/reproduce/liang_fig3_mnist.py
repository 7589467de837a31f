"""Figure 3 i of Liang, Jordan & Taskar (2007): log probability against seconds, handwritten digits.

10,000 MNIST digits, normalized, reduced to 50 dimensions by principal components; covariance 16 I.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.reproduce.liang_data import digits
from benchmarks.reproduce.liang_runs import (
    COLUMNS,
    REMARKS,
    SAMPLERS,
    Problem,
    curves,
    draw_curves,
    summarize,
    trace_all,
)
from benchmarks.reproduce.report import Outcome, run_from_command_line
from permix.families import Gaussian

PAPER = "axis -1,260,000 to -1,252,000; 3000 s"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default, but for the seconds."""

    samplers: tuple[str, ...] = tuple(SAMPLERS)
    n_images: int = 10_000
    n_features: int = 50
    n_runs: int = 5
    seconds: float = 30.0
    noise_scale: float = 4.0
    prior_scale: float = 10.0
    seed: int = 0


QUICK = Sizes(n_images=2000, n_runs=2, seconds=3.0)


def run(sizes: Sizes) -> Outcome:
    """Run all samplers from sequential prediction."""
    data = digits(sizes.n_features, None if sizes.n_images == Sizes.n_images else sizes.n_images, sizes.seed)
    problem = Problem(Gaussian(sizes.noise_scale, 0.0, sizes.prior_scale), data)
    seeds = range(sizes.seed, sizes.seed + sizes.n_runs)
    runs = trace_all(problem, sizes.samplers, "sequential", sizes.seconds, seeds)
    rows = [[PAPER if place == 0 else "", *row] for place, row in enumerate(summarize(runs))]
    return Outcome(
        f"Figure 3 i: log probability, {sizes.n_images:,} digits in {sizes.n_features} dimensions",
        ["paper", *COLUMNS],
        rows,
        [
            *REMARKS,
            "Normalized: each pixel by its own standard deviation; that reading, of several tried, has "
            "the paper's log probability. The 10,000 digits are those of the test set; the paper does not"
            " say which. The prior of means is N(0, 100), as for its Gaussian clusters.",
        ],
        {"(i) MNIST": curves(runs, sizes.seconds)},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's panel with logarithmic time."""
    figure.set_size_inches(5.6, 3.8)
    axis = figure.subplots()
    for name, panel in outcome.series.items():
        draw_curves(axis, panel, name)
    axis.legend(fontsize="small", loc="lower right")


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
