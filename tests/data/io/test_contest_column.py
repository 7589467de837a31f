"""Several contests in one table: a column says which, and they are not pooled."""

from __future__ import annotations

import pytest

import permix
from permix.data.reading import how_it_was_read
from permix.errors import DataError, PermixWarning

RANKS = "{},rank1,rank2\nMayor,a,b\nMayor,b,a\nMayor,b,\nClerk,x,y\nClerk,y,x\n"
LONG = "{},ballot,rank,candidate\nMayor,1,1,a\nMayor,1,2,b\nMayor,2,1,b\nClerk,1,1,x\nClerk,1,2,y\n"


@pytest.mark.parametrize("name", ["Contest", "Race", "Office"])
@pytest.mark.parametrize("text", [RANKS, RANKS.replace("rank", "pos"), LONG])
def test_contests_of_a_column_are_asked_for(tmp_path, name, text):
    path = tmp_path / "x.csv"
    path.write_text(text.format(name), encoding="utf-8")
    with pytest.raises(DataError, match=r"has 2 contests: Mayor, Clerk\. Say which with contest"):
        permix.read(path)
    mayor, clerk = permix.read(path, contest="mayor"), permix.read(path, contest="Clerk")
    assert (sorted(mayor.items), sorted(clerk.items)) == (["a", "b"], ["x", "y"])
    assert mayor.n_agents == (2 if text is LONG else 3)
    with pytest.raises(DataError, match="no contest called 'Foo'"):
        permix.read(path, contest="Foo")


@pytest.mark.parametrize("text", ["race,rank1,rank2\nwhite,a,b\nblack,b,a\nwhite,b,a\n"])
def test_what_voters_are_is_no_contest(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    assert permix.read(path).n_agents == 3


# Contests that share a candidate, with a blank cell, or called otherwise.
SHARED = "{},rank1,rank2\nMayor,a,b\nMayor,b,a\nMayor,c,a\nClerk,x,y\nClerk,y,x\nClerk,a,x\n"
SAYING = ["contest", "Contest Name", "election"]
PERHAPS = ["race", "office", "seat", "position", "question", "measure", "category", "award", "poll", "ward"]


@pytest.mark.parametrize("name", [*SAYING, *PERHAPS])
@pytest.mark.parametrize("rank", ["rank", "pos"])
def test_contests_that_share_a_candidate_are_asked_for(tmp_path, name, rank):
    path = tmp_path / "x.csv"
    path.write_text(SHARED.format(name).replace("rank", rank), encoding="utf-8")
    with pytest.raises(DataError, match=rf"has 2 contests.*group_columns=\['{name}'\].*ignore='{name}'"):
        permix.read(path)
    assert sorted(permix.read(path, contest="Mayor").items) == ["a", "b", "c"]
    assert sorted(permix.read(path, ignore=[name]).items) == ["a", "b", "c", "x", "y"]
    assert permix.read(path, group_columns=[name]).covariates.column(name).codes()[1] == ("Mayor", "Clerk")


@pytest.mark.parametrize("name", SAYING)
def test_a_column_called_contest_asks_though_all_candidates_stand_in_all(tmp_path, name):
    path = tmp_path / "x.csv"
    path.write_text(f"{name},rank1,rank2\n2019,a,b\n2019,b,a\n2021,b,a\n2021,a,b\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 2 contests: 2019, 2021"):
        permix.read(path)
    lists = tmp_path / "lists.csv"
    lists.write_text(f"{name},ranking\n2019,a>b\n2019,b>a\n2021,b>a\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 2 contests: 2019, 2021"):
        permix.read(lists)
    assert permix.read(lists, contest="2019").n_agents == 2


@pytest.mark.parametrize("name", PERHAPS)
def test_a_column_called_race_asks_not_where_candidates_stand_in_all(tmp_path, name):
    """The broken twin, which asks by the name alone, would refuse what voters are."""
    path = tmp_path / "x.csv"
    rows = ["white,a,b", "black,b,a", "white,b,c", "asian,a,c", "black,c,a", "asian,b,a", "white,c,b"]
    path.write_text(f"{name},rank1,rank2\n" + "\n".join(rows) + "\n", encoding="utf-8")
    votes = permix.read(path)
    assert votes.n_agents == 7
    assert f"set apart: {name}" in how_it_was_read(votes)


@pytest.mark.parametrize("rank", ["rank", "pos"])
def test_rows_that_name_no_contest_are_said(tmp_path, rank):
    path = tmp_path / "x.csv"
    path.write_text(RANKS.format("Contest").replace("rank", rank) + ",a,b\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 2 contests: Mayor, Clerk"):
        permix.read(path)
    with pytest.warns(PermixWarning, match="1 of 6 rows name no contest in column 'Contest', and are left"):
        votes = permix.read(path, contest="Mayor")
    assert votes.n_agents == 3
    assert "the contest is Mayor" in how_it_was_read(votes)


def test_any_column_whose_candidates_are_all_apart_is_asked_about(tmp_path):
    path = tmp_path / "x.csv"
    text = "Wahlkreis,rank1,rank2\n1,a,b\n1,b,a\n2,x,y\n2,y,x\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="has 2 contests: 1, 2"):
        permix.read(path)
    many = text.replace("1,a,b\n", "1,a,b\n" * 3000)  # as where the file is sorted
    path.write_text(many, encoding="utf-8")
    with pytest.raises(DataError, match="has 2 contests: 1, 2"):
        permix.read(path)
    path.write_text(text + "2,a,y\n", encoding="utf-8")
    assert permix.read(path).n_agents == 5


TOPICS = [
    (user, topic, item, rank) for user in range(4) for topic in "xy" for rank, item in enumerate("abc", 1)
]


@pytest.mark.parametrize("name", ["topic", "round", "Kategorie"])
def test_a_column_within_which_ranks_come_once_is_asked_about(tmp_path, name):
    """Each agent gives each rank twice, once in each topic; with real ties no column tells them apart."""
    path = tmp_path / "x.csv"
    text = f"user,{name},item,rank\n" + "".join(f"{u},{t},{i}{t},{r}\n" for u, t, i, r in TOPICS)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"has 2 contests: x, y.*group_columns=\['{name}'\]"):
        permix.read(path)
    assert sorted(permix.read(path, contest="x").items) == ["ax", "bx", "cx"]
    path.write_text(text.replace(",1\n", ",2\n"), encoding="utf-8")  # ties within a topic
    assert len(permix.read(path).items) == 6


