"""Data in shards: CPU seconds and bytes of a sweep of angle-based mixtures and of co-clustering.

``python -m benchmarks.scale.groups [--angle | --cocluster] [ROWS ...]`` makes shards of 50,000 rows where
they are worked on: full rankings of ten items in three groups, or rows of 30 columns, half of them filled
with one of five levels, in four groups. Each size runs in a process of its own, in one thread, and prints CPU
seconds of a pass over all rankings, or of an iteration over all rows, what a shard is sent and answers in it,
pickled, the largest memory, and how the time grows with the rows (1 = as fast as they do).
"""

from __future__ import annotations

import json
import math
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIZES = (100_000, 300_000, 1_000_000)
SHARD = 50_000
N_ITEMS, N_RANKING_GROUPS = 10, 3
N_COLUMNS, N_LEVELS, N_ROW_GROUPS, N_COLUMN_GROUPS, FILLED = 30, 5, 4, 3, 0.5
ITERATIONS = 6


class MadeRankings(NamedTuple):
    """Rankings of a shard, by Gumbel noise around the order of a group."""

    part: int
    n: int

    def __call__(self) -> Any:
        """Make them."""
        import permix

        rng = np.random.default_rng([1, self.part])
        worth = -0.5 * np.stack(
            [np.random.default_rng(g).permutation(N_ITEMS) for g in range(N_RANKING_GROUPS)]
        )
        noisy = worth[rng.integers(N_RANKING_GROUPS, size=self.n)] + rng.gumbel(size=(self.n, N_ITEMS))
        names = [f"item {number}" for number in range(N_ITEMS)]
        return permix.Rankings.from_orders(np.argsort(-noisy, axis=1).astype(np.int32), items=names)


class MadeCells(NamedTuple):
    """Rows of a shard."""

    part: int
    n: int

    def __call__(self) -> Any:
        """Make them."""
        import permix

        known = np.random.default_rng(2)
        shares = known.dirichlet(np.full(N_LEVELS, 0.7), (N_ROW_GROUPS, N_COLUMN_GROUPS))
        upto = np.cumsum(shares[:, np.arange(N_COLUMNS) % N_COLUMN_GROUPS], axis=2)
        rng = np.random.default_rng([3, self.part])
        rows = rng.integers(N_ROW_GROUPS, size=self.n)
        levels = 1.0 + (rng.random((self.n, N_COLUMNS, 1)) > upto[rows]).sum(axis=2)
        at, column = np.nonzero(rng.random(levels.shape) < FILLED)
        return permix.Cells(at, column, levels[at, column], levels.shape, new_rows=True)


class Weighed:
    """An executor of this process, in one thread, that weighs what would travel to and from one shard."""

    def __init__(self) -> None:
        from permix.runtime.executors import Here

        self.here, self.bytes, self.seconds, self.calls = Here(1), 0, 0.0, 0

    def map_shards(
        self, work: Callable[..., Any], shards: Any, shared: Any = None, reduce: Any = None
    ) -> Any:
        """Do the work."""
        began = time.process_time()
        found = self.here.map_shards(work, shards, shared, reduce)
        self.seconds += time.process_time() - began
        if shared is not None and reduce is not None:
            self.calls += 1
            self.bytes += len(pickle.dumps(shared)) + len(pickle.dumps(found))
        return found

    def forget(self, shards: Any) -> None:
        """Let go of shards."""
        self.here.forget(shards)

    def begin(self) -> None:
        """Count from nothing."""
        self.bytes, self.seconds, self.calls = 0, 0.0, 0


def sources(n_rows: int, made: Any) -> list[Any]:
    """Return what makes the shards."""
    sizes = [min(SHARD, n_rows - first) for first in range(0, n_rows, SHARD)]
    return [(f"shard {part}", made(part, n)) for part, n in enumerate(sizes)]


