"""Ballots of the American Psychological Association, 1998 to 2003 (PrefLib 00028): kinds of voters.

Not in Meilă & Chen (2010): there is no value of theirs to compare with. Voters rank as many of the five
candidates as they like. A fifth of the voters is held out, and the log probability of their ballots is
compared with that of mixtures of Mallows models. (Data: Popov, Popova and Regenwetter, 2015.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.reproduce.elections import analyze, remark_of, rows_of
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from permix.datasets import load_apa


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment."""

    years: tuple[int, ...] = (1998, 1999, 2000, 2001, 2002, 2003)
    n_voters: int = 100_000  # at most
    n_draws: int = 500
    n_burn_in: int = 500
    n_components: tuple[int, ...] = (1, 2, 5, 10)
    n_init: int = 5
    seed: int = 0


QUICK = Sizes(years=(1998,), n_voters=3000, n_draws=100, n_burn_in=100, n_components=(1, 5), n_init=2)


def run(sizes: Sizes) -> Outcome:
    """Analyze every year."""
    rows: list[list[Any]] = []
    remarks: list[str] = []
    for year in sizes.years:
        ballots = load_apa(year, download=False).data
        tell(str(year))
        if ballots.n_agents > sizes.n_voters:
            _, ballots = ballots.split(sizes.n_voters, random_state=sizes.seed)
        found = analyze(ballots, sizes.n_draws, sizes.n_burn_in, sizes.n_components, sizes.n_init, sizes.seed)
        rows += rows_of(str(year), found, range(1, 6), 5)
        remarks.append(remark_of(str(year), found))
    return Outcome(
        "APA elections 1998 to 2003: groups of the last draw, of at least 1 % of the voters",
        ["", "share", "θ_1 … θ_4", "center"],
        rows,
        ["Not in the paper: no value to compare with.", *remarks],
    )


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run)
