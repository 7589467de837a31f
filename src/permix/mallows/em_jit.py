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
# Rows that stand for many agents: so many draws at most.
MOST_DRAWS = 16


@kernel
def share_out(first, last, rows, codes, logs, chances, uniforms, look, shares, scale, mass, tallies, totals):
    """E-step for blocks of rows from ``first`` to ``last``; with uniforms rows are drawn, else shared out.

    ``logs`` and ``chances`` (K, codes) are ln π_k P(row | k) and its exponential. Adds to ``mass[block]``
    (K, codes) the weight of rows of each code, to ``tallies[block]`` (K, bytes, 256), where ``look``, that of
    rows with each value of a byte, and sets ``totals[block]``, the log-likelihood. The rest is scratch.
    """
    columns, counts = rows
    drawn = uniforms.size > 0
    n_components, n_rows = codes.shape
    n_bytes = columns.shape[0]
    for block in range(first, last):
        begin = block * ROWS
        end = min(n_rows, begin + ROWS)
        for i in range(begin, end):
            scale[i] = 0.0
        for k in range(n_components):
            chance, code, mine = chances[k], codes[k], shares[k]
            for i in range(begin, end):
                mine[i] = chance[code[i]]
                scale[i] += mine[i]
        value, product = 0.0, 1.0
        for i in range(begin, end):
            total, count = scale[i], counts[i]
            if total < LEAST:
                largest = -np.inf
                for k in range(n_components):
                    largest = max(largest, logs[k, codes[k, i]])
                total = 0.0
                for k in range(n_components):
                    shares[k, i] = np.exp(logs[k, codes[k, i]] - largest)
                    total += shares[k, i]
                value += count * largest
            if count != 1.0:
                value += count * np.log(total)
            else:
                if product * total < LEAST:
                    value += np.log(product)
                    product = 1.0
                product *= total
            scale[i] = count / total
            if not drawn:
                continue
            # Points at equal distances, one for each draw, the first by the uniform.
            n_draws = np.int64(min(count, MOST_DRAWS))
            for draw in range(n_draws):
                point = (uniforms[i] + draw) / n_draws * total
                chosen, reached = 0, 0.0
                for k in range(n_components - 1):
                    reached += shares[k, i]
                    chosen += point >= reached
                mass[block, chosen, codes[chosen, i]] += count / n_draws
                for byte in range(n_bytes):
                    tallies[block, chosen, byte, columns[byte, i]] += count / n_draws
        for k in range(n_components):
            if not drawn:
                mine, code, given = shares[k], codes[k], mass[block, k]
                for i in range(begin, end):
                    mine[i] *= scale[i]
                    given[code[i]] += mine[i]
                if look:
                    for byte in range(n_bytes):
                        tally, column = tallies[block, k, byte], columns[byte]
                        for i in range(begin, end):
                            tally[column[i]] += mine[i]
        totals[block] = value + np.log(product)


@kernel
def neighbor_gains(rows, ties, shares, center, decay, gains):
    """Add by how much the log-likelihood rises if two neighbors in a center change places (``exchanges``).

    ``ties`` says whether rows have bits for both ways round of a pair; without, all are full rankings.
    """
    columns, counts = rows
    n = center.size
    half = columns.shape[0] // 2 if ties else 0
    ahead, behind = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64)  # bytes that have a ≻ b, b ≻ a
    masks = np.empty(n - 1, np.int64)
    for t in range(n - 1):
        a, b = np.int64(min(center[t], center[t + 1])), np.int64(max(center[t], center[t + 1]))
        bit = a * (2 * n - a - 1) // 2 + b - a - 1
        turned = center[t] > center[t + 1]
        ahead[t] = (bit >> 3) + (half if turned else 0)
        behind[t] = (bit >> 3) + (0 if turned else half)
        masks[t] = np.int64(1) << (bit & 7)
        if turned and not ties:
            masks[t] = -masks[t]
    less, more = np.expm1(-decay), np.expm1(decay)
    for i in range(counts.size):
        if shares[i] < NEGLIGIBLE:
            continue
        losing = counts[i] * np.log1p(shares[i] * less)
        winning = counts[i] * np.log1p(shares[i] * more)
        for t in range(n - 1):
            said = (columns[ahead[t], i] & abs(masks[t])) != 0
            if not ties:
                gains[t] += losing if said == (masks[t] > 0) else winning
            elif said:
                gains[t] += losing
            elif (columns[behind[t], i] & masks[t]) != 0:
                gains[t] += winning


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
