"""ABIF: lines of counts and candidates, with ties and ratings, read and written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import permix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, FileFormatError, PermixError

TEXT = """\ufeff# a comment
{"title": "Capital"}
=Me:[Memphis, TN]
=Na:[Nashville, TN]
42: Me/400 > Na/200 > Chat/133 > [Knox ville]/45
26:Na>Chat=[Knox ville]>Me
3*Na,"Chat"
5:Chat/1,Na/5,Me/1
"""


@pytest.fixture
def read(read):
    """Files are ABIF unless their name says otherwise."""
    return lambda text, name="x.abif", **options: read(text, name, **options)


def levels(votes):
    """Groups of tied items of each row, by name."""
    votes = votes if isinstance(votes, Preferences) else Preferences.from_rankings(votes)
    rows = []
    for start, end in zip(votes.level_indptr[:-1], votes.level_indptr[1:], strict=True):
        groups = {}
        for item, level in zip(votes.level_items[start:end], votes.levels[start:end], strict=True):
            groups.setdefault(int(level), set()).add(str(votes.items[item]))
        rows.append([groups[level] for level in sorted(groups)])
    return rows


@pytest.mark.parametrize(("name", "crlf"), [("x.abif", False), ("x.abif", True), ("x.txt", False)])
def test_every_kind_of_line(read, name, crlf):
    votes = read(TEXT.replace("\n", "\r\n") if crlf else TEXT, name)
    assert votes.items == ("Memphis, TN", "Nashville, TN", "Chat", "Knox ville")
    assert votes.counts.tolist() == [42, 26, 3, 5]
    me, na, chat, knox = ({each} for each in votes.items)
    assert levels(votes) == [[me, na, chat, knox], [na, chat | knox, me], [na | chat], [na, chat | me]]
    assert votes.metadata["TITLE"] == "Capital"
    assert votes.rest_below.all()


def test_what_is_left_out_is_counted(read):
    votes = read("=A:[Ann]\n=B:[Bo]\n=C:[Cy]\n0:C\n5:\n2:A>B\n")
    assert isinstance(votes, Rankings)
    assert votes.items == ("Ann", "Bo", "Cy")
    found = {entry["found"]: entry["ballots"] for entry in votes.metadata["CLEANING"]}
    assert found == {"ballots without a choice": 5, "rows with a count of 0": 0}
    assert read("2:A>B\n", unlisted="unknown").unlisted_below.all()  # all are listed
    assert not read("2:A>B\n1:C\n", unlisted="unknown").unlisted_below[0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("3:A/2>B/5", "contradict the order"),
        ("3:A/2=B/5", "tied have different ratings"),
        ("3:A/2>B", "'B' has no rating"),
        ("3:A*2,B*1", "weights"),
        ("3:A>B>A", "listed twice"),
        ("3:A>>B", "a candidate is missing"),
        ("3:A>", "a candidate is missing"),
        ("3:Ann Lee>B", "stand in brackets"),
        ("A>B", "neither a comment"),
        ("-3:A>B", "neither a comment"),
        ("1.5:A>B", "neither a comment"),
        ("3:[A>B", "a candidate is missing"),
        ("3:[]>B", "without a name"),
        ("{title: x}", "no JSON"),
        ("=A[Ann]", "declared as"),
    ],
)
def test_lines_that_are_refused(read, line, why):
    with pytest.raises(FileFormatError, match=f"line 2: .*{why}"):
        read(f"1:A>B\n{line}\n")


def test_short_names_that_stand_for_two(read):
    with pytest.raises(FileFormatError, match="'A' stands for two"):
        read("=A:[Ann]\n=A:[Anne]\n1:A\n")
    with pytest.raises(FileFormatError, match="same candidate"):
        read("=A:[Ann]\n=B:[Ann]\n1:A\n")


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=8
).filter(
    lambda name: name == name.strip() and name not in ("NA", "NaN", "nan") and not name.startswith("\ufeff")
)


@given(st.data())
def test_profiles_come_back(tmp_path_factory, data):
    names = data.draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    n = data.draw(st.integers(1, 4))
    rows = []
    for _ in range(n):
        order = data.draw(st.permutations(range(len(names))))[: data.draw(st.integers(1, len(names)))]
        groups = [[names[order[0]]]]
        for item in order[1:]:
            if data.draw(st.booleans()):
                groups.append([])
            groups[-1].append(names[item])
        rows.append(groups)
    votes = Preferences.from_levels(
        rows, items=names, counts=data.draw(st.lists(st.integers(1, 99), min_size=n, max_size=n))
    )
    path = tmp_path_factory.mktemp("abif") / "x.abif"
    permix.write(votes, path)
    back = permix.read(path)
    assert back.items == tuple(names)
    tally: dict = {}
    for each in (votes, back):
        for groups, count in zip(levels(each), each.counts.tolist(), strict=True):
            key = str([sorted(group) for group in groups])
            tally[key] = tally.get(key, 0) + (count if each is votes else -count)
    assert set(tally.values()) == {0}


def test_what_the_format_cannot_hold(tmp_path):
    for votes in (
        Preferences.from_pairs([(0, "a", "b")]),
        Rankings.from_orders([["a"]], items=["a", "b"], unlisted="unknown"),
    ):
        with pytest.raises(DataError, match=r"ABIF|no place"):
            permix.write(votes, tmp_path / "x.abif")


def test_damaged_copies(read):
    """Every count that comes back was written, or the file is refused."""
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(100):
        content = list(TEXT)
        at, length = int(rng.integers(len(TEXT))), int(rng.integers(1, 20))
        content[at : at + length] = "" if rng.integers(2) else [chr(c) for c in rng.integers(32, 127, length)]
        try:
            assert read("".join(content)).n_agents > 0
        except PermixError:
            refused += 1
    assert refused > 20


def test_metadata_whose_names_have_no_quotes(read):
    votes = read('{ballotcount: 3, contest: "0020"}\n3:A>B\n')
    assert (votes.metadata["BALLOTCOUNT"], votes.metadata["CONTEST"]) == (3, "0020")
    with pytest.raises(FileFormatError, match="no JSON"):
        read("{ballotcount: three}\n3:A>B\n")
