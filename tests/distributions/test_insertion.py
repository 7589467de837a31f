"""Repeated insertion with a matrix or a function, against enumeration."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from permix import Mallows, Rankings, RepeatedInsertion
from permix.distributions.base import Estimate, distribution_from_description
from permix.errors import DataError
from tests.oracles import mallows as oracle
from tests.oracles import ranking_models

CENTER = ("c", "a", "d", "b", "e")
ITEMS = ("a", "b", "c", "d", "e")


def random_rows(seed, n=5, zeros=False):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        row = rng.random(i + 1)
        if zeros and i > 0:
            row[rng.integers(i + 1)] = 0.0
        rows.append(row / row.sum())
    return rows


def contrary(ranking, item):
    """Put the next item on top where "c" leads, else anywhere: a rule that looks at the ranking so far."""
    if ranking and ranking[0] == "c":
        return [0.7, *[0.3 / len(ranking)] * len(ranking)]
    return [1 / (len(ranking) + 1)] * (len(ranking) + 1)


@pytest.mark.parametrize(("seed", "zeros"), [(0, False), (1, False), (2, True), (3, True)])
def test_matrix_against_enumeration(seed, zeros):
    rows = random_rows(seed, zeros=zeros)
    model = RepeatedInsertion(CENTER, rows, items=ITEMS)
    distribution = ranking_models.repeated_insertion(CENTER, rows)
    assert np.allclose(
        np.exp(model.log_prob(list(distribution))), list(distribution.values()), rtol=1e-12, atol=0
    )
    for length in (1, 2, 3, 4):
        tops = sorted({r[:length] for r in distribution})
        exact = [oracle.top_list_probability(distribution, top) for top in tops]
        assert np.allclose(np.exp(model.log_prob(tops)), exact, rtol=1e-11, atol=1e-300)
    assert model.entropy() == pytest.approx(oracle.entropy(distribution), rel=1e-12)
    assert model.expected_distance() == pytest.approx(
        oracle.expected_distance(distribution, CENTER), rel=1e-12
    )
    assert np.allclose(model.pairwise(), oracle.pairwise(distribution, ITEMS), atol=1e-14)
    assert np.allclose(model.rank_marginals(), oracle.rank_marginals(distribution, ITEMS), atol=1e-14)
    assert distribution[model.mode] == pytest.approx(max(distribution.values()), rel=1e-12)


@pytest.mark.parametrize("zeros", [False, True])
def test_draws_of_a_matrix_follow_the_distribution(zeros):
    rows, size = random_rows(4, zeros=zeros), 30_000
    distribution = ranking_models.repeated_insertion(CENTER, rows)
    draws = RepeatedInsertion(CENTER, rows, items=ITEMS).sample(size, random_state=1)
    names = np.array(ITEMS)[draws.orders]
    bound = ranking_models.total_variation_bound(size, 120)
    assert ranking_models.total_variation(names, distribution) < bound
    if zeros:  # what cannot be is never drawn
        assert min(distribution[tuple(row)] for row in names.tolist()) > 0
    # The twin reads places from the wrong end.
    mirrored = ranking_models.repeated_insertion(CENTER, [row[::-1] for row in rows])
    assert ranking_models.total_variation(names, mirrored) > bound


@pytest.mark.parametrize("dispersion", [0.0, 0.35, 1.0, [1.0, 0.2, 0.9, 0.4, 0.6]])
def test_mallows_is_repeated_insertion(dispersion):
    mallows = Mallows(CENTER, dispersion, items=ITEMS)
    model = RepeatedInsertion.mallows(CENTER, dispersion, items=ITEMS)
    rankings = list(ranking_models.mallows(CENTER, 0.5))
    assert np.allclose(np.exp(model.log_prob(rankings)), np.exp(mallows.log_prob(rankings)), rtol=1e-12)
    assert model.entropy() == pytest.approx(mallows.entropy(), rel=1e-12, abs=1e-15)
    assert model.expected_distance() == pytest.approx(mallows.expected_distance(), rel=1e-12, abs=1e-15)
    assert np.allclose(model.pairwise(), mallows.pairwise(), atol=1e-14)
    assert np.allclose(model.rank_marginals(), mallows.rank_marginals(), atol=1e-14)
    assert model.mode == mallows.mode


def test_function_against_enumeration():
    distribution, size = oracle.conditional_insertion(CENTER, contrary), 3000
    model = RepeatedInsertion(CENTER, contrary, items=ITEMS)
    assert sum(distribution.values()) == pytest.approx(1)
    assert np.allclose(
        np.exp(model.log_prob(list(distribution))), list(distribution.values()), rtol=1e-12, atol=0
    )
    names = np.array(ITEMS)[model.sample(size, random_state=2).orders]
    bound = ranking_models.total_variation_bound(size, 120)
    assert ranking_models.total_variation(names, distribution) < bound
    # The twin ignores the ranking so far.
    twin = oracle.conditional_insertion(CENTER, lambda r, item: [1 / (len(r) + 1)] * (len(r) + 1))
    assert ranking_models.total_variation(names, twin) > bound
    for found, exact in (
        (model.entropy(1500, random_state=3), oracle.entropy(distribution)),
        (model.expected_distance(1500, random_state=4), oracle.expected_distance(distribution, CENTER)),
    ):
        assert isinstance(found, Estimate)
        assert 0 < found.standard_error < 0.05
        # Five standard errors: exceeded once in two million.
        assert abs(found - exact) < 5 * found.standard_error


def test_standard_error_is_that_of_repetitions():
    model = RepeatedInsertion(CENTER, contrary)
    repeats = [model.expected_distance(100, random_state=seed) for seed in range(60)]
    spread = np.std(repeats, ddof=1)
    # The standard deviation of 60 normal numbers is within a factor 1.5 of the truth but for one in 10^5.
    assert spread / 1.5 < np.mean([r.standard_error for r in repeats]) < 1.5 * spread


def test_function_that_is_a_matrix_agrees_with_it():
    rows = random_rows(6)
    exact = RepeatedInsertion(CENTER, rows)
    asked = RepeatedInsertion(CENTER, lambda ranking, item: rows[len(ranking)])
    rankings = exact.sample(20, random_state=0)
    assert np.allclose(exact.log_prob(rankings), asked.log_prob(rankings), rtol=1e-12)
    # Independent insertions: the chain-rule estimate has no variance.
    assert asked.entropy(3) == pytest.approx(exact.entropy(), rel=1e-12)
    assert asked.entropy(3).standard_error == pytest.approx(0, abs=1e-12)


def test_marginals_of_many_items():
    n = 150
    rows = random_rows(8, n)
    model = RepeatedInsertion(np.random.default_rng(1).permutation(n), rows)
    marginals, pairs = model.rank_marginals(), model.pairwise()
    assert np.allclose(marginals.sum(axis=0), 1)
    assert np.allclose(marginals.sum(axis=1), 1)
    assert np.allclose(pairs + pairs.T, 1 - np.eye(n))
    # The mean rank is one plus the mean number of items before.
    assert np.allclose(marginals @ np.arange(n), pairs.sum(axis=0))
    draws = model.sample(2000, random_state=0)
    shares = draws.pairwise_counts() / 2000
    # Hoeffding over all pairs: exceeded with probability 1e-6.
    assert np.max(np.abs(shares - pairs)) < np.sqrt(np.log(2 * n * n / 1e-6) / (2 * 2000))


def test_matrix_rows_may_be_full_or_short():
    rows = random_rows(0, 3)
    square = np.zeros((3, 3))
    for i, row in enumerate(rows):
        square[i, : i + 1] = row
    assert RepeatedInsertion(["a", "b", "c"], rows) == RepeatedInsertion(["a", "b", "c"], square)
    assert RepeatedInsertion(["a", "b", "c"], rows) != RepeatedInsertion(["a", "c", "b"], rows)


def test_description_survives_json():
    model = RepeatedInsertion(CENTER, random_rows(0), items=ITEMS)
    assert distribution_from_description(json.loads(json.dumps(model.describe()))) == model
    with pytest.raises(DataError, match="unheard-of"):
        distribution_from_description({"name": "unheard-of"})


def test_repr():
    model = RepeatedInsertion(["x", "y"], [[1], [0.5, 0.5]])
    assert repr(model) == "RepeatedInsertion: 2 items, center x ≻ y"
    assert "function contrary" in repr(RepeatedInsertion(CENTER, contrary))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1], [0.5, 0.6]], r"'y' sum to 1.1"),
        ([[1], [-0.5, 1.5]], r"'y' have -0.5 at place 1"),
        ([[1], [np.nan, 1]], r"'y' have nan at place 1"),
        ([[1], [1]], r"it can go to 2 place"),
        ([[0.5, 0.5], [0.5, 0.5]], r"'x' have shape \(2,\)"),
        ([[1]], "1 rows"),
        ([[1], "ab"], "not numbers"),
        (0.5, "matrix or a function"),
    ],
)
def test_bad_probabilities(rows, message):
    with pytest.raises(DataError, match=message):
        RepeatedInsertion(["x", "y"], rows)


def test_bad_functions_and_questions_without_formula():
    with pytest.raises(DataError, match=r"'y' sum to 2"):
        RepeatedInsertion(["x", "y"], lambda ranking, item: [1.0] * (len(ranking) + 1)).sample(1)
    model = RepeatedInsertion(CENTER, contrary)
    for question in (
        model.pairwise,
        model.rank_marginals,
        model.describe,
        model.insertion_log_probabilities,
        lambda: model.mode,
    ):
        with pytest.raises(DataError, match=r"estimate it from .sample"):
            question()
    with pytest.raises(DataError, match="not full"):
        model.log_prob(Rankings.from_orders([["a"]], items=model.items))


def test_an_estimate_needs_two_draws():
    rule = RepeatedInsertion(CENTER, contrary)
    for n_draws in (0, 1):
        for ask in (rule.entropy, rule.expected_distance):
            with pytest.raises(DataError, match="n_draws"):
                ask(n_draws=n_draws)


def test_an_estimate_is_a_number_that_travels():
    estimate = Estimate(2.0, standard_error=0.5)
    again = pickle.loads(pickle.dumps(estimate))
    assert (again, again.standard_error) == (2.0, 0.5)
    assert repr(estimate) == "2.0 (standard error 0.5)"
