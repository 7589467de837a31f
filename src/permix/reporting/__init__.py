"""Reports: what a fit found, in an order that people read, as HTML, Markdown or JSON.

A report is a tree of plain content (:mod:`permix.reporting.content`). Each model's ``report.py`` says what
its fits are about; what all have in common, and how it is written, is here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from permix.errors import DataError, ParameterError
from permix.reporting.content import Report

FORMATS = ("html", "md", "json")
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".json": "json"}


def report(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    data: Any = None,
    format: str | None = None,
    checks: bool = True,
    title: str | None = None,
    progress: bool | None = None,
) -> str:
    """Describe a fitted model for people: what was found, how sure that is, and who is in the groups.

    Parameters
    ----------
    model : fitted estimator, or path of a saved one
        A path also tells how the fit came about: what was cleaned, the command, what the number of groups was
        chosen by.
    path : path, optional
        File to write, whole or not at all.
    data : data, optional
        Those that were fitted: typical ballots and checks of the model need them where the fit does not
        keep them (:class:`permix.MallowsMixture`, :class:`permix.AngleMixture`,
        :class:`permix.BlurringMeanShift`).
    format : {"html", "md", "json"}, optional
        Left out, what the ending of ``path`` says, else HTML.
    checks : bool
        Whether to draw data from the model and compare them with those that were fitted.
    title : str, optional
        Title of the report.
    progress : bool, optional
        Live display: by default on a terminal, once it has taken two seconds.

    Returns
    -------
    str
        The report. HTML is one page that needs nothing else. The same fit gives the same text.

    Examples
    --------
    >>> import permix
    >>> orders = [["tea", "milk", "water"], ["water", "milk", "tea"]]
    >>> votes = permix.Rankings.from_orders(orders, counts=[70, 30])
    >>> model = permix.MallowsMixture(2, random_state=0, progress=False).fit(votes)
    >>> text = permix.report(model, data=votes, format="md", checks=False)
    >>> [line for line in text.splitlines() if line.startswith("## ")][:3]
    ['## The answer', '## Can you trust this?', '## The groups']
    """
    found = described(model, data=data, checks=checks, title=title, progress=progress)
    text = written(found, format_of(path, format))
    if path is not None:
        write(text, path)
    return text


def described(
    model: Any,
    *,
    data: Any = None,
    checks: bool = True,
    title: str | None = None,
    progress: bool | None = None,
    fit: Any = None,
) -> Report:
    """Return the report of a model, or of a file, whose ``fit`` may have been read, as content."""
    from permix.estimators.registry import fit_of
    from permix.reporting.build import build
    from permix.reporting.context import Context

    about: Mapping[str, Any] = {}
    file = ""
    if isinstance(model, str | os.PathLike):
        from permix.estimators.archive import read_about, read_model

        file, fit = os.fspath(model), read_model(model)[1] if fit is None else fit
        about = read_about(model)
        told = {row["what"]: row["value"] for row in about.get("run", ())}
        named = str(told.get("title") or Path(str(told.get("data") or file)).name.partition(".")[0])
    else:
        fit, named = fit_of(model), ""
    if data is not None:
        data = _as_fitted(fit, data)
    return build(fit, Context(title or named or fit.model, about, data, checks, file), progress)


def items_of(fit: Any) -> Any:
    """Return the items that data to be checked must have; None for fits that keep their data."""
    return getattr(fit, "items", None) or getattr(getattr(fit, "components", None), "items", None)


def _as_fitted(fit: Any, data: Any) -> Any:
    """Return data over the items of a fit, as its checks take them."""
    from permix.estimators.preference_input import as_preferences

    items = items_of(fit)
    if items is None:
        raise DataError("this model keeps its data, or has no checks: leave data out")
    return as_preferences(data, items)


def format_of(path: str | os.PathLike[str] | None, format: str | None) -> str:
    """Return the format that is asked for, or that the name of a file says."""
    if format is not None:
        if format not in FORMATS:
            raise ParameterError("format", format, f"one of {', '.join(map(repr, FORMATS))}")
        return format
    if path is None:
        return "html"
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{os.fspath(path)}: reports end in .html, .md or .json")
    return ENDINGS[ending]


def written(found: Report, format: str) -> str:
    """Write a report in one of the formats."""
    from permix.registries import part

    writers: dict[str, str] = {
        "html": "html:to_html",
        "md": "markdown:to_markdown",
        "json": "as_json:to_json",
    }
    write_as: Callable[[Report], str] = part(f"permix.reporting.{writers[format]}")
    return write_as(found)


def write(text: str, path: str | os.PathLike[str]) -> None:
    """Write a report to a file, whole or not at all."""
    from permix.files import atomic_writer

    with atomic_writer(path) as handle:
        handle.write(text.encode("utf-8"))
