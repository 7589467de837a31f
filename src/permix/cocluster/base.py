"""What co-clusterings and their ensembles have in common as scikit-learn estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BiclusterMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.cells.registry import CELL_FAMILIES, cell_family_class
from permix.cocluster.fit import BlockFit
from permix.cocluster.predict import NO_LEVELS, BlockPredictions, perplexity_of
from permix.cocluster.results import group_table, number_probabilities
from permix.data.agent_table import AgentTable
from permix.data.cells import Cells
from permix.data.io.columns import is_frame
from permix.errors import DataError, ParameterError
from permix.estimators.base import DrawsMixin, Estimator, ScoreMixin
from permix.estimators.checks import Choice
from permix.estimators.recommend import N_ITEMS, as_frame, checked_number
from permix.partitions import similarity_matrix
from permix.posterior import to_datatree

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Array = npt.NDArray[Any]
DIMS = {
    **{name: ["node"] for name in ("tree_axis", "tree_cut", "tree_time")},
    "row_memberships": ["row", "row_group"],
    "column_memberships": ["column", "column_group"],
    "block_cells": ["row_group", "column_group"],
    "block_sums": ["row_group", "column_group", "slot"],
}


def _has_levels(estimator: Any) -> bool:
    """Whether cells have one of finitely many values; scikit-learn's way to say what a model does not do."""
    family = getattr(estimator, "family_", estimator.family)
    if isinstance(family, str):
        family = cell_family_class(family) if family in CELL_FAMILIES else CategoricalCells
    if not getattr(family, "has_levels", True):
        raise AttributeError(NO_LEVELS.format(family.name))
    return True


