"""BLT files: what they say comes back, and damage to one line leaves the other ballots as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import permix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, FileFormatError, PermixError, PermixWarning

EXAMPLE = """# an election
4 2
-2
3 1 3 4 0   # three ballots
4 1 3 2 0
2 4 1=3 0
1 2 0
2 2=4=3 1 0
1 0
1 3 - 4 0
0
"Adam"
"Basil #2"
"Charlotte \\"Lottie\\" Bo"
"Donald"
"Town council"
"""


def test_an_example(read):
    votes = read(EXAMPLE, "x.blt")
    assert isinstance(votes, Preferences)
    assert votes.items == ("Adam", 'Charlotte "Lottie" Bo', "Donald")
    assert votes.n_agents == 12
    assert votes.counts.tolist() == [3, 4, 2, 2, 1]
    assert (votes.metadata["SEATS"], votes.metadata["TITLE"]) == (2, "Town council")
    told = {entry["found"]: entry["ballots"] for entry in votes.metadata["CLEANING"]}
    # Basil stands on 4 + 1 + 2 ballots; one ballot names Basil alone and one names nobody.
    assert told == {"candidates who withdrew": 7, "ballots without a choice": 2, "skipped ranks": 1}


@pytest.mark.parametrize("name", ["x.txt", "x.dat", "x"])
def test_it_is_found_by_its_content(read, name):
    assert read(EXAMPLE, name) == read(EXAMPLE, "x.blt")


def test_ids_names_without_quotes_and_a_missing_title(read):
    with pytest.warns(PermixWarning, match="if the last, 'Bo', is the title, a name is missing"):
        votes = read('2 1\n(a7) 1 2 1 0\n(b9) 1 1 0\n0\nAnn Lee\n"Bo"\n', "x.blt")
    assert votes.agents.tolist() == ["a7", "b9"]
    assert votes.items == ("Ann Lee", "Bo")
    assert votes.orders.tolist() == [[1, 0], [0, -1]]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("3 1 3 4 0", "3 1 3 5 0"), "line 4: '5' is none of the candidates 1 to 4"),
        (("3 1 3 4 0", "3 1 3 1 0"), "line 4: candidate 1 is listed twice"),
        (("3 1 3 4 0", "3 1 3 4"), "line 4: a ballot ends with 0"),
        (("3 1 3 4 0", "3 1 0 4 0"), "line 4: one ballot in a line"),
        (("3 1 3 4 0", "1.5 1 3 4 0"), "line 4: the weight 1.5 is not a whole number"),
        (('"Donald"', '"Adam"'), "two candidates are called 'Adam'"),
        (('"Donald"\n"Town council"\n', ""), "4 candidates are said to stand, and 3 names"),
        (("\n0\n", "\n"), "no line with 0 alone|names"),
        (("4 2\n", "4\n"), "line 2: the first line has the number of candidates and of seats"),
    ],
)
def test_what_is_wrong_is_named(read, change, why):
    with pytest.raises(FileFormatError, match=why):
        read(EXAMPLE.replace(*change), "x.blt")


@given(data=st.data())
def test_profiles_come_back(tmp_path_factory, data):
    names = data.draw(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8),
            min_size=2,
            max_size=5,
            unique=True,
        )
    )
    rows = []
    for _ in range(data.draw(st.integers(1, 6))):
        order = data.draw(st.permutations(names))[: data.draw(st.integers(1, len(names)))]
        cuts = [data.draw(st.booleans()) for _ in order[1:]]
        groups = [[order[0]]]
        for item, tie in zip(order[1:], cuts, strict=True):
            groups[-1].append(item) if tie else groups.append([item])
        rows.append(groups)
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    votes = Preferences.from_levels(rows, items=names, rest_below=True, counts=counts)
    path = tmp_path_factory.mktemp("blt") / "x.blt"
    permix.write(votes, path)
    back = permix.read(path)
    back = Preferences.from_rankings(back) if isinstance(back, Rankings) else back
    assert back.items == tuple(names)
    assert np.array_equal(back.pairwise_counts(), votes.pairwise_counts())
    assert back.n_agents == votes.n_agents


def test_what_it_cannot_hold_is_refused(tmp_path):
    pairs = Preferences.from_pairs([("a", "x", "y")])
    with pytest.raises(DataError, match="pairwise statements have no place in BLT"):
        permix.write(pairs, tmp_path / "x.blt")
    some = Rankings.from_orders([["a", "b"]], items=["a", "b", "c"], unlisted="unknown")
    with pytest.raises(DataError, match="cannot say that unlisted items are unknown"):
        permix.write(some, tmp_path / "x.blt")


def test_a_hundred_damaged_copies_leave_other_ballots_alone(read):
    """Damage to one line is refused, or the ballots of all other lines are read as before."""
    rng = np.random.default_rng(4)
    ballots = ["3 1 3 4 0", "4 1 3 2 0", "2 4 1 3 0", "5 2 4 0", "1 3 4 2 0"]
    names = ["Adam", "Basil", "Cy", "Donald"]
    head, foot = "4 2", ["0", *(f'"{name}"' for name in names), '"Title"']

    def stated(votes):
        return [
            (tuple(votes.items[item] for item in row if item >= 0), int(n))
            for row, n in zip(votes.orders.tolist(), votes.counts, strict=True)
        ]

    whole = stated(read("\n".join([head, *ballots, *foot]), "x.blt"))
    refused = 0
    for _ in range(100):
        at = int(rng.integers(len(ballots)))
        line = list(ballots[at])
        where, length = int(rng.integers(len(line))), int(rng.integers(1, 4))
        line[where : where + length] = "".join(
            rng.choice(list('0123456789 =-x"#'), size=int(rng.integers(4)))
        )
        copy = [*ballots[:at], "".join(line), *ballots[at + 1 :]]
        try:
            votes = read("\n".join([head, *copy, *foot]), "x.blt")
        except PermixError:
            refused += 1
            continue
        if isinstance(votes, Preferences):
            continue
        left = stated(votes)
        for place, ballot in enumerate(whole):
            assert place == at or ballot in left
        assert len(left) <= len(ballots)
    assert refused > 20
