"""One way in and one way out: the ending of a file, or what is in it, says what it holds."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from permix.data.cleaning import Rules, clean
from permix.data.cleaning_candidates import names_alike
from permix.data.io import preflib, tables
from permix.data.io.ballots.source import Said, Source
from permix.data.io.item_table import attributes_from
from permix.data.io.kinds import kind_of
from permix.data.io.marks import is_mark
from permix.data.io.profiles.abif import read_abif, write_abif
from permix.data.io.profiles.blt import read_blt, write_blt
from permix.data.io.profiles.condorcet import read_condorcet
from permix.data.io.profiles.order_files import read_order_file
from permix.data.io.text_files import PREFLIB, PROFILES, WRITTEN_TABLES, PathLike, check_file, plain_suffix
from permix.data.labels import some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, PermixWarning, about_parameters

if TYPE_CHECKING:
    from permix.data.io.ballots.formats import Recognized


# What says which columns of a table hold something else than rankings.
COLUMNS = ("agent_column", "count_column", "ignore")
# What says nothing about rankings as such, but about the marks they come from.
CLEANING = tuple(field.name for field in dataclasses.fields(Rules))


def read(path: PathLike, **options: Any) -> Rankings | Preferences:
    """Read rankings or preferences: a PrefLib file, a table, or ballots in one of the usual formats.

    Parameters
    ----------
    path : path
        ``.soc .soi .toc .toi .cat`` (:func:`permix.read_preflib`); tables ``.csv .tsv .tab .xlsx .parquet
        .jsonl`` (:func:`permix.read_table`); ``.abif .blt .cvotes``; ``.gz`` may follow. Or a file, folder or
        zip of ballots (:func:`permix.read_ballots`), whose marks :func:`permix.clean` turns into rankings.
        Files with other endings are told by what is in them.
    **options
        Passed on. For all: the rules of :func:`permix.clean`. PrefLib files and tables: ``unlisted`` (left
        out, "unknown" for ratings and "below" for all else). PrefLib files: ``strict``, ``categories``.
        Tables: ``layout``, ``items``, ``agent_column``, ``count_column``, ``on_cycle``, ``ignore``,
        ``delimiter``, ``header``, ``ties``, ``missing``, ``sheet``, ``rename``,
        ``transpose``. Ballots: ``contest``, ``sheet``, and of a
        table with a column for each rank ``agent_column``, ``count_column``, ``ignore``. Tables and ballots:
        ``group_columns``, columns that say something of the agents, such as precinct or age, which become
        ``covariates``. For all: ``item_table``, the path of a table of attributes of items (party, color, …)
        by name. Polis conversations: ``moderated``, whether statements that moderators rejected stay ("keep",
        as where it is left out) or not ("drop").
    """
    item_table = options.pop("item_table", None)
    votes = _read(path, options)
    _warn_of_marks(path, votes)
    if item_table is None:
        return votes
    known = attributes_from(item_table, votes.items, votes.item_attributes)
    return votes._replaced(item_attributes=known)


def _read(path: PathLike, options: dict[str, Any]) -> Rankings | Preferences:
    rules = {name: options.pop(name) for name in CLEANING if name in options}
    ballots = recognize_ballots(path, options)
    if ballots is not None:
        named = [name for name in COLUMNS if ballots.takes_columns and options.get(name) is not False]
        known = ("contest", "sheet", "group_columns", *named)
        _refuse_options(path, [name for name in options if name not in known], "ballots")
        marked = ballots.read(options.get("contest")).keeping(options.get("group_columns", ()))
        return clean(marked, **rules)
    if Path(path).is_dir():
        raise IsADirectoryError(
            f"{path} is a folder, not a file, and no ballots of Dominion or Hart lie in it"
        )
    check_file(path)
    said = _says_layout(options) or any(options.get(name) for name in ("agent_column", "count_column"))
    conversation = None if said else _polis(path, options)
    if conversation is not None:
        return clean(conversation, **rules) if rules else conversation
    kind = kind_of(path).name
    reader = READERS[kind]
    readers = [reader, tables.from_frame] if kind == "table" else [reader]
    taken = {name for taking in readers for name in inspect.signature(taking).parameters}
    _refuse_options(path, [name for name in options if name not in taken], kind)
    if kind == "table" and {"skipped", "repeats"} & set(rules):
        return clean(tables.read_marked(path, **options), **rules)
    found: Rankings | Preferences = reader(path, **options)
    if rules:
        return clean(found, **rules)
    _warn_of_names_alike(path, found)
    return found


def _polis(path: PathLike, options: Mapping[str, Any]) -> Preferences | None:
    """Read the votes of a Polis conversation; None where a file holds something else."""
    first = Source(path).head.partition(b"\n")[0]
    if b"comment-id" not in first and b"participant" not in first:  # most files: without loading matrices
        return None
    from permix.data.io.polis import is_polis, read_polis_votes

    if b"comment-body" in first and b"voter-id" not in first:
        raise DataError(
            f"{path}: the statements of a Polis conversation, and no votes; read votes.csv or "
            "participants-votes.csv, which lie beside it: they take the texts from here"
        )
    if is_polis(path) is None:
        return None
    known = ("group_columns", "ignore", "moderated")
    _refuse_options(path, [name for name in options if name not in known], "polis")
    beside, left_out = list(options.get("group_columns", ())), list(_names(options.get("ignore")))
    return read_polis_votes(path, beside, left_out, moderated=options.get("moderated"))


def _warn_of_names_alike(path: PathLike, found: Rankings | Preferences) -> None:
    """Say which names may be of one item; where rules are given, the audit says so."""
    alike = names_alike([name for name in found.items if isinstance(name, str)])
    if alike:
        said = f"{path}: {some_names(alike[0])} look alike, and are {len(alike[0])} items"
        more = f" ({len(alike) - 1} more such names)" if len(alike) > 1 else ""
        warnings.warn(
            PermixWarning(f"{said}{more}; ", Argument("names", "merge"), " joins them"), stacklevel=4
        )


def _warn_of_marks(path: PathLike, found: Rankings | Preferences) -> None:
    """Say which items are called as if they were none: a file may list ``Abstain`` among its candidates."""
    marks = [name for name in found.items if isinstance(name, str) and is_mark(name)]
    if marks:
        said = f"{path}: {some_names(marks)} {'is an item' if len(marks) == 1 else 'are items'} here"
        warnings.warn(
            f"{said}, like any other, and may win; take it out of the file if it says that a voter chose "
            "nobody or that a ballot does not count",
            PermixWarning,
            stacklevel=3,
        )


READERS: Mapping[str, Callable[..., Any]] = {
    "preflib": preflib.read_preflib,
    "table": tables.read_table,
    "abif": read_abif,
    "blt": read_blt,
    "condorcet": read_condorcet,
    "orders": read_order_file,
}


PROFILE_WRITERS = {"abif": write_abif, "blt": write_blt}


def _says_layout(options: Mapping[str, Any]) -> bool:
    """Whether the caller has said how a table is to be read."""
    return (
        any(options.get(name) for name in ("delimiter", "items", "item_columns", "rename", "transpose"))
        or options.get("layout", "auto") != "auto"
        or options.get("header") is not None
    )


def recognize_ballots(path: PathLike, options: Mapping[str, Any]) -> Recognized | None:
    """Return the format of ballots that a file has, unless the caller says how a table is to be read.

    PrefLib's files are told by their ending.
    """
    from permix.data.io.ballots.formats import recognize

    if _says_layout(options) or plain_suffix(path) in (*PREFLIB, *PROFILES):
        return None
    said = Said(
        _names(options.get("ignore")),
        _names(options.get("group_columns")),
        options.get("count_column") or None,  # False: there is none
        options.get("agent_column") or None,
    )
    return recognize(path, options.get("sheet"), said)


def _names(said: Any) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(map(str, said or ()))


def write(obj: Rankings | Preferences, path: PathLike, **options: Any) -> None:
    """Write rankings or preferences; the ending says how: PrefLib, ABIF, BLT, CSV, TSV or Parquet.

    ``layout`` is passed on to :func:`permix.write_table`.
    """
    ending = plain_suffix(path)
    if ending in WRITTEN_TABLES:
        tables.write_table(obj, path, **options)
    elif ending in (*PREFLIB, *PROFILE_WRITERS):
        _refuse_options(path, list(options), ending if ending in PROFILE_WRITERS else "preflib")
        PROFILE_WRITERS.get(ending, preflib.write_preflib)(obj, path)
    else:
        endings = ", ".join(f".{suffix}" for suffix in (*PREFLIB, *PROFILE_WRITERS, *WRITTEN_TABLES))
        raise DataError(
            f"{path}: the ending says how to write, and this one says nothing; known endings are {endings}"
        )


_KINDS = {
    "preflib": "a PrefLib file",
    "table": "a table",
    "ballots": "a file of ballots",
    "abif": "an ABIF file",
    "blt": "a BLT file",
    "condorcet": "a file in the Condorcet election format",
    "polis": "a Polis conversation",
    "orders": "a file of item numbers",
}


def _known_options() -> set[str]:
    """Return all that some reader takes, other than paths."""
    readers = (*READERS.values(), tables.from_frame)
    taken = {name for reader in readers for name in inspect.signature(reader).parameters}
    return taken - {"path", "frame", "options"} | {"contest", "sheet", "item_table", "moderated", *CLEANING}


def _refuse_options(path: PathLike, unknown: list[str], kind: str) -> None:
    """Refuse options of other kinds of files."""
    known = _known_options()
    for name in unknown:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), 1)
            said = f"; there is {close[0]!r}" if close else f"; there are {', '.join(sorted(known))}"
            raise DataError(f"there is no option {name!r}{said}")
    for name in unknown:
        takes = ("polis",) if name == "moderated" else ("preflib", "table", "ballots")
        others = " or ".join(_KINDS[other] for other in takes if other != kind)
        with about_parameters():
            said = f" says nothing about {_KINDS[kind]}, as {path} is, but about {others}"
            raise DataError(Argument(name), said)
