"""Ctrl-C: a real signal to a real process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from permix.files import read_archive
from tests.sampling.toy import run, same

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")

FOLDER = Path(__file__).parent
# Prints a line when all chains are under way, and how it ended.
PROGRAM = """
import sys, threading, time, warnings
sys.path.insert(0, {folder!r})
import toy

there = threading.Barrier({n_chains}, action=lambda: print("running", flush=True))

class Told(toy.Walk):
    def step(self, rng, state):
        if state.n_clusters == {told_at}:
            there.wait()
        return super().step(rng, state)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        draws = toy.run({store!r}, {n_draws}, move=Told({seconds}), n_burn_in={n_burn_in}, n_jobs={n_chains})
    except KeyboardInterrupt:
        running = [thread for thread in threading.enumerate() if thread.name.startswith("permix-worker")]
        print("KeyboardInterrupt", "at once" if running else "at the end", flush=True)
    else:
        shapes = {{array.shape[:2] for array in draws.arrays.values()}}
        print("returned", draws.n_draws, draws.interrupted, shapes, flush=True)
for warning in caught:
    print(warning.category.__name__, warning.message, flush=True)
"""


def start(store: Path | None, **changes: object) -> subprocess.Popen[str]:
    settings = {"n_draws": 10**7, "seconds": 0.001, "n_burn_in": 20, "told_at": 60, "n_chains": 2, **changes}
    code = PROGRAM.format(folder=str(FOLDER), store=store and str(store), **settings)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    return process


def finish(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=60)[0]
    finally:
        process.kill()


@pytest.mark.parametrize("with_store", [False, True])
def test_what_was_drawn_is_returned(tmp_path: Path, with_store: bool) -> None:
    store = tmp_path / "store" if with_store else None
    process = start(store)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = finish(process)
    n_kept = int(output.split()[1])
    assert output.startswith(f"returned {n_kept} True {{(2, {n_kept})}}")
    assert n_kept >= 1
    assert f": {n_kept} draws kept per chain" in output
    assert "PermixWarning interrupted after" in output
    assert f"store={str(store)!r} continues" in output if with_store else "with store=..." in output
    if with_store:
        held = [read_archive(path)[0]["n_draws"] for path in store.glob("chain-*/state.npz")]
        assert min(held) == n_kept, "all draws must be on disk"
        assert same(run(store, n_kept + 40), run(n_draws=n_kept + 40))


def test_nothing_kept_raises_after_a_checkpoint(tmp_path: Path) -> None:
    process = start(tmp_path / "store", n_burn_in=10**7, told_at=200)
    process.send_signal(signal.SIGINT)
    assert finish(process) == "KeyboardInterrupt at the end\n"
    states = list((tmp_path / "store").glob("chain-*/state.npz"))
    assert len(states) == 2
    assert all(read_archive(path)[0]["iteration"] >= 96 for path in states)


def test_second_interrupt_raises_at_once() -> None:
    # A step takes a minute, so the chains cannot have ended by themselves.
    process = start(None, seconds=60.0, told_at=3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "KeyboardInterrupt at once\n"
    process.kill()
    process.communicate()
