"""Groups of counts: documents, baskets, profiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import Argument, CellError, DataError
from permix.families.base import Family, check_positive, refuse_odd_cells, vector_of
from permix.families.column_learning import PSEUDO_COUNT, PseudoCountLearning
from permix.families.multinomial_jit import Counts, MultinomialStats
from permix.families.profiles import Profile

# A drawn document is put together word by word.
LONGEST_DOCUMENT = 10_000_000
# Where chains begin.
DEFAULT_PSEUDO_COUNT = 1.0
# Pseudo-counts of the observed columns of a row that lacks others sum to this at least: with less, a group of
# this row alone would have missing counts beyond all bounds.
LEAST_OBSERVED = 1.0
# Shares of columns, of rows that lack some, are found by so many steps.
SHARE_STEPS = 50


@dataclasses.dataclass(frozen=True, eq=False)
class Multinomial(Family):
    """Multinomial groups of counts, dense or sparse, with a Dirichlet prior.

    Parameters
    ----------
    pseudo_count : float or sequence of float, optional
        Dirichlet parameter: one number for all columns, or one per column. Left out, one number is learned:
        its logarithm has a normal prior with median 1 and deviation 1.5, and where counts are missing it is
        at least one over the least number of columns that a row has.
    document_length : int, optional
        Total of a drawn row; default the mean total of the data.

    Notes
    -----
    Densities are those of count vectors, multinomial coefficient included. Time and memory for data
    follow the non-zero cells.

    Counts may be missing (NaN). Totals say nothing about groups, and of a row that lacks columns neither does
    the total of those that it has: it is scored by how that is shared out among them. Chains draw what is
    missing (data augmentation), so that the result is exact. In :class:`Mixed`, whose columns are independent
    within a group, how large a count is says something too.

    Examples
    --------
    >>> Multinomial(pseudo_count=0.5).resolve([[2, 0, 1], [0, 3, 0]]).document_length
    3
    """

    pseudo_count: float | Sequence[float] | np.ndarray | None = None
    document_length: int | None = None

    name: ClassVar[str] = "multinomial"
    main_parameter: ClassVar[str] = "probabilities"
    packed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "indptr": ("int64", "pointers"),
        "indices": ("int32", "cells?"),
        "values": ("real", "cells?"),
        "totals": ("real", "observations"),
        "log_coefficient": ("real", "observations"),
    }
    per_column: ClassVar[str] = "pseudo_count"
    accepts_sparse: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = True
    quick_marginal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pseudo_count is not None:
            check_positive(self.pseudo_count, "pseudo_count")
        length = self.document_length
        whole = isinstance(length, int) and not isinstance(length, bool) and 0 <= length <= LONGEST_DOCUMENT
        if length is not None and not whole:
            must = f"must be a whole number from 0 to {LONGEST_DOCUMENT:,}"
            raise DataError(f"document_length {must}, got {length!r}")

    def resolve(self, X: Any) -> Self:
        """Take the number of columns and the usual total from the data."""
        matrix = _count_matrix(X)
        given = DEFAULT_PSEUDO_COUNT if self.pseudo_count is None else self.pseudo_count
        pseudo = vector_of(given, matrix.shape[1], "pseudo_count")
        _check_gaps(matrix, pseudo)
        length = self.document_length
        if length is None:
            length = round(_usual_total(matrix))
        return dataclasses.replace(self, pseudo_count=pseudo, document_length=length)

    @property
    def learnable(self) -> dict[str, Any]:
        """The pseudo-count, which is the same for all columns where it is learned."""
        return {"pseudo_count": float(np.asarray(self.pseudo_count)[0])}

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with another pseudo-count for all columns."""
        return dataclasses.replace(self, pseudo_count=np.full(self.n_features, values["pseudo_count"]))

    def learning(self, resolved: Self, data: Any) -> PseudoCountLearning | None:
        """The pseudo-count, where it was left open."""
        if not self.learned_names(resolved):
            return None
        fewest = resolved.n_features - _n_missing(data)[data.totals > 0].max(initial=0)
        least = LEAST_OBSERVED / fewest if np.isnan(data.values).any() else 0.0
        return PseudoCountLearning(prior=dataclasses.replace(PSEUDO_COUNT, low=max(PSEUDO_COUNT.low, least)))

    def encode(self, X: Any) -> Counts:
        """Return compressed sparse rows with totals and multinomial coefficients."""
        from scipy.special import gammaln

        matrix = _count_matrix(X)
        values = matrix.data.astype(np.float64)
        # What is missing counts nothing here.
        observed = np.nan_to_num(values)
        # Σ ln x! per row; differences of running sums would lose digits, reduceat chokes on empty rows.
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        totals = np.bincount(rows, weights=observed, minlength=matrix.shape[0])
        log_factorials = np.bincount(rows, weights=gammaln(observed + 1.0), minlength=matrix.shape[0])
        return Counts(
            indptr=matrix.indptr.astype(np.int64),
            indices=matrix.indices.astype(np.int32),
            values=values,
            totals=totals,
            log_coefficient=gammaln(totals + 1.0) - log_factorials,
        )

    def statistics(self, capacity: int) -> MultinomialStats:
        pseudo = np.asarray(self.pseudo_count, dtype=np.float64)
        assert self.document_length is not None
        return MultinomialStats(
            pseudo_counts=pseudo,
            log_pseudo_counts=np.log(pseudo),
            pseudo_total=float(pseudo.sum()),
            document_length=self.document_length,
            counts=np.zeros((pseudo.shape[0], capacity)),
            log_weights=np.zeros((pseudo.shape[0], capacity)),
            totals=np.zeros(capacity),
            log_coefficient=np.zeros(capacity),
        )

    def completed(self, data: Counts) -> Counts:
        """Fill gaps with zeros: chains draw them anew, given the group of the row."""
        if not np.isnan(data.values).any():
            return data
        values = np.nan_to_num(data.values)
        return data._replace(
            values=values, totals=data.totals.copy(), log_coefficient=data.log_coefficient.copy()
        )

    def filled_cells(self, data: Counts) -> np.ndarray | None:
        """Say which of the cells that sparse rows hold are missing."""
        missing = np.isnan(data.values)
        return missing if missing.any() else None

    def rows_filled(self, missing: np.ndarray, data: Counts) -> np.ndarray:
        return _n_missing(data) > 0

    def cells_at(self, filled: Counts, missing: np.ndarray) -> np.ndarray:
        return np.asarray(filled.values[missing])

    def put_cells(self, filled: Counts, missing: np.ndarray, cells: np.ndarray) -> None:
        """Write to missing cells, and bring totals and coefficients up to date."""
        from scipy.special import gammaln

        rows, n = _rows_of(filled), len(filled.totals)
        observed = np.bincount(rows, weights=np.where(missing, 0.0, filled.values), minlength=n)
        filled.values[missing] = cells
        filled.totals[:] = np.bincount(rows, weights=filled.values, minlength=n)
        log_factorials = np.bincount(rows, weights=gammaln(filled.values + 1.0), minlength=n)
        counted = observed > 0.0
        # n Γ(N)/Πx!, which is N!/Πx! where nothing is missing (families/missing/multinomial_gaps_jit.py).
        filled.log_coefficient[:] = -log_factorials
        filled.log_coefficient[counted] += np.log(observed[counted]) + gammaln(filled.totals[counted])

    def typical_cells(self, cells: np.ndarray) -> np.ndarray:
        """Return medians: a few draws may be very large."""
        return np.round(np.median(cells, axis=(0, 1)))

    def scoring(self, stats: Any, data: Counts, filled: Counts) -> Any:
        """Rows with gaps are scored by how what was observed is shared out."""
        if not np.isnan(data.values).any():
            return stats
        from permix.families.missing.multinomial_gaps_jit import with_gaps

        return with_gaps(stats, filled)

    def lacking(self, data: Counts, like: Counts) -> Counts:
        """Return counts without those that others lack: shares are shares of what was observed."""
        if not np.isnan(like.values).any():
            return data
        return self.encode(
            np.where(np.isnan(self._matrix(like).toarray()), np.nan, self._matrix(data).toarray())
        )

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Counts are whole numbers."""
        return rows.astype(np.int64)

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Return the square roots of shares, whose distances are Hellinger's."""
        dense = _filled_in(self._matrix(data).toarray())
        return np.sqrt(dense / np.maximum(dense.sum(axis=1, keepdims=True), 1.0)), False

    def numbers(self, data: Any) -> np.ndarray:
        """Return shares of the counts; NaN for missing ones, and for documents without any."""
        dense = self._matrix(data).toarray()
        total = np.nansum(dense, axis=1, keepdims=True)
        return np.where(total > 0.0, dense / np.maximum(total, 1.0), np.nan)

    def _matrix(self, data: Counts) -> Any:
        from scipy import sparse

        shape = (len(data.totals), self.n_features)
        return sparse.csr_array((data.values, data.indices, data.indptr), shape=shape)

    def pack(self, data: Any) -> dict[str, np.ndarray]:
        return dict(data._asdict())

    def unpack(self, arrays: Mapping[str, np.ndarray]) -> Counts:
        return Counts(**{name: arrays[name] for name in Counts._fields})

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse sparse rows whose pointers or columns are out of range, or whose counts are no counts."""
        if not isinstance(data, Counts):
            raise DataError("data are not sparse counts")
        kinds = (np.int64, np.int32, np.float64, np.float64, np.float64)
        if any(array.ndim != 1 or array.dtype != kind for array, kind in zip(data, kinds, strict=True)):
            raise DataError("sparse counts have the wrong types")
        lengths = (len(data.indptr), len(data.totals), len(data.log_coefficient))
        if lengths != (n + 1, n, n) or len(data.indices) != len(data.values):
            raise DataError("sparse counts have the wrong lengths")
        if data.indptr[0] != 0 or data.indptr[-1] != len(data.indices) or np.any(np.diff(data.indptr) < 0):
            raise DataError("sparse counts have broken row pointers")
        if len(data.indices) and (data.indices.min() < 0 or data.indices.max() >= self.n_features):
            raise DataError("a column is out of range")
        again = self.encode(self._matrix(data))
        if not all(
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(again, data, strict=True)
        ):
            raise DataError("sparse counts do not add up")

    def profile(self, data: Any, labels: np.ndarray, n_groups: int) -> Profile:
        """Compare each column's share of a group's total with its share of the grand total."""
        from scipy import sparse

        if np.isnan(data.values).any():
            return self._profile_of_gaps(data, labels, n_groups)
        member = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
        counts = (member @ self._matrix(data)).toarray()
        totals = counts.sum(axis=1, keepdims=True)
        overall = counts.sum(axis=0) / max(float(totals.sum()), 1.0)
        typical = np.where(totals > 0, counts / np.maximum(totals, 1.0), np.nan)
        entries = np.broadcast_to(totals.astype(np.int64), counts.shape)
        is_share = np.ones(len(overall), dtype=np.bool_)
        return Profile(typical, overall, np.sqrt(overall * (1.0 - overall)), entries, is_share)

    def _profile_of_gaps(self, data: Counts, labels: np.ndarray, n_groups: int) -> Profile:
        """Return the most probable shares, where rows lack columns."""
        dense = self._matrix(data).toarray()
        members = [dense[labels == group] for group in range(n_groups)]
        overall = _shares(dense)
        entries = np.array([np.full(self.n_features, np.nansum(rows)) for rows in members], dtype=np.int64)
        typical = np.where(entries > 0, [_shares(rows) for rows in members], np.nan)
        is_share = np.ones(self.n_features, dtype=np.bool_)
        return Profile(typical, overall, np.sqrt(overall * (1.0 - overall)), entries, is_share)

    def direction_scales(self, data: Any) -> np.ndarray:
        """Measure word frequencies by their standard deviations, as the chi-square distance does."""
        totals = np.bincount(data.indices, weights=np.nan_to_num(data.values), minlength=self.n_features)
        return 1.0 / np.sqrt(np.maximum(totals, 1.0))

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean of each group's probabilities."""
        weights = (stats.pseudo_counts[:, None] + stats.counts[:, :n_clusters]).T
        return {"probabilities": weights / weights.sum(axis=1, keepdims=True)}


