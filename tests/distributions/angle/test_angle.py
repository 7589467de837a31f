"""Angle: everything against enumeration, the approximation against the exact sum, draws against both."""

from __future__ import annotations

import json
import warnings
from itertools import permutations

import numpy as np
import pytest
from scipy.special import gammaln, ive

from permix import Angle, Preferences, Rankings
from permix.distributions.base import distribution_from_description
from permix.errors import DataError, PermixWarning
from permix.runtime.threads import at_most
from tests.oracles import ranking_models as oracle

ITEMS = ("salmon", "tuna", "egg", "squid")
DIRECTION = (0.1, -0.7, 0.5, 0.3)


def distribution_of(model):
    return oracle.angle(model.direction, model.concentration)


def scores_of(order, t):
    """Return y of an ordering."""
    y = np.empty(t)
    y[list(order)] = (np.arange(1, t + 1) - (t + 1) / 2) / np.sqrt(t * (t * t - 1) / 12)
    return y


@pytest.mark.parametrize("concentration", [0.0, 2.0, 12.0, 200.0])
@pytest.mark.parametrize("t", [2, 3, 5, 6])
def test_by_enumeration(t, concentration):
    model = Angle(np.random.default_rng(t).normal(size=t), concentration)
    distribution = distribution_of(model)
    orders = list(distribution)
    probabilities = np.array(list(distribution.values()))
    given = model.log_prob(orders)
    np.testing.assert_allclose(np.exp(given), probabilities, atol=1e-12)
    y = np.array([scores_of(order, t) for order in orders])
    assert model.log_normalizer() == pytest.approx(np.log(np.exp(y @ model.tilts).sum()), abs=1e-10)
    np.testing.assert_allclose(model.mean_scores(), probabilities @ y, atol=1e-11)
    assert model.entropy() == pytest.approx(-np.sum(probabilities * given), abs=1e-9)
    ranks = np.argsort(orders, axis=1)
    marginals = np.array([[probabilities[ranks[:, i] == r].sum() for r in range(t)] for i in range(t)])
    np.testing.assert_allclose(model.rank_marginals(), marginals, atol=1e-11)
    before = (probabilities[:, None, None] * (ranks[:, :, None] < ranks[:, None, :])).sum(axis=0)
    np.testing.assert_allclose(model.pairwise(), before, atol=1e-11)
    assert orders[int(np.argmax(probabilities))] == model.mode or concentration == 0.0
    if concentration == 12.0 and t > 2:  # the distribution of another concentration would be seen
        assert np.abs(np.exp(Angle(model.direction, 11.0).log_prob(orders)) - probabilities).max() > 1e-3


@pytest.mark.parametrize(("t", "concentration"), [(3, 1.0), (5, 7.44), (10, 20.0), (96, 194.34)])
def test_approximate_normalizer_is_the_paper_s(t, concentration):
    # C_t(κ) = κ^((t-3)/2) / (2^((t-3)/2) t! I_((t-3)/2)(κ) Γ((t-1)/2)), section 2.1.
    order = 0.5 * (t - 3)
    log_c = (
        order * np.log(concentration / 2)
        - gammaln(t + 1)
        - (np.log(ive(order, concentration)) + concentration)
        - gammaln(0.5 * (t - 1))
    )
    model = Angle(np.arange(t), concentration, normalizer="vmf")
    assert model.log_normalizer() == pytest.approx(-log_c, rel=1e-12)
    ratio = ive(order + 1, concentration) / ive(order, concentration)
    np.testing.assert_allclose(model.mean_scores(), ratio * model.direction, rtol=1e-11)


def test_error_of_the_approximation_depends_on_the_direction():
    def error(direction):
        model = Angle(direction, 12.0, normalizer="vmf")
        found = model.normalizer_error()
        assert found.standard_error == 0.0
        truth = np.log(sum(np.exp(model.tilts @ scores_of(order, 6)) for order in permutations(range(6))))
        assert found == pytest.approx(truth - model.log_normalizer(), abs=1e-10)
        assert found == Angle(direction, 12.0, normalizer="exact").normalizer_error()
        return float(found)

    # Six items, concentration 12: from two opposed halves to one item that stands out.
    most, least = error([0, 0, 0, 1, 1, 1]), error([1, 0, 0, 0, 0, 0])
    assert most == pytest.approx(0.3065, abs=1e-4)
    assert least == pytest.approx(-1.2404, abs=1e-4)
    assert error(range(6)) == pytest.approx(0.1784, abs=1e-4)
    rng = np.random.default_rng(0)
    between = [error(rng.normal(size=6)) for _ in range(20)]
    assert least < min(between) < -0.34 < 0.1 < max(between) < most


