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
from permix.kernels.mallows import displacement_moments, log_normalizer_step


@kernel
def log_normalizer_table(decays, n):
    """Return ln Z over 0, 1, …, n items, a row for every λ."""
    table = np.zeros((decays.size, n + 1))
    for k in range(decays.size):
        for size in range(2, n + 1):
            table[k, size] = table[k, size - 1] + log_normalizer_step(decays[k], size)
    return table


@kernel
def block_sizes(arrays, rows, n, indptr, sizes):
    """List the sizes of levels with two items or more; a level of one has ln Z = 0.

    With ``sizes`` of length 0 only ``indptr`` is filled.
    """
    indptr[0] = 0
    filled = 0
    for at in range(rows.size):
        i = rows[at]
        begin, end = arrays.level_indptr[i], arrays.level_indptr[i + 1]
        p = begin
        while p < end:
            q = p
            while q < end and arrays.levels[q] == arrays.levels[p]:
                q += 1
            if q - p > 1:
                if sizes.size > 0:
                    sizes[filled] = q - p
                filled += 1
            p = q
        rest = n - (end - begin)
        if rest > 1:
            if sizes.size > 0:
                sizes[filled] = rest
            filled += 1
        indptr[at + 1] = filled


@kernel
def partition_log_probabilities(first, last, distances, indptr, sizes, decays, table, out):
    """Set out[at, k] = ln P(v | σ_k, φ_k) for rows first..last-1, given their disagreements D."""
    n = table.shape[1] - 1
    for at in range(first, last):
        for k in range(decays.size):
            total = -table[k, n]
            for b in range(indptr[at], indptr[at + 1]):
                total += table[k, sizes[b]]
            if distances[at, k] > 0:  # 0 · inf is no number
                total -= decays[k] * distances[at, k]
            out[at, k] = total


@kernel
def weigh_blocks(indptr, sizes, weights, totals):
    """Add the weight of each row to ``totals`` at the sizes of its blocks."""
    for at in range(weights.size):
        for b in range(indptr[at], indptr[at + 1]):
            totals[sizes[b]] += weights[at]


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
def best_decay(distance, n_rankings, blocks, most):
    """Return the λ in [0, most] of greatest likelihood.

    Parameters
    ----------
    distance : float
        Total of disagreements with the center.
    n_rankings : float
        Their total weight.
    blocks : float array (m + 1,)
        Total weight of blocks of each size; all 0 for full rankings.
    most : float
    """
    if _excess(0.0, distance, n_rankings, blocks)[0] <= 0.0:
        return 0.0
    if _excess(most, distance, n_rankings, blocks)[0] >= 0.0:
        return most
    low, high = 0.0, most
    decay = 0.5 * most
    for _ in range(200):
        excess, slope = _excess(decay, distance, n_rankings, blocks)
        if excess > 0.0:
            low = decay
        else:
            high = decay
        proposed = 0.5 * (low + high)
        # Newton on the logarithm of the expected distance, which is nearly linear in λ.
        expected = excess + distance
        if slope > 0.0 and expected > 0.0 and distance > 0.0:
            newton = decay + (np.log(expected) - np.log(distance)) * expected / slope
            if low < newton < high:
                proposed = newton
        if abs(proposed - decay) <= 4e-16 * decay or high - low <= 4e-16 * high:
            return proposed
        decay = proposed
    return decay


@kernel
def weak_order(arrays, agent, ranks, level):
    """Say whether an agent's pairs put all items into levels; if so ``level`` holds the level of each item.

    In any partial order a ≻ b means that fewer are above a than above b; in a weak order also conversely.
    ``ranks`` is any rank vector over the items.
    """
    n = level.size
    steps, _, above = relation_bits(arrays, agent, ranks)
    if steps.size < n:
        return False
    n_above = np.zeros(n, np.int64)
    related = 0
    for c in range(n):
        for word in range(above.shape[1]):
            n_above[c] += popcount(above[c, word])
        related += n_above[c]
    tally = np.zeros(n + 1, np.int64)
    for c in range(n):
        tally[n_above[c]] += 1
    passed = 0
    ordered = 0
    number = np.full(n + 1, -1, np.int64)
    n_levels = 0
    for count in range(n):
        if tally[count] > 0:
            ordered += passed * tally[count]
            passed += tally[count]
            number[count] = n_levels
            n_levels += 1
    if ordered != related or n_levels < 2:
        return False
    item_at = np.empty(n, np.int64)
    for item in range(n):
        item_at[ranks[item]] = item
    for c in range(n):
        level[item_at[steps[c]]] = number[n_above[c]]
    return True


@kernel
def weak_orders(first, last, arrays, agents, ranks, levels, found):
    """Decide :func:`weak_order` for agents[first..last-1]; cheap where it cannot be.

    In a weak order whose unlisted items are not all alike, every one of them is compared with another.
    """
    n = ranks.size
    stamp = np.full(n, -1, np.int64)
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
        rest = n - (end - begin)
        if touched == rest or (touched == 0 and arrays.rest_below[i]):
            found[at] = weak_order(arrays, i, ranks, levels[at])
