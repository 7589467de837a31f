"""The command ``permix fit bayes-mallows``."""

from __future__ import annotations

from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.cli.command import AGENT_LABELS, Answering, ModelCommand
from permix.cli.votes import STATEMENTS, WEIGHTS_BY

DRAWN = ("samples", "seed")

COMMAND = ModelCommand(
    name="bayes-mallows",
    help="""Find what groups of agents prefer, and how sure that is, in rankings, ratings or comparisons.

    Bayesian Mallows models (Vitelli et al. 2018): draws of the center and dispersion of every group, under
    six distances; comparisons may be wrong now and then. While it runs, the chains are kept in the folder
    OUTPUT.chains: killed at any moment, the same command goes on.
    """,
    examples=(
        "permix fit bayes-mallows votes.csv -k 1 --report v.html -o v.permix",
        "permix fit bayes-mallows pairs.csv -k 1 --errors bernoulli -o p.permix",
        "permix fit bayes-mallows votes.csv --select 1-6 --distance ulam -o v.permix",
    ),
    parameters=BayesianMallowsParameters,
    source=STATEMENTS,
    options={"weights_by": WEIGHTS_BY},
    labels=AGENT_LABELS,
    answers={
        "groups": Answering(("seed",)),
        "ranking": Answering(DRAWN, rankings=True),
        "pairwise": Answering(("top", *DRAWN)),
        "recommend": Answering(("top", *DRAWN)),
        "top": Answering(("top", *DRAWN)),
        "score": Answering(("seed",)),
        "careless": Answering(needs_data=False),
        "checks": Answering(DRAWN, needs_data=False),
    },
    draws=True,
    select=("held-out",),
)
