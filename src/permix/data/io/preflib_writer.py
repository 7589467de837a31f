"""Writing PrefLib files: rows, and a header made up or kept from the file they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from permix.data.agent_table import refuse_to_write, row_name
from permix.data.io.text_files import PREFLIB, PathLike, plain_suffix, write_text
from permix.data.io.written_names import refuse_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, Wording
from permix.kernels.pairwise_counts import PreferenceArrays

# A line of the header that PrefLib does not know, and passes over: what it means that an alternative is not
# listed. Without it, those that are not listed are below the others.
UNLISTED = "UNLISTED"
UNIQUE_KEYS = ("NUMBER UNIQUE ORDERS", "NUMBER UNIQUE PREFERENCES")
_ABOUT = {
    **dict.fromkeys(("FILE NAME", "TITLE", "DESCRIPTION", "DATA TYPE"), ""),
    "MODIFICATION TYPE": "original",
    **dict.fromkeys(("RELATES TO", "RELATED FILES", "PUBLICATION DATE", "MODIFICATION DATE"), ""),
}


def write_preflib(obj: Rankings | Preferences, path: PathLike) -> None:
    """Write rankings or tied preferences as a PrefLib file.

    Parameters
    ----------
    obj : Rankings or Preferences
        Rows that say the same are merged into one line with their counts added up. Agent ids
        have no place in the format.
    path : path
        The ending says the kind: ``.soc`` strict and complete, ``.soi`` strict, ``.toc`` complete
        with ties, ``.toi`` ties, ``.cat`` categories; ``.gz`` after it compresses. Where unlisted
        alternatives are unknown, the header says so (``# UNLISTED: unknown``), and
        :func:`permix.read_preflib` goes by it; other programs may not know this line.

    Raises
    ------
    DataError
        When the data do not fit the kind of file (the message says which ending would), or an item name
        would not come back as it is: one that spans lines, begins or ends with blanks.

    Examples
    --------
    >>> votes = permix.Rankings.from_orders([["b", "a", "c"], ["a", "b", "c"]])  # doctest: +SKIP
    >>> permix.write_preflib(votes, "votes.soc")  # doctest: +SKIP
    """
    refuse_to_write(obj)
    refuse_names(obj.items, "item")
    kind = plain_suffix(path)
    if kind not in PREFLIB:
        endings = ", ".join(f".{suffix}" for suffix in PREFLIB)
        raise DataError(f"{path}: a PrefLib file ends in one of {endings} (and .gz)")
    n_categories = _category_count(obj) if kind == "cat" else 0
    tally: dict[str, int] = {}
    for row, groups in enumerate(_groups(obj, kind)):
        text = _row_text(obj, row, groups, kind, n_categories)
        tally[text] = tally.get(text, 0) + int(obj.counts[row])
    unknown = kind in ("soi", "toi") and not obj.arrays().rest_below.all()  # True in full rows
    header = _header(obj, Path(path).name.removesuffix(".gz"), kind, tally, n_categories, unknown)
    lines = chain(header, (f"{count}: {text}" for text, count in tally.items()))
    write_text(path, "\n".join(lines) + "\n")


def groups_text(groups: list[list[int]]) -> str:
    """Groups of 0-based alternatives as the files write them."""
    return ",".join(
        str(group[0] + 1) if len(group) == 1 else "{" + ",".join(str(item + 1) for item in group) + "}"
        for group in groups
    )


def _groups(obj: Rankings | Preferences, kind: str) -> Iterator[list[list[int]]]:
    """Yield each row's groups of 0-based alternatives, best first."""
    stated = obj.arrays()
    if len(stated.pairs):
        way_out = ("permix.write_table(obj, path, layout='pairs')", "a .csv file with --to-layout pairs")
        said = "pairwise statements have no place in a PrefLib file; "
        raise DataError(said, Wording(*way_out), " keeps them")
    below, short = stated.rest_below, np.diff(stated.level_indptr) < obj.n_items
    if kind in ("soi", "toi") and np.any(short & ~below) and np.any(short & below):
        raise DataError(
            "some rows are top lists and some are rankings of a subset; a PrefLib file cannot say "
            "which is which: write the two kinds of row to two files"
        )
    for row, groups in enumerate(level_groups(stated)):
        if kind in ("toc", "cat") and short[row] and below[row]:
            listed = set(chain.from_iterable(groups))
            groups.append([item for item in range(obj.n_items) if item not in listed])
        yield groups


def level_groups(stated: Preferences | PreferenceArrays) -> Iterator[list[list[int]]]:
    """Yield each row's levels as lists of item indices, best first."""
    items, levels = stated.level_items.tolist(), stated.levels.tolist()
    for start, end in pairwise(stated.level_indptr.tolist()):
        groups: list[list[int]] = [[] for _ in range(levels[end - 1] + 1 if end > start else 0)]
        for place in range(start, end):
            groups[levels[place]].append(items[place])
        yield groups


def _row_text(
    obj: Rankings | Preferences, row: int, groups: list[list[int]], kind: str, n_categories: int
) -> str:
    def where() -> str:  # only where something is wrong: the numbers of all agents may have to be made
        return row_name(row, obj.agents)

    n_listed = sum(map(len, groups))
    if n_listed == 0:
        raise DataError(f"{where()} states nothing that a PrefLib file could hold")
    tied = any(len(group) > 1 for group in groups)
    complete = n_listed == obj.n_items
    if (tied and kind[0] == "s") or (not complete and kind in ("soc", "toc")):
        trouble = "ties some items" if tied and kind[0] == "s" else f"lists {n_listed} of {obj.n_items} items"
        better = ("t" if tied or kind[0] == "t" else "s") + "o" + ("c" if complete else "i")
        raise DataError(f"{where()} {trouble}, which a .{kind} file cannot hold; use the ending .{better}")
    if kind == "cat":
        groups = _with_empty_categories(obj, row, groups, n_categories, where)
    text = groups_text(groups)
    return str(obj.metadata.get("SPELLING", {}).get(text, text))


def _with_empty_categories(
    obj: Rankings | Preferences,
    row: int,
    groups: list[list[int]],
    n_categories: int,
    where: Callable[[], str],
) -> list[list[int]]:
    order = obj.metadata.get("CATEGORY ORDER", range(n_categories))
    known = obj.metadata.get("EMPTY CATEGORIES", {})
    empty = () if len(groups) == n_categories else known.get(str(obj.agents[row]), ())
    if len(groups) + len(empty) != n_categories:
        raise DataError(
            f"{where()} has {len(groups)} levels for {n_categories} categories, and nothing says which are "
            "empty; use the ending .toc or .toi"
        )
    places = [place for place in order if place not in empty]
    filled = dict(zip(places, groups, strict=True))
    return [filled.get(place, []) for place in range(n_categories)]


def _category_count(obj: Rankings | Preferences) -> int:
    if "CATEGORY ORDER" in obj.metadata:
        return len(obj.metadata["CATEGORY ORDER"])
    if isinstance(obj, Rankings):
        raise DataError("rankings are not categories; use the ending .soc or .soi")
    with_rest = obj.rest_below & (np.diff(obj.level_indptr) < obj.n_items)
    return 1 + int(obj.levels.max(initial=0)) + int(with_rest.any())


def _header(
    obj: Rankings | Preferences,
    file_name: str,
    kind: str,
    tally: dict[str, int],
    n_categories: int,
    unknown: bool,
) -> list[str]:
    unique = "NUMBER UNIQUE PREFERENCES" if kind == "cat" else "NUMBER UNIQUE ORDERS"
    about = {"FILE NAME": file_name, "DATA TYPE": kind}
    if unknown:
        about[UNLISTED] = "unknown"
    totals = {
        "NUMBER ALTERNATIVES": str(obj.n_items),
        "NUMBER VOTERS": str(sum(tally.values())),
        unique: str(len(tally)),
    }
    if kind == "cat":
        totals["NUMBER CATEGORIES"] = str(n_categories)
        for number in range(1, n_categories + 1):
            key = f"CATEGORY NAME {number}"
            end = " (best)" if number == 1 else " (worst)" if number == n_categories else ""
            totals[key] = _one_line(obj.metadata.get(key, f"Category {number}{end}"))
    names = {f"ALTERNATIVE NAME {i}": str(name) for i, name in enumerate(obj.items, start=1)}
    fixed = (
        *("HEADER", "SPELLING", "EMPTY CATEGORIES", "CATEGORY ORDER", "ALTERNATIVE NAME ", "CATEGORY NAME "),
        *("NUMBER CATEGORIES", "LAYOUT", *UNIQUE_KEYS),
    )
    for key, value in obj.metadata.items():
        # What is no line of text, such as what rules did to ballots, has no place in a header.
        if (
            key not in about
            and key not in totals
            and not key.startswith(fixed)
            and isinstance(value, str | int)
        ):
            about[key] = _one_line(value)
    old = obj.metadata.get("HEADER", ())
    if set(totals | names) <= {_key(line) for line in old}:
        return _in_original_words(old, about, totals | names)
    return [f"# {key}: {value}" for key, value in (_ABOUT | about | totals | names).items()]


def _in_original_words(old: Sequence[str], about: dict[str, str], counted: dict[str, str]) -> list[str]:
    """Lines of the old header, as they were where their value still holds; new entries before the totals."""
    wanted = about | counted
    old_keys = [_key(line) for line in old]
    lines = []
    for line, key in zip(old, old_keys, strict=True):
        if key == "NUMBER ALTERNATIVES":
            lines += [f"# {new}: {value}" for new, value in about.items() if new not in old_keys]
        if ":" not in line or (key in wanted and _one_line(wanted[key]) == _one_line(line.partition(":")[2])):
            lines.append(line)
        elif key in wanted:
            lines.append(f"# {key}: {wanted[key]}")
    return lines


def _key(line: str) -> str:
    return line[1:].partition(":")[0].strip()


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
