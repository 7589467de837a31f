"""What a parameter may be: one check for each kind of value, with its words, its option and its JSON form."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from permix.errors import DataError, ParameterError, Wording

# Whole numbers beyond this do not fit the arrays that count with them.
MOST = 2**63 - 1


def plain_number(value: Any) -> Any:
    """Return a NumPy number as Python's; everything else as it is."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value


class Check:
    """What a parameter may be. ``special`` are values accepted as they are, such as None or "auto"."""

    special: tuple[Any, ...] = ()
    option = ""  # what the value must be in the words of the command line, where these are others
    noun = ""  # what the value is, for the parameter lists of docstrings; by default all that is accepted

    def __call__(self, name: str, value: Any) -> Any:
        """Return the value as the model uses it, or raise :class:`permix.errors.ParameterError`."""
        value = plain_number(value)
        for special in self.special:
            if value is special or (isinstance(special, str) and isinstance(value, str) and value == special):
                return special
        checked = self.convert(value)
        if checked is NotImplemented:
            raise self.refusal(name, value)
        return checked

    def refusal(self, name: str, value: Any) -> ParameterError:
        """Return the error that says what the value must be, in Python and on the command line."""
        allowed = self.allowed()
        return ParameterError(name, value, Wording(allowed, self.option) if self.option else allowed)

    def convert(self, value: Any) -> Any:
        """Return the value in its own type, or ``NotImplemented`` where it is none that may be."""
        raise NotImplementedError

    def must_be(self) -> str:
        """Say what the value must be, for messages."""
        raise NotImplementedError

    def kind(self) -> str:
        """Say what the value is, for the parameter lists of docstrings."""
        return either(self.noun, *map(_written, self.special)) if self.noun else self.allowed()

    def allowed(self) -> str:
        """Say all that is accepted, special values included."""
        must, words = self.must_be(), [word for word in self.special if word is not None]
        none = ["None"] if None in self.special else []
        # A number with bounds has a comma in it: words go before it.
        said = either(*map(_written, words), must) if words else must
        return either(said, *none)

    def to_json(self, value: Any) -> Any:
        """Return what files hold of the value."""
        return value

    def from_json(self, value: Any) -> Any:
        """Return the value that files hold; :meth:`__call__` checks it afterwards."""
        return value

    def parse(self, text: str) -> Any:
        """Return the value that a word on the command line means."""
        return text


def either(*things: str) -> str:
    """Join what may be chosen: "a", "a or b", "a, b or c"; with a comma before "or" where one has commas."""
    *first, last = things
    comma = "," if any("," in thing for thing in things) and first and not first[-1].endswith(",") else ""
    return f"{', '.join(first)}{comma} or {last}" if first else last


def _written(value: Any) -> str:
    return repr(value) if not isinstance(value, str) else f'"{value}"'


class Number(Check):
    """A number; ``read`` makes it of a word."""

    read: ClassVar[type]

    def parse(self, text: str) -> Any:
        if text in self.special:
            return text
        try:
            return self.read(text)
        except ValueError:
            return text


class Whole(Number):
    """A whole number of at least ``least``."""

    noun, read = "int", int

    def __init__(self, least: int = 0, most: int = MOST, *, special: tuple[Any, ...] = ()) -> None:
        self.least, self.most, self.special = least, most, special

    def convert(self, value: Any) -> Any:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return value if is_whole and self.least <= value <= self.most else NotImplemented

    def must_be(self) -> str:
        if self.most < MOST:
            return f"a whole number from {self.least} to {self.most}"
        return f"a whole number, {self.least} or more"


