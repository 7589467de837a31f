"""The functions of the family contract, for Python to call: one kernel that does any of them.

What Python calls is optimized with all that it reaches: a kernel for each function would cost ten times as
much to compile.
"""

from __future__ import annotations

import numpy as np

from permix.families import contract_jit as contract
from permix.kernels.jit import kernel

(
    ADD,
    REMOVE,
    CLEAR,
    CLEAR_MEMBERS,
    MERGE,
    COPY,
    MARGINAL,
    PREDICTIVE,
    WITHOUT,
    EXTEND,
    ABOVE,
) = range(11)
_NO_PLACES = np.empty(0, dtype=np.int64)
_NO_NUMBERS = np.empty(0)


@kernel
def _drive(what, stats, data, i, j, k, places, numbers):
    if what == ADD:
        contract.add(stats, data, i, k)
    elif what == REMOVE:
        contract.remove(stats, data, i, k)
    elif what == CLEAR:
        contract.clear(stats, k)
    elif what == CLEAR_MEMBERS:
        contract.clear_members(stats, data, places, i, j, k)
    elif what == MERGE:
        contract.merge(stats, j, k)
    elif what == COPY:
        contract.copy_cluster(stats, j, k)
    elif what == MARGINAL:
        return contract.log_marginal(stats, k)
    elif what == PREDICTIVE:
        contract.log_predictive(stats, data, i, k, numbers)
    elif what == WITHOUT:
        return contract.log_predictive_without(stats, data, i, k)
    elif what == EXTEND:
        contract.extend(stats, data, i, places, k, numbers)
    elif what == ABOVE:
        contract.log_predictive_above(stats, data, i, k, numbers)
    return 0.0


def add(stats, data, i, k):
    _drive(ADD, stats, data, i, 0, k, _NO_PLACES, _NO_NUMBERS)


def remove(stats, data, i, k):
    _drive(REMOVE, stats, data, i, 0, k, _NO_PLACES, _NO_NUMBERS)


def clear(stats, data, k):
    _drive(CLEAR, stats, data, 0, 0, k, _NO_PLACES, _NO_NUMBERS)


def clear_members(stats, data, order, first, last, k):
    _drive(CLEAR_MEMBERS, stats, data, first, last, k, order, _NO_NUMBERS)


def merge(stats, data, source, target):
    _drive(MERGE, stats, data, 0, source, target, _NO_PLACES, _NO_NUMBERS)


def copy_cluster(stats, data, source, target):
    _drive(COPY, stats, data, 0, source, target, _NO_PLACES, _NO_NUMBERS)


def log_marginal(stats, data, k):
    return _drive(MARGINAL, stats, data, 0, 0, k, _NO_PLACES, _NO_NUMBERS)


def predictive(stats, data, i, n_clusters):
    out = np.empty(n_clusters)
    _drive(PREDICTIVE, stats, data, i, 0, n_clusters, _NO_PLACES, out)
    return out


def log_predictive_above(stats, data, i, n_clusters, out):
    _drive(ABOVE, stats, data, i, 0, n_clusters, _NO_PLACES, out)


def log_predictive_without(stats, data, i, k):
    return _drive(WITHOUT, stats, data, i, 0, k, _NO_PLACES, _NO_NUMBERS)


def extend(stats, data, i, starts, n_clusters, out):
    _drive(EXTEND, stats, data, i, 0, n_clusters, starts, out)


@kernel
def as_vector(stats, data, i, direction, weight):
    """Return the inner product with a direction; then add the datum to it, this many times."""
    product = contract.project(stats, data, i, direction)
    contract.add_vector(stats, data, i, weight, direction)
    return product
