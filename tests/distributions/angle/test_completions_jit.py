"""Completions of incomplete rankings under angle-based models, against enumeration of all that agree.

At four items every row is tried: all lists of 0 to 4 items, as top lists and as rankings of a subset.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pytest

from permix.distributions.angle import completions_jit as kernels
from permix.distributions.angle.scores import standard_scores
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, next_word, open_stream
from tests.every_run import first_in_every_run

ITEM_BITS, COARSE_BITS = 20, 19
FOUR = [(listed, below) for k in range(5) for listed in permutations(range(4), k) for below in (False, True)]


def agrees(order, listed, below):
    """Say whether a full ordering agrees with a row, by the words of section 4.1."""
    if below:
        return tuple(order[: len(listed)]) == tuple(listed)
    return tuple(item for item in order if item in listed) == tuple(listed)


@cache
def completions(listed, below, t):
    return [order for order in permutations(range(t)) if agrees(order, listed, below)]


def log_weight(order, tilts, scores):
    return sum(tilts[item] * score for item, score in zip(order, scores, strict=True))


def log_weights(listed, below, tilts, scores):
    return np.array([log_weight(order, tilts, scores) for order in completions(listed, below, len(tilts))])


def distribution_of(listed, below, tilts, scores):
    logs = log_weights(listed, below, tilts, scores)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def as_row(listed):
    return np.array([*listed, -1], dtype=np.int32)


def a_direction(t, seed, concentration):
    direction = np.random.default_rng(seed).normal(size=t)
    direction -= direction.mean()
    return concentration * direction / np.linalg.norm(direction)


# ---- the exact sum and the exact draw


def exact(listed, below, tilts, scores):
    work = np.empty(kernels.work_size(len(listed), below, len(tilts)))
    unlisted = np.empty(len(tilts), np.int32)
    return kernels.exact_log_sum(as_row(listed), len(listed), below, tilts, scores, work, unlisted)


def log_sum_exp(logs):
    return logs.max() + np.log(np.sum(np.exp(logs - logs.max())))


@pytest.mark.parametrize("concentration", [0.0, 3.0, 200.0, 400.0, 20_000.0])
def test_the_exact_sum_at_four_items(concentration):
    scores, tilts = standard_scores(4), a_direction(4, 1, concentration)
    for listed, below in FOUR:
        expected = log_sum_exp(log_weights(listed, below, tilts, scores))
        assert exact(listed, below, tilts, scores) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        # Twins: the other reading of the same list, and the other sign.
        if 0 < len(listed) < 3 and concentration == 3.0:
            assert exact(listed, not below, tilts, scores) != pytest.approx(expected, rel=1e-6)
            if below or len(listed) > 1:  # one item out of an unknown rest says nothing
                assert exact(listed, below, -tilts, scores) != pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("concentration", [5.0, 1000.0])
@pytest.mark.parametrize("below", [False, True])
def test_the_exact_sum_at_seven_items(concentration, below):
    """Also with scores and tilts of no particular kind."""
    rng = np.random.default_rng(3)
    for length in (0, 2, 4, 6, 7):
        listed = tuple(rng.permutation(7)[:length].tolist())
        scores, tilts = np.sort(rng.normal(size=7)), concentration * rng.normal(size=7)
        expected = log_sum_exp(log_weights(listed, below, tilts, scores))
        assert exact(listed, below, tilts, scores) == pytest.approx(expected, rel=1e-12)


@kernel
def exact_draws(listed, length, below, tilts, scores, out):
    stream = new_stream()
    work = np.empty(kernels.work_size(length, below, tilts.size))
    unlisted = np.empty(tilts.size, np.int32)
    for row in range(out.shape[0]):
        open_stream(stream, 11, 12, 0, row)
        kernels.exact_completion(stream, listed, length, below, tilts, scores, work, unlisted, out[row])


@kernel
def moved_draws(start, listed, length, below, tilts, scores, n_proposals, out):
    stream = new_stream()
    scratch = np.empty((3, tilts.size), np.int32)
    for row in range(out.shape[0]):
        out[row] = start
        open_stream(stream, 21, 22, 0, row)
        kernels.move_completion(stream, out[row], listed, length, below, tilts, scores, n_proposals, scratch)


@kernel
def uniform_draws(listed, length, below, out):
    stream = new_stream()
    scratch = np.empty((3, out.shape[1]), np.int32)
    for row in range(out.shape[0]):
        open_stream(stream, 31, 32, 0, row)
        kernels.uniform_completion(stream, listed, length, below, out[row], scratch)


def agrees_with(draws, orders, distribution):
    """Say whether independent draws follow a distribution: Pearson's statistic within six deviations.

    With cells of expectation under 5 put together. No draw may be of probability nil.
    """
    number = {order: at for at, order in enumerate(orders)}
    if any(tuple(draw) not in number for draw in draws.tolist()):
        return False
    counts = np.bincount([number[tuple(draw)] for draw in draws.tolist()], minlength=len(orders))
    expected = distribution * len(draws)
    small = expected < 5.0
    if (counts[distribution <= 0.0] > 0).any():
        return False
    cells = np.append(counts[~small], counts[small].sum())
    means = np.append(expected[~small], expected[small].sum())
    if means[-1] < 1.0:
        if cells[-1] > 10:
            return False
        cells, means = cells[:-1], means[:-1]
    freedom = max(len(cells) - 1, 1)
    statistic = np.sum((cells - means) ** 2 / means)
    return bool(statistic < freedom + 6.0 * np.sqrt(2.0 * freedom) + 6.0)


@pytest.mark.parametrize("concentration", [4.0, 500.0])
def test_exact_draws_follow_the_distribution(concentration):
    scores, tilts = standard_scores(4), a_direction(4, 2, concentration)
    for listed, below in FOUR:
        draws = np.empty((2000, 4), np.int32)
        exact_draws(as_row(listed), len(listed), below, tilts, scores, draws)
        distribution = distribution_of(listed, below, tilts, scores)
        assert agrees_with(draws, completions(listed, below, 4), distribution)


def test_uniform_draws_are_uniform():
    for listed, below in FOUR:
        draws = np.empty((2000, 4), np.int32)
        uniform_draws(as_row(listed), len(listed), below, draws)
        orders = completions(listed, below, 4)
        assert agrees_with(draws, orders, np.full(len(orders), 1.0 / len(orders)))


def test_moves_reach_every_completion_under_a_flat_model():
    for listed, below in FOUR:
        # One of 24 is left out by all of so many draws once in 10^9 runs.
        draws, orders = np.empty((600, 4), np.int32), completions(listed, below, 4)
        start = np.array(orders[0], np.int32)
        moved_draws(start, as_row(listed), len(listed), below, np.zeros(4), standard_scores(4), 40, draws)
        assert set(map(tuple, draws.tolist())) == set(orders)


# ---- one proposal: a reference that reads the same word, and its exact transition matrix


def octaves(n_places):
    return max(int(n_places - 1).bit_length(), 0)


def calm_octave(listed, below, tilts, scores, share=1.0):
    t, floor = len(tilts), len(listed) if below else 0
    spread = np.std([tilts[item] for item in range(t) if item not in listed])
    unit = share * np.sqrt(2.0) * spread * abs(scores[-1] - scores[floor]) / (t - floor)
    calm = 0
    while calm < octaves(t - floor) - 1 and 2 ** (calm + 1) * unit < 1.0:
        calm += 1
    return calm


def distance_of(may_be_short, octave_bits, place_bits, n_places, calm):
    shortest = 0 if may_be_short else calm
    least = 1 << (shortest + (octave_bits * (octaves(n_places) - shortest)) // 64)
    return least + (place_bits * min(least, n_places - least)) // 1024


def leaders(kind, listed, below, t):
    """Items that lead proposals of a kind, 0..31."""
    if listed and not below and kind >= 32 - kernels.LISTED_LEAD:
        return list(listed)
    return [item for item in range(t) if item not in listed]


def decoded(word, listed, below, tilts, scores):
    """Read a word as the kernel does: leading item, signed distance, first bits of the uniform number."""
    t, floor = len(tilts), len(listed) if below else 0
    coarse, bits, item_bits = word % 2**19, word // 2**19 % 2**25, word >> 44
    calm = calm_octave(listed, below, tilts, scores)
    distance = distance_of(bits % 8 == 0, bits // 8 % 64, bits // 512 % 1024, t - floor, calm)
    among = leaders(bits >> 20, listed, below, t)
    item = among[item_bits * len(among) >> ITEM_BITS]
    if item in listed and item_bits * len(among) % 2**ITEM_BITS < 2**ITEM_BITS % len(among):
        distance = 0  # no proposal
    return item, distance if bits >> 19 & 1 else -distance, coarse


def moved(order, item, distance, listed, below):
    """Where a proposal leads: an exchange, after which listed items take their places in their order."""
    source, floor = order.index(item), len(listed) if below else 0
    target = floor + (source - floor + distance) % (len(order) - floor)
    if item in listed and order[target] in listed:
        return order
    new = list(order)
    new[source], new[target] = new[target], new[source]
    in_order = iter(listed)
    return tuple(next(in_order) if item in listed else item for item in new)


def moved_out_of_the_gap(order, item, distance, listed, below):
    """Twin: the exchange alone, which may carry a listed item past another."""
    source, floor = order.index(item), len(listed) if below else 0
    target = floor + (source - floor + distance) % (len(order) - floor)
    new = list(order)
    new[source], new[target] = new[target], new[source]
    return tuple(new)


def moved_within_reach(order, item, distance, listed, below):
    """Twin: what would leave the ranks stops at their end, so that the ways there and back differ."""
    source, floor = order.index(item), len(listed) if below else 0
    target = min(max(source + distance, floor), len(order) - 1)
    return moved(order, item, target - source, listed, below)


def moved_as_subset(order, item, distance, listed, below):
    """Twin: a top list treated as a ranking of a subset."""
    return moved(order, item, distance, listed, False)


@cache
def distances_of(n_places, calm):
    """Probabilities of distances from the bits they are made of."""
    distances = {}
    for may_be_short, share in ((True, 1 / 8), (False, 7 / 8)):
        for octave_bits in range(64):
            for place_bits in range(1024):
                distance = distance_of(may_be_short, octave_bits, place_bits, n_places, calm)
                distances[distance] = distances.get(distance, 0.0) + share / 65536
    return distances


def proposal_distribution(listed, below, tilts, scores, fair=True):
    """Probabilities of (item, signed distance) from the bits they are made of."""
    t, floor = len(tilts), len(listed) if below else 0
    distances = distances_of(t - floor, calm_octave(listed, below, tilts, scores))
    distribution = {}
    for kind in range(32):
        among = leaders(kind, listed, below, t)
        ends = [-(-(at << ITEM_BITS) // len(among)) for at in range(len(among) + 1)]
        for at, item in enumerate(among):
            chance = (ends[at + 1] - ends[at]) / 2**ITEM_BITS / 32
            if item in listed and fair:
                chance = (2**ITEM_BITS // len(among)) / 2**ITEM_BITS / 32
            for distance, share in distances.items():
                for signed in (distance, -distance):
                    distribution[item, signed] = distribution.get((item, signed), 0.0) + chance * share / 2
    return distribution


def transition_matrix(listed, below, tilts, scores, move=moved, sign=1.0, fair=True):
    """One proposal's transition matrix over the completions; None where it leaves them."""
    orders = completions(listed, below, len(tilts))
    number = {order: at for at, order in enumerate(orders)}
    logs = log_weights(listed, below, tilts, scores)
    matrix = np.zeros((len(orders), len(orders)))
    for (item, distance), chance in proposal_distribution(listed, below, tilts, scores, fair).items():
        for at, order in enumerate(orders):
            new = move(order, item, distance, listed, below)
            if new not in number:
                return None
            accepted = min(1.0, np.exp(min(sign * (logs[number[new]] - logs[at]), 0.0)))
            matrix[at, number[new]] += chance * accepted
            matrix[at, at] += chance * (1.0 - accepted)
    return matrix + np.diag(1.0 - matrix.sum(axis=1))  # words that propose nothing


