"""How weights that depend on columns of agents are shown: plain values, data frames, tables, and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from permix.cli.output import print_table, say, terminal_width
from permix.distributions.agent_weights.model import AgentWeights
from permix.estimators.share_errors import NINETY

if TYPE_CHECKING:
    import pandas as pd

# What the row of the constants is called.
CONSTANT = "(constant)"
# Columns of a share with its interval, and of what stands before them.
CELL_WIDTH, BESIDE = 15, 30
NO_EFFECT = 0.05


def coefficient_rows(found: AgentWeights) -> list[dict[str, Any]]:
    """One row for each coefficient: log-odds of a group against the first one; groups counted from 0."""
    rows = []
    named = [(CONSTANT, "", 1.0)]
    named += [(t.name, word, t.unit) for t in found.design.terms for word in t.coefficients]
    for k in range(1, found.n_components):
        for at, (column, value, unit) in enumerate(named):
            estimate, error = found.coefficients[at, k] / unit, found.errors[at, k] / unit
            if not math.isfinite(error):
                estimate = math.copysign(math.inf, estimate)
            ends = (
                estimate + side * NINETY * error if math.isfinite(error) else side * math.inf
                for side in (-1, 1)
            )
            low, high = ends
            rows.append(
                {"group": k, "column": column, "value": value, "estimate": float(estimate)}
                | {"standard_error": float(error), "low": float(low), "high": float(high)}
            )
    return rows


def share_rows(found: AgentWeights) -> list[dict[str, Any]]:
    """One row for each value and group: the share, if all agents had this value and kept all else."""
    points = [(term.name, point) for term in found.design.terms for point in term.points]
    return [
        {
            "column": column,
            "value": point,
            "group": k,
            "share": float(mean),
            "low": float(low),
            "high": float(high),
        }
        for (column, point), groups in zip(points, found.effects, strict=True)
        for k, (mean, low, high) in enumerate(groups)
    ]


def verdict(found: AgentWeights) -> str:
    """Say in a sentence whether shares depend on the columns."""
    names = [term.name for term in found.design.terms]
    if found.n_components < 2:
        return f"With one group, nothing can depend on {_listed(names)}"
    p = found.p_value
    said = f"likelihood ratio against shares that are the same for all: {_p(p)}"
    if p <= NO_EFFECT:
        return f"Shares of groups depend on {_listed(names)} ({said}){_by_column(found)}"
    return f"No sign that shares of groups depend on {_listed(names)} ({said})"


def _by_column(found: AgentWeights) -> str:
    """Say of each of several columns how sure its part is."""
    terms = found.design.terms
    if len(terms) < 2:
        return ""
    parts = []
    for term in terms:
        p = found.p_value_of(term.name)
        parts.append(f"{term.name} {'has no finite coefficient' if p != p else _p(p)}")
    return f"; beside the others, {', '.join(parts)}"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def coefficient_frame(found: AgentWeights) -> pd.DataFrame:
    """Return the coefficients as a data frame."""
    import pandas as pd

    table = pd.DataFrame(
        coefficient_rows(found),
        columns=["group", "column", "value", "estimate", "standard_error", "low", "high"],
    )
    table.attrs["verdict"] = verdict(found)
    return table


def share_frame(found: AgentWeights) -> pd.DataFrame:
    """Return the shares by value as a data frame."""
    import pandas as pd

    table = pd.DataFrame(share_rows(found), columns=["column", "value", "group", "share", "low", "high"])
    table.attrs["verdict"] = verdict(found)
    return table


def weights_report(found: AgentWeights | None) -> dict[str, Any]:
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
        say(f"{_listed(numbers)}: at the quartiles of the agents")
    say("in brackets: 90% interval, the centers of the groups taken as known; --json has the coefficients")


def _share(row: dict[str, Any]) -> str:
    return f"{100 * row['share']:.0f}% ({100 * row['low']:.0f}–{100 * row['high']:.0f})"
