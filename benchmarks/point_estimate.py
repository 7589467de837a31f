"""Point estimate of a partition: 10,000 observations, 1,000 draws; and against recomputing from scratch."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import timed
from permix.partitions import adjusted_rand, point_estimate, similarity_matrix, variation_of_information


def draws_around_a_partition(
    n: int, n_draws: int, n_clusters: int, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A partition, and draws in which each observation wavers, more or less, between two clusters."""
    rng = np.random.default_rng(seed)
    truth, other = rng.integers(n_clusters, size=(2, n))
    waver = rng.random((n_draws, n)) < noise * rng.beta(0.3, 1.5, size=n)
    return truth, np.where(waver, other, truth).astype(np.int32)


def naive_sweep(labels: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """One sweep of single moves, recomputing the expected loss of every candidate from scratch."""
    labels = labels.copy()
    for i in range(len(labels)):
        losses = []
        for cluster in range(labels.max() + 2):
            candidate = labels.copy()
            candidate[i] = cluster
            losses.append(np.mean([variation_of_information(candidate, draw) for draw in draws]))
        labels[i] = int(np.argmin(losses))
    return labels


def run() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    _, small = draws_around_a_partition(60, 20, 4, 1.0, 1)
    for loss in ("vi", "binder"):
        point_estimate(small, loss, n_runs=2)  # compile
    similarity_matrix(small)

    for noise in (0.3, 1.0):
        truth, draws = draws_around_a_partition(10_000, 1_000, 30, noise, 2)
        spent, found = timed(lambda draws=draws: point_estimate(draws, random_state=1))
        rows.append(
            {
                "what": f"VI point estimate, 10,000 x 1,000, 30 groups, noise {noise}: seconds (goal 3)",
                "ours": round(spent, 1),
                "reference": 3,
                "ratio": round(spent / 3, 2),
                "note": f"adjusted Rand against the truth {adjusted_rand(found.labels, truth):.4f}",
            }
        )
        rows.append(
            {
                "what": f"  its expected loss against the best draw, noise {noise}: bits",
                "ours": round(found.expected_loss, 4),
                "reference": round(found.best_draw_loss, 4),
                "ratio": round(found.expected_loss / found.best_draw_loss, 3),
                "note": f"{found.n_clusters} groups",
            }
        )
    spent, _ = timed(lambda: similarity_matrix(draws))
    part = draws[:, :500]
    numpy_spent = 400 * timed(lambda: sum((row[:, None] == row).astype(np.float32) for row in part))[0]
    rows.append(
        {
            "what": "similarity matrix, 10,000 x 1,000: seconds",
            "ours": round(spent, 2),
            "reference": round(numpy_spent, 1),
            "ratio": round(spent / numpy_spent, 3),
            "note": "NumPy draw by draw, on 500 observations, scaled",
        }
    )

    spent, found = timed(lambda: point_estimate(small, random_state=1, n_runs=1, n_jobs=1))
    naive_spent, _ = timed(lambda: naive_sweep(small[0], small))
    rows.append(
        {
            "what": "one whole run against one sweep that recomputes each loss, 60 x 20: seconds",
            "ours": round(spent, 5),
            "reference": round(naive_spent, 3),
            "ratio": round(spent / naive_spent, 5),
            "note": f"{naive_spent / spent:.0f} times faster; the loss itself is compiled in both",
        }
    )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
