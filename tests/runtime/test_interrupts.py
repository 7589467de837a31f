"""Ctrl-C: what is noted, what is raised, what is kept; and no deadlock at any moment."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from permix.runtime.interrupts import Deadline, Interrupts
from permix.runtime.threads import over_rows, run_in_threads
from tests.every_run import first_in_every_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
ctrl_c = lambda: signal.raise_signal(signal.SIGINT)  # noqa: E731


def handler_is_given_back() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_first_is_noted_and_the_second_raised():
    with Interrupts() as interrupts:
        assert (interrupts.stopped, interrupts.interrupted, interrupts.installed) == (False, False, True)
        ctrl_c()
        assert (interrupts.stopped, interrupts.interrupted) == (True, True)
        assert interrupts.flag.tolist() == [1]
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
        assert handler_is_given_back(), "a third one must not find a handler of work that has ended"
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
    assert handler_is_given_back()
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_stopping_for_other_reasons_is_no_interruption():
    with Interrupts() as interrupts:
        interrupts.stop()
        assert (interrupts.stopped, interrupts.interrupted) == (True, False)
        ctrl_c()
        assert interrupts.interrupted
    assert handler_is_given_back()


def test_contexts_nest():
    with Interrupts() as outer:
        with Interrupts() as first:
            assert (first.nested, first.installed) == (True, False)
        ctrl_c()
        assert outer.interrupted
        assert not first.interrupted, "it had ended"
        with Interrupts() as second:
            assert second.interrupted, "what begins after Ctrl-C is part of what was interrupted"
            with pytest.raises(KeyboardInterrupt):
                ctrl_c()
    assert handler_is_given_back()


def test_programs_with_a_handler_of_their_own_keep_it():
    seen = []
    for handler in (lambda *_: seen.append(1), signal.SIG_IGN):
        before = signal.signal(signal.SIGINT, handler)
        try:
            with Interrupts() as interrupts:
                assert signal.getsignal(signal.SIGINT) is handler
                ctrl_c()
                assert not interrupts.stopped
        finally:
            signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_a_handler_that_raises_is_understood():
    def raising(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, raising)
    try:
        waited_for = threading.Event()  # a handler that raises while threads are being started ends the work
        work = interrupting(40, after=waited_for)
        with Interrupts() as interrupts:
            done = run_in_threads(work, range(5000), 4, interrupts=interrupts, watch=waited_for.set)
        assert interrupts.interrupted
        assert 40 <= len(done) < 5000
        with pytest.raises(KeyboardInterrupt):
            run_in_threads(interrupting(40), range(5000), 4)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupting(at, naps=0.001, after=None):
    """A task that presses Ctrl-C when its number comes, and after an event if one is given."""

    def work(index):
        if index == at:
            if after is not None:
                assert after.wait(30)
            ctrl_c()
        time.sleep(naps)
        return index

    return work


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_what_was_done_is_returned(n_jobs):
    with Interrupts() as interrupts:
        done = run_in_threads(interrupting(40), range(5000), n_jobs, interrupts=interrupts)
    assert interrupts.interrupted
    assert done == list(range(len(done)))
    assert 41 <= len(done) < 500
    assert handler_is_given_back()


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_without_someone_who_heeds_it_is_raised(n_jobs):
    begun = []

    def work(index):
        begun.append(index)
        return interrupting(40)(index)

    with pytest.raises(KeyboardInterrupt):
        run_in_threads(work, range(5000), n_jobs)
    assert len(begun) < 500
    assert handler_is_given_back()
    assert no_workers_are_left()


def test_some_tasks_run_in_any_case():
    with Interrupts() as interrupts:
        ctrl_c()
        assert run_in_threads(abs, range(-9, 0), 3, interrupts=interrupts) == []
        assert run_in_threads(abs, range(-9, 0), 3, interrupts=interrupts, least=2) == [9, 8]


def test_a_step_of_interrupted_work_is_completed():
    """Rows that threads share are all done: the first Ctrl-C ends work after the step, not within it."""
    with Interrupts():
        ctrl_c()
        rows = np.zeros(1000)

        def fill(first, last):
            rows[first:last] = 1

        over_rows(fill, 1000, 1000)
        assert rows.all()
        assert run_in_threads(abs, range(-9, 0), 3) == list(range(9, 0, -1))


def test_the_second_does_not_wait_for_tasks():
    slow, began = threading.Event(), time.monotonic()
    try:
        threading.Timer(0.2, ctrl_c_to_process).start()
        threading.Timer(0.5, ctrl_c_to_process).start()
        with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
            run_in_threads(lambda _: slow.wait(30), range(3), 2, interrupts=interrupts)
        assert 0.4 < time.monotonic() - began < 10
        assert len(workers()) == 2
    finally:
        slow.set()
    assert no_workers_are_left(), "what was left behind does not take the third task"
    assert handler_is_given_back()


def ctrl_c_to_process() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_tasks_under_way_are_waited_for_in_programs_with_a_handler_of_their_own():
    """A handler that raises while threads are waited for: a running thread is not taken for ended."""

    def raises(number, frame):
        raise KeyboardInterrupt

    waited_for = threading.Event()

    def press_then_work(index):
        assert waited_for.wait(30)
        ctrl_c_to_process()
        time.sleep(0.3)
        return index

    before = signal.signal(signal.SIGINT, raises)
    try:
        with Interrupts() as interrupts:
            done = run_in_threads(press_then_work, [7], 1, interrupts=interrupts, watch=waited_for.set)
            assert done == [7]
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupts.interrupted


def no_workers_are_left() -> bool:
    """Whether threads have ended or end within ten seconds."""
    deadline = time.monotonic() + 10
    while workers() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not workers()


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("permix-worker")]


def test_off_the_main_thread_nothing_is_installed():
    seen = []

    def work():
        with Interrupts() as interrupts:
            seen.append((interrupts.installed, interrupts.nested, handler_is_given_back()))
            seen.append(run_in_threads(abs, range(-3, 0), 2, interrupts=interrupts))

    with Interrupts() as main:
        ctrl_c()
        handler = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
        assert signal.getsignal(signal.SIGINT) == handler
    assert main.interrupted
    assert seen == [(False, False, False), [3, 2, 1]], "another thread's work is its own affair"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_starts_afresh():
    with Interrupts() as interrupts:
        ctrl_c()
        child = os.fork()
        if child == 0:
            os._exit(7 if handler_is_given_back() else 8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert interrupts.interrupted
        assert not handler_is_given_back()


# Many interrupts at random moments, in a process of its own that must end in time.

STRESS = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
from permix.runtime.interrupts import Deadline, Interrupts
from permix.runtime.threads import run_in_threads

faulthandler.dump_traceback_later({limit}, exit=True)
sys.setswitchinterval(1e-4)  # so that the thread that presses keys is not kept waiting by those that work
rng = np.random.default_rng({seed})
me, counts = os.getpid(), dict.fromkeys(("whole", "part", "raised", "late"), 0)

def square(index):
    return sum(range(200)) * 0 + index * index

{before}

def pressing(delays):
    for delay in delays:
        time.sleep(delay)
        os.kill(me, signal.SIGINT)

signal.signal(signal.SIGINT, signal.SIG_IGN)
start = time.perf_counter()
for _ in range(3):  # how long all tasks take here: presses come within that time on every machine
    with Interrupts() as interrupts:
        {run}
length = (time.perf_counter() - start) / 3
for turn in range(20 * {turns}):
    if turn >= {turns} and counts["part"] >= 5 and counts["raised"] >= 5:
        break
    n_presses = 1 + turn % 3
    delays = rng.exponential(length / 4, n_presses)
    hand = threading.Thread(target=pressing, args=(delays,))
    result = None
    hand.start()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Interrupts() as interrupts:
            result = {run}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        counts["late" if result is not None else "raised"] += 1
        length *= 1.2
    else:
        whole = len(result) == 5000
        assert result == [index * index for index in range(len(result))] or not whole
        assert whole or interrupts.interrupted
        assert all(value ** 0.5 % 1 == 0 for value in result)
        counts["whole" if whole else "part"] += 1
        length *= 0.9  # other programs come and go, and with them the time that tasks take
    hand.join()
    for thread in threading.enumerate():
        if thread.name.startswith("permix-worker"):
            for _ in range(2000):  # one that is only just starting cannot be joined
                if not thread.is_alive():
                    break
                time.sleep(0.01)
            else:
                raise AssertionError("a thread does not end")
print(counts)
"""
OURS = "run_in_threads(square, range(5000), 4, interrupts=interrupts)"
# What is usually written, and what Ctrl-C breaks: it is raised within the wait, where locks are held.
USUAL = """
from concurrent.futures import ThreadPoolExecutor, wait

def usual(interrupts):
    interrupts._give_back()
    pool = ThreadPoolExecutor(4)
    try:
        futures = [pool.submit(lambda i: None if interrupts.stopped else square(i), i) for i in range(5000)]
        while True:
            try:
                if not wait(futures, 0.05).not_done:
                    break
            except KeyboardInterrupt:
                if interrupts.interrupted:
                    raise
                interrupts.note()
        return [found for future in futures if (found := future.result()) is not None]
    finally:
        interrupts.stop()
        pool.shutdown(wait=False, cancel_futures=True)
"""


