"""How weights that depend on columns of agents are shown: plain values, data frames, and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from permix.data.labels import Array
from permix.distributions.agent_weights.design import Design

if TYPE_CHECKING:
    import pandas as pd

# What the row of the constants is called.
CONSTANT = "(constant)"
NO_EFFECT = 0.05


class ShownWeights(Protocol):
    """Weights π_k(x) ∝ exp(x β_k) as they are shown, whether they are estimates or posterior means."""

    @property
    def design(self) -> Design:
        """The columns."""

    @property
    def n_components(self) -> int:
        """Number of groups."""

    @property
    def coefficients(self) -> Array:
        """Coefficients (columns, K), those of the first group 0."""

    @property
    def errors(self) -> Array:
        """Their standard errors; infinite without a finite estimate."""

    @property
    def ends(self) -> Array:
        """The ends of their intervals, (2, columns, K)."""

    @property
    def effects(self) -> Array:
        """Shares if a column had one value in all rows, (points of all columns, K, 3), with both ends."""

    @property
    def p_value(self) -> float:
        """Against weights that are the same for all; NaN with one group."""

    def p_value_of(self, name: str) -> float:
        """Return that of all coefficients of a column; NaN where one has no finite estimate."""

    @property
    def test(self) -> str:
        """What the p value is, in words."""

    @property
    def given(self) -> str:
        """What intervals hold, in words."""


def coefficient_rows(found: ShownWeights) -> list[dict[str, Any]]:
    """One row for each coefficient: log-odds of a group against the first one; groups counted from 0."""
    rows = []
    named = [(CONSTANT, "", 1.0)]
    named += [(t.name, word, t.unit) for t in found.design.terms for word in t.coefficients]
    for k in range(1, found.n_components):
        for at, (column, value, unit) in enumerate(named):
            estimate, error = found.coefficients[at, k] / unit, found.errors[at, k] / unit
            if math.isinf(error):
                estimate = math.copysign(math.inf, estimate)
            low, high = found.ends[:, at, k] / unit
            rows.append(
                {"group": k, "column": column, "value": value, "estimate": float(estimate)}
                | {"standard_error": float(error), "low": float(low), "high": float(high)}
            )
    return rows


def share_rows(found: ShownWeights) -> list[dict[str, Any]]:
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


def verdict(found: ShownWeights) -> str:
    """Say in a sentence whether shares depend on the columns."""
    names = [term.name for term in found.design.terms]
    if found.n_components < 2:
        return f"With one group, nothing can depend on {listed(names)}"
    p = found.p_value
    said = f"{found.test}: {_p(p)}"
    if p <= NO_EFFECT:
        return f"Shares of groups depend on {listed(names)} ({said}){_by_column(found)}"
    return f"No sign that shares of groups depend on {listed(names)} ({said})"


def _by_column(found: ShownWeights) -> str:
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


def listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def coefficient_frame(found: ShownWeights) -> pd.DataFrame:
    """Return the coefficients as a data frame."""
    import pandas as pd

    table = pd.DataFrame(
        coefficient_rows(found),
        columns=["group", "column", "value", "estimate", "standard_error", "low", "high"],
    )
    table.attrs["verdict"] = verdict(found)
    return table


def share_frame(found: ShownWeights) -> pd.DataFrame:
    """Return the shares by value as a data frame."""
    import pandas as pd

    table = pd.DataFrame(share_rows(found), columns=["column", "value", "group", "share", "low", "high"])
    table.attrs["verdict"] = verdict(found)
    return table
