"""Table 3 of Lu & Boutilier (2014): pairs of sushi left open when pairs are removed at random.

1000 full rankings lose a share 1 - alpha of their pairs; what follows from the others is known again.
Counts of open pairs by their distance in the ranking, and the share of known pairs (section 5.4: 42%, 76%
and 83%). (Sushi data: T. Kamishima, KDD 2003.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.report import Outcome, run_from_command_line
from benchmarks.reproduce.sushi import remove, sushi
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings

ALPHAS = (0.0, 0.25, 0.5, 0.75)
# Open pairs by distance 1..9, for each alpha.
COUNTS = {
    0.0: (9000, 8000, 7000, 6000, 5000, 4000, 3000, 2000, 1000),
    0.25: (6610, 5487, 4393, 3459, 2492, 1744, 1092, 606, 256),
    0.5: (4429, 2911, 1683, 898, 443, 191, 65, 22, 1),
    0.75: (2230, 824, 244, 62, 9, 2, 0, 0, 0),
}
LEFT = {0.0: 0.0, 0.25: 0.42, 0.5: 0.76, 0.75: 0.83}  # as section 5.4 says


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_test: int = 1000
    seed: int = 0


QUICK = Sizes()


def people_to_predict(n_test: int) -> Rankings:
    """The last rankings, at most 1000: not used for training or validation."""
    data = sushi()
    return data[len(data) - n_test :]


def open_pairs(rankings: Rankings, stated: Preferences) -> np.ndarray:
    """For each agent, whether the pair at ranks i < j does not follow from what was stated."""
    n, m = rankings.orders.shape
    unknown = np.zeros((n, m, m), dtype=np.bool_)
    upper = np.triu(np.ones((m, m), dtype=np.bool_), 1)
    for row in range(n):
        mentioned, better = stated.closure(row)
        known = np.zeros((m, m), dtype=np.bool_)
        known[np.ix_(mentioned, mentioned)] = better
        order = rankings.orders[row]
        unknown[row] = upper & ~known[np.ix_(order, order)]
    return unknown


def by_distance(table: np.ndarray) -> np.ndarray:
    """Sum over agents and over pairs of ranks that are 1, 2, … apart."""
    total = table.sum(axis=0)
    return np.array([np.trace(total, offset=gap) for gap in range(1, total.shape[0])])


def run(sizes: Sizes) -> Outcome:
    """Count for every alpha."""
    rankings = people_to_predict(sizes.n_test)
    rng = np.random.default_rng(sizes.seed)
    rows: list[list[Any]] = []
    for alpha in ALPHAS:
        counts = by_distance(open_pairs(rankings, remove(rankings, alpha, rng)))
        pairs = len(rankings) * 45
        printed = 1 - sum(COUNTS[alpha]) / 45_000
        left = f"{LEFT[alpha]:.0%} in the text, {printed:.1%} by its table"
        rows.append([f"α = {alpha}, paper", *COUNTS[alpha], left])
        rows.append([f"α = {alpha}, ours", *counts.tolist(), f"{1 - counts.sum() / pairs:.1%}"])
    return Outcome(
        "Table 3: open pairs by distance in the ranking, over all agents",
        ["", *[f"D={gap}" for gap in range(1, 10)], "pairs known after closure"],
        rows,
        [
            "The paper's 83% for α = 0.75 does not fit its own table 3, whose 3371 open pairs of 45,000 "
            "leave 92.5%.",
            "The paper's counts at D=1 are those to be expected, 6600, 4400 and 2200, if every ranking lost "
            "the same number of pairs, (1 - α)·45 rounded down. Removing each pair with probability 1 - α "
            "gives 6750, 4500 and 2250 (standard deviation about 45), and 39%, 75% and 92% known.",
            "The counts depend on positions alone, not on the people, so what differs is chance.",
        ],
    )


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run)
