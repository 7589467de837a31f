"""Entries and columns that could be items, contests or counts and are none: asked about."""

import pytest

import permix
from permix.data.reading import how_it_was_read
from permix.errors import DataError, FileFormatError, PermixWarning


@pytest.fixture
def read(tmp_path):
    def reader(text, **options):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        return permix.read(path, **options)

    return reader


RANKS = "rank1,rank2,rank3,count\nAnn,Bo,Cy,10\nBo,Ann,Cy,7\n"


@pytest.mark.parametrize(
    "last",
    [
        *("Registered voters,,,170", "Turnout,,,17", "Valid votes,,,17\nBallots cast,,,20", "Quota,,,9"),
        *("Subtotal,,,17\nNot returned,,,153", "Electorate,,,400"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        RANKS,
        RANKS.replace("rank1,rank2,rank3", "1st,2nd,3rd"),
        RANKS.replace("rank3,count", "rank3,count,town"),
    ],
)
def test_counted_lines_below_ballots_are_asked_about(read, last, text):
    if "town" in text:
        text, last = text.replace("0\n", "0,x\n").replace("7\n", "7,x\n"), last.replace("\n", ",\n") + ","
    entry = last.split(",")[0]
    with pytest.raises(DataError, match=f"line 4: '{entry}' stands alone below all others"):
        read(text + last + "\n")
    # An item of nobody else's is read where other lines follow it, and so is one that others list.
    head, body = text.split("\n", 1)
    assert entry in read(f"{head}\n{last}\n{body}").items
    blanks = "," * last.split("\n")[0].count(",")
    assert read(f"{text}Cy{blanks[:3]}99{blanks[3:]}\n").n_agents == 116


def test_counted_lines_below_lists_are_asked_about(read):
    for text in (
        "ranking,count\nAnn>Bo>Cy,10\nBo>Ann>Cy,7\nTurnout,17\n",
        "count,ranking\n10,Ann>Bo\n7,Bo>Ann\n170,All\n",
    ):
        with pytest.raises(DataError, match=r"line 4: '(Turnout|All)' stands alone below all others"):
            read(text)


def test_small_counts_of_an_item_alone_are_said_where_all_others_list_several(read):
    with pytest.warns(PermixWarning, match="'No votes' stands alone below all others"):
        assert read(f"{RANKS}No votes,,,3\n").n_agents == 20


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("id,1st,2nd,3rd\n1,3,1,2\n2,1,3,99\n3,2,1,99\n", 99),
        ("id,choice1,choice2,choice3\n1,3,1,2\n2,1,3,9\n3,2,1,9\n", 9),
        ("id,1st,2nd\n1,3,1\n2,2,88\n3,1,2\n4,4,5\n", 88),
        ("id,ranking\n1,3>1>2\n2,1>3>99\n3,2>1>99\n", 99),
        ("id,1st,2nd\n1,3,1\n2,2,-1\n3,1,2\n", -1),
    ],
)
def test_codes_among_numbers_of_items_are_asked_about(read, text, code):
    with pytest.raises(DataError, match=f"{code} stands among numbers of items"):
        read(text)
    if ">" not in text:
        assert code not in read(text, missing=code).items
    # Numbers that run on, or begin high, are those of items.
    for honest in (range(1, 100), [101, 102, 99], range(1, 10), [97, 98, 99]):
        lines = "".join(f"{at},{item}\n" for at, item in enumerate(honest))
        assert read(f"id,1st\n{lines}").n_items == len(honest)


@pytest.mark.parametrize("mark", ["X", "x", "1st"])
def test_a_mark_at_several_ranks_is_no_item(read, mark):
    lines = f"1,Ann,{mark},,\n1,Bo,,{mark},\n2,Ann,,{mark},\n2,Bo,{mark},,\n"
    with pytest.raises(DataError):
        read(f"Ballot,Candidate,Rank 1,Rank 2,Rank 3\n{lines}")
    with pytest.raises(DataError, match="is all that stands at the ranks, in 2 of their columns"):
        read("Precinct,Rank 1,Rank 2\na,X,\nb,,X\n")
    assert read("Precinct,Rank 1,Rank 2\na,Ann,\nb,Ann,\n").items == ("Ann",)


