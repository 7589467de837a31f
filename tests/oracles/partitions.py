"""Set partitions by enumeration, and partition priors and losses as naively as they can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations
from math import comb, exp, factorial, log2, perm, prod


def restricted_growth_strings(n: int) -> Iterator[tuple[int, ...]]:
    """All partitions of n observations, each as its canonical label vector."""

    def grow(prefix: tuple[int, ...], n_clusters: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == n:
            yield prefix
            return
        for label in range(n_clusters + 1):
            yield from grow((*prefix, label), max(n_clusters, label + 1))

    return grow((), 0)


def sizes_of(labels: Sequence[int]) -> list[int]:
    return [list(labels).count(label) for label in sorted(set(labels))]


# A rule gives the unnormalized weights of the next seat: (sizes of present clusters) -> existing..., new.
Rule = Callable[[list[int]], list[float]]


def dirichlet_process_rule(concentration: float) -> Rule:
    return lambda sizes: [*map(float, sizes), concentration]


def pitman_yor_rule(concentration: float, discount: float) -> Rule:
    def rule(sizes: list[int]) -> list[float]:
        if not sizes:
            return [1.0]
        return [*(size - discount for size in sizes), concentration + discount * len(sizes)]

    return rule


def finite_dirichlet_rule(n: int, pseudo_count: float) -> Rule:
    return lambda sizes: [*(size + pseudo_count for size in sizes), pseudo_count * (n - len(sizes))]


def finite_mixtures_rule(n_components: dict[int, float], pseudo_count: float) -> Rule:
    """Mixture over the number of components, by summing the probabilities of named components.

    Each partition's probability is a sum over k; a seat's weight is a ratio of two such sums.
    """

    @cache
    def probability(sizes: tuple[int, ...]) -> float:
        total = 0.0
        for k, weight in n_components.items():
            named = float(perm(k, len(sizes)))
            for size in sizes:
                named *= prod(pseudo_count + i for i in range(size))
            total += weight * named / prod(k * pseudo_count + i for i in range(sum(sizes)))
        return total

    def rule(sizes: list[int]) -> list[float]:
        joined = [probability((*sizes[:k], sizes[k] + 1, *sizes[k + 1 :])) for k in range(len(sizes))]
        return [*joined, probability((*sizes, 1))]

    return rule


def shifted_poisson(rate: float, most: int = 120) -> dict[int, float]:
    """Probabilities of 1, 2, ... when what is beyond the first is Poisson."""
    return {k: exp(-rate) * rate ** (k - 1) / factorial(k - 1) for k in range(1, most)}


def sequential_probability(labels: Sequence[int], rule: Rule, order: Sequence[int] | None = None) -> float:
    """Probability of a partition by seating its observations one after another, in any order."""
    probability = 1.0
    clusters: list[int] = []
    sizes: list[int] = []
    for i in range(len(labels)) if order is None else order:
        weights = rule(sizes)
        if labels[i] in clusters:
            seat = clusters.index(labels[i])
            probability *= weights[seat] / sum(weights)
            sizes[seat] += 1
        else:
            probability *= weights[-1] / sum(weights)
            clusters.append(labels[i])
            sizes.append(1)
    return probability


def naive_vi(a: Sequence[int], b: Sequence[int]) -> float:
    """Variation of information H(a | b) + H(b | a) in bits, from the definition."""
    n = len(a)
    total = 0.0
    for x in set(a):
        for y in set(b):
            both = sum(i == x and j == y for i, j in zip(a, b, strict=True)) / n
            if both > 0:
                px, py = list(a).count(x) / n, list(b).count(y) / n
                total -= both * (log2(both / px) + log2(both / py))
    return total


def naive_binder(a: Sequence[int], b: Sequence[int]) -> float:
    """Fraction of pairs on which two partitions disagree, pair by pair."""
    pairs = list(combinations(range(len(a)), 2))
    disagree = sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in pairs)
    return disagree / len(pairs) if pairs else 0.0


def naive_adjusted_rand(a: Sequence[int], b: Sequence[int]) -> float:
    """Hubert & Arabie (1985), pair by pair; 1 where both partitions leave nothing to chance."""
    pairs = list(combinations(range(len(a)), 2))
    together_a = sum(a[i] == a[j] for i, j in pairs)
    together_b = sum(b[i] == b[j] for i, j in pairs)
    both = sum(a[i] == a[j] and b[i] == b[j] for i, j in pairs)
    total = comb(len(a), 2)
    expected = together_a * together_b / total if total else 0.0
    largest = (together_a + together_b) / 2
    return 1.0 if largest == expected else (both - expected) / (largest - expected)


Loss = Callable[[Sequence[int], Sequence[int]], float]


def expected_loss(labels: Sequence[int], draws: Sequence[Sequence[int]], loss: Loss) -> float:
    return sum(loss(labels, draw) for draw in draws) / len(draws)


def optimal_partition(draws: Sequence[Sequence[int]], loss: Loss) -> tuple[tuple[int, ...], float]:
    """Partition of least expected loss, by trying all."""
    candidates = restricted_growth_strings(len(draws[0]))
    return min(((c, expected_loss(c, draws, loss)) for c in candidates), key=lambda pair: pair[1])
