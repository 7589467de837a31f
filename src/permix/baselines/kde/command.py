"""The command ``permix fit kde``."""

from __future__ import annotations

from permix.baselines.kde.parameters import KDEParameters
from permix.cli.command import Answering, ModelCommand
from permix.cli.votes import VOTES

COMMAND = ModelCommand(
    name="kde",
    help="""Estimate how common rankings are, without groups: a small Mallows model around every agent.

    How wide these are is chosen by predicting agents left out, one at a time. Interrupted, it keeps the best
    so far.
    """,
    examples=("permix fit kde election.soi -o density.permix",),
    parameters=KDEParameters,
    source=VOTES,
    answers={"score": Answering(("seed",)), "checks": Answering(("samples", "seed"), needs_data=False)},
    draws=True,
)
