"""The Condorcet election format (``.cvotes``): a line ``A > B = C ^2 * 42`` for 42 ballots of weight 2.

A count may stand before the ranking instead, as CIVS has it: ``42X A > B``, or after it: ``A > B 42X``.
``#/Candidates: A ; B ; C`` and other parameters come first, ``#`` begins a comment, tags stand before ``||``.
Candidates that a line does not list are below those it lists, unless ``#/Implicit Ranking: false``.
"""

from __future__ import annotations

import re
from typing import Any

from permix.data.io.profiles.rows import as_votes, empty_and_idle
from permix.data.io.text_files import PathLike, read_text, shorten
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, FileFormatError

TITLE = "Condorcet election format"
_PARAMETER = re.compile(r"#/([^:]+):(.*)")
_VOTE = re.compile(
    r"(?:[^|]*\|\|)?\s*+(?:(?P<copies>[0-9]{1,9})\s*[xX]\s++)?(?P<ranking>[^*^|]*)"
    r"(?:\^\s*(?P<weight>[0-9]{1,9})\s*)?(?:\*\s*(?P<times>[0-9]{1,9})\s*)?"
)
# A count after the ranking, or the end of a name such as ``Model 3X``.
_AFTER = re.compile(r"(?P<ranking>.*\S)\s+(?P<after>[0-9]{1,9})\s*[xX×]")
EMPTY = "/EMPTY_RANKING/"


def looks_like(head: str) -> bool:
    """Whether a text, or its beginning, has such parameters, or rankings with a quantity at their ends."""
    lines = [line.strip() for line in head.replace("\r", "").split("\n") if line.strip()][:50]
    votes = [line for line in lines if not line.startswith("#")][:-1] or [x for x in lines if x[:1] != "#"]
    if not votes or not all(_VOTE.fullmatch(line.partition("#")[0]) for line in votes):
        return False
    parameters = any(
        re.match(r"#/\s*(candidates|number of seats|implicit ranking|weight allowed)\s*:", line, re.I)
        for line in lines
    )
    counted = any(re.match(r"[^>]*+>.*[*^]\s*[0-9]+\s*(?:#.*)?\Z|[0-9]+\s*[xX]\s.*>", line) for line in votes)
    counted = counted or all(_AFTER.fullmatch(line.partition("#")[0].strip()) for line in votes)
    return parameters or counted


def read_condorcet(path: PathLike, unlisted: str | None = None) -> Rankings | Preferences:
    """Read such a file; ``unlisted`` is "below" or "unknown", left out what the file says."""
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    parameters: dict[str, str] = {}
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(
        read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1
    ):
        text = line.strip()
        found = _PARAMETER.fullmatch(text)
        if found is not None:
            parameters[found[1].strip().lower()] = found[2].strip()
        elif bare := text.partition("#")[0].strip():
            lines.append((number, bare))
    items = {name.strip(): None for name in parameters.get("candidates", "").split(";") if name.strip()}
    told = bool(items)
    weighted = parameters.get("weight allowed", "true").lower() != "false"
    rows, counts, blank, idle = [], [], 0, 0
    after = _counts_after(path, lines, items)
    for (number, line), times in zip(lines, after, strict=True):
        text = line if times is None else times["ranking"]
        found = _VOTE.fullmatch(text)
        if found is None:
            raise _fail(
                path, number, "a vote is 'A > B = C', with ^ and a weight or * and a quantity after it", text
            )
        count = int(found["copies"] or 1) * int(found["times"] or 1)
        count *= int(found["weight"] or 1) if weighted else 1
        count *= 1 if times is None else int(times["after"])
        ranking = found["ranking"].strip()
        groups = (
            []
            if ranking in ("", EMPTY)
            else [[name.strip() for name in group.split("=")] for group in ranking.split(">")]
        )
        listed = [name for group in groups for name in group]
        if not all(listed):
            raise _fail(path, number, "a candidate is missing", text)
        if len(set(listed)) < len(listed):
            raise _fail(path, number, "a candidate is listed twice", text)
        strange = [name for name in listed if name not in items]
        if told and strange:
            raise _fail(path, number, f"{strange[0]!r} is none of the candidates", text)
        items |= dict.fromkeys(listed)
        if not listed:
            blank += count
        elif count == 0:
            idle += 1
        else:
            rows.append(groups)
            counts.append(count)
    if not rows:
        raise FileFormatError(f"{path}: no line has a vote", path)
    implicit = parameters.get("implicit ranking", "true").lower() != "false"
    below = implicit if unlisted is None else unlisted == "below"
    metadata: dict[str, Any] = {"FORMAT": TITLE}
    return as_votes(rows, counts, list(items), metadata, empty_and_idle(blank, idle), below)


def _counts_after(
    path: PathLike, lines: list[tuple[int, str]], items: dict[str, None]
) -> list[re.Match[str] | None]:
    """Return the counts that stand after the rankings; all lines have one, or none has."""
    names = [re.split("[>=]", text) for _, text in lines]
    found = [
        None if last.strip() in items else _AFTER.fullmatch(text)
        for (_, text), (*_, last) in zip(lines, names, strict=True)
    ]
    within = any(_AFTER.fullmatch(name.strip()) for *earlier, _ in names for name in earlier)
    if any(found) and (within or not all(found)):
        number, text = next(line for line, after in zip(lines, found, strict=True) if after)
        why = "the end could be a count or part of a name; write '* 3' after each ranking, or rename"
        raise _fail(path, number, why, text)
    return found


def _fail(path: PathLike, line: int, why: str, text: str) -> FileFormatError:
    return FileFormatError(f"{path}, line {line}: {why}: {shorten(text)!r}", path, line)
