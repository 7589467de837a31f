# mypy: ignore-errors
"""The M-step of EM in compiled code, all components at once."""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.partitioned_jit import best_decay
from permix.kernels.jit import kernel
from permix.kernels.kemeny_search import improve_by_insertion, order_score


@kernel
def maximize(wins, rankings, blocks, against, look, most, centers, decays):
    """M-step for centers, where ``look``, and dispersions (theorem 23); components without rankings stay.

    Centers are searched from where they are and from Borda's order, so that none ends behind its start.
    ``against`` is the weight of pairs against each center, wanted where centers stay.
    """
    n_components, n = centers.shape
    net = np.empty((n, n))
    orders = np.empty((2, n), np.int32)
    lead = np.empty(n)
    for k in range(n_components):
        if rankings[k] <= 0.0:
            continue
        distance = against[k]
        if look:
            largest = 1.0
            for i in range(n):
                lead[i] = 0.0
                for j in range(n):
                    net[i, j] = wins[k, i, j] - wins[k, j, i]
                    lead[i] += net[i, j]
                    largest = max(largest, wins[k, i, j])
                place = i  # sorted by lead, the first of equals first
                while place > 0 and lead[orders[1, place - 1]] < lead[i]:
                    orders[1, place] = orders[1, place - 1]
                    place -= 1
                orders[1, place] = i
                orders[0, i] = centers[k, i]
            distance = np.inf
            for start in range(2):
                improve_by_insertion(net, orders[start], 1e-9 * largest)
                score = order_score(wins[k], orders[start])
                if score < distance - 1e-9 * largest:
                    distance = score
                    for i in range(n):
                        centers[k, i] = orders[start, i]
        decays[k] = best_decay(distance, rankings[k], blocks[k], most)
