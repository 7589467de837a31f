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


class CenterSearch(enum.StrEnum):
    """How central rankings are found."""

    LOCAL = "local"
    EXACT = "exact"


class Rule(enum.StrEnum):
    """Which of the numbers tried is taken."""

    ONE_SE = "one-se"
    BEST = "best"


class What(enum.StrEnum):
    """What to say about new agents."""

    COMPONENTS = "components"
    PAIRWISE = "pairwise"
    RANKING = "ranking"


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
    jobs: Jobs = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows and is not data.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Also write each row's cluster and how sure that is to this CSV file.")
    ] = None,
    picture: Picture = None,
    keep_chains: Annotated[
        bool,
        typer.Option(
            "--keep-chains", help="Keep the folder OUTPUT.chains, from which chains can be extended."
        ),
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
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


@fit_app.command(
    "mallows",
    epilog="Examples: `permix fit mallows election.soi -k 3 -o election.permix`, "
    "`permix fit mallows ratings.csv --layout ratings --select 1-10 -o tastes.permix --picture tastes.png`",
)
def fit_mallows(
    file: Annotated[Path, typer.Argument(help="PrefLib file, CSV or TSV with rankings or preferences.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the fitted model.")],
    components: Annotated[
        int | None, typer.Option("--components", "-k", min=1, help="Number of components, kinds of agents.")
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Instead of -k: try these numbers of components, such as 1-10 or 2,4,8, and choose by how "
            "probable agents are who were held out.",
        ),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="select: take the best number, or (one-se, the default) the smallest that is within one "
            "standard error of the best.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2, help="select: hold everybody out once, in so many parts; default: one quarter of all."
        ),
    ] = None,
    restarts: Annotated[int, typer.Option(help="Starts of which the best is kept.", min=1)] = 10,
    max_iter: Annotated[int, typer.Option(help="The most iterations of one start.", min=1)] = 200,
    tol: Annotated[
        float, typer.Option(help="Stop when the log-likelihood of an agent gains less than this.", min=0.0)
    ] = 1e-6,
    particles: Annotated[
        int,
        typer.Option(help="Rankings drawn for an agent and component where no exact sum is known.", min=2),
    ] = 8,
    center_search: Annotated[
        CenterSearch,
        typer.Option(help="Central rankings by local search, or exact: proven best where that is possible."),
    ] = CenterSearch.LOCAL,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same result.", min=0)] = 0,
    jobs: Jobs = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Also write each agent's component and its probability to this CSV file."),
    ] = None,
    picture: Picture = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find kinds of agents in rankings, ratings or comparisons: what each kind prefers, and how united it is.

    A mixture of Mallows models, fitted by (Monte Carlo) EM. Interrupted, it keeps the best so far.
    """
    from permix.cli.inspect import ReadOptions
    from permix.cli.rank_models import HowMany, RankTargets, run_fit_mallows

    run_fit_mallows(
        ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle),
        RankTargets(output, labels, picture, force),
        HowMany(components, select, rule, folds),
        {
            "n_restarts": restarts,
            "max_iter": max_iter,
            "tol": tol,
            "n_particles": particles,
            "center_search": str(center_search),
            "random_state": seed,
            "n_jobs": jobs,
        },
        quiet,
        json,
    )


@app.command(
    epilog="Examples: `permix predict tastes.permix newcomers.csv -o kinds.csv`, "
    "`permix predict tastes.permix newcomers.csv --what ranking -o completed.soc`"
)
def predict(
    fit: Annotated[Path, typer.Argument(help="A fitted model.")],
    file: Annotated[
        Path,
        typer.Argument(help="New agents, in any format info reads; for a DPMixture new rows of its table."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help=".csv or .tsv file to write; for completed rankings also PrefLib, such as .soc.",
        ),
    ] = None,
    what: Annotated[
        What,
        typer.Option(
            help="The component of each agent; the order of the pairs an agent did not state; "
            "or each agent's ranking completed."
        ),
    ] = What.COMPONENTS,
    top: Annotated[
        int | None, typer.Option(help="pairwise: only so many pairs of each agent, the surest.", min=1)
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Rankings drawn for agents that need Monte Carlo; more make answers more precise.", min=2
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed, for agents that need Monte Carlo.", min=0)] = 0,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="DPMixture: column that names the rows and is not data.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="DPMixture: column to leave out; may be repeated.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say what a fitted model makes of new agents or rows: where they belong, and what they would say."""
    from permix.cli.inspect import ReadOptions
    from permix.cli.predict import NewData, Question, run_predict

    votes = ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle)
    question = Question(what, top, samples, seed)
    run_predict(fit, NewData(votes, id_column, ignore or []), question, output, force, json)


@app.command(epilog="Example: `permix sample tastes.permix -n 1000 -o made.soc`")
def sample(
    fit: Annotated[Path, typer.Argument(help="A fitted model.")],
    size: Annotated[int, typer.Option("--size", "-n", help="How many.", min=1)] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .csv, or for rankings also .soc. Without it, CSV is printed.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same draws.", min=0)] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw new rankings, or new rows, from a fitted model."""
    from permix.cli.predict import run_sample

    run_sample(fit, size, output, seed, force, json)


@app.command(epilog="Example: `permix summary points.permix`")
def summary(
    fit: Annotated[Path, typer.Argument(help="A fitted model.")],
    json: Json = False,
) -> None:
    """Show a fitted model: its clusters or components, their parameters, and whether the fit settled."""
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
