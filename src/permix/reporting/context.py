"""What a report knows beside the fit: how it came about, the data where they are given, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Context:
    """What there is beside the fit."""

    title: str  # what the report is about: the name of a file, or of a model
    about: Mapping[str, Rows] = field(default_factory=dict)  # tables of a fitted file, by name
    data: Any = None  # the data that were fitted, as the model's checks take them; None where unknown
    checks: bool = True  # whether data are drawn from the model and compared
    file: str = ""  # of the fit, to be named in commands

    def facts(self, table: str) -> dict[str, str]:
        """Return a table of facts: what, and how much."""
        return {str(row["what"]): str(row["value"]) for row in self.about.get(table, ())}
