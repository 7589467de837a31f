"""Base co-clusterings as people have them, brought into one form.

A base says for every cell of an R × C matrix which block it is in: by clusters of rows and of columns, by a
table of block ids made elsewhere, or as a fitted model. Kept of it are its row classes (rows that are alike
in every column), its column classes, and the block of each pair of classes; for a grid the classes are its
row clusters and column clusters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from permix.cocluster.cells.base_lines_jit import BaseLines, LabelLines, base_lines, label_lines
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.errors import DataError
from permix.partitions.labels import canonical_labels

Array = npt.NDArray[Any]
Names = Sequence[str] | None


@dataclasses.dataclass(frozen=True)
class Bases:
    """Co-clusterings of one matrix.

    Attributes
    ----------
    row_classes, column_classes : tuple of int32 arrays
        Class of each row, and of each column, in every base.
    tables : tuple of int32 arrays of shape (row classes, column classes)
        Block of each pair of classes, numbered from 0 without gaps in every base.
    """

    row_classes: tuple[Array, ...]
    column_classes: tuple[Array, ...]
    tables: tuple[Array, ...]

    @property
    def n_bases(self) -> int:
        """How many there are."""
        return len(self.tables)

    @property
    def n_rows(self) -> int:
        """Rows of the matrix."""
        return len(self.row_classes[0])

    @property
    def n_columns(self) -> int:
        """Columns of the matrix."""
        return len(self.column_classes[0])

    @property
    def n_blocks(self) -> Array:
        """Blocks of each base."""
        return np.array([int(table.max()) + 1 for table in self.tables], dtype=np.int64)

    def row_table(self) -> Array:
        """Return the class of each row (axis 0) in each base (axis 1)."""
        return np.stack(self.row_classes, axis=1)

    def column_table(self) -> Array:
        """Return the class of each column (axis 0) in each base (axis 1)."""
        return np.stack(self.column_classes, axis=1)

    def pack(self) -> dict[str, Array]:
        """Return named arrays, for files and fingerprints."""
        shapes = np.array([table.shape for table in self.tables], dtype=np.int64)
        return {
            "base_rows": self.row_table(),
            "base_columns": self.column_table(),
            "base_shapes": shapes,
            "base_blocks": np.concatenate([table.ravel() for table in self.tables]),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array]) -> Self:
        """Take back what :meth:`pack` gave; refuses arrays that do not fit together."""
        rows, columns = (np.asarray(arrays[name]) for name in ("base_rows", "base_columns"))
        shapes, blocks = (np.asarray(arrays[name]) for name in ("base_shapes", "base_blocks"))
        refusal = DataError("the saved base co-clusterings do not fit together")
        if any(array.dtype.kind != "i" for array in (rows, columns, shapes, blocks)):
            raise refusal
        if (rows.ndim, columns.ndim, shapes.ndim, blocks.ndim) != (2, 2, 2, 1):
            raise refusal
        if shapes.shape != (rows.shape[1], 2) or rows.shape[1] != columns.shape[1] or not (shapes > 0).all():
            raise refusal
        sizes = shapes.prod(axis=1)
        if int(sizes.sum()) != len(blocks):
            raise refusal
        ends = np.cumsum(sizes)
        made = []
        for m, (n_rows, n_columns) in enumerate(shapes.tolist()):
            table = blocks[ends[m] - sizes[m] : ends[m]].reshape(n_rows, n_columns)
            numbered = ((rows[:, m], n_rows), (columns[:, m], n_columns), (table, int(table.max()) + 1))
            if not all(np.array_equal(np.unique(labels), np.arange(n)) for labels, n in numbered):
                raise refusal
            made.append((rows[:, m], columns[:, m], table))
        return cls._of(made)

    @classmethod
    def _of(cls, parts: Sequence[tuple[Array, Array, Array]]) -> Self:
        kept = [[np.ascontiguousarray(array, dtype=np.int32) for array in part] for part in parts]
        rows, columns, tables = (tuple(arrays) for arrays in zip(*kept, strict=True))
        return cls(rows, columns, tables)


def as_bases(
    given: Iterable[Any], shape: tuple[int, int] | None = None, names: tuple[Names, Names] = (None, None)
) -> Bases:
    """Bring base co-clusterings into one form.

    Parameters
    ----------
    given : sequence
        At least two, each of them a tuple ``(row_labels, column_labels)``; a table of block ids, one for each
        cell of the matrix; or a fitted co-clustering. Labels and ids are whole numbers from 0, or text.
    shape : (int, int), optional
        Rows and columns of the matrix; default those of the first base.
    names : (sequence of str, sequence of str), optional
        Of rows and of columns, for messages.

    Examples
    --------
    >>> bases = as_bases([([0, 0, 1], [0, 1]), [[0, 1], [0, 1], [2, 2]]])
    >>> bases.row_table().tolist(), bases.tables[1].tolist()
    ([[0, 0], [0, 0], [1, 1]], [[0, 1], [2, 2]])
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise DataError(f"bases must be a list of co-clusterings, got {type(given).__name__}")
    listed = list(given)
    if len(listed) < 2:
        raise DataError(
            f"an ensemble needs at least two base co-clusterings, got {len(listed)}: give a list, with one "
            "(row_labels, column_labels) or one table of block ids for each"
        )
    made: list[tuple[Array, Array, Array]] = []
    for position, base in enumerate(listed):
        reader = _Reader(f"base {position + 1}", *names)
        made.append(reader.read(base, shape))
        found = (len(made[-1][0]), len(made[-1][1]))
        if shape is None:
            shape = found
        elif found != shape:
            raise DataError(
                f"base {position + 1} is of {found[0]} rows and {found[1]} columns, but the matrix has "
                f"{shape[0]} rows and {shape[1]} columns"
            )
    return Bases._of(made)


