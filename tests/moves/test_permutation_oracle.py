"""The oracle of the permutation-augmented sampler against itself, and wrong chains that it must reject."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from permix.families import Gaussian
from permix.partitions import DirichletProcess, Gamma
from tests.every_run import turns_in_every_run
from tests.families.cases import CASES
from tests.moves.mixture_cases import PRIORS as FIXED
from tests.oracles.mixtures import exact_posterior
from tests.oracles.partitions import restricted_growth_strings
from tests.oracles.permutation_augmented import (
    Augmented,
    beam_program,
    consistent_clusterings,
    consistent_orders,
    counted_distribution,
    counted_program,
    labels_at,
    linear_program,
    log_mean_of_power,
    n_consistent_orders,
    normalized,
    program_distribution,
    projection_orders,
)

PRIORS = {**FIXED, "learned": DirichletProcess(Gamma(2.0, 1.5))}
SLOPES = (-1.3, 0.4)  # the chain is right for any slope
ORDERS = ("uniform", "markov")

every_case = pytest.mark.parametrize("name", CASES)
every_prior = pytest.mark.parametrize("prior", PRIORS)
every_case_and_prior = pytest.mark.parametrize(("name", "prior"), turns_in_every_run(CASES, PRIORS))
every_case_prior_and_order = pytest.mark.parametrize(
    ("name", "prior", "order"), turns_in_every_run(CASES, PRIORS, ORDERS)
)
every_order = pytest.mark.parametrize("order", ORDERS)


@cache
def augmented(name, prior, order="uniform", n=4):
    family, X = CASES[name]
    return Augmented(family, X[:n], PRIORS[prior], order)


def assert_reversible(pi, matrix):
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(pi @ matrix, pi, atol=1e-10)
    flow = pi[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-10)


def drift(pi, matrix):
    """How far one step takes the posterior."""
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(pi @ matrix - pi).max()


# --- what is enumerated -------------------------------------------------------------------------


def test_counts_of_clusterings_and_orders():
    for labels in restricted_growth_strings(5):
        assert len(consistent_orders(labels)) == n_consistent_orders(labels)
    clusterings = consistent_clusterings((2, 0, 3, 1))
    assert len(set(clusterings)) == len(clusterings) == 8
    assert clusterings[0] == (0, 0, 0, 0)
    assert (0, 1, 0, 1) in clusterings
    assert (0, 0, 1, 1) not in clusterings
    pairs = sum(len(consistent_clusterings(order)) for order in consistent_orders((0, 0, 0, 0)))
    assert pairs == sum(map(n_consistent_orders, restricted_growth_strings(4))) == 24 * 8


@every_order
@every_case
def test_orders_are_a_distribution(name, order):
    model = augmented(name, "dp", order)
    for labels in model.partitions:
        assert math.isclose(sum(model.order_distribution(labels).values()), 1.0, rel_tol=1e-12)
        for arranged in model.orders:
            assert (model.log_order(arranged, labels) == -math.inf) == (
                labels not in consistent_clusterings(arranged)
            )


@every_case
def test_uniform_orders_are_uniform_and_others_are_not(name):
    labels = (0, 1, 1, 1)
    uniform = list(augmented(name, "dp", "uniform").order_distribution(labels).values())
    np.testing.assert_allclose(uniform, 1 / n_consistent_orders(labels))
    markov = augmented(name, "dp", "markov").order_distribution(labels)
    # The two points that are left after the first are weighed by their predictive given it alone.
    steps = np.exp(augmented(name, "dp", "markov").log_steps)
    assert math.isclose(markov[(1, 3, 2, 0)] / markov[(1, 2, 3, 0)], steps[1, 3] / steps[1, 2])
    assert np.ptp(list(markov.values())) > 1e-2


@every_case_and_prior
def test_posterior_is_that_of_the_other_oracle(name, prior):
    model = augmented(name, prior)
    partitions, pi = exact_posterior(model.family, model.X, model.prior.log_prob)
    assert partitions == model.partitions
    np.testing.assert_allclose(model.posterior, pi, atol=1e-14)


def test_integrated_concentration_is_a_mean_over_its_prior():
    """A(K) = E[α^K / AF(α, n)] / K!; and with one point and K = 1 the mean of 1, of α with K = 2."""
    model, gamma = augmented("gaussian-isotropic", "learned"), PRIORS["learned"].concentration
    for k in range(1, 5):
        mean = log_mean_of_power(gamma, k, 4)
        assert math.isclose(model.head(k), mean - math.lgamma(k + 1), abs_tol=1e-10)
    assert math.isclose(log_mean_of_power(gamma, 1, 1), 0.0, abs_tol=1e-12)
    assert math.isclose(log_mean_of_power(gamma, 2, 1), math.log(gamma.mean), abs_tol=1e-12)


# --- the programs against brute force -----------------------------------------------------------


@every_case_prior_and_order
def test_factors_multiply_to_the_joint(name, prior, order):
    model = augmented(name, prior, order)
    for arranged in model.orders[::5]:
        for firsts in program_distribution(
            4, lambda first, last: 0.0, linear_program(4, lambda first, last: 0.0)
        ):
            ends = [*firsts[1:], 4]
            segments = [arranged[first:end] for first, end in zip(firsts, ends, strict=True)]
            product = model.head(len(segments)) + sum(map(model.segment_score, segments))
            joint = model.log_joint(labels_at(arranged, firsts), arranged)
            assert product == joint or math.isclose(product, joint, abs_tol=1e-10)


@every_case_prior_and_order
def test_counted_program_sums_over_consistent_clusterings(name, prior, order):
    model = augmented(name, prior, order, 5)
    for arranged in model.orders[::17]:
        score = model.scores(arranged)
        g = counted_program(5, score)
        ours = np.logaddexp.reduce([model.head(k) + g[5, k] for k in range(1, 6)])
        brute = np.logaddexp.reduce(
            [model.log_joint(labels, arranged) for labels in consistent_clusterings(arranged)]
        )
        assert math.isclose(ours, brute, abs_tol=1e-10)
        distribution = counted_distribution(5, score, model.head)
        exact = model.exact_distribution(arranged)
        found = {labels_at(arranged, firsts): probability for firsts, probability in distribution.items()}
        for labels, probability in exact.items():
            assert math.isclose(found.get(labels, 0.0), probability, abs_tol=1e-10)


@every_case_prior_and_order
def test_linear_program_and_full_beam_sum_over_consistent_clusterings(name, prior, order):
    model = augmented(name, prior, order, 5)
    for arranged in model.orders[::17]:
        clusterings = consistent_clusterings(arranged)
        for slope in SLOPES:
            score = model.scores(arranged, slope)
            full = linear_program(5, score)
            counts = np.array([max(labels) + 1 for labels in clusterings])
            # head(K) is taken out factor by factor: it may be minus infinity where the slope is not.
            brute = [
                slope * k + model.log_order(arranged, labels) + math.lgamma(k + 1) + headless(model, labels)
                for labels, k in zip(clusterings, counts, strict=True)
            ]
            assert math.isclose(full.log_sums[5], np.logaddexp.reduce(brute), abs_tol=1e-10)
            beam = beam_program(5, score, 5, 0.0)
            np.testing.assert_allclose(beam.log_sums, full.log_sums, atol=1e-12)
            assert beam.candidates == full.candidates
            distribution = program_distribution(5, score, full)
            for labels, probability in zip(clusterings, normalized(brute), strict=True):
                found = sum(p for firsts, p in distribution.items() if labels_at(arranged, firsts) == labels)
                assert math.isclose(found, probability, abs_tol=1e-10)


def headless(model, labels):
    """ln p(C) p(x | C) without the factor of the number of clusters, cluster by cluster."""
    total = 0.0
    for k in range(max(labels) + 1):
        points = [i for i, label in enumerate(labels) if label == k]
        total += model.log_size_weight(len(points)) + model.marginal(frozenset(points))
    return total


@every_case
def test_hill_climber_needs_no_count_for_the_dirichlet_process(name):
    """Without p(order | clustering) the head is linear: slope ln α is exact (section 4.2)."""
    model = augmented(name, "dp", "uniform", 5)
    for arranged in model.orders[::17]:
        score = model.scores(arranged, math.log(0.8), weighted=False)
        distribution = program_distribution(5, score, linear_program(5, score))
        exact = model.unweighted_distribution(arranged)
        for firsts, probability in distribution.items():
            assert math.isclose(exact[labels_at(arranged, firsts)], probability, abs_tol=1e-10)


def test_beam_keeps_the_largest_and_lets_the_earlier_of_equals_win():
    falling = lambda first, last: -10.0 * first  # noqa: E731
    # Terms at the third position: e^0, e^-10, e^-20.
    assert beam_program(4, falling, 3, 0.0).candidates == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert beam_program(4, falling, 2, 0.0).candidates == [[0], [0, 1], [0, 1, 2], [0, 1, 3]]
    assert beam_program(4, falling, 1, 0.0).candidates == [[0], [0, 1], [0, 2], [0, 3]]
    assert beam_program(4, falling, 3, 1e-3).candidates == [[0], [0, 1], [0, 2], [0, 3]]
    assert beam_program(4, falling, 3, 1e-5).candidates == [[0], [0, 1], [0, 1, 2], [0, 1, 3]]
    # What is dropped still counts at the position where it was weighed.
    assert math.isclose(beam_program(2, falling, 1, 0.5).log_sums[2], math.log1p(math.exp(-10.0)))
    equal = lambda first, last: 0.0  # noqa: E731
    assert beam_program(3, equal, 1, 0.0).candidates == [[0], [0, 1], [0, 2]]
    rising = lambda first, last: 10.0 * first  # noqa: E731
    assert beam_program(4, rising, 1, 0.0).candidates == [[0], [0, 1], [1, 2], [2, 3]]
    # What must stay stays, and costs another its place.
    assert beam_program(4, rising, 1, 0.0, [0, 2]).candidates == [[0], [0, 1], [0, 2], [2, 3]]
    assert beam_program(4, falling, 2, 0.0, [0, 2]).candidates == [[0], [0, 1], [0, 1, 2], [0, 2, 3]]


# --- chains -------------------------------------------------------------------------------------


@every_case_prior_and_order
def test_exact_draws_are_reversible(name, prior, order):
    model = augmented(name, prior, order)
    assert_reversible(model.posterior, model.transition_matrix(model.exact_step))


@every_case_prior_and_order
def test_slope_and_beam_with_metropolis_are_reversible(name, prior, order):
    model = augmented(name, prior, order)
    for slope in SLOPES:
        for width, tolerance in ((None, 0.0), (1, 0.0), (2, 0.0), (4, 0.1)):
            step = with_settings(model.metropolis_step, slope, width, tolerance)
            assert_reversible(model.posterior, model.transition_matrix(step))


def with_settings(step, *settings):
    return lambda order, labels: step(order, labels, *settings)


@every_case_prior_and_order
def test_rejects_proposals_taken_without_metropolis(name, prior, order):
    model = augmented(name, prior, order)
    drifts = [
        drift(model.posterior, model.transition_matrix(with_settings(model.uncorrected_step, slope)))
        for slope in SLOPES
    ]
    assert max(drifts) > 1e-2
    # The first slope happens to be near that of the mixture of finite mixtures: little is left to correct.
    assert min(drifts) > (1e-3 if prior == "mfm" else 1e-2)


@every_case_prior_and_order
def test_rejects_a_slope_that_keeps_adapting(name, prior, order):
    model = augmented(name, prior, order)
    assert drift(model.posterior, model.transition_matrix(model.adapting_step)) > 1e-4


@every_case_prior_and_order
def test_rejects_acceptance_from_outside_the_beam(name, prior, order):
    model = augmented(name, prior, order)
    for slope in SLOPES:
        matrix = model.transition_matrix(with_settings(model.escaping_step, slope, 1))
        assert drift(model.posterior, matrix) > 1e-2


@every_case_prior_and_order
def test_rejects_clusterings_drawn_without_the_weight_of_their_orders(name, prior, order):
    model = augmented(name, prior, order)
    assert drift(model.posterior, model.transition_matrix(model.unweighted_step)) > 1e-2


# --- random projections -------------------------------------------------------------------------


@cache
def plane(prior):
    family = Gaussian(noise_scale=1.3, prior_mean=0.4, prior_scale=2.0)
    X = CASES["gaussian-isotropic"][1][:4, :2]
    return Augmented(family.resolve(X), X, PRIORS[prior])


def test_projection_orders_are_a_distribution_and_agree_with_random_directions():
    model = plane("dp")
    rng = np.random.default_rng(4)
    for labels in model.partitions:
        distribution = projection_orders(model.X, labels)
        assert math.isclose(sum(distribution.values()), 1.0, rel_tol=1e-12)
        assert set(distribution) <= set(consistent_orders(labels))
        # A direction and its opposite give opposite orders.
        assert all(
            math.isclose(distribution[order], distribution[order[::-1]], abs_tol=1e-12)
            for order in distribution
        )
    members, n_draws = np.array([0, 0, 1, 1]), 4000
    distribution = projection_orders(model.X, (0, 0, 1, 1))
    means = np.array([model.X[members == k].mean(axis=0) for k in range(2)])
    counts = dict.fromkeys(distribution, 0)
    for _ in range(n_draws):
        direction = rng.normal(size=2)
        projected = model.X @ direction
        counts[tuple(sorted(range(4), key=lambda i: ((means @ direction)[members[i]], projected[i])))] += 1
    for order, probability in distribution.items():
        assert abs(counts[order] / n_draws - probability) < 5 * math.sqrt(0.25 / n_draws)


@every_prior
def test_rejects_the_hill_climber_used_as_a_sampler(prior):
    model = plane(prior)
    orders = lambda labels: projection_orders(model.X, labels)  # noqa: E731
    # With its own target, and with that of uniform orders: neither leaves the posterior as it was.
    for step in (model.unweighted_step, model.exact_step):
        assert drift(model.posterior, model.transition_matrix(step, orders)) > 1e-2
    assert drift(model.posterior, model.transition_matrix(model.exact_step)) < 1e-10
