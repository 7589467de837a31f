"""What ``info`` says about tables of measurements, and about matrices read by the options of a fit."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from permix.cli.app import build


def info(*words: object) -> dict:
    result = CliRunner().invoke(build(), ["info", *map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "people.csv"
    lines = [f"name{row},{150 + row * 0.5},{'yes' if row % 2 else 'no'}," for row in range(30)]
    file.write_text("\n".join(["who,height,smokes,weight", *lines[:-1], lines[-1] + "61.5"]) + "\n")
    return file


def test_columns_of_a_table(table):
    facts = info(table, "--as", "table")
    assert (facts["kind"], facts["rows"], facts["columns"], facts["missing_cells"]) == ("table", 30, 4, 29)
    read_as = {about["column"]: about["read_as"] for about in facts["column_facts"]}
    assert read_as == {"who": "not used", "height": "number", "smokes": "category", "weight": "number"}
    who, height, smokes, _ = facts["column_facts"]
    assert "seems to name the rows" in who["holds"]
    assert height["holds"] == "150 to 164.5, mean 157.2"
    assert smokes["holds"] == "no, yes"


def test_what_is_set_aside_is_not_described(table):
    facts = info(table, "--as", "table", "--id", "who", "--ignore", "weight")
    assert [about["column"] for about in facts["column_facts"]] == ["height", "smokes"]


def test_a_matrix_whose_columns_have_other_names(tmp_path):
    file = tmp_path / "marks.csv"
    file.write_text("pupil,task,mark\n" + "".join(f"p{k % 7},t{k % 5},{k % 3}\n" for k in range(35)))
    facts = info(file, "--row", "pupil", "--column", "task", "--value", "mark")
    assert (facts["kind"], facts["rows"], facts["columns"], facts["cells"]) == ("matrix", 7, 5, 35)


def test_a_matrix_by_what_it_looks_like(tmp_path):
    file = tmp_path / "wide.csv"
    file.write_text("a,b,c,d\n" + "\n".join(f"{k % 4 + 1},{k % 3},{k % 2},1" for k in range(9)) + "\n")
    assert info(file, "--as", "matrix")["kind"] == "matrix"
