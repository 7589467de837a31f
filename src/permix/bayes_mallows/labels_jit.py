# mypy: ignore-errors
"""Who is in which group, given the groups: many at once, or one after another.

``assign`` moves many at once. Some agents, drawn beforehand, are pinned; only groups with a pinned agent take
part, so that which groups there are does not depend on those who move. Given labels, shares of these groups
are Dirichlet(n_1 - d, n_2 - d, ...) for discount d (of all priors over partitions here), and given shares,
agents who are not pinned are independent.

``visit`` moves agents one after another, who may also open a group, whose center and decay are drawn from
the prior (Neal 2000, algorithm 8, with one such group; of an agent who is alone, it is that agent's own).
"""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.statistics_jit import distance_of
from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log
from permix.kernels.streams import categorical_log as stream_categorical_log
from permix.kernels.streams import new_stream, open_stream


@kernel
def assign(key, metric, table, members, centers, decays, log_shares, pinned, out, first, last):
    """Draw the groups of agents from ``first`` on; groups with a share of -inf take no part."""
    rankings, ranking_of, labels = members
    n_groups, n = log_shares.size, rankings.shape[1]
    scores, order, x = np.empty(n_groups), np.empty(n, np.int64), np.empty(n, np.int64)
    stream, known, offsets = new_stream(), -1, np.empty(n_groups)
    for k in range(n_groups):
        offsets[k] = log_shares[k] - table_value(table, LOG_Z, decays[k])
    for agent in range(first, last):
        out[agent] = labels[agent]
        if pinned[agent] or offsets[labels[agent]] == -np.inf:
            continue
        if ranking_of[agent] != known:
            known = ranking_of[agent]
            for k in range(n_groups):
                scores[k] = offsets[k]
                if offsets[k] > -np.inf:
                    scores[k] -= decays[k] * distance_of(metric, rankings[known], centers[k], order, x)
        open_stream(stream, key[0], key[1], 0, agent)
        out[agent] = stream_categorical_log(stream, scores, n_groups)


@kernel
def visit(
    rng,
    metric,
    table,
    members,
    visits,
    fresh,
    fresh_decays,
    joining,
    opening,
    sizes,
    centers,
    decays,
    n_groups,
):
    """Visit agents one after another; returns the number of groups and of those who changed theirs.

    ``centers`` and ``decays`` have room for a group more than there will ever be; a group that empties is
    replaced by the last.
    """
    rankings, ranking_of, labels = members
    n, moved = rankings.shape[1], 0
    order, x = np.empty(n, np.int64), np.empty(n, np.int64)
    log_norms, scores = np.empty(decays.size), np.empty(decays.size)
    for k in range(n_groups):
        log_norms[k] = table_value(table, LOG_Z, decays[k])
    for turn in range(visits.size):
        agent = visits[turn]
        old = labels[agent]
        sizes[old] -= 1
        alone = sizes[old] == 0
        others = n_groups - alone
        if alone:  # the agent's own group stands for a new one, and is the last
            last = n_groups - 1
            if old != last:
                for other in range(labels.size):
                    if labels[other] == last:
                        labels[other] = old
                sizes[old] = sizes[last]
                decays[old], decays[last] = decays[last], decays[old]
                log_norms[old], log_norms[last] = log_norms[last], log_norms[old]
                for item in range(n):
                    centers[old, item], centers[last, item] = centers[last, item], centers[old, item]
            labels[agent] = last
        else:
            for item in range(n):
                centers[others, item] = fresh[turn, item]
            decays[others] = fresh_decays[turn]
            log_norms[others] = table_value(table, LOG_Z, decays[others])
        before = labels[agent]
        ranks = rankings[ranking_of[agent]]
        for k in range(others + 1):
            scores[k] = joining[sizes[k]] if k < others else opening[others]
            if scores[k] > -np.inf:
                scores[k] -= decays[k] * distance_of(metric, ranks, centers[k], order, x) + log_norms[k]
        new = categorical_log(rng, scores, others + 1)
        if new == others:
            sizes[new] = 0
        sizes[new] += 1
        labels[agent] = new
        n_groups = others + (new == others)
        moved += new != before
    return n_groups, moved
