"""A small chain that punishes every mistake of a resume; also a program, for the tests that kill it.

Its cached sums drift with every float update and steer the next steps, so a resumed chain that
differs in the last bit soon goes another way. Labels grow past 255 clusters.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np

from permix.sampling import run_chains

SETTINGS = {"n_burn_in": 20, "n_thin": 3, "n_chains": 2}


class Info(NamedTuple):
    name: str
    proposed: int
    accepted: int
    parts: tuple[Info, ...] = ()


class ToyState:
    def __init__(self, rng: np.random.Generator) -> None:
        self.x = rng.normal(size=12) * 10.0 ** rng.integers(-3, 4, size=12)
        self.labels = rng.integers(0, 3, size=12)
        self.n_clusters = 3
        self.refresh()

    def refresh(self) -> None:
        self.total = float(np.sum(self.x))

    def record(self) -> dict[str, float | int | np.ndarray]:
        return {"total": self.total, "n_groups": self.n_clusters, "labels": self.labels}

    def checkpoint(self) -> dict[str, np.ndarray]:
        # Live arrays on purpose: the chain must copy what it keeps.
        return {"x": self.x, "labels": self.labels, "n_groups": np.array(self.n_clusters)}

    def restore(self, arrays) -> None:
        self.x[:] = arrays["x"]
        self.labels[:] = arrays["labels"]
        self.n_clusters = int(arrays["n_groups"])
        self.refresh()

    def progress(self) -> dict[str, float]:
        return {"clusters": self.n_clusters, "log joint": self.total}


class NeverRefreshed(ToyState):
    """The broken twin: an undisturbed chain keeps its drift, a resumed one loses it."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.total = float(np.sum(self.x))

    def refresh(self) -> None:
        if not hasattr(self, "total"):
            super().refresh()

    def restore(self, arrays) -> None:
        super().restore(arrays)
        self.total = float(np.sum(self.x))


class Walk:
    """Moves one number, accepts by the drifting sum, and tunes its own step width."""

    exact = True

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.width = 1.0

    def checkpoint(self) -> dict[str, np.ndarray]:
        return {"width": np.array(self.width)}

    def restore(self, arrays) -> None:
        self.width = float(arrays["width"])

    def step(self, rng: np.random.Generator, state: ToyState) -> Info:
        if self.seconds:
            time.sleep(self.seconds)
        i = rng.integers(len(state.x))
        change = rng.normal() * self.width
        # The fraction of a large multiple shows a difference in the last bits at once.
        accepted = bool((abs(state.total) * 1e9 + rng.random()) % 1.0 > 0.3)
        if accepted:
            state.x[i] += change
            state.total += change
        self.width = min(self.width * (1.01 if accepted else 0.98), 10.0)
        state.n_clusters = min(state.n_clusters + 1, 400)
        state.labels[i] = rng.integers(state.n_clusters)
        walk = Info("walk", 1, int(accepted))
        return Info("both", 2, 1 + walk.accepted, (walk, Info("label", 1, 1)))


class Climb(Walk):
    exact = False


def run(store=None, n_draws=100, seconds=0.0, **changes):
    arguments = {"fingerprint": {"model": "toy"}, "random_state": 7, "progress": False, **SETTINGS, **changes}
    make_state = arguments.pop("make_state", ToyState)
    move = arguments.pop("move", None) or Walk(seconds)
    return run_chains(make_state, move, n_draws=n_draws, store=store, **arguments)


def same(a, b) -> bool:
    """Whether two runs kept the same bytes."""
    return list(a.arrays) == list(b.arrays) and all(
        a.arrays[name].dtype == b.arrays[name].dtype and a.arrays[name].tobytes() == b.arrays[name].tobytes()
        for name in a.arrays
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--n-draws", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.0)
    arguments = parser.parse_args()
    run(arguments.store, arguments.n_draws, arguments.seconds, checkpoint_seconds=0)


if __name__ == "__main__":
    main()
