"""The command ``permix fit dp-mallows``."""

from __future__ import annotations

from permix.cli.command import AGENT_LABELS, Answering, ModelCommand
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
        "permix fit dp-mallows votes.csv --concentration 'gamma(1,1)' -o groups.permix",
    ),
    parameters=DPMallowsParameters,
    source=VOTES,
    labels=AGENT_LABELS,
    answers={
        "groups": Answering(),
        "ranking": Answering(("length",), rankings=True),
        "pairwise": Answering(("top", "samples", "seed")),
        "recommend": Answering(("top", "samples", "seed")),
        "score": Answering(("seed",)),
        "checks": Answering(("samples", "seed"), needs_data=False),
    },
    draws=True,
    draws_lengths=True,
)
