"""The one display of work under way, on stderr: nothing for short work, nothing in log files."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permix.errors import DataError
from permix.runtime.compiling import COMPILING

if TYPE_CHECKING:
    from rich.progress import Progress

# Work shorter than this shows nothing unless asked to.
PATIENCE_SECONDS = 2.0
# Time between two plain lines where stderr is not a terminal, and between two changes on a terminal.
LINE_SECONDS = 5.0
REDRAW_SECONDS = 0.1
# A first run that keeps the user waiting for the compiler for longer says so.
COMPILING_SECONDS = 1.0


def checked_progress(progress: object) -> bool | None:
    """Return ``progress`` if it is True, False or None."""
    if progress is None or isinstance(progress, bool | np.bool_):
        return None if progress is None else bool(progress)
    raise DataError(f"progress must be True, False or None, got {progress!r}")


def is_live() -> bool:
    """Say whether stderr is a terminal, or a notebook that can redraw."""
    if "ipykernel" in sys.modules:
        from rich.console import Console

        if Console(stderr=True).is_jupyter:
            return True
    return sys.stderr is not None and sys.stderr.isatty()


@dataclass
class Line:
    """A piece of work: what it is, how much of how much is done, and anything else worth saying."""

    what: str = ""
    total: int | None = None
    done: int = 0
    text: str = ""
    began: float = field(default_factory=time.monotonic)
    done_before: int = field(init=False)

    def __post_init__(self) -> None:
        self.done_before = self.done

    @property
    def left(self) -> str:
        """Estimate of the remaining time, from the time of what was done since the line began."""
        done = self.done - self.done_before
        if self.total is None or done <= 0 or self.done >= self.total:
            return ""
        seconds = (time.monotonic() - self.began) * (self.total - self.done) / done
        return f"about {_duration(seconds)} left"

    @property
    def count(self) -> str:
        """How much of how much is done."""
        return "" if self.total is None else f"{self.done:,} of {self.total:,}"

    def __str__(self) -> str:
        what = f"{self.what}: {self.count}" if self.count else self.what
        return " · ".join(part for part in (what, self.text, self.left) if part)


class Display:
    """Shows lines about work while it runs; use it as a context manager. Threads may report to it.

    It also says so when the first run waits for the compiler. ``progress=True`` shows always (plain lines
    where stderr is not a terminal), False never, None after two seconds in a terminal or a notebook.
    """

    def __init__(self, progress: bool | None) -> None:
        progress = checked_progress(progress)
        self._live = progress is not False and is_live()
        self._plain = progress is True and not self._live
        patience = LINE_SECONDS if self._plain else 0.0 if progress else PATIENCE_SECONDS
        self._next = time.monotonic() + patience
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="permix-display", daemon=True)
        self._rich: Progress | None = None
        self._shown: dict[int, tuple[Line, Any]] = {}
        self._compiling = Line("compiling, first run only")
        self.lines: list[Line] = []

    @property
    def wanted(self) -> bool:
        """Whether anything may be written to stderr at all."""
        return self._live or self._plain

    def __enter__(self) -> Self:
        if self.wanted:
            self._ticker.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._ticker.is_alive():
            self._ticker.join(1.0)
        if self._rich is not None:
            self.look()
            self._draw(self._rich)
            self._rich.stop()

    def look(self) -> None:
        """Bring the lines up to date; for displays that read what others write."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Show one line about work of ``total`` parts, in the place of what was shown."""
        with self._lock:
            self.lines = [Line(what, total)]
        self.show()

    def step(self) -> None:
        """Report one part done."""
        with self._lock:
            self.lines[0].done += 1
        self.show()

    def update(self, text: str, done: int | None = None) -> None:
        """Say more about the work that began."""
        with self._lock:
            self.lines[0].text = text
            if done is not None:
                self.lines[0].done = done
        self.show()

    def _tick(self) -> None:
        """Show work whose next step is far away."""
        while not self._ended.wait(REDRAW_SECONDS):
            self.show()

    def show(self) -> None:
        """Show the lines, if it is time to."""
        if not self.wanted or time.monotonic() < self._next or not self._all_lines():
            return
        if not self._lock.acquire(blocking=False):  # another thread is at it
            return
        try:
            self.look()
            self._next = time.monotonic() + (LINE_SECONDS if self._plain else REDRAW_SECONDS)
            if self._plain:
                self.print_lines()
                return
            if self._rich is None:
                self._rich = _rich_display()
                self._rich.start()
            self._draw(self._rich)
        finally:
            self._lock.release()

    def print_lines(self) -> None:
        """Write the lines as plain text, where that was asked for."""
        if self._plain:
            for line in self._all_lines():
                print(line, file=sys.stderr, flush=True)

    def _all_lines(self) -> list[Line]:
        """Return the lines, and one about the compiler while it keeps the user waiting."""
        if COMPILING.seconds < COMPILING_SECONDS:
            return self.lines
        line = self._compiling
        if line.total is None and COMPILING.total is not None:  # what was there before took no time
            line.done_before, line.began = COMPILING.done, time.monotonic()
        line.done, line.total = COMPILING.done, COMPILING.total
        line.text = "" if COMPILING.total else f"{COMPILING.n_compiled} functions"
        return [line, *self.lines]

    def _draw(self, shown: Progress) -> None:
        lines = self._all_lines()
        for key in set(self._shown) - {id(line) for line in lines}:
            shown.remove_task(self._shown.pop(key)[1])
        for line in lines:
            if id(line) not in self._shown:
                self._shown[id(line)] = (line, shown.add_task("", count="", left="", text=""))
            task = self._shown[id(line)][1]
            fields: dict[str, Any] = {"count": line.count, "left": line.left, "text": line.text}
            shown.update(task, description=line.what, total=line.total, completed=line.done, **fields)
        shown.refresh()


def _rich_display() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[count]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn(
            "{task.fields[text]}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        expand=True,
        console=Console(stderr=True),
        auto_refresh=False,
    )


def _duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> [_duration(seconds) for seconds in (0.2, 59.4, 60, 3599, 3700, 100_000)]
    ['1 s', '59 s', '1 min', '60 min', '1 h 2 min', '27 h 47 min']
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes <= 60 else f"{minutes // 60} h {minutes % 60} min"