@dataclass(eq=False, kw_only=True)
class Real(Number):
    """A finite number above ``above``, below ``below``, and from ``least`` to ``most``."""

    noun, read = "float", float
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    special: tuple[Any, ...] = ()

    def convert(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NotImplemented
        inside = self.above < value < self.below and self.least <= value <= self.most
        largest = sys.float_info.max  # whole numbers beyond it are no floats
        return float(value) if inside and -largest <= value <= largest else NotImplemented

    def must_be(self) -> str:
        if self.above == 0.0 and self.below == self.most == math.inf:
            return "a positive number"
        ways = ("above {:g}", "{:g} or more", "below {:g}", "{:g} or less")
        bounds = zip(ways, (self.above, self.least, self.below, self.most), strict=True)
        said = [way.format(bound) for way, bound in bounds if math.isfinite(bound)]
        return f"a number, {' and '.join(said)}" if said else "a finite number"


class Choice(Check):
    """One of several words."""

    def __init__(self, *words: str, special: tuple[Any, ...] = ()) -> None:
        self.words, self.special = words, special

    def convert(self, value: Any) -> Any:
        return str(value) if isinstance(value, str) and value in self.words else NotImplemented

    def must_be(self) -> str:
        return either(*map(_written, self.words))

    def parse(self, text: str) -> Any:
        return next((word for word in self.words if word == text.casefold()), text)


@dataclass(eq=False, kw_only=True)
class Switch(Check):
    """True or False."""

    noun = "bool"
    special: tuple[Any, ...] = ()

    def convert(self, value: Any) -> Any:
        return value if isinstance(value, bool) else NotImplemented

    def must_be(self) -> str:
        return "True or False"


class Seed(Check):
    """Anything that starts a random stream. Files keep whole numbers; streams cannot be written down."""

    special = (None,)
    option = "a whole number, 0 or more"

    def convert(self, value: Any) -> Any:
        import numpy as np

        from permix.runtime.seeds import seed_sequence

        if isinstance(value, np.random.Generator | np.random.RandomState):
            return value  # to look at it must not draw from it
        try:
            seed_sequence(value)
        except DataError:
            return NotImplemented
        return value

    def must_be(self) -> str:
        return "a whole number, 0 or more, a SeedSequence, Generator or RandomState,"

    def kind(self) -> str:
        return "int, SeedSequence, Generator, RandomState or None"

    def to_json(self, value: Any) -> Any:
        value = plain_number(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def parse(self, text: str) -> Any:
        return int(text) if text.isdecimal() else text


class Threads(Whole):
    """A number of threads: None or -1 for as many as there are processors."""

    def __init__(self) -> None:
        super().__init__(1, 2**31 - 1, special=(None,))

    def convert(self, value: Any) -> Any:
        return value if type(value) is int and value == -1 else super().convert(value)

    def must_be(self) -> str:
        return "a number of threads, -1 for all processors,"


class Folder(Check):
    """A path, or None. Where a fit keeps its chains is not part of what it found: files do not hold it."""

    special, noun = (None,), "path"

    def convert(self, value: Any) -> Any:
        return Path(value) if isinstance(value, str | os.PathLike) and os.fspath(value) else NotImplemented

    def must_be(self) -> str:
        return "a path"

    def to_json(self, value: Any) -> Any:
        return None


class Names(Check):
    """One name or several, all different: a tuple of them. None and none at all are the same."""

    noun, special = "str or list of str", (None,)
    option = "names, each once"

    def convert(self, value: Any) -> Any:
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
            return NotImplemented
        return NotImplemented if len(set(names)) < len(names) else tuple(map(str, names)) or None

    def must_be(self) -> str:
        return "a name or a list of different names"

    def to_json(self, value: Any) -> Any:
        return None if value is None else [value] if isinstance(value, str) else list(value)


class Concentration(Check):
    """A number, or a Gamma prior that learns it."""

    noun = "float or Gamma"
    option = "a number or gamma(SHAPE,RATE)"

    def __init__(self, *, special: tuple[Any, ...] = ()) -> None:
        self.special = special

    def convert(self, value: Any) -> Any:
        from permix.partitions import Gamma

        return value if isinstance(value, Gamma) else Real().convert(plain_number(value))

    def must_be(self) -> str:
        return "a number or Gamma(shape, rate)"

    def to_json(self, value: Any) -> Any:
        return value if value is None or isinstance(value, float) else value.describe()

    def from_json(self, value: Any) -> Any:
        from permix.partitions import prior_from_description

        return prior_from_description(value) if isinstance(value, dict) else value

    def parse(self, text: str) -> Any:
        from permix.partitions.concentration_text import concentration_of

        return concentration_of(text)


class Made(Check):
    """A value that a function of the model checks: it returns the value to use, or raises DataError."""

    def __init__(
        self,
        make: Callable[[Any], Any],
        kind: str,
        *,
        special: tuple[Any, ...] = (),
        to_json: Callable[[Any], Any] = lambda value: value,
        from_json: Callable[[Any], Any] = lambda value: value,
        parse: Callable[[str], Any] = lambda text: text,
    ) -> None:
        self._make, self.noun, self.special = make, kind, special
        self._to_json, self._from_json, self._parse = to_json, from_json, parse

    def convert(self, value: Any) -> Any:
        return self._make(value)

    def must_be(self) -> str:
        return self.noun

    def kind(self) -> str:
        return self.noun

    def to_json(self, value: Any) -> Any:
        return value if value in self.special else self._to_json(value)

    def from_json(self, value: Any) -> Any:
        return value if value in self.special else self._from_json(value)

    def parse(self, text: str) -> Any:
        return text if text in self.special else self._parse(text)
