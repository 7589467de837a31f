"""What ``predict`` says with co-clusterings: missing cells, cells held out, and clusters of new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from permix.cli.answers import Answer, give
from permix.cli.output import count_of
from permix.data.cells_checks import Names, match_numbers
from permix.data.io.text_files import plain_suffix
from permix.errors import DataError, PermixWarning

if TYPE_CHECKING:
    from permix.cli.predict import NewData, Question
    from permix.cocluster.fit import BlockFit
    from permix.cocluster.predict import BlockPredictions
    from permix.data.cells import Cells

# Probabilities of this many levels or clusters stand side by side where no file was asked for.
MAX_COLUMNS = 8
# Cells asked for at a time.
BLOCK = 100_000


def predict_blocks(
    fit: BlockFit, data: NewData, question: Question, output: Path | None, as_json: bool
) -> None:
    """Answer about missing cells, of fitted or new rows, about cells held out, or clusters of new rows."""
    from permix.cocluster.predict import BlockPredictions

    what = question.what or "cells"
    if what not in ("cells", "components", "score"):
        raise typer.BadParameter(f"--what {what} belongs to models of rankings; a co-clustering has cells")
    for option, value in (
        ("--samples", question.samples),
        ("--seed", question.given_seed),
        ("--ignore", data.ignore or None),
    ):
        if value is not None:
            raise typer.BadParameter(f"{option} has nothing to do with a co-clustering")
    new = _new_rows(data)
    if new is not None:
        warn_of_names(fit.known_cells, new, what, data.votes.file)
    answers = BlockPredictions(fit)
    wide = output is not None or as_json
    if what == "components":
        if new is None:
            raise typer.BadParameter(
                "--what components needs a file of new rows; permix fit cocluster --row-labels writes the "
                "clusters of the fitted ones"
            )
        give(_clusters(answers, new, wide), output, as_json)
    elif what == "score":
        if new is None:
            raise typer.BadParameter("--what score needs a file of cells that the fit did not see")
        if not new.n_cells:
            raise DataError(f"{data.votes.file}: no cell is filled, so that there is nothing to score")
        give(_scores(answers, new), output, as_json)
    else:
        give(_missing(answers, new, wide), output, as_json)


def _new_rows(data: NewData) -> Cells | None:
    from permix.cocluster.command_run import MatrixFile

    options = data.votes
    for name, value in zip(options._fields[2:], options[2:], strict=True):
        if name != "header" and value is not None:
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} belongs to models of rankings, not to a co-clustering"
            )
    if options.layout not in ("auto", "wide", "long"):
        raise typer.BadParameter(f"--layout {options.layout} is for rankings; a matrix is wide or long")
    if not data.there:
        how = (data.id_column, data.header, data.missing or None)
        if options.layout != "auto" or any(choice is not None for choice in how):
            raise typer.BadParameter(
                "--id, --layout, --header and --missing say how to read a file of new rows, and none is given"
            )
        return None
    file = MatrixFile(options.file, options.layout, data.header, data.id_column, data.missing)
    return file.read(new_rows=True)


def warn_of_names(fitted: Cells, new: Cells, what: str, file: Path) -> None:
    """Notice columns without names, and new rows that are called as fitted ones."""
    if new.column_names is None and fitted.column_names is not None and plain_suffix(file) != "npz":
        warnings.warn(
            f"{file} has no names of columns: they are taken to be those of the fit, in their order",
            PermixWarning,
            stacklevel=2,
        )
    known = set(fitted.row_names or ())
    same = [name for name in new.row_names or () if name in known]
    if same and what != "score":
        warnings.warn(
            f"{file}: rows that are called as fitted ones ({len(same):,} of {new.n_rows:,}, such as "
            f"{same[0]!r}) are taken for new rows; --what score takes their cells for further cells of the "
            "fitted ones",
            PermixWarning,
            stacklevel=2,
        )


def _clusters(answers: BlockPredictions, new: Cells, wide: bool) -> Answer:
    """Say which cluster of rows each new row belongs to."""
    probabilities = answers.predict_rows_proba(new)
    densities = answers.score_rows(new)
    n = probabilities.shape[1]
    shown = n if wide or n <= MAX_COLUMNS else 0
    rows = (
        [
            new.row_name(place),
            int(row.argmax()) + 1,
            round(float(row.max()), 6),
            round(float(density), 6),
            *np.round(row[:shown], 6).tolist(),
        ]
        for place, (row, density) in enumerate(zip(probabilities, densities, strict=True))
    )
    return Answer(
        f"{count_of(new.n_rows, 'new row')}: most probable cluster, given that it is one of these, and the "
        "log probability of the cells",
        ["row", "cluster", "probability", "log_probability", *(f"p{k + 1}" for k in range(shown))],
        rows,
    )


def _scores(answers: BlockPredictions, held_out: Cells) -> Answer:
    """Say how probable each given cell of the fitted rows is."""
    from permix.cocluster.cells.families import plain
    from permix.cocluster.tables import held_out_report

    cells = held_out.aligned(answers.fit.known_cells)
    row_names = _as_given(held_out.row_names, cells.row_names, cells.n_rows, "row")
    column_names = _as_given(held_out.column_names, cells.column_names, cells.n_columns, "column")
    warn_of_seen(answers.fit.known_cells, cells, row_names, column_names)
    scores = answers.log_probability(cells)
    rows = (
        [row_names[row], column_names[column], plain(value), round(float(score), 6)]
        for row, column, value, score in zip(
            cells.rows, cells.columns, cells.values.tolist(), scores, strict=True
        )
    )
    report = held_out_report(answers.fit, cells, float(scores.mean()))
    facts = {name: report[name] for name in report if name not in ("cells", "base_perplexities")}
    return Answer(
        f"Log probability of {count_of(cells.n_cells, 'cell')} of the fitted rows",
        ["row", "column", "value", "log_probability"],
        rows,
        facts=facts,
    )


def _as_given(given: Names, fitted: Names, n: int, what: str) -> Sequence[str]:
    """Return names of the fitted rows or columns; numbers are written as the file with the cells has them."""
    if fitted is not None:
        return fitted
    if given is None:
        return [str(place + 1) for place in range(n)]
    first = int(given[0]) - int(match_numbers(given, n, what)[0])
    return [str(place + first) for place in range(n)]


def warn_of_seen(
    fitted: Cells, held_out: Cells, row_names: Sequence[str], column_names: Sequence[str]
) -> None:
    """Notice cells that were fitted: their probabilities would say too much good of the fit."""
    places = [cells.rows.astype(np.int64) * fitted.n_columns + cells.columns for cells in (fitted, held_out)]
    seen = np.flatnonzero(np.isin(places[1], places[0]))
    if seen.size:
        row, column = held_out.rows[seen[0]], held_out.columns[seen[0]]
        warnings.warn(
            f"{seen.size:,} of {held_out.n_cells:,} cells were fitted, not held out, such as row "
            f"{row_names[row]!r}, column {column_names[column]!r}",
            PermixWarning,
            stacklevel=2,
        )


def _missing(answers: BlockPredictions, new: Cells | None, wide: bool) -> Answer:
    """Say what the missing cells hold, and how probable that is."""
    family = answers.fit.family
    levels: list[Any] = list(getattr(family, "levels", None) or [])
    shown = levels if wide or len(levels) <= MAX_COLUMNS else []
    whose = "the fitted rows" if new is None else count_of(new.n_rows, "new row")
    if family.has_levels:
        title = f"Missing cells of {whose}: the most probable value, and how probable each is"
        columns = ["row", "column", "value", "probability", *(f"p({level})" for level in shown)]
    else:
        title = f"Missing cells of {whose}: the expected value"
        columns = ["row", "column", "value"]
    return Answer(
        title,
        columns,
        _missing_cells(answers, new, levels, bool(shown)),
        if_empty="no cell is missing",
    )


def _missing_cells(
    answers: BlockPredictions, new: Cells | None, levels: list[Any], each: bool
) -> Iterator[list[Any]]:
    from permix.data.cells import Cells

    fitted = answers.fit.known_cells
    known = fitted if new is None else new.aligned(fitted, rows=False)
    n_columns = known.n_columns
    size = max(1, BLOCK // n_columns)
    for first in range(0, known.n_rows, size):
        last = min(first + size, known.n_rows)
        open_ = np.ones((last - first, n_columns), dtype=np.bool_)
        here = slice(*np.searchsorted(known.rows, [first, last]))
        open_[known.rows[here] - first, known.columns[here]] = False
        rows, columns = np.nonzero(open_)
        if not rows.size:
            continue
        names = (known.row_names, known.column_names)
        asked = Cells(rows + first, columns, np.zeros(rows.size), known.shape, *names)
        if levels:
            probabilities = answers.predict_proba(new, asked)
            best = probabilities.argmax(axis=1)
            for place in range(rows.size):
                p = probabilities[place]
                yield [
                    known.row_name(int(rows[place]) + first),
                    known.column_name(int(columns[place])),
                    levels[best[place]],
                    round(float(p[best[place]]), 6),
                    *(np.round(p, 6).tolist() if each else ()),
                ]
        else:
            values = answers.predict_mean(new, asked)
            for place in range(rows.size):
                yield [
                    known.row_name(int(rows[place]) + first),
                    known.column_name(int(columns[place])),
                    float(values[place]),
                ]
