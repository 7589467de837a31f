"""Moves of centers against enumeration of all orderings."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import logsumexp

from permix.distributions.generalized.finite_beta_jit import stage_tables
from permix.dp_mallows.lists import center_moves_jit
from permix.dp_mallows.lists.center_moves_jit import draw_window, improve, stagewise
from permix.dp_mallows.lists.clusters_jit import log_prior_chances, move_center, update_centers
from permix.dp_mallows.lists.many_items_jit import ByList, find_mentions, shuffle_unmentioned
from permix.dp_mallows.lists.pair_counts_jit import ByPair, add_pairs, with_room
from permix.dp_mallows.lists.predictive_rows_jit import row_scratch, skip_bins
from permix.dp_mallows.lists.published_jit import PublishedRows
from permix.dp_mallows.lists.top_lists_jit import Members
from permix.dp_mallows.state import empty_slots, new_cluster
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream
from tests.dp_mallows.lists.test_top_lists import list_at, lists_of, naive_skips
from tests.every_run import first_in_every_run, pairs_in_every_run, turns_in_every_run
from tests.oracles.dp_mallows import decay_distribution, kolmogorov_bound, log_integral
from tests.oracles.mixtures import total_variation, total_variation_bound

N_ITEMS = 5
# Lists of one cluster with multiplicities. The cluster is entries 1 to the last but one of its members: what
# is before and after belongs to others.
CASES = {
    "mixed": {(0, 1, 2, 3): 1.0, (1, 0): 2.0, (2,): 1.0, (1, 3): 1.0},
    "unmentioned": {(3, 1): 1.0, (1,): 2.0, (3,): 1.0},
    "fractions": {(4, 0, 2): 0.5, (0, 2, 4, 1): 1.75, (3,): 0.25, (2, 0): 2.5},
    "in all": {(2, 0, 1): 1.0, (2, 4, 0): 1.0, (0, 2): 3.0, (1, 2, 3, 4): 1.0},
    "one short list": {(3,): 2.0},
}
THETA = np.array([0.7, 0.35, 1.1, 0.2])
OTHERS = [(4, 3, 2, 1), (1, 4)]
ORDERS = list(permutations(range(N_ITEMS)))
INDEX = {order: k for k, order in enumerate(ORDERS)}


@kernel
def attract(mentions, theta):
    center_moves_jit.attract(mentions, theta)


@kernel
def reinsert(stream, mentions, theta, order, places):
    center_moves_jit.reinsert(stream, mentions, theta, order, places)


@kernel
def stage_by_stage(stream, mentions, theta, n_window, how, out):
    return center_moves_jit.stage_by_stage(stream, mentions, theta, n_window, how, out)


class Cluster:
    """A cluster as the kernels see it, between two others.

    ``shift`` gives items other numbers. Pairs are counted, or read from the lists and tabulated, or walked.
    """

    def __init__(self, case, strength=1.0, rates=(1.0, 1.0, 1.0, 1.0), shift=0, way="counted"):
        self.weights = {
            tuple((item + shift) % N_ITEMS for item in row): weight for row, weight in CASES[case].items()
        }
        self.strength, self.rates = strength, np.array(rates)
        self.lists = lists_of([OTHERS[0], *self.weights, OTHERS[1]], N_ITEMS)
        number = {list_at(self.lists, d): d for d in range(len(self.lists.starts) - 1)}
        self.members = Members(
            np.array([number[row] for row in (OTHERS[0], *self.weights, OTHERS[1])], dtype=np.int32),
            np.array([5.0, *self.weights.values(), 7.0]),
        )
        span = np.array([1, 1 + len(self.weights)])
        if way == "counted":
            pairs = np.zeros((1, 4, N_ITEMS, N_ITEMS))
            for d, times in list(zip(*self.members, strict=True))[1:-1]:
                add_pairs(self.lists, d, times, pairs[0])
            self.source = ByPair(pairs, np.full(1, -1, dtype=np.int32))
            self.mentions = with_room(pairs[0])
        else:
            self.source = ByList(self.lists, span, self.members)
            self.mentions = find_mentions(self.lists, self.members, *span, N_ITEMS)
        if way == "walked":
            self.mentions = self.mentions._replace(table=np.empty((0, 0)))
        attract(self.mentions, THETA)
        self.tables = stage_tables(N_ITEMS, 4, self.rates, strength, 20)
        self.stream = new_stream()
        open_stream(self.stream, 5, 6, 0, 0)
        self.mentioned = sorted({item for row in self.weights for item in row})

    @property
    def data(self):
        return self.mentions, THETA

    def statistics(self, order):
        """S_j and N_j by stage."""
        totals, counts = np.zeros(4), np.zeros(4)
        for row, weight in self.weights.items():
            for j, skip in enumerate(naive_skips(row, list(order))):
                totals[j] += weight * skip
                counts[j] += weight
        return totals, counts

    def distribution_given_decays(self):
        energies = np.array([THETA @ self.statistics(order)[0] for order in ORDERS])
        return np.exp(-energies - logsumexp(-energies))

    def distribution(self):
        """Decays integrated out."""
        scores = []
        for order in ORDERS:
            totals, counts = self.statistics(order)
            a, b = self.strength * self.rates + totals, self.strength + counts + 1
            scores.append(sum(log_integral(a[j], b[j], N_ITEMS - 1 - j) for j in range(4)))
        return np.exp(np.array(scores) - logsumexp(scores))


def center(order):
    order = np.array(order, dtype=np.int32)
    return order, np.argsort(order).astype(np.int16)


def log_normalizers(made, order, low=0, high=N_ITEMS):
    """Σ ln of the stages' normalizers of the window of an ordering, as the kernel weighs it."""
    window = np.array(order[low:high], dtype=np.int32)
    made.mentions.window[: high - low] = window
    return stage_by_stage(made.stream, *made.data, high - low, 1, window)


