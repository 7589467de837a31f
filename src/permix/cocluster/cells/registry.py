"""Which cell families there are, by name: one line a family. A class is imported when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permix.errors import DataError
from permix.estimators.registry import part

if TYPE_CHECKING:
    from permix.cocluster.cells.families import CellFamily

CELL_FAMILIES = {
    "categorical": "permix.cocluster.cells.families:CategoricalCells",
    "bernoulli": "permix.cocluster.cells.families:BernoulliCells",
    "poisson": "permix.cocluster.cells.families:PoissonCells",
    "gaussian": "permix.cocluster.cells.families:GaussianCells",
}


def cell_family_class(name: object) -> type[CellFamily]:
    """Return the class of a name."""
    if not isinstance(name, str) or name not in CELL_FAMILIES:
        raise DataError(f"unknown family {name!r}; known are {', '.join(CELL_FAMILIES)}")
    found: type[CellFamily] = part(CELL_FAMILIES[name])
    return found
