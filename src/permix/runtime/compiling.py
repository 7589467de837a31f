"""One line on the terminal when the first run keeps the user waiting for the compiler."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 1.0
MESSAGE = "compiling, first run only ..."


@contextmanager
def announce_compilation(wanted: bool = True) -> Iterator[None]:
    """Say so on stderr, once, when compilation takes longer than a second.

    ``wanted=False`` does nothing, so that callers need no condition of their own.
    """
    # Where Numba was not imported nothing will be compiled: states and moves that use it import it.
    if not wanted or "numba" not in sys.modules:
        yield
        return
    from numba.core import event

    class Listener(event.Listener):
        """Adds up the time during which anything compiles; several threads overlap and calls nest."""

        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.under_way = 0
            self.started = 0.0
            self.spent = 0.0
            self.timer: threading.Timer | None = None
            self.said = False

        def on_start(self, event: object) -> None:
            with self.lock:
                self.under_way += 1
                if self.under_way == 1 and not self.said:
                    self.started = time.monotonic()
                    self.timer = threading.Timer(max(0.0, PATIENCE_SECONDS - self.spent), self.say)
                    self.timer.daemon = True
                    self.timer.start()

        def on_end(self, event: object) -> None:
            with self.lock:
                self.under_way -= 1
                if self.under_way == 0:
                    self.spent += time.monotonic() - self.started
                    self.cancel()

        def say(self) -> None:
            with self.lock:
                if self.under_way == 0 or self.said:
                    return
                self.said = True
            print(MESSAGE, file=sys.stderr, flush=True)

        def cancel(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    listener = Listener()
    with event.install_listener("numba:compile", listener):
        try:
            yield
        finally:
            listener.cancel()
