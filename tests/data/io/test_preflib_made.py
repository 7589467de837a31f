"""PrefLib files as the collection has them, made: every kind, odd names, counts, ends of lines and encodings.

A file is read as what was written into it, or refused for a defect that was put there.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import permix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import FileFormatError, PermixError, PermixWarning

NAMES = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=10),
        st.sampled_from(
            ["Smith, J", 'Ann "Annie" Lee', "O'Neill: D", "{x}", "# 1", "東京", "Łódź", "a,b;c", "1"]
        ),
    ),
    min_size=2,
    max_size=6,
    unique=True,
)


@st.composite
def profiles(draw, kind):
    """Return names, rows of groups (0-based), counts."""
    names = draw(NAMES)
    n = len(names)
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        order = draw(st.permutations(range(n)))
        if kind in ("soi", "toi"):
            order = order[: draw(st.integers(1, n))]
        groups = [[order[0]]]
        for item in order[1:]:
            tie = kind[0] == "t" and draw(st.booleans())
            groups[-1].append(item) if tie else groups.append([item])
        rows.append(groups)
    counts = draw(st.lists(st.integers(1, 10**6), min_size=len(rows), max_size=len(rows)))
    return names, rows, counts


def text_of(kind, names, rows, counts, *, first=1, header=(), newline="\n", space=" "):
    about = {
        "FILE NAME": f"x.{kind}",
        "TITLE": "Made: with a colon",
        "DATA TYPE": kind,
        "NUMBER ALTERNATIVES": len(names),
        "NUMBER VOTERS": sum(counts),
        "NUMBER UNIQUE ORDERS": len(rows),
    }
    lines = [f"# {key}: {value}" for key, value in about.items() if key not in header]
    lines += [f"# ALTERNATIVE NAME {k}: {name}" for k, name in enumerate(names, start=first)]
    for groups, count in zip(rows, counts, strict=True):
        parts = [
            str(group[0] + first) if len(group) == 1 else "{" + ",".join(str(i + first) for i in group) + "}"
            for group in groups
        ]
        lines.append(f"{count}:{space}{f',{space}'.join(parts)}")
    return newline.join(lines) + newline


def said(votes):
    """Return what rows say, with names, in file order."""
    stated = votes.arrays()
    rows = []
    for start, end in zip(stated.level_indptr[:-1], stated.level_indptr[1:], strict=True):
        groups: list[set[str]] = [set() for _ in range(int(stated.levels[start:end].max()) + 1)]
        for item, level in zip(stated.level_items[start:end], stated.levels[start:end], strict=True):
            groups[level].add(votes.items[item])
        rows.append(groups)
    return rows


@settings(max_examples=40, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["soc", "soi", "toc", "toi"]))
def test_files_are_read_as_they_were_written(tmp_path_factory, data, kind):
    names, rows, counts = data.draw(profiles(kind))
    first = data.draw(st.sampled_from([0, 1]))
    header = data.draw(st.sets(st.sampled_from(["FILE NAME", "TITLE", "DATA TYPE", "NUMBER VOTERS"])))
    newline, bom = data.draw(st.sampled_from(["\n", "\r\n"])), data.draw(st.booleans())
    space = data.draw(st.sampled_from(["", " ", "  "]))
    text = text_of(kind, names, rows, counts, first=first, header=header, newline=newline, space=space)
    path = tmp_path_factory.mktemp("preflib") / f"x.{kind}"
    path.write_bytes(text.encode("utf-8-sig" if bom else "utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = permix.read(path)
        assert isinstance(votes, Rankings if kind[0] == "s" else Preferences)
        assert votes.items == tuple(names)
        assert votes.counts.tolist() == counts
        assert said(votes) == [[{names[i] for i in group} for group in groups] for groups in rows]
        # And back: rows that say the same are one line, so the file is compared by what it says.
        again = path.with_name(f"y.{kind}")
        permix.write(votes, again)
        assert np.array_equal(permix.read(again).pairwise_counts(), votes.pairwise_counts())


SCALES = [
    ["Yes", "No"],
    ["No", "Yes"],
    ["Disapproved", "Neutral", "Approved"],
    ["Excellent", "Good", "Poor"],
    ["Category 1", "Category 2", "Category 3"],
]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), scale=st.sampled_from(SCALES))
def test_categories_are_read_as_they_were_written(tmp_path_factory, data, scale):
    """Best first by their names, or as told where these tell nothing; unrated items are unknown."""
    names = data.draw(NAMES)
    first = data.draw(st.sampled_from([0, 1]))
    newline, bom = data.draw(st.sampled_from(["\n", "\r\n"])), data.draw(st.booleans())
    all_rated = data.draw(st.booleans())
    rated = st.integers(0 if all_rated else -1, len(scale) - 1)
    rows = data.draw(
        st.lists(
            st.lists(rated, min_size=len(names), max_size=len(names)).filter(lambda row: max(row) >= 0),
            min_size=1,
            max_size=5,
        )
    )
    counts = data.draw(st.lists(st.integers(1, 1000), min_size=len(rows), max_size=len(rows)))
    lines = ["# FILE NAME: x.cat", "# DATA TYPE: cat", f"# NUMBER ALTERNATIVES: {len(names)}"]
    lines += [f"# NUMBER VOTERS: {sum(counts)}", f"# NUMBER CATEGORIES: {len(scale)}"]
    lines += [f"# CATEGORY NAME {k}: {name}" for k, name in enumerate(scale, start=1)]
    lines += [f"# ALTERNATIVE NAME {k}: {name}" for k, name in enumerate(names, start=first)]
    for row, count in zip(rows, counts, strict=True):
        groups = [[str(i + first) for i, at in enumerate(row) if at == k] for k in range(len(scale))]
        lines.append(f"{count}: {', '.join('{' + ','.join(group) + '}' for group in groups)}")
    path = tmp_path_factory.mktemp("preflib") / "x.cat"
    path.write_bytes((newline.join(lines) + newline).encode("utf-8-sig" if bom else "utf-8"))
    upward = scale[-1] in ("Yes", "Approved") or scale[0] == "Category 1"
    asked = {"categories": "worst-first"} if scale[0] == "Category 1" else {}
    best_first = range(len(scale))[:: -1 if upward else 1]
    expected = [[{names[i] for i, at in enumerate(row) if at == k} for k in best_first] for row in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if scale[0] == "Category 1":
            with pytest.raises(PermixError, match="do not say which is best"):
                permix.read(path)
        votes = permix.read(path, **asked)
        assert votes.items == tuple(names)
        assert votes.counts.tolist() == counts
        assert said(votes) == [[group for group in groups if group] for groups in expected]
        # And back, where nothing is left unknown: the categories keep their names, the rows their groups.
        if all_rated:
            again = path.with_name("y.toc")
            permix.write(votes, again)
            assert np.array_equal(permix.read(again).pairwise_counts(), votes.pairwise_counts())


WHOLE = text_of("soi", ["Ann", "Bo", "Cy"], [[[0], [1]], [[2]], [[1], [0], [2]]], [3, 2, 4])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("NUMBER ALTERNATIVES: 3", "NUMBER ALTERNATIVES: 4", "NUMBER ALTERNATIVES: 4, but 3 are named"),
        ("NUMBER VOTERS: 9", "NUMBER VOTERS: 10", "NUMBER VOTERS: 10, but the body has 9"),
        ("NUMBER UNIQUE ORDERS: 3", "NUMBER UNIQUE ORDERS: 2", "UNIQUE ORDERS: 2, but the body has 3"),
        ("DATA TYPE: soi", "DATA TYPE: soc", "ends in .soi, but the header says DATA TYPE: soc"),
        ("# ALTERNATIVE NAME 2: Bo\n", "", "none is number 2"),
        ("NAME 3: Cy", "NAME 3: Ann", "have the same name 'Ann'"),
        ("2: 3\n", "2:\n", "no alternative is listed"),
        ("2: 3\n", "2: 3,3\n", "listed twice"),
        ("2: 3\n", "2: 4\n", "not one of 1..3"),
        ("2: 3\n", "2: {1,3}\n", "the ending should be .toc or .toi"),
        ("2: 3\n", "-2: 3\n", "does not start with a count"),
        ("2: 3\n", "2.5: 3\n", "does not start with a count"),
        ("2: 3\n", "2 3\n", "does not start with a count"),
        ("2: 3\n", "2: 1,,3\n", "an entry is empty"),
    ],
)
def test_defects_are_stated(tmp_path, old, new, why):
    path = tmp_path / "x.soi"
    assert old in WHOLE
    path.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=why):
        permix.read(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("NUMBER VOTERS: 9", "NUMBER VOTERS: 10"),
        ("NUMBER ALTERNATIVES: 3", "NUMBER ALTERNATIVES: 4"),
        ("DATA TYPE: soi", "DATA TYPE: toi"),
    ],
)
def test_headers_that_disagree_are_read_if_asked(tmp_path, old, new):
    path = tmp_path / "x.soi"
    path.write_text(WHOLE.replace(old, new))
    with pytest.warns(PermixWarning):
        votes = permix.read(path, strict=False)
    assert said(votes) == [[{"Ann"}, {"Bo"}], [{"Cy"}], [{"Bo"}, {"Ann"}, {"Cy"}]]


def test_lines_given_twice_and_counts_of_0(tmp_path):
    path = tmp_path / "x.soi"
    path.write_text(
        WHOLE.replace("2: 3\n", "2: 3\n5: 3\n0: 1\n").replace("9", "14").replace("ORDERS: 3", "ORDERS: 4")
    )
    votes = permix.read(path)
    assert votes.n_agents == 14
    assert votes.metadata["CLEANING"][0]["found"] == "rows with a count of 0"
    permix.write(votes, tmp_path / "y.soi")
    assert permix.read(tmp_path / "y.soi").counts.tolist() == [3, 7, 4]


@pytest.mark.parametrize("name", ["x.wmd", "x.dat", "x.hog"])
def test_other_files_of_the_collection_are_refused_by_what_they_are(tmp_path, name):
    path = tmp_path / name
    edges = "# NUMBER EDGES: 1\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n1,2,3.0\n"
    path.write_text(f"# FILE NAME: {name}\n# DATA TYPE: {name[2:]}\n{edges}")
    with pytest.raises(FileFormatError, match="neither the ending nor DATA TYPE names a kind"):
        permix.read(path)


def test_latin_1_is_read_with_a_warning(tmp_path):
    path = tmp_path / "x.soi"
    path.write_bytes(WHOLE.replace("Bo", "Bö").encode("latin-1"))
    with pytest.warns(PermixWarning, match="Windows-1252"):
        assert permix.read(path).items == ("Ann", "Bö", "Cy")


@pytest.mark.parametrize("kind", ["soi", "toi"])
def test_a_hundred_damaged_copies_leave_other_lines_alone(tmp_path, kind):
    """The header is kept from saying that something is wrong: lines must tell by themselves."""
    rng = np.random.default_rng(6)
    rows = [[[0], [1], [2]], [[2], [0]], [[1]], [[0], [2]], [[2], [1], [0]]]
    if kind == "toi":
        rows = [[[0, 1], [2]], [[2], [0, 1]], [[1]], [[0, 2]], [[2], [1], [0]]]
    skip = {"NUMBER VOTERS", "NUMBER UNIQUE ORDERS"}
    text = text_of(kind, ["Ann", "Bo", "Cy"], rows, [3, 20, 4, 15, 6], header=skip)
    head = [line for line in text.split("\n") if line.startswith("#")]
    body = [line for line in text.split("\n") if line and not line.startswith("#")]
    whole = said_lines(tmp_path, kind, [*head, *body])
    refused = 0
    for _ in range(100):
        at = int(rng.integers(len(body)))
        line = list(body[at])
        where = int(rng.integers(len(line)))
        line[where : where + int(rng.integers(1, 4))] = rng.choice(
            list("0123456789:,{} x"), int(rng.integers(4))
        )
        try:
            found = said_lines(tmp_path, kind, [*head, *body[:at], "".join(line), *body[at + 1 :]])
        except PermixError:
            refused += 1
            continue
        others = [row for place, row in enumerate(whole) if place != at]
        assert all(row in found for row in others)
        assert len(found) <= len(whole)
    assert refused > 20


def said_lines(folder, kind, lines):
    path = folder / f"x.{kind}"
    path.write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = permix.read(path)
    return list(zip(said(votes), votes.counts.tolist(), strict=True))
