"""Exports of surveys: names of columns over two or three lines, ``Question [Item]``, and columns of the form.

SurveyMonkey writes the question in the first line and the items in the second; Qualtrics writes short names,
texts of the questions and numbers of its own. Google Forms, LimeSurvey and others write ``Question [Item]``
into one name. What the form itself knows (when an answer was sent, from where) is set apart, and named.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from itertools import pairwise

from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.column_names import BLANKS, plain
from permix.data.io.containers.lines import Lines
from permix.data.io.table_columns import Table
from permix.data.io.text_files import PathLike
from permix.data.labels import Label
from permix.errors import Argument, DataError, Part, PermixWarning

# Columns that forms add to the answers, as `plain` writes them.
FORM_COLUMNS = frozenset(
    [
        *("timestamp", "starttime", "completiontime", "startdate", "enddate", "recordeddate", "submitted"),
        *(
            "submittedat",
            "submitteddate",
            "submissiondate",
            "submitdate",
            "datesubmitted",
            "lastpage",
            "seed",
        ),
        *(
            "startlanguage",
            "datestarted",
            "datelastaction",
            "dateofentry",
            "datestamp",
            "refurl",
            "createdat",
        ),
        *("referrerurl", "emailaddress", "email", "ipaddress", "collectorid", "collector", "progress"),
        *("finished", "durationinseconds", "duration(inseconds)", "locationlatitude", "locationlongitude"),
        *("distributionchannel", "userlanguage", "externalreference", "externaldatareference"),
        *("recipientlastname", "recipientfirstname", "recipientemail", "customdata1", "lastmodifiedtime"),
        *(
            "firstname",
            "lastname",
            "submissionid",
            "submissionip",
            "networkid",
            "datecreated",
            "datemodified",
        ),
        *("startdate(utc)", "stagedate(utc)", "submitdate(utc)", "tags", "ending"),
        *("zeitstempel", "horodateur", "status", "responsetype", "totaltime", "interviewtime"),
    ]
)
# Those that tell that a table comes from a form.
_TELLING = FORM_COLUMNS - {"status", "progress", "email", "firstname", "lastname", "seed", "collector"}
_TELLING -= {"tags", "ending"}
_BRACKETS = re.compile(rf"(.*?){BLANKS}\[([^\[\]]+)\]\Z", re.DOTALL)
_DASH = re.compile(r"(.*\S)\s+[-–—|]\s+(\S.*)\Z", re.DOTALL)
# What LimeSurvey writes before a question, or before the name of a column: ``Q1[2]. Rank these [Rank 2]``.
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\[[^\[\]]*\])*\.\s+(?=\S)")
# A column of Qualtrics that says which items were put into a group.
_GROUP = re.compile(r".*_[0-9]+_GROUP")
# Columns that say in which order items were shown.
_SHOWN_AT = re.compile(r".*_DO_[0-9]+(?:\Z|\s)|.*\bdisplay order\b", re.IGNORECASE)
_OPEN = frozenset(["response", "openendedresponse", "antwort", "réponse"])


def header_lines(path: PathLike, lines: Lines) -> Lines:
    """Return a table with one line of names, where its names stand over two or three lines."""
    rows = lines.fields
    codes = [_CODE.match(name) for name in rows[0]]
    told = [name[code.end() :] for name, code in zip(rows[0], codes, strict=True) if code is not None]
    if len(told) == len(codes) and from_form(told) and len(set(told)) == len(told):
        return lines._replace(fields=[told, *rows[1:]])
    if len(rows) > 3 and all("ImportId" in entry for entry in rows[2] if entry) and any(rows[2]):
        names = _of_questions(rows[0], rows[1])
        return _joined(path, lines, names, 3)
    if len(rows) > 2 and _goes_on(rows[0], rows[1], rows[2]):
        return _joined(path, lines, _below(rows[0], rows[1]), 2)
    return lines


def _joined(path: PathLike, lines: Lines, names: list[str], n: int) -> Lines:
    first = lines.numbers[0]
    warnings.warn(
        f"{path}: {lines.unit}s {first} to {lines.numbers[n - 1]} together name the columns, as in forms",
        PermixWarning,
        stacklevel=4,
    )
    numbers = [first, *lines.numbers[n:]]
    return lines._replace(numbers=numbers, fields=[names, *lines.fields[n:]], named=True)


def _of_questions(short: list[str], long: list[str]) -> list[str]:
    """Names of Qualtrics' columns: the text of a question where it tells columns apart."""
    names = [
        f"{text[1]} [{text[2]}]"
        if re.match(r"Q(ID)?[0-9]|.*_[0-9]+\Z", name) and (text := _DASH.match(" ".join(told.split())))
        else name
        for name, told in zip(short, long, strict=True)
    ]
    return names if len(set(names)) == len(names) else list(short)


