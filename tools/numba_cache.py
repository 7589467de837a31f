"""A cache folder per state of the compiled sources.

Numba notices that the file of a cached function changed, but not that a function it calls, in
another file, did. Tests and benchmarks therefore keep one cache per content of the rooms that
hold compiled code; an installed release never changes, so users need none of this.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILED_ROOMS = ("kernels", "families", "partitions", "moves", "posterior")


def use_fresh_cache() -> Path:
    """Point Numba at the cache of the present sources; call before Numba is imported.

    A developer who knows what was edited may keep one cache by naming it in PERMIX_NUMBA_CACHE.
    """
    if "PERMIX_NUMBA_CACHE" in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = os.environ["PERMIX_NUMBA_CACHE"]
        return Path(os.environ["NUMBA_CACHE_DIR"])
    digest = hashlib.sha256()
    for room in COMPILED_ROOMS:
        for source in sorted((ROOT / "src" / "permix" / room).rglob("*.py")):
            digest.update(source.read_bytes())
    folder = ROOT / ".numba_cache" / digest.hexdigest()[:16]
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    return folder
