"""Groups of rows whose columns are of different kinds, some of their cells missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from permix.errors import CellError, DataError
from permix.families.base import LARGEST, Family, check_number, check_positive, check_table, vector_of
from permix.families.categorical import indicators
from permix.families.column_learning import LEAST_SHAPE, MOST_SHAPE, ColumnOfCounts, column_of_counts
from permix.families.mixed_jit import CATEGORY, COUNT, NUMBER, MixedStats
from permix.families.mixed_learning import OF_NUMBERS, MixedLearning
from permix.families.niw import varying_variances
from permix.families.profiles import Profile, profile_of
from permix.families.scale_learning import DiagonalLearning, shares_of
from permix.families.table_columns import (
    KINDS,
    Column,
    codes_of,
    columns_of,
    counts_of,
    kind_of,
    levels_of,
    numbers_of,
)

# Where chains begin: the share of the variance of each column of numbers that a group is expected to have,
# how many entries the prior mean and the expected variance are worth, and the pseudo-count of categories.
DEFAULT_WITHIN_SHARE = 0.3
DEFAULT_STRENGTH = 0.01
LEAST_FREEDOM = 2.0
DEFAULT_FREEDOM = LEAST_FREEDOM + 4.0
DEFAULT_PSEUDO_COUNT = 1.0
# So many categories are named where columns are described.
SHOWN_LEVELS = 6
CODES = {"number": NUMBER, "count": COUNT, "category": CATEGORY, "ordered": CATEGORY}


@dataclasses.dataclass(frozen=True, eq=False)
class Mixed(Family):
    """Groups of rows of numbers, counts and categories side by side; missing cells say nothing.

    Parameters
    ----------
    kinds : mapping or sequence, optional
        What the columns are, each one of ``"number"``, ``"count"``, ``"category"`` and ``"ordered"``: by name
        (others as by default), or one for each column. By default what the columns look like; see Notes.
    pseudo_count : float, optional
        Dirichlet parameter of every category. Left out, it is learned.
    prior_strength : float, optional
        How many entries the prior mean of a column of numbers is worth. Left out, it is learned.
    degrees_of_freedom : float, optional
        How many entries the expected variance of a group in a column of numbers is worth, more than 2. The
        more, the more alike are the variances of all groups. Left out, it is learned.
    within_share : float or sequence of float, optional
        Which share of the variance of each column of numbers a group is expected to have: one number, or one
        for each column (those of other columns are not read). Left out, shares are learned.
    shape : sequence of float, optional
        Shape of the negative binomial distribution, for each column of counts (those of other columns are
        not read). Left out, shapes are learned.
    prior_mean, scale, levels : optional
        For each column, taken from the data unless given: its mean (of numbers and counts), its standard
        deviation (of numbers) and the categories.

    Notes
    -----
    Columns are independent within a group, so that a missing cell (NaN, None, an empty string) contributes
    nothing, exactly, if cells are missing at random. Numbers are normal with unknown mean and variance
    (normal-inverse-gamma), categories have a Dirichlet prior. Counts are negative binomial, with a beta prior
    under which the mean of a group is about exponential.

    What is left out is learned in the chains under weak priors: of numbers those of
    :class:`GaussianDiagonal`; the logarithm of the pseudo-count is normal with median 1 and deviation 1.5,
    and that of a shape about what the variance of the whole column says, with the same deviation.

    Text, truth values, intervals and columns with at most 10 different numbers are categories; those of
    ordered types as well, and their order is not used. Whole numbers, the smallest of which is zero, are
    counts; all others are numbers. Columns of dates, and text in which nearly every row differs, are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31.5, None, 62.0], "smokes": [True, False, None]})
    >>> Mixed().resolve(frame).kinds
    ('number', 'category')
    """

    kinds: Mapping[Any, str] | Sequence[str] | None = None
    pseudo_count: float | None = None
    prior_strength: float | None = None
    degrees_of_freedom: float | None = None
    within_share: float | Sequence[float] | np.ndarray | None = None
    prior_mean: Sequence[float] | np.ndarray | None = None
    scale: Sequence[float] | np.ndarray | None = None
    shape: Sequence[float] | np.ndarray | None = None
    levels: Sequence[Sequence[Any]] | None = None

    name: ClassVar[str] = "mixed"
    main_parameter: ClassVar[str] = "means"
    per_column: ClassVar[str] = "kinds"
    accepts_missing: ClassVar[bool] = True
    accepts_categories: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pseudo_count", "prior_strength", "degrees_of_freedom"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name)
        if self.within_share is not None:
            check_positive(self.within_share, "within_share")
        if self.kinds is not None:
            named = isinstance(self.kinds, Mapping)
            if isinstance(self.kinds, str) or not (named or isinstance(self.kinds, list | tuple)):
                raise DataError(
                    f"kinds must be a mapping from columns to kinds, or a list, got {self.kinds!r}"
                )
            said = self.kinds.items() if isinstance(self.kinds, Mapping) else enumerate(self.kinds, start=1)
            for column, kind in said:
                if kind not in KINDS:
                    what = f"the kind of column {column!r} must be one of {', '.join(KINDS)}, not {kind!r}"
                    raise DataError(what)
            if not named:
                object.__setattr__(self, "kinds", tuple(self.kinds))
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(map(tuple, self.levels)))

    def resolve(self, X: Any) -> Self:
        """Take what was left open from the columns of the data."""
        columns = columns_of(X)
        if not columns or not len(columns[0].cells):
            raise DataError("there are no rows and columns to group")
        kinds = self._kinds_of(columns)
        d = len(kinds)
        means, scales, shapes = np.zeros(d), np.ones(d), np.ones(d)
        levels: list[tuple[Any, ...]] = [()] * d
        for j, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
            if CODES[kind] == CATEGORY:
                if self.levels is None:
                    levels[j] = levels_of(j, column)
                continue
            read = numbers_of if kind == "number" else counts_of
            present = (cells := read(j, column))[~np.isnan(cells)]
            if np.any(np.abs(present) > LARGEST):
                row = int(np.argmax(np.abs(cells) > LARGEST))
                said = f"{{place}} is {cells[row]:g}, and numbers beyond {LARGEST:g} cannot be squared and "
                raise CellError(row, j, said + "added up: measure the column in other units.")
            if present.size:
                means[j] = present.mean()
            if kind == "number" and present.size and np.ptp(present) > 0:
                scales[j] = _scale_of(j, present)
            if kind == "count":
                means[j] = means[j] if means[j] > 0 else 1.0
                surplus = float(present.var()) - means[j] if present.size else 0.0
                shape = means[j] ** 2 / surplus if surplus > 0 else MOST_SHAPE
                shapes[j] = min(max(shape, LEAST_SHAPE), MOST_SHAPE)
        share = DEFAULT_WITHIN_SHARE if self.within_share is None else self.within_share
        freedom = self.degrees_of_freedom
        if freedom is None:
            freedom = self._default_freedom(kinds)
        found = dataclasses.replace(
            self,
            kinds=kinds,
            pseudo_count=DEFAULT_PSEUDO_COUNT if self.pseudo_count is None else self.pseudo_count,
            prior_strength=DEFAULT_STRENGTH if self.prior_strength is None else self.prior_strength,
            degrees_of_freedom=freedom,
            within_share=vector_of(share, d, "within_share"),
            prior_mean=means if self.prior_mean is None else vector_of(self.prior_mean, d, "prior_mean"),
            scale=scales if self.scale is None else vector_of(self.scale, d, "scale"),
            shape=shapes if self.shape is None else vector_of(self.shape, d, "shape"),
            levels=tuple(levels) if self.levels is None else self.levels,
        )
        found._check_resolved()
        return found

    def _kinds_of(self, columns: Sequence[Column]) -> tuple[str, ...]:
        if self.kinds is None or isinstance(self.kinds, Mapping):
            said = dict(self.kinds or {})
            known = {column.name for column in columns}
            for name in said:
                if name not in known:
                    raise DataError(f"kinds: there is no column {name!r}")
            pairs = enumerate(columns)
            return tuple(said.get(column.name) or kind_of(j, column) for j, column in pairs)
        if len(self.kinds) != len(columns):
            raise DataError(f"kinds has {len(self.kinds)} entries, and there are {len(columns)} columns")
        return tuple(self.kinds)

    def _default_freedom(self, kinds: Sequence[str]) -> float:
        return DEFAULT_FREEDOM

    def _least_freedom(self) -> float:
        return LEAST_FREEDOM

    @property
    def _units(self) -> np.ndarray:
        """What numbers of each column are divided by where they are encoded."""
        return np.asarray(self.scale)

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """Where encoded rows, and statistics, have each column."""
        return np.arange(len(self.kinds or ()))

    def _check_resolved(self) -> None:
        """Refuse hyper-parameters that do not go together; they may come from a file."""
        kinds, levels = tuple(self.kinds or ()), self.levels or ()
        assert self.degrees_of_freedom is not None
        if self.degrees_of_freedom <= (least := self._least_freedom()):
            said = f"degrees_of_freedom must be above {least:g}, got {self.degrees_of_freedom:g}"
            raise DataError(said)
        if len(levels) != len(kinds):
            raise DataError(f"levels has {len(levels)} entries, and there are {len(kinds)} columns")
        for j, (kind, column) in enumerate(zip(kinds, levels, strict=True)):
            if bool(column) != (CODES[kind] == CATEGORY) or len(set(column)) != len(column):
                said = "{place}: a column of categories needs levels, all different, and no other has any"
                raise CellError(None, j, said)
            if any(isinstance(v, bool) or not isinstance(v, str | int | float) or v != v for v in column):
                raise CellError(None, j, "{place}: categories are text or numbers")
        for name in ("prior_mean", "scale", "shape", "within_share"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.shape != (len(kinds),) or not np.all(np.isfinite(values)):
                raise DataError(f"{name} must be a finite number for each of the {len(kinds)} columns")
            if name != "prior_mean" and np.any(values <= 0):
                raise DataError(f"{name} must be positive")
        counts = np.array([kind == "count" for kind in kinds])
        if np.any(np.asarray(self.prior_mean)[counts] <= 0):
            raise DataError("prior_mean of counts must be positive")

    @property
    def learnable(self) -> dict[str, Any]:
        """Hyper-parameters of the kinds of columns that there are."""
        kinds = set(self.kinds or ())
        found: dict[str, Any] = {}
        if "number" in kinds:
            found |= {name: getattr(self, name) for name in OF_NUMBERS}
        if "count" in kinds:
            found["shape"] = self.shape
        if kinds & {"category", "ordered"}:
            found["pseudo_count"] = self.pseudo_count
        return found

    def learning(self, resolved: Self, data: Any) -> MixedLearning | None:
        """What was left open; encoded numbers have variance 1."""
        names = self.learned_names(resolved)
        if not names:
            return None
        kinds, at = np.array(resolved.kinds), resolved.places
        places = np.flatnonzero(kinds == "number")
        shares = shares_of(data[:, places], varying_variances(data[:, places]))
        of_numbers = [name for name in names if name in OF_NUMBERS]
        called = tuple("scale" if name == "within_share" else name for name in of_numbers)
        numbers = DiagonalLearning(called, shares, LEAST_FREEDOM, DEFAULT_FREEDOM - LEAST_FREEDOM)
        return MixedLearning(names, numbers, places, resolved.columns_of_counts(data), at)

    def columns_of_counts(self, data: Any) -> dict[int, ColumnOfCounts]:
        """Return what chains learn shapes from, for each column of counts of a resolved family."""
        shapes, found = np.asarray(self.shape, dtype=np.float64), {}
        for j, (kind, at) in enumerate(zip(self.kinds or (), self.places, strict=True)):
            if kind == "count":
                cells = data[:, at]
                found[j] = column_of_counts(cells[~np.isnan(cells)], float(shapes[j]))
        return found

    def encode(self, X: Any) -> np.ndarray:
        """Return one table of numbers: numbers in standard deviations from the mean, codes of categories."""
        columns, kinds, levels = columns_of(X), tuple(self.kinds or ()), self.levels or ()
        if len(columns) != len(kinds):
            raise DataError(f"X has {len(columns)} features, but Mixed is expecting {len(kinds)} features")
        table = np.empty((len(columns[0].cells) if columns else 0, len(kinds)))
        for j, (column, kind, at) in enumerate(zip(columns, kinds, self.places, strict=True)):
            if CODES[kind] == CATEGORY:
                table[:, at] = codes_of(j, column, levels[j])
            elif kind == "count":
                table[:, at] = counts_of(j, column)
            else:
                numbers = numbers_of(j, column)
                table[:, at] = (numbers - np.asarray(self.prior_mean)[j]) / self._units[j]
        return table

    def statistics(self, capacity: int) -> MixedStats:
        kinds, levels = tuple(self.kinds or ()), self.levels or ()
        assert self.degrees_of_freedom is not None
        assert self.pseudo_count is not None
        n_levels = np.array([len(column) for column in levels], dtype=np.int64)
        half_freedom = 0.5 * self.degrees_of_freedom
        per_column = [np.asarray(v) for v in (self.prior_mean, self._units, self.shape, self.within_share)]
        priors = np.zeros((len(kinds), 6))
        for j, kind in enumerate(kinds):
            mean, scale, shape, share = (float(values[j]) for values in per_column)
            if kind == "number":
                rate = (half_freedom - 1.0) * share
                priors[j] = (self.prior_strength, 0.0, half_freedom, rate, scale, mean)
            elif kind == "count":
                # The mean of a group, r(1-p)/p, is then r times a beta prime variable of mean ``mean``/r.
                priors[j] = (1.0 + shape / mean, 1.0, shape, 0.0, 1.0, mean)
            else:
                priors[j] = (self.pseudo_count, self.pseudo_count * n_levels[j], 0.0, 0.0, 1.0, 0.0)
        order = np.argsort(self.places)
        codes = np.array([CODES[kind] for kind in kinds])
        return empty_mixed(codes[order], n_levels[order], priors[order], capacity)

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Turn codes back into categories; the table is one of numbers where all columns are."""
        levels = self.levels or ()
        numeric = all(isinstance(level, int | float) for column in levels for level in column)
        rows = rows[:, self.places]
        decoded = rows.astype(np.float64 if numeric else object)
        for j, column in enumerate(levels):
            if column:
                choices = np.array(column, dtype=np.float64 if numeric else object)
                decoded[:, j] = choices[rows[:, j].astype(np.int64)]
        return decoded

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Return standardized numbers and counts, and an indicator for every category.

        What is missing is at the mean.
        """
        features = self.numbers(data)
        whole = self.profile(data, np.zeros(len(features), dtype=np.int64), 1)
        spread = np.where(whole.is_share | (whole.spread == 0), 1.0, whole.spread)
        return np.nan_to_num((features - whole.overall) / spread), False

    def numbers(self, data: Any) -> np.ndarray:
        """Return numbers and counts in the user's units, and an indicator for every category."""
        parts = []
        data = data[:, self.places]
        for j, (kind, levels) in enumerate(zip(self.kinds or (), self.levels or (), strict=True)):
            if kind == "number":
                parts.append(data[:, [j]] * self._units[j] + np.asarray(self.prior_mean)[j])
            else:
                parts.append(indicators(data[:, [j]], len(levels)) if levels else data[:, [j]])
        return np.concatenate(parts, axis=1)

    def profile(self, data: Any, labels: np.ndarray, n_groups: int) -> Profile:
        """Compare means of numbers and counts and shares of categories, among cells that are not missing."""
        of_level = [[bool(levels)] * max(len(levels), 1) for levels in self.levels or ()]
        return profile_of(self.numbers(data), labels, n_groups, np.concatenate(of_level))

    def parameter_names(self, columns: Sequence[str]) -> list[str]:
        """Name numbers and counts by their columns, categories as column=category."""
        pairs = zip(columns, self.levels or (), strict=True)
        return [
            name
            for column, levels in pairs
            for name in ([f"{column}={level}" for level in levels] if levels else [column])
        ]

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior means of the mean of every number and count and of the probability of every category."""
        rows, pseudo = [], float(self.pseudo_count or 0.0)
        for j, kind in zip(self.places, self.kinds or (), strict=True):
            prior, entries = stats.priors[j], stats.entries[j, :n_clusters]
            if CODES[kind] == CATEGORY:
                counts = stats.counts[stats.offsets[j] : stats.offsets[j + 1], :n_clusters]
                rows.extend((pseudo + counts) / (pseudo * len(counts) + entries))
            elif kind == "count":
                # E r(1-p)/p under beta(a, b) is r b/(a - 1).
                alpha, beta, size = prior[:3]
                rows.append(size * (beta + stats.means[j, :n_clusters]) / (alpha + size * entries - 1.0))
            else:
                rows.append(stats.means[j, :n_clusters] * prior[4] + prior[5])
        return {"means": np.array(rows).reshape(-1, n_clusters).T.copy()}

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse a table whose codes are not codes of this family's categories, or whose counts are none."""
        check_table(data, n, self.n_features)
        for j, (kind, at) in enumerate(zip(self.kinds or (), self.places, strict=True)):
            present = data[~np.isnan(data[:, at]), at]
            if kind != "number" and np.any((present < 0) | (present != np.floor(present))):
                raise DataError("a count or a code is no whole number")
            if CODES[kind] == CATEGORY and np.any(present >= len((self.levels or ())[j])):
                raise DataError("a code is outside the known categories")

    def direction_scales(self, data: Any) -> np.ndarray:
        """Measure numbers and counts by their standard deviations."""
        scales = []
        for j in np.argsort(self.places):
            kind, n_levels, spread = (self.kinds or ())[j], len((self.levels or ())[j]), 1.0
            if kind == "number":
                spread = float(np.asarray(self.scale)[j] / self._units[j])
            elif kind == "count":
                mean = float(np.asarray(self.prior_mean)[j])
                spread = float(np.sqrt(mean + mean**2 / np.asarray(self.shape)[j]))
            scales.extend([1.0 / spread] * (1 + n_levels))
        return np.array(scales)

    @property
    def left_open(self) -> list[str]:
        """Kinds by name are completed by the data."""
        return [*super().left_open, *(["kinds"] if isinstance(self.kinds, Mapping) else [])]

    def readings(self, data: Any) -> list[tuple[str, int]]:
        """Say what each column is read as, and how many of its cells are missing."""
        missing = np.isnan(data).sum(axis=0)[self.places].tolist()
        triples = zip(self.kinds or (), self.levels or (), missing, strict=True)
        return [(_reading(kind, levels), gaps) for kind, levels, gaps in triples]

    def describe(self) -> dict[str, Any]:
        plain = super().describe()
        if isinstance(self.kinds, Mapping):
            plain["kinds"] = {str(name): kind for name, kind in self.kinds.items()}
        return plain


def empty_mixed(kinds: np.ndarray, n_levels: np.ndarray, priors: np.ndarray, capacity: int) -> MixedStats:
    """Return statistics of mixed columns with room for ``capacity`` groups; the caller clears them."""
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    d, total = len(kinds), int(offsets[-1])
    each, levels = (
        (np.zeros((d, capacity)) for _ in range(5)),
        (np.zeros((total, capacity)) for _ in range(2)),
    )
    return MixedStats(0, kinds.astype(np.int64), offsets, priors, *each, *levels)


def _reading(kind: str, levels: Sequence[Any]) -> str:
    """Say in words what a column is read as."""
    some = ", ".join(map(str, levels[:SHOWN_LEVELS])) + (", ..." if len(levels) > SHOWN_LEVELS else "")
    if kind == "ordered":
        return f"{len(levels)} ordered categories, whose order is not used: {some}"
    return f"{len(levels)} categories: {some}" if kind == "category" else f"{kind}s"


def _scale_of(place: int, present: np.ndarray) -> float:
    scale = float(present.std())
    if scale < 1.0 / LARGEST:
        said = "{place}: its values differ too little to be squared; measure it in other units."
        raise CellError(None, place, said)
    return scale
