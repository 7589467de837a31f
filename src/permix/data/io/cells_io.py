"""Matrices with missing cells from tables and files: wide, long, or scipy's sparse ``.npz``.

What a file does not say is decided by plain rules, and asked for where two readings would fit:

long or wide
    A table is long when three of its columns are called row, column and value, or by usual names for them.
    One of three columns without such names could be long when its first and its second column both repeat
    and no pair of them does: then the caller must say. So could one of four columns that nobody named, such
    as user, item, rating and time.
header
    By the rules of ``headers``; in a long table the values decide. Where the first line could
    be both, as one with 1, 2, 3, …, the caller must say.
names of rows
    The first column holds names when it has no name itself or is called ``name``, ``id``, ``user`` and the
    like, or when it is text beside numbers. Where it holds 1, 2, 3, … the caller must say.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from permix.data.attributes import Attributes, from_text
from permix.data.cells import CellLayout, Cells, looked_over
from permix.data.cells_arrays import sparse_entries
from permix.data.cells_checks import MOST_EXACT, TOO_LONG, as_floats, clean_values, encode_names, unless_plain
from permix.data.cells_codes import Missing, MissingCodes, stands_for_nothing
from permix.data.csr import equal_pair
from permix.data.io import cells_layout as layout_of
from permix.data.io.category_cells import read_categories
from permix.data.io.containers.lines import read_lines
from permix.data.io.containers.numpy_files import read_sparse
from permix.data.io.forms import surveys
from permix.data.io.headers import NOTHING, has_header, is_number, split_header
from permix.data.io.item_table import attributes_from
from permix.data.io.layouts import no_items
from permix.data.io.polis import is_polis, kind_by_names, read_polis
from permix.data.io.table_columns import (
    Table,
    decimal_points,
    missing_mask,
    naturals,
    refuse_commas_in_numbers,
)
from permix.data.io.text_files import PathLike, check_file, plain_suffix
from permix.data.labels import Array, Label, as_column, as_objects, factorize, repeats
from permix.errors import (
    Argument,
    DataError,
    NoRows,
    ParameterError,
    PermixWarning,
    Wording,
    about_parameters,
)

LAYOUTS = ("auto", "wide", "long")
RowColumn = str | Literal[False] | None
# A float has no whole number of more digits.
MOST_DIGITS = 310


def read_cells(
    path: PathLike,
    layout: CellLayout = "auto",
    *,
    missing: Missing = None,
    new_rows: bool = False,
    header: bool | None = None,
    row_column: RowColumn = None,
    delimiter: str | None = None,
    ignore: Label | Iterable[Label] = (),
    row: Label | None = None,
    column: Label | None = None,
    value: Label | None = None,
    repeated: Literal["error", "last"] = "error",
    sheet: str | None = None,
    group_columns: Label | Iterable[Label] = (),
    item_table: PathLike | None = None,
    moderated: Literal["keep", "drop"] | None = None,
) -> Cells:
    """Read a matrix with missing cells from a file.

    Parameters
    ----------
    path : path
        A CSV or TSV file, plain or gzipped, or an Excel, Parquet or JSON file (records); wide (a line for
        every row of the matrix) or long (a line for every filled cell: row, column, value). Or a sparse
        matrix that ``scipy.sparse.save_npz`` wrote. Blank cells (and NA, N/A, NaN, NULL) are missing; in a
        sparse matrix, what is not stored. The votes of a Polis conversation are recognized by their columns
        (:mod:`permix.data.io.polis`).
    layout : {"auto", "wide", "long"}
        Text files only. Left out, long where the header says so and wide where it cannot be long; an error
        asks where it could be both. ``repr`` of the result says which it was.
    header : bool, optional
        Whether the first line holds names of columns; left out, found by what is in it.
    row_column : str or False, optional
        Wide tables: the column that names the rows. Left out, it is found as in :meth:`Cells.from_frame`.
    delimiter : str, optional
        Left out, a tab for ``.tsv`` and otherwise the most frequent of comma, semicolon, tab and ``|`` in
        the first line.
    ignore : str or list of str, optional
        Columns of a text file to leave out.
    row, column, value : str, optional
        Long tables: the columns that hold them, all three; other columns are not used.
    repeated : {"error", "last"}
        Long tables: whether a cell that is given twice is an error, or the last value counts.
    sheet : str, optional
        Name of the sheet, of an Excel file with several.
    group_columns : str or list of str, optional
        Columns of a text file that are no cells, but say something of the rows, such as region or age: they
        become ``covariates``. In a long table all lines of a row must agree on them.
    item_table : path, optional
        A table of attributes of the columns (party, color, text, …) by name.
    moderated : {"keep", "drop"}, optional
        Polis conversations: whether statements that moderators rejected, as ``comments.csv`` beside the votes
        says, stay or are left out. Left out, they stay, and ``repr`` of the result says so.
    missing : number, str, or a list of these, optional
        Values that stand for missing cells, such as -1 or "refused", besides blank ones.
    new_rows : bool
        Whether these are new rows for a model that is fitted already: then nobody is warned of rows and
        columns without filled cells.

    Returns
    -------
    Cells

    Raises
    ------
    FileFormatError
        When the file is damaged, cut short, or not what its name says.
    DataError
        When a cell is given twice or is not finite, or the layout is open to doubt.

    Examples
    --------
    >>> cells = permix.read_cells("ratings.csv")  # doctest: +SKIP
    """
    groups = [group_columns] if isinstance(group_columns, str | int) else list(group_columns)
    about: dict[str, Any] = {"header": header, "row_column": row_column, "delimiter": delimiter}
    about |= {"ignore": ignore, "row": row, "column": column, "value": value, "repeated": repeated}
    about |= {"sheet": sheet, "moderated": moderated}
    cells = _read_cells(path, layout, missing, new_rows, groups, **about)
    if item_table is None:
        return cells
    names = [cells.column_name(place) for place in range(cells.n_columns)]
    return cells._with(item_attributes=attributes_from(item_table, names, cells.item_attributes))


def _read_cells(
    path: PathLike,
    layout: str,
    missing: Missing,
    new_rows: bool,
    groups: list[Label],
    *,
    header: bool | None,
    row_column: RowColumn,
    delimiter: str | None,
    ignore: Label | Iterable[Label],
    row: Label | None,
    column: Label | None,
    value: Label | None,
    repeated: str,
    sheet: str | None,
    moderated: str | None,
) -> Cells:
    if layout not in LAYOUTS:
        raise ParameterError("layout", layout, "'auto', 'wide' or 'long'")
    codes = MissingCodes(missing)
    if groups and plain_suffix(path) in ("npz", "cat"):
        raise DataError(
            f"{path} has no columns beside the cells: ", Argument("group_columns"), " is for tables"
        )
    if plain_suffix(path) == "npz":
        check_file(path)
        options = (header, row_column, delimiter, sheet)
        if layout == "long" or any(given is not None for given in options) or ignore not in ((), []):
            idle = (Argument("layout"), ", ", Argument("header"), ", ", Argument("row_column"))
            said = f"{path}: a sparse matrix has neither lines nor names; "
            more = (Wording(", delimiter", ""), " and ", Argument("ignore"), " are for text files")
            with about_parameters():
                raise DataError(said, *idle, *more)
        entries, origin = sparse_entries(read_sparse(path), codes), f"from {path}, a sparse matrix"
        return looked_over(Cells(*entries, origin=origin, new_rows=new_rows), codes, new_rows)
    named = (row, column, value)
    if any(name is not None for name in named) and None in named:
        raise DataError(
            "a long table needs all three: ",
            Argument("row"),
            ", ",
            Argument("column"),
            " and ",
            Argument("value"),
        )
    plain_call = layout == "auto" and header is None and not ignore and row is None
    if plain_suffix(path) == "cat":
        if codes or ignore or not plain_call or delimiter or row_column is not None or repeated != "error":
            raise DataError(f"{path}: options for tables say nothing about a .cat file")
        return read_categories(path, new_rows)
    listed_ignore = [str(name) for name in ([ignore] if isinstance(ignore, str | int) else ignore)]
    kind = is_polis(path) if layout == "auto" and header is None and row is None else None
    known = [str(name) for name in groups]
    if kind is not None:
        return read_polis(path, kind, codes, new_rows, known, listed_ignore, moderated=moderated)
    if row is not None:
        layout, header = "long", True
    table = _table_of_file(path, delimiter, header, layout, codes, sheet)
    kind = kind_by_names(table.names) if layout == "auto" and header is None and row is None else None
    if kind is not None:  # in another file than CSV
        return read_polis(path, kind, codes, new_rows, known, listed_ignore, table, moderated)
    if moderated is not None:
        raise DataError(f"{path} is no Polis conversation, and ", Argument("moderated"), " is for these")
    table = table.without(ignore)
    whole = table
    table, beside = table.set_apart(groups)
    if row is not None:
        places = [table.named(name, " for the cells") for name in named]
        table = table._replace(names=["row", "column", "value"], columns=[table.columns[at] for at in places])
    if repeated == "last":
        table = layout_of.latest(table, layout)
    elif repeated != "error":
        raise ParameterError("repeated", repeated, "'error' or 'last'")
    origin = f"from {path}, without a header" if table.numbered else f"from {path}"
    cells = _cells_of_table(table, layout, row_column, origin, codes, new_rows, from_text=True)
    if beside:
        cells = cells._with(covariates=_of_rows(whole, row, cells, from_text(beside)))
    return looked_over(cells, codes, new_rows)


def _of_rows(table: Table, row: Label | None, cells: Cells, told: Attributes) -> Attributes:
    """Return covariates of the rows of a matrix out of those of lines, which must agree."""
    if "read as a long table" not in cells.origin:
        return told
    rest = table.without(list(told))
    place = layout_of.places_to_read(rest).row if row is None else rest.named(row, " for the rows")
    ids = [str(name) for name in naturals(rest.columns[place]).tolist()]
    names = [cells.row_names[at] if cells.row_names else str(at) for at in range(cells.n_rows)]
    at = {name: line for line, name in reversed(list(enumerate(ids)))}
    first = np.array([at[name] for name in names])
    of_line = np.array([at[name] for name in ids])
    for name in told:
        code = told.column(name).codes()[0]
        table.refuse(
            code != code[of_line], f"column {name!r} differs from that of an earlier line of the row"
        )
    return told.take(first)


def cells_from_frame(
    frame: object, layout: str, row_column: RowColumn, codes: MissingCodes, new_rows: bool
) -> Cells:
    """Take a data frame; see :meth:`Cells.from_frame`."""
    if layout not in LAYOUTS:
        raise ParameterError("layout", layout, "'auto', 'wide' or 'long'")
    table, index = Table.of_frame(frame), _index_names(frame)
    return _cells_of_table(table, layout, row_column, "from a frame", codes, new_rows, index=index)


def refuse_long_frame(frame: object) -> None:
    """Refuse a frame whose columns are called row, column and value where a wide one is expected."""
    names = [str(name) for name in getattr(frame, "columns", ())]
    if len(names) == 3 and layout_of.long_places(names) is not None:
        raise DataError(
            f"the frame has columns {', '.join(map(repr, names))}: it looks long, with one cell in each "
            "row. Pass permix.Cells.from_frame(frame, layout='long'), or ",
            Argument("layout", "wide"),
            " if it is a matrix of three columns",
        )


# -- tables ----------------------------------------------------------------------------------------


def _cells_of_table(
    table: Table,
    layout: str,
    row_column: RowColumn,
    origin: str,
    codes: MissingCodes,
    new_rows: bool,
    *,
    index: list[str] | None = None,
    from_text: bool = False,
) -> Cells:
    if not table.columns or table.n_rows == 0:
        raise NoRows(f"{table.source}: there are no rows")
    if layout == "auto":
        layout = _layout(table, row_column)
    if layout == "long":
        if row_column is not None:
            said = " is for wide tables, and this is a long one"
            raise DataError(f"{table.source}: ", Argument("row_column"), said)
        return _long(table, f"{origin}, read as a long table", codes, from_text, new_rows)
    return _wide(table, row_column, index, f"{origin}, read as a wide table", codes, from_text, new_rows)


def _layout(table: Table, row_column: RowColumn) -> str:
    if row_column is not None:
        return "wide"
    if layout_of.long_places(table.names) is not None:
        return "long"
    if not layout_of.could_be_long(table):
        return "wide"
    n, more = ("three", "") if len(table.names) == 3 else ("four", " and one more")
    raise DataError(
        f"{table.source}: a table of {n} columns in which no pair of the first two is repeated could be "
        f"long (row, column, value{more}) or a matrix of {n} columns; say ",
        *(Argument("layout", "long"), " or ", Argument("layout", "wide")),
    )


def _long(table: Table, origin: str, codes: MissingCodes, from_text: bool, new_rows: bool) -> Cells:
    places = layout_of.places_to_read(table)
    told = layout_of.long_places(table.names) is not None
    others = [name for place, name in enumerate(table.names) if told and place not in places]
    if others:
        warnings.warn(
            f"{table.source}: columns {', '.join(map(repr, others[:5]))} are not used; a cell has a row, a "
            "column and a value",
            PermixWarning,
            stacklevel=4,
        )
    lines, names = [], []
    for place, what in ((places.row, "row"), (places.column, "column")):
        distinct, code = factorize(as_column(table.columns[place], what))  # names are few, cells many
        nothing = f"nothing in column {table.names[place]!r}; fill it or drop the line"
        table.refuse(missing_mask(distinct)[code], nothing)
        order, name = encode_names(naturals(distinct), None, what)
        lines.append(order[code])
        names.append(name)
    values = codes.blanked(table.columns[places.value])
    if from_text:
        values = _parsed(values, table.where)
    rows, columns = lines
    for first, second in equal_pair(rows * len(names[1]) + columns):
        raise DataError(
            f"{table.where(second)}: row {names[0][rows[second]]!r}, column {names[1][columns[second]]!r} is "
            f"given twice (first: {table.where(first)}); keep one value per cell, for example the mean, or "
            "say ",
            *(Argument("repeated", "last"), ", and the latest counts"),
        )
    # Of new rows 0, 1, 2 may be some of many columns: their names say which.
    both = names if new_rows else [unless_plain(listed) for listed in names]
    shape = (len(names[0]), len(names[1]))
    return Cells(rows, columns, values, shape, both[0], both[1], origin, new_rows=new_rows)


def _wide(
    table: Table,
    row_column: RowColumn,
    index: list[str] | None,
    origin: str,
    codes: MissingCodes,
    from_text: bool,
    new_rows: bool,
) -> Cells:
    table = surveys.without_form(table, row_column)
    # What names the rows is found by what else is a number: codes for missing do not count against that.
    cleaned = [table.columns[0], *(codes.blanked(column) for column in table.columns[1:])]
    named = layout_of.row_name_place(table._replace(columns=cleaned), row_column, index)
    kept = [place for place in range(len(table.names)) if place != named]
    if not kept:
        raise DataError(f"{table.source}: a column of names and no other; a matrix needs values")
    if row_column is None and not new_rows:
        layout_of.warn_of_identifiers(table, kept, named)
        no_items.warn_beside_cells(table, kept)
    shape = (table.n_rows, len(kept))
    row_names = index if named is None else [str(name) for name in _row_names(table, named)]
    column_names = [table.names[place] for place in kept]
    first = 1 if table.numbered else 0
    unnamed = [str(name) for name in column_names] == [str(first + place) for place in range(len(kept))]
    columns = [table.columns[place] for place in kept]
    numeric = all(column.dtype.kind in "biuf" for column in columns)
    flat = np.column_stack([as_floats(c) if numeric else c.astype(object) for c in columns]).reshape(-1)

    def where(at: int) -> str:
        row, column = divmod(at, len(kept))
        return f"{table.where(row)}, column {column_names[column]!r}"

    flat = codes.blanked(flat)
    values = _parsed(flat, where) if from_text else _uniform(flat, where)
    rows, places = np.divmod(np.arange(flat.size), len(kept))
    both = (row_names, None if unnamed else column_names)
    return Cells(rows, places, values, shape, *both, origin, new_rows=new_rows)


def _row_names(table: Table, place: int) -> Array:
    names = table.filled(place, ", which names the rows; fill it")
    for first, row in repeats(names.tolist()):
        looks_long = layout_of.long_places(table.names) is not None or layout_of.could_be_long(table)
        hint = (". This looks long, a line for every cell: say ", Argument("layout", "long"))
        raise DataError(
            f"{table.where(row)}: this row and an earlier one ({table.where(first)}) are both called "
            f"{names.tolist()[row]!r}; rename one",
            *(hint if looks_long else ()),
        )
    return names


def _index_names(frame: Any) -> list[str] | None:
    """Names in a pandas index, unless it just counts."""
    index: Any = getattr(frame, "index", None)
    listed = index.tolist() if hasattr(index, "tolist") else []
    return None if listed == list(range(len(listed))) else [str(name) for name in listed]


# -- values ----------------------------------------------------------------------------------------


def _parsed(texts: Array, where: Any) -> Array:
    """Entries of a text file as numbers, or as text where some are no numbers."""
    distinct: dict[Any, float] = {}
    odd: str | None = None
    for entry in set(texts.tolist()):
        if entry is None or entry in NOTHING:
            distinct[entry] = np.nan
        elif is_number(entry):
            distinct[entry] = float(entry)
        else:
            odd = entry
    if odd is None:
        _refuse_merged(distinct, texts, where)
        return np.array([distinct[entry] for entry in texts.tolist()], dtype=np.float64)
    if any(value == value for value in distinct.values()):
        at, odd = next((place, entry) for place, entry in enumerate(texts.tolist()) if entry not in distinct)
        said = (
            f"{where(at)}: {odd!r} is not a number, while other cells hold numbers; all are taken as text. "
            "Mend it if it is a slip"
        )
        code = (", or say ", Argument("missing", odd), " if it stands for missing")
        warnings.warn(PermixWarning(said, *(code if stands_for_nothing(odd) else ())), stacklevel=6)
    else:
        _warn_of_marks(texts, where)
    return as_objects([None if entry is None or entry in NOTHING else entry for entry in texts.tolist()])


def _warn_of_marks(texts: Array, where: Any) -> None:
    """Tell an entry without a letter among words: as a point, it may stand for missing."""
    listed = [entry for entry in texts.tolist() if entry is not None and entry not in NOTHING]
    marks = {entry for entry in set(listed) if stands_for_nothing(entry)}
    if marks and marks != set(listed):
        at, mark = next((place, entry) for place, entry in enumerate(texts.tolist()) if entry in marks)
        said = f"{where(at)}: {mark!r} is a value like the words beside it; if it stands for missing, say "
        warnings.warn(PermixWarning(said, Argument("missing", mark)), stacklevel=7)


def _refuse_merged(distinct: dict[Any, float], texts: Array, where: Any) -> None:
    """Refuse whole numbers that are not what was written any more."""
    for entry, value in distinct.items():
        whole = abs(value) >= MOST_EXACT and re.fullmatch(r"[-+]?\d+", entry.strip())
        if whole and (len(entry) > MOST_DIGITS or int(entry) != value):
            written = entry if len(entry) <= 30 else f"{entry[:30]}… ({len(entry)} digits)"
            raise DataError(f"{where(texts.tolist().index(entry))}: {TOO_LONG.format(written)}")


def _uniform(flat: Array, where: Any) -> Array:
    """Values of a frame, with the place of the first that does not fit the others."""
    try:
        clean_values(flat)
    except DataError as error:
        for at, entry in enumerate(flat.tolist()):
            if isinstance(entry, str):
                raise DataError(f"{where(at)}: {error}") from None
        raise
    return flat


# -- files -----------------------------------------------------------------------------------------


def _table_of_file(
    path: PathLike,
    delimiter: str | None,
    header: bool | None,
    layout: str,
    codes: MissingCodes,
    sheet: str | None,
) -> Table:
    whole = read_lines(path, delimiter, sheet)
    if header is None and not whole.named:
        whole = surveys.header_lines(path, whole)
    delimiter = whole.delimiter

    def number(entry: str) -> bool:
        return is_number(entry, delimiter) or codes.holds(entry)

    def decide(fields: list[list[str]]) -> bool:
        if len(fields) > 1 and layout_of.long_places(fields[0]) is not None:
            return True
        if layout == "long" and len(fields[0]) > 2 and len(fields) > 1:
            return layout_of.long_has_header(path, fields, number)
        return has_header(path, fields, number=number, known=layout_of.is_usual_cell_name)

    found, lines = split_header(path, whole, header, decide)
    names: list[Label] = list(range(1, len(lines.fields[0]) + 1)) if found is None else list(found)
    table = Table.of_lines(path, names, lines)._replace(numbered=found is None)
    table.columns[:] = [decimal_points(column, delimiter) for column in table.columns]
    refuse_commas_in_numbers(table)
    return table
