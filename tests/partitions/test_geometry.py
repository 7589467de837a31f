"""Losses, similarity and how sure groups are, against naive code and scikit-learn."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from permix.errors import DataError
from permix.partitions import (
    DirichletProcess,
    adjusted_rand,
    binder_loss,
    canonical_labels,
    how_sure,
    similarity_matrix,
    variation_of_information,
)
from tests.oracles.partitions import (
    naive_adjusted_rand,
    naive_binder,
    naive_vi,
    restricted_growth_strings,
)

two_partitions = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-3, 9), min_size=n, max_size=n)] * 2)
)


@given(two_partitions)
def test_losses_against_naive_code(pair):
    a, b = pair
    assert variation_of_information(a, b) == pytest.approx(naive_vi(a, b), abs=1e-12)
    assert binder_loss(a, b) == pytest.approx(naive_binder(a, b), abs=1e-12)
    assert adjusted_rand(a, b) == pytest.approx(naive_adjusted_rand(a, b), abs=1e-12)
    assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)


def test_all_pairs_of_partitions_of_five():
    partitions = list(restricted_growth_strings(5))
    for a, b in product(partitions, partitions):
        vi = variation_of_information(a, b)
        assert vi == pytest.approx(naive_vi(a, b), abs=1e-12)
        assert (vi == 0.0) == (a == b) == (binder_loss(a, b) == 0.0)
        assert vi <= math.log2(5) + 1e-12


def test_the_naive_losses_reject_broken_twins():
    """Entropy given the other side only, and Binder that overlooks wrongly joined pairs."""

    def one_sided(a, b):
        n = len(a)
        joint, alone = Counter(zip(a, b, strict=True)), Counter(b)
        return -sum(count / n * math.log2(count / alone[y]) for (_, y), count in joint.items())

    def one_way(a, b):
        pairs = list(combinations(range(len(a)), 2))
        return sum(a[i] == a[j] and b[i] != b[j] for i, j in pairs) / len(pairs)

    partitions = list(restricted_growth_strings(5))
    every_pair = list(product(partitions, partitions))
    assert max(abs(naive_vi(a, b) - one_sided(a, b)) for a, b in every_pair) > 0.5
    assert max(abs(naive_binder(a, b) - one_way(a, b)) for a, b in every_pair) > 0.5
    # The right parts do add up.
    assert all(naive_vi(a, b) == pytest.approx(one_sided(a, b) + one_sided(b, a)) for a, b in every_pair)
    assert all(naive_binder(a, b) == pytest.approx(one_way(a, b) + one_way(b, a)) for a, b in every_pair)


def test_many_clusters_take_the_grouped_path():
    rng = np.random.default_rng(0)
    a, b = rng.integers(60, size=(2, 200))  # 3600 cells for 200 observations
    assert variation_of_information(a, b) == pytest.approx(naive_vi(a.tolist(), b.tolist()), abs=1e-12)
    assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    assert variation_of_information(np.arange(200), a) == pytest.approx(
        naive_vi(list(range(200)), a.tolist()), abs=1e-10
    )


def test_large_partitions():
    rng = np.random.default_rng(1)
    a = rng.integers(50, size=1_000_000)
    b = np.where(rng.random(a.size) < 0.1, rng.integers(50, size=a.size), a)
    assert variation_of_information(a, a * 7 - 3) == 0.0
    assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a, b), abs=1e-9)


def test_base_of_the_logarithm():
    a, b = [0, 0, 1, 1], [0, 1, 1, 1]
    bits = variation_of_information(a, b)
    assert variation_of_information(a, b, base=math.e) == pytest.approx(bits * math.log(2))
    for base in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(DataError, match="base"):
            variation_of_information(a, b, base=base)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_any_integer_type(dtype):
    labels = np.array([3, 3, 0, 7], dtype)
    np.testing.assert_array_equal(canonical_labels(labels), [0, 0, 1, 2])
    assert variation_of_information(labels, [0, 0, 1, 2]) == 0.0


def test_canonical_labels():
    huge = [2**63, 5, 2**63, 2**64 - 1]
    np.testing.assert_array_equal(canonical_labels(np.array(huge, np.uint64)), [0, 1, 0, 2])
    low = np.array([-(2**63), 2**63 - 1, -(2**63)])
    np.testing.assert_array_equal(canonical_labels(low), [0, 1, 0])
    np.testing.assert_array_equal(canonical_labels([[5, 5, 2], [1, 2, 1]]), [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(canonical_labels([True, False, True]), [0, 1, 0])
    assert canonical_labels([]).shape == (0,)
    strided = np.array([[4, 9], [4, 8], [1, 9]])[:, 0]
    np.testing.assert_array_equal(canonical_labels(strided), [0, 0, 1])


@given(st.lists(st.integers(-(10**12), 10**12), max_size=40))
def test_canonical_labels_by_definition(labels):
    seen = list(dict.fromkeys(labels))
    assert canonical_labels(np.array(labels, np.int64)).tolist() == [seen.index(label) for label in labels]


@pytest.mark.parametrize("n", [1, 5, 64, 65, 600])
def test_similarity_matrix(n):
    draws = np.random.default_rng(n).integers(6, size=(3, 17, n))
    flat = draws.reshape(-1, n)
    expected = (flat[:, :, None] == flat[:, None, :]).mean(axis=0)
    actual = similarity_matrix(draws)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_similarity_matrix_of_very_many_draws():
    draws = np.random.default_rng(2).integers(2, size=(70_000, 3))
    expected = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(similarity_matrix(draws), expected, rtol=1e-6)


def test_how_sure_against_the_similarity_matrix():
    draws = DirichletProcess(3.0).sample(40, 1, size=30)
    labels = canonical_labels(draws[7])
    similarity = similarity_matrix(draws)
    sure = how_sure(draws, labels)
    for i in range(40):
        others = [j for j in range(40) if labels[j] == labels[i] and j != i]
        if others:
            assert sure[i] == pytest.approx(similarity[i, others].mean(), abs=1e-6)
        else:
            alone = np.mean([(draw == draw[i]).sum() == 1 for draw in draws])
            assert sure[i] == pytest.approx(alone)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variation_of_information([0, 1], [0]), "a has 2 observations but b has 1"),
        (lambda: binder_loss([0.0, 1.0], [0, 1]), "a must be integers"),
        (lambda: adjusted_rand([0, 1], ["x", "y"]), "b must be integers"),
        (lambda: variation_of_information([[0, 1]], [0, 1]), "a has shape"),
        (lambda: canonical_labels(3), "single number"),
        (lambda: similarity_matrix([0, 1]), "draws has shape"),
        (lambda: similarity_matrix(np.zeros((0, 4), int)), "no draw"),
        (lambda: how_sure([[0, 1]], [0, 1, 2]), "labels has 3 observations but draws has 2"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_empty_and_single():
    assert variation_of_information([], []) == 0.0
    assert binder_loss([4], [9]) == 0.0
    assert adjusted_rand([4], [9]) == 1.0
    assert similarity_matrix(np.zeros((3, 0), int)).shape == (0, 0)
