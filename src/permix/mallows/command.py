"""The command ``permix fit mallows``."""

from __future__ import annotations

from permix.cli.command import AGENT_LABELS, Answering, ModelCommand, Option
from permix.cli.votes import VOTES
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
    options={
        "weights_by": Option(
            list[str],
            "Column known of the agents, such as region or age, that the shares of groups depend on (a "
            "multinomial logit). May be repeated.",
            ("--weights-by",),
            metavar="COLUMN",
        )
    },
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
