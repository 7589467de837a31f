"""The permutation-augmented sampler (Liang, Jordan & Taskar 2007) by enumeration.

A clustering is a tuple of canonical labels; an order is a tuple of points; a clustering is consistent with
an order when it cuts it into contiguous segments, so a segment is a tuple of points in the order in which
they stand. With a prior whose probability factorises and a distribution p(order | clustering) that does,

    p(clustering, order, x) = exp(head(K)) Π over segments of exp(segment score),

which is all that the dynamic programs need. Everything here is written for clarity and n <= 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from permix.families import Family
from permix.partitions import DirichletProcess, Gamma
from permix.partitions.priors import PartitionPrior
from tests.oracles.mixtures import naive_marginal, naive_predictive
from tests.oracles.partitions import restricted_growth_strings, sizes_of

Labels = tuple[int, ...]
Order = tuple[int, ...]
Segment = tuple[int, ...]
Distribution = dict[Labels, float]

# How the next clustering is drawn given an order and the present one; how an order is drawn.
Step = Callable[[Order, Labels], Distribution]
OrderDistribution = Callable[[Labels], dict[Order, float]]

# ln score of the segment that holds positions first ... last of an order.
Score = Callable[[int, int], float]

# --- clusterings and orders ---------------------------------------------------------------------


def segmentations(order: Sequence[int]) -> Iterator[list[Segment]]:
    """All 2^(n-1) ways to cut an order into contiguous segments."""
    n = len(order)
    for cuts in range(2 ** (n - 1)):
        ends = [r + 1 for r in range(n - 1) if cuts >> r & 1] + [n]
        yield [tuple(order[first:end]) for first, end in zip([0, *ends], ends, strict=False)]


def labels_of(segments: Sequence[Segment]) -> Labels:
    """Canonical labels of the clustering that the segments make."""
    cluster = {i: k for k, segment in enumerate(segments) for i in segment}
    names: dict[int, int] = {}
    return tuple(names.setdefault(cluster[i], len(names)) for i in sorted(cluster))


def consistent_clusterings(order: Sequence[int]) -> list[Labels]:
    return [labels_of(segments) for segments in segmentations(order)]


def segments_of(labels: Labels, order: Order) -> list[Segment] | None:
    """The segments into which a clustering cuts an order; None when it is not consistent with it."""
    segments: list[list[int]] = []
    for i in order:
        if segments and labels[segments[-1][0]] == labels[i]:
            segments[-1].append(i)
        else:
            segments.append([i])
    if len(segments) > max(labels) + 1:
        return None
    return [tuple(segment) for segment in segments]


def consistent_orders(labels: Labels) -> list[Order]:
    return [order for order in permutations(range(len(labels))) if segments_of(labels, order) is not None]


# --- the dynamic programs -----------------------------------------------------------------------


def counted_program(n: int, score: Score) -> np.ndarray:
    """ln g(r, K), the sum over clusterings of the first r points with K clusters; shape (n + 1, n + 1)."""
    g = np.full((n + 1, n + 1), -np.inf)
    g[0, 0] = 0.0
    for r in range(1, n + 1):
        for k in range(1, r + 1):
            g[r, k] = logsumexp([g[r - m, k - 1] + score(r - m, r - 1) for m in range(1, r + 1)])
    return g


def counted_distribution(n: int, score: Score, head: Callable[[int], float]) -> dict[tuple[int, ...], float]:
    """Probability of each vector of first positions when the counted program is followed backwards."""
    g = counted_program(n, score)
    counts = np.array([head(k) + g[n, k] for k in range(1, n + 1)])
    counts = np.exp(counts - logsumexp(counts))

    def draw(r: int, k: int) -> Iterator[tuple[tuple[int, ...], float]]:
        if r == 0:
            yield (), 1.0
            return
        for first in range(r):
            probability = math.exp(g[first, k - 1] + score(first, r - 1) - g[r, k])
            if probability > 0.0:
                for rest, other in draw(first, k - 1):
                    yield (*rest, first), probability * other

    distribution: dict[tuple[int, ...], float] = {}
    for k in range(1, n + 1):
        if counts[k - 1] > 0.0:
            distribution.update({firsts: counts[k - 1] * probability for firsts, probability in draw(n, k)})
    return distribution


class Program(NamedTuple):
    """What a program without counts leaves: ln g(r), and the first positions weighed at each last one."""

    log_sums: np.ndarray
    candidates: list[list[int]]


def linear_program(n: int, score: Score) -> Program:
    """ln g(r), the sum over all clusterings of the first r points (equation 6)."""
    g = np.zeros(n + 1)
    for r in range(1, n + 1):
        g[r] = logsumexp([g[first] + score(first, r - 1) for first in range(r)])
    return Program(g, [list(range(r + 1)) for r in range(n)])


def beam_program(n: int, score: Score, width: int, tolerance: float, present: Sequence[int] = ()) -> Program:
    """The same with few candidates (section 3.3).

    Position r weighs what position r - 1 kept and the segment that starts at r. Kept are the smallest set
    that leaves out no more than ``tolerance`` of their sum, and of those the ``width`` largest; of equals
    the earlier start goes first. The segments that start at the positions ``present`` go before all others.
    """
    g = np.zeros(n + 1)
    kept: list[int] = []
    candidates = []
    for r in range(n):
        weighed = [*kept, r]
        terms = np.array([g[first] + score(first, r) for first in weighed])
        g[r + 1] = logsumexp(terms)
        shares = np.exp(terms - g[r + 1])
        staying = max((first for first in present if first <= r), default=-1)
        ranked = sorted(range(len(weighed)), key=lambda c: (weighed[c] != staying, -terms[c], weighed[c]))
        left_out = shares[ranked[-1]]
        while len(ranked) > 1 and left_out <= tolerance:
            ranked.pop()
            left_out += shares[ranked[-1]]
        kept = sorted(weighed[c] for c in ranked[:width])
        candidates.append(weighed)
    return Program(g, candidates)


def program_distribution(n: int, score: Score, program: Program) -> dict[tuple[int, ...], float]:
    """Probability of each vector of first positions when a program is followed backwards."""

    def draw(r: int) -> Iterator[tuple[tuple[int, ...], float]]:
        if r == 0:
            yield (), 1.0
            return
        for first in program.candidates[r - 1]:
            probability = math.exp(program.log_sums[first] + score(first, r - 1) - program.log_sums[r])
            for rest, other in draw(first):
                yield (*rest, first), probability * other

    return dict(draw(n))


# --- the augmented model ------------------------------------------------------------------------


class Augmented:
    """Data, family, prior and distribution of orders (``uniform`` or ``markov``); all sums by enumeration."""

    def __init__(self, family: Family, X: np.ndarray, prior: PartitionPrior, order: str = "uniform") -> None:
        self.family, self.X, self.prior, self.n = family, X, prior, len(X)
        self.order = order
        self.marginal = cache(self._marginal)
        self.log_target = cache(self._log_target)
        self.log_joint = cache(self._log_joint)
        self.log_within = cache(self._log_within)
        self.log_size_weight = cache(self._log_size_weight)
        self.head = cache(self._head)
        self.order_distribution = cache(self._order_distribution)
        self.exact_distribution = cache(self._exact_distribution)
        self.proposal_distribution = cache(self._proposal_distribution)

    def _marginal(self, points: frozenset[int]) -> float:
        return naive_marginal(self.family, self.X[sorted(points)])

    @cached_property
    def partitions(self) -> list[Labels]:
        return list(restricted_growth_strings(self.n))

    @cached_property
    def orders(self) -> list[Order]:
        return list(permutations(range(self.n)))

    def _log_target(self, labels: Labels) -> float:
        """ln p(C) p(x | C)."""
        clusters = [frozenset(np.flatnonzero(np.array(labels) == k).tolist()) for k in range(max(labels) + 1)]
        return self.prior.log_prob(labels) + sum(map(self.marginal, clusters))

    @cached_property
    def posterior(self) -> np.ndarray:
        return normalized([self.log_target(labels) for labels in self.partitions])

    # p(order | clustering)

    @cached_property
    def log_steps(self) -> np.ndarray:
        """ln p(x_j | x_i) of a point given the previous one alone."""
        predictive = naive_predictive(self.family)
        return np.array([[predictive(x, self.X[i : i + 1]) for x in self.X] for i in range(self.n)])

    def _log_within(self, segment: Segment) -> float:
        """ln probability of the points of a cluster standing in this order."""
        if self.order == "uniform":
            return -math.lgamma(len(segment) + 1)
        total = -math.log(len(segment))
        for place in range(1, len(segment)):
            options = self.log_steps[segment[place - 1]][list(segment[place:])]
            total += options[0] - logsumexp(options)
        return float(total)

    def log_order(self, order: Order, labels: Labels) -> float:
        """ln p(order | clustering): clusters in uniformly random order, then the points of each."""
        segments = segments_of(labels, order)
        if segments is None:
            return -math.inf
        return sum(map(self.log_within, segments)) - math.lgamma(len(segments) + 1)

    def _log_joint(self, labels: Labels, order: Order) -> float:
        return self.log_target(labels) + self.log_order(order, labels)

    # the factors that the programs use

    def _log_size_weight(self, size: int) -> float:
        """ln of the factor of p(C) that belongs to one cluster."""
        return float(sum(self.prior.sequential_log_weights([m], normalized=False)[0] for m in range(1, size)))

    def _head(self, n_clusters: int) -> float:
        """ln of what depends on the number of clusters alone, p(order | clustering) included."""
        return self.prior_head(n_clusters) - math.lgamma(n_clusters + 1)

    def prior_head(self, n_clusters: int) -> float:
        """Like :meth:`head` without p(order | clustering)."""
        sizes = [self.n - n_clusters + 1] + [1] * (n_clusters - 1)
        return self.prior.log_prob(np.repeat(range(n_clusters), sizes)) - self.log_size_weight(sizes[0])

    def segment_score(self, segment: Segment, weighted: bool = True) -> float:
        """ln B(c) without head and slope; not ``weighted``: without p(order | clustering) either."""
        score = self.log_size_weight(len(segment)) + self.marginal(frozenset(segment))
        return score + self.log_within(segment) if weighted else score

    def scores(self, order: Order, slope: float = 0.0, weighted: bool = True) -> Score:
        return cache(lambda first, last: slope + self.segment_score(order[first : last + 1], weighted))

    def slope_at(self, n_clusters: int) -> float:
        """Slope of ``head`` at a number of clusters: ln α - Ψ(K + 1), or a difference for other priors."""
        if isinstance(self.prior, DirichletProcess) and isinstance(self.prior.concentration, float):
            return math.log(self.prior.concentration) - float(digamma(n_clusters + 1))
        k = min(n_clusters, self.n - 1)
        above = self.head(k + 1)
        return above - self.head(k) if math.isfinite(above) else self.slope_at(k - 1)

    # p(clustering | order, x) and what stands for it; a distribution lists the consistent clusterings

    def _exact_distribution(self, order: Order) -> Distribution:
        """Return p(C | order, x) by brute force."""
        return brute_distribution(order, lambda labels: self.log_joint(labels, order))

    def unweighted_distribution(self, order: Order) -> Distribution:
        """Proportional to p(C) p(x | C): what the hill-climber draws from."""
        return brute_distribution(order, self.log_target)

    def _proposal_distribution(
        self, order: Order, slope: float, width: int | None, tolerance: float
    ) -> Distribution:
        """The proposal: head(K) replaced by slope × K, over all or over the beam's candidates."""
        score = self.scores(order, slope)
        program = (
            linear_program(self.n, score) if width is None else beam_program(self.n, score, width, tolerance)
        )
        distribution = program_distribution(self.n, score, program)
        return {labels_at(order, firsts): probability for firsts, probability in distribution.items()}

    # chains

    def transition_matrix(
        self, step: Callable[[Order, Labels], Distribution], orders: OrderDistribution | None = None
    ) -> np.ndarray:
        """Rows: draw an order given the clustering, then let ``step`` draw the next clustering."""
        index = {labels: row for row, labels in enumerate(self.partitions)}
        matrix = np.zeros((len(index), len(index)))
        for labels, row in index.items():
            for order, probability in (orders or self.order_distribution)(labels).items():
                for new, share in step(order, labels).items():
                    matrix[row, index[new]] += probability * share
        return matrix

    def _order_distribution(self, labels: Labels) -> dict[Order, float]:
        return {order: math.exp(self.log_order(order, labels)) for order in consistent_orders(labels)}

    def exact_step(self, order: Order, labels: Labels) -> Distribution:
        return self.exact_distribution(order)

    def metropolis_step(
        self, order: Order, labels: Labels, slope: float, width: int | None = None, tolerance: float = 0.0
    ) -> Distribution:
        """Propose from the slope's distribution; accept by Metropolis; refuse from outside the beam."""
        proposal = self.proposal_distribution(order, slope, width, tolerance)
        if labels not in proposal:
            return {labels: 1.0}
        return self._accepted(order, labels, proposal)

    def _accepted(self, order: Order, labels: Labels, proposal: Distribution) -> Distribution:
        distribution = dict.fromkeys(proposal, 0.0)
        here = self.log_joint(labels, order) - math.log(proposal[labels])
        for new, probability in proposal.items():
            there = self.log_joint(new, order) - math.log(probability)
            accept = math.exp(min(0.0, there - here)) if math.isfinite(here) else 1.0
            distribution[new] += probability * accept
            distribution[labels] += probability * (1.0 - accept)
        return distribution

    # chains that are wrong

    def uncorrected_step(
        self, order: Order, labels: Labels, slope: float, width: int | None = None, tolerance: float = 0.0
    ) -> Distribution:
        """Take every proposal."""
        return self.proposal_distribution(order, slope, width, tolerance)

    def adapting_step(self, order: Order, labels: Labels) -> Distribution:
        """Take the slope at the present number of clusters, the same both ways in the ratio."""
        return self.metropolis_step(order, labels, self.slope_at(max(labels) + 1))

    def escaping_step(
        self, order: Order, labels: Labels, slope: float, width: int, tolerance: float = 0.0
    ) -> Distribution:
        """Accept everything from outside the beam."""
        proposal = self.proposal_distribution(order, slope, width, tolerance)
        return self._accepted(order, labels, proposal) if labels in proposal else proposal

    def unweighted_step(self, order: Order, labels: Labels) -> Distribution:
        """Forget p(order | clustering) when drawing the clustering."""
        return self.unweighted_distribution(order)


