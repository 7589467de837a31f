"""One process per store.

The lock belongs to the operating system, which drops it when the process ends in any way: a lock
left behind by a killed process is never in the way, and no guess about process ids is needed.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from permix.errors import DataError, PermixWarning

# Windows keeps others from reading locked bytes; lock one far beyond the text.
_LOCKED_BYTE = 2**30


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file ``path``; raise a DataError when another process (or thread) holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    with open(descriptor, "r+b", buffering=0) as handle:
        try:
            _lock(handle)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                warnings.warn(
                    f"{path} cannot be locked on this file system ({error}); make sure that no other "
                    f"process uses {what}.",
                    PermixWarning,
                    stacklevel=5,
                )
            else:
                handle.seek(0)
                holder = handle.read(20).decode("ascii", "replace").strip() or "unknown"
                raise DataError(
                    f"{what} is in use by process {holder}. Wait for it to end, or choose another folder."
                ) from error
        handle.seek(0)
        handle.write(f"{os.getpid():<20}".encode("ascii"))
        yield


def _lock(handle: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        handle.seek(_LOCKED_BYTE)
        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
