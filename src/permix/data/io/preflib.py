"""PrefLib files: ``.soc .soi .toc .toi .cat``, plain or gzipped.

The format of 2022 on is a header of ``# KEY: value`` lines and one line ``count: order`` per
distinct order, alternatives numbered from 1, ties in braces. The format before 2022 (a number
of alternatives, ``1,Name`` lines, one line of totals, ``count,order`` lines) is read as well.

What becomes what: strict orders (soc, soi) are :class:`~permix.data.Rankings`; orders with ties
(toc, toi) and categories (cat) are :class:`~permix.data.Preferences` by levels. Header entries
go to ``metadata`` in file order; the header lines themselves are kept under ``"HEADER"``, and a
line is written back as it was unless its value has changed. The order of items within braces means
nothing; where a file does not write them in ascending order, ``"SPELLING"`` remembers how it did.

Which category of a ``.cat`` file is best is read from the names of the categories, or asked for
(:mod:`permix.data.io.categories`); ``metadata["CATEGORY ORDER"]`` has their 0-based places in the file, best
first. Levels cannot be empty, categories can: rows of ``.cat`` files have their place in the file, from 1,
as agent id, and ``metadata["EMPTY CATEGORIES"]`` maps such an id (as text) to the 0-based places of the
categories that were left empty. Alternatives and categories may be numbered from 0, as in files of Polis.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from itertools import chain, takewhile
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from permix.data.ballots import no_votes
from permix.data.csr import indptr_of
from permix.data.io.categories import category_order
from permix.data.io.preflib_writer import UNIQUE_KEYS, UNLISTED, groups_text
from permix.data.io.preflib_writer import write_preflib as write_preflib
from permix.data.io.text_files import PREFLIB, PathLike, plain_suffix, read_text, shorten
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings, padded
from permix.errors import (
    Argument,
    DataError,
    FileFormatError,
    Message,
    ParameterError,
    PermixWarning,
)

_NUMBER = re.compile(r"[0-9]{1,15}")  # fits 64 bits, also when many are added up
_ENTRY = re.compile(r"\{([^{}]*)\}|([^{},]+)")
_ROW = re.compile(r"(?:\{[^{}]*\}|[^{},]+)(?:,(?:\{[^{}]*\}|[^{},]+))*")
Unlisted = Literal["below", "unknown"]


class Body(NamedTuple):
    """The lines after the header: one row per distinct order."""

    counts: list[int]
    rows: list[list[list[int]]]  # row -> groups, best first -> 0-based alternatives
    lines: list[int]  # 1-based line numbers


def read_preflib(
    path: PathLike,
    unlisted: Unlisted | None = None,
    strict: bool = True,
    categories: Literal["best-first", "worst-first"] | Iterable[str] | None = None,
) -> Rankings | Preferences:
    """Read a PrefLib file.

    Parameters
    ----------
    path : path
        A ``.soc``, ``.soi``, ``.toc``, ``.toi`` or ``.cat`` file, plain or gzipped.
    unlisted : {"below", "unknown"}
        What the alternatives missing from an incomplete order (soi, toi) mean: ranked below the
        listed ones, or not asked about. Left out, what the header says (``# UNLISTED: unknown``, as permix
        writes it), and "below" where it is silent. Alternatives in no category (cat) are always unknown.
    strict : bool
        Whether numbers in the header that disagree with the body are an error or a warning.
    categories : {"best-first", "worst-first"} or list of str, optional
        The order of the categories in a ``.cat`` file, or all their names, best first. Left out, what their
        names say (Yes, No, Approved, 4 stars, …); an error asks where they say nothing, and a warning tells
        where they are taken in another order than that of the file.

    Returns
    -------
    Rankings or Preferences
        Rows, multiplicities and alternatives in file order; the header is in ``metadata``.

    Raises
    ------
    FileFormatError
        With file, line number, the line's text and the reason.

    Examples
    --------
    >>> votes = permix.read_preflib("00001-00000002.soi.gz")  # doctest: +SKIP
    >>> votes.n_agents, votes.n_items  # doctest: +SKIP
    (29988, 9)
    """
    if unlisted not in (None, "below", "unknown"):
        raise ParameterError("unlisted", unlisted, "'below' or 'unknown'")
    reader = _Reader(path, strict)
    reader.read_header()
    unlisted = unlisted or reader.unlisted()
    body = reader.read_body()
    reader.check_totals(body)
    if categories is not None and reader.kind != "cat":
        said = f" is for .cat files, and this one is .{reader.kind}"
        raise DataError(f"{path}: ", Argument("categories"), said)
    return reader.build(body, unlisted, categories)


class _Reader:
    """One pass over one file; holds what every error message needs."""

    def __init__(self, path: PathLike, strict: bool) -> None:
        self.path = path
        self.strict = strict
        # Names may hold other characters at which str.splitlines splits.
        self.lines = [line.removesuffix("\r") for line in read_text(path).removesuffix("\n").split("\n")]
        self.header: dict[str, str] = {}
        self.header_lines: list[str] = []
        self.names: list[str] = []
        self.kind = ""
        self.separator = ":"
        self.body_start = 0
        self.first_number = 1
        self.spelling: dict[str, str] = {}
        self.n_idle = 0  # rows with a count of 0

    def fail(self, line: int, reason: str) -> NoReturn:
        text = shorten(self.lines[line - 1]) if 0 < line <= len(self.lines) else ""
        raise FileFormatError(f"{self.path}, line {line}: {reason}: {text!r}", self.path, line)

    def doubt(self, message: str) -> None:
        """An error, unless the caller said ``strict=False``."""
        if self.strict:
            way_out = ("; correct the file, or read it all the same with ", Argument("strict", False))
            raise FileFormatError(Message(f"{self.path}: {message}", *way_out), self.path)
        warnings.warn(f"{self.path}: {message}", PermixWarning, stacklevel=4)

    # -- header ------------------------------------------------------------------------------

    def read_header(self) -> None:
        if _NUMBER.fullmatch(self.lines[0].strip()):
            self._read_old_header()
        elif self.lines[0].startswith("#"):
            self._read_header()
        else:
            self.fail(1, "no PrefLib header ('# FILE NAME: ...' lines) at the top of the file")
        self.kind = self._kind()
        for first, name in enumerate(self.names):
            if name in self.names[:first]:
                again = self.names.index(name) + 1
                self.doubt(f"alternatives {again} and {first + 1} have the same name {name!r}")
                self.names[first] = f"{name} ({first + 1})"

    def _read_header(self) -> None:
        self.header_lines = list(takewhile(lambda line: line.startswith("#"), self.lines))
        self.body_start = len(self.header_lines)
        for line in self.header_lines:
            key, colon, value = line[1:].partition(":")
            if colon:
                self.header[key.strip()] = value.strip()
        numbered = self._numbered("ALTERNATIVE NAME ")
        if not numbered:
            raise FileFormatError(f"{self.path}: the header has no 'ALTERNATIVE NAME' line", self.path)
        self.first_number = 0 if "0" in numbered else 1
        expected = [str(number + self.first_number) for number in range(len(numbered))]
        if sorted(numbered) != sorted(expected):
            missing = next(number for number in expected if number not in numbered)
            raise FileFormatError(
                f"{self.path}: {len(numbered)} 'ALTERNATIVE NAME' lines, but none is number {missing}",
                self.path,
            )
        self.names = [numbered[number] for number in expected]
        stated = self._number("NUMBER ALTERNATIVES")
        if stated is not None and stated != len(self.names):
            self.doubt(f"header says NUMBER ALTERNATIVES: {stated}, but {len(self.names)} are named")

    def _numbered(self, what: str) -> dict[str, str]:
        """Names of alternatives or categories by number, as text."""
        return {k.removeprefix(what): name for k, name in self.header.items() if k.startswith(what)}

    def _read_old_header(self) -> None:
        n = int(self.lines[0])
        if len(self.lines) < n + 2:
            self.fail(len(self.lines), f"the file ends within its header of {n} alternatives")
        for number in range(1, n + 1):
            index, comma, name = self.lines[number].partition(",")
            if not comma or index.strip() != str(number):
                self.fail(number + 1, f"expected '{number},NAME' (PrefLib format before 2022)")
            self.names.append(name.strip())
        totals = self.lines[n + 1].split(",")
        if len(totals) != 3 or not all(_NUMBER.fullmatch(entry.strip()) for entry in totals):
            self.fail(n + 2, "expected 'voters,sum of counts,unique orders' (PrefLib format before 2022)")
        self.header = {"NUMBER ALTERNATIVES": str(n), "NUMBER VOTERS": totals[0].strip()}
        self.header["NUMBER UNIQUE ORDERS"] = totals[2].strip()
        self.separator = ","
        self.body_start = n + 2

    def _kind(self) -> str:
        ending, stated = plain_suffix(self.path), self.header.get("DATA TYPE", "").lower()
        if ending in PREFLIB and stated not in ("", ending):
            self.doubt(f"the file ends in .{ending}, but the header says DATA TYPE: {stated}")
        for kind in (stated, ending):
            if kind in PREFLIB:
                return kind
        endings = ", ".join(f".{suffix}" for suffix in PREFLIB)
        raise FileFormatError(
            f"{self.path}: neither the ending nor DATA TYPE names a kind of file that is read ({endings})",
            self.path,
        )

    def unlisted(self) -> Unlisted:
        """Return what the header says about alternatives that are not listed; it is silent in most files."""
        said = self.header.get(UNLISTED, "below").lower()
        if said not in ("below", "unknown"):
            self.doubt(f"header says {UNLISTED}: {said}, which is neither 'below' nor 'unknown'")
        return "unknown" if said == "unknown" else "below"

    def _number(self, key: str) -> int | None:
        if key not in self.header:
            return None
        if not _NUMBER.fullmatch(self.header[key]):
            line = next(i for i, text in enumerate(self.header_lines, 1) if text[1:].strip().startswith(key))
            self.fail(line, f"{key} is not a number")
        return int(self.header[key])

    # -- body --------------------------------------------------------------------------------

    def read_body(self) -> Body:
        index = {str(number + self.first_number): number for number in range(len(self.names))}
        body = Body([], [], [])
        for number, line in enumerate(self.lines[self.body_start :], start=self.body_start + 1):
            if not line.strip():
                continue
            left, separator, right = line.partition(self.separator)
            if not separator or not _NUMBER.fullmatch(left.strip()):
                self.fail(number, f"the line does not start with a count of voters and '{self.separator}'")
            text = right.replace(" ", "").replace("\t", "")
            if "{" in text or "}" in text:
                if self.kind in ("soc", "soi"):
                    ties = f"ties (braces) in a .{self.kind} file; the ending should be .toc or .toi"
                    self.fail(number, ties)
                if not _ROW.fullmatch(text):
                    self.fail(number, _brace_trouble(text))
                tokens = [
                    [token for token in braced.split(",") if token] if single == "" else [single]
                    for braced, single in _ENTRY.findall(text)
                ]
            else:
                tokens = [[token] for token in text.split(",")] if text else []
            try:
                groups = [sorted([index[token] for token in group]) for group in tokens]
            except KeyError as error:
                token, last = error.args[0], len(index) - 1 + self.first_number
                what = f"alternative {token!r} is not one of {self.first_number}..{last}"
                self.fail(number, what if token else "an entry is empty")
            self._check_row(number, groups)
            if int(left) == 0:
                self.n_idle += 1
                continue
            if self.first_number == 1 and "{" in text and text != (canonical := groups_text(groups)):
                self.spelling[canonical] = text
            body.counts.append(int(left))
            body.rows.append(groups)
            body.lines.append(number)
        if not body.rows and self.n_idle:
            raise FileFormatError(f"{self.path}: all counts are 0", self.path)
        if not body.rows:
            raise FileFormatError(f"{self.path}: a header, but no orders after it", self.path)
        return body

    def _check_row(self, number: int, groups: list[list[int]]) -> None:
        items = list(chain.from_iterable(groups))
        if not items:
            self.fail(number, "no alternative is listed")
        if len(set(items)) < len(items):
            twice = next(item for item in items if items.count(item) > 1)
            self.fail(number, f"alternative {twice + 1} ({self.names[twice]!r}) is listed twice")
        if self.kind in ("soc", "toc") and len(items) < len(self.names):
            missing = next(item for item in range(len(self.names)) if item not in items)
            self.fail(
                number,
                f"{len(items)} of {len(self.names)} alternatives in a complete order (.{self.kind}), "
                f"{missing + 1} ({self.names[missing]!r}) is missing; the ending should be "
                f".{self.kind[:2]}i",
            )
        if self.kind != "cat" and any(not group for group in groups):
            self.fail(number, "empty braces")

    def check_totals(self, body: Body) -> None:
        found = {"NUMBER VOTERS": sum(body.counts)}
        found |= {key: len(body.rows) for key in UNIQUE_KEYS}
        for key, value in found.items():
            stated = self._number(key)
            idle = self.n_idle if key in UNIQUE_KEYS else 0
            if stated is not None and stated not in (value, value + idle):
                self.doubt(f"header says {key}: {stated}, but the body has {value}")
        n_categories = self._number("NUMBER CATEGORIES")
        for groups, line in zip(body.rows, body.lines, strict=True):
            if n_categories is not None and len(groups) != n_categories:
                self.fail(line, f"{len(groups)} categories where NUMBER CATEGORIES is {n_categories}")

    # -- result ------------------------------------------------------------------------------

    def _categories(self, body: Body, said: Any) -> tuple[int, ...]:
        """Read the names of the categories, numbered from 1 from here on, and return their order."""
        numbered = self._numbered("CATEGORY NAME ")
        first = 0 if "0" in numbered else 1
        n = max(map(len, body.rows))
        names = [numbered.get(str(place + first), f"Category {place + 1}") for place in range(n)]
        if first == 0:
            kept = {k: v for k, v in self.header.items() if not k.startswith("CATEGORY NAME ")}
            self.header = kept | {f"CATEGORY NAME {place + 1}": name for place, name in enumerate(names)}
        order = category_order(names, said, self.path)
        if said is None and list(order) != sorted(order):
            shown = ", ".join(repr(names[place]) for place in order)
            said = f"{self.path}: the categories are taken best first as {shown}, as their names say; "
            way_out = (Argument("categories", "best-first"), " keeps the order of the file")
            warnings.warn(PermixWarning(said, *way_out), stacklevel=4)
        return order

    def build(self, body: Body, unlisted: Unlisted, said: Any = None) -> Rankings | Preferences:
        order = self._categories(body, said) if self.kind == "cat" else ()
        metadata: dict[str, Any] = {**self.header, "HEADER": self.header_lines}
        metadata.pop("CLEANING", None)  # a header may have such a line
        metadata.pop(UNLISTED, None)  # said of each row
        if self.n_idle:
            left_out = no_votes(self.n_idle)
            metadata["CLEANING"] = [left_out._asdict()]
        if self.spelling:
            metadata["SPELLING"] = self.spelling
        if order:
            metadata["CATEGORY ORDER"] = list(order)
            metadata["EMPTY CATEGORIES"] = {
                str(row): [place for place, group in enumerate(groups) if not group]
                for row, groups in enumerate(body.rows, start=1)
                if not all(groups)
            }
            ordered = [[groups[place] for place in order if place < len(groups)] for groups in body.rows]
            body = body._replace(rows=ordered)
        counts = np.array(body.counts, dtype=np.int64)
        lengths = np.array([sum(map(len, groups)) for groups in body.rows], dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(chain.from_iterable(body.rows)), np.int32, int(lengths.sum()))
        below = np.full(len(counts), unlisted == "below" and self.kind != "cat")
        if self.kind in ("soc", "soi"):
            return Rankings._from_arrays(
                padded(flat, lengths), self.names, counts, unlisted_below=below, metadata=metadata
            )
        levels = [
            level for groups in body.rows for level, group in enumerate(filter(None, groups)) for _ in group
        ]
        return Preferences._from_arrays(
            items=self.names,
            agents=np.arange(1, len(counts) + 1) if self.kind == "cat" else None,
            counts=counts,
            metadata=metadata,
            level_indptr=indptr_of(lengths),
            level_items=flat,
            levels=np.array(levels),
            rest_below=below,
        )


def _brace_trouble(text: str) -> str:
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return "a closing brace without an opening one"
        if depth > 1:
            return "braces within braces"
    return "an opening brace is never closed" if depth else "an entry is empty"