def after(move, starts):
    """Frequencies of orderings after one move from each of the starts."""
    counts = np.zeros(len(ORDERS))
    for start in starts:
        order, places = center(ORDERS[start])
        move(order, places)
        assert np.array_equal(places[order], np.arange(N_ITEMS))
        counts[INDEX[tuple(order.tolist())]] += 1
    return counts / len(starts)


# One item at a time.

WAYS = ("counted", "tabulated", "walked")
SOURCES = pytest.mark.parametrize("way", ["counted", "tabulated"])


def conditional(pi, rest, item):
    """Probabilities of the places of an item among the others."""
    chances = np.array([pi[INDEX[(*rest[:p], item, *rest[p:])]] for p in range(N_ITEMS)])
    return chances / chances.sum()


@pytest.mark.parametrize(("case", "shift", "way"), pairs_in_every_run(CASES, range(N_ITEMS), WAYS))
def test_reinsertion_has_the_exact_conditional_distribution(case, shift, way):
    """The energies that are left are those of the item moved last; every item has its turn to be that."""
    made = Cluster(case, shift=shift, way=way)
    pi = made.distribution_given_decays()
    if way != "counted":
        assert made.mentions.mentioned.tolist() == made.mentioned
    item = N_ITEMS - 1 if way == "counted" else made.mentioned[-1]
    seen = set()
    for start in ORDERS:
        order, places = center(start)
        reinsert(made.stream, *made.data, order, places)
        assert np.array_equal(places[order], np.arange(N_ITEMS))
        weights = np.exp(made.mentions.energies[:N_ITEMS] - made.mentions.energies[:N_ITEMS].max())
        rest = tuple(other for other in order.tolist() if other != item)
        seen.add(rest)
        np.testing.assert_allclose(weights / weights.sum(), conditional(pi, rest, item), rtol=1e-11)
        assert way == "counted" or np.all(made.mentions.balance == 0.0)
    assert len(seen) > 3


@pytest.mark.parametrize(("case", "way"), turns_in_every_run(CASES, WAYS))
def test_reinsertion_goes_where_its_probabilities_say(case, way):
    made = Cluster(case, way=way)
    pi = made.distribution_given_decays()
    start = INDEX[(1, 4, 0, 3, 2)]
    expected = np.zeros(len(ORDERS))
    expected[start] = 1.0
    for item in range(N_ITEMS) if way == "counted" else made.mentioned:
        moved = np.zeros(len(ORDERS))
        for number in np.flatnonzero(expected):
            rest = tuple(other for other in ORDERS[number] if other != item)
            for p, chance in enumerate(conditional(pi, rest, item)):
                moved[INDEX[(*rest[:p], item, *rest[p:])]] += expected[number] * chance
        expected = moved
    if way != "counted":  # items that nobody mentions are shuffled
        moved = np.zeros(len(ORDERS))
        others = [item for item in range(N_ITEMS) if item not in made.mentioned]
        for number in np.flatnonzero(expected):
            for names in permutations(others):
                name = dict(zip(others, names, strict=True))
                order = tuple(name.get(item, item) for item in ORDERS[number])
                moved[INDEX[order]] += expected[number] / math.factorial(len(others))
        expected = moved
    frequencies = after(lambda o, p: reinsert(made.stream, *made.data, o, p), [start] * 5000)
    assert total_variation(frequencies, expected) < total_variation_bound(expected, 5000)


