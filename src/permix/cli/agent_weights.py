"""Weights that depend on columns of agents, for the command line: plain values, and tables for people."""

from __future__ import annotations

import math
from typing import Any

from permix.cli.output import print_table, say, terminal_width
from permix.estimators.agent_weights.rows import (
    ShownWeights,
    coefficient_rows,
    listed,
    share_rows,
    verdict,
)

# Columns of a share with its interval, and of what stands before them.
CELL_WIDTH, BESIDE = 15, 30


def weights_report(found: ShownWeights | None) -> dict[str, Any]:
    """Return all of it as plain values; nothing where weights do not depend on columns. Groups are from 1."""
    if found is None:
        return {}

    def plain(row: dict[str, Any]) -> dict[str, Any]:
        values = {
            name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()
        }
        return values | {"group": row["group"] + 1}

    return {
        "weights_by": {
            "columns": [term.name for term in found.design.terms],
            "references": {t.name: t.values[0] if t.values else t.mean for t in found.design.terms},
            "verdict": verdict(found),
            "interval": found.given,
            "p_value": None if math.isnan(found.p_value) else found.p_value,
            "shares": [plain(row) for row in share_rows(found)],
            "coefficients": [plain(row) for row in coefficient_rows(found)],
        }
    }


def print_weights(report: dict[str, Any]) -> None:
    """Write shares by value, for people."""
    found = report.get("weights_by")
    if found is None:
        return
    shares = found["shares"]
    n_groups = max(row["group"] for row in shares)
    room = max((terminal_width() - BESIDE) // CELL_WIDTH, 1)
    print()
    for first in range(1, n_groups + 1, room):
        groups = range(first, min(first + room, n_groups + 1))
        rows = []
        for at in range(0, len(shares), n_groups):
            point = shares[at]
            value = point["value"] if isinstance(point["value"], str) else f"{point['value']:.6g}"
            cells = (_share(shares[at + k - 1]) for k in groups)
            rows.append([point["column"], value, *cells])
        heads = ["column", "value", *(f"group {k}" for k in groups)]
        print_table(
            "Shares of groups, if all agents had this value and kept their other columns", heads, rows
        )
    say(f"{found['verdict']}")
    numbers = [name for name, mean in found["references"].items() if not isinstance(mean, str)]
    if numbers:
        say(f"{listed(numbers)}: at the quartiles of the agents")
    say(f"in brackets: {found['interval']}; --json has the coefficients")


def _share(row: dict[str, Any]) -> str:
    return f"{100 * row['share']:.0f}% ({100 * row['low']:.0f}–{100 * row['high']:.0f})"
