"""Split-merge moves as exact transition matrices: every pair, order, launch state and allocation is listed.

Written from the target alone: weights of joining a side are ratios of ``log_marginal`` of sets of data and of
``log_prior`` of two clusters, acceptance compares ``log_target`` of whole partitions. ``flaw`` makes a broken
twin:

- "reverse": merges are accepted without the probability of the split that would undo them;
- "prior": acceptance compares likelihoods;
- "pairs": acceptance forgets that a pair is drawn for a split and for a merge with other chances;
- "launch": merges launch from the present split (restricted Gibbs only).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations, product

import numpy as np

from permix.partitions import canonical_labels

Partition = tuple[int, ...]


def split_merge_matrix(
    partitions: Sequence[Partition],
    log_marginal: Callable[[frozenset[int]], float],
    log_prior: Callable[[Sequence[int]], float],
    n_scans: int = 0,
    flaw: str | None = None,
) -> np.ndarray:
    """The matrix over partitions: sequential allocation where ``n_scans`` is 0, else restricted Gibbs."""
    index = {labels: position for position, labels in enumerate(partitions)}
    log_marginal = cache(log_marginal)

    @cache
    def log_target(labels: Partition) -> float:
        clusters = [frozenset(np.flatnonzero(np.array(labels) == k).tolist()) for k in set(labels)]
        prior = 0.0 if flaw == "prior" else log_prior(labels)
        return prior + sum(log_marginal(cluster) for cluster in clusters)

    @cache
    def chance_of_first(member: int, first: frozenset[int], second: frozenset[int]) -> float:
        """Probability of joining the first of two sides, neither of which holds the member."""
        a, b = len(first), len(second)
        log_odds = (
            log_marginal(first | {member})
            - log_marginal(first)
            - log_marginal(second | {member})
            + log_marginal(second)
            + log_prior((0,) * (a + 1) + (1,) * b)
            - log_prior((0,) * a + (1,) * (b + 1))
        )
        return 1.0 / (1.0 + math.exp(-log_odds))

    def sides_of(i: int, j: int, order: Sequence[int], choices: Sequence[int]) -> list[frozenset[int]]:
        return [
            frozenset([anchor, *(m for m, choice in zip(order, choices, strict=True) if choice == side)])
            for side, anchor in enumerate((i, j))
        ]

    def sequential(i: int, j: int, order: Sequence[int], choices: Sequence[int]) -> float:
        chance = 1.0
        for t, (member, choice) in enumerate(zip(order, choices, strict=True)):
            first = chance_of_first(member, *sides_of(i, j, order[:t], choices[:t]))
            chance *= first if choice == 0 else 1.0 - first
        return chance

    def scan(i: int, j: int, order: Sequence[int], launch: Sequence[int], choices: Sequence[int]) -> float:
        now = list(launch)
        chance = 1.0
        for t, member in enumerate(order):
            sides = sides_of(i, j, order, now)
            first = chance_of_first(member, sides[0] - {member}, sides[1] - {member})
            chance *= first if choices[t] == 0 else 1.0 - first
            now[t] = choices[t]
        return chance

    def distributions(
        i: int, j: int, order: Sequence[int]
    ) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray]:
        """All allocations, the distribution of launch states, and the distribution of proposals from each."""
        choices = list(product((0, 1), repeat=len(order)))
        if n_scans == 0:
            return choices, np.ones(1), np.array([[sequential(i, j, order, c) for c in choices]])
        matrix = np.array([[scan(i, j, order, launch, c) for c in choices] for launch in choices])
        launches = np.full(len(choices), 1.0 / len(choices)) @ np.linalg.matrix_power(matrix, n_scans)
        return choices, launches, matrix

    matrix = np.zeros((len(partitions), len(partitions)))
    n = len(partitions[0])
    pairs = list(permutations(range(n), 2))

    def chance_of_pair(labels: Partition, i: int, j: int) -> float:
        """Half of all proposals are splits; j comes from the cluster of i, or from all others."""
        fellows = sum(k == labels[i] for k in labels)
        return 0.5 / n / (fellows - 1 if labels[i] == labels[j] else n - fellows)

    for row, labels in enumerate(partitions):
        if log_target(labels) == -math.inf:
            continue
        for i, j in pairs:
            others = [m for m in range(n) if m not in (i, j) and labels[m] in (labels[i], labels[j])]
            orders = list(permutations(others))
            for order in orders:
                choices, launches, proposals = distributions(i, j, order)
                share = 1.0 / len(orders)
                chance_of_this = chance_of_pair(labels, i, j)
                if labels[i] == labels[j]:
                    for launch_chance, distribution in zip(launches, proposals, strict=True):
                        for choice, chance in zip(choices, distribution, strict=True):
                            split = list(labels)
                            for member in sides_of(i, j, order, choice)[1]:
                                split[member] = n
                            new = tuple(canonical_labels(np.array(split)).tolist())
                            ratio = math.exp(log_target(new) - log_target(labels))
                            back = 1.0 if flaw == "pairs" else chance_of_pair(new, i, j) / chance_of_this
                            matrix[row, index[new]] += (
                                share * launch_chance * chance_of_this * min(chance, ratio * back)
                            )
                else:
                    merged = tuple(
                        canonical_labels(
                            np.array([labels[i] if k == labels[j] else k for k in labels])
                        ).tolist()
                    )
                    ratio = math.exp(log_target(merged) - log_target(labels))
                    here = choices.index(tuple(int(labels[m] == labels[j]) for m in order))
                    if flaw == "launch" and n_scans > 0:
                        launches = np.linalg.matrix_power(proposals, n_scans)[here]
                    for launch_chance, distribution in zip(launches, proposals, strict=True):
                        undo = 1.0 if flaw == "reverse" else distribution[here]
                        back = 1.0 if flaw == "pairs" else chance_of_pair(merged, i, j) / chance_of_this
                        matrix[row, index[merged]] += (
                            share * launch_chance * chance_of_this * min(1.0, ratio * undo * back)
                        )
        matrix[row, row] += 1.0 - matrix[row].sum()
    return matrix
