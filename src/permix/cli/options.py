"""Options that several commands share, and what they may be."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer


class Layout(enum.StrEnum):
    """Layouts of CSV files."""

    AUTO = "auto"
    ORDERS = "orders"
    RANKS = "ranks"
    PAIRS = "pairs"
    RATINGS = "ratings"


class Unlisted(enum.StrEnum):
    """What items that a ranking does not list mean."""

    BELOW = "below"
    UNKNOWN = "unknown"


class OnCycle(enum.StrEnum):
    """What to do with agents whose comparisons contradict each other."""

    ERROR = "error"
    DROP = "drop"
    KEEP = "keep"


class Method(enum.StrEnum):
    """Ways to a consensus."""

    AUTO = "auto"
    EXACT = "exact"
    LOCAL = "local"
    BORDA = "borda"


class FamilyName(enum.StrEnum):
    """What a cluster is made of."""

    GAUSSIAN_NIW = "gaussian-niw"
    GAUSSIAN = "gaussian"
    MULTINOMIAL = "multinomial"
    CATEGORICAL = "categorical"


class PriorName(enum.StrEnum):
    """Priors over partitions."""

    MFM = "mfm"
    DP = "dp"
    PITMAN_YOR = "pitman-yor"
    FINITE = "finite"


class Sampler(enum.StrEnum):
    """Samplers of mixtures of generalized Mallows models."""

    EXACT = "exact"
    BETA_GIBBS = "beta-gibbs"
    SLICE_GIBBS = "slice-gibbs"


class Assignments(enum.StrEnum):
    """How the exact sampler moves agents between clusters."""

    AUTO = "auto"
    COLLAPSED = "collapsed"
    PARALLEL = "parallel"


class Inference(enum.StrEnum):
    """Ways to fit mixtures of angle-based models."""

    EM = "em"
    SIR = "sir"
    VI = "vi"
    QUADRATURE = "quadrature"


class Normalizer(enum.StrEnum):
    """How the sum over all rankings is found."""

    AUTO = "auto"
    EXACT = "exact"
    BALANCED = "balanced"
    VMF = "vmf"


class Bound(enum.StrEnum):
    """What variational inference makes as large as possible."""

    TIGHT = "tight"
    PUBLISHED = "published"


class Criterion(enum.StrEnum):
    """What numbers of components are compared by."""

    HELD_OUT = "held-out"
    DIC = "dic"
    WAIC = "waic"
    BIC = "bic"
    AIC = "aic"


class CenterSearch(enum.StrEnum):
    """How central rankings are found."""

    LOCAL = "local"
    EXACT = "exact"


class Rule(enum.StrEnum):
    """Which of the numbers tried is taken."""

    ONE_SE = "one-se"
    BEST = "best"


class What(enum.StrEnum):
    """What to say about new agents or rows."""

    COMPONENTS = "components"
    PAIRWISE = "pairwise"
    RANKING = "ranking"
    CELLS = "cells"
    SCORE = "score"


class BlockPrior(enum.StrEnum):
    """Priors over partitions of a matrix into blocks."""

    DP = "dp"
    DIRICHLET = "dirichlet"
    MONDRIAN = "mondrian"


class CellFamilyName(enum.StrEnum):
    """What the cells of a block are."""

    CATEGORICAL = "categorical"
    BERNOULLI = "bernoulli"
    POISSON = "poisson"
    GAUSSIAN = "gaussian"


class LabelCells(enum.StrEnum):
    """Which cells' labels a consensus of nested cuts is drawn from."""

    FILLED = "filled"
    ALL = "all"


class Membership(enum.StrEnum):
    """Who has a cluster: a whole row, or each of its cells."""

    HARD = "hard"
    MIXED = "mixed"


class MatrixLayout(enum.StrEnum):
    """Layouts of CSV files with a matrix."""

    AUTO = "auto"
    WIDE = "wide"
    LONG = "long"


class AnyLayout(enum.StrEnum):
    """Layouts of CSV files with votes or with a matrix."""

    AUTO = "auto"
    ORDERS = "orders"
    RANKS = "ranks"
    PAIRS = "pairs"
    RATINGS = "ratings"
    WIDE = "wide"
    LONG = "long"


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("0 would do nothing; give the number of threads, or leave it out")
    return jobs


Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
LayoutOption = Annotated[Layout, typer.Option(help="Layout of a CSV file.", case_sensitive=False)]
UnlistedOption = Annotated[
    Unlisted | None,
    typer.Option(
        help="What items missing from a ranking mean: below (the rest is worse) or unknown (not asked). "
        "By default below for rankings and unknown for ratings.",
        show_default=False,
    ),
]
CountColumn = Annotated[
    str | None, typer.Option(help="Column of a CSV file that says how many agents a row stands for.")
]
AgentColumn = Annotated[str | None, typer.Option(help="Column of a CSV file that names the agents.")]
OnCycleOption = Annotated[
    OnCycle | None,
    typer.Option(
        help="Agents whose comparisons contradict each other: error, drop, or keep.", show_default=False
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", "--plot", help="Also draw the result to this .png, .svg or .pdf file."),
]
Jobs = Annotated[
    int | None,
    typer.Option(callback=_not_zero, help="How much runs at once; default: as much as there are processors."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress display.")]
Votes = Annotated[Path, typer.Argument(help="PrefLib file, CSV or TSV with rankings or preferences.")]
ModelOutput = Annotated[Path, typer.Option("--output", "-o", help="File for the fitted model.")]
Draws = Annotated[int, typer.Option(help="Draws kept per chain.", min=1)]
BurnIn = Annotated[int, typer.Option(help="Iterations before the first draw.", min=0)]
Thin = Annotated[int, typer.Option(help="Iterations per draw kept.", min=1)]
Chains = Annotated[int, typer.Option(help="Number of chains.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed; the same seed gives the same result.", min=0)]
KeepChains = Annotated[
    bool,
    typer.Option("--keep-chains", help="Keep the folder OUTPUT.chains, from which chains can be extended."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file names the columns; default: what it looks like.",
        show_default=False,
    ),
]
Ignore = Annotated[list[str] | None, typer.Option(help="Column of a CSV file to leave out; may be repeated.")]
Categories = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        help="Order of the categories in a .cat file: best-first, worst-first, or all their names, best "
        "first, joined by commas; default: what the names say.",
        show_default=False,
    ),
]
MissingCode = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODE",
        help="Matrices: a value that stands for a missing cell, such as -1; may be repeated.",
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files that exist.")]
Select = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS",
        help="Instead of -k: try these numbers of components, such as 1-10 or 2,4,8, and choose by how "
        "probable agents are who were held out.",
    ),
]
SelectRule = Annotated[
    Rule | None,
    typer.Option(
        help="select: take the best number, or (one-se, the default) the smallest that is within one "
        "standard error of the best.",
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2, help="select: hold everybody out once, in so many parts; default: one quarter of all."
    ),
]
