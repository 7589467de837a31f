"""A column that says which contest a row is of, in a table of ballots in several contests.

One called contest or election says so by its name. One called race, office, question or the like may as well
say something of the voters: there the candidates tell, most of whom then stand in one of its contests alone.
Any other column is taken for one where no candidate at all stands in two of its values. The user is asked for
the contest, so none is read together with another in silence; a column of the agents is named as such.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from permix.data.io.column_names import ABOUT_AGENTS, LISTS, plain
from permix.data.io.marks import is_mark
from permix.data.io.table_columns import is_blank
from permix.data.labels import Array, Label
from permix.errors import Argument, DataError, Part, PermixWarning

_BY_NAME = frozenset(
    [
        *("contest", "contestname", "contestid", "contesttitle", "racename", "racetitle", "officename"),
        *("election", "electionname", "electionid", "electiontitle", "ballotquestion", "ballotmeasure"),
    ]
)
_PERHAPS = frozenset(
    [
        *("race", "raceid", "office", "officeid", "officetitle", "seat", "position", "positionname", "poll"),
        *("question", "questionid", "measure", "measureid", "proposition", "award", "awardname", "pollid"),
    ]
)
# Of rows that list candidates; of ratings, items have categories.
_PERHAPS_OF_ROWS = _PERHAPS | {"category", "ward", "wardname", "wardid", "categoryname"}
# Contests of one table, and the rows that are looked at first.
MOST_CONTESTS, FIRST_ROWS = 200, 2_000
# Contests of an assembly.
_FEW_CONTESTS = 20


class ContestColumn(NamedTuple):
    """The place of a column that says the contest, its contests, and the rows that name none."""

    place: int
    name: str
    contests: list[str]
    n_blank: int

    def way_out(self) -> tuple[Part, ...]:
        """Say what to do where the column says something else."""
        return (
            f"If column {self.name!r} says something of the agents, say ",
            *(Argument("group_columns", [self.name]), "; to read all rows together, "),
            Argument("ignore", self.name),
        )


def contest_column(
    names: Sequence[Label], columns: Sequence[Any], candidates: Sequence[int], *, of_lines: bool = False
) -> ContestColumn | None:
    """Return the column that says the contest; None where there is none.

    ``candidates`` are the places of the columns that hold candidates; a column called "" is left alone.
    ``of_lines`` says that a row holds one candidate, and its rank or rating.

    Examples
    --------
    >>> columns = [["Mayor", "Mayor", "Clerk"], ["a", "b", "x"], ["b", "a", "y"]]
    >>> contest_column(["Office", "rank1", "rank2"], columns, [1, 2]).contests
    ['Mayor', 'Clerk']
    """
    perhaps = _PERHAPS - {"position"} if of_lines else _PERHAPS_OF_ROWS
    for place, name in enumerate(names):
        if place in candidates or name == "":
            continue
        called = plain(name)
        by_name = called in _BY_NAME
        if not by_name and called not in perhaps and (of_lines or called in LISTS):
            continue
        said = ["" if is_blank(entry) else str(entry).strip() for entry in columns[place]]
        found = [entry for entry in dict.fromkeys(said) if entry]
        if not 1 < len(found) <= MOST_CONTESTS:
            continue
        apart = by_name or _stand_apart(said, [columns[at] for at in candidates], called in perhaps)
        if apart:
            return ContestColumn(place, str(name), found, said.count(""))
    return None


def separating_column(
    names: Sequence[Label], columns: Sequence[Any], agent: int, rank: int, *, whole: bool = False
) -> ContestColumn | None:
    """Return a column within whose values no agent gives a rank twice, where half of the agents do otherwise.

    A row holds an agent, a candidate and its rank; a column called "" is left alone. With ``whole``, ranks
    must be 1, 2, 3, … within each value, as hardly any ratings are.

    Examples
    --------
    >>> columns = [["v", "v", "w", "w"], ["1", "1", "1", "1"], ["x", "y", "x", "y"]]
    >>> separating_column(["", "", "topic"], columns, agent=0, rank=1).contests
    ['x', 'y']
    """
    said = [str(entry) for entry in columns[rank]]
    agents = [str(entry) for entry in columns[agent]]
    ranked = Counter(each for each in zip(agents, said, strict=True) if not is_blank(each[1]))
    tied = {each for (each, _), n in ranked.items() if n > 1}
    if len(tied) < 2 or 2 * len(tied) < len(set(agents)):
        return None
    for place, name in enumerate(names):
        entries = [str(entry).strip() for entry in columns[place]]
        found = [entry for entry in dict.fromkeys(entries) if entry]
        if name == "" or place in (agent, rank) or not 1 < len(found) <= MOST_CONTESTS:
            continue
        within = Counter(each for each in zip(agents, entries, said, strict=True) if not is_blank(each[2]))
        if max(within.values()) == 1 and (not whole or _run_from_1(within)):
            return ContestColumn(place, str(name), found, entries.count(""))
    return None


def _run_from_1(within: Collection[tuple[str, str, str]]) -> bool:
    """Whether each agent gives 1, 2, 3, … within each contest, two of them or more."""
    given: dict[tuple[str, str], set[str]] = {}
    for agent, contest, rank in within:
        given.setdefault((agent, contest), set()).add(rank)
    return all(
        len(ranks) > 1 and ranks == set(map(str, range(1, len(ranks) + 1))) for ranks in given.values()
    )


# Columns within which numbers of ballots begin again.
_NUMBERS_BEGIN_AGAIN = re.compile(
    r"batch|tabulator|machine|scanner|precinct|box|station|portion|district|(?<!a)ward|county|site|location|device|"
    r"polling|stack|tray|sheet|file|source|imprinted|style|type|group|session|table|day|date|time|wave|year|week"
)


def column_of_agents(
    names: Sequence[Label], columns: Sequence[Sequence[Any]], agent: int
) -> ContestColumn | None:
    """Return a column each of whose values most agents have once, as where each votes in every contest.

    Batches and precincts number their ballots from 1 as well: such names are left alone, and those called "".

    Examples
    --------
    >>> columns = [["v", "v", "w", "w"], ["x", "y", "x", "y"]]
    >>> column_of_agents(["", "award"], columns, agent=0).contests
    ['x', 'y']
    """
    ids = [str(entry).strip() for entry in columns[agent]]
    times = Counter(ids)
    if 2 * sum(n > 1 for n in times.values()) < len(times) or len(times) < 2:
        return None
    for place, name in enumerate(names):
        called = plain(name)
        if place == agent or name == "" or called in ABOUT_AGENTS or _NUMBERS_BEGIN_AGAIN.search(called):
            continue
        entries = [str(entry).strip() for entry in columns[place]]
        found = Counter(filter(None, entries))
        if not 1 < len(found) <= MOST_CONTESTS or min(found.values()) < 2 or 2 * len(found) > len(ids):
            continue
        # Rows of an agent are of all contests, or hardly fewer.
        if len(set(zip(ids, entries, strict=True))) == len(ids) and 2 * len(ids) > len(times) * len(found):
            return ContestColumn(place, str(name), list(found), entries.count(""))
    return None


def column_holding(
    names: Sequence[Label], columns: Sequence[Sequence[Any]], asked: str, source: object
) -> ContestColumn | None:
    """Return the column that holds the contest asked for, whatever it is called; "" is left alone.

    Examples
    --------
    >>> column_holding(["", "prize"], [["v", "w"], ["Poetry", "Fiction"]], "poetry", "x.csv").name
    'prize'
    """
    wanted = asked.strip().casefold()
    places = [
        place
        for place, name in enumerate(names)
        if name != "" and any(wanted == str(entry).strip().casefold() for entry in columns[place])
    ]
    if len(places) > 1:
        both = " and ".join(repr(names[place]) for place in places[:2])
        raise DataError(
            f"{source}: columns {both} both hold {asked!r}; leave out the one that does not name the contest "
            "with ",
            Argument("ignore", names[places[0]]),
        )
    if not places:
        return None
    said = ["" if is_blank(entry) else str(entry).strip() for entry in columns[places[0]]]
    return ContestColumn(
        places[0], str(names[places[0]]), [each for each in dict.fromkeys(said) if each], said.count("")
    )


def warn_of_perhaps(source: object, names: Sequence[Label], columns: Sequence[Sequence[Any]]) -> None:
    """Say that a column is called as one of contests is, though the same candidates stand in all of them."""
    for name, column in zip(names, columns, strict=True):
        found = list(dict.fromkeys(str(entry).strip() for entry in column if str(entry).strip()))
        if plain(name) in _PERHAPS - {"race", "raceid", "seat"} and 1 < len(found) <= _FEW_CONTESTS:
            said = f"{source}: column {name!r} may say which contest a row is of, and all rows are read "
            way_out = (
                *("together; one of them, such as ", Argument("contest", found[0]), ", is read alone"),
                *(", and ", Argument("group_columns", [name]), " says that it is none"),
            )
            warnings.warn(PermixWarning(said, *way_out), stacklevel=5)


def candidates_of_lists(names: Sequence[Label], columns: Sequence[Any]) -> list[int]:
    """Return the columns that hold a whole ranking in each cell, by their names and signs of order."""
    return [
        place
        for place, name in enumerate(names)
        if plain(name) in LISTS and any(">" in str(entry) for entry in columns[place][:FIRST_ROWS])
    ]


def rows_of(column: Any, contest: str) -> Array:
    """Return the rows of a contest."""
    return np.array([row for row, said in enumerate(column) if str(said).strip() == contest], dtype=np.int64)


def _stand_apart(said: list[str], columns: Sequence[Sequence[Any]], perhaps: bool) -> bool:
    """Whether candidates stand in one contest each: by most votes where a name tells, else all of them."""
    # Most columns that are none share a candidate in the first rows.
    if not perhaps and _shared(_votes(said[:FIRST_ROWS], [column[:FIRST_ROWS] for column in columns])):
        return False
    votes = _votes(said, columns)
    in_contest, rows = Counter(contest for contest, _ in votes), Counter(filter(None, said))
    if perhaps:
        return len(in_contest) > 1 and 2 * _shared(votes) < votes.total()
    whole = len(in_contest) == len(rows) > 1 and min(in_contest.values()) > 1 and min(rows.values()) > 1
    return whole and not _shared(votes)


def _votes(said: list[str], columns: Sequence[Sequence[Any]]) -> Counter[tuple[str, str]]:
    """Return how often each candidate stands in each contest."""
    votes: Counter[tuple[str, str]] = Counter()  # (contest, candidate)
    for column in columns:
        votes.update(zip(said, map(str, column), strict=True))
    return Counter({each: n for each, n in votes.items() if each[0] and not _is_nobody(each[1])})


def _shared(votes: Counter[tuple[str, str]]) -> int:
    """Return how many votes are for candidates who stand in several contests."""
    contests_of = Counter(candidate for _, candidate in votes)
    return sum(n for (_, candidate), n in votes.items() if contests_of[candidate] > 1)


def _is_nobody(entry: str) -> bool:
    told = entry.strip()
    return not told or is_blank(told) or told == "None" or is_mark(told) or plain(told) in ("writein", "uwi")


def known_columns(names: Sequence[Label], known: Collection[object]) -> list[Label]:
    """Return names of columns without those that are known to hold something else."""
    return ["" if name in known else name for name in names]
