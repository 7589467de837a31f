"""Long tables in which each agent has 1, 2, 3, … once: how they are read is said."""

from __future__ import annotations

import warnings

import pytest

import permix
from permix.errors import PermixWarning

TEXT = "user,item,{}\n" + "".join(f"{u},{item},{r}\n" for u in range(5) for r, item in enumerate("abc", 1))


@pytest.mark.parametrize(
    ("name", "said", "first"),
    [
        ("value", "ratings, higher is better; if 1 is the best, call the column 'rank'", "c"),
        (
            "preference",
            "ranks, of which 1 is the best; if the highest is the best, call the column 'rating'",
            "a",
        ),
        ("level", "ranks, of which 1 is the best; if the highest is the best, call the column 'rating'", "a"),
    ],
)
def test_the_direction_is_said(tmp_path, name, said, first):
    path = tmp_path / "x.csv"
    path.write_text(TEXT.format(name), encoding="utf-8")
    with pytest.warns(PermixWarning, match=said):
        votes = permix.read(path)
    assert votes.prefers(0, first, "b")


@pytest.mark.parametrize("text", [TEXT.format("rank"), TEXT.format("value").replace("0,a,1", "0,a,3")])
def test_names_and_numbers_that_tell_are_read_in_silence(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        permix.read(path)
