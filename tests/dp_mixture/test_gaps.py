"""Tables of numbers with gaps: every family, files, predictions of rows that lack cells, missing codes."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.dp_mixture.table_source import read_table
from permix.errors import DataError, FileFormatError, PermixWarning
from permix.files import RESERVED, read_archive, write_archive
from permix.moves import Cycle, Gibbs, Hyperparameters, MissingCells
from permix.moves.state import MixtureState

RNG = np.random.default_rng(7)
MIXING = np.array([[1.0, 0.9, 0.0], [0.0, 0.4, 0.5], [0.0, 0.0, 0.6]])
Y = np.repeat([0, 1], [35, 25])
COMPLETE = np.array([[0.0, 0.0, 0.0], [5.0, -4.0, 3.0]])[Y] + RNG.normal(size=(60, 3)) @ MIXING
X = COMPLETE.copy()
X[RNG.random(X.shape) < 0.15] = np.nan
SETTINGS = {"n_draws": 60, "n_burn_in": 40, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def model():
    return permix.DPMixture(**SETTINGS).fit(X)


def test_correlated_tables_with_gaps_keep_full_covariances(model):
    assert model.family_.name == "gaussian-niw"
    assert permix.adjusted_rand(model.labels_, Y) > 0.9
    cells = model.posterior_["posterior"]["missing_cells"].to_numpy()
    assert cells.shape == (2, 60, int(np.isnan(X).sum()))
    # What is drawn is near what was there: within 5 % and 95 % about nine times out of ten.
    low, high = np.quantile(cells.reshape(-1, cells.shape[2]), [0.05, 0.95], axis=0)
    truth = COMPLETE[np.isnan(X)]
    assert 0.7 < np.mean((low < truth) & (truth < high)) < 1.0
    covariance = model.cluster_parameters_["covariance"]
    assert np.all(np.isfinite(covariance))
    assert np.all(np.linalg.eigvalsh(covariance) > 0)


def test_new_rows_are_scored_by_what_was_observed(model):
    rows = COMPLETE[:4].copy()
    whole = model.score_samples(rows)
    rows[0, 1] = rows[1, 0] = rows[1, 2] = np.nan
    rows[2] = np.nan
    scores = model.score_samples(rows)
    assert scores[3] == pytest.approx(whole[3], abs=1e-9)
    assert scores[2] == pytest.approx(0.0, abs=1e-9)  # nothing was observed
    # Densities of fewer columns integrate to one over these: the cell that is missing is integrated out.
    grid = np.linspace(-30.0, 30.0, 2001)
    line = np.repeat(rows[:1], len(grid), axis=0)
    line[:, 1] = grid
    integral = np.log(np.exp(model.score_samples(line)).sum() * (grid[1] - grid[0]))
    assert scores[0] == pytest.approx(integral, abs=1e-3)
    assert model.predict_proba(rows).sum(axis=1) + model.predict_novelty(rows) == pytest.approx(1.0)


def test_files_keep_what_was_filled_in(model, tmp_path):
    model.save(tmp_path / "gaps.permix")
    back = permix.load(tmp_path / "gaps.permix")
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    manifest, arrays = read_archive(tmp_path / "gaps.permix")
    manifest = {key: value for key, value in manifest.items() if key not in RESERVED}
    cells = arrays["draws/missing_cells"]
    for broken in (None, cells[..., :-1].copy(), np.where(np.arange(cells.shape[2]) == 3, np.nan, cells)):
        changed = {**arrays, "draws/missing_cells": broken}
        if broken is None:
            del changed["draws/missing_cells"]
        write_archive(tmp_path / "broken.permix", manifest, changed)
        with pytest.raises(FileFormatError):
            permix.load(tmp_path / "broken.permix")


def test_checkpoints_hold_what_was_filled_in():
    asked = permix.GaussianNIW()
    family = asked.resolve(X)
    prior, learning = permix.MixtureOfFiniteMixtures(), asked.learning(family, X)
    move = Cycle([Gibbs(), MissingCells(), Hyperparameters()])
    states = [MixtureState(family, X, len(X), prior, learning=learning) for _ in range(2)]
    states[0].set_labels(Y)
    rng = np.random.default_rng(0)
    for _ in range(3):
        move.step(rng, states[0])
    kept = states[0].checkpoint()
    states[1].restore(kept)
    np.testing.assert_array_equal(states[1].data, states[0].data)
    assert states[1].log_joint() == pytest.approx(states[0].log_joint(), rel=1e-9)
    with pytest.raises(DataError, match="missing cells"):
        states[1].restore({**kept, "missing_cells": kept["missing_cells"][1:]})


@pytest.mark.parametrize("family", ["gaussian", "gaussian-diagonal", "mixed"])
def test_gaps_in_families_of_independent_columns(family):
    model = permix.DPMixture(family, **SETTINGS).fit(X)
    assert permix.adjusted_rand(model.labels_, Y) > 0.5
    assert np.isfinite(model.score_samples(X)).all()


def test_a_column_without_any_entry_is_named():
    table = X.copy()
    table[:, 1] = np.nan
    with pytest.raises(DataError, match="column 2 has no entry at all"):
        permix.DPMixture(**SETTINGS).fit(table)


def test_codes_for_missing_are_named():
    table = COMPLETE.copy()
    table[::7, 2] = -99.0
    with pytest.warns(PermixWarning, match="column 3: 9 cells are -99, while all others are"):
        permix.DPMixture(n_draws=4, n_burn_in=4, random_state=0, progress=False).fit(table)


def test_codes_for_missing_are_read_as_gaps(tmp_path):
    file = tmp_path / "codes.csv"
    file.write_text("age,income,town\n31,-99,Rome\n40,12.5,-99\n-99.0,refused,Oslo\n")
    rows = read_table(file, {"missing": ["-99", "refused"]}).rows
    np.testing.assert_array_equal(rows[["age", "income"]], [[31, np.nan], [40, 12.5], [np.nan, np.nan]])
    assert rows["town"].isna().tolist() == [False, True, False]
    with pytest.warns(PermixWarning, match="no cell holds '-7'"):
        read_table(file, {"missing": ["-7"]})
    np.save(tmp_path / "codes.npy", [[1, -99], [3, 4]])
    rows = read_table(tmp_path / "codes.npy", {"missing": ["-99"]}).rows
    np.testing.assert_array_equal(rows, [[1, np.nan], [3, 4]])
