"""ABIF, the aggregated ballot information format: a line ``27: A>B=C`` for 27 ballots that say the same.

Lines begin with ``#`` (comments), ``{`` (what is known of the election, JSON), ``=`` (``=SJ:[Steven Jensen]``
says who a short name stands for) or a count. Candidates are short names (letters, digits, ``_``), or names in
brackets or quotes. ``>`` is "above"; ``=`` and ``,`` are ties; ``/5`` after a candidate is a rating, which
orders candidates where commas separate them and must not contradict ``>`` where that does. Candidates that a
line does not list are below those it lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from permix.data.agent_table import refuse_to_write
from permix.data.ballots import Entry
from permix.data.io.preflib_writer import level_groups
from permix.data.io.profiles.rows import as_votes, empty_and_idle
from permix.data.io.text_files import PathLike, read_text, shorten, write_text
from permix.data.io.written_names import refuse_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, FileFormatError, Wording

TITLE = "ABIF (aggregated ballot information format)"
_TOKEN = re.compile(r'\s*(?:\[([^\[\]]*)\]|("(?:[^"\\]|\\.)*")|([^\W\d]\w*))\s*')
_RATING = re.compile(r"/\s*([-+]?[0-9]+(?:\.[0-9]+)?)\s*")
_BALLOTS = re.compile(r"\s*([0-9]{1,15})\s*[:*](.*)", re.DOTALL)
_EXTENDED = re.compile(r":\s*(\{.*\})\s*\Z")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Of lines without the blanks at their ends.
_LINE = re.compile(r"#.*|\{.*\}|=[^:]*:.*|[0-9]{1,15}\s*[:*](?!\s*[^\s\w\[\"]).*|ABIF\b.*")


def looks_like(head: str) -> bool:
    """Whether a text, or its beginning, is ABIF."""
    lines = [line for line in head.replace("\r", "").split("\n") if line.strip()]
    lines = lines[:-1] if len(lines) > 50 else lines  # the last may be cut
    ballots = [line for line in lines if _BALLOTS.match(line)]
    return (
        bool(ballots)
        and all(_LINE.fullmatch(line.strip()) for line in lines)
        and any(re.search(r"[^\W\d]", _ballot_text(line)) for line in ballots)
    )


def _ballot_text(line: str) -> str:
    found = _BALLOTS.match(line)
    return "" if found is None else found[2]


class _Choice(NamedTuple):
    name: str
    rating: float | None
    mark: str  # what stands before it: > = , or nothing


def read_abif(path: PathLike, unlisted: str | None = "below") -> Rankings | Preferences:
    """Read an ABIF file.

    Parameters
    ----------
    path : path
    unlisted : {"below", "unknown"}
        What it means for a candidate not to be listed on a line; None is "below".

    Returns
    -------
    Rankings, or Preferences where candidates are tied
        A row for each line, with its count; what ``{...}`` lines say is in ``metadata``.

    Examples
    --------
    >>> permix.read("tennessee.abif")  # doctest: +SKIP
    """
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    names: dict[str, str] = {}
    metadata: dict[str, Any] = {"FORMAT": TITLE}
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(read_text(path).replace("\r", "").split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("#") or re.fullmatch(r"ABIF(\s.*)?", text):
            continue
        if text.startswith("{"):
            metadata |= _about(path, number, text)
        elif text.startswith("="):
            token, name = _declared(path, number, text)
            if names.setdefault(token, name) != name:
                raise _fail(path, number, f"{token!r} stands for two candidates", text)
        elif _BALLOTS.fullmatch(text):
            lines.append((number, text))
        else:
            raise _fail(path, number, "neither a comment, metadata, a candidate nor 'count: ballot'", text)
    if len(set(names.values())) < len(names):
        raise FileFormatError(f"{path}: two short names stand for the same candidate", path)
    return _ballots(path, lines, names, metadata, unlisted != "unknown")


def _ballots(
    path: PathLike,
    lines: list[tuple[int, str]],
    names: dict[str, str],
    metadata: dict[str, Any],
    below: bool,
) -> Rankings | Preferences:
    items = dict.fromkeys(names.values())
    rows, counts, blank, idle, weighed = [], [], 0, 0, 0
    for number, text in lines:
        found = _BALLOTS.fullmatch(text)
        assert found is not None
        count, body = int(found[1]), _EXTENDED.sub("", found[2])
        weighed += body != found[2]
        choices = _choices(path, number, body, names)
        items |= dict.fromkeys(choice.name for choice in choices)
        if not choices:
            blank += count
        elif count == 0:
            idle += 1
        else:
            rows.append(_levels(path, number, choices, text))
            counts.append(count)
    if not rows:
        raise FileFormatError(f"{path}: no line has a ballot", path)
    audit = empty_and_idle(blank, idle)
    if weighed:
        audit.append(Entry("lines with more about the ballots", "that is not used", weighed))
    return as_votes(rows, counts, list(items), metadata, audit, below)


def _fail(path: PathLike, line: int, why: str, text: str) -> FileFormatError:
    return FileFormatError(f"{path}, line {line}: {why}: {shorten(text)!r}", path, line)


def _loads(text: str) -> Any:
    """Return an object of JSON, also one whose names have no quotes: ``{ballotcount: 0}``."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_BARE_KEY.sub(r'\1"\2"\3', text))


