"""A file of any kind: votes, a matrix, or a table of measurements? Said, or told by what is in it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from permix.cli.matrices import is_matrix
from permix.cli.stdin import spooled
from permix.cli.votes import COMPARED, LAYOUTS
from permix.comparison.forms import FORMS, Form
from permix.errors import CycleError, DataError, NotRankings
from permix.estimators.registry import MODELS, part
from permix.runtime.telling import tell

# Columns that hold so few different values altogether share them as levels.
SHARED_LEVELS = 12
# Columns of one scale: so many at least, none so many times as wide as another.
LEAST_COLUMNS, MOST_TIMES = 10, 4.0


class AnyFile(NamedTuple):
    """What a file holds."""

    form: Form
    data: Any  # what the models' own commands read
    why: str  # by what it was recognized, and how to say otherwise

    @property
    def table(self) -> Any:
        """What the models are compared on."""
        data = self.data
        return {"votes": lambda: data.table, "matrix": lambda: data, "table": lambda: data.rows}[
            self.form.name
        ]()


def read_any(file: Path, values: Mapping[str, Any]) -> AnyFile:
    """Read a file as what it is said to be, or looks like."""
    if file.suffix == ".permix":
        raise DataError(f"{file} is a fitted model, not data; see permix summary {file}")
    asked, file = values.get("read_as"), spooled(file)
    values = {**values, "quiet": True}  # what was read is said here
    if asked is None and values.get("layout") in ("wide", "long"):
        asked = "matrix"
    if asked is None and values.get("layout") in (*LAYOUTS, *COMPARED):
        asked = "votes"
    if asked is not None:
        return AnyFile(FORMS[asked], _read(asked, file, values), "as you say")
    if is_matrix(file):
        return AnyFile(FORMS["matrix"], _read("matrix", file, values), "nothing else is in such files")
    looks_like: str | None = None
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            votes = _votes(file, values)
        except NotRankings as error:
            looks_like = error.looks_like
            if not looks_like:
                raise
    if not looks_like:
        for each in noticed:  # of a file that is no votes, its own reader says what is odd
            warnings.warn(each.message, stacklevel=2)
        if votes.table.metadata.get("LAYOUT") != "ratings":
            return AnyFile(FORMS["votes"], votes, "--as matrix or --as table reads it as something else")
        looks_like = "ratings"
    if looks_like == "ratings":
        cells = _read("matrix", file, {**values, "layout": "long"})
        why = "its lines are row, column and value; --as votes compares what each agent rated"
        return AnyFile(FORMS["matrix"], cells, why)
    table = _read("table", file, values)
    if looks_like == "numbers" and _is_one_scale(table.rows):
        why = "all columns are on one scale; --as table takes each by itself"
        return AnyFile(FORMS["matrix"], _read("matrix", file, values), why)
    why = "columns hold measurements of their own; --as matrix takes all cells for one kind"
    return AnyFile(FORMS["table"], table, why)


def _votes(file: Path, values: Mapping[str, Any]) -> Any:
    """Read votes; agents who contradict themselves are left out, and counted."""
    try:
        return _read("votes", file, values)
    except CycleError:
        if values.get("on_cycle") is not None:
            raise
    everybody = _read("votes", file, {**values, "on_cycle": "drop"})
    said = "agents who contradict themselves are left out, since no model of rankings takes them"
    tell(f"{file.name}: {said}; --on-cycle says otherwise")
    return everybody


def _read(form: str, file: Path, values: Mapping[str, Any]) -> Any:
    """Read a file as the commands of the models of a form do; no model is loaded for it."""
    for about in MODELS.values():
        source = part(about.command).source if about.command else None
        if source is not None and source.form == form:
            return part(source.read)(file, values)
    raise typer.BadParameter(f"there is no model of a {form}")


def _is_one_scale(frame: Any) -> bool:
    """Whether columns of numbers, beside names of the rows, are answers to questions of one kind."""
    from pandas.api.types import is_numeric_dtype

    words = [name for name in frame.columns if not is_numeric_dtype(frame[name])]
    if words and (words != [frame.columns[0]] or not frame[words[0]].is_unique):
        return False
    frame = frame.drop(columns=words)
    numbers = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    if numbers.shape[1] < 2:
        return False
    if len(np.unique(numbers[~np.isnan(numbers)])) <= SHARED_LEVELS:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a cell
        spreads, means = np.nanstd(numbers, axis=0), np.nanmean(numbers, axis=0)
    spread = np.nanmedian(spreads)
    alike = np.nanmax(spreads) <= MOST_TIMES * np.nanmin(spreads)
    return bool(
        numbers.shape[1] >= LEAST_COLUMNS and alike and np.nanmax(means) - np.nanmin(means) <= 4.0 * spread
    )
