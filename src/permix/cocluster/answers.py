"""What the command line asks of co-clusterings: fits, labels, missing cells, groups of rows, scores."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.output import count_of
from permix.cli.predict import NewData, Question
from permix.cocluster.cells.families import CategoricalCells, plain
from permix.cocluster.ensemble import fit_ensemble
from permix.cocluster.fit import BlockFit, Side, chosen_family, fit_cocluster, naming_cells
from permix.cocluster.matrix_source import read_rows
from permix.cocluster.parameters import BlockParameters, EnsembleParameters
from permix.cocluster.predict import BlockPredictions
from permix.cocluster.results import groups_of
from permix.cocluster.tables import held_out_report
from permix.data.cells import Cells
from permix.data.cells_checks import Names, match_numbers
from permix.data.io.text_files import plain_suffix
from permix.errors import Argument, DataError, ParameterError, PermixWarning, about_parameters
from permix.estimators.recommend import N_ITEMS, note_on_ties

# Probabilities of this many levels or groups stand side by side where no file was asked for.
MAX_COLUMNS = 8
# Cells asked for at a time.
BLOCK = 100_000


# -- fitting ---------------------------------------------------------------------------------------


def fit_data(
    cells: Cells, settings: BlockParameters, levels: str | None = None, held_out: float | None = None
) -> BlockFit:
    """Fit a co-clustering, or an ensemble, to a file's matrix or to a share of its cells."""
    if held_out is not None and not 0.0 < held_out < 1.0:
        raise ParameterError("held_out", held_out, "a share above 0 and below 1")
    chosen = _with_levels(cells, settings, levels, held_out is not None)
    kept, tested = (cells, None) if held_out is None else cells.split(held_out, chosen.random_state)
    is_ensemble = isinstance(chosen, EnsembleParameters)
    fit: BlockFit = fit_ensemble(kept, None, chosen) if is_ensemble else fit_cocluster(kept, chosen)
    fit.held_out = tested
    return fit


def _with_levels(cells: Cells, settings: Any, levels: str | None, held_out: bool) -> Any:
    """Check all cells before anything runs, and take the levels from all of them, also those held out."""
    if settings.family == "auto" and (held_out or levels is not None):
        asked = "categorical" if levels is not None else chosen_family(cells, settings).name
        settings = settings.replaced(family=asked)
    family = settings.cell_family(cells.values)
    if levels is not None:
        with about_parameters():
            if family.name != "categorical":
                owner = Argument("family", "categorical")
                raise DataError(Argument("levels"), " belongs to ", owner, f", not to {family.name}")
            family = CategoricalCells(family.pseudo_count, levels=levels_of(levels, cells.is_text))
    with naming_cells(cells):
        resolved = family.resolve(cells.values)
        resolved.encode(cells.values)
    if family.name == "categorical" and (held_out or levels is not None):
        return settings.with_family(resolved)
    return settings


def levels_of(text: str, is_text: bool) -> tuple[str | float, ...]:
    """Read ``--levels``: separated by commas; one that holds a comma itself goes into quotes.

    Examples
    --------
    >>> levels_of("no, rather not,yes", is_text=True), levels_of("1,2,2.5", is_text=False)
    (('no', 'rather not', 'yes'), (1.0, 2.0, 2.5))
    """
    listed = [level.strip() for level in next(csv.reader([text], skipinitialspace=True), [])]
    if not listed or "" in listed:
        raise ParameterError("levels", text, "the possible values, separated by commas")
    if is_text:
        return tuple(listed)
    try:
        return tuple(float(level) for level in listed)
    except ValueError:
        raise ParameterError("levels", text, "numbers, since the cells are numbers") from None


def labels(fit: BlockFit, cells: Cells) -> Answer:
    """Say which group each row is in, and how probable it is that it is with its fellow members."""
    return _labels(fit, "row")


def column_labels(fit: BlockFit, cells: Cells) -> Answer:
    """Say which group each column is in, and how probable it is that it is with its fellow members."""
    return _labels(fit, "column")


