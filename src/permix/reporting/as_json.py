"""Reports as JSON: the tree as it is; of pictures what they show, in numbers."""

from __future__ import annotations

import json
import math
from typing import Any

from permix.reporting.content import Block, Figure, Report, Section, Table


def to_json(report: Report) -> str:
    """Write a report as JSON."""
    sections = [_section(section) for section in report.sections]
    told = {"title": report.title, "subtitle": report.subtitle, "sections": sections}
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _section(section: Section) -> dict[str, Any]:
    blocks = [_block(block) for block in section.blocks]
    parts = [_section(part) for part in section.sections]
    told = {"key": section.key, "title": section.title, "blocks": blocks}
    return {**told, "sections": parts} if parts else told


def _block(block: Block) -> dict[str, Any]:
    kind = {"type": type(block).__name__.lower()}
    if isinstance(block, Figure):
        numbers = _table(block.numbers)
        return {**kind, "title": block.title, "description": block.description, "numbers": numbers}
    if isinstance(block, Table):
        return {**kind, **_table(block)}
    return {**kind, **block._asdict()}


def _table(table: Table) -> dict[str, Any]:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    told = {"caption": table.caption, "columns": list(table.columns), "rows": rows}
    return {**told, "note": table.note} if table.note else told


def _cell(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
