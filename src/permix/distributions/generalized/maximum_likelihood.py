"""Maximum likelihood for one generalized Mallows model: center and decays together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import whole_number
from permix.distributions.generalized.center_search_jit import profile, search_centers
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.distributions.generalized.list_statistics import list_statistics, top_lists
from permix.distributions.generalized.list_statistics_jit import (
    ListStatistics,
    dense_counts,
    pair_costs,
    skip_totals,
)
from permix.kernels.kemeny_search import fill_best_order_compiled, iterated_local_search
from permix.runtime.seeds import RandomState, generator

# Named items up to which the best center for given decays is found by dynamic programming over subsets.
SUBSETS_UP_TO = 14
# Disturbances of the local search that finds it otherwise.
KICKS = 10
# Numbers in the tables of the search that proves the center best (three of them).
SEARCH_UP_TO = 4_000_000
# Bounds of single stages that it looks at when left to itself: a few seconds.
SEARCH_WORK = 3e8
# Log-likelihoods this close, relative to their size, count as equal.
TOLERANCE = 1e-10
MOST_ROUNDS = 100


@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedMallowsFit:
    """Center and decays under which lists are most probable.

    Attributes
    ----------
    model : GeneralizedMallows
        The estimate. Stages that no list reached have decay 0: the lists say nothing about them. A decay is
        infinite where every list took the best item that was left; it is 0 where lists skip as many items as
        chance would, or more. Items that no list names stand last, in the order of the data.
    log_likelihood : float
        Log-probability of all lists, counts included.
    proven : bool
        Whether all centers were looked at or ruled out, so that none has a larger likelihood (by more than
        1e-10 of it). Where False, the center is the best that the search met.
    mean_skips : ndarray, one per stage that a list reached
        Average number of better items skipped; the decays follow from it.
    n_lists : ndarray of int, one per stage that a list reached
        Lists that reach the stage.
    """

    model: GeneralizedMallows
    log_likelihood: float
    proven: bool
    mean_skips: Array
    n_lists: Array

    @property
    def theta(self) -> Array:
        """Decays of the stages that a list reached."""
        return self.model.theta[: len(self.n_lists)]

    def __repr__(self) -> str:
        proof = "no center is better" if self.proven else "the best found; not proven"
        lines = [repr(self.model), f"  log-likelihood {self.log_likelihood:.6g} ({proof})"]
        for stages, what in (
            (np.isinf(self.theta), "infinite theta (no list ever skipped an item)"),
            (self.theta == 0, "theta 0 (skips as by chance, or more)"),
        ):
            if stages.any():
                listed = ", ".join(str(j + 1) for j in np.flatnonzero(stages)[:10])
                more = ", …" if stages.sum() > 10 else ""
                lines.append(f"  {what} at stage {listed}{more}")
        if len(self.n_lists) < self.model.n_stages:
            lines.append(f"  no list says anything about stages {len(self.n_lists) + 1} and later")
        return "\n".join(lines)


def fit_generalized_mallows(
    rankings: Rankings, n_starts: int = 8, max_nodes: int | None = None, random_state: RandomState = 0
) -> GeneralizedMallowsFit:
    """Do what :meth:`GeneralizedMallows.fit` says."""
    lists = top_lists(rankings)
    whole_number("n_starts", n_starts, 1)
    if max_nodes is not None:
        whole_number("max_nodes", max_nodes, 0)
    rng = generator(random_state)
    stats = list_statistics([(lists, np.ones(lists.n_items))])
    m, n_stages = len(stats.items), len(stats.lists)
    search = _Search(stats, rng)
    for theta in _start_decays(n_stages, n_starts, rng):
        search.alternate(theta)
    proven = m <= 1
    if max_nodes is None:
        max_nodes = int(SEARCH_WORK / max(1, m * n_stages))
    if not proven and max_nodes and m * m * n_stages <= SEARCH_UP_TO:
        tolerance = TOLERANCE * (1.0 + abs(search.best))
        search.best, proven = search_centers(
            dense_counts(stats), stats.lists, stats.n_items, max_nodes, tolerance, search.best, search.order
        )
    skips, theta = np.empty((2, n_stages))
    skip_totals(stats, np.argsort(search.order), skips)
    log_likelihood = float(profile(skips, stats.lists, stats.n_items, theta)) + 0.0
    unnamed = np.setdiff1d(np.arange(stats.n_items), stats.items)
    order = np.concatenate([stats.items[search.order], unnamed]).astype(np.int32)
    center = Rankings._from_arrays(order[None], lists.items)
    return GeneralizedMallowsFit(
        model=GeneralizedMallows(center, theta),
        log_likelihood=log_likelihood,
        proven=bool(proven),
        mean_skips=skips / stats.lists,
        n_lists=stats.lists.astype(np.int64),
    )


class _Search:
    """The best center so far, and the alternation that looks for better ones."""

    def __init__(self, stats: ListStatistics, rng: np.random.Generator) -> None:
        self.stats, self.rng = stats, rng
        self.order = np.arange(len(stats.items))
        self.best = -np.inf

    def alternate(self, theta: Array) -> None:
        """From these decays, take the best center for decays and the best decays for it in turn."""
        reached, order = -np.inf, np.empty(0, dtype=np.int64)
        skips = np.empty(len(theta))
        for _ in range(MOST_ROUNDS):
            found = self._center(theta, order)
            skip_totals(self.stats, np.argsort(found), skips)
            value = float(profile(skips, self.stats.lists, self.stats.n_items, theta))
            if not value > reached + TOLERANCE * (1.0 + abs(value)):
                break
            reached, order = value, found
            # An infinite decay says that a first skip costs much: as much as half a skip among all lists.
            theta = np.minimum(theta, np.log1p(2.0 * self.stats.lists))
        if reached > self.best:
            self.best, self.order = reached, order

    def _center(self, theta: Array, start: Array) -> Array:
        """The center with least Σ θ_j S_j, exact for few items."""
        m = len(self.stats.items)
        costs = np.empty((m, m + 1))
        pair_costs(self.stats, theta, costs)
        weights = np.ascontiguousarray(costs[:, :m])
        if m <= SUBSETS_UP_TO:
            order = np.empty(m, dtype=np.int64)
            fill_best_order_compiled(weights, order)
            return order
        net = weights - weights.T
        order = start.copy() if len(start) else np.argsort(net.sum(axis=0), kind="stable")
        iterated_local_search(self.rng, weights, net, order, KICKS, 1e-12 * float(weights.sum()))
        return order


def _start_decays(n_stages: int, n_starts: int, rng: np.random.Generator) -> list[Array]:
    """Decays to start from: equal, falling, rising, then random."""
    place = np.linspace(0.0, 1.0, n_stages) if n_stages > 1 else np.zeros(n_stages)
    plain = [np.ones(n_stages), 2.0 * 0.1**place, 0.2 * 10.0**place]
    drawn = [rng.standard_exponential(n_stages) for _ in range(n_starts - len(plain))]
    return (plain + drawn)[:n_starts]
