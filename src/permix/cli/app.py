"""The commands. What they do is in the neighboring files and in the folders of the models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from permix.cli.command import (
    MISSING,
    SHARED,
    ModelCommand,
    Option,
    add_command,
    add_fit_command,
    argument,
    positional,
)
from permix.cli.votes import LAYOUTS, VOTE_OPTIONS, VOTES, read_options
from permix.estimators.registry import MODELS, find_plug_ins, part

FORCE_AND_JSON = {name: SHARED[name] for name in ("force", "json")}
JSON = {"json": SHARED["json"]}
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
    common: dict[str, Any] = {
        "no_args_is_help": True,
        "rich_markup_mode": None,
        "pretty_exceptions_enable": False,
    }
    app = typer.Typer(
        name="permix",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="How many groups of people or things are here, what does each prefer, and how sure is that?",
        epilog="Start with `permix demo`. Exit codes: 0 done, 1 something is wrong with the data or a file, "
        "2 something is wrong with the command, 130 interrupted, 141 nobody read on.",
        **common,
    )
    app.callback()(_main)
    commands = model_commands()
    fit = typer.Typer(help="Fit a model and write it to a file.", **common)
    for command in commands:
        add_fit_command(fit, command)
    app.add_typer(fit, name="fit")
    _add_file_commands(app)
    _add_model_commands(app, commands)
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

    def info(file: Path, json: bool, **values: Any) -> None:
        """Say what a file holds: how many agents and items, how much each stated, first choices."""
        part("permix.cli.inspect:show_info")(read_options(file, values), json, values.get("missing") or [])

    def convert(
        source: Path,
        target: Path,
        to_layout: str | None,
        write_items: Path | None,
        force: bool,
        json: bool,
        **values: Any,
    ) -> None:
        """Turn one kind of file into another: PrefLib .soc .soi .toc .toi .cat, ABIF, CSV, TSV, Parquet."""
        run = part("permix.cli.inspect:run_convert")
        run(read_options(source, values), target, to_layout or "auto", force, json, write_items)

    def consensus(
        file: Path, method: str | None, time_limit: float | None, json: bool, **values: Any
    ) -> None:
        """Rank the items as the agents do on the whole (Kemeny), and say whether that is proven optimal."""
        run = part("permix.consensus.command:show_consensus")
        run(read_options(file, values), method or "auto", time_limit, json)

    file = positional("file", "Any file of votes, a matrix, or a fitted model; - is standard input.")
    layout = VOTE_OPTIONS["layout"]
    matrices = layout._replace(choices=(*layout.choices, "wide", "long"))
    described = {**VOTE_OPTIONS, "layout": matrices, "missing": MISSING}
    add_command(app, info, [file], {**described, **JSON}, "permix info election.soi")
    source = positional("source", "File to read.", metavar="IN")
    target = positional("target", "File to write; its ending says the format.", metavar="OUT")
    to_layout = layout._replace(help="Layout of a table to write.", choices=("auto", *LAYOUTS))
    write_items = Option(
        Path, "Also write what is known of the items, such as parties, to this CSV file; --items reads it."
    )
    add_command(
        app,
        convert,
        [source, target],
        {**VOTE_OPTIONS, "to_layout": to_layout, "write_items": write_items, **FORCE_AND_JSON},
        "permix convert ratings.csv ratings.toi --layout ratings",
    )
    options = {**part("permix.consensus.command:OPTIONS"), **VOTE_OPTIONS, **JSON}
    votes = positional("file", VOTES.help)
    add_command(app, consensus, [votes], options, "permix consensus election.soi --method exact")


def _add_model_commands(app: typer.Typer, commands: list[ModelCommand]) -> None:
    """Add the commands about fitted models."""

    def predict(**values: Any) -> None:
        """Say what a fitted model makes of new agents or rows: where they belong, and what they would say."""
        part("permix.cli.predict:run_predict")(**values)

    def sample(size: int | None, seed: int | None, **values: Any) -> None:
        """Draw new rankings, or new rows, from a fitted model."""
        part("permix.cli.predict:run_sample")(size=size or 10, seed=seed or 0, **values)

    def summary(fit: Path, checks: bool, json: bool) -> None:
        """Show a fitted model: its groups, what they are like, and whether the fit settled."""
        part("permix.cli.predict:show_fit")(fit, json, checks)

    def demo(folder: Path, seed: int | None) -> None:
        """Make data with known truth, find its groups and its consensus, and draw the result."""
        part("permix.cli.demo:run_demo")(folder, seed or 0)

    def warm_up(models: list[str] | None) -> None:
        """Compile now, on all processors, what the first fit of each model would compile."""
        known = sorted(command.name for command in commands)
        unknown = [name for name in models or () if name not in known]
        if unknown:
            raise typer.BadParameter(f"there is no model {unknown[0]!r}; known are {', '.join(known)}")
        part("permix.cli.warm_up:run_warm_up")(models or ())

    answers = dict.fromkeys(what for command in commands for what in command.answers)
    reading = dict(VOTE_OPTIONS)
    for name, option in (pair for command in commands for pair in command.source.options.items()):
        first = reading.setdefault(name, option)
        reading[name] = first._replace(choices=tuple(dict.fromkeys((*first.choices, *option.choices))))
    output = Option(
        Path, ".csv or .tsv file to write; for rankings also PrefLib, such as .soc.", ("--output", "-o")
    )
    asked = {
        "what": Option(
            str,
            "What to say: the group of each row, the order of pairs an agent left open, rankings completed, "
            "missing cells, how probable the data are, or whether the model fits at all (checks) "
            "[default: what the model is mostly asked].",
            choices=tuple(answers),
        ),
        "output": output,
    }
    model = positional("fit", "A fitted model.")
    add_command(
        app,
        predict,
        [model, positional("file", "New agents or rows, in any format the model's fit reads.", default=None)],
        {**asked, **PREDICT_OPTIONS, **reading, **FORCE_AND_JSON},
        "permix predict tastes.permix newcomers.csv -o groups.csv",
        "permix predict tastes.permix newcomers.csv --what ranking -o completed.soc",
        "permix predict ratings.permix -o missing.csv",
    )
    drawn = {
        "size": Option(int, "How many [default: 10].", ("--size", "-n"), least=1),
        "output": output._replace(
            help="File to write: .csv, or for rankings also .soc. Without it, CSV is printed."
        ),
        "length": Option(int, "Models of top lists: items of every list [default: as the data].", least=1),
        "seed": Option(int, "Seed; the same seed gives the same draws [default: 0].", least=0),
        **FORCE_AND_JSON,
    }
    add_command(app, sample, [model], drawn, "permix sample tastes.permix -n 1000 -o made.soc")
    checks = Option(
        bool, "First say whether the model fits at all: what is observed beside data drawn from the model."
    )
    add_command(app, summary, [model], {"checks": checks, **JSON}, "permix summary points.permix --checks")
    folder = positional("folder", "Folder for data, fit and picture.", default=Path("permix-demo"))
    seed = Option(int, "Seed of data and fit [default: 0].", least=0)
    add_command(app, demo, [folder], {"seed": seed}, "permix demo")
    named = typer.Argument(metavar="MODEL", help="Models as in `permix fit` [default: all].")
    models = argument("models", Annotated[list[str] | None, named], None)
    add_command(app, warm_up, [models], {}, "permix warm-up", "permix warm-up dp-mallows")
