"""Groups of counts: documents, baskets, profiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import CellError, DataError
from permix.families.base import Family, check_positive, refuse_odd_cells, vector_of
from permix.families.column_learning import PseudoCountLearning
from permix.families.multinomial_jit import Counts, MultinomialStats
from permix.families.profiles import Profile

# A drawn document is put together word by word.
LONGEST_DOCUMENT = 10_000_000
# Where chains begin.
DEFAULT_PSEUDO_COUNT = 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Multinomial(Family):
    """Multinomial groups of counts, dense or sparse, with a Dirichlet prior.

    Parameters
    ----------
    pseudo_count : float or sequence of float, optional
        Dirichlet parameter: one number for all columns, or one per column. Left out, one number is learned:
        its logarithm has a normal prior with median 1 and deviation 1.5.
    document_length : int, optional
        Total of a drawn row; default the mean total of the data.

    Notes
    -----
    Densities are those of count vectors, multinomial coefficient included. Time and memory for data
    follow the non-zero cells. Missing counts are refused: rows that lack different columns have totals of
    different columns, and no prior of the probabilities is conjugate to that. In :class:`Mixed`, whose
    columns are independent within a group, counts may be missing.

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
        length = self.document_length
        if length is None:
            length = round(float(matrix.sum()) / max(matrix.shape[0], 1))
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
        return PseudoCountLearning() if self.learned_names(resolved) else None

    def encode(self, X: Any) -> Counts:
        """Return compressed sparse rows with totals and multinomial coefficients."""
        from scipy.special import gammaln

        matrix = _count_matrix(X)
        totals = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
        values = matrix.data.astype(np.float64)
        # Σ ln x! per row; differences of running sums would lose digits, reduceat chokes on empty rows.
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        log_factorials = np.bincount(rows, weights=gammaln(values + 1.0), minlength=matrix.shape[0])
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

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Counts are whole numbers."""
        return rows.astype(np.int64)

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Return the square roots of shares, whose distances are Hellinger's."""
        dense = self._matrix(data).toarray()
        return np.sqrt(dense / np.maximum(dense.sum(axis=1, keepdims=True), 1.0)), False

    def numbers(self, data: Any) -> np.ndarray:
        """Return shares of the counts; NaN for documents without any."""
        dense = self._matrix(data).toarray()
        total = dense.sum(axis=1, keepdims=True)
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
        if not all(map(np.array_equal, self.encode(self._matrix(data)), data)):
            raise DataError("sparse counts do not add up")

    def profile(self, data: Any, labels: np.ndarray, n_groups: int) -> Profile:
        """Compare each column's share of a group's total with its share of the grand total."""
        from scipy import sparse

        member = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
        counts = (member @ self._matrix(data)).toarray()
        totals = counts.sum(axis=1, keepdims=True)
        overall = counts.sum(axis=0) / max(float(totals.sum()), 1.0)
        typical = np.where(totals > 0, counts / np.maximum(totals, 1.0), np.nan)
        entries = np.broadcast_to(totals.astype(np.int64), counts.shape)
        is_share = np.ones(len(overall), dtype=np.bool_)
        return Profile(typical, overall, np.sqrt(overall * (1.0 - overall)), entries, is_share)

    def direction_scales(self, data: Any) -> np.ndarray:
        """Measure word frequencies by their standard deviations, as the chi-square distance does."""
        totals = np.bincount(data.indices, weights=data.values, minlength=self.n_features)
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
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0) & (values == np.floor(values))))
    if bad.size:
        raise CellError(
            int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1,
            int(matrix.indices[bad[0]]),
            f"{{place}} is {values[bad[0]]:g}; the multinomial family takes counts: whole numbers, none of "
            "them negative, NaN or infinite. In the family mixed, counts may be missing.",
        )
    return matrix
