"""The work behind :class:`permix.CoClusteringEnsemble`, free of scikit-learn."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from permix.cocluster.bases import Bases, as_bases, to_base_lines, to_label_lines
from permix.cocluster.block_predict import BlockDraw, block_sums, log_cells
from permix.cocluster.cells.blocks_jit import count_law
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.chains import Engine
from permix.cocluster.fit import BlockFit, CoClusterFit, cocluster_draws, drawn, encoded, estimates
from permix.cocluster.parameters import EnsembleParameters
from permix.cocluster.predict import fitted_codes
from permix.data.cells import Cells
from permix.errors import Argument, DataError, ParameterError
from permix.estimators.checks import Choice
from permix.posterior import warn_if_chains_disagree
from permix.runtime.seeds import seed_sequence
from permix.sampling.fingerprint import digest

FloatArray = npt.NDArray[np.float64]
Average = Literal["cells", "matrix", "log"]
AVERAGES = ("cells", "matrix", "log")


@dataclasses.dataclass
class EnsembleFit(BlockFit):
    """Draws of a consensus of base co-clusterings; see :class:`BlockFit`.

    Attributes
    ----------
    bases : Bases
        What the consensus is of.
    """

    model: ClassVar[str] = "CoClusteringEnsemble"
    settings: EnsembleParameters
    bases: Bases

    def base_log_probability(self, held_out: Cells) -> FloatArray:
        """Return ln p of each filled cell (axis 1) given the blocks of each base (axis 0)."""
        cells, codes = fitted_codes(self, held_out)
        rows = []
        for draw in base_draws(self.bases):
            sums = block_sums(self.known_matrix, draw)
            rows.append(log_cells(self.family, codes, draw.block_of(cells.rows, cells.columns), sums))
        return np.array(rows)

    def base_scores(self, held_out: Cells) -> FloatArray:
        """Return the mean ln p of the filled cells given the blocks of each base."""
        return np.asarray(self.base_log_probability(held_out).mean(axis=1))

    def averaged_score(self, held_out: Cells, average: Average = "cells") -> float:
        """Return the mean ln p per cell of the average of the bases."""
        if average not in AVERAGES:
            raise ParameterError("average", average, Choice(*AVERAGES).must_be())
        log_p = self.base_log_probability(held_out)
        n_bases, n_cells = log_p.shape
        if average == "log":
            return float(log_p.mean())
        if average == "cells":
            return float((np.logaddexp.reduce(log_p, axis=0) - np.log(n_bases)).mean())
        return float((np.logaddexp.reduce(log_p.sum(axis=1)) - np.log(n_bases)) / n_cells)


def fit_ensemble(
    cells: Cells | None, bases: Iterable[Any] | None, settings: EnsembleParameters
) -> EnsembleFit:
    """Make base co-clusterings where none are given, and draw their consensus."""
    if cells is None and bases is None:
        raise DataError("give a matrix, base co-clusterings (bases=...), or both")
    _refuse_idle(settings, has_matrix=cells is not None, has_bases=bases is not None)
    matrix = None if cells is None else encoded(cells, settings.cell_family())
    if bases is None:
        assert cells is not None
        assert matrix is not None
        made, store, seed = _made_bases(cells, matrix, settings)
    else:
        names = (None, None) if cells is None else (cells.row_names, cells.column_names)
        made = as_bases(bases, None if cells is None else cells.shape, names)
        store, seed = settings.store, settings.random_state
    shape = (made.n_rows, made.n_columns)
    consensus = settings.replaced(store=store, random_state=seed)
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
            places = {"starts": filled.by_row.starts, "columns": filled.by_row.others}
            fingerprint["filled"] = digest(places)
    else:
        engine = grid_consensus(made, settings)
    draws = drawn(engine, consensus, fingerprint)
    warn_if_chains_disagree(draws)
    rows, columns, best = estimates(draws, settings, shape)
    return EnsembleFit(settings, cells, matrix, draws, rows, columns, best, made)


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


def _made_bases(
    cells: Cells, matrix: EncodedMatrix, settings: EnsembleParameters
) -> tuple[Bases, str | os.PathLike[str] | None, Any]:
    """Run one chain per base and take its last draw; return where and how the consensus is drawn, too."""
    store = None if settings.store is None else Path(settings.store)
    seeds: list[Any] = [None, None]
    if settings.random_state is not None:
        seeds = list(seed_sequence(settings.random_state).spawn(2))
    base = settings.base_settings(None if store is None else str(store / "bases"), seeds[0])
    if base.cell_family().resolve(cells.values) != matrix.family:
        raise DataError(
            f"the base has the family {base.family!r} with pseudo_count={base.pseudo_count!r}, the ensemble "
            f"{settings.family!r} with {settings.pseudo_count!r}; both must be the same"
        )
    # Bases may disagree, and each is one draw: nobody reads a point estimate of them.
    fit = CoClusterFit(base, cells, matrix, cocluster_draws(matrix, base), None, None, None)
    made = as_bases(last_draws(fit), cells.shape)
    return made, None if store is None else str(store / "consensus"), seeds[1]


def last_draws(fit: CoClusterFit) -> list[BlockDraw]:
    """Return the blocks of the last draw of every chain."""
    n_chains, n_draws = fit.draws.arrays["row_labels"].shape[:2]
    return [fit.block_draw(chain * n_draws + n_draws - 1) for chain in range(n_chains)]


def base_draws(bases: Bases) -> list[BlockDraw]:
    """Return the bases as blocks; for cells of fitted rows alone, so that rows have no weights."""
    return [
        BlockDraw(rows, columns, table.astype(np.int64), np.zeros(len(table)), -np.inf)
        for rows, columns, table in zip(bases.row_classes, bases.column_classes, bases.tables, strict=True)
    ]


def grid_consensus(bases: Bases, settings: EnsembleParameters) -> Engine:
    """Consensus groups of rows and of columns: DPCCE."""
    from permix.cocluster.grid.ensemble_state import EnsembleGridState, seat_consensus
    from permix.cocluster.grid.moves import grid_moves

    tables = (bases.row_table(), bases.column_table())
    priors = settings.line_priors()

    def first_state(rng: np.random.Generator) -> EnsembleGridState:
        state = EnsembleGridState(*tables, *priors, label_pseudo_count=float(settings.label_pseudo_count))
        seat_consensus(rng, state)
        return state

    return Engine(first_state, grid_moves(bases.n_rows, bases.n_columns))


def mondrian_consensus(bases: Bases, settings: EnsembleParameters, filled: EncodedMatrix | None) -> Engine:
    """Nested cuts that fit the blocks of all bases, of the filled cells of a matrix or of all: MPCCE."""
    from permix.cocluster.mondrian.moves import mondrian_moves
    from permix.cocluster.mondrian.state import MondrianData, MondrianState

    by_row, by_column = to_base_lines(bases) if filled is None else to_label_lines(bases, filled)
    n_cells = bases.n_rows * bases.n_columns if filled is None else filled.n_cells
    n_blocks = bases.n_blocks
    law = count_law(float(settings.label_pseudo_count), n_blocks, n_cells)
    data = MondrianData(law, by_row, by_column, bases.n_rows, bases.n_columns, int(n_blocks.sum()), np.int64)

    def first_state(rng: np.random.Generator) -> MondrianState:
        return MondrianState(data, settings.budget, rng)

    return Engine(first_state, mondrian_moves())