N_TURNS = 100


def stress(seed: int, run: str, before: str = "", limit: int = 300) -> subprocess.CompletedProcess[str]:
    code = STRESS.format(seed=seed, turns=N_TURNS, run=run, before=before, limit=limit)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=False
    )


@pytest.mark.parametrize("seed", first_in_every_run(range(3)))
def test_5000_tasks_interrupted_at_random_moments(seed):
    done = stress(seed, OURS)
    assert done.returncode == 0, done.stderr
    counts = ast.literal_eval(done.stdout)
    assert sum(counts.values()) >= N_TURNS
    assert counts["part"] >= 5, counts
    assert counts["raised"] >= 5, counts


def test_a_wait_that_ctrl_c_can_break_is_found():
    assert any(stress(seed, "usual(interrupts)", USUAL, limit=10).returncode for seed in range(3))


# While Numba compiles.

COMPILING = """
import faulthandler, os, signal, sys, time
faulthandler.dump_traceback_later(100, exit=True)
import numba
from numba.core import event
from permix.runtime.interrupts import Deadline, Interrupts
from permix.runtime.threads import run_in_threads

class Pressing(event.Listener):
    left = {presses}
    def on_start(self, _):
        if self.left:
            self.left -= 1
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
    def on_end(self, _):
        pass

@numba.njit(nogil=True)
def inner(x):
    return x * x

@numba.njit(nogil=True)
def outer(x):
    return inner(x) + 1

with event.install_listener("numba:compile", Pressing()):
    try:
        with Interrupts() as interrupts:
            print(run_in_threads(outer, range(100), 2, interrupts=interrupts)[:1], interrupts.interrupted)
    except KeyboardInterrupt:
        print("raised")
        sys.exit(130)
print(outer(3), outer(3.0))
"""


