"""The work behind :class:`permix.CoClusteringEnsemble`, free of scikit-learn."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from permix.cocluster.bases import Bases, as_bases, to_lines
from permix.cocluster.block_predict import BlockDraw, block_sums, log_cells
from permix.cocluster.cells.blocks_jit import count_prior
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.chains import Engine, mondrian_engine
from permix.cocluster.fit import (
    BlockFit,
    CoClusterFit,
    chosen_family,
    cocluster_draws,
    drawn,
    encoded,
    estimates,
)
from permix.cocluster.parameters import EnsembleParameters
from permix.cocluster.predict import fitted_codes
from permix.data.cells import Cells
from permix.errors import Argument, DataError, ParameterError
from permix.estimators.checks import Choice
from permix.posterior import warn_if_chains_disagree
from permix.runtime.fingerprint import digest
from permix.runtime.seeds import seed_sequence

FloatArray = npt.NDArray[np.float64]
Average = Literal["cells", "matrix", "log"]


@dataclasses.dataclass
class EnsembleFit(BlockFit):
    """Draws of a consensus of base co-clusterings; see :class:`BlockFit`."""

    model: ClassVar[str] = "CoClusteringEnsemble"
    settings: EnsembleParameters
    bases: Bases

    def base_log_probability(self, held_out: Cells) -> FloatArray:
        """Return ln p of each filled cell (axis 1) given the blocks of each base (axis 0)."""
        cells, codes = fitted_codes(self, held_out)
        found = []
        for rows, columns, table in zip(*self.bases, strict=True):
            # Cells of fitted rows alone are asked for, so that rows need no weights.
            draw = BlockDraw(rows, columns, table.astype(np.int64), np.zeros(len(table)), -np.inf)
            sums = block_sums(self.known_matrix, draw)
            found.append(log_cells(self.family, codes, draw.block_of(cells.rows, cells.columns), sums))
        return np.array(found)

    def base_scores(self, held_out: Cells) -> FloatArray:
        """Return the mean ln p of the filled cells given the blocks of each base."""
        return np.asarray(self.base_log_probability(held_out).mean(axis=1))

    def averaged_score(self, held_out: Cells, average: Average = "cells") -> float:
        """Return the mean ln p per cell of the average of the bases."""
        if average not in get_args(Average):
            raise ParameterError("average", average, Choice(*get_args(Average)).must_be())
        log_p = self.base_log_probability(held_out)
        n_bases, n_cells = log_p.shape
        if average == "log":
            return float(log_p.mean())
        if average == "cells":
            return float((np.logaddexp.reduce(log_p, axis=0) - np.log(n_bases)).mean())
        return float((np.logaddexp.reduce(log_p.sum(axis=1)) - np.log(n_bases)) / n_cells)


def fit_ensemble(cells: Cells | None, bases: Any, settings: EnsembleParameters) -> EnsembleFit:
    """Make base co-clusterings where none are given, and draw their consensus."""
    if cells is None and bases is None:
        raise DataError("give a matrix, base co-clusterings (bases=...), or both")
    _refuse_idle(settings, has_matrix=cells is not None, has_bases=bases is not None)
    matrix = None if cells is None else encoded(cells, chosen_family(cells, settings))
    if bases is None:
        assert cells is not None
        assert matrix is not None
        made, consensus = _made_bases(cells, matrix, settings)
    else:
        names = (None, None) if cells is None else (cells.row_names, cells.column_names)
        made, consensus = as_bases(bases, None if cells is None else cells.shape, names), settings
    filled = matrix if settings.label_cells == "filled" else None
    fingerprint: dict[str, Any] = {
        "model": "CoClusteringEnsemble",
        "prior": settings.describe_prior(),
        "label_pseudo_count": float(settings.label_pseudo_count),
        "bases": digest(made.pack()),
    }
    if settings.prior == "mondrian":
        engine = mondrian_consensus(made, settings, filled)
        if filled is not None:
            starts, others, _ = filled.by_row
            fingerprint["filled"] = digest({"starts": starts, "columns": others})
    else:
        engine = grid_consensus(made, settings)
    size = (made.n_rows + made.n_columns) * made.n_bases
    draws = drawn(engine, consensus, size, fingerprint)
    warn_if_chains_disagree(draws)
    found = estimates(draws, settings, (made.n_rows, made.n_columns))
    return EnsembleFit(settings, cells, matrix, draws, *found, made)


def _refuse_idle(settings: EnsembleParameters, *, has_matrix: bool, has_bases: bool) -> None:
    """Refuse options that nothing would read."""
    if has_bases and settings.base is not None:
        raise DataError("base=... would change nothing: the base co-clusterings are given")
    idle = {"n_base": "the base co-clusterings are given"} if has_bases else {}
    if not has_matrix:
        why = "there is no matrix, and the consensus of given bases has no values of cells"
        idle |= {"family": why, "pseudo_count": why, "label_cells": "without a matrix all cells count"}
    for name, why in idle.items():
        given = getattr(settings, name)
        if given != settings.declared[name].default:
            raise DataError(Argument(name, given), f" would change nothing: {why}")


def _made_bases(cells: Cells, matrix: EncodedMatrix, settings: EnsembleParameters) -> tuple[Bases, Any]:
    """Run one chain per base and take its last draw; return the settings of the consensus, too."""
    stores: list[str | None] = [None, None]
    seeds: list[Any] = [None, None]
    if settings.store is not None:
        stores = [str(Path(settings.store) / name) for name in ("bases", "consensus")]
    if settings.random_state is not None:
        seeds = list(seed_sequence(settings.random_state).spawn(2))
    base = settings.base_settings(stores[0], seeds[0])
    if base.cell_family(cells.values).resolve(cells.values) != matrix.family:
        raise DataError(
            f"the base has the family {base.family!r} with pseudo_count={base.pseudo_count!r}, the ensemble "
            f"{settings.family!r} with {settings.pseudo_count!r}; both must be the same"
        )
    # Bases may disagree, and each is one draw: nobody reads a point estimate of them.
    fit = CoClusterFit(base, cells, matrix, cocluster_draws(matrix, base), None, None, None)
    n_draws = fit.draws.arrays["row_labels"].shape[1]
    lasts = range(n_draws - 1, fit.n_all_draws, n_draws)
    made = as_bases([fit.block_draw(last) for last in lasts], cells.shape)
    return made, settings.replaced(store=stores[1], random_state=seeds[1])


def grid_consensus(bases: Bases, settings: EnsembleParameters) -> Engine:
    """Consensus groups of rows and of columns: DPCCE."""
    from permix.cocluster.grid.ensemble_state import EnsembleGridState, seat_consensus
    from permix.cocluster.grid.moves import grid_moves

    sides = (bases.row_table(), bases.column_table(), *settings.line_priors())
    weight = float(settings.label_pseudo_count)
    moves = grid_moves(bases.n_rows, bases.n_columns)
    return Engine(lambda rng: seat_consensus(rng, EnsembleGridState(*sides, weight)), moves)


def mondrian_consensus(bases: Bases, settings: EnsembleParameters, filled: EncodedMatrix | None) -> Engine:
    """Nested cuts that fit the blocks of all bases, of the filled cells of a matrix or of all: MPCCE."""
    from permix.cocluster.mondrian.state import MondrianData

    shape, n_blocks = (bases.n_rows, bases.n_columns), bases.n_blocks
    n_cells = shape[0] * shape[1] if filled is None else filled.n_cells
    prior = count_prior(float(settings.label_pseudo_count), n_blocks, n_cells)
    data = MondrianData(prior, *to_lines(bases, filled), *shape, int(n_blocks.sum()), np.int64)
    return mondrian_engine(data, settings.budget)
