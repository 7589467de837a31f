"""The exceptions permix raises on purpose; every one carries a message meant for the user."""

from __future__ import annotations

from collections.abc import Sequence


class PermixError(Exception):
    """Base of all errors permix raises on purpose."""


class DataError(PermixError, ValueError):
    """The data are not what they should be: the message says which row, why, and the way out."""


class CellError(DataError):
    """One cell of a table is not what it should be.

    Attributes
    ----------
    row, column : int
        Where, counted from 0; ``column`` alone when ``row`` is None.
    """

    def __init__(self, row: int | None, column: int, what: str, column_name: str | None = None) -> None:
        place = f"column {column + 1 if column_name is None else repr(column_name)}"
        super().__init__(what.format(place=place if row is None else f"row {row + 1}, {place}"))
        self.row = row
        self.column = column
        self.what = what

    def with_names(self, names: Sequence[str]) -> CellError:
        """Return the same error with the column's name for its number."""
        return CellError(self.row, self.column, self.what, str(names[self.column]))


class CycleError(DataError):
    """An agent's comparisons contradict each other.

    Attributes
    ----------
    agent : object
        Id of the agent.
    cycle : tuple
        Item names ``(a, b, ..., a)``, each stated (or implied by levels) to be better than the next.
    """

    def __init__(self, message: str, agent: object = None, cycle: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.agent = agent
        self.cycle = cycle


class FileFormatError(DataError):
    """A file is malformed, truncated, hostile or written by a newer version.

    Attributes
    ----------
    path : str
        The file.
    line : int or None
        1-based line number, where there is one.
    """

    def __init__(self, message: str, path: object = None, line: int | None = None) -> None:
        super().__init__(message)
        self.path = None if path is None else str(path)
        self.line = line


class PermixWarning(UserWarning):
    """Something the user should know that does not stop the work."""


class ConvergenceWarning(PermixWarning):
    """Chains disagree, or too few effective draws; the message names the quantity."""