def test_a_second_table_below_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    first = "rank1,rank2\na,b\nb,a\na,c\nc,a\n"
    path.write_text(first + "\nrank1,rank2\nx,y\ny,x\nx,z\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 7: the names of the columns come once more"):
        permix.read(path)
    path.write_text(first + "\nrank1,rank2\na,b\nc,b\nb,d\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match="once more and left out"):
        assert permix.read(path).n_agents == 7
    people = "voter,A,B\n" + "".join(f"v{i},{1 + i % 2},{2 - i % 2}\n" for i in range(4))
    path.write_text(people + people.replace("\nv", "\nw"), encoding="utf-8")
    with pytest.warns(PermixWarning, match="once more and left out"):
        assert permix.read(path).n_agents == 8
    path.write_text(people + "\n" + people.replace("A,B", "X,Y"), encoding="utf-8")
    with pytest.raises(DataError, match=r"'(X|Y)' stands in a column of numbers"):
        permix.read(path)


def test_counts_with_thousands_called_ballots_are_no_lists(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('rank1,rank2,ballots\na,b,"1,234"\nb,a,"2,001"\n', encoding="utf-8")
    assert permix.read(path).n_agents == 3235


def test_questions_of_best_worst_tasks_are_no_contests(tmp_path):
    """Items differ from question to question, as tasks are made."""
    path = tmp_path / "x.csv"
    shown = [("Q1", "abc"), ("Q2", "def")]
    rows = [
        f"{u},{q},{i},{1 - at if at < 2 else -1}" for u in "vw" for q, s in shown for at, i in enumerate(s)
    ]
    path.write_text("respondent,question,item,bestworst\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert len(permix.read(path).items) == 6
