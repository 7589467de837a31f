"""From marks to rankings: rules for overvotes, skipped ranks and the like, and an audit of what they did.

The defaults are those that most ranked-choice elections in the United States use, as RCTab, the tabulator of
the Ranked Choice Voting Resource Center, recommends them: an overvote ends the ballot, two skipped ranks in a
row end it, one is passed over, and of a candidate ranked twice the first mark counts.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from permix.data.ballots import UNNAMED, Ballots, Entry
from permix.data.csr import indptr_of
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, ParameterError
from permix.registries import BALLOT_RULES
from permix.runtime.seeds import generator

# What a rank of a ballot holds instead of a candidate: nothing, several candidates, or something removed.
EMPTY, OVERVOTE, REMOVED = -1, -2, -3
WRITE_IN = "write-in"
# How many names an entry of the audit lists.
SHOWN = 5


@dataclass(frozen=True)
class Rules:
    """What is done about marks that are no plain ranking; see :func:`clean`."""

    overvotes: str = "truncate"
    skipped: str = "stop-after-two"
    repeats: str = "first"
    write_ins: str = "keep"
    names: str = "keep"
    min_support: float = 0
    min_answers: int = 1

    def __post_init__(self) -> None:
        for name, choices in BALLOT_RULES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ParameterError(name, value, " or ".join(map(repr, choices)))
        if isinstance(self.min_support, str) or not self.min_support >= 0:
            raise ParameterError("min_support", self.min_support, "a number of ballots, 0 or more")
        if isinstance(self.min_answers, str) or not self.min_answers >= 0:
            raise ParameterError("min_answers", self.min_answers, "a whole number, 0 or more")


def clean(
    ballots: Ballots | Rankings | Preferences, random_state: Any = 0, **rules: Any
) -> Rankings | Preferences:
    """Turn marks into rankings, by rules; ``metadata["CLEANING"]`` says what was done to how many ballots.

    Parameters
    ----------
    ballots : Ballots, Rankings or Preferences
        Ties, and categories, count as several candidates at one rank. Other preferences, such as comparisons,
        are refused.
    random_state : seed
        For ``overvotes="random"``.
    overvotes : {"truncate", "skip", "random", "drop"}
        Where several candidates are marked at one rank: the ballot ends before it, the rank is passed over,
        one of them is drawn, or the ballot is dropped.
    skipped : {"stop-after-two", "stop-after-one", "close-up"}
        Where a rank is left out and later ones are not: the ballot ends where two ranks in a row, or one,
        are left out; or later ranks move up.
    repeats : {"first", "truncate"}
        Where a candidate is ranked again: the first mark counts, or the ballot ends before the second.
    write_ins : {"keep", "merge", "drop"}
        Candidates who were written in stay, are one candidate called "write-in", or are left out.
    names : {"keep", "merge"}
        Whether candidates whose names differ by case, blanks, quotes, punctuation or the order of their parts
        ("Smith, J" and "J Smith") are one. Where they are kept, the audit lists them.
    min_support : number
        Candidates on fewer ballots than this are left out; below 1, a share of the ballots.
    min_answers : int
        Ballots that rank fewer candidates are left out.

    Returns
    -------
    Rankings, or Preferences where voters choose several candidates and rank none
        The rest of the candidates is below those ranked or chosen. Rows are ballots in file order, those
        left out missing; ``agents`` are their ids.

    Examples
    --------
    >>> from permix.data.ballots import Ballots
    >>> marked = Ballots.from_rows([[["tea"], [], ["milk"]], [["milk"], ["tea", "coffee"]], [[], []]])
    >>> clean(marked)
    Rankings: 2 agents over 3 items, top lists of 1 to 2 items
      0: tea ≻ milk ≻ rest
      1: milk ≻ rest
    """
    unknown = [name for name in rules if name not in Rules.__dataclass_fields__]
    if unknown:
        raise DataError(f"there is no rule {unknown[0]!r}; there are {', '.join(Rules.__dataclass_fields__)}")
    chosen = Rules(**rules)
    if not isinstance(ballots, Ballots):
        ballots = marks_of(ballots)
    audit = list(ballots.audit)
    if chosen.overvotes == "random":
        ballots = _one_by_one(ballots)
    ballots = _with_names(ballots, chosen, audit)
    ballots, gone = _chosen_items(ballots, chosen, audit)
    marked, several = _by_rank(ballots, gone)
    if _are_choices(ballots, marked, several):
        return _choices(ballots, gone, chosen, audit)
    kept = np.ones(len(ballots), dtype=np.bool_)
    _overvotes(ballots, marked, several, chosen.overvotes, random_state, kept, audit)
    _skipped(ballots, marked, chosen.skipped, kept, audit)
    _repeats(ballots, marked, chosen.repeats, kept, audit)
    orders = _closed_up(marked)
    _short(ballots, orders, chosen.min_answers, kept, audit)
    if not kept.any():
        said = "; ".join(f"{entry.found}: {entry.ballots:,} ({entry.done})" for entry in audit)
        raise DataError(f"no ballot is left under these rules. {said}")
    items = tuple(name for code, name in enumerate(ballots.items) if not gone[code])
    renumbered = np.cumsum(~gone) - 1
    orders = np.where(orders >= 0, renumbered[orders], -1)[kept].astype(np.int32)
    metadata = {**ballots.metadata, "CLEANING": [entry._asdict() for entry in audit]}
    agents = None if ballots.agents is None else ballots.agents[kept]
    return Rankings._from_arrays(orders, items, ballots.counts[kept], agents, True, metadata)


def marks_of(table: Rankings | Preferences) -> Ballots:
    """Return rankings, with ties or without, as marks: a rank for each level."""
    if isinstance(table, Rankings):
        ballot, rank = np.nonzero(table.orders >= 0)
        item, below = table.orders[ballot, rank], table.unlisted_below
    else:
        if len(table.level_items) == 0 or int(table.pair_indptr[-1]) > 0:
            raise DataError("rules for ballots are for rankings; comparisons have no ranks")
        lengths = np.diff(table.level_indptr)
        ballot = np.repeat(np.arange(len(lengths)), lengths)
        rank, item, below = table.levels, table.level_items, table.rest_below
        # Where all items are listed, several at the last level are the rest, which nobody ranked.
        last = np.repeat(np.maximum.reduceat(rank, table.level_indptr[:-1]), lengths)
        at_last = np.bincount(ballot[rank == last], minlength=len(lengths))
        whole = (lengths == len(table.items)) & (at_last > 1) & (at_last < lengths)
        ranked = ~(whole[ballot] & (rank == last))
        ballot, rank, item = ballot[ranked], rank[ranked], item[ranked]
    if not below.all():
        raise DataError(
            "rules for ballots are for rankings whose other items are below; here some are unknown: ",
            Argument("unlisted", "below"),
        )
    order = np.lexsort((rank, ballot))
    return Ballots(
        items=tuple(table.items),
        n_ranks=int(rank.max(initial=0)) + 1,
        counts=np.asarray(table.counts, np.int64),
        ballot=np.asarray(ballot, np.int64)[order],
        rank=np.asarray(rank, np.int32)[order],
        item=np.asarray(item, np.int32)[order],
        agents=table._agents,
        metadata=table.metadata,
        audit=tuple(audit_of(table.metadata)),
    )


def _one_by_one(ballots: Ballots) -> Ballots:
    """Give every ballot a row of its own, so that each draws for itself."""
    if ballots.counts.max(initial=1) == 1:
        return ballots
    first = np.cumsum(ballots.counts) - ballots.counts
    of_mark = ballots.counts[ballots.ballot]
    copy = np.arange(int(of_mark.sum())) - np.repeat(np.cumsum(of_mark) - of_mark, of_mark)
    ballot = np.repeat(first[ballots.ballot], of_mark) + copy
    rank, item = np.repeat(ballots.rank, of_mark), np.repeat(ballots.item, of_mark)
    order = np.lexsort((rank, ballot))
    each = {name: np.repeat(values, ballots.counts) for name, values in ballots.covariates.items()}
    return replace(
        ballots,
        counts=np.ones(ballots.n_ballots, np.int64),
        ballot=ballot[order],
        rank=rank[order],
        item=item[order],
        agents=None,
        covariates=each,
    )


# -- candidates ------------------------------------------------------------------------------------


def _with_names(ballots: Ballots, rules: Rules, audit: list[Entry]) -> Ballots:
    """Merge write-ins, and names that look alike."""
    targets = list(range(len(ballots.items)))
    items = list(ballots.items)
    if rules.write_ins == "merge" and ballots.write_ins:
        written = [items.index(name) for name in ballots.write_ins]
        items[written[0]] = WRITE_IN
        for code in written:
            targets[code] = written[0]
        n = _ballots_with(ballots, written)
        audit.append(Entry("write-ins", f"merged into {WRITE_IN!r}", n, _some(ballots.write_ins)))
    for alike in names_alike(items):
        codes = [items.index(name) for name in alike]
        n = _ballots_with(ballots, codes[1:])
        shown = tuple(map(str, alike))
        if rules.names == "merge":
            for code in codes[1:]:
                targets[code] = targets[codes[0]]
            audit.append(Entry("names that look alike", f"merged into {alike[0]!r}", n, shown))
        else:
            audit.append(
                Entry("names that look alike", "kept apart; the rule merge for names joins them", n, shown)
            )
    return _merged(ballots, items, targets)


def _merged(ballots: Ballots, items: Sequence[Label], targets: Sequence[int]) -> Ballots:
    """Let some candidates be others; marks of one candidate twice at the same rank become one."""
    if list(targets) == list(range(len(items))):
        return ballots
    left = sorted(set(targets))
    code = np.array([left.index(target) for target in targets], np.int32)
    item = np.where(ballots.item >= 0, code[ballots.item], ballots.item)
    once = np.unique(np.stack([ballots.ballot, ballots.rank, item]), axis=1)
    once = once[:, np.lexsort((once[1], once[0]))]
    named = {str(name) for name in ballots.write_ins} | {WRITE_IN}
    names = tuple(items[place] for place in left)
    return replace(
        ballots,
        items=names,
        ballot=once[0],
        rank=once[1].astype(np.int32),
        item=once[2].astype(np.int32),
        write_ins=tuple(name for name in names if str(name) in named),
    )


def _chosen_items(ballots: Ballots, rules: Rules, audit: list[Entry]) -> tuple[Ballots, Array]:
    """Return which candidates are left out: write-ins, and those with too little support."""
    gone = np.zeros(len(ballots.items), dtype=np.bool_)
    if rules.write_ins == "drop" and ballots.write_ins:
        written = [ballots.items.index(name) for name in ballots.write_ins]
        gone[written] = True
        n = _ballots_with(ballots, written)
        audit.append(Entry("write-ins", "left out; later ranks move up", n, _some(ballots.write_ins)))
    if rules.min_support > 0:
        least = rules.min_support * (ballots.n_ballots if rules.min_support < 1 else 1)
        support = np.array([_ballots_with(ballots, [code]) for code in range(len(gone))])
        weak = (support < least) & ~gone
        if weak.any():
            gone |= weak
            names = [name for code, name in enumerate(ballots.items) if weak[code]]
            n = _ballots_with(ballots, np.flatnonzero(weak).tolist())
            why = f"candidates on fewer than {math.ceil(least):,} ballots"
            audit.append(Entry(why, "left out; later ranks move up", n, _some(names)))
    if gone.all():
        raise DataError("no candidate is left: a smaller ", Argument("min_support"), " keeps some")
    return ballots, gone


def names_alike(names: Sequence[Label]) -> list[list[Label]]:
    """Return groups of names that differ by case, blanks, quotes, punctuation or the order of their parts.

    Examples
    --------
    >>> names_alike(["Smith, J", "J Smith", "Jones", "JONES ", "Brown"])
    [['Smith, J', 'J Smith'], ['Jones', 'JONES ']]
    """
    groups: dict[tuple[str, ...], list[Label]] = {}
    for name in names:
        text = unicodedata.normalize("NFKC", str(name)).casefold()
        # Letters, digits, marks above letters and symbols tell names apart; punctuation and blanks do not.
        kept = "".join(char if unicodedata.category(char)[0] in "LNMS" else " " for char in text)
        parts = tuple(sorted(kept.split()))
        groups.setdefault(parts or (text,), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


# -- ranks -----------------------------------------------------------------------------------------


def _by_rank(ballots: Ballots, gone: Array) -> tuple[Array, Array]:
    """Return what each rank of each ballot holds, and for overvotes where their marks begin.

    (ballots, ranks): a candidate, or EMPTY, OVERVOTE, REMOVED; marks of candidates who are left out do not
    count, but their rank was not skipped either.
    """
    shape = (len(ballots), max(ballots.n_ranks, 1))
    cells = ballots.ballot * shape[1] + ballots.rank
    stays = (ballots.item == UNNAMED) | ~gone[ballots.item]
    marked = np.full(shape[0] * shape[1], EMPTY, np.int64)
    marked[cells] = REMOVED
    marked[cells[stays]] = ballots.item[stays]
    n_marks = np.bincount(cells[stays], minlength=len(marked))
    marked[n_marks > 1] = OVERVOTE
    marked[cells[ballots.item == UNNAMED]] = OVERVOTE
    return marked.reshape(shape), (n_marks > 1).reshape(shape)


def _are_choices(ballots: Ballots, marked: Array, several: Array) -> bool:
    """Whether voters of a contest choose several candidates and rank none."""
    if marked.shape[1] > 1 or ballots.n_choices == 1:
        return False
    n_marked, n_several = (int(ballots.counts[has.any(axis=1)].sum()) for has in (marked != EMPTY, several))
    return n_several > 0 and (ballots.n_choices > 1 or 2 * n_several > n_marked)


def _choices(ballots: Ballots, gone: Array, rules: Rules, audit: list[Entry]) -> Preferences:
    """Return choices: those marked are above all others, with no order among them."""
    named = ballots.item >= 0
    n_marks = np.bincount(ballots.ballot[named], minlength=len(ballots))
    most = ballots.n_choices or len(ballots.items)
    over = n_marks > most
    over[ballots.ballot[~named]] = True
    stays = named & ~over[ballots.ballot]
    stays[named] &= ~gone[ballots.item[named]]
    code = np.cumsum(~gone) - 1
    pairs = np.unique(np.stack([ballots.ballot[stays], code[ballots.item[stays]]]), axis=1)
    sizes = np.bincount(pairs[0], minlength=len(ballots))
    counts = ballots.counts

    def told(found: str, which: Array) -> None:
        if which.any():
            audit.append(Entry(found, "left out", int(counts[which].sum())))

    told(f"ballots with more than {most} choices", over)
    told("ballots without a choice", ~over & (sizes == 0))
    told(f"ballots with fewer than {rules.min_answers} choices", (sizes > 0) & (sizes < rules.min_answers))
    kept = (sizes > 0) & (sizes >= rules.min_answers)
    if not kept.any():
        raise DataError("no ballot is left under these rules")
    done = "candidates marked are above the others, with no order among them"
    audit.append(Entry("a contest without ranks", done, int(counts[kept].sum())))
    listed = pairs[1][kept[pairs[0]]]
    return Preferences._from_arrays(
        items=tuple(name for place, name in enumerate(ballots.items) if not gone[place]),
        level_indptr=indptr_of(sizes[kept]),
        level_items=listed,
        levels=np.zeros(len(listed), np.int32),
        rest_below=True,
        counts=counts[kept],
        agents=None if ballots.agents is None else ballots.agents[kept],
        metadata={**ballots.metadata, "CLEANING": [entry._asdict() for entry in audit]},
    )


def _overvotes(
    ballots: Ballots, marked: Array, several: Array, rule: str, seed: Any, kept: Array, audit: list[Entry]
) -> None:
    over = marked == OVERVOTE
    has = over.any(axis=1)
    if not has.any():
        return
    if rule == "truncate":
        marked[np.logical_or.accumulate(over, axis=1)] = REMOVED
        done = "the ballot ends before the rank"
    elif rule == "skip":
        marked[over] = REMOVED
        done = "the rank is passed over"
    elif rule == "drop":
        kept &= ~has
        done = "the ballot is left out"
    else:
        _draw_one(ballots, marked, over, several, generator(seed))
        done = "one of the candidates is drawn"
    n = int(ballots.counts[has].sum())
    audit.append(Entry("overvotes: several candidates at one rank", done, n))


def _draw_one(ballots: Ballots, marked: Array, over: Array, several: Array, rng: np.random.Generator) -> None:
    """Draw one of the candidates of each overvote; where a file does not name them, the rank is removed."""
    marked[over & ~several] = REMOVED
    cells = ballots.ballot * marked.shape[1] + ballots.rank
    flat = marked.reshape(-1)
    places = np.flatnonzero(several.reshape(-1))
    wanted = np.isin(cells, places) & (ballots.item >= 0)
    order = np.argsort(rng.random(np.count_nonzero(wanted)), kind="stable")
    # Of marks in random order, the last at a rank is the one that stays.
    flat[cells[wanted][order]] = ballots.item[wanted][order]


def _skipped(ballots: Ballots, marked: Array, rule: str, kept: Array, audit: list[Entry]) -> None:
    empty = marked == EMPTY
    later = np.logical_or.accumulate(marked[:, ::-1] >= 0, axis=1)[:, ::-1]
    skipped = empty & later
    has = skipped.any(axis=1) & kept
    if not has.any():
        return
    n = int(ballots.counts[has].sum())
    audit.append(
        Entry("skipped ranks", "later ranks move up", n)
        if rule == "close-up"
        else _stopped(ballots, marked, skipped, rule, has, n)
    )


def _stopped(ballots: Ballots, marked: Array, skipped: Array, rule: str, has: Array, n: int) -> Entry:
    """End ballots where ranks are skipped; return the line of the audit."""
    ends = skipped.copy()
    if rule == "stop-after-two":
        ends[:, 1:] &= skipped[:, :-1]
        ends[:, 0] = False
    ended = ends.any(axis=1)
    marked[np.logical_or.accumulate(ends, axis=1)] = REMOVED
    n_ended = int(ballots.counts[ended & has].sum())
    how_many = "two ranks in a row are" if rule == "stop-after-two" else "a rank is"
    return Entry("skipped ranks", f"later ranks move up; {n_ended:,} end where {how_many} skipped", n)


def _repeats(ballots: Ballots, marked: Array, rule: str, kept: Array, audit: list[Entry]) -> None:
    again = np.zeros(marked.shape, dtype=np.bool_)
    for rank in range(1, marked.shape[1]):
        here = marked[:, rank]
        again[:, rank] = (here >= 0) & (marked[:, :rank] == here[:, None]).any(axis=1)
    has = again.any(axis=1) & kept
    if not has.any():
        return
    marked[np.logical_or.accumulate(again, axis=1) if rule == "truncate" else again] = REMOVED
    done = "the first rank counts" if rule == "first" else "the ballot ends before the second"
    audit.append(Entry("candidates ranked again", done, int(ballots.counts[has].sum())))


def _closed_up(marked: Array) -> Array:
    """Move candidates to the left, in order; -1 after them."""
    places = np.argsort(marked < 0, axis=1, kind="stable")
    moved = np.take_along_axis(marked, places, axis=1)
    return np.where(moved >= 0, moved, -1)


def _short(ballots: Ballots, orders: Array, least: int, kept: Array, audit: list[Entry]) -> None:
    lengths = np.count_nonzero(orders >= 0, axis=1)
    blank = kept & (lengths == 0)
    if blank.any():
        audit.append(Entry("ballots without a choice", "left out", int(ballots.counts[blank].sum())))
    short = kept & (lengths > 0) & (lengths < least)
    if short.any():
        why = f"ballots with fewer than {least} choices"
        audit.append(Entry(why, "left out", int(ballots.counts[short].sum())))
    kept &= ~(blank | short)


# -- the audit -------------------------------------------------------------------------------------


def _ballots_with(ballots: Ballots, codes: Sequence[int]) -> int:
    """Number of ballots on which one of some candidates is marked."""
    rows = np.unique(ballots.ballot[np.isin(ballots.item, codes)])
    return int(ballots.counts[rows].sum())


def _some(names: Sequence[Any]) -> tuple[str, ...]:
    more = (f"… and {len(names) - SHOWN} more",) if len(names) > SHOWN else ()
    return (*map(str, names[:SHOWN]), *more)


def audit_of(metadata: Mapping[str, Any]) -> list[Entry]:
    """Return what was done to the ballots that rankings came from; empty where nothing had to be."""
    told = (metadata or {}).get("CLEANING", ())
    told = told if isinstance(told, list) else ()  # a header of a file may have such a line as well
    return [Entry(**{**entry, "which": tuple(entry["which"])}) for entry in told]