def _labels(fit: BlockFit, what: Side) -> Answer:
    found = groups_of(fit, what)
    sure = np.round(found.how_sure, 4).tolist()
    placed = ["yes" if each else "no" for each in found.placed]
    names = [fit.known_cells.column_name(at) for at in range(len(sure))] if what == "column" else found.names
    known = fit.known.items if what == "column" else fit.known.rows
    beside = [known[name].tolist() for name in known]  # whole texts, whatever tables show of them
    rows = zip(names, (found.labels + 1).tolist(), sure, placed, *beside, strict=True)
    return Answer(f"Groups of {what}s", [what, "group", "how_sure", "placed", *known], list(rows))


# -- predictions -----------------------------------------------------------------------------------


def cells(fit: BlockFit, data: NewData, question: Question) -> Answer:
    """Say what the missing cells of the fitted rows, or of new rows, hold."""
    new = None if data.file is None else _new_rows(fit, data, question)
    levels: list[Any] = list(getattr(fit.family, "levels", None) or [])
    shown = levels if question.wide or len(levels) <= MAX_COLUMNS else []
    title = f"Missing cells of {'the fitted rows' if new is None else count_of(new.n_rows, 'new row')}: "
    columns = ["row", "column", "value"]
    numeric = fit.family.has_levels and fit.family.levels_are_numbers
    if fit.family.has_levels:
        title += "the most probable value, and how probable each is"
        title += ", and the expected value" if numeric else ""
        columns += ["probability", *(["mean"] if numeric else []), *(f"p({level})" for level in shown)]
    else:
        title += "the expected value"
    rows = _missing_cells(BlockPredictions(fit), new, levels, bool(shown), numeric)
    return Answer(title, columns, rows, if_empty="no cell is missing")


def recommend(fit: BlockFit, data: NewData, question: Question) -> Answer:
    """Say which columns without a cell in a row have the largest expected values."""
    new = None if data.file is None else _new_rows(fit, data, question)
    rows = np.arange(fit.shape[0] if new is None else new.n_rows)
    found = list(BlockPredictions(fit).recommended(new, rows, question.top or N_ITEMS))
    what = "the fitted rows" if new is None else count_of(len(rows), "new row")
    return Answer(
        f"Columns without a cell, of {what}: the largest expected values (90 % intervals of these), and how "
        "many columns have that value",
        ["row", "place", "column", "expected", "low", "high", "tied"],
        [[*one[:3], *(round(value, 4) for value in one[3:6]), one.tied] for one in found],
        if_empty="no cell is missing",
        verdict=note_on_ties(found, "row"),
    )


def groups(fit: BlockFit, data: NewData, question: Question) -> Answer:
    """Say which group of rows each new row belongs to."""
    new = _new_rows(fit, data, question)
    data.kept.ids, data.kept.covariates = [new.row_name(at) for at in range(new.n_rows)], new.covariates
    found = BlockPredictions(fit).rows(new)
    n = found.shares.shape[1]
    shown = n if question.wide or n <= MAX_COLUMNS else 0
    each = zip(found.best.tolist(), found.shares, found.novelty, found.log_evidence, strict=True)
    rows = (
        [
            new.row_name(at),
            k + 1,
            *(round(float(value), 6) for value in (p[k], novelty, log_p)),
            *np.round(p[:shown], 6).tolist(),
        ]
        for at, (k, p, novelty, log_p) in enumerate(each)
    )
    return Answer(
        f"{count_of(new.n_rows, 'new row')}: most probable group, its probability (how_sure), that of a "
        f"group of its own (new), and the {_words(fit)} of the cells",
        ["row", "group", "how_sure", "new", fit.family.log_name, *(f"p{k + 1}" for k in range(shown))],
        rows,
    )


def score(fit: BlockFit, data: NewData, question: Question) -> Answer:
    """Say how probable each given cell of the fitted rows is."""
    held_out = _new_rows(fit, data, question)
    if not held_out.n_cells:
        raise DataError(f"{data.file}: no cell is filled, so that there is nothing to score")
    cells = held_out.aligned(fit.known_cells)
    row_names = _as_given(held_out.row_names, cells.row_names, cells.n_rows, "row")
    column_names = _as_given(held_out.column_names, cells.column_names, cells.n_columns, "column")
    _warn_of_seen(fit.known_cells, cells, row_names, column_names)
    scores = BlockPredictions(fit).log_probability(cells)
    listed = zip(cells.rows, cells.columns, cells.values.tolist(), scores, strict=True)
    rows = (
        [row_names[row], column_names[column], plain(value), round(float(log_p), 6)]
        for row, column, value, log_p in listed
    )
    report = held_out_report(fit, cells, float(scores.mean()))
    facts = {name: value for name, value in report.items() if isinstance(value, float)}
    for base, of in report["baselines"].items():
        facts |= {f"{name}_of_{base.replace(' ', '_')}": value for name, value in of.items()}
    title = f"{_words(fit).capitalize()} of {count_of(cells.n_cells, 'cell')} of the fitted rows"
    return Answer(title, ["row", "column", "value", fit.family.log_name], rows, facts=facts)


