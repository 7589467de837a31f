"""Typical ballots, and what the table of them may be called."""

from __future__ import annotations

import numpy as np

import permix
from permix.reporting.ballots import evidence, typical_of
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
