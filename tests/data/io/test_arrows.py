"""Rankings with arrows, where most lines hold one item or some end with an arrow, and files that are none."""

from __future__ import annotations

import pytest

import permix
from permix.data.ballots import Ballots
from permix.errors import DataError, PermixWarning


@pytest.mark.parametrize("text", ["A=B\nC\nB>A>C\n", "C\nB\nB>A>C\nC\n", "ranking\nA=B\nC\nB>A>C\n"])
def test_a_ranking_below_single_items_is_no_item(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    votes = permix.read(path)
    assert sorted(votes.items) == ["A", "B", "C"]
    assert "B ≻ A ≻ C" in str(votes)


def test_arrows_in_names_stay(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("pos1,pos2\nincome > 100,low\nlow,income > 100\n", encoding="utf-8")
    assert sorted(permix.read(path).items) == ["income > 100", "low"]


@pytest.mark.parametrize(("name", "head"), [("x.csv", "ranking\n"), ("x.txt", "")])
def test_rankings_that_end_with_an_arrow_are_said(tmp_path, name, head):
    path = tmp_path / name
    path.write_text(f"{head}A>B>\nB>A>C\nC>A>\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match=r"line [12]: 2 rankings end with '>' and no item after it"):
        votes = permix.read(path)
    assert votes.n_agents == 3


@pytest.mark.parametrize("name", ["x.html", "x.csv", "x.txt"])
@pytest.mark.parametrize("head", ["<!DOCTYPE html>\n<html>", "<html>", "\n<table>"])
def test_web_pages_are_refused_as_such(tmp_path, name, head):
    path = tmp_path / name
    path.write_text(f"{head}<tr><td>rank1</td></tr>\n<tr><td>A</td></tr>\n", encoding="utf-8")
    with pytest.raises(DataError, match="a web page"):
        permix.read(path)


def test_those_written_in_are_dropped_from_rows_as_from_files():
    rows = [[["Ann"], ["Write-in"]], [["Write-in"], ["Bo"]]]
    assert permix.clean(Ballots.from_rows(rows), write_ins="drop").items == ("Ann", "Bo")
    assert len(permix.clean(Ballots.from_rows(rows, write_ins=()), write_ins="drop").items) == 3
