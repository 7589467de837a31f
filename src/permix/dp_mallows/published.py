"""Beta-Gibbs and Slice-Gibbs as published (Meilă & Chen 2010), for comparison; imported only when asked for.

Both are approximations; ``lists/published_jit.py`` says where. Their partitions are reported on by the exact
sampler's means.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Literal

from permix.dp_mallows.lists.predictive_rows_jit import skip_bins
from permix.dp_mallows.lists.published_jit import GIBBS_ROUNDS, PublishedRows
from permix.dp_mallows.lists.seating_jit import fill_all_rows
from permix.dp_mallows.moves import Centers, CollapsedSeating
from permix.dp_mallows.state import ListModel, empty_slots, new_cluster
from permix.moves.base import Move

Sampler = Literal["beta-gibbs", "slice-gibbs"]


def published_model(model: ListModel, sampler: Sampler) -> ListModel:
    """Return the same data and prior with the scores and centers of a published sampler.

    Scores are Beta functions in place of the integrals (figure 5), or given the present decays (figure 1);
    centers are drawn stage by stage, without correction (step 2 of both figures).
    """
    bins = skip_bins(model.n_items, exact=True)
    slot = empty_slots(4, model.n_items, model.n_stages, bins)
    fill_all_rows(PublishedRows(False), model.tables, bins, slot, 1)
    opening = new_cluster(model.tables, slot.joining[0], slot.joining[0])
    rows = partial(PublishedRows, sampler == "slice-gibbs")
    return dataclasses.replace(model, bins=bins, opening=opening, rows=rows)


def published_moves() -> list[Move]:
    """Return what one iteration does."""
    return [CollapsedSeating(), Centers(GIBBS_ROUNDS)]
