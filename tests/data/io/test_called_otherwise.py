"""Comparisons and ratings whose columns have everyday names, and tables that are turned around."""

from __future__ import annotations

import warnings

import pytest

import permix
from permix.data.reading import how_it_was_read
from permix.errors import DataError

ESSAYS = """grader,essay_a,essay_b,winner,seconds
Kim,E1,E2,E1,12
Kim,E2,E3,E3,9
Lee,E1,E3,tie,11
Lee,E3,E1,E1,10
"""
SCORES = "judge,essay,score,topic\nJ,E1,9,war\nJ,E2,4,peace\nK,E1,7,war\nK,E2,8,peace\n"


@pytest.fixture
def read(tmp_path):
    def of(text, **options):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return permix.read(path, **options)

    return of


def counted(votes):
    """How many agents prefer one item to another, by their names."""
    counts = votes.pairwise_counts()
    items = votes.items
    return {
        (str(a), str(b)): int(counts[i, j])
        for i, a in enumerate(items)
        for j, b in enumerate(items)
        if counts[i, j]
    }


# -- comparisons -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [("essay_a", "essay_b"), ("Essay A", "Essay B"), ("Essay 1", "Essay 2")])
@pytest.mark.parametrize("winner", ["winner", "better"])
def test_two_sides_of_anything_are_matches(read, ends, winner):
    first, second = ends
    text = ESSAYS.replace("essay_a", first).replace("essay_b", second).replace("winner", winner)
    votes = read(text)
    known = [("Kim", "E1", "E2"), ("Kim", "E3", "E2"), ("Lee", "E1", "E3")]
    assert counted(votes) == counted(permix.Preferences.from_pairs(known))
    said = how_it_was_read(votes)
    assert "grader names the agents" in said
    assert "not used: seconds" in said
    assert votes.metadata["CLEANING"][0]["done"] == "left out; 3 of 4 comparisons are kept"


def test_the_winner_may_be_named_by_its_side(read):
    sides = ESSAYS.replace("E1,12", "essay_a,12").replace("E3,9", "Essay_B,9").replace("E1,10", "b,10")
    assert counted(read(sides)) == counted(read(ESSAYS))


@pytest.mark.parametrize(
    "wrong",
    [
        ESSAYS.replace("Lee,E3,E1,E1", "Lee,E3,E1,E7"),  # somebody else won
        ESSAYS.replace("Lee,E3,E1,E1", "Lee,E3,E3,E3"),
        ESSAYS.replace("essay_b,winner", "essay_b,essay_c"),
        ESSAYS.replace("essay_b", "essay_c"),
    ],
)
def test_what_holds_no_two_sides_is_no_match(read, wrong):
    with pytest.raises(DataError):
        read(wrong)


@pytest.mark.parametrize(
    "names",
    [
        ("Chosen", "Not Chosen"),
        ("winner_essay", "loser_essay"),
        ("preferred", "dispreferred"),
        ("victor", "loser"),
        ("winning item", "losing item"),
        ("not chosen", "chosen"),
    ],
)
def test_words_say_which_is_preferred_wherever_it_stands(read, names):
    ahead = names[0] != "not chosen"
    pairs = ["tea,milk", "cola,tea"] if ahead else ["milk,tea", "tea,cola"]
    text = f"person,{','.join(names)}\n1,{pairs[0]}\n1,{pairs[1]}\n2,{pairs[0]}\n"
    assert counted(read(text)) == {("tea", "milk"): 2, ("cola", "tea"): 1, ("cola", "milk"): 1}
    turned = "\n".join(",".join([a, c, b]) for a, b, c in (line.split(",") for line in text.splitlines()))
    assert counted(read(turned + "\n")) == counted(read(text))


def test_more_and_less_are_advised_in_the_right_direction(read):
    text = "person,less,more\n1,tea,milk\n1,cola,tea\n2,milk,tea\n"
    with pytest.raises(DataError, match="'more': 'better', 'less': 'worse'"):
        read(text)
    votes = read(text, rename={"person": "agent", "more": "better", "less": "worse"})
    assert counted(votes)["milk", "tea"] == 1


def test_unknown_words_are_not_guessed(read):
    with pytest.raises(DataError, match=r"If 'this' .*'this': 'better'.*if 'that' does.*'that': 'better'"):
        read("who,this,that\nann,Up,Jaws\nann,Jaws,X\n")


@pytest.mark.parametrize("sign", ["{}. Tea", "Choice {}", "{} (red)", "{}nd"])
def test_items_with_numbers_in_their_names_come_back(read, tmp_path, sign):
    a, b, c = (sign.format(number) for number in (1, 2, 3))
    votes = permix.Preferences.from_pairs([(1, a, b), (1, b, c), (2, c, a)])
    permix.write(votes, tmp_path / "pairs.csv", layout="pairs")
    back = read((tmp_path / "pairs.csv").read_text())
    assert counted(back) == counted(votes)
    assert {a, b, c} == set(map(str, back.items))


