"""Shared by all tests and documentation pages: a compilation cache that cannot be stale."""

import gc

from tools.numba_cache import use_fresh_cache

use_fresh_cache()
# Compiling makes millions of small objects that stay: looking through them less often saves a twentieth.
gc.set_threshold(50_000, 20, 50)