def has_something_to_move(listed, below, t):
    return len(completions(listed, below, t)) > 1


MOVING = [(listed, below) for listed, below in FOUR if has_something_to_move(listed, below, 4)]
EVERY_THIRD = pytest.mark.parametrize(
    "patterns", first_in_every_run([MOVING[::3], MOVING[1::3], MOVING[2::3]]), ids=range(3)
)


def leaves_invariant(matrix, distribution):
    return (
        matrix is not None
        and np.abs(matrix.sum(axis=1) - 1.0).max() < 1e-12
        and np.abs(distribution @ matrix - distribution).max() < 1e-13
    )


@EVERY_THIRD
def test_one_proposal_leaves_the_distribution_and_reaches_everything(patterns):
    scores, tilts = standard_scores(4), a_direction(4, 4, 4.0)
    for listed, below in patterns:
        matrix = transition_matrix(listed, below, tilts, scores)
        assert leaves_invariant(matrix, distribution_of(listed, below, tilts, scores))
        assert (np.linalg.matrix_power(matrix, 2 * len(matrix)) > 0.0).all()


@pytest.mark.parametrize(
    ("listed", "below", "twin"),
    [
        ((3, 1), False, {"move": moved_out_of_the_gap}),
        ((2,), False, {"move": moved_within_reach}),
        ((2,), True, {"move": moved_within_reach}),
        ((2, 0), False, {"sign": -1.0}),
        ((2,), True, {"move": moved_as_subset}),
        ((3, 1, 0), False, {"fair": False}),
    ],
)
def test_the_check_rejects_broken_twins(listed, below, twin):
    scores, tilts = standard_scores(4), a_direction(4, 4, 4.0)
    matrix = transition_matrix(listed, below, tilts, scores, **twin)
    assert not leaves_invariant(matrix, distribution_of(listed, below, tilts, scores))


