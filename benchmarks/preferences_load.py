"""Loading and validating comparisons: a million agents, ten comparisons each, a thousand items.

Each measurement runs in a process of its own, so that its peak memory is its own. The reference is the
straightforward Python version (dicts per agent, depth-first search for cycles) on one agent in a hundred;
times are compared per row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

N_AGENTS, N_COMPARISONS, N_ITEMS = 1_000_000, 10, 1000


def make_comparisons(n_agents: int, seed: int = 1) -> np.ndarray:
    """Rows (agent, better, worse), consistent for each agent, in random order."""
    rng = np.random.default_rng(seed)
    size = n_agents * N_COMPARISONS
    table = np.empty((size, 3), dtype=np.int32)
    table[:, 0] = rng.permutation(np.repeat(np.arange(n_agents, dtype=np.int32), N_COMPARISONS))
    table[:, 1] = rng.integers(0, N_ITEMS - 1, size=size)
    table[:, 2] = rng.integers(1, N_ITEMS, size=size)
    # One order for everyone makes the comparisons consistent without the loader knowing.
    low, high = np.minimum(table[:, 1], table[:, 2]), np.maximum(table[:, 1], table[:, 2])
    table[:, 1], table[:, 2] = low, high + (low == high)
    names = rng.permutation(N_ITEMS).astype(np.int32)
    table[:, 1:] = names[table[:, 1:]]
    return table


def load_naively(table: np.ndarray) -> bool:
    """Plain Python: comparisons into dicts of sets, one depth-first search per agent."""
    above: dict[int, dict[int, set[int]]] = {}
    for agent, better, worse in table.tolist():
        above.setdefault(agent, {}).setdefault(better, set()).add(worse)
    for edges in above.values():
        state: dict[int, int] = {}
        for origin in edges:
            if origin in state:
                continue
            state[origin] = 1
            stack = [(origin, iter(edges[origin]))]
            while stack:
                node, targets = stack[-1]
                for target in targets:
                    if state.get(target) == 1:
                        return False
                    if target not in state:
                        state[target] = 1
                        stack.append((target, iter(edges.get(target, ()))))
                        break
                else:
                    state[node] = 2
                    stack.pop()
    return True


def load_ratings_naively(table: np.ndarray) -> dict[int, list[list[int]]]:
    """Plain Python: ratings into dicts, one sort per agent."""
    rated: dict[int, dict[int, int]] = {}
    for agent, item, rating in table.tolist():
        mine = rated.setdefault(agent, {})
        assert item not in mine
        mine[item] = rating
    result = {}
    for agent, mine in rated.items():
        groups: dict[int, list[int]] = {}
        for item, rating in mine.items():
            groups.setdefault(rating, []).append(item)
        result[agent] = [sorted(groups[rating]) for rating in sorted(groups, reverse=True)]
    return result


def make_ratings(n_agents: int) -> np.ndarray:
    """Rows (agent, item, rating from 0 to 4), no item rated twice, in random order."""
    table = make_comparisons(n_agents)
    keep = np.unique(table[:, 0].astype(np.int64) * N_ITEMS + table[:, 1], return_index=True)[1]
    ratings = table[np.sort(keep)]
    ratings[:, 2] %= 5
    return ratings


def peak_megabytes() -> float:
    """Most memory this process has held so far.

    What getrusage tells on Linux includes the peak of the process that started this one.
    """
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def measure(what: str) -> dict[str, float]:
    """Run one measurement in this process."""
    kind, _, naive = what.partition("-")
    table = (make_comparisons if kind == "pairs" else make_ratings)(N_AGENTS // 100 if naive else N_AGENTS)
    if naive:
        start = time.perf_counter()
        assert (load_naively if kind == "pairs" else load_ratings_naively)(table)
        return {"seconds": time.perf_counter() - start, "rows": len(table)}
    from permix import Preferences

    Preferences.from_pairs(make_comparisons(10))  # compilation is not what is measured here
    start = time.perf_counter()
    if kind == "pairs":
        loaded = Preferences.from_pairs(table)
    else:
        loaded = Preferences.from_ratings(table, layout="long")
    seconds = time.perf_counter() - start
    assert loaded.n_statements == len(table)
    return {
        "seconds": seconds,
        "rows": len(table),
        "peak_mb": peak_megabytes(),
        "input_mb": table.nbytes / 1e6,
    }


def _in_own_process(what: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.preferences_load", what],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def run() -> list[dict[str, object]]:
    """Rows for the table of benchmarks."""
    rows: list[dict[str, object]] = []
    for kind in ("pairs", "ratings"):
        naive, ours = _in_own_process(f"{kind}-naive"), _in_own_process(kind)
        reference = naive["seconds"] / naive["rows"] * ours["rows"]
        rows.append(
            {
                "what": f"Preferences.from_{kind}, {N_AGENTS:,} agents, {ours['rows']:,.0f} rows, shuffled",
                "ours": f"{ours['seconds']:.2f} s",
                "reference": f"{reference:.1f} s (plain Python, from a 1 % sample)",
                "ratio": reference / ours["seconds"],
                "note": f"peak memory of the whole process {ours['peak_mb']:.0f} MB, of which "
                f"{ours['input_mb']:.0f} MB are the caller's array; goal: under 1000 MB",
            }
        )
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        for row in run():
            print(row)
