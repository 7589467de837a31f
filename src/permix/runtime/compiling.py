"""What this process waits for at a first run: functions that it, or another process for it, compiles.

Python's search for garbage rests meanwhile: with all that Numba makes, it takes a sixth of the time.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Hashable


class Compiling:
    """Which compilations are under way, how long that has taken, and how much of how much is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[Hashable] = set()
        self._began = 0.0
        self._spent = 0.0
        self._collects = True
        self.n_compiled = 0
        # Of all that the first run of this command compiles, as far as that is known beforehand.
        self.done = 0
        self.total: int | None = None

    def begin(self, what: Hashable) -> None:
        """Note that something is compiled from now on; calls nest."""
        with self._lock:
            if not self._under_way:
                self._began = time.monotonic()
                self._collects = gc.isenabled()
                gc.disable()
            self._under_way.add(what)

    def end(self, what: Hashable) -> None:
        """Note that it is done, or failed; nothing happens if it had not begun."""
        with self._lock:
            if what in self._under_way:
                self._under_way.remove(what)
                self.n_compiled += 1
                if not self._under_way:
                    self._spent += time.monotonic() - self._began
                    if self._collects:
                        gc.enable()

    @property
    def seconds(self) -> float:
        """Time during which this process has waited for compiled code, if it does now; else 0."""
        with self._lock:
            return self._spent + time.monotonic() - self._began if self._under_way else 0.0


COMPILING = Compiling()
