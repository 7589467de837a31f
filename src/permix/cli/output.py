"""Tables for people, JSON for machines."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from permix.errors import visible
from permix.runtime.telling import tell

if TYPE_CHECKING:
    from rich.console import Console


def prepare_streams() -> None:
    """Make standard output and error take any text: where characters cannot be shown, their numbers are.

    Streams that are closed swallow what is written to them; a line on standard error says so.
    """
    closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open to the end)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if closed:
        tell("standard output is closed; what goes there is not shown")


def data_stream() -> IO[str]:
    """Return standard output for data, in which no character may be replaced."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="strict")
    return sys.stdout


def abandon_output() -> None:
    """Send what standard output still holds, and cannot be written, to nowhere."""
    if isinstance(sys.__stdout__, io.TextIOWrapper):
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), sys.__stdout__.fileno())


# Room for a long line where there is no terminal.
PIPE_WIDTH = 320
# Cells of a table with more characters may be broken on a narrow screen.
SHORT = 16
# Blanks between columns of tables.
GAP = 2
ORDER = " ≻ "


def print_json(value: Any) -> None:
    """Write one JSON document to standard output; numbers JSON does not know become null."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(_plain(value), indent=2)
    sys.stdout.write(f"{text}\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def running_fit(chains: Path | None = None) -> Iterator[None]:
    """Run a fit; one that Ctrl-C leaves without a result ends the command, and says what is left of it."""
    import typer

    try:
        yield
    except KeyboardInterrupt:
        what = "before there was anything to keep"
        if chains is not None and any(chains.rglob("state.npz")):
            what = f"before there was a fit to save; the same command goes on from {chains}"
        tell(f"interrupted {what}")
        raise typer.Exit(130) from None


def count_of(n: int, thing: str) -> str:
    """Return "1 group", "2 groups"."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _console(is_screen: bool) -> Console:
    """Return what writes tables; a pipe that nobody reads is an error, as it is for other lines."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return _Console(soft_wrap=False, width=None if is_screen else 1000)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table to standard output; numbers to the right, item names as they are."""
    from rich.markup import escape
    from rich.table import Table

    is_screen = sys.stdout.isatty()
    texts = [[cell_text(cell) for cell in row] for row in rows]
    longest = [max(map(len, (column, *cells))) for column, *cells in zip(columns, *texts, strict=True)]
    # A pipe has no width of its own: leave room, so that nothing is folded there.
    console = _console(is_screen)
    console.print(f"[bold]{escape(visible(title))}[/bold]", highlight=False)
    for part in beside_each_other(longest, terminal_width()) if is_screen else [range(len(columns))]:
        table = Table(header_style="", box=None, pad_edge=False)
        for at in part:
            numeric = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
            look: dict[str, Any] = {"justify": "right" if numeric else "left"}
            if is_screen and longest[at] > SHORT:  # words go on in the next line; what is short is never cut
                look |= {"overflow": "fold", "min_width": SHORT}
            else:
                look |= {"overflow": "ellipsis", "no_wrap": True}
                look |= {"min_width": longest[at]} if is_screen else {}
            table.add_column(escape(visible(columns[at])), **look)
        for row in texts:
            table.add_row(*(escape(row[at]) for at in part))
        console.print(table)
        console.print()


def beside_each_other(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return which columns of a table stand beside each other: those that do not fit follow below.

    Every part begins with the first column, which says what rows are about.

    Examples
    --------
    >>> beside_each_other([5, 10, 10, 10], 60), beside_each_other([5, 10, 10, 10], 30)
    ([[0, 1, 2, 3]], [[0, 1, 2], [0, 3]])
    """
    least = [min(width, SHORT) for width in widths]
    parts: list[list[int]] = [[0]] if widths else []
    for at in range(1, len(widths)):
        if sum(least[k] + GAP for k in (*parts[-1], at)) - GAP > room and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(at)
    return parts


def cell_text(cell: Any) -> str:
    """Write a value as tables show it."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return "" if math.isnan(cell) else f"{cell:.4g}" if abs(cell) < 1e5 else f"{cell:,.0f}"
    return visible(str(cell))


def rounded(value: float, digits: int) -> str:
    """Write a number with so many digits; what rounds to zero has no sign."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def terminal_width() -> int:
    """Return how many characters fit into a line."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def print_title(title: str) -> None:
    """Write the title of a table."""
    from rich.markup import escape

    _console(sys.stdout.isatty()).print(f"[bold]{escape(visible(title))}[/bold]", highlight=False)


def wrapped(pieces: Sequence[str], width: int, joined_by: str, indent: str = "") -> list[str]:
    """Join pieces into lines of at most so many characters; a piece is broken only if it is longer by itself.

    Examples
    --------
    >>> wrapped(["tea", "coffee", "milk"], 14, " ≻ ", "  ")
    ['tea ≻ coffee ≻', '  milk']
    """
    lines, line, pieces = [], "", [visible(piece) for piece in pieces]
    end = joined_by.rstrip()
    for at, piece in enumerate(pieces):
        last = at == len(pieces) - 1
        longer = f"{line}{joined_by}{piece}" if line.strip() else f"{line}{piece}"
        if line.strip() and len(longer) + (0 if last else len(end)) > width:
            lines.append(f"{line}{end}")
            longer = f"{indent}{piece}"
        while len(longer) > max(width, len(indent) + 8):
            lines.append(longer[:width])
            longer = f"{indent}{longer[width:]}"
        line = longer
    return [*lines, line]


def say(text: str, hanging: str = "") -> None:
    """Write a sentence in lines that fit; in a pipe, in one."""
    text = visible(text)
    if not sys.stdout.isatty():
        print(text)
        return
    width = max(min(terminal_width(), 100), 20)
    print("\n".join(textwrap.wrap(text, width, subsequent_indent=hanging, break_on_hyphens=False)))


def fitting(names: Sequence[str], width: int) -> str:
    """All names, best first, or the first ones and the last, as many as fit; long names are cut."""
    names = [visible(name) for name in names]
    whole = ORDER.join(names)
    if len(whole) <= width or len(names) < 3:
        return whole
    gap = f"{ORDER}… {{}} more …{ORDER}"
    most = max((width - len(gap.format(len(names) - 2))) // 2, 4)  # so that the first and the last fit
    names = [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]
    cut = ""
    for shown in range(1, len(names) - 1):
        longer = f"{ORDER.join(names[:shown])}{gap.format(len(names) - shown - 1)}{names[-1]}"
        if cut and len(longer) > width:
            break
        cut = longer
    return cut