def test_error_beyond_the_table_is_estimated():
    model = Angle(np.random.default_rng(3).normal(size=60), 120.0, normalizer="vmf")
    found = [model.normalizer_error(n_samples=400, random_state=seed) for seed in range(2)]
    assert 0.0 < found[0].standard_error < 0.02
    assert abs(found[0] - found[1]) < 4 * np.hypot(found[0].standard_error, found[1].standard_error)
    assert abs(found[0]) > 10 * found[0].standard_error
    assert model.normalizer_error(n_samples=400, random_state=0) == found[0]


def test_estimated_error_grows_as_its_derivative_says():
    # d(error)/dκ = E[θ'y] - A(κ), integrated from 110 to 130 by Simpson's rule over means of draws.
    t, n = 60, 2000
    direction = np.random.default_rng(3).normal(size=t)
    gaps, variances = [], []
    for concentration in (110.0, 120.0, 130.0):
        model = Angle(direction, concentration, normalizer="vmf")
        y = np.array([scores_of(order, t) for order in model.sample(n, random_state=1).orders])
        cosines = y @ model.direction
        gaps.append(cosines.mean() - model.mean_scores() @ model.direction)
        variances.append(cosines.var() / n)
    weights = np.array([1, 4, 1]) * 20.0 / 6.0
    low, high = (Angle(direction, c).normalizer_error(1000, seed) for seed, c in enumerate((110.0, 130.0)))
    error = np.sqrt(weights**2 @ variances + low.standard_error**2 + high.standard_error**2)
    assert error < 0.05
    assert abs((high - low) - weights @ gaps) < 4 * error
    assert abs(high - low) > 8 * error  # so that zero, or the other sign, would be seen


def test_unreliable_estimate_warns():
    steep = Angle(np.random.default_rng(4).normal(size=40), 400.0)
    steep.__dict__["_potentials"] = Angle(np.arange(40), 1e-9)._potentials  # those of another model
    with pytest.warns(PermixWarning, match="larger n_samples"):
        steep.normalizer_error(n_samples=200)


def test_probability_above_one_warns():
    spike = Angle(range(5), 3000.0, normalizer="vmf")
    with pytest.warns(PermixWarning, match=r'1 of 2 rows .* normalizer="exact"'):
        found = spike.log_prob([spike.mode, spike.mode[::-1]])
    assert found[0] > 0.0
    many = Angle(range(40), 1e6, normalizer="vmf")
    with pytest.warns(PermixWarning, match='use normalizer="balanced"'):
        many.log_prob([many.mode])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Angle(range(5), 3000.0).log_prob([range(5)])[0] <= 0.0
        assert Angle(range(40), 10.0).log_prob([range(40)])[0] < 0.0


@pytest.mark.parametrize("unlisted", ["below", "unknown"])
def test_incomplete_rows_sum_over_what_agrees(unlisted):
    model = Angle(DIRECTION, 4.0, items=ITEMS)
    distribution = distribution_of(model)
    rows = [[1, 0], [2], [3, 1, 0], [0, 1, 2, 3]]
    table = Rankings.from_orders([[ITEMS[i] for i in row] for row in rows], items=ITEMS, unlisted=unlisted)

    def agrees(order, row):
        if unlisted == "below":
            return list(order[: len(row)]) == row
        return [i for i in order if i in row] == row

    truth = [np.log(sum(p for order, p in distribution.items() if agrees(order, row))) for row in rows]
    np.testing.assert_allclose(model.log_prob(table), truth, atol=1e-10)
    other = "unknown" if unlisted == "below" else "below"
    twin = Rankings.from_orders([[ITEMS[i] for i in row] for row in rows], items=ITEMS, unlisted=other)
    assert np.abs(model.log_prob(twin) - truth).max() > 0.1


