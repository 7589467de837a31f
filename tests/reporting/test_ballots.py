"""Typical ballots, and what the table of them may be called."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix import Rankings
from permix.estimators.preference_input import as_preferences
from permix.reporting.ballots import data_sentences, evidence, gaps, longest_of, typical_of
from permix.reporting.context import Context

ORDERS = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [2, 0, 1]]


def table(counts):
    votes = permix.Rankings.from_orders(ORDERS, items=["a", "b", "c"], counts=counts)
    labels, sure = np.zeros(4, dtype=np.int64), np.array([0.9, 0.8, 1.0, 0.7])
    return typical_of(Context("votes", evidence(votes, labels, sure, np.asarray(counts))), 0)


def test_what_somebody_repeats_is_frequent():
    found = table([1, 3, 1, 1])
    assert found.caption == "The most frequent ballots of group 1"
    assert found.rows[0] == ("b ≻ a ≻ c", 3, "50%", "80%")


def test_what_nobody_repeats_is_not():
    found = table([1, 1, 1, 1])
    assert found.caption == "Some ballots of group 1"
    assert found.note.startswith("No two members say the same")
    assert found.rows[0][0].startswith("c ≻ b")  # who belongs most surely comes first


def of_first_choices(n_single, unlisted="below"):
    """Ballots of which so many of ten name one candidate."""
    orders = [["Ann", "Bo", "Cy"], ["Bo"]]
    return Rankings.from_orders(orders, counts=[10 - n_single, n_single], unlisted=unlisted)


@pytest.mark.parametrize("as_fitted", [False, True])
def test_ballots_with_one_choice_are_told_where_they_are_many(as_fitted):
    def said(votes):
        return data_sentences({"data": gaps(as_preferences(votes) if as_fitted else votes)}, votes.items)

    (sentence,) = said(of_first_choices(4))
    assert sentence.startswith(
        "4 agents (40%) name one item only: their ballots say which item comes first, "
    )
    assert said(of_first_choices(1)) == ()
    # Where the others were not asked about, one item alone says nothing at all.
    assert said(of_first_choices(4, "unknown")) == ()
    assert said(Rankings.from_orders([["Ann", "Bo"], ["Bo"]], counts=[5, 5])) == ()


def test_items_that_stand_for_many_names_are_told():
    (one,) = data_sentences({}, ("Ann", "UWI", "Bo", 3))
    assert one.startswith("UWI stands for people who were written in")
    assert "--write-ins drop" in one
    assert "UWI and Write-in stand for" in data_sentences({}, ("UWI", "Write-in"))[0]
    assert data_sentences({}, ("Ann", "Bo")) == ()
    assert data_sentences({}, None) == ()


def test_lists_have_the_same_length_however_they_are_read():
    """Checks read rankings as preferences: nobody becomes the last of a center by that."""
    votes = permix.Rankings.from_orders([["a", "b"], ["c"], ["d", "a"], ["e"]], items=list("abcde"))
    as_read, as_checked = gaps(votes), gaps(permix.Preferences.from_rankings(votes))
    assert longest_of({"data": as_read}) == longest_of({"data": as_checked}) == 2
    full = permix.Rankings.from_orders([list("abcde"), list("edcba")])
    assert longest_of({"data": gaps(permix.Preferences.from_rankings(full))}) is None
    pairs = permix.Preferences.from_pairs([("u", "a", "b"), ("v", "b", "c")])
    assert longest_of({"data": gaps(pairs)}) is None
