"""The command ``permix fit dp-mallows``."""

from __future__ import annotations

from permix.cli.command import Answering, ModelCommand
from permix.cli.votes import VOTES
from permix.dp_mallows.parameters import DPMallowsParameters

COMMAND = ModelCommand(
    name="dp-mallows",
    help="""Find groups of agents, without being told how many, in full rankings and top lists.

    A Dirichlet-process mixture of generalized Mallows models. While it runs, the chains are kept in the
    folder OUTPUT.chains: killed at any moment, the same command goes on.
    """,
    examples=(
        "permix fit dp-mallows election.soi -o election.permix",
        "permix fit dp-mallows votes.csv --concentration 'gamma(1,1)' -o groups.permix --picture groups.svg",
    ),
    parameters=DPMallowsParameters,
    source=VOTES,
    fit="permix.dp_mallows.answers:fit_votes",
    report="permix.dp_mallows.tables:dp_mallows_report",
    show="permix.dp_mallows.tables:print_dp_mallows",
    labels="permix.dp_mallows.answers:labels",
    answers={
        "groups": Answering("permix.dp_mallows.answers:groups"),
        "ranking": Answering("permix.dp_mallows.answers:ranking", ("length",), rankings=True),
        "pairwise": Answering("permix.dp_mallows.answers:pairwise", ("top", "samples", "seed")),
    },
    sample="permix.dp_mallows.answers:sample",
    sample_takes_length=True,
)
