"""Rankings and Preferences as readable pandas frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from permix.data.agent_table import AgentTable
from permix.data.labels import Array

if TYPE_CHECKING:
    from permix.data.preferences import Preferences
    from permix.data.rankings import Rankings


def rankings_to_frame(rankings: Rankings) -> pd.DataFrame:
    """One row per ranking: agent, count, unlisted (where not full), 1st, 2nd, …."""
    columns: dict[str, Array] = {"agent": rankings.agents, "count": rankings.counts}
    if not rankings.is_full:
        columns["unlisted"] = np.where(rankings.unlisted_below, "below", "unknown").astype(object)
    columns |= dict(rankings.covariates)
    names = _names(rankings)
    for place in range(rankings.orders.shape[1]):
        columns[ordinal(place + 1)] = names[rankings.orders[:, place]]
    return pd.DataFrame(columns)


def preferences_to_frame(preferences: Preferences) -> pd.DataFrame:
    """One row per statement; columns that would be empty throughout are left out."""
    n_listed, n_pairs = np.diff(preferences.level_indptr), np.diff(preferences.pair_indptr)
    rows = np.arange(len(preferences))
    agent = np.concatenate([np.repeat(rows, n_listed), np.repeat(rows, n_pairs)])
    order = np.argsort(agent, kind="stable")  # an agent's levels, then the comparisons
    listed = order < len(preferences.level_items)
    agent = agent[order]
    names = _names(preferences)
    columns: dict[str, object] = {"agent": preferences.agents[agent]}
    if (preferences.counts != 1).any():
        columns["count"] = preferences.counts[agent]

    def spread(values: Array, of_levels: bool) -> Array:
        column = np.full(len(order), None, dtype=object)
        column[listed == of_levels] = values
        return column

    if len(preferences.pairs):
        columns["better"] = spread(names[preferences.pairs[:, 0]], False)
        columns["worse"] = spread(names[preferences.pairs[:, 1]], False)
    if len(preferences.level_items):
        columns["item"] = spread(names[preferences.level_items], True)
        level = pd.array(np.zeros(len(order), dtype=np.int64), dtype="Int64")
        level[listed] = preferences.levels + 1
        level[~listed] = pd.NA
        columns["level"] = level if (~listed).any() else level.to_numpy(dtype=np.int64)
        rest = np.where(preferences.rest_below, "below", "unknown").astype(object)
        columns["rest"] = spread(rest[agent[listed]], True)
    return pd.DataFrame(columns)


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, …."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _names(table: AgentTable) -> Array:
    """Item names by index; index -1, the padding, is None."""
    names = np.empty(table.n_items + 1, dtype=object)
    names[:-1] = table.items
    return names
