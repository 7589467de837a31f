"""GeneralizedMallows: probabilities and marginals against enumeration, draws against both."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest

from permix import Mallows, Preferences, Rankings
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.errors import DataError
from permix.kernels.mallows import displacement_moments
from permix.kernels.orders import stage_code
from permix.runtime.threads import at_most
from tests.oracles import generalized_mallows as oracle
from tests.oracles import mallows as summaries
from tests.oracles import ranking_models

CENTER = (2, 0, 3, 1)
ITEMS = ("a", "b", "c", "d")
THETAS = [
    (0.0, 0.0, 0.0),
    (1.2, 0.4, 0.9),
    (0.0, 2.0, 0.1),
    (np.inf, 0.5, np.inf),
    (0.7, np.inf, 0.0),
    (25.0, 30.0, 1e-9),
]


def model_of(theta, center=CENTER):
    return GeneralizedMallows(center, theta, items=range(len(center)))


@pytest.mark.parametrize("theta", THETAS)
def test_probabilities_of_lists_of_every_length(theta):
    model = model_of(theta)
    for length in (1, 2, 3, 4):
        distribution = oracle.list_distribution(CENTER, theta, length)
        found = np.exp(model.log_prob(list(distribution)))
        assert np.allclose(found, list(distribution.values()), rtol=1e-12, atol=0)
        assert found.sum() == pytest.approx(1.0, rel=1e-12)


def test_lists_of_mixed_lengths_in_one_table():
    theta = THETAS[1]
    rows = [(2,), (1, 3, 0, 2), (0, 2), (3, 1, 2)]
    table = Rankings.from_orders(rows, n_items=4, counts=[1, 5, 2, 1])
    exact = [oracle.list_probability(row, CENTER, theta) for row in rows]
    assert np.allclose(np.exp(model_of(theta).log_prob(table)), exact, rtol=1e-12)


def test_the_twins_are_rejected():
    theta = THETAS[1]
    full = oracle.list_distribution(CENTER, theta, 4)
    found = np.exp(model_of(theta).log_prob(list(full)))
    other = oracle.by_inversion_codes(CENTER, theta)
    assert sum(other.values()) == pytest.approx(1.0)
    assert np.abs(found - [other[r] for r in full]).max() > 0.01
    assert np.abs(found - [oracle.one_place_too_many(r, CENTER, theta) for r in full]).max() > 0.01


@pytest.mark.parametrize("theta", THETAS)
def test_summaries(theta):
    model, distribution = model_of(theta), oracle.list_distribution(CENTER, theta, 4)
    assert model.entropy() == pytest.approx(summaries.entropy(distribution), rel=1e-9, abs=1e-300)
    exact = summaries.expected_distance(distribution, CENTER)
    assert model.expected_distance() == pytest.approx(exact, rel=1e-12, abs=1e-300)
    skips = [
        sum(s * p for s, p in enumerate(oracle.skip_distribution(t, 3 - j))) for j, t in enumerate(theta)
    ]
    assert np.allclose(model.expected_skips(), skips, rtol=1e-12, atol=0)
    # Relative to each entry: a probability of e-50 has its digits too.
    assert np.allclose(model.pairwise(), summaries.pairwise(distribution, range(4)), rtol=1e-12, atol=0)
    marginals = summaries.rank_marginals(distribution, range(4))
    assert np.allclose(model.rank_marginals(), marginals, rtol=1e-12, atol=1e-300)
    assert distribution[model.mode] == max(distribution.values())


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_marginals_of_other_sizes(n):
    rng = np.random.default_rng(n)
    center, theta = tuple(rng.permutation(n).tolist()), rng.exponential(size=n - 1)
    model, distribution = model_of(theta, center), oracle.list_distribution(center, theta, n)
    assert np.allclose(model.pairwise(), summaries.pairwise(distribution, range(n)), atol=1e-14)
    assert np.allclose(model.rank_marginals(), summaries.rank_marginals(distribution, range(n)), atol=1e-14)
    assert model.entropy() == pytest.approx(summaries.entropy(distribution), rel=1e-12, abs=1e-300)


def test_marginals_of_many_items_are_consistent():
    n = 90
    model = GeneralizedMallows(np.random.default_rng(0).permutation(n), np.linspace(2.0, 0.0, n - 1))
    pairs, ranks = model.pairwise(), model.rank_marginals()
    assert np.allclose(pairs + pairs.T, 1 - np.eye(n), atol=1e-13)
    assert np.allclose(ranks.sum(axis=0), 1.0, atol=1e-12)
    assert np.allclose(ranks.sum(axis=1), 1.0, atol=1e-12)
    # The mean rank of an item is the expected number of items before it: two ways of getting there.
    assert np.allclose(ranks @ np.arange(n), pairs.sum(axis=0), rtol=1e-11)


@pytest.mark.parametrize("theta", [0.0, 0.3, 2.0, np.inf])
def test_one_decay_is_mallows(theta):
    n = 30
    center = np.random.default_rng(1).permutation(n)
    model, plain = GeneralizedMallows(center, theta), Mallows(center, np.exp(-theta))
    draws = Mallows(center, 0.7).sample(40, random_state=2)
    assert np.allclose(model.log_prob(draws), plain.log_prob(draws), rtol=1e-12)
    short = Rankings.from_orders(draws.orders[:, :6], n_items=n)
    assert np.allclose(model.log_prob(short), plain.log_prob(short), rtol=1e-10)
    assert np.allclose(model.pairwise(), plain.pairwise(), atol=1e-13)
    assert np.allclose(model.rank_marginals(), plain.rank_marginals(), atol=1e-13)
    assert np.array_equal(model.insertion_log_probabilities(), plain.insertion_log_probabilities())
    assert model.entropy() == pytest.approx(plain.entropy(), rel=1e-12, abs=1e-300)
    assert model.expected_distance() == pytest.approx(plain.expected_distance(), rel=1e-12, abs=1e-300)


def test_pairs_with_an_unknown_rest():
    theta = THETAS[1]
    table = Rankings.from_orders([(1, 2), (3,), (0, 1)], n_items=4, unlisted=["unknown", "unknown", "below"])
    distribution = oracle.list_distribution(CENTER, theta, 4)
    exact = [
        summaries.pairwise(distribution, range(4))[1, 2],
        1.0,
        oracle.list_probability((0, 1), CENTER, theta),
    ]
    assert np.allclose(np.exp(model_of(theta).log_prob(table)), exact, rtol=1e-12)


# Draws.


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("length", [1, 2, 4])
def test_draws_follow_the_distribution(theta, length):
    size, distribution = 20_000, oracle.list_distribution(CENTER, theta, length)
    draws = model_of(theta).sample(size, random_state=3, lengths=length)
    assert draws.orders.shape == (size, length)
    bound = ranking_models.total_variation_bound(size, len(distribution))
    assert ranking_models.total_variation(draws.orders, distribution) < bound


def test_the_bound_rejects_the_distribution_of_the_other_codes():
    size, theta = 20_000, THETAS[1]
    draws = model_of(theta).sample(size, random_state=3)
    twin = oracle.by_inversion_codes(CENTER, theta)
    bound = ranking_models.total_variation_bound(size, len(twin))
    assert ranking_models.total_variation(draws.orders, twin) > bound


@pytest.mark.parametrize(("n", "length"), [(64, 64), (65, 65), (300, 40), (300, 60), (2000, 2000)])
def test_draws_of_any_size_have_the_mean_skips(n, length):
    size = 400
    theta = np.linspace(1.5, 0.01, n - 1)
    center = np.random.default_rng(0).permutation(n)
    draws = GeneralizedMallows(center, theta).sample(size, random_state=5, lengths=length)
    assert np.array_equal(draws.lengths, np.full(size, length))
    codes = np.empty((size, length), np.int64)
    for row, order in enumerate(draws.orders):
        stage_code(order, length, np.argsort(center), codes[row])
    codes = codes[:, : n - 1]
    mean, variance = (
        moment[: codes.shape[1]]
        for moment in np.transpose([displacement_moments(x, n - j) for j, x in enumerate(theta)])
    )
    # Six standard errors in up to 2000 places: exceeded in one run of 250,000 (skips are not far from normal
    # sums of 400); and the sum over stages, which a systematic shift would move.
    assert np.all(np.abs(codes.mean(axis=0) - mean) < 6 * np.sqrt(variance / size) + 1e-12)
    assert abs(codes.sum(axis=1).mean() - mean.sum()) < 5 * np.sqrt(variance.sum() / size)


def test_draws_do_not_depend_on_threads_size_or_length():
    model = GeneralizedMallows(range(100), np.linspace(1.0, 0.0, 99))
    with at_most(3):
        many = model.sample(2000, random_state=11)
    with at_most(1):
        alone = model.sample(2000, random_state=11)
    assert many == alone
    assert model.sample(7, random_state=11) == many[:7]
    assert model.sample(2000, random_state=12) != many
    lengths = np.random.default_rng(0).integers(1, 101, size=2000)
    mixed = model.sample(2000, random_state=11, lengths=lengths)
    assert np.array_equal(mixed.lengths, lengths)
    for row in (0, 1, 77, 1999):
        assert np.array_equal(mixed.orders[row, : lengths[row]], many.orders[row, : lengths[row]])


# Going on with a list.


@pytest.mark.parametrize("theta", [(1.2, 0.4, 0.9), (0.5, np.inf, 0.2)])
@pytest.mark.parametrize("given", [(2,), (0, 2), (2, 0, 1), (2, 0, 3, 1)])
def test_going_on_with_a_list(theta, given):
    model, distribution = model_of(theta), oracle.list_distribution(CENTER, theta, 4)
    if oracle.list_probability(given, CENTER, theta) == 0.0:
        with pytest.raises(DataError, match="probability 0"):
            model.condition(Rankings.from_orders([given], n_items=4))
        return
    conditioned = model.condition(Rankings.from_orders([given], n_items=4))
    agree = {r: p for r, p in distribution.items() if r[: len(given)] == given}
    total = sum(agree.values())
    exact = {r: p / total for r, p in agree.items()}
    assert conditioned.log_normalizer() == pytest.approx(np.log(total), rel=1e-12, abs=1e-15)
    found = np.exp(conditioned.log_prob(list(distribution)))
    assert np.allclose(found, [exact.get(r, 0.0) for r in distribution], atol=1e-14)
    assert np.allclose(conditioned.pairwise(), summaries.pairwise(exact, range(4)), atol=1e-14)
    assert np.allclose(conditioned.rank_marginals(), summaries.rank_marginals(exact, range(4)), atol=1e-14)
    draws = conditioned.sample(5000, random_state=1)
    bound = ranking_models.total_variation_bound(5000, len(exact))
    assert ranking_models.total_variation(draws.orders, exact) < bound
    assert repr(conditioned).endswith("begins " + " ≻ ".join(map(str, given)))


def test_going_on_to_a_shorter_list():
    conditioned = model_of((1.2, 0.4, 0.9)).condition(Rankings.from_orders([(1,)], n_items=4))
    assert conditioned.sample(3, random_state=0, lengths=2).lengths.tolist() == [2, 2, 2]
    assert conditioned.sample(3, lengths=1).orders.tolist() == [[1], [1], [1]]
    for lengths in (0, 5, "two"):
        with pytest.raises(DataError, match="from 1, the items given, to 4"):
            conditioned.sample(3, lengths=lengths)
    with pytest.raises(DataError, match="does not reach beyond"):
        model_of((1.2, 0.4, 0.9)).condition(Rankings.from_orders([(1, 2)], n_items=4)).log_prob([[1]])


def test_conditioning_on_anything_needs_equal_decays():
    pairs = Preferences.from_pairs([(0, 3, 2)], items=range(4))
    equal = model_of(0.7).condition(pairs)
    assert np.allclose(equal.pairwise(), Mallows(CENTER, np.exp(-0.7)).condition(pairs).pairwise())
    with pytest.raises(DataError, match="top list of one agent"):
        model_of((1.0, 0.5, 0.2)).condition(pairs)
    with pytest.raises(DataError, match="unlisted='below'"):
        model_of((1.0, 0.5, 0.2)).condition(Rankings.from_orders([(0, 1)], n_items=4, unlisted="unknown"))
    with pytest.raises(DataError, match="here are 2 rows"):
        model_of((1.0, 0.5, 0.2)).condition(Rankings.from_orders([(0, 1), (1, 0)], n_items=4))
    with pytest.raises(DataError, match="not a repeated-insertion"):
        model_of((1.0, 0.5, 0.2)).insertion_log_probabilities()


# Behavior.


def test_short_theta_says_how_it_goes_on():
    assert GeneralizedMallows(range(5), [1.0, 0.5]).theta.tolist() == [1.0, 0.5, 0.0, 0.0]
    assert GeneralizedMallows(range(5), [1.0], beyond=np.inf).theta.tolist() == [1.0, np.inf, np.inf, np.inf]
    assert GeneralizedMallows(range(5), 2.0).theta.tolist() == [2.0] * 4
    assert GeneralizedMallows(["a"], 2.0).sample(2).orders.tolist() == [[0], [0]]


def test_items_are_aligned_by_name():
    model = GeneralizedMallows(["b", "a", "c"], [1.0, 0.2])
    votes = Rankings.from_orders([["a", "b"]], items=["c", "b", "a"])
    assert model.log_prob(votes)[0] == model.log_prob([["a", "b"]])[0]
    assert model.center == ("b", "a", "c")


@pytest.mark.parametrize("theta", [0.5, [0.1, 0.2], [np.inf, 0.0]])
def test_description_survives_json(theta):
    model = GeneralizedMallows(["b", "a", "c"], theta)
    plain = json.loads(json.dumps(model.describe(), allow_nan=False))
    assert plain.pop("name") == "generalized-mallows"
    assert GeneralizedMallows(**plain) == model
    assert hash(GeneralizedMallows(**plain)) == hash(model)
    assert GeneralizedMallows(["b", "a", "c"], [0.1, 0.3]) != model


def test_repr_names_the_items():
    model = GeneralizedMallows(["salmon", "egg", "eel"], [1.25, 0.5])
    assert repr(model) == "GeneralizedMallows: 3 items, theta 1.25, 0.5, center salmon ≻ egg ≻ eel"
    assert "theta 0.5, center" in repr(GeneralizedMallows(range(9), 0.5))
    assert "theta 1, 2, 3, 4, 5, 6, …, center" in repr(GeneralizedMallows(range(12), np.arange(1, 12)))


def test_parameters_cannot_be_changed():
    model = model_of((1.0, 0.5, 0.2))
    for array in (model.theta, model.center_order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("theta", "beyond", "message"),
    [
        (-0.1, 0.0, r"theta -0\.1 is not 0"),
        ([1.0, -2.0], 0.0, "theta -2 of stage 2"),
        (np.nan, 0.0, "theta nan"),
        ([1.0, 1.0, 1.0], 0.0, "at most one for each of the 2 stages"),
        ([[1.0]], 0.0, "at most one for each"),
        ("steep", 0.0, "must be numbers"),
        (None, 0.0, "theta nan"),
        ([1.0], -1.0, "beyond=-1.0 must be 0 or more"),
        ([1.0], "much", "must be numbers"),
        ([1.0], [1.0, 2.0], "must be numbers"),
    ],
)
def test_bad_parameters(theta, beyond, message):
    with pytest.raises(DataError, match=message):
        GeneralizedMallows(["a", "b", "c"], theta, beyond=beyond)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (0, "lengths=0 must be from 1 to 4"),
        (5, "lengths=5 must be from 1 to 4"),
        ([1, 2], r"one for each of the 3 rows"),
        (1.5, "whole numbers from 1 to 4"),
        ([1, 9, 2], "row 2 cannot list 9"),
    ],
)
def test_bad_lengths(lengths, message):
    with pytest.raises(DataError, match=message):
        model_of((1.0, 0.5, 0.2)).sample(3, lengths=lengths)


def test_bad_rankings():
    model = GeneralizedMallows(ITEMS, 0.5)
    with pytest.raises(DataError, match=r"does not rank 'x'"):
        model.log_prob(Rankings.from_orders([["a", "b", "c", "x"]]))
    with pytest.raises(DataError, match=r"agent 'anna'.*unlisted='below'"):
        model.log_prob(
            Rankings.from_orders([["a", "b", "c"]], items=ITEMS, unlisted="unknown", agents=["anna"])
        )


def test_empty_samples_and_every_full_list_of_three():
    model = GeneralizedMallows(["x", "y", "z"], [1.0, 0.3])
    assert len(model.sample(0)) == 0
    full = [list(r) for r in permutations(["x", "y", "z"])]
    assert np.exp(model.log_prob(full)).sum() == pytest.approx(1.0)
    assert np.array_equal(model.log_prob(full), model.log_prob([row[:2] for row in full]))
