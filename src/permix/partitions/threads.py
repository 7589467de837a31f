"""Compiled functions release the GIL; this runs them in threads, and lets Ctrl-C through."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from permix.errors import DataError

Task = TypeVar("Task")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Number of threads: None or -1 means every core this process may use."""
    import joblib

    if n_jobs == 0:
        raise DataError("n_jobs must not be 0; None or -1 uses all cores")
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    return max(int(joblib.cpu_count()) + 1 + (-1 if n_jobs is None else n_jobs), 1)


def run_in_threads(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    n_jobs: int | None,
    stop: npt.NDArray[np.uint8] | None = None,
) -> list[Result]:
    """Results of ``function`` over ``tasks``, in their order.

    With ``stop``, Ctrl-C sets ``stop[0] = 1``, which running tasks watch, cancels those that have not
    begun and returns what there is; without it, Ctrl-C cancels what it can and is raised.
    """
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        futures = [pool.submit(function, task) for task in tasks]
        try:
            pending = set(futures)
            while pending:  # with a timeout, because an endless wait does not see Ctrl-C on Windows
                pending = wait(pending, timeout=0.2).not_done
        except KeyboardInterrupt:
            for future in futures:
                future.cancel()
            if stop is None:
                raise
            stop[0] = 1
    return [future.result() for future in futures if not future.cancelled()]
