"""Rules for marks, against a reading of each ballot rank by rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from permix.data.ballots import Ballots
from permix.data.cleaning import clean
from permix.data.cleaning_candidates import audit_of, names_alike
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, ParameterError
from permix.registries import BALLOT_RULES as RULES

NAMES = ("a", "b", "c", "d")


def naive(ballot, overvotes, skipped, repeats):
    """The ranking that one ballot gives: None where it is dropped. None among marks is somebody unnamed."""
    found, gap = [], 0
    last = max((rank for rank, marks in enumerate(ballot) if len(marks) == 1 and marks[0]), default=-1)
    if overvotes == "drop" and any(len(marks) > 1 or None in marks for marks in ballot):
        return None
    allowed = {"stop-after-two": 1, "stop-after-one": 0, "close-up": 99}[skipped]
    for rank, marks in enumerate(ballot):
        if len(marks) > 1 or None in marks:
            if overvotes == "truncate":
                break
            gap = 0
            continue
        if not marks:
            gap += 1
            if gap > allowed and rank < last:
                break
            continue
        gap = 0
        if marks[0] in found:
            if repeats == "truncate":
                break
            continue
        found.append(marks[0])
    return found


def random_ballots(seed, n=400, n_ranks=5):
    rng = np.random.default_rng(seed)
    ballots = []
    for _ in range(n):
        ballot = []
        for _ in range(n_ranks):
            how = rng.random()
            if how < 0.25:
                ballot.append([])
            elif how < 0.33:
                ballot.append(list(rng.choice(NAMES, size=2, replace=False)))
            elif how < 0.36:
                ballot.append([None])
            else:
                ballot.append([str(rng.choice(NAMES))])
        ballots.append(ballot)
    return ballots


@pytest.mark.parametrize("overvotes", ["truncate", "skip", "drop"])
@pytest.mark.parametrize(("skipped", "repeats"), list(product(RULES["skipped"], RULES["repeats"])))
def test_rules_are_those_of_a_reading_rank_by_rank(overvotes, skipped, repeats):
    ballots = random_ballots(1)
    marked = Ballots.from_rows(ballots, items=NAMES, agents=np.arange(len(ballots)))
    rankings = clean(marked, overvotes=overvotes, skipped=skipped, repeats=repeats)
    found = {
        int(agent): [NAMES[item] for item in order if item >= 0]
        for agent, order in zip(rankings.agents, rankings.orders, strict=True)
    }
    for row, ballot in enumerate(ballots):
        expected = naive(ballot, overvotes, skipped, repeats)
        assert found.get(row) == (expected or None), ballot
    # The twin with another rule is not accepted: the ballots tell rules apart.
    other = "close-up" if skipped != "close-up" else "stop-after-one"
    assert any(naive(b, overvotes, skipped, repeats) != naive(b, overvotes, other, repeats) for b in ballots)


def test_a_drawn_candidate_is_one_of_those_marked_and_the_seed_decides():
    marked = Ballots.from_rows([[["a", "b"], ["c"]]] * 400, items=NAMES)
    first = clean(marked, overvotes="random", random_state=1)
    assert set(first.orders[:, 0]) == {0, 1}
    assert abs(np.mean(first.orders[:, 0]) - 0.5) < 0.1  # four standard errors
    assert (first.orders[:, 1] == 2).all()
    again, other = (clean(marked, overvotes="random", random_state=seed).orders for seed in (1, 2))
    np.testing.assert_array_equal(first.orders, again)
    assert not np.array_equal(first.orders, other)


def test_nothing_is_dropped_without_being_counted():
    rows = [
        [["a"], ["b", "c"]],
        [["a"], [], ["b"]],
        [["a"], [], [], ["b"]],
        [["a"], ["a"]],
        [[], []],
        [["b"]],
    ]
    marked = Ballots.from_rows(rows, items=NAMES, counts=[1, 10, 100, 1000, 10_000, 100_000])
    rankings = clean(marked)
    audit = {entry.found.split(":")[0]: entry.ballots for entry in audit_of(rankings.metadata)}
    assert audit == {
        "overvotes": 1,
        "skipped ranks": 110,
        "candidates ranked again": 1000,
        "ballots without a choice": 10_000,
    }
    assert rankings.n_agents == marked.n_ballots - 10_000
    said = next(entry.done for entry in audit_of(rankings.metadata) if entry.found == "skipped ranks")
    assert "100 end where two ranks in a row" in said


def test_plain_ballots_need_no_rule():
    rankings = clean(Ballots.from_rows([[["a"], ["b"]], [["b"]]]))
    assert audit_of(rankings.metadata) == []
    assert rankings.items == ("a", "b")


def test_write_ins_are_kept_merged_or_left_out():
    rows = [[["Ann"], ["a"]], [["a"], ["Bo"], ["b"]], [["Ann"], ["Bo"], ["b"]]]
    marked = Ballots.from_rows(rows, write_ins=("Ann", "Bo"))
    assert clean(marked).items == ("Ann", "a", "Bo", "b")
    merged = clean(marked, write_ins="merge")
    assert merged.items == ("write-in", "a", "b")
    # Two write-ins in turn are one candidate, ranked again.
    assert [[merged.items[i] for i in row if i >= 0] for row in merged.orders] == [
        ["write-in", "a"],
        ["a", "write-in", "b"],
        ["write-in", "b"],
    ]
    dropped = clean(marked, write_ins="drop", skipped="stop-after-one")
    assert dropped.items == ("a", "b")
    # A rank whose candidate is left out was not skipped.
    assert [row[row >= 0].tolist() for row in dropped.orders] == [[0], [0, 1], [1]]


def test_support_and_answers():
    rows = [[["a"], ["b"]]] * 6 + [[["a"], ["c"], ["b"]]] * 3 + [[["c"]]]
    marked = Ballots.from_rows(rows)
    assert clean(marked, min_support=5).items == ("a", "b")
    assert clean(marked, min_support=0.5).items == ("a", "b")
    assert clean(marked, min_support=0.4).items == ("a", "b", "c")
    assert clean(marked, min_answers=2).n_agents == 9
    with pytest.raises(DataError, match="no candidate is left"):
        clean(marked, min_support=99)
    with pytest.raises(DataError, match="no ballot is left"):
        clean(marked, min_answers=4)


def test_names_are_merged_in_comparisons_and_ratings():
    pairs = [
        *(("a", "Smith, J", "Roe"), ("a", "J Smith", "Poe")),
        *(("b", "Roe", "j smith"), ("b", "J. Smith", "Smith, J")),
    ]
    votes = clean(Preferences.from_pairs(pairs), names="merge")
    assert votes.items == ("Smith, J", "Roe", "Poe")
    assert votes.prefers(0, "Smith, J", "Poe")
    assert votes.prefers(1, "Roe", "Smith, J")
    told = {entry["found"]: entry["ballots"] for entry in votes.metadata["CLEANING"]}
    assert told == {"names that look alike": 2, "items compared with themselves": 1}
    rated = [("a", "Tea", 5), ("a", "tea", 2), ("a", "Milk", 3), ("b", "tea", 1), ("b", "Milk", 1)]
    votes = clean(Preferences.from_ratings(rated), names="merge")
    assert votes.items == ("Tea", "Milk")
    assert votes.prefers(0, "Tea", "Milk")
    assert not votes.prefers(1, "Tea", "Milk")
    assert not votes.prefers(1, "Milk", "Tea")
    told = {entry["found"]: entry["ballots"] for entry in votes.metadata["CLEANING"]}
    assert told == {"names that look alike": 2, "items rated twice under such names": 1}
    cycle = Preferences.from_pairs([("a", "X", "y"), ("a", "Y", "x")])
    with pytest.raises(DataError, match=r"with names that look alike as one.*'a'"):
        clean(cycle, names="merge")


def test_names_that_look_alike_are_told_and_merged_if_asked():
    rows = [[["Smith, J."], ["Jones"]], [["J Smith"], ["JONES"]], [["Jones"]]]
    marked = Ballots.from_rows(rows)
    told = audit_of(clean(marked).metadata)
    assert [entry.which for entry in told] == [("Smith, J.", "J Smith"), ("Jones", "JONES")]
    assert clean(marked).n_items == 4
    merged = clean(marked, names="merge")
    assert merged.items == ("Smith, J.", "Jones")
    assert merged.orders.tolist() == [[0, 1], [0, 1], [1, -1]]


def test_names_that_differ_are_not_alike():
    assert names_alike(["Ann Lee", "Ann Li", "Lee Ann B", "李", "王"]) == []


@pytest.mark.parametrize("rule", list(RULES))
def test_unknown_rules_are_refused(rule):
    with pytest.raises(ParameterError, match=rule):
        clean(Ballots.from_rows([[["a"]]]), **{rule: "guess"})


def test_the_first_of_each_rule_is_the_default():
    from permix.data.cleaning import Rules

    assert {name: getattr(Rules(), name) for name in RULES} == {
        name: words[0] for name, words in RULES.items()
    }


def levels_of(table):
    """What each row says, as lists of names at one rank."""
    if isinstance(table, Rankings):
        return [[[table.items[i]] for i in row if i >= 0] for row in table.orders.tolist()]
    groups = []
    for row in range(len(table)):
        span = slice(int(table.level_indptr[row]), int(table.level_indptr[row + 1]))
        found = {}
        for item, level in zip(table.level_items[span], table.levels[span], strict=True):
            found.setdefault(int(level), []).append(table.items[item])
        groups.append([sorted(found[level]) for level in sorted(found)])
    return groups


def test_ties_are_kept_broken_or_end_the_ranking():
    rows = [
        [["a", "b"], ["c"]],
        [["c"], ["d", "a", "b"]],
        [["a"], [], ["b", "d"]],
        [["b"], ["b", "c"]],
        [["d"]],
    ]
    marked = Ballots.from_rows(rows, items=NAMES, agents=np.arange(5))
    kept = levels_of(clean(marked, tied_ranks="keep"))
    assert kept == [
        [["a", "b"], ["c"]],
        [["c"], ["a", "b", "d"]],
        [["a"], ["b", "d"]],
        [["b"], ["c"]],
        [["d"]],
    ]
    assert levels_of(clean(marked, tied_ranks="truncate")) == [[["c"]], [["a"]], [["b"]], [["d"]]]
    broken = clean(Ballots.from_rows(rows * 200, items=NAMES), tied_ranks="break", random_state=3)
    assert isinstance(broken, Rankings)
    for found, level in zip(levels_of(broken), kept * 200, strict=True):
        flat = [name for [name] in found]
        assert [sorted(flat[: len(level[0])])] == [level[0]]
        assert sorted(flat) == sorted(name for names in level for name in names)
    first = broken.orders[::5, 0]
    assert abs(np.mean(first == 0) - 0.5) < 4 * np.sqrt(0.25 / 200)
    with pytest.raises(DataError, match="give one of them"):
        clean(marked, tied_ranks="keep", overvotes="skip")


def test_ties_of_rankings_stay_unless_a_rule_is_given():
    tied = Preferences.from_levels(
        [[["a", "b"], "c"], ["c", "a"], [["a"], ["b", "c"]]], items=["a", "b", "c"]
    )
    # The last ties the rest, which nobody ranked: it is no tie.
    assert levels_of(clean(tied, min_answers=2)) == [[["a", "b"], ["c"]], [["c"], ["a"]]]
    assert levels_of(clean(tied, overvotes="truncate")) == [[["c"], ["a"]], [["a"]]]
    assert isinstance(clean(tied, tied_ranks="break"), Rankings)


def test_weak_candidates_may_be_one():
    rows = [[["a"], ["x"]], [["a"], ["y"]], [["x"], ["y"], ["a"]], [["b"], ["a"]], [["b"]]]
    merged = clean(Ballots.from_rows(rows), min_support=3, below_support="merge")
    assert levels_of(merged) == [[["a"], ["other"]]] * 2 + [
        [["other"], ["a"]],
        [["other"], ["a"]],
        [["other"]],
    ]
    said = {entry.found: entry.ballots for entry in audit_of(merged.metadata)}
    assert said == {"candidates on fewer than 3 ballots": 5, "candidates ranked again": 1}
    with pytest.raises(DataError, match="no candidate is left"):
        clean(Ballots.from_rows(rows), min_support=9, below_support="merge")


def test_comparisons_and_ratings_have_thresholds_too():
    pairs = [("ann", "a", "b"), ("ann", "b", "c"), ("bo", "a", "b"), ("cy", "b", "z"), ("di", "a", "c")]
    table = Preferences.from_pairs(pairs)
    kept = clean(table, min_support=2, min_answers=2)
    assert kept.items == ("a", "b", "c")
    assert kept.agents.tolist() == ["ann", "bo", "di"]  # cy has nothing left to say
    assert [entry.left_out for entry in audit_of(kept.metadata)] == [0, 1]
    with pytest.raises(DataError, match="comparisons have no ranks"):
        clean(table, overvotes="skip")
    rated = Preferences.from_ratings(
        [("u", "x", 5), ("u", "y", 3), ("v", "x", 1), ("w", "z", 2), ("w", "x", 1)]
    )
    assert clean(rated, min_support=2).items == ("x",)
    assert levels_of(clean(rated, min_answers=2)) == [[["x"], ["y"]], [["z"], ["x"]]]


@pytest.mark.parametrize(
    "rules", [{}, {"overvotes": "drop"}, {"min_answers": 3}, {"min_support": 300}, {"tied_ranks": "keep"}]
)
def test_what_was_read_is_kept_or_counted_as_left_out(rules):
    ballots = random_ballots(5)
    counts = np.random.default_rng(0).integers(1, 9, size=len(ballots))
    marked = Ballots.from_rows(ballots, items=NAMES, counts=counts)
    found = clean(marked, **rules)
    assert found.n_agents + sum(entry.left_out for entry in audit_of(found.metadata)) == counts.sum()


def test_a_share_is_exact_and_the_audit_names_the_number_compared():
    # In floating point 0.07 * 100 is more than 7, and 0.29 * 100 less than 29.
    rows = [[["a"], ["b"]] if at < 7 else [["a"]] for at in range(100)]
    assert clean(Ballots.from_rows(rows), min_support=0.07).items == ("a", "b")
    weaker = clean(Ballots.from_rows(rows), min_support=0.071)
    assert weaker.items == ("a",)
    assert audit_of(weaker.metadata)[0].found == "candidates on fewer than 8 ballots"


@pytest.mark.parametrize(
    "order", [("Zed", "JONES", "Jones"), ("Jones", "JONES", "Zed"), ("JONES", "Zed", "Jones")]
)
@pytest.mark.parametrize(("write_ins", "others"), [("merge", {"write-in"}), ("drop", set())])
def test_a_name_joined_to_a_candidate_is_no_write_in(order, write_ins, others):
    marked = Ballots.from_rows([[[name]] for name in order], items=order, write_ins=("Zed", "JONES"))
    kept = clean(marked, names="merge", write_ins=write_ins)
    assert set(kept.items) == {"Jones"} | others
    firsts = [kept.items[row[0]] for row in kept.orders.tolist()]
    assert firsts.count("Jones") == 2


@pytest.mark.parametrize(
    "rule",
    [{"min_support": value} for value in (None, np.inf, np.nan, -1, "2")]
    + [{"min_answers": value} for value in (None, np.inf, 2.5, -1, "2")],
)
def test_thresholds_that_are_no_numbers_are_refused(rule):
    with pytest.raises(ParameterError, match=next(iter(rule))):
        clean(Ballots.from_rows([[["a"], ["b"]]]), **rule)


@pytest.mark.parametrize("rule", [{"tied_ranks": "break"}, {"overvotes": "random"}])
def test_only_tied_ballots_are_drawn_one_by_one(rule):
    rows = [[["a"], ["b"]], [["b"], ["a", "c"]], [["c"]]]
    found = clean(Ballots.from_rows(rows, counts=[3 * 10**9, 40, 3 * 10**9]), **rule)
    assert len(found) == 42
    assert found.n_agents == 6 * 10**9 + 40
    seconds = [found.items[row[1]] for row in found.orders[1:41].tolist()]
    assert 5 < seconds.count("a") < 35  # of 40 fair draws; outside with probability below 1e-6
    with pytest.raises(DataError, match=r"3,000,000,000 ballots"):
        clean(Ballots.from_rows(rows, counts=[1, 3 * 10**9, 1]), **rule)


def test_columns_that_are_typed_already_stay_so():
    votes = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]])
    votes = votes.with_covariates({"precinct": [1.0, 2.0, None], "answer": ["1", "2", "2"]})
    for rule in ({"min_answers": 1}, {"tied_ranks": "break"}):
        kept = clean(votes, **rule).covariates
        assert kept["precinct"].dtype == np.float64
        assert kept["answer"].tolist() == ["1", "2", "2"]
