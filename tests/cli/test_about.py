"""What files keep of how a fit came about: what was done to ballots, what the number of groups rests on."""

from __future__ import annotations

import json

import pytest

from permix.estimators.archive import read_about
from permix.files import read_archive, write_archive

BALLOTS = "precinct,rank1,rank2,rank3\n" + "A,Ann,Bo,skipped\nB,Bo,overvote,Ann\nB,Cy,Cy,Ann\nA,,Ann,Bo\n" * 8

READ = "Read as: Table of ballots, a column for each rank; set apart: precinct."


@pytest.fixture
def fit(run, tmp_path):
    votes, fit = tmp_path / "ballots.csv", tmp_path / "f.permix"
    votes.write_text(BALLOTS)
    code, out, err = run("fit", "mallows", votes, "--select", "1-2", "--starts", 2, "-o", fit, "--quiet")
    assert code == 0, err
    assert "What was done to the votes" in out
    assert READ in out
    return fit


def test_the_file_says_what_was_done(run, fit):
    about = read_about(fit)
    found = {row["found"].partition(":")[0]: row["ballots"] for row in about["cleaning"]}
    marks = {"ballots with entries that are marks and no candidates": 16}
    assert found == {"overvotes": 8, "skipped ranks": 8, "candidates ranked again": 8, **marks}
    assert [row["n_groups"] for row in about["selection"]][:2] == [1, 2]
    code, out, _ = run("summary", fit)
    assert code == 0
    assert "What was done to the votes" in out
    assert READ in out
    assert "What the number of groups was chosen by" in out
    code, out, _ = run("summary", fit, "--json")
    assert json.loads(out)["cleaning"] == about["cleaning"]
    assert about["reading"] == json.loads(out)["reading"] == [{"said": READ}]


def test_what_is_no_table_is_left_out(run, fit, tmp_path):
    manifest, arrays = read_archive(fit)
    kept = {
        key: value for key, value in manifest.items() if key not in ("format", "version", "permix", "arrays")
    }
    for told in (
        *("text", ["x"], {"cleaning": "x"}, {"cleaning": [{"found": {}}]}, {"cleaning": [{"found": "x"}]}),
        *({"selection": [1]}, {"other": []}),
    ):
        write_archive(tmp_path / "odd.permix", {**kept, "about": told}, arrays)
        assert read_about(tmp_path / "odd.permix") == {}, told
        assert run("summary", tmp_path / "odd.permix")[0] == 0, told
