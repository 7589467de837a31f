"""Figure 3 j of Liang, Jordan & Taskar (2007): log probability against seconds, AP news articles.

2246 documents, 10,473 terms, multinomial clusters. (Data: Blei's sample of the Associated Press corpus.)
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.reproduce.liang_fig3_mnist import draw
from benchmarks.reproduce.liang_runs import COLUMNS, REMARKS, SAMPLERS, Problem, curves, summarize, trace_all
from benchmarks.reproduce.report import Outcome, run_from_command_line
from permix.datasets import load_ap
from permix.families import Multinomial

PAPER = "axis -3,650,000 to -3,570,000; 3000 s"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default, but for the seconds."""

    samplers: tuple[str, ...] = tuple(SAMPLERS)
    n_documents: int = 2246
    pseudo_count: float = 1.0
    n_runs: int = 5
    seconds: float = 30.0
    seed: int = 0


QUICK = Sizes(n_documents=500, n_runs=2, seconds=3.0)


def run(sizes: Sizes) -> Outcome:
    """Run all samplers from sequential prediction."""
    counts = load_ap(download=False).data[: sizes.n_documents]
    family = Multinomial(sizes.pseudo_count)
    # Words in their order, without the multinomial coefficients, are what the paper's numbers are of.
    coefficients = float(family.encode(counts).log_coefficient.sum())
    problem = Problem(family, counts, -coefficients)
    seeds = range(sizes.seed, sizes.seed + sizes.n_runs)
    runs = trace_all(problem, sizes.samplers, "sequential", sizes.seconds, seeds)
    rows = [[PAPER if place == 0 else "", *row] for place, row in enumerate(summarize(runs))]
    return Outcome(
        f"Figure 3 j: log probability, {counts.shape[0]:,} AP articles, {counts.shape[1]:,} terms",
        ["paper", *COLUMNS],
        rows,
        [
            *REMARKS,
            "The paper does not give the Dirichlet prior. With a pseudo-count of 1 and without "
            "multinomial coefficients sequential prediction starts at -3.65e6 and chains end near "
            "-3.57e6, the two ends of the paper's axis; 0.5 ends at -3.53e6, 0.1 at -3.49e6 (one run "
            "each).",
        ],
        {"(j) AP": curves(runs, sizes.seconds)},
    )


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
