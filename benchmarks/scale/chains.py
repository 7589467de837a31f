"""Chains of ``DPMallowsMixture`` over agents in shards: CPU seconds of an iteration, and bytes that travel.

``python -m benchmarks.scale.chains [AGENTS ...]`` makes top-10 lists of five groups over 20 items, in shards
of 50,000, each size in a process of its own, and prints CPU seconds of an iteration and of its parts, on one
thread, the bytes that an iteration sends to a worker and gets back from one, the largest memory (with the
data before they are divided, which are here), and how the time of an iteration grows with the agents.
"""

from __future__ import annotations

import json
import math
import pickle
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

SIZES = (100_000, 300_000, 1_000_000)
N_ITEMS, LENGTH, N_GROUPS, SHARD = 20, 10, 5, 50_000
N_BURN_IN, N_DRAWS = 10, 20


def measure(n_agents: int) -> dict[str, Any]:
    """Fit; return what iterations after burn-in took."""
    import permix
    from permix.data.shards.sharded import Sharded
    from permix.datasets import make_generalized_mallows_mixture
    from permix.dp_mallows.moves import Centers
    from permix.dp_mallows.sharded.moves import PlaceAll, ShardedSplitMerge
    from permix.dp_mallows.sharded.singles import Singles
    from permix.runtime.executors import Here

    spent: dict[str, list[float]] = {}
    travelled: list[int] = []

    def timed(step: Any, name: str) -> Any:
        def timed_step(self: Any, rng: Any, state: Any) -> Any:
            if name == "PlaceAll":
                travelled.append(0)
            began = time.process_time()
            found = step(self, rng, state)
            spent.setdefault(name, []).append(time.process_time() - began)
            return found

        return timed_step

    ask = Sharded.map

    def counted(self: Any, work: Any, shared: Any = None, reduce: Any = None) -> Any:
        found = ask(self, work, shared, reduce)
        if travelled:
            travelled[-1] += len(pickle.dumps(shared)) + len(pickle.dumps(found))
        return found

    made = make_generalized_mallows_mixture(
        n_agents, N_ITEMS, N_GROUPS, theta=0.6, lengths=(LENGTH, LENGTH), random_state=0
    )
    data = Sharded.of(made.data, max(1, n_agents // SHARD), Here(1))
    for move in (PlaceAll, ShardedSplitMerge, Singles, Centers):
        move.step = timed(move.step, move.__name__)  # type: ignore[method-assign]
    Sharded.map = counted  # type: ignore[method-assign]
    chosen = {"n_draws": N_DRAWS, "n_burn_in": N_BURN_IN, "n_chains": 1, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws do not suffice
        model = permix.DPMallowsMixture(**chosen, random_state=0, progress=False).fit(data)
    parts = {name: float(np.mean(values[-N_DRAWS:])) for name, values in spent.items()}
    drawn = model.posterior_["posterior"]["n_groups"].to_numpy()
    return {
        "agents": n_agents,
        "iteration": sum(parts.values()),
        "parts": parts,
        "bytes": float(np.mean(travelled[-N_DRAWS:])),
        "groups": [int(drawn.min()), int(drawn.max())],
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def main(words: list[str]) -> None:
    """Measure every size in a process of its own."""
    found = []
    for n_agents in [int(word) for word in words if word.isdecimal()] or SIZES:
        command = [sys.executable, "-m", "benchmarks.scale.chains", "--measure", str(n_agents)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(ran.stderr)
        row = json.loads(ran.stdout.splitlines()[-1])
        found.append(row)
        parts = ", ".join(f"{name} {seconds:.3f}" for name, seconds in row["parts"].items())
        print(
            f"{row['agents']:,} agents: an iteration {row['iteration']:.3f} CPU s ({parts}), "
            f"{row['bytes'] / 1e6:.2f} MB, {row['groups'][0]} to {row['groups'][1]} groups; "
            f"{row['gigabytes']:.2f} GB",
            flush=True,
        )
    if len(found) > 1:
        first, last = found[0], found[-1]
        growth = math.log(last["iteration"] / first["iteration"]) / math.log(last["agents"] / first["agents"])
        print(f"exponent of the CPU time of an iteration: {growth:.2f}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(int(sys.argv[-1]))))
    else:
        main(sys.argv[1:])
