"""What reproductions of Wang, Laskey, Domeniconi & Jordan (2011) share: data, chains, perplexities."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from permix.cocluster.bases import as_bases
from permix.cocluster.block_predict import BlockDraw, BlockPredictive, block_sums
from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.chains import engine_of
from permix.cocluster.ensemble import grid_consensus, mondrian_consensus
from permix.cocluster.fit import BlockFit, CoClusterFit, drawn, encoded
from permix.cocluster.parameters import CoClusterParameters, EnsembleParameters
from permix.data.cells import Cells
from permix.datasets import load_jester, load_movielens, make_mondrian_matrix

Prior = Literal["dp", "mondrian"]
# Section 6.2: pseudo-counts of the Dirichlet processes, and the budget of the Mondrian.
CONCENTRATION, BUDGET = 20.0, 1.0
HELD_OUT = 0.25


@dataclasses.dataclass(frozen=True)
class Problem:
    """A matrix to co-cluster, and the cells held out, where there are any."""

    name: str
    train: Cells
    test: Cells | None
    n_clusters: tuple[int, int]  # of rows and columns, for LDCC

    @property
    def parts(self) -> dict[str, Cells]:
        """Cells whose perplexity is asked for."""
        return {"train": self.train} | ({} if self.test is None else {"test": self.test})


def synthetic(n: int = 250, budget: float = 3.0, seed: int = 0) -> Problem:
    """Section 6.1: the number of the block in every cell of a Mondrian, rows and columns in random order."""
    made = make_mondrian_matrix(n, n, budget=budget, family="block", random_state=seed)
    return Problem("synthetic", Cells.coerce(made.data), None, (5, 5))


def movielens(n_rows: int, seed: int = 0) -> Problem:
    """MovieLens 100k; 20 user clusters (occupations) and 19 film clusters (genres) for LDCC."""
    ratings = load_movielens("100k", download=False).data[:n_rows]
    return Problem("MovieLens", *quietly_split(ratings, seed), (20, 19))


def jester(n_rows: int, step: float = 1.0, seed: int = 0) -> Problem:
    """Users drawn from those who rated all 100 jokes; ratings from -10 to 10 rounded to multiples of step."""
    ratings = load_jester(download=False).data
    complete = np.flatnonzero(~np.isnan(ratings).any(axis=1))
    chosen = np.sort(np.random.default_rng(seed).permutation(complete)[:n_rows])
    levels = np.round(ratings[chosen] / step)
    return Problem("Jester", *quietly_split(levels, seed), (20, 5))


def quietly_split(matrix: Any, seed: int) -> tuple[Cells, Cells]:
    """Hold a quarter of the cells out; that films are left without ratings is no surprise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Cells.coerce(matrix).split(HELD_OUT, random_state=seed)


def length(n_iterations: int, n_kept: int) -> dict[str, int]:
    """Return the settings of a chain whose kept draws lie evenly in its second half, the last at its end."""
    thin = max(1, n_iterations // (2 * n_kept))
    n_draws = min(n_kept, n_iterations // thin)
    return {"n_draws": n_draws, "n_thin": thin, "n_burn_in": n_iterations - n_draws * thin}


def sampled(cells: Cells, **settings: Any) -> CoClusterFit:
    """Run chains of a co-clustering; point estimates, which nothing here needs, are left out.

    The pseudo-count of cells is 1 unless it is given, as in the paper, and not learned.
    """
    chosen = CoClusterParameters(progress=False, **{"pseudo_count": 1.0, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = encoded(cells, chosen.cell_family(cells.values))
        draws = drawn(engine_of(matrix, chosen), chosen, matrix.n_cells, {})
        return CoClusterFit(chosen, cells, matrix, draws, None, None, None)


def own_settings(prior: Prior) -> dict[str, Any]:
    """Return the paper's settings of a prior."""
    return {"budget": BUDGET} if prior == "mondrian" else {"concentration": CONCENTRATION}


def consensus(
    fit: CoClusterFit, bases: Sequence[BlockDraw], label_pseudo_count: float, **settings: Any
) -> BlockFit:
    """Run one chain of an ensemble of base co-clusterings of the same matrix."""
    prior: Any = fit.settings.prior
    chosen = EnsembleParameters(
        prior=prior,
        label_pseudo_count=label_pseudo_count,
        n_chains=1,
        progress=False,
        **own_settings(prior),
        **settings,
    )
    made = as_bases(bases, fit.cells.shape)
    if prior == "mondrian":
        engine = mondrian_consensus(made, chosen, fit.matrix if chosen.label_cells == "filled" else None)
    else:
        engine = grid_consensus(made, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = drawn(engine, chosen, fit.matrix.n_cells, {})
    return BlockFit(chosen, fit.cells, fit.matrix, draws, None, None, None)


def last_draw(fit: BlockFit, chain: int = 0) -> BlockDraw:
    """Return the blocks of the last iteration of a chain."""
    n_draws = fit.draws.arrays["row_labels"].shape[1]
    return fit.block_draw((chain + 1) * n_draws - 1)


def all_draws(fit: BlockFit, chain: int = 0) -> list[BlockDraw]:
    """Return the blocks of all draws kept of a chain."""
    n_draws = fit.draws.arrays["row_labels"].shape[1]
    return [fit.block_draw(chain * n_draws + t) for t in range(n_draws)]


def log_p(fit: BlockFit, draws: Sequence[BlockDraw], cells: Cells) -> np.ndarray:
    """Return ln p of every cell, p averaged over draws; parameters of blocks at their posterior means."""
    codes = fit.family.encode(cells.values)
    return BlockPredictive(fit.known_matrix, draws).log_probability(cells.rows, cells.columns, codes)


def perplexity(scores: np.ndarray) -> float:
    """Exp of minus the mean."""
    return float(np.exp(-scores.mean()))


def averaged(scores: np.ndarray, average: Literal["cells", "matrix", "log"]) -> float:
    """Perplexity of an average of base co-clusterings: axis 0 of ``scores`` are these, axis 1 the cells."""
    n_bases, n_cells = scores.shape
    if average == "log":
        return perplexity(scores)
    if average == "cells":
        return perplexity(np.logaddexp.reduce(scores, axis=0) - np.log(n_bases))
    return float(np.exp(-(np.logaddexp.reduce(scores.sum(axis=1)) - np.log(n_bases)) / n_cells))


def log_likelihood(fit: BlockFit, draw: BlockDraw) -> float:
    """Return ln p(matrix | blocks), parameters integrated out."""
    matrix = fit.known_matrix
    return float(log_blocks(matrix.block_prior, *block_sums(matrix, draw))) + matrix.log_constant
