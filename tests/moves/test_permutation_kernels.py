"""Compiled tables and programs of the permutation move against enumeration, and with each other."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import digamma, logsumexp

from permix.moves.permutation import Permutation, scratch_for
from permix.moves.permutation_jit import (
    approximate_program,
    beam_program,
    draw_approximate,
    draw_beam,
    draw_exact,
    draw_markov_order,
    draw_uniform_order,
    exact_program,
    fill_scores,
    in_beam,
)
from permix.moves.projection import order_along
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma, canonical_labels
from permix.partitions.concentration_jit import draw_concentration, log_mean_power
from tests.families.cases import CASES, MOST_CASES, naive_vectors
from tests.moves.mixture_cases import PRIORS, state_of
from tests.oracles import permutation_augmented as oracle
from tests.oracles.mixtures import total_variation, total_variation_bound

KINDS = ("uniform", "markov")
SLOPE = -0.7
BEAMS = ((1, 0.0), (2, 0.0), (2, 0.2), (5, 1e-3), (40, 0.0))

every_case = pytest.mark.parametrize("name", MOST_CASES)
every_prior = pytest.mark.parametrize("prior", PRIORS)
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def augmented(name, prior, kind, n):
    family, X = CASES[name]
    return oracle.Augmented(family, X[:n], PRIORS[prior], kind)


class Compiled:
    """The compiled programs for one state, one ordering after another in the same arrays."""

    def __init__(self, name, prior_spec, kind, n, width=None):
        self.state = state_of(name, prior_spec, n)
        self.kind, self.width = kind, width
        self.scratch = scratch_for(None, self.state, "beam" if width else "exact", width or 1, kind)

    def _points(self, order):
        scratch = self.scratch
        scratch.order[:] = order
        return (
            scratch.single,
            self.state.data,
            self.state.empty_scores,
            scratch.order,
            scratch.size_weights,
        )

    def scores(self, order):
        fill_scores(self.scratch.stats, *self._points(order), self.scratch.scores)
        return self.scratch.scores

    def beam(self, order, slope, tolerance, present=()):
        total = beam_program(
            self.scratch.stats,
            *self._points(order),
            slope,
            self.width,
            tolerance,
            np.array(present, np.int64),
            self.scratch.kept_starts,
            self.scratch.kept_terms,
        )
        return total, self.scratch.kept_starts, self.scratch.kept_terms

    def exact(self, order):
        sums = np.empty((len(order) + 1, len(order) + 1))
        exact_program(self.scores(order), sums)
        return sums

    def approximate(self, order, slope):
        sums = np.empty(len(order) + 1)
        approximate_program(self.scores(order), slope, sums)
        return sums


# --- the table of segments ----------------------------------------------------------------------


@every_kind
@every_prior
@every_case
def test_scores_of_all_segments(name, prior, kind):
    model = augmented(name, prior, kind, 5)
    compiled = Compiled(name, PRIORS[prior], kind, 5)
    for order in model.orders[::29]:  # in the same arrays: nothing is left over from the last order
        scores = compiled.scores(np.array(order))
        for first in range(5):
            for last in range(first, 5):
                expected = model.segment_score(order[first : last + 1])
                assert math.isclose(scores[first, last], expected, abs_tol=1e-10)


@every_kind
@every_case
def test_scores_of_longer_segments(name, kind):
    """All rows of a case: an empty document, many repeats of a word, missing answers."""
    model = augmented(name, "pitman-yor", kind, 12)
    compiled = Compiled(name, PRIORS["pitman-yor"], kind, 12)
    order = tuple(int(i) for i in np.random.default_rng(3).permutation(12))
    scores = compiled.scores(np.array(order))
    for first in range(12):
        for last in range(first, 12):
            expected = model.segment_score(order[first : last + 1])
            assert math.isclose(scores[first, last], expected, rel_tol=1e-11, abs_tol=1e-10)


# --- the programs -------------------------------------------------------------------------------


@every_kind
@every_prior
@every_case
def test_programs_sum_over_consistent_clusterings(name, prior, kind):
    model = augmented(name, prior, kind, 5)
    compiled = Compiled(name, PRIORS[prior], kind, 5)
    for order in model.orders[::43]:
        score = model.scores(order)
        sums = compiled.exact(order)
        np.testing.assert_allclose(sums, oracle.counted_program(5, score), atol=1e-10)
        joint = logsumexp([model.log_joint(c, order) for c in oracle.consistent_clusterings(order)])
        heads = [model.head(k) for k in range(1, 6)]
        assert math.isclose(logsumexp(sums[5, 1:] + heads), joint, abs_tol=1e-10)
        linear = oracle.linear_program(5, model.scores(order, SLOPE))
        np.testing.assert_allclose(compiled.approximate(order, SLOPE), linear.log_sums, atol=1e-10)


@pytest.mark.parametrize(("width", "tolerance"), BEAMS)
@every_kind
@every_case
def test_beam_weighs_and_keeps_what_the_paper_says(name, kind, width, tolerance):
    n = 9
    model = augmented(name, "dp", kind, n)
    compiled = Compiled(name, PRIORS["dp"], kind, n, width)
    for seed, present in enumerate([(), (), (0, 3, 4), (0,)]):
        order = tuple(int(i) for i in np.random.default_rng(seed).permutation(n))
        score = model.scores(order, SLOPE)
        total, starts, terms = compiled.beam(np.array(order), SLOPE, tolerance, present)
        program = oracle.beam_program(n, score, width, tolerance, present)
        assert math.isclose(total, program.log_sums[n], abs_tol=1e-10)
        for r in range(n):
            found = {int(start): term for start, term in zip(starts[r], terms[r], strict=True) if start >= 0}
            assert sorted(found) == program.candidates[r]
            for first, term in found.items():
                assert math.isclose(term, program.log_sums[first] + score(first, r), abs_tol=1e-10)
            assert np.all(terms[r][starts[r] < 0] == -np.inf)


def test_beam_keeps_the_earlier_of_equals():
    """Empty documents: B = 1/m, so with slope -ln 2 one segment of two data equals two segments of one."""
    family = CASES["multinomial"][0]
    state = MixtureState(family, family.encode(np.zeros((3, 5))), 3, PRIORS["dp"])
    compiled = Compiled("multinomial", PRIORS["dp"], "uniform", 3, 1)
    compiled.state = state
    _, starts, terms = compiled.beam(np.arange(3), -math.log(2.0), 0.0)
    assert terms[1, 0] == terms[1, 1]
    assert [sorted(row[row >= 0]) for row in starts] == [[0], [0, 1], [0, 2]]


@every_kind
@every_case
def test_the_three_programs_agree(name, kind):
    n = 12
    order = np.random.default_rng(8).permutation(n)
    table, beam = (Compiled(name, PRIORS["finite"], kind, n, width) for width in (None, 30))
    linear = table.approximate(order, SLOPE)
    counted = table.exact(order)
    by_count = [logsumexp(counted[r] + SLOPE * np.arange(n + 1)) for r in range(n + 1)]
    np.testing.assert_allclose(by_count, linear, atol=1e-10)
    total, starts, terms = beam.beam(order, SLOPE, 0.0)
    assert math.isclose(total, linear[n], abs_tol=1e-10)
    np.testing.assert_allclose([logsumexp(row) for row in terms], linear[1:], atol=1e-10)
    assert [np.sum(row >= 0) for row in starts] == list(range(1, n + 1))
    # A narrow beam leaves out something, and only leaves out.
    narrow = Compiled(name, PRIORS["finite"], kind, n, 1).beam(order, SLOPE, 0.0)[0]
    assert narrow < total - 1e-6


# --- draws --------------------------------------------------------------------------------------

N_DRAWS = 6000


def distribution_of_draws(draw, order):
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(N_DRAWS):
        bounds = draw()
        labels = oracle.labels_at(order, [*bounds[1:], 0][::-1])
        counts[labels] = counts.get(labels, 0) + 1
    return counts


def assert_follows(counts, distribution):
    assert set(counts) <= {key for key, probability in distribution.items() if probability > 0.0}
    p = np.array(list(distribution.values()))
    frequencies = np.array([counts.get(key, 0) for key in distribution]) / N_DRAWS
    assert total_variation(frequencies, p) < total_variation_bound(p, N_DRAWS)


@pytest.mark.parametrize("name", ["gaussian-isotropic", "multinomial"])
def test_draws_follow_the_programs(name):
    model = augmented(name, "finite", "markov", 5)
    order = (3, 0, 4, 1, 2)
    rng = np.random.default_rng(5)
    bounds, work = np.empty(6, np.int64), np.empty(6)
    table = Compiled(name, PRIORS["finite"], "markov", 5)
    sums, linear = table.exact(order), table.approximate(order, SLOPE)
    counts = np.array([-np.inf, *(model.head(k) for k in range(1, 6))])

    def bounds_of(draw, *arguments):
        return lambda: bounds[: draw(rng, *arguments, bounds)].tolist()

    scores = table.scores(order)
    exact = distribution_of_draws(bounds_of(draw_exact, scores, sums, counts, work), order)
    assert_follows(exact, model.exact_distribution(order))
    approximate = distribution_of_draws(bounds_of(draw_approximate, scores, linear, work), order)
    assert_follows(approximate, model.proposal_distribution(order, SLOPE, None, 0.0))
    _, starts, terms = Compiled(name, PRIORS["finite"], "markov", 5, 2).beam(order, SLOPE, 0.0)
    beam = distribution_of_draws(bounds_of(draw_beam, starts, terms), order)
    assert_follows(beam, model.proposal_distribution(order, SLOPE, 2, 0.0))
    # The distributions are far enough apart to be told from one another.
    with pytest.raises(AssertionError):
        assert_follows(approximate, model.exact_distribution(order))


@every_case
def test_membership_of_the_beam(name):
    model = augmented(name, "dp", "uniform", 5)
    outside = 0
    for width in (1, 2):
        compiled = Compiled(name, PRIORS["dp"], "uniform", 5, width)
        for order in model.orders[::23]:
            _, starts, _ = compiled.beam(order, SLOPE, 0.0)
            distribution = model.proposal_distribution(order, SLOPE, width, 0.0)
            for segments in oracle.segmentations(order):
                firsts = np.cumsum([0, *map(len, segments)])
                inside = in_beam(starts, firsts, len(segments))
                assert inside == (oracle.labels_of(segments) in distribution)
                outside += not inside
    assert outside > 0


@every_kind
@every_case
def test_orders_follow_their_distribution(name, kind):
    labels = (0, 1, 0, 1, 1)
    model = augmented(name, "dp", kind, 5)
    state = state_of(name, PRIORS["dp"], 5)
    state.set_labels(np.array(labels))
    single = state.empty_clusters(1)
    order, firsts = np.empty(5, np.int64), np.empty(6, np.int64)
    rng = np.random.default_rng(11)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(N_DRAWS):
        clusters = (state.labels, state.sizes, state.n_clusters, order, firsts)
        if kind == "uniform":
            draw_uniform_order(rng, *clusters)
        else:
            draw_markov_order(rng, single, state.data, *clusters)
        assert firsts[0] == 0
        assert firsts[1] == np.sum(state.labels == state.labels[order[0]])
        assert firsts[2] == 5
        drawn = tuple(order.tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert_follows(counts, model.order_distribution(labels))
    if kind == "markov":
        with pytest.raises(AssertionError):
            assert_follows(counts, augmented(name, "dp", "uniform", 5).order_distribution(labels))


# --- the factor of the number of clusters -------------------------------------------------------


@every_prior
def test_factor_of_the_number_of_clusters(prior):
    state = state_of("gaussian-isotropic", PRIORS[prior], 6)
    model = augmented("gaussian-isotropic", prior, "uniform", 6)
    log_count = Permutation()._log_count(state)
    ours = np.array([log_count(k) for k in range(1, 7)])
    naive = np.array([model.head(k) for k in range(1, 7)])
    np.testing.assert_allclose(ours - ours[0], naive - naive[0], atol=1e-10)
    unordered = np.array([state.prior.log_new_clusters(k) for k in range(1, 7)])
    naive = np.array([model.prior_head(k) for k in range(1, 7)])
    np.testing.assert_allclose(unordered - unordered[0], naive - naive[0], atol=1e-10)


@pytest.mark.parametrize("shape_rate", [(2.0, 1.5), (0.3, 4.0), (9.0, 0.1)])
def test_concentration_summed_over_its_prior(shape_rate):
    gamma = Gamma(*shape_rate)
    for n, counts in ((1, (1,)), (6, (1, 2, 3.5, 6)), (4000, (1, 17, 150, 4000))):
        for k in counts:
            ours = log_mean_power(gamma.shape, gamma.rate, float(k), n)
            naive = oracle.log_mean_of_power(gamma, k, n)
            assert math.isclose(ours, naive, rel_tol=1e-10, abs_tol=1e-10)
    state = state_of("gaussian-isotropic", DirichletProcess(gamma), 6)
    family, X = CASES["gaussian-isotropic"]
    model = oracle.Augmented(family, X[:6], DirichletProcess(gamma))
    log_count = Permutation()._log_count(state)
    for k in range(2, 7):
        difference = model.head(k) - model.head(1)
        assert math.isclose(log_count(k) - log_count(1), difference, abs_tol=1e-10)
    # Kept at its present value it is the prior with that number.
    state.concentration = 0.8
    fixed = Permutation(integrate=False)._log_count(state)
    assert math.isclose(fixed(3) - fixed(1), 2 * math.log(0.8) - math.log(6.0))


@pytest.mark.parametrize(
    ("shape", "rate", "k", "n"), [(2.0, 1.5, 2, 5), (0.3, 4.0, 1, 1), (1.0, 0.1, 40, 50)]
)
def test_concentration_drawn_given_the_number_of_clusters(shape, rate, k, n):
    """The distribution function by summing the density on a grid, by Kolmogorov-Smirnov distance."""
    grid = np.linspace(-60.0, 8.0, 400_001)
    alpha = np.exp(grid)
    log_density = (shape + k) * grid - rate * alpha - sum(np.log(alpha + i) for i in range(n))
    cumulative = np.cumsum(np.exp(log_density - log_density.max()))
    cumulative /= cumulative[-1]
    rng = np.random.default_rng(9)
    draws = np.sort([draw_concentration(rng, shape, rate, k, n) for _ in range(N_DRAWS)])

    def distance(distribution):
        expected = np.interp(np.log(draws), grid, distribution)
        return np.abs(expected - (np.arange(N_DRAWS) + 0.5) / N_DRAWS).max()

    bound = math.sqrt(math.log(2e6) / (2 * N_DRAWS))  # Dvoretzky, Kiefer & Wolfowitz at 1e-6
    assert distance(cumulative) < bound
    prior = np.cumsum(np.exp(shape * grid - rate * alpha))
    if k > 1:
        assert distance(prior / prior[-1]) > bound


@pytest.mark.parametrize("n_clusters", [1.0, 2.6, 40.0])
def test_slope_of_the_dirichlet_process(n_clusters):
    """ln α - ln β with β = exp Ψ(K₀ + 1)."""
    state = state_of("gaussian-isotropic", PRIORS["dp"], 5)
    move = Permutation(n_clusters=n_clusters)
    slope = move._slope(state, move._log_count(state))
    assert math.isclose(slope, math.log(0.8) - digamma(n_clusters + 1.0), rel_tol=1e-12)


# --- back to a state ----------------------------------------------------------------------------


def assert_up_to_date(state):
    """All statistics are what recomputing them from the labels gives."""
    k = state.n_clusters
    sizes = state.sizes.copy()
    kept = {name: np.array(value) for name, value in state.stats._asdict().items()}
    assert np.array_equal(np.unique(state.labels), np.arange(k))
    state.refresh()
    np.testing.assert_array_equal(sizes, state.sizes)
    for name, value in state.stats._asdict().items():
        if name not in ("work", "vector"):
            ours = kept[name][..., :k] if np.shape(value)[-1:] == (state.capacity,) else kept[name]
            new = value[..., :k] if np.shape(value)[-1:] == (state.capacity,) else value
            np.testing.assert_allclose(ours, new, rtol=1e-10, atol=1e-10, err_msg=name)


@every_prior
@every_case
def test_segments_become_clusters(name, prior):
    rng = np.random.default_rng(2)
    state = state_of(name, PRIORS[prior], 12)
    kept = 0
    for _ in range(60):
        before = canonical_labels(rng.integers(0, rng.integers(1, 9), 12))
        state.set_labels(before)
        # Half of the orders keep the clusters together, so that some survive.
        order = np.argsort(before if rng.random() < 0.5 else rng.random(12), kind="stable")
        ends = np.flatnonzero(np.diff(before[order])) + 1
        # Clusters are merged (those with the highest numbers may survive and must move down) or one is cut.
        merged = ends[rng.random(len(ends)) < 0.7]
        ends = merged if rng.random() < 0.6 else np.unique(np.append(ends, rng.integers(1, 12)))
        bounds = np.append(np.array([12, *ends[::-1]]), np.zeros(12, np.int64))
        n_segments = len(ends) + 1
        moved = state.adopt_segments(order, bounds, n_segments)
        expected = oracle.labels_at(tuple(order.tolist()), [0, *ends])
        np.testing.assert_array_equal(canonical_labels(state.labels), expected)
        old = {frozenset(np.flatnonzero(before == k)) for k in range(before.max() + 1)}
        new = [frozenset(np.flatnonzero(state.labels == k)) for k in range(n_segments)]
        assert moved == sum(len(cluster) for cluster in new if cluster not in old)
        kept += sum(cluster in old for cluster in new)
        assert_up_to_date(state)
    assert kept > 60


def test_more_segments_than_slots():
    family, X = CASES["gaussian-isotropic"]
    rows = np.tile(X, (4, 1)) + np.random.default_rng(0).normal(size=(48, 3))
    state = MixtureState(family, family.encode(rows), 48, PRIORS["dp"])
    state.set_labels(np.zeros(48, np.int64))
    assert state.capacity < 48
    assert state.adopt_segments(np.arange(48), np.arange(48, -1, -1), 48) == 48
    assert state.n_clusters == 48
    assert_up_to_date(state)


# --- random projections -------------------------------------------------------------------------


@pytest.mark.parametrize("n_turns", [0, 1, 2])
@every_case
def test_order_along_a_direction(name, n_turns):
    """Clusters by the mean of their projections; within a cluster after steps of the power method."""
    rng = np.random.default_rng(6)
    state = state_of(name, PRIORS["dp"], 12)
    vectors = naive_vectors(name, CASES[name][1][:12])
    scales = state.family.direction_scales(state.data)
    order, firsts = np.empty(12, np.int64), np.empty(13, np.int64)
    for _ in range(10):
        state.set_labels(rng.integers(0, 5, 12))
        labels, sizes, n_clusters = state.labels, state.sizes, state.n_clusters
        direction = rng.normal(size=len(scales)) * scales
        order_along(state, direction, scales, n_turns, order, firsts)
        projections = vectors @ direction
        means = np.array([projections[labels == k].mean() for k in range(n_clusters)])
        by_mean = np.argsort(means)
        assert firsts[: n_clusters + 1].tolist() == [0, *np.cumsum(sizes[by_mean])]
        for position, k in enumerate(by_mean):
            members = np.flatnonzero(labels == k)
            along = projections[members]
            for _ in range(n_turns if len(members) > 2 else 0):
                turned = scales**2 * (vectors[members].T @ (along - along.mean()))
                along = vectors[members] @ turned / np.linalg.norm(turned)
            found = order[firsts[position] : firsts[position + 1]]
            assert sorted(found) == members.tolist()
            assert np.all(np.diff(along[np.searchsorted(members, found)]) >= -1e-12)
