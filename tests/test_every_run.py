"""Grids that are thinned for every run: nothing is lost, and what every run must have is there."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.every_run import pairs_in_every_run, turns_in_every_run

AXES = ("abcde", (1, 2, 3, 4), (True, False), "xyz")


def split(cases):
    """Values of all cases, and of those that are not slow."""
    assert len({case.values for case in cases}) == len(cases)
    return {case.values for case in cases}, {case.values for case in cases if not case.marks}


def pairs_of(cases):
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


@pytest.mark.parametrize("n_axes", [2, 3, 4])
def test_turns_have_every_value(n_axes):
    every, tried = split(turns_in_every_run(*AXES[:n_axes]))
    assert every == set(product(*AXES[:n_axes]))
    assert len(tried) == 5
    for place, axis in enumerate(AXES[:n_axes]):
        assert {case[place] for case in tried} == set(axis)


@pytest.mark.parametrize("n_axes", [2, 3, 4])
def test_pairs_have_every_two_values(n_axes):
    every, tried = split(pairs_in_every_run(*AXES[:n_axes], slow={"b"}))
    assert every == set(product(*AXES[:n_axes]))
    wanted = {case for case in every if case[0] != "b"}
    assert tried <= wanted
    assert pairs_of(tried) == pairs_of(wanted)
    assert n_axes == 2 or len(tried) < len(wanted)
