"""Families of independent columns of numbers, in which a missing cell contributes nothing, exactly."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import DataError
from permix.families.base import Family, check_table, finite_matrix
from permix.families.mixed_jit import MixedStats


@dataclasses.dataclass(frozen=True, eq=False)
class IndependentColumns(Family):
    """Base of families with two kinds of statistics: faster ones, and ones that take gaps."""

    gaps: bool | None = dataclasses.field(default=None, kw_only=True)

    accepts_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gaps not in (None, True, False):
            raise DataError(f"gaps must be True or False or None, got {self.gaps!r}")

    def has_gaps(self, array: np.ndarray) -> bool:
        """Whether statistics of these data must take gaps."""
        return bool(np.isnan(array).any()) if self.gaps is None else self.gaps

    def serving(self, data: Any) -> Self:
        """New rows may have gaps where those that were fitted have none."""
        return self if self.gaps or not np.isnan(data).any() else dataclasses.replace(self, gaps=True)

    def encode(self, X: Any) -> np.ndarray:
        """Check cells; the result is a copy that later changes to ``X`` do not reach."""
        return finite_matrix(X, self.name, gaps=True).copy()

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse a table of another shape, and cells that are no numbers, or missing where none may be."""
        if self.gaps:
            check_table(data, n, self.n_features)
        else:
            super().check_encoded(data, n)

    def describe(self) -> dict[str, Any]:
        """Leave out that there are no gaps: files of data without say nothing of them."""
        plain = super().describe()
        return plain if self.gaps else {name: value for name, value in plain.items() if name != "gaps"}


def columns_with_gaps(kind: int, capacity: int, *priors: np.ndarray | float) -> MixedStats:
    """Return statistics of columns of one kind of numbers, in the units of the data."""
    from permix.families.mixed import empty_mixed

    d = max(np.size(prior) for prior in priors)
    table = np.column_stack([np.broadcast_to(p, d) for p in (*priors, 1.0, 0.0)])
    return empty_mixed(np.full(d, kind), np.zeros(d, dtype=np.int64), table, capacity)