# Stage by stage.


@kernel
def moved_as_published(stream, mentions, theta, order, places):
    move_center(PublishedRows(True), stream, mentions, theta, order, places)


def moved_stagewise(made, order, places, exact):
    """Move the whole center, corrected or as published; returns whether the proposal was accepted."""
    if exact:
        return stagewise(made.stream, *made.data, order, places, 0, N_ITEMS)
    moved_as_published(made.stream, *made.data, order, places)
    return True


@pytest.mark.parametrize(("case", "way"), turns_in_every_run(CASES, WAYS))
def test_stagewise_distribution_and_its_correction(case, way):
    made = Cluster(case, way=way)
    pi = made.distribution_given_decays()
    normalizers = np.array([log_normalizers(made, order) for order in ORDERS])
    energies = np.array([THETA @ made.statistics(order)[0] for order in ORDERS])
    q = np.exp(-energies - normalizers)
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    acceptance = np.minimum(1.0, np.exp(normalizers[None, :] - normalizers[:, None]))
    matrix = q * acceptance
    matrix[np.diag_indices(len(ORDERS))] += 1.0 - matrix.sum(axis=1)
    np.testing.assert_allclose(pi @ matrix, pi, atol=1e-12)
    # The compiled move has this distribution and takes as many proposals.
    n_draws = 6000
    for exact, row in ((True, matrix[17]), (False, q)):
        taken = []

        def move(order, places, exact=exact, taken=taken):
            taken.append(moved_stagewise(made, order, places, exact))

        frequencies = after(move, [17] * n_draws)
        assert total_variation(frequencies, row) < total_variation_bound(row, n_draws)
        rate = (q * acceptance[17]).sum() if exact else 1.0
        assert abs(np.mean(taken) - rate) <= 5 * math.sqrt(rate * (1 - rate) / n_draws)


WINDOWS = [(0, 2), (1, 4), (2, 5), (3, 5)]


@pytest.mark.parametrize(("window", "way", "case"), turns_in_every_run(WINDOWS, WAYS, CASES))
def test_stagewise_within_a_window(case, window, way):
    low, high = window
    made = Cluster(case, way=way)
    pi = made.distribution_given_decays()
    start = (2, 0, 4, 1, 3)
    options = [(*start[:low], *inner, *start[high:]) for inner in permutations(start[low:high])]
    numbers = np.array([INDEX[option] for option in options])
    given_rest = pi[numbers] / pi[numbers].sum()
    normalizers = np.array([log_normalizers(made, option, low, high) for option in options])
    # Within the window, target over proposal is the product of the normalizers, up to a constant.
    q = given_rest * np.exp(-normalizers)
    q /= q.sum()
    acceptance = np.minimum(1.0, np.exp(normalizers[None, :] - normalizers[:, None]))
    matrix = q * acceptance
    matrix[np.diag_indices(len(options))] += 1.0 - matrix.sum(axis=1)
    np.testing.assert_allclose(given_rest @ matrix, given_rest, atol=1e-12)
    row = np.zeros(len(ORDERS))
    row[numbers] = matrix[options.index(start)]
    frequencies = after(
        lambda o, p: stagewise(made.stream, *made.data, o, p, low, high),
        [INDEX[start]] * 3000,
    )
    assert total_variation(frequencies, row) < total_variation_bound(row, 3000)


def test_lemma_2_is_not_exact():
    """The uncorrected move from the exact distribution leads away from it; the corrected one does not."""
    made = Cluster("in all")
    pi = made.distribution_given_decays()
    n_draws = 3_000
    starts = np.random.default_rng(0).choice(len(ORDERS), n_draws, p=pi)
    bound = total_variation_bound(pi, n_draws)
    for exact in (True, False):

        def move(order, places, exact=exact):
            moved_stagewise(made, order, places, exact)

        assert (total_variation(after(move, starts), pi) < bound) == exact