def to_base_lines(bases: Bases) -> tuple[BaseLines, BaseLines]:
    """Return bases as the compiled code of Mondrian ensembles reads them, from the rows and from the columns.

    A cell has one block label in each base; the labels of a base are numbered after those of the bases
    before it, so that the counts of all bases lie side by side.
    """
    return base_lines(bases.row_table(), bases.column_table(), _slots(bases))


def to_label_lines(bases: Bases, filled: EncodedMatrix) -> tuple[LabelLines, LabelLines]:
    """Return the labels of the filled cells of a matrix, from its rows and from its columns."""
    return label_lines(
        bases.row_table(), bases.column_table(), _slots(bases), filled.by_row, filled.by_column
    )


def _slots(bases: Bases) -> list[Array]:
    """Return the tables of all bases, their labels numbered through."""
    firsts = np.concatenate([[0], np.cumsum(bases.n_blocks)[:-1]])
    return [table + first for table, first in zip(bases.tables, firsts, strict=True)]


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Reads one base; ``name`` says which in messages."""

    name: str
    row_names: Names
    column_names: Names

    def read(self, base: Any, shape: tuple[int, int] | None) -> tuple[Array, Array, Array]:
        """Return row classes, column classes and the table of blocks."""
        if hasattr(base, "fit") and not hasattr(base, "blocks_"):
            raise DataError(f"{self.name}: {type(base).__name__} is not fitted; call fit first")
        base = getattr(base, "blocks_", base)
        if hasattr(base, "row_classes") and hasattr(base, "column_classes") and hasattr(base, "table"):
            return by_classes(*(np.asarray(a) for a in (base.row_classes, base.column_classes, base.table)))
        if _is_pair(base, shape):
            rows = self._labels(base[0], "row")
            columns = self._labels(base[1], "column")
            n_rows, n_columns = int(rows.max()) + 1, int(columns.max()) + 1
            return rows, columns, np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
        return by_blocks(self._block_ids(base))

    def _labels(self, labels: Any, side: str) -> Array:
        """Return labels of rows or columns as 0, 1, ... by first appearance."""
        array = self._array(labels, f"the {side} labels")
        if array.ndim != 1 or array.size == 0:
            raise DataError(
                f"{self.name}: the {side} labels have shape {array.shape}; expected one label for each {side}"
            )
        names = self.row_names if side == "row" else self.column_names

        def place(at: tuple[int, ...]) -> str:
            return f"{side} {_named(names, at[0])}"

        return self._numbered(array, place)

    def _block_ids(self, ids: Any) -> Array:
        """Return a table of block ids as 0, 1, ..."""
        array = self._array(ids, "a table of block ids")
        if array.ndim != 2 or array.size == 0:
            raise DataError(
                f"{self.name} has shape {array.shape}; expected a tuple (row_labels, column_labels), a table "
                "of block ids with one for each cell of the matrix, or a fitted co-clustering"
            )

        def place(at: tuple[int, ...]) -> str:
            return f"row {_named(self.row_names, at[0])}, column {_named(self.column_names, at[1])}"

        return self._numbered(array, place)

    def _array(self, values: Any, what: str) -> Array:
        try:
            return np.asarray(values)
        except ValueError as error:
            raise DataError(f"{self.name}: {what}: rows differ in length ({error})") from None

    def _numbered(self, array: Array, place: Any) -> Array:
        """Refuse what names no cluster, and number the rest by first appearance."""
        if array.dtype == object:
            array = self._same_kind(array, place)
        if array.dtype.kind not in "iubfU":
            raise DataError(f"{self.name}: labels are whole numbers or text, not {array.dtype}")
        if array.dtype.kind in "if":
            with np.errstate(invalid="ignore"):
                bad = np.argwhere(~(array >= 0) | (array != np.floor(array)) | np.isinf(array))
            if len(bad):
                at = tuple(int(index) for index in bad[0])
                raise DataError(f"{self.name}, {place(at)}: {_why(array[at])}")
        flat = np.unique(array, return_inverse=True)[1].reshape(-1)
        return canonical_labels(flat).reshape(array.shape)

    def _same_kind(self, array: Array, place: Any) -> Array:
        """Return an array of objects as numbers or as text."""
        for at, value in np.ndenumerate(array):
            if value is None or type(value).__name__ in ("NAType", "NaTType"):
                raise DataError(f"{self.name}, {place(at)}: {_why(np.nan)}")
        texts = {isinstance(value, str) for value in array.flat}
        if texts == {True}:
            return array.astype(str)
        if texts == {False}:
            try:
                return array.astype(np.float64)
            except (TypeError, ValueError):
                raise DataError(f"{self.name}: labels are whole numbers or text") from None
        raise DataError(f"{self.name}: some labels are text and some are not")


def by_classes(row_classes: Array, column_classes: Array, table: Array) -> tuple[Array, Array, Array]:
    """Return the same with only those classes that differ and have members."""
    rows, columns = canonical_labels(row_classes), canonical_labels(column_classes)
    row_of = row_classes[np.unique(rows, return_index=True)[1]]
    column_of = column_classes[np.unique(columns, return_index=True)[1]]
    of_rows, of_columns, blocks = by_blocks(table[np.ix_(row_of, column_of)])
    return of_rows[rows], of_columns[columns], blocks


def by_blocks(ids: Array) -> tuple[Array, Array, Array]:
    """Return row classes, column classes and blocks of a table of block numbers, one for each cell.

    Rows are in one class where their blocks are the same in every column, columns likewise.

    Examples
    --------
    >>> rows, columns, table = by_blocks(np.array([[0, 1, 0], [2, 2, 2], [0, 1, 0]]))
    >>> rows.tolist(), columns.tolist(), table.tolist()
    ([0, 1, 0], [0, 1, 0], [[0, 1], [2, 2]])
    """
    rows, first_rows = _classes(np.ascontiguousarray(ids))
    columns, first_columns = _classes(np.ascontiguousarray(ids[first_rows].T))
    table = ids[np.ix_(first_rows, first_columns)]
    return rows, columns, canonical_labels(table.ravel()).reshape(table.shape)


def _classes(lines: Array) -> tuple[Array, Array]:
    """Class of each line, equal lines together, and the first line of each class."""
    seen: dict[bytes, int] = {}
    classes = np.array([seen.setdefault(line.tobytes(), len(seen)) for line in lines], dtype=np.int32)
    return classes, np.unique(classes, return_index=True)[1]


def _is_pair(base: Any, shape: tuple[int, int] | None) -> bool:
    """Whether a base is row labels and column labels, not a table of two rows."""
    if isinstance(base, tuple):
        return len(base) == 2 and np.ndim(base[0]) < 2
    if not isinstance(base, list) or len(base) != 2:
        return False
    lengths = tuple(len(part) if hasattr(part, "__len__") else 0 for part in base)
    return lengths[0] != lengths[1] or (shape is not None and shape[0] != 2 and lengths == shape)


def _named(names: Names, index: int) -> str:
    if names is None or index >= len(names):
        return str(index + 1)
    return f"{index + 1} ({names[index]!r})"


def _why(value: Any) -> str:
    if value != value:
        return "the label is missing. Every row, column or cell must be in a cluster: leave out those in none"
    if value < 0:
        return (
            f"{value:g} is no label; labels are 0, 1, 2, ... or text. Where it stands for 'in no cluster', "
            "give a cluster of its own or leave it out"
        )
    return f"{value:g} is not a whole number; labels are 0, 1, 2, ... or text"
