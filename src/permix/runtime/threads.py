"""The one way permix uses threads: how many, for whom, and what runs in them.

Compiled functions release the GIL, so threads are enough. There is no lasting pool: threads begin and end
with the work they are for, so that permix can be used from several threads and in forked processes.

Threads share: work that runs in k of n threads may itself use n / k in each, and no more.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np

from permix.errors import DataError
from permix.runtime.interrupts import Interrupts

Task = TypeVar("Task")
Result = TypeVar("Result")

# Where Linux says how much time of how much a control group has: its second version, and its first.
CONTROL_GROUPS = (
    (Path("/sys/fs/cgroup"), ("cpu.max",)),
    (Path("/sys/fs/cgroup/cpu"), ("cpu.cfs_quota_us", "cpu.cfs_period_us")),
)
# The calling thread looks around this often while others work.
POLL_SECONDS = 0.05
# Threads whose kernels take tenths of a millisecond wait for the interpreter between them: they ask for it
# after this long, where Python's default is 5 ms.
SWITCH_SECONDS = 0.0005
# Nobody gains from more threads at once, whatever n_jobs says.
MOST_THREADS = 256
# Rows times work per row below which :func:`over_rows` stays in the calling thread.
WORTH_THREADS = 50_000
# Parts that rows are divided into where somebody is told how far they are, and that are worth telling.
TOLD_PARTS = 100


def n_threads(n_jobs: object) -> int:
    """Return how many threads ``n_jobs`` allows: None and -1 all processors, a positive number that many."""
    if n_jobs is None:
        return n_processors()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise DataError(
            f"n_jobs={n_jobs!r} must be a whole number of threads, or None or -1 for all processors"
        )
    if n_jobs == -1:
        return n_processors()
    if not 1 <= n_jobs < 2**31:
        raise DataError(f"n_jobs={n_jobs} must be from 1 to 2147483647, or None or -1 for all processors")
    return int(n_jobs)


@cache
def n_processors() -> int:
    """Return how many processors this process may use.

    Those it is bound to, no more than its control group (a container) has time for, and no more than the
    variables NUMBA_NUM_THREADS and LOKY_MAX_CPU_COUNT say: joblib's workers are told their share by them.
    """
    bound_to = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    limits = [os.environ.get(name, "") for name in ("NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")]
    told = [int(limit) for limit in limits if limit.isdecimal()]
    return max(1, int(min(len(bound_to), _processors_of_group(), *told)))


def _processors_of_group() -> float:
    """Return how many processors the control group may keep busy, rounded up; infinity if it says nothing."""
    for folder, files in CONTROL_GROUPS:
        try:
            words = [word for name in files for word in (folder / name).read_text().split()]
        except OSError:  # another version of control groups, or another system
            continue
        quota, period = words[:2]
        return math.ceil(int(quota) / int(period)) if quota.isdecimal() else math.inf
    return math.inf


class _Share(threading.local):
    """The threads that the present thread may use; None where nobody set a limit."""

    most: int | None = None
    rows: Callable[[int, int], object] | None = None  # told how many rows are done, and how many will come


_share = _Share()


def threads_here(n_jobs: object = None) -> int:
    """Return how many threads the caller may use: ``n_jobs``, but no more than its share."""
    if _share.most is None:
        return n_threads(n_jobs)
    return _share.most if n_jobs is None else min(n_threads(n_jobs), _share.most)


@contextmanager
def rows_reported_to(tell: Callable[[int, int], object]) -> Iterator[None]:
    """Have :func:`over_rows`, where this thread calls it within, say how far it is.

    That is ``tell(0, rows)`` when it begins and ``tell(rows of the part, 0)`` after each part.
    """
    before, _share.rows = _share.rows, tell
    try:
        yield
    finally:
        _share.rows = before


@contextmanager
def at_most(n_jobs: object) -> Iterator[None]:
    """Let what is called within use no more threads than ``n_jobs`` allows, and BLAS one.

    Long sums that BLAS divides among threads have other last bits with another number of them, and so would
    fits on another machine.
    """
    before = _share.most
    _share.most = threads_here(n_jobs)
    try:
        with _one_thread_of_blas():
            yield
    finally:
        _share.most = before


_blas = threading.Lock()


@contextmanager
def _one_thread_of_blas() -> Iterator[None]:
    """Have BLAS use one thread; its setting is that of the process, so the first who comes sees to it."""
    if not _blas.acquire(blocking=False):
        yield
        return
    try:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        _blas.release()


def run_in_threads(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    n_jobs: object = None,
    *,
    interrupts: Interrupts | None = None,
    least: int = 0,
    watch: Callable[[], object] | None = None,
) -> list[Result]:
    """Return the results of ``function`` over ``tasks``, in their order.

    After Ctrl-C (or an error in a task) the flag of ``interrupts`` is set, tasks under way end soon, others
    but the first ``least`` do not begin, and the results of those that began are returned. Without
    ``interrupts``, Ctrl-C is raised as soon as the tasks under way have ended; within other work that notes
    Ctrl-C all tasks are completed. A second Ctrl-C is raised at once, and the error of the first task that
    failed after the tasks under way have ended. ``watch`` is called now and then by the calling thread while
    others work, and once when they have ended.
    """
    work = _Work(function, list(tasks), threads_here(n_jobs))
    if interrupts is not None:
        work.run(interrupts, True, least, watch)
        return work.done()
    with Interrupts() as own:
        heeds = not own.nested
        if work.n_threads <= 1 and watch is None:
            work.take(own, heeds, least)
        else:
            work.run(own, heeds, least, watch)
    if heeds and own.interrupted:
        raise KeyboardInterrupt
    return work.done()


class _Switching:
    """A shorter switch interval of the interpreter while any threads of ours run; then what it was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: set[object] = set()
        self._before: float | None = None  # where it was changed

    @contextmanager
    def often(self) -> Iterator[None]:
        """Shorten it meanwhile."""
        user = object()
        try:
            with self._lock:
                self._users.add(user)
                if self._before is None and sys.getswitchinterval() > SWITCH_SECONDS:
                    self._before = sys.getswitchinterval()
                    sys.setswitchinterval(SWITCH_SECONDS)
            yield
        finally:
            with self._lock:
                self._users.discard(user)
                if not self._users:
                    self._restore()

    def _restore(self) -> None:
        before, self._before = self._before, None
        # What somebody else has set meanwhile stays.
        if before is not None and math.isclose(sys.getswitchinterval(), SWITCH_SECONDS):
            sys.setswitchinterval(before)

    def begin_anew(self) -> None:
        """In a forked process, which has none of the threads, and maybe a lock that is held by one."""
        self._lock = threading.Lock()
        self._users = set()
        self._restore()


