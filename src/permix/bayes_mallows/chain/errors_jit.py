# mypy: ignore-errors
"""How often comparisons are wrong, given full rankings: rates by slice sampling, of everybody or of each.

A comparison is wrong with log-odds -level - slope (g - 1), where g is how far apart its items are; slope is 0
under the Bernoulli model, whose rate 1 / (1 + e^level) has a Beta prior cut off at 1/2. Under the logistic
model level and slope are positive, with exponential priors.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel

# Beyond this, odds are as good as none.
MOST_ODDS = 40.0
NO_ERRORS, BERNOULLI, LOGISTIC = range(3)


@kernel
def log_one(gap, level, slope):
    """Return ln P(a comparison | its worse item is ``gap`` ranks below its better one)."""
    odds = level + slope * (abs(gap) - 1)
    return -math.log1p(math.exp(-odds)) - (odds if gap < 0 else 0.0)


@kernel
def log_said(pairs, first, last, ranks, level, slope):
    """Return ln P(comparisons | ranking), each wrong with log-odds -level - slope (how far apart - 1)."""
    total = 0.0
    for p in range(first, last):
        total += log_one(ranks[pairs[p, 1]] - ranks[pairs[p, 0]], level, slope)
    return total


@kernel
def swapped(ranks, item, a, b):
    """Return the rank of an item once a and b have changed places."""
    return ranks[b] if item == a else ranks[a] if item == b else ranks[item]


@kernel
def gain_of(pairs, begin, end, ranks, a, b, level, slope):
    """Return ln of how much more probable comparisons are if a and b change places."""
    total = 0.0
    for p in range(begin, end):
        better, worse = pairs[p, 0], pairs[p, 1]
        if better in (a, b) or worse in (a, b):
            before = ranks[worse] - ranks[better]
            after = swapped(ranks, worse, a, b) - swapped(ranks, better, a, b)
            if slope == 0.0:
                total += level * ((before < 0) - np.int64(after < 0))
            else:
                total += log_one(after, level, slope) - log_one(before, level, slope)
    return total


@kernel
def log_all_said(arrays, row_of, members, errors):
    """Return ln P(comparisons | rankings) of all agents."""
    rankings, ranking_of, _ = members
    total = 0.0
    for agent in range(row_of.size):
        first, last = arrays.pair_indptr[row_of[agent]], arrays.pair_indptr[row_of[agent] + 1]
        if last > first:
            mine = agent if errors.shape[0] > 1 else 0
            ranks = rankings[ranking_of[agent]]
            total += log_said(arrays.pairs, first, last, ranks, errors[mine, 0], errors[mine, 1])
    return total


@kernel
def log_density(kind, x, other, is_level, found, prior):
    """Return ln of the density of a rate (Bernoulli), or of a level or slope, up to a constant.

    ``found[g - 1]`` are how many comparisons of items g apart are right, and how many are wrong.
    """
    if kind == BERNOULLI:
        if x <= 0.0:
            return -np.inf
        right, wrong = 0.0, 0.0
        for g in range(found.shape[0]):
            right += found[g, 0]
            wrong += found[g, 1]
        return (prior[0] - 1.0 + wrong) * math.log(x) + (prior[1] - 1.0 + right) * math.log1p(-x)
    total = -prior[0 if is_level else 1] * x
    for g in range(found.shape[0]):
        if found[g, 0] + found[g, 1] > 0.0:
            odds = x + other * g if is_level else other + x * g
            total -= (found[g, 0] + found[g, 1]) * math.log1p(math.exp(-odds)) + found[g, 1] * odds
    return total


@kernel
def slice_within(rng, kind, x, most, other, is_level, found, prior):
    """Draw a number between 0 and ``most`` anew, once, by shrinking from all of that."""
    level = log_density(kind, x, other, is_level, found, prior) - rng.standard_exponential()
    low, high = 0.0, most
    while True:
        new = low + (high - low) * rng.random()
        if log_density(kind, new, other, is_level, found, prior) > level:
            return new
        if new < x:
            low = new
        else:
            high = new
        if high - low < 1e-15 * most:
            return x


@kernel
def count_errors(pairs, first, last, ranks, found):
    """Add to ``found`` which comparisons of a row are right and wrong, by how far apart."""
    for p in range(first, last):
        gap = ranks[pairs[p, 1]] - ranks[pairs[p, 0]]
        found[abs(gap) - 1, 1 if gap < 0 else 0] += 1.0


@kernel
def update_errors(rng, kind, arrays, row_of, members, prior, rounds, errors):
    """Draw the parameters of errors anew; those of each agent where ``errors`` has a row for each."""
    rankings, ranking_of, _ = members
    found = np.zeros((rankings.shape[1] - 1, 2))
    each = errors.shape[0] > 1
    for agent in range(row_of.size):
        row = row_of[agent]
        first, last = arrays.pair_indptr[row], arrays.pair_indptr[row + 1]
        count_errors(arrays.pairs, first, last, rankings[ranking_of[agent]], found)
        if not each and agent + 1 < row_of.size:
            continue
        mine = agent if each else 0
        for _ in range(rounds):
            if kind == BERNOULLI:
                rate = 1.0 / (1.0 + math.exp(errors[mine, 0]))
                rate = slice_within(rng, kind, rate, 0.5, 0.0, True, found, prior)
                errors[mine, 0] = min(math.log1p(-rate) - math.log(rate), MOST_ODDS)
            else:
                for which in range(2):
                    errors[mine, which] = slice_within(
                        rng,
                        kind,
                        errors[mine, which],
                        MOST_ODDS,
                        errors[mine, 1 - which],
                        which == 0,
                        found,
                        prior,
                    )
        for g in range(found.shape[0]):
            found[g, 0] = 0.0
            found[g, 1] = 0.0
