"""Distances between full rankings and Kendall's for partial ones, against definitions and axioms."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permix.kernels import distances as fast
from permix.kernels import partial_kendall
from tests.reference import permutations as naive


def between(metric, a, b):
    a, b = np.asarray(a, np.int32), np.asarray(b, np.int32)
    return fast.distance_between(
        fast.METRICS[metric], a, np.argsort(a), np.argsort(b), np.empty(len(a), np.int32)
    )


@st.composite
def orders(draw, how_many, max_n=80):
    n = draw(st.integers(1, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return [rng.permutation(n) for _ in range(how_many)]


@pytest.mark.parametrize("metric", list(fast.METRICS))
@given(rows=orders(2))
def test_against_definition(metric, rows):
    assert between(metric, *rows) == naive.METRICS[metric](*rows)


@pytest.mark.parametrize("metric", list(fast.METRICS))
def test_against_definition_on_long_rankings(metric):
    rng = np.random.default_rng(5)
    for n in (64, 65, 200):
        a, b = rng.permutation(n), rng.permutation(n)
        near = a.copy()
        near[[3, 9]] = near[[9, 3]]
        assert between(metric, a, b) == naive.METRICS[metric](a.tolist(), b.tolist())
        assert between(metric, a, near) == naive.METRICS[metric](a.tolist(), near.tolist())


@pytest.mark.parametrize("metric", list(fast.METRICS))
@given(rows=orders(4, max_n=70))
def test_axioms(metric, rows):
    a, b, c, relabeling = rows
    ab = between(metric, a, b)
    assert ab == between(metric, b, a)
    assert between(metric, a, a) == 0
    assert ab > 0 or (a == b).all()
    if metric != "spearman":  # squared differences do not obey the triangle inequality
        assert ab <= between(metric, a, c) + between(metric, c, b)
    assert between(metric, relabeling[a], relabeling[b]) == ab  # names do not matter


def test_spearman_breaks_the_triangle_inequality():
    """So the exception above is needed, and the other five could have failed."""
    a, b, c = [0, 1, 2], [1, 2, 0], [1, 0, 2]
    assert between("spearman", a, b) > between("spearman", a, c) + between("spearman", c, b)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 63, 64, 65, 101])
def test_greatest_values(n):
    up, down = np.arange(n), np.arange(n)[::-1]
    rotated = np.roll(up, 1)
    assert between("kendall", up, down) == n * (n - 1) // 2
    assert between("footrule", up, down) == n * n // 2
    assert between("spearman", up, down) == n * (n * n - 1) // 3
    assert between("ulam", up, down) == n - 1
    assert between("cayley", up, rotated) == n - 1
    assert between("hamming", up, rotated) == (n if n > 1 else 0)


def test_distance_is_of_the_right_side():
    """A twin that relabels the wrong way round gives the distance of the inverses, which footrule reveals."""
    a, b = np.array([0, 1, 2, 3]), np.array([1, 3, 0, 2])
    c, d = np.array([2, 0, 3, 1]), np.array([0, 3, 1, 2])
    twin = np.abs(c[np.argsort(d)] - np.arange(4)).sum()  # places instead of items
    assert between("footrule", a, b) == naive.footrule(a, b)
    assert twin != naive.footrule(c, d)


@pytest.mark.parametrize("metric", list(fast.METRICS))
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 4, 5), (4, 9, 70), (6, 6, 12)])
def test_matrices(metric, m, k, n):
    rng = np.random.default_rng(m * n)
    a = np.array([rng.permutation(n) for _ in range(m)], np.int32)
    b = np.array([rng.permutation(n) for _ in range(k)], np.int32)
    ranks_a, ranks_b = np.argsort(a, axis=1).astype(np.int32), np.argsort(b, axis=1).astype(np.int32)
    expected = [[naive.METRICS[metric](x, y) for y in b] for x in a]
    out = np.full((m, k), -1)
    fast.distance_matrix(0, (m + 1) // 2, fast.METRICS[metric], False, a, ranks_a, ranks_b, out)
    assert out.tolist() == expected
    itself = np.full((m, m), -1)
    fast.distance_matrix(0, (m + 1) // 2, fast.METRICS[metric], True, a, ranks_a, ranks_a, itself)
    assert itself.tolist() == [[naive.METRICS[metric](x, y) for y in a] for x in a]
    if metric == "kendall":
        bits_a, bits_b = (np.empty((rows, fast.words_of_pairs(n)), np.uint64) for rows in (m, k))
        fast.all_pair_bits(0, m, ranks_a, bits_a)
        fast.all_pair_bits(0, k, ranks_b, bits_b)
        fast.kendall_matrix_of_bits(0, (m + 1) // 2, False, bits_a, bits_b, out)
        assert out.tolist() == expected
        by_bits = np.full((m, m), -1)
        fast.kendall_matrix_of_bits(0, (m + 1) // 2, True, bits_a, bits_a, by_bits)
        assert by_bits.tolist() == itself.tolist()


# Partial orders.


def random_levels(rng, n):
    """Levels with ties, gaps and items left out."""
    levels = rng.integers(-1, max(1, rng.integers(1, n + 1)), n)
    return np.asarray(levels, np.int32)


@given(st.integers(1, 20), st.integers(0, 2**32), st.sampled_from([0.0, 0.5, 1.0]))
def test_kendall_of_levels(n, seed, penalty):
    rng = np.random.default_rng(seed)
    a = np.array([random_levels(rng, n) for _ in range(3)])
    b = np.array([random_levels(rng, n) for _ in range(2)])
    out = np.full((3, 2), np.nan)
    partial_kendall.kendall_matrix_of_levels(0, len(a), a, b, penalty, out)
    for i, j in itertools.product(range(3), range(2)):
        assert out[i, j] == naive.kendall_partial(naive.stated(a[i]), naive.stated(b[j]), penalty)


@given(st.integers(1, 15), st.integers(0, 2**32))
def test_kendall_with_penalty_is_a_metric_on_complete_levels(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, max(1, n // 2), (3, n)).astype(np.int32)
    out = np.empty((3, 3))
    partial_kendall.kendall_matrix_of_levels(0, 3, rows, rows, 0.5, out)
    assert (out == out.T).all()
    assert (np.diag(out) == 0).all()
    assert out[0, 1] <= out[0, 2] + out[2, 1]


def random_closed_order(rng, n):
    chain = rng.permutation(n)
    pairs = {
        (int(chain[i]), int(chain[j])) for i, j in itertools.combinations(range(n), 2) if rng.random() < 0.25
    }
    return naive.closure(pairs)


@given(st.integers(1, 8), st.integers(0, 2**32), st.sampled_from([0.0, 0.5, 1.0]))
def test_kendall_of_closed_orders(n, seed, penalty):
    rng = np.random.default_rng(seed)
    one, other = random_closed_order(rng, n), random_closed_order(rng, n)
    keys = [np.sort(np.array([x * n + y for x, y in pairs], np.int64)) for pairs in (one, other)]
    assert partial_kendall.kendall_of_keys(*keys, n, penalty) == naive.kendall_partial(one, other, penalty)


def test_a_distance_that_charges_ties_on_both_sides_is_rejected():
    """The reference tells 'tied in exactly one' from 'tied in at least one'."""
    a, b = np.array([[0, 0, 1]], np.int32), np.array([[0, 0, 1]], np.int32)
    out = np.empty((1, 1))
    partial_kendall.kendall_matrix_of_levels(0, 1, a, b, 0.5, out)
    expected = naive.kendall_partial(naive.stated(a[0]), naive.stated(b[0]), 0.5)
    tied_in_one_or_both = 0.5
    assert out[0, 0] == expected != tied_in_one_or_both
