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


@pytest.fixture(scope="module")
def counts():
    """Three groups of counts, a third of which is missing, and what was there."""
    rng, y = np.random.default_rng(3), np.repeat([0, 1, 2], [30, 25, 20])
    shares = np.array([[6, 1, 1, 1, 3, 1], [1, 6, 1, 3, 1, 1], [1, 1, 6, 1, 1, 3]]) / 13.0
    complete = np.array([rng.multinomial(40, shares[k]) for k in y]).astype(float)
    table = np.where(rng.random(complete.shape) < 0.3, np.nan, complete)
    table[5] = np.nan
    return table, complete, y, permix.DPMixture("multinomial", **SETTINGS).fit(table)


def test_missing_counts(counts):
    table, complete, y, model = counts
    assert permix.adjusted_rand(model.labels_, y) > 0.75
    missing = np.isnan(table) & ~np.isnan(table).all(axis=1, keepdims=True)
    cells = model.posterior_["posterior"]["missing_cells"].to_numpy()
    assert cells.shape == (2, 60, int(np.isnan(table).sum()))
    assert np.all(cells == np.floor(cells))
    drawn = np.full((*table.shape, 120), np.nan)
    drawn[np.isnan(table)] = cells.reshape(120, -1).T
    assert np.all(drawn[5] == 0.0)  # nothing was observed
    low, high = np.quantile(drawn[missing], [0.05, 0.95], axis=1)
    assert 0.8 < np.mean((low <= complete[missing]) & (complete[missing] <= high)) < 1.0
    # Shares are those of complete rows: in the table of groups, in profiles, in words.
    for k in range(model.n_clusters_):
        of_group = complete[model.labels_ == k].sum(axis=0)
        assert model.cluster_parameters_["probabilities"][k] == pytest.approx(
            of_group / of_group.sum(), abs=0.05
        )
        profile = model.profile().loc[k].sort_index(key=lambda names: names.str[-1])
        assert profile["typical"].to_numpy() == pytest.approx(of_group / of_group.sum(), abs=0.05)
    assert model.fit_checks(random_state=0).aspects["reproduced"].all()


def test_missing_counts_of_new_rows_and_files(counts, tmp_path):
    table, complete, _, model = counts
    rows = complete[:2].copy()
    rows[0, 1] = np.nan
    assert model.score_samples(rows)[1] == pytest.approx(model.score_samples(complete[:2])[1], abs=1e-9)
    # Rows with gaps have the probability of how the rest of them is shared out: over all ways, one.
    few = np.array([[a, np.nan, 3 - a, np.nan, np.nan, np.nan] for a in range(4)])
    assert np.exp(model.score_samples(few)).sum() == pytest.approx(1.0, abs=1e-9)
    assert model.predict_proba(rows).sum(axis=1) + model.predict_novelty(rows) == pytest.approx(1.0)
    model.save(tmp_path / "counts.permix")
    back = permix.load(tmp_path / "counts.permix")
    np.testing.assert_array_equal(back.score_samples(table), model.score_samples(table))
    # A fit to complete counts scores rows with gaps as well.
    whole = permix.DPMixture("multinomial", **SETTINGS).fit(complete)
    assert np.exp(whole.score_samples(few)).sum() == pytest.approx(1.0, abs=1e-9)
    assert whole.predict(table).tolist() == pytest.approx(whole.labels_, abs=2)


def test_checkpoints_hold_missing_counts(counts):
    table, _, y, _ = counts
    asked = permix.Multinomial()
    family = asked.resolve(table)
    data = family.encode(table)
    learning = asked.learning(family, data)
    assert learning.prior.low == pytest.approx(
        1.0 / (6 - np.isnan(table[np.arange(75) != 5]).sum(axis=1).max())
    )
    states = [
        MixtureState(family, data, 75, permix.MixtureOfFiniteMixtures(), learning=learning) for _ in range(2)
    ]
    states[0].set_labels(y)
    rng, move = np.random.default_rng(0), Cycle([Gibbs(), MissingCells(), Hyperparameters()])
    for _ in range(3):
        move.step(rng, states[0])
    states[1].restore(states[0].checkpoint())
    for a, b in zip(states[1].data, states[0].data, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert states[1].log_joint() == pytest.approx(states[0].log_joint(), rel=1e-9)


def test_groups_are_described_given_their_rows():
    """A row that chains put now here, now there is filled in like the group that it is shown in."""
    rng = np.random.default_rng(8)
    table = np.repeat([[0.0, 0.0], [3.0, 40.0]], 40, axis=0) + rng.normal(size=(80, 2))
    table[:12, 0], table[:12, 1] = 1.5, np.nan
    model = permix.DPMixture(permix.GaussianNIW(), **SETTINGS).fit(table)
    means = model.cluster_parameters_["mean"]
    for k in range(model.n_clusters_):
        seen = table[model.labels_ == k]
        assert means[k, 1] == pytest.approx(np.nanmean(seen[:, 1]), abs=1.5)


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
