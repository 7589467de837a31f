"""Whole default jobs in fresh processes, all compiled: CPU and wall time beside the goal and peers.

``python -m benchmarks.answers [WORD ...]`` runs the jobs whose names have one of the words. The time is that
of the fit, without imports; the note has the whole process. Goals are wall seconds on two idle cores, so both
are printed: on a busy machine wall time says little, and CPU time of two threads may be twice the goal. Sushi
rankings and the Irish elections need the folder that PERMIX_DATA names, and are left out without it; the
other ballots are made, of the size of real elections.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Job(NamedTuple):
    """One job: what it calls, in how many wall seconds it should be done, and what others take."""

    goal: float
    run: Callable[[], str]  # returns a note
    reference: Callable[[], str] | None = None
    needs: str = ""  # what must be there under PERMIX_DATA

    @property
    def missing(self) -> str:
        """What is not there of what the job needs; empty where nothing is."""
        if not self.needs:
            return ""
        folder = os.environ.get("PERMIX_DATA")
        if not folder:
            return "PERMIX_DATA is not set"
        return "" if (Path(folder) / self.needs).exists() else f"there is no {Path(folder) / self.needs}"


def mallows(n_components: int) -> Callable[[], str]:
    def run() -> str:
        from permix import MallowsMixture
        from permix.datasets import load_sushi

        rankings = load_sushi("a").data
        model, seconds = timed(lambda: MallowsMixture(n_components, random_state=0).fit(rankings))
        return seconds + f"{model.log_likelihood_ / len(rankings):.4f} per ranking"

    return run


def numpy_em() -> str:
    """Plain NumPy, EM for six Mallows components from ten starts."""
    from benchmarks.mallows_em import plain_em
    from permix.datasets import load_sushi

    orders = load_sushi("a").data.orders
    best, seconds = timed(lambda: plain_em(orders, 6))
    return seconds + f"{best / len(orders):.4f} per ranking"


def ballots(n: int, n_items: int, seed: int = 1) -> Any:
    """Lists as voters make them: six groups, lengths from 1 to all, most of them short."""
    from permix.data import Rankings
    from permix.datasets import make_mallows_mixture

    rng = np.random.default_rng(seed)
    orders = np.array(make_mallows_mixture(n, n_items, 6, dispersion=0.6, random_state=seed).data.orders)
    lengths = np.minimum(n_items, 1 + rng.geometric(0.25, n))
    orders[np.arange(n_items) >= lengths[:, None]] = -1
    return Rankings.from_orders(orders, items=range(n_items))


def dp_mallows(n: int) -> Callable[[], str]:
    def run() -> str:
        from permix import DPMallowsMixture

        data = ballots(n, 14)
        n_distinct = len(np.unique(data.orders, axis=0))
        model, seconds = timed(lambda: DPMallowsMixture(random_state=0).fit(data))
        return seconds + f"{n_distinct:,} distinct, {model.n_clusters_} groups"

    return run


def election(file: str) -> Callable[[], str]:
    def run() -> str:
        import permix

        data = permix.read(Path(os.environ["PERMIX_DATA"]) / file)
        model, seconds = timed(lambda: permix.DPMallowsMixture(random_state=0).fit(data))
        return seconds + f"{data.n_agents:,} ballots, {model.n_clusters_} groups"

    return run


def points() -> np.ndarray:
    """2000 points in 5 columns from four groups that overlap."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(center, 1.0, (500, 5)) for center in rng.normal(0, 1.0, (4, 5))])


def dp_mixture_points() -> str:
    from permix import DPMixture

    model, seconds = timed(lambda: DPMixture(n_draws=200, n_burn_in=100, random_state=0).fit(points()))
    return seconds + f"{model.n_clusters_} groups"


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Scikit-learn's digits, without pixels that are always the same, and which digit each is."""
    from sklearn.datasets import load_digits

    table, digit = load_digits(return_X_y=True)
    return table[:, table.std(axis=0) > 0], digit


def dp_mixture_digits() -> str:
    from sklearn.metrics import adjusted_rand_score

    from permix import DPMixture

    table, digit = digits()
    model, seconds = timed(lambda: DPMixture(random_state=0).fit(table))
    return seconds + f"{model.n_clusters_} groups, Rand {adjusted_rand_score(digit, model.labels_):.2f}"


def sklearn_mixture(table: str) -> Callable[[], str]:
    def run() -> str:
        from sklearn.mixture import BayesianGaussianMixture

        data = points() if table == "points" else digits()[0]
        model = BayesianGaussianMixture(n_components=20, reg_covar=1e-3, max_iter=500, random_state=0)
        _, seconds = timed(lambda: model.fit(data))
        return seconds + f"{len(np.unique(model.predict(data)))} groups, one variational optimum"

    return run


