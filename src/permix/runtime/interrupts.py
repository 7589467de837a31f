"""The one way permix treats Ctrl-C.

While work runs in the main thread, the first Ctrl-C is noted and raises nothing: it cannot break a lock or a
wait, and work ends after its current step with what was done. The second is raised at once.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

import numpy as np


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
        self.installed = False  # whether this is the context that catches the signal
        self._inner: list[Interrupts] = []
        self._outer: Interrupts | None = None

    def __enter__(self) -> Self:
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