def measure_angle(n_rows: int) -> dict[str, float]:
    """Time passes over rankings, as climbs make them."""
    from permix.angle.passes.sharded import ShardedRankings
    from permix.data.shards.sharded import Sharded

    executor = Weighed()
    rows = ShardedRankings(Sharded(sources(n_rows, MadeRankings), executor), 1)
    tilts = np.random.default_rng(4).normal(size=(N_RANKING_GROUPS, N_ITEMS))
    tilts -= tilts.mean(axis=1, keepdims=True)
    log_weights = np.full(N_RANKING_GROUPS, -math.log(N_RANKING_GROUPS))
    rows.uphill(tilts, log_weights, "exact")
    executor.begin()
    began = time.process_time()
    for turn in range(ITERATIONS):
        rows.uphill(tilts * (1.0 + 0.01 * turn), log_weights, "exact")
    return taken(executor, time.process_time() - began, n_rows)


def measure_cocluster(n_rows: int) -> dict[str, float]:
    """Time iterations over rows, from a start by 2,000 of them."""
    from permix.cocluster.cells.encoded_matrix import encode_matrix
    from permix.cocluster.parameters import CoClusterParameters
    from permix.cocluster.sharded.fit import MOST_ROWS, _resolved, begun, model_of
    from permix.cocluster.sharded.moves import sharded_moves
    from permix.data.shards.matrices import ShardedCells
    from permix.moves.sharded.rows import sample
    from permix.runtime.seeds import stream_key

    executor = Weighed()
    data = ShardedCells(sources(n_rows, MadeCells), executor)
    settings = CoClusterParameters(family="categorical")
    family, key = _resolved(data, settings), stream_key(0)
    cells, record = sample(data, MOST_ROWS, key)
    matrix = encode_matrix(family, cells.rows, cells.columns, cells.values, cells.shape)
    model = model_of(data, family, settings.with_family(family), record)
    rng, move = np.random.default_rng(5), sharded_moves()
    state = begun(rng, model, matrix)
    move.step(rng, state)
    executor.begin()
    began = time.process_time()
    for _ in range(ITERATIONS):
        move.step(rng, state)
    return taken(executor, time.process_time() - began, n_rows) | {"groups": len(state.seen.sizes)}


def taken(executor: Weighed, seconds: float, n_rows: int) -> dict[str, float]:
    """Return what an iteration takes."""
    return {
        "rows": n_rows,
        "seconds": seconds / ITERATIONS,
        "client": (seconds - executor.seconds) / ITERATIONS,
        "bytes": executor.bytes / ITERATIONS,
        "trips": executor.calls / ITERATIONS,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def main(words: list[str]) -> None:
    """Measure every size in a process of its own."""
    sizes = [int(word) for word in words if word.isdecimal()] or list(SIZES)
    for model in [word for word in words if word.startswith("--")] or ["--angle", "--cocluster"]:
        found = []
        for n_rows in sizes:
            command = [sys.executable, "-m", "benchmarks.scale.groups", "--measure", model, str(n_rows)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise SystemExit(ran.stderr)
            row = json.loads(ran.stdout.splitlines()[-1])
            found.append(row)
            print(
                f"{model[2:]}, {row['rows']:,} rows: a sweep {row['seconds']:.3f} CPU s, of which the client "
                f"{row['client']:.3f}; {row['trips']:.1f} times there and back with "
                f"{row['bytes']:,.0f} bytes a shard; {row['gigabytes']:.2f} GB",
                flush=True,
            )
        if len(found) > 1:
            first, last = found[0], found[-1]
            growth = math.log(last["seconds"] / first["seconds"]) / math.log(last["rows"] / first["rows"])
            print(f"exponent of the CPU time of a sweep: {growth:.2f}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        at = sys.argv.index("--measure")
        measure = measure_angle if sys.argv[at + 1] == "--angle" else measure_cocluster
        print(json.dumps(measure(int(sys.argv[at + 2]))))
    else:
        main(sys.argv[1:])
