"""Missing cells that are filled in: drawn anew, each row's together with its group."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.moves.base import Info, Move
from permix.moves.gibbs import BESIDES
from permix.moves.state import MixtureState


@dataclasses.dataclass
class MissingCells(Move):
    """Draw, for each row with gaps, its group by what was observed of it, then its missing cells.

    That is for families under which gaps cannot be left out (:class:`~permix.GaussianNIW`): given the filled
    rows all other moves go on as without gaps. Does nothing where no cell is missing.
    """

    draws_missing_cells = True

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Visit every row with gaps once; a visit is a draw from the full conditional."""
        n = len(state.rows_with_gaps)
        if n:
            state.sweep(rng, state.rows_with_gaps)
        return Info("missing-cells", n, n, work=float(4 * n * (state.n_clusters + BESIDES)))
