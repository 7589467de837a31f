"""Dirichlet-process mixtures of generalized Mallows models: time of a sweep, growth, memory, convergence.

Data set 1 of Meilă & Chen (2010) and lists of the shape of their section 8, 53,757 of up to ten out of 533
courses, with 30 clusters, with 140, and with 140 that are 30 in several pieces each, between which lists
wander in every sweep. The reference is the same sampler in plain NumPy, timed on some of the lists and
clusters in the same run; the authors' own C (2017, one core of a similar machine) is in the notes. Growth is
the slope of ln time against ln size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.preferences_load import peak_megabytes
from permix.data.rankings import Rankings
from permix.datasets import make_generalized_mallows_mixture
from permix.datasets.generators_college import make_college_applications
from permix.dp_mallows.fit import start_state, sweep_move
from permix.dp_mallows.parameters import DPMallowsParameters

VARIANTS = ("collapsed", "parallel")
# Seconds a sweep of the authors' program, and the most that was wanted here.
AUTHORS = {
    "data set 1": "0.09 s",
    "college, 30": "12–16 s",
    "college, 140": "55 s",
    "college, 30 in 140 pieces": "55 s",
}
GOALS = {
    ("data set 1", "collapsed"): 0.003,
    ("college, 30", "collapsed"): 0.5,
    ("college, 140", "collapsed"): 2.0,
    ("college, 30 in 140 pieces", "collapsed"): 2.0,
    ("college, 30", "parallel"): 0.12,
    ("college, 140", "parallel"): 0.55,
    ("college, 30 in 140 pieces", "parallel"): 0.55,
}


class Problem(NamedTuple):
    """Lists with a partition and centers to start from."""

    lists: Rankings
    labels: np.ndarray
    centers: np.ndarray


def data_set_1() -> Problem:
    """5000 lists of 10 out of 20 items, ten clusters."""
    made = make_generalized_mallows_mixture(preset="meila-chen-1", center_weight=0.25, random_state=0)
    return Problem(made.data, made.labels, made.centers)


def college(
    n_lists: int = 53_757,
    n_items: int = 533,
    longest: int = 10,
    n_kinds: int = 30,
    n_clusters: int | None = None,
) -> Problem:
    """Lists like section 8's, one cluster for each kind, or each kind's divided at random among some."""
    made = make_college_applications(n_lists, n_items, n_kinds, longest, random_state=0)
    rng = np.random.default_rng(1)
    parent = np.arange(n_clusters or n_kinds) % n_kinds
    piece = rng.integers(np.bincount(parent)[made.labels])
    names, labels = np.unique(made.labels + n_kinds * piece, return_inverse=True)
    return Problem(made.data, labels, made.centers[parent[names]])


def started(problem: Problem, settings: DPMallowsParameters) -> Any:
    """The sampler's state at the problem's partition and centers."""
    state = start_state(problem.lists, settings, np.random.default_rng(0))
    state.restore(
        {
            "labels": problem.labels,
            "places": np.argsort(problem.centers, axis=1).T,
            "theta": np.ones((len(problem.centers), state.model.n_stages)),
            "concentration": np.array(1.0),
        }
    )
    return state


def seconds_per_sweep(
    problem: Problem, variant: str, n_sweeps: int = 5, **options: Any
) -> tuple[float, int, float]:
    """The quickest sweep after one that warms up; clusters, and the share of agents moved, in the last."""
    settings = DPMallowsParameters(assignments=variant, split_merge=False, n_chains=1, **options)
    state, move = started(problem, settings), sweep_move(settings)
    rng = np.random.default_rng(0)
    move.step(rng, state)
    times = []
    for _ in range(n_sweeps):
        start = time.perf_counter()
        move.step(rng, state)
        times.append(time.perf_counter() - start)
    return min(times), int(state.n_clusters), state.n_moved / state.n


def numpy_seconds(problem: Problem, n_lists: int = 100, n_updates: int = 2) -> float:
    """Seconds of a sweep in NumPy: some visits and center updates, times how many a sweep has of each."""
    from tests.reference.dp_mallows import Cluster, Exact

    lists, n_clusters = problem.lists, len(problem.centers)
    rng = np.random.default_rng(0)
    visited = rng.permutation(len(lists))[: 10 * n_lists]
    sampler = Exact(rng, [lists.orders[i, : lists.lengths[i]] for i in visited], lists.n_items)
    sampler.labels = problem.labels[visited]
    sampler.clusters = [Cluster(lists.n_items, sampler.n_stages, center) for center in problem.centers]
    for label, ranking in zip(sampler.labels, sampler.rankings, strict=True):
        sampler.clusters[label].add(ranking)
    for k in reversed(range(n_clusters)):
        if sampler.clusters[k].size == 0:
            sampler.drop(k)
    visits, updates = [], []
    for repeat in range(3):
        start = time.perf_counter()
        for i in range(repeat * n_lists, (repeat + 1) * n_lists):
            sampler.visit(i)
        visits.append((time.perf_counter() - start) / n_lists)
        start = time.perf_counter()
        for cluster in sampler.clusters[:n_updates]:
            sampler.update(cluster)
        updates.append((time.perf_counter() - start) / n_updates)
    return min(visits) * len(lists) + min(updates) * n_clusters


def sweep_rows() -> Iterator[dict[str, object]]:
    """Time of a sweep against NumPy."""
    problems = {
        "data set 1": data_set_1(),
        "college, 30": college(),
        "college, 140": college(n_kinds=140),
        "college, 30 in 140 pieces": college(n_clusters=140),
    }
    naive = {name: numpy_seconds(problems[name]) for name in ("data set 1", "college, 30")}
    for name, problem in problems.items():
        for variant in VARIANTS:
            seconds, n_clusters, moved = seconds_per_sweep(problem, variant)
            # Dense matrices of 140 clusters would take 3 GB, so NumPy is timed at 30; its time is in scores.
            reference = naive.get(name, naive["college, 30"] * len(problem.centers) / 30)
            goal = GOALS.get((name, variant))
            yield {
                "what": f"sweep, {variant}, {name} ({n_clusters} groups, {moved:.0%} of the agents moved)",
                "ours": f"{1e3 * seconds:.2f} ms",
                "reference": f"{reference:.0f} s (NumPy{'' if name in naive else ', from 30 groups'})",
                "ratio": reference / seconds,
                "note": f"authors' C: {AUTHORS[name]}" + (f"; goal: {1e3 * goal:.0f} ms" if goal else ""),
            }


def growth_rows() -> Iterator[dict[str, object]]:
    """Exponents of time against lists, items, lengths and clusters."""
    varied: dict[str, tuple[str, tuple[int, ...]]] = {
        "lists": ("n_lists", (5_000, 20_000, 80_000, 320_000)),
        "items": ("n_items", (100, 533, 2_000, 8_000)),
        "longest list": ("longest", (3, 6, 12, 24)),
        "groups": ("n_kinds", (5, 15, 45, 135)),
    }
    for what, (name, sizes) in varied.items():
        for variant in VARIANTS:
            base = {"n_lists": 20_000, "n_items": 533, "longest": 10, "n_kinds": 30}
            times = [seconds_per_sweep(college(**(base | {name: size})), variant, 3)[0] for size in sizes]
            yield {
                "what": f"growth with {what}, {variant}: {', '.join(f'{size:,}' for size in sizes)}",
                "ours": " / ".join(f"{1e3 * seconds:.1f}" for seconds in times) + " ms",
                "reference": "linear: exponent 1" if name != "n_items" else "should hardly matter: 0",
                "ratio": float(np.polyfit(np.log(sizes), np.log(times), 1)[0]),
                "note": "ratio: the exponent; else 20,000 lists, 533 items, up to 10, 30 groups",
            }


def memory_rows() -> Iterator[dict[str, object]]:
    """Peak memory of college-shaped data, in processes of their own."""
    for variant in VARIANTS:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.dp_mallows", variant],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )
        before, peak = json.loads(done.stdout)
        yield {
            "what": f"peak memory, {variant}, college, 140 groups",
            "ours": f"{peak:.0f} MB",
            "reference": "2400 MB (authors' C)",
            "ratio": 2400 / peak,
            "note": f"{before:.0f} MB of it before the data are there; goal: under 300",
        }


def memory(variant: str) -> tuple[float, float]:
    """Peak memory with compiled code loaded, and after some sweeps, in megabytes."""
    small = college(500, 50, 10, 3)
    seconds_per_sweep(small, variant, 1)
    before = peak_megabytes()
    seconds_per_sweep(college(n_clusters=140), variant, 3)
    return before, peak_megabytes()


def convergence_rows() -> Iterator[dict[str, object]]:
    """Sweeps and seconds until within 1 % of the final log joint, from a random start."""
    settings_of = {
        "data set 1": (data_set_1(), 20, 200, {}),
        "college": (college(), 20, 100, {"concentration": 100.0, "prior_strength": 100.0}),
    }
    for name, (problem, n_start, n_sweeps, options) in settings_of.items():
        traces = {}
        for variant in VARIANTS:
            for split_merge in (False, True):
                settings = DPMallowsParameters(
                    assignments=variant,
                    split_merge=split_merge,
                    n_initial_clusters=n_start,
                    n_chains=1,
                    **options,
                )
                traces[variant, split_merge] = log_joints(problem.lists, settings, n_sweeps)
        final = max(values[-1] for values, _ in traces.values())
        for (variant, split_merge), (values, seconds) in traces.items():
            there = np.flatnonzero(values > final - 0.01 * abs(final))
            text = (
                f"{there[0]} sweeps, {seconds[there[0]]:.2f} s" if len(there) else f"not in {n_sweeps} sweeps"
            )
            yield {
                "what": f"within 1 % of the final log joint, {name}, {variant}, "
                f"{'with' if split_merge else 'without'} split-merge",
                "ours": text,
                "reference": f"{n_sweeps} sweeps, {seconds[-1]:.1f} s",
                "ratio": seconds[-1] / seconds[there[0]] if len(there) else 0.0,
                "note": f"log joint at the end {values[-1]:,.0f}; the best of all {final:,.0f}",
            }


def log_joints(
    lists: Rankings, settings: DPMallowsParameters, n_sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Log joint after every sweep, the start first, and seconds spent until then."""
    rng = np.random.default_rng(0)
    small = lists[:200]
    sweep_move(settings, 200).step(rng, start_state(small, settings, rng))  # compile
    rng = np.random.default_rng(0)
    state, move = start_state(lists, settings, rng), sweep_move(settings, lists.n_agents)
    values, seconds = [state.log_joint()], [1e-9]
    for _ in range(n_sweeps):
        start = time.perf_counter()
        move.step(rng, state)
        seconds.append(seconds[-1] + time.perf_counter() - start)
        values.append(state.log_joint())
    return np.array(values), np.array(seconds)


def run() -> list[dict[str, object]]:
    """Rows for the table of benchmarks."""
    return [*sweep_rows(), *memory_rows(), *growth_rows(), *convergence_rows()]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(memory(sys.argv[1])))
    else:
        for row in run():
            print(row)
