"""JSON lines, or one list of records: a row each, columns by the keys of the records."""

from __future__ import annotations

import json
import warnings
from typing import Any

from permix.data.io.column_names import LISTS, plain
from permix.data.io.text_files import PathLike, read_text
from permix.errors import FileFormatError, PermixWarning

# What keys are called that hold a score for each item; the name stays before that of the item, since such
# numbers may look like ranks, of which the lowest is the best.
_SCORES = frozenset(["score", "scores", "rating", "ratings", "points", "stars"])
# What keys are called that hold a rank for each item.
_BY_ITEM = frozenset(["rank", "ranks", "ranking", "rankings", "ranked"])


def read_columns(path: PathLike) -> tuple[list[str], list[list[str]]]:
    """Return the keys and, for each, the entries of all records as text; nothing where a record has none."""
    records = list(_records(path))
    if not records:
        raise FileFormatError(f"{path}: there are no records", path)
    nested = [key for key in _keys(records) if any(map(_is_nested, _values(records, key)))]
    n_plain = len(_keys(records)) - len(nested)
    rankings = [key for key in nested if plain(key) in LISTS and is_list_of_items(_values(records, key)[0])]
    if len(records) == 1 and nested and n_plain < 2 and not rankings:
        raise FileFormatError(
            f"{path}: one record that holds lists or records ({nested[0]!r}); a table has a record for each "
            'row: [{"voter": 1, "rank1": "Ann"}, {"voter": 2, "rank1": "Bo"}], or such records one a line',
            path,
        )
    _spread(path, records, nested)
    left = [key for key in _keys(records) if any(map(_is_nested, _values(records, key)))]
    if left:
        listed = ", ".join(map(repr, left[:5]))
        warnings.warn(
            f"{path}: keys with lists or records are left out: {listed}", PermixWarning, stacklevel=4
        )
    kept = [key for key in _keys(records) if key not in set(left)]
    if not kept:
        raise FileFormatError(f"{path}: no key of the records holds plain entries", path)
    return [key.strip() for key in kept], [[_entry(value) for value in _values(records, key)] for key in kept]


def _keys(records: list[tuple[int, dict[str, Any]]]) -> list[str]:
    return list(dict.fromkeys(key for _, record in records for key in record))


def _values(records: list[tuple[int, dict[str, Any]]], key: str) -> list[Any]:
    return [record.get(key) for _, record in records]


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def _spread(path: PathLike, records: list[tuple[int, dict[str, Any]]], nested: list[str]) -> None:
    """Turn rankings into text, and ranks by item into columns; what else is nested stays as it is."""
    for key in nested:
        values = [value for value in _values(records, key) if value is not None]
        if plain(key) in LISTS and all(map(is_list_of_items, values)):
            for _, record in records:
                if record.get(key) is not None:
                    record[key] = json.dumps(record[key], ensure_ascii=False)
        elif plain(key) in _SCORES and all(isinstance(value, dict) for value in values):
            for _, record in records:
                scores = record.pop(key, None) or {}
                record.update({f"{key} [{item}]": score for item, score in scores.items()})
        elif plain(key) in _BY_ITEM and all(isinstance(value, dict) for value in values):
            items = {item for value in values for item in value}
            if items & set(_keys(records)):
                raise FileFormatError(
                    f"{path}: {key!r} holds a key that other records have as well; rename it", path
                )
            for _, record in records:
                record.update(record.pop(key, None) or {})


def is_list_of_items(value: Any) -> bool:
    """Whether a value lists items, in which tied ones may stand in a list of their own."""
    groups = [each if isinstance(each, list) else [each] for each in value] if isinstance(value, list) else []
    return bool(groups) and all(isinstance(item, str | int | float) for group in groups for item in group)


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
