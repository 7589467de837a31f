"""Groups of categorical answers, some of them missing."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import CellError, DataError, PermixWarning
from permix.families.base import Family, check_number, refuse_odd_cells
from permix.families.categorical_jit import CategoricalStats
from permix.families.column_learning import PseudoCountLearning
from permix.families.profiles import Profile, profile_of

# A column whose answers all differ is suspected to name the rows, from this many rows on.
FEWEST_IDS = 20
# Where chains begin.
DEFAULT_PSEUDO_COUNT = 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Categorical(Family):
    """Groups of categorical vectors: each column has its own answers; missing ones say nothing.

    Parameters
    ----------
    pseudo_count : float, optional
        Dirichlet parameter of every answer of every column. Left out, it is learned: its logarithm has a
        normal prior with median 1 and deviation 1.5.
    levels : sequence of sequences, optional
        The possible answers of each column; default those that occur.

    Notes
    -----
    Columns are independent within a group (a latent class model). Missing entries are NaN, None or an
    empty string, and are taken to be missing at random.

    Examples
    --------
    >>> family = Categorical().resolve([["yes", 1], ["no", None], ["yes", 3]])
    >>> family.levels
    (('no', 'yes'), (1, 3))
    """

    pseudo_count: float | None = None
    levels: Sequence[Sequence[Any]] | None = None

    name: ClassVar[str] = "categorical"
    main_parameter: ClassVar[str] = "probabilities"
    packed: ClassVar[Mapping[str, tuple[str, ...]]] = {"table": ("int32", "observations", "columns")}
    per_column: ClassVar[str] = "levels"
    accepts_missing: ClassVar[bool] = True
    accepts_categories: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pseudo_count is not None:
            check_number(self.pseudo_count, "pseudo_count")
        if self.levels is not None:
            levels = tuple(tuple(_plain(level) for level in column) for column in self.levels)
            object.__setattr__(self, "levels", levels)
            for j, column in enumerate(levels):
                for level in column:
                    if not isinstance(level, str | int | float) or level != level:
                        said = f"{{place}}: answers are text or numbers, not {type(level).__name__}"
                        raise CellError(None, j, said)
                if not column or len(set(column)) != len(column):
                    said = f"levels of column {j + 1} must be at least one and all different: {column!r}"
                    raise DataError(said)

    def resolve(self, X: Any) -> Self:
        """Take the answers that occur in each column."""
        pseudo_count = DEFAULT_PSEUDO_COUNT if self.pseudo_count is None else self.pseudo_count
        if self.levels is not None:
            return dataclasses.replace(self, pseudo_count=pseudo_count)
        levels = []
        for j, column in enumerate(_columns(X)):
            present = list(dict.fromkeys(value for value in column.tolist() if not _is_missing(value)))
            if not present:
                raise CellError(None, j, "{place} has no entry at all: leave it out, or name its levels")
            if len(present) == len(column) >= FEWEST_IDS:
                warnings.warn(
                    f"every row has a different answer in column {j + 1}, such as {present[0]!r}: if it "
                    "names the rows, leave it out",
                    PermixWarning,
                    stacklevel=2,
                )
            try:
                present.sort()
            except TypeError:
                present.sort(key=str)
            levels.append(tuple(_plain(value) for value in present))
        return dataclasses.replace(self, pseudo_count=pseudo_count, levels=tuple(levels))

    @property
    def learnable(self) -> dict[str, Any]:
        """The pseudo-count."""
        return {"pseudo_count": self.pseudo_count}

    def learning(self, resolved: Self, data: Any) -> PseudoCountLearning | None:
        """The pseudo-count, where it was left open."""
        return PseudoCountLearning() if self.learned_names(resolved) else None

    def encode(self, X: Any) -> np.ndarray:
        """Return codes of the answers, -1 where missing."""
        columns, levels = _columns(X), self.levels or ()
        if len(columns) != len(levels):
            raise DataError(
                f"X has {len(columns)} features, but Categorical is expecting {len(levels)} features"
            )
        codes = np.full((len(columns[0]) if columns else 0, len(columns)), -1, dtype=np.int32)
        for j, column in enumerate(columns):
            code_of = {value: code for code, value in enumerate(levels[j])}
            values, inverse = _distinct(column)
            code = np.full(len(values), -1, dtype=np.int32)
            for position, value in enumerate(values):
                if _is_missing(value):
                    continue
                if _plain(value) not in code_of:
                    row = int(np.flatnonzero(inverse == position)[0])
                    known = ", ".join(map(str, levels[j][:8])) + (", ..." if len(levels[j]) > 8 else "")
                    text = f"{value!r} is not a known answer ({known}). Give levels= to allow it."
                    raise CellError(row, j, "{place}: " + text.replace("{", "{{").replace("}", "}}"))
                code[position] = code_of[_plain(value)]
            codes[:, j] = code[inverse]
        return codes

    def statistics(self, capacity: int) -> CategoricalStats:
        assert self.pseudo_count is not None
        n_levels = np.array([len(column) for column in self.levels or ()], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(n_levels)])
        total = int(offsets[-1])
        return CategoricalStats(
            offsets=offsets,
            pseudo_counts=np.full(total, float(self.pseudo_count)),
            pseudo_totals=n_levels * float(self.pseudo_count),
            counts=np.zeros((total, capacity)),
            log_weights=np.zeros((total, capacity)),
            totals=np.zeros((len(n_levels), capacity)),
            log_totals=np.zeros((len(n_levels), capacity)),
        )

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Turn codes back into answers."""
        pairs = zip(self.levels or (), rows.T.astype(np.int64), strict=True)
        decoded = np.stack([np.array(levels, dtype=object)[codes] for levels, codes in pairs], axis=1)
        numeric = all(isinstance(level, int | float) for levels in self.levels or () for level in levels)
        return decoded.astype(np.float64) if numeric else decoded

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Return an indicator for every answer."""
        indicators = [data[:, [j]] == np.arange(len(levels)) for j, levels in enumerate(self.levels or ())]
        return np.concatenate(indicators, axis=1).astype(float), False

    def numbers(self, data: Any) -> np.ndarray:
        """Return an indicator for every answer."""
        columns = [indicators(data[:, [j]], len(levels)) for j, levels in enumerate(self.levels or ())]
        return np.concatenate(columns, axis=1)

    def parameter_names(self, columns: Sequence[str]) -> list[str]:
        """Name the answers, as column=answer."""
        pairs = zip(columns, self.levels or (), strict=True)
        return [f"{column}={level}" for column, levels in pairs for level in levels]

    def profile(self, data: Any, labels: np.ndarray, n_groups: int) -> Profile:
        """Compare shares of answers among those that were given."""
        features = self.numbers(data)
        return profile_of(features, labels, n_groups, np.ones(features.shape[1], dtype=np.bool_))

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse codes that are not codes of this family's answers."""
        n_levels = np.array([len(column) for column in self.levels or ()])
        if not isinstance(data, np.ndarray) or data.dtype != np.int32 or data.shape != (n, len(n_levels)):
            raise DataError(f"data are not a table of {n} × {len(n_levels)} codes")
        if np.any(data < -1) or np.any(data >= n_levels):
            raise DataError("a code is outside the known answers")

    def direction_scales(self, data: Any) -> np.ndarray:
        """Every level is a coordinate of its own."""
        return np.ones(sum(len(levels) for levels in self.levels or ()))

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean probability of every answer (columns side by side, in the order of ``levels``)."""
        weights = (stats.pseudo_counts[:, None] + stats.counts[:, :n_clusters]).T
        totals = (stats.pseudo_totals[:, None] + stats.totals[:, :n_clusters]).T
        return {"probabilities": weights / np.repeat(totals, np.diff(stats.offsets), axis=1)}


def indicators(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Return a column for every level, NaN where the code is missing (negative or NaN)."""
    return np.where(codes >= 0, codes == np.arange(n_levels), np.nan)


def _columns(X: Any) -> list[np.ndarray]:
    """Columns of a frame, array or list of rows."""
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        import narwhals as nw

        return [column.to_numpy() for column in nw.from_native(X, eager_only=True).iter_columns()]
    refuse_odd_cells(X)
    # dtype=object for lists: [["yes", 1]] must not become text.
    array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if array.ndim != 2:
        raise DataError(f"expected a table of rows and columns, got an array of shape {array.shape}")
    return [array[:, j] for j in range(array.shape[1])]


def _distinct(column: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct values and, for each row, which one it is; mixed types allowed."""
    if column.dtype != object:
        values, inverse = np.unique(column, return_inverse=True)
        return values.tolist(), inverse
    seen: dict[Any, int] = {}
    keys = (None if _is_missing(value) else value for value in column.tolist())
    inverse = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
    return list(seen), inverse


def _is_missing(value: Any) -> bool:
    if isinstance(value, float):
        return value != value  # NaN alone differs from itself
    if isinstance(value, str):
        return value == ""
    # pandas has two more ways to say nothing, NA and NaT.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _plain(value: Any) -> Any:
    """Whole floats count as integers, so that a column with a missing entry keeps its integer answers."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
