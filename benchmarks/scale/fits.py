"""Data in shards: what a whole fit on two Dask workers costs more than in two threads.

``python -m benchmarks.scale.fits [AGENTS ...]`` reads top-10 lists over 500 items, 50,000 to a Parquet file,
and fits four groups to them: two starts, and six sweeps over all agents. Threads and workers take turns in
one run, after a fit of 100,000 lists by each, so that all is compiled or read from the cache. It prints CPU
seconds of all processes, wall time and page faults, twice (``--repeats 3``: three times), and whether both
found the same likelihood to the last bit.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scale.__main__ import write_lists

SIZES = (500_000, 1_000_000)
N_WARM, N_REPEATS, N_GROUPS, N_STARTS, N_SWEEPS = 100_000, 2, 4, 2, 6


class Used(NamedTuple):
    """What something took, in all processes."""

    cpu: float
    wall: float
    faults: int

    def since(self, earlier: Used) -> Used:
        """Return what was used since."""
        return Used(self.cpu - earlier.cpu, self.wall - earlier.wall, self.faults - earlier.faults)

    def __str__(self) -> str:
        return f"{self.cpu:.2f} CPU s ({self.wall:.1f} s, {self.faults:,} page faults)"


def used() -> Used:
    """Return what this process has used until now."""
    about = resource.getrusage(resource.RUSAGE_SELF)
    return Used(about.ru_utime + about.ru_stime, time.perf_counter(), about.ru_minflt)


def fitted(folder: str, client: Any, where: dict[str, Any]) -> tuple[Used, Used, float]:
    """Read and fit; return what each took, and the log-likelihood."""
    import permix

    def everywhere() -> Used:
        each = [used(), *client.run(used).values()]
        return Used(sum(one.cpu for one in each), each[0].wall, sum(one.faults for one in each))

    begun = everywhere()
    data = permix.read_sharded(folder, **where)
    read = everywhere()
    model = permix.MallowsMixture(N_GROUPS, n_init=N_STARTS, max_iter=N_SWEEPS, random_state=0).fit(data)
    ended = everywhere()
    return read.since(begun), ended.since(read), float(model.log_likelihood_)


def main(words: list[str]) -> None:
    """Measure every size."""
    from distributed import Client

    from permix.runtime.executors import Here

    repeats = N_REPEATS
    if "--repeats" in words:
        at = words.index("--repeats")
        repeats = int(words[at + 1])
        del words[at : at + 2]
    warnings.simplefilter("ignore")  # six sweeps do not converge
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        for n_agents in [N_WARM, *([int(word) for word in words] or SIZES)]:
            with tempfile.TemporaryDirectory() as folder:
                write_lists(Path(folder), n_agents)
                for repeat in range(1 if n_agents == N_WARM else repeats):
                    ways = {"threads": {"executor": Here(2)}, "Dask": {"client": client}}
                    found = {name: fitted(folder, client, where) for name, where in ways.items()}
                    for name, (read, fit, _) in found.items():
                        print(f"{n_agents:,} in {name}: read {read}, fit {fit}", flush=True)
                    cpu = [read.cpu + fit.cpu for read, fit, _ in found.values()]
                    same = len({likelihood for *_, likelihood in found.values()}) == 1
                    likelihoods = "the same likelihood" if same else "DIFFERENT LIKELIHOODS"
                    took = f"{cpu[0]:.2f} CPU s in threads and {cpu[1]:.2f} on Dask"
                    more = f"{100 * (cpu[1] / cpu[0] - 1):+.0f}%"
                    print(f"{n_agents:,}, {repeat + 1}: {took}, {more}, {likelihoods}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
