"""AMP on posets like MovieLens' against the direct O(m²) insertion with a dense relation matrix.

Both are compiled. 200 items, 40 of them rated at five levels, dispersions around the paper's 0.98. The
reference gets its relation matrices ready made; ours starts from the stored ratings, so its time includes
what it works out per agent. Both write the rankings and their probabilities.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numba
import numpy as np

from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.draws import Jobs, amp_draws
from permix.runtime.threads import at_most
from tests.reference.amp_dense import amp_dense_many, relation_of_levels

N_ITEMS, N_RATED, N_LEVELS = 200, 40, 5
DISPERSIONS = np.array([0.95, 0.98, 0.99])


def ratings(n_agents: int, rng: np.random.Generator) -> Preferences:
    """Agents who rate a random fifth of the items."""
    agent = np.repeat(np.arange(n_agents), N_RATED)
    item = np.concatenate([rng.choice(N_ITEMS, N_RATED, replace=False) for _ in range(n_agents)])
    stars = rng.integers(1, N_LEVELS + 1, agent.size)
    rows = np.column_stack([agent, item, stars])
    return Preferences.from_ratings(rows, items=range(N_ITEMS), layout="long")


def best_times(functions: list[Callable[[], object]], repeats: int = 3) -> list[float]:
    """Seconds of the quickest run of each, by turns, so that a busy machine slows all alike."""
    times = [np.inf] * len(functions)
    for _ in range(repeats + 1):  # the first round compiles
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def run() -> list[dict[str, object]]:
    """Time draws per ranking, one thread and all of them."""
    rng = np.random.default_rng(0)
    n_agents, n_jobs = 500, 6000  # as many jobs as MovieLens has agents; the dense matrices take 20 MB
    preferences = ratings(n_agents, rng)
    arrays = preferences.arrays()
    centers = np.stack([rng.permutation(N_ITEMS) for _ in DISPERSIONS]).astype(np.int32)
    models = geometric_models(-np.log(DISPERSIONS), N_ITEMS)
    agents = np.arange(n_jobs) % n_agents
    clusters = rng.integers(0, len(DISPERSIONS), n_jobs)
    key = np.array([1, 2], np.uint64)
    better = np.stack(
        [
            relation_of_levels(
                np.array(preferences.level_items[first:last]),
                np.array(preferences.levels[first:last]),
                N_ITEMS,
            )
            for first, last in zip(preferences.level_indptr[:-1], preferences.level_indptr[1:], strict=True)
        ]
    )
    rows: list[dict[str, object]] = []
    all_threads = numba.get_num_threads()
    try:
        for threads in sorted({1, all_threads}):
            numba.set_num_threads(threads)  # of the reference
            for n_draws in (10, 1):
                orders = np.empty((n_jobs, n_draws, N_ITEMS), np.int32)
                log_q = np.empty((n_jobs, n_draws))
                jobs = Jobs.of(arrays, agents, clusters, centers, models)
                ours, weights_only, dense = best_times(
                    [
                        at_most(threads)(partial(amp_draws, key, 0, jobs, n_draws)),
                        at_most(threads)(partial(amp_draws, key, 0, jobs, n_draws, False)),
                        lambda orders=orders, log_q=log_q: amp_dense_many(
                            key, better, agents, centers, clusters, DISPERSIONS, orders, log_q
                        ),
                    ]
                )
                each = 1e6 / (n_jobs * n_draws)
                for what, seconds in (("rankings", ours), ("distances and weights", weights_only)):
                    rows.append(
                        {
                            "what": f"AMP, {what}, {n_draws} per agent, {threads} thread(s)",
                            "ours": f"{seconds * each:.2f} µs",
                            "reference": f"{dense * each:.1f} µs",
                            "ratio": dense / seconds,
                            "note": "per ranking; dense O(m²) insertion, target at least 20 for rankings",
                        }
                    )
    finally:
        numba.set_num_threads(all_threads)
    rows.append(_linear(key, centers, models, rng))
    return rows


def _linear(
    key: np.ndarray, centers: np.ndarray, models: object, rng: np.random.Generator
) -> dict[str, object]:
    """Exponent of time in agents, log-likelihoods under all models."""
    sizes = [300, 3000]
    seconds = []
    for size in sizes:
        pairs = np.repeat(np.arange(size), len(centers)), np.tile(np.arange(len(centers)), size)
        jobs = Jobs.of(ratings(size, rng).arrays(), *pairs, centers, models)
        seconds += best_times([partial(amp_draws, key, 0, jobs, 128, False)], repeats=2)
    return {
        "what": f"log-likelihood of {sizes[0]} and {sizes[1]} agents, {len(centers)} models, 128 draws each",
        "ours": f"{seconds[1]:.2f} s",
        "reference": f"{seconds[0]:.3f} s",
        "ratio": float(np.log(seconds[1] / seconds[0]) / np.log(sizes[1] / sizes[0])),
        "note": "ratio is the exponent of time in agents",
    }


if __name__ == "__main__":
    for row in run():
        print(row)
