"""Data in shards: seconds of a sweep by the number of agents, memory, what travels, and what an engine costs.

``python -m benchmarks.scale [AGENTS ...]`` writes top-10 lists over 500 items, 50,000 to a Parquet file, and
takes E-steps of four groups over all agents, each size in a process of its own. It prints CPU and wall time
to read the files, of the first sweep, in which shards are made, and of a later one, the largest memory of a
process, the bytes that a sweep sends and gets back, and how the time of a sweep grows with the agents (1 = as
fast as they do). ``--few`` keeps
four shards in memory and reads the others in every sweep; ``--dask`` runs on two worker processes, whose CPU
seconds count; ``--both`` runs without and with Dask, and prints what it costs more.
``--sweeps 2`` takes fewer sweeps than four.
"""

from __future__ import annotations

import json
import math
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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


def used() -> tuple[float, float]:
    """CPU seconds of this process, and the gigabytes that it had at most."""
    about = resource.getrusage(resource.RUSAGE_SELF)
    return about.ru_utime + about.ru_stime, about.ru_maxrss / 1e6


def weighed(client: Any, sweep: Callable[[], Any]) -> tuple[int, int]:
    """Return how many bytes tasks of a sweep and their results have, pickled."""
    submit, sent, asked = client.submit, 0, []

    def weighing(*task: Any, **where: Any) -> Any:
        nonlocal sent
        sent += len(pickle.dumps(task))
        future = submit(*task, **where)
        future.add_done_callback(lambda done: asked.append(len(pickle.dumps(done.result()))))
        return future

    client.submit = weighing
    sweep()
    client.submit = submit
    return sent, sum(asked)


def measure(folder: str, on_dask: bool, few: bool, n_sweeps: int) -> dict[str, Any]:
    """Read and take sweeps; return what it took."""
    import permix
    from permix.distributions.conditioning.components import MallowsComponents
    from permix.mallows.rounds import sharded
    from permix.runtime.executors import Here
    from permix.runtime.threads import at_most

    client: Any = None
    if on_dask:
        from distributed import Client

        client = Client(n_workers=2, threads_per_worker=1, dashboard_address=None)

    def everywhere() -> list[tuple[float, float]]:
        return [used(), *(client.run(used).values() if on_dask else ())]

    def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
        before, began = sum(cpu for cpu, _ in everywhere()), time.perf_counter()
        found = work()
        wall = time.perf_counter() - began
        return sum(cpu for cpu, _ in everywhere()) - before, wall, found

    where = {"client": client} if on_dask else {"executor": Here(2, most_held=4 if few else None)}
    *read, data = timed(lambda: permix.read_sharded(folder, **where))
    rng = np.random.default_rng(0)
    centers = np.stack([rng.permutation(data.n_items) for _ in range(N_GROUPS)]).astype(np.int32)
    components = MallowsComponents(data.items, np.full(N_GROUPS, 0.25), centers, np.full(N_GROUPS, 0.02))
    rounds = sharded.ShardedRounds(data, N_GROUPS, 7.0)
    with at_most(None):  # as within fits
        sweeps = [timed(lambda: rounds.e_step(components, None, True)) for _ in range(n_sweeps)]
    later = sorted(sweep[:2] for sweep in sweeps[1:])[(len(sweeps) - 1) // 2]
    sent = gotten = 0  # nothing travels within a process
    if on_dask:
        sent, gotten = weighed(client, lambda: rounds.e_step(components, None, True))
    memory = max(gigabytes for _, gigabytes in everywhere())
    if client is not None:
        client.close()
    return {
        "agents": data.n_agents,
        "items": data.n_items,
        "read": read,
        "first": sweeps[0][:2],
        "sweep": later,
        "gigabytes": memory,
        "sent": sent,
        "gotten": gotten,
        "per_agent": sweeps[0][2][0] / data.n_agents,
    }


def main(words: list[str]) -> None:
    """Measure every size in a process of its own."""
    options = words[next((at for at, word in enumerate(words) if word.startswith("--")), len(words)) :]
    sizes = [int(word) for word in words[: len(words) - len(options)]] or list(SIZES)
    ways = [[*options], [*options, "--dask"]] if "--both" in options else [options]
    found = []
    for n_agents in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_lists(Path(folder), n_agents)
            rows = [measured(folder, way) for way in ways]
        found.append(rows[0])
        if len(rows) == 2:
            for what, name in (("reading", "read"), ("the first sweep", "first"), ("a later one", "sweep")):
                more = [100 * (rows[1][name][at] / rows[0][name][at] - 1) for at in (0, 1)]
                print(f"Dask: {what} takes {more[0]:+.0f}% CPU and {more[1]:+.0f}% wall time", flush=True)
    if len(found) > 1:
        first, last = found[0], found[-1]
        growth = math.log(last["sweep"][0] / first["sweep"][0]) / math.log(last["agents"] / first["agents"])
        print(f"exponent of the time of a sweep (CPU): {growth:.2f}")


def measured(folder: str, options: list[str]) -> dict[str, Any]:
    """Measure in a process of its own, and print it."""
    command = [sys.executable, "-m", "benchmarks.scale", "--measure", folder, *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    row: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    each = {
        what: f"{row[name][0]:.2f} CPU s ({row[name][1]:.2f} s)"
        for what, name in (("read", "read"), ("first sweep", "first"), ("a later one", "sweep"))
    }
    print(
        f"{row['agents']:,} agents over {row['items']} items{' on Dask' * ('--dask' in options)}: "
        f"{', '.join(f'{what} {took}' for what, took in each.items())}; "
        f"{row['gigabytes']:.2f} GB; {row['sent'] / 1e6:.3f} MB sent and {row['gotten'] / 1e6:.3f} MB "
        f"gotten back a sweep; {row['per_agent']:.4f} per agent",
        flush=True,
    )
    return row


if __name__ == "__main__":
    if "--measure" in sys.argv:
        given = sys.argv
        n_sweeps = int(given[given.index("--sweeps") + 1]) if "--sweeps" in given else 4
        place = given[given.index("--measure") + 1]
        print(json.dumps(measure(place, "--dask" in given, "--few" in given, n_sweeps)))
    else:
        main(sys.argv[1:])
