"""Scores of agents in shards, added up where the agents are."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.shards.loading import Shard
from permix.data.shards.sharded import Sharded
from permix.errors import DataError
from permix.estimators.predict_shards import model_of_bytes, saved_bytes
from permix.runtime.exact_sums import grid_of, on_grid


def total_score(model: Any, data: Sharded, **options: Any) -> float:
    """Return the sum of ``score_samples(..., **options)`` over all agents, however they are divided."""
    if tuple(model.items_) != data.items:
        raise DataError(
            "the shards do not have the items of the model in its order; read them with items=model.items_"
        )
    shared = (saved_bytes(model), options)
    least = data.map(_least, shared, min)
    if not np.isfinite(least):
        return float(least)
    grid = grid_of(data.n_agents, max(-least, 1.0))
    rest = grid_of(data.n_agents, 0.5 / grid)
    return float(np.sum(data.map(_total, (*shared, grid, rest), np.add)))


# Work of shards: functions of this module, so that other processes know them.


def _scores(shard: Shard, saved: bytes, options: dict[str, Any]) -> Array:
    return np.asarray(model_of_bytes(saved).score_samples(shard.table, **options))


def _least(shard: Shard, shared: tuple[bytes, dict[str, Any]]) -> float:
    return float(_scores(shard, *shared).min())


def _total(shard: Shard, shared: tuple[bytes, dict[str, Any], float, float]) -> Array:
    saved, options, grid, rest = shared
    scores, counts = _scores(shard, saved, options), shard.table.counts
    rounded = on_grid(scores, grid)
    return np.array([counts @ rounded, counts @ on_grid(scores - rounded, rest)])