def _count_matrix(X: Any) -> Any:
    """Return ``X`` as CSR without explicit zeros or duplicates; the error names the first bad cell."""
    from scipy import sparse

    refuse_odd_cells(X)
    rows: Any = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    matrix = sparse.csr_array(rows)
    if matrix.ndim != 2:
        raise DataError(f"expected a table of rows and columns, got an array of shape {matrix.shape}")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    values = matrix.data
    whole = np.isfinite(values) & (values >= 0) & (values == np.floor(values))
    bad = np.flatnonzero(~(whole | np.isnan(values)))
    if bad.size:
        raise CellError(
            int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1,
            int(matrix.indices[bad[0]]),
            f"{{place}} is {values[bad[0]]:g}; the multinomial family takes counts: whole numbers, none of "
            "them negative or infinite. A missing count is NaN.",
        )
    return matrix


def _rows_of(data: Counts) -> np.ndarray:
    """Return the row of each cell that is held."""
    return np.repeat(np.arange(len(data.totals)), np.diff(data.indptr))


def _n_missing(data: Counts) -> np.ndarray:
    """Return how many counts each row lacks."""
    return np.bincount(_rows_of(data), weights=np.isnan(data.values), minlength=len(data.totals)).astype(int)


def _check_gaps(matrix: Any, pseudo: np.ndarray) -> None:
    """Refuse columns without any entry, and rows with too few of them for what is missing to be drawn."""
    missing = np.isnan(matrix.data)
    if not missing.any():
        return
    n, d = matrix.shape
    n_lacking = np.bincount(matrix.indices[missing], minlength=d)
    for empty in np.flatnonzero(n_lacking == n)[:1]:
        raise CellError(None, int(empty), "{place} has no entry at all: leave it out")
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    lost = np.bincount(rows[missing], weights=pseudo[matrix.indices[missing]], minlength=n)
    total = np.bincount(rows, weights=np.nan_to_num(matrix.data), minlength=n)
    observed = pseudo.sum() - lost
    for row in np.flatnonzero((lost > 0) & (total > 0) & (observed < (1.0 - 1e-9) * LEAST_OBSERVED))[:1]:
        raise DataError(
            f"row {row + 1} has counts in columns whose pseudo-counts sum to {observed[row]:g}, and lacks "
            f"others: what is missing can be drawn where that sum is {LEAST_OBSERVED:g} at least. Raise ",
            Argument("pseudo_count"),
            ", let it be learned, or leave out such rows.",
        )


