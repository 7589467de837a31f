"""Dirichlet-process mixtures of generalized Mallows models in plain NumPy: slow, and meant to be read.

Three samplers over the same state: ``Exact`` (decays integrated over finitely many items, centers moved by
kernels that leave their distribution invariant), and ``BetaGibbs`` and ``SliceGibbs`` as Meilă & Chen (2010)
publish them in figures 1 to 5. Clusters keep the dense matrices R_j of equation 5.

Where the figures leave something open: a cluster that Beta-Gibbs has just started has no θ, and gets one
from equation 12 when it is first needed; a cluster that Slice-Gibbs has just started begins from a θ drawn
from the prior for infinitely many items; a slice is found with steps of width 1.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

# Distributions of one decay: density proportional to exp(-aθ) ψ_m(θ)^-c over θ > 0.

COARSE_LOGS = np.linspace(-60.0, 12.0, 721)


def log_psi(theta, m):
    """ln(1 + exp(-θ) + ... + exp(-mθ))."""
    return np.log(np.expm1(-(m + 1) * theta) / np.expm1(-theta))


@cache
def coarse_log_psi(m):
    return log_psi(np.exp(COARSE_LOGS), m)


def density_in_log_theta(a, c, m, n_points):
    """Grid in x = ln θ over all that matters, and the log density of x there."""
    coarse = COARSE_LOGS - a * np.exp(COARSE_LOGS) - c * coarse_log_psi(m)
    inside = np.flatnonzero(coarse > coarse.max() - 40)
    low, high = max(inside[0] - 1, 0), min(inside[-1] + 1, len(COARSE_LOGS) - 1)
    x = np.linspace(COARSE_LOGS[low], COARSE_LOGS[high], n_points)
    return x, x - a * np.exp(x) - c * log_psi(np.exp(x), m)


@lru_cache(maxsize=1_000_000)
def log_finite_beta(a, b, m):
    """ln ∫ exp(-aθ) ψ_m(θ)^-(b-1) dθ (equation 14), by the trapezoidal rule in ln θ."""
    x, log_density = density_in_log_theta(a, b - 1, m, 200)
    peak = log_density.max()
    return float(peak + np.log(np.exp(log_density - peak).sum() * (x[1] - x[0])))


def draw_theta(rng, a, b, m):
    """θ from its distribution, by inverting the distribution function on a fine grid in ln θ."""
    x, log_density = density_in_log_theta(a, b - 1, m, 2000)
    heights = np.exp(log_density - log_density.max())
    areas = np.concatenate([[0.0], np.cumsum(heights[1:] + heights[:-1])])
    return math.exp(np.interp(rng.random() * areas[-1], areas, x))


def log_beta(a, b, m):
    """What Meilă & Chen take for the integral: its limit for infinitely many items, whatever m."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


# Moves of a center given W = Σ_j θ_j R_j. W[i, k] is what it costs that k stands before i, so a center has
# probability ∝ exp(-cost).


def stagewise_draw(rng, W):
    """Sample-σ-Stagewise (figure 2)."""
    left = list(range(len(W)))
    order = []
    while left:
        rho = W[np.ix_(left, left)].sum(axis=0)
        order.append(left.pop(choose(rng, -rho)))
    return order


def stagewise_log_normalizers(W, order):
    """Σ_j ln Σ_k exp(-ρ_k): ln of exp(-cost) over the probability that stagewise draws have."""
    total = 0.0
    for j in range(len(order)):
        left = order[j:]
        rho = W[np.ix_(left, left)].sum(axis=0)
        total += np.logaddexp.reduce(-rho)
    return float(total)


def stagewise_metropolis(rng, W, order):
    """Stagewise draw as an independence proposal; the ratio makes up for Lemma 2."""
    proposal = stagewise_draw(rng, W)
    log_ratio = stagewise_log_normalizers(W, proposal) - stagewise_log_normalizers(W, order)
    return proposal if math.log(1 - rng.random()) < log_ratio else order


def reinsertion_scores(W, rest, item):
    """Log weights of the places 0 ... n - 1 of ``item`` among the others."""
    passed = np.concatenate([[0.0], np.cumsum(W[item, rest])])
    still_ahead = W[rest, item].sum() - np.concatenate([[0.0], np.cumsum(W[rest, item])])
    return -(passed + still_ahead)


def reinsertion_gibbs(rng, W, order):
    """Take each item out in turn and put it back by its exact conditional."""
    for item in rng.permutation(len(order)).tolist():
        rest = [other for other in order if other != item]
        place = choose(rng, reinsertion_scores(W, rest, item))
        order = [*rest[:place], item, *rest[place:]]
    return order


