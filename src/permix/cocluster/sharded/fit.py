"""Fits of a grid to rows in shards: chains go through all rows, and draws are of the rows on record."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from permix.cocluster.cells.choose_family import family_for
from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import CategoricalCells, CellFamily, PoissonCells, cell_family
from permix.cocluster.cells.odd_levels import OTHERS
from permix.cocluster.chains import Engine
from permix.cocluster.fit import (
    CoClusterFit,
    drawn,
    estimates,
    fit_cocluster,
    naming_cells,
)
from permix.cocluster.grid.moves import matrix_moves
from permix.cocluster.grid.state import GridState, seat_all_lines
from permix.cocluster.parameters import CoClusterParameters
from permix.cocluster.sharded.moves import sharded_moves
from permix.cocluster.sharded.state import CellLines, ShardedGrid, ShardedModel
from permix.data.labels import Array
from permix.data.shards.matrices import ShardedCells
from permix.errors import Argument, DataError
from permix.moves.sharded.rows import exact_sum, largest_of, refuse_divided_rows, sample
from permix.moves.sharded.state import log_dirichlet, rounding_of
from permix.moves.sharded.work import Shape, refuse_mistakes
from permix.posterior import warn_if_chains_disagree
from permix.runtime.executors import new_token
from permix.runtime.fingerprint import digest
from permix.runtime.seeds import seed_sequence, stream_key

# Rows on record: of no more, the matrix is fitted as a table.
MOST_ROWS = 2000
# Iterations over the rows on record alone, from which a chain over all begins.
FIRST_ITERATIONS = 15


def fit_sharded(data: ShardedCells, settings: CoClusterParameters) -> CoClusterFit:
    """Run chains over rows in shards; labels of rows are kept of a random sample."""
    _refuse(settings)
    try:
        refuse_divided_rows(data)
        family = _resolved(data, settings)
        given = settings.with_family(family)
        refuse_mistakes(data, CellLines(family, data.n_columns))
        key = stream_key(seed_sequence(settings.random_state).spawn(1)[0])
        cells, record = sample(data, MOST_ROWS, key)
        if data.n_rows <= MOST_ROWS:
            return dataclasses.replace(fit_cocluster(cells, given), sampled_from=data.n_rows)
        with naming_cells(cells):
            matrix = encode_matrix(family, cells.rows, cells.columns, cells.values, cells.shape)
        model = model_of(data, family, given, record)

        def make_state(rng: np.random.Generator) -> ShardedGrid:
            return begun(rng, model, matrix)

        fingerprint = {
            "model": "CoClustering of shards",
            "prior": settings.describe_prior(),
            "family": family.describe(),
            "pseudo_count": settings.described_pseudo_count(),
            "shape": [data.n_rows, data.n_columns, data.n_cells],
            "data": digest({**matrix.by_row._asdict(), "record": model.shape.record}),
        }
        draws = drawn(Engine(make_state, sharded_moves()), settings, data.n_cells, fingerprint)
    finally:
        data.forget()
    warn_if_chains_disagree(draws)
    found = estimates(draws, settings, cells.shape)
    return CoClusterFit(given, cells, matrix, draws, *found, sampled_from=data.n_rows)


def model_of(
    data: ShardedCells, family: CellFamily, settings: CoClusterParameters, record: Array
) -> ShardedModel:
    """Return what is the same in the whole run."""
    encoding, log_constant = CellLines(family, data.n_columns), 0.0
    largest = 1.0 if family.has_levels else max(largest_of(data), 1.0)
    if isinstance(family, PoissonCells):
        most = float(_log_factorials(np.array([largest]))[0])
        log_constant = -exact_sum(data, _log_factorials, most)
    shape = Shape(encoding, rounding_of(data.n_cells, largest), record)
    priors = settings.line_priors()
    return ShardedModel(data, family, shape, priors, settings.learned_pseudo_count(), log_constant, largest)


def begun(rng: np.random.Generator, model: ShardedModel, matrix: Any) -> ShardedGrid:
    """Return the first state of a chain: all rows in the blocks of those on record."""
    small = seat_all_lines(rng, GridState(matrix, *model.priors, model.learned))
    move = matrix_moves(matrix.n_rows, matrix.n_columns)
    for _ in range(FIRST_ITERATIONS):
        move.step(rng, small)
    state = ShardedGrid(model, new_token())
    state.take_family(small.cell_family)
    state.column_labels = small.columns.labels.copy()
    state.row_concentration = small.rows.concentration
    state.column_concentration = small.columns.concentration
    counts = state.counts_of(matrix.by_row, small.rows.labels, small.rows.n_clusters)
    state.place_all(rng, counts, log_dirichlet(rng, small.rows.sizes_in_use + 1.0))
    return state


def _refuse(settings: CoClusterParameters) -> None:
    if settings.prior not in ("mfm", "dp"):
        raise DataError(
            "rows in shards are fitted with ",
            Argument("prior", "mfm"),
            " or ",
            Argument("prior", "dp"),
            f", not with {settings.prior!r}",
        )


def _resolved(data: ShardedCells, settings: CoClusterParameters) -> CellFamily:
    """Return the family of cells with all that it takes from them, the same however rows are divided."""
    given, few = settings.family, None if data.values is None else np.array(data.values)
    if given == "auto":
        # As many cells as there are, or enough, of the values that there are.
        looked_at = None if few is None else np.resize(few, min(max(data.n_cells, len(few)), 10_000))
        given = "gaussian" if looked_at is None else family_for(looked_at)
    pseudo_count = settings.pseudo_count if isinstance(settings.pseudo_count, float) else 1.0
    family = cell_family(given, pseudo_count)
    if isinstance(family, CategoricalCells):
        if few is None:
            raise DataError("the cells have very many different values, too many to be levels: ", *OTHERS)
        return family.resolve(few)
    if not isinstance(family, PoissonCells):
        raise DataError(
            "cells of rows in shards are levels or counts: ",
            Argument("family", "categorical"),
            " or ",
            Argument("family", "poisson"),
            "; numbers are fitted as one table",
        )
    if family.prior_mean is not None:
        return family
    mean = exact_sum(data, _as_they_are, largest_of(data)) / data.n_cells
    return dataclasses.replace(family, prior_mean=mean or 1.0)


def _as_they_are(values: Array) -> Array:
    return values


def _log_factorials(values: Array) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(values + 1.0))