_switching = _Switching()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switching.begin_anew)


class _Work(Generic[Task, Result]):
    """Tasks, the threads that take them from one queue, and what came out."""

    def __init__(self, function: Callable[[Task], Result], tasks: Sequence[Task], most: int) -> None:
        self.function = function
        self.n_threads = min(most, len(tasks), MOST_THREADS)
        self.share = max(1, most // max(self.n_threads, 1))
        self.pending = deque(enumerate(tasks))
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self.abandoned = False
        self.ended: list[str] = []
        self.news: SimpleQueue[None] = SimpleQueue()

    def run(
        self, interrupts: Interrupts, heeds: bool, least: int, watch: Callable[[], object] | None
    ) -> None:
        """Start threads and wait for them; the signal's handler runs meanwhile, whatever they do."""
        with _switching.often():
            self._run(interrupts, heeds, least, watch)

    def _run(
        self, interrupts: Interrupts, heeds: bool, least: int, watch: Callable[[], object] | None
    ) -> None:
        try:
            n_started = self._start((interrupts, heeds, least))
            while len(self.ended) < n_started:
                try:
                    # Not Thread.join: an exception raised by a handler of signals while it waits makes
                    # Python 3.11 take a running thread for one that has ended.
                    with suppress(Empty):
                        self.news.get(timeout=POLL_SECONDS)
                    if watch is not None:
                        watch()
                except KeyboardInterrupt:  # from a program that treats Ctrl-C in its own way
                    if interrupts.interrupted:
                        raise
                    interrupts.note()
            if watch is not None:  # what happened since the last look, or before the first
                watch()
        except BaseException:  # the second Ctrl-C, above all: nobody waits for threads now
            self.abandoned = True
            interrupts.stop()
            raise

    def _start(self, arguments: tuple[Interrupts, bool, int]) -> int:
        """Start the threads; return how many there are."""
        for number in range(self.n_threads):
            # Daemons: after the second Ctrl-C the process may end without waiting for their present step.
            name = f"permix-worker-{number}"
            thread = threading.Thread(target=self.take_and_tell, args=arguments, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more; fewer do as well
                if not number:
                    raise
                return number
        return self.n_threads

    def take_and_tell(self, *arguments: Any) -> None:
        try:
            self.take(*arguments)
        finally:
            self.ended.append(threading.current_thread().name)
            self.news.put(None)

    def take(self, interrupts: Interrupts, heeds: bool, least: int) -> None:
        """Take tasks until there are no more, or no more are wanted."""
        before, _share.most = _share.most, self.share
        try:
            while not self.abandoned and not self.errors:
                try:
                    index, task = self.pending.popleft()
                except IndexError:
                    break
                if heeds and interrupts.stopped and index >= least:
                    break
                try:
                    self.results[index] = self.function(task)
                except BaseException as error:  # raised again by the caller of all
                    self.errors[index] = error
                    interrupts.stop()
        finally:
            _share.most = before

    def done(self) -> list[Result]:
        if self.errors:
            raise self.errors[min(self.errors)]
        return [self.results[index] for index in sorted(self.results)]


def over_rows(task: Callable[..., object], n_rows: int, work_per_row: int, *arguments: Any) -> None:
    """Call ``task(first, last, *arguments)`` over all rows, in threads where that pays.

    The compiled functions called release the GIL, share nothing, and draw from per-row streams: the
    result does not depend on how the rows are divided.
    """
    threads, tell = threads_here(), _share.rows
    if tell is not None:
        tell(0, n_rows)
    told = tell is not None and n_rows * work_per_row >= TOLD_PARTS * WORTH_THREADS
    if not told and (threads == 1 or n_rows * work_per_row < WORTH_THREADS):
        task(0, n_rows, *arguments)
        if tell is not None:
            tell(n_rows, 0)
        return
    task(0, 0, *arguments)  # compile, or load from the cache, once
    # More than threads, so that a busy core holds up a small part only.
    n_parts = max(4 * threads, TOLD_PARTS if told else 0)
    ends = [n_rows * part // n_parts for part in range(n_parts + 1)]

    def run(part: int) -> None:
        task(*ends[part : part + 2], *arguments)
        if tell is not None:
            tell(ends[part + 1] - ends[part], 0)

    run_in_threads(run, range(n_parts))
