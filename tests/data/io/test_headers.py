"""First lines: names, a row, or a question; no row is dropped in silence."""

from __future__ import annotations

import warnings

import pytest

import permix
from permix import read_cells
from permix.data import read_table
from permix.data.io.frames import read_frame
from permix.errors import DataError, FileFormatError, PermixWarning


@pytest.fixture
def put(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


NO_HEADER = "131,131.1,9,9.7\n129.7,129.7,8.1,9.5\n130.1,129.9,8,9.6\n"


def test_numbers_over_numbers_are_a_row(put):
    path = put(NO_HEADER)
    with pytest.warns(PermixWarning, match=r"no line names the columns.*'131, 131\.1, 9, 9\.7'.*header=True"):
        frame = read_frame(path)
    assert frame.shape == (3, 4)
    assert frame.iloc[0].tolist() == [131, 131.1, 9, 9.7]
    assert list(frame.columns) == ["column1", "column2", "column3", "column4"]
    assert read_cells(path).shape == (3, 4)
    assert "without a header" in repr(read_cells(path))


def test_what_the_caller_says_goes(put):
    path = put(NO_HEADER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_frame(path, header=False).shape == (3, 4)
        assert list(read_frame(path, header=True).columns) == ["131", "131.1", "9", "9.7"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x,y\n1,2\n3,4\n", ["x", "y"]),
        ("x;y\n1,5;2\n", ["x", "y"]),
        ("name,2019,2020\nRome,1,2\n", ["name", "2019", "2020"]),  # 'name' is a usual name
        ("city,x\nRome,2\nOslo,3\n", ["city", "x"]),
        ("color,shape\nred,round\nred,square\n", ["color", "shape"]),
        (",0,1,2\n0,5,6,7\n1,5,6,7\n", ["unnamed1", "0", "1", "2"]),  # a saved pandas index
    ],
)
def test_names(put, text, names):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = read_frame(put(text))
    assert list(frame.columns) == names
    assert len(frame) == text.count("\n") - 1


@pytest.mark.parametrize(
    "text",
    [
        "1,5;2;7\n2,5;3,1;8\n",
        "Rome,1.5\nOslo,2.5\n",
        "red,round\nred,square\nblue,round\n",
        "?,3.5\n1,2\n2,3\n",
        ",3.5\n1,2\n2,3\n",
        "5\n",
        "1,1\n2,3\n",
    ],
)
def test_rows(put, text):
    with pytest.warns(PermixWarning, match="is read as data"):
        assert len(read_frame(put(text))) == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "2019,2020,2021\n5,6,7\n",
        "1,2,3\n5.5,6,7\n",
        "12,7\n1.5,2.5\n",
        "city,2019,2020\nRome,1,2\n",
        "slip,3.5\n1,2\n2,3\n",
    ],
)
def test_both_are_possible(put, text):
    path = put(text)
    with pytest.raises(FileFormatError, match=r"line 1.*say header=True or header=False") as caught:
        read_frame(path)
    assert caught.value.line == 1
    assert len(read_frame(path, header=True)) == text.count("\n") - 1
    assert len(read_frame(path, header=False)) == text.count("\n")


class TestVotes:
    def test_ballots_of_names_without_a_header(self, put):
        path = put("tea,milk,cola\nmilk,cola,tea\ntea,cola,milk\n")
        with pytest.warns(PermixWarning, match="is read as data"):
            votes = read_table(path, layout="orders")
        assert votes.n_agents == 3
        assert votes.items == ("tea", "milk", "cola")

    def test_numbered_items_or_a_ballot(self, put):
        path = put("1,2,3\n2,3,1\n3,1,2\n")
        with pytest.raises(DataError, match="say header=True or header=False"):
            read_table(path, layout="ranks")
        assert read_table(path, layout="ranks", header=True).n_agents == 2
        assert read_table(path, layout="ranks", header=False).n_agents == 3

    @pytest.mark.parametrize("header", [None, False])
    def test_ratings_by_place(self, put, header):
        path = put("ann,tea,5\nann,milk,3\nbo,tea,1\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error" if header is False else "ignore")
            votes = read_table(path, layout="ratings", header=header)
        assert votes.n_agents == 2
        assert votes.items == ("tea", "milk")

    def test_named_items_over_ranks(self, put):
        assert read_table(put("tea,milk\n1,2\n2,1\n")).n_agents == 2
        votes = read_table(put("agent,1,2,3\na,1,2,3\nb,2,1,3\n"), layout="ranks")
        assert votes.items == ("1", "2", "3")

    def test_headers_are_refused_as_before(self, put):
        with pytest.raises(FileFormatError, match="a header, but no rows"):
            read_table(put("pos1,pos2\n"))
        with pytest.raises(FileFormatError, match="two columns are called 'a'"):
            read_table(put("a,a\n1,2\n"))


