"""Ballots as they were marked, before any rule says what a mark means.

Voters mark two candidates at one rank, leave a rank out, or rank somebody twice. Readers of ballots keep all
of that; :func:`permix.data.cleaning.clean` applies rules and counts what each did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from permix.data.attributes import NONE, Attributes
from permix.data.io.marks import is_write_in
from permix.data.labels import Array, Label, refuse_sums_beyond, some_names
from permix.errors import DataError

# The candidate of an overvote of which a file does not say who was marked.
UNNAMED = -1
# More ranks than any ballot has.
MOST_RANKS = 1000


def refuse_ranks(n_ranks: int) -> None:
    """Refuse numbers of ranks that no ballot has, before memory is taken for them."""
    if n_ranks > MOST_RANKS:
        raise DataError(f"{n_ranks:,} ranks are more than any ballot has (at most {MOST_RANKS:,} are read)")


class Entry(NamedTuple):
    """One line of an audit: what was found, what was done about it, on how many ballots, and examples.

    Of these ballots, so many were left out; each ballot that is left out is counted by one line alone.
    """

    found: str
    done: str
    ballots: int
    which: tuple[str, ...] = ()
    left_out: int = 0
    rule: str = ""  # the argument of ``clean`` or of the reader that says what is done; "" for none


@dataclass(frozen=True, eq=False)
class Ballots:
    """Marks of one contest: who was marked at which rank of which ballot.

    Examples
    --------
    >>> from permix.data.ballots import Ballots
    >>> Ballots.from_rows([[["tea"], [], ["milk", "coffee"]]])
    Ballots: 1 ballot over 3 items, 3 ranks, 3 marks
    """

    items: tuple[Label, ...]
    n_ranks: int
    counts: Array  # int64: how many ballots each row stands for
    ballot: Array  # int64: row of each mark, in ascending order
    rank: Array  # int32: rank of each mark, from 0
    item: Array  # int32: candidate of each mark, or UNNAMED
    agents: Array | None = None  # ids of the ballots, where the file has them
    covariates: Mapping[str, Array] = field(default_factory=dict)  # what else it says of each ballot
    attributes: Attributes = NONE  # of items: party, color, …
    write_ins: tuple[Label, ...] = ()  # items that were written in
    ties: bool = False  # several at one rank are tied and no overvote, unless a rule says so
    n_choices: int = 0  # candidates that a voter may choose where none is ranked; 0 where the file is silent
    metadata: Mapping[str, Any] = field(default_factory=dict)
    audit: tuple[Entry, ...] = ()  # what reading them left out

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            raise DataError("two candidates have the same name; tell them apart")
        refuse_ranks(self.n_ranks)
        refuse_sums_beyond(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def n_ballots(self) -> int:
        """Number of ballots, rows with a count as many times."""
        return int(self.counts.sum())

    def __repr__(self) -> str:
        n = self.n_ballots
        ballots, marks = f"{n:,} ballot{'s' * (n != 1)}", f"{len(self.item):,} marks"
        return f"Ballots: {ballots} over {len(self.items)} items, {self.n_ranks} ranks, {marks}"

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Sequence[Sequence[Label | None]]],
        items: Sequence[Label] | None = None,
        counts: Any = None,
        **about: Any,
    ) -> Ballots:
        """Build from lists of the candidates marked at each rank; None is somebody the file does not name.

        ``items`` are all candidates, also those nobody marked; left out, those found, in order of appearance.
        ``write_ins`` are those who were written in; left out, those whose names say so.
        """
        if items is not None and len(set(items)) < len(items):
            raise DataError("two candidates have the same name; tell them apart")
        known: dict[Label, int] = {name: code for code, name in enumerate(items or ())}
        ballot, rank, item = [], [], []
        n_rows = n_ranks = 0
        for row in rows:
            for place, marked in enumerate(row):
                for name in marked:
                    if name is not None and name not in known:
                        if items is not None:
                            raise DataError(f"ballot {n_rows + 1}: {name!r} is not one of the candidates")
                        known[name] = len(known)
                    ballot.append(n_rows)
                    rank.append(place)
                    item.append(UNNAMED if name is None else known[name])
            n_ranks = max(n_ranks, len(row))
            n_rows += 1
        given = np.ones(n_rows, np.int64) if counts is None else np.asarray(counts, np.int64)
        about.setdefault("write_ins", tuple(name for name in known if is_write_in(str(name))))
        arrays = (np.array(ballot, np.int64), np.array(rank, np.int32), np.array(item, np.int32))
        return cls(tuple(known), n_ranks, given, *arrays, **about).without_empty_rows()

    def keeping(self, names: Iterable[str]) -> Ballots:
        """Return the same with some of the covariates alone; the metadata name the others."""
        names = list(names)
        for name in names:
            if name not in self.covariates:
                known = some_names(list(self.covariates)) if self.covariates else "none"
                raise DataError(f"there is no column {name!r} of the ballots; known are: {known}")
        kept = {name: self.covariates[name] for name in names}
        others = [name for name in self.covariates if name not in kept]
        metadata = {**self.metadata, "OTHER COLUMNS": others} if others else self.metadata
        return replace(self, covariates=kept, metadata=metadata)

    def without_empty_rows(self) -> Ballots:
        """Leave out rows that stand for no ballot, and say so."""
        kept = self.counts > 0
        if kept.all():
            return self
        stays, of = kept[self.ballot], np.cumsum(kept) - 1
        n = int(np.count_nonzero(~kept))
        return replace(
            self,
            counts=self.counts[kept],
            ballot=of[self.ballot[stays]],
            rank=self.rank[stays],
            item=self.item[stays],
            agents=None if self.agents is None else self.agents[kept],
            covariates={name: values[kept] for name, values in self.covariates.items()},
            audit=(*self.audit, no_votes(n)),
        )


def no_votes(n_rows: int) -> Entry:
    """Return the entry about rows that nobody stated, of which some files have a few."""
    left_out = "1 row left out" if n_rows == 1 else f"{n_rows:,} rows left out"
    return Entry("rows with a count of 0", left_out, 0)


def parties_of(items: Sequence[Label], parties: Mapping[Any, str]) -> Attributes:
    """Return the parties of items as an attribute, where any is known."""
    known = [str(parties.get(name) or "").strip() for name in items]
    return Attributes({"party": known}) if any(known) else NONE
