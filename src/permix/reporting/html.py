"""Reports as one HTML page that needs nothing else: no network, no script to be read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from permix.reporting import content
from permix.reporting.content import Report, Section

HERE = Path(__file__).parent / "page"
# Letters that a cell may have and still stand beside others on a telephone.
FEW = 40


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folder = FileSystemLoader(HERE)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"kind": _kind, "cell": _cell, "of_numbers": _of_numbers, "long": _long}
    environment.filters["beside"] = _beside
    files = {name: Markup((HERE / name).read_text(encoding="utf-8")) for name in ("style.css", "script.js")}
    environment.globals |= {"style": files["style.css"], "script": files["script.js"], "safe_svg": Markup}
    return environment.get_template("report.html")


def to_html(report: Report) -> str:
    """Write a report as HTML."""
    return str(_template().render(report=report, contents=contents(report.sections)))


def contents(sections: tuple[Section, ...]) -> list[Section]:
    """Return the sections that the table of contents names."""
    return list(sections)


def _kind(block: Any) -> str:
    """Return which macro of the template writes a block."""
    return type(block).__name__.lower()


def _beside(blocks: tuple[content.Block, ...]) -> list[tuple[content.Block, ...]]:
    """Put a picture and the table that follows it side by side."""
    rows: list[tuple[content.Block, ...]] = []
    for block in blocks:
        if isinstance(block, content.Table) and rows and isinstance(rows[-1][-1], content.Figure):
            rows[-1] = (*rows[-1], block)
        else:
            rows.append((block,))
    return rows


def _long(block: content.Table) -> list[bool]:
    """Say which columns after the first hold more than a few words: they need the width of a telephone."""
    wide = [False] * len(block.columns)
    for row in block.rows:
        for at, cell in enumerate(row):
            wide[at] = wide[at] or (at > 0 and isinstance(cell, str) and len(cell) > FEW)
    return wide


def _cell(value: content.Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else value


def _of_numbers(table: content.Table) -> list[bool]:
    """Say which columns are written at the right: those whose cells are all numbers, or begin with one."""
    return [all(map(_is_number, cells)) for cells in zip(*table.rows, strict=True)]


def _is_number(value: content.Cell) -> bool:
    """Say whether a cell is a number, or text that begins with one."""
    if value is None or isinstance(value, int | float):
        return True
    text = value.lstrip("(+-−<>")
    return bool(text) and (text[0].isdigit() or value == "–") and len(value) <= 24
