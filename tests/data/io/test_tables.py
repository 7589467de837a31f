"""CSV files and data frames in four layouts: detection, reading, writing, refusals with line numbers."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from permix import Preferences, Rankings
from permix.data import from_frame, read, read_table, write
from permix.errors import CycleError, DataError, FileFormatError, PermixWarning
from tests.every_run import first_in_every_run

FRAMES = [pd.DataFrame, pl.DataFrame]


def put(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# -- orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "names",
    [
        ("1st", "2nd", "3rd"),
        ("pos1", "pos2", "pos3"),
        ("Choice 1", "Choice 2", "Choice 3"),
        ("first", "second", "third"),
        ("First choice", "Second choice", "Third choice"),
    ],
)
def test_orders_by_name(frame, names):
    columns = dict(zip(names, (["tea", "milk"], ["milk", "juice"], ["juice", None]), strict=True))
    votes = from_frame(frame({"user": ["ann", "bo"], **columns, "count": [3, 1]}))
    assert votes == Rankings.from_orders(
        [["tea", "milk", "juice"], ["milk", "juice"]], counts=[3, 1], agents=["ann", "bo"]
    )


def test_orders_columns_count_by_number_not_by_place(tmp_path):
    votes = read_table(put(tmp_path, "pos2,pos1\nb,a\n"))
    assert votes.to_frame()["1st"].tolist() == ["a"]
    with pytest.raises(DataError, match="without a gap"):
        read_table(put(tmp_path, "pos1,pos3\nb,a\n"))


@pytest.mark.parametrize("dtype", [int, float, "Int64"])
def test_orders_of_numbers_padded_by_zero(dtype):
    frame = pd.DataFrame({"pos1": [3, 1], "pos2": [0, 3], "pos3": [0, 2]}).astype(dtype)
    votes = from_frame(frame)
    assert votes.items == (1, 2, 3)
    assert votes.orders.tolist() == [[2, -1, -1], [0, 2, 1]]


def test_zero_is_an_item_where_others_follow_it(tmp_path):
    votes = read_table(put(tmp_path, "pos1,pos2,pos3\n0,2,1\n1,,\n"))
    assert votes.items == (0, 1, 2)
    assert votes.orders.tolist() == [[0, 2, 1], [1, -1, -1]]


def test_zero_that_could_be_either_must_be_said(tmp_path):
    path = put(tmp_path, "pos1,pos2\n2,1\n1,0\n")
    with pytest.raises(DataError, match=r"line 3: 0 could be an item or a place left empty; pass items="):
        read_table(path)
    assert read_table(path, items=[1, 2]).lengths.tolist() == [2, 1]
    assert read_table(path, items=[0, 1, 2]).lengths.tolist() == [2, 2]
    with pytest.raises(DataError, match="leave places without an item blank"):
        read_table(put(tmp_path, "pos1,pos2,pos3\n0,1,2\n1,0,0\n"))


def test_unlisted_argument_and_column(tmp_path):
    path = put(tmp_path, "pos1,pos2\na,b\nb,\n")
    assert read_table(path).unlisted == "below"
    assert read_table(path, unlisted="unknown").unlisted == "unknown"
    marked = put(tmp_path, "pos1,pos2,unlisted\na,b,below\nb,,unknown\na,,below\n")
    assert read_table(marked).unlisted_below.tolist() == [True, False, True]


def test_items_give_the_order_and_those_nobody_listed(tmp_path):
    votes = read_table(put(tmp_path, "pos1\na\nb\n"), items=["c", "b", "a"])
    assert votes.items == ("c", "b", "a")
    assert votes.orders.ravel().tolist() == [2, 1]


# -- ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES)
def test_ranks_of_named_items(frame):
    votes = from_frame(frame({"tea": [1, 3], "milk": [2, 1], "juice": [3, 2], "n": [4, 5]}))
    assert votes == Rankings.from_orders(
        [["tea", "milk", "juice"], ["milk", "juice", "tea"]], items=["tea", "milk", "juice"], counts=[4, 5]
    )


def test_ranks_blank_zero_and_na_are_not_ranked(tmp_path):
    votes = read_table(put(tmp_path, ",tea,milk,juice\nann,1,,2\nbo,0,NA,1\n"), unlisted="unknown")
    assert votes.agents.tolist() == ["ann", "bo"]
    assert votes.orders.tolist() == [[0, 2], [2, -1]]
    assert votes.unlisted == "unknown"


@pytest.mark.parametrize("rows", ["1,1,3", "1,1,2", "2,2,3", "1.5,1.5,3"])
def test_ranks_with_ties_become_preferences(tmp_path, rows):
    votes = read_table(put(tmp_path, f"tea,milk,juice\n{rows}\n1,2,3\n"))
    assert votes == Preferences.from_ranks([[1, 1, 2], [1, 2, 3]], items=["tea", "milk", "juice"])


def test_tied_ranks_with_a_column_that_says_what_is_unlisted(tmp_path):
    votes = read_table(put(tmp_path, "unlisted,a,b,c\nbelow,1,1,\nunknown,1,1,\nbelow,1,1,\n"))
    assert votes.rest_below.tolist() == [True, False, True]


def test_scores_are_not_taken_for_ranks(tmp_path):
    path = put(tmp_path, "tea,milk,juice\n1,2,3\n3,3,2\n")
    with pytest.raises(
        DataError, match=r"line 3: .*ranks \(1 = best\).*layout='ranks'.*layout='ratings'.*permix\.DPMixture"
    ):
        read_table(path)
    assert isinstance(read_table(path, layout="ranks"), Preferences)
    with pytest.raises(DataError, match=r"line 2: ((?!layout='ranks').)*layout='ratings'((?!layout).)*\Z"):
        read_table(put(tmp_path, "height,weight,age\n170.5,60.2,30\n"))
    with pytest.raises(DataError, match=r"line 2: these numbers are not a ranking.*DPMixture"):
        read_table(put(tmp_path, "V1,V2,V3\n5,5,4\n1,2,1\n"))  # answers in columns that say nothing


def test_a_weight_among_ranks_is_named_with_the_way_out(tmp_path):
    path = put(tmp_path, "A,B,C,Wk\n1,2,3,232\n2,1,3,10\n")
    with pytest.raises(DataError, match=r"column 'Wk' goes up to 232.*count_column='Wk'.*items="):
        read_table(path, layout="ranks")
    assert read_table(path, layout="ranks", count_column="Wk").counts.tolist() == [232, 10]
    assert read_table(path, layout="ranks", items=["A", "B", "C"]).n_items == 3


def test_items_choose_the_columns_of_ranks(tmp_path):
    path = put(tmp_path, "age,b,a\n30,1,2\n")
    assert read_table(path, layout="ranks", items=["a", "b"]).orders.tolist() == [[1, 0]]
    with pytest.raises(DataError, match="no column for item 'z'"):
        read_table(path, layout="ranks", items=["a", "z"])


# -- what is ambiguous ----------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["Rank_1,Rank_2,Rank_3", "X1,X2,X3", "V1,V2,V3", "0,1,2"])
def test_square_tables_of_numbers_must_be_named(tmp_path, names):
    path = put(tmp_path, f"{names}\n2,3,1\n3,1,2\n")
    with pytest.raises(DataError, match=r"could be orders .* or ranks .*layout='orders' or layout='ranks'"):
        read_table(path, header=True)
    orders = read_table(path, layout="orders", header=True)
    ranks = read_table(path, layout="ranks", header=True)
    assert orders.orders.tolist() == [[1, 2, 0], [2, 0, 1]]
    assert ranks.orders.tolist() == [[2, 0, 1], [1, 2, 0]]


def test_text_or_repeats_decide_where_names_do_not(tmp_path):
    assert read_table(put(tmp_path, "X1,X2\na,b\n")).items == ("a", "b")
    assert isinstance(read_table(put(tmp_path, "X1,X2,X3\n1,1,2\n")), Preferences)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pos1,pos2,age\na,b,30\n", "'age' is not; leave it out with ignore='age'"),
        ("tea,milk,town\n1,2,Rome\n", "'town' holds text"),
        ("count\n3\n", "no columns are left"),
        (
            "user,voter,pos1\na,b,x\n",
            "'user' and 'voter' could both be the agent; name it with agent_column",
        ),
    ],
)
def test_tables_that_are_not_understood(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_table(put(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "who,dish,liking\nann,Up,5\nann,Jaws,2\n",
            r"agent, item and rating.*highest .*'liking': 'rating'.*1 is the best.*'liking': 'rank'",
        ),
        ("who,this,that\nann,Up,Jaws\nann,Jaws,X\n", r"'this': 'better', 'that': 'worse'"),
        ("u,i,r\n1,31,4\n1,30,3\n", r"'u': 'agent', 'i': 'item', 'r': 'rating'"),
    ],
)
def test_single_statements_under_other_names_say_how_to_rename(tmp_path, text, words):
    with pytest.raises(DataError, match=words) as caught:
        read_table(put(tmp_path, text))
    assert "layout='orders'" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,sex,town,pay\n30,f,Rome,1\n40,m,Oslo,2\n", "does not look like rankings"),
        ("q1,q2,q3\nyes,no,yes\nno,no,yes\n", "words of a scale, such as 'yes'.*layout='ratings'"),
    ],
)
def test_surveys_are_sent_to_mixtures(tmp_path, text, words):
    with pytest.raises(DataError, match=rf"{words}.*permix\.DPMixture") as caught:
        read_table(put(tmp_path, text))
    assert "layout='orders'" not in str(caught.value)


def test_orders_under_other_names_are_offered_as_such(tmp_path):
    path = put(tmp_path, "best,middle,worst\na,b,c\nb,a,c\n")
    with pytest.raises(DataError, match=r"say layout='orders'"):
        read_table(path)
    assert read_table(path, layout="orders").orders.tolist() == [[0, 1, 2], [1, 0, 2]]


def test_numbers_among_names_are_no_places_of_an_ordering(tmp_path):
    with pytest.raises(DataError, match=r"column 'stars' holds numbers while 'film' holds names"):
        read_table(put(tmp_path, "user,film,stars\nann,Up,5\nbo,Jaws,2\n"), layout="orders")
    with pytest.raises(DataError, match=r"column 'V3' holds numbers"):
        read_table(put(tmp_path, "V1,V2,V3\na,b,3\nb,a,4\n"))
    books = put(tmp_path, "V1,V2\nDune,1984\n")
    assert read_table(books, items=["1984", "Dune"]).orders.tolist() == [[1, 0]]
    assert read_table(put(tmp_path, "pos1,pos2\nDune,1984\n")).items == ("Dune", "1984")


def test_an_agent_with_two_ballots_is_kept_with_a_warning(tmp_path):
    path = put(tmp_path, "voter,1st,2nd\nx,a,b\ny,b,a\nx,b,a\ny,a,b\n")
    with pytest.warns(PermixWarning, match=r"line 4: agent 'x' has a row already \(.*line 2\)") as caught:
        votes = read_table(path)
    assert votes.agents.tolist() == ["x", "y", "x", "y"]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_what_is_refused_does_not_warn_first(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match="listed twice"):
            read_table(put(tmp_path, "voter,1st,2nd\nx,a,b\nx,b,b\n"))


def test_agents_by_their_usual_names(tmp_path):
    for name in ("Respondent ID", "person", "customer_id", "subject", "id", "name", "reviewer"):
        votes = read_table(put(tmp_path, f"{name},tea,milk\nx,1,2\ny,2,1\n"))
        assert votes.agents.tolist() == ["x", "y"]
    votes = read_table(put(tmp_path, "id,user,film,stars\n1,x,a,3\n2,x,b,4\n"))
    assert votes.agents.tolist() == ["x"]  # a name that says more goes first


def test_named_columns(tmp_path):
    path = put(tmp_path, "who,pos1,pos2,how many\nann,a,b,2\nbo,b,a,3\n")
    votes = read_table(path, agent_column="who", count_column="how many")
    assert votes.counts.tolist() == [2, 3]
    assert votes.agents.tolist() == ["ann", "bo"]
    with pytest.raises(DataError, match=r"no column 'whom' for the agent; the columns are 'who'"):
        read_table(path, agent_column="whom")
    n_is_an_item = put(tmp_path, "m,n\n1,2\n2,1\n")
    assert read_table(n_is_an_item, count_column=False).items == ("m", "n")


def test_rows_that_nobody_stated_are_left_out(tmp_path):
    votes = read_table(put(tmp_path, "a,b,n\n1,2,0\n2,1,4\n"))
    assert len(votes) == 1
    assert votes.n_agents == 4
    with pytest.raises(DataError, match="all counts are 0"):
        read_table(put(tmp_path, "a,b,n\n1,2,0\n"))


# -- pairs and ratings ----------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    ("agent", "better", "worse"),
    [
        ("agent", "better", "worse"),
        ("assessor", "top_item", "bottom_item"),
        ("User ID", "Winner", "Loser"),
        ("respondent", "prefers", "over"),
        ("customer", "chosen", "rejected"),
    ],
)
def test_pairs_by_their_names(frame, agent, better, worse):
    table = frame({worse: ["b", "c", "b"], agent: [7, 7, 5], better: ["a", "b", "c"]})
    expected = Preferences.from_pairs([(7, "a", "b"), (7, "b", "c"), (5, "c", "b")])
    assert from_frame(table) == expected
    assert Preferences.from_pairs(table) == expected


def test_pairs_of_numbers_in_a_file(tmp_path):
    votes = read_table(put(tmp_path, "assessor,bottom_item,top_item\n1,2,15\n1,5,3\n2,15,2\n"))
    assert votes.items == (2, 3, 5, 15)
    assert votes.agents.tolist() == [1, 2]
    assert votes.prefers(0, 15, 2)


def test_pairs_without_agents_are_agents_of_their_own(tmp_path):
    path = put(tmp_path, "winner,loser\na,b\nb,a\n")
    votes = read_table(path)
    assert len(votes) == len(read_table(path, agent_column=False)) == 2
    assert votes.metadata["CLEANING"][0]["found"] == "no column names the agents"


def test_pairs_with_a_cycle_and_counts(tmp_path):
    path = put(tmp_path, "agent,better,worse,count\nx,a,b,3\nx,b,a,3\ny,a,b,2\n")
    with pytest.raises(CycleError, match="x") as caught:
        read_table(path)
    assert caught.value.agent == "x"
    kept = read_table(path, on_cycle="keep")
    assert kept.consistent.tolist() == [False, True]
    assert kept.counts.tolist() == [3, 2]
    with pytest.raises(DataError, match="line 3: an agent's rows have different counts"):
        read_table(put(tmp_path, "agent,better,worse,count\nx,a,b,3\nx,b,c,4\n"), layout="pairs")


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    ("agent", "item", "rating"),
    [("userId", "movieId", "rating"), ("user", "film", "stars"), ("Person", "book_id", "Points")],
)
def test_ratings(frame, agent, item, rating):
    table = frame({agent: [2, 2, 9], item: [10, 30, 10], rating: [4.5, 4.5, 1.0]})
    expected = Preferences.from_ratings([(2, 10, 4.5), (2, 30, 4.5), (9, 10, 1.0)])
    assert from_frame(table) == expected
    assert Preferences.from_ratings(table) == expected


def test_unlisted_has_its_effect_on_ratings(tmp_path):
    path = put(tmp_path, "user,item,rating\nx,a,5\nx,b,3\ny,a,1\n")
    assert read(path).rest_below.tolist() == [True, False]  # x rated everything
    assert read(path, unlisted="unknown") == read(path) == read(path, unlisted=None)
    assert read(path, unlisted="below").rest_below.tolist() == [True, True]
    assert from_frame(pd.read_csv(path), unlisted="below") == read(path, unlisted="below")
    write(Rankings.from_orders([["b", "a"], ["b"]]), tmp_path / "v.soi")
    assert read(tmp_path / "v.soi", unlisted=None).unlisted == "below"


def test_ratings_twice_and_bad(tmp_path):
    with pytest.raises(
        DataError, match=r"agent 'x' rated 'a' twice: 3 in .*line 2 and 5 in .*line 4; keep one"
    ):
        read_table(put(tmp_path, "agent,item,rating\nx,a,3\ny,a,4\nx,a,5\n"))
    with pytest.raises(DataError, match="line 3, column 'rating': rating 'good' is not a number"):
        read_table(put(tmp_path, "agent,item,rating\nx,a,3\ny,a,good\n"))
    with pytest.raises(DataError, match="no line has a rating"):
        read_table(put(tmp_path, "agent,item,rating\nx,a,\n"))
    with pytest.raises(DataError, match="line 2: rating 'inf' is not a finite number"):
        read_table(put(tmp_path, "agent,item,rating\nx,a,inf\n"))


# -- refusals with line numbers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pos1,pos2\na,b\n\na,a\n", r"line 4: 'a' is listed twice"),
        ("pos1,pos2\na,b\n,a\n", r"line 3: an entry is blank, but another follows"),
        ("pos1,count\na,1\na,x\n", r"line 3: count 'x' is not a number"),
        ("pos1,count\na,1\na,1.5\n", r"line 3: count '1.5' is not a whole number"),
        ("pos1,count\na,1\na,-1\n", r"line 3: count '-1' is not"),
        ("pos1,count\na,1\na,\n", r"line 3: count '' is not"),
        ("pos1,agent\na,x\nb,\n", r"line 3: nothing in column 'agent'"),
        ("pos1,unlisted\na,below\nb,above\n", r"line 3: column 'unlisted' says"),
        ("agent,better,worse\n1,a,b\n1,b,b\n", r"line 3: 'b' is compared with itself"),
        ("agent,better,worse\n1,a,b\n1,,b\n", r"line 3: nothing in column 'better'"),
        ("agent,better,worse\n1,1,2\n1,2,-1\n", r"line 3: an item is missing"),
        ("agent,item,rating\n1,1,2\n1,-1,3\n", r"line 3: the item is missing"),
    ],
)
def test_bad_rows_are_named_by_line(tmp_path, text, words):
    with pytest.raises(DataError, match=words) as caught:
        read_table(put(tmp_path, text))
    assert "t.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n-1,2\n", r"line 3, column 'a': rank '-1' is not a positive number"),
        ("a,b\n1,2\n1,x\n", r"line 3, column 'b': rank 'x' is not a number"),
    ],
)
def test_bad_ranks_are_named_by_line_and_column(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_table(put(tmp_path, text), layout="ranks")


def test_unknown_items_are_named_by_line_and_column(tmp_path):
    with pytest.raises(DataError, match=r"line 3, column 'pos2': 'z' is not an item"):
        read_table(put(tmp_path, "pos1,pos2\na,b\nb,z\n"), items=["a", "b"])
    with pytest.raises(DataError, match="row 2 of the frame"):
        from_frame(pd.DataFrame({"pos1": ["a", "a"], "pos2": ["b", "a"]}))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b"pos1,pos2\n", "no rows after it"),
        (b"pos1,pos2\na,b\na\n", "line 3: 1 field where the first line has 2"),
        (b"pos1,pos2\na,b\na,b,c\n", "line 3: 3 fields where the first line has 2"),
        (b'pos1,pos2\na,"b\n', "line 2"),
        (b"pos1,pos1\na,b\n", "line 1: two columns are called 'pos1'"),
        ("pos1,pos2\nä,b\na,".encode() + b"\xe9\n", "line 3: byte 0xe9 is not UTF-8"),
        (gzip.compress(b"pos1,pos2\na,b\n" * 30, mtime=0)[:-5], "truncated"),
    ],
)
def test_bad_files(tmp_path, raw, words):
    (tmp_path / "t.csv").write_bytes(raw)
    with pytest.raises(FileFormatError, match=words):
        read_table(tmp_path / "t.csv")


def test_quoted_fields_over_lines_keep_line_numbers_right(tmp_path):
    text = 'pos1,pos2\n"a\nlong name",b\nb,b\n'
    with pytest.raises(DataError, match="line 4: 'b' is listed twice"):
        read_table(put(tmp_path, text))


def test_what_is_no_frame_and_no_layout():
    with pytest.raises(DataError, match="not a data frame"):
        from_frame([[1, 2]])
    with pytest.raises(DataError, match="layout is one of"):
        from_frame(pd.DataFrame({"pos1": ["a"]}), layout="wide")
    with pytest.raises(DataError, match="there are no rows"):
        from_frame(pd.DataFrame({"pos1": []}))
    with pytest.raises(DataError, match="unlisted is"):
        from_frame(pd.DataFrame({"pos1": ["a"]}), unlisted="maybe")


# -- read and write by ending ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v.soi", "v.soc.gz", "v.csv", "v.tsv.gz", "v.tab"])
def test_read_and_write_by_ending(tmp_path, name):
    votes = Rankings.from_orders([["b", "a"], ["a", "b"]], counts=[2, 1])
    write(votes, tmp_path / name)
    assert read(tmp_path / name) == votes


def test_options_are_passed_on(tmp_path):
    votes = Rankings.from_orders([["b", "a"], ["b"]], counts=[2, 1])
    write(votes, tmp_path / "v.csv", layout="ranks")
    assert "b,a" in (tmp_path / "v.csv").read_text()
    assert read(tmp_path / "v.csv", layout="ranks", unlisted="unknown").unlisted == "unknown"
    with pytest.raises(DataError, match="layout"):
        write(votes, tmp_path / "v.soi", layout="ranks")
    write(votes, tmp_path / "v.soi")
    with pytest.raises(DataError, match="layout"):
        read(tmp_path / "v.soi", layout="ranks")
    (tmp_path / "v.xyz").write_text("tea\n")
    with pytest.raises(
        DataError, match=r"neither the ending nor the content says .*\.soc.*ballots of Dominion"
    ):
        read(tmp_path / "v.xyz")
    with pytest.raises(DataError, match="known endings"):
        write(votes, tmp_path / "v")


def test_entries_written_as_numbers_with_zeros_in_front_stay_text(tmp_path):
    votes = read_table(put(tmp_path, "pos1,pos2\n007,10\n"))
    assert votes.items == ("007", "10")


def test_large_tables_of_ratings_are_read_without_a_loop_over_pairs(tmp_path):
    rng = np.random.default_rng(1)
    users, movies = np.divmod(rng.choice(500 * 100, size=20_000, replace=False), 100)
    rows = "\n".join(
        f"{u},{m},{r}" for u, m, r in zip(users, movies, rng.integers(1, 6, 20_000), strict=True)
    )
    votes = read_table(put(tmp_path, "user,item,rating\n" + rows + "\n"))
    assert len(votes.level_items) == 20_000


@pytest.mark.parametrize("n_trials", first_in_every_run([500, 1500]))
def test_damaged_tables_are_read_or_refused_but_never_crash(tmp_path, n_trials):
    tables = (
        b"agent,pos1,pos2,count\nx,a,b,2\ny,b,a,1\n",
        b"tea,milk,juice\n1,2,3\n2,1,\n",
        b"agent,better,worse\n1,2,15\n1,5,3\n",
        b"user,item,rating\n1,2,4.5\n1,5,3\n",
    )
    rng = np.random.default_rng(1)
    refused = 0
    for trial in range(n_trials):
        raw = bytearray(tables[trial % 4])
        for _ in range(rng.integers(1, 3)):
            place = rng.integers(len(raw))
            kind = rng.integers(3)
            if kind == 0:
                raw[place] = rng.integers(256)
            elif kind == 1:
                del raw[place : place + rng.integers(1, 9)]
            else:
                raw[place:place] = rng.choice(
                    [b",", b'"', b"\n", b"9" * 30, b"-", b"inf", b"1e400", "²".encode(), b"\x00"]
                )
            if not raw:
                break
        (tmp_path / "t.csv").write_bytes(bytes(raw))
        try:
            read_table(tmp_path / "t.csv")
        except DataError:
            refused += 1
    assert n_trials / 7.5 < refused < n_trials
