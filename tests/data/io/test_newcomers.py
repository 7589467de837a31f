"""Files as newcomers bring them: no ballot is lost, and what is open is asked."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, FileFormatError


@pytest.fixture
def read(tmp_path):
    def of(text, name="x.csv", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return permix.read(path, **options)

    return of


def orders(votes: Rankings):
    return [[votes.items[item] for item in row if item >= 0] for row in votes.orders.tolist()]


# -- the first ballot is never lost ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Ann,Bo\nCy,Di\n", "Ann,Bo,Cy\nDi,Ed,Flo\nDi,Flo,Ed\n"])
def test_a_first_line_that_could_be_a_ballot_is_asked_about(read, text):
    with pytest.raises(FileFormatError, match="could name the columns or be a row"):
        read(text, layout="orders")
    assert len(read(text, layout="orders", header=False)) == text.count("\n")


@pytest.mark.parametrize(
    ("text", "n"),
    [("Ann,Bo\nBo,Ann\n", 2), ("Ann>Bo>Cy\nBo>Ann\n", 2), ("Ann>Bo\nCy>Di\n", 2), ("best,next\nAnn,Bo\n", 1)],
)
def test_first_lines_that_tell(read, text, n):
    assert len(read(text, layout="orders")) == n


def test_lines_of_different_lengths(read):
    votes = read("Ann,Bo,Cy\nBo\nCy,Ann\n", layout="orders")
    assert orders(votes) == [["Ann", "Bo", "Cy"], ["Bo"], ["Cy", "Ann"]]
    with pytest.raises(FileFormatError, match=r"line 2: 1 field where .* layout='orders'"):
        read("Ann,Bo,Cy\nBo\n")


def test_a_column_of_text_ids_is_left_out_by_its_number(read):
    text = "k7,Ann,Bo\nm3,Bo,Ann\nz9,Ann,Bo\n"
    for name in ("v1", "V1", "1", "column1"):
        assert read(text, layout="orders", header=False, ignore=name).items == ("Ann", "Bo")
    with pytest.raises(DataError, match=r"column '1' does not look like a place.*'k7', 'm3', 'z9'"):
        read(text)


@pytest.mark.parametrize(
    "text", ["rank1,,rank3\na,b,c\nb,c,a\n", "precinct,rank1,,rank3\nP,a,b,c\nP,c,b,a\n"]
)
def test_a_column_without_a_name_is_not_swallowed(read, text):
    with pytest.raises(DataError, match=r"column [23] has no name"):
        read(text)


def test_a_saved_index_is_still_one(read):
    assert read(",pos1,pos2\n0,a,b\n1,b,a\n").agents.tolist() == [0, 1]


# -- rankings in one cell --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "ballot\nAnn;Bo;Cy\nBo\nCy;Ann\n",
        "ranking,count\nAnn>Bo>Cy,1\nBo,1\nCy > Ann,1\n",
        'id,votes\n1,"Ann,Bo,Cy"\n2,Bo\n3,"Cy,Ann"\n',
        "id;preferences\n1;Ann|Bo|Cy\n2;Bo\n3;Cy|Ann\n",
        "Ann>Bo>Cy\nBo>\nCy>Ann\n",
    ],
)
def test_lists_in_one_cell(read, text):
    assert orders(read(text)) == [["Ann", "Bo", "Cy"], ["Bo"], ["Cy", "Ann"]]


def test_ties_in_one_cell(read):
    votes = read("id,ranking\n1,Ann=Bo>Cy\n2,Cy\n")
    assert isinstance(votes, Preferences)
    assert votes.prefers(0, "Bo", "Cy")
    assert not votes.prefers(0, "Ann", "Bo")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ranking\nAnn>Bo;Cy\nBo>Ann\n", "line 2: '>' and ';' both separate"),
        ("ranking\nAnn>>Bo\nBo>Ann\n", "line 2: an item is missing"),
        ("ranking\nAnn>Bo>Ann\nBo>Ann\n", "'Ann' is listed twice"),
        ("precinct,ranking\nP,Ann>Bo\nQ,Bo>Ann\n", "'precinct' is something else"),
    ],
)
def test_lists_that_are_refused(read, text, why):
    with pytest.raises(DataError, match=why):
        read(text)


def test_names_with_marks_are_no_lists(read):
    assert read('pos1,pos2\n"Lee, A","Roe, B"\n"Roe, B",\n').items == ("Lee, A", "Roe, B")
    for name in ("preference", "vote"):
        with pytest.raises(DataError, match=r"line 2: the comma in 'Smith, John' could .* layout='orders'"):
            read(f'voter,{name}\n1,"Smith, John"\n2,"Smith, Ann"\n3,"Roe, John"\n')
    for lines, asked in (
        ('"Ann, Bo"\n"Bo, Ann"\n', {}),
        ('"Ann, Bo"\n', {"layout": "orders", "header": True}),
    ):
        assert read(f"preference\n{lines}", **asked).items == ("Ann", "Bo")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_marks_in_names_are_read_as_they_were_written(ending, tmp_path):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    votes = permix.Rankings.from_orders([["a>b", "c;d", "e"], ["e", "a>b", "c;d"]])
    permix.write(votes, tmp_path / f"v.{ending}")
    assert orders(permix.read(tmp_path / f"v.{ending}")) == orders(votes)


# -- files without telling endings ---------------------------------------------------------------------------


def ratings(mark):
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(1, 21) for i in range(100, 112)]
    lines = [
        mark.join(map(str, (u, i, int(rng.integers(1, 6)), 880_000_000 + k)))
        for k, (u, i) in enumerate(pairs)
    ]
    return "\n".join(lines[i] for i in rng.permutation(len(lines))) + "\n"


@pytest.mark.parametrize("mark", ["\t", "::", " ", ","])
def test_ratings_without_a_header_are_asked_for(read, mark):
    """As MovieLens has them: user, item, rating, time."""
    with pytest.raises(DataError, match="look like agent, item, rating and a time; say layout='ratings'"):
        read(ratings(mark), "u.data")
    votes = read(ratings(mark), "u.data", layout="ratings")
    assert (votes.n_agents, votes.n_items) == (20, 12)


def test_lists_of_numbers_as_the_sushi_data_have_them(read):
    votes = read("5 1\n0 3 4 0 2\n0 2 1 3\n", "x.order")
    assert votes.items == (0, 1, 2, 3, 4)
    assert orders(votes) == [[4, 0, 2], [1, 3]]
    assert votes.unlisted == "unknown"
    for line, why in (("0 3 4 0", "so many items"), ("0 2 5 1", "from 0 to 4"), ("0 2 1 1", "twice")):
        with pytest.raises(FileFormatError, match=why):
            read(f"5 1\n0 3 4 0 2\n{line}\n", "x.order")
    with pytest.raises(FileFormatError, match="more than are read"):
        read("99999999999 1\n0 2 1 3\n", "x.order")


def test_a_text_that_is_no_data(read):
    with pytest.raises(DataError, match="neither the ending nor the content"):
        read("# Terms of use\n\n- You may, at any time,\nread this file.\n", "README.txt")


# -- PrefLib as it is found --------------------------------------------------------------------------------

HEAD = (
    "# FILE NAME: x.soi\n# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 2\n"
    "# ALTERNATIVE NAME {}: Zoë\n# ALTERNATIVE NAME {}: 東京\n"
)


def test_rows_of_count_zero_are_left_out_and_told(read):
    votes = read(HEAD.format(1, 2) + "# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 2\n3: 2,1\n0: 1\n", "x.soi")
    assert votes.counts.tolist() == [3]
    assert votes.metadata["CLEANING"][0]["found"] == "rows with a count of 0"
    with pytest.raises(FileFormatError, match="all counts are 0"):
        read(HEAD.format(1, 2) + "0: 1\n", "x.soi")
    with pytest.raises(FileFormatError, match=r"line 6: .*not one of 1\.\.2"):
        read(HEAD.format(1, 2) + "0: 7\n", "x.soi")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("# NUMBER ALTERNATIVES: 2\n", ""),
        lambda text: text.replace("# DATA TYPE: soi\n", ""),
        lambda text: (
            text.replace("ALTERNATIVE NAME 1", "ALTERNATIVE NAME 0")
            .replace("ALTERNATIVE NAME 2", "ALTERNATIVE NAME 1")
            .replace("2,1", "1,0")
        ),
    ],
)
def test_oddities_that_are_read(read, change):
    votes = read(change(HEAD.format(1, 2) + "900719925474099: 2,1\n"), "x.soi")
    assert orders(votes) == [["東京", "Zoë"]]
    assert votes.n_agents == 900_719_925_474_099


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace("ALTERNATIVES: 2", "ALTERNATIVES: 3"), "NUMBER ALTERNATIVES: 3"),
        (lambda text: text.replace("# ALTERNATIVE NAME 1: Zoë\n", ""), "none is number 1"),
        (lambda text: text.replace("7:", "9999999999999999:"), "count of voters"),
    ],
)
def test_oddities_that_are_refused(read, change, why):
    with pytest.raises(FileFormatError, match=why):
        read(change(HEAD.format(1, 2) + "7: 2,1\n"), "x.soi")


def test_latin_1_is_told_with_its_line(tmp_path):
    path = tmp_path / "x.soi"
    text = HEAD.replace("東京", "x").format(1, 2) + "1: 2,1\n"
    path.write_bytes(text.encode("latin-1"))
    with pytest.warns(permix.errors.PermixWarning, match="line 4: not UTF-8, and read as Windows-1252"):
        votes = permix.read(path)
    path.write_text(text, encoding="utf-8")
    assert permix.read(path).items == votes.items


@pytest.mark.parametrize(
    "text",
    [
        'id,ranking\n1,"1. Tea, 2. Milk"\n2,"1. Milk, 2. Tea"\n',
        "id,ranking\n1,1) Tea; 2) Milk\n2,(1) Milk; (2) Tea\n",
        "id,ranking\n1,1. Tea > 2. Milk\n2,1. Milk > 2. Tea\n",
    ],
)
def test_numbers_before_items_in_a_cell_are_places(read, text):
    for options in ({}, {"layout": "orders"}):
        votes = read(text, **options)
        assert votes.items == ("Tea", "Milk")
        assert votes.orders.tolist() == [[0, 1], [1, 0]]


def test_numbers_that_stay_with_an_item_are_its_name(read):
    votes = read("id,ranking\n1,2. Milk; 1. Tea\n2,1. Tea; 2. Milk\n")
    assert set(votes.items) == {"1. Tea", "2. Milk"}
    assert set(read("id,ranking\n1,10:30; 11:30\n2,11:30; 10:30; 10:00\n").items) == {
        "10:30",
        "11:30",
        "10:00",
    }


@pytest.mark.parametrize(
    "cells", [("2. Tea; 1. Milk", "2. Milk; 1. Tea"), ("Tea:1; Milk:2", "Tea:2; Milk:1")]
)
def test_numbers_of_items_that_could_be_ranks_are_asked_about(read, cells):
    with pytest.raises(
        DataError, match=r"line 2: the numbers in .* could be ranks, scores or parts of names"
    ):
        read(f"id,ranking\n1,{cells[0]}\n2,{cells[1]}\n")


@pytest.mark.parametrize(
    "names", ["Ann points,Bo points", "Ann_score,Bo_score", "Rate from 1 to 2 [Ann],Rate from 1 to 2 [Bo]"]
)
def test_columns_called_scores_are_no_ranks_in_silence(read, names):
    """Borda points are permutations as well, and the highest is the best."""
    text = f"voter,{names}\nx,2,1\ny,1,2\nz,2,1\n"
    with pytest.raises(DataError, match=r"says that these are scores.*layout='ratings'.*layout='ranks'"):
        read(text)
    first = read(text, layout="ratings").pairwise_counts()
    assert first.tolist() == read(text, layout="ranks").pairwise_counts().T.tolist() == [[0, 2], [1, 0]]
    assert read("voter,rating,Bo\nx,2,1\ny,1,2\nz,2,1\n").n_items == 2  # one item is called so
