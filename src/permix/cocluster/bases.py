"""Base co-clusterings as people have them, brought into one form.

A base says for every cell of an R × C matrix which block it is in: by clusters of rows and of columns, by a
table of block ids made elsewhere, or as a fitted model. Kept of it are its row classes (rows that are alike
in every column), its column classes, and the block of each pair of classes; for a grid the classes are its
row clusters and column clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from permix.cocluster.cells.base_lines_jit import base_lines, label_lines
from permix.cocluster.cells.encoded_matrix import EncodedMatrix, grid_table
from permix.data.labels import Array
from permix.errors import DataError
from permix.partitions.labels import canonical_labels

Base = tuple[Array, Array, Array]  # classes of rows, classes of columns, and the table of blocks
Names = Sequence[str] | None


class Bases(NamedTuple):
    """Co-clusterings of one matrix, each with three arrays of type int32."""

    row_classes: tuple[Array, ...]  # class of each row
    column_classes: tuple[Array, ...]  # class of each column
    tables: tuple[Array, ...]  # block of each class of rows (axis 0) and of columns, from 0 without gaps

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
        return {
            "base_rows": self.row_table(),
            "base_columns": self.column_table(),
            "base_shapes": np.array([table.shape for table in self.tables], dtype=np.int64),
            "base_blocks": np.concatenate([table.ravel() for table in self.tables]),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array]) -> Self:
        """Take back what :meth:`pack` gave; refuses arrays that do not fit together."""
        names = ("base_rows", "base_columns", "base_shapes", "base_blocks")
        rows, columns, shapes, blocks = (np.asarray(arrays[name]) for name in names)
        refusal = DataError("the saved base co-clusterings do not fit together")
        forms = [(array.dtype.kind, array.ndim) for array in (rows, columns, shapes, blocks)]
        if forms != [("i", 2), ("i", 2), ("i", 2), ("i", 1)] or not shapes.size or not (shapes > 0).all():
            raise refusal
        sizes = shapes.prod(axis=1)
        if not rows.shape[1] == columns.shape[1] == len(shapes) or shapes.shape[1] != 2:
            raise refusal
        if int(sizes.sum()) != len(blocks):
            raise refusal
        tables = np.split(blocks, np.cumsum(sizes)[:-1])
        made = []
        for m, (n_rows, n_columns) in enumerate(shapes.tolist()):
            table = tables[m].reshape(n_rows, n_columns)
            numbered = ((rows[:, m], n_rows), (columns[:, m], n_columns), (table, int(table.max()) + 1))
            if not all(np.array_equal(np.unique(labels), np.arange(n)) for labels, n in numbered):
                raise refusal
            made.append((rows[:, m], columns[:, m], table))
        return cls._of(made)

    @classmethod
    def _of(cls, parts: Sequence[Base]) -> Self:
        kept = [[np.ascontiguousarray(array, dtype=np.int32) for array in part] for part in parts]
        return cls(*zip(*kept, strict=True))


def as_bases(
    given: Iterable[Any], shape: tuple[int, int] | None = None, names: tuple[Names, Names] = (None, None)
) -> Bases:
    """Bring base co-clusterings into one form.

    There are at least two, each of them a tuple ``(row_labels, column_labels)``; a table of block ids, one
    for each cell of the matrix; or a fitted co-clustering. Labels and ids are whole numbers from 0, or text.
    The shape is that of the first base where none is given; names of rows and of columns are for messages.

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
    sides = {"row": names[0], "column": names[1]}
    made: list[Base] = []
    for number, base in enumerate(listed, 1):
        made.append(_read(base, f"base {number}", shape, sides))
        found = (len(made[-1][0]), len(made[-1][1]))
        shape = shape or found
        if found != shape:
            raise DataError(
                f"base {number} is of {found[0]} rows and {found[1]} columns, but the matrix has "
                f"{shape[0]} rows and {shape[1]} columns"
            )
    return Bases._of(made)


def to_lines(bases: Bases, filled: EncodedMatrix | None = None) -> tuple[Any, Any]:
    """Return bases as the compiled code of Mondrian ensembles reads them, from the rows and from the columns.

    A cell has one block label in each base; the labels of a base are numbered after those of the bases
    before it, so that the counts of all bases lie side by side. With a matrix, those of its filled cells are
    returned (``LabelLines``), without one those of all cells (``BaseLines``).
    """
    firsts = np.concatenate([[0], np.cumsum(bases.n_blocks)[:-1]])
    slots = [table + first for table, first in zip(bases.tables, firsts, strict=True)]
    tables = (bases.row_table(), bases.column_table(), slots)
    return base_lines(*tables) if filled is None else label_lines(*tables, filled.by_row, filled.by_column)