@pytest.mark.parametrize("concentration", [0.0, 5.0, 60.0])
def test_draws(concentration):
    n = 40_000
    model = Angle(DIRECTION, concentration, items=ITEMS)
    assert model.exact_draws
    draws = model.sample(n, random_state=2)
    assert draws.items == ITEMS
    bound = oracle.total_variation_bound(n, 24)
    assert oracle.total_variation(draws.orders, distribution_of(model)) < bound
    if concentration == 5.0:
        assert oracle.total_variation(draws.orders, oracle.angle(model.direction, 4.0)) > bound


def test_draws_of_a_chain_have_the_exact_means():
    model = Angle(np.random.default_rng(5).normal(size=21), 60.0, normalizer="exact")
    assert not model.exact_draws
    n = 4000
    y = np.array([scores_of(order, 21) for order in model.sample(n, random_state=3).orders])
    assert (np.abs(y.mean(axis=0) - model.mean_scores()) < 5 * y.std(axis=0) / np.sqrt(n)).all()
    twin = Angle(model.direction, 50.0, normalizer="exact").mean_scores()
    assert (np.abs(y.mean(axis=0) - twin) > 5 * y.std(axis=0) / np.sqrt(n)).any()


@pytest.mark.parametrize("t", [12, 40])
def test_same_seed_same_rankings_whatever_the_threads(t):
    model = Angle(np.random.default_rng(t).normal(size=t), 2.0 * t)
    size = 60_000 // t
    with at_most(3):
        many = model.sample(size, random_state=4)
    with at_most(1):
        alone = model.sample(size, random_state=4)
    np.testing.assert_array_equal(many.orders, alone.orders)
    np.testing.assert_array_equal(many.orders[:7], model.sample(7, random_state=4).orders)
    assert not np.array_equal(many.orders[:7], model.sample(7, random_state=5).orders)
    assert len(model.sample(0)) == 0


def test_marginals_and_pairs_beyond_the_table_come_from_draws():
    model = Angle(np.arange(25), 50.0)
    marginals, pairs = model.rank_marginals(500, 1), model.pairwise(500, 1)
    np.testing.assert_allclose(marginals.sum(axis=0), 1.0)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    np.testing.assert_allclose((pairs + pairs.T)[~np.eye(25, dtype=bool)], 1.0)
    np.testing.assert_allclose(pairs.sum(axis=0), marginals @ np.arange(25))  # of the same draws
    assert pairs[0, 24] > 0.9


@pytest.mark.slow
def test_ten_thousand_items():
    t = 10_000
    model = Angle(np.random.default_rng(6).normal(size=t), 2.0 * t)
    draws = model.sample(2, random_state=0)
    y = np.array([scores_of(order, t) for order in draws.orders])
    assert np.ptp(y @ model.direction) < 0.05
    found = model.normalizer_error(n_samples=4)
    assert found.standard_error < 0.5


