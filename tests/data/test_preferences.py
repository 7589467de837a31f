"""Preferences: constructors, round trips, validation messages, hostile input."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from permix import Preferences, Rankings
from permix.errors import CycleError, DataError, PermixWarning
from tests.data.test_rankings import rankings

PAIRS = [("anna", "salmon", "tuna"), ("bo", "egg", "tuna"), ("anna", "tuna", "egg"), ("bo", "egg", "salmon")]
CYCLE = [
    ("anna", "salmon", "tuna"),
    ("anna", "tuna", "egg"),
    ("bo", "egg", "tuna"),
    ("anna", "egg", "salmon"),
]


def to_polars(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(frame.to_dict("list"))


def groups_of(prefs: Preferences, row: int) -> list[list[object]]:
    """Levels of one row by name."""
    start, end = prefs.level_indptr[row], prefs.level_indptr[row + 1]
    groups: list[list[object]] = []
    for item, level in zip(prefs.level_items[start:end], prefs.levels[start:end], strict=True):
        if level == len(groups):
            groups.append([])
        groups[level].append(prefs.items[item])
    return groups


def pairs_of(prefs: Preferences, row: int) -> list[tuple[object, object]]:
    start, end = prefs.pair_indptr[row], prefs.pair_indptr[row + 1]
    return [(prefs.items[a], prefs.items[b]) for a, b in prefs.pairs[start:end]]


# ---- comparisons


def test_from_pairs() -> None:
    p = Preferences.from_pairs(PAIRS)
    assert p.items == ("salmon", "tuna", "egg")
    assert p.agents.tolist() == ["anna", "bo"]
    assert pairs_of(p, 0) == [("salmon", "tuna"), ("tuna", "egg")]
    assert pairs_of(p, 1) == [("egg", "tuna"), ("egg", "salmon")]
    assert p.n_statements == 4
    assert p.consistent.all()
    assert not p.rest_below.any()


def test_all_forms_of_comparisons_agree() -> None:
    expected = Preferences.from_pairs(PAIRS)
    frame = pd.DataFrame(PAIRS, columns=["agent", "better", "worse"])
    assert Preferences.from_pairs(frame) == expected
    assert Preferences.from_pairs(frame[["worse", "agent", "better"]].astype("category")) == expected
    assert Preferences.from_pairs(frame.convert_dtypes()) == expected
    assert Preferences.from_pairs(to_polars(frame)) == expected
    assert Preferences.from_pairs(np.array(PAIRS)) == expected
    assert Preferences.from_pairs(np.array(PAIRS, dtype=object)) == expected
    assert Preferences.from_pairs(iter(PAIRS)) == expected


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.uint8, np.float64])
def test_integer_tables(kind: type) -> None:
    rows = [(7, 3, 1), (5, 1, 2), (7, 1, 2)]
    expected = Preferences.from_pairs(rows)
    assert expected.items == (1, 2, 3)
    assert expected.agents.tolist() == [5, 7]
    assert pairs_of(expected, 1) == [(3, 1), (1, 2)]
    assert Preferences.from_pairs(np.array(rows, dtype=kind)) == expected


def test_positions_of_named_items_and_agents_who_said_nothing() -> None:
    p = Preferences.from_pairs(
        [("bo", 0, 2)], items=["a", "b", "c"], agents=["anna", "bo", "cy"], counts=[1, 2, 3]
    )
    assert pairs_of(p, 1) == [("a", "c")]
    assert p.mentioned(0).tolist() == []
    assert p.closure(0)[1].shape == (0, 0)
    assert p.n_agents == 6
    assert "anna: (nothing stated)" in repr(p)
    with pytest.raises(DataError, match="agent 'dan' is not among agents="):
        Preferences.from_pairs([("dan", 0, 2)], items=["a", "b", "c"], agents=["anna", "bo"])
    with pytest.raises(DataError, match="agent 'anna' is listed twice"):
        Preferences.from_pairs([("anna", 0, 2)], items=["a", "b", "c"], agents=["anna", "anna"])


@given(
    st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 4), st.integers(5, 9)), min_size=1, max_size=30),
    st.booleans(),
)
@settings(deadline=None)
def test_grouping_keeps_the_stated_order(rows: list[tuple[int, int, int]], strings: bool) -> None:
    stated: list[tuple[Any, ...]] = [tuple(f"x{v}" for v in row) for row in rows] if strings else list(rows)
    p = Preferences.from_pairs(stated)
    expected: dict[Any, list[tuple[Any, Any]]] = {}
    for agent, better, worse in stated:
        expected.setdefault(agent, []).append((better, worse))
    if not strings:
        expected = dict(sorted(expected.items()))
    assert p.agents.tolist() == list(expected)
    assert [pairs_of(p, row) for row in range(len(p))] == list(expected.values())
    back = Preferences.from_pairs(p.to_frame(), items=p.items)
    assert back == p
    assert Preferences.from_pairs(to_polars(p.to_frame()), items=p.items) == p


def test_many_scattered_agents() -> None:
    rng = np.random.default_rng(2)
    ids = rng.choice(10**12, size=50, replace=False)
    agent = ids[rng.integers(0, 50, size=1000)]
    table = np.column_stack([agent, rng.integers(0, 5, 1000), rng.integers(5, 10, 1000)])
    p = Preferences.from_pairs(table)
    np.testing.assert_array_equal(p.agents, np.unique(agent))
    for row in range(len(p)):
        assert pairs_of(p, row) == list(map(tuple, table[agent == p.agents[row], 1:].tolist()))


def test_choices() -> None:
    p = Preferences.from_choices([("anna", "b", ["a", "b", "c"]), ("bo", "a", {"c"})])
    assert p.items == ("b", "a", "c")
    assert pairs_of(p, 0) == [("b", "a"), ("b", "c")]
    assert pairs_of(p, 1) == [("a", "c")]
    contrary = [("anna", "a", ["b"]), ("anna", "b", ["a"])]
    with pytest.raises(CycleError, match="a ≻ b ≻ a"):
        Preferences.from_choices(contrary)
    assert not Preferences.from_choices(contrary, on_cycle="keep").consistent.any()


# ---- cycles


def test_cycle_error_names_agent_and_items() -> None:
    with pytest.raises(CycleError) as caught:
        Preferences.from_pairs(CYCLE)
    error = caught.value
    assert error.agent == "anna"
    assert error.cycle == ("salmon", "tuna", "egg", "salmon")
    assert str(error).startswith(
        "agent 'anna': these comparisons contradict each other: salmon ≻ tuna ≻ egg ≻ salmon."
    )
    assert "on_cycle='drop'" in str(error)
    assert "on_cycle='keep'" in str(error)


def test_cycle_error_counts_the_others() -> None:
    both = [*CYCLE, ("bo", "tuna", "egg")]
    with pytest.raises(CycleError, match="2 agents contradict themselves in all"):
        Preferences.from_pairs(both)


def test_on_cycle_drop_warns_with_names_at_the_callers_line() -> None:
    with pytest.warns(PermixWarning, match=r"1 of 2 agents left out .*: 'anna'$") as caught:
        p = Preferences.from_pairs(CYCLE, on_cycle="drop")
    assert caught[0].filename == __file__
    with pytest.warns(PermixWarning) as caught:
        Preferences.from_choices([("x", "a", ["b"]), ("x", "b", ["a"])], on_cycle="drop")
    assert caught[0].filename == __file__
    assert p.agents.tolist() == ["bo"]
    assert p.items == ("salmon", "tuna", "egg")
    many = [(f"agent{i}", a, b) for i in range(7) for a, b in (("x", "y"), ("y", "x"))]
    with pytest.warns(PermixWarning, match=r"7 of 7 .*'agent0', .*'agent4', …$"):
        assert len(Preferences.from_pairs(many, on_cycle="drop")) == 0


def test_on_cycle_keep() -> None:
    p = Preferences.from_pairs(CYCLE, on_cycle="keep")
    assert p.consistent.tolist() == [False, True]
    assert len(p.pairs) == 4
    assert "(contradictory)" in repr(p)
    assert "1 agent with contradictions" in repr(p)
    for question in (lambda: p.closure(0), lambda: p.prefers(0, "egg", "tuna"), lambda: p.to_pairs(0)):
        with pytest.raises(CycleError, match="salmon ≻ tuna ≻ egg ≻ salmon"):
            question()
    assert p.prefers(1, "egg", "tuna")
    assert pickle.loads(pickle.dumps(p)) == p
    assert p[[1]].consistent.tolist() == [True]
    assert Preferences.concat([p[:1], p[1:]]) == p
    assert p.collapse().consistent.tolist() == [False, True]


def test_consistent_data_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Preferences.from_pairs(PAIRS, on_cycle="drop") == Preferences.from_pairs(PAIRS)
        assert Preferences.from_pairs(PAIRS, on_cycle="keep") == Preferences.from_pairs(PAIRS)


# ---- ratings


def test_all_forms_of_ratings_agree() -> None:
    dense = np.array([[5.0, np.nan, 0.0], [np.nan, 2.0, 2.0]])
    p = Preferences.from_ratings(dense, items=["a", "b", "c"])
    assert groups_of(p, 0) == [["a"], ["c"]]
    assert groups_of(p, 1) == [["b", "c"]]
    assert not p.rest_below.any()
    row, column = np.nonzero(~np.isnan(dense))
    sparse = sp.coo_matrix((dense[row, column], (row, column)), shape=dense.shape)
    for form in (sparse, sparse.tocsr(), sparse.tocsc(), sp.csr_array(sparse)):
        assert Preferences.from_ratings(form, items=["a", "b", "c"]) == p  # the stored zero is a rating
    long = [(1, "c", 2), (0, "a", 5), (0, "c", 0), (1, "b", 2)]
    frame = pd.DataFrame(long, columns=["agent", "item", "rating"])
    for table in (long, frame, to_polars(frame), np.array(long, dtype=object)):
        assert Preferences.from_ratings(table, items=["a", "b", "c"]) == p
    wide = pd.DataFrame(dense, columns=["a", "b", "c"])
    assert Preferences.from_ratings(wide) == p
    assert Preferences.from_ratings(to_polars(wide)) == p
    numbers = [(1, 2, 2), (0, 0, 5), (0, 2, 0), (1, 1, 2)]
    by_number = Preferences.from_ratings(np.array(numbers), layout="long")
    assert by_number == Preferences.from_ratings(dense)


def test_unrated_below() -> None:
    p = Preferences.from_ratings([[1, np.nan, 2], [1, 2, 3]], items=["a", "b", "c"], unrated="below")
    assert p.prefers(0, "a", "b")
    assert p.rest_below.all()
    free = Preferences.from_ratings([[1, np.nan, 2]], items=["a", "b", "c"])
    assert not free.prefers(0, "a", "b")
    assert not free.prefers(0, "b", "a")


def naive_levels(rows: list[tuple[int, int, float]]) -> dict[int, list[list[int]]]:
    result: dict[int, list[list[int]]] = {}
    for agent in sorted({row[0] for row in rows}):
        mine = [(item, rating) for who, item, rating in rows if who == agent]
        values = sorted({rating for _, rating in mine}, reverse=True)
        result[agent] = [sorted(item for item, rating in mine if rating == value) for value in values]
    return result


@pytest.mark.parametrize("one_key", [True, False])
@given(
    rows=st.lists(
        st.tuples(st.integers(-5, 5), st.integers(0, 9), st.sampled_from([-1.5, 0.0, 1.0, 2.25, 1e300])),
        min_size=1,
        max_size=40,
        unique_by=lambda row: (row[0], row[1]),
    )
)
@settings(deadline=None)
def test_levels_from_ratings(one_key: bool, rows: list[tuple[int, int, float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("permix.data.levels.fits_one_key", lambda *sizes: one_key)
        p = Preferences.from_ratings(rows)
    expected = naive_levels(rows)
    assert p.agents.tolist() == list(expected)
    assert [groups_of(p, row) for row in range(len(p))] == list(expected.values())


@pytest.mark.parametrize("one_key", [True, False])
def test_sorting_comparisons_either_way(one_key: bool) -> None:
    rng = np.random.default_rng(8)
    table = np.column_stack([rng.integers(0, 9, 400), rng.integers(0, 3, 400), rng.integers(3, 6, 400)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("permix.data.comparisons.fits_one_key", lambda *sizes: one_key)
        p = Preferences.from_pairs(table)
        collapsed = Preferences.concat([p, p[::-1]]).collapse()
    for row in range(9):
        assert pairs_of(p, row) == list(map(tuple, table[table[:, 0] == row, 1:].tolist()))
    assert collapsed.counts.tolist() == [2] * 9


# ---- rankings, ranks, levels


@given(rankings())
@settings(deadline=None)
def test_rankings_there_and_back(r: Rankings) -> None:
    p = Preferences.from_rankings(r)
    assert p.to_rankings() == r
    assert len(p.level_items) == r.lengths.sum()
    ranks = Preferences.from_ranks(r.ranks(), r.items, "below", r.counts, r.agents)
    assert ranks == p._replaced(rest_below=np.ones(len(r), dtype=bool))


def test_from_ranks_keeps_ties() -> None:
    p = Preferences.from_ranks([[1, 1, 3, np.nan], [2, 0, 1, 1]], items=["a", "b", "c", "d"])
    assert groups_of(p, 0) == [["a", "b"], ["c"]]
    assert groups_of(p, 1) == [["c", "d"], ["a"]]
    assert p.rest_below.all()
    assert not Preferences.from_ranks([[1, 0]], unlisted="unknown").rest_below.any()
    with pytest.raises(DataError, match=r"row 1 has ties or comparisons"):
        p.to_rankings()
    with pytest.raises(DataError, match=r"row 1 \(agent 'anna'\) has ties or comparisons"):
        Preferences.from_pairs(PAIRS).to_rankings()


def test_from_levels() -> None:
    p = Preferences.from_levels([[["c", "a"], "b"], ["b"]], items=["a", "b", "c"], rest_below=[False, True])
    assert groups_of(p, 0) == [["a", "c"], ["b"]]
    assert p.rest_below.tolist() == [True, True]  # nothing is left in the first row
    assert Preferences.from_levels([["b"]], items=["a", "b"], rest_below=False).rest_below.tolist() == [False]
    silent = Preferences.from_levels([[], ["b"]], items=["a", "b"], agents=["x", "y"])
    assert silent.rest_below.tolist() == [False, True]
    assert groups_of(silent, 0) == []


@given(
    st.lists(
        st.tuples(
            st.permutations(range(6)), st.lists(st.booleans(), min_size=6, max_size=6), st.integers(1, 6)
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(deadline=None)
def test_levels_there_and_back(rows: list[tuple[list[int], list[bool], int]]) -> None:
    stated = []
    for order, tied, length in rows:
        groups: list[list[str]] = []
        for item, same in zip(order[:length], tied, strict=False):
            if groups and same:
                groups[-1].append("abcdef"[item])
            else:
                groups.append(["abcdef"[item]])
        stated.append([sorted(group) for group in groups])
    p = Preferences.from_levels(stated, items=list("abcdef"))
    assert [groups_of(p, row) for row in range(len(p))] == stated
    frame = p.to_frame()
    assert list(frame.columns) == ["agent", "item", "level", "rest"]
    scores = frame.rename(columns={"level": "rating"}).assign(rating=lambda f: -f["rating"])
    assert Preferences.from_ratings(scores, items=p.items, unrated="below") == p


# ---- tables of agents


@st.composite
def preferences(draw: st.DrawFn) -> Preferences:
    """Agents with levels, agents with comparisons, some alike, some with counts."""
    levels = Preferences.from_rankings(draw(rankings(max_rows=4)))
    m = levels.n_items
    if m < 2:
        return levels
    pair = st.tuples(st.integers(0, 2), st.integers(0, m - 2), st.integers(1, m - 1))
    rows = [(agent, a, max(a + 1, b)) for agent, a, b in draw(st.lists(pair, min_size=1, max_size=8))]
    compared = Preferences.from_pairs(rows, items=levels.items)
    return Preferences.concat([levels, compared])[
        np.array(draw(st.permutations(range(len(levels) + len(compared)))))
    ]


def people(p: Preferences) -> Counter[str]:
    counter: Counter[str] = Counter()
    for row in range(len(p)):
        said = (groups_of(p, row), bool(p.rest_below[row]), sorted(map(str, pairs_of(p, row))))
        counter[str(said)] += int(p.counts[row])
    return counter


@given(preferences(), st.data())
@settings(deadline=None)
def test_slicing_joining_collapsing(p: Preferences, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(p)))
    assert Preferences.concat([p[:cut], p[cut:]]) == p
    assert p[::-1][::-1] == p
    collapsed, expanded = p.collapse(), p.expand()
    assert people(collapsed) == people(expanded) == people(p)
    assert len(collapsed) == len(people(p))
    assert len(expanded) == p.n_agents
    assert collapsed.expand().collapse() == collapsed
    if p.n_agents > 1:
        train, test = p.split(0.4, 1)
        assert people(train) + people(test) == people(p)
    for twin in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p)):
        assert twin == p
        assert not twin.pairs.flags.writeable
    np.testing.assert_array_equal(collapsed.pairwise_counts(), p.pairwise_counts())
    assert len(p.to_frame()) == p.n_statements
    assert isinstance(repr(p) + p._repr_html_(), str)


def test_collapse_takes_no_notice_of_the_order_of_comparisons() -> None:
    p = Preferences.from_pairs([(0, "a", "b"), (0, "c", "d"), (1, "c", "d"), (1, "a", "b"), (2, "c", "d")])
    assert p.collapse().counts.tolist() == [2, 1]


def test_mixed_frame() -> None:
    levels = Preferences.from_levels([["a", ["b", "c"]]], items=["a", "b", "c"], counts=[2])
    pairs = Preferences.from_pairs([(7, "b", "a")], items=["a", "b", "c"])
    frame = Preferences.concat([pairs, levels]).to_frame()
    assert list(frame.columns) == ["agent", "count", "better", "worse", "item", "level", "rest"]
    assert frame["better"].tolist()[0] == "b"
    assert frame["better"].isna().tolist() == [False, True, True, True]
    assert frame["item"].isna().tolist() == [True, False, False, False]
    assert frame["item"].tolist()[1:] == ["a", "b", "c"]
    assert frame["level"].isna().tolist() == [True, False, False, False]
    assert frame["level"].tolist()[1:] == [1, 2, 2]
    assert frame["count"].tolist() == [1, 2, 2, 2]


def test_nothing_can_be_changed() -> None:
    p = Preferences.from_pairs(PAIRS)
    with pytest.raises(AttributeError, match="cannot be changed"):
        p.pairs = p.pairs  # type: ignore[misc]
    for array in (p.pairs, p.pair_indptr, p.level_items, p.counts, p.consistent, p.rest_below):
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(p)
    with pytest.raises(TypeError, match="from_pairs"):
        Preferences()
    with pytest.raises(TypeError, match="no array form"):
        np.asarray(p)


def test_equality_sees_every_part() -> None:
    p = Preferences.from_pairs(PAIRS)
    assert p == Preferences.from_pairs(PAIRS)
    assert p != Preferences.from_pairs(PAIRS, counts=[1, 2])
    assert p != Preferences.from_pairs(PAIRS[:3])
    assert p != Preferences.from_pairs(PAIRS, items=["tuna", "salmon", "egg"])
    assert p != Preferences.from_pairs(PAIRS, agents=["bo", "anna"])
    assert p != p._replaced(consistent=np.array([True, False]))
    levels = Preferences.from_levels([["a"]], items=["a", "b"])
    assert levels != Preferences.from_levels([["a"]], items=["a", "b"], rest_below=False)
    assert levels != Preferences.from_levels([[["a", "b"]]], items=["a", "b"])
    assert Preferences.from_levels([["a", "b"]]) != Preferences.from_levels([[["a", "b"]]])
    assert p != "p"
    assert p._replaced(metadata={"title": "x"}) == p


def test_scikit_learn_indexing() -> None:
    p = Preferences.from_pairs([(i, "a", "b") for i in range(10)])
    train, test = train_test_split(p, test_size=3, random_state=0)
    assert sorted([*train.agents, *test.agents]) == list(range(10))


def test_text() -> None:
    many = [(0, i, i + 1) for i in range(12)]
    assert repr(Preferences.from_pairs(many)).endswith("7 ≻ 8, … (12 comparisons)")
    rated = Preferences.from_ratings([[1.0] * 12])
    assert repr(rated).endswith("0: {0, 1, 2, 3, 4, 5, 6, 7, …}")
    evil = Preferences.from_pairs([("<b>", "<script>", "&")])._repr_html_()
    assert "<script>" not in evil
    assert "&lt;script&gt; ≻ &amp;" in evil


@pytest.mark.parametrize("row", [5, -3, 1.0, True, "anna", None])
def test_wrong_rows(row: Any) -> None:
    p = Preferences.from_pairs(PAIRS)
    for question in (p.mentioned, p.closure, p.to_pairs, lambda r: p.prefers(r, "egg", "tuna")):
        with pytest.raises(IndexError):
            question(row)


def test_prefers_by_name_or_position() -> None:
    p = Preferences.from_pairs(PAIRS)
    assert p.prefers(0, "salmon", "egg")
    assert p.prefers(0, 0, 2)
    assert p.prefers(-1, "egg", "salmon")
    assert not p.prefers(0, "egg", "salmon")
    assert not p.prefers(0, "egg", "egg")
    with pytest.raises(DataError, match="'squid' is not an item; the items are 'salmon'"):
        p.prefers(0, "squid", "egg")
    numbers = Preferences.from_pairs([(0, 10, 20)])
    assert numbers.prefers(0, 10, 20)
    with pytest.raises(DataError, match="0 is not an item"):
        numbers.prefers(0, 0, 1)


# ---- messages


@pytest.mark.parametrize(
    ("pairs", "arguments", "message"),
    [
        ([("x", "a", "b"), ("y", "a", "a")], {}, r"row 2: agent 'y' says 'a' is better than itself"),
        ([(0, "a", "b"), (0, "a", None)], {}, r"row 2: the worse item is missing; leave the row out"),
        ([(0, np.nan, "b")], {}, r"row 1: the better item is missing"),
        ([(0, "a", "b"), (None, "a", "b")], {}, r"row 2: an agent name is missing"),
        ([("x", "a", "b"), (np.nan, "a", "b")], {}, r"row 2: an agent name is missing"),
        (np.array([[0.0, 1.0, 2.0], [np.nan, 1.0, 2.0]]), {}, r"row 2: an agent name is missing"),
        ([(0, "a", "z")], {"items": ["a", "b"]}, r"row 1: 'z' is not an item; the items are 'a', 'b'"),
        ([(0, 1, 5)], {"items": ["a", "b"]}, r"5 is not an item; the items are numbered 0 to 1"),
        ([(0, "a")], {}, r"row 1 is \(0, 'a'\); it needs \(agent, better, worse\)"),
        ([(0, "a", "b"), "abc"], {}, r"row 2 is 'abc'; it needs"),
        ([(0, "a", "b"), 7], {}, r"row 2 is 7; it needs"),
        (7, {}, r"a int is not a table of rows \(agent, better, worse\)"),
        (np.zeros((3, 2), dtype=int), {}, r"has shape \(3, 2\); it needs three columns"),
        (np.zeros(3, dtype=int), {}, r"has shape \(3,\)"),
        (
            pd.DataFrame({"whose": [1], "better": ["a"], "worse": ["b"]}),
            {},
            r"no column for 'agent'.*needs agent, better, worse.*has whose, .*Rename.*permix\.from_frame",
        ),
        ([(0, 1.5, 2)], {}, r"item name 1.5 is a float"),
        ([(2**70, "a", "b")], {}, r"agent number does not fit into 64 bits"),
        (np.array([[2**70, "a", "b"]], dtype=object), {}, r"agent number does not fit into 64 bits"),
        ([(1e300, "a", "b"), (1, "a", "b")], {}, r"agent number does not fit into 64 bits"),
        (
            [("x", "a", "b")],
            {"agents": np.array([2**70, 1], dtype=object)},
            r"agent number does not fit into 64 bits",
        ),
        ([((1, 2), "a", "b")], {}, r"row 1: agent name \(1, 2\) is a tuple"),
        ([([1], "a", "b")], {}, r"\[1\] stands where one name should be"),
        ([], {}, r"no comparisons and no items"),
        (PAIRS, {"counts": [1]}, r"counts has shape \(1,\) but there are 2 rows"),
        (PAIRS, {"counts": [1, 0]}, r"agent 'bo'\): count 0 is not a positive"),
        (PAIRS, {"on_cycle": "ignore"}, r"on_cycle='ignore' must be 'error', 'drop' or 'keep'"),
        (CYCLE, {"on_cycle": None}, r"on_cycle=None must be"),
    ],
)
def test_messages_of_from_pairs(pairs: object, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Preferences.from_pairs(pairs, **arguments)


@pytest.mark.parametrize(
    ("ratings", "arguments", "message"),
    [
        (
            [("x", "a", 1), ("x", "b", 2), ("x", "a", 3)],
            {},
            r"agent 'x' rated 'a' twice: 1 in row 1 and 3 in row 3; keep one",
        ),
        ([(0, "a", 1), (0, "a", 1)], {}, r"agent 0 rated 'a' twice: 1 in row 1 and 1 in row 2"),
        (
            sp.coo_matrix(([1.0, 2.0], ([1, 1], [0, 0])), shape=(2, 2)),
            {"agents": [0, 1]},
            r"agent 1 rated 0 twice",
        ),
        ([(0, "a", np.inf)], {}, r"row 1: rating inf is not a finite number"),
        ([(0, "a", np.nan)], {}, r"row 1: rating nan is not a finite number; leave rows without"),
        ([(0, "a", 1), (0, "b", None)], {}, r"row 2: rating"),
        ([(0, "a", 1), (0, "b", "good")], {}, r"row 2: rating 'good' is not a number"),
        ([(0, None, 1)], {}, r"row 1: the item is missing"),
        ([(None, "a", 1)], {}, r"row 1: an agent name is missing"),
        (np.array([[1.0, -np.inf]]), {"items": ["a", "b"]}, r"row 1: rating -inf of 'b' is infinite"),
        (np.array([[1.0, 2.0], [np.nan, np.nan]]), {}, r"row 2 has no rating .*pass agents="),
        (sp.csr_matrix((2, 2)), {}, r"row 1 has no rating \(2 such"),
        (sp.csr_matrix(np.array([[np.nan, 1.0]])), {}, r"row 1, column 1 is NaN"),
        (np.zeros((2, 3)), {}, r"say layout='long' or layout='matrix'"),
        (np.zeros((2, 3), dtype=int), {}, r"say layout='long' or layout='matrix'"),
        ([[1, 2, 3]], {}, r"say layout='long' or layout='matrix'"),
        (np.zeros((2, 2)), {"items": ["a"]}, r"2 columns but items has 1 names"),
        (np.zeros((2, 2)), {"agents": ["a"]}, r"agents has shape"),
        (np.zeros((2, 0)), {}, r"no columns"),
        (np.zeros(4), {}, r"this one has shape \(4,\)"),
        (np.zeros((2, 4)), {"layout": "long"}, r"has shape \(2, 4\); it needs three columns"),
        (np.zeros((2, 4)), {"layout": "tall"}, r"layout='tall' must be"),
        (np.zeros((2, 4)), {"unrated": "above"}, r"unrated='above' must be"),
        ([["a", "b"], ["c", "d"]], {}, r"neither a table .* nor a matrix"),
        (pd.DataFrame({"agent": [1], "stars": [2]}), {"layout": "long"}, r"no column for 'item'"),
        (
            pd.DataFrame({"user": [1], "film": [7], "mark": [2]}),
            {},
            r"no column for 'rating'.*has user, film",
        ),
        (
            pd.DataFrame({"who": ["x"], "dish": ["a"], "mark": [2]}),
            {},
            r"neither a table .* nor a matrix.*columns are 'who', 'dish', 'mark'.*permix\.from_frame",
        ),
        (
            pd.DataFrame({"user": [1], "film": ["a"], "movie": ["a"], "stars": [2]}),
            {},
            r"more than one column for 'item'",
        ),
        (np.empty((0, 3)), {"layout": "long"}, r"no ratings and no items"),
    ],
)
def test_messages_of_from_ratings(ratings: object, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Preferences.from_ratings(ratings, **arguments)


def test_layout_is_only_asked_where_both_fit() -> None:
    matrix = Preferences.from_ratings([[1, 2, 3]], layout="matrix")
    assert groups_of(matrix, 0) == [[2], [1], [0]]
    long = Preferences.from_ratings([[1, 2, 3]], layout="long")
    assert long.agents.tolist() == [1]
    assert long.items == (2,)
    assert Preferences.from_ratings([[1, 2, np.nan]]).n_items == 3
    kept = Preferences.from_ratings(np.array([[1.0, 2.0], [np.nan, np.nan]]), agents=["x", "y"])
    assert kept.mentioned(1).size == 0


@pytest.mark.parametrize(
    ("levels", "arguments", "message"),
    [
        ([[["a", "b"], ["a"]]], {}, r"row 1: 'a' is listed twice; keep it in one group"),
        ([["a"], []], {}, r"row 2 has no groups"),
        ([[["a"], []]], {}, r"row 1: group 2 is empty"),
        ([[["a", None]]], {}, r"row 1: an item is missing in group 1"),
        ([["a"], "ab"], {}, r"row 2 is 'ab'; give a list of groups"),
        ([["a"], 3], {"agents": ["x", "y"]}, r"row 2 \(agent 'y'\) is 3"),
        ([[["z"]]], {"items": ["a"]}, r"row 1: 'z' is not an item"),
        ([["a"]], {"rest_below": "yes"}, r"rest_below must be True, False or one of them"),
        ([["a"]], {"rest_below": [True, False]}, r"for each of the 1 agents"),
        ([], {}, r"no groups and no items"),
    ],
)
def test_messages_of_from_levels(levels: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Preferences.from_levels(levels, **arguments)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([("x", "a", ["a"])], r"row 1: 'a' was chosen from nothing else"),
        ([("x", "a", [])], r"chosen from nothing else"),
        ([("x", "a", "bc")], r"row 1: the alternatives 'bc' must be a list"),
        ([("x", "a", 5)], r"must be a list"),
        ([("x", "a", ["b", "b"])], r"'b' is offered twice"),
        ([("x", "a")], r"it needs \(agent, chosen, alternatives\)"),
    ],
)
def test_messages_of_from_choices(choices: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Preferences.from_choices(choices)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([[1, -1]], r"rank -1 of item 1 is not a positive number"),
        ([[1, 1], [0, np.nan]], r"row 2 has no rank"),
        ([1, 2], r"table of rows × items"),
    ],
)
def test_messages_of_from_ranks(ranks: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Preferences.from_ranks(ranks)


def test_concat_refuses_other_items_and_kinds() -> None:
    p = Preferences.from_pairs(PAIRS)
    with pytest.raises(DataError, match="same items="):
        Preferences.concat([p, Preferences.from_pairs([(0, "a", "b")])])
    with pytest.raises(DataError, match="cannot join Preferences with Rankings"):
        Preferences.concat([p, Rankings.from_orders([["a"]])])  # type: ignore[list-item]


def test_agents_are_ordered_like_items() -> None:
    assert Preferences.from_pairs([(9, "a", "b"), (3, "a", "b")]).agents.tolist() == [3, 9]
    assert Preferences.from_pairs(np.array([(9, "a", "b"), (3, "a", "b")], object)).agents.tolist() == [3, 9]
    assert Preferences.from_pairs([("9", "a", "b"), ("3", "a", "b")]).agents.tolist() == ["9", "3"]
    assert Preferences.from_pairs([("x", "a", "b"), (3, "a", "b"), (1.0, "a", "b")]).agents.tolist() == [
        "x",
        3,
        1,
    ]
