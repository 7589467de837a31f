"""The groups of rows and of columns that a fit found, and how sure they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permix.cocluster.fit import BlockFit, Side
from permix.data.labels import Array
from permix.partitions import assignment_confidence

if TYPE_CHECKING:
    import pandas as pd

SIDES: tuple[Side, ...] = ("row", "column")


class Groups(NamedTuple):
    """The groups of one side of the matrix."""

    labels: Array  # group of each row, or of each column
    names: list[str]  # numbers, counted from 1, where there are none
    confidence: Array  # probability of each to be with a fellow member of its group

    @property
    def sizes(self) -> list[int]:
        """Members of each group."""
        return list(map(int, np.bincount(self.labels)))

    @property
    def members(self) -> list[list[str]]:
        """Names of the members of each group."""
        lines = [np.flatnonzero(self.labels == k).tolist() for k in range(len(self.sizes))]
        return [[self.names[line] for line in group] for group in lines]

    @property
    def group_confidence(self) -> list[float]:
        """Mean confidence of the members of each group."""
        return [float(self.confidence[self.labels == k].mean()) for k in range(len(self.sizes))]


def groups_of(fit: BlockFit, what: Side) -> Groups:
    """Return the groups of rows, or of columns, of the point estimate."""
    labels = fit.labels(what)
    names = None if fit.cells is None else fit.cells.row_names if what == "row" else fit.cells.column_names
    listed = [str(line + 1) for line in range(len(labels))] if names is None else list(names)
    return Groups(labels, listed, np.asarray(assignment_confidence(fit.cluster_draws(what), labels)))


def group_table(fit: BlockFit) -> pd.DataFrame:
    """Return one row a group: of rows or of columns, its number, size, share, confidence and members."""
    import pandas as pd

    tables = []
    for what in SIDES:
        found = groups_of(fit, what)
        sizes = np.array(found.sizes)
        columns = {
            "of": f"{what}s",
            "group": np.arange(len(sizes)),
            "size": sizes,
            "share": sizes / sizes.sum(),
            "confidence": found.group_confidence,
            "members": found.members,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)
