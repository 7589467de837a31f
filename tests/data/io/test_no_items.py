"""Columns beside ranks, ratings and cells that hold something else: no item in silence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from permix.data.io.layouts import no_items
from permix.errors import DataError, PermixWarning


@pytest.fixture
def put(tmp_path):
    def of(text, name="x.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return of


def told(read):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read()
    return found, " | ".join(str(warning.message) for warning in caught)


PARTIAL = "{},A,B,C\n1,1,2,\n2,2,1,3\n1,3,1,2\n2,1,,\n1,1,2,3\n"


@pytest.mark.parametrize("name", ["sex", "Kennung"])
def test_a_column_that_ties_with_partial_rankings_is_asked_about(put, name):
    """It was an item, tied with others: only full rankings were looked at."""
    path = put(PARTIAL.format(name))
    with pytest.raises(
        DataError, match=rf"without column '{name}' all rows are rankings, and with it 4 of 5 have a tie"
    ):
        permix.read(path)
    assert permix.read(path, ignore=name).items == ("A", "B", "C")
    assert permix.read(path, group_columns=[name]).covariates[name].tolist() == [1, 2, 1, 2, 1]


def test_numbers_of_agents_beside_partial_rankings(put):
    path = put("CASE,A,B,C\n1,1,,\n2,2,1,\n3,,1,2\n")
    with pytest.raises(DataError, match="'CASE'"):
        permix.read(path)


def test_an_item_that_is_tied_now_and_then_is_an_item(put):
    text = "A,B,C,D\n1,2,3,4\n1,1,2,3\n2,1,3,4\n4,3,2,1\n1,2,3,\n1,0,1,0\n"
    assert permix.read(put(text)).items == ("A", "B", "C", "D")
    last = "A,B,C\n1,2,2\n2,1,2\n1,2,3\n2,1,2\n1,2,2\n"
    assert permix.read(put(last)).n_agents == 5
    approvals = "A,B,C\n1,0,1\n0,1,0\n0,0,1\n"
    assert permix.read(put(approvals)).items == ("A", "B", "C")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("id,age,P,S\n1,33,4,5\n2,44,3,1\n3,27,2,2\n", "age"),
        ("id,sex,P,S\n1,1,4,5\n2,2,3,1\n3,1,2,2\n", "sex"),
        ("id,date,P,S\n1,2024-01-01,4,5\n2,2024-01-02,3,1\n", "date"),
        ("id,P,S,total\n1,4,5,9\n2,3,1,4\n3,2,2,4\n", "total"),
        ("id,P,S,T,mean\n1,4,5,1,3.33\n2,3,1,1,1.67\n3,2,2,5,3\n", "mean"),
    ],
)
def test_what_is_known_of_agents_is_not_rated(put, text, name):
    """The age was the favorite of everybody, and sums were."""
    path = put(text)
    with pytest.raises(DataError, match=rf"column '{name}' .*group_columns=\['{name}'\].*ignore='{name}'"):
        permix.read(path, layout="ratings")
    votes = permix.read(path, layout="ratings", ignore=name)
    assert votes.items[:2] == ("P", "S")
    kept = permix.read(path, layout="ratings", group_columns=[name])
    assert list(kept.covariates) == [name]


def test_what_is_known_of_agents_has_no_rank(put):
    path = put("id,age,A,B,C\n1,3,1,2,3\n2,4,2,1,3\n3,2,3,1,2\n")
    with pytest.raises(DataError, match="column 'age' says something of the agents"):
        permix.read(path, layout="ranks")


def test_items_may_be_called_so(put):
    """Where rows are rankings with it, or where a question lists it, a column is an item."""
    path = put("id,time,money,fame\n1,1,2,3\n2,2,1,3\n3,3,1,2\n")
    assert permix.read(path).items == ("time", "money", "fame")
    path = put("Timestamp,Rate [time],Rate [money],Rate [fame]\nx,1,2,3\ny,5,1,1\n")
    assert told(lambda: permix.read(path, layout="ratings"))[0].items == ("time", "money", "fame")
    path = put("id,income,education,religion\n1,5,2,3\n2,2,1,3\n")
    assert permix.read(path, layout="ratings").items == ("income", "education", "religion")


def test_sums_are_told_by_their_values():
    rng = np.random.default_rng(3)
    values = rng.integers(1, 6, size=(30, 4)).astype(float)
    frame = {f"q{k}": values[:, k] for k in range(4)} | {"sum of all": values.sum(axis=1)}
    table = no_items.Table(list(frame), list(frame.values()), str, "x")
    assert no_items.sums(table, range(5)) == {4: "sum"}
    table.columns[4] = np.round(values.mean(axis=1), 2)
    assert no_items.sums(table, range(5)) == {4: "mean"}
    table.columns[4] = values.sum(axis=1) + (np.arange(30) == 7)
    assert no_items.sums(table, range(5)) == {}


# -- matrices ------------------------------------------------------------------------------------------------


def test_columns_of_a_matrix_that_say_something_of_the_rows_are_told(put):
    path = put("id,age,P,S,total\n1,33,4,5,9\n2,44,3,1,4\n3,33,2,2,4\n")
    cells, said = told(lambda: permix.read_cells(path))
    assert cells.n_columns == 4
    assert "column 'age' says something of the rows" in said
    assert "column 'total'" not in said  # with age, it is no sum
    cells, said = told(lambda: permix.read_cells(path, group_columns=["age"]))
    assert "column 'total' is the sum of the others" in said
    assert told(lambda: permix.read_cells(path, ignore=["age", "total"]))[1] == ""


QUALTRICS = (
    "ResponseId,Finished,Duration (in seconds),Q1_1,Q1_2\n"
    "Response ID,Finished,Duration (in seconds),R - P,R - S\n"
    '"{""ImportId"":""a""}","{""ImportId"":""b""}","{""ImportId"":""c""}","{""ImportId"":""d""}",'
    '"{""ImportId"":""e""}"\n'
    "R_1,1,60,5,2\nR_2,1,61,2,1\nR_3,0,70,3,\n"
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (QUALTRICS, ["R [P]", "R [S]"]),
        ("Timestamp,Email Address,R [P],R [S]\n1/5,a@b,5,2\n1/5,c@d,2,1\n1/6,e@f,3,\n", ["R [P]", "R [S]"]),
        (
            "Respondent ID,Collector ID,Start Date,R,\n,,,P,S\n7,9,1/5,5,2\n8,9,1/5,2,1\n9,9,1/5,3,\n",
            ["R [P]", "R [S]"],
        ),
    ],
    ids=["qualtrics", "google", "surveymonkey"],
)
def test_forms_are_matrices_of_answers(put, text, columns):
    """Lines of names were rows, and times and addresses were columns."""
    cells, said = told(lambda: permix.read_cells(put(text)))
    assert list(cells.column_names) == columns
    assert cells.values.tolist() == [5, 2, 2, 1, 3]
    assert "of the form" in said


def test_a_mark_among_words_is_told(put):
    path = put("id,P,S\n1,Agree,Disagree\n2,Agree,.\n3,Disagree,Agree\n")
    assert "'.' is a value like the words beside it" in told(lambda: permix.read_cells(path))[1]
    cells, said = told(lambda: permix.read_cells(path, missing="."))
    assert (cells.values.size, said) == (5, "")


def test_a_polis_file_without_some_of_its_columns(put):
    """What was left of them were statements."""
    path = put("participant,n-votes,n-agree,0,1\n0,2,1,1,-1\n1,1,0,,0\n", "participants-votes.csv")
    assert list(permix.read_cells(path).column_names) == ["0", "1"]
    assert [str(item) for item in permix.read(path).items] == ["0", "1"]


def test_lines_given_twice_name_the_option(put):
    path = put("person,question,answer\n1,a,x\n1,a,y\n2,a,x\n")
    with pytest.raises(DataError, match="repeated='last'"):
        permix.read_cells(path)


def test_a_preference_may_be_a_rank_or_a_rating(put):
    path = put("voter,candidate,preference\n1,A,1\n1,B,2\n2,B,1\n")
    assert permix.read(path).items == ("A", "B")
    assert permix.read(path).pairwise_counts().tolist() == [[0, 1], [1, 0]]
    with pytest.raises(DataError, match=r"'preference' may hold ranks.*or ratings"):
        permix.read(put("user,item,preference\n1,A,5\n1,B,3\n2,A,2\n2,B,2\n"))


def test_ratings_of_which_1_is_the_best_are_not_renamed_ratings(put):
    with pytest.raises(DataError, match="says that 1 is the best, so it holds ranks"):
        permix.read(put("user,item,rating (1=best)\n1,A,1\n1,B,3\n2,B,1\n"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Candidate,1st,2nd,3rd\nAnn,30,20,10\nBo,20,30,10\n", "how often it was given each place"),
        (",voter1,voter2,voter3\nAnn,1,2,3\nBo,2,3,1\nCy,3,1,2\n", "turn the table around"),
        ("id,A,B,C\n1,x,,x\n2,,x,\n3,,,x\n", "boxes are checked; write 1"),
        ("id,Ann,Bo,Cy,w\n1,1,2,3,1.25\n2,2,1,3,0.75\n3,3,1,2,1\n", "all columns but 'w'.*whole numbers"),
        ("id,rank1,rank2,weight\n1,A,B,1.5\n2,B,A,0.5\n", "line 2: count '1.5' is not a whole number"),
    ],
)
def test_what_is_refused_says_why(put, text, why):
    with pytest.raises(DataError, match=why):
        permix.read(put(text))


def test_approval_in_words_of_truth(put):
    votes, said = told(lambda: permix.read(put("id,A,B\n1,TRUE,FALSE\n2,FALSE,TRUE\n"), layout="ratings"))
    assert votes.pairwise_counts().tolist() == [[0, 1], [1, 0]]
    assert "best first: 'TRUE', 'FALSE'" in said
    assert isinstance(votes, permix.Preferences)


def test_answers_that_were_previews_are_told(put):
    text = "StartDate,Status,ResponseId,R [P],R [S]\n1/5,IP Address,a,1,2\n1/5,Survey Preview,b,2,1\n"
    assert "1 row is a preview" in told(lambda: permix.read(put(text)))[1]


def test_warnings_are_of_permix(put):
    with pytest.warns(PermixWarning, match="group_columns"):
        permix.read_cells(put("id,gender,P,S\n1,1,4,5\n2,2,3,1\n"))


def test_ratings_whose_names_say_that_1_is_the_best(put):
    text = "name,Rate [tea (1 = best)],Rate [milk (1 = best)]\nann,5,3\nbo,2,4\n"
    with pytest.raises(DataError, match="the lowest number is the best, and of ratings the highest is"):
        permix.read(put(text), layout="ratings")
    votes = permix.read(put(text), layout="ratings", categories=["1", "2", "3", "4", "5"])
    assert votes.pairwise_counts().tolist() == [[0, 1], [1, 0]]
    question = "name,Rate (1 is best) [tea],Rate (1 is best) [milk]\nann,5,3\nbo,2,4\n"
    with pytest.raises(DataError, match="'Rate \\(1 is best\\) \\[tea\\]' says"):
        permix.read(put(question), layout="ratings")


def test_sides_without_a_column_of_winners(put):
    with pytest.raises(DataError, match="two sides of comparisons, and no column is called"):
        permix.read(put("model_left,model_right,human_vote\nx,y,left\ny,z,right\n"))