@kernel
def first_words(n):
    words = np.empty((n, 3), np.uint64)
    stream = new_stream()
    for row in range(n):
        open_stream(stream, 21, 22, 0, row)
        words[row] = next_word(stream), next_word(stream), next_word(stream)
    return words


@pytest.mark.parametrize(("t", "concentration"), [(4, 3.0), (4, 30.0), (9, 2.0), (9, 40.0)])
def test_the_kernel_is_the_reference(t, concentration):
    """From the same words, state by state."""
    rng = np.random.default_rng(5)
    scores, tilts = standard_scores(t), a_direction(t, 6, concentration)
    rows = (
        MOVING if t == 4 else [(tuple(rng.permutation(t)[:k].tolist()), b) for k in (0, 3, 6) for b in (0, 1)]
    )
    words = first_words(100)
    seen = {"moved": 0, "stayed": 0}
    for listed, below in rows:
        below = bool(below)
        for _ in range(2):
            start = np.empty((1, t), np.int32)
            uniform_draws(as_row(listed), len(listed), below, start)
            start = tuple(start[0].tolist())
            draws = np.empty((len(words), t), np.int32)
            moved_draws(
                np.array(start, np.int32), as_row(listed), len(listed), below, tilts, scores, 1, draws
            )
            for draw, (coin, word, second) in zip(draws.tolist(), words.tolist(), strict=True):
                item, distance, coarse = decoded(word, listed, below, tilts, scores)
                new = moved(start, item, distance, listed, below)
                gain = log_weight(new, tilts, scores) - log_weight(start, tilts, scores)
                u = (coarse + (second >> 11) / 2**53) / 2**COARSE_BITS
                expected = new if coin % 2 == 0 and u < np.exp(gain) else start
                assert tuple(draw) == expected
                seen["moved" if expected != start else "stayed"] += 1
    assert min(seen.values()) > 100


