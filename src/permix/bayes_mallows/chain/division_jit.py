# mypy: ignore-errors
"""How a group may be divided in two, with centers and decays of its own, and how probable that is.

Two agents are anchors (Jain & Neal 2007). From their rankings, and whoever else is in the pool, a few rounds
of assigning members and drawing centers lead to where two groups would be: the launch. It does not depend on
how the pool is divided at present. Given the launch each member goes to a side independently, and given its
members a group is proposed: its center item by item, each put among those before it by what the members say
of pairs, its decay around its most probable value. Each of these has a known probability, in both directions.
"""

from __future__ import annotations

import math

import numpy as np

from permix.bayes_mallows.chain.decays_jit import LEAST, MOST, log_decay_density
from permix.bayes_mallows.chain.places_jit import order_of
from permix.bayes_mallows.chain.statistics_jit import add_ranking, distance_of
from permix.distributions.distances.table_jit import LOG_Z, MEAN, VARIANCE, table_value
from permix.kernels.distances import KENDALL
from permix.kernels.jit import kernel
from permix.kernels.mallows import dispersion_from_mean

ROUNDS = 4
# So near to the most probable ln decay one may end.
NEAR = 1e-12


@kernel
def count_pairs(members, pool, side, which, counts):
    """Count who puts what before what on a side; returns how many agents are there."""
    rankings, ranking_of, _ = members
    n, size = rankings.shape[1], 0
    order = np.empty(n, np.int64)
    counts[:] = 0.0
    times = 0
    for at in range(pool.size):
        if which == 0 or side[at] == which:
            times += 1
            size += 1
        if times and (at + 1 == pool.size or ranking_of[pool[at + 1]] != ranking_of[pool[at]]):
            add_ranking(KENDALL, rankings[ranking_of[pool[at]]], times, order, counts)
            times = 0
    return size


@kernel
def pair_decay(counts, size, order):
    """Return the decay of Kendall's distance that suits the members, were this their center.

    As if one more member were anywhere. Other distances take it too: it is how surely pairs are put one way.
    """
    n = order.size
    total = n * (n - 1) / 4.0
    for place in range(n):
        for after in range(place + 1, n):
            total += counts[order[place], order[after]]
    return dispersion_from_mean(total / (size + 1.0), n)


@kernel
def propose_center(rng, counts, size, draw, ranks):
    """Draw a center for members, or weigh the one given; returns ln of its probability."""
    n = ranks.size
    base = np.argsort(counts.sum(axis=1))  # by mean rank
    decay = pair_decay(counts, size, base)
    order, weights, log_q = np.empty(n, np.int64), np.empty(n), 0.0
    for m in range(n):
        item = base[m]
        weights[0] = 0.0
        for place in range(m):  # from before the item there to after it
            other = order[place]
            weights[place + 1] = weights[place] + decay * (counts[other, item] - counts[item, other])
        least = weights[: m + 1].min()
        total = np.exp(least - weights[: m + 1]).sum()
        new = 0
        if draw:
            target = rng.random() * total
            while new < m:
                target -= math.exp(least - weights[new])
                if target < 0.0:
                    break
                new += 1
        else:
            while new < m and ranks[order[new]] < ranks[item]:
                new += 1
        log_q += least - weights[new] - math.log(total)
        for place in range(m, new, -1):
            order[place] = order[place - 1]
        order[new] = item
    if draw:
        for place in range(n):
            ranks[order[place]] = place
    return log_q


@kernel
def likely_decay(total, size, prior, table):
    """Return the most probable ln decay, and about how uncertain it is: Newton's steps within bounds."""
    low, high, t, spread = LEAST, MOST, 0.0, 0.0
    for _ in range(60):
        decay = math.exp(t)
        rise = (prior.rate + total - size * table_value(table, MEAN, decay)) * decay
        spread = size * decay * decay * table_value(table, VARIANCE, decay)
        if prior.shape > rise:
            low = t
        else:
            high = t
        new = t + (prior.shape - rise) / (rise + spread) if rise + spread > 0.0 else MOST
        if abs(new - t) < NEAR or high - low < NEAR:
            break
        t = new if low < new < high else 0.5 * (low + high)
    return t, 1.0 / math.sqrt(prior.shape + spread)


@kernel
def write_distances(metric, members, pool, center, distances):
    """Write how far each agent of a pool is from a center."""
    rankings, ranking_of, _ = members
    order, x = np.empty(center.size, np.int64), np.empty(center.size, np.int64)
    for at in range(pool.size):
        if at > 0 and ranking_of[pool[at]] == ranking_of[pool[at - 1]]:
            distances[at] = distances[at - 1]
        else:
            distances[at] = distance_of(metric, rankings[ranking_of[pool[at]]], center, order, x)


