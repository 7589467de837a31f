"""The public distances: which inputs they take, what they return, what they refuse."""

import numpy as np
import pytest

from permix.data import Preferences, Rankings
from permix.data.distances import distance, distance_matrix
from permix.errors import CycleError, DataError
from tests.reference import permutations as naive


def test_one_pair_of_lists():
    assert distance([0, 1, 2, 3], [3, 2, 1, 0]) == 6
    assert isinstance(distance([0, 1], [1, 0]), int)
    assert distance(np.array([2, 0, 1]), np.array([0, 1, 2]), metric="footrule") == 4


def test_row_by_row_and_one_against_all():
    a = [[0, 1, 2], [2, 1, 0]]
    assert distance(a, [[0, 1, 2], [0, 1, 2]]).tolist() == [0, 3]
    assert distance([0, 2, 1], a).tolist() == [1, 2]
    assert distance(a, [0, 2, 1]).tolist() == [1, 2]
    assert distance([[0, 1, 2]], [[2, 1, 0]]).tolist() == [3]  # tables in, table out


def test_rankings_of_named_items_in_another_order():
    a = Rankings.from_orders([["x", "y", "z"]], items=["x", "y", "z"])
    b = Rankings.from_orders([["x", "z", "y"]], items=["z", "y", "x"])
    assert distance(a, b) == 1
    assert distance(a, [0, 2, 1]) == 1  # numbers are positions in a's items
    p = Preferences.from_pairs([(0, "z", "x")], items=["z", "y", "x"])
    assert distance(a, p, penalty=0) == 1.0


@pytest.mark.parametrize("metric", list(naive.METRICS))
@pytest.mark.parametrize(("m", "n"), [(12, 6), (2, 90)])
def test_matrix_of_full_rankings(metric, m, n):
    rng = np.random.default_rng(n)
    orders = np.array([rng.permutation(n) for _ in range(m)])
    expected = [[naive.METRICS[metric](a, b) for b in orders] for a in orders]
    matrix = distance_matrix(Rankings.from_orders(orders), metric=metric)
    assert matrix.dtype == np.int64
    assert matrix.tolist() == expected
    assert distance_matrix(orders[:1], orders, metric=metric).tolist() == expected[:1]
    assert distance(orders[0], orders, metric=metric).tolist() == expected[0]


def closed_pairs(table, row):
    """All ordered pairs of one row, from its statements alone."""
    if isinstance(table, Rankings):
        table = Preferences.from_rankings(table)
    n = table.n_items
    start, stop = table.level_indptr[row : row + 2]
    levels = np.full(n, n if table.rest_below[row] else -1)
    levels[table.level_items[start:stop]] = table.levels[start:stop]
    start, stop = table.pair_indptr[row : row + 2]
    return naive.closure(naive.stated(levels) | {tuple(pair) for pair in table.pairs[start:stop].tolist()})


TOP = Rankings.from_orders([[3, 1], [0, 1, 2, 3, 4], [4]], n_items=5)
SUBSET = Rankings.from_orders([[3, 1, 0], [2, 4]], n_items=5, unlisted="unknown")
TIED = Preferences.from_levels([[[0, 1], [2]], [[4], [3, 2]]], items=range(5), rest_below=True)
PAIRS = Preferences.from_pairs([(0, 1, 2), (0, 2, 3), (1, 4, 0), (1, 4, 1), (1, 0, 3)], items=range(5))


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("a", [TOP, SUBSET, TIED, PAIRS], ids=["top", "subset", "tied", "pairs"])
@pytest.mark.parametrize("b", [TOP, SUBSET, TIED, PAIRS], ids=["top", "subset", "tied", "pairs"])
def test_kendall_of_partial_rankings(a, b, penalty):
    expected = [
        [naive.kendall_partial(closed_pairs(a, i), closed_pairs(b, j), penalty) for j in range(len(b))]
        for i in range(len(a))
    ]
    np.testing.assert_array_equal(distance_matrix(a, b, penalty=penalty), expected)
    np.testing.assert_array_equal(distance(a[0], b, penalty=penalty), np.squeeze(expected[0]))
    if a is b:
        np.testing.assert_array_equal(distance_matrix(a, penalty=penalty), expected)


def test_full_rankings_pay_no_penalty():
    a = Rankings.from_orders([[0, 1, 2, 3], [2, 3, 0, 1]])
    as_preferences = Preferences.from_rankings(a)
    assert distance_matrix(as_preferences, penalty=1).tolist() == distance_matrix(a).tolist()


def test_refusals():
    full = Rankings.from_orders([[0, 1, 2]], n_items=3)
    with pytest.raises(DataError, match="metric='euclid'"):
        distance(full, full, metric="euclid")
    with pytest.raises(DataError, match="between 0 and 1"):
        distance(full, TOP[0], penalty=2)
    with pytest.raises(DataError, match="different items"):
        distance(full, TOP)
    with pytest.raises(DataError, match="lists 2 of 5 items"):
        distance(TOP, TOP, metric="ulam")
    with pytest.raises(DataError, match="not Preferences"):
        distance_matrix(PAIRS, metric="cayley")
    with pytest.raises(DataError, match="2 rows and b has 3"):
        distance(SUBSET, TOP)
    with pytest.raises(DataError, match="whole numbers"):
        distance(["a", "b"], ["b", "a"])
    with pytest.raises(DataError, match="twice"):
        distance([0, 0, 1], [0, 1, 2])
    with pytest.raises(DataError, match="no rows"):
        distance(full[:0], full)
    looped = Preferences.from_pairs([(0, 0, 1), (0, 1, 0)], items=range(3), on_cycle="keep")
    with pytest.raises(CycleError):
        distance(full, looped)