def test_windows_do_not_favor_places():
    stream = new_stream()
    open_stream(stream, 1, 2, 3, 4)
    for n in (2, 3, 7):
        seen = np.array([draw_window(stream, n) for _ in range(20_000)])
        low, high = seen.T
        assert np.all((low >= 0) & (high <= n) & (high - low >= 2))
        assert set(high - low) == set(range(2, n + 1))
        for length in range(2, n + 1):
            chosen = low[high - low == length]
            expected = np.full(n - length + 1, 1 / (n - length + 1))
            frequencies = np.bincount(chosen, minlength=len(expected)) / len(chosen)
            assert total_variation(frequencies, expected) <= total_variation_bound(expected, len(chosen))
    assert draw_window(stream, 1) == (0, 1)


def test_shuffling():
    made = Cluster("unmentioned", way="tabulated")
    start = (0, 3, 2, 1, 4)  # 0, 2 and 4 are not mentioned
    frequencies = after(
        lambda o, p: shuffle_unmentioned(made.stream, made.mentions, o, p),
        [INDEX[start]] * 6000,
    )
    expected = np.zeros(len(ORDERS))
    for a, b, c in permutations((0, 2, 4)):
        expected[INDEX[(a, 3, b, 1, c)]] = 1 / 6
    assert total_variation(frequencies, expected) < total_variation_bound(expected, 6000)
    full = Cluster("in all", way="tabulated")
    order, places = center(start)
    shuffle_unmentioned(full.stream, full.mentions, order, places)
    assert tuple(order) == start


@SOURCES
@pytest.mark.parametrize("case", CASES)
def test_greedy_center_takes_the_best_item_at_every_stage(case, way):
    made = Cluster(case, way=way)
    order, places = center(range(N_ITEMS))
    room = np.empty((2, 4))
    improve(made.source, 0, made.tables, 1, made.stream, order, places, *room, THETA.copy())
    assert sorted(order.tolist()) == list(range(N_ITEMS))
    assert np.array_equal(places[order], np.arange(N_ITEMS))
    left = list(range(N_ITEMS))
    for item in order.tolist():
        # Cost of putting x first: θ_j for every item left of a list that does not follow x there.
        costs = {}
        for x in left:
            costs[x] = sum(
                weight * THETA[j]
                for row, weight in made.weights.items()
                for j, y in enumerate(row)
                if y in left and y != x and x not in row[:j]
            )
        assert costs[item] == pytest.approx(min(costs.values()))
        left.remove(item)


# Decays integrated out.


ROWS = {"exact": row_scratch(), "beta-gibbs": PublishedRows(False), "slice-gibbs": PublishedRows(True)}


def moved_by(made, how, n_rounds, starts, seed=0, redraw=True):
    """Orderings and decays after an update from each start."""
    rows, bins = ROWS[how], skip_bins(N_ITEMS, exact=True)
    chances = np.exp(log_prior_chances(made.tables, N_ITEMS))
    opening = new_cluster(made.tables, chances, chances)
    cluster = empty_slots(4, N_ITEMS, 4, bins)
    taken = np.zeros(1, dtype=np.int64)
    numbers, decays = [], []
    for turn, start in enumerate(starts):
        order, places = center(ORDERS[start])
        cluster.places[:, 0], cluster.theta[:] = places, 1.0
        totals, counts = cluster.totals[0], cluster.counts[0]
        totals[:], counts[:] = made.statistics(ORDERS[start])
        data = (made.source, made.lists, made.tables, opening, cluster)
        key = np.array([8 + seed, turn], dtype=np.uint64)
        update_centers(rows, *data, key, n_rounds, redraw, 0, 1, taken)
        order = np.argsort(cluster.places[:, 0])
        if turn < 500:
            np.testing.assert_allclose([totals, counts], made.statistics(order), atol=1e-12)
            assert np.array_equal(cluster.places[order, 0], np.arange(N_ITEMS))
        numbers.append(INDEX[tuple(order.tolist())])
        decays.append(cluster.theta[0].copy())
    return np.array(numbers), np.array(decays)


