"""What an archive holds of shares that depend on columns of agents."""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit, RowColumns
from permix.data.labels import Array
from permix.distributions.agent_weights.design import Design
from permix.estimators.agent_weights.archive import LARGEST
from permix.estimators.archive import Saved
from permix.estimators.fields import field, finite, require

COLUMN_FIELDS = {
    "columns/matrix": field("real", "rows", "columns", where=finite, optional=True),
    "draws/coefficients": field(
        "real", "chains", "draws", "columns", "components", where=finite, optional=True
    ),
}


def pack_columns(fit: BayesianMallowsFit) -> dict[str, Array]:
    """Return the arrays, where there are any; the coefficients are among the draws."""
    return {} if fit.columns is None else {"columns/matrix": fit.columns.matrix}


def columns_of(saved: Saved, n_rows: int) -> RowColumns | None:
    """Return the columns that were saved, where there are any."""
    terms, arrays, names = saved.facts["weight_terms"], saved.arrays, saved.settings.weights_by
    there = [name for name in COLUMN_FIELDS if name in arrays]
    require(len(there) == (0 if terms is None else len(COLUMN_FIELDS)), "weights by columns")
    require(names == (None if terms is None else tuple(term.name for term in terms)), "weights by columns")
    if terms is None:
        return None
    design = Design(terms)
    matrix, coefficients = (arrays[name] for name in COLUMN_FIELDS)
    require(matrix.shape == (n_rows, design.n_columns) and bool(np.all(matrix[:, 0] == 1.0)), "columns")
    require(coefficients.shape[2:] == (design.n_columns, saved.settings.n_components), "coefficients")
    require(bool(np.all(np.abs(coefficients) <= LARGEST)), "coefficients")
    return RowColumns(design, matrix)
