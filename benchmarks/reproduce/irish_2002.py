"""The Irish general election of 2002 (PrefLib 00001): kinds of voters in Dublin North, Dublin West and Meath.

Meilă & Chen (2010) name Irish elections as top-t data that others have modeled, and do not analyze them;
there is no value of theirs to compare with. A fifth of the voters is held out, and the log probability of
their ballots is compared with that of mixtures of Mallows models. (Data: J. O'Neill, Open STV, 2013.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.reproduce.elections import analyze, remark_of, rows_of
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from permix.datasets import load_preflib
from permix.datasets.fetch import DataNotFound

AREAS = {"Dublin North": "00001-00000001", "Dublin West": "00001-00000002", "Meath": "00001-00000003"}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment."""

    areas: tuple[str, ...] = tuple(AREAS)
    n_voters: int = 100_000  # at most
    n_draws: int = 500
    n_burn_in: int = 500
    n_components: tuple[int, ...] = (1, 5, 10, 20)
    n_init: int = 5
    seed: int = 0


QUICK = Sizes(
    areas=("Dublin West",), n_voters=3000, n_draws=100, n_burn_in=100, n_components=(1, 5), n_init=2
)


def run(sizes: Sizes) -> Outcome:
    """Analyze every area whose file is there."""
    rows: list[list[Any]] = []
    remarks: list[str] = []
    missing: list[DataNotFound] = []
    for area in sizes.areas:
        try:
            ballots = load_preflib(AREAS[area], ".soi", download=False).data
        except DataNotFound as error:
            missing.append(error)
            remarks.append(f"{area}: not analyzed, the file is not there.")
            continue
        tell(area)
        if ballots.n_agents > sizes.n_voters:
            _, ballots = ballots.split(sizes.n_voters, random_state=sizes.seed)
        found = analyze(ballots, sizes.n_draws, sizes.n_burn_in, sizes.n_components, sizes.n_init, sizes.seed)
        rows += rows_of(area, found, ballots.items, 6)
        remarks.append(remark_of(area, found))
    if not rows:
        raise missing[0]
    return Outcome(
        "Irish general election 2002: groups of the last draw, of at least 1 % of the voters",
        ["", "share", "θ_1 … θ_5", "center: first six candidates, with party"],
        rows,
        ["Not in the paper: no value to compare with.", *remarks],
    )


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run)
