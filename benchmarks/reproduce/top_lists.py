"""What the reproductions of Meilă & Chen (2010) share: the model that made the data, and averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from permix.data.rankings import Rankings
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.partitions import variation_of_information


def log_joint(rankings: Rankings, centers: np.ndarray, theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Log of weight times probability of every list under every component, rows by components."""
    models = [
        GeneralizedMallows([rankings.items[item] for item in center], decays, rankings.items)
        for center, decays in zip(centers, theta, strict=True)
    ]
    return np.log(weights) + np.column_stack([model.log_prob(rankings) for model in models])


def mean_log_likelihood(scores: np.ndarray) -> float:
    """Average over lists of ln p, from what :func:`log_joint` returned."""
    return float(np.logaddexp.reduce(scores, axis=1).mean())


def per_agent(values: np.ndarray, rankings: Rankings) -> float:
    """Average over agents of what was computed for every row."""
    return float(np.average(values, weights=rankings.counts))


def vi(labels: np.ndarray, truth: np.ndarray) -> float:
    """Variation of information in nats."""
    return float(variation_of_information(labels, truth, base=np.e))


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation over replicates."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def in_order(center: np.ndarray, items: Sequence[Any], top: int | None = None) -> str:
    """The first items of a center by name."""
    return " ≻ ".join(str(items[item]) for item in center[:top])


def theta_by_rank(clusters: Any, smallest: float = 0.0, largest: float = 1.0) -> np.ndarray:
    """Average decay of every stage over draws and clusters, weighted by size.

    Parameters
    ----------
    clusters : ClusterDraws
    smallest, largest : float
        Only clusters with a share of the data in this range (the upper end excluded, unless it is 1).
    """
    n_agents = clusters.labels.shape[1]
    shares = clusters.sizes / n_agents
    chosen = (shares >= smallest) & ((shares < largest) | (largest >= 1.0))
    weights = clusters.sizes * chosen
    if weights.sum() == 0:
        return np.full(clusters.theta.shape[1], np.nan)
    return np.average(clusters.theta, axis=0, weights=weights)
