"""The commands and their options. What they do is in the neighbouring files, loaded when a command runs."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="permix",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How many kinds of people or things are here, what does each kind prefer, and how sure is that?",
    epilog="Start with `permix demo`. Exit codes: 0 done, 1 something is wrong with the data or a file, "
    "2 something is wrong with the command, 130 interrupted.",
)
fit_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Fit a model and write it to a file.",
    pretty_exceptions_enable=False,
)
app.add_typer(fit_app, name="fit")


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

    DP = "dp"
    PITMAN_YOR = "pitman-yor"
    FINITE = "finite"


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
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files that exist.")]


def _version(wanted: bool) -> None:
    if wanted:
        from permix import __version__

        typer.echo(f"permix {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: `permix info election.soi`")
def info(
    file: Annotated[Path, typer.Argument(help="PrefLib file, CSV or TSV (plain or .gz), or a fitted model.")],
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    json: Json = False,
) -> None:
    """Say what a file holds: how many agents and items, how much each stated, first choices."""
    from permix.cli.inspect import ReadOptions, show_info

    show_info(ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle), json)


@app.command(epilog="Example: `permix convert ratings.csv ratings.toi --layout ratings`")
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; its ending says the format.")],
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    to_layout: Annotated[
        Layout, typer.Option(help="Layout of a CSV file to write.", case_sensitive=False)
    ] = Layout.AUTO,
    force: Force = False,
    json: Json = False,
) -> None:
    """Turn one kind of file into another: PrefLib .soc .soi .toc .toi .cat, CSV, TSV, plain or .gz."""
    from permix.cli.inspect import ReadOptions, run_convert

    options = ReadOptions(source, layout, unlisted, count_column, agent_column, on_cycle)
    run_convert(options, target, to_layout, force, json)


@app.command(epilog="Example: `permix consensus election.soi --method exact`")
def consensus(
    file: Annotated[Path, typer.Argument(help="PrefLib file, CSV or TSV with rankings or preferences.")],
    method: Annotated[
        Method, typer.Option(help="How to find it; auto proves it optimal where that is affordable.")
    ] = Method.AUTO,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the exact search.", min=0.0)] = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    json: Json = False,
) -> None:
    """Rank the items as the agents do on the whole (Kemeny), and say whether that is proven optimal."""
    from permix.cli.inspect import ReadOptions, show_consensus

    options = ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle)
    show_consensus(options, method, time_limit, json)


@fit_app.command(
    "dp-mixture",
    epilog="Examples: `permix fit dp-mixture points.csv -o points.permix`, "
    "`permix fit dp-mixture survey.csv --family categorical --id person -o survey.permix`",
)
def fit_dp_mixture(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="CSV or TSV (plain or .gz), .npy, or scipy sparse .npz.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the fitted model.")],
    family: Annotated[FamilyName, typer.Option(help="What a cluster is made of.")] = FamilyName.GAUSSIAN_NIW,
    noise_scale: Annotated[
        float | None, typer.Option(help="gaussian: standard deviation within a cluster [default: 1].")
    ] = None,
    prior_mean: Annotated[
        float | None, typer.Option(help="gaussian: where centres are expected [default: 0].")
    ] = None,
    prior_scale: Annotated[
        float | None, typer.Option(help="gaussian: standard deviation of cluster centres [default: 10].")
    ] = None,
    pseudo_count: Annotated[
        float | None, typer.Option(help="multinomial, categorical: Dirichlet parameter [default: 1].")
    ] = None,
    prior: Annotated[PriorName, typer.Option(help="Prior over partitions.")] = PriorName.DP,
    concentration: Annotated[
        float | None,
        typer.Option(help="Concentration of dp and pitman-yor; default: learned (dp), 1 (pitman-yor)."),
    ] = None,
    discount: Annotated[
        float | None, typer.Option(help="pitman-yor: discount in [0, 1) [default: 0.25].")
    ] = None,
    components: Annotated[
        int | None, typer.Option("--components", "-k", min=1, help="finite: number of components.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws kept per chain.", min=1)] = 1000,
    burn_in: Annotated[int, typer.Option(help="Iterations before the first draw.", min=0)] = 500,
    thin: Annotated[int, typer.Option(help="Iterations per draw kept.", min=1)] = 1,
    chains: Annotated[int, typer.Option(help="Number of chains.", min=1)] = 2,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same result.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Chains that run at once; default: all processors.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows and is not data.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Also write each row's cluster and how sure that is to this CSV file.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the result to this .png, .svg or .pdf file.")
    ] = None,
    keep_chains: Annotated[
        bool,
        typer.Option(
            "--keep-chains", help="Keep the folder OUTPUT.chains, from which chains can be extended."
        ),
    ] = False,
    force: Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress display.")] = False,
    json: Json = False,
) -> None:
    """Find clusters, without being told how many, in a table of numbers, counts or categories.

    While it runs, the chains are kept in the folder OUTPUT.chains: killed at any moment, the same command
    goes on.
    """
    from permix.cli.fit import FitOptions, Targets, run_fit

    options = FitOptions(
        family=family,
        noise_scale=noise_scale,
        prior_mean=prior_mean,
        prior_scale=prior_scale,
        pseudo_count=pseudo_count,
        prior=prior,
        concentration=concentration,
        discount=discount,
        components=components,
        draws=draws,
        burn_in=burn_in,
        thin=thin,
        chains=chains,
        seed=seed,
        jobs=jobs,
    )
    targets = Targets(output, labels, picture, keep_chains, force)
    run_fit(data, targets, options, id_column, ignore or [], quiet, json)


@app.command(epilog="Example: `permix summary points.permix`")
def summary(
    fit: Annotated[Path, typer.Argument(help="A fitted model.")],
    json: Json = False,
) -> None:
    """Show a fitted model: its clusters, their parameters, and whether the chains agree."""
    from permix.cli.inspect import show_fit

    show_fit(fit, json)


@app.command(epilog="Example: `permix demo`")
def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for data, fit and picture.")] = Path("permix-demo"),
    seed: Annotated[int, typer.Option(help="Seed of data and fit.")] = 0,
) -> None:
    """Make data with known truth, find its clusters and its consensus, and draw the result."""
    from permix.cli.demo import run_demo

    run_demo(folder, seed)
