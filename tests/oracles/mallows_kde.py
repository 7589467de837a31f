"""The density estimator of Lu & Boutilier's section 6, straight from equation 34, by enumeration.

A row is a transitively closed set of pairs (better, worse) over 0..m-1, as in ``posets_all``.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np

from tests.oracles.posets_all import linear_extensions
from tests.reference.permutations import kendall


@cache
def _distances(m):
    """All orderings of m items and the Kendall distances between them."""
    orders = list(permutations(range(m)))
    number = {order: i for i, order in enumerate(orders)}
    return number, np.array([[kendall(a, b) for b in orders] for a in orders])


def _numbers(relation, m):
    number = _distances(m)[0]
    return [number[order] for order in linear_extensions(relation, m)]


def density_table(training, queries, m, dispersion):
    """P(query | row) of every query (rows of the table) and every training row (columns)."""
    weights = float(dispersion) ** _distances(m)[1]
    weights /= weights[0].sum()
    uniform = np.zeros((len(weights), len(training)))
    for column, relation in enumerate(training):
        extensions = _numbers(relation, m)
        uniform[extensions, column] = 1.0 / len(extensions)
    around = weights @ uniform
    return np.array([around[_numbers(relation, m)].sum(axis=0) for relation in queries])


def density(training, counts, queries, m, dispersion):
    """Equation 34: p(v) of every query, rows weighted by their counts."""
    counts = np.asarray(counts, float)
    return density_table(training, queries, m, dispersion) @ (counts / counts.sum())


def left_out(training, counts, m, dispersion):
    """p(v) of every training row under the estimator from all agents but one of those who gave it."""
    table = density_table(training, training, m, dispersion)
    weights = np.asarray(counts, float) - np.eye(len(counts))  # less one agent of the row itself
    return (table * weights).sum(axis=1) / weights.sum(axis=1)


# Broken twins: each forgets something that only some data show.


def without_extensions(training, counts, queries, m, dispersion):
    """Weigh training rows by the number of rankings that agree with them: |Ω(v_l)| left out."""
    sizes = np.array([len(_numbers(relation, m)) for relation in training], float)
    counts = np.asarray(counts, float) * sizes
    return density_table(training, queries, m, dispersion) @ (counts / counts.sum())


def half_ties(training, counts, queries, m, dispersion):
    """Put φ^(distance of the partial rankings) in place of the sum; a tie in one of them counts 1/2."""
    weights = np.empty((len(queries), len(training)))
    for i, query in enumerate(queries):
        for j, row in enumerate(training):
            distance = 0.0
            for a in range(m):
                for b in range(a):
                    first = ((a, b) in query) - ((b, a) in query)
                    second = ((a, b) in row) - ((b, a) in row)
                    distance += 1.0 if first * second < 0 else 0.5 * (first != second)
            weights[i, j] = float(dispersion) ** distance
    total = (float(dispersion) ** _distances(m)[1][0]).sum()
    counts = np.asarray(counts, float)
    return weights @ (counts / counts.sum()) / total


def whole_row_left_out(training, counts, m, dispersion):
    """Leave out all agents who gave a row instead of one of them."""
    table = density_table(training, training, m, dispersion)
    weights = np.asarray(counts, float) * (1.0 - np.eye(len(counts)))
    return (table * weights).sum(axis=1) / weights.sum(axis=1)


# The closed form for rows that partition all items, by sets and loops: plain and slow, for many items.


def log_density_of_blocks(training, query, decay):
    """ln P(query | training row), both lists of blocks (sets of items), best first."""
    m = sum(len(block) for block in training)
    place = {item: i for i, block in enumerate(training) for item in block}
    pairs = combinations(range(len(query)), 2)
    discordant = sum(place[x] > place[y] for i, j in pairs for x in query[i] for y in query[j])

    # ln Z of so many items: a sum over insertions, each over the places that it may go to.
    log_z = np.concatenate([[0.0], np.cumsum(np.log(np.cumsum(np.exp(-decay * np.arange(m)))))])
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])

    def gain(n):
        return log_factorial[n] - log_z[n]

    value = -decay * discordant - sum(gain(len(block)) for block in training)
    value += sum(gain(len(a & b)) for a in training for b in query)
    return value + sum(log_z[len(block)] for block in query) - log_z[m]
