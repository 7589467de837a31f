"""What ``info`` says about tables of measurements, and about matrices read by the options of a fit."""

from __future__ import annotations

import json
import shlex

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


def shown(*words: object) -> str:
    result = CliRunner().invoke(build(), ["info", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def questions(tmp_path):
    """Answers of several words, none the same in 24 of 30 rows, beside a date that repeats."""
    file = tmp_path / "answers.csv"
    names = ["Ann", "Ben", "Cem", "Dan", "Eve"]
    sets = [", ".join(names[k] for k in range(5) if code >> k & 1) for code in range(1, 25)]
    lines = [f'day {k % 3},"{sets[k % 24]}"' for k in range(30)]
    file.write_text("\n".join(["When,Which would you accept?", *lines]) + "\n")
    return file


@pytest.mark.parametrize("name", ["table", "questions"])
def test_commands_set_apart_what_is_not_used_and_run(name, request, tmp_path):
    file = request.getfixturevalue(name)
    facts = info(file, "--as", "table")
    words = shlex.split(facts["fits"]["groups_of_rows"])
    apart = ["--id", "who"] if name == "table" else ["--ignore", "Which would you accept?"]
    assert words[4:-2] == apart
    few = ["-o", str(tmp_path / "g.permix"), "--draws", "5", "--burn-in", "5", "--chains", "1"]
    result = CliRunner().invoke(build(), [*words[1:-2], *few])
    assert result.exit_code == 0, result.output


def test_advice_is_in_options_that_a_shell_takes_and_stands_below_the_table(questions):
    holds = info(questions, "--as", "table")["column_facts"][1]["holds"]
    assert holds.endswith("or say what it is with --column 'Which would you accept?=category'")
    assert "Mixed" not in holds
    text = shown(questions, "--as", "table")
    assert max(map(len, text.split("Column 'Which")[0].splitlines())) < 80
    assert "Column 'Which would you accept?' has 24 different entries in 30 rows" in text


def test_a_matrix_is_suggested_only_where_cells_are_of_one_kind(table, tmp_path):
    assert "groups_of_rows_and_of_columns" not in info(table, "--as", "table")["fits"]
    assert "cocluster" not in shown(table, "--as", "table")
    file = tmp_path / "marks.csv"
    file.write_text("who,a,b\n" + "".join(f"p{k},{k % 7 / 2},{k % 5}\n" for k in range(30)))
    fits = info(file, "--as", "table")["fits"]
    assert shlex.split(fits["groups_of_rows_and_of_columns"])[4:6] == ["--id", "who"]
