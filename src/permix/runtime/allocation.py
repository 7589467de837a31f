"""Memory that a worker of Dask frees stays with it for the next array, as in any other process.

Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``. That, or any other number, also ends that glibc
learns how large arrays are that come and go: each of 128 kB or more is then asked of the kernel, page by
page, and given back, which took 2,000,000 page faults in place of 50,000 in a fit of 500,000 top-10 lists.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The most that glibc would come to by itself: arrays up to the first are taken from memory that is kept, and
# up to the second of that may be free.
LARGEST_KEPT = 32 * 2**20
MOST_FREE = 2 * LARGEST_KEPT


@cache
def keep_freed_memory() -> bool:
    """Let this process keep memory for arrays up to 32 MB, once; return whether that was called for.

    It is where a trim threshold is set, by glibc, and nobody has said from which size on the kernel is asked.
    """
    if platform.libc_ver()[0] != "glibc" or "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    done = [mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT), mallopt(M_TRIM_THRESHOLD, MOST_FREE)]
    return all(done)
