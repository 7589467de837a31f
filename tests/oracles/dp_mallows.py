"""Mixtures of generalized Mallows models on a few short lists: the whole posterior by enumeration.

Partitions and central orderings are summed, decays are integrated numerically; nothing is sampled and no
sampler of the library is called. A list holds item indices, best first, and everything unlisted stands below;
the last item of a full list says nothing and is cut off.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from scipy import integrate, special, stats

from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.partitions import (
    dirichlet_process_rule,
    finite_mixtures_rule,
    pitman_yor_rule,
    restricted_growth_strings,
    sequential_probability,
    shifted_poisson,
    sizes_of,
)
from tests.reference.permutations import stage_code

List = tuple[int, ...]
# Probability of a partition given by its canonical labels.
PartitionRule = Callable[[Sequence[int]], float]
# ln of the integral over one decay, a function of (a, b, m).
Integral = Callable[[float, float, int], float]


# The integral over one decay.


def _partial_integral(a: float, b: float, m: int, upper: float) -> float:
    """∫ q^(a-1) (1 + q + ... + q^m)^-(b-1) dq from 0 to ``upper``, where q = exp(-θ)."""
    value, _ = integrate.quad(
        lambda q: sum(q**i for i in range(m + 1)) ** -(b - 1),
        0.0,
        upper,
        weight="alg",
        wvar=(a - 1, 0.0),
        epsabs=0.0,
        epsrel=1e-12,
        limit=200,
    )
    return value


@cache
def log_integral(a: float, b: float, m: int) -> float:
    """ln ∫ exp(-aθ) ψ_m(θ)^-(b-1) dθ over θ > 0 (equation 14), by quadrature in exp(-θ)."""
    return math.log(_partial_integral(a, b, m, 1.0))


def log_beta(a: float, b: float, m: int) -> float:
    """Broken twin: what the integral tends to for infinitely many items (Lemma 4)."""
    return float(special.betaln(a, b))


def decay_distribution(x: float, a: float, b: float, m: int) -> float:
    """P(θ <= x) for the density proportional to exp(-aθ) ψ_m(θ)^-(b-1)."""
    return 1.0 - _partial_integral(a, b, m, math.exp(-x)) / math.exp(log_integral(a, b, m))


# Distributions of partitions.


def dirichlet_process(concentration: float) -> PartitionRule:
    rule = dirichlet_process_rule(concentration)
    return lambda labels: sequential_probability(labels, rule)


def pitman_yor(concentration: float, discount: float) -> PartitionRule:
    rule = pitman_yor_rule(concentration, discount)
    return lambda labels: sequential_probability(labels, rule)


def mixture_of_finite_mixtures(rate: float, pseudo_count: float) -> PartitionRule:
    """Number of components less one from a Poisson distribution, and summed over."""
    rule = finite_mixtures_rule(shifted_poisson(rate, 60), pseudo_count)
    return lambda labels: sequential_probability(labels, rule)


def gamma_dirichlet_process(shape: float, rate: float) -> PartitionRule:
    """Concentration drawn from a gamma distribution and integrated out."""
    distribution = stats.gamma(shape, scale=1 / rate)

    @cache
    def mean_of_rising_ratio(n: int, n_clusters: int) -> float:
        def term(alpha: float) -> float:
            rising = math.exp(math.lgamma(alpha) - math.lgamma(alpha + n))
            return float(distribution.pdf(alpha)) * alpha**n_clusters * rising

        return integrate.quad(term, 0.0, np.inf, epsabs=0.0, epsrel=1e-10)[0]

    def probability(labels: Sequence[int]) -> float:
        sizes = sizes_of(labels)
        return mean_of_rising_ratio(len(labels), len(sizes)) * math.prod(map(math.gamma, sizes))

    return probability


# One cluster.


@cache
def center_scores(
    lists: tuple[List, ...], n_items: int, strength: float, rates: tuple[float, ...], integral: Integral
) -> np.ndarray:
    """ln p(lists, σ) of one cluster for every central ordering σ, in lexicographic order."""
    scores = []
    for center in permutations(range(n_items)):
        score = -math.lgamma(n_items + 1)
        for j, (total, count) in enumerate(stage_statistics(lists, center)):
            m = n_items - 1 - j
            score += integral(strength * rates[j] + total, strength + count + 1, m)
            score -= integral(strength * rates[j], strength + 1, m)
        scores.append(score)
    return np.array(scores)


def stage_statistics(lists: Sequence[List], center: Sequence[int]) -> list[tuple[int, int]]:
    """Summed codes and number of lists that reach it, for each of the n - 1 stages."""
    codes = [stage_code(ranking, center) for ranking in lists]
    return [
        (sum(code[j] for code in codes if len(code) > j), sum(len(code) > j for code in codes))
        for j in range(len(center) - 1)
    ]


def _normalized(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


# The mixture.


@dataclasses.dataclass(frozen=True)
class Enumeration:
    """Everything that the posterior says about a few top-t lists.

    Agents are the positions in ``lists``. ``integral=log_beta`` makes the broken twin in which Beta(a, b)
    stands for the integral over a decay.
    """

    lists: tuple[List, ...]
    n_items: int
    prior: PartitionRule = dataclasses.field(default_factory=lambda: dirichlet_process(1.0))
    strength: float = 1.0
    rates: float | tuple[float, ...] = 1.0
    integral: Integral = log_integral

    @cached_property
    def observed(self) -> tuple[List, ...]:
        return tuple(self._cut(ranking) for ranking in self.lists)

    @cached_property
    def stage_rates(self) -> tuple[float, ...]:
        if isinstance(self.rates, tuple):
            return self.rates
        return (float(self.rates),) * (self.n_items - 1)

    def _cut(self, ranking: Sequence[int]) -> List:
        return tuple(ranking)[: self.n_items - 1]

    # One cluster.

    def _scores(self, lists: tuple[List, ...]) -> np.ndarray:
        # Sorted, since the order of the members does not matter: fewer different calls.
        return center_scores(
            tuple(sorted(lists)), self.n_items, self.strength, self.stage_rates, self.integral
        )

    def log_marginal(self, lists: Sequence[List]) -> float:
        """ln p(lists | they are one cluster)."""
        return float(special.logsumexp(self._scores(tuple(self._cut(ranking) for ranking in lists))))

    def center_distribution(self, members: Sequence[int]) -> dict[List, float]:
        """Posterior of the center of a cluster of these agents."""
        chances = _normalized(self._scores(tuple(self.observed[i] for i in members)))
        return dict(zip(permutations(range(self.n_items)), chances.tolist(), strict=True))

    def decay_parameters(self, members: Sequence[int], center: Sequence[int], stage: int) -> tuple:
        """(a, b, m) of the posterior of θ at a stage, given the cluster and its center."""
        total, count = stage_statistics([self.observed[i] for i in members], center)[stage]
        return (
            self.strength * self.stage_rates[stage] + total,
            self.strength + count + 1,
            self.n_items - 1 - stage,
        )

    # Partitions.

    @cached_property
    def partitions(self) -> list[tuple[int, ...]]:
        return list(restricted_growth_strings(len(self.lists)))

    @cached_property
    def chances(self) -> np.ndarray:
        """Posterior probability of each of ``partitions``."""
        return _normalized(
            np.array(
                [
                    math.log(self.prior(labels))
                    + sum(
                        self.log_marginal([self.observed[i] for i in members]) for members in blocks(labels)
                    )
                    for labels in self.partitions
                ]
            )
        )

    @cached_property
    def n_clusters(self) -> np.ndarray:
        """P(K clusters), K = 0, 1, ..., number of lists."""
        counts = [max(labels) + 1 for labels in self.partitions]
        return np.bincount(counts, weights=self.chances)

    @cached_property
    def together(self) -> np.ndarray:
        """P(agents i and j are in one cluster)."""
        labels = np.array(self.partitions)
        return np.einsum("p,pij->ij", self.chances, labels[:, :, None] == labels[:, None, :])

    # Partitions with what belongs to their clusters.

    def joint(self) -> Iterator[tuple[tuple[int, ...], tuple[List, ...], float]]:
        """(labels, centers by label, probability), all of them; (n!)^K for a partition into K."""
        for labels, chance in zip(self.partitions, self.chances, strict=True):
            distributions = [self.center_distribution(members).items() for members in blocks(labels)]
            for choice in product(*distributions):
                centers, parts = zip(*choice, strict=True)
                yield labels, centers, float(chance) * math.prod(parts)

    def center_of(self, agent: int) -> dict[List, float]:
        """Posterior of the center of the cluster that holds an agent."""
        distribution = dict.fromkeys(permutations(range(self.n_items)), 0.0)
        for labels, chance in zip(self.partitions, self.chances, strict=True):
            for center, part in self.center_distribution(blocks(labels)[labels[agent]]).items():
                distribution[center] += float(chance) * part
        return distribution

    def decay_of(self, agent: int, stage: int) -> Callable[[float], float]:
        """Distribution function of θ at a stage in the cluster that holds an agent."""
        mixture: dict[tuple, float] = {}
        for labels, chance in zip(self.partitions, self.chances, strict=True):
            members = blocks(labels)[labels[agent]]
            for center, part in self.center_distribution(members).items():
                key = self.decay_parameters(members, center, stage)
                mixture[key] = mixture.get(key, 0.0) + float(chance) * part
        return lambda x: sum(weight * decay_distribution(x, *key) for key, weight in mixture.items())

    # Prediction.

    def predictive(self, ranking: Sequence[int]) -> float:
        """P(the next agent states this list, given that it states as many items)."""
        new = self._cut(ranking)
        total = 0.0
        for labels, chance in zip(self.partitions, self.chances, strict=True):
            present = self.prior(labels)
            for seat, members in enumerate([*blocks(labels), ()]):
                # Distributions of partitions are consistent, so their ratio is the probability of the seat.
                seated = self.prior((*labels, seat)) / present
                lists = [self.observed[i] for i in members]
                before = self.log_marginal(lists) if lists else 0.0
                total += float(chance) * seated * math.exp(self.log_marginal([*lists, new]) - before)
        return total

    def predictive_distribution(self, length: int) -> dict[List, float]:
        """Probability of every list of a length; they sum to one."""
        return {ranking: self.predictive(ranking) for ranking in permutations(range(self.n_items), length)}

    def next_item(self, start: Sequence[int]) -> np.ndarray:
        """P(the item stated after ``start``), zero for the items in it."""
        beginning = self.predictive(start) if start else 1.0
        chances = np.zeros(self.n_items)
        for item in set(range(self.n_items)) - set(start):
            chances[item] = self.predictive((*start, item)) / beginning
        return chances


def blocks(labels: Sequence[int]) -> list[tuple[int, ...]]:
    """Members of each cluster of a canonical label vector."""
    return [tuple(i for i, label in enumerate(labels) if label == k) for k in range(max(labels) + 1)]


# Chains against distributions.


def visit_frequencies(visits: np.ndarray, n_outcomes: int, n_batches: int = 50) -> tuple[np.ndarray, float]:
    """Frequencies of the outcomes of a chain, and how many independent draws they are worth.

    The latter by batch means: variance of an independent draw over that of the batches, the median over
    outcomes with more than 2 %.
    """
    visits = np.asarray(visits)[: len(visits) // n_batches * n_batches]
    frequencies = np.bincount(visits, minlength=n_outcomes) / len(visits)
    common = np.flatnonzero(frequencies > 0.02)
    p = frequencies[common]
    batches = visits.reshape(n_batches, -1)
    variances = np.stack([(batches == k).mean(axis=1) for k in common]).var(axis=1, ddof=1)
    n_effective = float(np.median(p * (1 - p) / variances)) * n_batches
    return frequencies, min(n_effective, float(len(visits)))


class Gap(NamedTuple):
    """Distance of a chain from the exact distribution, and what an exact chain exceeds once in a million."""

    distance: float
    bound: float
    n_effective: float


def gaps(enumeration: Enumeration, draws: Iterable[tuple], agent: int = 0) -> dict[str, Gap]:
    """How far the draws (labels, centers by label, decays by label) of a chain are from the posterior.

    ``"partition"`` and ``"center"`` (of the cluster that holds ``agent``) in total variation,
    ``"decay j"`` (of the same cluster, stages that draws have) between distribution functions.
    """
    partitions = {labels: k for k, labels in enumerate(enumeration.partitions)}
    distribution = enumeration.center_of(agent)
    orders = {order: k for k, order in enumerate(distribution)}
    visits, centers, decays = [], [], []
    for labels, center_by_label, theta_by_label in draws:
        names = list(dict.fromkeys(labels))
        visits.append(partitions[tuple(names.index(label) for label in labels)])
        centers.append(orders[tuple(map(int, center_by_label[labels[agent]]))])
        decays.append(np.array(theta_by_label[labels[agent]]))
    found = {}
    for name, seen, exact in (
        ("partition", visits, enumeration.chances),
        ("center", centers, np.array(list(distribution.values()))),
    ):
        frequencies, n_effective = visit_frequencies(np.array(seen), len(exact))
        bound = total_variation_bound(exact, n_effective)
        found[name] = Gap(total_variation(frequencies, exact), bound, n_effective)
    for j, theta in enumerate(np.array(decays).T):
        cdf = enumeration.decay_of(agent, j)
        probes = np.quantile(theta, np.linspace(0.01, 0.99, 50))
        empirical = np.searchsorted(np.sort(theta), probes, side="right") / len(theta)
        distance = float(np.abs(empirical - [cdf(x) for x in probes]).max())
        # Correlation of the quarter of its range that a decay falls into.
        quarters = np.searchsorted(np.quantile(theta, [0.25, 0.5, 0.75]), theta)
        _, n_effective = visit_frequencies(quarters, 4)
        found[f"decay {j}"] = Gap(distance, kolmogorov_bound(n_effective), n_effective)
    return found


def kolmogorov_bound(n_effective: float, failure: float = 1e-6) -> float:
    """Distance of an empirical distribution function that independent draws exceed with this probability.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant.
    """
    return math.sqrt(math.log(2 / failure) / (2 * n_effective))
