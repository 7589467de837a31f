"""Groups and scores of rows of a matrix in shards, written shard by shard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from permix.data.shards.matrices import CellShard, ShardedCells
from permix.errors import DataError
from permix.files import atomic_writer


class Written(NamedTuple):
    """What a worker says of the file it wrote."""

    file: str
    rows: int
    score: float


def write_cell_shards(saved: bytes, data: ShardedCells, folder: str) -> list[Written]:
    """Write ``row``, ``group``, ``probability`` and ``score`` of every row; return what was written."""
    shared = (saved, os.path.abspath(folder), data.rows_before.tolist())
    written: list[Written] = data.map(_answer, shared)
    data.forget()
    return written


def _answer(shard: CellShard, shared: tuple[bytes, str, list[int]]) -> Written:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("answers to shards are Parquet files: pip install 'permix[parquet]'") from None
    from permix.estimators.predict_shards import model_of_bytes

    saved, folder, before = shared
    model: Any = model_of_bytes(saved)
    probabilities, scores = model.predict_proba(shard.cells), model.score_samples(shard.cells)
    n = shard.cells.n_rows
    names = shard.cells.row_names
    columns = {
        "row": np.arange(shard.first + 1, shard.first + 1 + n) if names is None else list(names),
        "group": probabilities.argmax(axis=1),
        "probability": probabilities.max(axis=1),
        "score": scores,
    }
    path = Path(folder) / f"part-{before.index(shard.first):05d}.parquet"
    with atomic_writer(path) as file:
        pq.write_table(pa.table(columns), file)
    return Written(str(path), n, float(np.mean(scores)))
