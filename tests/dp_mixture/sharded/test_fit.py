"""Mixtures of rows in shards: the same bits however rows are divided, and what can be asked of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import permix
from permix.data.cells import Cells
from permix.data.shards.matrices import ShardedCells, read_sharded_cells
from permix.data.shards.sharded import Sharded
from permix.dp_mixture.sharded import fit as fitting
from permix.errors import DataError, PermixWarning, ShardError
from permix.moves.sharded import state, work
from permix.runtime.executors import Here
from permix.sampling import chain, run_chains

N_ROWS = 400
COLUMNS = ["wing", "tail", "weight"]


@pytest.fixture(scope="module")
def birds():
    """Three groups of rows, in two of which columns are correlated; names of rows and columns."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(3, N_ROWS, p=[0.5, 0.3, 0.2])
    centers = np.array([[0.0, 0.0, 0.0], [6.0, 6.0, 0.0], [-6.0, 4.0, 8.0]])
    X = rng.normal(size=(N_ROWS, 3)) + centers[kinds]
    X[:, 1] += np.where(kinds < 2, 0.8 * (X[:, 0] - centers[kinds, 0]), 0.0)
    names = [f"bird {number}" for number in range(N_ROWS)]
    return Cells.from_frame(pd.DataFrame(X, pd.Index(names, name="bird"), COLUMNS)), kinds


@pytest.fixture(autouse=True)
def small_records(monkeypatch):
    """80 rows on record, so that few rows are many."""
    monkeypatch.setattr(fitting, "ON_RECORD", 80)
    monkeypatch.setattr(fitting, "FIRST_ITERATIONS", 6)


def fitted(data, family=None, **options):
    options = {"n_draws": 6, "n_burn_in": 4, "n_chains": 2, **options}
    return permix.DPMixture(family, random_state=0, progress=False, n_jobs=1, **options).fit(data)


def assert_same(one, other):
    for name, array in one._fit.draws.arrays.items():
        assert np.array_equal(array, other._fit.draws.arrays[name]), name


@pytest.fixture(scope="module")
def one(birds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "ON_RECORD", 80)
        patch.setattr(fitting, "FIRST_ITERATIONS", 6)
        return fitted(ShardedCells.of(birds[0], 1, Here(1)))


@pytest.mark.parametrize(("n_shards", "n_threads", "most_held"), [(2, 1, None), (7, 2, 3)])
def test_the_same_bits_however_rows_are_divided(birds, one, n_shards, n_threads, most_held):
    assert_same(fitted(ShardedCells.of(birds[0], n_shards, Here(n_threads, most_held))), one)


def test_sums_with_errors_of_rounding_are_told_apart(birds, one, monkeypatch):
    """The broken twin adds what it has: other bits."""
    monkeypatch.setattr(fitting, "rounding_of", lambda n, largest: np.zeros(4))
    other = fitted(ShardedCells.of(birds[0], 7, Here(1)))
    assert not np.array_equal(other._fit.draws.arrays["log_joint"], one._fit.draws.arrays["log_joint"])


def test_groups_are_found(birds, one):
    cells, kinds = birds
    assert (one.n_clusters_, one._fit.sampled_from, one._fit.n) == (3, N_ROWS, 80)
    assert isinstance(one.family_, permix.GaussianNIW)
    table = pd.crosstab(one.predict(cells), kinds).to_numpy()
    assert table.max(axis=1).sum() >= 0.99 * N_ROWS
    # The likelihood is that of all rows given their groups, of which rows tell nothing in advance.
    shares = np.bincount(kinds) / N_ROWS
    expected = one.log_likelihood_ / N_ROWS + (shares * np.log(shares)).sum()
    assert one.score_samples(cells).mean() == pytest.approx(expected, abs=0.2)
    assert one.summary().columns[-3:].tolist() == COLUMNS
    with pytest.raises(AttributeError, match="predict_shards"):
        one.labels_  # noqa: B018


def test_draws_are_those_of_a_chain_over_the_table(birds):
    """Both samplers agree about the whole table: hyper-parameters, numbers of groups, likelihood."""
    cells, _ = birds
    options = {"n_draws": 150, "n_burn_in": 50, "family": permix.GaussianDiagonal()}
    found = fitted(ShardedCells.of(cells, 2, Here(1)), **options)._fit.draws.arrays
    known = fitted(cells, **options)._fit.draws.arrays
    for name in ("n_groups", "log_likelihood", "prior_strength", "degrees_of_freedom"):
        drawn, told = (np.log(np.abs(arrays[name])).reshape(2, -1) for arrays in (found, known))
        # Twenty batches of each, since draws of a chain are alike.
        batches = [each.reshape(20, -1).mean(axis=1) for each in (drawn, told)]
        error = np.sqrt(sum(each.var(ddof=1) / 20 for each in batches))
        assert abs(drawn.mean() - told.mean()) < 4.5 * error + 1e-3, name


def test_a_run_that_broke_off_goes_on_to_the_same_bits(birds, tmp_path, monkeypatch):
    """Checkpoints hold splits and merges, too: here they are taken in every iteration."""
    monkeypatch.setattr(chain, "REFRESH", 1)
    monkeypatch.setattr(fitting, "FIRST_ITERATIONS", 0)
    data, known = ShardedCells.of(birds[0], 2, Here(1)), {"n_chains": 1, "n_burn_in": 0, "init": "one-group"}
    whole = fitted(data, **known)
    assert whole._fit.draws.arrays["n_groups"][0, -1] > 1
    n_looks, real = 0, work.look

    def killed(shard, shared):
        nonlocal n_looks
        n_looks += 1
        if n_looks == 15:
            raise OSError("the client is killed")
        return real(shard, shared)

    def at_once(*given, **options):
        return run_chains(*given, **options, checkpoint_seconds=0.0)

    monkeypatch.setattr(state, "look", killed)
    monkeypatch.setattr(fitting, "run_chains", at_once)
    with pytest.raises(OSError, match="the client is killed"):
        fitted(data, **known, store=tmp_path / "store")
    monkeypatch.setattr(state, "look", real)
    assert (tmp_path / "store" / "chain-0" / "state.npz").exists()
    assert_same(fitted(data, **known, store=tmp_path / "store"), whole)