def _words(fit: BlockFit) -> str:
    return fit.family.log_name.replace("_", " ")


def _notice(text: str) -> None:
    warnings.warn(text, PermixWarning, stacklevel=3)


def _new_rows(fit: BlockFit, data: NewData, question: Question) -> Cells:
    """Read new rows; notice columns without names, and rows that are called as fitted ones."""
    file, fitted = data.file, fit.known_cells
    assert file is not None
    new = read_rows(file, data.values)
    if new.column_names is None and fitted.column_names is not None and plain_suffix(file) != "npz":
        _notice(f"{file} has no names of columns: they are taken to be those of the fit, in their order")
    known = set(fitted.row_names or ())
    same = [name for name in new.row_names or () if name in known]
    if same and question.what != "score":
        _notice(
            f"{file}: rows that are called as fitted ones ({len(same):,} of {new.n_rows:,}, such as "
            f"{same[0]!r}) are taken for new rows; --what score takes their cells for further cells of the "
            "fitted ones"
        )
    return new


def _as_given(given: Names, fitted: Names, n: int, what: str) -> Sequence[str]:
    """Return names of the fitted rows or columns; numbers are written as the file with the cells has them."""
    if fitted is not None:
        return fitted
    if given is None:
        return [str(place + 1) for place in range(n)]
    first = int(given[0]) - int(match_numbers(given, n, what)[0])
    return [str(place + first) for place in range(n)]


def _warn_of_seen(fitted: Cells, held_out: Cells, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Notice cells that were fitted: their probabilities would say too much good of the fit."""
    places = [cells.rows.astype(np.int64) * fitted.n_columns + cells.columns for cells in (fitted, held_out)]
    seen = np.flatnonzero(np.isin(places[1], places[0]))
    if seen.size:
        row, column = held_out.rows[seen[0]], held_out.columns[seen[0]]
        _notice(
            f"{seen.size:,} of {held_out.n_cells:,} cells were fitted, not held out, such as row "
            f"{rows[row]!r}, column {columns[column]!r}"
        )


def _missing_cells(
    answers: BlockPredictions, new: Any, levels: Any, each: bool, numeric: bool
) -> Iterator[list[Any]]:
    fitted = answers.fit.known_cells
    known = fitted if new is None else new.aligned(fitted, rows=False)
    n_columns = known.n_columns
    size = max(1, BLOCK // n_columns)
    for first in range(0, known.n_rows, size):
        last = min(first + size, known.n_rows)
        missing = np.ones((last - first, n_columns), dtype=np.bool_)
        here = slice(*np.searchsorted(known.rows, [first, last]))
        missing[known.rows[here] - first, known.columns[here]] = False
        rows, columns = np.nonzero(missing)
        if not rows.size:
            continue
        names = (known.row_names, known.column_names)
        asked = Cells(rows + first, columns, np.zeros(rows.size), known.shape, *names)
        if levels:
            probabilities = answers.predict_cells_proba(new, asked)
            best = probabilities.argmax(axis=1)
            numbers = np.array(levels, dtype=np.float64) if numeric else None
            said = [
                [
                    levels[k],
                    round(float(p[k]), 6),
                    *([] if numbers is None else [round(float(p @ numbers), 6)]),
                    *(np.round(p, 6).tolist() if each else ()),
                ]
                for k, p in zip(best, probabilities, strict=True)
            ]
        else:
            said = [[value] for value in answers.predict_cells_mean(new, asked).tolist()]
        for row, column, values in zip(rows.tolist(), columns.tolist(), said, strict=True):
            yield [known.row_name(row + first), known.column_name(column), *values]


def checks(fit: BlockFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, None, data, question)
