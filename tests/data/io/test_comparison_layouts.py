"""Logs of matches, choices and best-worst tasks become the comparisons they state."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
import pytest

from permix.errors import CycleError, DataError, PermixError, PermixWarning


def stated(votes):
    """Comparisons of each agent by name, with how often they are stated."""
    found = {}
    for row, agent in enumerate(votes.agents.tolist()):
        pairs = votes.pairs[votes.pair_indptr[row] : votes.pair_indptr[row + 1]].tolist()
        found[agent] = sorted((votes.items[a], votes.items[b]) for a, b in pairs)
    return found


def audit(votes):
    return {entry["found"]: entry["ballots"] for entry in votes.metadata.get("CLEANING", [])}


ARENA = "question,model_a,model_b,winner,judge\n1,x,y,{},ann\n2,y,z,{},ann\n3,x,y,{},ann\n4,z,x,{},bob\n"


@pytest.mark.parametrize(
    "winners",
    [
        ("model_a", "model_b", "model_a", "model_b"),
        ("A", "B", "a", "b"),
        ("[[A]]", "[[B]]", "[[A]]", "[[B]]"),
        ("A>>B", "[[B>A]]", "A > B", "A<B"),
        ("model_a>model_b", "model_a<model_b", "B<<A", "B≻A"),
        ("1", "2", "1", "2"),
        ("x", "z", "x", "x"),
    ],
)
def test_winners_by_side_or_by_name(read, winners):
    votes = read(ARENA.format(*winners))
    assert stated(votes) == {"ann": [("x", "y"), ("x", "y"), ("z", "y")], "bob": [("x", "z")]}
    assert votes.pairwise_counts(closure=False)[0, 1] == 2  # what is stated twice has two votes


def test_verdicts_that_name_both_sides_are_no_rankings(read):
    votes = read(ARENA.format("A>>B", "A=B", "tie", "B>A"))
    assert stated(votes) == {"ann": [("x", "y")], "bob": [("x", "z")]}
    assert audit(votes) == {"ties": 2}
    with pytest.raises(DataError, match="A>C"):
        read(ARENA.format("A>>B", "A>C", "tie", "B>A"))


def test_counts_are_of_agents_where_nobody_is_named(read):
    text = "model_a,model_b,winner{},count\nx,y,model_a{},30\nx,y,model_b{},12\nx,y,tie{},5\n"
    votes = read(text.format("", *[""] * 3))
    assert votes.counts.tolist() == [30, 12]
    assert votes.n_agents == 42
    assert audit(votes) == {"ties": 5, "no column names the agents": 42}
    of_one = read(text.format(",judge", *[",ann"] * 3), on_cycle="keep")
    assert of_one.n_agents == 1
    assert of_one.pairwise_counts(closure=False)[0, 1] == 30
    tasks = "task,item,chosen,count\n1,x,1,4\n1,y,0,{}\n2,y,1,3\n2,x,0,3\n"
    assert read(tasks.format(4)).counts.tolist() == [4, 3]
    with pytest.raises(DataError, match="line 3: the rows of a task have different counts"):
        read(tasks.format(5))


@pytest.mark.parametrize(
    "names", ["B1,W1,B2,W2", "best_1,worst_1,best_2,worst_2", "Most1,Least1,Most2,Least2"]
)
def test_answers_with_the_number_of_the_task_behind_are_no_ranks(read, names):
    with pytest.raises(DataError, match="no column says which items it showed"):
        read(f"ID,{names}\n1,2,3,1,4\n2,1,2,3,4\n")


def test_ties_are_counted(read):
    text = ARENA.format("tie", "model_b", "tie (bothbad)", "")
    votes = read(text)
    assert stated(votes) == {"ann": [("z", "y")]}
    told = {"ties": 2, "comparisons without an answer": 1, "agents without a comparison": 1}
    assert audit(votes) == told
    with pytest.raises(DataError, match=r"line 2: a tie \(2 in all\)"):
        read(text, ties="error")
    with pytest.raises(CycleError):
        read(text, ties="both")
    both = read(text, ties="both", on_cycle="keep").pairwise_counts()
    assert (both[0, 1], both[1, 0]) == (2, 2)


def test_columns_of_zeros_and_ones(read):
    text = (
        "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n1,x,y,1,0,0\n2,x,z,0,1,0\n3,y,z,0,0,1\n"
    )
    votes = read(text)
    assert stated(votes) == {1: [("x", "y")], 2: [("z", "x")]}
    assert audit(votes)["ties"] == 1
    with pytest.raises(DataError, match="line 2: more than one column"):
        read(text.replace("1,0,0", "1,1,0", 1))


def test_columns_of_one_side_and_ties_are_no_two_sides(read):
    with pytest.raises(DataError, match="no column for the winner"):
        read("model_a,model_b,winner_model_a,winner_tie\nx,y,0,1\ny,z,1,0\n", layout="matches")


def test_without_annotators_each_row_is_one(read):
    votes = read("item1,item2,winner\na,b,a\nb,a,b\n")
    assert stated(votes) == {1: [("a", "b")], 2: [("b", "a")]}
    assert audit(votes) == {"no column names the agents": 2}


@pytest.mark.parametrize(
    ("winners", "why"),
    [
        (("model_a", "model_c", "x", "x"), "line 3: the winner 'model_c' is neither"),
        (("model_a", "y", "model_a", "x"), "is neither|nor a side"),
        (("2", "1", "1", "maybe"), "line 5: the winner 'maybe'"),
    ],
)
def test_winners_that_are_nobody(read, winners, why):
    with pytest.raises(DataError, match=why):
        read(ARENA.format(*winners))


def test_sides_and_names_that_cannot_be_told_apart(read):
    with pytest.raises(DataError, match="could be a side or the name of an item"):
        read("item1,item2,winner,judge\n2,1,1,a\n1,2,2,a\n")
    with pytest.raises(DataError, match="line 2: 'x' is compared with itself"):
        read("model_a,model_b,winner,judge\nx,x,model_a,1\n")


def test_numbers_with_a_sign(read):
    text = "team_a,team_b,result\nx,y,1\ny,z,-1\nx,z,{}\n"
    votes = read(text.format(0))
    assert stated(votes) == {1: [("x", "y")], 2: [("z", "y")]}
    assert audit(votes)["ties"] == 1
    for graded in ("-2", "2", "0.5"):
        with pytest.raises(
            DataError, match=f"line 4: the winner '{graded}' is a number.*team_a, team_b or tie"
        ):
            read(text.format(graded))
    with pytest.raises(DataError, match="line 2: the winner '0' is a number"):
        read("team_a,team_b,result\nx,y,0\ny,z,1\n")


def test_items_called_as_ties_are(read):
    votes = read("item1,item2,winner\nEqual,b,Equal\nb,Equal,b\na,b,tie\n")
    assert stated(votes) == {1: [("Equal", "b")], 2: [("b", "Equal")]}
    assert audit(votes)["ties"] == 1
    with pytest.raises(DataError, match="line 3: the winner 'equal' could be a tie or the item"):
        read("item1,item2,winner\nEqual,b,item1\na,b,equal\n")


# -- choices and best-worst tasks ------------------------------------------------------------------------

BEST_WORST = {
    "ann": [("a", "b"), ("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")],
    "bob": [("b", "a"), ("b", "e"), ("e", "a")],
}


@pytest.mark.parametrize(
    "text",
    [
        "respondent,task,item1,item2,item3,item4,best,worst\nann,1,a,b,c,d,a,d\nbob,1,a,b,e,,b,a\n",
        "respondent,task,item1,item2,item3,item4,best,worst\nann,1,a,b,c,d,1,4\nbob,1,a,b,e,,2,1\n",
        "respondent,task,item1,item2,item3,item4,best,worst\nann,1,a,b,c,d,item1,item4\nbob,1,a,b,e,,item2,item1\n",
        "respondent,shown,best,worst\nann,a;b;c;d,a,d\nbob,a;b;e,b,a\n",
        "respondent,task,item,bw\nann,1,a,1\nann,1,b,0\nbob,1,a,-1\nann,1,c,0\nann,1,d,-1\nbob,1,b,1\nbob,1,e,0\n",
        "respondent,set,item,best,worst\nann,1,a,1,\nann,1,b,,\nann,1,c,,\nann,1,d,,1\n"
        "bob,1,a,,1\nbob,1,b,1,\nbob,1,e,,\n",
    ],
)
def test_best_above_all_others_and_all_others_above_worst(read, text):
    assert stated(read(text)) == BEST_WORST


TASKS = "respondent,task,item1,item2,item3,best,worst\n"


def test_numbers_of_items_and_positions_are_told_apart(read):
    """Answers of items called by numbers: those shown, positions where most are not shown, else asked."""
    ids = read(TASKS + "1,1,3,7,5,7,3\n1,2,5,3,9,5,9\n")
    assert stated(ids)[1] == [(3, 9), (5, 3), (5, 3), (5, 9), (7, 3), (7, 5)]
    places = read(TASKS + "1,1,13,17,15,2,1\n1,2,15,13,19,1,3\n")
    assert stated(places)[1] == [(13, 19), (15, 13), (15, 13), (15, 19), (17, 13), (17, 15)]
    with pytest.raises(
        DataError, match="line 2: 1 could be the item of that number or the one at that place"
    ):
        read(TASKS + "1,1,3,1,2,1,3\n1,2,2,3,1,2,1\n")
    same = read(TASKS + "1,1,1,2,3,1,3\n2,1,1,2,3,2,3\n")  # both readings agree
    assert stated(same) == {1: [(1, 2), (1, 3), (2, 3)], 2: [(1, 3), (2, 1), (2, 3)]}


def test_columns_of_items_count_where_some_are_blank(read):
    votes = read(TASKS + "1,1,,b,c,item2,item3\n2,1,a,,c,3,1\n")
    assert stated(votes) == {1: [("b", "c")], 2: [("c", "a")]}
    with pytest.raises(DataError, match="line 2: best 'item1' was not shown"):
        read(TASKS + "1,1,,b,c,item1,item3\n")


def test_choices(read):
    wide = read("respondent,option1,option2,option3,choice\n1,a,b,c,b\n2,c,a,b,\n")
    assert stated(wide) == {1: [("b", "a"), ("b", "c")]}
    assert audit(wide) == {"tasks without an answer": 1, "agents without a comparison": 1}
    long = read("respondent,task,alternative,chosen\n1,1,a,0\n1,1,b,1\n1,1,c,0\n1,2,a,1\n1,2,c,0\n")
    assert stated(long) == {1: [("a", "c"), ("b", "a"), ("b", "c")]}


def test_an_item_called_na(read):
    for row in ("1,NA,b,c,b", "1,a,b,NA,NA"):
        with pytest.raises(DataError, match="line 2: 'NA' could be an item"):
            read(f"respondent,option1,option2,option3,choice\n{row}\n2,a,b,c,a\n")
    padded = read("respondent,option1,option2,option3,choice\n1,a,b,NA,b\n2,a,b,c,NA\n")
    assert stated(padded) == {1: [("b", "a")]}
    with pytest.raises(DataError, match="line 2: an item is missing or called NA"):
        read("respondent,shown,choice\n1,a;NA,NA\n2,a;b,b\n")
    with pytest.raises(DataError, match="line 3: an item is missing or called NA"):
        read("respondent,task,item,chosen\n1,1,a,0\n1,1,NA,1\n1,1,b,0\n")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("ann,1,a,b,c,a,a", "best and worst at once"),
        ("ann,1,a,b,c,x,a", "best 'x' was not shown"),
        ("ann,1,a,b,a,b,a", "'a' is shown twice"),
    ],
)
def test_tasks_that_contradict_themselves(read, row, why):
    with pytest.raises(DataError, match=why):
        read(f"respondent,task,item1,item2,item3,best,worst\n{row}\n")


def test_a_task_with_two_best_items(read):
    with pytest.raises(DataError, match="line 3: a second item of the same task"):
        read("respondent,task,item,best,worst\n1,1,a,1,0\n1,1,b,1,0\n1,1,c,0,1\n")


def test_choice_columns_beside_best_and_worst_are_no_ranks(read):
    """Shown items called choice1, choice2 are not taken for places of a ballot."""
    with pytest.raises(DataError):
        read("respondent,choice1,choice2,choice3,best,worst\n1,a,b,c,a,c\n2,b,c,a,b,a\n")


# -- a profile, written and read back ----------------------------------------------------------------------


def _csv(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["matches", "wide", "long"])
def test_tasks_come_back_as_written(read, form, seed):
    rng = np.random.default_rng(seed)
    names = [["Ann", "Bo, Jr.", "Cy|C", "Dé", "Ed;x"], ["10", "20", "7", "8", "9"]][seed % 2]
    orders = {f"r{k}": rng.permutation(5).tolist() for k in range(3)}  # each answers by an order: no cycles
    expected = {agent: [] for agent in orders}
    rows = []
    for agent, order in orders.items():
        for task in range(4):
            shown = rng.choice(5, size=2 if form == "matches" else 4, replace=False).tolist()
            ranked = sorted(shown, key=order.index)
            if form == "matches":
                rows.append([agent, names[shown[0]], names[shown[1]], names[ranked[0]]])
                expected[agent].append((ranked[0], ranked[1]))
                continue
            best, worst = ranked[0], ranked[-1]
            expected[agent] += [(best, other) for other in shown if other != best]
            expected[agent] += [(other, worst) for other in shown if other not in (best, worst)]
            if form == "wide":
                rows.append([agent, task, *(names[k] for k in shown), names[best], names[worst]])
            else:
                rows += [[agent, task, names[k], (k == best) - (k == worst)] for k in shown]
    header = {
        "matches": ["annotator", "item_a", "item_b", "winner"],
        "wide": ["respondent", "task", "item1", "item2", "item3", "item4", "best", "worst"],
        "long": ["respondent", "task", "item", "maxdiff"],
    }[form]
    found = stated(read(_csv([header, *rows])))
    called = {agent: sorted((names[a], names[b]) for a, b in pairs) for agent, pairs in expected.items()}
    assert {a: sorted((str(x), str(y)) for x, y in pairs) for a, pairs in found.items()} == called


@pytest.mark.parametrize(
    "text",
    [
        ARENA.format("A", "B", "tie", "B"),
        "respondent,task,item1,item2,item3,best,worst\n1,1,a,b,c,a,c\n2,1,a,b,c,b,c\n",
    ],
)
def test_a_hundred_damaged_copies_leave_other_lines_alone(read, text):
    """Damage within one line is refused, or what all other lines say is read as before."""
    rng = np.random.default_rng(1)
    head, *lines = text.rstrip("\n").split("\n")

    def said(body):
        votes = read("\n".join([head, *body]) + "\n", on_cycle="keep")
        pairs = [(str(votes.items[a]), str(votes.items[b])) for a, b in votes.pairs.tolist()]
        who = np.repeat(votes.agents.astype(str), np.diff(votes.pair_indptr)).tolist()
        return Counter((agent, *pair) for agent, pair in zip(who, pairs, strict=True))

    refused = 0
    for _ in range(100):
        at = int(rng.integers(len(lines)))
        line = lines[at]
        where, length = int(rng.integers(len(line))), int(rng.integers(1, 8))
        new = "" if rng.integers(2) else "".join(chr(c) for c in rng.integers(32, 127, length))
        copy = [*lines[:at], line[:where] + new + line[where + length :], *lines[at + 1 :]]
        try:
            found = said(copy)
        except PermixError:
            refused += 1
            continue
        others = said([each for place, each in enumerate(lines) if place != at])
        assert others <= found
        assert (found - others).total() <= 3  # what one line may say
    assert refused > 10


@pytest.mark.parametrize("sides", [("_best", "_worst"), (" most", " least"), ("_b", "_w")])
def test_answers_without_what_was_shown_are_no_ranks(read, sides):
    """Numbers of items looked like ranks of the questions."""
    best, worst = sides
    head = ",".join(f"Q{task}{side}" for task in (1, 2) for side in (best, worst))
    with pytest.raises(DataError, match="which items it showed"):
        read(f"id,{head}\n1,1,2,3,4\n2,2,1,4,3\n")


def test_respondents_of_sawtooth(read):
    votes = read("sys_RespNum,Set,Item1,Item2,Item3,Best,Worst\n7,1,a,b,c,a,c\n7,2,b,d,e,d,e\n")
    assert list(stated(votes)) == [7]
    assert len(stated(votes)[7]) == 6


# -- winners and losers, and comparisons that nobody decided ------------------------------------------------


@pytest.mark.parametrize("name", ["tie", "Draw", "is_tie", "tied"])
@pytest.mark.parametrize("words", [("0", "1"), ("False", "True"), ("no", "yes"), ("", "x")])
def test_a_winner_of_a_tie_has_not_won(read, name, words):
    """The column was passed over, so that ties were wins of whoever stood first."""
    text = f"winner,loser,{name},judge\nx,y,{words[0]},ann\ny,z,{words[1]},ann\nz,x,{words[0]},bob\n"
    for options in ({}, {"layout": "pairs"}):
        votes = read(text, **options)
        assert stated(votes) == {"ann": [("x", "y")], "bob": [("z", "x")]}
        assert audit(votes)["ties"] == 1
    both = read(text, ties="both", on_cycle="keep")
    assert stated(both)["ann"] == [("x", "y"), ("y", "z"), ("z", "y")]
    with pytest.raises(DataError, match="line 3: a tie"):
        read(text, ties="error")


@pytest.mark.parametrize("word", ["skip", "unsure", "don't know", "-", "n/a", ""])
def test_comparisons_that_nobody_decided_are_counted(read, word):
    text = f"voter,left,right,choice\n1,x,y,left\n1,y,z,right\n2,x,z,{word}\n2,x,y,left\n"
    votes = read(text)
    assert stated(votes) == {1: [("x", "y"), ("z", "y")], 2: [("x", "y")]}
    assert audit(votes) == {"comparisons without an answer": 1}


def test_an_item_called_skip_is_an_item(read):
    votes = read("voter,left,right,choice\n1,skip,y,skip\n1,y,z,z\n")
    assert stated(votes) == {1: [("skip", "y"), ("z", "y")]}


def test_an_answer_is_no_agent(read):
    """A column called response was taken for who answered."""
    assert stated(read("left,right,response\nx,y,left\ny,z,right\n")) == {1: [("x", "y")], 2: [("z", "y")]}
    assert stated(read("task,item,response\n1,x,1\n1,y,0\n1,z,-1\n")) == {
        1: [("x", "y"), ("x", "z"), ("y", "z")]
    }
    text = "sys_RespNum,Task,item,Response\n1,1,x,1\n1,1,y,0\n1,1,z,-1\n"
    assert stated(read(text)) == {1: [("x", "y"), ("x", "z"), ("y", "z")]}


def test_a_task_of_several_lines_is_one_agent(read):
    """The comparisons of one task were those of as many agents as it has lines."""
    votes = read("set,item,best,worst\n1,x,1,0\n1,y,0,0\n1,z,0,1\n2,x,0,1\n2,z,1,0\n")
    assert stated(votes) == {1: [("x", "y"), ("x", "z"), ("y", "z")], 2: [("z", "x")]}
    assert audit(votes) == {"no column names the agents": 2}


def test_alternatives_that_may_be_places_are_told(read):
    text = "resp,task,alt,price,choice\n1,1,1,10,1\n1,1,2,12,0\n1,2,1,9,1\n1,2,2,12,0\n"
    with pytest.warns(PermixWarning, match="'alt' holds 1 to 2 in every task.*conjoint"):
        read(text)


@pytest.mark.parametrize("called", ["response", "choice"])
def test_a_sign_beside_left_and_right_is_asked_about(read, called):
    text = f"judge,left,right,{called}\nj,A,B,{{}}\nj,A,C,{{}}\nk,A,C,{{}}\n"
    with pytest.raises(DataError, match=r"-1 in .* could be the left side"):
        read(text.format(-1, 1, 0))
    votes = read(text.format("left", "right", "tie"))
    assert stated(votes) == {"j": [("A", "B"), ("C", "A")]}


def test_the_side_that_a_sign_names_is_told(read):
    text = "team_a,team_b,result\nx,y,1\ny,z,-1\n"
    with pytest.warns(PermixWarning, match=r"-1 in 'result' is read as a vote for 'team_b', and 1 as"):
        read(text)
