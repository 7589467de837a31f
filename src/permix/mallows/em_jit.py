# mypy: ignore-errors
"""EM in compiled code: the E-step for rows as words of their pairs, and the M-step for any tournaments.

What a component gives a row depends on the row's code alone, so that the E-step reads tables and takes one
logarithm for many rows. Weighted counts of "a before b" come from bytes of the words: one addition for eight
pairs.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.partitioned_jit import best_decay
from permix.kernels.jit import kernel
from permix.kernels.kemeny_search import improve_by_insertion, order_score

# Rows of a block. Blocks are added up in their order, so that threads change nothing.
ROWS = 1 << 16
# Products of probabilities are kept above this.
LEAST = 1e-250
# Shares of components below this change nothing.
NEGLIGIBLE = 1e-15
# Below this share of the log-likelihood a gain may be rounding error.
ROUNDING = 1e-11
# Rows that stand for many agents: so many draws at most.
MOST_DRAWS = 16


@kernel
def share_out(first, last, rows, codes, logs, chances, uniforms, look, shares, scale, mass, tallies, totals):
    """E-step for blocks of rows from ``first`` to ``last``; with uniforms rows are drawn, else shared out.

    ``logs`` and ``chances`` (K, codes) are ln π_k P(row | k) and its exponential. Adds to ``mass[block]``
    (K, codes) the weight of rows of each code, to ``tallies[block]`` (K, bytes, 256), where ``look``, that of
    rows with each value of a byte, and sets ``totals[block]``, the log-likelihood. The rest is scratch.
    """
    drawn = uniforms.size > 0
    n_components, n_rows = codes.shape
    n_bytes = rows[0].shape[0]
    for block in range(first, last):
        begin = block * ROWS
        end = min(n_rows, begin + ROWS)
        # Slices, so that rows are counted from 0: numbers that might be negative cost a third of the time.
        counts, scales = rows[1][begin:end], scale[begin:end]
        for i in range(counts.size):
            scales[i] = 0.0
        for k in range(n_components):
            chance, code, mine = chances[k], codes[k, begin:end], shares[k, begin:end]
            for i in range(counts.size):
                mine[i] = chance[code[i]]
                scales[i] += mine[i]
        value, product = 0.0, 1.0
        for i in range(counts.size):
            total, count = scales[i], counts[i]
            if total < LEAST:
                largest = -np.inf
                for k in range(n_components):
                    largest = max(largest, logs[k, codes[k, begin + i]])
                total = 0.0
                for k in range(n_components):
                    shares[k, begin + i] = np.exp(logs[k, codes[k, begin + i]] - largest)
                    total += shares[k, begin + i]
                value += count * largest
            if count != 1.0:
                value += count * np.log(total)
            else:
                if product * total < LEAST:
                    value += np.log(product)
                    product = 1.0
                product *= total
            scales[i] = count / total
            if not drawn:
                continue
            # Points at equal distances, one for each draw, the first by the uniform.
            n_draws = np.int64(min(count, MOST_DRAWS))
            for draw in range(n_draws):
                point = (uniforms[begin + i] + draw) / n_draws * total
                chosen, reached = 0, 0.0
                for k in range(n_components - 1):
                    reached += shares[k, begin + i]
                    chosen += point >= reached
                mass[block, chosen, codes[chosen, begin + i]] += count / n_draws
                for byte in range(n_bytes):
                    tallies[block, chosen, byte, rows[0][byte, begin + i]] += count / n_draws
        for k in range(n_components):
            if not drawn:
                mine, code, given = shares[k, begin:end], codes[k, begin:end], mass[block, k]
                for i in range(counts.size):
                    mine[i] *= scales[i]
                    given[code[i]] += mine[i]
                if look:
                    for byte in range(n_bytes):
                        tally, column = tallies[block, k, byte], rows[0][byte, begin:end]
                        for i in range(counts.size):
                            tally[column[i]] += mine[i]
        totals[block] = value + np.log(product)


@kernel
def neighbor_gain(rows, ties, weights, center, place, decay):
    """Return by how much the log-likelihood rises if the items at ``place`` and after it change places.

    ``weights`` are P(component | row) times the agents of the row; ``ties`` says whether rows have bits for
    both ways round of a pair; without, all are full rankings (``exchanges``).
    """
    columns, counts = rows
    n = center.size
    first, second = np.int64(center[place]), np.int64(center[place + 1])
    low, high = min(first, second), max(first, second)
    bit = low * (2 * n - low - 1) // 2 + high - low - 1
    mask = np.uint8(1 << (bit & 7))
    ahead, behind = columns[bit >> 3], columns[(bit >> 3) + (columns.shape[0] // 2 if ties else 0)]
    of_ahead, of_behind = np.expm1(-decay), np.expm1(decay)
    if first > second:
        of_ahead, of_behind = of_behind, of_ahead
    # A logarithm of many factors at once: each is between φ and 1/φ.
    most = np.int64(min(1024.0, 500.0 / max(decay, 0.1)))
    gain, product, n_factors = 0.0, 1.0, 0
    for i in range(counts.size):
        if ahead[i] & mask:
            change = of_ahead
        elif not ties or behind[i] & mask:
            change = of_behind
        else:
            continue
        factor = 1.0 + weights[i] / counts[i] * change
        if counts[i] != 1.0:
            gain += counts[i] * np.log(factor)
            continue
        product *= factor
        n_factors += 1
        if n_factors >= most:
            gain += np.log(product)
            product, n_factors = 1.0, 0
    return gain + np.log(product)


@kernel
def maximize(rankings, wins, blocks, against, look, most, centers, decays, net, orders):
    """M-step for centers, where ``look``, and dispersions (theorem 23); components without rankings stay.

    Centers are searched from where they are and from Borda's order, so that none ends behind its start.
    ``net`` (m + 1, m + 1) and ``orders`` (2, m) are scratch.
    """
    n_components, n = centers.shape
    lead = net[n]
    for k in range(n_components):
        if rankings[k] <= 0.0:
            continue
        distance = against[k]
        if look:
            mine = wins[k]
            largest = 1.0
            for i in range(n):
                lead[i] = 0.0
                for j in range(n):
                    net[i, j] = mine[i, j] - mine[j, i]
                    lead[i] += net[i, j]
                    largest = max(largest, mine[i, j])
                place = i  # sorted by lead, the first of equals first
                while place > 0 and lead[orders[1, place - 1]] < lead[i]:
                    orders[1, place] = orders[1, place - 1]
                    place -= 1
                orders[1, place] = i
                orders[0, i] = centers[k, i]
            distance = np.inf
            for start in range(2):
                improve_by_insertion(net, orders[start], 1e-9 * largest)
                score = order_score(mine, orders[start])
                if score < distance - 1e-9 * largest:
                    distance = score
                    for i in range(n):
                        centers[k, i] = orders[start, i]
        decays[k] = best_decay(distance, rankings[k], blocks[k], most)
