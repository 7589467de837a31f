# mypy: ignore-errors
"""The E-step of mixtures for rows as words of their pairs (``pair_words``).

What a component gives a row depends on the row's code alone, so that tables are read and one logarithm serves
many rows. Weighted counts of "a before b" come from bytes of the words: one addition for eight pairs, and
what the 256 values of a byte got is shared out to its bits at the end.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel

# Rows of a block. Blocks are added up in their order, so that threads change nothing.
ROWS = 1 << 16
# Products of probabilities are kept above this.
LEAST = 1e-250
# Rows that stand for many agents: so many draws at most.
MOST_DRAWS = 16.0
SHARE, DRAW, NEAREST = range(3)


@kernel
def expect(
    first, last, way, look, logs, chances, codes, columns, counts, uniforms, weights, by_code, wins, totals
):
    """E-step for blocks of rows from ``first`` to ``last``.

    ``logs`` and ``chances`` (K, codes) are ln π_k P(row | k) and its exponential. ``way``: each row is shared
    out to components, or drawn by its uniform, or given to the most probable. Sets ``totals[block]``, the
    log-likelihood; adds to ``by_code[block]`` (K, codes) the weight of rows of each code and, where ``look``,
    to ``wins[block]`` (K, m, m) that of "a before b". ``weights`` (K, rows) is scratch.
    """
    n_components, n_rows = codes.shape
    n_bytes = columns.shape[0]
    scale = np.empty(min(ROWS, n_rows))
    tallies = np.empty((n_components, n_bytes, 256))
    for block in range(first, last):
        begin = block * ROWS
        end = min(n_rows, begin + ROWS)
        for i in range(end - begin):
            scale[i] = 0.0
        for k in range(n_components):
            chance, code, mine = chances[k], codes[k], weights[k]
            for i in range(begin, end):
                mine[i] = chance[code[i]]
                scale[i - begin] += mine[i]
            for byte in range(n_bytes):
                for value in range(256):
                    tallies[k, byte, value] = 0.0
        value, product = 0.0, 1.0
        for i in range(begin, end):
            total = scale[i - begin]
            if total < LEAST:
                largest = -np.inf
                for k in range(n_components):
                    largest = max(largest, logs[k, codes[k, i]])
                total = 0.0
                for k in range(n_components):
                    weights[k, i] = np.exp(logs[k, codes[k, i]] - largest)
                    total += weights[k, i]
                value += counts[i] * largest
            if counts[i] != 1.0:
                value += counts[i] * np.log(total)
            else:
                if product * total < LEAST:
                    value += np.log(product)
                    product = 1.0
                product *= total
            if way == SHARE:
                scale[i - begin] = counts[i] / total
                continue
            # Points at equal distances, one for each draw, the first by the uniform.
            n_draws = min(counts[i], MOST_DRAWS)
            left, step = n_draws, total / n_draws
            point, reached, best = 0.0, 0.0, 0
            if way == DRAW:
                point = uniforms[i] * step
            for k in range(n_components):
                if weights[k, i] > weights[best, i]:
                    best = k
            for k in range(n_components):
                given = 0.0
                reached += weights[k, i]
                while left > 0.0 and (point < reached if way == DRAW else k == best):
                    given += counts[i] / n_draws
                    point += step
                    left -= 1.0
                if given > 0.0:
                    by_code[block, k, codes[k, i]] += given
                    for byte in range(n_bytes):
                        tallies[k, byte, columns[byte, i]] += given
        totals[block] = value + np.log(product)
        for k in range(n_components):
            mine, code, mass = weights[k], codes[k], by_code[block, k]
            if way == SHARE:
                for i in range(begin, end):
                    mine[i] *= scale[i - begin]
                    mass[code[i]] += mine[i]
                if look:
                    for byte in range(n_bytes):
                        tally, column = tallies[k, byte], columns[byte]
                        for i in range(begin, end):
                            tally[column[i]] += mine[i]
            if look:
                spread_bytes(tallies[k], mass, wins[block, k])


@kernel
def spread_bytes(tallies, mass, wins):
    """Turn what the values of each byte got, which is used up, into weights of pairs; ``mass`` is by code."""
    n = wins.shape[0]
    n_pairs = n * (n - 1) // 2
    n_bytes = (n_pairs + 7) // 8
    members = 0.0
    for code in range(mass.size):
        members += mass[code]
    for way in range(2):
        i, j = 0, 1
        for byte in range(n_bytes):
            if way * n_bytes >= tallies.shape[0]:
                break  # full rankings: what is not said is the other way round
            tally = tallies[way * n_bytes + byte]
            for bit in range(min(8, n_pairs - 8 * byte)):
                # The lowest bit is the least of what is left: odd values have it.
                total = 0.0
                for value in range(128 >> bit):
                    total += tally[2 * value + 1]
                    tally[value] = tally[2 * value] + tally[2 * value + 1]
                if way == 0:
                    wins[i, j] = total
                    wins[j, i] = members - total
                else:
                    wins[j, i] = total
                j += 1
                if j == n:
                    i += 1
                    j = i + 1
