"""How benchmarks take the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def best_time(function: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the quickest run, after one that compiles."""
    function()
    return min(timed(function)[0] for _ in range(repeats))


def timed(function: Callable[..., T], *arguments: object) -> tuple[float, T]:
    """Seconds of one call, and its value."""
    start = time.perf_counter()
    value = function(*arguments)
    return time.perf_counter() - start, value
