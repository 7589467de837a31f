"""Commands of models, declared: what the options are comes from the parameters, the rest is named once.

A model's ``command.py`` holds one :class:`ModelCommand`. From it come ``permix fit NAME`` with its options
and help, and what ``summary``, ``predict`` and ``sample`` do with a fit of that model.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from permix.estimators.checks import Choice, Real, Seed, Switch, Whole
from permix.estimators.parameters import Declared, Parameters
from permix.registries import part


class Option(NamedTuple):
    """An option that is no parameter of the model.

    Its type is ``str``, ``int``, ``float``, ``bool``, ``Path``, or ``list[str]`` for one to be repeated.
    A ``bool`` with flags such as ``--header/--no-header`` may also be left open.
    """

    type: Any
    help: str
    flags: tuple[str, ...] = ()  # derived from the name unless given
    choices: tuple[str, ...] = ()  # the words it may be
    least: float | None = None
    metavar: str | None = None
    empty: str = ""  # what an empty value means, where it means something


class Source(NamedTuple):
    """Where a command's data come from: one file, and the options that say how to read it."""

    help: str  # of the argument
    options: Mapping[str, Option]
    read: str  # function of (path, values of the options) that returns what ``fit_data`` takes
    form: str = "votes"  # what the data are: "votes", "matrix" or "table"


class Answering(NamedTuple):
    """One thing that ``predict --what`` may ask of a model.

    The function of that name in the model's ``answers.py`` takes (fit, new data, question) and returns an
    :class:`~permix.cli.answers.Answer`, or Rankings and the agents they are of.
    """

    uses: tuple[str, ...] = ()  # the options it heeds: top, samples, seed, length
    rankings: bool = False  # whether the answer is rankings, which may be written in any format
    needs_data: bool = True  # whether it is about new rows, rather than about those that were fitted


class Variant(NamedTuple):
    """A second model that the same command fits."""

    parameters: type[Parameters]  # options are those of both models
    needs: str  # the parameter that, once given, says that this model is meant


IGNORE = Option(list[str], "Column of a CSV file to leave out; may be repeated.", metavar="COLUMN")
MISSING = Option(
    list[str], "A value that stands for a missing cell, such as -99; may be repeated.", metavar="CODE"
)
SHEET = Option(str, "Sheet of an Excel file with several.", metavar="NAME")
MODERATED = Option(
    str,
    "Polis: statements that moderators rejected, as comments.csv beside the votes says, stay (keep) or are "
    "left out (drop) [default: keep, and say so].",
    choices=("keep", "drop"),
)
# What travels with the data, in every kind of file that is a table.
BESIDE: Mapping[str, Option] = {
    "group_columns": Option(
        list[str],
        "Column that says something of the agents, such as precinct or age. It is not used in the fit; "
        "groups are compared with it afterwards. May be repeated.",
        ("--group-column",),
        metavar="COLUMN",
    ),
    "item_table": Option(
        Path,
        "CSV file with attributes of the items by name, such as item,party,color: shown with them in tables "
        "and pictures.",
        ("--items",),
        metavar="FILE",
    ),
}
MIN_SUPPORT = Option(
    float,
    "Leave out candidates that fewer ballots name (of a matrix: columns that fewer rows fill); below 1, a "
    "share of all.",
    least=0,
)
MIN_ANSWERS = Option(
    int, "Leave out ballots that rank fewer candidates (of a matrix: rows with fewer cells filled).", least=0
)
AGENT_LABELS = "Also write each agent's group and how sure that is to this CSV file."


