"""Lines for people on standard error, beside what a command prints."""

from __future__ import annotations

import os
import sys
import textwrap

WIDEST, NARROWEST = 100, 20


def tell(said: str) -> None:
    """Write ``permix: said`` to standard error; in a terminal, in lines that fit."""
    print("\n".join(lines_of(f"permix: {said}", width_of_terminal())), file=sys.stderr)


def lines_of(line: str, width: int | None) -> list[str]:
    """Break a line at blanks; None leaves it as it is. Commands, options and names of files stay whole.

    Examples
    --------
    >>> lines_of("permix: votes.csv is read as votes (--as table reads it otherwise)", 36)
    ['permix: votes.csv is read as votes', '  (--as table reads it otherwise)']
    """
    if width is None:
        return [line]
    width = max(min(width, WIDEST), NARROWEST)
    return [
        part
        for whole in line.split("\n")
        for part in textwrap.wrap(
            whole, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        or [""]
    ]


def width_of_terminal() -> int | None:
    """Return how many letters a line of standard error has; None where it is no terminal."""
    if not sys.stderr.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except OSError:  # a terminal that does not know its size
        return None