def _read(base: Any, who: str, shape: tuple[int, int] | None, sides: Mapping[str, Names]) -> Base:
    """Read one base; ``who`` says which in messages."""
    if hasattr(base, "fit") and not hasattr(base, "blocks_"):
        raise DataError(f"{who}: {type(base).__name__} is not fitted; call fit first")
    base = getattr(base, "blocks_", base)
    if hasattr(base, "row_classes") and hasattr(base, "column_classes") and hasattr(base, "table"):
        return by_classes(*map(np.asarray, (base.row_classes, base.column_classes, base.table)))
    if _is_pair(base, shape):
        parts = zip(base, sides.items(), strict=True)
        rows, columns = (_numbered(labels, who, dict([side])) for labels, side in parts)
        return rows, columns, grid_table(int(rows.max()) + 1, int(columns.max()) + 1)
    return by_blocks(_numbered(base, who, sides))


def _numbered(values: Any, who: str, sides: Mapping[str, Names]) -> Array:
    """Return labels of one side, or ids of blocks, as 0, 1, ...; refuse what names no cluster."""
    is_table, side = len(sides) == 2, next(iter(sides))
    try:
        array = np.asarray(values)
    except ValueError as error:
        what = "a table of block ids" if is_table else f"the {side} labels"
        raise DataError(f"{who}: {what}: rows differ in length ({error})") from None
    if array.ndim != len(sides) or array.size == 0:
        raise DataError(
            f"{who} has shape {array.shape}; expected a tuple (row_labels, column_labels), a table "
            "of block ids with one for each cell of the matrix, or a fitted co-clustering"
            if is_table
            else f"{who}: the {side} labels have shape {array.shape}; expected one label for each {side}"
        )

    def refusal(at: Sequence[int], value: Any) -> DataError:
        lines = zip(sides.items(), at, strict=True)
        place = ", ".join(
            f"{what} {line + 1}" + (f" ({names[line]!r})" if names is not None and line < len(names) else "")
            for (what, names), line in lines
        )
        return DataError(f"{who}, {place}: {_why(value)}")

    if array.dtype == object:
        for at, value in np.ndenumerate(array):
            if value is None or type(value).__name__ in ("NAType", "NaTType"):
                raise refusal(at, np.nan)
        array = _same_type(array, who)
    if array.dtype.kind not in "iubfU":
        raise DataError(f"{who}: labels are whole numbers or text, not {array.dtype}")
    if array.dtype.kind in "if":
        with np.errstate(invalid="ignore"):
            bad = np.argwhere(~(array >= 0) | (array != np.floor(array)) | np.isinf(array)).tolist()
        if bad:
            raise refusal(bad[0], array[tuple(bad[0])])
    flat = np.unique(array, return_inverse=True)[1].reshape(-1)
    return canonical_labels(flat).reshape(array.shape)


def _same_type(array: Array, who: str) -> Array:
    """Return an array of objects as numbers or as text."""
    texts = {isinstance(value, str) for value in array.flat}
    if len(texts) == 2:
        raise DataError(f"{who}: some labels are text and some are not")
    try:
        return array.astype(str if texts == {True} else np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{who}: labels are whole numbers or text") from None


def by_classes(row_classes: Array, column_classes: Array, table: Array) -> Base:
    """Return the same with only those classes that differ and have members."""
    rows, columns = canonical_labels(row_classes), canonical_labels(column_classes)
    row_of = row_classes[np.unique(rows, return_index=True)[1]]
    column_of = column_classes[np.unique(columns, return_index=True)[1]]
    of_rows, of_columns, blocks = by_blocks(table[np.ix_(row_of, column_of)])
    return of_rows[rows], of_columns[columns], blocks


def by_blocks(ids: Array) -> Base:
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


def _why(value: Any) -> str:
    if value != value:
        return "the label is missing. Every row, column or cell must be in a group: leave out those in none"
    if value < 0:
        return (
            f"{value:g} is no label; labels are 0, 1, 2, ... or text. Where it stands for 'in no group', "
            "give a group of its own or leave it out"
        )
    return f"{value:g} is not a whole number; labels are 0, 1, 2, ... or text"
