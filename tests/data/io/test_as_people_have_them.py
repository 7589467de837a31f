"""Tables as people have them: read as they were meant, every judgement reported, or refused with a way out.

Each of these was read in silence as something else, or refused without a way out.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, FileFormatError, PermixWarning


@pytest.fixture
def read(tmp_path):
    """Read text, and return what was read with what was said."""

    def of(text, name="x.csv", encoding="utf-8", **options):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            votes = permix.read(path, **options)
        assert all(issubclass(warning.category, PermixWarning) for warning in caught)
        return votes, " | ".join(str(warning.message) for warning in caught)

    return of


def lists(votes):
    """Return groups of names of each row, best first."""
    stated = votes.arrays()
    rows = []
    for start, end in zip(stated.level_indptr[:-1], stated.level_indptr[1:], strict=True):
        groups: list[list[str]] = [[] for _ in range(int(stated.levels[start:end].max(initial=-1)) + 1)]
        for item, level in zip(stated.level_items[start:end], stated.levels[start:end], strict=True):
            groups[level].append(str(votes.items[item]))
        rows.append([sorted(group) for group in groups])
    return rows


def strict(*orders):
    return [[[item] for item in order] for order in orders]


PTS = [["P", "S", "T"], ["S", "P", "T"], ["T", "S", "P"]]
GRID = "{},R [P],R [S],R [T]\n{}1,2,3\n{}2,1,3\n{}3,2,1\n"


# -- forms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        GRID.format("Timestamp", *["1/5/2024 10:11:12,"] * 3),
        GRID.format("Timestamp,Email Address", *["1/5/2024 10:11:12,a@b.org,"] * 3),
        "Timestamp,F [1st choice],F [2nd choice],F [3rd choice]\n1/5,P,S,T\n1/5,S,P,T\n1/5,T,S,P\n",
        "Respondent ID,Collector ID,Start Date,Please rank,,\n,,,P,S,T\n"
        "7,9,1/5,1,2,3\n8,9,1/5,2,1,3\n9,9,1/5,3,2,1\n",
        "StartDate,Progress,ResponseId,Q1_1,Q1_2,Q1_3\nStart Date,Progress,Response ID,R. - P,R. - S,R. - T\n"
        '"{""ImportId"":""a""}","{""ImportId"":""b""}","{""ImportId"":""c""}","{""ImportId"":""d""}",'
        '"{""ImportId"":""e""}","{""ImportId"":""f""}"\n'
        "1/5,100,R_1,1,2,3\n1/5,100,R_2,2,1,3\n1/5,100,R_3,3,2,1\n",
        "StartDate,ResponseId,Q1_1,Q1_2,Q1_3,Q1_DO_1,Q1_DO_2,Q1_DO_3\nStart,Response ID,R. - P,R. - S,R. - T,"
        "R. - Display Order - P,R. - Display Order - S,R. - Display Order - T\n"
        + ",".join(f'"{{""ImportId"":""{k}""}}"' for k in range(8))
        + "\n1/5,R_1,1,2,3,3,1,2\n1/5,R_2,2,1,3,1,3,2\n1/5,R_3,3,2,1,2,1,3\n",
        "#,P,S,T,Start Date (UTC),Submit Date (UTC),Network ID\n"
        "a,1,2,3,x,y,z\nb,2,1,3,x,y,z\nc,3,2,1,x,y,z\n",
        "id. Response ID,submitdate. Date submitted,lastpage. Last page,f[1]. Rank [Rank 1],"
        "f[2]. Rank [Rank 2],f[3]. Rank [Rank 3]\n1,a,1,P,S,T\n2,a,1,S,P,T\n3,a,1,T,S,P\n",
        "ID,Start time,Completion time,Email,Name,Rank\n1,a,b,c,,P;S;T;\n2,a,b,c,,S;P;T;\n3,a,b,c,,T;S;P;\n",
        '"id","submitdate","lastpage","f[1]","f[2]","f[3]"\n"1","a","1","P","S","T"\n'
        '"2","a","1","S","P","T"\n"3","a","1","T","S","P"\n',
    ],
    ids=[
        "google",
        "google with email",
        "google places",
        "surveymonkey",
        "qualtrics",
        "qualtrics with display order",
        "typeform",
        "limesurvey with codes and questions",
        "microsoft",
        "limesurvey",
    ],
)
def test_rankings_of_forms(read, text):
    votes, said = read(text)
    assert lists(votes) == strict(*PTS)
    assert "of the form" in said
    assert votes.metadata["OTHER COLUMNS"]


def test_two_questions_are_not_one_ranking(read):
    text = "Timestamp,Food [P],Food [S],Drink [T],Drink [M]\nx,1,2,2,1\ny,2,1,1,2\n"
    with pytest.raises(DataError, match=r"2 questions: Food, Drink\. Say which with contest"):
        read(text)
    votes, said = read(text, contest="drink")
    assert lists(votes) == strict("MT", "TM")
    assert "Food [P]" in said


@pytest.mark.parametrize("column", ["Your age", "Any comments?"])
def test_questions_that_one_column_answers_are_set_apart(read, column):
    """The words were taken for items before, or the hint was to read them so."""
    rows = ["1st choice,2nd choice,{}", "2nd choice,1st choice,{}", "2nd choice,1st choice,{}"]
    answers = ("20", "31", "44") if "age" in column else ('"nice, ok"', "", "good")
    lines = [f"x,{row.format(answer)}" for row, answer in zip(rows, answers, strict=True)]
    votes, said = read(f"Timestamp,Rank [P],Rank [S],{column}\n" + "\n".join(lines) + "\n")
    assert lists(votes) == strict("PS", "SP", "SP")
    assert column in said
    assert column in votes.metadata["OTHER COLUMNS"]


def test_places_are_no_items_of_an_ordering(read):
    text = "tea,milk\n1st choice,2nd choice\n2nd choice,1st choice\n"
    with pytest.raises(DataError, match="'1st choice', so each column is an item"):
        read(text, layout="orders", header=True)


def test_a_column_of_the_form_is_kept_beside_the_votes(read):
    votes, _ = read(GRID.format("Timestamp,Town", *["x,Rome,"] * 3), group_columns=["Town"])
    assert votes.covariates["Town"].tolist() == ["Rome"] * 3


def test_boxes_that_were_checked_are_no_rankings(read):
    text = 'id,answer\n1,"P, S"\n2,"S, T"\n3,"P, S, T"\n4,"P, T"\n5,S\n6,"P, S"\n'
    with pytest.raises(DataError, match=r"same order in every cell, as boxes .* layout='orders'"):
        read(text)
    assert len(read(text, layout="orders")[0]) == 6


def test_words_of_a_scale(read):
    text = "id,Q [A],Q [B],Q [C]\n1,Agree,Strongly agree,Neutral\n2,Disagree,Don't know,Strongly disagree\n"
    with pytest.raises(DataError, match=r"words of a scale, such as 'Agree'.*layout='ratings'"):
        read(text)
    votes, said = read(text, layout="ratings")
    assert lists(votes) == [[["B"], ["A"], ["C"]], [["A"], ["C"]]]
    assert "best first: 'Strongly agree', 'Agree', 'Neutral', 'Disagree', 'Strongly disagree'" in said
    assert 'no rating: "Don\'t know"' in said
    odd = "id,A,B\n1,hot,cold\n2,cold,mild\n"
    with pytest.raises(DataError, match=r"line 2, column 'A': rating 'hot' is not .*categories"):
        read(odd, layout="ratings")
    assert lists(read(odd, layout="ratings", categories=["hot", "mild", "cold"])[0]) == strict("AB", "BA")


def test_labels_with_numbers_go_the_way_their_words_go(read):
    text = "id,A,B\n1,1 - Strongly agree,5 - Strongly disagree\n2,5 - Strongly disagree,3\n"
    assert lists(read(text, layout="ratings")[0]) == strict("AB", "BA")
    text = text.replace("1 - Strongly agree", "1 - Strongly disagree")
    text = text.replace("5 - Strongly disagree", "5 - Strongly agree")
    assert lists(read(text, layout="ratings")[0]) == strict("BA", "AB")


def test_wide_ratings(read):
    votes, _ = read("id,A,B,C\n1,4,5,\n2,2,4,4\n", layout="ratings")
    assert lists(votes) == [[["B"], ["A"]], [["B", "C"], ["A"]]]
    assert votes.rest_below.tolist() == [False, True]  # all are rated in the second row


# -- spreadsheets ------------------------------------------------------------------------------------------

RANKS = "voter{0}P{0}S{0}T\n1{0}1{0}2{0}3\n2{0}2{0}1{0}3\n3{0}3{0}2{0}1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Poll of 2024\n\n" + RANKS.format(","), "line 1 ('Poll of 2024') is taken for a title"),
        ("Poll, of 2024\n" + RANKS.format(";"), "taken for a title"),
        ("Poll,,,\nMay,,,\n" + RANKS.format(","), "lines 1 to 2 ('Poll; May') are taken for a title"),
        ("sep=;\n" + RANKS.format(";"), ""),
        (RANKS.format(",").replace("\n", ",,\n"), ""),
        (RANKS.format(",").replace("1,2,3\n", "1,2,3,,\n"), ""),
        (RANKS.format(",") + "Total,6,5,7\n", "line 5 ('Total 6 5 7') is taken for a line of totals"),
        (RANKS.format(",") + "Average,2,1.7,2.3\n,,,\n", "a line of totals"),
        (RANKS.format(",") + "\nSource: us,,,\n", "line 6 ('Source: us') is taken for a note"),
        (RANKS.format(",") + "\nSource: us\n", "taken for a note"),
        ("voter,P,,S,T\n1,1,,2,3\n2,2,,1,3\n3,3,,2,1\n", ""),
    ],
)
def test_what_stands_around_a_table(read, text, said):
    votes, told = read(text)
    assert lists(votes) == strict(*PTS)
    assert said in told
    assert bool(told) == bool(said)


def test_ballots_under_a_title_above_totals(read):
    text = "Ward 9,,\nprecinct,rank1,rank2\nN,Ann,undervote\nS,Bo,Ann\nTotal,2,1\n"
    votes, told = read(text)
    assert lists(votes) == strict(["Ann"], ["Bo", "Ann"])
    assert "Ward 9" in told
    assert "totals" in told


@pytest.mark.parametrize(
    "text",
    [
        "pos1,pos2\nShell,Total\nTotal,Shell\n",  # an item
        "Ann,,\nBo,Ann,Cy\nCy,Bo,Ann\n",  # a ballot that lists one
    ],
)
def test_rows_are_not_taken_for_what_stands_around(read, text):
    votes, _ = read(text, layout="orders")
    assert len(votes) == text.count("\n") - text.startswith("pos1")


def test_totals_are_no_ballots(read):
    votes, said = read("pos1,pos2,count\nAnn,Bo,3\nBo,Ann,2\nTotal,,5\n")
    assert (votes.items, votes.n_agents) == (("Ann", "Bo"), 5)
    assert "totals" in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252"])
def test_encodings(read, encoding):
    text = "voter\tMüsli\tTea\n1\t1\t2\n2\t2\t1\n"
    raw = b"\xff\xfe" + text.encode(encoding) if encoding == "utf-16-le" else text.encode(encoding)
    votes, said = read(raw, "x.txt" if encoding != "cp1252" else "x.csv")
    assert votes.items == ("Müsli", "Tea")
    assert ("Windows-1252 ('Müsli')" in said) == (encoding == "cp1252")


@pytest.mark.parametrize(
    "raw",
    [
        "voter,Привет,Tea\n1,1,2\n".encode("cp1251"),  # three letters in a row that are no western word
        "voter,Müsli,Tea\n1,1,2\n".encode() + b"\xfc,2,1\n",  # UTF-8, damaged
        "voter,Müsli,Tea\n1,1,2\n".encode("utf-16")[:-1],
    ],
)
def test_encodings_that_are_refused(read, raw):
    with pytest.raises(FileFormatError, match="UTF"):
        read(raw)


def test_decimal_commas(read):
    votes, _ = read("user;item;rating\na;Tee;3,5\na;Milch;2,0\nb;Tee;1,5\nb;Milch;4,5\n")
    assert lists(votes) == strict(["Tee", "Milch"], ["Milch", "Tee"])


def test_thousands(read):
    votes, _ = read('pos1,pos2,count\nAnn,Bo,"1,234"\nBo,Ann,"2,001"\n')
    assert votes.counts.tolist() == [1234, 2001]
    for name in ("pos1;pos2;count", "precinct;rank1;count;rank2"):
        with pytest.raises(DataError, match=r"line 2: .*'1\.000'"):
            read(f"{name}\nAnn;Bo;1.000;x\n".replace(";x", ";x" * (name.count(";") - 2)))


# -- who, and how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["No", "Ward", "Age", "Kennung"])
def test_a_column_beside_ranks_is_no_item_in_silence(read, name):
    text = f"{name},A,B,C\n1,1,2,3\n2,2,1,3\n3,3,2,1\n"
    with pytest.raises(DataError, match=rf"without column '{name}' all rows are rankings.*agent_column"):
        read(text)
    assert read(text, agent_column=name)[0].items == ("A", "B", "C")
    if name == "Kennung":
        assert len(read(text, layout="ranks")[0].items) == 4
    else:  # what is hardly an item is none for the asking: it would tie with others in every row
        with pytest.raises(
            DataError, match=rf"column '{name}' says something of the agents.*say item_columns=\['{name}'\]"
        ):
            read(text, layout="ranks")
        assert len(read(text, layout="ranks", item_columns=name)[0].items) == 4


@pytest.mark.parametrize("name", ["#", "Student", "Wähler", "Teilnehmer"])
def test_usual_names_of_agents(read, name):
    votes, _ = read(f"{name};A;B;C\n1;1;2;3\n2;2;1;3\n3;3;2;1\n")
    assert votes.items == ("A", "B", "C")
    assert votes.agents.tolist() == [1, 2, 3]


def test_weights_count(read):
    votes, _ = read("A,B,C,weight\n1,2,3,1\n2,1,3,2\n3,1,2,1\n")
    assert (votes.items, votes.n_agents) == (("A", "B", "C"), 4)


# -- ranks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("1st", "2nd", "3rd"),
        ("First choice", "Second choice", "Third choice"),
        ("Rank 1", "Rank 2", "Rank 3"),
        ("#1", "#2", "#3"),
        ("1.", "2.", "3."),
        ("1 (best)", "2", "3 (worst)"),
        ("1 - Most preferred", "2", "3 - Least preferred"),
        ("Choice one", "Choice two", "Choice three"),
    ],
)
def test_ranks_in_words(read, words):
    text = "voter,P,S,T\n" + "".join(
        f"{k}," + ",".join(words[order.index(item)] for item in "PST") + "\n" for k, order in enumerate(PTS)
    )
    votes, said = read(text)
    assert lists(votes) == strict(*PTS)
    assert words[0] == "1." or f"{words[0]!r} as 1" in said


def test_ties_and_blanks_in_words(read):
    for mark in ("={}", "{}="):
        text = "voter,P,S,T\n1,1,{0},{0}\n2,{1},{1},3\n3,2,1,3\n".format(mark.format(2), mark.format(1))
        assert lists(read(text)[0]) == [[["P"], ["S", "T"]], [["P", "S"], ["T"]], [["S"], ["P"], ["T"]]]
    votes, said = read("P,S,T\n1,2,-\nNot ranked,1,2\n2,1,No opinion\n")
    assert lists(votes) == strict("PS", "ST", "SP")
    assert votes.unlisted_below.all()
    assert "as not ranked, so below" in said


def test_one_is_not_the_best_where_a_label_says_so(read):
    text = "voter,P,S,T\n1,1 (worst),2,3 (best)\n2,2,1 (worst),3 (best)\n"
    with pytest.raises(DataError, match=r"'1 \(worst\)' says that 1 is the worst.*layout='ratings'"):
        read(text)
    assert lists(read(text, layout="ratings")[0]) == strict("TSP", "TPS")


def test_numbers_from_0_are_asked_about(read):
    text = "P,S,T\n2,1,0\n2,0,1\n0,1,2\n"
    with pytest.raises(DataError, match=r"every row holds the numbers 0 to 2.*ranks.*ratings.*add 1"):
        read(text)
    assert lists(read(text, layout="ratings")[0]) == strict("PST", "PTS", "TSP")
    assert lists(read(text, layout="ranks")[0]) == strict("SP", "TP", "ST")


def test_ranks_one_a_line(read):
    votes, _ = read("voter,candidate,rank\na,P,1\na,S,2\nb,S,1\nb,P,2\nb,T,2\n")
    assert isinstance(votes, Preferences)
    assert lists(votes) == [[["P"], ["S"]], [["S"], ["P", "T"]]]
    assert votes.prefers(0, "S", "T")


# -- orders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    ["Choice One,Choice Two", "#1,#2", "1. Wahl,2. Wahl", "Ranking 1,Ranking 2", "1er choix,2e choix"],
)
def test_names_of_places(read, names):
    assert lists(read(f"voter,{names}\na,P,S\nb,S,P\n")[0]) == strict("PS", "SP")


def test_words_for_nobody_end_a_list(read):
    votes, said = read("voter,1st,2nd,3rd\na,P,none,none\nb,S,P,None\nc,No preference,,\nd,S,null,\n")
    assert lists(votes) == strict("P", "SP", "S")
    assert "read as no item" in said
    assert votes.metadata["CLEANING"][0] | {"which": ()} == {
        "found": "rows without an answer",
        "done": "left out",
        "ballots": 1,
        "which": (),
        "left_out": 1,
        "rule": "",
    }
    with pytest.raises(DataError, match="line 2, column '1st': 'none' stands before another item"):
        read("voter,1st,2nd\na,none,P\nb,S,P\n")


def test_marks_are_no_items_whatever_is_said(read):
    text = "Precinct,rank1,rank2,rank3\nN,Ann,overvote,Bo\nS,undervote,Ann,Cy\nS,Bo,Ann,Cy\n"
    with pytest.raises(DataError, match="is a mark, not an item"):
        read(text, layout="orders", ignore=["Precinct"])
    for options in ({}, {"ignore": ["Precinct"]}):
        assert set(read(text, **options)[0].items) == {"Ann", "Bo", "Cy"}


@pytest.mark.parametrize("mark", ["=", "/", " & "])
def test_ties_in_one_cell_are_no_items(read, mark):
    with pytest.raises(DataError, match="seems to be a tie of items"):
        read(f"pos1,pos2\nAnn{mark}Bo,Cy\nCy,Ann\nBo,Cy\n")
    assert "AC/DC" in read("pos1,pos2\nAC/DC,Abba\nAbba,AC/DC\n")[0].items


def test_several_contests_in_columns(read):
    text = "Mayor Choice 1,Mayor Choice 2,Clerk Choice 1,Clerk Choice 2\nAnn,Bo,Di,Ed\nBo,Ann,Ed,Di\n"
    with pytest.raises(DataError, match="2 contests: Mayor, Clerk"):
        read(text)
    assert lists(read(text, contest="Clerk")[0]) == strict(["Di", "Ed"], ["Ed", "Di"])


# -- rankings in one cell ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrow", [" -> ", " → ", " ≻ ", "-->"])
def test_arrows(read, arrow):
    votes, _ = read(f"id,ranking\n1,A{arrow}B{arrow}C\n2,C{arrow}A\n")
    assert lists(votes) == strict("ABC", "CA")


def test_marks_of_ties(read):
    assert lists(read("id,ranking\n1,A~B>C\n2,C>A>B\n")[0]) == [[["A", "B"], ["C"]], [["C"], ["A"], ["B"]]]
    with pytest.raises(DataError, match="line 2: 'A,B' seems to be 'A' and 'B', tied; write ="):
        read('id,ranking\n1,"A,B>C"\n2,C>A>B\n')
    assert read('id,ranking\n1,"Lee, A>Roe, B"\n2,"Roe, B>Lee, A"\n')[0].items == ("Lee, A", "Roe, B")


@pytest.mark.parametrize("text", ["12x A>B>C\n7x B>A>C\n", "12 x A>B\n3 x B>A\n"])
def test_counts_in_a_cell_are_no_items(read, text):
    with pytest.raises(DataError, match="seems to hold a count"):
        read(text, "x.csv")


def test_both_directions_are_refused(read):
    with pytest.raises(DataError, match=r"'<' and '>'|does not look like"):
        read("id,ranking\n1,A<B>C\n2,A>B\n")


def test_lists_beside_a_count_without_names(read):
    with pytest.raises(DataError, match=r"'2' is something else.*count_column='2'"):
        read("A>B>C,12\nB>A>C,7\n")
    assert read("A>B>C,12\nB>A>C,7\n", count_column="2", header=False)[0].n_agents == 19


def test_strict_orders_stay_rankings(read):
    votes, said = read(RANKS.format(","))
    assert isinstance(votes, Rankings)
    assert said == ""
    assert np.array_equal(votes.counts, [1, 1, 1])


@pytest.mark.parametrize(
    "text",
    [
        "Candidate,Voter 1,Voter 2,Voter 3\nAnn,1,2,1\nBo,2,1,3\nCy,3,3,2\n",
        "Rank,Voter1,Voter2\n1,P,S\n2,S,P\n3,T,T\n",
    ],
)
def test_tables_that_are_turned_around_are_told(read, text):
    with pytest.raises(DataError, match=r"turn (the table|it) around"):
        read(text)


@pytest.mark.parametrize("code", ["99", "-9", "999", "-99", "-1"])
def test_codes_for_no_answer_are_no_ratings(read, code):
    """They would be the best or the worst of all; a scale up to 100 may have 99."""
    with pytest.raises(DataError, match=f"line 2: {code} may say that there is no answer"):
        read(f"id,Tea,Milk,Juice\n1,5,{code},3\n2,2,1,4\n", layout="ratings")
    with pytest.raises(DataError, match=f"line 3: {code} may say that there is no answer"):
        read(f"voter,item,rating\n1,Tea,5\n1,Milk,{code}\n2,Tea,2\n2,Milk,1\n")
    votes, _ = read(f"id,Tea,Milk,Juice\n1,5,{code},3\n2,2,1,4\n", layout="ratings", missing=code)
    assert lists(votes) == [[["Tea"], ["Juice"]], [["Juice"], ["Tea"], ["Milk"]]]
    votes, _ = read(
        f"voter,item,rating\n1,Tea,5\n1,Milk,{code}\n2,Tea,2\n2,Milk,1\n3,Milk,{code}\n", missing=code
    )
    assert lists(votes) == [[["Tea"]], [["Tea"], ["Milk"]]]
    assert [entry["ballots"] for entry in votes.metadata["CLEANING"]] == [1, 1]


def test_numbers_that_a_scale_may_have_are_ratings(read):
    assert read("id,Tea,Milk,Juice\n1,50,99,3\n2,70,10,40\n", layout="ratings")[0].prefers(0, "Milk", "Tea")
    votes, _ = read("id,Tea,Milk,Juice\n1,1,-1,0\n2,-1,1,1\n", layout="ratings")
    assert lists(votes)[0] == [["Tea"], ["Juice"], ["Milk"]]


def test_ranks_that_stand_for_no_answer_are_named(read):
    for code in ("99", "-1", "x"):
        votes, _ = read(f"voter,P,S,T\n1,1,2,{code}\n2,2,1,{code}\n3,1,{code},2\n", missing=code)
        assert lists(votes) == [[["P"], ["S"]], [["S"], ["P"]], [["P"], ["T"]]]
    with pytest.raises(DataError, match="named with missing"):
        read("voter,P,S,T\n1,1,2,99\n2,2,1,99\n3,1,99,2\n")
    _, said = read("voter,P,S\n1,1,2\n2,2,1\n", missing=99)
    assert "no cell holds 99" in said


def test_names_of_columns_that_say_that_1_is_not_the_best(read):
    for said in ("3=best", "1 = worst", "higher is better"):
        with pytest.raises(DataError, match="every row could be a ranking"):
            read(f"voter,Tea ({said}),Milk ({said}),Juice ({said})\na,1,2,3\nb,2,1,3\n")
    assert lists(read("voter,Tea (1=best),Milk (1=best)\na,1,2\nb,2,1\n")[0])[0][0] == ["Tea (1=best)"]


def test_columns_from_worst_to_best_are_no_ordering(read):
    with pytest.raises(DataError, match="go from 'worst' to 'best'"):
        read(
            "voter,worst,middle,best\n1,Tea,Milk,Cola\n2,Milk,Tea,Cola\n",
            layout="orders",
            agent_column="voter",
        )


# -- other languages, files put together -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Répondant;1er choix;2e choix;3e choix\n1;P;S;T\n2;S;P;T\n3;T;S;P\n",
        "Bureau;1er choix;2ème choix;3ème choix\nN;P;S;T\nO;S;P;T\nN;T;S;P\n",
        "Person,Rang 1,Rang 2,Rang 3\n1,P,S,T\n2,S,P,T\n3,T,S,P\n",
        "1ª opción,2ª opción,3ª opción\nP,S,T\nS,P,T\nT,S,P\n",
        "id;P;S;T\n1;1er;2e;3e\n2;2e;1er;3e\n3;3e;2e;1er\n",
        "Person;P;S;T\n1;Platz 1;Platz 2;Platz 3\n2;Platz 2;Platz 1;Platz 3\n3;Platz 3;Platz 2;Platz 1\n",
    ],
    ids=["places", "places beside a ward", "ranks of items", "opinions", "ordinals", "words"],
)
def test_places_and_ranks_in_other_languages(read, text):
    votes, _ = read(text)
    assert [[str(votes.items[item]) for item in row] for row in votes.orders.tolist()] == PTS


@pytest.mark.parametrize(
    ("names", "rows", "n"),
    [
        ("voter,rank1,rank2", ["1,P,S", "2,S,P"], 2),
        ("ward,rank1,rank2", ["N,P,skipped", "O,S,P"], 2),
        ("voter,P,S", ["1,1,2", "2,2,1"], 2),
        ("P,S", ["S,P", "P,S"], 3),  # nothing says that these are names: two ballots are alike
    ],
)
def test_names_of_columns_that_stand_there_again(read, names, rows, n):
    """Files that were put together: the columns' names became candidates."""
    text = "\n".join([names, rows[0], *([names] if n == 2 else []), rows[1]]) + "\n"
    votes, said = read(text)
    assert set(votes.items) == {"P", "S"}
    assert len(votes) == n
    assert ("names of the columns once more" in said) == (n == 2)


