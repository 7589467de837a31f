"""JSON lines, or one list of records: a row each, columns by the keys of the records."""

from __future__ import annotations

import json
import warnings
from typing import Any

from permix.data.io.text_files import PathLike, read_text
from permix.errors import FileFormatError, PermixWarning


def read_columns(path: PathLike) -> tuple[list[str], list[list[str]]]:
    """Return the keys and, for each, the entries of all records as text; nothing where a record has none."""
    records = list(_records(path))
    if not records:
        raise FileFormatError(f"{path}: there are no records", path)
    keys = dict.fromkeys(key for _, record in records for key in record)
    nested = [key for key in keys if any(isinstance(record.get(key), dict | list) for _, record in records)]
    if nested:
        listed = ", ".join(map(repr, nested[:5]))
        warnings.warn(
            f"{path}: keys with lists or records are left out: {listed}", PermixWarning, stacklevel=4
        )
    plain = [key for key in keys if key not in set(nested)]
    if not plain:
        raise FileFormatError(f"{path}: no key of the records holds plain entries", path)
    return [key.strip() for key in plain], [
        [_entry(record.get(key)) for _, record in records] for key in plain
    ]


def _records(path: PathLike) -> list[tuple[int, dict[str, Any]]]:
    text = read_text(path, western=False)
    if text.lstrip().startswith("["):
        found = _parsed(path, text, 1)
        records = list(enumerate(found if isinstance(found, list) else [found], start=1))
    else:
        lines = enumerate(text.split("\n"), start=1)
        records = [(number, _parsed(path, line, number)) for number, line in lines if line.strip()]
    for number, record in records:
        if not isinstance(record, dict):
            raise FileFormatError(f'{path}, record {number}: not an object such as {{"key": value}}', path)
    return records


def _parsed(path: PathLike, text: str, line: int) -> Any:
    try:
        return json.loads(text, parse_constant=lambda _: None, object_pairs_hook=_record)
    except _Twice as error:
        where = f"{path}, line {line}" if "\n" not in text else str(path)  # a list of records has many
        raise FileFormatError(f"{where}: {error}", path) from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}, line {line}: not JSON ({error})", path, line) from error


class _Twice(Exception):
    pass


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Twice(f"a record has the key {twice!r} twice; keep one")
    return found


def _entry(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()
