"""The sushi data as the paper divides them, with the paper's English names."""

from __future__ import annotations

import numpy as np

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.datasets import load_sushi

ENGLISH = {
    "ebi": "shrimp",
    "anago": "sea eel",
    "maguro": "tuna",
    "ika": "squid",
    "uni": "sea urchin",
    "sake": "salmon roe",
    "tamago": "egg",
    "toro": "fatty tuna",
    "tekka-maki": "tuna roll",
    "kappa-maki": "cucumber roll",
}
N_TRAIN = 3500


def sushi() -> Rankings:
    """5000 full rankings of ten sushi, by English names."""
    data = load_sushi("a", download=False).data
    named: Rankings = data._replaced(items=tuple(ENGLISH[name] for name in data.items))
    return named


def reveal(rankings: Rankings, alpha: float, rng: np.random.Generator) -> Preferences:
    """Let every agent state each pair of the ranking with probability alpha, independently."""
    n_pairs = rankings.n_items * (rankings.n_items - 1) // 2
    return _stated(rankings, rng.random((len(rankings), n_pairs)) < alpha)


def remove(rankings: Rankings, alpha: float, rng: np.random.Generator) -> Preferences:
    """Take the same number of pairs, (1 - alpha) of all rounded down, from every agent at random."""
    n_pairs = rankings.n_items * (rankings.n_items - 1) // 2
    order = rng.permuted(np.tile(np.arange(n_pairs), (len(rankings), 1)), axis=1)
    return _stated(rankings, order >= int((1.0 - alpha) * n_pairs))


def _stated(rankings: Rankings, chosen: np.ndarray) -> Preferences:
    """Preferences of the chosen pairs of ranks i < j, agents by pairs."""
    orders = rankings.orders
    upper, lower = np.triu_indices(rankings.n_items, 1)
    agents, pairs = np.nonzero(chosen)
    stated = np.column_stack([orders[agents, upper[pairs]], orders[agents, lower[pairs]]])
    ends = np.cumsum(chosen.sum(axis=1))
    return Preferences._from_arrays(
        items=rankings.items, pair_indptr=np.concatenate([[0], ends]), pairs=stated.astype(np.int32)
    )
