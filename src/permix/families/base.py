"""What a family is to the rest of permix: hyper-parameters, a way to encode data, empty statistics.

A family object is a frozen dataclass of hyper-parameters. ``resolve`` fills in what depends on the
data (dimensions, defaults scaled to the data); the compiled side is in the ``*_jit.py`` files.
"""

from __future__ import annotations

import abc
import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from permix.errors import Argument, CellError, DataError
from permix.families.profiles import Profile, profile_of

#: Numbers beyond this, in absolute value, overflow once they are squared and added up.
LARGEST = 1e100
DATES = "turn dates into numbers, such as days since the first, or leave them out."


@dataclasses.dataclass(frozen=True)
class Family(abc.ABC):
    """Base of all families."""

    #: What users and files call it; the key in :data:`permix.registries.FAMILIES`.
    name: ClassVar[str]
    #: Which of :meth:`parameters` tables of groups show: one number for each of :meth:`parameter_names`.
    main_parameter: ClassVar[str]
    #: The arrays that :meth:`pack` gives: for each its type and the names of its dimensions, in the words of
    #: :mod:`permix.estimators.fields`.
    packed: ClassVar[Mapping[str, tuple[str, ...]]] = {"table": ("real", "observations", "columns")}
    #: The hyper-parameter that has one entry for each column of the data, after ``resolve``.
    per_column: ClassVar[str]
    accepts_sparse: ClassVar[bool] = False
    #: Whether the marginal likelihood of a cluster costs less than scoring its members.
    quick_marginal: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = False
    accepts_categories: ClassVar[bool] = False

    @abc.abstractmethod
    def resolve(self, X: Any) -> Self:
        """Return a copy whose hyper-parameters are all set for data like ``X``."""

    @property
    def learnable(self) -> dict[str, Any]:
        """Hyper-parameters that a chain may learn, as numbers and vectors (after ``resolve``)."""
        return {}

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy of a resolved family with other values of what a chain may learn."""
        return dataclasses.replace(self, **values)

    def learned_names(self, resolved: Self) -> tuple[str, ...]:
        """Which hyper-parameters chains learn: those left open here, of those that ``resolved`` has."""
        return tuple(name for name in resolved.learnable if getattr(self, name) is None)

    def learning(self, resolved: Self, data: Any) -> Any:
        """Return what chains learn of the hyper-parameters left open (:mod:`permix.families.learning`).

        ``resolved`` is this family with all of them set, and ``data`` are what it encoded.
        """
        return None

    @abc.abstractmethod
    def encode(self, X: Any) -> Any:
        """Check ``X`` and turn it into what the compiled code reads."""

    @abc.abstractmethod
    def statistics(self, capacity: int) -> NamedTuple:
        """Return statistics with room for ``capacity`` groups; the caller clears them."""

    def completed(self, data: Any) -> Any:
        """Return encoded data with gaps filled in, by anything, where chains draw them; else the same."""
        return data

    def filled_cells(self, data: Any) -> np.ndarray | None:
        """Say which cells of encoded data chains draw, those that ``completed`` fills in; None for none."""
        completed = self.completed(data)
        return None if completed is data else np.isnan(data) & ~np.isnan(completed)

    def rows_filled(self, missing: np.ndarray, data: Any) -> np.ndarray:
        """Say which rows have cells among those that chains draw."""
        return np.asarray(missing.any(axis=1))

    def cells_at(self, filled: Any, missing: np.ndarray) -> np.ndarray:
        """Return what filled data have in the cells that chains draw."""
        return np.asarray(filled[missing])

    def put_cells(self, filled: Any, missing: np.ndarray, cells: np.ndarray) -> None:
        """Write to the cells that chains draw."""
        filled[missing] = cells

    def typical_cells(self, cells: np.ndarray) -> np.ndarray:
        """Return, of all draws (chains, draws, cells), one value for each cell."""
        return np.asarray(cells.mean(axis=(0, 1)))

    def lacking(self, data: Any, like: Any) -> Any:
        """Return encoded data that lack the cells that others lack, where that changes what numbers say."""
        return data

    def scoring(self, stats: Any, data: Any, filled: Any) -> Any:
        """Return statistics of ``filled`` data as ones that score ``data`` by what was observed of them."""
        return stats

    def decode(self, rows: np.ndarray) -> Any:
        """Turn drawn rows back into the user's terms, where they are not in these already."""
        return rows

    def serving(self, data: Any) -> Self:
        """Return what scores new data, which may lack cells where those that were fitted do not."""
        return self

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Return encoded data as points to draw, and whether these are the user's columns as they are.

        Families of data that are no points say which vectors stand for them.
        """
        return data, True

    def numbers(self, data: Any) -> np.ndarray:
        """Return encoded data as numbers in the user's units; NaN where missing.

        There is a column for each of :meth:`parameter_names`.
        """
        return np.asarray(data)

    def parameter_names(self, columns: Sequence[str]) -> list[str]:
        """Name the entries of a row of the main parameter, by default one for each column of the data."""
        return list(columns)

    @abc.abstractmethod
    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior means of the groups' parameters, one row a group."""

    def doubts(self, data: Any) -> list[tuple[int, str]]:
        """Columns of the encoded data that the hyper-parameters do not seem to be meant for, and why."""
        return []

    def profile(self, data: Any, labels: np.ndarray, n_groups: int) -> Profile:
        """Say how groups of encoded data differ from all of them, for each of :meth:`parameter_names`."""
        features = self.numbers(data)
        return profile_of(features, labels, n_groups, np.zeros(features.shape[1], dtype=np.bool_))

    def direction_scales(self, data: Any) -> np.ndarray:
        """Scales of the coordinates of random directions on which data are projected.

        As many as the compiled ``project`` reads; columns in other units than the rest must not decide alone.
        """
        return np.ones(self.n_features)

    def pack(self, data: Any) -> dict[str, np.ndarray]:
        """Return encoded data as named arrays, for files and fingerprints."""
        return {"table": data}

    def unpack(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """Turn what :meth:`pack` gave back into encoded data."""
        return arrays["table"]

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse encoded data, read from a file, that compiled code could not take."""
        check_table(data, n, self.n_features)
        finite_matrix(data, self.name)

    @property
    def n_features(self) -> int:
        """Number of columns of the data (after ``resolve``)."""
        return len(getattr(self, self.per_column))

    def __post_init__(self) -> None:
        """Turn NumPy's numbers into Python's, so that every family can be written to a file."""
        for name, value in vars(self).items():
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())

    def resolve_saved(self) -> Self:
        """Return a copy of a resolved family that was saved and read back, with arrays for lists."""
        lists = {name: value for name, value in vars(self).items() if isinstance(value, list)}
        return dataclasses.replace(self, **{name: np.asarray(v, np.float64) for name, v in lists.items()})

    @property
    def left_open(self) -> list[str]:
        """Names of the hyper-parameters that ``resolve`` takes from the data."""
        return [name for name, value in vars(self).items() if value is None]

    def readings(self, data: Any) -> list[tuple[str, int]]:
        """Say, where columns are of different kinds, what each is read as and how many cells it lacks."""
        return []

    def describe(self) -> dict[str, Any]:
        """Return name and hyper-parameters as plain JSON values."""
        plain = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in vars(self).items()}
        return {"name": self.name, **plain}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self.describe()))


def check_table(data: Any, n: int, d: int) -> None:
    """Refuse encoded data that are no table of n rows and d columns of numbers; NaN is a missing cell."""
    if not isinstance(data, np.ndarray) or data.dtype != np.float64 or data.shape != (n, d):
        raise DataError(f"data are not a table of {n} × {d} numbers")
    if np.isinf(data).any():
        raise DataError("a cell is infinite")


def refuse_odd_cells(X: Any) -> None:
    """Refuse arrays with masked cells, and with dates, which NumPy would take for numbers."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        raise CellError(
            *_first(np.ma.getmaskarray(X)),
            "{place} is masked, and a mask is not read: leave out or fill in such rows (X.filled(...)); for "
            "family='categorical', None in an array of objects is a missing answer.",
        )
    if not isinstance(X, np.ndarray | list | tuple):
        return
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths, refused elsewhere
        return
    if array.dtype.kind in "mM":
        dates = np.ones(array.shape, dtype=np.bool_)
    elif array.dtype.kind == "O":
        kinds = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
        dates = np.reshape([isinstance(entry, kinds) for entry in array.ravel()], array.shape)
    else:
        return
    if dates.any():
        entry = str(array[dates][0]).replace("{", "").replace("}", "")
        raise CellError(*_first(dates), f"{{place}} is a date or time ({entry}); {DATES}")


