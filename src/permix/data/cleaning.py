"""From marks to rankings: rules for overvotes, skipped ranks and the like, and an audit of what they did.

The defaults are those that most ranked-choice elections in the United States use, as RCTab, the tabulator of
the Ranked Choice Voting Resource Center, recommends them: an overvote ends the ballot, two skipped ranks in a
row end it, one is passed over, and of a candidate ranked twice the first mark counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.attributes import NONE, Attributes, from_text
from permix.data.ballots import UNNAMED, Ballots, Entry
from permix.data.cleaning_candidates import (
    audit_of,
    chosen_items,
    least_support,
    names_alike,
    refuse_nobody,
    some,
    too_few,
    with_names,
)
from permix.data.cleaning_names import merged_names
from permix.data.csr import gather, indptr_of
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, NoRows, ParameterError
from permix.registries import BALLOT_RULES
from permix.runtime.seeds import generator

if TYPE_CHECKING:
    from permix.data.cells import Cells

# What a rank of a ballot holds instead of a candidate: nothing, several candidates, or something removed.
EMPTY, OVERVOTE, REMOVED = -1, -2, -3
SEVERAL = "overvotes: several candidates at one rank"
UNNAMED_SEVERAL = "overvotes of which the file does not say who was marked"
TIES = "ties: several items at one rank"
# Ballots that are drawn for one by one; a row of each, with all its ranks, must be held in memory.
MOST_DRAWN = 20_000_000
# Rules that are about ranks, and say nothing about comparisons and ratings.
ABOUT_RANKS = ("overvotes", "skipped", "repeats", "tied_ranks", "write_ins")


@dataclass(frozen=True)
class Rules:
    """What is done about marks that are no plain ranking; see :func:`clean`."""

    overvotes: str = "truncate"
    skipped: str = "stop-after-two"
    repeats: str = "first"
    tied_ranks: str = "keep"
    write_ins: str = "keep"
    names: str = "keep"
    below_support: str = "drop"
    min_support: float = 0
    min_answers: int = 1

    def __post_init__(self) -> None:
        for name, choices in BALLOT_RULES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ParameterError(name, value, " or ".join(map(repr, choices)))
        if not (isinstance(self.min_support, Real) and 0 <= self.min_support < np.inf):
            raise ParameterError("min_support", self.min_support, "a number of ballots, 0 or more")
        if not (isinstance(self.min_answers, Integral) and self.min_answers >= 0):
            raise ParameterError("min_answers", self.min_answers, "a whole number, 0 or more")


def clean(ballots: Ballots | Rankings | Preferences | Cells, random_state: Any = 0, **rules: Any) -> Any:
    """Turn marks into rankings, by rules; ``metadata["CLEANING"]`` says what was done to how many ballots.

    Parameters
    ----------
    ballots : Ballots, Rankings, Preferences or Cells
        Of comparisons, and of rankings or ratings of some items that leave the others open, ``names``,
        ``min_support`` and ``min_answers`` say anything, of matrices the last two; the other rules are about
        ranks.
    random_state : seed
        For ``overvotes="random"`` and ``tied_ranks="break"``.
    overvotes : {"truncate", "skip", "random", "drop"}
        Where several candidates are marked at one rank: the ballot ends before it, the rank is passed over,
        one of them is drawn, or the ballot is dropped. Ties in rankings and preferences are overvotes where
        this rule is given.
    skipped : {"stop-after-two", "stop-after-one", "close-up"}
        Where a rank is left out and later ones are not: the ballot ends where two ranks in a row, or one,
        are left out; or later ranks move up.
    repeats : {"first", "truncate"}
        Where a candidate is ranked again: the first mark counts, or the ballot ends before the second.
    tied_ranks : {"keep", "break", "truncate"}
        Where several items share a rank, and none is wrong: they stay tied (the result is then Preferences),
        are put in random order, or the ranking ends before them. Given for ballots, it takes the place of
        ``overvotes``; of VoteKit profiles, in which several at one rank are tied, it is the default.
    write_ins : {"keep", "merge", "drop"}
        Candidates who were written in stay, are one candidate called "write-in", or are left out.
    names : {"keep", "merge"}
        Whether candidates whose names differ by case, blanks, quotes, punctuation or the order of their parts
        ("Smith, J" and "J Smith") are one. Where they are kept, the audit lists them.
    below_support : {"drop", "merge"}
        Whether candidates with less than ``min_support`` are left out, or one candidate called "other".
    min_support : number
        The least number of ballots that name a candidate; below 1, a share of the ballots.
    min_answers : int
        Ballots that rank fewer candidates are left out.

    Returns
    -------
    Rankings, Preferences or Cells
        Preferences where ties are kept, or where voters choose several candidates and rank none. The rest of
        the candidates is below those ranked or chosen. Rows are ballots in file order, those left out
        missing; ``agents`` are their ids. Covariates of ballots and attributes of items go along.

    Examples
    --------
    >>> from permix.data.ballots import Ballots
    >>> marked = Ballots.from_rows([[["tea"], [], ["milk"]], [["milk"], ["tea", "coffee"]], [[], []]])
    >>> clean(marked)
    Rankings: 2 agents over 3 items, top lists of 1 to 2 items
      0: tea ≻ milk ≻ rest
      1: milk ≻ rest
    >>> clean(marked, tied_ranks="keep")
    Preferences: 2 agents over 3 items, levels of 2 to 3 items
      0: tea ≻ milk ≻ rest
      1: milk ≻ {tea, coffee}
    """
    unknown = [name for name in rules if name not in Rules.__dataclass_fields__]
    if unknown:
        raise DataError(f"there is no rule {unknown[0]!r}; there are {', '.join(Rules.__dataclass_fields__)}")
    chosen = Rules(**rules)
    if "tied_ranks" in rules and "overvotes" in rules:
        either = (Argument("tied_ranks"), " and ", Argument("overvotes"))
        raise DataError(*either, " both say what is done where several share a rank; give one of them")
    about_several = chosen.overvotes
    are_marks = isinstance(ballots, Ballots)
    if not isinstance(ballots, Ballots | Rankings | Preferences):
        from permix.data.cleaning_cells import clean_cells

        idle = [name for name in (*ABOUT_RANKS, "names", "below_support") if name in rules]
        if idle:
            raise DataError(Argument(idle[0]), " is a rule for ballots, and this is a matrix")
        return clean_cells(ballots, chosen)
    if not isinstance(ballots, Ballots):
        if not _has_ranks(ballots):
            return _without_few(ballots, chosen, [name for name in ABOUT_RANKS if name in rules])
        about_several = chosen.overvotes if "overvotes" in rules else chosen.tied_ranks
        ballots = marks_of(ballots)
    elif "tied_ranks" in rules or (ballots.ties and "overvotes" not in rules):
        about_several = chosen.tied_ranks
    audit = list(ballots.audit)
    ballots = with_names(ballots, chosen, audit)
    ballots, gone = chosen_items(ballots, chosen, audit)
    marked, several = _by_rank(ballots, gone)
    if are_marks and _are_choices(ballots, marked, several):
        return _choices(ballots, gone, chosen, audit)
    if several.any() and about_several in ("random", "break"):
        ballots = _one_by_one(ballots, np.asarray(several.any(axis=1)))
        marked, several = _by_rank(ballots, gone)
    level = np.broadcast_to(np.arange(marked.shape[1]), marked.shape)
    kept = np.ones(len(ballots), dtype=np.bool_)
    if several.any() and about_several in ("keep", "break"):
        rng = generator(random_state) if about_several == "break" else None
        n = int(ballots.counts[several.any(axis=1)].sum())
        audit.append(Entry(TIES, "put in random order" if rng else "kept", n, rule="tied_ranks"))
        ballots, tied = _spread(ballots, gone, rng)
        marked, several = _by_rank(ballots, gone)
        level = np.broadcast_to(np.arange(marked.shape[1]), marked.shape) if rng else tied
    _overvotes(ballots, marked, several, about_several, random_state, kept, audit)
    _skipped(ballots, marked, chosen.skipped, kept, audit)
    _repeats(ballots, marked, chosen.repeats, kept, audit)
    orders, levels = _closed_up(marked, level)
    _short(ballots, orders, chosen.min_answers, kept, audit)
    if not kept.any():
        said = "; ".join(f"{entry.found}: {entry.ballots:,} ({entry.done})" for entry in audit)
        raise NoRows(f"no ballot is left under these rules. {said}")
    renumbered = np.cumsum(~gone) - 1
    orders = np.where(orders >= 0, renumbered[orders], -1)[kept].astype(np.int32)
    return _with_levels(orders, levels[kept], _about(ballots, gone, kept, audit))


def _about(ballots: Ballots, gone: Array, kept: Array, audit: list[Entry]) -> dict[str, Any]:
    """Return what goes with the ballots and candidates that are kept."""
    known = _taken(ballots.covariates, np.flatnonzero(kept))
    return {
        "items": tuple(name for code, name in enumerate(ballots.items) if not gone[code]),
        "metadata": {**ballots.metadata, "CLEANING": [entry._asdict() for entry in audit]},
        "agents": None if ballots.agents is None else ballots.agents[kept],
        "counts": ballots.counts[kept],
        "covariates": known if isinstance(known, Attributes) else from_text(known),
        "item_attributes": ballots.attributes.take(np.flatnonzero(~gone)) if ballots.attributes else NONE,
    }


def _with_levels(orders: Array, levels: Array, about: dict[str, Any]) -> Any:
    """Return rankings, or preferences where entries of a row share a level; -1 is padding."""
    listed = orders >= 0
    tied = listed[:, 1:] & (levels[:, 1:] == levels[:, :-1])
    if not tied.any():
        return Rankings._from_arrays(orders, unlisted_below=True, **about)
    place = np.cumsum(np.concatenate([np.zeros((len(orders), 1), np.int64), ~tied], axis=1), axis=1)
    return Preferences._from_arrays(
        level_indptr=indptr_of(listed.sum(axis=1)),
        level_items=orders[listed],
        levels=place[listed].astype(np.int32),
        rest_below=True,
        **about,
    )


# -- what comes in ---------------------------------------------------------------------------------


def _has_ranks(table: Rankings | Preferences) -> bool:
    """Whether rows are rankings whose other items are below."""
    if isinstance(table, Rankings):
        return bool(table.unlisted_below.all())
    return len(table.level_items) > 0 and int(table.pair_indptr[-1]) == 0 and bool(table.rest_below.all())


def marks_of(table: Rankings | Preferences) -> Ballots:
    """Return rankings, with ties or without, as marks: a rank for each level."""
    from permix.data.io.marks import is_write_in

    if isinstance(table, Rankings):
        ballot, rank = np.nonzero(table.orders >= 0)
        item = table.orders[ballot, rank]
    else:
        lengths = np.diff(table.level_indptr)
        ballot = np.repeat(np.arange(len(lengths)), lengths)
        rank, item = table.levels, table.level_items
        # Where all items are listed, several at the last level are the rest, which nobody ranked.
        last = np.repeat(np.maximum.reduceat(rank, table.level_indptr[:-1]), lengths)
        at_last = np.bincount(ballot[rank == last], minlength=len(lengths))
        whole = (lengths == len(table.items)) & (at_last > 1) & (at_last < lengths)
        ranked = ~(whole[ballot] & (rank == last))
        ballot, rank, item = ballot[ranked], rank[ranked], item[ranked]
    order = np.lexsort((rank, ballot))
    return Ballots(
        items=tuple(table.items),
        n_ranks=int(rank.max(initial=0)) + 1,
        counts=np.asarray(table.counts, np.int64),
        ballot=np.asarray(ballot, np.int64)[order],
        rank=np.asarray(rank, np.int32)[order],
        item=np.asarray(item, np.int32)[order],
        agents=table._agents,
        covariates=table.covariates,
        attributes=table.item_attributes,
        write_ins=tuple(name for name in table.items if isinstance(name, str) and is_write_in(name)),
        metadata=table.metadata,
        audit=tuple(audit_of(table.metadata)),
    )


def _without_few(table: Rankings | Preferences, rules: Rules, given: list[str]) -> Rankings | Preferences:
    """Leave out items that few agents mention, and agents who say little; of comparisons and ratings."""
    if given:
        why = "comparisons have no ranks" if len(table.arrays().pairs) else "here the others are unknown"
        said = f" is a rule for rankings whose other items are below; {why}"
        raise DataError(Argument(given[0]), said)
    if rules.below_support == "merge":
        said = " is for rankings whose other items are below; of comparisons and ratings, rename the items"
        raise DataError(Argument("below_support", "merge"), said)
    stated = table if isinstance(table, Preferences) else Preferences.from_rankings(table)
    audit = audit_of(table.metadata)
    if rules.names == "merge":
        stated = merged_names(stated, audit)
    for alike in names_alike(stated.items):
        n = int(
            stated.counts[_mentions(stated)[:, [stated.items.index(name) for name in alike[1:]]].any(1)].sum()
        )
        done = "kept apart; the rule merge for names joins them"
        audit.append(Entry("names that look alike", done, n, tuple(map(str, alike)), rule="names"))
    mentions = _mentions(stated)
    least = least_support(rules, int(stated.n_agents))
    weak = (stated.counts @ mentions) < least
    if weak.any():
        refuse_nobody(weak)
        names = [name for code, name in enumerate(stated.items) if weak[code]]
        n = int(stated.counts[mentions[:, weak].any(axis=1)].sum())
        found = too_few(least, "items", "agents' answers")
        audit.append(Entry(found, "left out", n, some(names), rule="min_support"))
        stated = over_some_items(stated, ~weak)
    said = _mentions(stated).sum(axis=1)
    few = f"agents who mention fewer than {rules.min_answers} items"
    for short, found, rule in (
        (said == 0, "agents who say nothing", ""),
        ((said > 0) & (said < rules.min_answers), few, "min_answers"),
    ):
        if short.any():
            n = int(stated.counts[short].sum())
            audit.append(Entry(found, "left out", n, left_out=n, rule=rule))
    kept = said >= max(rules.min_answers, 1)
    if not kept.any():
        raise NoRows("no agent is left under these rules; a smaller ", Argument("min_answers"), " keeps some")
    about = {**table.metadata, "CLEANING": [entry._asdict() for entry in audit]}
    stated = stated[kept]._replaced(metadata=about)
    return stated.to_rankings() if isinstance(table, Rankings) else stated


def _mentions(stated: Preferences) -> Array:
    """Return which items each agent mentions (agents, items)."""
    found = np.zeros((len(stated), stated.n_items), dtype=np.bool_)
    found[np.repeat(np.arange(len(stated)), np.diff(stated.level_indptr)), stated.level_items] = True
    agent = np.repeat(np.arange(len(stated)), np.diff(stated.pair_indptr))
    for side in (0, 1):
        found[agent, stated.pairs[:, side]] = True
    return found


def over_some_items(stated: Preferences, kept: Array) -> Preferences:
    """Return what agents say of some items alone; levels that are left empty close up."""
    new = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    agent = np.repeat(np.arange(len(stated)), np.diff(stated.level_indptr))
    stays = kept[stated.level_items]
    agent, items, levels = agent[stays], new[stated.level_items[stays]], stated.levels[stays]
    first = np.ones(len(agent), dtype=np.bool_)
    first[1:] = agent[1:] != agent[:-1]
    step = first | np.concatenate([[False], levels[1:] != levels[:-1]]) if len(agent) else first
    place = np.cumsum(step)
    place = (
        place - place[np.maximum.accumulate(np.where(first, np.arange(len(agent)), 0))]
        if len(agent)
        else place
    )
    by_pair = np.repeat(np.arange(len(stated)), np.diff(stated.pair_indptr))
    both = kept[stated.pairs].all(axis=1)
    names = tuple(name for code, name in enumerate(stated.items) if kept[code])
    return stated._replaced(
        items=names,
        level_indptr=indptr_of(np.bincount(agent, minlength=len(stated))),
        level_items=items,
        levels=place.astype(np.int32),
        pair_indptr=indptr_of(np.bincount(by_pair[both], minlength=len(stated))),
        pairs=new[stated.pairs[both]],
    )


def _one_by_one(ballots: Ballots, drawn: Array) -> Ballots:
    """Give every ballot that is drawn for a row of its own, so that each draws for itself."""
    times = np.where(drawn, ballots.counts, 1)
    if times.max() == 1:
        return ballots
    if times.sum(dtype=np.float64) > MOST_DRAWN:
        n = int(ballots.counts[drawn].sum(dtype=np.float64))
        raise DataError(
            f"several share a rank on {n:,} ballots, of which each draws for itself; "
            f"at most {MOST_DRAWN:,} can. Divide the counts, or end such ballots with ",
            Argument("overvotes", "truncate"),
        )
    starts = np.searchsorted(ballots.ballot, np.arange(len(ballots) + 1))
    rows = np.repeat(np.arange(len(ballots)), times)
    indptr, places = gather(starts, rows)
    return replace(
        ballots,
        counts=np.where(drawn, 1, ballots.counts)[rows],
        ballot=np.repeat(np.arange(len(rows)), np.diff(indptr)),
        rank=ballots.rank[places],
        item=ballots.item[places],
        agents=None if ballots.agents is None else ballots.agents[rows],
        covariates=_taken(ballots.covariates, rows),
    )


def _taken(covariates: Mapping[str, Array], rows: Array) -> Mapping[str, Array]:
    """Return covariates of some rows; columns that are typed already stay what they are."""
    if isinstance(covariates, Attributes):
        return covariates.take(rows)
    return {name: values[rows] for name, values in covariates.items()}


def _spread(ballots: Ballots, gone: Array, rng: np.random.Generator | None) -> tuple[Ballots, Array]:
    """Give marks that share a rank ranks of their own, at random or in the order of the items.

    Also the rank that each of the new ranks was (ballots, ranks), by which ties are known again.
    """
    named = (ballots.item != UNNAMED) & ~gone[ballots.item]
    shared = rng.random(len(ballots.item)) if rng is not None else ballots.item
    order = np.lexsort((shared, ~named, ballots.rank, ballots.ballot))
    ballot, rank, item, named = (a[order] for a in (ballots.ballot, ballots.rank, ballots.item, named))
    again = np.zeros(len(ballot), dtype=np.bool_)  # whether a mark needs a rank of its own
    again[1:] = (ballot[1:] == ballot[:-1]) & (rank[1:] == rank[:-1]) & named[1:] & named[:-1]
    extra = np.cumsum(again)
    starts = np.searchsorted(ballot, np.arange(len(ballots)))
    before = np.concatenate([[0], extra])[starts]  # of earlier ballots
    new = rank + extra - before[ballot]
    n_ranks = int(new.max(initial=ballots.n_ranks - 1)) + 1
    n_ranks = max(n_ranks, ballots.n_ranks + int(np.bincount(ballot[again], minlength=1).max(initial=0)))
    level = np.full((len(ballots), n_ranks), -1, np.int64)
    level[ballot, new] = rank
    spread = replace(ballots, n_ranks=n_ranks, ballot=ballot, rank=new.astype(np.int32), item=item)
    return spread, level


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

    def told(found: str, which: Array, rule: str = "") -> None:
        if which.any():
            n = int(counts[which].sum())
            audit.append(Entry(found, "left out", n, left_out=n, rule=rule))

    told(f"ballots with more than {most} choices", over)
    told("ballots without a choice", ~over & (sizes == 0))
    few = (sizes > 0) & (sizes < rules.min_answers)
    told(f"ballots with fewer than {rules.min_answers} choices", few, "min_answers")
    kept = (sizes > 0) & (sizes >= rules.min_answers)
    if not kept.any():
        raise NoRows("no ballot is left under these rules")
    done = "candidates marked are above the others, with no order among them"
    audit.append(Entry("a contest without ranks", done, int(counts[kept].sum())))
    listed = pairs[1][kept[pairs[0]]]
    return Preferences._from_arrays(
        level_indptr=indptr_of(sizes[kept]),
        level_items=listed,
        levels=np.zeros(len(listed), np.int32),
        rest_below=True,
        **_about(ballots, gone, kept, audit),
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
    elif rule == "random":
        _draw_one(ballots, marked, over, several, generator(seed))
        done = "one of the candidates is drawn"
        unnamed = (over & ~several).any(axis=1)
        if unnamed.any():
            n = int(ballots.counts[unnamed].sum())
            audit.append(Entry(UNNAMED_SEVERAL, "the rank is passed over", n, rule="overvotes"))
            has = several.any(axis=1)
    else:  # ties are kept or broken already; who was marked here is not known
        marked[over] = REMOVED
        n = int(ballots.counts[has].sum())
        audit.append(Entry(UNNAMED_SEVERAL, "the rank is passed over", n, rule="overvotes"))
        return
    n = int(ballots.counts[has].sum())
    if n:
        audit.append(Entry(SEVERAL, done, n, left_out=n if rule == "drop" else 0, rule="overvotes"))


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
        Entry("skipped ranks", "later ranks move up", n, rule="skipped")
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
    done = f"later ranks move up; {n_ended:,} end where {how_many} skipped"
    return Entry("skipped ranks", done, n, rule="skipped")


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
    n = int(ballots.counts[has].sum())
    audit.append(Entry("candidates ranked again", done, n, rule="repeats"))


def _closed_up(marked: Array, level: Array) -> tuple[Array, Array]:
    """Move candidates to the left, in order, -1 after them; also the rank that each was marked at."""
    places = np.argsort(marked < 0, axis=1, kind="stable")
    moved = np.take_along_axis(marked, places, axis=1)
    return np.where(moved >= 0, moved, -1), np.take_along_axis(level, places, axis=1)


def _short(ballots: Ballots, orders: Array, least: int, kept: Array, audit: list[Entry]) -> None:
    lengths = np.count_nonzero(orders >= 0, axis=1)
    blank = kept & (lengths == 0)
    if blank.any():
        n = int(ballots.counts[blank].sum())
        audit.append(Entry("ballots without a choice", "left out", n, left_out=n))
    short = kept & (lengths > 0) & (lengths < least)
    if short.any():
        why = f"ballots with fewer than {least} choices"
        n = int(ballots.counts[short].sum())
        audit.append(Entry(why, "left out", n, left_out=n, rule="min_answers"))
    kept &= ~(blank | short)