class TestLongTables:
    WORDS = "ann,s1,agree\nbo,s1,disagree\nann,s2,pass\nbo,s2,agree\n"

    @pytest.mark.parametrize("header", ["voter,statement,vote\n", "who,what,said\n", ""])
    def test_words(self, put, header):
        cells = read_cells(put(header + self.WORDS), layout="long")
        assert cells.shape == (2, 2)
        assert sorted(set(cells.values)) == ["agree", "disagree", "pass"]

    def test_usual_names_make_it_long(self, put):
        cells = read_cells(put("voter,statement,vote\n" + self.WORDS))
        assert cells.shape == (2, 2)
        assert cells.row_names == ("ann", "bo")

    def test_nothing_comes_back(self, put):
        path = put("who,what,said\nann,s1,agree\nbo,s2,disagree\n")
        with pytest.raises(DataError, match="say header=True or header=False"):
            read_cells(path, layout="long")
        assert read_cells(path, layout="long", header=True).n_cells == 2
        assert read_cells(path, layout="long", header=False).n_cells == 3


class TestOtherColumns:
    BALLOTS = "Precinct,rank1,rank2\nP1,tea,milk\nP2,milk,tea\nP1,milk,cola\n"

    def test_precincts_are_no_candidates(self, put):
        path = put(self.BALLOTS)
        with pytest.raises(DataError, match=r"column 'Precinct' does not look like.*ignore='Precinct'"):
            read_table(path, layout="orders")
        votes = read_table(path, layout="orders", ignore="Precinct")
        assert votes.items == ("tea", "milk", "cola")
        assert read_table(path, ignore=["Precinct"]) == votes  # nothing else is in doubt

    def test_entries_tell_where_names_do_not(self, put):
        path = put("town,best,next\nRome,tea,milk\nOslo,milk,tea\nRome,milk,cola\n")
        with pytest.raises(DataError, match=r"column 'town' .* shares no entry.*'Rome', 'Oslo'"):
            read_table(path, layout="orders")
        assert read_table(path, layout="orders", ignore="town").n_items == 3

    def test_a_favorite_of_everybody_is_an_item(self, put):
        votes = read_table(put("best,next,last\ntea,milk,cola\ntea,cola,milk\n"), layout="orders")
        assert votes.items == ("tea", "milk", "cola")
        many = put("race,best,next\n" + "mayor,a,b\nmayor,b,a\n" * 10)
        with pytest.raises(DataError, match="column 'race'"):
            read_table(many, layout="orders")

    def test_ignored_columns_must_be_there(self, put):
        with pytest.raises(DataError, match="there is no column 'ward' to ignore"):
            read_table(put(self.BALLOTS), ignore="ward")


@pytest.mark.parametrize(
    ("text", "options", "items"),
    [
        (",Ranking,,\nid,1,2,3\n7,Ann,Bo,Cy\n8,Bo,Cy,Ann\n", {}, ("Ann", "Bo", "Cy")),
        (
            "Drinks,,,Colors,\ntea,milk,cola,red,blue\n1,2,3,1,2\n2,1,3,2,1\n",
            {"contest": "Colors"},
            ("red", "blue"),
        ),
    ],
)
def test_names_over_several_columns_as_merged_cells_have_them(tmp_path, text, options, items):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.warns(PermixWarning, match="lines 1 to 2 together name the columns"):
        votes = permix.read(path, **options)
    assert votes.items == items
    assert [votes.items[item] for item in votes.orders[0]] == list(items)


def test_a_title_above_ballots_is_no_name_over_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("Ranking,,\nAnn,Bo,Cy\nBo,Ann,Cy\n")
    with pytest.warns(PermixWarning, match="taken for a title"):
        votes = permix.read(path)
    assert votes.n_agents == 2


def test_options_that_nothing_has_are_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("precinct,rank1,rank2\nN,Ann,Bo\nS,Bo,Ann\n")
    with pytest.raises(DataError, match="no option 'group_column'; there is 'group_columns'"):
        permix.read(path, group_column="precinct")
    with pytest.raises(DataError, match="no option 'what'; there are agent_column, "):
        permix.read(path, what=1)


@pytest.mark.parametrize("first", ["A>B>C", "A=B", "A≻B≻C", "A"])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_first_ballot_is_no_header(put, first, ending):
    with pytest.warns(PermixWarning, match="read as data"):
        read = permix.read(put(f"{first}\nC\nB>A>C\nC>A>B\n", f"t.{ending}"))
    assert read.n_agents == 4
    assert set(read.items) == set("ABC")


@pytest.mark.parametrize("first", ["A>B<C", "B>>A>C"])
def test_a_half_written_first_ballot_is_refused(put, first):
    with pytest.warns(PermixWarning, match="read as data"), pytest.raises(DataError):
        permix.read(put(f"{first}\nB>A>C\nC>A>B\nA>C>B\n"))


def test_a_word_above_rankings_is_told(put):
    with pytest.warns(PermixWarning, match=r"line 1 \('D'\) is taken for the name of the rankings below"):
        assert permix.read(put("D\nB>A>C\nC>A>B\n")).n_agents == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert permix.read(put("ranking\nB>A>C\nC>A>B\n")).n_agents == 2
        assert permix.read(put("D\nB>A>C\nC>A>B\n"), header=True).n_agents == 2
