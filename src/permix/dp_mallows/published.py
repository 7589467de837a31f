"""Beta-Gibbs and Slice-Gibbs as published (Meilă & Chen 2010), for comparison; imported only when asked for.

Both are approximations; ``lists/published_jit.py`` says where. Their partitions are reported on by the exact
sampler's means.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Literal

import numpy as np

from permix.dp_mallows.lists.predictive_rows_jit import skip_bins
from permix.dp_mallows.lists.published_jit import (
    BETA_GIBBS,
    GIBBS_ROUNDS,
    SLICE_GIBBS,
    PublishedRows,
    update_centers_as_published,
    write_beta_opening,
)
from permix.dp_mallows.lists.seating_jit import Opening
from permix.dp_mallows.seating import CollapsedSeating
from permix.dp_mallows.state import ListModel, ListState
from permix.moves.base import Info, Move

MODES = {"beta-gibbs": BETA_GIBBS, "slice-gibbs": SLICE_GIBBS}
Sampler = Literal["beta-gibbs", "slice-gibbs"]


def published_model(model: ListModel, sampler: Sampler) -> ListModel:
    """Return the same data and prior with the scores of a published sampler.

    These are Beta functions in place of the integrals (figure 5), or the present decays (figure 1).
    """
    bins = skip_bins(model.n_items, exact=True)
    opening = Opening(np.empty((model.n_stages, len(bins.middle))), np.empty((model.n_stages, model.n_items)))
    write_beta_opening(model.tables, opening)
    rows = partial(PublishedRows, sampler == "slice-gibbs")
    return dataclasses.replace(model, bins=bins, opening=opening, rows=rows)


@dataclasses.dataclass
class PublishedCenters(Move):
    """Draw the center of every cluster stage by stage, without correction (step 2 of figures 1 and 5)."""

    sampler: Sampler
    n_rounds: int = GIBBS_ROUNDS

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """``n_rounds`` for every cluster."""
        update = partial(update_centers_as_published, MODES[self.sampler])
        taken = state.update_centers(rng, self.n_rounds, update=update)
        return Info("centers", self.n_rounds * state.n_clusters, taken)


def published_moves(sampler: Sampler) -> list[Move]:
    """Return what one iteration does."""
    return [CollapsedSeating(), PublishedCenters(sampler)]
