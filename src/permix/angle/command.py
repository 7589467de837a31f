"""The command ``permix fit angle``."""

from __future__ import annotations

from permix.angle.parameters import AngleParameters
from permix.cli.command import AGENT_LABELS, Answering, ModelCommand, Option
from permix.cli.votes import VOTES

COMMAND = ModelCommand(
    name="angle",
    help="""Find groups of agents in rankings: how far apart each sees the items, and how united it is.

    A mixture of angle-based models: every group has a score for each item, with an interval where the fit
    draws from the posterior, and a concentration. Interrupted, it keeps the best so far; chains go on from
    OUTPUT.chains when the command is given again.
    """,
    examples=(
        "permix fit angle election.soc -k 3 -o election.permix",
        "permix fit angle votes.csv --select 1-5 --inference sir -o groups.permix",
    ),
    parameters=AngleParameters,
    source=VOTES,
    labels=AGENT_LABELS,
    answers={
        "groups": Answering(),
        "ranking": Answering(("samples", "seed"), rankings=True),
        "pairwise": Answering(("top", "samples", "seed")),
        "recommend": Answering(("top", "samples", "seed")),
        "score": Answering(("seed",)),
        "checks": Answering(("samples", "seed")),
    },
    draws=True,
    baselines=True,
    select=("held-out", "dic", "waic", "bic", "aic"),
    measures=True,
    options={
        "criteria": Option(
            bool,
            "DIC and WAIC [default: where there is a posterior, rankings are full and it takes seconds].",
            ("--criteria/--no-criteria",),
        )
    },
)
