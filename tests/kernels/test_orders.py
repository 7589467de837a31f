"""Stage and insertion codes against list manipulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permix.kernels.fenwick import count_inversions, count_smaller_before, take_in_turn
from permix.kernels.orders import insertion_code, ordering_from_places, stage_code
from tests.reference import permutations as naive


@st.composite
def pair_of_orders(draw, max_n=90):
    """Two orderings of the same items; sizes on both sides of one machine word."""
    n = draw(st.integers(1, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.permutation(n), rng.permutation(n)


def encode_stage(order, reference):
    out = np.empty(len(order), np.int64)
    stage_code(order, len(order), np.argsort(reference), out)
    return out


def encode_insertion(order, reference):
    out = np.empty(len(order), np.int64)
    insertion_code(np.argsort(order), reference, out)
    return out


@given(pair_of_orders(), st.data())
def test_stage_code_of_top_lists(pair, data):
    order, reference = pair
    top = order[: data.draw(st.integers(0, len(order)))]
    assert encode_stage(top, reference).tolist() == naive.stage_code(top.tolist(), reference.tolist())


@given(pair_of_orders())
def test_insertion_code(pair):
    order, reference = pair
    code = encode_insertion(order, reference)
    assert naive.order_from_insertion_code(code, reference.tolist()) == order.tolist()
    back = np.empty_like(order)
    ordering_from_places(reference, code, np.empty(len(order), np.int64), back)
    assert back.tolist() == order.tolist()


@given(pair_of_orders())
def test_every_code_sums_to_the_kendall_distance(pair):
    order, reference = pair
    distance = naive.kendall(order, reference)
    assert encode_stage(order, reference).sum() == distance
    assert (np.arange(len(order)) - encode_insertion(order, reference)).sum() == distance


@pytest.mark.parametrize("n", [1, 2, 5])
def test_codes_are_bijections(n):
    reference = np.random.default_rng(n).permutation(n)
    orders = [np.array(order) for order in itertools.permutations(range(n))]
    stages = np.array([encode_stage(order, reference) for order in orders])
    places = np.array([encode_insertion(order, reference) for order in orders])
    for code in (stages, places):
        assert len(np.unique(code, axis=0)) == len(orders)
        assert code.min() == 0
    # The stage code ranges over 0..n-1-j, the places of insertion over 0..a.
    assert stages.max(axis=0).tolist() == list(range(n - 1, -1, -1))
    assert places.max(axis=0).tolist() == list(range(n))


@pytest.mark.parametrize("n", [63, 64, 65, 128, 129, 1000, 4096, 5000])
@pytest.mark.parametrize("backwards", [False, True])
def test_large_universes(n, backwards):
    """Word boundaries and the tree, where hypothesis seldom goes."""
    values = np.random.default_rng(n).permutation(n)
    smaller = np.empty(n, np.int64)
    count_smaller_before(values, n, n, smaller)
    assert smaller.tolist() == [int((values[:j] < values[j]).sum()) for j in range(n)]
    assert count_inversions(values, n, n) == (np.arange(n) - smaller).sum()
    taken = np.empty(n, np.int64)
    turn_codes = values - smaller  # place among those not yet taken
    if backwards:
        take_in_turn(turn_codes[::-1].copy(), n, n, True, taken)
        taken = taken[::-1]
    else:
        take_in_turn(turn_codes, n, n, False, taken)
    assert taken.tolist() == values.tolist()


def test_a_code_off_by_one_is_rejected():
    """The reference tells a stage code that forgets to leave out used items."""
    order, reference = np.array([2, 0, 1]), np.array([0, 1, 2])
    forgetful = np.argsort(reference)[order]
    assert forgetful.tolist() != naive.stage_code(order.tolist(), reference.tolist())
    assert encode_stage(order, reference).tolist() == [2, 0, 0]