def test_lines_without_a_rank(read):
    votes, _ = read("voter,item,rank\n1,P,1\n1,S,2\n1,T,\n2,P,2\n2,S,1\n2,T,not ranked\n3,P,NA\n")
    assert lists(votes) == [[["P"], ["S"]], [["S"], ["P"]]]
    assert set(votes.items) == {"P", "S", "T"}
    assert votes.arrays().rest_below.all()
    found = {entry["found"]: (entry["ballots"], entry["left_out"]) for entry in votes.metadata["CLEANING"]}
    assert found == {"lines without a rank": (2, 0), "agents without a rank": (1, 1)}
    with pytest.raises(DataError, match="no line has a rank"):
        read("voter,item,rank\n1,P,\n2,S,\n")


@pytest.mark.parametrize(
    "text",
    [
        "winner,loser,times\nP,S,4\nS,T,6\n",
        "model_a,model_b,winner,share\nP,S,model_a,40%\nS,T,model_b,60%\n",
        "voter,item,rating,weight\n1,P,3,0.5\n1,S,4,0.5\n2,P,1,1\n",
        "voter,item,rank,nVotes cast\n1,P,1,2\n1,S,2,2\n2,P,1,1\n",
    ],
    ids=["pairs", "matches", "ratings", "ranks"],
)
def test_counts_that_are_not_called_so_are_asked_about(read, text):
    """They were passed over, and every row counted once."""
    name = text.partition("\n")[0].rpartition(",")[2]
    with pytest.raises(DataError, match=f"column '{name}' may say how many agents"):
        read(text)
    n = read(text, ignore=name)[0].n_agents
    if name in ("times", "nVotes cast"):
        assert read(text, count_column=name)[0].n_agents > n
    assert read(text.replace(name, "seconds"))[0].n_agents == n


