"""Shared by all tests and documentation pages: a compilation cache that cannot be stale."""

from tools.numba_cache import use_fresh_cache

use_fresh_cache()
