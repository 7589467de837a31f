"""Says beforehand that work would take more than half of the memory, or hours, and how to avoid it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from functools import cache

from permix.errors import PermixWarning

# Work that will take longer than this is worth a warning, once there is an estimate to go by.
LONG_SECONDS = 3600.0
# An estimate of the remaining time is made after so many seconds.
ESTIMATE_AFTER = 20.0


@cache
def memory_size() -> int | None:
    """Return the bytes of memory that this machine has; None where that cannot be known."""
    if sys.platform == "win32":
        import ctypes

        class Status(ctypes.Structure):
            _fields_ = [
                ("length", ctypes.c_ulong),
                ("load", ctypes.c_ulong),
                *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
            ]

        status = Status(length=ctypes.sizeof(Status))
        known = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status.total) if known else None
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def warn_of_memory(n_bytes: float, what: str, way_out: str, stacklevel: int = 3) -> bool:
    """Warn if ``what`` would take more than half of the memory; ``way_out`` may be a Message."""
    memory = memory_size()
    if memory is None or n_bytes <= memory / 2:
        return False
    needed, there = (f"{size / 2**30:,.1f} GiB" for size in (n_bytes, memory))
    said = f"{what} will take about {needed} of memory, and this machine has {there}; "
    warnings.warn(PermixWarning(said, *getattr(way_out, "parts", [way_out])), stacklevel=stacklevel)
    return True


def warn_of_disk(n_bytes: float, what: str, way_out: str, stacklevel: int = 3) -> bool:
    """Warn if ``what`` would take more room than there is for temporary files."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if n_bytes <= free:
        return False
    needed, there = (f"{size / 2**30:,.1f} GiB" for size in (n_bytes, free))
    said = f"{what} will take about {needed} of disk in {folder} (TMPDIR), which has {there} free; "
    warnings.warn(PermixWarning(said, *getattr(way_out, "parts", [way_out])), stacklevel=stacklevel)
    return True


def warn_of_time(seconds: float, way_out: str, stacklevel: int = 3) -> bool:
    """Warn if work has more than an hour to go; ``way_out`` may be a Message."""
    if seconds <= LONG_SECONDS:
        return False
    said = f"this will take about {seconds / 3600.0:.1f} hours more; "
    warnings.warn(PermixWarning(said, *getattr(way_out, "parts", [way_out])), stacklevel=stacklevel)
    return True
