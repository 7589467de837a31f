"""Top lists, their skips and their sums, against the definitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permix.dp_mallows.lists.top_lists_jit import (
    MOST_ITEMS,
    Members,
    collect_members,
    skip_at,
    sum_skips,
    top_lists,
    write_skips,
)
from permix.errors import DataError
from tests.reference.permutations import stage_code


def table(rows):
    """Rows of different lengths as (orders, lengths)."""
    orders = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int32)
    for i, row in enumerate(rows):
        orders[i, : len(row)] = row
    return orders, np.array([len(row) for row in rows])


def lists_of(rows, n_items, counts=None):
    counts = np.ones(len(rows), dtype=np.int64) if counts is None else np.asarray(counts)
    return top_lists(*table(rows), counts, n_items)


def list_at(lists, d):
    return tuple(lists.items[lists.starts[d] : lists.starts[d + 1]].tolist())


def naive_skips(row, center):
    """How many unused items stand before each item of the row in the center."""
    skips = []
    for j, item in enumerate(row):
        before = center[: center.index(item)]
        skips.append(sum(other not in row[:j] for other in before))
    return skips


@st.composite
def data(draw, most_items=7):
    """(n_items, rows, counts), with rows that repeat and full rows that differ in their last two places."""
    n = draw(st.integers(1, most_items))
    one = st.permutations(list(range(n))).flatmap(lambda p: st.integers(1, n).map(lambda t: tuple(p[:t])))
    rows = draw(st.lists(one, min_size=1, max_size=6))
    rows += draw(st.lists(st.sampled_from(rows), max_size=4))
    counts = draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))
    return n, rows, counts


@given(data())
def test_every_distinct_list_once_and_who_gave_it(case):
    n, rows, counts = case
    lists = lists_of(rows, n, counts)
    cut = [row[: max(n - 1, 1)] for row in rows]
    agents = [row for row, count in zip(cut, counts, strict=True) for _ in range(count)]
    distinct = [list_at(lists, d) for d in range(len(lists.starts) - 1)]
    assert len(distinct) == len(set(cut)) == len(set(distinct))
    assert [distinct[d] for d in lists.list_of] == agents
    assert lists.agent_starts[-1] == len(agents)
    for d, row in enumerate(distinct):
        given_by = lists.agents[lists.agent_starts[d] : lists.agent_starts[d + 1]].tolist()
        assert given_by == [i for i, other in enumerate(agents) if other == row]


def test_one_and_two_items():
    lists = lists_of([(0,), (0,)], 1, [1, 2])
    assert list_at(lists, 0) == (0,)
    assert lists.list_of.tolist() == [0, 0, 0]
    lists = lists_of([(0, 1), (0,), (1, 0), (1,)], 2)
    assert {list_at(lists, d) for d in (0, 1)} == {(0,), (1,)}
    assert lists.list_of[0] == lists.list_of[1] != lists.list_of[2] == lists.list_of[3]


def test_full_lists_lose_their_last_item_and_others_do_not():
    lists = lists_of([(2, 0, 1), (2, 0), (2,)], 3)
    assert len(lists.starts) == 3
    lists = lists_of([(2, 0, 1), (2, 0), (2,)], 4)
    assert len(lists.starts) == 4


def test_too_many_items():
    with pytest.raises(DataError, match="at most"):
        lists_of([(0, 1)], MOST_ITEMS + 1)
    many = lists_of([(MOST_ITEMS - 1, 0)], MOST_ITEMS)
    places = np.repeat(np.arange(MOST_ITEMS, dtype=np.int16)[:, None], 4, axis=1)
    skips = np.empty((2, 4), np.int16)
    write_skips(many.items, 0, 2, places.view(np.uint64), 1, skips)
    assert skips[:, 0].tolist() == [MOST_ITEMS - 1, 0]


@given(data(9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_skips(case, n_centers, seed):
    n, rows, _ = case
    rng = np.random.default_rng(seed)
    n_columns = -(-n_centers // 4) * 4
    centers = [rng.permutation(n).tolist() for _ in range(n_columns)]
    places = np.array([np.argsort(center) for center in centers], dtype=np.int16).T.copy()
    lists = lists_of(rows, n)
    skips = np.full((max(n, 1), n_columns + 4), -7, dtype=np.int16)
    for d in range(len(lists.starts) - 1):
        first, last = lists.starts[d], lists.starts[d + 1]
        write_skips(lists.items, first, last, places.view(np.uint64), n_centers, skips)
        for k, center in enumerate(centers):
            truth = naive_skips(list_at(lists, d), center)
            # The reference that oracles use says the same.
            if n > 1:
                assert truth == list(stage_code(list_at(lists, d), center))
            assert skips[: last - first, k].tolist() == truth
            center_places = places[:, k].copy()
            assert [skip_at(lists.items, first, j, center_places) for j in range(last - first)] == truth
            assert all(0 <= s <= n - 1 - j for j, s in enumerate(truth))
        assert np.all(skips[:, n_columns:] == -7)


@given(data(), st.integers(0, 2**32 - 1))
def test_sums_of_skips(case, seed):
    n, rows, counts = case
    rng = np.random.default_rng(seed)
    lists = lists_of(rows, n, counts)
    n_lists = len(lists.starts) - 1
    members = Members(rng.permutation(n_lists).astype(np.int32), rng.choice([0.25, 1.0, 2.0, 3.5], n_lists))
    first, last = sorted(rng.integers(0, n_lists + 1, 2).tolist())
    center = rng.permutation(n).tolist()
    n_stages = max(n - 1, 1)
    totals, sums = np.full((2, n_stages), np.nan)
    sum_skips(lists, members, first, last, np.argsort(center).astype(np.int16), totals, sums)
    expected = np.zeros((2, n_stages))
    for entry in range(first, last):
        for j, s in enumerate(naive_skips(list_at(lists, members.lists[entry]), center)):
            expected[:, j] += members.times[entry] * np.array([s, 1])
    np.testing.assert_allclose([totals, sums], expected)


@given(data(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_members_of_clusters(case, n_clusters, seed):
    n, rows, counts = case
    rng = np.random.default_rng(seed)
    lists = lists_of(rows, n, counts)
    labels = rng.integers(-1, n_clusters, len(lists.list_of)).astype(np.int32)
    starts, members = collect_members(lists, labels, n_clusters)
    assert starts[0] == 0
    for k in range(n_clusters):
        held = members.lists[starts[k] : starts[k + 1]].tolist()
        assert held == sorted(set(held))
        found = dict(zip(held, members.times[starts[k] : starts[k + 1]].tolist(), strict=True))
        assert found == Counter(lists.list_of[labels == k].tolist())