# -- ratings ---------------------------------------------------------------------------------------------


def test_the_column_of_items_is_named(read):
    with pytest.raises(DataError, match=r"rename=\{'essay': 'item'\}"):
        read(SCORES)
    votes = read(SCORES, rename={"essay": "item"})
    assert counted(votes) == {("E1", "E2"): 1, ("E2", "E1"): 1}
    assert "not used: topic" in how_it_was_read(votes)


@pytest.mark.parametrize("name", ["priority", "time", "Note"])
def test_the_lowest_may_be_the_best(read, name):
    text = f"voter,item,{name}\n1,Ann,1\n1,Bo,2\n2,Bo,1\n"
    with pytest.raises(DataError, match=rf"If the highest .*'{name}': 'rating'.*'{name}': 'rank'.*minus"):
        read(text)
    ranked, rated = (read(text, rename={name: role}) for role in ("rank", "rating"))
    assert counted(ranked)["Ann", "Bo"] == counted(rated)["Bo", "Ann"] == 1


def test_columns_are_renamed_by_names_that_are_there_and_free(read):
    with pytest.raises(DataError, match="there is no column 'paper' to rename"):
        read(SCORES, rename={"paper": "item"})
    with pytest.raises(DataError, match="two columns would be called 'score'"):
        read(SCORES, rename={"essay": "score"})


# -- turned around ---------------------------------------------------------------------------------------


JUDGES = "Skater,Country,Judge 1,Judge 2,Total\nIto,JPN,1,2,3\nKatz,JPN,2,1,3\nLund,SWE,3,3,6\n"


def test_a_row_for_each_item_is_turned_around(read):
    with pytest.raises(DataError, match="transpose=True and ignore='Country' and ignore='Total'"):
        read(JUDGES)
    votes = read(JUDGES, transpose=True, ignore=["Country", "Total"])
    assert votes.items == ("Ito", "Katz", "Lund")
    assert votes.agents.tolist() == ["Judge 1", "Judge 2"]
    assert votes.orders.tolist() == [[0, 1, 2], [1, 0, 2]]
    rated = read(JUDGES, transpose=True, ignore=["Country", "Total"], layout="ratings")
    assert counted(rated)["Lund", "Ito"] == 2


def test_a_column_of_names_may_be_agents_or_items(read):
    with pytest.raises(DataError, match=r"agent_column='Course'.*transpose=True"):
        read("Course,Ann Smith,Bo Kim\nLaw,1,2\nArt,2,1\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Course,Ann,Bo\nLaw,1,2\nLaw,2,1\n", "two rows are of the item 'Law'"),
        ("Course,Ann,Bo\nLaw,1,2\n,2,1\n", "nothing in column 'Course'"),
        ("Course,Ann,Bo\nLaw,1,2\nArt,2,x\n", "column 'Bo'|'x'|text"),
    ],
)
def test_what_cannot_be_turned_around_is_refused(read, text, why):
    with pytest.raises(DataError, match=why):
        read(text, transpose=True)


def test_a_table_about_items_has_no_agents_to_turn(read):
    with pytest.raises(DataError, match="who said what"):
        read("item,mean,votes\nTea,3.4,120\nMilk,2.2,118\nCola,1.4,99\n", count_column=False)


# -- lists -----------------------------------------------------------------------------------------------


def test_a_column_called_ranking_may_list_items(read):
    cells = ["FDP, CDU, SPD", "SPD, FDP, CDU", "CDU, SPD, FDP", "CDU, FDP, SPD"]
    text = "Who,Your ranking of parties (best first)\n" + "".join(
        f'a{k},"{c}"\n' for k, c in enumerate(cells)
    )
    with pytest.raises(DataError, match="layout='orders' and ignore='Who'"):
        read(text, header=True)
    assert read(text, layout="orders", ignore="Who", header=True).orders.shape == (4, 3)


# -- weights ------------------------------------------------------------------------------------------------


THERMO = "respid,weight,biden,trump\n1,{},90,20\n2,{},10,85\n3,{},30,50\n"


@pytest.mark.parametrize("weights", [("2.105", "1.852", "1.000"), ("2.1", "1.85", "1")])
def test_weights_of_a_survey_are_no_counts(read, weights):
    text = THERMO.format(*weights)
    with pytest.raises(DataError, match="no counts.*ignore='weight'") as caught:
        read(text, layout="ratings", count_column="weight")
    assert "1,000" not in str(caught.value)
    assert read(text, layout="ratings", ignore="weight").n_agents == 3


def test_an_agent_of_each_row_is_one_agent(read):
    text = THERMO.format(2105, 1852, 1000)
    with pytest.raises(DataError, match="4,957 agents of 3.*count_column='weight'.*ignore='weight'"):
        read(text, layout="ratings")
    assert read(text, layout="ratings", count_column="weight").n_agents == 4957
    # Rows that stand for many agents, whom nobody names, are read.
    assert read(text.replace("respid", "precinct"), layout="ratings", ignore="precinct").n_agents == 4957
