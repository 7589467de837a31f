"""Rankings in one cell, however they are written: brackets, signs, lines and lists say what they say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import permix
from permix.data.io.layouts import notation
from permix.errors import DataError, FileFormatError
from tests.data.io.test_preflib_made import said

THREE = [[["A"], ["B", "C"]], [["B"], ["A"]], [["C"], ["A", "B"]]]


@pytest.fixture
def read(tmp_path):
    def of(text, name="x.csv", **options):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return permix.read(tmp_path / name, **options)

    return of


def rows(votes):
    return [[sorted(map(str, group)) for group in row] for row in said(votes)]


@pytest.mark.parametrize(
    "cells",
    [
        ['"A>{B,C}"', "B>A", '"C>{A,B}"'],
        ['"{A}>{B,C}"', "{B}>{A}", '"{C}>{A,B}"'],
        ["\"{'A'}>{'B', 'C'}\"", "{'B'}>{'A'}", "\"{'C'}>{'A', 'B'}\""],
        ["A>(B=C)", "B>A", "C>(A=B)"],
        ["A>[B;C]", "B>A", "C>[A;B]"],
        ["(A>B=C)", "(B>A)", "(C>A=B)"],
        ["A≻B∼C", "B≻A", "C≻A∼B"],
        ["A &gt; B=C", "B &gt; A", "C &gt; A=B"],
        ['"A\n> B=C"', '"B\n> A"', '"C\n> A=B"'],
        ['"[""A"", [""B"", ""C""]]"', '"[""B"", ""A""]"', '"[""C"", [""A"", ""B""]]"'],
        ["\"['A', ('B', 'C')]\"", "\"['B', 'A']\"", "\"['C', ('A', 'B')]\""],
    ],
)
def test_tied_items(read, cells):
    """Brackets were parts of names, or a whole group was one item."""
    text = "voter,ballot\n" + "".join(f"{voter},{cell}\n" for voter, cell in enumerate(cells, 1))
    votes = read(text)
    assert rows(votes) == THREE
    assert votes.n_items == 3


def test_braces_between_semicolons(read):
    assert rows(read("voter\tballot\n1\tA;{B,C}\n2\tB;A\n3\tC;{A,B}\n", "x.tsv")) == THREE


def test_brackets_of_names_stay(read):
    votes = read("voter,ballot\n1,Ann (Red)>Bo (Blue)\n2,(Cy)>Ann (Red)\n")
    assert votes.items == ("Ann (Red)", "Bo (Blue)", "(Cy)")


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("voter,ballot\n1,A>(B>C\n2,B>A\n", {}, "line 2: .*bracket that is not closed"),
        (
            "A,B,C\nB,{A,C}\nC,A,B\n",
            {"layout": "orders", "header": False},
            "line 2.*one of several in brackets",
        ),
        ('voter,ranking\n1,"[A, B]"\n2,"[B, A]"\n', {}, "line 2: .*is no list of items"),
        ("voter,ranking\n1,\"['A>B', 'C']\"\n2,\"['C']\"\n", {}, "the name 'A>B' has >"),
        ("voter,ranking\n1,\"[['A', ['B']]]\"\n2,\"['C']\"\n", {}, "line 2: .*is no list of items"),
        ("voter,ballot\n1,A<B<C\n2,B<A<C\n", {}, "write the best item first"),
    ],
)
def test_what_cannot_be_told_is_refused(read, text, options, why):
    with pytest.raises(DataError, match=why):
        read(text, **options)


def test_lists_of_anything_are_no_rankings(read):
    votes = read("model_a,model_b,winner,tags\nx,y,model_a,\"['t','u']\"\ny,z,model_b,\"['t','u']\"\n")
    assert votes.items == ("x", "y", "z")


def test_a_line_for_each_item(read):
    text = 'Submission Date,Drinks\n"1/5","1: T\n2: M\n3: C"\n"1/6","1: M\n2: T\n3: C"\n'
    with pytest.warns(permix.errors.PermixWarning, match="of the form"):
        assert rows(read(text)) == [[["T"], ["M"], ["C"]], [["M"], ["T"], ["C"]]]


# -- JSON and Parquet ----------------------------------------------------------------------------------------


def test_lists_in_json_and_parquet(read, tmp_path):
    """They were left out, so that nothing was there to read."""
    lists = [["A", ["B", "C"]], ["B", "A"], ["C", ["A", "B"]]]
    lines = "".join(json.dumps({"voter": k, "ranking": each}) + "\n" for k, each in enumerate(lists))
    assert rows(read(lines, "x.jsonl")) == THREE
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(
        arrow.table({"voter": [1, 2], "ballot": [["A", "B"], ["B", "A"]]}), tmp_path / "x.parquet"
    )
    assert rows(permix.read(tmp_path / "x.parquet")) == [[["A"], ["B"]], [["B"], ["A"]]]


def test_ranks_by_item_in_json(read):
    lines = '{"voter":1,"ranks":{"A":1,"B":2}}\n{"voter":2,"ranks":{"B":1}}\n'
    votes = read(lines, "x.jsonl")
    assert rows(votes) == [[["A"], ["B"]], [["B"]]]
    assert votes.agents.tolist() == [1, 2]


def test_scores_by_item_are_no_ranks(read):
    lines = '{"voter":1,"scores":{"A":1,"B":2}}\n{"voter":2,"scores":{"A":2,"B":1}}\n'
    with pytest.raises(DataError, match="says that these are scores"):
        read(lines, "x.jsonl")


@pytest.mark.parametrize(
    "text", ['{"data":[{"voter":1,"A":1}]}', '{"title":"x","ballots":[{"ranking":["A"]}]}']
)
def test_one_record_that_holds_all_is_told(read, text):
    with pytest.raises(FileFormatError, match=r"one record that holds lists.*a record for each row"):
        read(text, "x.json")


names = st.text(st.sampled_from("ab Öé(]'\"-."), min_size=1, max_size=5).filter(
    lambda name: any(map(str.isalnum, name))
)


@given(
    st.lists(names.map(str.strip), min_size=2, max_size=6, unique=True).flatmap(
        lambda items: st.lists(st.permutations(items), min_size=2, max_size=5)
    )
)
def test_names_come_back_from_lists_as_they_are(tmp_path_factory, orders):
    """Whatever brackets and quotes are in names: JSON says where each ends."""
    path = tmp_path_factory.mktemp("x") / "x.jsonl"
    lines = [json.dumps({"voter": k, "ranking": order}) for k, order in enumerate(orders)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if any(notation.open_brackets(name) for name in orders[0]):
        with pytest.raises(DataError, match="bracket"):
            permix.read(path)
        return
    votes = permix.read(path)
    assert [[str(item) for (item,) in row] for row in said(votes)] == orders


def test_counts_before_rankings_are_read_as_abif_whatever_the_ending(tmp_path):
    for ending in ("csv", "tsv", "txt"):
        path = tmp_path / f"x.{ending}"
        path.write_text("5: A>B>C\n3: B>A=C\n")
        votes = permix.read(path)
        assert votes.items == ("A", "B", "C")
        assert int(votes.counts.sum()) == 8


@pytest.mark.filterwarnings("ignore:.*no line names the columns")
@pytest.mark.parametrize(
    "text",
    [
        "5 A>B>C\n3 B>A>C\n",
        "(5) A>B>C\n(3) B>A>C\n",
        "5: A,B,C\n3: B,A,C\n",
        "ranking\n5: A>B>C\n3: B>A>C\n",
        "rank1,rank2\n5: A,B\n3: B,A\n",
    ],
)
def test_counts_before_items_are_refused(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError, match="with a count before it"):
        permix.read(path)


def test_numbers_in_names_are_no_counts(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("ranking\n7 Up>Cola\nCola>7 Up\n")
    assert set(permix.read(path).items) == {"7 Up", "Cola"}