@pytest.mark.parametrize("error", ["#REF!", "#VALUE!", "#NAME?", "#N/A", "#DIV/0!"])
@pytest.mark.parametrize("names", ["id,choice1,choice2", "id,rank1,rank2", "precinct,rank1,rank2"])
def test_errors_of_spreadsheets_are_refused(read, error, names):
    with pytest.raises(FileFormatError, match=r"line 3, column 3: '#.*' is an error of a spreadsheet"):
        read(f"{names}\n1,Tea,Milk\n2,Milk,{error}\n")
    assert read(f"{names}\n1,Tea,Milk\n2,Milk,No. #1\n").n_agents == 2


def test_two_columns_of_counts_are_asked_about(read):
    text = "rank1,rank2,rank3,in person,by mail\nAnn,Bo,Cy,5,3\nBo,Ann,,5,9\n"
    with pytest.raises(DataError, match="columns 'in person' and 'by mail' hold whole numbers"):
        read(text)
    assert read(text, group_columns=["in person", "by mail"]).n_agents == 2
    assert read(f"{text}Ann,Bo,Cy,4,1\n").n_agents == 3  # ballots, not kinds of ballots


SAME = "judge,{},rank1,rank2\n1,Taste,Ann,Bo\n1,Look,Bo,Ann\n2,Taste,Ann,Bo\n2,Look,Bo,Ann\n3,Taste,Ann,Bo\n"


@pytest.mark.parametrize("name", ["award", "prize", "round", "position", "dish"])
def test_contests_with_the_same_candidates_are_asked_for(read, name):
    with pytest.raises(DataError, match="has 2 contests: Taste, Look"):
        read(SAME.format(name))
    look = read(SAME.format(name), contest="Look")
    assert look.n_agents == 2
    assert "1: Bo ≻ Ann" in str(look)
    assert f"the contest is Look (column {name})" in how_it_was_read(look)
    assert read(SAME.format(name), group_columns=[name]).n_agents == 5


@pytest.mark.parametrize("name", ["batch", "Tabulator Id", "precinct"])
def test_where_numbers_begin_again_is_no_contest(read, name):
    assert read(SAME.format(name)).n_agents == 5


def test_a_contest_asked_for_is_looked_for_in_every_column(read):
    text = "position,rank1,rank2,votes\nPresident,Ann,Bo,10\nTreasurer,Bo,Ann,7\nPresident,Bo,Ann,4\n"
    assert read(text, contest="president").n_agents == 14
    with pytest.warns(PermixWarning, match="column 'position' may say which contest a row is of"):
        assert read(text).n_agents == 21
    with pytest.raises(DataError, match="columns 'position' and 'town' both hold 'A'"):
        read("position,town,rank1,rank2\nA,A,Ann,Bo\nB,A,Bo,Ann\n", contest="A")
    with pytest.raises(DataError, match="no contest called 'Clerk'"):
        read(text, contest="Clerk")
    long = "voter,position,candidate,rank\n1,P,Ann,1\n1,P,Bo,2\n1,C,Ann,2\n1,C,Cy,1\n2,P,Bo,1\n2,P,Ann,2\n"
    assert read(long, contest="P").items == ("Ann", "Bo")


def test_ratings_that_are_ranks_within_a_column_are_of_contests(read):
    lines = "".join(
        f"{voter},Fiction,Ann,1\n{voter},Fiction,Bo,2\n{voter},Poetry,Cy,2\n{voter},Poetry,Di,1\n"
        for voter in (1, 2)
    )
    text = f"voter,category,item,rating\n{lines}"
    with pytest.raises(DataError, match="has 2 contests: Fiction, Poetry"):
        read(text)
    assert read(text, contest="Fiction").items == ("Ann", "Bo")
    assert read(text.replace("Cy,2", "Cy,3")).n_items == 4  # ratings of items that have categories


def test_series_of_ranks_are_contests(read):
    text = "Ballot,President 1,President 2,Clerk 1,Clerk 2\n1,Ann,Bo,Cy,Di\n2,Bo,Ann,Di,\n3,Ann,,Cy,Di\n"
    with pytest.raises(DataError, match="those of several questions, 'President', 'Clerk'"):
        read(text)
    assert read(text, contest="President").items == ("Ann", "Bo")
    assert read(text, contest="clerk").items == ("Cy", "Di")
    with pytest.raises(DataError, match="no contest called 'Mayor'"):
        read(text, contest="Mayor")


def test_votes_that_were_given_twice_are_said_beside_a_time(read):
    text = "voter,rank1,rank2,{}\n1,Ann,Bo,2024-01-01 10:00\n1,Bo,Ann,2024-01-01 11:00\n2,Bo,Ann,2024-01-02\n"
    with pytest.warns(PermixWarning, match="1 ballot has the id of another, such as '1'"):
        assert read(text.format("timestamp")).n_agents == 3