def _goes_on(first: list[str], second: list[str], third: list[str]) -> bool:
    """Whether a second line names what the first leaves open, as under a question with several items."""
    blank = [place for place, name in enumerate(first) if not name]
    if not blank or not all(second[place] for place in blank):
        return False
    if all(second) and any(map(bool, first)):
        return _spanned(first, second, third)
    over = [place for place, name in enumerate(first) if name and not second[place]]
    words = [entry for entry in second if entry and not re.fullmatch(r"[-+0-9.,]+", entry)]
    filled = sum(1 for entry in third if entry)
    return bool(over) and len(words) == sum(1 for entry in second if entry) and filled > len(words)


_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?")


def _spanned(first: list[str], second: list[str], third: list[str]) -> bool:
    """Whether a second line names all columns, below names that go over several, as merged cells do.

    It does where numbers stand below words, or words below 1, 2, 3, ….
    """
    begins = next(place for place, name in enumerate(first) if name)
    under = range(begins, len(first))
    numbers = [_PLAIN_NUMBER.fullmatch(second[place]) is not None for place in under]
    below = [_PLAIN_NUMBER.fullmatch(third[place]) is not None for place in under if third[place]]
    if not below or any(_PLAIN_NUMBER.fullmatch(name) for name in (*first, *second[:begins])):
        return False
    if not any(numbers):
        return all(below)
    asked = [0, *(at for at, place in enumerate(under) if at and first[place]), len(numbers)]
    spans = [[second[begins + at] for at in range(*span)] for span in pairwise(asked)]
    counted = all(span == [str(at) for at in range(1, len(span) + 1)] for span in spans)
    return counted and not any(below)


def _below(first: list[str], second: list[str]) -> list[str]:
    names, question = [], ""
    for above, item in zip(first, second, strict=True):
        question = above or question
        alone = not item or plain(item) in _OPEN
        names.append(question if alone else f"{question} [{item}]" if question else item)
    return names


def is_of_form(name: Label) -> bool:
    """Whether a column is one that forms add to the answers."""
    return plain(name) in FORM_COLUMNS


def from_form(names: Sequence[Label]) -> bool:
    """Whether a table comes from a form: some column is one that forms alone write."""
    return any(plain(name) in _TELLING for name in names)


def questions(names: Sequence[Label]) -> dict[str, dict[int, str]]:
    """Return the items of each question that several columns answer, by place: ``Question [Item]``.

    Examples
    --------
    >>> questions(["id", "Rank these [Tea]", "Rank these [Milk]"])
    {'Rank these': {1: 'Tea', 2: 'Milk'}}
    """
    for pattern in (_BRACKETS, _DASH):
        found: dict[str, dict[int, str]] = {}
        for place, name in enumerate(names):
            match = pattern.match(str(name))
            if match is not None and match[2].strip():
                found.setdefault(match[1].strip(), {})[place] = match[2].strip()
        found = {said: items for said, items in found.items() if len(items) > 1}
        found = {said: items for said, items in found.items() if len(set(items.values())) == len(items)}
        if found:
            return found
    return {}


def answers_of(
    table: Table, contest: str | None, agent_column: object, count_column: object
) -> tuple[Table, list[str]]:
    """Return a table with the answers to one question, columns called by its items, and columns of the form.

    Columns are renamed where all that are no agent, count or column of a form are ``Question [Item]``, or
    where the table comes from a form.
    """
    _refuse_groups(table)
    is_form = from_form(table.names)
    shown_at = _orders_of_showing(table.names) if is_form else []
    if is_form:
        _warn_of_previews(table)
        table = table.without(shown_at)
    names = table.names
    named = {str(name) for name in (agent_column, count_column) if name not in (None, False)}
    agents = [str(names[place]) for place in table.places("agent")]
    roles = {*named, *agents, *(str(names[p]) for role in ("count", "unlisted") for p in table.places(role))}
    of_form = [name for name in map(str, names) if is_of_form(name)] if is_form else []
    of_form = [name for name in of_form if name not in named and name not in table.items]
    of_form = [*shown_at, *of_form]
    if is_form and {"id", "name"} <= {plain(name) for name in agents}:
        of_form += [name for name in agents if plain(name) == "name" and name not in named]
    _refuse_places_of_items(table)
    found = (
        chosen_question(table.source, names, contest)
        if _all_questions(names, is_form, roles, of_form)
        else None
    )
    if found is None:
        if contest is not None:
            raise DataError(
                f"{table.source}: ", Argument("contest"), " is for ballots, and for columns 'Question [Item]'"
            )
        return _without(table, of_form, "")
    question, items, others = found
    renamed = [items.get(place, name) for place, name in enumerate(names)]
    if len(set(map(str, renamed))) < len(renamed):  # an item is called like another column
        return _without(table, of_form, "")
    others = [*others, *_alone(names, {*items, *others}, {*roles, *of_form})] if is_form else others
    left = [str(names[place]) for place in others]
    kept = table._replace(names=renamed, items=table.items | set(items.values()))
    return _without(kept, [*of_form, *left], question)


