"""What ``permix report`` does, what ``fit --report`` writes, and the answer in words that both begin with."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from permix.cli.command import ModelCommand
from permix.cli.inspect import check_targets
from permix.cli.output import data_stream, say
from permix.cli.predict import NewData, loaded
from permix.cli.rank_answers import read_over_items
from permix.cli.run import speaking_options
from permix.cli.votes import VOTES, Kept
from permix.estimators.registry import part
from permix.reporting import ENDINGS, described, format_of, items_of, write, written
from permix.reporting.content import Answer

# Values of a command that say where its results go, or how it runs, and nothing of what it finds.
OF_THE_RUN = (
    *("file", "output", "labels", "column_labels", "picture", "report", "force", "quiet", "json"),
    *("keep_chains", "n_jobs"),
)


def run_report(
    fit: Path,
    file: Path | None,
    output: Path | None,
    format: str | None,
    title: str | None,
    checks: bool | None,
    force: bool,
    **values: Any,
) -> None:
    """Describe a fitted model, and write that to a file or to standard output."""
    check_report_name(output, format)
    wanted = format_of(output, format or (None if output is not None else "md"))
    if output is not None:
        check_targets([output], [fit, file], force)
    found, command = loaded(fit, f"permix fit makes a model of data: permix fit mallows {fit} --help")
    with speaking_options(command.flags):
        data = None if file is None else _read(found, command, fit, NewData(file, values, Kept()))
        about = described(fit, data=data, title=title, checks=checks is not False, fit=found)
        text = written(about, wanted)
    if output is None:
        data_stream().write(text)
        return
    write(text, output)
    print(f"{output}: {about.title}, {len(text.encode()) / 1000:,.0f} kB", file=sys.stderr)


def _read(found: Any, command: ModelCommand, fit: Path, data: NewData) -> Any:
    """Read the votes that were fitted."""
    if command.source is not VOTES:
        raise typer.BadParameter(f"{fit} keeps its data: leave out {data.file}")
    items = items_of(found)
    if items is None:
        raise typer.BadParameter(f"{fit} keeps its data: leave out {data.file}")
    return read_over_items(data.votes, items)


def check_report_name(output: Path | None, format: str | None = None) -> None:
    """Refuse, before any work is done, a name that says nothing of the format."""
    if output is not None and format is None and output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output}: reports end in .html, .md or .json")


def about_run(command: ModelCommand, values: Mapping[str, Any], data: Any) -> list[dict[str, str]]:
    """Return how a fit came about: the command, the data, versions."""
    import numpy as np

    from permix import __version__

    file = str(values["file"])
    words = ["permix", "fit", command.name, file, *_given(command, values)]
    title = (getattr(getattr(data, "table", data), "metadata", None) or {}).get("TITLE", "")
    told = {"command": shlex.join(words), "data": Path(values["file"]).name}
    if command.source is VOTES:  # a report of the fit reads them once more, in the same way
        reading = {name: value for name, value in values.items() if name in VOTES.options}
        told["read by"] = shlex.join([file, *_given(command, reading)])
    told |= {"title": str(title)} if title else {}
    told |= {"permix": __version__, "Python": platform.python_version(), "numpy": np.__version__}
    return [{"what": what, "value": value} for what, value in told.items()]


def _given(command: ModelCommand, values: Mapping[str, Any]) -> list[str]:
    """Return the options that were given, as words of a command; switches that were turned off come last."""
    words: list[str] = []
    for name, value in values.items():
        if value is None or value is False or value == [] or name in OF_THE_RUN:
            continue
        flag = command.flags.get(name, f"--{name.replace('_', '-')}")
        if value is True:
            words.append(flag)
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [flag, str(each)]
    for name, value in values.items():
        if value is False and name in command.flags and _is_switch(command, name):
            words.append(command.flags[name].replace("--", "--no-", 1))
    return words


def _is_switch(command: ModelCommand, name: str) -> bool:
    """Say whether an option may also be turned off, and was not just left out."""
    options = {**command.source.options, **command.options, **command.fit_options}
    if name in options:
        return any("/" in flag for flag in options[name].flags)
    return name in command.declared


def write_report(fit: Any, file: Path, target: Path, data: Any) -> Mapping[str, Any]:
    """Write the report of a fit that was saved, with the data at hand; return what its file should keep."""
    from permix.estimators.registry import model_of

    command: ModelCommand = part(model_of(fit).command)
    votes = None
    if command.source is VOTES and items_of(fit) is not None:
        votes = getattr(data, "table", None)
    found = described(file, data=votes)
    write(written(found, format_of(target, None)), target)
    return found.kept


# -- the answer in the terminal --------------------------------------------------------------------


def answer_report(answer: Answer | None) -> dict[str, Any]:
    """Return the answer as plain values."""
    if answer is None:
        return {}
    return {"answer": {"trust": answer.verdict._asdict(), "sentences": list(answer.sentences)}}


def print_answer(answer: Answer | None) -> None:
    """Write how far to trust a fit, and what it found, before any number."""
    if answer is None:
        return
    verdict = answer.verdict
    say(f"Can you trust this? {verdict.headline}")
    for said in (*verdict.reasons, *verdict.advice):
        say(f"- {said}", "  ")
    print()
    for sentence in answer.sentences:
        say(sentence)
    print()
