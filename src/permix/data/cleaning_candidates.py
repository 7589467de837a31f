"""Which candidates there are: write-ins, names that look alike, and those that few ballots name."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from permix.data.ballots import Ballots, Entry
from permix.data.labels import Array, Label
from permix.errors import Argument, DataError

WRITE_IN, OTHER = "write-in", "other"
# Letters of Cyrillic and Greek that are drawn like Latin ones.
_AS_LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухΑΒΕΖΗΙΚΜΝΟΡΤΥΧνο",
    "ABESIJKMHOPCTYXaesijopcyxABEZHIKMNOPTYXvo",
)
# How many names an entry of the audit lists.
SHOWN = 5


def with_names(ballots: Ballots, rules: Any, audit: list[Entry]) -> Ballots:
    """Merge names that look alike, then write-ins: a name joined to a candidate is no write-in any more."""
    if rules.names == "merge":
        ballots = _without_look_alikes(ballots, audit)
    if rules.write_ins == "merge" and ballots.write_ins:
        items = list(ballots.items)
        written = [items.index(name) for name in ballots.write_ins]
        n = ballots_with(ballots, written)
        done = f"merged into {WRITE_IN!r}"
        audit.append(Entry("write-ins", done, n, some(ballots.write_ins), rule="write_ins"))
        items[written[0]] = WRITE_IN
        ballots = _merged(ballots, items, [written[0] if at in written else at for at in range(len(items))])
    for alike in names_alike(ballots.items):
        n = ballots_with(ballots, [ballots.items.index(name) for name in alike[1:]])
        done = "kept apart; the rule merge for names joins them"
        audit.append(Entry("names that look alike", done, n, tuple(map(str, alike)), rule="names"))
    return ballots


def _without_look_alikes(ballots: Ballots, audit: list[Entry]) -> Ballots:
    """Make one of names that look alike: the first that was not written in, else the first."""
    targets = list(range(len(ballots.items)))
    for alike in names_alike(ballots.items):
        target = next((name for name in alike if name not in ballots.write_ins), alike[0])
        others = [ballots.items.index(name) for name in alike if name != target]
        for code in others:
            targets[code] = ballots.items.index(target)
        n = ballots_with(ballots, others)
        done = f"merged into {target!r}"
        audit.append(Entry("names that look alike", done, n, tuple(map(str, alike)), rule="names"))
    return _merged(ballots, ballots.items, targets)


def _merged(ballots: Ballots, items: Sequence[Label], targets: Sequence[int]) -> Ballots:
    """Let some candidates be others; marks of one candidate twice at the same rank become one."""
    if list(targets) == list(range(len(items))) and tuple(items) == ballots.items:
        return ballots
    left = sorted(set(targets))
    new = {target: place for place, target in enumerate(left)}
    code = np.array([new[target] for target in targets], np.int32)
    item = np.where(ballots.item >= 0, code[ballots.item], ballots.item)
    once = np.unique(np.stack([ballots.ballot, ballots.rank, item]), axis=1)
    once = once[:, np.lexsort((once[1], once[0]))]
    named = {str(name) for name in ballots.write_ins} | {WRITE_IN}
    names = tuple(items[place] for place in left)
    known = ballots.attributes.take([-1 if items[at] != ballots.items[at] else at for at in left])
    return replace(
        ballots,
        items=names,
        ballot=once[0],
        rank=once[1].astype(np.int32),
        item=once[2].astype(np.int32),
        attributes=known,
        write_ins=tuple(name for name in names if str(name) in named),
    )


def chosen_items(ballots: Ballots, rules: Any, audit: list[Entry]) -> tuple[Ballots, Array]:
    """Return which candidates are left out: write-ins, and those with too little support, unless merged."""
    gone = np.zeros(len(ballots.items), dtype=np.bool_)
    if rules.write_ins == "drop" and ballots.write_ins:
        written = [ballots.items.index(name) for name in ballots.write_ins]
        gone[written] = True
        n = ballots_with(ballots, written)
        done = "left out; later ranks move up"
        audit.append(Entry("write-ins", done, n, some(ballots.write_ins), rule="write_ins"))
    if rules.min_support > 0:
        least = least_support(rules, ballots.n_ballots)
        weak = (support_of(ballots) < least) & ~gone
        if weak.any():
            names = [name for code, name in enumerate(ballots.items) if weak[code]]
            n = ballots_with(ballots, np.flatnonzero(weak).tolist())
            merge = rules.below_support == "merge"
            done = f"merged into {OTHER!r}" if merge else "left out; later ranks move up"
            audit.append(Entry(too_few(least), done, n, some(names), rule="min_support"))
            refuse_nobody(gone | weak)
            if merge:
                return _as_other(ballots, weak, gone)
            gone |= weak
    refuse_nobody(gone)
    return ballots, gone


def _as_other(ballots: Ballots, weak: Array, gone: Array) -> tuple[Ballots, Array]:
    """Make one candidate of all with too little support."""
    first = int(np.argmax(weak))
    items = list(ballots.items)
    if OTHER in items and not weak[items.index(OTHER)]:
        raise DataError(
            f"a candidate is called {OTHER!r}; ", Argument("below_support", "drop"), " leaves the others out"
        )
    items = [f"{name}" if weak[at] and name == OTHER else name for at, name in enumerate(items)]
    items[first] = OTHER
    merged = _merged(ballots, items, [first if weak[at] else at for at in range(len(items))])
    left = np.flatnonzero(~weak | (np.arange(len(items)) == first))
    return merged, gone[left]


def support_of(ballots: Ballots) -> Array:
    """Return on how many ballots each candidate is marked."""
    pairs = ballots.ballot * len(ballots.items) + ballots.item
    once = np.unique(pairs[ballots.item >= 0])
    row, item = np.divmod(once, len(ballots.items))
    return np.bincount(item, ballots.counts[row], len(ballots.items))


def least_support(rules: Any, n_ballots: int) -> int:
    """Return the number of ballots that a candidate must be on.

    A share is taken as it is written: in floating point, 0.07 of 100 ballots would be more than 7.
    """
    share = Fraction(str(float(rules.min_support)))
    return math.ceil(share * n_ballots if share < 1 else share)


def too_few(least: int, who: str = "candidates", where: str = "ballots") -> str:
    """Say what is found of candidates with too little support."""
    return f"{who} on fewer than {least:,} {where}"


def refuse_nobody(gone: Array) -> None:
    """Refuse rules under which no candidate is left."""
    if gone.all():
        raise DataError("no candidate is left: a smaller ", Argument("min_support"), " keeps some")


def names_alike(names: Sequence[Label]) -> list[list[Label]]:
    """Return groups of names that differ by case, blanks, quotes, punctuation or the order of their parts.

    So do names with letters of another alphabet that look the same, or with signs that cannot be seen.

    Examples
    --------
    >>> names_alike(["Smith, J", "J Smith", "Jones", "JONES ", "Brown"])
    [['Smith, J', 'J Smith'], ['Jones', 'JONES ']]
    """
    groups: dict[tuple[str, ...], list[Label]] = {}
    for name in names:
        text = unicodedata.normalize("NFKC", str(name))
        group = [name]
        for again, seen_as in enumerate((text, text.translate(_AS_LATIN))):
            held = groups.setdefault(_parts(seen_as), group)
            if held is not group:  # all that has one of the two keys is one group
                held += group
                if again:
                    groups |= {each: held for each, other in groups.items() if other is group}
                group = held
    once = {id(group): group for group in groups.values() if len(group) > 1}
    return list(once.values())


def _parts(text: str) -> tuple[str, ...]:
    """Return the parts of a name, sorted: what is left of case, blanks and punctuation."""
    folded = text.casefold()
    seen = [(char, unicodedata.category(char)) for char in folded]
    # Letters, digits, marks above letters and symbols tell names apart; punctuation and blanks do not.
    kept = "".join(char if kind[0] in "LNMS" else " " for char, kind in seen if kind != "Cf")
    return tuple(sorted(kept.split())) or (folded,)


def ballots_with(ballots: Ballots, codes: Sequence[int]) -> int:
    """Return the number of ballots on which one of some candidates is marked."""
    rows = np.unique(ballots.ballot[np.isin(ballots.item, codes)])
    return int(ballots.counts[rows].sum())


def some(names: Sequence[Any]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    more = (f"… and {len(names) - SHOWN} more",) if len(names) > SHOWN else ()
    return (*map(str, names[:SHOWN]), *more)


def audit_of(metadata: Mapping[str, Any]) -> list[Entry]:
    """Return what was done to the ballots that rankings came from; empty where nothing had to be."""
    told = (metadata or {}).get("CLEANING", ())
    told = told if isinstance(told, list) else ()  # a header of a file may have such a line as well
    return [Entry(**{**entry, "which": tuple(entry["which"])}) for entry in told]
