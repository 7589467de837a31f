"""What ``permix fit`` does, for every model: read, fit, save, show; interrupted, keep what was done."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import typer

from permix.cli.answers import Answer, write_csv
from permix.cli.command import SELECTION, SHARED, ModelCommand
from permix.cli.covariates import covariates_report, print_covariates
from permix.cli.inspect import (
    check_names,
    check_targets,
    cleaning_report,
    drop_chains,
    kept_of,
    print_cleaning,
    print_reading,
)
from permix.cli.output import print_json, running_fit
from permix.cli.unfinished import Mark
from permix.errors import DataError, Message, PermixError, PermixWarning, about_parameters
from permix.estimators.known import with_known
from permix.estimators.registry import part
from permix.files import check_target
from permix.runtime.progress import Display
from permix.runtime.telling import tell

SELECTION_TABLES = "permix.selection.tables"
SELECTION_ROWS = f"{SELECTION_TABLES}:selection_rows"


class Targets(NamedTuple):
    """The files a fit writes, and the folder of its chains; None for those it does not."""

    output: Path
    labels: Path | None
    column_labels: Path | None
    picture: Path | None
    curve: Path | None
    report: Path | None
    chains: Path | None


@contextmanager
def speaking_options(flags: Mapping[str, str]) -> Iterator[None]:
    """Write the arguments that warnings and errors name as options of a command."""
    from permix.cli import show_warning

    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(show_warning, flags=flags)
            # It speaks of calls; the command line says by itself how to go on.
            warnings.filterwarnings("ignore", "interrupted after", PermixWarning)
            yield
    except PermixError as error:
        message = error.args[0] if error.args else ""
        if isinstance(message, Message):
            error.args = (message.as_options(flags),)
        raise


def run_fit(command: ModelCommand, values: Mapping[str, Any]) -> None:
    """Fit, save, and show what was found."""
    silent = Display(False) if values["quiet"] or values["json"] else nullcontext()
    with speaking_options(command.flags), silent:
        _run_fit(command, values)


def _run_fit(command: ModelCommand, values: Mapping[str, Any]) -> None:
    quiet, as_json = values["quiet"], values["json"]
    with about_parameters():
        given = _parameters(command, values)
    parameters = command.chosen(given)
    if "random_state" in parameters.declared:
        given.setdefault("random_state", 0)
    candidates = _candidates(command, values)
    targets = _targets(command, values, curve=candidates is not None)
    file = values["file"]
    if file.suffix == ".permix":
        raise DataError(f"{file} is a fitted model, not data; see permix summary {file}")
    unfinished = targets.chains is not None and (targets.chains / "manifest.json").is_file()
    mark = Mark(targets.output, command.name, values)
    # A run that was cut short: it may replace what it left, the model that the chains belong to included.
    wanted = [target for target in targets[:-1] if target is not None]
    ours = {mark.path.resolve(), *(mark.ours if unfinished or mark.is_mine else ())}
    ours |= {targets.output.resolve()} if unfinished else set()
    check_targets([*wanted, mark.path], [file], values["force"], ours)
    if unfinished and not (as_json or quiet):
        print(f"found chains in {targets.chains}", file=sys.stderr)
    given["progress"] = False if quiet or as_json else None
    if targets.chains is not None:
        given["store"] = targets.chains
    settings = parameters(**given)  # refuses, whether or not the number of groups is given
    data = part(command.source.read)(file, values)
    selection = None
    with running_fit(targets.chains):
        fit = None if unfinished or candidates is not None else mark.saved_fit()
        if fit is None and candidates is None:
            options = {name: values[name] for name in command.fit_options if values[name] is not None}
            fit = command.function("fit_data")(data, settings, **options)
        elif candidates is not None:
            selection = _selected(command, data, given, values, candidates)
            fit = selection.fit
    # One that was left when the choice was interrupted is of a part of the agents.
    if fit is not None and (selection is None or not selection.interrupted):
        fit = with_known(fit, getattr(data, "table", data))
    _finish(command, values, targets, data, fit, selection, mark)


def _parameters(command: ModelCommand, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given, in the types that declarations expect."""
    declared = command.declared
    named = {*declared, *command.options}
    given = {name: value for name, value in values.items() if value is not None and name in named}
    if command.options:
        given = command.function("choose")(given)
    words = {name: value for name, value in given.items() if isinstance(value, str)}
    return given | {name: declared[name].check.parse(word) for name, word in words.items()}


def _candidates(command: ModelCommand, values: Mapping[str, Any]) -> list[int] | None:
    """Return the numbers of groups to choose from, if it is to be chosen."""
    if not command.select:
        return None
    if values["select"] is None:
        for name in (*SELECTION, "criterion"):
            if values.get(name) is not None:
                raise typer.BadParameter(f"--{name} belongs to --select")
        if values["n_components"] is None:
            raise typer.BadParameter("say how many groups with -k, or let the data choose with --select 1-10")
        return None
    if values["n_components"] is not None:
        raise typer.BadParameter(
            "-k and --select exclude each other: -k says how many groups, with --select the data do"
        )
    return _numbers(values["select"])


