"""The one display of work under way, on stderr: nothing for short work, a line now and then in log files."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permix.errors import DataError, PermixWarning
from permix.runtime.command import RUNNING
from permix.runtime.compiling import COMPILING
from permix.runtime.threads import rows_reported_to

if TYPE_CHECKING:
    from rich.progress import Progress

# Work shorter than this shows nothing unless asked to.
PATIENCE_SECONDS = 2.0
# After so long a silence of a command, work that is shorter than this still shows nothing.
SHORT_SECONDS = 0.3
# Time between two plain lines where stderr is not a terminal, and between two changes on a terminal.
LINE_SECONDS = 5.0
# The same where nobody asked for lines: commands whose output goes to a file say now and then that they work.
RARE_SECONDS = 30.0
REDRAW_SECONDS = 0.1
# A file for other programs to read: it always holds the newest lines, as JSON, and never half of them.
FILE_VARIABLE = "PERMIX_PROGRESS_FILE"
FILE_SECONDS = 0.5
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
    most: int | None = None  # the total if the work goes on, which its parts decide
    alike: bool = True  # whether parts take about equally long; else nobody knows how long the rest takes
    done_before: int = field(init=False)

    def __post_init__(self) -> None:
        self.done_before = self.done

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the remaining time, from the time of what was done since the line began."""
        return self._seconds_to(self.total)

    def _seconds_to(self, total: int | None) -> float | None:
        done = self.done - self.done_before
        if not self.alike or total is None or done <= 0 or self.done >= total:
            return None
        return (time.monotonic() - self.began) * (total - self.done) / done

    @property
    def left(self) -> str:
        """The remaining time as people say it, and how much more it may become."""
        seconds, at_most = self.seconds_left, self._seconds_to(self.most)
        if seconds is None:
            return ""
        more = "" if at_most is None or self.most == self.total else f", at most {duration(at_most)}"
        return f"about {duration(seconds)} left{more}"

    @property
    def count(self) -> str:
        """How much of how much is done."""
        return "" if self.total is None else f"{self.done:,} of {self.total:,}"

    def as_json(self) -> dict[str, Any]:
        """Return the line as plain values, for other programs."""
        return {
            "stage": self.what,
            "done": self.done,
            "of": self.total,
            "text": self.text,
            "seconds_left": self.seconds_left,
            "left": self.left,
        }

    def __str__(self) -> str:
        what = f"{self.what}: {self.count}" if self.count else self.what
        return " · ".join(part for part in (what, self.text, self.left) if part)


# Displays that others may become part of.
_OPEN: list[Display] = []
_OPENING = threading.Lock()


class _Quiet(threading.local):
    """How many displays of the present thread that show nothing are open."""

    depth = 0


_quiet = _Quiet()


