"""The command ``permix fit mallows``."""

from __future__ import annotations

from permix.cli.command import Answering, ModelCommand
from permix.cli.votes import VOTES
from permix.mallows.parameters import MallowsParameters

COMMAND = ModelCommand(
    name="mallows",
    help="""Find groups of agents in rankings, ratings or comparisons: what each prefers, how united it is.

    A mixture of Mallows models, fitted by (Monte Carlo) EM. Interrupted, it keeps the best so far.
    """,
    examples=(
        "permix fit mallows election.soi -k 3 -o election.permix",
        "permix fit mallows ratings.csv --layout ratings --select 1-10 -o tastes.permix --picture tastes.png",
    ),
    parameters=MallowsParameters,
    source=VOTES,
    fit="permix.mallows.answers:fit_votes",
    report="permix.mallows.tables:mallows_report",
    show="permix.mallows.tables:print_mallows",
    labels="permix.mallows.answers:labels",
    answers={
        "groups": Answering("permix.mallows.answers:groups", ("samples", "seed")),
        "ranking": Answering("permix.mallows.answers:ranking", ("samples", "seed"), rankings=True),
        "pairwise": Answering("permix.mallows.answers:pairwise", ("top", "samples", "seed")),
    },
    sample="permix.mallows.answers:sample",
    select=True,
)
