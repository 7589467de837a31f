# mypy: ignore-errors
"""Collapsed Gibbs sampling of a partition, compiled, for every family and every prior.

Neal (2000), algorithm 3: given all others, datum i joins cluster k with probability proportional to prior
weight × predictive of k, or opens one with prior weight of a new cluster × prior predictive.
Clusters are numbered 0 ... K-1 without gaps; when one dies the last takes its number.
"""

from __future__ import annotations

from permix.families.contract_jit import (
    add,
    clear,
    copy_cluster,
    log_predictive,
    log_predictive_without,
    remove,
)
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_overwrite
from permix.partitions.priors_jit import log_weight_existing, log_weight_new


@kernel
def conditional(prior, stats, data, empty_scores, labels, sizes, log_weights, n_clusters, i, out):
    """Write the log weights of datum ``i`` given all others; returns how many options there are.

    Option k < n_clusters is cluster k and option n_clusters is a new one. Datum i may still sit in its
    cluster: its own weight there is taken without it. Alone in cluster k, staying is opening a new one.
    """
    log_predictive(stats, data, i, n_clusters, out)
    for k in range(n_clusters):
        out[k] += log_weights[k]
    own = labels[i]
    if own >= 0:
        if sizes[own] == 1:
            out[own] = log_weight_new(prior, n_clusters - 1) + empty_scores[i]
            return n_clusters
        out[own] = log_weight_existing(prior, sizes[own] - 1) + log_predictive_without(stats, data, i, own)
    out[n_clusters] = log_weight_new(prior, n_clusters) + empty_scores[i]
    return n_clusters + 1


@kernel
def seat(prior, stats, data, labels, sizes, log_weights, n_clusters, i, k):
    """Put datum ``i`` into cluster ``k``, a new one when k == n_clusters; returns the number of clusters."""
    if k == n_clusters:
        clear(stats, k)
        sizes[k] = 0
        n_clusters += 1
    add(stats, data, i, k)
    labels[i] = k
    sizes[k] += 1
    log_weights[k] = log_weight_existing(prior, sizes[k])
    return n_clusters


@kernel
def unseat(prior, stats, data, labels, sizes, log_weights, n_clusters, i):
    """Take datum ``i`` out of its cluster; returns the number of clusters left.

    When the cluster dies, the last cluster takes its number.
    """
    k = labels[i]
    labels[i] = -1
    sizes[k] -= 1
    if sizes[k] > 0:
        remove(stats, data, i, k)
        log_weights[k] = log_weight_existing(prior, sizes[k])
        return n_clusters
    last = n_clusters - 1
    if k != last:
        copy_cluster(stats, last, k)
        sizes[k] = sizes[last]
        log_weights[k] = log_weights[last]
        for other in range(labels.shape[0]):
            if labels[other] == last:
                labels[other] = k
        sizes[last] = 0
    return last


@kernel
def gibbs_sweep(
    rng, prior, stats, data, empty_scores, labels, sizes, log_weights, scores, order, start, n_clusters
):
    """Visit data in ``order`` from ``start`` on; returns (next position, number of clusters, data moved).

    Stops early, before the next datum, when all slots are taken: the caller makes room and calls again.
    A position of -1 - i says that datum i has probability zero everywhere. Data labelled -1 are in no
    cluster yet; a sweep seats them, so a sweep over unseated data is sequential prediction.
    """
    capacity = sizes.shape[0]
    n_moved = 0
    for position in range(start, order.shape[0]):
        if n_clusters == capacity:
            return position, n_clusters, n_moved
        i = order[position]
        n_options = conditional(
            prior, stats, data, empty_scores, labels, sizes, log_weights, n_clusters, i, scores
        )
        chosen = categorical_log_overwrite(rng, scores, n_options)
        if chosen < 0:
            return -1 - i, n_clusters, n_moved
        own = labels[i]
        if chosen == own:
            continue
        n_moved += 1
        if own >= 0:
            before = n_clusters
            n_clusters = unseat(prior, stats, data, labels, sizes, log_weights, n_clusters, i)
            if n_clusters < before and chosen == n_clusters:
                chosen = own  # the chosen cluster was the last and took the number of the one that died
        n_clusters = seat(prior, stats, data, labels, sizes, log_weights, n_clusters, i, chosen)
    return order.shape[0], n_clusters, n_moved


@kernel
def count_members(prior, labels, sizes, log_weights, n_clusters):
    """Recompute cluster sizes and their prior weights from labels."""
    for k in range(sizes.shape[0]):
        sizes[k] = 0
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            sizes[labels[i]] += 1
    weigh_clusters(prior, sizes, log_weights, n_clusters)


@kernel
def weigh_clusters(prior, sizes, log_weights, n_clusters):
    """Recompute prior weights of joining from sizes."""
    for k in range(n_clusters):
        log_weights[k] = log_weight_existing(prior, sizes[k])