@EVERY_THIRD
def test_frequencies_of_the_chain_for_every_pattern(patterns):
    """After 40 proposals from one start, against the power of the matrix; nearly the distribution itself."""
    scores, tilts = standard_scores(4), a_direction(4, 7, 3.0)
    for listed, below in patterns:
        orders = completions(listed, below, 4)
        start = orders[-1]
        draws = np.empty((2000, 4), np.int32)
        arguments = (as_row(listed), len(listed), below, tilts, scores, 40, draws)
        moved_draws(np.array(start, np.int32), *arguments)
        matrix = transition_matrix(listed, below, tilts, scores)
        # A coin leaves out one of the 40.
        power = np.linalg.matrix_power(matrix, 39) @ (np.eye(len(matrix)) + matrix) / 2.0
        distribution = distribution_of(listed, below, tilts, scores)
        assert agrees_with(draws, orders, power[orders.index(start)])
        assert agrees_with(draws, orders, distribution)
        if len(orders) > 4:  # what the bound can tell
            assert not agrees_with(draws, orders, distribution_of(listed, below, -tilts, scores))
            if below and listed:
                other = completions(listed, False, 4)
                assert not agrees_with(draws, other, distribution_of(listed, False, tilts, scores))


def test_the_example_of_the_paper():
    """R = (2, -, 3, 4, 1) has five completions; they are printed as rank vectors."""
    printed = {(2, 5, 3, 4, 1), (2, 4, 3, 5, 1), (2, 3, 4, 5, 1), (3, 2, 4, 5, 1), (3, 1, 4, 5, 2)}
    listed, scores = (4, 0, 2, 3), standard_scores(5)
    draws = np.empty((500, 5), np.int32)
    moved_draws(np.array([4, 0, 2, 3, 1], np.int32), as_row(listed), 4, False, np.zeros(5), scores, 30, draws)
    assert {tuple((np.argsort(draw) + 1).tolist()) for draw in draws} == printed
    assert exact(listed, False, np.zeros(5), scores) == pytest.approx(np.log(5.0), rel=1e-14)