class Display:
    """Shows lines about work while it runs; use it as a context manager. Threads may report to it.

    It also says so when the first run waits for the compiler. ``progress=True`` shows always (plain lines
    where stderr is not a terminal), False never, None after two seconds in a terminal or a notebook; commands
    (``permix.runtime.command``) write a plain line every half minute where stderr is neither. Where
    the environment variable ``PERMIX_PROGRESS_FILE`` names a file, the lines go there instead.

    Work within work that is shown in the same way has its lines below those of the whole, on one display; and
    within work that shows nothing, by default nothing is shown.
    """

    def __init__(self, progress: bool | None) -> None:
        progress = checked_progress(progress)
        if progress is None and _quiet.depth:
            progress = False
        self._shows = progress is not False
        named = os.environ.get(FILE_VARIABLE)
        self._file = Path(named) if named and progress is not False else None
        self._live = self._file is None and progress is not False and is_live()
        rare = progress is None and RUNNING["command"]
        self._plain = self._file is None and not self._live and (progress is True or rare)
        self._between = FILE_SECONDS if self._file else RARE_SECONDS if rare else LINE_SECONDS
        patience = self._between if self._plain else 0.0 if progress or self._file else _patience()
        self._next = time.monotonic() + patience
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="permix-display", daemon=True)
        self._rich: Progress | None = None
        self._shown: dict[int, tuple[Line, Any]] = {}
        self._compiling = Line("compiling, first run only")
        self._manner = (self._live, self._plain, self._file)
        self._outer: Display | None = None
        self._inner: list[Display] = []
        self.lines: list[Line] = []

    @property
    def wanted(self) -> bool:
        """Whether anything may be shown at all."""
        return self._live or self._plain or self._file is not None

    def __enter__(self) -> Self:
        _quiet.depth += not self._shows
        if self.wanted:
            with _OPENING:
                self._join()
            self._ticker.start()
        return self

    def __exit__(self, *error: object) -> None:
        _quiet.depth -= not self._shows
        self._ended.set()
        if self._ticker.is_alive():
            self._ticker.join(1.0)
        with _OPENING:
            if self in _OPEN:
                _OPEN.remove(self)
            if self._outer is not None:
                self._outer._inner.remove(self)
        if self._file is not None and self._outer is None and self._all_lines():
            self.look()
            self._write(self._file)
        if self._rich is not None:
            self.look()
            self._draw(self._rich)
            self._rich.stop()
            _SHOWN["last"] = time.monotonic()

    def _join(self) -> None:
        """Become part of a display that is open and shows as this one does; else be open to others."""
        self._outer = next((other for other in _OPEN if other._manner == self._manner), None)
        if self._outer is None:
            _OPEN.append(self)
            return
        self._outer._inner.append(self)
        self._outer._next = min(self._outer._next, self._next)
        self._outer._between = min(self._outer._between, self._between)

    def look(self) -> None:
        """Bring the lines up to date; for displays that read what others write."""

    @contextmanager
    def counting_rows(self, what: str, n_rows: int | None = None) -> Iterator[None]:
        """Show one line about rows that the calling thread goes through by ``over_rows``.

        There are ``n_rows`` of them in all; None has them counted as they come.
        """
        self.begin(what, n_rows)

        def tell(n_done: int, n_coming: int) -> None:
            line = self.lines[0]
            if n_rows is None and n_coming:
                line.total = (line.total or 0) + n_coming
            self.step(n_done)

        with rows_reported_to(tell):
            yield

    def begin(self, what: str, total: int | None = None, *, alike: bool = True) -> None:
        """Show one line about work of ``total`` parts, in the place of what was shown."""
        with self._lock:
            self.lines = [Line(what, total, alike=alike)]
        self.show()

    def step(self, n_done: int = 1) -> None:
        """Report one part done, or several."""
        with self._lock:
            self.lines[0].done += n_done
        self.show()

    def update(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Say more about the work that began, and of how many parts it is if that has changed."""
        with self._lock:
            line = self.lines[0]
            line.text = text
            line.done = line.done if done is None else done
            line.total = line.total if total is None else total
        self.show()

    def _tick(self) -> None:
        """Show work whose next step is far away."""
        while not self._ended.wait(REDRAW_SECONDS):
            self.show()

    def show(self) -> None:
        """Show the lines, if it is time to."""
        if self._outer is not None and not self._outer._ended.is_set():
            self._outer.show()
            return
        if not self.wanted or time.monotonic() < self._next or not self._all_lines():
            return
        if not self._lock.acquire(blocking=False):  # another thread is at it
            return
        try:
            for display in (self, *self._inner):
                display.look()
            pause = self._between if self._plain or self._file else REDRAW_SECONDS
            self._next = time.monotonic() + pause
            if self._file is not None:
                self._write(self._file)
                return
            if self._plain:
                self.print_lines()
                return
            if self._rich is None:
                self._rich = _rich_display()
                self._rich.start()
            self._draw(self._rich)
        finally:
            self._lock.release()

    def _write(self, file: Path) -> None:
        """Replace the file by one with the lines as they are now; a full disk must not end the work."""
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps([line.as_json() for line in self._all_lines()]), "utf-8")
            os.replace(temporary, file)
        except OSError as error:
            self._file = None
            warnings.warn(f"{file}: progress cannot be written ({error})", PermixWarning, stacklevel=3)

    def print_lines(self) -> None:
        """Write the lines as plain text, where that was asked for."""
        if self._plain:
            for line in self._all_lines():
                print(line, file=sys.stderr, flush=True)

    def _all_lines(self) -> list[Line]:
        """Return the lines, and one about the compiler while it keeps the user waiting."""
        lines = [line for display in (self, *self._inner) for line in display.lines]
        if COMPILING.seconds < COMPILING_SECONDS:
            return lines
        line = self._compiling
        if line.total is None and COMPILING.total is not None:  # what was there before took no time
            line.done_before, line.began = COMPILING.done, time.monotonic()
        line.done, line.total = COMPILING.done, COMPILING.total
        line.text = "" if COMPILING.total else f"{COMPILING.n_compiled} functions"
        return [line, *lines]

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


# When a display was last seen, or the program began.
_SHOWN = {"last": time.monotonic()}


def _patience() -> float:
    """Return how long work shows nothing; commands do many things, and their silence adds up."""
    if not RUNNING["command"]:
        return PATIENCE_SECONDS
    silent = time.monotonic() - _SHOWN["last"]
    return min(max(PATIENCE_SECONDS - silent, SHORT_SECONDS), PATIENCE_SECONDS)


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


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.2, 59.4, 60, 3599, 3700, 100_000)]
    ['1 s', '59 s', '1 min', '60 min', '1 h 2 min', '27 h 47 min']
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes <= 60 else f"{minutes // 60} h {minutes % 60} min"
