# mypy: ignore-errors
"""Collapsed Gibbs sampling of a partition, compiled for each family.

Neal (2000), algorithm 3: given all others, datum i joins cluster k with probability proportional to prior
weight × predictive of k, or opens one with prior weight of a new cluster × prior predictive.
Clusters are numbered 0 ... K-1 without gaps; when one dies the last takes its number. The prior comes as
tables: ``joining[m]`` is the log weight of joining a cluster of m, ``opening[K]`` of opening one beside K.
"""

from __future__ import annotations

import numpy as np

from permix.families.contract_jit import (
    add,
    clear,
    copy_cluster,
    log_predictive_above,
    log_predictive_without,
    remove,
)
from permix.kernels.jit import inlined, kernel
from permix.kernels.random import NEGLIGIBLE, categorical_log_overwrite


@inlined
def conditional(joining, opening, stats, data, empty_scores, labels, sizes, n_clusters, i, out):
    """Write the log weights of datum ``i`` given all others; returns how many options there are.

    Option k < n_clusters is cluster k and option n_clusters is a new one. Datum i may still sit in its
    cluster: its own weight there is taken without it. Alone in cluster k, staying is opening a new one.
    """
    own = np.int64(labels[i])
    alone = own >= 0 and sizes[own] == 1
    n_options = n_clusters if alone else n_clusters + 1
    at_new = opening[n_options - 1] + empty_scores[i]
    at_own = at_new
    if own >= 0 and not alone:
        at_own = joining[sizes[own] - 1] + log_predictive_without(stats, data, i, own)
    # What is less than e^-40 of these is never drawn.
    floor = max(at_own, at_new) - NEGLIGIBLE
    for k in range(n_clusters):
        out[k] = np.inf if k == own else floor - joining[sizes[k]]
    log_predictive_above(stats, data, i, n_clusters, out)
    for k in range(n_clusters):
        out[k] += joining[sizes[k]]
    if own >= 0:
        out[own] = at_own
    if not alone:
        out[n_clusters] = at_new
    return n_options


@inlined
def take_out(stats, data, labels, sizes, i, own, chosen, n_clusters):
    """Take datum i out of its cluster, if it has one, and open the chosen one, if that is new.

    Returns the number of clusters and that of the chosen one: when a cluster dies, the last takes its number.
    """
    if own >= 0:
        sizes[own] -= 1
        if sizes[own] > 0:
            remove(stats, data, i, own)
        else:
            n_clusters -= 1
            if own != n_clusters:
                copy_cluster(stats, n_clusters, own)
                sizes[own] = sizes[n_clusters]
                sizes[n_clusters] = 0
                for other in range(labels.shape[0]):
                    if labels[other] == n_clusters:
                        labels[other] = own
                if chosen == n_clusters:
                    chosen = own
    if chosen == n_clusters:
        clear(stats, chosen)
        sizes[chosen] = 0
        n_clusters += 1
    return n_clusters, chosen


@kernel
def gibbs_sweep(
    rng, joining, opening, stats, data, empty_scores, labels, sizes, scores, order, start, n_clusters
):
    """Visit data in ``order`` from ``start`` on; returns (next position, number of clusters, data moved).

    Stops early, before the next datum, when all slots are taken: the caller makes room and calls again.
    A position of -1 - i says that datum i has probability zero everywhere. Data labeled -1 are in no
    cluster yet; a sweep seats them, so a sweep over unseated data is sequential prediction.
    """
    n_moved = 0
    for position in range(start, order.shape[0]):
        if n_clusters == sizes.shape[0]:
            return position, n_clusters, n_moved
        i = order[position]
        n_options = conditional(
            joining, opening, stats, data, empty_scores, labels, sizes, n_clusters, i, scores
        )
        chosen = categorical_log_overwrite(rng, scores, n_options)
        if chosen < 0:
            return -1 - i, n_clusters, n_moved
        own = np.int64(labels[i])
        if chosen == own:
            continue
        n_moved += 1
        n_clusters, chosen = take_out(stats, data, labels, sizes, i, own, chosen, n_clusters)
        add(stats, data, i, chosen)
        labels[i] = chosen
        sizes[chosen] += 1
    return order.shape[0], n_clusters, n_moved
