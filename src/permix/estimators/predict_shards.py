"""Groups and scores of agents in shards, written shard by shard."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from permix.data.shards.loading import Shard
from permix.data.shards.matrices import ShardedCells
from permix.data.shards.sharded import Sharded
from permix.errors import DataError
from permix.files import atomic_writer

if TYPE_CHECKING:
    import pandas as pd


def predict_shards(model: Any, data: Sharded | ShardedCells, folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Write the group and the score of every agent in shards, a Parquet file for each shard.

    Parameters
    ----------
    model : fitted estimator
        One that has ``predict_proba`` and ``score_samples``.
    data : Sharded or ShardedCells
        From :func:`permix.read_sharded`, over the items of the model; or, of a co-clustering, from
        :func:`permix.read_sharded_cells`: then ``row``, by name where it has one, stands in for ``agent``.
    folder : path
        Made where it is missing, else empty. The workers write there, so on several machines it must be one
        that all share.

    Returns
    -------
    DataFrame
        A row for each shard: its ``shard`` (name), ``file``, ``agents`` and their mean ``score``. The files
        have a row for each agent, in the order of the data: ``agent``, counted from 1 over all shards,
        ``group``, counted from 0 as in ``predict``, its ``probability``, and ``score``, ln P(what the agent
        says).
    """
    import pandas as pd

    if not isinstance(data, Sharded | ShardedCells):
        raise DataError(
            f"predict_shards takes data in shards (permix.read_sharded), not {type(data).__name__}"
        )
    check_is_fitted(model)
    matrix = isinstance(data, ShardedCells)
    if hasattr(model, "items_") == matrix:
        raise DataError(f"{type(model).__name__} has no answers for {type(data).__name__}")
    if isinstance(data, Sharded) and tuple(model.items_) != data.items:
        raise DataError(
            "the shards do not have the items of the model in its order; read them with items=model.items_"
        )
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise DataError(f"{os.fspath(folder)} is not empty; give the answers a folder of their own")
    saved = saved_bytes(model)
    if isinstance(data, ShardedCells):
        from permix.estimators.predict_cell_shards import write_cell_shards

        frame = pd.DataFrame(write_cell_shards(saved, data, os.fspath(folder)))
    else:
        shared = (saved, os.path.abspath(folder), data.agents_before.tolist())
        written = data.map(_answer, shared)
        data.forget()
        frame = pd.DataFrame(written, columns=Written._fields)
    frame.insert(0, "shard", [recipe.name for recipe in data.recipes])
    return frame


class Written(NamedTuple):
    """What a worker says of the file it wrote."""

    file: str
    agents: int
    score: float


def saved_bytes(model: Any) -> bytes:
    """Return what the file of a model holds."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.permix"
        model.save(path)
        return path.read_bytes()


@lru_cache(maxsize=2)
def model_of_bytes(saved: bytes) -> Any:
    """Read a model once in each process: archives are zips of JSON and arrays, nothing in them runs."""
    from permix.estimators.archive import load

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.permix"
        path.write_bytes(saved)
        return load(path)


def _answer(shard: Shard, shared: tuple[bytes, str, list[int]]) -> Written:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("answers to shards are Parquet files: pip install 'permix[parquet]'") from None
    saved, folder, before = shared
    model, table, row_of = model_of_bytes(saved), shard.table, shard.row_of
    probabilities = model.predict_proba(table)
    groups, scores = probabilities.argmax(axis=1), model.score_samples(table)
    columns = {
        "agent": np.arange(shard.first + 1, shard.first + 1 + len(row_of)),
        "group": groups[row_of],
        "probability": probabilities.max(axis=1)[row_of],
        "score": scores[row_of],
    }
    path = Path(folder) / f"part-{before.index(shard.first):05d}.parquet"
    with atomic_writer(path) as file:
        pq.write_table(pa.table(columns), file)
    return Written(str(path), len(row_of), float(scores[row_of].mean()))
