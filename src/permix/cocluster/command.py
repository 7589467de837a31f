"""The command ``permix fit cocluster``, and what other commands do with co-clusterings and ensembles."""

from __future__ import annotations

from permix.cli.command import Answering, ModelCommand, Option, Variant
from permix.cocluster.matrix_source import MATRIX
from permix.cocluster.parameters import CoClusterParameters, EnsembleParameters

COMMAND = ModelCommand(
    name="cocluster",
    help="""Find groups of rows and groups of columns of a matrix at once, also where cells are missing.

    While it runs, the chains are kept in the folder OUTPUT.chains: killed at any moment, the same command
    goes on.
    """,
    examples=(
        "permix fit cocluster ratings.csv -o ratings.permix --picture blocks.png",
        "permix fit cocluster ratings.csv --prior mondrian --budget 2 -o nested.permix",
        "permix fit cocluster ratings.csv --ensemble 5 -o consensus.permix",
    ),
    parameters=CoClusterParameters,
    variant=Variant(EnsembleParameters, "n_base"),
    source=MATRIX,
    fit_options={
        "levels": Option(
            str,
            "categorical: the possible values in their order [default: those that occur, sorted].",
            metavar="A,B,C",
        ),
        "held_out": Option(
            float,
            "Fit without this share of the filled cells, and say how well they are predicted.",
            metavar="SHARE",
        ),
    },
    labels="Also write each row's group and how sure that is to this CSV file.",
    column_labels=True,
    answers={
        "cells": Answering(needs_data=False),
        "groups": Answering(),
        "recommend": Answering(("top",), needs_data=False),
        "score": Answering(),
        "checks": Answering(("samples", "seed"), needs_data=False),
    },
)
