# mypy: ignore-errors
"""The family contract: what a cluster must be able to do, in compiled code.

A family's statistics are a NamedTuple of arrays with room for ``capacity`` clusters; its data are an
array or a NamedTuple of arrays. The functions below are declared here and implemented once per
family with :func:`permix.kernels.jit.implements`, so one Gibbs sweep, one split-merge and one permutation
move serve every family. A slot that holds no datum is a valid, empty cluster: its predictive is the
prior predictive and its marginal likelihood is 1.

Arrays are stored with the cluster as their last axis wherever a datum is scored against all
clusters at once: the inner loop then runs over clusters and vectorizes.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import implements, kernel

# In implementations, copy with loops: Numba compiles an assignment to a slice with all of its error texts,
# three seconds a time.


def _undefined(name):
    raise NotImplementedError(f"{name} is implemented per family by overload; call it from compiled code")


def add(stats, data, i, k):
    """Add datum ``i`` to cluster ``k``."""
    _undefined("add")


def remove(stats, data, i, k):
    """Take datum ``i`` out of cluster ``k``, which must hold it."""
    _undefined("remove")


def log_predictive(stats, data, i, n_clusters, out):
    """Write ln p(x_i | members of cluster k) to ``out[k]`` for the first ``n_clusters`` clusters."""
    _undefined("log_predictive")


def log_predictive_above(stats, data, i, n_clusters, out):
    """Do as :func:`log_predictive`; where that is below the ``out[k]`` given, minus infinity will do."""
    _undefined("log_predictive_above")


def log_predictive_without(stats, data, i, k):
    """Return ln p(x_i | members of cluster k other than i); the cluster holds ``i`` and at least one more.

    A sweep asks this of the cluster a datum sits in: most data stay where they are, and then nothing
    needs to be taken out and put back.
    """
    _undefined("log_predictive_without")


def log_marginal(stats, k):
    """Return ln p(all members of cluster ``k``), parameters integrated out."""
    _undefined("log_marginal")


def clear(stats, k):
    """Make cluster ``k`` empty."""
    _undefined("clear")


def clear_members(stats, data, order, first, last, k):
    """Make cluster ``k``, which holds the data ``order[first:last]``, empty: work follows what it holds."""
    _undefined("clear_members")


def extend(stats, data, i, starts, n_clusters, out):
    """Write ln p(x_i | members of cluster k) to ``out[k]``, then add datum ``i`` to all clusters in use.

    Cluster k < ``n_clusters`` is in use when ``starts[k] >= 0``. What is not in use may change and has to be
    cleared before it is used again; its ``out[k]`` means nothing. Of the clusters in use only what
    predictives read stays right: they can be extended further and cleared, no more.
    """
    _undefined("extend")


def project(stats, data, i, direction):
    """Return the inner product of ``direction`` with datum ``i`` as a vector."""
    _undefined("project")


def add_vector(stats, data, i, weight, direction):
    """Add ``weight`` × datum ``i`` as a vector to ``direction``."""
    _undefined("add_vector")


def copy_cluster(stats, source, target):
    """Overwrite cluster ``target`` by cluster ``source``."""
    _undefined("copy_cluster")


def merge(stats, source, target):
    """Add all members of cluster ``source`` to cluster ``target``; ``source`` stays as it is."""
    _undefined("merge")


def fill(rng, stats, data, i, k):
    """Draw the missing cells of datum ``i``, which is in no cluster, given the members of cluster ``k``.

    For families that fill gaps in (:meth:`permix.families.base.Family.completed`), and no others.
    """
    _undefined("fill")


def draw(rng, stats, k, out):
    """Draw a new datum from the predictive of cluster ``k`` into the dense row ``out``."""
    _undefined("draw")


@kernel
def score_and_add(stats, data, i, starts, n_clusters, out):
    """:func:`extend` for families that have no faster way."""
    # Numba compiles what an implementation calls once more, but not what kernels call: so this is one.
    log_predictive(stats, data, i, n_clusters, out)
    for k in range(n_clusters):
        if starts[k] >= 0:
            add(stats, data, i, k)


# --- what serves where a family has nothing better ------------------------------------------------


def _log_predictive(stats, data, i, n_clusters, out):
    log_predictive(stats, data, i, n_clusters, out)


def _extend(stats, data, i, starts, n_clusters, out):
    score_and_add(stats, data, i, starts, n_clusters, out)


def _clear_all(stats, data, order, first, last, k):
    clear(stats, k)


def _project_row(stats, data, i, direction):
    total = 0.0
    for j in range(direction.shape[0]):
        total += direction[j] * data[i, j]
    return total


def _add_row(stats, data, i, weight, direction):
    for j in range(direction.shape[0]):
        direction[j] += weight * data[i, j]


DEFAULTS = {
    log_predictive_above: _log_predictive,
    extend: _extend,
    clear_members: _clear_all,
    project: _project_row,
    add_vector: _add_row,
}


def use_defaults(stats_class, *declared):
    """Implement functions of the contract as for any family: ``log_predictive_above`` by ``log_predictive``,
    ``extend`` by a score and an addition, ``clear_members`` by ``clear``, ``project`` and ``add_vector`` on
    rows of a table as they are.
    """
    for function in declared:
        implements(function, stats_class)(DEFAULTS[function])


# --- kernels that serve all families ---------------------------------------------------------------


@kernel
def seat_all(stats, data, labels, n_clusters):
    """Rebuild all statistics from labels (-1: in no cluster), free of the drift of incremental updates."""
    for k in range(n_clusters):
        clear(stats, k)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            add(stats, data, i, np.int64(labels[i]))


@kernel
def total_log_marginal(stats, n_clusters):
    """Return the sum of ln p(members) over clusters."""
    total = 0.0
    for k in range(n_clusters):
        total += log_marginal(stats, k)
    return total


@kernel
def score_new_data(stats, data, n_data, n_clusters, out):
    """Write ln p(x_i | cluster k) of data that are in no cluster to ``out[i, k]``."""
    for i in range(n_data):
        log_predictive(stats, data, i, n_clusters, out[i])


@kernel
def draw_many(rng, stats, clusters, out):
    """Draw one new datum from the predictive of each of the named clusters."""
    for i in range(clusters.shape[0]):
        draw(rng, stats, clusters[i], out[i])
