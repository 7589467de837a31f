"""Kill a program that runs chains into a store, again and again, at random moments."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from permix.files import read_archive


def iterations(store: Path) -> int:
    """Return the iteration from which the slowest chain would go on."""
    states = sorted(store.glob("chain-*/state.npz"))
    return min((read_archive(path)[0]["iteration"] for path in states), default=0)


def kill_and_resume(
    command: Sequence[str], store: Path, n_kills: int, rng: np.random.Generator, n_iterations: int
) -> list[int]:
    """Kill ``command`` (which must run chains into ``store``) ``n_kills`` times, then let it finish.

    A third of the kills falls into the start of the process, the others into the running chain,
    some of these near its end.

    Returns
    -------
    list of int
        The iteration the store had reached at each kill.
    """
    reached: list[int] = []
    attempts = 0
    while len(reached) < n_kills:
        attempts += 1
        assert attempts < 10 * n_kills, "the program ends before it can be killed"
        late = len(reached) >= 0.8 * n_kills
        early = not late and rng.random() < 0.4
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            if early:
                time.sleep(rng.uniform(0.0, 0.4))
            else:
                before = iterations(store)
                # Into the running chain: not before it got somewhere, and late kills near the end.
                threshold = rng.uniform(0.85, 0.95) * n_iterations if late else before + 1
                while process.poll() is None and iterations(store) < threshold:
                    time.sleep(0.02)
                time.sleep(rng.uniform(0.0, 0.08))
            finished = process.poll()
            process.kill()
            errors = process.communicate()[1].decode()
        finally:
            process.kill()
        if finished is None:
            reached.append(iterations(store))
        else:
            assert finished == 0, errors
    subprocess.run(command, check=True)
    return reached