def test_direction_is_centered_and_scaled():
    model = Angle([3.0, 1.0, 2.0, 7.0], 2.0)
    assert model.items == (0, 1, 2, 3)
    assert model.direction.sum() == pytest.approx(0.0, abs=1e-15)
    assert model.direction @ model.direction == pytest.approx(1.0)
    assert model.mode == (1, 2, 0, 3)
    np.testing.assert_allclose(model.tilts, 2.0 * model.direction)
    same = Angle(np.array([3.0, 1.0, 2.0, 7.0]) * 1e200 + 1e200, 2.0)
    np.testing.assert_allclose(same.direction, model.direction, atol=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        model.direction[0] = 1.0


def test_items_from_names():
    import pandas as pd

    named = dict(zip(ITEMS, DIRECTION, strict=True))
    model = Angle(DIRECTION, 3.0, items=ITEMS)
    assert Angle(named, 3.0) == model
    assert Angle(pd.Series(named), 3.0) == model
    turned = Angle(named, 3.0, items=ITEMS[::-1])
    assert turned.items == ITEMS[::-1]
    np.testing.assert_allclose(turned.direction, model.direction[::-1], atol=1e-15)
    row = [["egg", "squid", "tuna", "salmon"]]
    assert turned.log_prob(row) == pytest.approx(model.log_prob(row))
    assert turned.log_prob(Rankings.from_orders(row, items=ITEMS)) == pytest.approx(model.log_prob(row))


def test_description_and_equality():
    for t in (3, 30):
        model = Angle(np.random.default_rng(t).normal(size=t), 7.0)
        again = distribution_from_description(json.loads(json.dumps(model.describe())))
        assert again == model
        assert hash(again) == hash(model)
    assert Angle(range(3), 7.0) == Angle(range(3), 7.0, normalizer="exact")
    assert Angle(range(3), 7.0) != Angle(range(3), 7.0, normalizer="vmf")
    assert Angle(range(3), 7.0) != Angle(range(3), 8.0)
    assert Angle(range(3), 7.0) != "angle"
    assert repr(Angle(range(3), 7.0)) == "Angle: 3 items, concentration 7, exact normalizer, mode 0 ≻ 1 ≻ 2"
    assert "balanced normalizer" in repr(Angle(range(30), 7.0))
    assert "(22 more)" in repr(Angle(range(30), 7.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Angle([1.0, np.nan, 2.0], 1.0, items="abc"), "one string"),
        (lambda: Angle([1.0, np.nan, 2.0], 1.0, items=list("abc")), "'b' is nan"),
        (lambda: Angle([1.0, np.inf], 1.0), "finite"),
        (lambda: Angle([2.0, 2.0, 2.0], 1.0), "all entries equal"),
        (lambda: Angle([0.0, 0.0], 1.0), "all entries equal"),
        (lambda: Angle([1.0], 1.0), "two items or more"),
        (lambda: Angle([], 1.0), "two items or more"),
        (lambda: Angle([[1.0, 2.0]], 1.0), "shape"),
        (lambda: Angle(["x", "y"], 1.0), "one number"),
        (lambda: Angle(5.0, 1.0), "one number"),
        (lambda: Angle([1.0, 2.0], 1.0, items=["a", "b", "c"]), "2 entries, but there are 3 items"),
        (lambda: Angle({"a": 1.0, "b": 2.0}, 1.0, items=["a", "c"]), "different items: 'b', 'c'"),
        (lambda: Angle([1.0, 2.0], -1.0), "0 or more"),
        (lambda: Angle([1.0, 2.0], np.nan), "finite"),
        (lambda: Angle([1.0, 2.0], np.inf), "finite"),
        (lambda: Angle([1.0, 2.0], "much"), "must be a number"),
        (lambda: Angle([1.0, 2.0], 1.0, normalizer="sphere"), "'auto', 'exact', 'balanced' or 'vmf'"),
        (lambda: Angle(range(23), 1.0, normalizer="exact"), "up to 22 items"),
        (lambda: Angle(range(3), 1.0).log_prob([0, 1, 2]), "wrap a single ranking"),
        (
            lambda: Angle(range(2), 1.0, items=["a", "b"]).log_prob(Rankings.from_orders([["a", "c"]])),
            "direction",
        ),
        (
            lambda: Angle(range(3), 1.0).log_prob(Preferences.from_pairs([(0, 0, 1)], items=range(3))),
            "as Rankings",
        ),
        (lambda: Angle(range(3), 1.0).sample(-1), "size"),
        (lambda: Angle(range(3), 1.0).sample(1, random_state="x"), "random_state"),
        (lambda: Angle(range(3), 1.0).normalizer_error(n_samples=1), "n_samples"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_normalizer_in_use():
    assert Angle(range(20), 1.0).normalizer == "exact"
    assert Angle(range(21), 1.0).normalizer == "balanced"
    assert Angle(range(22), 1.0, normalizer="exact").normalizer == "exact"
    assert Angle(range(3), 1.0, normalizer="vmf").normalizer == "vmf"
    # With two items the sphere is two points: no error.
    assert Angle([0, 1], 3.0, "vmf").log_normalizer() == pytest.approx(Angle([0, 1], 3.0).log_normalizer())
