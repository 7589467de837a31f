"""Covariates and attributes on the command line: read, cleaned, fitted, saved, shown and drawn."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import permix
from permix import plots
from permix.data.attributes import Attributes


@pytest.fixture(scope="module")
def ballots(tmp_path_factory):
    """Ballots of two groups, which precincts go with, and a table of candidates."""
    folder = tmp_path_factory.mktemp("ballots")
    rng = np.random.default_rng(4)
    lines = ["precinct,age,rank1,rank2,rank3,weight"]
    for _ in range(160):
        south = rng.random() < 0.5
        order = ["Ann", "Bo", "Cy"] if rng.random() < (0.9 if south else 0.2) else ["Cy", "Bo", "Ann"]
        if rng.random() < 0.1:
            order[1] = "overvote"
        lines.append(",".join([("north", "south")[south], str(rng.integers(18, 90)), *order, "1"]))
    lines.append("east,40,skipped,undervote,,3")
    (folder / "ballots.csv").write_text("\n".join(lines) + "\n")
    (folder / "items.csv").write_text("candidate,party,color\nAnn,Red,#aa0000\nBo,Blue,\nCy,Green,\n")
    return folder


@pytest.fixture
def fitted(ballots, run):
    output = ballots / "x.permix"
    command = ["fit", "mallows", ballots / "ballots.csv", "-k", 2, "--starts", 2, "-o", output, "--quiet"]
    beside = ["--group-column", "precinct", "--group-column", "age", "--items", ballots / "items.csv"]
    code, said, _ = run(*command, *beside, "--force")
    assert code == 0
    return output, said


def test_groups_are_shown_by_covariate(fitted, run):
    output, said = fitted
    assert "Of the agents of each precinct, those in each group" in said
    assert "Groups go with precinct more than chance would give" in said
    assert "precinct was not used in the fit" in said
    assert "Ann (Red) ≻ Bo (Blue) ≻ Cy (Green)" in said
    assert "What was done to the votes: 163 agents read, 3 left out, 160 kept" in said
    again = run("summary", output)[1]
    assert again.partition("Centers")[2] == said.partition("Centers")[2]  # the file says all of it
    report = json.loads(run("summary", output, "--json")[1])
    by = {found["name"]: found for found in report["covariates"]}
    assert by["precinct"]["p_value"] < 0.01
    assert {value["value"] for value in by["precinct"]["values"]} == {"north", "south"}
    assert len(by["age"]["values"]) == 4
    parties = dict(zip(report["items"], report["item_attributes"]["party"], strict=True))
    assert parties == {"Ann": "Red", "Bo": "Blue", "Cy": "Green"}
    for value in by["precinct"]["values"]:
        assert sum(cell["share"] for cell in value["in_groups"]) == pytest.approx(1.0)


def test_answers_about_new_agents_have_their_covariates(fitted, ballots, tmp_path, run):
    output = tmp_path / "groups.csv"
    beside = ("--group-column", "precinct")
    code, _, err = run("predict", fitted[0], ballots / "ballots.csv", *beside, "-o", output)
    assert code == 0, err
    rows = list(csv.DictReader(output.open()))
    known = permix.read(ballots / "ballots.csv", group_columns=["precinct"])
    assert [row["precinct"] for row in rows] == known.covariates["precinct"].tolist()
    code, _, err = run("predict", fitted[0], ballots / "ballots.csv", "-o", output, "--force")
    assert "precinct" not in output.read_text().partition("\n")[0]


def test_columns_are_named_and_refused_by_name(ballots, run):
    facts = json.loads(run("info", ballots / "ballots.csv", "--json")[1])
    assert facts["columns_for_--group-column"] == ["precinct", "age"]
    code, _, said = run("info", ballots / "ballots.csv", "--group-column", "region")
    assert code == 1
    assert "there is no column 'region' of the ballots; known are: 'precinct', 'age'" in said


def test_convert_keeps_what_is_asked_for_and_says_what_not(ballots, tmp_path, run):
    target, items = tmp_path / "y.csv", tmp_path / "items.csv"
    beside = ["--group-column", "precinct", "--items", ballots / "items.csv", "--write-items", items]
    said = run("convert", ballots / "ballots.csv", target, *beside)[1]
    assert "note: not written: age; --group-column keeps a column" in said
    again = permix.read(target, group_columns=["precinct"], item_table=items)
    assert sorted(set(again.covariates["precinct"])) == ["north", "south"]
    assert dict(zip(again.items, again.item_attributes["party"], strict=True))["Ann"] == "Red"
    said = run("convert", ballots / "ballots.csv", tmp_path / "y.soi", "--group-column", "precinct")[1]
    assert "a PrefLib file has no place for it" in said


def test_pictures_have_the_colors_of_parties(fitted):
    from matplotlib.colors import to_hex

    model = permix.load(fitted[0])
    figure = plots.groups(model)
    [legend] = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"Red", "Blue", "Green"}
    axes = figure.axes[0]
    drawn = {
        label.get_text(): to_hex(color)
        for label, color in zip(axes.get_yticklabels(), axes.collections[1].get_facecolors(), strict=True)
    }
    assert drawn["Ann (Red)"] == "#aa0000"
    assert len(set(drawn.values())) == 3
    axes = plots.by_covariate(model, "precinct")
    known = model._fit.known.rows["precinct"].tolist()
    names = {label.get_text() for label in axes.get_yticklabels()}
    assert names == {f"{name} ({known.count(name)})" for name in ("north", "south")}
    assert "was not used in the fit" in axes.get_title()
    frame = model.by_covariate("precinct")
    np.testing.assert_allclose(axes.lines[1].get_xdata(), 100 * frame[frame.group == 0].share_of_value)


def test_statements_are_shown_as_text(tmp_path, run):
    votes = ["timestamp,datetime,comment-id,voter-id,vote"]
    votes += [f"{i},x,{i % 4},{i // 4},{1 if (i // 4 < 6) == (i % 4 < 2) else -1}" for i in range(48)]
    (tmp_path / "votes.csv").write_text("\n".join(votes) + "\n")
    text = "A long statement that goes on about buses at night and never seems to come to any end at all"
    lines = [f"{k},{text} {k}" for k in range(4)]
    (tmp_path / "comments.csv").write_text("comment-id,comment-body\n" + "\n".join(lines) + "\n")
    labels = tmp_path / "columns.csv"
    few = ["--draws", 20, "--burn-in", 10, "--chains", 1, "--quiet"]
    command = ["fit", "cocluster", tmp_path / "votes.csv", "-o", tmp_path / "x.permix", *few]
    said = run(*command, "--column-labels", labels, "--min-answers", 2)[1]
    assert f"0: {text} 0" in said  # where there is room for it
    assert labels.read_text().splitlines()[0] == "column,group,how_sure,placed,text"
    assert f",{text} 3" in labels.read_text()
    assert permix.load(tmp_path / "x.permix")._fit.known.items == Attributes(
        {"text": [f"{text} {k}" for k in range(4)]}
    )
