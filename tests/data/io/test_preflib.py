"""PrefLib files: what is read, what is written, and how bad files are refused."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest

from permix import Preferences, Rankings
from permix.data import read_preflib, write_preflib
from permix.errors import DataError, FileFormatError, PermixWarning


def header(kind="soi", names=("Ann", "Bob", "Cy: the 3rd"), voters=5, unique=2, extra=()):
    lines = ["# FILE NAME: x." + kind, "# TITLE: A vote", "# DESCRIPTION: ", f"# DATA TYPE: {kind}", *extra]
    lines += [f"# NUMBER ALTERNATIVES: {len(names)}", f"# NUMBER VOTERS: {voters}"]
    lines += [f"# NUMBER UNIQUE ORDERS: {unique}"]
    return lines + [f"# ALTERNATIVE NAME {i}: {name}" for i, name in enumerate(names, 1)]


def put(path, *body, lines=None, **options):
    kind = path.name.split(".")[1]
    text = "\n".join([*(header(kind, **options) if lines is None else lines), *body]) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def test_soi_becomes_rankings(tmp_path):
    votes = read_preflib(put(tmp_path / "x.soi", "3: 2,1", "2: 3,1,2"))
    assert isinstance(votes, Rankings)
    assert votes.orders.tolist() == [[1, 0, -1], [2, 0, 1]]
    assert votes.counts.tolist() == [3, 2]
    assert votes.items == ("Ann", "Bob", "Cy: the 3rd")
    assert votes.unlisted == "below"
    assert votes.metadata["TITLE"] == "A vote"
    assert [key for key in votes.metadata if key != "HEADER"][:4] == [
        "FILE NAME",
        "TITLE",
        "DESCRIPTION",
        "DATA TYPE",
    ]
    assert read_preflib(tmp_path / "x.soi", unlisted="unknown").unlisted_below.tolist() == [False, True]


def test_toi_and_toc_become_levels(tmp_path):
    votes = read_preflib(put(tmp_path / "x.toi", "3: {3,2}", "2: 3,{1,2}"))
    assert isinstance(votes, Preferences)
    assert votes == Preferences.from_levels(
        [[["Bob", "Cy: the 3rd"]], [["Cy: the 3rd"], ["Ann", "Bob"]]], items=votes.items, counts=[3, 2]
    )
    assert votes.rest_below.tolist() == [True, True]
    unknown = read_preflib(tmp_path / "x.toi", unlisted="unknown")
    assert unknown.rest_below[0] == False  # noqa: E712
    put(tmp_path / "x.toc", "3: {2,3},1", "2: 3,{1,2}")
    assert np.diff(read_preflib(tmp_path / "x.toc").level_indptr).tolist() == [3, 3]


CATEGORIES = (
    "# NUMBER CATEGORIES: 3",
    "# CATEGORY NAME 1: Yes",
    "# CATEGORY NAME 2: Maybe",
    "# CATEGORY NAME 3: No",
)


def test_cat_keeps_empty_categories(tmp_path):
    body = ("2: {},{1,2},3", "1: {1,2,3},{},{}", "2: 1,2,3")
    lines = [
        line.replace("UNIQUE ORDERS", "UNIQUE PREFERENCES")
        for line in header("cat", unique=3, extra=CATEGORIES)
    ]
    path = put(tmp_path / "x.cat", *body, lines=lines)
    votes = read_preflib(path)
    assert votes.metadata["EMPTY CATEGORIES"] == {"1": [0], "2": [1, 2]}
    assert votes.levels.tolist() == [0, 0, 1, 0, 0, 0, 0, 1, 2]
    (tmp_path / "again").mkdir()
    write_preflib(votes, tmp_path / "again" / "x.cat")
    assert (tmp_path / "again" / "x.cat").read_bytes() == path.read_bytes()
    write_preflib(votes[1:], tmp_path / "part.cat")  # rows keep their ids, so their empty categories
    part = (tmp_path / "part.cat").read_text()
    assert part.splitlines()[-2:] == ["1: {1,2,3},{},{}", "2: 1,2,3"]
    assert "# NUMBER VOTERS: 3\n# NUMBER UNIQUE PREFERENCES: 2" in part
    with pytest.raises(DataError, match=r"nothing says which are empty.*\.toc"):
        write_preflib(votes.collapse(), tmp_path / "bad.cat")


def test_an_alternative_in_no_category_is_unknown(tmp_path):
    lines = header("cat", unique=1, voters=2, extra=CATEGORIES)
    votes = read_preflib(put(tmp_path / "x.cat", "2: 1,{},3", lines=lines))
    assert not votes.rest_below[0]


def test_odd_header_lines_come_back_as_they_were(tmp_path):
    lines = header(unique=1, voters=2)
    lines[2] = "# DESCRIPTION:"
    lines[1] = "#   TITLE :  spaced   out "
    lines.insert(4, "# SOMETHING NEW: kept")
    path = put(tmp_path / "x.soi", "2: 1,2", lines=lines)
    (tmp_path / "again").mkdir()
    write_preflib(read_preflib(path), tmp_path / "again" / "x.soi")
    assert (tmp_path / "again" / "x.soi").read_bytes() == path.read_bytes()


def test_header_numbers_follow_the_rows_and_the_name(tmp_path):
    votes = read_preflib(put(tmp_path / "x.soi", "3: 2,1", "2: 3,1,2"))
    write_preflib(votes[1:], tmp_path / "y.soi")
    text = (tmp_path / "y.soi").read_text()
    assert "# FILE NAME: y.soi" in text
    assert "# TITLE: A vote" in text
    assert "# NUMBER VOTERS: 2\n# NUMBER UNIQUE ORDERS: 1" in text
    assert read_preflib(tmp_path / "y.soi") == Rankings.from_orders(
        [[2, 0, 1]], items=votes.items, counts=[2]
    )


def test_soi_as_toc_spells_out_the_rest(tmp_path):
    votes = read_preflib(put(tmp_path / "x.soi", "3: 2", "2: 3,1,2"))
    write_preflib(votes, tmp_path / "x.toc")
    assert (tmp_path / "x.toc").read_text().splitlines()[-2:] == ["3: 2,{1,3}", "2: 3,1,2"]
    assert read_preflib(tmp_path / "x.toc").counts.tolist() == [3, 2]


def test_objects_not_from_preflib_are_written_and_equal_rows_merged(tmp_path):
    votes = Rankings.from_orders([["b", "a"], ["a", "b"], ["b", "a"]])
    write_preflib(votes, tmp_path / "v.soc.gz")
    text = gzip.decompress((tmp_path / "v.soc.gz").read_bytes()).decode()
    assert text.splitlines()[-4:] == [
        "# ALTERNATIVE NAME 1: b",
        "# ALTERNATIVE NAME 2: a",
        "2: 1,2",
        "1: 2,1",
    ]
    assert read_preflib(tmp_path / "v.soc.gz") == votes.collapse()
    again = tmp_path / "again.soc.gz"
    write_preflib(votes, again)
    write_preflib(votes, tmp_path / "v.soc.gz")
    assert list(tmp_path.glob("*tmp*")) == []


def test_ties_written_as_categories(tmp_path):
    votes = Preferences.from_levels([[["a"], ["b", "c"]], [["b", "c"], ["a"]]], items=["a", "b", "c"])
    write_preflib(votes, tmp_path / "v.cat")
    back = read_preflib(tmp_path / "v.cat")
    assert back.metadata["CATEGORY NAME 2"] == "Category 2 (worst)"
    assert np.array_equal(back.levels, votes.levels)


TIED = Preferences.from_levels([[["a", "b"], ["c"]]], items=["a", "b", "c"])
SHORT = Rankings.from_orders([["a"]], items=["a", "b", "c"])
SUBSET = Rankings.from_orders([["a"], ["c", "b"]], items=["a", "b", "c"], unlisted="unknown")


@pytest.mark.parametrize(
    ("obj", "name", "words"),
    [
        (TIED, "v.soc", r"ties some items.*use the ending \.toc"),
        (TIED, "v.soi", r"use the ending \.toc"),
        (SHORT, "v.soc", r"lists 1 of 3 items.*use the ending \.soi"),
        (SUBSET, "v.toc", r"lists 1 of 3 items.*use the ending \.toi"),
        (Preferences.from_pairs([(0, "a", "b")]), "v.toi", "layout='pairs'"),
        (SHORT, "v.cat", "rankings are not categories"),
        (SHORT, "v.txt", "a PrefLib file ends in"),
        (Rankings.from_orders([["a\nb", "c"]]), "v.soc", "the item name .* spans lines"),
        (Rankings.from_orders([["a\rb", "c"]]), "v.soc", "spans lines"),
        (Rankings.from_orders([["a", "a "]]), "v.soc", "'a ' begins or ends with blanks"),
        (Rankings.from_orders([["a", "\u2028b"]]), "v.soc", "begins or ends with blanks"),
        (Rankings.from_orders([["a", "\ud800"]]), "v.soc", "half a character, which UTF-8 cannot hold"),
        (Rankings.from_orders([[1, "1"]]), "v.soc", "item names 1 and '1' look the same in a file"),
        (Rankings.concat([SHORT, SUBSET]), "v.soi", "two files"),
    ],
)
def test_what_a_file_cannot_hold(tmp_path, obj, name, words):
    with pytest.raises(DataError, match=words):
        write_preflib(obj, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85"])
def test_names_with_marks_that_end_lines_elsewhere_come_back(tmp_path, mark):
    votes = Rankings.from_orders([[f"a{mark}b", "c"], ["c", f"a{mark}b"]])
    write_preflib(votes, tmp_path / "v.soc")
    assert read_preflib(tmp_path / "v.soc") == votes
    lines = (tmp_path / "v.soc").read_bytes().replace(b"\n", b"\r\n")
    (tmp_path / "v.soc").write_bytes(lines)
    assert read_preflib(tmp_path / "v.soc") == votes


@pytest.mark.parametrize("ending", ["soi", "toi"])
def test_that_the_rest_is_unknown_comes_back(tmp_path, recwarn, ending):
    write_preflib(SUBSET, tmp_path / f"v.{ending}")
    assert "# UNLISTED: unknown" in (tmp_path / f"v.{ending}").read_text().splitlines()
    back = read_preflib(tmp_path / f"v.{ending}")
    assert not back.rest_below.any() if ending == "toi" else back.unlisted == "unknown"
    assert back.pairwise_counts().tolist() == SUBSET.pairwise_counts().tolist()
    # Whoever says otherwise is heeded, and what is written then says nothing.
    below = read_preflib(tmp_path / f"v.{ending}", unlisted="below")
    assert below.rest_below.all() if ending == "toi" else below.unlisted == "below"
    write_preflib(below, tmp_path / f"w.{ending}")
    assert "UNLISTED" not in (tmp_path / f"w.{ending}").read_text()
    write_preflib(back, tmp_path / f"w.{ending}")
    assert read_preflib(tmp_path / f"w.{ending}") == back
    assert not recwarn.list


def test_a_header_that_says_something_else_of_the_rest_is_doubted(tmp_path):
    write_preflib(SUBSET, tmp_path / "v.soi")
    text = (tmp_path / "v.soi").read_text().replace("UNLISTED: unknown", "UNLISTED: perhaps")
    (tmp_path / "v.soi").write_text(text)
    with pytest.raises(FileFormatError, match="'below' nor 'unknown'"):
        read_preflib(tmp_path / "v.soi")
    with pytest.warns(PermixWarning, match="'below' nor 'unknown'"):
        assert read_preflib(tmp_path / "v.soi", strict=False).unlisted == "below"


def test_what_is_refused_does_not_warn_first(tmp_path):
    rated = Preferences.from_ratings([("x", "a", 5), ("x", "b", 3), ("y", "c", 1), ("y", "a", 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"ties some items, .* use the ending \.toi"):
            write_preflib(rated, tmp_path / "v.soi")


@pytest.mark.parametrize(
    ("kind", "line", "words"),
    [
        ("soi", "x: 1,2", "does not start with a count"),
        ("soi", "-1: 1,2", "does not start with a count"),
        ("soi", "-3: 1,2", "does not start with a count"),
        ("soi", "2.5: 1,2", "does not start with a count"),
        ("soi", "1,2", "does not start with a count"),
        ("soi", "2: 1,4", r"alternative '4' is not one of 1\.\.3"),
        ("soi", "2: 1,0", r"alternative '0' is not one of"),
        ("soi", "2: 1,,2", "an entry is empty"),
        ("soi", "2: 1,2,", "an entry is empty"),
        ("soi", "2:", "no alternative is listed"),
        ("soi", "2: 1,2,1", r"alternative 1 \('Ann'\) is listed twice"),
        ("soi", "2: 1,{2,3}", "ties"),
        ("soc", "2: 1,2", r"2 of 3 alternatives.*3 \('Cy: the 3rd'\) is missing.*\.soi"),
        ("toc", "2: {1,2}", r"2 of 3 alternatives.*\.toi"),
        ("toi", "2: {1,2", "never closed"),
        ("toi", "2: 1,2}", "closing brace"),
        ("toi", "2: {1,{2}}", "braces within braces"),
        ("toi", "2: {1}{2}", "an entry is empty"),
        ("toi", "2: {},1", "empty braces"),
        ("toi", "2: {1,1}", "listed twice"),
    ],
)
def test_bad_lines_are_refused_with_their_number_and_text(tmp_path, kind, line, words):
    path = put(tmp_path / f"x.{kind}", "3: 1,2,3", line, "1: 3,2,1", voters=6, unique=3)
    with pytest.raises(FileFormatError, match=words) as caught:
        read_preflib(path)
    number = path.read_text().splitlines().index(line) + 1
    assert caught.value.line == number
    assert caught.value.path == str(path)
    assert f"line {number}" in str(caught.value)
    assert line.strip() in str(caught.value)


def test_long_lines_are_shortened_in_messages(tmp_path):
    names = tuple(f"n{i}" for i in range(200))
    path = put(tmp_path / "x.soi", "2: " + ",".join(map(str, range(1, 202))), names=names, voters=2, unique=1)
    with pytest.raises(FileFormatError, match="'201'") as caught:
        read_preflib(path)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"voters": 9}, "NUMBER VOTERS: 9, but the body has 5"),
        ({"unique": 7}, "NUMBER UNIQUE ORDERS: 7, but the body has 2"),
    ],
)
def test_totals_that_disagree(tmp_path, change, words):
    path = put(tmp_path / "x.soi", "3: 1,2", "2: 3", **change)
    with pytest.raises(FileFormatError, match=words):
        read_preflib(path)
    with pytest.warns(PermixWarning, match=words):
        assert read_preflib(path, strict=False).n_agents == 5


def test_number_of_alternatives_that_disagrees(tmp_path):
    lines = [line.replace("ALTERNATIVES: 3", "ALTERNATIVES: 4") for line in header()]
    path = put(tmp_path / "x.soi", "3: 1,2", "2: 3", lines=lines)
    with pytest.raises(FileFormatError, match="NUMBER ALTERNATIVES: 4, but 3 are named"):
        read_preflib(path)
    with pytest.warns(PermixWarning, match="but 3 are named"):
        assert read_preflib(path, strict=False).n_items == 3


def test_ending_and_data_type_that_disagree(tmp_path):
    path = put(tmp_path / "x.soi", "3: 1,2", "2: 3", lines=header("toi"))
    with pytest.raises(FileFormatError, match=r"ends in \.soi, but the header says DATA TYPE: toi"):
        read_preflib(path)
    with pytest.warns(PermixWarning, match="DATA TYPE"):
        assert isinstance(read_preflib(path, strict=False), Preferences)
    renamed = path.rename(tmp_path / "votes.txt")
    assert isinstance(read_preflib(renamed), Preferences)


def test_same_name_twice(tmp_path):
    path = put(tmp_path / "x.soi", "3: 1,2", "2: 3", names=("Ann", "Bob", "Ann"))
    with pytest.raises(FileFormatError, match="alternatives 1 and 3 have the same name 'Ann'"):
        read_preflib(path)
    with pytest.warns(PermixWarning, match="same name"):
        assert read_preflib(path, strict=False).items == ("Ann", "Bob", "Ann (3)")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (gzip.compress(b"# FILE NAME: x\n" * 50, mtime=0)[:40], "truncated or damaged"),
        (gzip.compress(b"# FILE NAME: x\n" * 50, mtime=0)[:-4] + b"abcd", "truncated or damaged"),
        ("\n".join(header()).encode() + b"\n3: 1\xff,2\n", "line 11: byte 0xff is not UTF-8"),
        (b"1,2,3\n", "no PrefLib header"),
        (b"# FILE NAME: x.soi\n# DATA TYPE: soi\n3: 1,2\n", "no 'ALTERNATIVE NAME'"),
        ("\n".join(header()).encode(), "no orders after it"),
        ("\n".join(header()).replace("NAME 2", "NAME 7").encode() + b"\n5: 1\n", "none is number 2"),
        (
            "\n".join(header()).replace("VOTERS: 5", "VOTERS: five").encode() + b"\n5: 1\n",
            "NUMBER VOTERS is not a number",
        ),
        (b"3\n1,Ann\n", "ends within its header"),
        (b"2\n1,Ann\n3,Bob\n5,5,1\n5,1,2\n", "expected '2,NAME'"),
        (b"2\n1,Ann\n2,Bob\n5,1,2\n5,1,x\n", "not one of"),
        (b"2\n1,Ann\n2,Bob\nhello\n", "expected 'voters"),
    ],
)
def test_bad_files(tmp_path, raw, words):
    path = tmp_path / "x.soi"
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match=words) as caught:
        read_preflib(path)
    assert str(path) in str(caught.value)


def test_format_before_2022(tmp_path):
    (tmp_path / "old.soi").write_text("3\n1,Ann\n2,Bob, the elder\n3,Cy\n5,5,2\n3,2,1\n2,3\n")
    votes = read_preflib(tmp_path / "old.soi")
    assert votes == Rankings.from_orders(
        [["Bob, the elder", "Ann"], ["Cy"]], items=["Ann", "Bob, the elder", "Cy"], counts=[3, 2]
    )
    (tmp_path / "old.toi").write_text("3\n1,Ann\n2,Bob\n3,Cy\n5,5,2\n3,2,{1,3}\n2,3\n")
    assert read_preflib(tmp_path / "old.toi").levels.tolist() == [0, 1, 1, 0]
    write_preflib(votes, tmp_path / "new.soi")
    assert read_preflib(tmp_path / "new.soi") == votes


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    text = "\r\n".join([*header(), "3: 1, 2", "2: 3", ""])
    (tmp_path / "x.soi").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_preflib(tmp_path / "x.soi").n_agents == 5


def test_missing_file_and_bad_argument(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_preflib(tmp_path / "none.soi")
    with pytest.raises(DataError, match="unlisted"):
        read_preflib(put(tmp_path / "x.soi", "5: 1"), unlisted="nowhere")


def test_damaged_files_are_read_or_refused_but_never_crash(tmp_path):
    lines = [*header("toi"), "3: {1,2}", "2: 3,1", ""]
    whole = "\n".join(lines).encode()
    old = b"3\n1,Ann\n2,Bob\n3,Cy\n5,5,2\n3,2,{1,3}\n2,3\n"
    rng = np.random.default_rng(1)
    refused = 0
    for trial in range(1500):
        raw = bytearray(whole if trial % 2 else old)
        for _ in range(rng.integers(1, 4)):
            place = rng.integers(len(raw))
            kind = rng.integers(4)
            if kind == 0:
                raw[place] = rng.integers(256)
            elif kind == 1:
                del raw[place : place + rng.integers(1, 20)]
            elif kind == 2:
                raw[place:place] = rng.choice(
                    [b"{", b"}", b",", b":", b"\n", b"9" * 30, "²".encode(), b"#", b"\x00"]
                )
            else:
                raw[place:place] = raw[place : place + 15]
            if not raw:
                break
        (tmp_path / "x.toi").write_bytes(bytes(raw))
        try:
            read_preflib(tmp_path / "x.toi")
        except FileFormatError:
            refused += 1
    assert 500 < refused < 1500
