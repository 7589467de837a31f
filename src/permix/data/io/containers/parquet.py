"""Parquet files, by pyarrow: columns as text, within limits on what a file may declare."""

from __future__ import annotations

import json
import warnings
from typing import Any

from permix.data.io.column_names import LISTS, plain
from permix.data.io.text_files import PathLike
from permix.errors import DataError, FileFormatError, PermixWarning
from permix.files import atomic_writer, too_large, unpacking_limit

# Bytes that an entry takes in memory at the least.
BYTES_OF_ENTRY = 8


def _pyarrow(path: PathLike) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            f'{path}: Parquet is read and written by pyarrow: pip install "permix[parquet]", or use CSV'
        ) from None
    return pyarrow


def read_columns(path: PathLike) -> tuple[list[str], list[list[str]]]:
    """Return names and entries of the columns as text; columns of lists and records are left out."""
    arrow = _pyarrow(path)
    try:
        with arrow.parquet.ParquetFile(path) as file:
            names = _plain_columns(arrow, file, path)
            words = [name for name in names if _is_text(arrow, file.schema_arrow.field(name).type)]
        # Words as codes of distinct ones: a long word a million times takes its length once.
        # Damage that the pages' checksums tell is damage, where a file has them.
        with arrow.parquet.ParquetFile(path, read_dictionary=words, page_checksum_verification=True) as file:
            table = file.read(columns=names)
            columns = [_text(arrow, table.column(name)) for name in names]
    except (arrow.ArrowException, OSError, UnicodeDecodeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise FileFormatError(f"{path}: not a Parquet file, or damaged ({error})", path) from error
    return [name.strip() for name in names], columns


def _plain_columns(arrow: Any, file: Any, path: PathLike) -> list[str]:
    about, schema = file.metadata, file.schema_arrow
    declared = max(
        about.num_rows * len(schema) * BYTES_OF_ENTRY,
        sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups)),
    )
    most = unpacking_limit()
    if about.num_rows < 0 or declared > most:
        raise FileFormatError(too_large(most, f"{path}: "), path)
    nested = [
        field.name for field in schema if arrow.types.is_nested(field.type) and not _is_ranking(arrow, field)
    ]
    binary = [field.name for field in schema if _is_bytes(arrow, field.type)]
    if nested or binary:
        listed = ", ".join(map(repr, [*nested, *binary][:5]))
        warnings.warn(
            f"{path}: columns of lists, records or bytes are left out: {listed}", PermixWarning, stacklevel=5
        )
    names = [name for name in schema.names if name not in {*nested, *binary}]
    if not names:
        raise DataError(f"{path}: no column holds plain entries")
    if len(set(schema.names)) < len(schema.names):
        raise FileFormatError(f"{path}: two columns have the same name; rename one", path)
    return names


def _is_ranking(arrow: Any, field: Any) -> bool:
    """Whether a column holds lists of items, as its name says."""
    of, types = field.type, arrow.types
    listed = types.is_list(of) or types.is_large_list(of)
    return bool(plain(field.name) in LISTS and listed and not types.is_nested(of.value_type))


def _is_bytes(arrow: Any, of: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(of):
        return _is_bytes(arrow, of.value_type)
    view = getattr(types, "is_binary_view", lambda of: False)  # not in older versions
    return bool(
        types.is_binary(of) or types.is_large_binary(of) or types.is_fixed_size_binary(of) or view(of)
    )


def _is_text(arrow: Any, of: Any) -> bool:
    return bool(arrow.types.is_string(of) or arrow.types.is_large_string(of))


def _text(arrow: Any, column: Any) -> list[str]:
    if arrow.types.is_dictionary(column.type):
        entries: list[str] = []
        for chunk in column.chunks:
            words = [*map(_entry, chunk.dictionary.to_pylist()), ""]
            codes = chunk.indices.fill_null(len(words) - 1).to_pylist() if len(chunk) else []
            entries += [words[code] for code in codes]
        return entries
    return [_entry(value) for value in column.to_pylist()]


def _entry(value: Any) -> str:
    """One entry as a text file has it: whole numbers without a point, nothing for NaN."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()


def write_columns(path: PathLike, names: list[str], columns: list[list[Any]]) -> None:
    """Write columns; those of whole numbers and blanks as integers, all others as text."""
    arrow = _pyarrow(path)
    arrays = []
    for column in columns:
        entries = [None if entry is None or entry == "" else entry for entry in column]
        whole = all(entry is None or type(entry) is int for entry in entries)
        if not whole:
            entries = [None if entry is None else str(entry) for entry in entries]
        arrays.append(arrow.array(entries, type=arrow.int64() if whole else arrow.string()))
    with atomic_writer(path) as stream:
        arrow.parquet.write_table(arrow.table(arrays, names=names), stream, write_page_checksum=True)
