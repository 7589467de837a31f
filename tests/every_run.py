"""Cases of a test of which some are tried in every run, and the others in the slow one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import combinations, product
from typing import Any

import pytest


def first_in_every_run(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """Return cases for ``parametrize``: the first ``n`` as they are, the others marked slow."""
    cases = list(cases)
    return cases[:n] + [_tried(case if isinstance(case, tuple) else (case,), False) for case in cases[n:]]


def turns_in_every_run(*axes: Iterable[Any]) -> list[Any]:
    """Return the grid of some axes for ``parametrize``: as many cases as the longest axis has are not slow.

    Values of the axes take turns, so that each of them is tried in every run.
    """
    values = [list(axis) for axis in axes]
    chosen = set(chosen_in_every_run(*values))
    return [_tried(case, case in chosen) for case in product(*values)]


def chosen_in_every_run(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return those cases of the grid alone that are not slow, where the slow run has a test of its own."""
    values = [list(axis) for axis in axes]
    longest = max(map(len, values))
    return [tuple(axis[turn % len(axis)] for axis in values) for turn in range(longest)]


def pairs_in_every_run(*axes: Iterable[Any], slow: Collection[Any] = ()) -> list[Any]:
    """Return the grid of some axes for ``parametrize``: enough cases are not slow for all pairs of values.

    Cases with a value in ``slow`` always are.
    """
    cases = list(product(*axes))
    pairs = {case: set(combinations(enumerate(case), 2)) for case in cases}
    left = {case: pairs[case] for case in cases if not any(value in slow for value in case)}
    chosen = set()
    missing = set().union(*left.values())
    while missing:
        best = max(left, key=lambda case: len(left[case] & missing))  # the first of equals
        chosen.add(best)
        missing -= left[best]
    return [_tried(case, case in chosen) for case in cases]


def _tried(case: tuple[Any, ...], always: bool) -> Any:
    return pytest.param(*case, marks=() if always else pytest.mark.slow)
