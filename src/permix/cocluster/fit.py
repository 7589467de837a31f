"""The work behind :class:`permix.CoClustering`, free of scikit-learn, whose import takes a second.

The command line uses this directly; the estimator adds scikit-learn's conventions on top.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from permix.cocluster.bases import by_blocks
from permix.cocluster.block_predict import BlockDraw, BlockPredictive, block_sums, grid_draw, mondrian_draw
from permix.cocluster.cells.encoded_matrix import BlockSums, EncodedMatrix, encode_matrix
from permix.cocluster.cells.families import CellFamily, CellValueError
from permix.cocluster.cells.odd_levels import OTHERS, doubts_about
from permix.cocluster.chains import Engine, engine_of
from permix.cocluster.mixed_predict import MixedDraw, MixedPredictive
from permix.cocluster.parameters import BlockParameters, CoClusterParameters
from permix.data.cells import Cells
from permix.errors import Argument, DataError, Message, PermixWarning
from permix.estimators.known import NOTHING, Known
from permix.partitions import DirichletProcess, FiniteDirichlet, PartitionPrior
from permix.partitions.labels import canonical_labels
from permix.partitions.mondrian import MondrianTree
from permix.partitions.point_estimate import PointEstimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import Memberships, by_size, recurrence_of, spaced
from permix.posterior.placed import placed_partition
from permix.posterior.stacking import draws_of_chains, need_stacking, tried_draws, weights_of_chains
from permix.runtime.fingerprint import digest
from permix.sampling import Draws, run_chains

Array = npt.NDArray[Any]
Side = Literal["row", "column"]
# Chains that disagree are weighed by so many draws and cells.
STACKED_DRAWS, STACKED_CELLS = 100, 5000
# Predictions are averaged over at most so many draws, evenly spaced.
MAX_PREDICTIVE_DRAWS = 200
# Trees are compared by the blocks of so many cells, in so many draws.
COMPARED_CELLS, COMPARED_DRAWS = 4000, 200
# What draws of mixed memberships hold besides labels: cells of lines by group, and blocks.
MIXED = ("row_memberships", "column_memberships", "block_cells", "block_sums")
# Chains of blocks take long to meet: as long as they disagree they may be so many times as long as others.
PATIENCE = 4
# From this many on they are no levels: statistics have a slot for each in every block.
MOST_LEVELS = 1000


@dataclasses.dataclass
class BlockFit:
    """Draws of blocks of a matrix with all that is needed to use them.

    Grids have point estimates: partitions that minimize the posterior expected loss. Mondrians have the draw
    nearest to all others, where draws are numbered chain after chain.
    """

    model: ClassVar[str]
    settings: BlockParameters
    cells: Cells | None  # an ensemble may have none
    matrix: EncodedMatrix | None  # the same, encoded under the resolved family
    draws: Draws
    row_estimate: PointEstimate | None
    column_estimate: PointEstimate | None
    best_draw: int | None
    # Filled cells that the fit was not shown, to be predicted; files do not hold them.
    held_out: Cells | None = dataclasses.field(default=None, kw_only=True)
    known: Known = dataclasses.field(default=NOTHING, kw_only=True)  # of rows and columns, beside the cells

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.shape

    def memberships(self) -> Memberships:
        """Return to which groups rows belong."""
        labels, drawn = self.labels("row"), self.cluster_draws("row")
        compared = self.compared("row")
        return Memberships(
            labels,
            int(labels.max()) + 1,
            draws=drawn.reshape(-1, drawn.shape[-1]),
            recur=recurrence_of(drawn[..., compared], labels[compared]).n_chains / drawn.shape[0],
        )

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the chains before they were done."""
        return bool(self.draws.interrupted)

    @property
    def family(self) -> CellFamily:
        """What cells are made of, as fitted; a pseudo-count that is learned is the mean of all draws."""
        given, learned = self.known_matrix.family, self._mean_pseudo_count
        return given if learned is None else given.at(learned)

    @property
    def _mean_pseudo_count(self) -> float | None:
        learned = self.draws.arrays.get("pseudo_count")
        return None if learned is None else float(learned.mean())

    @property
    def known_matrix(self) -> EncodedMatrix:
        """The matrix, or an error that says that there is none."""
        if self.matrix is None:
            raise DataError(
                "this ensemble was fitted to base co-clusterings alone: give the matrix too, "
                "fit(X, bases=...), to predict its cells"
            )
        return self.matrix

    @property
    def known_cells(self) -> Cells:
        """The cells, or an error that says that there are none."""
        self.known_matrix  # noqa: B018
        assert self.cells is not None
        return self.cells

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        arrays = self.draws.arrays
        return arrays["row_labels"].shape[-1], arrays["column_labels"].shape[-1]

    @property
    def log_likelihood(self) -> float:
        """Posterior mean of ln p(cells | blocks)."""
        return float(self.draws.arrays["log_likelihood"].mean())

    # -- the point estimate ----------------------------------------------------------------------

    @cached_property
    def tree(self) -> MondrianTree | None:
        """The nested cuts of the point estimate."""
        return None if self.best_draw is None else self._tree_of(self.best_draw)

    @cached_property
    def blocks(self) -> BlockDraw:
        """The point estimate.

        Groups of a grid are numbered by size, those of a Mondrian by position: neighboring intervals with
        the same blocks are one group. Blocks are numbered 0, 1, ... by group of rows and group of columns.
        """
        if self.best_draw is not None:
            return told_apart(self.block_draw(self.best_draw))._replace(pseudo_count=self._mean_pseudo_count)
        assert self.row_estimate is not None
        assert self.column_estimate is not None
        rows, columns = (
            by_size(side.labels, side.placed) for side in (self.row_estimate, self.column_estimate)
        )
        return grid_draw(rows, columns, self._row_prior(), self._mean_pseudo_count)

    def labels(self, what: Side) -> npt.NDArray[np.int64]:
        """Return the group of each row, or of each column."""
        return np.asarray(getattr(self.blocks, f"{what}_classes"), dtype=np.int64)

    def placed(self, what: Side) -> npt.NDArray[np.bool_]:
        """Say which rows, or columns, are in their group in most draws; of a Mondrian, all.

        The others, mostly of few cells, could be in several, and are shown where they are most likely.
        """
        estimate: PointEstimate | None = getattr(self, f"{what}_estimate")
        if estimate is None or estimate.placed is None:
            return np.ones(self.shape[0 if what == "row" else 1], dtype=np.bool_)
        return estimate.placed

    def compared(self, what: Side) -> npt.NDArray[np.bool_]:
        """Say by whom a group is found again: those placed; a group of which nobody is, as a whole."""
        labels, placed = self.labels(what), self.placed(what)
        return placed | ~np.isin(labels, labels[placed])

    @cached_property
    def sums(self) -> BlockSums:
        """Cells of each block of the point estimate, and what they add up to."""
        return block_sums(self.known_matrix, self.blocks)

    @cached_property
    def block_parameters(self) -> dict[str, Array]:
        """Posterior means of the blocks' parameters given the point estimate, one row a block."""
        return self.family.parameters(*self.sums)

    # -- draws -----------------------------------------------------------------------------------

    @cached_property
    def predictive(self) -> BlockPredictive | MixedPredictive:
        """What averages predictions over evenly spaced draws, as many of each chain as its weight says."""
        chosen = spaced(self.n_all_draws, MAX_PREDICTIVE_DRAWS)
        if "row_memberships" in self.draws.arrays:
            return MixedPredictive(self.known_matrix, [self._mixed_draw(t) for t in chosen.tolist()])
        weights = self.chain_weights
        if weights is not None:
            n_draws = self.draws.arrays["row_labels"].shape[1]
            chosen = draws_of_chains(weights, n_draws, MAX_PREDICTIVE_DRAWS)
        return BlockPredictive(self.known_matrix, [self.block_draw(t) for t in chosen.tolist()])

    @cached_property
    def chain_weights(self) -> npt.NDArray[np.float64] | None:
        """How much chains that disagree count in predictions; None where all count alike.

        See :mod:`permix.posterior.stacking`. Cells are left out one by one, given the groups of their row and
        their column. Chains of mixed memberships count alike.
        """
        if "row_memberships" in self.draws.arrays or not need_stacking(self.draws):
            return None
        n_chains, n_draws = self.draws.arrays["row_labels"].shape[:2]
        chosen = tried_draws(n_chains, n_draws, STACKED_DRAWS)
        tried = BlockPredictive(self.known_matrix, [self.block_draw(t) for t in chosen.tolist()])
        cells = spaced(self.known_matrix.n_cells, STACKED_CELLS)
        return weights_of_chains(tried.log_left_out(cells), chosen // n_draws)

    @property
    def n_all_draws(self) -> int:
        """Number of draws of all chains."""
        n_chains, n_draws = self.draws.arrays["row_labels"].shape[:2]
        return int(n_chains * n_draws)

    def of_draw(self, name: str, t: int) -> Array:
        """Return a quantity of one draw, chains one after another."""
        array = self.draws.arrays[name]
        return np.asarray(array[divmod(t, array.shape[1])])

    def block_draw(self, t: int) -> BlockDraw:
        """Return the blocks of one draw, chains one after another."""
        rows, columns = self.of_draw("row_labels", t), self.of_draw("column_labels", t)
        learned = self._pseudo_count(t)
        if self.settings.prior == "mondrian":
            tree = self._tree_of(t)
            return mondrian_draw(rows, columns, tree.table(), np.diff(tree.row_edges()), learned)
        if "row_memberships" in self.draws.arrays:
            # The groups that most cells of a line are in: not every group need be among them.
            rows, columns = canonical_labels(rows), canonical_labels(columns)
        return grid_draw(rows, columns, self._row_prior(t), learned)

    def _pseudo_count(self, t: int) -> float | None:
        """Return the pseudo-count of cells of a draw, where it is learned."""
        return float(self.of_draw("pseudo_count", t)) if "pseudo_count" in self.draws.arrays else None

    def _mixed_draw(self, t: int) -> MixedDraw:
        rows, columns, n, sums = (self.of_draw(name, t) for name in MIXED)
        a, b = (prior.pseudo_count for prior in self.settings.line_priors())  # type: ignore[attr-defined]
        # Draws are kept in the smallest type that holds them, and sums of these must not run over.
        blocks = BlockSums(n.astype(np.int64), sums.astype(self.family.sums_dtype))
        lines = (rows.astype(np.int64), columns.astype(np.int64))
        return MixedDraw(*lines, blocks, (a, b), self._pseudo_count(t))

    def cluster_draws(self, what: Side) -> Array:
        """Return the group of each row, or column, in every draw: chains × draws × rows, or columns.

        Draws of Mondrians hold intervals, of which neighbors with the same blocks are one group.
        """
        labels = self.draws.arrays[f"{what}_labels"]
        if self.settings.prior != "mondrian":
            return labels
        found = [told_apart(self.block_draw(t)) for t in range(self.n_all_draws)]
        return np.stack([getattr(draw, f"{what}_classes") for draw in found]).reshape(labels.shape)

    def _tree_of(self, t: int) -> MondrianTree:
        axis, cuts, times = (self.of_draw(name, t) for name in ("tree_axis", "tree_cut", "tree_time"))
        return MondrianTree.from_preorder(axis, cuts, times, self.settings.budget)

    def _row_prior(self, t: int | None = None) -> PartitionPrior:
        """Return the prior of rows; a concentration that is learned is that of a draw, or the mean of all."""
        learned = self.draws.arrays.get("row_concentration")
        if learned is None:
            return self.settings.line_priors()[0]
        return DirichletProcess(float(learned.mean() if t is None else self.of_draw("row_concentration", t)))


@dataclasses.dataclass
class CoClusterFit(BlockFit):
    """Draws of a co-clustering; see :class:`BlockFit`."""

    model: ClassVar[str] = "CoClustering"
    settings: CoClusterParameters
    cells: Cells
    matrix: EncodedMatrix
    # How many rows were fitted, where they were in shards and those here are a random sample of them.
    sampled_from: int | None = dataclasses.field(default=None, kw_only=True)


def fit_cocluster(cells: Cells, settings: CoClusterParameters) -> CoClusterFit:
    """Run chains on the cells of a matrix, summarize them, and warn where chains disagree."""
    matrix = encoded(cells, chosen_family(cells, settings))
    draws = cocluster_draws(matrix, settings)
    warn_if_chains_disagree(draws)
    return CoClusterFit(settings, cells, matrix, draws, *estimates(draws, settings, cells.shape))


def cocluster_draws(matrix: EncodedMatrix, settings: CoClusterParameters) -> Draws:
    """Run chains on an encoded matrix."""
    if settings.prior == "dirichlet":
        sizes = (matrix.n_rows, matrix.n_columns)
        for what, prior, n in zip(("row", "column"), settings.line_priors(), sizes, strict=True):
            if isinstance(prior, FiniteDirichlet) and prior.n > n:
                number = Argument(f"n_{what}_clusters", prior.n)
                warnings.warn(PermixWarning(Message(number, f" is more than the {n} {what}s")), stacklevel=3)
    fingerprint = {
        "model": "CoClustering",
        "prior": settings.describe_prior(),
        "membership": settings.membership,
        "family": matrix.family.describe(),
        "pseudo_count": settings.described_pseudo_count(),
        "shape": [matrix.n_rows, matrix.n_columns],
        "data": digest(matrix.by_row._asdict()),
    }
    return drawn(engine_of(matrix, settings), settings, matrix.n_cells, fingerprint)


def drawn(engine: Engine, settings: BlockParameters, size: int, fingerprint: dict[str, Any]) -> Draws:
    """Run the chains, whose iterations go through ``size`` numbers.

    ``fingerprint`` identifies a model and its data, in values that JSON holds.
    """
    fingerprint = {**fingerprint, "moves": repr(engine.move)}
    # Moves that learn how much to propose do so only in burn-in.
    learning = engine.move.during_burn_in()
    run = {**settings.for_chains(size), "patience": PATIENCE, "burn_in_move": learning}
    return run_chains(*engine, **run, fingerprint=fingerprint)


def estimates(
    draws: Draws, settings: BlockParameters, shape: tuple[int, int]
) -> tuple[PointEstimate | None, PointEstimate | None, int | None]:
    """Return point estimates of rows and of columns, or which draw is nearest to all others."""
    if settings.prior == "mondrian":
        return None, None, nearest_draw(draws, settings, shape)
    names = [(f"{what}_labels", f"n_{what}_groups") for what in ("row", "column")]
    rows, columns = (placed_partition(draws, settings, *each) for each in names)
    return rows, columns, None


def nearest_draw(draws: Draws, settings: BlockParameters, shape: tuple[int, int]) -> int:
    """Return the number of the draw with the least mean loss to all others, by the blocks of some cells."""
    from permix.partitions.weighted_draws import WeightedDraws

    arrays = draws.arrays
    n_chains, n_draws = arrays["row_labels"].shape[:2]
    chosen = spaced(n_chains * n_draws, COMPARED_DRAWS)
    n = shape[0] * shape[1]  # never listed when there are many: a sparse matrix may have billions of cells
    few = n <= COMPARED_CELLS
    places = np.arange(n) if few else np.random.default_rng(0).integers(n, size=COMPARED_CELLS)
    rows, columns = np.divmod(places, shape[1])
    blocks = []
    for t in chosen.tolist():
        at = divmod(t, n_draws)
        axis, cuts, times = (arrays[name][at] for name in ("tree_axis", "tree_cut", "tree_time"))
        table = MondrianTree.from_preorder(axis, cuts, times, settings.budget).table()
        blocks.append(table[arrays["row_labels"][at][rows], arrays["column_labels"][at][columns]])
    labels = canonical_labels(np.array(blocks, dtype=np.int64))
    compared = WeightedDraws(labels, np.ones(len(labels)), settings.loss)
    return int(chosen[np.argmin([compared.expected_loss(candidate) for candidate in labels])])


def chosen_family(cells: Cells, settings: BlockParameters) -> CellFamily:
    """Return what cells are made of, not resolved yet; say so where they are numbers and nobody asked."""
    family = settings.cell_family(cells.values)
    if settings.family == "auto" and not family.has_levels:
        n = len(np.unique(cells.values))
        said = f"the cells have {n:,} different values, not all whole, and are taken for numbers: "
        told = (Argument("family", family.name), "; ", Argument("family", "categorical"), " takes levels")
        warnings.warn(PermixWarning(Message(said, *told)), stacklevel=3)
    return family


def encoded(cells: Cells, family: CellFamily) -> EncodedMatrix:
    """Encode cells under a family, which takes from them what it does not have yet."""
    with naming_cells(cells):
        family = family.resolve(cells.values)
        n_levels = family.n_slots
        if n_levels > MOST_LEVELS:
            raise DataError(f"the cells have {n_levels:,} different values, too many to be levels: ", *OTHERS)
        matrix = encode_matrix(family, cells.rows, cells.columns, cells.values, cells.shape)
    for doubt in doubts_about(family, cells.n_cells):
        warnings.warn(PermixWarning(doubt), stacklevel=3)
    return matrix


@contextmanager
def naming_cells(cells: Cells) -> Iterator[None]:
    """Let errors about values name row and column as the user does."""
    try:
        yield
    except CellValueError as error:
        raise error.at(cells.place(error.position)) from None


def told_apart(draw: BlockDraw) -> BlockDraw:
    """Return the same blocks with only those classes that differ and have members, blocks without gaps.

    Blocks of nested cuts are rectangles, so that row intervals with the same blocks are neighbors, and so
    are column intervals: classes stay in order of position.
    """
    columns, column_classes = np.unique(draw.column_classes, return_inverse=True)
    # Intervals without a row have room for new ones: they count where their blocks are those of a class.
    group_of = by_blocks(draw.table[:, columns])[0]
    present, row_classes = np.unique(group_of[draw.row_classes], return_inverse=True)
    firsts = np.array([np.argmax(group_of == group) for group in present])
    _, column_groups, table = by_blocks(draw.table[np.ix_(firsts, columns)])
    weights = [np.logaddexp.reduce(draw.row_log_weights[group_of == group]) for group in present]
    classes = (row_classes.astype(np.int32), column_groups[column_classes].astype(np.int32))
    return BlockDraw(*classes, table.astype(np.int64), np.array(weights), draw.new_row_log_weight)
