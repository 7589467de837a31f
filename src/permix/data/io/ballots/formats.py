"""All formats of ballots, and which of them a file has."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

from permix.data.ballots import Ballots
from permix.data.io.ballots import cdf, clear_ballot, dominion, hart, rank_columns, scottish, votekit
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source
from permix.data.io.text_files import PathLike
from permix.errors import DataError, FileFormatError, PermixError

# In this order: a table of rank columns is what is left when nothing more special fits.
FORMATS: tuple[ModuleType, ...] = (dominion, hart, cdf, clear_ballot, votekit, scottish, rank_columns)


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

    def contests(self) -> dict[str, str]:
        """Return the names of the contests by id."""
        with self._structure():
            found: dict[str, str] = self.format.contests(self.source)
        return found

    def read(self, contest: str | None = None) -> Ballots:
        """Read the marks of one contest."""
        if contest is not None:
            contest = chosen_contest(self.contests(), contest, self.source.path)
        with self._structure():
            found: Ballots = self.format.read(self.source, contest)
        return found

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


def recognize(path: PathLike, sheet: str | None = None) -> Recognized | None:
    """Return the format of ballots that a file, folder or zip has; None where it is none of them."""
    source = Source(path, sheet)
    for each in FORMATS:
        try:
            why = each.recognized(source)
        except csv.Error as error:
            raise FileFormatError(
                f"{path}: not a table ({error}); look for quotes that are not closed", path
            ) from error
        if why is not None:
            return Recognized(each, source, why)
    return None


def read_ballots(path: PathLike, contest: str | None = None, sheet: str | None = None) -> Ballots:
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
    """
    found = recognize(path, sheet)
    if found is None:
        titles = ", ".join(str(each.TITLE) for each in FORMATS)
        raise DataError(f"{path} is none of the formats of ballots that are read: {titles}")
    return found.read(contest)
