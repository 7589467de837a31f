"""The command ``permix fit mean-shift``."""

from __future__ import annotations

from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.cli.command import AGENT_LABELS, Answering, ModelCommand
from permix.cli.votes import VOTES

COMMAND = ModelCommand(
    name="mean-shift",
    help="""Find groups of top lists by blurring mean-shift: quick, without a prior, and without uncertainty.

    Every list moves to the consensus of the lists near it until none moves. Interrupted, it keeps the lists
    where they are.
    """,
    examples=("permix fit mean-shift election.soi -o first-look.permix",),
    parameters=MeanShiftParameters,
    source=VOTES,
    labels=AGENT_LABELS,
    answers={"groups": Answering(), "score": Answering(("seed",)), "checks": Answering(("samples", "seed"))},
)
