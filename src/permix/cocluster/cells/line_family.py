"""Lines of a matrix, rows or columns, as data of a mixture, given the clusters of the other axis.

A line family belongs to one axis of one chain: :meth:`LineFamily.group_by` takes the labels of the other axis
and writes the lines anew, in place. Statistics that are empty stay valid whatever the groups.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from permix.cocluster.cells.cell_lines_jit import Lines
from permix.families.base import Family


class LineFamily(Family):
    """Base of both line families.

    Parameters
    ----------
    lines : Lines
        The filled cells by line.
    group_capacity : int
        Statistics have room for so many groups.
    """

    name: ClassVar[str] = "lines"

    def __init__(self, lines: Lines, group_capacity: int) -> None:
        self.lines = lines
        self.group_capacity = group_capacity
        # Groups in use: one array, so that all statistics follow it.
        self.n_groups = np.zeros(1, dtype=np.int64)

    # Families of tables are equal where their settings are; this one holds data and room to work in.
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    @property
    def n_lines(self) -> int:
        """Number of rows, or of columns."""
        return len(self.lines.starts) - 1

    @property
    def n_features(self) -> int:
        """Number of groups there is room for."""
        return self.group_capacity

    @abc.abstractmethod
    def like(self, lines: Lines, group_capacity: int) -> Self:
        """Return a family with the same prior of blocks: of the other axis, or with room for more groups."""

    @abc.abstractmethod
    def room_for_lines(self) -> NamedTuple:
        """Return arrays for :meth:`group_by` to write to."""

    @abc.abstractmethod
    def group_by(self, labels: np.ndarray, n_groups: int, out: Any) -> None:
        """Write the lines, with cells grouped by the labels of the other axis, to ``out``."""

    # What mixtures of tables ask beyond that.

    def resolve(self, X: Any) -> Self:
        """Nothing is left open."""
        return self

    def encode(self, X: Any) -> Any:
        """Return the lines, with cells grouped by the labels ``X`` of the other axis."""
        labels = np.asarray(X, dtype=np.int32)
        out = self.room_for_lines()
        self.group_by(labels, int(labels.max(initial=-1)) + 1, out)
        return out

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Lines stay as they are."""
        return rows
