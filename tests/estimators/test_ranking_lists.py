"""What counts as top lists, and what is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from permix import Preferences, Rankings
from permix.errors import CycleError, DataError
from permix.estimators.ranking_lists import as_top_lists

ITEMS = ("tea", "coffee", "water", "milk")


def lists(*rows, **options):
    return Rankings.from_orders([list(row) for row in rows], items=ITEMS, **options)


def test_rankings_pass_as_they_are():
    table = lists(("tea", "milk"), ("milk",), counts=[3, 2], agents=["anna", "bo"])
    assert as_top_lists(table) is table
    assert as_top_lists(table, ITEMS) is table


def test_preferences_that_are_top_lists():
    table = lists(
        ("tea", "milk"), ("milk",), ("milk", "water", "tea", "coffee"), counts=[3, 2, 1], agents=["x", "y", 7]
    )
    assert as_top_lists(Preferences.from_rankings(table)) == table
    levels = Preferences.from_levels([[["tea"], ["milk"]], [["milk"]]], items=ITEMS, rest_below=True)
    assert as_top_lists(levels) == lists(("tea", "milk"), ("milk",))
    rated = Preferences.from_ratings([[5, 3, 1, 2]], items=ITEMS, layout="matrix")
    assert as_top_lists(rated) == lists(("tea", "coffee", "milk", "water"))


def test_arrays_are_orderings():
    found = as_top_lists(np.array([[3, 1, -1], [2, 3, 1]]))
    assert found == Rankings.from_orders([[3, 1], [2, 3, 1]])
    assert as_top_lists(np.array([[3, 0]]), ITEMS) == lists(("milk", "tea"))


def test_new_data_are_numbered_as_the_model():
    other = Rankings.from_orders([["milk", "tea"]], items=["milk", "tea", "water", "coffee"])
    found = as_top_lists(other, ITEMS)
    assert found.items == ITEMS
    assert found.orders.tolist() == [[3, 0]]
    with pytest.raises(DataError, match="does not know 'juice'"):
        as_top_lists(Rankings.from_orders([["milk", "juice"]]), ITEMS)
    with pytest.raises(DataError, match="puts everything it leaves out below"):
        as_top_lists(Rankings.from_orders([["milk"]], items=["milk", "tea"]), ITEMS)
    # A row that lists all items of its own table says nothing about the others: a subset.
    with pytest.raises(DataError, match=r"row 1 .*says nothing about the rest.*items=\[all items\]"):
        as_top_lists(Rankings.from_orders([["milk", "tea"]]), ITEMS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            lists(("tea",), ("milk", "tea"), ("tea", "milk"), unlisted=["below", "unknown", "unknown"]),
            r"row 2 ranks some items .*\(2 such rows\); if the rest is below",
        ),
        (
            lists(("tea", "milk"), unlisted="unknown", agents=["anna"]),
            r"anna.* says nothing about the rest.*MallowsMixture takes any kind",
        ),
        (
            Preferences.from_levels(
                [[["tea"]], [["tea"], ["milk", "water"]]], items=ITEMS, rest_below=True, agents=["anna", "bo"]
            ),
            r"bo.* ties 'water' and 'milk', .*break the ties, or: permix.MallowsMixture",
        ),
        (
            Preferences.from_pairs([("anna", "tea", "milk")], items=ITEMS),
            r"anna.* compares pairs \('tea' ≻ 'milk'\).*MallowsMixture",
        ),
        (
            Preferences.from_pairs([], items=ITEMS, agents=["anna"]),
            r"anna.* says nothing; leave such rows out",
        ),
        (
            Preferences.from_levels([[["tea"], ["milk"]]], items=ITEMS, rest_below=False),
            "says nothing about the rest",
        ),
        (Rankings.from_orders([["tea"]]), "one item only"),
        (Rankings.from_orders(np.empty((0, 3), int), n_items=3), "no rows"),
        ([["tea", "milk"]], "Preferences, Rankings or a 2-D integer array"),
        (np.array([[0.5, 1.0]]), "Preferences, Rankings or a 2-D integer array"),
    ],
)
def test_everything_else_is_refused_by_name(data, message):
    with pytest.raises(DataError, match=message):
        as_top_lists(data)


def test_contradictions_are_refused():
    table = Preferences.from_pairs([(0, "a", "b"), (0, "b", "a")], on_cycle="keep")
    with pytest.raises(CycleError, match="a ≻ b ≻ a"):
        as_top_lists(table)


def test_ties_that_are_only_the_rest_are_none():
    """A .toc file ends each list by its other items, tied; what is tied before that is a tie."""
    lists = Preferences.from_levels([["a", ["b", "c", "d"]], ["b", "a", ["c", "d"]], ["a", "b", "c", "d"]])
    assert as_top_lists(lists).orders.tolist() == [[0, -1, -1, -1], [1, 0, -1, -1], [0, 1, 2, 3]]
    for tied in ([["a", "b"], "c", "d"], ["a", ["b", "c"]], [["a", "b", "c", "d"]]):
        with pytest.raises(DataError, match="ties"):
            as_top_lists(Preferences.from_levels([tied], items=["a", "b", "c", "d"]))