def choose(rng, log_weights):
    log_weights = np.asarray(log_weights)
    cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


# State.


class Cluster:
    """Sufficient statistics of some lists, a center, and decays."""

    def __init__(self, n_items, n_stages, center):
        self.size = 0
        self.R = np.zeros((n_stages, n_items, n_items))  # equation 6
        self.counts = np.zeros(n_stages, dtype=int)  # N_j
        self.theta = None
        self.set_center(center)

    def set_center(self, center):
        self.center = list(center)
        self.ranks = np.argsort(self.center)
        after = self.ranks[:, None] > self.ranks[None, :]
        self.codes = (self.R * after).sum(axis=(1, 2)).astype(int)  # S_j = L_σ(R_j)

    def code(self, ranking):
        """s_j(π | σ) for each stage of the list."""
        ranks = self.ranks[ranking]
        earlier = np.tri(len(ranking), k=-1, dtype=bool)
        return ranks - (earlier & (ranks[None, :] < ranks[:, None])).sum(axis=1)

    def add(self, ranking, times=1):
        below = np.ones(self.R.shape[1])
        for j, item in enumerate(ranking):
            below[item] = 0
            self.R[j, item] += times * below
        t = len(ranking)
        self.codes[:t] += times * self.code(ranking)
        self.counts[:t] += times
        self.size += times


class Sampler:
    """What the three samplers share: visiting the rankings one by one."""

    def __init__(
        self,
        rng,
        rankings,
        n_items,
        concentration=1.0,
        discount=0.0,
        strength=1.0,
        rates=1.0,
        n_initial_clusters=1,
    ):
        self.rng = rng
        self.n = n_items
        self.rankings = [np.asarray(ranking)[: n_items - 1] for ranking in rankings]
        self.n_stages = max(map(len, self.rankings))
        self.concentration, self.discount = concentration, discount
        self.strength = strength
        self.rates = np.broadcast_to(np.asarray(rates, dtype=float), self.n_stages)
        self.clusters = [
            Cluster(n_items, self.n_stages, rng.permutation(n_items)) for _ in range(n_initial_clusters)
        ]
        self.labels = rng.integers(n_initial_clusters, size=len(self.rankings))
        for label, ranking in zip(self.labels, self.rankings, strict=True):
            self.clusters[label].add(ranking)
        for k in reversed(range(n_initial_clusters)):
            if self.clusters[k].size == 0:
                self.drop(k)
        for cluster in self.clusters:
            cluster.theta = self.random_theta()

    def random_theta(self):
        """From the prior for infinitely many items (equation 12 without data)."""
        return -np.log(self.rng.beta(self.strength * self.rates, self.strength + 1))

    def parameters(self, cluster, j):
        """a, b and m of the distribution of θ_j."""
        a = self.strength * self.rates[j] + cluster.codes[j]
        return float(a), float(self.strength + cluster.counts[j] + 1), self.n - 1 - j

    def sweep(self):
        for i in range(len(self.rankings)):
            self.visit(i)
        for cluster in self.clusters:
            self.update(cluster)

    def visit(self, i):
        self.leave(i)
        k = choose(self.rng, self.seat_scores(self.rankings[i]))
        if k == len(self.clusters):
            self.clusters.append(self.start(self.rankings[i]))
        else:
            self.clusters[k].add(self.rankings[i])
        self.labels[i] = k

    def leave(self, i):
        k = self.labels[i]
        self.clusters[k].add(self.rankings[i], times=-1)
        if self.clusters[k].size == 0:
            self.drop(k)

    def drop(self, k):
        del self.clusters[k]
        self.labels[self.labels > k] -= 1

    def seat_scores(self, ranking):
        """Log weights of the present clusters and, last, of a new one (Lemma 1)."""
        scores = [
            math.log(cluster.size - self.discount) + self.log_predictive(cluster, ranking)
            for cluster in self.clusters
        ]
        new = math.log(self.concentration + self.discount * len(self.clusters))
        new += math.lgamma(self.n - len(ranking) + 1) - math.lgamma(self.n + 1)
        return [*scores, new]

    def one_list_center(self, ranking, log_integral):
        """Sample-σ-N1 (figure 4): a center for a single list."""
        order = [-1] * self.n
        for j, item in enumerate(ranking):
            a, b = self.strength * self.rates[j], self.strength + 2
            scores = [log_integral(float(a + v), b, self.n - 1 - j) for v in range(self.n - j)]
            free = [place for place in range(self.n) if order[place] < 0]
            order[free[choose(self.rng, scores)]] = int(item)
        others = iter(self.rng.permutation(sorted(set(range(self.n)) - set(ranking.tolist()))).tolist())
        return [next(others) if item < 0 else item for item in order]

    def cost_matrix(self, cluster):
        return np.tensordot(cluster.theta, cluster.R, axes=1)


