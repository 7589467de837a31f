"""Benchmarks: each against a peer or a naive version in the same run, reported as ratios."""

from tools.numba_cache import use_fresh_cache

use_fresh_cache()
