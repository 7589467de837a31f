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
    argument,
    positional,
)
from permix.cli.votes import LAYOUTS, VOTE_OPTIONS, VOTES, read_options
from permix.estimators.registry import MODELS, find_plug_ins, part
from permix.reporting import FORMATS

FORCE_AND_JSON = {name: SHARED[name] for name in ("force", "json")}
JSON = {"json": SHARED["json"]}
PREDICT_OPTIONS: Mapping[str, Option] = {
    "top": Option(
        int,
        "recommend: so many items for each agent [default: 5]; alone, it means --what recommend. pairwise: "
        "only so many pairs of each agent, the surest. top: among how many first [default: 3].",
        least=1,
    ),
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

UPDATE_OPTIONS: Mapping[str, Option] = {
    "same_agents": Option(
        bool,
        "Whether agents with the names of fitted ones say more, or are others of the same name [default: "
        "they say more].",
        ("--same-agents/--new-agents",),
    ),
    "particles": Option(
        int, "Draws of each chain that follow the data and are kept [default: 200].", least=2
    ),
    "moves": Option(int, "Iterations that move each draw, at each step [default: 2].", least=1),
    "seed": Option(int, "Seed [default: 0].", least=0),
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
    _add_auto(fit, commands)
    app.add_typer(fit, name="fit")
    _add_file_commands(app, reading_options(commands))
    _add_comparison(app, commands)
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


def _add_file_commands(app: typer.Typer, reading: Mapping[str, Option]) -> None:
    """Add the commands about files of votes; ``info`` knows the others as well."""

    def info(file: Path, json: bool, **values: Any) -> None:
        """Say what a file holds: how many agents and items, how much each stated, first choices."""
        part("permix.cli.inspect:show_info")(read_options(file, values), json, values)

    def convert(
        source: Path,
        target: Path,
        to_layout: str | None,
        write_items: Path | None,
        force: bool,
        json: bool,
        **values: Any,
    ) -> None:
        """Turn one kind of file into another: PrefLib, ABIF, BLT, CSV, TSV, Excel, Parquet."""
        run = part("permix.cli.inspect:run_convert")
        run(read_options(source, values), target, to_layout or "auto", force, json, write_items)

    def consensus(
        file: Path, method: str | None, time_limit: float | None, json: bool, **values: Any
    ) -> None:
        """Rank the items as the agents do on the whole (Kemeny), and say whether that is proven optimal."""
        run = part("permix.consensus.command:show_consensus")
        run(read_options(file, values), method or "auto", time_limit, json)

    file = positional("file", "Any file of votes, a matrix, a table, or a fitted model; - is standard input.")
    layout = VOTE_OPTIONS["layout"]
    read_as = part("permix.comparison.command:READ_AS")
    read_as = read_as._replace(
        help="What the file is: votes (the default), a matrix, a table of measurements, or any of them, by "
        "what it looks like.",
        choices=(*read_as.choices, "any"),
    )
    described = {"read_as": read_as, **reading, **JSON}
    add_command(
        app, info, [file], described, "permix info election.soi", "permix info patients.csv --as table"
    )
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


def reading_options(commands: list[ModelCommand]) -> dict[str, Option]:
    """Return the options that say how to read files, of all models together."""
    reading = dict(VOTE_OPTIONS)
    for name, option in (pair for command in commands for pair in command.source.options.items()):
        first = reading.setdefault(name, option)
        reading[name] = first._replace(choices=tuple(dict.fromkeys((*first.choices, *option.choices))))
    return reading


def _add_comparison(app: typer.Typer, commands: list[ModelCommand]) -> None:
    """Add the command that compares models."""

    def compare(file: Path, **values: Any) -> None:
        """Say which model predicts best: all that suit the data, on agents (or cells) they did not see."""
        part("permix.comparison.command:run_compare")(file, values)

    file = positional("file", "Votes, a matrix, or a table, in any format permix reads.", metavar="DATA")
    own = part("permix.comparison.command:OPTIONS")
    options = {**own, **reading_options(commands), "quiet": SHARED["quiet"], **FORCE_AND_JSON}
    add_command(
        app,
        compare,
        [file],
        options,
        "permix compare election.soi",
        "permix compare ratings.csv --at-most 20000 --minutes 10",
    )


def _add_auto(fit: typer.Typer, commands: list[ModelCommand]) -> None:
    """Add the command that chooses a model by itself."""

    def auto(file: Path, output: Path, **values: Any) -> None:
        """Look at the data, compare the models that suit them, and fit the one that predicts best.

        The file is that of an ordinary fit, and says how the model was chosen. Interrupted, it keeps what was
        done.
        """
        part("permix.comparison.auto_command:run_auto")(file, output, values)

    file = positional("file", "Votes, a matrix, or a table, in any format permix reads.", metavar="DATA")
    written = typer.Option("--output", "-o", help="File for the fitted model.")
    own, shown = (part(f"permix.comparison.auto_command:{name}") for name in ("OPTIONS", "SHOWN"))
    options = {**own, **reading_options(commands), **{name: SHARED[name] for name in shown}}
    arguments = [file, argument("output", Annotated[Path, written], ...)]
    add_command(fit, auto, arguments, options, "permix fit auto election.soi -o answer.permix --minutes 5")


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

    def report(**values: Any) -> None:
        """Describe a fitted model on one page: what was found, how sure that is, and who is in the groups."""
        part("permix.cli.report:run_report")(**values)

    def update(fit: Path, new: Path, output: Path, **values: Any) -> None:
        """Let a fitted model take in new agents, and more answers from known ones, without fitting again.

        NEW is a file, or a folder of files that come in one after another, by their names. The fit that
        is written is one to old and new data together; it is written after each file.
        """
        part("permix.cli.update:run_update")(fit, new, output, values)

    def demo(folder: Path, seed: int | None) -> None:
        """Make data with known truth, find its groups and its consensus, and draw the result."""
        part("permix.cli.demo:run_demo")(folder, seed or 0)

    def example(name: str | None, folder: Path, force: bool, seed: int | None) -> None:
        """Write a file such as people bring, whose groups are known; without a name, list the examples."""
        part("permix.cli.demo:run_example")(name, folder, force, seed or 0)

    def serve(port: int | None, folder: Path | None, no_browser: bool) -> None:
        """Open a page on this machine to drop a file on, choose a model, and read the report.

        Files never leave the machine. Fits go on when the page is closed; those that were under way when the
        server ended go on when it is started again.
        """
        part("permix.serve.command:run_serve")(port, folder, no_browser)

    def warm_up(models: list[str] | None) -> None:
        """Compile now, on all processors, what the first fit of each model would compile."""
        known = sorted(command.name for command in commands)
        unknown = [name for name in models or () if name not in known]
        if unknown:
            raise typer.BadParameter(f"there is no model {unknown[0]!r}; known are {', '.join(known)}")
        part("permix.cli.warm_up:run_warm_up")(models or ())

    answers = dict.fromkeys(what for command in commands for what in command.answers)
    reading = reading_options(commands)
    output = Option(
        Path, ".csv or .tsv file to write; for rankings also PrefLib, such as .soc.", ("--output", "-o")
    )
    asked = {
        "what": Option(
            str,
            "What to say: the group of each row, the order of pairs an agent left open, rankings completed, "
            "missing cells, what to recommend, how probable the data are, or whether the model fits at all "
            "(checks) [default: what the model is mostly asked].",
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
    arguments = [
        model,
        positional("new", "New votes, in any format the model's fit reads, or a folder of such files."),
        argument(
            "output", Annotated[Path, typer.Option("--output", "-o", help="File for the updated model.")], ...
        ),
    ]
    add_command(
        app,
        update,
        arguments,
        {**UPDATE_OPTIONS, **reading, **FORCE_AND_JSON},
        "permix update tastes.permix march.csv -o tastes-march.permix",
        "permix update tastes.permix batches -o tastes-now.permix",
    )
    votes = "The votes that were fitted, for typical ballots and checks where the fit does not keep them."
    told = {
        "output": Option(
            Path, "File to write: .html, .md or .json. Without it, Markdown is printed.", ("--output", "-o")
        ),
        "format": Option(str, "Format [default: what the name of the file says].", choices=FORMATS),
        "title": Option(str, "Title [default: that of the data, or the name of the file]."),
        "checks": Option(
            bool, "Whether to compare the data with data drawn from the model.", ("--checks/--no-checks",)
        ),
        "force": SHARED["force"],
    }
    add_command(
        app,
        report,
        [model, positional("file", votes, default=None)],
        {**told, **VOTE_OPTIONS},
        "permix report election.permix -o report.html",
        "permix report election.permix election.soi -o report.html",
    )
    folder = positional("folder", "Folder for data, fit and picture.", default=Path("permix-demo"))
    seed = Option(int, "Seed of data and fit [default: 0].", least=0)
    add_command(app, demo, [folder], {"seed": seed}, "permix demo")
    chosen = typer.Argument(metavar="NAME", help="Which example [default: list them].")
    which = argument("name", Annotated[str | None, chosen], None)
    where = positional("folder", "Folder to write to.", default=Path())
    add_command(
        app, example, [which, where], {"force": SHARED["force"], "seed": seed}, "permix example election"
    )
    served = {
        "port": Option(int, "Port on this machine [default: any that is free].", least=1),
        "folder": Option(Path, "Folder for files, fits and reports [default: one of permix's own]."),
        "no_browser": Option(bool, "Do not open the page in a browser."),
    }
    add_command(app, serve, [], served, "permix serve")
    named = typer.Argument(metavar="MODEL", help="Models as in `permix fit` [default: all].")
    models = argument("models", Annotated[list[str] | None, named], None)
    add_command(app, warm_up, [models], {}, "permix warm-up", "permix warm-up dp-mallows")
