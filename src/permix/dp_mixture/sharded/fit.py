"""Fits of mixtures to rows in shards: chains go through all rows, and draws are of the rows on record."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from typing import Any

import numpy as np

from permix.data.cells import Cells
from permix.data.labels import Array
from permix.data.shards.matrices import MOST_VALUES, CellShard, ShardedCells
from permix.dp_mixture.choose_family import chosen_family
from permix.dp_mixture.fit import MixtureFit, fit_mixture, naming_columns, warn_of_data
from permix.dp_mixture.parameters import DPMixtureParameters, as_family, as_prior
from permix.dp_mixture.sharded.encodings import Answers, Words, measured
from permix.dp_mixture.sharded.groups import groups_of
from permix.dp_mixture.sharded.state import ShardedMixture, ShardedModel
from permix.errors import Argument, DataError, PermixWarning
from permix.families import (
    Categorical,
    Family,
    Gaussian,
    GaussianDiagonal,
    GaussianNIW,
    Mixed,
    Multinomial,
)
from permix.families.base import LARGEST
from permix.families.learning import with_means
from permix.families.niw import column_variances
from permix.moves import Concentration, Cycle
from permix.moves.hyperparameters import Hyperparameters
from permix.moves.recipe import moves_of
from permix.moves.sharded.moves import PlaceRows, SplitMergeRows
from permix.moves.sharded.rows import exact_sum, largest_of, refuse_divided_rows, sample
from permix.moves.sharded.state import log_dirichlet, rounding_of
from permix.moves.sharded.work import Shape, refuse_mistakes
from permix.moves.start import check_start, seat_all_data, start_of_chain
from permix.moves.state import MixtureState
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import nearest_partition
from permix.runtime.exact_sums import grid_of, on_grid
from permix.runtime.executors import new_token
from permix.runtime.fingerprint import digest
from permix.runtime.seeds import seed_sequence, stream_key
from permix.sampling import run_chains

# Rows on record: of no more, the data are fitted as a table.
ON_RECORD = 2000
# Iterations over the rows on record alone, from which a chain over all begins.
FIRST_ITERATIONS = 40
TAKEN = (GaussianNIW, GaussianDiagonal, Gaussian, Categorical, Multinomial)


def fit_shards(data: ShardedCells, settings: DPMixtureParameters) -> MixtureFit:
    """Run chains over rows in shards; labels are kept of a random sample, few rows are fitted as a table."""
    for name in ("moves", "burn_in_moves"):
        if getattr(settings, name) != "auto":
            raise DataError(
                Argument(name),
                " are moves of rows one by one; rows in shards are placed all at once: leave it out",
            )
    try:
        refuse_divided_rows(data)
        key = stream_key(seed_sequence(settings.random_state).spawn(1)[0])
        cells, record = sample(data, ON_RECORD, key)
        names = None if data.column_names is None else tuple(data.column_names)
        with naming_columns(names):
            asked = asked_family(data, settings.family, cells)
            if isinstance(asked, Categorical):
                refuse_mistakes(data, Answers(asked))
            if isinstance(asked, Multinomial):
                refuse_mistakes(data, Words(asked, data.n_columns))
            if data.n_rows <= ON_RECORD:
                fit = fit_mixture(cells.dense(), settings.replaced(family=asked), names)
                return dataclasses.replace(fit, settings=settings, sampled_from=data.n_rows)
            return _fit(data, settings, asked, cells, record, names)
    finally:
        data.forget()


def _fit(
    data: ShardedCells,
    settings: DPMixtureParameters,
    asked: Family,
    cells: Cells,
    record: Array,
    names: tuple[str, ...] | None,
) -> MixtureFit:
    prior, table = as_prior(settings.prior), cells.dense()
    check_start(settings.init, len(record), prior)
    family = asked.resolve(table)
    own = family.encode(table)
    learning = asked.learning(family, own)
    warn_of_data(family, own, table, names)
    model = model_of(data, family, own, prior, learning, record)
    move = Cycle([PlaceRows(), SplitMergeRows(), Concentration(), Hyperparameters()])
    draws = run_chains(
        [partial(first_state, model, cells, own, settings, chain) for chain in range(settings.n_chains)],
        move,
        **settings.for_chains(data.n_cells),
        fingerprint={
            "model": "DPMixture of shards",
            "family": family.describe(),
            "learned": list(learning.names) if learning else [],
            "prior": prior.describe(),
            "init": settings.init,
            "shape": [data.n_rows, data.n_columns, data.n_cells],
            "data": digest({**family.pack(own), "record": record}),
        },
    )
    estimate = nearest_partition(draws, settings)
    warn_if_chains_disagree(draws)
    if learning is not None:
        family = with_means(family, draws.arrays)
    n = len(record)
    return MixtureFit(settings, family, prior, own, n, draws, estimate, names, sampled_from=data.n_rows)


def model_of(
    data: ShardedCells, family: Family, own: Any, prior: Any, learning: Any, record: Array
) -> ShardedModel:
    """Return what is the same in the whole run; ``own`` are the rows on record, encoded."""
    unit, largest, log_constant = np.ones(data.n_columns), 1.0, 0.0
    if isinstance(family, Multinomial):
        largest, log_constant = max(largest_of(data), 1.0), _log_coefficients(data)
    elif isinstance(family, GaussianNIW | GaussianDiagonal | Gaussian):
        if largest_of(data) > LARGEST:
            raise DataError(f"there are numbers beyond {LARGEST:g}: measure the columns in other units")
        spread = np.sqrt(column_variances(own))
        unit = np.where(np.isfinite(spread) & (spread > 0.0), spread, 1.0)
        largest = max(float(data.map(_most, (np.asarray(family.prior_mean), unit), max)), 1.0)
    groups = groups_of(family, unit, largest)
    shape = Shape(groups.encoding, rounding_of(data.n_rows, largest), record)
    return ShardedModel(data, family, groups, shape, prior, learning, log_constant)


def first_state(
    model: ShardedModel,
    cells: Cells,
    own: Any,
    settings: DPMixtureParameters,
    chain: int,
    rng: np.random.Generator,
) -> ShardedMixture:
    """Place all rows in the groups that some iterations over those on record arrive at."""
    n = len(model.shape.record)
    small = MixtureState(model.family, own, n, model.prior, learning=model.learning)
    seat_all_data(rng, small, start_of_chain(settings.init, chain))
    burn_in, _ = moves_of("auto", "auto", FIRST_ITERATIONS, learns=model.learning is not None)
    for _ in range(FIRST_ITERATIONS):
        burn_in.step(rng, small)
    state = ShardedMixture(model, new_token())
    state.family, state.concentration = small.family, small.concentration
    counts = state.counts_of(model.groups.encoding.rows(cells), small.labels, small.n_clusters)
    state.place_all(rng, counts, log_dirichlet(rng, small.sizes_in_use + 1.0))
    return state


def asked_family(data: ShardedCells, asked: Any, cells: Cells) -> Family:
    """Return the family that was asked for, or the one for these cells; with all answers there are."""
    family: Family = as_family(asked)
    gaps = data.n_cells < data.n_rows * data.n_columns
    if asked is None:
        family = _chosen(data, cells, gaps)
    if not isinstance(family, TAKEN):
        listed = ", ".join(kind.name for kind in TAKEN)
        raise DataError(
            Argument("family", family.name), f" is not there for rows in shards, which take {listed}"
        )
    if gaps and isinstance(family, GaussianNIW | Multinomial):
        others = "gaussian-diagonal takes them" if isinstance(family, GaussianNIW) else "write zeros as 0"
        raise DataError(
            Argument("family", family.name), f" takes no missing cells where rows are in shards: {others}"
        )
    if data.is_text and not isinstance(family, Categorical):
        raise DataError("cells are text, which is for ", Argument("family", "categorical"))
    if isinstance(family, Categorical) and family.levels is None:
        return dataclasses.replace(family, levels=_all_levels(data))
    return family


def _chosen(data: ShardedCells, cells: Cells, gaps: bool) -> Family:
    """Return the family of cells where none is asked for, as :func:`chosen_family` chooses it."""
    if data.is_text:
        return Categorical()
    family, d = chosen_family(None, cells.dense()), data.n_columns
    if isinstance(family, Mixed):
        raise DataError(
            "some columns have two values only, and as numbers they make groups around these: say ",
            Argument("family", "categorical"),
            " or ",
            Argument("family", "gaussian-niw"),
            ", leave the columns out, or fit a part of the rows as one table",
        )
    if gaps:
        said = (
            "cells are missing: columns are taken to be independent within a group (gaussian-diagonal); "
            "correlated ones with gaps are fitted as a table alone"
        )
        warnings.warn(PermixWarning(said), stacklevel=5)
    return GaussianDiagonal() if gaps or data.n_rows < d * (d + 1) // 2 else GaussianNIW()


def _all_levels(data: ShardedCells) -> tuple[tuple[Any, ...], ...]:
    found: list[set[Any] | None] = data.map(_levels, None, _joined)
    names = data.column_names or tuple(str(at + 1) for at in range(data.n_columns))
    levels = []
    for name, values in zip(names, found, strict=True):
        if values is None:
            raise DataError(f"column {name!r} has more than {MOST_VALUES:,} different answers")
        if not values:
            raise DataError(f"column {name!r} has no entry at all: leave it out, or name its levels")
        levels.append(tuple(sorted(values)))
    return tuple(levels)


def _log_coefficients(data: ShardedCells) -> float:
    """Return the sum of ln of multinomial coefficients over all rows."""
    largest = largest_of(data)
    return float(
        _row_totals(data, largest) - exact_sum(data, _log_factorials, float(_log_factorials(largest)))
    )


def _row_totals(data: ShardedCells, largest: float) -> float:
    grid = grid_of(data.n_rows, max(float(_log_factorials(largest * data.n_columns)), 1.0))
    return float(np.sum(data.map(_of_totals, (grid, grid_of(data.n_rows, 0.5 / grid)), np.add)))


# Work of shards: functions of this module, so that other processes know them.


def _most(shard: CellShard, shared: tuple[Array, Array]) -> float:
    return float(np.abs(measured(shard.cells, *shared)).max(initial=0.0))


def _levels(shard: CellShard, _: object) -> list[set[Any] | None]:
    cells = shard.cells
    found: list[set[Any] | None] = []
    for column in range(cells.n_columns):
        values = set(cells.values[cells.columns == column].tolist())
        found.append(values if len(values) <= MOST_VALUES else None)
    return found


def _joined(one: list[set[Any] | None], other: list[set[Any] | None]) -> list[set[Any] | None]:
    both = []
    for mine, its in zip(one, other, strict=True):
        values = None if mine is None or its is None else mine | its
        both.append(None if values is None or len(values) > MOST_VALUES else values)
    return both


def _log_factorials(values: Any) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(np.asarray(values) + 1.0))


def _of_totals(shard: CellShard, grids: tuple[float, float]) -> Array:
    cells, (grid, rest) = shard.cells, grids
    terms = _log_factorials(np.bincount(cells.rows, cells.values, cells.n_rows))
    rounded = on_grid(terms, grid)
    return np.array([rounded.sum(), on_grid(terms - rounded, rest).sum()])