@pytest.mark.parametrize(
    "text",
    [
        "email,time,rank1,rank2\na@x,10:00,Ann,Bo\na@x,10:05,Bo,Ann\nb@x,11:00,Bo,Ann\n",
        "Timestamp,Username,Rank [Tea],Rank [Milk]\n2024/01/05 10:11,a@x,1st,2nd\n"
        "2024/01/05 10:12,a@x,2nd,1st\n2024/01/05 10:13,b@x,2nd,1st\n",
    ],
)
def test_somebody_with_several_rows_is_said(read, text):
    with pytest.warns(PermixWarning, match="1 row is of somebody who has another, such as 'a@x'"):
        assert read(text).n_agents == 3


def test_agents_with_several_lists_are_said(read):
    with pytest.warns(PermixWarning, match="agent 1 has a row already"):
        assert read("id,ranking\n1,Ann>Bo\n1,Bo>Ann\n2,Bo>Ann\n").n_agents == 3


RANKED = "{},Ann,Bo,Cy\n4,1,2,3\n4,2,1,3\n4,3,1,2\n4,1,3,2\n"


@pytest.mark.parametrize("name", ["grade", "wave", "region"])
def test_a_column_that_never_differs_is_asked_about(read, name):
    with pytest.raises(DataError, match=f"column '{name}' holds 4 in every row: it could be an item"):
        read(RANKED.format(name))
    assert read(RANKED.format(name), ignore=name).n_items == 3
    assert read(RANKED.format(name), item_columns=name).n_items == 4
    rated = "Ann,Bo,consent\n5,2,1\n2,1,1\n3,5,1\n"
    with pytest.raises(DataError, match="column 'consent' holds 1 in every row"):
        read(rated, layout="ratings")
    assert read("Ann,Bo,Cy\n0,1,1\n1,0,1\n0,0,1\n", layout="ratings").n_items == 3  # approvals


@pytest.mark.parametrize(("name", "first"), [("Unnamed: 0", 0), ("S/N", 1), ("Sr. No.", 1)])
def test_numbers_of_rows_are_no_item(read, name, first):
    text = f"{name},Ann,Bo,Cy\n{first},4,2,3\n{first + 1},2,1,3\n{first + 2},3,1,2\n"
    rated = read(text, layout="ratings")
    assert rated.items == ("Ann", "Bo", "Cy")
    assert f"{name} names the agents" in how_it_was_read(rated)
    assert read(text, layout="ratings", item_columns=name).n_items == 4


def test_few_items_are_named_and_what_no_rank_means(read):
    said = how_it_was_read(read("Student,Art,Chess,Maths\na,1,2,3\nb,n/a,1,2\nc,2,1,0\nd,1,,2\n"))
    assert "over Art, Chess and Maths; items not ranked (0, blank, n/a) are below those that are" in said
    assert "not ranked" not in how_it_was_read(read("Student,Art,Chess\na,1,2\nb,2,1\n"))
    unknown = read("Student,Art,Chess\na,1,2\nb,,1\n", unlisted="unknown")
    assert "not ranked" not in how_it_was_read(unknown)


def test_offices_are_no_first_and_second_place(read):
    text = "President,Treasurer\nAna,Dan\nAna,Eve\nBob,Eve\nBob,Dan\n"
    with pytest.raises(DataError, match="no entry of column 'President' stands in 'Treasurer'"):
        read(text, layout="orders", header=True)
    assert read(text + "Dan,Ana\n", layout="orders", header=True).n_agents == 5


@pytest.mark.parametrize("name", ["None of the above", "No third choice", "Neither"])
def test_items_that_say_nobody_are_said(read, name):
    with pytest.warns(PermixWarning, match=f"'{name}' is an item here"):
        assert name in read(f"rank1,rank2\nAnn,Bo\nBo,{name}\n").items


def test_who_votes_again_on_another_day_is_told(tmp_path):
    """Few values of a column come back: these are no batches, whose ballots are numbered each from 1."""
    path = tmp_path / "votes.csv"
    rows = [f"{voter},Ann,Bo,Cy,{'web' if voter % 2 else 'phone'}" for voter in range(1, 21)]
    path.write_text("\n".join(["voter,rank1,rank2,rank3,mode", *rows, "7,Bo,Ann,Cy,phone"]) + "\n")
    with pytest.warns(PermixWarning, match="1 ballot has the id of another, such as '7'"):
        assert permix.read(path).n_agents == 21