def projection_orders(X: np.ndarray, labels: Labels) -> dict[Order, float]:
    """Distribution of the order by random projection of points in a plane (section 4.2), where it changes.

    Clusters are sorted by the projection of their means, points within a cluster by their own.
    """
    members = [np.flatnonzero(np.array(labels) == k) for k in range(max(labels) + 1)]
    means = np.array([X[cluster].mean(axis=0) for cluster in members])
    groups = [means, *(X[cluster] for cluster in members)]
    turns = [
        (math.atan2(*(group[a] - group[b])[::-1]) + quarter) % (2 * math.pi)
        for group in groups
        for a in range(len(group))
        for b in range(len(group))
        for quarter in (math.pi / 2, -math.pi / 2)
        if a != b
    ]
    edges = sorted({0.0, *turns, 2 * math.pi})
    distribution: dict[Order, float] = {}
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        direction = np.array([math.cos(middle), math.sin(middle)])
        order = tuple(
            int(i)
            for k in np.argsort(means @ direction)
            for i in members[k][np.argsort(X[members[k]] @ direction)]
        )
        distribution[order] = distribution.get(order, 0.0) + (high - low) / (2 * math.pi)
    return distribution


# --- small things -------------------------------------------------------------------------------


def normalized(log_weights: Sequence[float]) -> np.ndarray:
    weights = np.array(log_weights)
    return np.exp(weights - logsumexp(weights))


