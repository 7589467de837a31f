"""Permutation moves, projections and splits beside a Gibbs sweep and a NumPy beam; growth with size; memory.

10,000 points × 40 dimensions × 40 clusters of unit noise, isotropic Gaussian, one thread; and whole fits of
up to 1,000,000 × 10 in processes of their own. ``python -m benchmarks permutation``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from benchmarks.reproduce.liang_data import gaussian_clusters
from benchmarks.timing import best_time, timed
from permix.families import Gaussian, Multinomial
from permix.moves import Gibbs, Move, Permutation, Projection, SplitMerge
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma

SIZES = (10_000, 100_000, 1_000_000)


def state_of(n: int, d: int, n_clusters: int) -> MixtureState:
    """A state at the clusters that made the data."""
    made = gaussian_clusters(n, d, n_clusters, seed=0)
    family = Gaussian(1.0, 0.0, 10.0).resolve(made.data)
    state = MixtureState(family, family.encode(made.data), n, DirichletProcess(Gamma(1.0, 1.0)))
    state.set_labels(made.labels)
    return state


def numpy_beam(X: np.ndarray, n_points: int, width: int) -> None:
    """The first points of a beam as a careful NumPy programmer would write it: vectorized over segments.

    Noise 1, prior N(0, 100), concentration 1, uniform ordering.
    """
    ratio, d = 0.01, X.shape[1]
    starts = np.zeros(0, dtype=int)
    sums, marginals, before = np.zeros((0, d)), np.zeros(0), np.zeros(0)
    total = 0.0
    for r in range(n_points):
        starts, before = np.append(starts, r), np.append(before, total)
        sums, marginals = np.vstack([sums, np.zeros(d)]), np.append(marginals, 0.0)
        n = r - starts
        variance = 1 + 1 / (ratio + n)
        distance = ((X[r] - sums / (ratio + n)[:, None]) ** 2).sum(axis=1)
        marginals = marginals - 0.5 * distance / variance - 0.5 * d * np.log(2 * np.pi * variance)
        sums = sums + X[r]
        terms = before + marginals - np.log(n + 1)
        total = float(np.logaddexp.reduce(terms))
        kept = np.sort(np.argsort(-terms, kind="stable")[:width])
        starts, before, sums, marginals = starts[kept], before[kept], sums[kept], marginals[kept]


def step_rows() -> Iterator[dict[str, object]]:
    """One step of each move."""
    state = state_of(10_000, 40, 40)
    rng = np.random.default_rng(0)
    sweep = best_time(lambda: Gibbs().step(rng, state), 20)
    moves: dict[str, tuple[Move, str]] = {
        "permutation move, beam of 5": (Permutation(width=5), "goal: at most 1"),
        "permutation move, beam of 20": (Permutation(width=20), ""),
        "projection, beam of 5": (Projection(width=5), "directions turned up to 3 times"),
        "10 splits and merges, sequential": (SplitMerge(), ""),
        "10 splits and merges, restricted Gibbs": (SplitMerge("restricted-gibbs"), ""),
    }
    for what, (move, note) in moves.items():
        ours = best_time(lambda move=move: move.step(rng, state), 20)  # type: ignore[misc]
        yield {
            "what": what,
            "ours": f"{1e3 * ours:.2f} ms",
            "reference": f"{1e3 * sweep:.2f} ms",
            "ratio": ours / sweep,
            "note": f"times a Gibbs sweep over 40 groups; {note}",
        }
    n_points = 1000
    naive = best_time(lambda: numpy_beam(np.asarray(state.data), n_points, 5), 2) * state.n / n_points
    ours = best_time(lambda: Permutation(width=5).step(rng, state), 5)
    yield {
        "what": "permutation move, beam of 5",
        "ours": f"{1e3 * ours:.2f} ms",
        "reference": f"{1e3 * naive:.0f} ms",
        "ratio": naive / ours,
        "note": "times faster than NumPy point by point (the sum alone)",
    }


def growth_rows() -> Iterator[dict[str, object]]:
    """How a beam step grows with the data, with the beam, and with a vocabulary nobody uses."""
    rng = np.random.default_rng(0)

    def row(what: str, sizes: tuple[int, ...], times: list[float], reference: str) -> dict[str, object]:
        return {
            "what": f"growth of a beam step with {what}: {', '.join(f'{size:,}' for size in sizes)}",
            "ours": " / ".join(f"{1e3 * seconds:.1f}" for seconds in times) + " ms",
            "reference": reference,
            "ratio": float(np.polyfit(np.log(sizes), np.log(times), 1)[0]),
            "note": "ratio: the exponent",
        }

    sizes = (3_000, 10_000, 30_000, 100_000)
    times = []
    for n in sizes:
        state, move = state_of(n, 10, 40), Permutation()
        times.append(best_time(lambda: move.step(rng, state), 5))  # noqa: B023
    yield row("data", sizes, times, "linear: 1")

    words = (1_000, 10_000, 100_000)
    times = []
    for n_words in words:
        counts = sparse.random_array((1000, n_words), density=50 / n_words, rng=rng, format="csr")
        counts.data = np.ceil(3 * counts.data)
        family = Multinomial(pseudo_count=0.1).resolve(counts)
        state = MixtureState(family, family.encode(counts), 1000, DirichletProcess(1.0))
        state.set_labels(np.arange(1000) % 10)
        move = Permutation()
        times.append(best_time(lambda: move.step(rng, state), 5))  # noqa: B023
    yield row("words, 50 in each of 1,000 documents", words, times, "should hardly matter: 0")


def fit_rows() -> Iterator[dict[str, object]]:
    """Whole fits from one cluster: 30 iterations in each of two chains, and the estimate."""
    found = []
    for n in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.permutation", str(n)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )
        found.append(json.loads(done.stdout))
        answer = found[-1]
        yield {
            "what": f"fit of {n:,} × 10, 20 groups, from one",
            "ours": f"{answer['seconds']:.1f} s",
            "reference": f"{answer['memory']:.0f} MB",
            "ratio": answer["memory"] / 4000,
            "note": f"of 4 GB; {answer['groups']} groups, adjusted Rand {answer['rand']:.3f}",
        }
    yield {
        "what": "growth of chains with data",
        "ours": " / ".join(f"{answer['chains']:.1f}" for answer in found) + " s",
        "reference": "linear: 1",
        "ratio": float(np.polyfit(np.log(SIZES), np.log([answer["chains"] for answer in found]), 1)[0]),
        "note": "ratio: the exponent",
    }


def fit(n: int) -> dict[str, float]:
    """Fit n points from one cluster; seconds, peak memory in megabytes, and what was found."""
    import resource

    import permix

    settings = {"init": "one-group", "n_burn_in": 20, "n_draws": 10, "random_state": 0, "progress": False}
    family = Gaussian(noise_scale=1.0)
    warm = gaussian_clusters(300, 10, 3, seed=1)
    made = gaussian_clusters(n, 10, 20, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten draws are few, and permix says so
        permix.DPMixture(family, **settings).fit(warm.data)  # type: ignore[arg-type]
        model = permix.DPMixture(family, **settings)  # type: ignore[arg-type]
        seconds, _ = timed(model.fit, made.data)
    return {
        "seconds": seconds,
        "chains": float(model._fit.draws.statistics["seconds"].max()),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "groups": model.n_clusters_,
        "rand": permix.adjusted_rand(model.labels_, made.labels),
    }


def run() -> list[dict[str, object]]:
    """All rows."""
    return [*step_rows(), *growth_rows(), *fit_rows()]


if __name__ == "__main__":
    print(json.dumps(fit(int(sys.argv[1]))))