def _numbers(text: str) -> list[int]:
    """Read what ``--select`` asks for: ``1-10``, ``2,4,8`` or both."""
    numbers: set[int] = set()
    try:
        for piece in text.split(","):
            first, dash, last = piece.partition("-")
            low, high = int(first), int(last if dash else first)
            if not 1 <= low <= high <= low + 1000:
                raise ValueError
            numbers.update(range(low, high + 1))
    except ValueError:
        said = f"--select takes numbers of groups such as 1-10 or 2,4,8, not {text!r}"
        raise typer.BadParameter(said) from None
    return sorted(numbers)


def _targets(command: ModelCommand, values: Mapping[str, Any], curve: bool) -> Targets:
    output, picture = values["output"], values["picture"]
    check_names(output, picture)
    if values["report"] is not None:
        part("permix.cli.report:check_report_name")(values["report"])
    check_target(output)
    return Targets(
        output,
        values.get("labels"),
        values.get("column_labels"),
        picture,
        picture.with_name(f"{picture.stem}-selection{picture.suffix}") if curve and picture else None,
        values["report"],
        output.with_name(output.name + ".chains") if command.keeps_chains else None,
    )


def _selected(
    command: ModelCommand, data: Any, given: dict[str, Any], values: Mapping[str, Any], candidates: list[int]
) -> Any:
    """Choose the number of groups, and fit so many; no fit if that choice was interrupted."""
    chosen = {name: value for name, value in given.items() if name not in ("n_components", "store")}
    criterion = values.get("criterion") or command.select[0]
    return part("permix.selection.select_components:select_components")(
        data.table,
        candidates,
        model=command.name,
        criterion=criterion,
        rule=values["rule"],
        n_folds=values["folds"],
        refit=True,
        **chosen,
    )


class Choice(NamedTuple):
    """How another command chose the model that is fitted."""

    report: Mapping[str, Any]  # as plain values
    tables: Mapping[str, list[dict[str, Any]]]  # what the file keeps of it
    show: Callable[[], None]
    partial: bool  # whether the fit is to a part of the data
    out_of_time: bool  # whether that is why it is not finished, and not the user


def finish_chosen(
    command: ModelCommand, values: Mapping[str, Any], data: Any, fit: Any, selection: Any, choice: Choice
) -> None:
    """Write and show a fit as the command of its model does, and how that model was chosen.

    ``values`` are options of the command that fits the same; what it has no option for is not looked at.
    """
    beside = ("file", "output", "labels", "column_labels")
    named = {**command.declared, **command.source.options, **command.options, **command.fit_options, **SHARED}
    values = {name: values.get(name) for name in (*beside, *named)}
    targets = _targets(command, values, curve=selection is not None)._replace(chains=None)
    mark = Mark(targets.output, command.name, values)
    _finish(command, values, targets, data, fit, selection, mark, choice)


def _finish(
    command: ModelCommand,
    values: Mapping[str, Any],
    targets: Targets,
    data: Any,
    fit: Any,
    selection: Any,
    mark: Mark,
    choice: Choice | None = None,
) -> None:
    """Write and show everything; exit with 130 where the user stopped it."""
    from permix.estimators.archive import write_model

    as_json = values["json"]
    if selection is not None and targets.curve is not None:
        part("permix.plots:choice")(selection).figure.savefig(targets.curve)
    extra = {} if selection is None else {"selection": part(SELECTION_TABLES).selection_report(selection)}
    extra |= cleaning_report(getattr(data, "table", data))
    if choice is not None:
        extra |= choice.report

    def show(file: Path | None, report: dict[str, Any]) -> None:
        if as_json:
            read = {name: about[name] for name in ("reading",) if name in about}
            print_json({"file": None if file is None else str(file), **report, **extra, **read})
            return
        if choice is not None:
            choice.show()
        part("permix.cli.report:print_answer")(answer)
        if selection is not None:
            part(SELECTION_TABLES).print_selection(selection)
        if file is not None:
            command.function("show")(report, file.name)
            print_covariates(report)
        print_reading(about)
        print_cleaning(extra, *kept_of(report))

    answer: Any = None
    about: dict[str, Any] = {}
    if fit is None:
        show(None, {})
        said = f"interrupted before a model was fitted to all; -k {selection.chosen} fits one"
        tell(said)
        raise typer.Exit(130)
    interrupted = bool(getattr(fit, "interrupted", False))
    partial = selection is not None and selection.interrupted
    if choice is not None:
        partial, interrupted = choice.partial, interrupted and not choice.out_of_time
    about |= _about(command, extra, values, data, None if partial else fit)
    about |= _ending(data, fit, partial, interrupted) if choice is None else choice.tables
    write_model(fit, targets.output, about)
    chains = targets.chains is not None and targets.chains.exists()

    def note(file: Path) -> None:
        if selection is None and (chains or not interrupted):
            mark.note(file, whole=not interrupted)

    note(targets.output)
    if command.baselines and fit.baselines is None and not (partial or interrupted):
        # The model is safe on disk: whoever stops this loses the comparison alone.
        fit = command.function("with_baselines")(fit, data)
        write_model(fit, targets.output, about)
        note(targets.output)
    if targets.report is None and not (partial or interrupted):  # a report makes them, too
        checks = part("permix.reporting.build:checks_of")(fit, getattr(data, "table", None))
        if checks:
            about |= checks
            write_model(fit, targets.output, about)
            note(targets.output)
    if targets.labels is not None and not partial:
        write_csv(_with_known(command.function("labels")(fit, data), data), targets.labels)
        note(targets.labels)
    if targets.column_labels is not None:
        write_csv(command.function("column_labels")(fit, data), targets.column_labels)
        note(targets.column_labels)
    if targets.picture is not None:
        part("permix.plots:save")(fit, targets.picture)
        note(targets.picture)
    if targets.report is not None and not partial:
        kept = part("permix.cli.report:write_report")(fit, targets.output, targets.report, data)
        note(targets.report)
        if kept:  # it has held the data against the model, too
            about |= kept
            write_model(fit, targets.output, about)
            note(targets.output)
    with Display(None) as display:
        display.begin("describing the groups")
        answer = part("permix.reporting.build:answer_of")(fit, about)
        report = command.function("report")(fit) | part("permix.cli.report:answer_report")(answer)
        report |= covariates_report(fit)
        if command.measures and not (partial or interrupted):
            report |= command.function("measures")(fit, data, values)
    # What is shown below may go nowhere, as into head; permix summary shows it again.
    if not (partial or interrupted):
        _drop_chains(targets, values, fit)
    if targets.chains is None or not targets.chains.exists():  # the mark stays as long as they do
        mark.remove()
    show(targets.output, report)
    if targets.curve is not None and not as_json:
        print(f"{targets.curve}: what the choice rests on, by number of groups")
    if choice is not None and choice.out_of_time:
        tell(f"{_out_of_time(targets, partial)}; more --minutes go further")
    elif partial or interrupted:
        _say_interrupted(targets, partial)
        raise typer.Exit(130)


