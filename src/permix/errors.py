"""The exceptions permix raises on purpose; every one carries a message meant for the user.

Messages count rows, columns and groups from 1, and name the line of a file where there is one. What counts
from 0 is called an index, or the message says so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

_NOT_GIVEN = ...  # the same object after a journey between processes


# What a terminal would obey instead of showing it: control characters, and those that turn text around.
_CONTROLS = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def visible(text: str) -> str:
    r"""Return text with escapes for characters that a terminal would obey.

    Examples
    --------
    >>> visible("An\x1b[31mn")
    'An\\x1b[31mn'
    """
    return text.translate(_CONTROLS)


class Argument(NamedTuple):
    """An argument named in a message, with a value or without; the command line shows it as an option."""

    name: str
    value: object = _NOT_GIVEN

    def in_python(self) -> str:
        """Return the argument as a call of the library has it."""
        return self.name if self.value is _NOT_GIVEN else f"{self.name}={self.value!r}"

    def as_option(self, flags: Mapping[str, str]) -> str:
        """Return the argument as an option of the command line, by the flags of one command."""
        flag = flags.get(self.name, "--" + self.name.removeprefix("n_").replace("_", "-"))
        if self.value is _NOT_GIVEN or self.value is True:
            return flag
        if self.value is False:
            return flag.replace("--", "--no-", 1)
        values = self.value if isinstance(self.value, list | tuple) else [self.value]
        return " ".join(f"{flag} {shlex.quote(str(value))}" for value in values)


class Wording(NamedTuple):
    """A part of a message that the library and the command line say in different words."""

    python: str
    option: str

    def in_python(self) -> str:
        """Return what the library says."""
        return self.python

    def as_option(self, flags: Mapping[str, str]) -> str:
        """Return what the command line says."""
        return self.option


Part = str | Argument | Wording


class Message(str):
    """A message that names arguments: text as usual, and once more in the words of the command line.

    Examples
    --------
    >>> message = Message("one column too many; name it by ", Argument("count_column"))
    >>> print(message)
    one column too many; name it by count_column
    >>> print(message.as_options())
    one column too many; name it by --count-column
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Message:
        """Join the parts; arguments are written as the library has them."""
        self = super().__new__(
            cls, "".join(part if isinstance(part, str) else part.in_python() for part in parts)
        )
        self.parts = parts
        return self

    def as_options(self, flags: Mapping[str, str] | None = None) -> str:
        """Return the message with options for arguments; ``flags`` are those with names of their own."""
        return "".join(part if isinstance(part, str) else part.as_option(flags or {}) for part in self.parts)


class _Said(Exception):
    """Takes a message, or the parts of a :class:`Message`."""

    def __init__(self, *parts: Part) -> None:
        super().__init__(*parts if len(parts) < 2 else (Message(*parts),))

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the constructor with the message; those of some errors take what it is made of.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[_Said], args: tuple[Any, ...], facts: dict[str, Any]) -> _Said:
    """Return an error or warning that comes from another process."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class PermixError(_Said):
    """Base of all errors permix raises on purpose."""

    exit_code = 1  # of a command; 2 where nothing but its options is wrong


class DataError(PermixError, ValueError):
    """The data are not what they should be: the message says which row, why, and the way out.

    Several parts, among them arguments of the library, make a :class:`Message`.
    """


class NoSuchAttribute(DataError, AttributeError):
    """A fit has no such attribute, and the message says what has; ``hasattr`` is False."""


class ParameterError(DataError):
    """A parameter of an estimator is not what it may be.

    Attributes
    ----------
    parameter : str
        Its name.
    """

    exit_code = 2

    def __init__(self, parameter: str, value: object, must: str | Wording) -> None:
        if isinstance(must, str):
            # None is a value of the library; on the command line an option is left out.
            must = Wording(must, must.removesuffix(" or None").rstrip(","))
        super().__init__(Argument(parameter, value), " must be ", must)
        self.parameter = parameter


@contextmanager
def about_parameters() -> Iterator[None]:
    """Say of errors raised here that they are about parameters alone: no data were looked at."""
    try:
        yield
    except DataError as error:
        error.exit_code = ParameterError.exit_code
        raise


class CellError(DataError):
    """One cell of a table is not what it should be.

    Attributes
    ----------
    row, column : int
        Where, counted from 0; ``column`` alone when ``row`` is None.
    columns : sequence of int
        All columns that have such cells, where the message lists them as ``{columns}``.
    way_out : sequence of Part
        Parts of a :class:`Message` that follow: how to mend it.
    """

    def __init__(
        self,
        row: int | None,
        column: int,
        what: str,
        column_name: str | None = None,
        columns: Sequence[int] = (),
        column_names: Sequence[str] | None = None,
        way_out: Sequence[Part] = (),
    ) -> None:
        place = f"column {column + 1 if column_name is None else repr(column_name)}"
        listed = [str(j + 1) if column_names is None else repr(str(column_names[j])) for j in columns]
        some = ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "")
        said = what.format(place=place if row is None else f"row {row + 1}, {place}", columns=some)
        super().__init__(said, *way_out)
        self.row = row
        self.column = column
        self.what = what
        self.columns = columns
        self.way_out = tuple(way_out)

    def with_names(self, names: Sequence[str]) -> CellError:
        """Return the same error with the column's name for its number."""
        name = str(names[self.column])
        return type(self)(self.row, self.column, self.what, name, self.columns, names, self.way_out)


class NotRankings(DataError):
    """A table does not hold rankings, as far as one can see; it may hold something else.

    Attributes
    ----------
    looks_like : {"ratings", "numbers", "text", ""}
        Lines of agent, item and rating; numbers that are no ranks; text in some columns; or votes in a layout
        that has to be named.
    """

    def __init__(self, looks_like: str, *parts: Part) -> None:
        super().__init__(*parts)
        self.looks_like = looks_like


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


class NoRows(DataError):
    """There is nobody in the data: one table is refused, one shard of several is left out."""


class FileWithoutRows(FileFormatError, NoRows):
    """A file that says nothing of anybody, such as a header alone."""


class ShardError(DataError):
    """A shard of data that cannot be read, or not any more; the message names it."""


class PermixWarning(_Said, UserWarning):
    """Something the user should know that does not stop the work."""


class ConvergenceWarning(PermixWarning):
    """Chains disagree, or too few effective draws; the message names the quantity."""
