"""The commands and their options. What they do is in the neighbouring files, loaded when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from permix.cli import cocluster_command as cocluster_command
from permix.cli.fit_commands import fit_app
from permix.cli.options import (
    AgentColumn,
    AnyLayout,
    Categories,
    CountColumn,
    Force,
    Header,
    Ignore,
    Json,
    Layout,
    LayoutOption,
    Method,
    MissingCode,
    OnCycleOption,
    UnlistedOption,
    Votes,
    What,
)

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
app.add_typer(fit_app, name="fit")


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
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    json: Json = False,
) -> None:
    """Say what a file holds: how many agents and items, how much each stated, first choices."""
    from permix.cli.inspect import ReadOptions, show_info

    show_info(
        ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories),
        json,
    )


@app.command(epilog="Example: `permix convert ratings.csv ratings.toi --layout ratings`")
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; its ending says the format.")],
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    to_layout: Annotated[
        Layout, typer.Option(help="Layout of a CSV file to write.", case_sensitive=False)
    ] = Layout.AUTO,
    force: Force = False,
    json: Json = False,
) -> None:
    """Turn one kind of file into another: PrefLib .soc .soi .toc .toi .cat, CSV, TSV, plain or .gz."""
    from permix.cli.inspect import ReadOptions, run_convert

    options = ReadOptions(
        source, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories
    )
    run_convert(options, target, to_layout, force, json)


@app.command(epilog="Example: `permix consensus election.soi --method exact`")
def consensus(
    file: Votes,
    method: Annotated[
        Method, typer.Option(help="How to find it; auto proves it optimal where that is affordable.")
    ] = Method.AUTO,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the exact search.", min=0.0)] = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    json: Json = False,
) -> None:
    """Rank the items as the agents do on the whole (Kemeny), and say whether that is proven optimal."""
    from permix.cli.inspect import ReadOptions, show_consensus

    options = ReadOptions(
        file, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories
    )
    show_consensus(options, method, time_limit, json)


@app.command(
    epilog="Examples: `permix predict tastes.permix newcomers.csv -o kinds.csv`, "
    "`permix predict tastes.permix newcomers.csv --what ranking -o completed.soc`, "
    "`permix predict ratings.permix -o missing.csv`, "
    "`permix predict ratings.permix held-out.csv --what score`"
)
def predict(
    fit: Annotated[Path, typer.Argument(help="A fitted model.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            help="New agents, in any format info reads; for a DPMixture new rows of its table, for a "
            "co-clustering new rows of its matrix, or nothing: then its own missing cells."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help=".csv or .tsv file to write; for completed rankings also PrefLib, such as .soc.",
        ),
    ] = None,
    what: Annotated[
        What | None,
        typer.Option(
            help="The component or cluster of each agent or row, given that it is in one of these; the "
            "order of the pairs an agent did not state; each agent's ranking completed; missing cells of a "
            "matrix; or how probable cells held out of the fitted rows are [default: components, of a "
            "co-clustering cells].",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="pairwise: only so many pairs of each agent, the surest.", min=1)
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Rankings drawn for agents that need Monte Carlo; more make answers more precise.", min=2
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            help="ranking, by a DPMallowsMixture: continue lists to so many items; default: as many as "
            "the longest list of the data has.",
            min=1,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed, for agents that need Monte Carlo [default: 0].", min=0, show_default=False),
    ] = None,
    layout: Annotated[
        AnyLayout,
        typer.Option(help="Layout of a CSV file; of a matrix: wide or long.", case_sensitive=False),
    ] = AnyLayout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="DPMixture, co-clustering: column that names the rows and is not data; co-clustering: "
            '"" for none.',
        ),
    ] = None,
    missing: MissingCode = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say what a fitted model makes of new agents or rows: where they belong, and what they would say."""
    from permix.cli.inspect import ReadOptions
    from permix.cli.predict import NewData, Question, run_predict

    votes = ReadOptions(
        file or Path(), layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories
    )
    question = Question(what, top, samples, seed, length)
    data = NewData(votes, id_column, ignore or [], missing or [], header, there=file is not None)
    run_predict(fit, data, question, output, force, json)


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
    length: Annotated[
        int | None,
        typer.Option(
            help="DPMallowsMixture: items of every list; default: as long as lists of the data.", min=1
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same draws.", min=0)] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw new rankings, or new rows, from a fitted model."""
    from permix.cli.predict import run_sample

    run_sample(fit, size, length, output, seed, force, json)


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
