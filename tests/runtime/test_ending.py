"""SIGTERM ends commands as Ctrl-C does: they keep what was done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from permix.runtime.ending import AT_ONCE, treat_ending_as_interrupt
from permix.runtime.interrupts import Interrupts

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows sends no SIGTERM")


def test_the_first_one_is_noted_and_the_second_raised():
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        treat_ending_as_interrupt()
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGTERM)
            assert interrupts.interrupted
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("why", ["asked", "ignored", "treated"])
def test_who_wants_to_end_at_once_does(why, monkeypatch):
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    own = lambda number, frame: None  # noqa: E731
    try:
        signal.signal(signal.SIGTERM, own if why == "treated" else signal.SIG_DFL)
        if why == "ignored":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if why == "asked":
            monkeypatch.setenv(AT_ONCE, "1")
        treat_ending_as_interrupt()
        assert signal.getsignal(signal.SIGTERM) is (own if why == "treated" else signal.SIG_DFL)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


FORKS = """
import os, signal
from permix.runtime.ending import treat_ending_as_interrupt
treat_ending_as_interrupt()
child = os.fork()
if not child:
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM)
"""


def test_children_end_at_once():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_compare_shows_what_was_done_when_it_is_ended(tmp_path: Path):
    rng = np.random.default_rng(3)
    votes = tmp_path / "votes.csv"
    votes.write_text("\n".join(",".join(rng.permutation(list("abcdef"))) for _ in range(400)) + "\n")
    log = tmp_path / "progress.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "permix", "compare", str(votes), "--model", "kde", "--model", "dp-mallows"],
        env={**os.environ, "PERMIX_PROGRESS_FILE": str(log)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while process.poll() is None and "dp-mallows" not in (log.read_text() if log.exists() else ""):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "kde" in out