def _first(mask: np.ndarray) -> tuple[int, int]:
    """Row and column of the first true entry."""
    place = np.argwhere(mask)[0].tolist()
    return int(place[0]), int(place[1]) if len(place) > 1 else 0


def finite_matrix(X: Any, family: str, *, gaps: bool = False) -> np.ndarray:
    """Return ``X`` as a C-ordered float array; the error names the first bad cell and how many there are.

    With ``gaps``, NaN is a missing cell and no mistake.
    """
    refuse_odd_cells(X)
    # Compiled code is specialised for writable arrays: a read-only one would be compiled for once more.
    array = np.require(X, dtype=np.float64, requirements=["C", "W"])
    if array.ndim != 2:
        raise DataError(f"expected a table of rows and columns, got an array of shape {array.shape}")
    bad = np.isinf(array) if gaps else ~np.isfinite(array)
    if bad.any():
        value = "NaN" if np.isnan(array[bad][0]) else "infinity"
        n_others, columns = int(bad.sum()) - 1, np.flatnonzero(bad.any(axis=0)).tolist()
        others = f" (and {n_others} more, in column{'s' if len(columns) > 1 else ''} {{columns}})"
        way_out = (
            f"The {family} family needs a number in every cell: leave out or fill in these rows, or use the "
            "family mixed, in which missing cells say nothing."
        )
        if gaps:
            way_out = "Mend the cell, or make it NaN: a missing cell says nothing."
        said = f"Input contains {value}: {{place}}{others if n_others else ''}. {way_out}"
        raise CellError(*_first(bad), said, columns=columns)
    return array


