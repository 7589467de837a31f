# mypy: ignore-errors
"""A whole climb of EM in compiled code, for rows as words of their pairs.

A round with a look gives better centers by their tournaments (``em_jit.maximize``). Where none is better,
neighbors in centers change places by the likelihood itself (``exchanges``), and where that finds nothing
either, weights and dispersions alone go on, in long steps: SQUAREM (Varadhan & Roland 2008), a step of which
is taken back where the likelihood falls. A last look ends the climb.

Which exchanges are worth a sum over rows is known beforehand. With r = P(k | v) and s the difference between
the weights of a ≻ b and of b ≻ a, the gain as a function of λ has the derivative -s at 0, and its second
derivative is at most e^λ Σ r (1 - r), so that it is no more than (e^λ - 1 - λ) Σ r (1 - r) - λ s.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import popcount
from permix.kernels.jit import inlined, kernel
from permix.kernels.mallows import log_normalizer_step
from permix.mallows.em_jit import ROUNDING, maximize, neighbor_gain, share_out

# Logarithms of weights are kept above this in long steps.
LEAST_WEIGHT = 1e-12
LONGEST_STEP = 64.0
# Several exchanges at once must bring this much of what the best would bring alone.
ENOUGH = 0.25


@inlined
def _word_of(center, at):
    """Bits of the pairs i < j that a center has this way round, 64 from number 64 ``at`` on."""
    n = center.size
    word = np.uint64(0)
    for a in range(n):
        for b in range(a + 1, n):
            i, j = np.int64(center[a]), np.int64(center[b])
            bit = i * (2 * n - i - 1) // 2 + j - i - 1
            if i < j and bit >> 6 == at:
                word |= np.uint64(1) << np.uint64(bit & 63)
    return word


@inlined
def _find_codes(words, n_distances, center, code):
    """Write the code of every row for a center."""
    said, against, shapes = words
    for at in range(said.shape[0]):
        word = _word_of(center, at)
        for i in range(code.size):
            if against.shape[0]:
                reversed_here = popcount(said[at, i] & ~word) + popcount(against[at, i] & word)
            else:
                reversed_here = popcount(said[at, i] ^ word)
            code[i] = reversed_here + (code[i] if at else shapes[i] * n_distances)


@kernel
def _expect(rows, words, blocks, state, room, uniforms, look):
    """E-step at the present state; return the log-likelihood."""
    weights, centers, decays, codes, known = state
    logs, chances, shares, scale, mass, tallies = room
    n_components, n = centers.shape
    n_distances = logs.shape[1] // blocks.shape[0]
    for k in range(n_components):
        moved = False
        for i in range(n):
            moved |= known[k, i] != centers[k, i]
            known[k, i] = centers[k, i]
        if moved:
            _find_codes(words, n_distances, centers[k], codes[k])
        for shape in range(blocks.shape[0]):
            of_shape, log_total = np.log(weights[k]) if weights[k] > 0.0 else -np.inf, 0.0
            for size in range(2, n + 1):
                log_total += log_normalizer_step(decays[k], size)
                of_shape += blocks[shape, size] * log_total
            for distance in range(n_distances):
                code = shape * n_distances + distance
                logs[k, code] = of_shape - log_total - decays[k] * distance
                chances[k, code] = np.exp(logs[k, code])
                mass[0, k, code] = 0.0
        if look:
            for byte in range(tallies.shape[2]):
                for value in range(256):
                    tallies[0, k, byte, value] = 0.0
    totals = np.empty(1)
    share_out(0, 1, rows, codes, logs, chances, uniforms, look, shares, scale, mass, tallies, totals)
    return totals[0]


@inlined
def _add_up(tallies, n_ways, members, wins):
    """Find the weight of "a before b" from what the values of each byte got."""
    n, n_bytes = wins.shape[0], tallies.shape[0]
    bit = 0
    for i in range(n):
        for j in range(i + 1, n):
            for way in range(n_ways):
                mine = tallies[(bit >> 3) + way * (n_bytes // n_ways)]
                total, step = 0.0, 1 << (bit & 7)
                for first in range(step, 256, 2 * step):
                    for value in range(first, first + step):
                        total += mine[value]
                if way == 0:
                    wins[i, j] = total
                    wins[j, i] = members - total
                else:
                    wins[j, i] = total
            bit += 1


@kernel
def _maximize(blocks, state, room, statistics, look, extra, most):
    """M-step after ``_expect``; weights are set aside in ``members``. Say whether a center is new."""
    _, centers, decays, _, _ = state
    mass, tallies = room[4][0], room[5][0]
    members, wins, of_sizes, against, net, orders, before = statistics
    n_components, n = centers.shape
    n_distances = mass.shape[1] // blocks.shape[0]
    n_ways = 1 + (tallies.shape[1] > (n * (n - 1) // 2 + 7) // 8)
    for k in range(n_components):
        members[k], against[k] = 0.0, 0.0
        for i in range(n):
            before[k, i] = centers[k, i]
            of_sizes[k, i + 1] = 0.0
        for shape in range(blocks.shape[0]):
            here = 0.0
            for distance in range(n_distances):
                given = mass[k, shape * n_distances + distance]
                here += given
                against[k] += given * distance
            members[k] += here
            for size in range(2, n + 1):
                of_sizes[k, size] += here * blocks[shape, size]
        if look:
            _add_up(tallies[k], n_ways, members[k], wins[k])
    maximize(members, wins, of_sizes, against, look, most, centers, decays, net, orders)
    total, is_new = 0.0, False
    for k in range(n_components):
        total += members[k] + extra
        for i in range(n):
            is_new |= before[k, i] != centers[k, i]
    for k in range(n_components):
        members[k] = (members[k] + extra) / total
    return is_new


@kernel
def _find_exchanges(rows, ties, shares, wins, centers, decays, least, bounds, places, gains):
    """Find the best exchange in every center that gains more than ``least``; return how many there are.

    Sums over rows are made for the most promising first, while others could still be better.
    """
    counts = rows[1]
    n_components, n = centers.shape
    found = 0
    for k in range(n_components):
        center, decay, mine, spread = centers[k], decays[k], shares[k], 0.0
        for i in range(counts.size):
            spread += mine[i] * (1.0 - mine[i] / counts[i])
        for place in range(n - 1):
            a, b = center[place], center[place + 1]
            lead = wins[k, a, b] - wins[k, b, a]
            bounds[place] = spread * (np.expm1(decay) - decay) - decay * lead
        places[k], gains[k] = -1, least
        while True:
            next_best = 0
            for place in range(n - 1):
                if bounds[place] > bounds[next_best]:
                    next_best = place
            if not bounds[next_best] > gains[k]:
                break
            bounds[next_best] = -np.inf
            gain = neighbor_gain(rows, ties, mine, center, next_best, decay)
            if gain > gains[k]:
                places[k], gains[k] = next_best, gain
        found += places[k] >= 0
    return found


@inlined
def _exchange(centers, places, but_for):
    """Let neighbors change places where that was found to gain, but for one component."""
    for k in range(centers.shape[0]):
        if places[k] >= 0 and k != but_for:
            first = centers[k, places[k]]
            centers[k, places[k]] = centers[k, places[k] + 1]
            centers[k, places[k] + 1] = first


@kernel
def _go_far(points, most, weights, decays):
    """Set weights and decays to where three points of EM lead, or to the last one where they lead nowhere."""
    speed, change = 0.0, 0.0
    for of in range(2):
        for k in range(weights.size):
            first = points[1, of, k] - points[0, of, k]
            speed += first**2
            change += (points[2, of, k] - points[1, of, k] - first) ** 2
    step = min(max(1.0, np.sqrt(speed / change)), LONGEST_STEP) if change > 0.0 else 1.0
    total = 0.0
    for k in range(weights.size):
        for of in range(2):
            first = points[1, of, k] - points[0, of, k]
            second = points[2, of, k] - points[1, of, k] - first
            value = points[0, of, k] + 2.0 * step * first + step * step * second
            if of == 0:
                weights[k] = np.exp(value)
                total += weights[k]
            else:
                decays[k] = min(max(value, 0.0), most)
    for k in range(weights.size):
        weights[k] /= total


@kernel
def climb(rows, words, blocks, state, room, statistics, uniforms, most, rise, rested, values):
    """Climb for as many rounds as ``values`` has room for; return their number, and whether it ended.

    First a round for each row of ``uniforms``, in which agents are drawn and not shared out; their
    log-likelihoods are not kept. ``state`` has weights, centers and decays, which change, codes and the
    centers that these are for. A climb ends where rounds raise the log-likelihood
    by ``rise`` or less. The state is that of the last of ``values``. ``rested`` is what weights and
    dispersions alone have reached, minus infinity to begin with; it is returned too, for climbs that go on.
    """
    weights, centers, decays, _, _ = state
    shares, members, wins = room[2], statistics[0], statistics[1]
    n_components = weights.size
    ties = words[1].shape[0] > 0
    nothing = np.empty(0)
    points, present = np.empty((3, 2, n_components)), np.empty(n_components)
    places, gains = np.empty(n_components, np.int64), np.empty(n_components)
    bounds = np.empty(centers.shape[1])
    n_drawn, made, pending, before = 0, 0, 0, 0.0
    # While resting, weights and dispersions alone: two rounds of EM, and a long step in their direction.
    resting, at = False, 0
    while n_drawn < uniforms.shape[0] or made < values.size:
        drawing = n_drawn < uniforms.shape[0]
        if resting:
            for k in range(n_components):
                points[at, 0, k] = np.log(max(weights[k], LEAST_WEIGHT))
                points[at, 1, k] = decays[k]
            if at == 2:
                _go_far(points, most, weights, decays)
        # One call here and one below: each would be compiled once more.
        these = uniforms[n_drawn] if drawing else nothing
        value = _expect(rows, words, blocks, state, room, these, not resting)
        if not drawing:
            if resting and at == 2 and not value >= rested:
                for k in range(n_components):
                    weights[k] = members[k]
                    decays[k] = points[2, 1, k]
                at = 0
                continue
            if pending > 1:
                best = 0
                for k in range(n_components):
                    if gains[k] > gains[best]:
                        best = k
                if value < before + ENOUGH * gains[best]:
                    _exchange(centers, places, best)
                    pending = 0
                    continue
            values[made] = value
            made += 1
            if made == values.size:
                break
            if resting and value - rested <= rise:
                resting = False
                continue
        for k in range(n_components):
            present[k] = decays[k]
        # One more member each while drawing: a component that nobody was drawn for could otherwise never
        # come back.
        extra = 1.0 if drawing else 0.0
        is_new = _maximize(blocks, state, room, statistics, not resting, extra, most)
        pending = 0
        if drawing:
            n_drawn += 1
        elif resting:
            rested = value
            at = 0 if at == 2 else at + 1
        elif not is_new:
            least = max(rise, ROUNDING * abs(value))
            pending = _find_exchanges(
                rows, ties, shares, wins, centers, present, least, bounds, places, gains
            )
            if pending or value - rested <= rise:
                for k in range(n_components):
                    decays[k] = present[k]
                if not pending:
                    return made, True, rested
                _exchange(centers, places, -1)
                before = value
                continue
            rested = value
            resting, at = True, 0
        for k in range(n_components):
            weights[k] = members[k]
    return made, False, rested
