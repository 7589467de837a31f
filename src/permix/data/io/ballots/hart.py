"""Hart Verity cast vote records: a folder or zip of XML files, one a sheet of a ballot.

A ranked option has a value such as ``0010``, a digit for each rank, 1 where the option is marked; an option
of a plain contest has the value 1. Of a plain contest, votes that were not used are counted (``Undervotes``),
and too many are told (``Overvoted``), which says how many a voter has.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from permix.data.ballots import Ballots
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source
from permix.errors import DataError

TITLE = "Hart Verity cast vote records"
WRITE_IN = "write-in"
_SPACE = "{http://tempuri.org/CVRDesign.xsd}"


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    files = _files(source)
    if not files:
        return None
    head = source.read(files[0])[:2000]
    return f"{len(files)} XML files of Verity's CVRDesign" if b"CVRDesign.xsd" in head else None


def contests(source: Source) -> dict[str, str]:
    """Return the names of the contests by id."""
    return {
        _text(contest, "Id"): _text(contest, "Name")
        for name in _files(source)
        for contest in source.xml(name).iter(f"{_SPACE}Contest")
    }


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest; sheets without the contest are not among them."""
    known: dict[str, str] = {}
    sheets: list[tuple[Element, Element]] = []
    for name in _files(source):
        sheet = source.xml(name)
        if sheet.tag != f"{_SPACE}Cvr":
            raise source.fail(name, "no sheet of a ballot as Verity writes it; take it out of the folder")
        for held in sheet.iter(f"{_SPACE}Contest"):
            known[_text(held, "Id")] = _text(held, "Name")
            sheets.append((sheet, held))
    chosen = chosen_contest(known, contest, source.path)
    rows, agents, precincts, n_choices = [], [], [], 0
    items: dict[str, bool] = {}  # whether each was written in
    write_in = False
    for sheet, held in sheets:
        if _text(held, "Id") != chosen:
            continue
        marked: list[list[str]] = []
        for option in held.iter(f"{_SPACE}Option"):
            name = _text(option, "Name")
            if not name:
                name = _text(option, "WriteInData/Text") or WRITE_IN
                write_in = write_in or name == WRITE_IN
            value = _text(option, "Value")
            if set(value) - {"0", "1"} or len(value) > 1000:
                raise DataError(
                    f"{source.path}: {name!r} of {known[chosen]!r} has the value {value!r}, no ranks"
                )
            items.setdefault(name, option.find(f"{_SPACE}WriteInData") is not None)
            for rank, digit in enumerate(value):
                if digit == "1":
                    marked.extend([] for _ in range(rank + 1 - len(marked)))
                    marked[rank].append(name)
        rows.append(marked)
        if held.find(f"{_SPACE}Overvoted") is None:
            unused = _text(held, "Undervotes") or "0"
            if not unused.isdecimal() or len(unused) > 6:
                raise DataError(f"{source.path}: {unused!r} undervotes of {known[chosen]!r} are no number")
            n_choices = max(n_choices, sum(map(len, marked)) + int(unused))
        agents.append(_text(sheet, "CvrGuid"))
        precincts.append(_text(sheet, "PrecinctSplit/Name"))
    return Ballots.from_rows(
        rows,
        items=list(items),
        agents=np.array(agents, dtype=object),
        covariates={"precinct": np.array(precincts, dtype=object)},
        write_ins=tuple(name for name, written in items.items() if written),
        n_choices=n_choices,
        metadata={"TITLE": known[chosen], "FORMAT": TITLE},
    )


def _files(source: Source) -> list[str]:
    return [name for name in source.names if name.lower().endswith(".xml")]


def _text(element: Element, path: str) -> str:
    """The text of a child, or of a child of a child."""
    found = element.find("/".join(f"{_SPACE}{part}" for part in path.split("/")))
    return "" if found is None or found.text is None else found.text.strip()
