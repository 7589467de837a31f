"""Tables whose rows compare items that were shown: two of them with a winner, or a set with the best of it.

matches
    Two items and who won, as logs of model comparisons have it: ``model_a, model_b, winner, judge``. The
    winner is named by its side (``model_a``, ``A``, ``left``) or by its name; ties are counted.
choices
    Items that were shown and the one that was chosen: ``respondent, item1, item2, …, choice``; or long, a row
    for each item of a task: ``respondent, task, item, chosen``.
best-worst
    The same with the worst one as well (MaxDiff): ``respondent, item1, …, best, worst``; or long, with 1 for
    the best, -1 for the worst and 0 for the others.

Each becomes comparisons: the winner is above the loser, the best above all others shown, and all others above
the worst. What was compared k times has k votes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from permix.data.ballots import Entry
from permix.data.io.column_names import plain
from permix.data.io.layouts.pair_words import sides_of_anything
from permix.data.io.marks import says_nobody
from permix.data.io.table_columns import BLANK, Table, is_blank, missing_mask, numbers
from permix.data.labels import Array, Label
from permix.errors import Argument, DataError, ParameterError, PermixWarning

COMPARED = ("matches", "choices", "best-worst")
TIES = ("drop", "both", "error")
_BASES = (
    *("model", "item", "option", "response", "player", "team", "candidate", "alternative", "object"),
    *("text", "image", "completion", "output", "answer", "system", "product", "stimulus", "generator"),
    *("method", "agent", "bot", "engine", ""),
)
_SUFFIXES = (("a", "b"), ("1", "2"), ("left", "right"), ("x", "y"))
_WINNER = (
    *("winner", "preferred", "preference", "outcome", "result", "judgment", "judgement", "choice"),
    *("chosen", "vote", "label", "response", "better", "betterone", "won"),
)
_TIE = frozenset(
    (
        *("tie", "tied", "tie(bothbad)", "tiebothbad", "bothbad", "bothgood", "draw", "equal", "same"),
        *("both", "neither", "nopreference", "indifferent"),
    )
)
# Columns that say beside a winner and a loser that there was none.
_TIED = ("tie", "tied", "draw", "drawn", "istie", "isdraw", "wastie")
# Words for a comparison that nobody decided, besides those of ballots.
_SKIPPED = frozenset(
    ["unsure", "notsure", "dontknow", "don'tknow", "cantdecide", "undecided", "idk", "unclear"]
)
_NUMBER = re.compile(r"[-+]?[0-9]{1,9}(\.[0-9]{1,9})?")
# Verdicts that name both sides: ``A>>B``, ``B>A``, ``A=B``.
_VERDICT = re.compile(r"(\w{1,40})(>{1,3}|<{1,3}|≻|≺|=|~|≈)(\w{1,40})")
# Which side a number names; with a sign, 0 is a tie.
_NUMBERED: dict[float, int] = {1: 0, 2: 1}
_SIGNED: dict[float, int] = {1: 0, -1: 1, 0: 2}
_SHOWN = re.compile(
    r"(item|option|opt|alternative|alt|product|object|candidate|card|shown|profile|concept|statement)(\d+|[a-h])"
)
_LISTED = ("shown", "items", "options", "alternatives", "choiceset", "itemsshown", "offered")
_BEST = ("best", "most", "mostpreferred", "bestitem", "mostimportant")
_WORST = ("worst", "least", "leastpreferred", "worstitem", "leastimportant")
_CHOSEN = ("chosen", "choice", "selected", "picked", "choose")
_TASK = ("task", "set", "question", "screen", "choiceset", "choicetask", "scenario", "trial", "block", "card")
# In answers of B1, W1, B2, W2, …, as R's support.BWS has them, the number is that of the task.
_TASK_OF = re.compile(r"(b|w|best|worst|most|least)[\s._-]*([0-9]{1,4})", re.IGNORECASE)
_BOTH = ("bw", "bestworst", "maxdiff", "response", "choice", "answer", "value", "chosen")
_YES, _NO = frozenset(["1", "true", "yes", "y", "x"]), frozenset(["", "0", "false", "no", "n"])


class Compared(NamedTuple):
    """Items that were shown, entry by entry, and which of the entries is above which."""

    entries: Array  # names of items, None where nothing was shown
    row: Array  # row of the table of each entry
    task: Array  # the first row of the task of each entry
    better: Array  # places among the entries
    worse: Array
    audit: list[Entry]


class Sides(NamedTuple):
    """Columns of two items that are compared."""

    first: int
    second: int
    codes: tuple[frozenset[str], frozenset[str]]  # words for either side


def _places(table: Table, names: Sequence[str]) -> list[int]:
    """Columns called by one of some names, in the order of the names; ``task id`` is a task."""
    found = [plain(name) for name in table.names]
    return [found.index(each) for name in names for each in (name, f"{name}id") if each in found]


def sides_of(names: Sequence[Label]) -> Sides | None:
    """Return the columns of the two items of each match, where there are columns called so."""
    found = [plain(name) for name in names]
    for base in _BASES:
        for pair in _SUFFIXES:
            for both in ([f"{base}{end}" for end in pair], [f"{end}{base}" for end in pair]):
                if all(found.count(name) == 1 for name in both):
                    numbered = ("1", "2")
                    first, second = (
                        frozenset([name, end, f"model{end}", number])
                        for name, end, number in zip(both, pair, numbered, strict=True)
                    )
                    return Sides(found.index(both[0]), found.index(both[1]), (first, second))
    return None


def _sides(table: Table) -> Sides | None:
    """Return the columns of the two items; also where only their entries say that they hold such."""
    named = sides_of(table.names)
    told = sides_of_anything(table.names) if named is None else None
    winners = _places(table, _WINNER)
    if told is None or not winners:
        return named
    first, second, ends = told
    called = tuple(
        frozenset([plain(table.names[place]), end, f"model{end}", number])
        for place, end, number in zip((first, second), ends, ("1", "2"), strict=True)
    )
    sides = Sides(first, second, (called[0], called[1]))
    if any(numbers(table.columns[place]) is not None for place in (first, second)):
        return None
    rows = zip(_texts(table, first), _texts(table, second), _texts(table, winners[0]), strict=True)
    for a, b, won in rows:
        said = plain(won or "")
        known = won in (None, a, b) or said in _TIE | _SKIPPED | called[0] | called[1]
        if None in (a, b) or a == b or not (known or _verdict(said, sides.codes) is not None):
            return None
    return sides


def sides_without_winner(table: Table) -> tuple[Label, Label] | None:
    """Return names of two sides of matches, as ``model_a`` and ``model_b``; None where a winner is told."""
    sides = sides_of(table.names)
    if sides is None or len(_shown_places(table)) > 2 or _tell_the_winner(table.names, sides):
        return None
    names = table.names[sides.first], table.names[sides.second]
    return None if plain(names[0]) in ("a", "x", "1", "left") else names


def names_of_sides(names: Sequence[Label]) -> frozenset[Label]:
    """Names of the columns of two sides, such as ``left`` and ``right``, beside one that says who won.

    Winners may be called by them, so that they come back below and are names of columns all the same.
    """
    sides = sides_of(names)
    if sides is None or not _tell_the_winner(names, sides):
        return frozenset()
    return frozenset([names[sides.first], names[sides.second]])


def holds_verdicts(table: Table, place: int) -> bool:
    """Whether a column says who won by both sides, as ``A>B``, and so holds no rankings of items."""
    sides = sides_of(table.names)
    if sides is None or plain(table.names[place]) not in _WINNER:
        return False
    texts = [plain(str(entry).strip("[]")) for entry in table.columns[place] if not is_blank(entry)]
    told = [_VERDICT.fullmatch(text) is not None for text in texts]
    both = [_verdict(text, sides.codes) is not None for text in texts]
    return any(both) and all(said or text in _TIE for said, text in zip(told, texts, strict=True))


def _verdict(text: str, codes: tuple[frozenset[str], frozenset[str]]) -> int | None:
    """Return what ``a>>b`` says: the side that won, or TIE; None where it does not name both sides."""
    match = _VERDICT.fullmatch(text)
    if match is None:
        return None
    left, right = (next((side for side in (0, 1) if word in codes[side]), None) for word in match.group(1, 3))
    if left is None or right is None or left == right:
        return None
    return TIE if match[2] in "=~≈" else left if match[2][0] in ">≻" else right


def _tell_the_winner(names: Sequence[Label], sides: Sides) -> bool:
    """Whether a column is called as one of winners is; beside a mere ``a`` and ``b``, it is ``winner``."""
    bare = plain(names[sides.first]) in ("a", "x", "1")
    return any(plain(name) in (_WINNER[:1] if bare else _WINNER) for name in names)


def _one_hot(table: Table, sides: Sides) -> list[int]:
    """Columns of 0 and 1 that say which side won: ``winner_model_a``, ``winner_model_b``, ``winner_tie``."""
    found = [plain(name) for name in table.names]
    names = [f"winner{found[place]}" for place in (sides.first, sides.second)]
    if not all(name in found for name in names):
        return []  # one side and ties would otherwise be read as two sides
    return [found.index(name) for name in (*names, "winnertie") if name in found]


def detect(table: Table, agent: int | None) -> str | None:
    """Return the layout of a table of compared items; None where it is another."""
    if winners_tied(table):
        return "matches"
    shown, listed = _shown_places(table), _places(table, _LISTED)
    best, worst = _places(table, _BEST), _places(table, _WORST)
    if not shown and not listed:
        _refuse_answers_alone(table)
    in_tasks = bool(_places(table, _TASK) and table.places("item"))
    if (best and worst and (len(shown) > 2 or listed or in_tasks)) or (
        in_tasks and (_places(table, _BOTH[:3]) or _best_and_worst(table))
    ):
        return "best-worst"
    sides = _sides(table)
    of_two = sides is not None and len(shown) <= 2 and not table.places("worse")
    if sides is not None and of_two and (_tell_the_winner(table.names, sides) or _one_hot(table, sides)[1:]):
        return "matches"
    if _places(table, _CHOSEN) and (len(shown) > 2 or listed or in_tasks):
        return "choices"
    return None


def _best_and_worst(table: Table) -> bool:
    """Whether a column of answers holds 1 for the best and -1 for the worst."""
    answers = {place: set(_texts(table, place)) for place in _places(table, _BOTH)}
    return any({"1", "-1"} <= found <= {"1", "-1", "0", None} for found in answers.values())


def winners_tied(table: Table) -> list[int]:
    """Columns that say of a winner and a loser, who have columns of their own, that they were tied."""
    both = table.places("better") and table.places("worse")
    return _places(table, _TIED) if both else []


# Answers to a task, of which the name of the column says the task: ``Q1_best`` and ``MaxDiff_1_w``.
_OF_TASK = re.compile(r"(.*[0-9].*?)[\s._-]*(best|most|b|worst|least|w)\Z", re.IGNORECASE)
_WORSE = {"best": "worst", "most": "least", "b": "w"}


def _refuse_answers_alone(table: Table) -> None:
    """Refuse answers to best-worst tasks without what was shown: their numbers would look like ranks."""
    found: dict[tuple[str, str], str] = {}
    for name in map(str, table.names):
        match = _OF_TASK.fullmatch(name) if len(name) < 200 else None
        if match is not None:
            found[match[1].lower(), match[2].lower()] = name
        match = _TASK_OF.fullmatch(name)
        if match is not None:
            found[match[2], match[1].lower()] = name
    for (task, side), name in found.items():
        other = found.get((task, _WORSE.get(side, "")))
        if other is not None:
            raise DataError(
                f"{table.source}: {name!r} and {other!r} look like answers to a best-worst task, and no "
                "column says which items it showed. Write a row for each task: who answered, item1, item2, "
                "… (the items shown), best, worst"
            )


def columns_read(table: Table, layout: str) -> set[int]:
    """Return the columns that a layout reads, besides those of agents and counts."""
    if layout == "matches":
        tied = winners_tied(table)
        sides = _winner_and_loser(table) if tied else _sides(table)
        assert sides is not None
        return {sides.first, sides.second, *tied, *(_one_hot(table, sides) or _places(table, _WINNER)[:1])}
    shown = {*_shown_places(table), *_places(table, _LISTED)[:1]}
    if not shown:
        shown = {*_places(table, _TASK)[:1], *table.places("item")[:1]}
    answers = _CHOSEN if layout == "choices" else (*_BEST, *_WORST)
    return shown | set(_places(table, answers) or _places(table, _BOTH))


def holds_answers(table: Table, layout: str, place: int | None) -> bool:
    """Whether a column that could name the agents, as ``response`` does, holds what they answered."""
    if layout == "matches":
        found = _places(table, _WINNER) if _sides(table) is not None else []
        return found[:1] == [place]
    return place in _places(table, _BOTH) and not _places(table, (*_BEST, *_CHOSEN))


def compared(table: Table, layout: str, agent: int | None, ties: str, counts: Array) -> Compared:
    """Return what the rows of a table, which stand for so many answers, compare."""
    if ties not in TIES:
        raise ParameterError("ties", ties, " or ".join(map(repr, TIES)))
    if layout == "matches":
        return _matches(table, ties, counts)
    shown, listed = _shown_places(table), _places(table, _LISTED)
    if len(shown) > 1 or listed:
        return _wide(table, layout, counts)
    return _long(table, layout, agent, counts)


# -- matches -----------------------------------------------------------------------------------------


def _matches(table: Table, ties: str, counts: Array) -> Compared:
    tied = winners_tied(table)
    sides = _winner_and_loser(table) if tied else _sides(table)
    if sides is None:
        raise _no_columns(table, "the two items", "model_a and model_b, or item1 and item2")
    hot = [] if tied else _one_hot(table, sides)
    places = [place for place in _places(table, _WINNER) if place not in (sides.first, sides.second)]
    if len(hot) < 2 and not places and not tied:
        raise _no_columns(table, "the winner", "winner")
    pairs = [_texts(table, place) for place in (sides.first, sides.second)]
    names = np.column_stack(pairs)
    for row, two in enumerate(names.tolist()):
        if None in two or two[0] == two[1]:
            why = "an item is missing" if None in two else f"{two[0]!r} is compared with itself"
            raise DataError(f"{table.where(row)}: {why}; leave the row out")
    result: Array
    if tied:
        result = np.where(_switches(table, tied[0]), TIE, 0)
    else:
        result = _hot_results(table, hot) if len(hot) > 1 else _results(table, places[0], sides, names)
    n = table.n_rows
    n_ties, n_open = int(counts[result == TIE].sum()), int(counts[result == OPEN].sum())
    if n_ties and ties == "error":
        row = int(np.argmax(result == TIE))
        raise DataError(
            f"{table.where(row)}: a tie ({n_ties:,} in all). Leave ties out with ",
            *(Argument("ties", "drop"), ", or count each as a vote for either side with "),
            *(Argument("ties", "both"), "; the comparisons then contradict each other"),
        )
    winners = np.flatnonzero(result < 2)
    better, worse = 2 * winners + result[winners], 2 * winners + 1 - result[winners]
    audit = []
    if n_ties:
        n_read, n_left = int(counts.sum()), int(counts[result < 2].sum())
        kept = f"left out; {n_left:,} of {n_read:,} comparisons are kept"
        done = kept if ties == "drop" else f"count as a vote for either side, of {n_read:,} comparisons"
        audit.append(Entry("ties", done, n_ties, rule="ties"))
        if ties == "both":
            both = np.flatnonzero(result == TIE)
            better = np.concatenate([better, 2 * both, 2 * both + 1])
            worse = np.concatenate([worse, 2 * both + 1, 2 * both])
    if n_open:
        audit.append(Entry("comparisons without an answer", "left out", n_open))
    if not len(better):
        raise DataError(f"{table.source}: no comparison has a winner ({n_ties:,} ties, {n_open:,} blank)")
    rows = np.repeat(np.arange(n), 2)
    return Compared(names.ravel(), rows, rows, better, worse, audit)


TIE, OPEN = 2, 3


def _winner_and_loser(table: Table) -> Sides | None:
    places = [table.places(role) for role in ("better", "worse")]
    if any(len(found) != 1 for found in places):
        return None
    return Sides(places[0][0], places[1][0], (frozenset(), frozenset()))


def _tell_of_signs(table: Table, place: int, sides: Sides) -> None:
    """Say which side -1 is read as; ask where it is left and right, as on a slider, on which -1 is left."""
    first, second = str(table.names[sides.first]), str(table.names[sides.second])
    called = f"{table.source}: -1 in {str(table.names[place])!r}"
    instead = f"write {first}, {second} or tie instead of numbers"
    if plain(first).endswith("left") and plain(second).endswith("right"):
        raise DataError(
            f"{called} could be the left side, as on a slider, or say that the left one lost; {instead}"
        )
    said = f"{called} is read as a vote for {second!r}, and 1 as one for {first!r}"
    warnings.warn(f"{said}; if it is the other way around, {instead}", PermixWarning, stacklevel=6)


def _results(table: Table, place: int, sides: Sides, names: Array) -> Array:
    """Of each row: 0 or 1 for the side that won, TIE, or OPEN."""
    entries = table.columns[place]
    texts = ["" if is_blank(entry) else _whole(entry).strip("[]") for entry in entries.tolist()]
    values = [float(text) if _NUMBER.fullmatch(text) else None for text in texts]
    coding = _SIGNED if -1 in values else _NUMBERED
    graded = [value is not None and value not in coding for value in values]
    coding = {} if any(graded) else coding
    called = {plain(name) for name in names.ravel()}
    by_side: list[int | None] = []
    by_name: list[int | None] = []
    for row, (text, value) in enumerate(zip(texts, values, strict=True)):
        word = plain(text)
        code: int | None = None
        if value is not None:
            code = coding.get(value)
        elif word not in _TIE:
            silent = not word or (word not in called and (word in _SKIPPED or says_nobody(text)))
            named_side = next((side for side in (0, 1) if word in sides.codes[side]), None)
            code = OPEN if silent else _verdict(word, sides.codes) if named_side is None else named_side
        elif word not in called:
            code = TIE
        by_side.append(code)
        named = next((side for side in (0, 1) if names[row, side] == text), None)
        by_name.append(code if named is None and code in (TIE, OPEN) and value is None else named)
    for which, other in ((by_name, by_side), (by_side, by_name)):
        if None not in which:
            if None not in other and which != other:
                row = next(k for k in range(len(which)) if which[k] != other[k])
                raise DataError(
                    f"{table.where(row)}: the winner {entries[row]!r} could be a side or the name of an "
                    "item; rename the items"
                )
            if which is by_side and coding is _SIGNED and any(value for value in values):
                _tell_of_signs(table, place, sides)
            return np.array(which, dtype=np.int64)
    neither = [a is None and b is None for a, b in zip(by_side, by_name, strict=True)]
    graded = [grade and nobody for grade, nobody in zip(graded, neither, strict=True)]
    row = (graded if any(graded) else neither).index(True) if any(neither) else by_name.index(None)
    said = f"{table.where(row)}: the winner {entries[row]!r}"
    if graded[row]:
        raise DataError(
            f"{said} is a number that names no side: 1 and 2 do, or 1 and -1 with 0 for a tie; write "
            f"{table.names[sides.first]}, {table.names[sides.second]} or tie instead"
        )
    if plain(texts[row]) in _TIE & called:
        raise DataError(f"{said} could be a tie or the item of that name; rename the item")
    raise DataError(
        f"{said} is neither of the two items "
        f"({names[row, 0]!r}, {names[row, 1]!r}), nor a side such as {table.names[sides.first]!r}, nor a tie"
    )


def _hot_results(table: Table, places: list[int]) -> Array:
    """Results of columns of 0 and 1, one of which is 1 in each row."""
    marks = np.column_stack([_switches(table, place) for place in places])
    table.refuse(marks.sum(axis=1) > 1, "more than one column says that it is the winner")
    return np.where(marks.any(axis=1), np.argmax(marks, axis=1), TIE if len(places) == 2 else OPEN)


# -- choices and best-worst tasks ----------------------------------------------------------------------


def _wide(table: Table, layout: str, counts: Array) -> Compared:
    shown = _shown_places(table)
    if len(shown) > 1:
        sets = [list(row) for row in zip(*[_texts(table, place) for place in shown], strict=True)]
        _refuse_missing_words(table, shown, _places(table, (*_BEST, *_WORST, *_CHOSEN)))
    else:
        listed = _texts(table, _places(table, _LISTED)[0])
        sets = [[part.strip() or None for part in re.split("[;|,]", text or "")] for text in listed]
    offered = [[name for name in row if name is not None] for row in sets]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in offered])])
    called = [_BEST, _WORST] if layout == "best-worst" else [_CHOSEN]
    answers = [_answers(table, names) for names in called]
    positions = _are_positions(table, answers, sets)
    best, *rest = (_named_items(table, place, sets, shown, positions) for place in answers)
    worst = rest[0] if rest else None
    rows = np.repeat(np.arange(table.n_rows), [len(row) for row in offered])
    entries = np.array([name for row in offered for name in row], dtype=object)
    where = table.where
    return _tasks(entries, rows, starts, best, worst, where, counts)


def _refuse_missing_words(table: Table, shown: list[int], answers: list[int]) -> None:
    """Refuse NA where it may be an item: it stands before another, or is shown and chosen in one row."""
    entries = [table.columns[place].tolist() for place in shown]
    said = [[isinstance(entry, str) and entry in BLANK - {""} for entry in column] for column in entries]
    if not any(map(any, said)):
        return
    missing = [missing_mask(table.columns[place]).tolist() for place in shown]
    for row in range(table.n_rows):
        words = [entries[at][row] for at in range(len(shown)) if said[at][row]]
        last = max((at for at in range(len(shown)) if not missing[at][row]), default=-1)
        inside = any(said[at][row] for at in range(last))
        if inside or (words and any(table.columns[place][row] in words for place in answers)):
            raise DataError(
                f"{table.where(row)}: {words[0]!r} could be an item or stand for nothing; rename the item, "
                "or leave such entries blank"
            )


def _answers(table: Table, names: Sequence[str]) -> int:
    places = _places(table, names)
    if not places:
        raise _no_columns(table, f"the {names[0]} item", names[0])
    return places[0]


def _are_positions(table: Table, answers: list[int], sets: list[list[str | None]]) -> bool:
    """Whether answers are positions among items that are called by numbers themselves; asked where open."""
    said = [
        (row, text) for place in answers for row, text in enumerate(_texts(table, place)) if text is not None
    ]
    if not all(_numbers(sets[row]) and _at(sets[row], text) is not None for row, text in said):
        return False
    differ = [(row, text) for row, text in said if _at(sets[row], text) != text]
    strange = [row for row, text in said if text not in sets[row]]
    if not differ:
        return False
    if 2 * len(strange) > len(said):
        name = table.names[answers[0]]
        warnings.warn(
            f"{table.source}: {name!r} is read as positions among the items shown, since most of its numbers "
            "are not shown in their rows",
            PermixWarning,
            stacklevel=6,
        )
        return True
    row, text = differ[0]
    raise DataError(
        f"{table.where(row)}: {text} could be the item of that number or the one at that place, item "
        f"{_at(sets[row], text)}, as could all answers; call the items otherwise, such as 'item {text}', "
        "or write the name of the column in which the chosen item stands"
    )


def _at(items: list[str | None], text: str) -> str | None:
    """Return the item at a place, counted from 1; None where there is no such place, or nothing at it."""
    if not re.fullmatch("[1-9][0-9]?", text) or int(text) > len(items):
        return None
    return items[int(text) - 1]


def _named_items(
    table: Table, place: int, sets: list[list[str | None]], shown: list[int], positions: bool
) -> list[int | None]:
    """Return which of the items shown an entry names: by its name, its number, or its column."""
    columns = {plain(table.names[each]): str(at) for at, each in enumerate(shown, start=1)}
    found: list[int | None] = []
    for row, text in enumerate(_texts(table, place)):
        items = [item for item in sets[row] if item is not None]
        if text is None:
            found.append(None)
            continue
        by_place = _at(sets[row], text) if positions or not _numbers(sets[row]) else None
        named = by_place if positions or text not in items else text
        named = named or _at(sets[row], columns.get(plain(text), ""))
        if named is None:
            listed = ", ".join(map(repr, items[:8]))
            said = f"{table.where(row)}: {table.names[place]} {text!r} was not shown; shown were {listed}"
            raise DataError(said)
        found.append(items.index(named))
    return found


def _numbers(items: list[str | None]) -> bool:
    return any(item is not None and re.fullmatch("[0-9]+", item) for item in items)


def _long(table: Table, layout: str, agent: int | None, counts: Array) -> Compared:
    task = _places(table, _TASK)
    if not task or not table.places("item"):
        raise _no_columns(
            table, "the items that were shown", "item1, item2, …, or a row each with task and item"
        )
    item = table.places("item")[0]
    keys = [
        (None if agent is None else str(table.columns[agent][row]), str(table.columns[task[0]][row]))
        for row in range(table.n_rows)
    ]
    first = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    of_task = np.array([first[key] for key in keys], dtype=np.int64)
    order = np.argsort(of_task, kind="stable")
    starts = np.searchsorted(of_task[order], np.arange(len(first) + 1))
    up, down = _marks(table, layout, {item, task[0], agent})
    best, worst = (_marked_items(table, marks, order, starts) for marks in (up, down))
    entries = _texts(table, item)[order]
    _warn_of_places(table, item, entries, starts)
    where = table.where
    below = worst if layout == "best-worst" else None
    return _tasks(entries, order, starts, best, below, lambda row: where(int(row)), counts)


def _warn_of_places(table: Table, item: int, entries: Array, starts: Array) -> None:
    """Tell items that are called 1, 2, … in every task: they may be places on the screen, as in conjoint."""
    tasks = [entries[start:end].tolist() for start, end in pairwise(starts.tolist())]
    if len(tasks) > 1 and all(task == [str(place + 1) for place in range(len(task))] for task in tasks):
        warnings.warn(
            f"{table.source}: {table.names[item]!r} holds 1 to {len(tasks[0])} in every task: if these "
            "are places in the task and no items, as in conjoint studies, call that of the items 'item'",
            PermixWarning,
            stacklevel=7,
        )


def _marks(table: Table, layout: str, taken: set[int | None]) -> tuple[Array, Array]:
    """Which rows of a long table are the best and the worst of their tasks."""
    nobody = np.zeros(table.n_rows, dtype=np.bool_)
    if layout == "choices":
        places = [place for place in _places(table, _CHOSEN) if place not in taken]
        if not places:
            raise _no_columns(table, "what was chosen", "chosen")
        return _switches(table, places[0]), nobody
    best, worst = _places(table, _BEST), _places(table, _WORST)
    if best and worst:
        return _switches(table, best[0]), _switches(table, worst[0])
    places = [place for place in _places(table, _BOTH) if place not in taken]
    if not places:
        raise _no_columns(table, "the best and the worst item", "best and worst, or bw with 1, 0, -1")
    texts = _texts(table, places[0])
    up = np.array([text in ("1", "1.0", "+1", "best", "most") for text in texts])
    down = np.array([text in ("-1", "-1.0", "worst", "least") for text in texts])
    odd = ~(up | down) & np.array([text not in (None, "0", "0.0", "none") for text in texts])
    at = int(np.argmax(odd))
    table.refuse(odd, f"{table.names[places[0]]} is 1 (best), -1 (worst) or 0, not {texts[at]!r}")
    return up, down


def _marked_items(table: Table, marks: Array, order: Array, starts: Array) -> list[int | None]:
    """Of each task the place of the item that is marked among those shown."""
    found: list[int | None] = []
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        marked = np.flatnonzero(marks[order[start:end]])
        if len(marked) > 1:
            second = int(order[start + marked[1]])
            raise DataError(f"{table.where(second)}: a second item of the same task is marked; mend one")
        found.append(int(marked[0]) if len(marked) else None)
    return found


def _tasks(
    entries: Array,
    rows: Array,
    starts: Array,
    best: list[int | None],
    worst: list[int | None] | None,
    where: Callable[[int], str],
    counts: Array,
) -> Compared:
    """Turn tasks into comparisons: the best above all others shown, all others above the worst."""
    better: list[int] = []
    worse: list[int] = []
    silent = alone = 0
    for task, start in enumerate(starts[:-1].tolist()):
        n = int(starts[task + 1]) - start
        shown = entries[start : start + n].tolist()
        up, down = best[task], None if worst is None else worst[task]
        times = int(counts[rows[start] if n else task])  # without items, a task is a row of its own
        if n and len(set(shown)) < n:
            twice = next(name for name in shown if shown.count(name) > 1)
            raise DataError(f"{where(rows[start])}: {twice!r} is shown twice in one task; keep it once")
        if up is not None and up == down:
            raise DataError(f"{where(rows[start])}: {shown[up]!r} is best and worst at once; mend one")
        if up is None and down is None:
            silent += times
        elif n < 2:
            alone += times
        else:
            others = [place for place in range(n) if place not in (up, down)]
            if up is not None:
                better += [start + up] * (n - 1)
                worse += [start + place for place in range(n) if place != up]
            if down is not None:
                better += [start + place for place in others]
                worse += [start + down] * len(others)
    audit = []
    if silent:
        audit.append(Entry("tasks without an answer", "left out", silent))
    if alone:
        audit.append(Entry("tasks that show one item", "left out", alone))
    if not better:
        raise DataError("no task has an answer")
    sizes = np.diff(starts)
    first = np.repeat(rows[starts[:-1][sizes > 0]], sizes[sizes > 0])
    return Compared(entries, rows, first, np.array(better), np.array(worse), audit)


# -- columns -----------------------------------------------------------------------------------------


def _shown_places(table: Table) -> list[int]:
    """Columns of items that were shown: ``item1``, ``item2``, …, in the order of the table."""
    matches = [(place, _SHOWN.fullmatch(plain(name))) for place, name in enumerate(table.names)]
    bases = [match[1] for _, match in matches if match is not None]
    if len(set(bases)) != 1 or len(bases) < 2:
        return []
    return [place for place, match in matches if match is not None]


def _texts(table: Table, place: int) -> Array:
    """Entries of a column as text, None where there is nothing."""
    column = table.columns[place]
    missing = missing_mask(column)
    texts: list[Label | None] = [
        None if gone else _whole(entry) for entry, gone in zip(column.tolist(), missing.tolist(), strict=True)
    ]
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return found


def _whole(entry: object) -> str:
    if isinstance(entry, float) and entry.is_integer():
        return str(int(entry))
    return str(entry).strip()


def _switches(table: Table, place: int) -> Array:
    """Return a column of 1 and 0, yes and no, or true and false."""
    texts = [("" if text is None else str(text).lower()) for text in _texts(table, place)]
    odd = np.array([text not in _YES and text not in _NO for text in texts])
    at = int(np.argmax(odd))
    table.refuse(odd, f"{table.names[place]} is 1 or 0, not {texts[at]!r}")
    return np.array([text in _YES for text in texts], dtype=np.bool_)


def _no_columns(table: Table, what: str, called: str) -> DataError:
    columns = ", ".join(map(repr, table.names[:12]))
    return DataError(f"{table.source}: no column for {what}; call it {called}. The columns are {columns}")