@pytest.mark.parametrize(("presses", "said", "code"), [(1, "[1] True\n10 10.0\n", 0), (2, "raised\n", 130)])
def test_interrupts_while_compiling(presses, said, code, forks, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(COMPILING.format(presses=presses))
    done = forks.run(program)
    assert (done.stdout, done.returncode) == (said, code), done.stderr


# While permix is still being imported.


def test_interrupts_while_importing(tmp_path: Path):
    votes = tmp_path / "votes.csv"
    votes.write_text("a,b,c\nb,a,c\n")
    rng = np.random.default_rng(5)
    codes = []
    for delay in rng.uniform(0.02, 0.5, 4):
        process = subprocess.Popen(
            [sys.executable, "-m", "permix", "info", str(votes)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
        codes.append(process.returncode)
        # Python itself may not be up yet, and dies of the signal or with its own message.
        assert process.returncode in (0, 130, 1, -signal.SIGINT), err
    assert any(codes), "none came in time"


# -- time that runs out ------------------------------------------------------------------------------


def test_a_deadline_ends_work_that_began_within_it_and_no_other():
    with Interrupts() as outer, Deadline(0.05) as deadline, Interrupts() as inner:
        until = time.monotonic() + 10.0
        while not inner.stopped and time.monotonic() < until:
            time.sleep(0.005)
        assert deadline.passed
        assert inner.interrupted
        assert not outer.interrupted
        with Interrupts() as later:
            assert later.stopped
    with Interrupts() as after:
        assert not after.stopped
    assert handler_is_given_back()


def test_a_deadline_far_away_changes_nothing():
    for seconds in (None, 1000.0):
        with Deadline(seconds) as deadline, Interrupts() as interrupts:
            assert not interrupts.stopped
        assert not deadline.passed
    assert threading.active_count() < 50  # timers end with their deadlines


def test_a_deadline_is_of_the_thread_that_opened_it():
    heard = []

    def elsewhere():
        with Interrupts() as interrupts:
            heard.append(interrupts.stopped)

    with Deadline(0.0):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert heard == [False]
