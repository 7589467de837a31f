"""What a fitted Dirichlet-process mixture of generalized Mallows models says about lists, old and new.

Everything is an average over posterior draws: in each, a new agent joins a cluster with a weight that its
size gives, or one of their own, and says a list with the probability the cluster gives it. Given the
beginning of a list, draws and clusters count by how probable they make that beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import Estimate, sample_size, whole_number
from permix.distributions.generalized.generalized_mallows import list_lengths
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.lists.scores_jit import ListTables
from permix.errors import ParameterError
from permix.estimators.agent_answers import RankSummary, refuse_too_large
from permix.posterior.centers import rank_table
from permix.posterior.intervals import ranks_holding
from permix.runtime.seeds import RandomState, generator, stream_key
from permix.runtime.threads import over_rows

if TYPE_CHECKING:
    from permix.dp_mallows.lists.continuations_jit import Beyond

# Rows are answered in blocks that take no more than this.
BLOCK_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class ListCompletions:
    """Continuations drawn for every list.

    Attributes
    ----------
    orders : int32 ndarray (rows, draws, length)
        Items by position in ``items``, best first, padded by -1; each begins as its row does.
    labels : int ndarray (rows, draws)
        Estimated cluster each was drawn from, -1 for a group that the data did not have.
    rankings : Rankings
        The lists that were continued.
    """

    orders: Array
    labels: Array
    rankings: Rankings

    def to_rankings(self) -> Rankings:
        """All draws as :class:`permix.Rankings`, those of one agent together under the agent's id."""
        agents = np.repeat(self.rankings.agents, self.orders.shape[1])
        return Rankings._from_arrays(np.concatenate(self.orders), self.rankings.items, agents=agents)


