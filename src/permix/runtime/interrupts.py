"""The one way permix treats Ctrl-C, and time that has run out.

While work runs in the main thread, the first Ctrl-C is noted and raises nothing: it cannot break a lock or a
wait, and work ends after its current step with what was done. The second is raised at once. A
:class:`Deadline` ends work in the same way, and so does SIGTERM in commands (:mod:`permix.runtime.ending`).
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

import numpy as np

# After so much of its time, work should have something to show at the end.
HURRY = 0.5


class Interrupts:
    """Notes Ctrl-C while work runs; use it as a context manager.

    Python delivers signals to the main thread. Elsewhere, and where the program has a way of its own to treat
    Ctrl-C, nothing is installed and work is stopped by :meth:`note` alone. Contexts nest: all that are open
    in the main thread hear of a Ctrl-C, and the outermost one gives the signal back.
    """

    def __init__(self) -> None:
        #: 1 once work should end after its current step; compiled code watches it.
        self.flag = np.zeros(1, np.uint8)
        self.interrupted = False  # whether the user asked for that
        self.hurried = False  # whether most of the time has gone: what only prepares a result should end
        self.installed = False  # whether this is the context that catches the signal
        self._inner: list[Interrupts] = []
        self._outer: Interrupts | None = None

    def __enter__(self) -> Self:
        for deadline in _here.deadlines:
            deadline.add(self)
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            outer = _owner(handler)
            if outer is not None:
                self._outer = outer
                outer._inner.append(self)
                if outer.interrupted:
                    self.note()
            elif handler is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._on_signal)
                self.installed = True
        return self

    def __exit__(self, *error: object) -> None:
        for deadline in _here.deadlines:
            deadline.remove(self)
        if self._outer is not None:
            self._outer._inner.remove(self)
            self._outer = None
        self._give_back()

    @property
    def nested(self) -> bool:
        """Whether this is part of other work in the main thread that notes Ctrl-C."""
        return self._outer is not None

    @property
    def stopped(self) -> bool:
        """Whether work should end after its current step."""
        return bool(self.flag[0])

    def stop(self) -> None:
        """Ask work to end for another reason than Ctrl-C, such as an error elsewhere."""
        self.flag[0] = 1

    def note(self) -> None:
        """Treat this as the first Ctrl-C."""
        self.interrupted = True
        self.stop()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Plain assignments only: a lock taken here may be held by the very code that was interrupted.
        if self.interrupted:
            self._give_back()
            raise KeyboardInterrupt
        for context in (self, *self._inner):
            context.note()

    def _give_back(self) -> None:
        if self.installed and _owner(signal.getsignal(signal.SIGINT)) is self:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Deadline:
    """Ends work that begins within it after so many seconds, as Ctrl-C does; use it as a context manager.

    Work in the thread that opened it hears of it, and so does work that begins once time has run out.
    After half of the time, contexts are ``hurried``: burn-in ends, so that there is something to show.
    ``seconds=None`` sets no limit.

    Examples
    --------
    >>> with Deadline(0.0) as deadline, Interrupts() as interrupts:
    ...     (deadline.passed, interrupts.stopped)
    (True, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.passed = False  # whether time has run out
        self._contexts: list[Interrupts] = []
        self._lock = threading.Lock()
        self._hurried = False
        self._timers: list[threading.Timer] = []

    def __enter__(self) -> Self:
        _here.deadlines.append(self)
        if self.seconds is not None and self.seconds <= 0.0:
            self.passed = True
        elif self.seconds is not None:
            times = ((HURRY * self.seconds, self._hurry), (self.seconds, self._expire))
            for seconds, what in times:
                timer = threading.Timer(seconds, what)
                timer.daemon = True
                timer.start()
                self._timers.append(timer)
        return self

    def __exit__(self, *error: object) -> None:
        for timer in self._timers:
            timer.cancel()
        _here.deadlines.remove(self)

    def add(self, context: Interrupts) -> None:
        """Let a context know when time runs out."""
        with self._lock:
            self._contexts.append(context)
            context.hurried |= self._hurried
            if self.passed:
                context.note()

    def remove(self, context: Interrupts) -> None:
        """Forget a context; one that was open before is not known."""
        with self._lock:
            if context in self._contexts:
                self._contexts.remove(context)

    def _hurry(self) -> None:
        with self._lock:
            self._hurried = True
            for context in self._contexts:
                context.hurried = True

    def _expire(self) -> None:
        with self._lock:
            self.passed = True
            for context in self._contexts:
                context.note()


class _Here(threading.local):
    """The deadlines of the present thread."""

    def __init__(self) -> None:
        self.deadlines: list[Deadline] = []


_here = _Here()


def _owner(handler: Any) -> Interrupts | None:
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupts) else None


def _forget_parent() -> None:
    """Let a forked child treat Ctrl-C for itself: what ran in its parent does not run there."""
    owner = _owner(signal.getsignal(signal.SIGINT))
    if owner is not None:
        owner._give_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
