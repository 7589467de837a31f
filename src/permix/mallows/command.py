"""The command ``permix fit mallows``."""

from __future__ import annotations

from permix.cli.command import AGENT_LABELS, Answering, ModelCommand
from permix.cli.votes import VOTES, WEIGHTS_BY
from permix.mallows.parameters import MallowsParameters

COMMAND = ModelCommand(
    name="mallows",
    help="""Find groups of agents in rankings, ratings or comparisons: what each prefers, how united it is.

    A mixture of Mallows models, fitted by (Monte Carlo) EM. Interrupted, it keeps the best so far.
    """,
    examples=(
        "permix fit mallows election.soi -k 3 -o election.permix",
        "permix fit mallows ratings.csv --select 1-10 -o tastes.permix --picture t.png",
    ),
    parameters=MallowsParameters,
    source=VOTES,
    options={"weights_by": WEIGHTS_BY},
    labels=AGENT_LABELS,
    answers={
        "groups": Answering(("samples", "seed")),
        "ranking": Answering(("samples", "seed"), rankings=True),
        "pairwise": Answering(("top", "samples", "seed")),
        "recommend": Answering(("top", "samples", "seed")),
        "score": Answering(("seed",)),
        "checks": Answering(("samples", "seed")),
    },
    draws=True,
    baselines=True,
    select=("held-out",),
)
