"""The command ``permix fit cocluster`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from permix.cli.fit_commands import fit_app
from permix.cli.options import (
    BlockPrior,
    BurnIn,
    CellFamilyName,
    Chains,
    Draws,
    Force,
    Header,
    Jobs,
    Json,
    KeepChains,
    LabelCells,
    MatrixLayout,
    Membership,
    MissingCode,
    ModelOutput,
    Picture,
    Quiet,
    Seed,
    Thin,
)


@fit_app.command(
    "cocluster",
    epilog="Examples: `permix fit cocluster ratings.csv -o ratings.permix --picture blocks.png`, "
    "`permix fit cocluster ratings.csv --prior mondrian --budget 2 --held-out 0.25 -o nested.permix`, "
    "`permix fit cocluster ratings.csv --ensemble 5 -o consensus.permix`",
)
def fit_cocluster(
    matrix: Annotated[
        Path,
        typer.Argument(
            metavar="MATRIX",
            help="CSV or TSV (plain or .gz), wide or with lines row,column,value; or scipy sparse .npz. "
            "Blank cells, and those a sparse matrix does not store, are missing.",
        ),
    ],
    output: ModelOutput,
    prior: Annotated[
        BlockPrior,
        typer.Option(
            help="dp: a grid of as many clusters as the data ask for; dirichlet: of as many as you say; "
            "mondrian: nested cuts, finer in some places than in others."
        ),
    ] = BlockPrior.DP,
    family: Annotated[
        CellFamilyName,
        typer.Option(help="What cells are: a few levels such as ratings, 0 and 1, counts, or numbers."),
    ] = CellFamilyName.CATEGORICAL,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="categorical: the possible values in their order; default: those that occur, sorted.",
        ),
    ] = None,
    concentration: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="dp, dirichlet: the larger, the more clusters; gamma(SHAPE,RATE) learns it (dp); "
            "ROWS:COLUMNS tells them apart, such as 20:5 [default: 1].",
            show_default=False,
        ),
    ] = None,
    pseudo_count: Annotated[
        float, typer.Option(help="How many cells, at each level, the prior of a block is worth.")
    ] = 1.0,
    budget: Annotated[
        float | None,
        typer.Option(help="mondrian: a budget b expects (1 + b)² blocks [default: 1].", show_default=False),
    ] = None,
    row_clusters: Annotated[
        int | None, typer.Option(help="dirichlet: number of clusters of rows.", min=1)
    ] = None,
    column_clusters: Annotated[
        int | None, typer.Option(help="dirichlet: number of clusters of columns.", min=1)
    ] = None,
    membership: Annotated[
        Membership | None,
        typer.Option(
            help="dirichlet: a row has one cluster (hard), or each of its cells chooses one (mixed) "
            "[default: hard].",
            show_default=False,
        ),
    ] = None,
    ensemble: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="dp, mondrian: fit N co-clusterings and the consensus of their last draws.",
        ),
    ] = None,
    label_pseudo_count: Annotated[
        float | None,
        typer.Option(
            help="ensemble: how many labels of each base the prior of a consensus cluster is worth "
            "[default: 1].",
            show_default=False,
        ),
    ] = None,
    label_cells: Annotated[
        LabelCells | None,
        typer.Option(
            help="ensemble, mondrian: whether the labels of filled cells count, or those of all cells "
            "[default: filled].",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Fit without this share of the filled cells, and say how well they are predicted.",
        ),
    ] = None,
    draws: Draws = 1000,
    burn_in: BurnIn = 500,
    thin: Thin = 1,
    chains: Chains = 2,
    seed: Seed = 0,
    jobs: Jobs = None,
    layout: Annotated[
        MatrixLayout,
        MissingCode,
        typer.Option(help="Layout of a CSV file: a line for every row, or for every filled cell."),
    ] = MatrixLayout.AUTO,
    header: Header = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help='Wide CSV file: column that names the rows and is no cell; "": none does.'),
    ] = None,
    missing: MissingCode = None,
    row_labels: Annotated[
        Path | None,
        typer.Option(help="Also write each row's cluster and how sure that is to this CSV file."),
    ] = None,
    column_labels: Annotated[Path | None, typer.Option(help="The same for columns.")] = None,
    picture: Picture = None,
    keep_chains: KeepChains = False,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find kinds of rows and kinds of columns of a matrix at once, also where cells are missing.

    While it runs, the chains are kept in the folder OUTPUT.chains: killed at any moment, the same command
    goes on.
    """
    from permix.cocluster.command_run import BlockTargets, MatrixFile, run_fit_cocluster

    run_fit_cocluster(
        MatrixFile(matrix, layout, header, id_column, missing or []),
        BlockTargets(output, row_labels, column_labels, picture, keep_chains, force),
        prior,
        {
            "family": str(family),
            "pseudo_count": pseudo_count,
            "n_draws": draws,
            "n_burn_in": burn_in,
            "n_thin": thin,
            "n_chains": chains,
            "random_state": seed,
            "n_jobs": jobs,
        },
        {
            "concentration": concentration,
            "budget": budget,
            "n_row_clusters": row_clusters,
            "n_column_clusters": column_clusters,
            "membership": None if membership is None else str(membership),
            "n_base": ensemble,
            "label_pseudo_count": label_pseudo_count,
            "label_cells": None if label_cells is None else str(label_cells),
        },
        levels,
        held_out,
        quiet,
        json,
    )
