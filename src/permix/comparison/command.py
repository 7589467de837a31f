"""What ``permix compare`` does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from permix.cli.command import Option
from permix.estimators.registry import part
from permix.runtime.telling import tell

READ_AS = Option(
    str,
    "What the file is: votes, a matrix, or a table of measurements [default: what it looks like].",
    ("--as",),
    choices=("votes", "matrix", "table"),
)
OPTIONS: Mapping[str, Option] = {
    "models": Option(
        list[str],
        "Compare this model, as in `permix fit`; may be repeated [default: all that suit].",
        ("--model",),
        metavar="MODEL",
    ),
    "read_as": READ_AS,
    "test_size": Option(
        float,
        "Share of agents (cells, rows) that is held out [default: a quarter; of fewer than 400, everything "
        "once, in 3 parts].",
        ("--held-out",),
        metavar="SHARE",
    ),
    "folds": Option(int, "Hold everything out once, in so many parts.", least=2),
    "at_most": Option(
        int, "Look at no more than so many agents (cells, rows), drawn at random.", ("--at-most",), least=8
    ),
    "minutes": Option(float, "Stop after so many minutes, shared by the models.", metavar="MINUTES"),
    "seed": Option(int, "Seed; the same seed gives the same result [default: 0].", least=0),
    "jobs": Option(int, "How much runs at once [default: as much as there are processors]."),
    "output": Option(Path, "Also write the table to this .csv or .tsv file.", ("--output", "-o")),
    "picture": Option(
        Path,
        "Also draw the differences between models to this .png, .svg or .pdf file.",
        ("--picture", "--plot"),
    ),
}
FLAGS = {"test_size": "--held-out", "n_folds": "--folds", "max_size": "--at-most", "n_jobs": "--jobs"}


def run_compare(file: Path, values: Mapping[str, Any]) -> None:
    """Compare models on a file, and show which predicts best."""
    from permix.cli.answers import DELIMITERS
    from permix.cli.inspect import check_picture, check_targets
    from permix.cli.run import speaking_options
    from permix.comparison.any_file import read_any

    as_json, quiet, output, picture = (values[name] for name in ("json", "quiet", "output", "picture"))
    if output is not None and output.suffix not in DELIMITERS:
        raise typer.BadParameter(f"--output {output}: this is a table; end its name in .csv or .tsv")
    check_picture(picture)
    check_targets([path for path in (output, picture) if path is not None], [file], values["force"])
    began = time.monotonic()
    with speaking_options(FLAGS):
        read = read_any(file, values)
        if not (quiet or as_json):
            tell(f"{file.name} is read as {a_form(read.form.name)} ({read.why})")
        try:
            found = part("permix.comparison.compare:compare")(
                read.table,
                values["models"] or "all",
                test_size=values["test_size"],
                n_folds=values["folds"],
                max_size=values["at_most"],
                minutes=minutes_left(values["minutes"], began),
                n_jobs=values["jobs"],
                progress=False if quiet or as_json else None,
                random_state=values["seed"] or 0,
            )
        except KeyboardInterrupt:
            tell("interrupted before a model was finished")
            raise typer.Exit(130) from None
    tables = part("permix.comparison.tables")
    report = tables.comparison_report(found)
    if output is not None:
        _write(report, output)
    if picture is not None:
        part("permix.plots:save_figure")(part("permix.plots:comparison")(found).figure, picture)
    if as_json:
        part("permix.cli.output:print_json")({"file": str(file), **report})
    else:
        tables.print_comparison(report, file.name)
    if found.interrupted:
        raise typer.Exit(130)


def minutes_left(minutes: float | None, began: float) -> float | None:
    """Return what reading since then has left of a limit; a little, where it has left nothing."""
    if minutes is None or minutes <= 0.0:  # which is refused where it is used
        return minutes
    return max(minutes - (time.monotonic() - began) / 60.0, 1e-6)


def a_form(form: str) -> str:
    """Return "votes", "a matrix" or "a table"."""
    return form if form == "votes" else f"a {form}"


def _write(report: dict[str, Any], output: Path) -> None:
    from permix.cli.answers import Answer, write_csv

    columns = list(report["models"][0])
    rows = [["" if value != value else value for value in row.values()] for row in report["models"]]
    write_csv(Answer("", columns, rows), output)
