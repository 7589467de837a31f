"""Informed splits and merges as exact transition matrices: every pair, order, launch state and division.

Written from the target alone, but for the weights of joining a group, which the proposal is free to choose.
``flaw`` makes a broken twin:

- "reverse": merges are accepted without the probability of the split that would undo them;
- "prior": acceptance compares likelihoods;
- "pairs": acceptance forgets the chance of drawing a pair to merge;
- "launch": merges launch from the present division.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, permutations, product

import numpy as np

from permix.partitions import canonical_labels

Partition = tuple[int, ...]
Members = frozenset[int]


def informed_matrix(
    partitions: Sequence[Partition],
    log_marginal: Callable[[Members], float],
    log_prior: Callable[[Sequence[int]], float],
    joining: Sequence[float],
    n_scans: int,
    flaw: str | None = None,
) -> np.ndarray:
    """The matrix over partitions; ``joining[m]`` is the log weight of a group of m in proposals."""
    index = {labels: position for position, labels in enumerate(partitions)}
    n = len(partitions[0])

    @cache
    def log_data(members: Members) -> float:
        return log_marginal(members) if members else 0.0

    def clusters_of(labels: Partition) -> list[Members]:
        return [frozenset(np.flatnonzero(np.array(labels) == k).tolist()) for k in sorted(set(labels))]

    @cache
    def log_target(labels: Partition) -> float:
        prior = 0.0 if flaw == "prior" else log_prior(labels)
        return prior + sum(log_data(cluster) for cluster in clusters_of(labels))

    def log_whole(members: Members) -> float:
        return log_data(members) + sum(joining[: len(members)])

    @cache
    def chances_of_pairs(labels: Partition) -> dict[frozenset[Members], float]:
        pairs = list(combinations(clusters_of(labels), 2))
        weights = [math.exp(0.5 * (log_whole(a | b) - log_whole(a) - log_whole(b))) for a, b in pairs]
        return {frozenset(pair): w / sum(weights) for pair, w in zip(pairs, weights, strict=True)}

    @cache
    def chance_of_first(member: int, first: Members, second: Members) -> float:
        to_first = log_data(first | {member}) - log_data(first) + joining[len(first)]
        to_second = log_data(second | {member}) - log_data(second) + joining[len(second)]
        return 1.0 / (1.0 + math.exp(to_second - to_first))

    def sides_of(i: int, order: Sequence[int], choices: Sequence[int]) -> tuple[Members, Members]:
        sides: list[set[int]] = [{i}, set()]
        for member, choice in zip(order, choices, strict=True):
            sides[choice].add(member)
        return frozenset(sides[0]), frozenset(sides[1])

    def sequential(i: int, order: Sequence[int], choices: Sequence[int]) -> float:
        """The first of the order begins the second side."""
        chance = float(choices[0])
        for t in range(1, len(order)):
            first = chance_of_first(order[t], *sides_of(i, order[:t], choices[:t]))
            chance *= 1.0 - first if choices[t] else first
        return chance

    def scan(i: int, order: Sequence[int], launch: Sequence[int], choices: Sequence[int]) -> float:
        now = list(launch)
        chance = 1.0
        for t, member in enumerate(order):
            first, second = (side - {member} for side in sides_of(i, order, now))
            to_first = chance_of_first(member, first, second)
            chance *= 1.0 - to_first if choices[t] else to_first
            now[t] = choices[t]
        return chance

    @cache
    def divisions(i: int, order: tuple[int, ...]) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray]:
        """All divisions, the distribution of launch states, and that of proposals from each."""
        choices = list(product((0, 1), repeat=len(order)))
        step = np.array([[scan(i, order, launch, c) for c in choices] for launch in choices])
        start = np.array([sequential(i, order, c) for c in choices])
        return choices, start @ np.linalg.matrix_power(step, n_scans), step

    matrix = np.zeros((len(partitions), len(partitions)))
    for row, labels in enumerate(partitions):
        if log_target(labels) == -math.inf:
            continue
        for i in range(n):
            whole = next(cluster for cluster in clusters_of(labels) if i in cluster)
            orders = list(permutations(sorted(whole - {i})))
            for order in orders if len(whole) > 1 else ():
                choices, launches, proposals = divisions(i, order)
                for launch, distribution in zip(launches, proposals, strict=True):
                    for choice, q in zip(choices, distribution, strict=True):
                        sides = sides_of(i, order, choice)
                        if not sides[1]:
                            continue
                        split = [n if member in sides[1] else labels[member] for member in range(n)]
                        new = tuple(canonical_labels(np.array(split)).tolist())
                        ratio = math.exp(log_target(new) - log_target(labels))
                        if flaw != "pairs":
                            ratio *= chances_of_pairs(new)[frozenset(sides)] * n / len(whole)
                        matrix[row, index[new]] += 0.5 / n / len(orders) * launch * min(q, ratio)
        for pair, chance_of_pair in chances_of_pairs(labels).items():
            whole = frozenset().union(*pair)
            joined = [n if member in whole else labels[member] for member in range(n)]
            merged = tuple(canonical_labels(np.array(joined)).tolist())
            ratio = math.exp(log_target(merged) - log_target(labels))
            if flaw != "pairs":
                ratio *= len(whole) / n / chance_of_pair
            for i in sorted(whole):
                orders = list(permutations(sorted(whole - {i})))
                for order in orders:
                    choices, launches, proposals = divisions(i, order)
                    here = choices.index(tuple(int(labels[member] != labels[i]) for member in order))
                    if flaw == "launch":
                        launches = np.linalg.matrix_power(proposals, n_scans)[here]
                    share = 0.5 * chance_of_pair / len(whole) / len(orders)
                    for launch, distribution in zip(launches, proposals, strict=True):
                        q = 1.0 if flaw == "reverse" else distribution[here]
                        matrix[row, index[merged]] += share * launch * min(1.0, ratio * q)
        matrix[row, row] += 1.0 - matrix[row].sum()
    return matrix