@dataclass(eq=False)
class ListPredictive:
    """Clusters of posterior draws, ready to be asked about lists.

    All methods take top lists over ``items`` (:func:`permix.estimators.ranking_lists.as_top_lists`).
    """

    fit: DPMallowsFit  # its prior of the decays rules stages beyond the longest list

    def __post_init__(self) -> None:
        self.clusters, self.items, self.n_items = self.fit.clusters, self.fit.items, len(self.fit.items)

    @cached_property
    def _tables(self) -> ListTables:
        """Tables for stages that the data reach."""
        from permix.distributions.generalized.generalized_mallows_jit import log_psi

        clusters, n = self.clusters, self.n_items
        theta = np.array(clusters.theta.T, dtype=np.float64, order="C")
        norms = log_psi(theta, n - np.arange(len(theta))[:, None])
        logs = [clusters.log_weights(d) for d in range(clusters.n_draws)]
        return ListTables(
            ranks=rank_table(clusters.centers),
            centers=np.array(clusters.centers, dtype=np.int32, order="C"),
            theta=theta,
            log_psi=norms,
            log_norms=np.cumsum(np.pad(norms, ((1, 0), (0, 0))), axis=0),
            log_weights=np.concatenate([log[:-1] for log in logs]),
            log_new=np.array([log[-1] for log in logs]),
            starts=np.array(clusters.starts, dtype=np.int64),
            beyond=np.empty((0, n)),
        )

    def tables(self, length: int) -> ListTables:
        """Tables for lists of up to ``length`` items; what lies beyond the data follows the prior."""
        from permix.distributions.generalized.finite_beta_jit import stage_tables
        from permix.dp_mallows.lists.clusters_jit import log_prior_chances

        tables, n = self._tables, self.n_items
        first, last = len(tables.theta), min(length, n - 1)
        if last - first > len(tables.beyond):
            what = f"probabilities of {last} places of {n} items"
            refuse_too_large(8 * (last - first) * n, what, "shorter lists")
            stages = stage_tables(n - first, last - first, self.fit.rates_beyond(last), self.fit.strength, 2)
            tables = tables._replace(beyond=log_prior_chances(stages, n))
            self.__dict__["_tables"] = tables  # longer tables serve shorter lists too
        return tables

    def beyond(self, length: int) -> Beyond:
        """Return the prior of the decays of stages beyond the data."""
        from permix.dp_mallows.lists.continuations_jit import Beyond

        strength = self.fit.strength
        return Beyond(strength * self.fit.rates_beyond(min(length, self.n_items - 1)), strength)

    def _estimated(self, clusters: Array) -> Array:
        """Return the estimated clusters that clusters of draws speak for; -1 for new ones."""
        return np.where(clusters < 0, -1, self.fit.overlap.linked[clusters].astype(np.int64))

    # What a list is worth.

    def log_probability(self, rankings: Rankings) -> tuple[Array, Array]:
        """Return ln P(list) of every row for a new agent, and its Monte Carlo error over draws.

        Each row counts once, whatever its count. The error takes draws as independent.
        """
        values, errors, _ = self.log_probabilities(rankings)
        return values, errors

    def mean_log_probability(self, rankings: Rankings) -> Estimate:
        """Return the mean of ln P(list) over agents, with its Monte Carlo error over draws."""
        return self.log_probabilities(rankings)[2]

    def log_probabilities(self, rankings: Rankings) -> tuple[Array, Array, Estimate]:
        """Return ln P(list) of every row, their Monte Carlo errors, and the mean over agents."""
        orders, lengths, inverse = distinct(rankings)
        agents = np.bincount(inverse, weights=rankings.counts, minlength=len(orders)) / rankings.n_agents
        values, errors = np.empty((2, len(orders)))
        influence = np.zeros(self.clusters.n_draws)
        for rows, by_draw in self._by_draw(orders, lengths):
            values[rows], ratio = _averaged(by_draw)
            errors[rows] = _error_of_mean(ratio)
            influence += agents[rows] @ ratio
        mean = Estimate(float(agents @ values), float(_error_of_mean(influence)))
        return values[inverse], errors[inverse], mean

    def _by_draw(self, orders: Array, lengths: Array) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows with ln P(list) under each draw."""
        from permix.dp_mallows.lists.scores_jit import score_rows

        tables = self.tables(int(lengths.max()))
        for rows in blocks(len(orders), 8 * self.clusters.n_draws):
            out = np.empty((rows.stop - rows.start, self.clusters.n_draws))
            self._over(score_rows, (orders[rows], lengths[rows], tables, out), len(out), lengths)
            yield rows, out

    def assign(self, rankings: Rankings) -> Array:
        """Return P(estimated cluster | list), and in the last column that of a group the data did not have.

        The agent is in cluster k of a draw with probability ∝ weight × P(list | k), over all draws together;
        that cluster's agents vote for the estimated clusters they are in. Rows sum to one.
        """
        from permix.dp_mallows.lists.scores_jit import assignment_rows

        orders, lengths, inverse = distinct(rankings)
        out = np.empty((len(orders), self.fit.n_clusters + 1))
        work = (orders, lengths, self.tables(int(lengths.max())), self.fit.overlap.linked, out)
        self._over(assignment_rows, work, len(orders), lengths)
        return out[inverse]

    # How a list goes on.

    def next_item(self, rankings: Rankings) -> Array:
        """Return P(next item | list), rows × items; 0 for items listed already, and for full lists."""
        from permix.dp_mallows.lists.continuations_jit import next_rows

        n = self.n_items
        refuse_too_large(8 * len(rankings) * n, f"{len(rankings)} rows × {n} items", "fewer rows")
        orders, lengths, inverse = distinct(rankings)
        out = np.empty((len(orders), n))
        work = (orders, lengths, self.tables(int(lengths.max()) + 1), out)
        self._over(next_rows, work, len(orders), lengths)
        return out[inverse]

    def complete(self, rankings: Rankings, length: int | None = None) -> Rankings:
        """Continue every list, each time by the item most probable to come next.

        The weights of draws and clusters are brought up to date after every item. Lists of ``length`` items
        or more stay as they are.
        """
        from permix.dp_mallows.lists.continuations_jit import greedy_rows

        orders, lengths, inverse = distinct(rankings)
        wanted = np.maximum(lengths, self._length(length))
        out = _padded(orders, int(wanted.max()))
        work = (orders, lengths, wanted, self.tables(int(wanted.max())), out)
        steps = int((wanted - lengths).max(initial=0)) + 1
        self._over(greedy_rows, work, len(orders), lengths * steps)
        return Rankings._from_arrays(out[inverse], self.items, rankings.counts, rankings._agents)

    def sample_completions(
        self, rankings: Rankings, size: int = 1, length: int | None = None, random_state: RandomState = None
    ) -> ListCompletions:
        """Draw continuations of every list, independently and exactly from the posterior predictive."""
        from permix.dp_mallows.lists.continuations_jit import completion_rows

        size, key = sample_size(size), stream_key(random_state)
        orders, lengths = plain(rankings)
        wanted = np.maximum(lengths, self._length(length))
        longest = int(wanted.max())
        n = len(orders)
        refuse_too_large(4 * n * size * longest, f"{n} rows × {size} draws × {longest} items", "fewer rows")
        out = np.repeat(_padded(orders, longest)[:, None, :], size, axis=1)
        clusters = np.empty((n, size), dtype=np.int64)
        tables = self.tables(int(lengths.max()))
        work = (key, orders, lengths, wanted, tables, self.beyond(longest), out, clusters)
        self._over(completion_rows, work, n, lengths + size)
        return ListCompletions(out, self._estimated(clusters), rankings)

    def expected_ranks(self, rankings: Rankings, n_samples: int, random_state: RandomState) -> RankSummary:
        """Return where items stand in the full ranking of each row, by continuations that are drawn."""
        drawn = self.sample_completions(rankings, n_samples, self.n_items, random_state).orders
        ranks = np.argsort(drawn, axis=2) + 1  # of full orderings
        mean = ranks.mean(axis=1)
        low = np.quantile(ranks, 0.05, axis=1, method="lower")
        high = np.quantile(ranks, 0.95, axis=1, method="higher")
        return RankSummary(mean, *ranks_holding(mean, low, high))

    def sample(
        self,
        size: int = 1,
        lengths: Any = None,
        random_state: RandomState = None,
        *,
        of_draw: int | None = None,
        among: tuple[Array, Array] | None = None,
    ) -> tuple[Rankings, Array]:
        """Draw lists of new agents from the posterior predictive, and their estimated clusters.

        Each comes from a draw of its own choice, so that the uncertainty of the clusters is in the sample, or
        all come from one; or from ``among``: clusters of draws, and the share of each. A label of -1 means a
        group that the data did not have.
        """
        from permix.dp_mallows.lists.continuations_jit import sample_rows

        size, rng, data = sample_size(size), generator(random_state), self.fit.rankings
        if lengths is None:
            wanted = data.lengths[rng.choice(len(data), size=size, p=data.counts / data.counts.sum())]
            wanted = np.asarray(wanted, dtype=np.int64)
        else:
            wanted = list_lengths(lengths, size, self.n_items)
        out = np.full((size, int(wanted.max(initial=1))), -1, dtype=np.int32)
        clusters = np.empty(size, dtype=np.int64)
        tables = self._tables
        weights = np.exp(tables.log_weights) / self.clusters.n_draws
        if of_draw is not None:
            chosen = self.clusters.of_draw(of_draw)
            weights = np.zeros_like(weights)
            weights[chosen] = np.exp(tables.log_weights[chosen])
        if among is not None:
            weights = np.zeros_like(weights)
            weights[among[0]] = among[1]
        cumulated = np.cumsum(weights)
        key = rng.integers(0, 2**64, size=2, dtype=np.uint64)
        work = (key, wanted, tables, cumulated, self.beyond(out.shape[1]), out, clusters)
        over_rows(lambda first, last: sample_rows(first, last, *work), size, self.n_items)
        return Rankings._from_arrays(out, self.items), self._estimated(clusters)

    def _length(self, length: int | None) -> int:
        """Return a length, or that of the longest list; one that leaves one item out is as good as full."""
        if length is None:
            longest = int(self.fit.rankings.lengths.max())
            return self.n_items if longest >= self.n_items - 1 else longest
        asked = whole_number("length", length, 1)
        if asked > self.n_items:
            raise ParameterError("length", asked, f"from 1 to {self.n_items}, the number of items")
        return asked

    def sample_full(self, size: int, rng: np.random.Generator, **chosen: Any) -> Array:
        """Draw full orderings as :meth:`sample` does, (size, items).

        Where rates of the prior are given for some places alone, items after these come in any order.
        """
        prior_rate = self.fit.settings.prior_rate
        length = min(len(prior_rate) if isinstance(prior_rate, tuple) else self.n_items, self.n_items)
        lists = np.asarray(self.sample(size, length, rng, **chosen)[0].orders)
        if length == self.n_items:
            return lists
        order = rng.random((size, self.n_items))
        np.put_along_axis(order, lists[:, :length].astype(np.int64), 2.0, axis=1)
        rest = np.argsort(order, axis=1)[:, : self.n_items - length]
        return np.concatenate([lists[:, :length], rest.astype(lists.dtype)], axis=1)

    def _over(self, rows_kernel: Any, work: tuple[Any, ...], n_rows: int, steps: Array) -> None:
        """Run a kernel over rows, in threads where that pays."""
        per_row = len(self.clusters.centers) * max(1, int(np.mean(steps)) if len(steps) else 1)
        over_rows(lambda first, last: rows_kernel(first, last, *work), n_rows, per_row)


def plain(rankings: Rankings) -> tuple[Array, Array]:
    """Copy orderings and lengths for compiled code, which is specialised for arrays it may write to."""
    return np.array(rankings.orders, dtype=np.int32, order="C"), np.array(rankings.lengths, dtype=np.int64)


def distinct(rankings: Rankings) -> tuple[Array, Array, Array]:
    """Return each different list once, their lengths, and which of them every row is."""
    orders, lengths = plain(rankings)
    keys = orders.view(np.dtype((np.void, orders.itemsize * orders.shape[1]))).reshape(-1)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return orders[first], lengths[first], inverse.reshape(-1)


def blocks(n_rows: int, row_bytes: int) -> Iterator[slice]:
    """Cut rows into blocks that take ``BLOCK_BYTES`` at most."""
    step = max(1, BLOCK_BYTES // max(row_bytes, 1))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def _averaged(by_draw: Array) -> tuple[Array, Array]:
    """Return ln of the mean over draws, and the draws relative to their mean."""
    largest = by_draw.max(axis=1)
    terms = np.exp(by_draw - largest[:, None])
    mean = terms.mean(axis=1)
    return largest + np.log(mean), terms / mean[:, None]


def _error_of_mean(draws: Array) -> Array:
    n_draws = draws.shape[-1]
    return np.asarray(
        draws.std(axis=-1, ddof=1) / np.sqrt(n_draws) if n_draws > 1 else draws[..., 0] * np.nan
    )


def _padded(orders: Array, longest: int) -> Array:
    out = np.full((len(orders), longest), -1, dtype=np.int32)
    out[:, : orders.shape[1]] = orders
    return out