@dataclass(frozen=True)
class ModelCommand:
    """What the command line does with one model.

    Functions are found by their names in the folder of the parameters, when they are called, so that
    ``permix --help`` stays quick. In ``tables.py``: ``report(fit)``, everything ``summary`` shows as plain
    values, and ``show(report, title)``, tables for people. In ``answers.py``: ``fit_data(data, parameters)``,
    which raises KeyboardInterrupt if nothing was kept, and what the attributes below ask for.
    """

    name: str  # as in ``permix fit NAME``
    help: str  # what it finds; the first line is shown in lists
    parameters: type[Parameters]  # declared, so that the command has an option for each
    source: Source
    examples: Sequence[str] = ()
    variant: Variant | None = None
    # Options about fitting that are no parameters; ``fit_data`` gets those that were given, by name.
    fit_options: Mapping[str, Option] = field(default_factory=dict)
    # Further options; ``choose(values given)`` turns them into parameters.
    options: Mapping[str, Option] = field(default_factory=dict)
    # What the file of ``--labels`` holds, which ``labels(fit, data)`` returns as an Answer; "" for none.
    labels: str = ""
    column_labels: bool = False  # whether ``--column-labels`` writes ``column_labels(fit, data)``
    # What ``predict --what`` may ask, the first being the default; a function for each.
    answers: Mapping[str, Answering] = field(default_factory=dict)
    draws: bool = False  # whether ``sample(fit, size, seed)`` draws new data, as an Answer or Rankings
    draws_lengths: bool = False  # whether it takes a length as well
    select: tuple[str, ...] = ()  # the criteria by which ``--select`` can choose the number of groups, if any
    baselines: bool = (
        False  # whether ``with_baselines(fit, data)`` returns the fit with scores to compare with
    )
    measures: bool = False  # whether ``measures(fit, data, values)`` has further values of the report

    def function(self, name: str) -> Callable[..., Any]:
        """Return one of the model's functions, imported now."""
        module = "tables" if name in ("report", "show") else "answers"
        folder = self.parameters.__module__.rpartition(".")[0]
        found: Callable[..., Any] = part(f"{folder}.{module}:{name}")
        return found

    @property
    def flags(self) -> dict[str, str]:
        """Options by the names of the parameters they stand for, for messages."""
        flags = {name: about.flag_of(name) for name, about in self.declared.items()}
        for name, option in {**self.source.options, **self.fit_options, **self.options}.items():
            named = (flag.partition("/")[0] for flag in option.flags if flag.startswith("--"))
            flags[name] = next(named, _flag(name))
        return {name: flag for name, flag in flags.items() if flag}

    @property
    def declared(self) -> Mapping[str, Declared]:
        """The parameters that options stand for, those of the variant included."""
        return {**(self.variant.parameters.declared if self.variant else {}), **self.parameters.declared}

    def chosen(self, given: Mapping[str, Any]) -> type[Parameters]:
        """Return the parameters of the model that is meant, which must have all that was given."""
        if self.variant is None:
            return self.parameters
        needs, other = self.variant.needs, self.variant.needs in given
        meant = self.variant.parameters if other else self.parameters
        for name in given:
            if name not in meant.declared:
                how = f"{'with' if other else 'without'} {self.flags[needs]}"
                raise typer.BadParameter(f"{self.flags[name]} says nothing {how}")
        return meant

    @property
    def keeps_chains(self) -> bool:
        """Whether the model runs chains, which are kept on disk while they run."""
        return "store" in self.parameters.declared


SHARED: Mapping[str, Option] = {
    "picture": Option(Path, "Also draw the result to this .png, .svg or .pdf file.", ("--picture", "--plot")),
    "report": Option(Path, "Also write a report, for people, to this .html, .md or .json file."),
    "keep_chains": Option(bool, "Keep the folder OUTPUT.chains, from which chains can be extended."),
    "force": Option(bool, "Overwrite files that exist.", ("--force", "-f")),
    "quiet": Option(bool, "No progress display.", ("--quiet", "-q")),
    "json": Option(bool, "Print JSON for machines instead of tables."),
}
CRITERION = "select: compare by agents held out (the default), or by a criterion on all."
SELECTION: Mapping[str, Option] = {
    "select": Option(
        str,
        "Instead of -k: try these numbers of groups, such as 1-10 or 2,4,8, and choose by how probable "
        "agents are who were held out. Where the best is the largest, larger ones follow, up to twice that.",
        metavar="NUMBERS",
    ),
    "rule": Option(
        str,
        "select: take the best number, or (one-se, the default) the smallest that is within one standard "
        "error of the best.",
        choices=("one-se", "best"),
    ),
    "folds": Option(
        int,
        "select: hold everybody out once, in so many parts; default: one quarter of all is held out, or, of "
        "fewer than 800 agents, everybody once in 5 parts.",
        least=2,
    ),
}