def _with_known(answer: Answer, data: Any) -> Answer:
    """Return labels with what is known of the agents or rows."""
    votes = getattr(data, "table", None)
    known = getattr(data if votes is None else votes, "covariates", ())
    ids = getattr(data, "agents" if votes is not None else "ids", None)
    return answer if not known or ids is None else answer.with_covariates(list(ids), known)


def _out_of_time(targets: Targets, partial: bool) -> str:
    if not partial:
        return f"time ran out; {targets.output} holds what was found until then"
    to_whom = "fitted to the part on which models were compared"
    return f"time ran out before the model was fitted to all data; {targets.output} holds it {to_whom}"


def _drop_chains(targets: Targets, values: Mapping[str, Any], fit: Any) -> None:
    """Remove the chains of a fit that is written, unless they are to be kept."""
    if targets.chains is None or not targets.chains.exists() or values["keep_chains"]:
        return
    draws = getattr(fit, "draws", None)
    n_stored, n_made = (0, 0) if draws is None else (draws.n_stored, draws.n_made)
    drop_chains(targets.chains, n_stored, n_made)


def _about(
    command: ModelCommand, extra: Mapping[str, Any], values: Mapping[str, Any], data: Any, fit: Any | None
) -> dict[str, list[dict[str, Any]]]:
    """Return, as tables of words and numbers, what a file keeps of how its fit came about.

    Without ``fit``, which was made of a part of the data, nothing of the data.
    """
    kept: dict[str, list[dict[str, Any]]] = {
        "run": part("permix.cli.report:about_run")(command, values, data)
    }
    if fit is not None:
        kept |= part("permix.reporting.build:evidence_of")(fit, getattr(data, "table", None))
    if reading := part("permix.data.reading:how_it_was_read")(getattr(data, "table", data)):
        kept["reading"] = [{"said": reading}]
    if "cleaning" in extra:
        kept["cleaning"] = [{**entry, "which": ", ".join(entry["which"])} for entry in extra["cleaning"]]
    if "selection" in extra:
        kept["selection"] = part(SELECTION_ROWS)(extra["selection"])
    if values.get("missing"):
        kept["missing_codes"] = [{"code": code} for code in values["missing"]]
    return kept


def _ending(data: Any, fit: Any, partial: bool, interrupted: bool) -> dict[str, list[dict[str, str]]]:
    """Return what a file keeps of a fit that the user stopped."""
    if not (partial or interrupted):
        return {}
    rows = [{"what": "stopped", "value": "user"}]
    if partial and (n := int(fit.counts.sum())) < (n_all := int(data.table.n_agents)):
        rows.append({"what": "made on", "value": f"{n:,} of {n_all:,} agents"})
    return {"ending": rows}


def _say_interrupted(targets: Targets, partial: bool) -> None:
    if targets.chains is not None and targets.chains.exists():
        tell(f"interrupted; the same command goes on from {targets.chains}")
        return
    to_whom = ", fitted to the agents that were not held out" if partial else ""
    tell(f"interrupted; {targets.output} holds the best so far{to_whom}")
    if partial and targets.labels is not None:
        tell(f"{targets.labels} needs a fit to all agents and is not written")