PRIORS = {"mixed": (1.0, (1.0, 1.0, 1.0, 1.0)), "unmentioned": (0.4, (2.0, 1.0, 0.5, 1.0))}
PRIORS |= {"fractions": (3.0, (0.3, 1.0, 2.0, 1.5)), "in all": (1.0, (1.0, 1.0, 1.0, 1.0))}


@pytest.mark.parametrize(
    ("case", "way", "redraw"),
    [*product(PRIORS, ["counted"], [True]), ("fractions", "counted", False), ("mixed", "tabulated", True)],
)
def test_update_leaves_the_distribution_of_centers_and_decays_invariant(case, way, redraw):
    """Decays may be those that the center was moved given, or drawn given where it went."""
    made = Cluster(case, *PRIORS[case], way=way)
    pi = made.distribution()
    n_draws = 6000
    starts = np.random.default_rng(1).choice(len(ORDERS), n_draws, p=pi)
    numbers, decays = moved_by(made, "exact", 1, starts, redraw=redraw)
    frequencies = np.bincount(numbers, minlength=len(ORDERS)) / n_draws
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_draws)
    assert np.mean(numbers != starts) > 0.5
    # Decays that are left are draws given the center, also at stages that no list reaches.
    for j in range(4):
        mixture = {}
        for order, chance in zip(ORDERS, pi, strict=True):
            totals, counts = made.statistics(order)
            key = (made.strength * made.rates[j] + totals[j], made.strength + counts[j] + 1, N_ITEMS - 1 - j)
            mixture[key] = mixture.get(key, 0.0) + chance
        probes = np.quantile(decays[:, j], np.linspace(0.02, 0.98, 25))
        exact = [sum(w * decay_distribution(x, *key) for key, w in mixture.items()) for x in probes]
        empirical = np.searchsorted(np.sort(decays[:, j]), probes, side="right") / n_draws
        assert np.abs(empirical - exact).max() < kolmogorov_bound(n_draws)


def test_decays_are_left_as_draws_given_the_center():
    """Wherever the update began: each falls evenly into the quantiles of its distribution."""
    made = Cluster("in all")
    n_draws = 800
    numbers, decays = moved_by(made, "exact", 1, [INDEX[(3, 1, 4, 0, 2)]] * n_draws)
    for j in range(4):
        levels = []
        for number, theta in zip(numbers, decays[:, j], strict=True):
            totals, counts = made.statistics(ORDERS[number])
            levels.append(decay_distribution(theta, 1.0 + totals[j], 2.0 + counts[j], N_ITEMS - 1 - j))
        distance = np.abs(np.sort(levels) - (np.arange(n_draws) + 0.5) / n_draws).max()
        assert distance < kolmogorov_bound(n_draws) + 0.5 / n_draws


@pytest.mark.parametrize(("case", "n_rounds"), [("mixed", 8), ("unmentioned", 4)])
def test_update_forgets_where_it_began(case, n_rounds):
    made = Cluster(case)
    pi = made.distribution()
    numbers, _ = moved_by(made, "exact", n_rounds, [INDEX[(4, 3, 2, 1, 0)]] * 4000)
    frequencies = np.bincount(numbers, minlength=len(ORDERS)) / 4000
    assert total_variation(frequencies, pi) < total_variation_bound(pi, 4000)


def test_update_shuffles_what_nobody_mentions():
    made = Cluster("one short list")
    numbers, _ = moved_by(made, "exact", 1, [INDEX[(4, 3, 2, 1, 0)]] * 4000)
    others = [tuple(item for item in ORDERS[number] if item != 3) for number in numbers]
    distribution = np.full(24, 1 / 24)
    frequencies = np.array([others.count(order) for order in permutations((0, 1, 2, 4))]) / 4000
    assert total_variation(frequencies, distribution) < total_variation_bound(distribution, 4000)


@pytest.mark.parametrize("how", first_in_every_run(["beta-gibbs", "slice-gibbs"]))
def test_published_updates_have_another_distribution(how):
    made = Cluster("in all")
    pi = made.distribution()
    n_draws = 3_000
    starts = np.random.default_rng(2).choice(len(ORDERS), n_draws, p=pi)
    numbers, _ = moved_by(made, how, 10, starts)
    frequencies = np.bincount(numbers, minlength=len(ORDERS)) / n_draws
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_draws)
