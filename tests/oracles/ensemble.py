"""Consensus of base co-clusterings as naively as it can be written: exact distributions over all partitions.

``consensus_posterior`` is that of one side of DPCCE (Wang, Laskey, Domeniconi & Jordan 2011, section 4),
from Dirichlet integrals. ``corrected`` is the conditional that follows from it; ``as_printed`` are equations
4.7 and 4.8 letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import gammaln

from tests.oracles.partitions import dirichlet_process_rule, restricted_growth_strings, sequential_probability

Conditional = Callable[[np.ndarray, np.ndarray, int, float, float], dict[int, float]]


def dirichlet_log_evidence(labels: Sequence[int], n_labels: int, pseudo_count: float) -> float:
    """ln ∫ Π θ_y Dir(θ; pseudo_count) dθ over given labels."""
    counts = np.bincount(np.asarray(labels, dtype=int), minlength=n_labels)
    value = gammaln(pseudo_count * n_labels) - gammaln(pseudo_count * n_labels + counts.sum())
    return float(value + (gammaln(pseudo_count + counts) - gammaln(pseudo_count)).sum())


def labels_log_evidence(partition: Sequence[int], table: np.ndarray, beta: float) -> float:
    """ln p(labels of all bases | consensus partition); ``beta`` is shared by the labels of a base."""
    partition = np.asarray(partition)
    n_labels = table.max(axis=0) + 1
    return sum(
        dirichlet_log_evidence(table[partition == k, m], n_labels[m], beta / n_labels[m])
        for k in np.unique(partition)
        for m in range(table.shape[1])
    )


def consensus_posterior(
    table: np.ndarray, concentration: float, beta: float
) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All partitions of the lines of ``table`` (lines × bases) and their posterior probabilities."""
    partitions = list(restricted_growth_strings(len(table)))
    rule = dirichlet_process_rule(concentration)
    weights = np.array(
        [
            sequential_probability(partition, rule) * np.exp(labels_log_evidence(partition, table, beta))
            for partition in partitions
        ]
    )
    return partitions, weights / weights.sum()


def seating_prior(n: int, concentration: float) -> np.ndarray:
    """Probabilities of all partitions under the Dirichlet process alone."""
    rule = dirichlet_process_rule(concentration)
    return np.array([sequential_probability(p, rule) for p in restricted_growth_strings(n)])


def corrected(
    table: np.ndarray, partition: np.ndarray, r: int, concentration: float, beta: float
) -> dict[int, float]:
    """N_l Π_m (n_lm + β/T_m) / (N_l + β), and α Π_m 1/T_m."""
    n_labels = table.max(axis=0) + 1
    others = np.arange(len(table)) != r
    weights = {}
    for k in np.unique(partition[others]):
        members = others & (partition == k)
        weight = float(members.sum())
        for m, n in enumerate(n_labels):
            same = (table[members, m] == table[r, m]).sum()
            weight *= (same + beta / n) / (members.sum() + beta)
        weights[int(k)] = weight
    weights[int(partition.max()) + 1] = concentration / float(np.prod(n_labels))
    return weights


def as_printed(
    table: np.ndarray, partition: np.ndarray, r: int, concentration: float, beta: float
) -> dict[int, float]:
    """Equations 4.7 and 4.8: the product over bases has no cluster in it."""
    others = np.arange(len(table)) != r
    product = float(np.prod([(table[others, m] == table[r, m]).sum() for m in range(table.shape[1])]))
    denominator = len(table) - 1 + concentration
    sizes = {int(k): (others & (partition == k)).sum() for k in np.unique(partition[others])}
    weights = {k: size / denominator * product for k, size in sizes.items()}
    weights[int(partition.max()) + 1] = concentration / denominator * product
    return weights


def transition_matrices(
    conditional: Conditional, table: np.ndarray, concentration: float, beta: float
) -> np.ndarray:
    """One matrix over partitions for each line's update."""
    partitions = list(restricted_growth_strings(len(table)))
    index = {partition: position for position, partition in enumerate(partitions)}
    matrices = np.zeros((len(table), len(partitions), len(partitions)))
    for start, partition in enumerate(partitions):
        for r in range(len(table)):
            weights = conditional(table, np.array(partition), r, concentration, beta)
            for k, weight in weights.items():
                moved = list(partition)
                moved[r] = k
                matrices[r, start, index[renumbered(moved)]] += weight / sum(weights.values())
    return matrices


def gibbs_visits(matrices: np.ndarray, n_sweeps: int, seed: int) -> np.ndarray:
    """Positions of the partitions that a chain with these updates is in after each sweep."""
    rng = np.random.default_rng(seed)
    cumulative = matrices.cumsum(axis=2)
    uniform = rng.random((n_sweeps, len(matrices)))
    visits = np.empty(n_sweeps, dtype=int)
    here = 0
    for t in range(n_sweeps):
        for r in range(len(matrices)):
            last = matrices.shape[1] - 1
            here = min(int(np.searchsorted(cumulative[r, here], uniform[t, r], side="right")), last)
        visits[t] = here
    return visits


def renumbered(labels: Sequence[int]) -> tuple[int, ...]:
    """Labels by first appearance."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(label, len(seen)) for label in labels)


def mondrian_log_evidence(
    blocks: np.ndarray, base_ids: Sequence[np.ndarray], pseudo_count: float, counts: np.ndarray
) -> float:
    """Equation 5.20: ln p(block ids of all bases | blocks of the cells), of the cells that count."""
    return sum(
        dirichlet_log_evidence(ids[(blocks == k) & counts], int(ids.max()) + 1, pseudo_count)
        for k in np.unique(blocks)
        for ids in base_ids
    )
