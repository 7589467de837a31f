"""``fit kde``, and what other commands make of a density estimate."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import permix
from permix import MallowsKDE

ROWS = [["tea", "milk", "juice"], ["milk", "tea", "juice"], ["milk", "juice", "tea"]]
NEW = "agent,pos1,pos2,pos3\nann,tea,milk,juice\nbob,juice,tea,milk\n"


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(NEW)
    return path


def test_predict_summary_and_sample(run, new, tmp_path):
    fit = tmp_path / "density.permix"
    MallowsKDE(dispersion=0.4).fit(permix.Rankings.from_orders(ROWS)).save(fit)
    code, out, err = run("predict", fit, new, "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert [row["agent"] for row in answer["rows"]] == ["ann", "bob"]
    bumps = [
        permix.Mallows(row, 0.4).log_prob([["tea", "milk", "juice"], ["juice", "tea", "milk"]])
        for row in ROWS
    ]
    expected = np.log(np.exp(bumps).mean(axis=0))
    np.testing.assert_allclose([row["log_probability"] for row in answer["rows"]], expected)
    assert answer["mean_log_probability"] == pytest.approx(expected.mean())
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["model"] == "MallowsKDE"
    assert report["dispersion"] == pytest.approx(0.4)
    assert report["closed_form"] is True
    assert "closed form" in run("info", fit)[1]
    drawn = list(csv.reader(io.StringIO(run("sample", fit, "-n", 20)[1])))[1:]
    assert all(sorted(row) == ["juice", "milk", "tea"] for row in drawn)
    assert len(drawn) == 20
    assert run("predict", fit, new, "--what", "pairwise")[0] == 2


def test_fit(run, tmp_path):
    votes, fit, picture = tmp_path / "votes.csv", tmp_path / "density.permix", tmp_path / "density.png"
    data = permix.Mallows(["tea", "milk", "juice", "cola"], 0.5).sample(60, random_state=0)
    permix.write(data, votes)
    code, out, err = run("fit", "kde", votes, "-o", fit, "--picture", picture)
    assert code == 0, err
    assert picture.read_bytes().startswith(b"\x89PNG")
    model = MallowsKDE(random_state=0).fit(permix.read(votes))
    assert json.loads(run("summary", fit, "--json")[1])["dispersion"] == model.dispersion_
    assert run("summary", fit)[1] == out
    table = out.partition("remark")[2].splitlines()[1:]  # what cross-validation looked at
    shown = [line.split()[0] for line in table if line.strip() and not line.startswith("--")]
    assert len(shown) == len(set(shown)) > 5
    assert sum(line.rstrip().endswith("best") for line in table) == 1
    code, out, err = run(
        "fit", "kde", votes, "-o", fit, "--force", "--dispersion", 0.3, "--picture", picture, "--force"
    )
    assert code == 0, err
    assert permix.load(fit).dispersion_ == 0.3
    code, _, err = run("fit", "kde", votes, "-o", fit, "--force", "--dispersion", 3)
    assert code == 2
    assert "--dispersion 3.0 must be" in err


def test_one_agent_alone(run, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("agent,pos1,pos2\nann,tea,milk\n")
    code, _, err = run("fit", "kde", votes, "-o", tmp_path / "x.permix")
    assert code == 1
    assert "one agent only; pass a number from 0 to 1 as --dispersion" in err


def test_pictures():
    model = MallowsKDE(dispersion=0.3).fit(permix.Rankings.from_orders(ROWS))
    assert len(permix.plots.overview(model).axes) == 1
    with pytest.raises(permix.errors.DataError, match="no picture 'groups' of a MallowsKDE; it has overview"):
        permix.plots.groups(model)
