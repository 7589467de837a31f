# mypy: ignore-errors
"""Mallows models and preferences that partition all items: everything in closed form.

Let v put all m items into levels of sizes s_1, s_2, …, one above the other. A ranking agrees with v when its
levels stand in this order; within a level any order will do. Its Kendall distance from σ is the number of
pairs between levels that σ reverses, D, plus the distances within levels, and these sums factor:

    P(v | σ, φ) = φ^D Π_b Z(s_b) / Z(m),    Z(n) = Π_{i ≤ n} (1 + φ + … + φ^(i-1)).

So EM needs no completion of such rankings: given responsibilities γ, σ is a Kemeny ranking of the stated
pairs weighted by γ, and the derivative in λ = -ln φ is N E_m(λ) - Σ_b γ E_{s_b}(λ) - D, with E_n the expected
distance over n items (the logarithm of a q-multinomial coefficient is convex in λ, so there is one root).
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.amp_plans_jit import relation_bits
from permix.kernels.bits import popcount
from permix.kernels.jit import kernel
from permix.kernels.mallows import displacement_moments


@kernel
def _excess(decay, distance, n_rankings, blocks):
    """Expected minus given distance, and minus its derivative, at this λ."""
    mean, variance = 0.0, 0.0
    excess, slope = -distance, 0.0
    for size in range(2, blocks.size):
        step_mean, step_variance = displacement_moments(decay, size)
        mean += step_mean
        variance += step_variance
        excess -= blocks[size] * mean
        slope -= blocks[size] * variance
    return excess + n_rankings * mean, slope + n_rankings * variance


@kernel
def best_decay(distance, n_rankings, blocks, most, decay):
    """Return the λ in [0, most] of greatest likelihood; ``decay`` is where the search begins.

    ``distance`` is the total of disagreements with the center and ``n_rankings`` their total weight;
    ``blocks`` (m + 1,) is the total weight of blocks of each size, all 0 for full rankings.
    """
    n = blocks.size - 1
    at_zero = n_rankings * n * (n - 1)
    for size in range(2, n + 1):
        at_zero -= blocks[size] * size * (size - 1)
    if 0.25 * at_zero <= distance:
        return 0.0
    low, high = 0.0, 2.0 * most
    if not 0.0 < decay < most:
        decay = 0.5 * most
    for _ in range(200):
        excess, slope = _excess(decay, distance, n_rankings, blocks)
        if excess >= 0.0:
            low = decay
        else:
            high = decay
        if low == most:
            return most
        proposed = min(0.5 * (low + high), most)
        # Newton on the logarithm of the expected distance, which is nearly linear in λ.
        expected = excess + distance
        if slope > 0.0 and expected > 0.0 and distance > 0.0:
            newton = min(decay + (np.log(expected) - np.log(distance)) * expected / slope, most)
            if low < newton < high:
                proposed = newton
                # The step after this one would be the square of it.
                if abs(newton - decay) <= 1e-7 * decay:
                    return newton
        if abs(proposed - decay) <= 4e-16 * decay or high - low <= 4e-16 * high:
            return proposed
        decay = proposed
    return decay


@kernel
def weak_orders(first, last, arrays, agents, levels, found):
    """Say whether the pairs of agents[first..last-1] put all items into levels, and find these ``levels``.

    In any partial order a ≻ b means that fewer are above a than above b; in a weak order also conversely.
    Cheap where it cannot be: in a weak order whose unlisted items are not all alike, every one of them is
    compared with another.
    """
    n = levels.shape[1]
    stamp = np.full(n, -1, np.int64)
    ranks = np.arange(n)
    for at in range(first, last):
        i = agents[at]
        begin, end = arrays.level_indptr[i], arrays.level_indptr[i + 1]
        for p in range(begin, end):
            stamp[arrays.level_items[p]] = at
        touched = 0
        for p in range(arrays.pair_indptr[i], arrays.pair_indptr[i + 1]):
            for side in range(2):
                item = arrays.pairs[p, side]
                if stamp[item] != at:
                    stamp[item] = at
                    touched += 1
        if touched != n - (end - begin) and (touched > 0 or not arrays.rest_below[i]):
            continue
        items, _, above = relation_bits(arrays, i, ranks)
        if items.size < n:
            continue
        n_above = np.zeros(n, np.int64)
        tally = np.zeros(n, np.int64)
        for x in range(n):
            for word in range(above.shape[1]):
                n_above[x] += popcount(above[x, word])
            tally[n_above[x]] += 1
        passed, ordered, n_levels = 0, 0, 0
        number = np.zeros(n, np.int64)
        for count in range(n):
            number[count] = n_levels
            ordered += passed * tally[count]
            passed += tally[count]
            n_levels += tally[count] > 0
        found[at] = ordered == n_above.sum() and n_levels > 1
        for x in range(n):
            levels[at, x] = number[n_above[x]]
