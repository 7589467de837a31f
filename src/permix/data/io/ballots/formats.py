"""All formats of ballots, and which of them a file has."""

from __future__ import annotations

import csv
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

from permix.data.ballots import Ballots
from permix.data.io.ballots import (
    cdf,
    clear_ballot,
    dominion,
    dominion_csv,
    hart,
    rank_columns,
    scottish,
    votekit,
)
from permix.data.io.ballots.contest_column import ContestColumn
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Said, Source
from permix.data.io.text_files import PathLike
from permix.errors import DataError, FileFormatError, Part, PermixError, PermixWarning

# In this order: a table of rank columns is what is left when nothing more special fits.
FORMATS: tuple[ModuleType, ...] = (
    dominion,
    dominion_csv,
    hart,
    cdf,
    clear_ballot,
    votekit,
    scottish,
    rank_columns,
)


# What readers run into where parts of a file are not what the format has.
DAMAGE = (
    *(LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError),
    *(csv.Error, zlib.error, EOFError),
)


class Recognized(NamedTuple):
    """A format of ballots, and why a file is taken for it."""

    format: ModuleType
    source: Source
    why: str

    @property
    def title(self) -> str:
        """What the format is called."""
        return str(self.format.TITLE)

    @property
    def takes_columns(self) -> bool:
        """Whether columns can be named: of a table, where they are not what the format says."""
        return self.format is rank_columns

    def contests(self) -> dict[str, str]:
        """Return the names of the contests by id."""
        with self._structure():
            found: dict[str, str] = self.format.contests(self.source)
        return found

    def way_out(self) -> tuple[Part, ...]:
        """Say what to do where what was taken for contests are none; nothing where the format has them."""
        column: ContestColumn | None = self.source.kept.get("contest column")
        return () if column is None else column.way_out()

    def read(self, contest: str | None = None) -> Ballots:
        """Read the marks of one contest."""
        if contest is not None:
            self.source.kept |= {"asked for": str(contest)}
            self.source.kept.pop("contest column", None)  # found before, when nothing was asked for
            contest = chosen_contest(self.contests(), contest, self.source.path)
        with self._structure():
            found: Ballots = self.format.read(self.source, contest)
        self._warn_of_ballots_given_twice(found)
        return found

    def _warn_of_ballots_given_twice(self, found: Ballots) -> None:
        """Say that ballots have the same id, as where a folder holds an export and a part of it.

        Where an id comes back all the time, it stands for no ballot, as where the numbers were taken out.
        """
        ids = [] if found.agents is None else list(map(str, found.agents.tolist()))
        if len(set(ids)) == len(ids):
            return
        # Machines and batches may number their ballots each from 1: columns whose values come back say so,
        # but only where most numbers come back; somebody who votes twice, on other days, is told.
        restart = 10 * len(set(ids)) <= 6 * len(ids)
        columns = [list(map(str, column.tolist())) for column in found.covariates.values()] if restart else []
        batches = [column for column in columns if 10 * len(set(column)) <= 7 * len(ids)]
        whole = list(zip(ids, *batches, strict=True))
        n = len(set(whole))
        if n < len(ids) <= 2 * n:
            first = next(each for each, times in Counter(whole).items() if times > 1)[0]
            several = len(ids) - n
            have = "ballot has" if several == 1 else "ballots have"
            warnings.warn(
                f"{self.source.path}: {several:,} {have} the id of another, such as {first!r}, "
                "and all are counted; if the file holds ballots twice, leave some out",
                PermixWarning,
                stacklevel=4,
            )

    @contextmanager
    def _structure(self) -> Iterator[None]:
        """Say of a file whose parts are not what the format has that it is damaged."""
        try:
            yield
        except PermixError:
            raise
        except DAMAGE as error:
            why = f"{type(error).__name__}: {error}"
            said = f"{self.source.path} looks like {self.title}, but is damaged or of another version ({why})"
            raise FileFormatError(said, self.source.path) from error


def recognize(path: PathLike, sheet: str | None = None, said: Said | None = None) -> Recognized | None:
    """Return the format of ballots that a file, folder or zip has; None where it is none of them."""
    source = Source(path, sheet, said)
    for each in FORMATS:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                why = each.recognized(source)
            except csv.Error as error:
                raise FileFormatError(
                    f"{path}: not a table ({error}); look for quotes that are not closed", path
                ) from error
        if why is not None:  # else the reader that takes the file says the same of it
            for each_told in told:
                warnings.warn(each_told.message, each_told.category, stacklevel=4)
            return Recognized(each, source, why)
    return None


def read_ballots(
    path: PathLike,
    contest: str | None = None,
    sheet: str | None = None,
    *,
    ignore: Sequence[str] = (),
    count_column: str | None = None,
    agent_column: str | None = None,
    group_columns: Sequence[str] | None = None,
) -> Ballots:
    """Read ballots as they were marked, from any format that permix knows; see :func:`permix.clean`.

    Parameters
    ----------
    path : path
        A file, a folder or a zip: Dominion, Hart Verity, ES&S (Excel, CSV), Clear Ballot, NIST's common data
        format, Scottish councils, VoteKit, or any table with a column for each rank.
    contest : str, optional
        Id or name of the contest, where there are several.
    sheet : str, optional
        Name of the sheet, of an Excel file with several.
    ignore : sequence of str
        Columns to leave out, of a table with a column for each rank.
    count_column, agent_column : str, optional
        Columns of such a table that say how many ballots a row stands for, and which.
    group_columns : sequence of str, optional
        What is to be kept of what else is known of the ballots; by default all.
    """
    beside = () if group_columns is None else tuple(group_columns)
    said = Said(tuple(ignore), beside, count_column, agent_column)
    found = recognize(path, sheet, said)
    if found is None:
        titles = ", ".join(str(each.TITLE) for each in FORMATS)
        raise DataError(f"{path} is none of the formats of ballots that are read: {titles}")
    if said.all and not found.takes_columns:
        raise DataError(f"{path}: {found.title} has no columns to name or to leave out")
    marked = found.read(contest)
    return marked if group_columns is None else marked.keeping(beside)
