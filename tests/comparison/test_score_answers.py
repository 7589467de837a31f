"""``predict --what score`` of every model, and how well cells that were held out are predicted."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import permix
from permix.cocluster.tables import held_out_report, measures
from permix.comparison.forms import FORMS
from permix.estimators.archive import write_model
from permix.estimators.registry import MODELS, part
from tests.comparison.test_events import ITEMS, QUICK, data, of_votes

COMMANDS = [name for name in of_votes() if MODELS[name].command]


@pytest.mark.parametrize("name", COMMANDS)
def test_votes_are_scored_by_every_model_of_votes(run, tmp_path, name):
    compared, table = of_votes()[name], data()
    given = {key: value for key, value in QUICK.items() if key in compared.parameters.declared}
    fit = compared.fit(table, compared.parameters(**given))
    model, file = tmp_path / "model.permix", tmp_path / "new.csv"
    write_model(fit, model)
    file.write_text("pos1,pos2,pos3,pos4\na,b,c,d\nd,c,,\nb,,,\n")
    code, out, err = run("predict", model, file, "--what", "score", "--json")
    assert code == 0, err
    report = json.loads(out)
    new = permix.Rankings.from_orders([["a", "b", "c", "d"], ["d", "c"], ["b"]], items=ITEMS)
    values, errors = compared.score(fit, FORMS["votes"].read(new), 0)
    assert [row["log_probability"] for row in report["rows"]] == pytest.approx(values.tolist(), abs=1e-6)
    assert [row["standard_error"] for row in report["rows"]] == pytest.approx(errors.tolist(), abs=1e-6)
    uniform = -np.mean(np.log([24.0, 12.0, 4.0]))
    assert report["mean_log_probability"] == pytest.approx(values.mean(), abs=1e-6)
    assert report["uniform_log_probability"] == pytest.approx(uniform)


def test_every_command_scores():
    for about in MODELS.values():
        if about.command:
            assert "score" in part(about.command).answers, about.name


def test_rows_of_tables_are_scored_beside_simpler_models(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-4, 1, (15, 2)), rng.normal(4, 1, (15, 2))])
    model = permix.DPMixture(n_draws=100, n_burn_in=50, random_state=0, progress=False)
    model.fit(pd.DataFrame(rows, columns=["x", "y"])).save(tmp_path / "m.permix")
    file = tmp_path / "new.csv"
    new = pd.DataFrame([[-4.0, -4.0], [0.5, 0.25]], columns=["x", "y"])
    new.to_csv(file, index=False)
    code, out, err = run("predict", tmp_path / "m.permix", file, "--what", "score", "--json")
    assert code == 0, err
    report = json.loads(out)
    expected = model.score_samples(new)
    assert [row["log_density"] for row in report["rows"]] == pytest.approx(expected.tolist(), abs=1e-5)
    assert report["mean_log_density"] > -20.0
    assert "mean_under_one_group" in report


def test_errors_of_held_out_cells_are_those_counted_by_hand():
    rng = np.random.default_rng(1)
    table = np.kron(rng.integers(0, 2, (2, 3)) * 4.0, np.ones((8, 4))) + rng.integers(0, 2, (16, 12))
    kept, held = permix.Cells.coerce(table).split(0.2, 0)
    model = permix.CoClustering(n_draws=60, n_burn_in=60, random_state=0, progress=False).fit(kept)
    report = held_out_report(model._fit, held)
    pairs = list(zip(held.rows.tolist(), held.columns.tolist(), strict=True))
    mean, mode = model.predict_cells_mean(cells=pairs), model.predict_cells(cells=pairs)
    assert report["rmse"] == pytest.approx(np.sqrt(np.mean((mean - held.values) ** 2)))
    assert report["accuracy"] == pytest.approx(np.mean(mode == held.values))
    # The baselines, by hand: shares of levels of all cells, and of those of each column.
    levels = np.unique(kept.values)
    shares = np.array([(kept.values == level).sum() + 1.0 for level in levels])
    shares /= shares.sum()
    one = report["baselines"]["one group"]
    assert one["rmse"] == pytest.approx(np.sqrt(np.mean((held.values - shares @ levels) ** 2)))
    assert one["accuracy"] == pytest.approx(np.mean(held.values == levels[shares.argmax()]))
    codes = np.searchsorted(levels, held.values)
    assert one["perplexity"] == pytest.approx(np.exp(-np.log(shares[codes]).mean()))
    squares = []
    for column, value in zip(held.columns, held.values, strict=True):
        own = kept.values[kept.columns == column]
        weights = np.array([(own == level).sum() + 1.0 for level in levels])
        squares.append((value - weights @ levels / weights.sum()) ** 2)
    assert report["baselines"]["independent columns"]["rmse"] == pytest.approx(np.sqrt(np.mean(squares)))
    assert report["rmse"] < one["rmse"]


def test_levels_that_are_text_have_accuracy_alone():
    kept = permix.Cells.coerce(np.array([["yes", "no"], ["no", "yes"], ["yes", "yes"]], dtype=object))
    model = permix.CoClustering(n_draws=20, n_burn_in=10, random_state=0, progress=False).fit(kept)
    said = np.array([[0.3, 0.7], [0.6, 0.4]])
    found = measures(model._fit.family, said, np.array(["yes", "yes"], dtype=object), np.array([1, 1]))
    assert found == {"accuracy": 0.5}
