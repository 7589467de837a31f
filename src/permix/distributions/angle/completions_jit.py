# mypy: ignore-errors
"""Completions of incomplete rankings under angle-based models (Xu, Alvo & Yu 2018, section 4.1).

A row lists items, best first. A top list has its unlisted items behind the listed ones; in a ranking of a
subset they may be anywhere, and only the order of the listed items among themselves is known. A completion is
a full ordering that agrees; its weight is exp(Σ_r tilts[order[r]] scores[r]).

The paper proposes whole completions, uniformly; at 100 items next to none is accepted. Here a proposal takes
an item, unlisted or listed, and a place at a nearly log-uniform distance, and exchanges the two:

* two unlisted items change places;
* an unlisted item takes the place of a listed one, and the listed items between the two places move along by
  one, into the place left open, so that their order stays. Without that, listed items would wait for one
  another like people in a narrow corridor;
* two listed items would not agree with the row: refused.

Ranks count as a ring, so that no proposal is lost at their ends. What is drawn (item, distance, direction)
does not depend on the state, and the item that is then at the other end, going back by the same distance,
undoes the move: proposals are symmetric. A top list is the same problem on the ranks behind the listed ones,
without listed items.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.conditioning.amp_jit import log_mean_exp
from permix.kernels.bits import popcount
from permix.kernels.jit import kernel
from permix.kernels.streams import integers, new_stream, next_word, open_stream, uniform

# Of 32 proposals of a subset ranking, those led by a listed item; by an unlisted one are the rest.
LISTED_LEAD = 8
# Sums by tables keep plain numbers while no exponent is beyond this, and logarithms otherwise.
PLAIN_EXPONENT = 250.0
# Annealing steps per squared standard deviation of the way. Measured at 12 to 100 items, ln weights then have
# variance 0.05 to 0.8 for concentrations up to twice the number of items, and up to 2 at ten times that.
STEPS_PER_VARIANCE = 3.0
# Largest table, in terms to add, that costs no more than moving a row does: then the sweep draws exactly.
QUICK_TERMS = 1200

# ln(i / 512)
_LOGS = np.concatenate([[-np.inf], np.log(np.arange(1, 513) / 512.0)])


@kernel
def set_up(order, listed, length, scratch):
    """Note the place of every item, its number among the listed (-1: unlisted), and the unlisted items."""
    places, numbers, unlisted = scratch[0], scratch[1], scratch[2]
    for rank in range(order.size):
        places[order[rank]] = rank
        numbers[order[rank]] = -1
    for j in range(length):
        numbers[listed[j]] = j
    n_unlisted = 0
    for item in range(order.size):
        if numbers[item] < 0:
            unlisted[n_unlisted] = item
            n_unlisted += 1


@kernel
def accepts(stream, gain, coarse):
    """Accept with probability min(1, exp(gain)), given the first 19 bits of a uniform number.

    Nine of them nearly always decide, by a table of logarithms and without an exponential; where they do not,
    all are taken, and the rest of the number is drawn.
    """
    if gain >= _LOGS[(coarse >> 10) + 1]:
        return True
    if gain < _LOGS[coarse >> 10]:
        return False
    return (coarse + uniform(stream)) * (1.0 / (1 << 19)) < np.exp(gain)


@kernel
def typical_gain(length, below, tilts, scores, unlisted):
    """Return the size of the change by exchanging two unlisted items at distance 1, given their spread."""
    t = tilts.size
    floor = length if below else 0
    n_unlisted = t - length
    if n_unlisted == 0:
        return 0.0
    total, square = 0.0, 0.0
    for i in range(n_unlisted):
        tilt = tilts[unlisted[i]]
        total += tilt
        square += tilt * tilt
    square = max(square - total * total / n_unlisted, 0.0)  # rounding does not matter here
    return np.sqrt(2.0 * square / n_unlisted) * np.abs(scores[t - 1] - scores[floor]) / (t - floor)


@kernel
def propose(stream, order, listed, length, below, tilts, scores, share, n_proposals, unit, scratch):
    """Make Metropolis proposals for the weight exp(share · Σ tilts scores), after :func:`set_up`.

    ``unit`` is the :func:`typical_gain`. Exchanges over less than the distance at which it adds up to 1 are
    nearly all accepted and change little, so only one proposal in eight may be as short as that.

    Returns by how much Σ tilts scores has grown.
    """
    places, numbers, unlisted = scratch[0], scratch[1], scratch[2]
    t = order.size
    floor = length if below else 0
    n_places, n_unlisted = t - floor, t - length
    n_octaves = 0
    while 1 << n_octaves < n_places:
        n_octaves += 1
    if n_unlisted == 0 or n_octaves == 0:
        return 0.0
    calm = 0
    while calm < n_octaves - 1 and (2 << calm) * share * unit < 1.0:
        calm += 1
    by_unlisted = 32 if below or length == 0 else 32 - LISTED_LEAD
    # Listed items must be equally likely to lead, for the way back may be led by another of them: without the
    # ``unfair`` least products (Lemire's method) they are. An unlisted item leads both ways.
    unfair = (1 << 20) % length if length > 0 else 0
    grown = 0.0
    for _ in range(n_proposals):
        # One word says it all: 20 bits the item, 3 + 6 + 10 the distance, 1 the direction, 5 the type, and 19
        # the uniform number that decides.
        word = next_word(stream)
        item_bits = np.int64(word >> np.uint64(44))
        bits = np.int64(word >> np.uint64(19)) & 0x1FFFFFF
        coarse = np.int64(word) & 0x7FFFF
        shortest = calm if bits & 7 else 0
        least = 1 << (shortest + ((((bits >> 3) & 0x3F) * (n_octaves - shortest)) >> 6))
        distance = least + ((((bits >> 9) & 0x3FF) * min(least, n_places - least)) >> 10)
        if bits >> 20 < by_unlisted:
            item = unlisted[(item_bits * n_unlisted) >> 20]
        else:
            if (item_bits * length) & 0xFFFFF < unfair:
                continue
            item = listed[(item_bits * length) >> 20]
        source = np.int64(places[item])
        # The ranks are a ring: no proposal is lost at their ends.
        target = source + (distance if (bits >> 19) & 1 else n_places - distance)
        target -= n_places if target >= t else 0
        other = order[target]
        if numbers[item] >= 0:
            if numbers[other] >= 0:
                continue
            item, other, source, target = other, item, target, source
        last = np.int64(numbers[other])
        gain = tilts[item] * (scores[target] - scores[source])
        if last < 0:
            gain += tilts[other] * (scores[source] - scores[target])
            if accepts(stream, share * gain, coarse):
                order[source], order[target] = other, item
                places[item], places[other] = target, source
                grown += gain
            continue
        # The unlisted item takes the place of a listed one, and the listed ones from there to the place that
        # it leaves move up by one.
        step = 1 if target > source else -1
        first, place = last, target
        while True:
            before = first - step
            if before < 0 or before >= length:
                break
            next_place = np.int64(places[listed[before]])
            if (next_place - source) * step < 0:
                break
            gain += tilts[listed[first]] * (scores[next_place] - scores[place])
            first, place = before, next_place
        gain += tilts[listed[first]] * (scores[source] - scores[place])
        if accepts(stream, share * gain, coarse):
            opened = source
            for j in range(first, last + step, step):
                place = np.int64(places[listed[j]])
                order[opened] = listed[j]
                places[listed[j]] = opened
                opened = place
            order[target] = item
            places[item] = target
            grown += gain
    return grown


@kernel
def move_completion(stream, order, listed, length, below, tilts, scores, n_proposals, scratch):
    """Move a completion by Metropolis proposals that leave its distribution given the listed items invariant.

    ``order``, a completion of the row, is changed; ``listed[:length]`` are the items of the row, best first,
    and ``below`` says whether those unlisted are behind them; ``scratch`` is an int32 array (3, items).
    """
    set_up(order, listed, length, scratch)
    unit = typical_gain(length, below, tilts, scores, scratch[2])
    # Exchanges that are all accepted, as under a flat model, would come to even or odd orderings in turn: so
    # a fair coin leaves one of them out.
    n_made = n_proposals - np.int64(next_word(stream) & np.uint64(1))
    return propose(stream, order, listed, length, below, tilts, scores, 1.0, n_made, unit, scratch)


@kernel
def uniform_completion(stream, listed, length, below, order, scratch):
    """Draw a completion uniformly."""
    numbers, unlisted = scratch[1], scratch[2]
    t = order.size
    numbers[:] = -1
    for j in range(length):
        numbers[listed[j]] = j
    n_unlisted = 0
    for item in range(t):
        if numbers[item] < 0:
            other = integers(stream, n_unlisted + 1)
            unlisted[n_unlisted] = unlisted[other]
            unlisted[other] = item
            n_unlisted += 1
    j = 0
    for rank in range(t):
        if below:
            is_listed = rank < length
        else:
            is_listed = j < length and integers(stream, t - rank) < length - j
        if is_listed:
            order[rank] = listed[j]
            j += 1
        else:
            order[rank] = unlisted[rank - j]


@kernel
def n_terms(length, below, n_items):
    """Count the terms that the table of :func:`fill_table` adds; infinite where it cannot be."""
    n_unlisted = n_items - length
    if n_unlisted > 40:
        return np.inf
    return 2.0**n_unlisted * (n_unlisted + 1) * ((0 if below else length) + 1)


@kernel
def work_size(length, below, n_items):
    """Count the numbers of the work space of :func:`exact_log_sum` and :func:`exact_completion`."""
    n_unlisted = n_items - length
    n_listed = 0 if below else length
    size = (1 << n_unlisted) * (n_listed + 1)
    return size + n_unlisted * (n_unlisted + n_listed) + (n_unlisted + 1) * n_listed


@kernel
def parts_of(work, n_unlisted, n_listed):
    """Cut the work space: table by set and number listed, terms of unlisted items, terms of listed items."""
    size = (1 << n_unlisted) * (n_listed + 1)
    n = n_unlisted + n_listed
    table = work[:size].reshape(1 << n_unlisted, n_listed + 1)
    next_size = size + n_unlisted * n
    own = work[size:next_size].reshape(n_unlisted, n)
    last = next_size + (n_unlisted + 1) * n_listed
    theirs = work[next_size:last].reshape(n_unlisted + 1, n_listed)
    return table, own, theirs


@kernel
def fill_table(listed, length, below, tilts, scores, work, unlisted):
    """Fill the table f(S, j) of a row and return whether it keeps plain numbers (else logarithms).

    f(S, j), the total weight of placing the unlisted items S and the first j listed ones on the best |S| + j
    ranks, is Σ_{i ∈ S} f(S∖i, j) w(i, |S|+j) + f(S, j-1) w(listed j, |S|+j).
    """
    t = tilts.size
    n_unlisted = t - length
    floor, n_listed = (length, 0) if below else (0, length)
    unlisted[:] = 1
    for j in range(length):
        unlisted[listed[j]] = 0
    at = 0
    for item in range(t):
        if unlisted[item]:
            unlisted[at] = item
            at += 1
    table, own, theirs = parts_of(work, n_unlisted, n_listed)
    square, score_square = 0.0, 0.0
    for i in range(n_unlisted):
        square += tilts[unlisted[i]] ** 2
    for j in range(n_listed):
        square += tilts[listed[j]] ** 2
    for rank in range(floor, t):
        score_square += scores[rank] ** 2
    # By Cauchy and Schwarz no sum of exponents, of whichever items on whichever ranks, is beyond this.
    plain = np.sqrt(square * score_square) <= PLAIN_EXPONENT
    for i in range(n_unlisted):
        for rank in range(n_unlisted + n_listed):
            own[i, rank] = tilts[unlisted[i]] * scores[floor + rank]
            if plain:
                own[i, rank] = np.exp(own[i, rank])
    for size in range(n_unlisted + 1):
        for j in range(n_listed):
            theirs[size, j] = tilts[listed[j]] * scores[size + j]
            if plain:
                theirs[size, j] = np.exp(theirs[size, j])
    if plain:
        _fill_plain(table, own, theirs)
    else:
        _fill_logs(table, own, theirs)
    return plain


@kernel
def _fill_plain(table, own, theirs):
    n_sets, width = table.shape
    for subset in range(n_sets):
        size = popcount(np.uint64(subset))
        for j in range(width):
            table[subset, j] = 0.0
        if subset == 0:
            table[0, 0] = 1.0
        rest = subset
        while rest:  # over the items of the set, from its lowest bit
            bit = rest & -rest
            rest ^= bit
            i = popcount(np.uint64(bit - 1))
            for j in range(width):
                table[subset, j] += table[subset ^ bit, j] * own[i, size - 1 + j]
        for j in range(width - 1):
            table[subset, j + 1] += table[subset, j] * theirs[size, j]


@kernel
def _fill_logs(table, own, theirs):
    n_sets, width = table.shape
    terms = np.empty(own.shape[0] + 1)
    for subset in range(n_sets):
        size = popcount(np.uint64(subset))
        for j in range(width):
            n, largest = 0, -np.inf
            for i in range(own.shape[0]):
                if subset >> i & 1:
                    terms[n] = table[subset ^ (1 << i), j] + own[i, size - 1 + j]
                    largest = max(largest, terms[n])
                    n += 1
            if j > 0:
                terms[n] = table[subset, j - 1] + theirs[size, j - 1]
                largest = max(largest, terms[n])
                n += 1
            if n == 0:
                table[subset, j] = 0.0
                continue
            total = 0.0
            for at in range(n):
                total += np.exp(terms[at] - largest)
            table[subset, j] = largest + np.log(total)


@kernel
def exact_log_sum(listed, length, below, tilts, scores, work, unlisted):
    """Return ln of the sum of the weights of all completions of a row.

    ``work`` has :func:`work_size` numbers or more, ``unlisted`` is an int32 array (items,).
    """
    plain = fill_table(listed, length, below, tilts, scores, work, unlisted)
    n_unlisted = tilts.size - length
    total = work[(1 << n_unlisted) * ((0 if below else length) + 1) - 1]
    if plain:
        total = np.log(total)
    if below:
        for j in range(length):
            total += tilts[listed[j]] * scores[j]
    return total


@kernel
def exact_completion(stream, listed, length, below, tilts, scores, work, unlisted, order):
    """Draw a completion exactly, from the table of all; arguments as in :func:`exact_log_sum`."""
    plain = fill_table(listed, length, below, tilts, scores, work, unlisted)
    n_unlisted = tilts.size - length
    floor, n_listed = (length, 0) if below else (0, length)
    table, own, theirs = parts_of(work, n_unlisted, n_listed)
    for j in range(floor):
        order[j] = listed[j]
    subset, size, j = (1 << n_unlisted) - 1, n_unlisted, n_listed
    while size + j > 0:
        remaining = uniform(stream) * (table[subset, j] if plain else 1.0)
        chosen = -1
        if j > 0:
            if plain:
                remaining -= table[subset, j - 1] * theirs[size, j - 1]
            else:
                remaining -= np.exp(table[subset, j - 1] + theirs[size, j - 1] - table[subset, j])
        if j == 0 or remaining >= 0.0:
            for i in range(n_unlisted):
                if subset >> i & 1:
                    chosen = i
                    before, term = table[subset ^ (1 << i), j], own[i, size + j - 1]
                    remaining -= before * term if plain else np.exp(before + term - table[subset, j])
                    if remaining < 0.0:
                        break
        if chosen < 0:
            j -= 1
            order[floor + size + j] = listed[j]
        else:
            size -= 1
            order[floor + size + j] = unlisted[chosen]
            subset ^= 1 << chosen


@kernel
def completions_sweep(
    key, sweep, first, last, orders, listed, lengths, below, labels, tilts, scores, n_proposals
):
    """Move the completions of rows first..last-1, given components; the same however rows are divided.

    Every row has a stream of its own in each sweep. ``orders`` (rows, items) are the completions; ``listed``,
    ``lengths`` and ``below`` are ``orders``, ``lengths`` and ``unlisted_below`` of Rankings, ``labels`` the
    components of the rows, whose ``tilts`` are (components, items). A row gets so many proposals; rows with
    few unlisted items are drawn exactly instead.
    """
    n_items = scores.size
    stream = new_stream()
    scratch = np.empty((3, n_items), np.int32)
    largest = 0
    for row in range(first, last):
        if n_terms(lengths[row], below[row], n_items) <= QUICK_TERMS:
            largest = max(largest, work_size(lengths[row], below[row], n_items))
    work = np.empty(largest)
    for row in range(first, last):
        if lengths[row] == n_items:
            continue
        open_stream(stream, key[0], key[1], sweep, row)
        known = (listed[row], lengths[row], below[row], tilts[labels[row]], scores)
        if n_terms(lengths[row], below[row], n_items) <= QUICK_TERMS:
            exact_completion(stream, *known, work, scratch[2], orders[row])
        else:
            move_completion(stream, orders[row], *known, n_proposals, scratch)


@kernel
def start_completions(key, sweep, first, last, listed, lengths, below, labels, tilts, scores, orders):
    """Draw completions of rows first..last-1 to start from: near the model, and compatible with the row.

    Every item draws a score z with density ∝ exp(tilt z) over the range of the scores, as if it were alone;
    items go by these draws, those of the listed items sorted to keep their order. Arguments as in
    :func:`completions_sweep`.
    """
    t = scores.size
    stream = new_stream()
    draws, own = np.empty(t), np.empty(t)
    is_listed = np.empty(t, np.bool_)
    for row in range(first, last):
        open_stream(stream, key[0], key[1], sweep, row)
        length = lengths[row]
        floor = length if below[row] else 0
        is_listed[:] = False
        for j in range(length):
            is_listed[listed[row, j]] = True
        width = scores[t - 1] - scores[floor] if floor < t else 0.0
        for item in range(t):
            u = uniform(stream)
            slope = tilts[labels[row], item] * width
            if np.abs(slope) < 1e-9:
                draws[item] = u
            elif slope > 0.0:  # from the far end, so that the exponential does not overflow
                draws[item] = 1.0 + np.log(u + (1.0 - u) * np.exp(-slope)) / slope
            else:
                draws[item] = np.log1p(u * np.expm1(slope)) / slope
        for j in range(length):
            own[j] = -1e300 if below[row] else draws[listed[row, j]]
        own[:length].sort()
        for j in range(length):
            draws[listed[row, j]] = own[j]
        n_placed = 0
        for rank, item in enumerate(np.argsort(draws)):
            # Equal draws of listed items would come in any order: the list itself says which is next.
            orders[row, rank] = item
            if is_listed[item]:
                orders[row, rank] = listed[row, n_placed]
                n_placed += 1


@kernel
def annealing_plan(listed, length, below, tilts, scores):
    """Return c, a and the number of steps: the path of a von Mises–Fisher with the spread of the row.

    Along the annealing ladder the variance of Σ tilts scores is about c² A'(share · c) with A' the slope of
    the mean resultant length in 2a dimensions; A'(x) ≈ a / (√(x²+a²) (a + √(x²+a²))), so equal steps of
    asinh(share c / a) are steps of nearly equal standard deviation, √a · asinh(c / a) in all. The number of
    steps that keeps the variance of the ln weights the same is as the square of that.
    """
    t = tilts.size
    floor = length if below else 0
    n = t - floor
    mean, score_mean = 0.0, 0.0
    for item in range(t):
        mean += tilts[item]
    for j in range(floor):
        mean -= tilts[listed[j]]
    for rank in range(floor, t):
        score_mean += scores[rank]
    mean /= n
    score_mean /= n
    square, score_square = 0.0, 0.0
    for item in range(t):
        square += (tilts[item] - mean) ** 2
    for j in range(floor):
        square -= (tilts[listed[j]] - mean) ** 2
    for rank in range(floor, t):
        score_square += (scores[rank] - score_mean) ** 2
    concentration, half = np.sqrt(max(square, 0.0) * score_square), max(0.5 * (n - 1), 0.5)
    length_square = half * np.arcsinh(concentration / half) ** 2
    return concentration, half, 4 + np.int64(STEPS_PER_VARIANCE * length_square)


@kernel
def annealed_log_weight(stream, listed, length, below, tilts, scores, plan, n_proposals, order, scratch):
    """Anneal one completion from the uniform distribution to the model; return its ln weight (Neal 2001).

    The mean of exp(.) over runs, times the number of completions, estimates the sum of their weights without
    bias. ``plan`` is the :func:`annealing_plan`; every step makes ``n_proposals``.
    """
    concentration, half, n_steps = plan
    uniform_completion(stream, listed, length, below, order, scratch)
    set_up(order, listed, length, scratch)
    exponent = 0.0
    for rank in range(order.size):
        exponent += tilts[order[rank]] * scores[rank]
    unit = typical_gain(length, below, tilts, scores, scratch[2])
    end = np.arcsinh(concentration / half)
    log_weight, share = 0.0, 0.0
    for step in range(1, n_steps + 1):
        next_share = 1.0
        if step < n_steps and concentration > 0.0:
            next_share = half * np.sinh(end * step / n_steps) / concentration
        log_weight += (next_share - share) * exponent
        share = next_share
        if step < n_steps:
            exponent += propose(
                stream, order, listed, length, below, tilts, scores, share, n_proposals, unit, scratch
            )
    return log_weight


@kernel
def annealed_log_sums(
    key, first, last, listed, lengths, below, tilts, scores, numbers, n_particles, out, errors
):
    """Estimate ln of the sum of the weights of all completions, for rows first..last-1 and every component.

    ``numbers`` give the rows their streams; ``out`` and ``errors`` (rows, components) are filled with the
    estimates and their standard errors.
    """
    n_components, n_items = tilts.shape
    stream = new_stream()
    scratch = np.empty((3, n_items), np.int32)
    order = np.empty(n_items, np.int32)
    log_weights = np.empty(n_particles)
    for row in range(first, last):
        length, behind = lengths[row], below[row]
        log_count = math.lgamma(n_items - length + 1.0)  # (t-k)! top lists, t!/k! rankings of a subset
        if not behind:
            log_count = math.lgamma(n_items + 1.0) - math.lgamma(length + 1.0)
        for k in range(n_components):
            known = (listed[row], length, behind, tilts[k], scores)
            plan = annealing_plan(*known)
            for particle in range(n_particles):
                datum = (numbers[row] * n_components + k) * n_particles + particle
                open_stream(stream, key[0], key[1], 0, datum)
                log_weights[particle] = annealed_log_weight(
                    stream, *known, plan, n_items - length, order, scratch
                )
            value, errors[row, k] = log_mean_exp(log_weights)
            out[row, k] = log_count + value


@kernel
def exact_log_sums(first, last, listed, lengths, below, tilts, scores, out):
    """Set ``out[row, k]`` to the :func:`exact_log_sum` of rows first..last-1 under every component."""
    n_components, n_items = tilts.shape
    largest = 0
    for row in range(first, last):
        largest = max(largest, work_size(lengths[row], below[row], n_items))
    work, unlisted = np.empty(largest), np.empty(n_items, np.int32)
    for row in range(first, last):
        for k in range(n_components):
            out[row, k] = exact_log_sum(
                listed[row], lengths[row], below[row], tilts[k], scores, work, unlisted
            )
