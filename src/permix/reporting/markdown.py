"""Reports as Markdown: the same words and tables; of pictures what they show, in numbers."""

from __future__ import annotations

import re

from permix.reporting.content import (
    Block,
    Brief,
    Code,
    Figure,
    Listing,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    Verdict,
)
from permix.reporting.html import _cell

SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$])")


def to_markdown(report: Report) -> str:
    """Write a report as Markdown."""
    lines = [f"# {_text(report.title)}", "", _text(report.subtitle), ""]
    for section in report.sections:
        lines += _section(section, 2)
    return "\n".join(lines).rstrip() + "\n"


def _text(text: str) -> str:
    """Escape what Markdown or HTML would take for more than text."""
    plain = SPECIAL.sub(r"\\\1", " ".join(text.split()))
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A line that begins with a number and a dot, or a dash, would become a list.
    return re.sub(r"^(\d+)([.)])(\s)|^([-+])(\s)", lambda m: _listed(m), plain)


def _listed(found: re.Match[str]) -> str:
    number, dot, gap, dash, after = found.groups()
    return f"{number}\\{dot}{gap}" if number else f"\\{dash}{after}"


def _section(section: Section, level: int) -> list[str]:
    lines = [f"{'#' * level} {_text(section.title)}", ""]
    for block in section.blocks:
        lines += [*_block(block), ""]
    for part in section.sections:
        lines += _section(part, level + 1)
    return lines


def _block(block: Block) -> list[str]:
    if isinstance(block, Brief):
        link = f"[{_text(block.title)}](#{re.sub(r'[^a-z ]', '', block.title.lower()).replace(' ', '-')})"
        return [f"{link} **{_text(block.headline)}** {_text(block.reason)}".rstrip()]
    if isinstance(block, Paragraph):
        return [_text(block.text)]
    if isinstance(block, Note):
        return [f"> {_text(block.text)}"]
    if isinstance(block, Listing):
        return [f"- {_text(entry)}" for entry in block.entries]
    if isinstance(block, Code):
        return [f"{_text(block.what)}:", "", *(f"    {line}" for line in block.text.splitlines())]
    if isinstance(block, Verdict):
        return _verdict(block)
    if isinstance(block, Figure):
        return [f"**{_text(block.title)}.** {_text(block.description)}", "", *_table(block.numbers)]
    return [f"**{_text(block.caption)}**", "", *_table(block)]


def _verdict(verdict: Verdict) -> list[str]:
    lines = [f"**{_text(verdict.headline)}**", "", *(f"- {_text(reason)}" for reason in verdict.reasons)]
    if verdict.advice:
        lines += ["", "What to do:", "", *(f"- {_text(advice)}" for advice in verdict.advice)]
    return lines


def _table(table: Table) -> list[str]:
    lines = [
        "| " + " | ".join(_text(column) or " " for column in table.columns) + " |",
        "|" + "---|" * len(table.columns),
        *("| " + " | ".join(_text(_cell(cell)) for cell in row) + " |" for row in table.rows),
    ]
    return [*lines, "", _text(table.note)] if table.note else lines
