"""Threads: how many, for whom, in what order, and what becomes of errors."""

from __future__ import annotations

import math
import os
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from permix.errors import DataError
from permix.runtime import threads
from permix.runtime.interrupts import Interrupts
from permix.runtime.threads import at_most, n_processors, n_threads, over_rows, run_in_threads, threads_here

WRONG = [
    *(float("nan"), float("inf"), 1.0, 2.5, np.float64(2), True, False, np.bool_(True), 0, -2, -(10**30)),
    *(2**31, 10**30, "2", "all", b"1", [], [2], (1,), {}, print, np.array(2), np.array([1, 2]), 1j),
]


@pytest.mark.parametrize("n_jobs", WRONG, ids=repr)
def test_what_n_jobs_cannot_be(n_jobs):
    with pytest.raises(DataError, match="n_jobs"):
        n_threads(n_jobs)
    with pytest.raises(DataError, match="n_jobs"):
        run_in_threads(str, [1], n_jobs)


def test_what_n_jobs_means(monkeypatch):
    monkeypatch.setattr(threads, "n_processors", lambda: 6)
    assert [n_threads(n_jobs) for n_jobs in (None, -1, 1, 2, np.int64(9), 2**31 - 1)] == [
        6,
        6,
        1,
        2,
        9,
        2**31 - 1,
    ]


@pytest.fixture
def counted_anew(monkeypatch):
    """Processors are counted anew, now and after the test, by what the test says of the environment."""
    for name in ("NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        monkeypatch.delenv(name, raising=False)
    n_processors.cache_clear()
    yield
    n_processors.cache_clear()


@pytest.mark.usefixtures("counted_anew")
def test_processors_are_those_that_joblib_counts(monkeypatch):
    assert n_processors() == joblib.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 8, 9, 11})
        monkeypatch.setattr(threads, "CONTROL_GROUPS", ())
        n_processors.cache_clear()
        assert n_processors() == 5


@pytest.mark.usefixtures("counted_anew")
@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"])
def test_the_environment_limits_processors(monkeypatch, name):
    monkeypatch.setattr(threads, "_processors_of_group", lambda: 7)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(9)), raising=False)
    for said, expected in (("3", 3), ("0", 1), ("20", 7), ("all", 7), ("", 7)):
        monkeypatch.setenv(name, said)
        n_processors.cache_clear()
        assert n_processors() == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({}, math.inf),
    ],
)
def test_containers_limit_processors(monkeypatch, tmp_path, files, expected):
    (tmp_path / "cpu").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    places = [
        (tmp_path / folder.relative_to("/sys/fs/cgroup"), names) for folder, names in threads.CONTROL_GROUPS
    ]
    monkeypatch.setattr(threads, "CONTROL_GROUPS", places)
    assert threads._processors_of_group() == expected


@pytest.mark.parametrize("n_jobs", [1, 3, 400, None])
def test_results_come_in_order(n_jobs):
    rng = np.random.default_rng(1)
    naps = rng.exponential(1e-4, 500)

    def work(index):
        time.sleep(naps[index])
        return index * index

    assert run_in_threads(work, range(500), n_jobs) == [index * index for index in range(500)]
    assert run_in_threads(work, [], n_jobs) == []


def test_as_many_threads_as_asked_for():
    together = threading.Barrier(5, timeout=30)
    assert run_in_threads(lambda index: together.wait() >= 0, range(5), 5) == [True] * 5
    names = run_in_threads(lambda index: threading.current_thread().name, range(50), 1)
    assert set(names) == {threading.current_thread().name}, "one thread is the caller's"


def test_threads_share():
    def shares(n_tasks, n_jobs):
        return set(
            run_in_threads(
                lambda _: (threads_here(), threads_here(1), threads_here(7)), range(n_tasks), n_jobs
            )
        )

    assert shares(2, 8) == {(4, 1, 4)}
    assert shares(3, 8) == {(2, 1, 2)}
    assert shares(9, 4) == {(1, 1, 1)}
    assert shares(1, 4) == {(4, 1, 4)}
    nested = run_in_threads(lambda _: run_in_threads(lambda _: threads_here(), range(2), None), range(2), 8)
    assert nested == [[2, 2], [2, 2]]
    with at_most(3):
        assert (threads_here(), threads_here(2), threads_here(-1)) == (3, 2, min(3, n_processors()))
        with at_most(8):
            assert threads_here() == 3
        assert shares(9, 8) == {(1, 1, 1)}
    assert threads_here() == n_processors()
    assert threads_here(100) == 100


