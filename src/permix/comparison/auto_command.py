"""What ``permix fit auto`` does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from permix.cli.command import SHARED, Option
from permix.comparison.command import OPTIONS as COMPARING
from permix.comparison.command import a_form, minutes_left
from permix.estimators.registry import part
from permix.runtime.telling import tell

# What the time is spent on, at most, where nobody says.
MINUTES = 5.0
OPTIONS: Mapping[str, Option] = {
    "minutes": Option(float, f"How long it may take, about [default: {MINUTES:g}].", metavar="MINUTES"),
    "at_most": COMPARING["at_most"]._replace(
        help="Compare models on no more than so many agents (cells, rows) [default: 4000 agents, 20000 "
        "cells, 2000 rows]; the best is fitted to all."
    ),
    **{name: COMPARING[name] for name in ("read_as", "seed", "jobs")},
    "labels": Option(Path, "Also write each agent's (row's) group and how sure that is to this CSV file."),
    "column_labels": Option(Path, "A matrix: the same for columns."),
}
SHOWN = tuple(name for name in SHARED if name != "keep_chains")
FLAGS = {"max_size": "--at-most", "n_jobs": "--jobs"}


def run_auto(file: Path, output: Path, values: dict[str, Any]) -> None:
    """Read a file of any kind, fit the model that predicts best, and show it with how it was chosen."""
    from permix.cli.inspect import check_names, check_targets
    from permix.cli.output import running_fit
    from permix.cli.run import Choice, finish_chosen, speaking_options
    from permix.comparison.any_file import read_any

    quiet = values["quiet"] or values["json"]
    values |= {"file": file, "output": output}
    wanted = [values.get(name) for name in ("output", "labels", "column_labels", "picture", "report")]
    check_names(output, values["picture"])
    check_targets([path for path in wanted if path is not None], [file], values["force"])
    say = _quiet if quiet else _say
    began = time.monotonic()
    with speaking_options(FLAGS):
        read = read_any(file, values)
        say(f"{file.name} is read as {a_form(read.form.name)} ({read.why})")
        with running_fit():
            found = part("permix.comparison.auto:fit_auto")(
                read.table,
                minutes=minutes_left(MINUTES if values["minutes"] is None else values["minutes"], began),
                max_size=values["at_most"],
                n_jobs=values["jobs"],
                progress=False if quiet else None,
                random_state=values["seed"] or 0,
                say=say,
            )
        command = part(found.about.command)
        chosen = {**values, "n_components": found.n_groups, "random_state": values["seed"] or 0}
        chosen |= options_of(found.chosen, command)
        for name in ("labels", "column_labels"):
            if not getattr(command, name):
                chosen[name] = None
        fit = found.fit if found.partial else with_covariates(found.fit, read.data)
        compared = found.comparison
        report = None if compared is None else part("permix.comparison.tables:comparison_report")(compared)
        choice = Choice(
            {"chosen": found.chosen, "chosen_because": list(found.said), "comparison": report},
            found.tables(),
            lambda: part("permix.comparison.tables:print_chosen")(found.said[2:], report, file.name),
            found.partial,
            found.cut_short and not found.interrupted,
        )
        finish_chosen(command, chosen, read.data, fit, found.selection, choice)


def options_of(label: str, command: Any) -> dict[str, str]:
    """Return the options among the words of a way to fit, by the names of parameters.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> options_of("cocluster --family gaussian", SimpleNamespace(flags={"family": "--family"}))
    {'family': 'gaussian'}
    """
    _, *words = label.split()
    names = {flag: name for name, flag in command.flags.items()}
    return {names[flag]: value for flag, value in zip(words[::2], words[1::2], strict=True)}


def with_covariates(fit: Any, data: Any) -> Any:
    """Return a fit with what its data know beside the answers."""
    from permix.estimators.known import with_known

    return with_known(fit, getattr(data, "table", data))


def _say(line: str) -> None:
    tell(line)


def _quiet(line: str) -> None:
    pass
