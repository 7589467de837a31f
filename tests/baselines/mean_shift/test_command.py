"""``fit mean-shift``, and what other commands make of its groups."""

from __future__ import annotations

import csv
import json

import pytest

import permix

ITEMS = ["tea", "coffee", "water", "milk", "cola"]
VOTES = [["tea", "coffee"], ["coffee", "tea", "milk"], ["tea", "milk"], ["water", "cola"], ["cola", "water"]]
COUNTS = [6, 3, 2, 4, 3]


@pytest.fixture
def lists():
    return permix.Rankings.from_orders(VOTES, items=ITEMS, counts=COUNTS)


@pytest.fixture
def votes(lists, tmp_path):
    path = tmp_path / "votes.soi"
    permix.write(lists, path)
    return path


def test_mean_shift(run, votes, lists, tmp_path):
    fit, labels, picture = tmp_path / "m.permix", tmp_path / "labels.csv", tmp_path / "m.png"
    code, out, err = run(
        "fit", "mean-shift", votes, "-o", fit, "--length", 2, "--labels", labels, "--picture", picture
    )
    assert code == 0, err
    read = permix.read(votes)
    model = permix.BlurringMeanShift(length=2).fit(read)
    assert 1 < model.n_clusters_ < len(read)
    assert f"{model.n_clusters_} groups" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    with labels.open() as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0]) == ["agent", "count", "group", "how_sure"]
    assert [int(row["group"]) - 1 for row in rows] == model.labels_.tolist()
    chosen = model.predict_proba(read)[range(len(read)), model.labels_]
    assert [float(row["how_sure"]) for row in rows] == pytest.approx(chosen, abs=1e-6)
    assert run("summary", fit)[1] == out
    report = json.loads(run("summary", fit, "--json")[1])
    assert [part["agents"] for part in report["groups"]] == model.cluster_sizes_.tolist()
    assert [part["center"] for part in report["groups"]] == [
        [model.items_[item] for item in row if item >= 0] for row in model.centers_.orders
    ]
    assert report["log_likelihood"] == model.log_likelihood_


def test_predict(run, votes, lists, tmp_path):
    fit, newcomers = tmp_path / "m.permix", tmp_path / "new.csv"
    assert run("fit", "mean-shift", votes, "-o", fit)[0] == 0
    newcomers.write_text("person,n,1,2\nann,1,tea,coffee\nbob,3,water,\n")
    reading = ("--agent-column", "person", "--count-column", "n")
    answer = json.loads(run("predict", fit, newcomers, *reading, "--json")[1])
    model = permix.load(fit)
    new = permix.Rankings.from_orders([["tea", "coffee"], ["water"]], items=model.items_, counts=[1, 3])
    assert [row["agent"] for row in answer["rows"]] == ["ann", "bob"]
    assert [row["group"] - 1 for row in answer["rows"]] == model.predict(new).tolist()
    assert [row["how_sure"] for row in answer["rows"]] == pytest.approx(
        model.predict_proba(new).max(axis=1), abs=1e-6
    )
    assert answer["mean_log_probability"] == pytest.approx(model.score(new))
    code, _, err = run("sample", fit)
    assert code == 1
    assert "from which nothing can be drawn" in err
    code, _, err = run("predict", fit, newcomers, *reading, "--unlisted", "unknown")
    assert code == 1
    assert "--unlisted below" in err
    assert "permix fit mallows takes" in err


def test_what_is_said_of_lists_that_still_move(run, votes, tmp_path):
    fit = tmp_path / "m.permix"
    code, out, err = run("fit", "mean-shift", votes, "-o", fit, "--max-iter", 1, "--decay", 1.0)
    assert code == 0
    assert "--max-iter goes further" in out
    assert "go further with a larger --max-iter" in err


def test_many_groups_are_cut(capsys):
    from permix.baselines.mean_shift.tables import report as mean_shift_report
    from permix.baselines.mean_shift.tables import show as print_mean_shift

    lists = permix.Rankings.from_orders(VOTES, items=ITEMS)
    report = mean_shift_report(permix.BlurringMeanShift().fit(lists)._fit)
    report["groups"] = report["groups"] * 40
    print_mean_shift(report, "many")
    assert f"and {len(report['groups']) - 30} smaller groups" in capsys.readouterr().out


def test_pictures(lists):
    model = permix.BlurringMeanShift(length=2).fit(lists)
    axes = permix.plots.groups(model)
    assert len(axes.patches) == model.n_clusters_
    assert axes.get_title() == f"{model.n_clusters_} groups and their centers"
    with pytest.raises(permix.errors.DataError, match="it has overview, groups"):
        permix.plots.traces(model)
