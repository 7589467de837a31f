"""Rankings: constructors, round trips, validation messages, hostile input."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, train_test_split

from permix import Rankings
from permix.errors import DataError

NAMES = ["salmon", "tuna", "egg", "squid", "roe", "eel", "crab"]


@st.composite
def rankings(draw: st.DrawFn, max_rows: int = 8) -> Rankings:
    n_items = draw(st.integers(1, len(NAMES)))
    row = st.tuples(
        st.permutations(range(n_items)), st.integers(1, n_items), st.booleans(), st.integers(1, 5)
    )
    rows = draw(st.lists(row, min_size=1, max_size=max_rows))
    agents = draw(st.sampled_from([None, "letters", "numbers"]))
    ids = {
        None: None,
        "letters": [f"agent {i}" for i in range(len(rows))],
        "numbers": [10 + 3 * i for i in range(len(rows))],
    }
    return Rankings.from_orders(
        [[NAMES[item] for item in order[:length]] for order, length, _, _ in rows],
        items=NAMES[:n_items],
        unlisted=["below" if below else "unknown" for *_, below, _ in rows],
        counts=[count for *_, count in rows],
        agents=ids[agents],
    )


def kinds(r: Rankings) -> list[str]:
    return ["below" if below else "unknown" for below in r.unlisted_below]


# ---- constructors


def test_names_found_become_items() -> None:
    r = Rankings.from_orders([["tuna", "egg"], ["salmon", "tuna"]])
    assert r.items == ("tuna", "egg", "salmon")
    assert r.orders.tolist() == [[0, 1], [2, 0]]
    assert r.orders.dtype == np.int32
    assert r.lengths.tolist() == [2, 2]
    assert not r.is_full
    assert r.unlisted == "below"


def test_integers_found_are_sorted() -> None:
    for orders in (
        [[30, 10], [20, 10]],
        np.array([[30, 10], [20, 10]]),
        np.array([[30.0, 10.0], [20.0, 10.0]]),
    ):
        r = Rankings.from_orders(orders)
        assert r.items == (10, 20, 30)
        assert r.orders.tolist() == [[2, 0], [1, 0]]


def test_names_are_looked_up_and_positions_are_taken() -> None:
    by_name = Rankings.from_orders([["b", "a"], ["c"]], items=["a", "b", "c"])
    by_position = Rankings.from_orders([[1, 0], [2]], items=["a", "b", "c"])
    assert by_name == by_position
    assert Rankings.from_orders(np.array([[1, 0], [2, -1]]), items=["a", "b", "c"]) == by_name


def test_integer_names_are_names_not_positions() -> None:
    r = Rankings.from_orders([[7, 5], [5, 9]], items=[5, 7, 9])
    assert r.orders.tolist() == [[1, 0], [0, 2]]
    with pytest.raises(DataError, match=r"row 2: 0 is not an item; the items are 5, 7, 9"):
        Rankings.from_orders([[7, 5], [5, 0]], items=[5, 7, 9])


@pytest.mark.parametrize("padding", [None, np.nan, -1, "", pd.NA, float("nan")])
def test_padding_at_the_end(padding: object) -> None:
    r = Rankings.from_orders([["b", "a"], ["a", padding]], items=["a", "b"])
    assert r.orders.tolist() == [[1, 0], [0, -1]]
    if not isinstance(padding, str):
        numbers = Rankings.from_orders([[1, 0], [0, padding]], n_items=2)
        assert numbers.orders.tolist() == [[1, 0], [0, -1]]


def test_arrays_frames_and_lists_agree() -> None:
    rows = [["b", "a", "c"], ["c", "b", None]]
    expected = Rankings.from_orders(rows)
    assert Rankings.from_orders(np.array(rows, dtype=object)) == expected
    assert Rankings.from_orders(pd.DataFrame(rows)) == expected
    assert Rankings.from_orders(pl.DataFrame(rows, orient="row")) == expected
    assert Rankings.from_orders([np.array(row[:n]) for row, n in zip(rows, [3, 2], strict=True)]) == expected
    full = np.array([["b", "a"], ["a", "b"]])
    assert Rankings.from_orders(full).orders.tolist() == [[0, 1], [1, 0]]


def test_columns_of_padding_alone_are_trimmed() -> None:
    r = Rankings.from_orders(np.array([[1, 0, -1, -1], [2, -1, -1, -1]]), n_items=4)
    assert r.orders.tolist() == [[1, 0], [2, -1]]
    assert r.orders.flags.c_contiguous


def test_all_integer_types() -> None:
    for kind in (np.int8, np.int16, np.int64, np.uint8, np.uint64):
        assert Rankings.from_orders(np.array([[1, 0]], dtype=kind), n_items=2).orders.tolist() == [[1, 0]]


def test_large_scattered_integers() -> None:
    r = Rankings.from_orders(np.array([[10**15, 3], [3, 10**12]]))
    assert r.items == (3, 10**12, 10**15)


def test_from_ranks() -> None:
    r = Rankings.from_ranks([[2, 1, 3], [np.nan, 4, 2.5], [0, 0, 1]], items=["a", "b", "c"])
    assert r.orders.tolist() == [[1, 0, 2], [2, 1, -1], [2, -1, -1]]
    frame = pd.DataFrame({"a": [2, 1], "b": [1, 2]})
    assert Rankings.from_ranks(frame).items == ("a", "b")
    assert Rankings.from_ranks(pl.DataFrame({"a": [2, 1], "b": [1, 2]})) == Rankings.from_ranks(frame)


def test_the_callers_array_stays_his() -> None:
    orders = np.array([[1, 0]], dtype=np.int32)
    r = Rankings.from_orders(orders, n_items=2)
    orders[0] = [0, 1]
    assert r.orders.tolist() == [[1, 0]]
    ranks = np.array([[1.0, 0.0]])
    Rankings.from_ranks(ranks)
    assert ranks.tolist() == [[1.0, 0.0]]


def test_empty_table_needs_items() -> None:
    assert len(Rankings.from_orders([], items=["a"])) == 0
    assert len(Rankings.from_orders(np.empty((0, 3), dtype=int), n_items=3)) == 0
    with pytest.raises(DataError, match="pass items="):
        Rankings.from_orders([])


def test_unlisted_kinds() -> None:
    r = Rankings.from_orders([[0], [1, 0], [1]], n_items=2, unlisted=["below", "unknown", "unknown"])
    assert r.unlisted == "mixed"
    assert r.unlisted_below.tolist() == [True, True, False]  # a full row leaves nothing unknown
    assert r[1:].unlisted == "unknown"
    assert r[:2].unlisted == "below"


# ---- round trips


@given(rankings())
@settings(deadline=None)
def test_ranks_round_trip(r: Rankings) -> None:
    back = Rankings.from_ranks(r.ranks(), r.items, kinds(r), r.counts, r.agents)
    assert back == r
    assert Rankings.from_ranks(r.ranks(missing=0.0), r.items, kinds(r), r.counts, r.agents) == r
    ranks = r.ranks()
    for row in range(len(r)):
        for place, item in enumerate(r.orders[row, : r.lengths[row]]):
            assert ranks[row, item] == place + 1
    assert np.isfinite(ranks).sum() == r.lengths.sum()


@given(rankings())
@settings(deadline=None)
def test_frame_round_trip(r: Rankings) -> None:
    frame = r.to_frame()
    places = [column for column in frame.columns if column not in ("agent", "count", "unlisted")]
    assert places[:4] == ["1st", "2nd", "3rd", "4th"][: len(places)]
    back = Rankings.from_orders(frame[places], r.items, None, kinds(r), frame["count"], frame["agent"])
    assert back == r


@given(rankings(), st.data())
@settings(deadline=None)
def test_concat_undoes_slicing(r: Rankings, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(r)))
    assert Rankings.concat([r[:cut], r[cut:]]) == r
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(r), max_size=len(r))), dtype=bool)
    assert r[mask] == r[np.flatnonzero(mask)]
    assert [r[i] for i in range(len(r))] == list(r)
    assert r[-1] == r[len(r) - 1]
    assert r[::-1][::-1] == r


def people(table: Rankings) -> Counter[tuple[object, ...]]:
    counter: Counter[tuple[object, ...]] = Counter()
    for order, below, count in zip(table.orders, table.unlisted_below, table.counts, strict=True):
        counter[(tuple(order[order >= 0].tolist()), bool(below))] += int(count)
    return counter


@given(rankings(max_rows=12))
@settings(deadline=None)
def test_collapse_and_expand(r: Rankings) -> None:
    collapsed, expanded = r.collapse(), r.expand()
    assert people(collapsed) == people(expanded) == people(r)
    assert len(collapsed) == len(people(r))
    assert len(expanded) == r.n_agents == collapsed.n_agents
    assert collapsed.collapse() == collapsed
    assert expanded.collapse() == collapsed
    assert collapsed.expand().collapse() == collapsed


@given(rankings(), st.integers(0, 2**32))
@settings(deadline=None)
def test_split_divides_people(r: Rankings, seed: int) -> None:
    if r.n_agents < 2:
        with pytest.raises(DataError, match="both parts need at least one"):
            r.split(0.5, seed)
        return
    train, test = r.split(0.3, seed)
    assert test.n_agents == min(max(round(0.3 * r.n_agents), 1), r.n_agents - 1)
    assert people(train) + people(test) == people(r)
    again = r.split(0.3, seed)
    assert (train, test) == again


def test_split_is_a_fair_draw() -> None:
    """Each of 3 + 1 people is in a test part of one with chance 1/4."""
    r = Rankings.from_orders([[0, 1], [1, 0]], n_items=2, counts=[3, 1])
    rng = np.random.default_rng(5)
    n = 2000
    second = sum(int(r.split(1, rng)[1].orders[0, 0]) for _ in range(n))
    assert abs(second - n / 4) < 4.5 * np.sqrt(n * 3 / 16)


@pytest.mark.parametrize("bad", [0, 1.0, 0.0, -1, 5, "half", True, None, 1.5])
def test_split_refuses(bad: object) -> None:
    r = Rankings.from_orders([[0, 1], [1, 0]], n_items=2, counts=[3, 1])
    with pytest.raises(DataError):
        r.split(bad)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="too many to split"):
        Rankings.from_orders([[0]], n_items=1, counts=[10**10]).split(0.5)


# ---- being an object


def test_nothing_can_be_changed() -> None:
    r = Rankings.from_orders([[0, 1]], n_items=2, agents=["a"])
    for name in ("orders", "items", "new"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(r, name, 1)
    with pytest.raises(AttributeError):
        del r.orders
    for array in (r.orders, r.lengths, r.counts, r.unlisted_below, r.agents):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(r)
    with pytest.raises(TypeError, match="from_orders"):
        Rankings()


@given(rankings())
@settings(deadline=None, max_examples=20)
def test_pickle_copy_and_deepcopy(r: Rankings) -> None:
    for twin in (pickle.loads(pickle.dumps(r)), copy.copy(r), copy.deepcopy(r)):
        assert twin == r
        assert not twin.orders.flags.writeable


def test_equality() -> None:
    def make(**changes: object) -> Rankings:
        arguments = {"orders": [[0, 1], [1]], "items": ["a", "b", "c"]} | changes
        return Rankings.from_orders(**arguments)  # type: ignore[arg-type]

    r = make()
    assert r == make()
    assert r == make(agents=[0, 1])
    assert r != make(agents=["0", "1"])
    assert r != make(orders=[[1, 0], [1]])
    assert r != make(items=["a", "b", "d"])
    assert r != make(counts=[1, 2])
    assert r != make(unlisted="unknown")
    assert r != [[0, 1], [1]]
    assert r._replaced(metadata={"title": "x"}) == r


def test_scikit_learn_indexing_and_clone() -> None:
    r = Rankings.from_orders(np.array([[0, 1], [1, 0]] * 5), n_items=2)
    train, test = train_test_split(r, test_size=3, random_state=0)
    assert isinstance(train, Rankings)
    assert sorted([*train.agents, *test.agents]) == list(range(10))
    for fit, held in KFold(5).split(r):
        assert len(r[fit]) == 8
        assert len(r[held]) == 2

    class Holder(BaseEstimator):
        def __init__(self, data: object = None) -> None:
            self.data = data

    assert clone(Holder(r)).data == r
    np.testing.assert_array_equal(np.asarray(r), r.orders)


@pytest.mark.parametrize("key", [5, -3, [5], [-9], [True], "a", 1.5, [[0]], None])
def test_wrong_rows(key: object) -> None:
    with pytest.raises(IndexError):
        Rankings.from_orders([[0, 1], [1, 0]], n_items=2)[key]


def test_rows_keep_their_ids() -> None:
    r = Rankings.from_orders([[0], [1], [0]], n_items=2)
    assert r[1:].agents.tolist() == [1, 2]
    assert r[[2, 2]].agents.tolist() == [2, 2]
    assert r[[]].agents.tolist() == []
    assert Rankings.concat([r, r]).agents.tolist() == [0, 1, 2, 3, 4, 5]
    named = Rankings.from_orders([[1]], n_items=2, agents=["x"])
    assert Rankings.concat([r[2:], named]).agents.tolist() == [2, "x"]


def test_concat_of_anything_but_a_list_is_refused() -> None:
    a = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 4])
    for wrong in (a, {"x": a}, "ab", 7):
        with pytest.raises(DataError, match=r"concat takes a list of tables: Rankings\.concat\(\[a, b\]\)"):
            a.concat(wrong)  # type: ignore[arg-type]
    assert Rankings.concat(part for part in (a, a)).n_agents == 14


def test_concat_refuses() -> None:
    a = Rankings.from_orders([["a", "b"]])
    with pytest.raises(DataError, match=r"only one of them has b, c\); build both with the same items="):
        Rankings.concat([a, Rankings.from_orders([["a", "c"]])])
    with pytest.raises(DataError, match="the order differs"):
        Rankings.concat([a, Rankings.from_orders([["b", "a"]])])
    with pytest.raises(DataError, match="at least one part"):
        Rankings.concat([])
    with pytest.raises(DataError, match="cannot join Rankings with list"):
        Rankings.concat([a, []])  # type: ignore[list-item]


def test_text() -> None:
    r = Rankings.from_orders(
        [["salmon", "tuna", "egg"], ["egg", "salmon"]], unlisted="unknown", agents=["anna", "bo"]
    )
    assert repr(r) == (
        "Rankings: 2 agents over 3 items, subset rankings of 2 to 3 items\n"
        "  anna: salmon ≻ tuna ≻ egg\n  bo: egg ≻ salmon (2 of 3 items)"
    )
    votes = Rankings.from_orders([list(range(20)), list(range(20))[::-1]], n_items=20, counts=[5000, 738])
    first = "  0: 0 ≻ 1 ≻ 2 ≻ 3 ≻ 4 ≻ 5 ≻ 6 ≻ 7 ≻ … × 5,000"
    assert repr(votes).split("\n")[:2] == ["Rankings: 5,738 votes (2 rows) over 20 items, full", first]
    many = Rankings.from_orders(np.zeros((9, 1), dtype=int), n_items=1)
    assert repr(many).endswith("… 4 more rows")
    assert "no rows" in repr(many[:0])


def test_html_is_escaped() -> None:
    evil = "<script>alert('x')</script>"
    r = Rankings.from_orders([[evil, "b"]], agents=["<img src=x onerror=y>"])
    html = r._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in repr(Rankings.from_orders([["\x1b[2J", "a\nb"]]))


# ---- messages


@pytest.mark.parametrize(
    ("orders", "arguments", "message"),
    [
        ([["a", "b"], ["b", "b"]], {}, r"row 2: 'b' is listed twice, at places 1 and 2; keep one"),
        ([["a", "b"], ["b", "b"]], {"agents": ["x", "y"]}, r"row 2 \(agent 'y'\): 'b' is listed twice"),
        ([[0, 1], [1, 1]], {"n_items": 3}, r"row 2: 1 is listed twice"),
        ([["a"], []], {}, r"row 2 is empty \(1 such row\(s\)\).*Leave such rows out"),
        ([["a"], [None]], {}, r"row 2 is empty"),
        (np.array([[0, 1], [-1, -1]]), {}, r"row 2 is empty"),
        ([["a", None, "b"]], {}, r"row 1: place 2 is empty but 'b' follows.*Close the gap"),
        (np.array([[0, -1, 1]]), {}, r"place 2 is empty but 1 follows"),
        (np.array([[0.0, np.nan, 1.0]]), {}, r"place 2 is empty but 1 follows"),
        ([["a", "z"]], {"items": ["a", "b"]}, r"row 1: 'z' is not an item; the items are 'a', 'b'"),
        ([["a"], ["a", "z"]], {"items": ["a"]}, r"row 2: 'z' is not an item"),
        (
            [[0, 3]],
            {"n_items": 3},
            r"row 1: 3 is not an item; the 3 items are numbered 0 to 2. Count from 0",
        ),
        ([[0, 3]], {"items": ["a", "b"]}, r"3 is not an item; the items are numbered 0 to 1"),
        ([[0, -2]], {"n_items": 3}, r"-2 is not an item"),
        ([[0, -2]], {}, r"row 1: item name -2 is negative"),
        ([[0, 1.5]], {}, r"row 1: item name 1.5 is a float"),
        (np.array([[0, np.inf]]), {}, r"item name .*inf.* is a float"),
        ([[0, True]], {"items": [0, "b"]}, r"truth value"),
        ([["a", ["b", "c"]]], {}, r"\['b', 'c'\] stands where one name should be; for ties use"),
        ([[("a",)]], {}, r"is a tuple; use strings or integers"),
        ([[b"a"]], {}, r"is a bytes"),
        (["abc"], {}, r"row 1 is a str; give a list"),
        ([{"a", "b"}], {}, r"row 1 is a set"),
        ([{"a": 1}], {}, r"row 1 is a dict"),
        ([1, 2, 3], {}, r"wrap a single ranking in a list"),
        (np.array([1, 2, 3]), {}, r"wrap a single ranking in a list"),
        (7, {}, r"wrap a single ranking in a list"),
        (np.array([[True, False]]), {}, r"names of type bool are not understood"),
        ([[2**70]], {}, r"does not fit into 64 bits"),
        (np.array([[2**63]], dtype=np.uint64), {}, r"does not fit into 64 bits"),
        ([["a"]], {"items": ["a", "b", "a"]}, r"item 'a' is listed twice in items \(positions 1 and 3\)"),
        ([["a"]], {"items": ["a", None]}, r"item name is missing"),
        ([["a"]], {"items": ["a", ""]}, r"item name is empty"),
        ([["a"]], {"items": "abc"}, r"is one string; pass a list"),
        ([["a"]], {"items": ["a"], "n_items": 2}, r"n_items=2 but items has 1 names"),
        ([[0]], {"n_items": 0}, r"n_items=0 must be a positive integer"),
        ([[0]], {"n_items": 2.0}, r"must be a positive integer"),
        ([["a"]], {"unlisted": "above"}, r"unlisted='above' must be 'below' or 'unknown'"),
        ([["a"]], {"unlisted": ["below", "below"]}, r"one word or one per row"),
        ([["a"]], {"counts": [0]}, r"row 1: count 0 is not a positive whole number"),
        ([["a"]], {"counts": [-3], "agents": ["x"]}, r"agent 'x'\): count -3"),
        ([["a"]], {"counts": [1.5]}, r"count 1.5"),
        ([["a"]], {"counts": [np.nan]}, r"count nan"),
        ([["a"]], {"counts": [np.inf]}, r"count inf"),
        ([["a"]], {"counts": ["3"]}, r"convert them to integers"),
        ([["a"]], {"counts": [1, 2]}, r"counts has shape \(2,\) but there are 1 rows"),
        ([["a"]], {"counts": 3}, r"one count per row"),
        ([["a"]], {"agents": ["x", "y"]}, r"agents has shape \(2,\) but there are 1 rows"),
        ([["a"]], {"agents": [None]}, r"row 1: an agent name is missing"),
        ([["a"]], {"agents": "x"}, r"is one string"),
        ([["a"]], {"agents": [1.5]}, r"agent name 1.5 is a float"),
    ],
)
def test_messages_of_from_orders(orders: object, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Rankings.from_orders(orders, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ranks", "arguments", "message"),
    [
        (
            [[1, 2], [2, 2]],
            {"items": ["a", "b"]},
            r"row 2: 'a' and 'b' share rank 2; .*Preferences.from_ranks",
        ),
        ([[1, 2], [0, np.nan]], {}, r"row 2 is empty"),
        ([[1, -2]], {}, r"row 1: rank -2 of item 1 is not a positive number; write NaN or 0"),
        ([[1, np.inf]], {}, r"rank inf"),
        ([[1, 2], [1]], {}, r"rows of equal length"),
        ([["a", "b"]], {}, r"must be numbers"),
        ([1, 2], {}, r"table of rows × items"),
        ([[1, 2]], {"items": ["a"]}, r"2 columns but items has 1 names"),
        (np.empty((2, 0)), {}, r"no columns"),
        ([[1, 2]], {"unlisted": None}, r"unlisted=None must be"),
    ],
)
def test_messages_of_from_ranks(ranks: object, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Rankings.from_ranks(ranks, **arguments)  # type: ignore[arg-type]


def test_hostile_names_survive() -> None:
    names = ["a\0", "a", "A", " a", "≻", "a,b", '"', "\u202e", "1", "x" * 10_000]
    r = Rankings.from_orders([names, names[::-1]])
    assert r.items == tuple(names)
    assert r.is_full
    assert len(repr(r)) < 1000
    assert r.to_frame()["1st"].tolist() == [names[0], names[-1]]


@given(
    st.lists(
        st.lists(
            st.one_of(st.none(), st.integers(-3, 5), st.text(max_size=2), st.floats(), st.booleans()),
            max_size=4,
        ),
        max_size=4,
    )
)
@settings(max_examples=100)
def test_any_rows_are_taken_rightly_or_refused(rows: list[list[object]]) -> None:
    try:
        r = Rankings.from_orders(rows)
    except DataError:
        return
    assert len(r) == len(rows)
    for row, order in zip(rows, r.orders, strict=True):
        stated = [entry for entry in row if entry not in (None, "", -1) and entry == entry]
        assert [r.items[item] for item in order if item >= 0] == stated


def test_numbers_of_items_that_would_fill_the_memory_are_refused():
    for said in ({"n_items": 2**40}, {"n_items": 10_000_001}, {"items": range(2**40)}):
        with pytest.raises(DataError, match="more than 10,000,000 items are not taken"):
            Rankings.from_orders([[0, 5]], **said)


def test_there_is_nothing_to_split_in_an_empty_table():
    empty = Rankings.from_orders([[0, 1]], n_items=2)[:0]
    for size in (0.25, 1):
        with pytest.raises(DataError, match="there is nothing to split: the table has no rows"):
            empty.split(size)


def test_an_item_listed_twice_is_found_among_millions(monkeypatch):
    """The compiled check and the sorting one name the same row, items and places."""
    orders = np.tile(np.arange(5), (30, 1))
    orders[17] = [3, 1, 0, 1, -1]
    messages = []
    for limit in (10, 10**9):
        monkeypatch.setattr("permix.data.rankings.MANY_ENTRIES", limit)
        with pytest.raises(DataError) as caught:
            Rankings.from_orders(orders, n_items=5)
        messages.append(str(caught.value))
        assert len(Rankings.from_orders(orders[:17], n_items=5)) == 17
    assert messages[0] == messages[1]
    assert "row 18:" in messages[0]
    assert "places 2 and 4" in messages[0]
