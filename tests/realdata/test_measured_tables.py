"""Tables that others measured, as they come: with text, with gaps, with columns cut into intervals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import permix
from tests.cli.conftest import run

__all__ = ["run"]


@pytest.mark.realdata
def test_banknotes_need_no_preparation(run, data_folder, tmp_path):
    file, fit = data_folder / "tables" / "banknote.csv", tmp_path / "b.permix"
    code, out, err = run("fit", "dp-mixture", file, "-o", fit, "--draws", 60, "--burn-in", 60)
    assert code == 0, err
    assert "2 categories: counterfeit, genuine" in out
    report = json.loads(run("summary", fit, "--json")[1])
    assert [column["read_as"] for column in report["columns_read_as"][1:]] == ["numbers"] * 6
    kind = (pd.read_csv(file)["Status"] == "genuine").to_numpy()
    # Groups may be parts of one kind of notes, but not mixtures of both.
    labels = permix.load(fit).labels_
    shares = np.array([kind[labels == group].mean() for group in np.unique(labels)])
    sizes = np.bincount(labels)
    assert (sizes * np.maximum(shares, 1 - shares)).sum() > 0.97 * len(kind)


def test_flowers_with_gaps_and_intervals():
    iris = load_iris(as_frame=True)
    frame = iris.data.mask(np.random.default_rng(0).random(iris.data.shape) < 0.1)
    frame["petal width (cm)"] = pd.cut(frame["petal width (cm)"], 4)
    model = permix.DPMixture(n_draws=60, n_burn_in=60, random_state=0, progress=False).fit(frame)
    assert model.family_.kinds == ("number", "number", "number", "ordered")
    setosa = iris.target.to_numpy() == 0
    assert permix.adjusted_rand(model.labels_ == model.labels_[setosa][0], setosa) > 0.8
