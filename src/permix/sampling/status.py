"""One line on stderr about work under way: nothing for short work, nothing in log files."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from permix.sampling.progress import LINE_SECONDS, PATIENCE_SECONDS, is_live

if TYPE_CHECKING:
    from rich.status import Status

# Time between two changes of the line on a terminal.
REDRAW_SECONDS = 0.1


class StatusLine:
    """Shows a changing text while something runs; use it as a context manager. Threads may report to it.

    Parameters
    ----------
    progress : bool or None
        True shows always (plain lines where stderr is not a terminal), False never, None after two
        seconds in a terminal or a notebook.
    """

    def __init__(self, progress: bool | None) -> None:
        self._live = progress is not False and is_live()
        self._plain = progress is True and not self._live
        now = time.monotonic()
        self._next = now + (LINE_SECONDS if self._plain else 0.0 if progress else PATIENCE_SECONDS)
        self._lock = threading.Lock()
        self._what, self._total, self._done = "", 0, 0
        self._status: Status | None = None

    @property
    def wanted(self) -> bool:
        """Whether anything may be written to stderr at all."""
        return self._live or self._plain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def begin(self, what: str, total: int) -> None:
        """Start counting a piece of work of ``total`` parts."""
        with self._lock:
            self._what, self._total, self._done = what, total, 0

    def step(self) -> None:
        """Report one part done."""
        with self._lock:
            self._done += 1
            self._show(f"{self._what}: {self._done}/{self._total}")

    def update(self, text: str) -> None:
        """Show the text, if it is time to."""
        with self._lock:
            self._show(text)

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if not self.wanted or now < self._next:
            return
        self._next = now + (LINE_SECONDS if self._plain else REDRAW_SECONDS)
        if self._plain:
            print(text, file=sys.stderr, flush=True)
            return
        if self._status is None:
            from rich.console import Console
            from rich.status import Status

            self._status = Status("", console=Console(stderr=True))
            self._status.start()
        self._status.update(text)