def test_files_and_answers(birds, one, tmp_path):
    cells, _ = birds
    for part, last in enumerate((150, 250, N_ROWS)):
        table = pd.DataFrame(cells.dense(), pd.Index(cells.row_names, name="bird"), COLUMNS)
        table.iloc[(0, 150, 250)[part] : last].to_csv(tmp_path / f"part-{part}.csv")
    data = read_sharded_cells(str(tmp_path / "part-*.csv"))
    assert (data.n_rows, data.n_shards, data.column_names) == (N_ROWS, 3, tuple(COLUMNS))
    again = fitted(data)
    assert again._fit.draws.arrays["n_groups"].shape == one._fit.draws.arrays["n_groups"].shape
    one.save(tmp_path / "fit.permix")
    loaded = permix.load(tmp_path / "fit.permix")
    assert loaded.summary().equals(one.summary())
    assert loaded._fit.sampled_from == N_ROWS
    permix.report(loaded, tmp_path / "report.md")
    assert "random sample of 80 of 400 rows" in (tmp_path / "report.md").read_text()
    written = permix.predict_shards(loaded, data, tmp_path / "answers")
    assert written["rows"].sum() == N_ROWS
    answers = pd.concat([pd.read_parquet(file) for file in written["file"]])
    assert answers["row"].tolist() == list(cells.row_names)
    assert np.array_equal(answers["group"], one.predict(cells))
    assert answers["score"].to_numpy() == pytest.approx(one.score_samples(cells), abs=1e-8)


def test_text_gaps_and_counts(birds, tmp_path):
    _, kinds = birds
    rng = np.random.default_rng(1)
    words = np.array(["no", "perhaps", "yes"])
    answers = words[(kinds[:, None] + (rng.random((N_ROWS, 5)) < 0.1)) % 3].astype(object)
    answers[rng.random(answers.shape) < 0.2] = None
    fits = [fitted(ShardedCells.of(Cells.coerce(answers), n, Here(1)), n_chains=1) for n in (1, 3)]
    assert_same(*fits)
    assert isinstance(fits[0].family_, permix.Categorical)
    assert fits[0].family_.levels == (("no", "perhaps", "yes"),) * 5
    assert fits[0].predict(Cells.coerce(answers)).shape == (N_ROWS,)
    fits[0].save(tmp_path / "text.permix")
    assert permix.load(tmp_path / "text.permix").n_clusters_ == fits[0].n_clusters_
    counts = rng.poisson(1.0 + 8.0 * (np.arange(6) % 3 == kinds[:, None])).astype(float)
    fits = [
        fitted(ShardedCells.of(Cells.coerce(counts), n, Here(1)), "multinomial", n_chains=1) for n in (1, 3)
    ]
    assert_same(*fits)
    assert fits[0].n_clusters_ == 3
    gaps = counts + 0.01 * rng.normal(size=counts.shape)
    gaps[rng.random(gaps.shape) < 0.1] = np.nan
    with pytest.warns(PermixWarning, match="independent within a group"):
        found = fitted(ShardedCells.of(Cells.coerce(gaps), 2, Here(1)), n_chains=1)
    assert isinstance(found.family_, permix.GaussianDiagonal)


def test_what_cannot_be_fitted_in_shards(birds):
    cells, kinds = birds
    data = ShardedCells.of(cells, 2, Here(1))
    with pytest.raises(DataError, match="placed all at once"):
        fitted(data, moves="gibbs")
    with pytest.raises(DataError, match="not there for rows in shards"):
        fitted(data, "mixed")
    with pytest.raises(DataError, match="two values only"):
        fitted(ShardedCells.of(Cells.coerce(np.c_[cells.dense(), kinds == 0].astype(float)), 2, Here(1)))
    holes = cells.dense()
    holes[7, 1] = np.nan
    with pytest.raises(DataError, match="gaussian-diagonal takes them"):
        fitted(ShardedCells.of(Cells.coerce(holes), 2, Here(1)), "gaussian-niw")
    wrong = np.abs(np.round(cells.dense()))
    wrong[300, 2] = -1.0
    with pytest.raises(ShardError, match=r"rows 201 to 400.*row 101, column 3 is -1; the multinomial"):
        fitted(ShardedCells.of(Cells.coerce(wrong), 2, Here(1)), "multinomial")
    rankings = permix.Rankings.from_orders([[0, 1], [1, 0]])
    with pytest.raises(DataError, match="read_sharded_cells"):
        fitted(Sharded.of(rankings, 2))


def test_few_rows_are_fitted_as_a_table(birds):
    few = ShardedCells.of(birds[0].take(np.arange(N_ROWS) < 60, np.ones(3, bool)), 3)
    assert fitted(few)._fit.n == 60


@pytest.mark.slow
def test_two_worker_processes_give_the_same_bits(birds, one):
    distributed = pytest.importorskip("distributed", reason="needs permix[dask]")
    from permix.runtime.on_dask import OnDask

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started,
        distributed.Client(started) as client,
    ):
        assert_same(fitted(ShardedCells.of(birds[0], 7, OnDask(client))), one)