def _about(path: PathLike, number: int, text: str) -> dict[str, Any]:
    try:
        found = _loads(text)
    except (ValueError, RecursionError) as error:
        raise _fail(path, number, f"metadata that are no JSON ({error})", text) from error
    if not isinstance(found, dict):
        raise _fail(path, number, 'metadata are an object such as {"title": "Mayor"}', text)
    plain = {str(key).upper(): value for key, value in found.items() if isinstance(value, str | int | float)}
    return {key: value for key, value in plain.items() if key not in ("CLEANING", "FORMAT")}


def _declared(path: PathLike, number: int, text: str) -> tuple[str, str]:
    token = _TOKEN.match(text, 1)
    name = None if token is None else re.fullmatch(r":(.*)", text[token.end() :])
    if token is None or name is None:
        raise _fail(path, number, "a candidate is declared as =short:[Full name]", text)
    whole = _TOKEN.fullmatch(name[1])
    called = name[1].strip() if whole is None else _name(path, number, whole, text)
    if not called or (whole is None and re.search(r'[\[\]"]', called)):
        raise _fail(path, number, "a candidate is declared as =short:[Full name]", text)
    return _name(path, number, token, text), called


def _name(path: PathLike, number: int, token: re.Match[str], text: str) -> str:
    bracketed, quoted, bare = token.groups()
    if quoted is not None:
        try:
            bracketed = str(json.loads(quoted))
        except ValueError as error:
            raise _fail(path, number, f"a quoted name that cannot be read ({error})", text) from error
    name = (bare if bare is not None else bracketed or "").strip()
    if not name:
        raise _fail(path, number, "a candidate without a name", text)
    return name


def _choices(path: PathLike, number: int, body: str, names: dict[str, str]) -> list[_Choice]:
    """Candidates of a ballot, each with its rating and the mark before it."""
    text, at, mark = body.strip(), 0, ""
    choices: list[_Choice] = []
    while at < len(text) or mark:
        token = _TOKEN.match(text, at)
        if token is None:
            why = (
                "weights of candidates (A*3) are not read"
                if text[at : at + 1] == "*"
                else "a candidate is missing"
            )
            raise _fail(path, number, why, text)
        short = _name(path, number, token, text)
        rating = _RATING.match(text, token.end())
        at = token.end() if rating is None else rating.end()
        choices.append(_Choice(names.get(short, short), None if rating is None else float(rating[1]), mark))
        mark = text[at : at + 1]
        if mark and mark not in ">=,":
            said = (
                "weights of candidates (A*3) are not read" if mark == "*" else f"{mark!r} after a candidate"
            )
            raise _fail(path, number, f"{said}; names with blanks or marks stand in brackets", text)
        at += len(mark)
    if len({choice.name for choice in choices}) < len(choices):
        raise _fail(path, number, "a candidate is listed twice", text)
    return choices