def without_form(table: Table, kept: object = None) -> Table:
    """Return a table of answers without the columns that forms add; ``kept`` names one that stays."""
    added = [str(name) for name in table.names if is_of_form(name) and name != kept]
    of_form = [*_orders_of_showing(table.names), *added]
    return _without(table, of_form, "")[0] if from_form(table.names) else table


def _refuse_groups(table: Table) -> None:
    """Refuse answers of Qualtrics in which items were put into groups, and ranked within each."""
    for name in map(str, table.names):
        if _GROUP.fullmatch(name):
            raise DataError(
                f"{table.source}: {name!r} says which items were put into a group, and the ranks of such a "
                "question ('Pick, group, and rank' of Qualtrics) count within each group. With one group, "
                "leave the column out with ",
                *(
                    Argument("ignore", name),
                    "; with several, read the columns of one group, and so leave out ",
                ),
                "those of the others",
            )


def _refuse_places_of_items(table: Table) -> None:
    """Refuse a column of 0 and 1 for each item at each rank, ``Ann - 1``, outside of known formats."""
    found = questions(table.names)
    held = {str(table.columns[place][0]) for items in found.values() for place in items}
    counted = all(list(items.values()) == [str(k + 1) for k in range(len(items))] for items in found.values())
    if len(found) > 1 and counted and held <= {"0", "1", "0.0", "1.0"}:
        item, items = next(iter(found.items()))
        raise DataError(
            f"{table.source}: a column for each item at each rank, as it seems: {table.names[min(items)]!r} "
            f"says whether {item!r} has rank 1. Write a column for each item with its rank instead"
        )


def _orders_of_showing(names: Sequence[Label]) -> list[str]:
    """Return the columns that say in which order the items of a question were shown."""
    return [str(name) for name in names if _SHOWN_AT.match(str(name))]


def _warn_of_previews(table: Table) -> None:
    """Tell answers that somebody gave to try the form."""
    for place, name in enumerate(table.names):
        said = [str(entry).strip().lower() for entry in table.columns[place].tolist()]
        n = sum(entry in ("survey preview", "survey test") for entry in said)
        if plain(name) in ("status", "responsetype") and n:
            are = "row is a preview or test" if n == 1 else "rows are previews or tests"
            warnings.warn(
                f"{table.source}: {n:,} {are} of the form, as column {name!r} says, and read like all "
                "others; take out what is not to count",
                PermixWarning,
                stacklevel=6,
            )


def _alone(names: Sequence[Label], known: set[int], called: set[str]) -> list[int]:
    """Return the columns of questions that one column answers, such as an age or a comment."""
    return [place for place, name in enumerate(names) if place not in known and str(name) not in called]


def _all_questions(names: Sequence[Label], is_form: bool, roles: set[str], of_form: list[str]) -> bool:
    asked = {place for items in questions(names).values() for place in items}
    rest = {str(name) for place, name in enumerate(names) if place not in asked}
    return bool(asked) and (is_form or rest <= roles | set(of_form))


def _without(table: Table, of_form: list[str], question: str) -> tuple[Table, list[str]]:
    kept = [place for place, name in enumerate(table.names) if str(name) not in of_form]
    if len(kept) == 0:
        return table, []
    said = [f"the columns of {question!r} are called by its items"] if question else []
    if of_form:
        said.append(f"not read, since they are of the form or of another question: {', '.join(of_form[:6])}")
        said[-1] += f" and {len(of_form) - 6} more" if len(of_form) > 6 else ""
    if said:
        parts: tuple[Part, ...] = (
            ("; keep one beside the votes with ", Argument("group_columns")) if of_form else ()
        )
        warnings.warn(PermixWarning(f"{table.source}: {'; '.join(said)}", *parts), stacklevel=5)
    names = [table.names[place] for place in kept]
    return table._replace(names=names, columns=[table.columns[place] for place in kept]), of_form


def chosen_question(
    source: object, names: Sequence[Label], asked: str | None
) -> tuple[str, dict[int, str], list[int]] | None:
    """Return a question, its items by place, and the columns of other questions; None where there is none."""
    found = questions(names)
    if not found:
        return None
    called = {said or "1": said or "the only question" for said in found}
    chosen = chosen_contest(called, asked, source, "questions")
    said = "" if chosen == "1" and "" in found else chosen
    others = [place for other, items in found.items() if other != said for place in items]
    return said, found[said], others