# ---- sweeps over rows, starts, large rows


def many_rows(n_rows, t, lengths, below, seed):
    rng = np.random.default_rng(seed)
    lengths = np.resize(np.asarray(lengths, np.int64), n_rows)
    listed = np.full((n_rows, t), -1, np.int32)
    for row, length in enumerate(lengths.tolist()):
        listed[row, :length] = rng.permutation(t)[:length]
    return listed, lengths, np.resize(np.asarray(below), n_rows) | (lengths == t)


def all_agree(orders, listed, lengths, below):
    return all(
        sorted(order) == list(range(len(order))) and agrees(order, row[:length], behind)
        for order, row, length, behind in zip(
            orders.tolist(), listed.tolist(), lengths.tolist(), below.tolist(), strict=True
        )
    )


def swept(parts, listed, lengths, below, labels, tilts, scores, n_sweeps=3, n_proposals=25):
    key = np.array([3, 4], np.uint64)
    orders = np.empty((len(lengths), len(scores)), np.int32)
    for first, last in pairwise(parts):
        kernels.start_completions(key, 0, first, last, listed, lengths, below, labels, tilts, scores, orders)
        for sweep in range(1, n_sweeps + 1):
            kernels.completions_sweep(
                key, sweep, first, last, orders, listed, lengths, below, labels, tilts, scores, n_proposals
            )
    return orders


@pytest.mark.parametrize("concentration", [0.0, 20.0, 1e5])
def test_sweeps_keep_to_the_rows_and_do_not_depend_on_their_division(concentration):
    t = 17
    listed, lengths, below = many_rows(60, t, [0, 1, 5, 12, 16, 17], [False, True, False, False, True], 8)
    labels = np.arange(60) % 2
    tilts = np.array([a_direction(t, 9, concentration), a_direction(t, 10, concentration)])
    scores = standard_scores(t)
    arguments = (listed, lengths, below, labels, tilts, scores)
    orders = swept([0, 60], *arguments)
    assert all_agree(orders, listed, lengths, below)
    assert np.array_equal(orders, swept([0, 7, 8, 41, 60], *arguments))
    key = np.array([3, 4], np.uint64)
    starts = np.empty_like(orders)
    kernels.start_completions(key, 0, 0, 60, *arguments, starts)
    assert all_agree(starts, listed, lengths, below)
    assert not np.array_equal(orders, starts)
    other = swept([0, 60], listed, lengths, below, 1 - labels, tilts, scores)
    assert (concentration == 0.0) or not np.array_equal(orders, other)


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize("below", [False, True])
def test_the_smallest_rows(t, below):
    scores = np.linspace(-0.5, 0.5, 2)[:t]
    listed, lengths, below = many_rows(40, t, list(range(t + 1)), below, 1)
    arguments = (listed, lengths, below, np.zeros(40, np.int64), np.ones((1, t)), scores)
    assert all_agree(swept([0, 40], *arguments), listed, lengths, below)
    draws = np.empty((5, t), np.int32)
    moved_draws(np.arange(t, dtype=np.int32), as_row(range(t - 1)), t - 1, True, np.ones(t), scores, 9, draws)
    assert (draws == np.arange(t)).all()


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("concentration", [25.0, 200.0])
def test_chains_from_opposite_ends_meet_at_a_hundred_items(below, concentration):
    """Ten items listed of a hundred: after 60 sweeps the best start and the worst are forgotten."""
    t, k, n_chains = 100, 10, 300
    scores, tilts = standard_scores(t), a_direction(t, 12, concentration)
    listed = np.random.default_rng(13).permutation(t)[:k].astype(np.int32)
    rest = [item for item in np.argsort(tilts).tolist() if item not in listed.tolist()]
    first, last = [*listed.tolist(), *rest], [*rest[::-1], *listed.tolist()]
    if below:
        last = [*listed.tolist(), *rest[::-1]]
    found = []
    for start in (first, last):
        draws = np.empty((n_chains, t), np.int32)
        moved_draws(np.array(start, np.int32), listed, k, below, tilts, scores, 60 * t, draws)
        places = np.argsort(draws, axis=1)
        exponents = tilts[draws] @ scores
        found.append(np.column_stack([places, exponents]))
    # The two sets use the same streams, so give each half of the chains to one of them.
    one, other = found[0][::2], found[1][1::2]
    spread = np.sqrt((one.var(axis=0) + other.var(axis=0)) / (n_chains / 2))
    moves = spread > 0.0
    assert moves.sum() > t - k
    z = (one.mean(axis=0) - other.mean(axis=0))[moves] / spread[moves]
    assert np.abs(z).max() < 4.5
    assert 0.6 < np.mean(z**2) < 1.5
    starts = [log_weight(start, tilts, scores) for start in (first, last)]
    assert abs(starts[0] - starts[1]) > 4.0 * one[:, -1].std()  # they began far apart