def fitting_matrix(X: Any, family: str, *, gaps: bool = False) -> np.ndarray:
    """Return ``X`` as :func:`finite_matrix` does; numbers too large to be squared and added up are refused.

    That is for data to fit to: a new row may be so far away that its probability is zero.
    """
    array = finite_matrix(X, family, gaps=gaps)
    for empty in np.flatnonzero(np.isnan(array).all(axis=0))[: len(array)]:
        raise CellError(None, int(empty), "{place} has no entry at all: leave it out")
    large = np.abs(array) > LARGEST
    if large.any():
        raise CellError(
            *_first(large),
            f"{{place}} is {array[large][0]:g}, and numbers beyond {LARGEST:g} cannot be squared and "
            "added up: measure the column in other units.",
        )
    return array


def vector_of(value: float | Sequence[float] | np.ndarray, size: int, name: str) -> np.ndarray:
    """Broadcast a hyper-parameter to one number per column."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != size):
        raise DataError(
            f"{name} must be one number or one for each of the {size} columns, got shape {array.shape}"
        )
    # Compiled code is specialised for writable arrays: a read-only one would be compiled for once more.
    return np.broadcast_to(array, (size,)).copy()


def check_number(value: Any, name: str) -> None:
    """Refuse what is not one positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{name} must be one number, got {value!r}")
    check_positive(value, name)


def check_positive(value: Any, name: str) -> None:
    """Refuse hyper-parameters that are not positive and finite."""
    array = np.asarray(value, dtype=np.float64)
    if not (np.all(np.isfinite(array)) and np.all(array > 0)):
        raise DataError(Argument(name), f" must be positive and finite, got {value!r}")
