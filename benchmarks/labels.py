"""Memory of draws of labels: of so many rows, a thousand draws of two chains, with their summaries.

``python -m benchmarks.labels [ROWS] [DRAWS]`` runs chains whose every draw is a partition in five groups with
some noise, looks for the partition that stands for all draws, and for how sure each label is. It prints the
bytes of all labels drawn, how many draws are kept, and the largest memory of the process after each step.
"""

from __future__ import annotations

import resource
import sys
import warnings
from typing import Any, NamedTuple

import numpy as np

N_GROUPS, NOISE = 5, 0.05


class Info(NamedTuple):
    """What a step reports."""

    name: str = "draw"
    proposed: int = 1
    accepted: int = 1
    parts: tuple[Any, ...] = ()


class State:
    """Labels of rows, of which some are drawn anew in each draw."""

    def __init__(self, n: int) -> None:
        self.truth = (np.arange(n) * N_GROUPS // n).astype(np.int32)
        self.labels = self.truth

    def checkpoint(self) -> dict[str, Any]:
        return {"labels": self.labels}

    def restore(self, arrays: dict[str, Any]) -> None:
        self.labels = arrays["labels"]

    def record(self) -> dict[str, Any]:
        return {"labels": self.labels, "n_groups": N_GROUPS}

    def refresh(self) -> None:
        """Nothing is cached."""

    def progress(self) -> dict[str, float]:
        return {}


class Redraw:
    """Draw the labels of some rows."""

    exact = True

    def step(self, rng: np.random.Generator, state: State) -> Info:
        rows = rng.integers(len(state.truth), size=int(NOISE * len(state.truth)))
        state.labels = state.truth.copy()
        state.labels[rows] = rng.integers(N_GROUPS, size=len(rows))
        return Info()

    def checkpoint(self) -> dict[str, Any]:
        return {}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Nothing to restore."""


def gigabytes() -> float:
    """Return the largest memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(words: list[str]) -> None:
    """Run and print."""
    from permix.dp_mixture.parameters import DPMixtureParameters
    from permix.partitions import how_sure
    from permix.posterior.estimated import nearest_partition
    from permix.sampling import run_chains

    n, n_draws = (int(word) for word in (words + ["1000000", "1000"][len(words) :])[:2])
    print(f"{n:,} rows, {n_draws:,} draws of 2 chains: {2 * n * n_draws / 1e9:.2f} GB of labels of one byte")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        draws = run_chains(
            lambda rng: State(n),
            Redraw(),
            n_draws=n_draws,
            n_burn_in=0,
            n_thin=1,
            n_chains=2,
            random_state=0,
            fingerprint={},
        )
    labels = draws.arrays["labels"]
    print(f"chains: {labels.shape[1]} draws of each kept ({labels.dtype}); {gigabytes():.2f} GB", flush=True)
    for each in said:
        print(f"  warned: {each.message}")
    estimate = nearest_partition(draws, DPMixtureParameters())
    print(f"point estimate: {estimate.n_clusters} groups; {gigabytes():.2f} GB", flush=True)
    sure = how_sure(labels, estimate.labels)
    print(f"how sure: {sure.mean():.3f} on average; {gigabytes():.2f} GB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
