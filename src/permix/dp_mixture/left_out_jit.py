# mypy: ignore-errors
"""What the other members of a datum's cluster say of it, for weighing chains that disagree."""

from __future__ import annotations

import numpy as np

from permix.families.contract_jit import log_predictive_without
from permix.kernels.jit import kernel


@kernel
def score_without(stats, data, labels, sizes, rows, out):
    """Write ln p(datum | other members of its cluster) of some data; minus infinity where it has none."""
    for j in range(rows.shape[0]):
        i = rows[j]
        own = np.int64(labels[i])
        out[j] = log_predictive_without(stats, data, i, own) if sizes[own] > 1 else -np.inf
