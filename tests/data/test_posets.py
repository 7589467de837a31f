"""Cycles, closure, cover and pair counts against naive code on random partial orders."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permix import Preferences, Rankings
from permix.data.csr import indptr_of
from permix.errors import CycleError, PermixWarning
from permix.kernels.pairwise_counts import preference_pair_counts, weigh_levels
from permix.kernels.posets import closure_of, consistent_agents, find_cycle
from tests.reference.posets import (
    Statement,
    closed_relation,
    covering_pairs,
    has_cycle,
    level_relation,
    ranking_relation,
    stated_relation,
)


@st.composite
def statements(draw: st.DrawFn, n_items: int) -> Statement:
    n_listed = draw(st.integers(0, n_items))
    listed = draw(st.permutations(range(n_items)))[:n_listed]
    groups: list[list[int]] = []
    for item in listed:
        if groups and draw(st.booleans()):
            groups[-1].append(item)
        else:
            groups.append([item])
    pair = st.tuples(st.integers(0, n_items - 1), st.integers(0, n_items - 1)).filter(lambda p: p[0] != p[1])
    pairs = draw(st.lists(pair, max_size=6))
    rest_below = draw(st.booleans()) and n_listed > 0
    return Statement([sorted(group) for group in groups], rest_below, pairs)


@st.composite
def polls(draw: st.DrawFn, max_items: int = 7) -> tuple[int, list[Statement]]:
    n_items = draw(st.integers(2, max_items))
    return n_items, draw(st.lists(statements(n_items), min_size=1, max_size=4))


def build(n_items: int, poll: list[Statement]) -> Preferences:
    """Statements of both kinds for one agent, which no single constructor takes."""
    return Preferences._from_arrays(
        items=range(n_items),
        level_indptr=indptr_of(np.array([len(s.listed) for s in poll])),
        level_items=np.array([item for s in poll for item in s.listed], dtype=np.int32),
        levels=np.array(
            [lvl for s in poll for lvl, group in enumerate(s.groups) for _ in group], dtype=np.int32
        ),
        rest_below=np.array([s.rest_below for s in poll]),
        pair_indptr=indptr_of(np.array([len(s.pairs) for s in poll])),
        pairs=np.array([pair for s in poll for pair in s.pairs], dtype=np.int32).reshape(-1, 2),
    )


def relation_of(prefs: Preferences, row: int) -> set[tuple[int, int]]:
    mentioned, better = prefs.closure(row)
    return {(int(mentioned[i]), int(mentioned[j])) for i, j in np.argwhere(better)}


def forgetting_rest(statement: Statement) -> Statement:
    return statement._replace(rest_below=False)


def forgetting_levels(statement: Statement) -> Statement:
    return statement._replace(groups=[])


def forgetting_pairs(statement: Statement) -> Statement:
    return statement._replace(pairs=[])


# One agent for whom each kind of statement matters: levels, the rest, and pairs that join them.
TELLING = Statement([[0], [1, 2]], True, [(3, 4), (1, 2)])
TELLING_CYCLES = [
    (Statement([[0], [1]], False, [(1, 0)]), forgetting_levels),
    (Statement([[0]], True, [(1, 0)]), forgetting_rest),
    (Statement([[0], [1]], False, [(1, 2), (2, 0)]), forgetting_pairs),
    (Statement([[0, 1], [2], [3]], False, [(3, 4), (4, 1)]), forgetting_levels),
]


def check_consistency(n_items: int, poll: list[Statement], told: list[Statement]) -> None:
    prefs = build(n_items, told)
    found = consistent_agents(prefs.arrays(), n_items)
    assert found.tolist() == [not has_cycle(s, n_items) for s in poll]


def check_closure(n_items: int, statement: Statement, told: Statement) -> None:
    prefs = build(n_items, [told])
    implied = closed_relation(statement, n_items)
    assert {(a, b) for a in range(n_items) for b in range(n_items) if prefs.prefers(0, a, b)} == implied
    named = {(a, b) for a, b in implied if {a, b} <= statement.mentioned}
    assert relation_of(prefs, 0) == named


@given(polls())
def test_consistency_matches_depth_first_search(drawn: tuple[int, list[Statement]]) -> None:
    check_consistency(*drawn, told=drawn[1])


@pytest.mark.parametrize(("statement", "twin"), TELLING_CYCLES)
def test_consistency_check_rejects_broken_twins(
    statement: Statement, twin: Callable[[Statement], Statement]
) -> None:
    check_consistency(5, [statement], [statement])
    with pytest.raises(AssertionError):
        check_consistency(5, [statement], [twin(statement)])


@given(polls())
def test_cycle_is_a_cycle(drawn: tuple[int, list[Statement]]) -> None:
    n_items, poll = drawn
    prefs = build(n_items, poll)
    for row, statement in enumerate(poll):
        cycle = find_cycle(prefs.arrays(), row, n_items).tolist()
        if not has_cycle(statement, n_items):
            assert cycle == []
            continue
        relation = stated_relation(statement, n_items)
        assert len(cycle) == len(set(cycle)) >= 2
        assert all(step in relation for step in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@given(polls())
def test_closure_matches_warshall(drawn: tuple[int, list[Statement]]) -> None:
    n_items, poll = drawn
    for statement in poll:
        if not has_cycle(statement, n_items):
            check_closure(n_items, statement, statement)


@pytest.mark.parametrize("twin", [forgetting_rest, forgetting_levels, forgetting_pairs])
def test_closure_check_rejects_broken_twins(twin: Callable[[Statement], Statement]) -> None:
    check_closure(6, TELLING, TELLING)
    with pytest.raises(AssertionError):
        check_closure(6, TELLING, twin(TELLING))


@given(polls())
def test_to_pairs_is_the_cover(drawn: tuple[int, list[Statement]]) -> None:
    n_items, poll = drawn
    prefs = build(n_items, poll)
    for row, statement in enumerate(poll):
        if not has_cycle(statement, n_items):
            pairs = prefs.to_pairs(row)
            assert len(pairs) == len(set(pairs))
            assert set(pairs) == covering_pairs(statement, n_items)


def naive_counts(
    relations: list[set[tuple[int, int]]],
    counts: list[int],
    n_items: int,
    poll: list[Statement] | None = None,
) -> np.ndarray:
    """Votes: as many as comparisons of the poll state the pair, one where the relation alone holds it."""
    result = np.zeros((n_items, n_items))
    for row, (relation, count) in enumerate(zip(relations, counts, strict=True)):
        for a, b in relation:
            times = 1 if poll is None else poll[row].pairs.count((a, b))
            result[a, b] += count * max(1, times)
    return result


@given(polls(), st.data())
def test_pairwise_counts_of_preferences(drawn: tuple[int, list[Statement]], data: st.DataObject) -> None:
    n_items, poll = drawn
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(poll), max_size=len(poll)))
    prefs = build(n_items, poll)._replaced(counts=np.array(counts))._with_cycles("keep")
    stated = [stated_relation(s, n_items) for s in poll]
    implied = [
        relation if has_cycle(s, n_items) else closed_relation(s, n_items)
        for relation, s in zip(stated, poll, strict=True)
    ]
    found = prefs.pairwise_counts(closure=False)
    np.testing.assert_array_equal(found, naive_counts(stated, counts, n_items, poll))
    np.testing.assert_array_equal(prefs.pairwise_counts(), naive_counts(implied, counts, n_items, poll))
    once = preference_pair_counts(prefs.arrays(), prefs.consistent, prefs.counts, n_items, False)
    np.testing.assert_array_equal(once, naive_counts(implied, counts, n_items))


def test_pairwise_counts_of_repeated_comparisons_are_votes() -> None:
    """Nine times 0 over 1 counts nine times, among contradictions, levels and what is implied too."""
    poll = [
        Statement([], False, [(0, 1)] * 9 + [(1, 0)]),
        Statement([], False, [(1, 0)]),
        Statement([], False, [(0, 1)] * 3 + [(1, 2)] * 2),
        Statement([[0], [1]], True, [(0, 1)] * 4 + [(2, 3)]),
    ]
    prefs = build(4, poll)._replaced(counts=np.array([1, 1, 1, 2]))._with_cycles("keep")
    right = np.array([[0, 9 + 3 + 8, 1 + 2, 2], [2, 0, 2 + 2, 2], [0, 0, 0, 2], [0, 0, 0, 0]])
    np.testing.assert_array_equal(prefs.pairwise_counts(), right)
    once = preference_pair_counts(prefs.arrays(), prefs.consistent, prefs.counts, 4, False)
    assert once[0, 1] == 1 + 1 + 2  # what it counted when each agent had one vote for a pair


def test_pairwise_counts_tell_levels_pairs_and_closure_apart() -> None:
    chain = Statement([[0], [1]], False, [(1, 2)])
    prefs = build(4, [chain])
    right = naive_counts([closed_relation(chain, 4)], [1], 4)
    np.testing.assert_array_equal(prefs.pairwise_counts(), right)
    for broken in (stated_relation(chain, 4), level_relation(chain, 4)):
        assert not np.array_equal(prefs.pairwise_counts(), naive_counts([broken], [1], 4))


@given(st.integers(1, 7), st.data())
def test_pairwise_counts_of_rankings(n_items: int, data: st.DataObject) -> None:
    row = st.tuples(
        st.permutations(range(n_items)), st.integers(1, n_items), st.booleans(), st.integers(1, 9)
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    orders = [order[:length] for order, length, _, _ in rows]
    below = ["below" if flag else "unknown" for _, _, flag, _ in rows]
    counts = [count for *_, count in rows]
    rankings = Rankings.from_orders(orders, n_items=n_items, unlisted=below, counts=counts)
    relations = [
        ranking_relation(list(order), kind == "below", n_items)
        for order, kind in zip(orders, below, strict=True)
    ]
    naive = naive_counts(relations, counts, n_items)
    np.testing.assert_array_equal(rankings.pairwise_counts(), naive)
    plain, above_all = np.zeros_like(naive), np.zeros(n_items)
    weigh_levels(rankings.arrays(), np.arange(len(rankings)), rankings.counts, plain, above_all)
    np.testing.assert_array_equal(plain, naive)
    np.testing.assert_array_equal(Preferences.from_rankings(rankings).pairwise_counts(), naive)


def test_closure_over_more_than_one_word_of_bits() -> None:
    n = 150
    order = np.random.default_rng(3).permutation(n)
    pairs = [(0, int(a), int(b)) for a, b in pairwise(order)]
    prefs = Preferences.from_pairs(np.random.default_rng(4).permutation(np.array(pairs)))
    mentioned, better = prefs.closure(0)
    place = np.argsort(order)[mentioned]
    np.testing.assert_array_equal(better, place[:, None] < place[None, :])
    assert len(prefs.to_pairs(0)) == n - 1


def test_a_long_cycle_is_shortened_to_one_through_few_items() -> None:
    n = 60
    ring = [(0, i, (i + 1) % n) for i in range(n)]
    with pytest.raises(CycleError, match="…") as caught:
        Preferences.from_pairs(ring)
    assert caught.value.cycle == (*range(n), 0)
    back = [(0, (i + 1) % n, i) for i in range(n)]
    with pytest.raises(CycleError) as caught:
        Preferences.from_pairs(ring + back)
    assert len(caught.value.cycle) == 3


def test_large_levels_do_not_become_pairs() -> None:
    """A graph of 2 × 30,000 tied items has as many edges as items, not a billion."""
    m = 60_000
    prefs = build(
        m, [Statement([list(range(m // 2)), list(range(m // 2, m))], False, [(0, 1), (m - 1, m - 2)])]
    )
    assert consistent_agents(prefs.arrays(), m).all()
    assert prefs.prefers(0, 0, m - 1)
    assert not prefs.prefers(0, 1, 0)


def test_closure_of_compiled_code_keeps_the_order_of_mention() -> None:
    prefs = build(5, [Statement([[3], [1]], False, [(4, 3), (0, 4)])])
    mentioned, _ = closure_of(prefs.arrays(), 0, 5)
    assert mentioned.tolist() == [3, 1, 4, 0] == prefs.mentioned(0).tolist()


@given(polls(5))
def test_on_cycle_drop_and_keep(drawn: tuple[int, list[Statement]]) -> None:
    n_items, poll = drawn
    prefs = build(n_items, poll)
    fine = [not has_cycle(s, n_items) for s in poll]
    kept = prefs._with_cycles("keep")
    assert kept.consistent.tolist() == fine
    np.testing.assert_array_equal(kept.pairs, prefs.pairs)
    if all(fine):
        assert prefs._with_cycles("error") == prefs
        return
    with pytest.raises(CycleError):
        prefs._with_cycles("error")
    with pytest.warns(PermixWarning, match=f"{fine.count(False)} of {len(poll)} agents"):
        dropped = prefs._with_cycles("drop")
    assert dropped.agents.tolist() == np.flatnonzero(fine).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dropped._with_cycles("error") == dropped