class Exact(Sampler):
    """Target: p(partition, centers) with θ integrated out; θ lives while centers move."""

    def log_predictive(self, cluster, ranking):
        """Lemma 6."""
        total = 0.0
        for j, s in enumerate(cluster.code(ranking).tolist()):
            a, b, m = self.parameters(cluster, j)
            total += log_finite_beta(a + s, b + 1, m) - log_finite_beta(a, b, m)
        return total

    def start(self, ranking):
        cluster = Cluster(self.n, self.n_stages, self.one_list_center(ranking, log_finite_beta))
        cluster.add(ranking)
        return cluster

    def update(self, cluster):
        cluster.theta = np.array(
            [draw_theta(self.rng, *self.parameters(cluster, j)) for j in range(self.n_stages)]
        )
        W = self.cost_matrix(cluster)
        order = stagewise_metropolis(self.rng, W, cluster.center)
        cluster.set_center(reinsertion_gibbs(self.rng, W, order))


class BetaGibbs(Sampler):
    """Figure 5: Beta(a, b) for the integral over a decay, stagewise draws taken as exact."""

    n_gibbs = 10

    def log_predictive(self, cluster, ranking):
        total = 0.0
        for j, s in enumerate(cluster.code(ranking).tolist()):
            a, b, m = self.parameters(cluster, j)
            total += log_beta(a + s, b + 1, m) - log_beta(a, b, m)
        return total

    def start(self, ranking):
        center = self.one_list_center(ranking, log_beta)
        cluster = Cluster(self.n, self.n_stages, center)
        cluster.add(ranking)
        return cluster

    def beta_theta(self, cluster):
        """Equation 12."""
        a = self.strength * self.rates + cluster.codes
        return -np.log(self.rng.beta(a, self.strength + cluster.counts + 1))

    def update(self, cluster):
        if cluster.size == 1:
            ranking = self.rankings[np.flatnonzero(self.labels == self.clusters.index(cluster))[0]]
            cluster.set_center(self.one_list_center(ranking, log_beta))
            return
        if cluster.theta is None:
            cluster.theta = self.beta_theta(cluster)
        for _ in range(self.n_gibbs):
            cluster.set_center(stagewise_draw(self.rng, self.cost_matrix(cluster)))
            cluster.theta = self.beta_theta(cluster)


class SliceGibbs(Sampler):
    """Figure 1: centers and decays of all clusters are part of the state."""

    n_gibbs = 10
    n_slices = 3

    def log_predictive(self, cluster, ranking):
        """Equation 2."""
        stages = range(len(ranking))
        normalizer = sum(log_psi(cluster.theta[j], self.n - 1 - j) for j in stages)
        return -float(np.dot(cluster.theta[: len(ranking)], cluster.code(ranking)) + normalizer)

    def start(self, ranking):
        cluster = Cluster(self.n, self.n_stages, self.rng.permutation(self.n))
        cluster.add(ranking)
        cluster.theta = self.random_theta()
        self.update(cluster)
        return cluster

    def update(self, cluster):
        for _ in range(self.n_gibbs):
            cluster.set_center(stagewise_draw(self.rng, self.cost_matrix(cluster)))
            for j in range(self.n_stages):
                for _ in range(self.n_slices):
                    cluster.theta[j] = self.slice_step(cluster.theta[j], *self.parameters(cluster, j))

    def slice_step(self, theta, a, b, m, width=1.0):
        """Sample-θ-Slice (figure 3): step out, then shrink (Neal 2003); θ > 0."""

        def log_density(x):
            return -a * x - (b - 1) * log_psi(x, m) if x > 0 else -math.inf

        level = log_density(theta) + math.log(1 - self.rng.random())
        low = theta - width * self.rng.random()
        high = low + width
        while log_density(low) > level:
            low -= width
        while log_density(high) > level:
            high += width
        while True:
            x = low + (high - low) * self.rng.random()
            if log_density(x) > level:
                return x
            low, high = (x, high) if x < theta else (low, x)


SAMPLERS = {"exact": Exact, "beta-gibbs": BetaGibbs, "slice-gibbs": SliceGibbs}
