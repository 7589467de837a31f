# mypy: ignore-errors
"""Draws of partitions from Pitman's two-parameter family, compiled."""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel


@kernel
def sample_two_parameter(rng, concentration, discount, max_clusters, labels):
    """Fill each row of ``labels`` with a draw, numbered by first appearance; O(1) a datum on average."""
    n_draws, n = labels.shape
    sizes = np.empty(n, np.int64)
    for draw in range(n_draws):
        row = labels[draw]
        n_clusters = 0
        for seated in range(n):
            new_weight = concentration + discount * n_clusters
            if seated == 0 or (
                n_clusters < max_clusters and rng.random() * (concentration + seated) < new_weight
            ):
                label = n_clusters
                sizes[label] = 0
                n_clusters += 1
            elif discount >= 0.0:
                # A uniform earlier datum names its cluster with weight n_k; thinning makes it n_k - sigma.
                label = row[int(rng.random() * seated)]
                while rng.random() * sizes[label] < discount:
                    label = row[int(rng.random() * seated)]
            elif rng.random() * (seated - discount * n_clusters) < seated:
                label = row[int(rng.random() * seated)]
            else:
                label = int(rng.random() * n_clusters)
            row[seated] = label
            sizes[label] += 1
