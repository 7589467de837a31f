"""Matrices in shards: what is read is what one file would have, however rows are divided."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.data.shards.matrices import ShardedCells, read_sharded_cells
from permix.errors import DataError, PermixWarning, ShardError
from permix.runtime.executors import Here


def ratings(n=60, m=7, seed=0):
    """Ratings of named people, a third of which are missing; everybody has some, and so has every column."""
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 6, (n, m)).astype(float)
    table[(rng.random((n, m)) < 0.33) & (np.arange(m) > 0)] = np.nan
    names = [f"person {at:02d}" for at in range(n)]
    filled = np.nonzero(~np.isnan(table))
    columns = [f"film {at}" for at in range(m)]
    return permix.Cells(*filled, table[filled], (n, m), row_names=names, column_names=columns)


def whole(data):
    """Return all shards as one matrix, in their order."""
    parts = [shard.cells.dense() for shard in data.map(_shard)]
    return np.concatenate(parts)


def _shard(shard, _):
    return shard


@pytest.mark.parametrize("n_shards", [1, 2, 7])
def test_the_same_however_rows_are_divided(n_shards):
    cells = ratings()
    data = ShardedCells.of(cells, n_shards, Here(2, most_held=3))
    assert (data.n_rows, data.n_columns, data.n_cells) == (60, 7, cells.n_cells)
    assert (data.values, data.is_text, data.column_names) == ((1, 2, 3, 4, 5), False, cells.column_names)
    assert np.array_equal(whole(data), cells.dense(), equal_nan=True)
    assert np.array_equal(data.filled(), np.bincount(cells.columns))
    assert [shard.first for shard in data.map(_shard)] == data.rows_before[:-1].tolist()


def write_wide(cells, folder, n):
    """Write files of a matrix, columns in an order of each file's own, those without a cell left out."""
    for part in range(n):
        rows = range(part * cells.n_rows // n, (part + 1) * cells.n_rows // n)
        table = cells.dense()[rows.start : rows.stop]
        order = list(range(part, part + cells.n_columns))
        order = [at % cells.n_columns for at in order if not np.isnan(table[:, at % cells.n_columns]).all()]
        lines = [",".join(["name", *(cells.column_names[at] for at in order)])]
        for at, row in zip(rows, table, strict=True):
            filled = ["" if np.isnan(row[c]) else f"{row[c]:g}" for c in order]
            lines.append(",".join([cells.row_names[at], *filled]))
        (folder / f"part-{part}.csv").write_text("\n".join(lines) + "\n")


def test_files_and_addresses(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    cells = ratings()
    write_wide(cells, tmp_path, 3)
    data = read_sharded_cells(tmp_path)
    assert repr(data).startswith("ShardedCells: 60 rows x 7 columns")
    assert np.array_equal(whole(data), cells.dense(), equal_nan=True)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/ratings", recursive=True)
    try:
        assert np.array_equal(whole(read_sharded_cells("memory://ratings")), whole(data), equal_nan=True)
    finally:
        memory.rm("/ratings", recursive=True)


def test_weak_columns_and_rows_are_those_of_clean(tmp_path):
    cells = ratings(m=5, seed=3)
    write_wide(cells, tmp_path, 3)
    least = int(np.sort(np.bincount(cells.columns))[2])
    data = read_sharded_cells(tmp_path, min_support=least, min_answers=3)
    cleaned = permix.clean(cells, min_support=least, min_answers=3)
    assert 0 < data.n_columns < 5
    assert data.n_rows < 60
    assert (data.n_rows, data.n_columns, data.n_cells) == (*cleaned.shape, cleaned.n_cells)
    assert data.column_names == cleaned.column_names
    assert np.array_equal(whole(data), cleaned.dense(), equal_nan=True)
    assert data.cleaned["rows with fewer than 3 answers: left out"] == 60 - cleaned.n_rows


def test_what_is_wrong_with_a_shard_is_told_with_its_name(tmp_path):
    (tmp_path / "a.csv").write_text("name,x,y\nAnn,1,2\nBo,3,\n")
    (tmp_path / "b.csv").write_text("name,x,y\nCy,1,2\nBo,3,inf\n")
    with pytest.raises(ShardError, match=r"b\.csv.*'Bo'.*'y'.*finite"):
        read_sharded_cells(tmp_path)
    (tmp_path / "b.csv").write_text("name,x,y\nCy,1,2\nBo,3,4\n")
    with pytest.warns(PermixWarning, match=r"'Bo' is in .*a\.csv and in .*b\.csv"):
        data = read_sharded_cells(tmp_path)
    (tmp_path / "b.csv").write_text("name,x,y\nCy,1,2\nBo,3,5\n")
    with pytest.raises(ShardError, match=r"b\.csv: it says something else than it did"):
        data.filled()
    (tmp_path / "b.csv").write_text("name,x,y\nCy,red,blue\nDi,blue,red\n")
    with pytest.raises(ShardError, match=r"cells are text in .*b\.csv and numbers in .*a\.csv"):
        read_sharded_cells(tmp_path)
    with pytest.raises(DataError, match="group_columns cannot be given"):
        read_sharded_cells(tmp_path, group_columns=["x"])


def test_partitions_of_dask():
    frames = pytest.importorskip("dask.dataframe")
    import pandas as pd

    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0], "y": [1.0, np.nan, 3.0, 5.0]})
    data = read_sharded_cells(frames.from_pandas(frame, npartitions=2), row_column=False)
    assert (data.n_shards, data.n_rows, data.column_names) == (2, 4, ("x", "y"))
    assert np.array_equal(whole(data), frame.to_numpy(), equal_nan=True)
