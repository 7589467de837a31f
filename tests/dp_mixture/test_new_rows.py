"""``predict`` and ``sample`` with mixtures of vectors, on small generated data."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd

import permix


def table_in(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_groups_of_new_rows_and_new_rows(run, points, tmp_path):
    fit, target = tmp_path / "points.permix", tmp_path / "groups.csv"
    assert run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--draws", 40, "--burn-in", 20)[0] == 0
    new = tmp_path / "new.csv"
    new.write_text("who,weight,height,note\nx,-5,-5,a\ny,5,5,b\nz,60,-60,c\n")
    code, _, err = run("predict", fit, new, "--id", "who", "--ignore", "note", "-o", target)
    assert code == 0, err
    rows = table_in(target)
    assert [row["who"] for row in rows] == ["x", "y", "z"]
    model = permix.load(fit)
    X = np.array([[-5.0, -5.0], [5.0, 5.0], [-60.0, 60.0]])  # columns by name, not by place
    X = pd.DataFrame(X, columns=["height", "weight"])
    assert [int(row["group"]) - 1 for row in rows] == model.predict(X).tolist()
    np.testing.assert_allclose([float(row["new"]) for row in rows], model.predict_novelty(X), atol=1e-6)
    assert float(rows[0]["new"]) < 0.1
    assert float(rows[2]["new"]) > 0.9
    printed = list(csv.reader(io.StringIO(run("sample", fit, "-n", 200)[1])))
    assert printed[0] == ["height", "weight"]
    drawn = np.array(printed[1:], dtype=float)
    assert drawn.shape == (200, 2)
    # Two groups near ±5: nearly all rows have both coordinates on one side.
    assert (np.sign(drawn[:, 0]) == np.sign(drawn[:, 1])).mean() > 0.9
    assert run("sample", fit, "-n", 5, "-o", tmp_path / "rows.csv")[0] == 0
    assert len(table_in(tmp_path / "rows.csv")) == 5
    for arguments, words in (
        (["predict", fit, new, "--id", "who"], ["'note'", "--ignore note"]),
        (["predict", fit, points, "--id", "name", "--ignore", "height"], ["no column 'height'"]),
        (["sample", fit, "-o", tmp_path / "rows.soc"], [".csv"]),
    ):
        code, _, err = run(*arguments)
        assert code == 1
        assert all(word in err for word in words)
    for options in (["--what", "ranking"], ["--layout", "ranks"], ["--unlisted", "below"]):
        assert run("predict", fit, new, *options)[0] == 2
