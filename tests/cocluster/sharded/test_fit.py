"""Co-clusterings of rows in shards: the same bits however rows are divided, and what can be asked of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import permix
from permix.cocluster.fit import PATIENCE
from permix.cocluster.sharded import fit as fitting
from permix.data.cells import Cells
from permix.data.shards.matrices import ShardedCells, read_sharded_cells
from permix.errors import DataError, ShardError
from permix.moves.sharded import encodings, state, work
from permix.runtime.executors import Here
from permix.sampling import chain, run_chains

N_ROWS, N_COLUMNS = 300, 12


@pytest.fixture(scope="module")
def ratings():
    """Three groups of rows by two of columns, a third of the cells missing; names of both."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 3, N_ROWS), np.arange(N_COLUMNS) % 2
    shares = np.array([[[8, 1, 1], [1, 1, 8]], [[1, 8, 1], [8, 1, 1]], [[1, 1, 8], [1, 8, 1]]]) / 10.0
    upto = np.cumsum(shares[rows][:, columns], axis=2)
    X = 1.0 + (rng.random((N_ROWS, N_COLUMNS, 1)) > upto).sum(axis=2)
    at, column = np.nonzero(rng.random(X.shape) > 0.3)
    names = [f"user {number}" for number in range(N_ROWS)], [f"film {name}" for name in "abcdefghijkl"]
    return Cells(at, column, X[at, column], X.shape, *names), rows


@pytest.fixture(autouse=True)
def small_records(monkeypatch):
    """60 rows on record, so that few rows are many."""
    monkeypatch.setattr(fitting, "MOST_ROWS", 60)
    monkeypatch.setattr(fitting, "FIRST_ITERATIONS", 3)


def fitted(data, **options):
    options = {"n_draws": 6, "n_burn_in": 4, "n_chains": 2, **options}
    return permix.CoClustering(random_state=0, progress=False, n_jobs=1, **options).fit(data)


def assert_same(one, other):
    for name, array in one._fit.draws.arrays.items():
        assert np.array_equal(array, other._fit.draws.arrays[name]), name
    assert one.cells_.row_names == other.cells_.row_names


@pytest.fixture(scope="module")
def one(ratings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "MOST_ROWS", 60)
        patch.setattr(fitting, "FIRST_ITERATIONS", 3)
        return fitted(ShardedCells.of(ratings[0], 1, Here(1)))


@pytest.mark.parametrize(("n_shards", "n_threads", "most_held"), [(2, 1, None), (7, 2, 3)])
def test_the_same_bits_however_rows_are_divided(ratings, one, n_shards, n_threads, most_held):
    assert_same(fitted(ShardedCells.of(ratings[0], n_shards, Here(n_threads, most_held))), one)


def test_groups_are_found(ratings, one):
    cells, rows = ratings
    on_record = [int(name.split()[1]) for name in one.cells_.row_names]
    assert len(on_record) == 60
    of_group = pd.crosstab(one.row_labels_, rows[on_record])
    assert of_group.shape == (3, 3)
    assert of_group.to_numpy().max(axis=1).sum() >= 57
    assert one.n_column_clusters_ == 2
    assert one.predict_cells(cells=[(0, 0)]) in (1, 2, 3)
    assert one._fit.sampled_from == N_ROWS
    # The likelihood of all rows, not of those on record.
    assert one.log_likelihood_ < -1.5 * cells.n_cells / 3


def test_a_twin_that_remembers_is_told_apart(ratings, one, monkeypatch):
    """Rows that are drawn by their place in the shard, not by what they are: other bits."""
    real = encodings.place_rows

    def place_rows(first, last, key, sweep, ids, *others):
        real(first, last, key, sweep, np.arange(len(ids), dtype=np.uint64), *others)

    monkeypatch.setattr(encodings, "place_rows", place_rows)
    other = fitted(ShardedCells.of(ratings[0], 7, Here(1)))
    drawn = one._fit.draws.arrays
    assert not np.array_equal(other._fit.draws.arrays["log_joint"], drawn["log_joint"])


def test_a_run_that_broke_off_goes_on_to_the_same_bits(ratings, tmp_path, monkeypatch):
    """Checkpoints hold splits and merges, too: here they are taken in every iteration."""
    monkeypatch.setattr(chain, "REFRESH", 1)
    data, known = ShardedCells.of(ratings[0], 2, Here(1)), {"n_chains": 1, "n_burn_in": 0}
    monkeypatch.setattr(fitting, "begun", one_group)
    whole = fitted(data, **known)
    assert whole._fit.draws.arrays["n_row_groups"][0, -1] > 1
    n_looks, real = 0, work.look

    def killed(shard, shared):
        nonlocal n_looks
        n_looks += 1
        if n_looks == 15:
            raise OSError("the client is killed")
        return real(shard, shared)

    monkeypatch.setattr(state, "look", killed)
    monkeypatch.setattr(fitting, "drawn", at_once)
    with pytest.raises(OSError, match="the client is killed"):
        fitted(data, **known, store=tmp_path / "store")
    monkeypatch.setattr(state, "look", real)
    assert (tmp_path / "store" / "chain-0" / "state.npz").exists()
    assert_same(fitted(data, **known, store=tmp_path / "store"), whole)