def brute_distribution(order: Order, log_weight: Callable[[Labels], float]) -> Distribution:
    clusterings = consistent_clusterings(order)
    return dict(zip(clusterings, normalized([log_weight(labels) for labels in clusterings]), strict=True))


def labels_at(order: Order, firsts: Sequence[int]) -> Labels:
    """The clustering whose segments start at these positions of an order."""
    ends = [*firsts[1:], len(order)]
    return labels_of([order[first:end] for first, end in zip(firsts, ends, strict=True)])


def log_mean_of_power(gamma: Gamma, k: float, n: int) -> float:
    """ln E[α^k / (α (α + 1) ... (α + n - 1))] for n >= 1 by a sum over a fine, wide grid of ln α."""
    step = 1 / 1024
    t = step * np.arange(-250 * 1024, 30 * 1024)
    alpha = np.exp(t)
    log_prior = gamma.shape * (t + math.log(gamma.rate)) - gamma.rate * alpha - math.lgamma(gamma.shape)
    log_power = (k - 1) * t - (gammaln(alpha + n) - gammaln(alpha + 1.0))
    return float(logsumexp(log_prior + log_power)) + math.log(step)


def n_consistent_orders(labels: Labels) -> int:
    """|C|! Π |c|!, equation 3."""
    sizes = sizes_of(labels)
    return math.factorial(len(sizes)) * math.prod(map(math.factorial, sizes))