def add_command(
    app: typer.Typer,
    run: Callable[..., None],
    arguments: Sequence[inspect.Parameter],
    options: Mapping[str, Option],
    *examples: str,
) -> None:
    """Add a command with the name and docstring of ``run``, which gets all values by name."""
    parameters = [*arguments, *(_of_option(name, option) for name, option in options.items())]
    checks = {name: Choice(*option.choices) for name, option in options.items() if option.choices}

    def call(**values: Any) -> None:
        for name in options.keys() & {"row_column", "agent_column", "count_column"}:
            if values[name] in (values.get("ignore") or ()):
                flag = (options[name].flags or (_flag(name),))[0]
                raise typer.BadParameter(f"{flag} and --ignore both name the column {values[name]!r}")
        words = {name: values[name] for name in checks if values[name] is not None}
        run(**(values | {name: checks[name](name, checks[name].parse(word)) for name, word in words.items()}))

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__doc__ = run.__doc__
    call.__name__ = run.__name__
    # A backspace keeps the lines that follow as they are; a short help given is not cut in lists of commands.
    epilog = "\n".join(("\b", "Examples:" if len(examples) > 1 else "Example:", *examples))
    short = (run.__doc__ or "").partition("\n")[0]
    app.command(run.__name__.replace("_", "-"), epilog=epilog if examples else None, short_help=short)(call)


def add_fit_command(app: typer.Typer, command: ModelCommand) -> None:
    """Add ``permix fit NAME``; what was not given is None."""
    output = typer.Option("--output", "-o", help="File for the fitted model.")
    parameters = [
        positional("file", command.source.help, metavar="DATA"),
        argument("output", Annotated[Path, output], ...),
    ]
    options: dict[str, Option] = {**command.options, **command.fit_options}
    options |= SELECTION if command.select else {}
    if len(command.select) > 1:
        options["criterion"] = Option(str, CRITERION, choices=command.select)
    for name, about in command.declared.items():
        if about.flag_of(name) and name not in command.options:
            if command.variant is not None and name == command.variant.needs:
                about = replace(about, default=None)  # left out, the other model is meant
            must_be_given = bool(command.select) and name == "n_components"
            parameters.append(_of_parameter(name, about, with_default=not must_be_given))
    options |= command.source.options
    if command.labels:
        options["labels"] = Option(Path, command.labels)
    if command.column_labels:
        options["column_labels"] = Option(Path, "The same for columns.")
    options |= SHARED
    if not command.keeps_chains:
        del options["keep_chains"]

    def run(**values: Any) -> None:
        part("permix.cli.run:run_fit")(command, values)

    run.__name__, run.__doc__ = command.name, command.help
    add_command(app, run, parameters, options, *command.examples)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def positional(name: str, help: str, default: Any = ..., metavar: str | None = None) -> inspect.Parameter:
    """Return an argument that is a path."""
    kind = Path | None if default is None else Path
    return argument(name, Annotated[kind, typer.Argument(metavar=metavar, help=help)], default)


def argument(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind, given = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(name, kind, default=given, annotation=annotation)


def _of_option(name: str, option: Option) -> inspect.Parameter:
    flags = option.flags or (_flag(name),)
    details: dict[str, Any] = {"show_default": False, "min": option.least, "metavar": option.metavar}
    kind = option.type
    if option.choices:
        details |= _words(option.choices)
    if option.type is bool and not any("/" in flag for flag in flags):
        return argument(name, Annotated[bool, typer.Option(*flags, help=option.help, **details)], False)
    return argument(name, Annotated[kind | None, typer.Option(*flags, help=option.help, **details)], None)


def _of_parameter(name: str, about: Declared, with_default: bool = True) -> inspect.Parameter:
    """Return the option of a declared parameter; the declaration checks what is given."""
    check, flag = about.check, about.flag_of(name)
    shown = ("no", "yes")[about.default] if isinstance(about.default, bool) else about.default
    default = "" if about.default is None or not with_default else f" [default: {shown}]"
    details: dict[str, Any] = {"help": first_sentence(about.help) + default, "show_default": False}
    flags = [flag, *([about.short] if about.short else [])]
    words = [word for word in check.special if isinstance(word, str)]
    kind: Any = str
    if isinstance(check, Switch):
        kind, flags = bool, [f"{flag}/{flag.replace('--', '--no-', 1)}"]
    elif isinstance(check, Choice):
        details |= _words([*check.words, *words])
    elif isinstance(check, Seed) or (isinstance(check, Whole) and not words):
        kind = int
    elif isinstance(check, Real) and not words:
        kind = float
    return argument(name, Annotated[kind | None, typer.Option(*flags, **details)], None)


def _words(words: Sequence[str]) -> dict[str, Any]:
    """Return how an option is shown, and completed, that is one of several words; a Choice checks it."""
    return {"metavar": f"<{'|'.join(words)}>", "autocompletion": lambda: list(words)}


def first_sentence(text: str) -> str:
    """Return a help text's first sentence without markup of docstrings."""
    first = re.split(r"(?<=[.])\s+(?=[A-Z:`])", " ".join(text.split()), maxsplit=1)[0]
    return re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", first).replace("``", "")