def point_estimates(n: int, n_draws: int) -> Callable[[], str]:
    def run() -> str:
        from benchmarks.point_estimate import draws_around_a_partition
        from permix.partitions import point_estimate

        _, draws = draws_around_a_partition(n, n_draws, 20, 1.0, 2)
        found, seconds = timed(lambda: point_estimate(draws, random_state=1))
        return seconds + f"expected loss {found.expected_loss:.4f}, best draw {found.best_draw_loss:.4f}"

    return run


def angle() -> str:
    from permix import AngleMixture

    model, seconds = timed(lambda: AngleMixture(12, random_state=0).fit(ballots(5_767, 14)))
    return seconds + f"{model.log_likelihood_ / 5_767:.4f} per ballot"


def selection() -> str:
    from permix import select_components
    from permix.datasets import load_sushi

    rankings = load_sushi("a").data
    found, seconds = timed(lambda: select_components(rankings, range(1, 9), model="mallows", random_state=0))
    return seconds + f"{found.chosen} groups"


SUSHI = "sushi"
DUBLIN_NORTH, DUBLIN_WEST = "preflib/00001-00000001.soi.gz", "preflib/00001-00000002.soi.gz"
# The goals of 20 groups, of the choice of a number and of the 2,000 points are our own.
JOBS = {
    "MallowsMixture(6), 5,000 sushi rankings": Job(0.5, mallows(6), numpy_em, needs=SUSHI),
    "MallowsMixture(20), 5,000 sushi rankings": Job(5.0, mallows(20), needs=SUSHI),
    "select_components 1 to 8, sushi": Job(10.0, selection, needs=SUSHI),
    "DPMallowsMixture(), 5,767 ballots x 14": Job(15.0, dp_mallows(5_767)),
    "DPMallowsMixture(), 64,081 ballots x 14": Job(60.0, dp_mallows(64_081)),
    "DPMallowsMixture(), Dublin North": Job(60.0, election(DUBLIN_NORTH), needs=DUBLIN_NORTH),
    "DPMallowsMixture(), Dublin West": Job(60.0, election(DUBLIN_WEST), needs=DUBLIN_WEST),
    "DPMixture(), 2,000 x 5 overlapping, 300 iterations": Job(
        3.0, dp_mixture_points, sklearn_mixture("points")
    ),
    "DPMixture(), digits": Job(40.0, dp_mixture_digits, sklearn_mixture("digits")),
    "point estimate, 10,000 x 1,000 draws": Job(3.0, point_estimates(10_000, 1_000)),
    "point estimate, 64,000 x 2,000 draws": Job(15.0, point_estimates(64_000, 2_000)),
    "AngleMixture(12), 5,767 ballots x 14": Job(20.0, angle),
}


def timed(function: Callable[[], Any]) -> tuple[Any, str]:
    """Return a value, and what it took as the beginning of a note: CPU seconds, wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    value = function()
    return value, f"{time.process_time() - cpu} {time.perf_counter() - wall} "


def measured(name: str, which: str) -> tuple[float, float, str]:
    """Run a job in a process of its own; return CPU seconds and wall seconds of the job, and a note."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.answers", "--job", name, which],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{name} ({which}) failed with status {done.returncode}:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, wall, said = json.loads(done.stdout.splitlines()[-1]).split(" ", 2)
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(cpu), float(wall), f"{said}; process {whole:.1f} CPU s"


def run(words: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """Run the jobs, all or those whose names have one of the words, after compiling what they need."""
    subprocess.run([sys.executable, "-m", "permix", "warm-up"], check=True, capture_output=True)
    rows: list[dict[str, object]] = []
    for name, job in JOBS.items():
        if words and not any(word in name for word in words):
            continue
        if job.missing:
            print(f"{name}: left out, since {job.missing}", file=sys.stderr, flush=True)
            continue
        cpu, wall, note = measured(name, "run")
        if cpu < 5:  # what warm-up does not know is compiled now
            cpu, wall, note = measured(name, "run")
        row = {"what": name, "ours": wall, "reference": job.goal, "ratio": wall / job.goal}
        rows.append({**row, "note": f"{wall:.1f} s wall (goal {job.goal:g}), {cpu:.1f} CPU s; {note}"})
        if job.reference is not None:
            other, other_wall, said = measured(name, "reference")
            peer = (job.reference.__doc__ or "").split(",")[0] or "scikit-learn"
            rows[-1]["note"] = (
                f"{rows[-1]['note']} | {peer}: {other:.1f} CPU s, {other_wall:.1f} s wall; {said}"
            )
        print(f"{name}: {rows[-1]['note']}", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        name, which = sys.argv[2:4]
        with redirect_stdout(StringIO()):
            said = getattr(JOBS[name], which)()
        print(json.dumps(said))
    else:
        run(tuple(sys.argv[1:]))