def test_merged_cells_are_told(tmp_path):
    """The value stands in the first of them; those of titles and of names of columns are as usual."""
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "x.xlsx"

    def saved(merged, *above):
        book = openpyxl.Workbook()
        rows = (["ward", "rank1", "rank2"], ["N", "P", "S"], [None, "S", "P"], ["O", "P", "S"])
        for row in (*above, *rows):
            book.active.append(row)
        book.active.merge_cells(merged)
        book.save(path)
        return path

    with pytest.warns(PermixWarning, match="cells A2:A3 are merged"):
        votes = permix.read(saved("A2:A3"), group_columns=["ward"])
    assert votes.covariates["ward"].tolist() == ["N", "", "O"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        permix.read(saved("A1:C1", ["Ballots of the club", None, None]))
    assert "taken for a title" in str(caught[0].message)
    assert not any("are merged" in str(warning.message) for warning in caught)


def test_nul_characters_are_no_names(read):
    with pytest.raises(FileFormatError, match="line 2: a NUL character"):
        read("voter,pos1\n1,\0\n2,P\n")


@pytest.mark.parametrize(
    "note",
    ['"Source: City of X, 2024",,', "End of file,,", "Source: city clerk,,", "--- End of report ---,,"],
)
def test_a_note_right_below_the_table_is_no_ballot(tmp_path, note):
    path = tmp_path / "x.csv"
    path.write_text(f"rank1,rank2,rank3\nA,B,C\nB,A,C\n{note}\n")
    with pytest.warns(PermixWarning, match=r"line 4 .* taken for a note and left out"):
        votes = permix.read(path)
    assert votes.items == ("A", "B", "C")
    assert votes.n_agents == 2


def test_one_item_that_nobody_else_lists_is_a_ballot(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("rank1,rank2,rank3\nA,B,C\nB,A,C\nNote Taker,,\n")
    assert permix.read(path).items == ("A", "B", "C", "Note Taker")


def test_ranks_one_a_line_that_no_item_can_have_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    for rank in ("99", "999999999999999999999", "4"):
        path.write_text(f"voter,item,rank\nx,A,{rank}\nx,B,1\nx,C,2\ny,C,1\ny,A,2\n")
        with pytest.raises(DataError, match="but there are 3 items"):
            permix.read(path)
    path.write_text("voter,item,rank\nx,A,99\nx,B,1\nx,C,2\ny,C,1\ny,A,2\n")
    assert "x: B ≻ C ≻ rest" in str(permix.read(path, missing=99))
    many = "".join(f"{k},i{k},{k % 3 + 1}\n" for k in range(150))
    path.write_text(f"voter,item,rank\n{many}z,i0,99\n")
    with pytest.raises(DataError, match="line 152: 99 may say that there is no answer"):
        permix.read(path)


def test_grades_from_1_to_6_are_asked_about(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("voter,item,grade\nx,A,1\nx,B,2\ny,A,5\ny,B,1\n")
    with pytest.raises(DataError, match="the highest number could be the best, or 1, as in schools"):
        permix.read(path)
    assert "x: B ≻ A" in str(permix.read(path, layout="ratings"))
    path.write_text("voter,item,grade\nx,A,70\nx,B,82\ny,A,55\ny,B,1\n")  # no school gives these
    assert "x: B ≻ A" in str(permix.read(path))


def test_a_number_with_an_underscore_is_none(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("user,item,rating\nx,A,1_0\nx,B,9\ny,A,2\ny,B,3\n")
    with pytest.raises(DataError, match="line 2, column 'rating': rating '1_0' is not a number"):
        permix.read(path)
