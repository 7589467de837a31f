"""The commands. What they do is in the neighboring files and in the folders of the models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from permix.cli.command import (
    SHARED,
    ModelCommand,
    Option,
    add_command,
    add_fit_command,
    positional,
)
from permix.cli.votes import VOTE_OPTIONS, VOTES
from permix.estimators.registry import MODELS, find_plug_ins, part

FORCE_AND_JSON = {name: SHARED[name] for name in ("force", "json")}
JSON = {"json": SHARED["json"]}
MODEL = positional("fit", "A fitted model.")
PREDICT_OPTIONS: Mapping[str, Option] = {
    "top": Option(int, "pairwise: only so many pairs of each agent, the surest.", least=1),
    "samples": Option(
        int, "Rankings drawn for agents that need Monte Carlo; more make answers more precise.", least=2
    ),
    "length": Option(
        int,
        "ranking, by models of top lists: continue lists to so many items [default: as the data].",
        least=1,
    ),
    "seed": Option(int, "Seed, for agents that need Monte Carlo [default: 0].", least=0),
}


def model_commands() -> list[ModelCommand]:
    """Return the commands of all models that have one."""
    commands = [part(model.command) for model in MODELS.values() if model.command]
    return list({command.name: command for command in commands}.values())  # one may serve several models


def build() -> typer.Typer:
    """Build the command line from what is registered."""
    find_plug_ins()
    app = typer.Typer(
        name="permix",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="How many groups of people or things are here, what does each prefer, and how sure is that?",
        epilog="Start with `permix demo`. Exit codes: 0 done, 1 something is wrong with the data or a file, "
        "2 something is wrong with the command, 130 interrupted.",
    )
    app.callback()(_main)
    commands = model_commands()
    app.add_typer(_fit_app(commands), name="fit")
    _add_file_commands(app)
    _add_model_commands(app, commands)
    return app


def _fit_app(commands: list[ModelCommand]) -> typer.Typer:
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Fit a model and write it to a file.",
        pretty_exceptions_enable=False,
    )

    def run(command: ModelCommand, values: Mapping[str, Any]) -> None:
        part("permix.cli.run:run_fit")(command, values)

    for command in commands:
        add_fit_command(app, command, run)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from permix import __version__

        typer.echo(f"permix {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _add_file_commands(app: typer.Typer) -> None:
    """Add the commands about files of votes."""

    def votes(file: Path, values: Mapping[str, Any]) -> Any:
        return part("permix.cli.votes:read_options")(file, values)

    def info(file: Path, json: bool, **values: Any) -> None:
        part("permix.cli.inspect:show_info")(votes(file, values), json)

    def convert(
        source: Path, target: Path, to_layout: str | None, force: bool, json: bool, **values: Any
    ) -> None:
        run = part("permix.cli.inspect:run_convert")
        run(votes(source, values), target, to_layout or "auto", force, json)

    def consensus(
        file: Path, method: str | None, time_limit: float | None, json: bool, **values: Any
    ) -> None:
        run = part("permix.consensus.command:show_consensus")
        run(votes(file, values), method or "auto", time_limit, json)

    add_command(
        app,
        "info",
        info,
        [positional("file", "PrefLib file, CSV or TSV (plain or .gz), or a fitted model.")],
        {**VOTE_OPTIONS, **JSON},
        "Say what a file holds: how many agents and items, how much each stated, first choices.",
        ["permix info election.soi"],
    )
    to_layout = VOTE_OPTIONS["layout"]._replace(help="Layout of a CSV file to write.")
    add_command(
        app,
        "convert",
        convert,
        [
            positional("source", "File to read.", metavar="IN"),
            positional("target", "File to write; its ending says the format.", metavar="OUT"),
        ],
        {**VOTE_OPTIONS, "to_layout": to_layout, **FORCE_AND_JSON},
        "Turn one kind of file into another: PrefLib .soc .soi .toc .toi .cat, CSV, TSV, plain or .gz.",
        ["permix convert ratings.csv ratings.toi --layout ratings"],
    )
    add_command(
        app,
        "consensus",
        consensus,
        [positional("file", VOTES.help)],
        {**part("permix.consensus.command:OPTIONS"), **VOTE_OPTIONS, **JSON},
        "Rank the items as the agents do on the whole (Kemeny), and say whether that is proven optimal.",
        ["permix consensus election.soi --method exact"],
    )


def _add_model_commands(app: typer.Typer, commands: list[ModelCommand]) -> None:
    """Add the commands about fitted models."""

    def predict(fit: Path, file: Path | None, what: str | None, output: Path | None, **values: Any) -> None:
        part("permix.cli.predict:run_predict")(fit, file, what, output, values)

    def sample(
        fit: Path, size: int | None, output: Path | None, length: int | None, seed: int | None, **values: Any
    ) -> None:
        run = part("permix.cli.predict:run_sample")
        run(fit, size or 10, length, output, seed or 0, values["force"], values["json"])

    def summary(fit: Path, json: bool) -> None:
        part("permix.cli.predict:show_fit")(fit, json)

    def demo(folder: Path, seed: int | None) -> None:
        part("permix.cli.demo:run_demo")(folder, seed or 0)

    answers = dict.fromkeys(what for command in commands for what in command.answers)
    reading = dict(VOTE_OPTIONS)
    for name, option in (pair for command in commands for pair in command.source.options.items()):
        first = reading.setdefault(name, option)
        reading[name] = first._replace(choices=tuple(dict.fromkeys((*first.choices, *option.choices))))
    output = Option(
        Path,
        ".csv or .tsv file to write; for rankings also PrefLib, such as .soc.",
        ("--output", "-o"),
    )
    asked = {
        "what": Option(
            str,
            "What to say: the group of each row, the order of pairs an agent left open, rankings completed, "
            "missing cells, or how probable the data are [default: what the model is mostly asked].",
            choices=tuple(answers),
        ),
        "output": output,
    }
    add_command(
        app,
        "predict",
        predict,
        [MODEL, positional("file", "New agents or rows, in any format the model's fit reads.", default=None)],
        {**asked, **PREDICT_OPTIONS, **reading, **FORCE_AND_JSON},
        "Say what a fitted model makes of new agents or rows: where they belong, and what they would say.",
        [
            "permix predict tastes.permix newcomers.csv -o groups.csv",
            "permix predict tastes.permix newcomers.csv --what ranking -o completed.soc",
            "permix predict ratings.permix -o missing.csv",
        ],
    )
    drawn = {
        "size": Option(int, "How many [default: 10].", ("--size", "-n"), least=1),
        "output": output._replace(
            help="File to write: .csv, or for rankings also .soc. Without it, CSV is printed."
        ),
        "length": Option(int, "Models of top lists: items of every list [default: as the data].", least=1),
        "seed": Option(int, "Seed; the same seed gives the same draws [default: 0].", least=0),
    }
    add_command(
        app,
        "sample",
        sample,
        [MODEL],
        {**drawn, **FORCE_AND_JSON},
        "Draw new rankings, or new rows, from a fitted model.",
        ["permix sample tastes.permix -n 1000 -o made.soc"],
    )
    add_command(
        app,
        "summary",
        summary,
        [MODEL],
        JSON,
        "Show a fitted model: its groups, what they are like, and whether the fit settled.",
        ["permix summary points.permix"],
    )
    add_command(
        app,
        "demo",
        demo,
        [positional("folder", "Folder for data, fit and picture.", default=Path("permix-demo"))],
        {"seed": Option(int, "Seed of data and fit [default: 0].", least=0)},
        "Make data with known truth, find its groups and its consensus, and draw the result.",
        ["permix demo"],
    )