def at_once(engine, settings, size, fingerprint):
    """Chains that write every checkpoint."""
    run = {**settings.for_chains(size), "patience": PATIENCE, "burn_in_move": engine.move}
    fingerprint = {**fingerprint, "moves": repr(engine.move)}
    return run_chains(*engine, **run, fingerprint=fingerprint, checkpoint_seconds=0.0)


def one_group(rng, model, matrix, begun=fitting.begun):
    """Begin with all rows in one group, so that groups must be split."""
    found = begun(rng, model, matrix)
    placing, one = found.placing, np.zeros(1, dtype=np.int64)
    found.place(placing._replace(first=np.zeros_like(placing.first), final=one))
    return found


def test_files_and_answers(ratings, one, tmp_path):
    cells, _ = ratings
    data = ShardedCells.of(cells, 3)
    one.save(tmp_path / "fit.permix")
    again = permix.load(tmp_path / "fit.permix")
    assert again.summary().equals(one.summary())
    assert again._fit.sampled_from == N_ROWS
    assert len(again.diagnostics())
    permix.report(again, tmp_path / "report.md")
    assert "a random sample of 60 of 300 rows" in (tmp_path / "report.md").read_text()
    written = permix.predict_shards(again, data, tmp_path / "answers")
    assert written["rows"].sum() == N_ROWS
    answers = pd.concat([pd.read_parquet(file) for file in written["file"]])
    assert answers["row"].tolist() == list(cells.row_names)
    assert np.array_equal(answers["group"], one.predict(cells))
    assert answers["score"].to_numpy() == pytest.approx(one.score_samples(cells), abs=1e-9)


def test_counts(ratings):
    cells, _ = ratings
    fits = [
        fitted(ShardedCells.of(cells, n, Here(1)), family="poisson", prior="dp", n_chains=1) for n in (1, 3)
    ]
    assert_same(*fits)
    assert fits[0].family_.prior_mean == pytest.approx(cells.values.mean())


def test_files_are_read_shard_by_shard(ratings, one, tmp_path):
    cells, _ = ratings
    frame = pd.DataFrame(
        {
            "row": np.array(cells.row_names)[cells.rows],
            "column": np.array(cells.column_names)[cells.columns],
            "value": cells.values,
        }
    )
    for part, last in enumerate((100, 250, N_ROWS)):
        chosen = (cells.rows < last) & (cells.rows >= (0, 100, 250)[part])
        frame[chosen].to_parquet(tmp_path / f"part-{part}.parquet")
    data = read_sharded_cells(tmp_path)
    assert (data.n_rows, data.n_cells, data.n_shards) == (N_ROWS, cells.n_cells, 3)
    assert_same(fitted(data), one)
    frame[cells.rows == 3].assign(value=1.0).to_parquet(tmp_path / "part-3.parquet")
    with pytest.raises(ShardError, match=r"row 'user 3' is in .*part-0.parquet and .*part-3.parquet, but"):
        fitted(read_sharded_cells(tmp_path))


def test_what_cannot_be_fitted_in_shards(ratings):
    data = ShardedCells.of(ratings[0], 2)
    with pytest.raises(DataError, match="not with 'mondrian'"):
        fitted(data, prior="mondrian")
    with pytest.raises(DataError, match="numbers are fitted as one table"):
        fitted(data, family="gaussian")
    values = np.where(ratings[0].rows == 7, -1.0, ratings[0].values)
    same = (ratings[0].rows, ratings[0].columns, values, ratings[0].shape)
    negative = ShardedCells.of(Cells(*same, ratings[0].row_names, ratings[0].column_names), 2)
    with pytest.raises(DataError, match=r"rows 1 to 150: row 'user 7'.* is not a count"):
        fitted(negative, family="poisson")


def test_few_rows_are_fitted_as_a_table(ratings):
    few = ShardedCells.of(ratings[0].take(np.arange(N_ROWS) < 40, np.ones(N_COLUMNS, bool)), 3)
    assert fitted(few).row_labels_.shape == (40,)


@pytest.mark.slow
def test_two_worker_processes_give_the_same_bits(ratings, one):
    distributed = pytest.importorskip("distributed", reason="needs permix[dask]")
    from permix.runtime.on_dask import OnDask

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started,
        distributed.Client(started) as client,
    ):
        assert_same(fitted(ShardedCells.of(ratings[0], 7, OnDask(client))), one)