def _levels(path: PathLike, number: int, choices: list[_Choice], text: str) -> list[list[str]]:
    """Groups of tied candidates, best first."""
    rated = [choice for choice in choices if choice.rating is not None]
    if rated and len(rated) < len(choices):
        silent = next(choice.name for choice in choices if choice.rating is None)
        raise _fail(path, number, f"{silent!r} has no rating, and others have one; give all or none", text)
    if rated and all(choice.mark in ("", ",") for choice in choices):
        by_rating: dict[float, list[str]] = {}
        for choice in choices:
            assert choice.rating is not None
            by_rating.setdefault(choice.rating, []).append(choice.name)
        return [by_rating[rating] for rating in sorted(by_rating, reverse=True)]
    levels: list[list[str]] = []
    for choice in choices:
        if choice.mark in ("", ">"):
            levels.append([])
        levels[-1].append(choice.name)
    if rated:
        ratings = {choice.name: choice.rating or 0.0 for choice in choices}
        for upper, lower in pairwise(levels):
            if min(ratings[name] for name in upper) < max(ratings[name] for name in lower):
                raise _fail(path, number, "the ratings contradict the order", text)
        for group in levels:
            if len({ratings[name] for name in group}) > 1:
                raise _fail(path, number, "candidates that are tied have different ratings", text)
    return levels


def write_abif(obj: Rankings | Preferences, path: PathLike) -> None:
    """Write rankings or tied preferences as ABIF; rows that say the same are one line.

    Names that are no plain words get a short name and are declared. Comparisons, and rankings whose other
    items are unknown, have no place in the format; neither have agent ids.
    """
    refuse_to_write(obj)
    refuse_names(obj.items, "item")
    stated = obj.arrays()
    if len(stated.pairs):
        way_out = ("permix.write_table(obj, path, layout='pairs')", "a .csv file with --to-layout pairs")
        raise DataError("pairwise statements have no place in ABIF; ", Wording(*way_out), " keeps them")
    if not stated.rest_below.all():
        raise DataError(
            "ABIF cannot say that unlisted items are unknown; write a table with ",
            Argument("layout", "ranks"),
        )
    shorts = _short_names([str(name) for name in obj.items])
    title = (obj.metadata or {}).get("TITLE")
    lines = [json.dumps({"title": str(title)}, ensure_ascii=False)] if title else []
    for name, short in zip(obj.items, shorts, strict=True):
        text = str(name)
        lines.append(
            f"={short}:{json.dumps(text, ensure_ascii=False) if set('[]') & set(text) else f'[{text}]'}"
        )
    tally: dict[str, int] = {}
    for groups, count in zip(level_groups(stated), obj.counts.tolist(), strict=True):
        text = ">".join("=".join(shorts[item] for item in group) for group in groups)
        if not text:
            raise DataError("a row states nothing, which ABIF cannot hold")
        tally[text] = tally.get(text, 0) + count
    lines += [f"{count}:{text}" for text, count in tally.items()]
    write_text(path, "\n".join(lines) + "\n")


def _short_names(names: Iterable[str]) -> list[str]:
    """Names that are plain words as they are, others numbered: c1, c2, …, past names that look so."""
    listed = list(names)
    taken = {name for name in listed if _BARE.fullmatch(name)}
    shorts, number = [], 0
    for name in listed:
        if name in taken:
            shorts.append(name)
            continue
        number += 1
        while f"c{number}" in taken:
            number += 1
        shorts.append(f"c{number}")
    return shorts