class BlockEstimator(BiclusterMixin, DrawsMixin, ScoreMixin, Estimator):  # type: ignore[misc]
    """Results and predictions, once the blocks have been drawn."""

    _fit: BlockFit

    def _adopt(self, fit: BlockFit) -> Self:
        """Show a fit under scikit-learn's names."""
        self._fit = fit
        self._answers = BlockPredictions(fit)
        self._tree = None
        self.blocks_ = fit.blocks
        self.block_labels_ = fit.blocks.table
        self.labels_ = self.row_labels_ = fit.labels("row")
        self.column_labels_ = fit.labels("column")
        self.n_row_clusters_, self.n_column_clusters_ = fit.blocks.table.shape
        self.tree_ = fit.tree
        self.log_likelihood_ = fit.log_likelihood
        self.n_features_in_ = fit.shape[1]
        if fit.matrix is not None:
            self.cells_ = fit.cells
            self.family_ = fit.family
            self.block_parameters_ = fit.block_parameters
        return self

    @classmethod
    def _from_fit(cls, fit: BlockFit) -> Self:
        model = super()._from_fit(fit)
        names = None if fit.cells is None else fit.cells.column_names
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model

    def _datatree(self, fit: BlockFit) -> xr.DataTree:
        names = {} if fit.cells is None else {"row": fit.cells.row_names, "column": fit.cells.column_names}
        coords = {what: list(known) for what, known in names.items() if known is not None}
        return to_datatree(fit.draws, coords=coords, dims=DIMS)

    @property
    def rows_(self) -> npt.NDArray[np.bool_]:
        """Which rows (axis 1) are in each block (axis 0); scikit-learn's convention for biclusters."""
        return self._members(axis=2)[:, self.row_labels_]

    @property
    def columns_(self) -> npt.NDArray[np.bool_]:
        """Which columns (axis 1) are in each block (axis 0)."""
        return self._members(axis=1)[:, self.column_labels_]

    def _members(self, axis: int) -> npt.NDArray[np.bool_]:
        """Say which classes of rows, found along the axis of columns, or of columns each block has."""
        check_is_fitted(self)
        blocks = np.arange(self.blocks_.n_blocks)
        return np.asarray((self.block_labels_ == blocks[:, None, None]).any(axis=axis))

    # -- rows ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the most probable group of ``row_labels_`` of each new row.

        Parameters
        ----------
        X : matrix
            New rows over the same columns, with what is known of them, which may be nothing. Columns of a
            frame, and of :class:`permix.Cells`, are matched by name: some of the fitted ones are enough, in
            any order. Columns without names are taken in the order of the fitted ones; names, other than
            numbers, are refused where the fitted matrix had none.

        Returns
        -------
        ndarray of int
        """
        return np.asarray(self._ask().rows(self._cells(X, reset=False), scores=False).best)

    def predict_novelty(self, X: Any) -> Array:
        """Return the probability that each new row is in a group of its own; 0 where the prior has no such.

        With the probabilities of :meth:`predict_proba` it sums to one. ``X`` is as in :meth:`predict`.
        """
        return self._ask().rows(self._cells(X, reset=False), scores=False).novelty

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each group of ``row_labels_`` for each new row.

        What these leave is the probability of a group of its own, :meth:`predict_novelty`. With mixed
        membership, where a row is in several groups, its mean shares of them.

        Parameters
        ----------
        X : matrix
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (rows, row groups)
        """
        return self._ask().rows(self._cells(X, reset=False), scores=False).shares

    def _kept(self) -> Cells:
        return self._fitted().known_cells

    def _data_to_check(self, X: Any) -> None:
        """Take the matrix that was fitted, which the fit keeps, and no other."""
        if X is None:
            return
        given, kept = self._cells(X, reset=False), self._fitted().known_cells
        same = given.shape == kept.shape and np.array_equal(given.values, kept.values)
        if not (
            same and np.array_equal(given.rows, kept.rows) and np.array_equal(given.columns, kept.columns)
        ):
            raise DataError("checks are about the matrix that was fitted, and this is another: leave X out")

    def _data_to_compare(self, X: Any, fitted_to: Any) -> tuple[Any, Any]:
        return self._ask()._new(self._cells(X, reset=False)), fitted_to

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        found = self._ask().rows(self._cells(X, reset=False), groups=False)
        return found.log_evidence, found.errors

    # -- cells -----------------------------------------------------------------------------------

    def predict_cells(self, X: Any = None, cells: Any = None) -> Array:
        """Return the most probable value of cells in levels, the expected value of others.

        Parameters
        ----------
        X : matrix, optional
            New rows as in :meth:`predict`; left out, the fitted rows.
        cells : sequence of (row, column), or Cells, optional
            The cells asked for, by name or by number from 0; left out, the whole table.

        Returns
        -------
        ndarray of shape (cells,), or (rows, columns)
            Rows and columns are in the order of the fitted matrix. Their names, where it had any, are
            ``model.cells_.row_names`` and ``model.cells_.column_names``:
            ``pandas.DataFrame(model.predict_cells(), model.cells_.row_names, model.cells_.column_names)``.

        Notes
        -----
        Probabilities are averaged over draws, at most 200, evenly spaced. A new row belongs to every group
        of rows, also a new one, by how well its cells fit, and draws count by how probable they make these.
        With mixed membership its cells are given groups by chance, at least 200 times, always the same way
        for the same row, and all draws count alike.
        """
        return self._ask().predict_cells(self._new_rows(X), cells)

    @available_if(_has_levels)  # type: ignore[untyped-decorator]
    def predict_cells_proba(self, X: Any = None, cells: Any = None) -> Array:
        """Return the probability of every level, in the order of ``family_.levels``, as the last axis.

        ``X`` and ``cells`` are those of :meth:`predict_cells`; the result has the shape (cells, levels), or
        (rows, columns, levels).
        """
        return self._ask().predict_cells_proba(self._new_rows(X), cells)

    def predict_cells_mean(self, X: Any = None, cells: Any = None) -> Array:
        """Return the expected value of cells, also of those in levels, where these are numbers.

        ``X``, ``cells`` and the shape of the result are those of :meth:`predict_cells`.
        """
        return self._ask().predict_cells_mean(self._new_rows(X), cells)

    def complete(self, X: Any = None) -> Array:
        """Return the whole table: filled cells as they are, missing ones as :meth:`predict_cells` has them.

        Parameters
        ----------
        X : matrix, optional
            New rows; left out, the fitted ones.

        Returns
        -------
        ndarray of shape (rows, columns)
            Columns are in the order of the fitted matrix: their names are ``model.cells_.column_names``, and
            those of the fitted rows ``model.cells_.row_names``.
        """
        return self._ask().complete(self._new_rows(X))

    def recommend(self, agent: Any = None, n: int = N_ITEMS) -> pd.DataFrame:
        """Return columns without a cell in a row, those first whose value is expected to be largest.

        Parameters
        ----------
        agent : name or number of a row, several of these, or new rows; optional
            Fitted rows by name, or by number from 0 where no name is a number; or new rows as in
            :meth:`predict`. Left out, all fitted rows.
        n : int
            Columns for each row.

        Returns
        -------
        DataFrame
            ``row``; ``place``, the same for columns that are tied; ``column``; ``expected``, its expected
            value; ``low`` and ``high``, between which that lies with probability 90 %, about; ``tied``, how
            many unseen columns have this expected value: the model cannot tell them apart, and those with
            most cells come first. ``attrs["note"]`` says where more are as good as the last one listed.
        """
        answers, n = self._ask(), checked_number(n)
        fitted = self._fit.known_cells
        named = [agent] if isinstance(agent, str | int | np.integer) else agent
        new, rows = None, np.arange(fitted.n_rows)
        if isinstance(named, list | tuple) and all(isinstance(one, str | int | np.integer) for one in named):
            rows = np.array([fitted.row_index(one) for one in named], dtype=np.int64)
        elif named is not None:
            new = self._cells(named, reset=False)
            rows = np.arange(new.n_rows)
        return as_frame(answers.recommended(new, rows, n), {"agent": "row", "item": "column"})

    def score_cells(self, X: Any) -> float:
        """Return the mean ln p of the filled cells of X, taken as further cells of the fitted rows.

        Parameters
        ----------
        X : matrix
            Held-out cells: over the same rows and columns, or with their names.

        Notes
        -----
        p is averaged over draws, then its logarithm over cells. It is a density for the family gaussian.
        A cell with a level that no fitted cell has is refused, unless the family was given that level.
        """
        return self._ask().score_cells(self._cells(X, reset=False))

    def perplexity(self, X: Any) -> float:
        """Return exp of minus :meth:`score_cells`: as if cells had so many equally probable values."""
        return perplexity_of(self.score_cells(X))

    # -- partitions ------------------------------------------------------------------------------

    def row_similarity(self) -> npt.NDArray[np.float32]:
        """Return the posterior probability that two rows share a group, rows × rows."""
        return similarity_matrix(self._fitted().cluster_draws("row"))

    def column_similarity(self) -> npt.NDArray[np.float32]:
        """Return the posterior probability that two columns share a group, columns × columns."""
        return similarity_matrix(self._fitted().cluster_draws("column"))

    def n_groups_proba(self, of: Literal["rows", "columns"] = "rows") -> Array:
        """Return the posterior probabilities of the number of groups; entry k is that of k groups.

        With ``prior="mfm"`` this is the number of all groups, those without a row (or column) yet included;
        otherwise that of the groups seen.

        Parameters
        ----------
        of : {"rows", "columns"}
            Groups of what.

        Returns
        -------
        ndarray
        """
        if of not in ("rows", "columns"):
            raise ParameterError("of", of, Choice("rows", "columns").must_be())
        return number_probabilities(self._fitted(), "row" if of == "rows" else "column")

    def summary(self) -> pd.DataFrame:
        """Return the groups of rows and of columns: how large each is, how sure that is, and its members."""
        return group_table(self._fitted())

    # -- input -----------------------------------------------------------------------------------

    def _ask(self) -> BlockPredictions:
        check_is_fitted(self)
        self._fit.known_matrix  # noqa: B018
        return self._answers

    def _new_rows(self, X: Any) -> Cells | None:
        return None if X is None else self._cells(X, reset=False)

    def _cells(self, X: Any, *, reset: bool) -> Cells:
        """Return a matrix as filled cells; arrays and frames are checked as scikit-learn does."""
        if isinstance(X, AgentTable):
            raise DataError(
                f"{type(X).__name__} are no matrix: for mixtures of rankings see permix.MallowsMixture; for "
                "ratings give the table of ratings itself"
            )
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        else:
            check_is_fitted(self)
            names = self._fit.known_cells.column_names
            if names is not None and is_frame(X) and not isinstance(X, Cells):
                # Any fitted columns, in any order: a first column called as one of them is no names of rows.
                known = str(next(iter(X.columns), None)) in names
                return Cells.from_frame(X, layout="wide", row_column=False if known else None, new_rows=True)
        if isinstance(X, Cells) or np.ma.isMaskedArray(X):
            return Cells.coerce(X, new_rows=not reset)
        if is_frame(X):
            cells = Cells.coerce(X, new_rows=not reset)
            if reset and cells.shape == tuple(X.shape):  # a frame may have a column of names of rows
                self._validated(X, reset=True, skip_check_array=True)
            return cells
        if hasattr(X, "tocoo"):
            self._validated(X, reset=reset, skip_check_array=True)
            return Cells.coerce(X, new_rows=not reset)
        if not hasattr(X, "__array__"):
            Cells.coerce(X, new_rows=True)  # what is wrong with lists is said in words for rows and cells
        checked = self._validated(X, reset=reset, dtype=None, ensure_all_finite=False)
        return Cells.coerce(checked, new_rows=not reset)

    def _validated(self, X: Any, **options: Any) -> Any:
        """Return what scikit-learn's checks make of a matrix; what they refuse is an error about data."""
        try:
            return validate_data(self, X, **options)
        except DataError:
            raise
        except ValueError as error:
            raise DataError(str(error)) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.non_deterministic = False
        return tags
