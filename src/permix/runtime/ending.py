"""SIGTERM, which ``timeout`` and batch systems send, treated as Ctrl-C: what was done until then is kept."""

from __future__ import annotations

import os
import signal
from types import FrameType

# Set for processes whose work goes on elsewhere: SIGTERM ends them at once.
AT_ONCE = "PERMIX_END_AT_ONCE"


def treat_ending_as_interrupt() -> None:
    """Treat SIGTERM as Ctrl-C from now on; call it in the main thread.

    Not where SIGTERM is treated already, or Ctrl-C ignored: then it ends the process at once, as ever.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and not (ignored or os.environ.get(AT_ONCE)):
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def _forget_parent() -> None:
    """End forked children at once: what their parent keeps is not theirs."""
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
