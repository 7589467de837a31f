"""One way in and one way out: the ending of the file says what it holds."""

from __future__ import annotations

import inspect
from typing import Any

from permix.data.io import preflib, tables
from permix.data.io.text_files import PREFLIB, TABLES, PathLike, check_file, plain_suffix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, about_parameters


def read(path: PathLike, **options: Any) -> Rankings | Preferences:
    """Read rankings or preferences from a PrefLib file or a table.

    Parameters
    ----------
    path : path
        ``.soc .soi .toc .toi .cat`` (:func:`permix.read_preflib`) or ``.csv .tsv .tab``
        (:func:`permix.read_table`); ``.gz`` may follow.
    **options
        Passed on: ``unlisted`` for both (left out, "unknown" for ratings and "below" for all else);
        ``strict``, ``categories`` for PrefLib files; ``layout``, ``items``, ``agent_column``,
        ``count_column``, ``on_cycle``, ``ignore``, ``delimiter``, ``header`` for tables.
    """
    reader = preflib.read_preflib if _kind(path) == "preflib" else tables.read_table
    readers = [reader] if reader is preflib.read_preflib else [reader, tables.from_frame]
    known = {name for taking in readers for name in inspect.signature(taking).parameters}
    check_file(path)
    _refuse_options(path, [name for name in options if name not in known])
    return reader(path, **options)


def write(obj: Rankings | Preferences, path: PathLike, **options: Any) -> None:
    """Write rankings or preferences; the ending says how, as in :func:`read`.

    ``layout`` is passed on to :func:`permix.write_table`.
    """
    if _kind(path) == "preflib":
        _refuse_options(path, list(options))
        preflib.write_preflib(obj, path)
    else:
        tables.write_table(obj, path, **options)


def _refuse_options(path: PathLike, unknown: list[str]) -> None:
    """Refuse options of the other kind of file."""
    kinds = ["a PrefLib file", "a table"]
    here, other = kinds if _kind(path) == "preflib" else kinds[::-1]
    for name in unknown:
        with about_parameters():
            raise DataError(Argument(name), f" says nothing about {here}, as {path} is, but about {other}")


def _kind(path: PathLike) -> str:
    ending = plain_suffix(path)
    if ending in PREFLIB:
        return "preflib"
    if ending in TABLES:
        return "table"
    endings = ", ".join(f".{suffix}" for suffix in (*PREFLIB, *TABLES))
    raise DataError(f"{path}: the ending says nothing; known endings are {endings}, each with .gz or without")