@kernel
def total_of(side, which, distances):
    """Return the sum of distances on a side; 0 for both."""
    total = 0.0
    for at in range(side.size):
        if which == 0 or side[at] == which:
            total += distances[at]
    return total


@kernel
def propose_group(rng, metric, table, prior, members, pool, side, which, draw, centers, decays, counts, far):
    """Draw center and decay of a side, or weigh those given.

    Returns ln of p(group, rankings of its members) / proposal, where the prior of centers lacks its norm.
    """
    size = count_pairs(members, pool, side, which, counts)
    log_q = propose_center(rng, counts, size, draw, centers[which])
    write_distances(metric, members, pool, centers[which], far)
    total = total_of(side, which, far)
    middle, spread = likely_decay(total, size, prior, table)
    scale = spread * math.sqrt(3.0) / math.pi
    if draw:
        u = rng.random()
        t = middle + scale * math.log((u + 1e-300) / (1.0 - u))
        if not LEAST < t < MOST:
            decays[which] = math.exp(middle)
            return -np.inf
        decays[which] = math.exp(t)
    z = abs(math.log(decays[which]) - middle) / scale
    log_q -= z + math.log(scale) + 2.0 * math.log1p(math.exp(-z))
    value = log_decay_density(math.log(decays[which]), total, size, prior.shape, prior.rate, table)
    value += prior.shape * math.log(prior.rate) - math.lgamma(prior.shape)
    if prior.center_decay > 0.0:
        order, x = np.empty(centers.shape[1], np.int64), np.empty(centers.shape[1], np.int64)
        value -= prior.center_decay * distance_of(metric, centers[which], prior.center, order, x)
    return value - log_q


@kernel
def allocate(rng, table, pool, anchors, sizes, decays, far, draw, side):
    """Give each agent of a pool a side, or weigh the sides given; returns ln of the probability.

    ``far`` are distances from both centers, ``sizes`` and ``decays`` of both groups.
    """
    log_q = 0.0
    odds = math.log(sizes[1] / sizes[2])
    odds -= table_value(table, LOG_Z, decays[1]) - table_value(table, LOG_Z, decays[2])
    for at in range(pool.size):
        if pool[at] == anchors[0]:
            side[at] = 1
            continue
        if pool[at] == anchors[1]:
            side[at] = 2
            continue
        gain = odds - decays[1] * far[1, at] + decays[2] * far[2, at]
        if draw:
            side[at] = 1 if rng.random() * (1.0 + math.exp(-gain)) < 1.0 else 2
        if side[at] == 2:
            gain = -gain
        log_q -= max(-gain, 0.0) + math.log1p(math.exp(-abs(gain)))
    return log_q


@kernel
def divide(rng, metric, table, prior, members, pool, anchors, splitting, side, centers, decays):
    """Propose to divide the group of a pool, or to join two; returns ln p / q of two groups over one.

    Rows 1 and 2 of ``centers`` and ``decays`` are the two, row 0 is the one; ``side`` says who is in which.
    Of these, what is to be proposed is written, and the other is taken as it is.
    """
    n, rankings, ranking_of = centers.shape[1], members[0], members[1]
    counts, far = np.empty((n, n)), np.empty((3, pool.size))
    ones, sizes = np.ones(pool.size, np.int8), np.empty(3)
    launch, around, launched = np.empty((3, n), np.int32), np.empty(3), np.empty(pool.size, np.int8)
    count_pairs(members, pool, ones, 0, counts)
    order_of(np.argsort(counts.sum(axis=1)), launch[0])
    write_distances(metric, members, pool, launch[0], far[0])
    around[:] = math.exp(likely_decay(far[0].sum(), pool.size, prior, table)[0])
    sizes[:] = 1.0
    for which in range(1, 3):
        launch[which] = rankings[ranking_of[anchors[which - 1]]]
        write_distances(metric, members, pool, launch[which], far[which])
    for _ in range(ROUNDS):
        allocate(rng, table, pool, anchors, sizes, around, far, True, launched)
        for which in range(1, 3):
            sizes[which] = count_pairs(members, pool, launched, which, counts)
            propose_center(rng, counts, sizes[which], True, launch[which])
            write_distances(metric, members, pool, launch[which], far[which])
            total = total_of(launched, which, far[which])
            around[which] = math.exp(likely_decay(total, sizes[which], prior, table)[0])
    log_ratio = -allocate(rng, table, pool, anchors, sizes, around, far, splitting, side)
    given = (metric, table, prior, members, pool, side)
    for which in range(1, 3):
        log_ratio += propose_group(rng, *given, which, splitting, centers, decays, counts, far[which])
    return log_ratio - propose_group(rng, *given, 0, not splitting, centers, decays, counts, far[0])
