"""Moves of mixtures of generalized Mallows models leave the posterior of partitions and centers invariant."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from permix.dp_mallows import moves as dp_mallows_moves
from permix.dp_mallows.fit import sweep_move
from permix.dp_mallows.lists.assignment_jit import Instantiated, assign
from permix.dp_mallows.lists.clusters_jit import draw_some_decays
from permix.dp_mallows.lists.seating_jit import (
    HIGH,
    MOVED,
    OCCUPIED,
    POSITION,
    REFUSED,
    correction,
    fill_all_rows,
    seat_in_turn,
)
from permix.dp_mallows.lists.top_lists_jit import write_skips
from permix.dp_mallows.moves import Centers, CollapsedSeating, ListSplitMerge, ParallelSeating, SettledSeating
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.published import published_moves
from permix.kernels.streams import draw_key
from permix.moves import Concentration, Cycle
from permix.moves.base import Info, Move
from permix.partitions import (
    DirichletProcess,
    Gamma,
    MixtureOfFiniteMixtures,
    PitmanYor,
    canonical_labels,
)
from tests.distributions.generalized.test_finite_beta import quadrature
from tests.dp_mallows.list_cases import (
    FIVE,
    LISTS,
    agrees,
    check_statistics,
    model_of,
    placed,
    put,
    seated,
    visits_of,
)
from tests.every_run import first_in_every_run, turns_in_every_run
from tests.oracles.dp_mallows import (
    Enumeration,
    gamma_dirichlet_process,
    gaps,
    kolmogorov_bound,
    mixture_of_finite_mixtures,
    pitman_yor,
    visit_frequencies,
)
from tests.oracles.mixtures import total_variation, total_variation_bound


@dataclasses.dataclass(frozen=True)
class Case:
    """Lists with a prior, for the library and for the oracle."""

    lists: tuple
    alpha: float = 1.0
    discount: float = 0.0
    strength: float = 1.0
    rates: float | tuple = 1.0
    finite: tuple | None = None  # rate and pseudo-count of a mixture of finite mixtures instead

    @property
    def prior(self):
        if self.finite:
            return MixtureOfFiniteMixtures(*self.finite)
        return PitmanYor(self.alpha, self.discount) if self.discount else DirichletProcess(self.alpha)

    @property
    def rule(self):
        if self.finite:
            return mixture_of_finite_mixtures(*self.finite)
        return pitman_yor(self.alpha, self.discount)

    def state(self, seed=0, sampler="exact"):
        return seated(model_of(self.lists, 4, self.prior, self.strength, self.rates, sampler), seed)


CASES = {
    "dp": Case(LISTS),
    "five": Case(FIVE, 0.7),
    "pitman-yor": Case(LISTS, 0.2, 0.6),
    "other decays": Case(FIVE, 1.5, 0.0, 2.5, (0.4, 1.0, 2.0)),
    "mfm": Case(FIVE, strength=1.5, rates=0.6, finite=(2.0, 0.5)),
}


@cache
def posterior(name):
    case = CASES[name]
    return Enumeration(case.lists, 4, case.rule, case.strength, case.rates)


# The state.


def naive_log_joint(enumeration, labels, centers):
    """ln p(partition) + Σ ln p(lists, center)."""
    total = math.log(enumeration.prior(tuple(canonical_labels(np.array(labels)).tolist())))
    orders = {order: i for i, order in enumerate(permutations(range(enumeration.n_items)))}
    for k, center in enumerate(centers):
        members = tuple(enumeration.observed[i] for i, label in enumerate(labels) if label == k)
        total += enumeration._scores(members)[orders[tuple(int(x) for x in center)]]
    return total


@pytest.mark.parametrize("name", CASES)
def test_log_joint(name):
    rng = np.random.default_rng(0)
    case, enumeration = CASES[name], posterior(name)
    state = case.state()
    for _ in range(30):
        labels = canonical_labels(rng.integers(4, size=len(case.lists)))
        centers = [rng.permutation(4) for _ in range(labels.max() + 1)]
        put(state, labels, centers)
        check_statistics(state)
        assert state.log_joint() == pytest.approx(naive_log_joint(enumeration, labels, centers), abs=1e-8)
        assert state.record()["log_joint"] == state.log_joint()


def test_names_of_items_clusters_and_agents_do_not_matter():
    rng = np.random.default_rng(1)
    model = model_of(FIVE, 4, PitmanYor(0.4, 0.3), 1.5, (0.5, 1.0, 2.0))
    for _ in range(20):
        labels = canonical_labels(rng.integers(3, size=5))
        n_clusters = labels.max() + 1
        centers = [rng.permutation(4) for _ in range(n_clusters)]
        value = placed(model, labels, centers).log_joint()
        # Clusters.
        numbers = rng.permutation(n_clusters)
        swapped = [centers[k] for k in np.argsort(numbers)]
        assert placed(model, numbers[labels], swapped).log_joint() == pytest.approx(value, abs=1e-12)
        # Items.
        names = rng.permutation(4)
        renamed = model_of([tuple(names[list(row)]) for row in FIVE], 4, model.prior, 1.5, (0.5, 1.0, 2.0))
        assert placed(renamed, labels, [names[c] for c in centers]).log_joint() == pytest.approx(
            value, abs=1e-12
        )
        # Agents.
        order = rng.permutation(5)
        moved = model_of([FIVE[i] for i in order], 4, model.prior, 1.5, (0.5, 1.0, 2.0))
        assert placed(moved, labels[order], centers).log_joint() == pytest.approx(value, abs=1e-12)


# A visit, exactly: the compiled weights over all partitions with centers of three lists of three items.


def visit(state, agent, seed=0):
    """Visit one agent; returns the weights it chose from (clusters, then a new one), and the book."""
    model = state.model
    rows = model.rows()
    fill_all_rows(rows, model.tables, model.bins, state.clusters, state.n_clusters)
    book = np.zeros(5, dtype=np.int64)
    book[OCCUPIED] = book[HIGH] = state.n_clusters
    n_before = state.n_clusters
    weights = seat_in_turn(
        np.array([3, seed], dtype=np.uint64),
        state.openings,
        model.discount,
        rows,
        model.tables,
        model.bins,
        model.lists,
        state.clusters,
        model.opening,
        state.labels,
        np.array([agent]),
        book,
    )
    assert book[POSITION] == 1
    state.compact()
    return weights[: n_before + 1], book


THREE = ((0, 1, 2), (2,), (1, 0))


def visit_matrix(enumeration, model, agent):
    """Probabilities of one visit from and to every (partition, centers)."""
    states = [(labels, centers) for labels, centers, _ in enumeration.joint()]
    index = {state: k for k, state in enumerate(states)}
    new_centers = enumeration.center_distribution([agent])
    matrix = np.zeros((len(states), len(states)))
    state = placed(model, *states[0])

    def named(labels, centers):
        names = list(dict.fromkeys(labels))
        return tuple(names.index(label) for label in labels), tuple(centers[name] for name in names)

    for row, (labels, centers) in enumerate(states):
        put(state, labels, centers)
        weights, _ = visit(state, agent, row)
        check_statistics(state)
        found = tuple(canonical_labels(state.labels).tolist())
        weights /= weights.sum()
        reached = set()
        for k, weight in enumerate(weights):
            moved = list(labels)
            moved[agent] = k
            if weight == 0.0:
                continue
            reached.add(named(moved, [*centers, None])[0])
            if k < len(centers):
                matrix[row, index[named(moved, centers)]] += weight
            else:
                for center, chance in new_centers.items():
                    matrix[row, index[named(moved, [*centers, center])]] += weight * chance
        assert found in reached
    return matrix


@pytest.mark.parametrize(
    "case",
    first_in_every_run(
        [
            Case(THREE, 0.4, 0.3, 2.0, (0.5, 2.0)),
            Case(THREE, 1.0, 0.0, 2.0, (0.5, 2.0), (3.0, 0.4)),
            Case(THREE),
        ],
        2,
    ),
)
def test_visits_leave_the_joint_posterior_invariant(case):
    enumeration = Enumeration(THREE, 3, case.rule, case.strength, case.rates)
    model = model_of(THREE, 3, case.prior, case.strength, case.rates)
    pi = np.array([p for _, _, p in enumeration.joint()])
    for agent in range(3):
        matrix = visit_matrix(enumeration, model, agent)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(pi @ matrix, pi, atol=1e-8)
        flow = pi[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, atol=1e-8)
    published = model_of(THREE, 3, case.prior, case.strength, case.rates, sampler="beta-gibbs")
    assert total_variation(pi @ visit_matrix(enumeration, published, 0), pi) > 1e-3


@pytest.mark.parametrize("agent", range(3))
def test_new_centers_have_the_distribution_of_lemma_7(agent):
    """Agents are taken out and seated in clusters of their own; the center is a draw given the list."""
    enumeration = Enumeration(THREE, 3, strength=0.5, rates=(2.0, 1.0))
    model = model_of(THREE, 3, DirichletProcess(1e9), 0.5, (2.0, 1.0))
    distribution = enumeration.center_distribution([agent])
    orders = {order: k for k, order in enumerate(distribution)}
    counts = np.zeros(len(orders))
    state = placed(model, (0, 0, 0), [(0, 1, 2)])
    for seed in range(800):
        put(state, (0, 0, 0), [(0, 1, 2)])
        visit(state, agent, seed)
        assert state.n_clusters == 2
        counts[orders[tuple(state.centers()[state.labels[agent]].tolist())]] += 1
    exact = np.array(list(distribution.values()))
    assert total_variation(counts / 800, exact) < total_variation_bound(exact, 800)
    assert total_variation(counts / 800, np.full(6, 1 / 6)) > total_variation_bound(np.full(6, 1 / 6), 800)


# Assigning all at once, with centers and pins that stay: the distribution of the others' clusters is known.


class Pins(np.random.Generator):
    """Says always the same for which agents are pinned."""

    def __init__(self, pinned, seed):
        super().__init__(np.random.PCG64(seed))
        self.draws = np.where(pinned, 0.0, 1.0)

    def random(self, size=None):
        return self.draws if size == len(self.draws) else super().random(size)


@pytest.mark.parametrize(("alpha", "discount"), first_in_every_run([(0.5, 0.7), (1.0, 0.0)]))
def test_assignments_given_pins(alpha, discount):
    prior = PitmanYor(alpha, discount) if discount else DirichletProcess(alpha)
    lists = ((0, 1), (1, 0), (1, 3, 0), (0,), (2,), (3, 1), (3, 0))
    centers = [(0, 1, 2, 3), (1, 0, 3, 2), (3, 2, 1, 0)]
    first = np.array([0, 0, 1, 0, 1, 1, 2])
    pinned = np.isin(np.arange(7), (0, 2))  # nobody of the third cluster: its member stays as well
    free = [1, 3, 4, 5]
    state = placed(model_of(lists, 4, prior, 1.5, (0.5, 1.0, 2.0)), first, centers)
    options = []
    for choice in product((0, 1), repeat=4):
        labels = first.copy()
        labels[free] = choice
        options.append(tuple(labels.tolist()))
    scores = []
    for labels in options:
        put(state, labels, centers)
        scores.append(state.log_joint())
    exact = np.exp(np.array(scores) - logsumexp(scores))
    put(state, first, centers)
    rng = Pins(pinned, 9)
    move = ParallelSeating(0.5)
    visits = np.empty(3000, dtype=np.int64)
    for t in range(len(visits)):
        move.step(rng, state)
        visits[t] = options.index(tuple(state.labels.tolist()))
        if t < 50:
            check_statistics(state)
    assert agrees(visits, options, exact)


# Chains. The move in question comes last, so that what it does is what is seen.

SMART, BLIND = ListSplitMerge(2, 0), ListSplitMerge(0, 3)
MOVES = {
    "visits": [Centers(), CollapsedSeating()],
    "decays given": [SettledSeating()],
    "a share of the visits": [SettledSeating(0.4)],
    "pins 0.6": [SettledSeating(), Centers(), ParallelSeating(0.6)],
    "smart": [Centers(), SMART],
    "blind": [Centers(), BLIND],
    "pins 0.25": [SettledSeating(), Centers(), ParallelSeating(0.25)],
}


def settings(case, **options):
    return DPMallowsParameters(prior=case.prior, **options)


def fitted(case, assignments):
    """What one iteration of a fit does, but measured after the split-merge moves."""
    moves = list(sweep_move(settings(case, assignments=assignments)).moves)
    return [moves[-2], moves[-1], *moves[:-2]]


def chain_agrees(name, moves, n_steps, seed=1):
    enumeration = posterior(name)
    visits = visits_of(CASES[name].state(), Cycle(moves), enumeration.partitions, n_steps, seed)
    return agrees(visits, enumeration.partitions, enumeration.chances)


@pytest.mark.parametrize("move", first_in_every_run(MOVES, 5))
def test_chains_have_the_posterior(move):
    assert chain_agrees("dp", MOVES[move], 3000)


@pytest.mark.parametrize(
    ("name", "move", "n_steps"),
    first_in_every_run(
        [
            ("mfm", "smart", 3000),
            ("pitman-yor", "smart", 6000),
            ("five", "smart", 20_000),
            ("mfm", "blind", 6000),
        ]
    ),
)
def test_split_merge_alone(name, move, n_steps):
    assert chain_agrees(name, MOVES[move], n_steps)


@pytest.mark.parametrize(
    ("name", "assignments"),
    turns_in_every_run(["pitman-yor", "mfm", "other decays"], ["collapsed", "parallel"]),
)
def test_fits_have_the_posterior(name, assignments):
    assert chain_agrees(name, fitted(CASES[name], assignments), 1500)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("move", [*MOVES, "collapsed fit", "parallel fit"])
def test_long_chains_have_the_posterior(move, name):
    moves = MOVES[move] if move in MOVES else fitted(CASES[name], move.split()[0])
    assert chain_agrees(name, moves, 60_000, seed=2)


def test_split_merge_now_and_then():
    rng = np.random.default_rng(9)
    state = CASES["dp"].state()
    proposed = [ListSplitMerge(1, 1, chance=0.25).step(rng, state).proposed for _ in range(2000)]
    assert set(proposed) == {0, 2}
    assert abs(np.mean(proposed) / 2 - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 2000)


def test_split_merge_proposals_are_taken_both_ways():
    rng = np.random.default_rng(5)
    state = CASES["five"].state()
    for move in (SMART, BLIND):
        seen = set()
        for _ in range(300):
            before = state.n_clusters
            move.step(rng, state)
            check_statistics(state)
            seen.add(np.sign(state.n_clusters - before))
            Centers().step(rng, state)
        assert seen == {-1, 0, 1}


def test_beta_gibbs_as_published_has_another_distribution():
    enumeration = posterior("dp")
    move = Cycle(published_moves())
    visits = visits_of(CASES["dp"].state(sampler="beta-gibbs"), move, enumeration.partitions, 3000, 3)
    assert not agrees(visits, enumeration.partitions, enumeration.chances)
    frequencies, _ = visit_frequencies(visits, len(enumeration.chances))
    assert abs(total_variation(frequencies, enumeration.chances) - 0.15) < 0.03


class Unpinned(Move):
    """Broken twin of ParallelSeating: clusters are instantiated by agents who are then free to leave them."""

    def __init__(self, share):
        self.share = share

    def step(self, rng, state):
        model = state.model
        named = np.unique(state.labels[rng.random(state.n) < self.share])
        if len(named) < 2:
            return Info("unpinned", 0, 0)
        number = np.full(state.n_clusters, -1, dtype=np.int32)
        number[named] = np.arange(len(named))
        theta = np.empty((model.n_stages, len(named)))
        draw_some_decays(draw_key(rng), model.tables, state.clusters, named, theta)
        shares = rng.standard_gamma(state.clusters.weights[named])
        given = Instantiated(dp_mallows_moves.words_of(state, named), theta, shares)
        labels = number[state.labels]
        pinned = np.zeros(state.n, dtype=np.bool_)
        work = (model.lists, model.tables.skips, given, pinned, labels, draw_key(rng))
        assign(*work, 0, len(model.lists.starts) - 1)
        state.labels[:] = np.where(labels >= 0, named[labels], state.labels)
        state.count_members()
        state.compact()
        state.refresh()
        return Info("unpinned", 0, 0)


@pytest.mark.parametrize("share", first_in_every_run([0.6, 1.0]))
def test_pins_are_needed(share):
    assert not chain_agrees("dp", [SettledSeating(), Centers(), Unpinned(share)], 3000)


class PluggedIn(Move):
    """Broken twin of visits given decays: fixed decays instead of draws."""

    def step(self, rng, state):
        Centers().step(rng, state)
        state.clusters.theta[: state.n_clusters] = 2.5
        moved = dp_mallows_moves.seat(rng, state, state.model.lists.agents, settled=True)
        return Info("plugged in", state.n, moved)


def test_decays_of_settled_clusters_are_draws():
    assert chain_agrees("five", [SettledSeating()], 1500)
    assert not chain_agrees("five", [PluggedIn()], 1500)


def test_learned_concentration():
    """Jointly with the number of clusters."""
    gamma = Gamma(2.0, 1.5)
    enumeration = Enumeration(LISTS, 4, gamma_dirichlet_process(gamma.shape, gamma.rate))
    state = seated(model_of(LISTS, 4, DirichletProcess(gamma)))
    move = Cycle([CollapsedSeating(), ListSplitMerge(1, 1), Centers(), Concentration()])
    index = {labels: k for k, labels in enumerate(enumeration.partitions)}
    rng = np.random.default_rng(6)
    visits, alphas = [], []
    for _ in range(3000):
        move.step(rng, state)
        visits.append(index[tuple(canonical_labels(state.labels).tolist())])
        alphas.append(state.concentration)
    visits, alphas = np.array(visits), np.array(alphas)
    assert agrees(visits, enumeration.partitions, enumeration.chances)
    # p(α | K) ∝ Gamma(α) α^K Γ(α)/Γ(α + n).
    found = np.array(enumeration.partitions).max(axis=1)[visits] + 1
    prior = stats.gamma(gamma.shape, scale=1 / gamma.rate)
    for k in (1, 2, 3):

        def density(alpha, k=k):
            return prior.pdf(alpha) * alpha**k * math.exp(math.lgamma(alpha) - math.lgamma(alpha + 4))

        total = integrate.quad(density, 0, np.inf)[0]
        chosen = np.sort(alphas[found == k])
        probes = np.quantile(chosen, np.linspace(0.05, 0.95, 19))
        exact = [integrate.quad(density, 0, x)[0] / total for x in probes]
        empirical = np.searchsorted(chosen, probes, side="right") / len(chosen)
        # Successive α are correlated a little: a third of the draws is a safe count.
        assert np.abs(empirical - exact).max() < kolmogorov_bound(len(chosen) / 3)


@pytest.mark.parametrize(
    ("assignments", "redraw"), first_in_every_run([("collapsed", False), ("parallel", True)], 2)
)
def test_centers_and_decays_of_a_fit(assignments, redraw):
    """Moves of centers leave decays that are draws given all the rest, drawn before the center or after."""
    state = CASES["dp"].state()
    move = sweep_move(settings(CASES["dp"], assignments=assignments))
    rng = np.random.default_rng(7)
    draws = []
    for _ in range(2500):
        move.step(rng, state)
        state.update_centers(rng, 1, redraw=redraw)
        k = state.n_clusters
        draws.append((state.labels.tolist(), state.centers().tolist(), state.clusters.theta[:k].copy()))
    for agent in (0, 1):
        for name, gap in gaps(posterior("dp"), draws, agent).items():
            assert gap.n_effective > 500, name
            assert gap.distance < gap.bound, name
    gap = gaps(posterior("dp"), [(labels[::-1], *rest) for labels, *rest in draws], 0)["center"]
    assert gap.distance > gap.bound


# Many items: far skips share a bin, and a visit is a proposal.

N_MANY = 70


def exact_predictive(model, totals, counts, skips):
    """P(skips of one more list | sums), by quadrature."""
    value = 0.0
    for j, skip in enumerate(skips):
        a, c = model.tables.prior_a[j] + totals[j], model.tables.prior_c + counts[j]
        m = model.n_items - 1 - j
        value += quadrature(a + float(skip), c + 1.0, m) - quadrature(a, c, m)
    return value


def visit_distribution(model, labels, centers, agent, seeds):
    """Exact and compiled probabilities of one visit given all others' places, and where it went in trials.

    Options are the clusters of the others, then a cluster of its own. Returns their exact probabilities, the
    matrix of proposals from each option, that of accepted moves, frequencies from option 0, and refusals.
    """
    others = np.delete(labels, agent)
    kept = np.unique(others)
    options = len(kept) + 1
    proposals, taken = np.zeros((2, options, options))
    d = model.lists.list_of[agent]
    first, last = model.lists.starts[d], model.lists.starts[d + 1]
    t = last - first
    log_exact = np.empty(options)
    log_exact[-1] = math.log(1.0 + model.discount * len(kept)) + math.lgamma(model.n_items - t + 1)
    log_exact[-1] -= math.lgamma(model.n_items + 1)
    for start in range(options):
        placed_labels = np.empty(len(labels), dtype=np.int64)
        placed_labels[np.arange(len(labels)) != agent] = np.searchsorted(kept, others)
        placed_labels[agent] = start
        here = [centers[k] for k in kept] + ([centers[-1]] if start == len(kept) else [])
        state = placed(model, placed_labels, here)
        before = state.checkpoint()
        weights, _ = visit(state, agent)
        state.restore(before)
        if start == len(kept):
            weights = weights[:-1]
        proposals[start] = weights / weights.sum()
        # How the compiled code would correct a proposal.
        skips = np.empty((model.n_stages, len(state.clusters.sizes)), np.int16)
        write_skips(model.lists.items, first, last, state.clusters.words, state.n_clusters, skips)
        fill_all_rows(model.rows(), model.tables, model.bins, state.clusters, state.n_clusters)
        for goal in range(options):
            ratio = 0.0
            if goal < len(kept) and goal != start:
                ratio += correction(model.tables, model.bins, state.clusters, goal, t, skips, False)
                totals, counts = state.clusters.totals[goal], state.clusters.counts[goal]
                log_exact[goal] = math.log(state.clusters.sizes[goal] - model.discount)
                log_exact[goal] += exact_predictive(model, totals, counts, skips[:t, goal])
            if goal != start and start < len(kept):
                ratio -= correction(model.tables, model.bins, state.clusters, start, t, skips, True)
            taken[start, goal] = proposals[start, goal] * min(1.0, math.exp(ratio))
        taken[start, start] += 1.0 - taken[start].sum()
        if start == 0:
            went, refused = np.zeros(options), 0
            for seed in range(seeds):
                put(state, placed_labels, here)
                _, book = visit(state, agent, seed)
                goal = state.labels[agent] if state.n_clusters == len(kept) else len(kept)
                went[goal] += 1
                refused += book[REFUSED]
                assert book[MOVED] == (goal != 0)
    exact = np.exp(log_exact - logsumexp(log_exact))
    return exact, proposals, taken, went / seeds, refused


@pytest.mark.parametrize("seed", first_in_every_run(range(4), 2))
def test_visits_with_shared_bins_are_corrected(seed):
    rng = np.random.default_rng(seed)
    lists = [tuple(rng.permutation(N_MANY)[: rng.integers(1, 7)]) for _ in range(9)]
    model = model_of(lists, N_MANY, PitmanYor(1.0, 0.2) if seed % 2 else DirichletProcess(1.0), 1.0, 25.0)
    assert model.bins.n_exact < N_MANY
    labels = np.array([0, 1, 2, 0, 0, 1, 1, 2, 2])
    centers = [rng.permutation(N_MANY) for _ in range(4)]
    exact, proposals, taken, frequencies, refused = visit_distribution(model, labels, centers, 0, 1500)
    np.testing.assert_allclose(exact @ taken, exact, atol=1e-7)
    flow = exact[:, None] * taken
    np.testing.assert_allclose(flow, flow.T, atol=1e-7)
    # Uncorrected, it would be another distribution; the compiled visit follows the corrected one.
    assert np.abs(exact @ proposals - exact).max() > 1e-4
    assert total_variation(frequencies, taken[0]) < total_variation_bound(taken[0], 1500)
    expected = (proposals[0] - taken[0])[1:].sum()
    assert abs(refused / 1500 - expected) < 5.5 * math.sqrt(max(expected, 1e-4) / 1500)


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_visits_to_large_clusters_are_exact(discount):
    """Clusters so large that members are looked up in rows; skips of all sizes, and some outstanding ones."""
    rng = np.random.default_rng(12)
    centers = [rng.permutation(20) for _ in range(4)]
    labels = np.repeat([0, 1, 2], 15)
    lists = []
    for k in labels:
        noise = rng.gumbel(size=20) * rng.choice([0.5, 2.0, 20.0])
        lists.append(tuple(np.argsort(np.argsort(centers[k]) + noise)[: rng.integers(1, 12)]))
    model = model_of(lists, 20, PitmanYor(1.0, discount) if discount else DirichletProcess(1.0))
    assert model.bins.n_exact == 20
    for agent in range(0, 45, 4):
        exact, proposals, taken, _, refused = visit_distribution(model, labels, centers, agent, 1)
        np.testing.assert_allclose(proposals, np.tile(exact, (len(exact), 1)), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(taken, proposals, atol=1e-15)
        assert refused == 0