def threads_of_blas():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_has_one_thread_within_and_then_what_it_had():
    """Its sums of many terms have other last bits with another number of threads."""
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        assert max(before) > 1 or n_processors() == 1

        def work():
            with at_most(2):
                assert set(threads_of_blas()) == {1}

        with at_most(1):
            run_in_threads(lambda _: work(), range(3), 2)
            work()
            assert set(threads_of_blas()) == {1}
        assert threads_of_blas() == before
        with pytest.raises(ZeroDivisionError), at_most(1):
            raise ZeroDivisionError
        assert threads_of_blas() == before


def test_the_first_error_is_raised_and_stops_the_rest():
    begun = []

    def work(index):
        begun.append(index)
        if index in (3, 5):
            time.sleep(0.01 * (6 - index))
            raise ValueError(f"task {index}")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="task 3"):
        run_in_threads(work, range(5000), 8)
    assert len(begun) < 5000
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("permix-worker")]
    with Interrupts() as interrupts, pytest.raises(ValueError, match="task 3"):
        run_in_threads(work, range(5000), 2, interrupts=interrupts)
    assert interrupts.stopped
    assert not interrupts.interrupted


def test_a_system_without_threads_left(monkeypatch):
    start, started = threading.Thread.start, []

    def scarce(self):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    assert run_in_threads(abs, range(-50, 0), 10) == list(range(50, 0, -1))
    with pytest.raises(RuntimeError):
        run_in_threads(abs, range(5), 3)


def test_works_off_the_main_thread_and_from_several_threads_at_once():
    found = {}

    def call(number):
        found[number] = run_in_threads(lambda index: index + number, range(200), 3)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert found == {number: list(range(number, number + 200)) for number in range(8)}


def test_the_watcher_is_called_meanwhile():
    looks = []
    run_in_threads(lambda _: time.sleep(0.3), [0], 1, watch=lambda: looks.append(threading.current_thread()))
    assert len(looks) >= 3
    assert set(looks) == {threading.current_thread()}

    def broken():
        raise OSError("no terminal")

    with pytest.raises(OSError, match="no terminal"):
        run_in_threads(lambda _: time.sleep(0.2), range(5), 1, watch=broken)


def test_threads_hand_the_interpreter_over_often_and_leave_it_as_it_was():
    before = sys.getswitchinterval()
    inner = [None]

    def work(index):
        if index == 0:
            inner[0] = run_in_threads(lambda _: sys.getswitchinterval(), range(2), 2)
        return sys.getswitchinterval()

    seen = run_in_threads(work, range(4), 2)
    assert before > threads.SWITCH_SECONDS
    assert {round(each, 9) for each in [*seen, *inner[0]]} == {threads.SWITCH_SECONDS}
    assert sys.getswitchinterval() == before
    with pytest.raises(OSError, match="no terminal"):
        run_in_threads(refused, range(4), 2)
    assert sys.getswitchinterval() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_process_has_the_interval_that_was_before_threads():
    before = sys.getswitchinterval()

    def fork(index):
        if index:
            return None
        child = os.fork()
        if not child:
            run_in_threads(lambda _: None, range(2), 2)
            os._exit(0 if sys.getswitchinterval() == before else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert run_in_threads(fork, range(2), 2)[0] == 0


def test_an_interval_that_is_set_meanwhile_stays():
    before = sys.getswitchinterval()
    try:
        run_in_threads(lambda _: sys.setswitchinterval(0.02), range(2), 2)
        assert sys.getswitchinterval() == pytest.approx(0.02)
    finally:
        sys.setswitchinterval(before)


def refused(_):
    raise OSError("no terminal")


@pytest.mark.parametrize("n_threads", [1, 3])
def test_rows_are_divided_and_all_visited_once(n_threads):
    seen = np.zeros(100_001, int)
    calls = []

    def work(first, last):
        calls.append(threading.get_ident())
        seen[first:last] += 1

    with at_most(n_threads):
        over_rows(work, len(seen), 10)
    assert (seen == 1).all()
    assert len(calls) == (1 if n_threads == 1 else 13)  # twelve parts, and nothing to compile
    with at_most(n_threads):
        calls.clear()
        over_rows(work, 10, 1)
    assert calls == [threading.get_ident()]