# ---- annealing


@kernel
def annealed(listed, length, below, tilts, scores, out):
    stream = new_stream()
    scratch = np.empty((3, tilts.size), np.int32)
    order = np.empty(tilts.size, np.int32)
    concentration, half, _ = kernels.annealing_plan(listed, length, below, tilts, scores)
    for particle in range(out.size):
        open_stream(stream, 41, 42, 0, particle)
        out[particle] = kernels.annealed_log_weight(
            stream, listed, length, below, tilts, scores, (concentration, half, 6), 3, order, scratch
        )


def test_annealed_weights_are_unbiased():
    """Even with six steps and three proposals each; a wrong sign or a wrong reading is seen."""
    t, n = 6, 40_000
    scores, tilts = standard_scores(t), a_direction(t, 14, 4.0)
    for listed, below in [((3, 1), False), ((5,), True), ((), False), ((0, 2, 4, 1), False)]:
        logs = np.empty(n)
        annealed(as_row(listed), len(listed), below, tilts, scores, logs)

        def misses(tilts, listed=listed, below=below, logs=logs):
            number = len(completions(listed, below, t))
            ratios = number * np.exp(logs - log_sum_exp(log_weights(listed, below, tilts, scores)))
            return abs(ratios.mean() - 1.0) / (ratios.std() / np.sqrt(n))

        assert misses(tilts) < 4.0
        if listed:
            assert misses(-tilts) > 6.0


@pytest.mark.parametrize("ratio", first_in_every_run([2.0, 0.5, 10.0]))
def test_annealed_sums_against_exact_ones(ratio):
    """Errors in units of their standard errors, over rows of 6 to 10 items, are standard normal, about."""
    z = []
    for t in range(6, 11):
        listed, lengths, below = many_rows(30, t, [0, 1, 2, 3, 4], [False, True], 15 + t)
        tilts = np.array([a_direction(t, 16 + t, ratio * t)])
        scores = standard_scores(t)
        sums, annealed_sums, errors = (np.empty((30, 1)) for _ in range(3))
        kernels.exact_log_sums(0, 30, listed, lengths, below, tilts, scores, sums)
        key, numbers = np.array([5, 6], np.uint64), np.arange(30)
        arguments = (listed, lengths, below, tilts, scores, numbers, 500, annealed_sums, errors)
        kernels.annealed_log_sums(key, 0, 30, *arguments)
        assert 0.0 < errors.max() < 0.2
        z.extend(((annealed_sums - sums) / errors)[:, 0])
    # 150 of them: the mean square is 1 with standard deviation 0.12, the mean 0 with 0.08.
    assert np.abs(z).max() < 4.5
    assert abs(np.mean(np.square(z)) - 1.0) < 0.5
    assert abs(np.mean(z)) < 0.35
