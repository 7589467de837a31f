"""Shares of groups that depend on columns of agents, as a part of reports."""

from __future__ import annotations

from permix.estimators.agent_weights.rows import ShownWeights, share_rows, verdict
from permix.reporting.content import Block, Paragraph, Table
from permix.reporting.words import percent, shown


def weight_sentences(found: ShownWeights | None) -> tuple[str, ...]:
    """Say whether shares depend on the columns; nothing where there are none."""
    return () if found is None else (f"{verdict(found)}.",)


def weight_blocks(found: ShownWeights | None) -> list[Block]:
    """Show the shares of groups by the columns that they depend on."""
    if found is None or found.n_components < 2:
        return []
    rows: list[tuple[str, ...]] = []
    for row in share_rows(found):
        if row["group"] == 0:
            value = row["value"] if isinstance(row["value"], str) else f"{row['value']:.6g}"
            rows.append((f"{shown(row['column'])}: {shown(value)}",))
        rows[-1] = (*rows[-1], f"{percent(row['share'])} ({100 * row['low']:.0f}–{100 * row['high']:.0f})")
    table = Table(
        "Shares of groups, if all agents had this value and kept their other columns",
        ("Value", *(f"Group {k + 1}" for k in range(found.n_components))),
        tuple(rows),
        f"In brackets: {found.given}. Numbers are at the quartiles of the agents.",
    )
    return [Paragraph(f"{verdict(found)}."), table]
