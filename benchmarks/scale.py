"""Data in shards: CPU seconds of a sweep by the number of agents, memory, and what an engine costs.

``python -m benchmarks.scale [AGENTS ...]`` writes top-10 lists over 500 items, 50,000 to a Parquet file, fits
four groups to them, each size in a process of its own, and prints CPU seconds to read, CPU seconds of a sweep
over all agents, the largest memory, and how the time of a sweep grows with the agents (1 = as fast as they
do). ``--few`` keeps four shards in memory and reads the others in every sweep; ``--dask`` runs on two worker
processes, whose CPU seconds are not counted.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (100_000, 300_000, 1_000_000)
N_ITEMS, LENGTH, N_GROUPS, SHARD = 500, 10, 4, 50_000


def write_lists(folder: Path, n_agents: int) -> None:
    """Write lists of four groups, each with an order of its own and Gumbel noise, a file for each shard."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    worth = -0.05 * np.stack([rng.permutation(N_ITEMS) for _ in range(N_GROUPS)])
    names = pa.array([f"item {number:03d}" for number in range(N_ITEMS)])
    for part, first in enumerate(range(0, n_agents, SHARD)):
        n = min(SHARD, n_agents - first)
        noisy = worth[rng.integers(N_GROUPS, size=n)] + rng.gumbel(size=(n, N_ITEMS))
        best = np.argpartition(-noisy, LENGTH, axis=1)[:, :LENGTH]
        order = np.take_along_axis(best, np.argsort(-np.take_along_axis(noisy, best, 1), axis=1), 1)
        columns = {f"rank{rank + 1}": names.take(pa.array(order[:, rank])) for rank in range(LENGTH)}
        pq.write_table(pa.table(columns), folder / f"part-{part:04d}.parquet")


def cpu() -> float:
    """CPU seconds of this process and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure(folder: str, on_dask: bool, few: bool) -> dict[str, Any]:
    """Read and fit; return what it took."""
    import permix
    from permix.mallows.rounds.sharded import ShardedRounds
    from permix.runtime.executors import Here

    sweeps: list[tuple[float, float]] = []
    step = ShardedRounds.e_step

    def timed(self: Any, *arguments: Any) -> Any:
        began = cpu(), time.perf_counter()
        found = step(self, *arguments)
        sweeps.append((cpu() - began[0], time.perf_counter() - began[1]))
        return found

    ShardedRounds.e_step = timed  # type: ignore[method-assign]
    client: Any = None
    if on_dask:
        from distributed import Client

        client = Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
    began = cpu(), time.perf_counter()
    where = {"client": client} if on_dask else {"executor": Here(most_held=4 if few else None)}
    data = permix.read_sharded(folder, **where)
    read = cpu() - began[0], time.perf_counter() - began[1]
    model = permix.MallowsMixture(N_GROUPS, n_init=2, random_state=0, progress=False).fit(data)
    if client is not None:
        client.close()
    middle = sorted(sweeps)[len(sweeps) // 2]
    return {
        "agents": data.n_agents,
        "read": read,
        "sweep": middle,
        "sweeps": len(sweeps),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "per_agent": float(model.log_likelihood_) / data.n_agents,
    }


def main(words: list[str]) -> None:
    """Measure every size in a process of its own."""
    sizes = [int(word) for word in words if word.isdecimal()] or list(SIZES)
    options = [word for word in words if word.startswith("--")]
    found = []
    for n_agents in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_lists(Path(folder), n_agents)
            command = [sys.executable, "-m", "benchmarks.scale", "--measure", folder, *options]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(ran.stderr)
        row = json.loads(ran.stdout.splitlines()[-1])
        found.append(row)
        print(
            f"{row['agents']:,} agents: read {row['read'][0]:.1f} CPU s ({row['read'][1]:.1f} s wall), a "
            f"sweep "
            f"{row['sweep'][0]:.2f} CPU s ({row['sweep'][1]:.2f} s wall), {row['sweeps']} sweeps; "
            f"{row['gigabytes']:.2f} GB; {row['per_agent']:.4f} per agent",
            flush=True,
        )
    if len(found) > 1:
        first, last = found[0], found[-1]
        growth = math.log(last["sweep"][1] / first["sweep"][1]) / math.log(last["agents"] / first["agents"])
        print(f"exponent of the time of a sweep (wall): {growth:.2f}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        at = sys.argv.index("--measure") + 1
        print(json.dumps(measure(sys.argv[at], "--dask" in sys.argv, "--few" in sys.argv)))
    else:
        main(sys.argv[1:])
