# mypy: ignore-errors
"""EM in compiled code: the E-step for rows as words of their pairs, and the M-step for any tournaments.

What a component gives a row depends on the row's code alone, so that the E-step reads tables and takes one
logarithm for many rows. Weighted counts of "a before b" come from bytes of the words: one addition for eight
pairs, and for four components at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.partitioned_jit import best_decay
from permix.kernels.bits import popcount
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import inlined, kernel
from permix.kernels.kemeny_search import improve_by_insertion, order_score
from permix.kernels.lanes import LANES, add_four

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


@by_reference
class WordRows(NamedTuple):
    """A block of rows, what components give them, and sums over them; the first five are as in PairWords."""

    said: Array
    against: Array
    counts: Array
    shapes: Array
    blocks: Array
    inverses: Array  # (rows,): 1 / counts
    # These four are the same for all blocks.
    known: Array  # int32 (K, m): the centers that codes are for
    moved: Array  # bool (K,): whether codes are to be found again
    logs: Array  # (K, codes): ln π_k P(row | k)
    chances: Array  # (K, codes): its exponential
    codes: Array  # uint16 (K, rows)
    shares: Array  # (K and up to the next four, rows): P(k | row) times the agents of the row
    scales: Array  # (rows,): scratch
    tallies: Array  # (fours, bytes * 256 * 4): weight of the rows with each value of a byte
    by_shape: Array  # (K, shapes): weight of the rows of each shape
    sums: Array  # (3, K): log-likelihood; weight of pairs that go against the center; sum of squared shares
    wins: Array  # (K, m, m): weight of "a before b"


@kernel
def tabulate(rows, weights, centers, decays):
    """Fill the tables of what components give rows of each code, and note which centers have moved."""
    n_components, n = centers.shape
    n_distances = n * (n - 1) // 2 + 1
    log_totals = np.zeros(n + 1)
    for k in range(n_components):
        moved = False
        for i in range(n):
            moved |= rows.known[k, i] != centers[k, i]
            rows.known[k, i] = centers[k, i]
        rows.moved[k] = moved
        power, above = 1.0, 0.0
        for size in range(2, n + 1):
            power *= np.exp(-decays[k])
            above += power
            log_totals[size] = log_totals[size - 1] + np.log1p(above)
        log_weight = np.log(weights[k]) if weights[k] > 0.0 else -np.inf
        for shape in range(rows.blocks.shape[0]):
            of_shape = log_weight - log_totals[n]
            for size in range(2, n + 1):
                of_shape += rows.blocks[shape, size] * log_totals[size]
            for distance in range(n_distances):
                code = shape * n_distances + distance
                rows.logs[k, code] = of_shape - decays[k] * distance
                rows.chances[k, code] = np.exp(rows.logs[k, code])


@inlined
def _find_codes(rows, k, n_distances):
    """Write the codes of rows for a component."""
    n = rows.known.shape[1]
    for at in range(rows.said.shape[0]):
        word = np.uint64(0)  # bits of the pairs i < j that the center has this way round
        for a in range(n):
            for b in range(a + 1, n):
                i = np.int64(rows.known[k, a])
                j = np.int64(rows.known[k, b])
                bit = i * (2 * n - i - 1) // 2 + j - i - 1
                if i < j and bit >> 6 == at:
                    word |= np.uint64(1) << np.uint64(bit & 63)
        for i in range(rows.counts.size):
            if rows.against.shape[0]:
                here = popcount(rows.said[at, i] & ~word) + popcount(rows.against[at, i] & word)
            else:
                here = popcount(rows.said[at, i] ^ word)
            rows.codes[k, i] = here + (rows.codes[k, i] if at else rows.shapes[i] * n_distances)


@inlined
def _tally(rows, four, n_bytes, tallies):
    """Add the weights of rows, of four components, to the values that the bytes of their words have."""
    a = rows.shares[LANES * four]
    b = rows.shares[LANES * four + 1]
    c = rows.shares[LANES * four + 2]
    d = rows.shares[LANES * four + 3]
    first = 0
    for way in range(2):
        words = rows.against if way else rows.said
        for at in range(words.shape[0]):
            column = words[at]
            last = first + min(8, n_bytes - 8 * at) * 256 * LANES
            for i in range(a.size):
                word = column[i]
                for byte in range(first, last, 256 * LANES):
                    add_four(tallies, byte + np.int64(word & np.uint64(255)) * LANES, a[i], b[i], c[i], d[i])
                    word >>= np.uint64(8)
            first = last


@inlined
def _add_up(tallies, sums):
    """Turn the weights of the values of bytes into those of bits, that of bit b where value 2^b was.

    Values with the highest bit are added to those without it, which leaves half as many for the next bit.
    """
    for low in range(0, tallies.size, 256 * LANES):
        half = 128 * LANES
        while half >= LANES:
            for lane in range(LANES):
                sums[lane] = 0.0
            for at in range(low, low + half, LANES):
                a = tallies[at + half]
                b = tallies[at + half + 1]
                c = tallies[at + half + 2]
                d = tallies[at + half + 3]
                add_four(sums, 0, a, b, c, d)
                add_four(tallies, at, a, b, c, d)
            for lane in range(LANES):
                tallies[low + half + lane] = sums[lane]
            half //= 2


@inlined
def _draw(rows, uniforms, n_bytes):
    """Draw the components of rows, and add up those drawn; ``scales`` are the sums of their shares."""
    n_components = rows.codes.shape[0]
    for i in range(rows.counts.size):
        # Points at equal distances for a row of many agents, the first by the uniform.
        n_draws = np.int64(min(rows.counts[i], MOST_DRAWS))
        weight = rows.counts[i] / n_draws
        for draw in range(n_draws):
            point = (uniforms[i] + draw) / n_draws * rows.scales[i]
            chosen = 0
            for k in range(n_components - 1):
                point -= rows.shares[k, i]
                chosen += point >= 0.0
            rows.by_shape[chosen, rows.shapes[i]] += weight
            rows.sums[1, chosen] += weight * rows.codes[chosen, i]
            tallies = rows.tallies[chosen // LANES]
            here = chosen % LANES
            for way in range(2):
                words = rows.against if way else rows.said
                for at in range(words.shape[0]):
                    word = words[at, i]
                    for _ in range(min(8, n_bytes - 8 * at)):
                        tallies[here + np.int64(word & np.uint64(255)) * LANES] += weight
                        word >>= np.uint64(8)
                        here += 256 * LANES


@inlined
def _weigh(rows, k):
    """Turn probabilities into weights of rows, and add these up."""
    mine = rows.shares[k]
    code = rows.codes[k]
    scales = rows.scales
    inverses = rows.inverses
    # Two sums of each kind, or each addition would wait for the one before.
    members, others, against, more, squares, rest = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, mine.size - 1, 2):
        one = mine[i] * scales[i]
        two = mine[i + 1] * scales[i + 1]
        mine[i] = one
        mine[i + 1] = two
        members += one
        others += two
        against += one * code[i]
        more += two * code[i + 1]
        squares += one * one * inverses[i]
        rest += two * two * inverses[i + 1]
    if mine.size % 2:
        i = mine.size - 1
        mine[i] *= scales[i]
        members += mine[i]
        against += mine[i] * code[i]
        squares += mine[i] * mine[i] * inverses[i]
    rows.by_shape[k, 0] = members + others
    rows.sums[1, k] = against + more
    rows.sums[2, k] = squares + rest
    if rows.by_shape.shape[1] > 1:
        rows.by_shape[k, 0] = 0.0
        for i in range(mine.size):
            rows.by_shape[k, rows.shapes[i]] += mine[i]


@kernel
def share_out(rows, uniforms, look):
    """E-step for a block of rows; with uniforms rows are drawn, else shared out.

    Without ``look`` there are no ``wins``.
    """
    n_components, n = rows.known.shape
    n_distances = n * (n - 1) // 2 + 1
    n_bytes = (n_distances + 6) // 8
    scales = rows.scales
    counts = rows.counts
    sums = np.empty(LANES)
    for i in range(counts.size):
        scales[i] = 0.0
    for k in range(n_components):
        if rows.moved[k]:
            _find_codes(rows, k, n_distances)
        chance = rows.chances[k]
        code = rows.codes[k]
        mine = rows.shares[k]
        for i in range(counts.size):
            mine[i] = chance[code[i]]
            scales[i] += mine[i]
        for shape in range(rows.by_shape.shape[1]):
            rows.by_shape[k, shape] = 0.0
        for which in range(3):
            rows.sums[which, k] = 0.0
    value, product = 0.0, 1.0
    for i in range(counts.size):
        total = scales[i]
        count = counts[i]
        if total < LEAST:
            largest = -np.inf
            for k in range(n_components):
                largest = max(largest, rows.logs[k, rows.codes[k, i]])
            total = 0.0
            for k in range(n_components):
                rows.shares[k, i] = np.exp(rows.logs[k, rows.codes[k, i]] - largest)
                total += rows.shares[k, i]
            value += count * largest
        if count != 1.0:
            value += count * np.log(total)
        else:
            if product * total < LEAST:
                value += np.log(product)
                product = 1.0
            product *= total
        scales[i] = total if uniforms.size else count / total
    rows.sums[0, 0] = value + np.log(product)
    if look:
        for four in range(rows.tallies.shape[0]):
            for at in range(rows.tallies.shape[1]):
                rows.tallies[four, at] = 0.0
    if uniforms.size:
        _draw(rows, uniforms, n_bytes)
    else:
        for k in range(n_components):
            _weigh(rows, k)
    for k in range(n_components):
        for shape in range(1, rows.by_shape.shape[1]):
            rows.sums[1, k] -= rows.by_shape[k, shape] * (shape * n_distances)
    if look:
        for four in range(rows.tallies.shape[0]):
            tallies = rows.tallies[four]
            if not uniforms.size:
                _tally(rows, four, n_bytes, tallies)
            _add_up(tallies, sums)
        for k in range(n_components):
            members = 0.0
            for shape in range(rows.by_shape.shape[1]):
                members += rows.by_shape[k, shape]
            bit = 0
            for i in range(n):
                for j in range(i + 1, n):
                    at = ((bit >> 3) * 256 + (1 << (bit & 7))) * LANES + k % LANES
                    rows.wins[k, i, j] = rows.tallies[k // LANES, at]
                    if rows.against.shape[0]:
                        rows.wins[k, j, i] = rows.tallies[k // LANES, at + n_bytes * 256 * LANES]
                    else:
                        rows.wins[k, j, i] = members - rows.wins[k, i, j]
                    bit += 1


@kernel
def neighbor_gain(rows, shares, first, second, decay):
    """Return by how much the log-likelihood rises if an item and the one right after it change places.

    ``shares`` is P(component | row) of the component whose center that is.
    """
    n = rows.known.shape[1]
    low, high = min(first, second), max(first, second)
    bit = low * (2 * n - low - 1) // 2 + high - low - 1
    shift = np.uint64(bit & 63)
    of_ahead, of_behind = np.expm1(-decay), np.expm1(decay)
    if first > second:
        of_ahead, of_behind = of_behind, of_ahead
    # A logarithm of many factors at once: each is between φ and 1/φ. Four products of them side by side,
    # or each factor would wait for the one before.
    most = LANES * np.int64(min(256.0, 500.0 / max(decay, 0.1)))
    ahead = rows.said[bit >> 6]
    counts = rows.counts
    stated = rows.against.shape[0] > 0
    products = np.empty(LANES)
    gain = 0.0
    for first_row in range(0, counts.size, most):
        for lane in range(LANES):
            products[lane] = 1.0
        for low_row in range(first_row, min(first_row + most, counts.size), LANES):
            for lane in range(min(LANES, counts.size - low_row)):
                i = low_row + lane
                change = of_ahead if (ahead[i] >> shift) & np.uint64(1) else of_behind
                if stated:
                    said = (ahead[i] | rows.against[bit >> 6, i]) >> shift
                    change = change if said & np.uint64(1) else 0.0
                factor = 1.0 + shares[i] * change
                if counts[i] != 1.0:
                    gain += counts[i] * np.log(factor)
                else:
                    products[lane] *= factor
        for lane in range(LANES):
            gain += np.log(products[lane])
    return gain


@kernel
def maximize(rankings, wins, blocks, against, bonuses, look, most, centers, decays):
    """M-step for centers, where ``look``, and dispersions (theorem 23); components without rankings stay.

    Centers are searched from where they are and from Borda's order, so that none ends behind its start. Where
    there is a bonus, from where they are alone, and each pair that a new center reverses gains so much
    (``climbs``).
    """
    n_components, n = centers.shape
    net, lead = np.empty((n, n)), np.empty(n)
    orders = np.empty((2, n), np.int32)
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
            bonus = bonuses[k] if bonuses.size else 0.0
            if bonus > 0.0:
                for later in range(1, n):
                    for earlier in range(later):
                        net[centers[k, earlier], centers[k, later]] -= bonus
                        net[centers[k, later], centers[k, earlier]] += bonus
            distance = np.inf
            for start in range(1 if bonus > 0.0 else 2):
                improve_by_insertion(net, orders[start], 1e-9 * largest)
                score = order_score(mine, orders[start])
                if score < distance - 1e-9 * largest:
                    distance = score
                    for i in range(n):
                        centers[k, i] = orders[start, i]
        decays[k] = best_decay(distance, rankings[k], blocks[k], most, decays[k])