def _usual_total(matrix: Any) -> float:
    """Return the mean total of rows; where counts are missing, the sum of the means of columns."""
    n, d = matrix.shape
    missing = np.isnan(matrix.data)
    if not missing.any():
        return float(matrix.sum()) / max(n, 1)
    sums = np.bincount(matrix.indices, weights=np.nan_to_num(matrix.data), minlength=d)
    return float((sums / (n - np.bincount(matrix.indices[missing], minlength=d))).sum())


def _shares(dense: np.ndarray) -> np.ndarray:
    """Return the probabilities of columns under which rows are most probable, some of which lack columns."""
    counts, missing = np.nan_to_num(dense), np.isnan(dense)
    shares = np.full(dense.shape[1], 1.0 / dense.shape[1])
    if not counts.sum():
        return shares
    for _ in range(SHARE_STEPS if missing.any() else 1):
        total = (counts + _expected(counts, missing, shares)).sum(axis=0)
        shares = total / total.sum()
    return shares


def _expected(counts: np.ndarray, missing: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return how much is expected in missing cells, given what was counted in the others of the row."""
    observed = np.maximum(np.where(missing, 0.0, shares).sum(axis=1, keepdims=True), 1e-12)
    return np.where(missing, counts.sum(axis=1, keepdims=True) * shares / observed, 0.0)


def _filled_in(dense: np.ndarray) -> np.ndarray:
    """Return counts with what is expected, if all rows were one group, where they are missing."""
    missing = np.isnan(dense)
    if not missing.any():
        return dense
    counts = np.nan_to_num(dense)
    return counts + _expected(counts, missing, _shares(dense))
