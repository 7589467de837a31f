"""The permutation-augmented move for mixtures of generalized Mallows models (Liang, Jordan & Taskar 2007)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import numpy as np

from permix.dp_mallows.lists.permutation_jit import choose_clusters, weigh_segments
from permix.dp_mallows.lists.surrogate_jit import StageChoices
from permix.dp_mallows.lists.top_lists_jit import TopLists
from permix.dp_mallows.state import ListState
from permix.errors import DataError
from permix.families.base import check_number
from permix.kernels.streams import draw_key, new_stream, open_stream
from permix.moves.base import Info
from permix.moves.permutation import Permutation, Scratch, scratch_for
from permix.moves.state import learned_concentration
from permix.partitions.concentration_jit import draw_concentration

# Of the surrogate; found by trying: acceptance changes little between a half and twice of these.
PSEUDO_COUNT = 1.0
LIKENESS = 0.4


@dataclasses.dataclass
class ListPermutation(Permutation):
    """Draw an ordering of the lists of some clusters, and cut it into new clusters with new centers.

    The marginal likelihood of a cluster of lists has no closed form, so clusters are proposed by that of
    another law of lists (see the kernel of the surrogate), and centers by the law that smart splits use. Both
    probabilities are known, and Metropolis and Hastings decide: the posterior is left invariant whatever the
    surrogate is worth. Clusters that the proposal leaves as they are keep their centers.

    Errors of the surrogate add up over the clusters that a proposal changes, so each is about few of them:
    cluster c takes part with probability min(1, n_chosen / K₀) × min(1, large / |c|), which enters the weight
    of a cluster like its size does.

    Parameters
    ----------
    method : "beam" or "approximate"
        As for :class:`~permix.moves.Permutation`; "exact" would need the marginal likelihood.
    order, width, tolerance, n_clusters, integrate
        As for :class:`~permix.moves.Permutation`.
    n_chosen : float
        How many clusters take part on average, where none is large.
    large : float
        Clusters of more agents than this take part less often: a step has n_chosen × large lists at most, on
        average.
    """

    n_chosen: float = 3.0
    large: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "exact":
            raise DataError(
                "method must be 'beam' or 'approximate': clusters of lists have no marginal likelihood in "
                "closed form, which 'exact' needs"
            )
        check_number(self.n_chosen, "n_chosen")
        check_number(self.large, "large")
        self._room: _Room | None = None

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """Choose clusters, draw an ordering of their lists, and propose to cut it into new ones."""
        if self._expected is None:
            self._expected = state.prior_spec.expected_clusters(state.n)
        if self._room is None or self._room.state is not state:
            self._room = _Room(state, state.n, state.prior, Surrogate.of(state), self.large)
            self._scratch = None
        room = self._room
        n_chosen, n_agents = choose_clusters(
            rng,
            state.labels,
            state.clusters.sizes,
            state.n_clusters,
            self._share,
            self.large,
            room.agents,
            room.labels,
            room.sizes,
        )
        accepted = n_chosen > 0 and self._rearrange(rng, state, room.part(n_chosen, n_agents))
        gamma = learned_concentration(state.prior_spec)
        if gamma is not None and self.integrate:
            state.concentration = float(
                draw_concentration(rng, gamma.shape, gamma.rate, state.n_clusters, state.n)
            )
        return Info("permutation", 1, int(accepted), work=self._work(n_agents, room.sizes[:n_chosen]))

    @property
    def _share(self) -> float:
        assert self._expected is not None
        return min(1.0, self.n_chosen / self._expected)

    def _rearrange(self, rng: np.random.Generator, state: ListState, part: _Part) -> bool:
        """Propose new clusters for the agents of a part; returns whether there are any now."""
        assert self._room is not None
        scratch = self._scratch
        if scratch is None:
            scratch = self._scratch = scratch_for(
                None, cast(Any, self._room), self.method, self.width, self.order
            )
            scratch.size_weights += self._room.log_chances
        scratch = _shortened(scratch, len(part.agents))
        # The machinery of Permutation sees the part as a mixture of its own.
        self._draw_order(rng, cast(Any, part), scratch)
        slope = self._slope_of_part(state)
        n_segments = self._propose(rng, cast(Any, part), scratch, slope)
        if n_segments <= 0:
            return False
        model = state.model
        key = draw_key(rng)
        stream = new_stream()
        open_stream(stream, key[0], key[1], 0, 0)
        new = _Segments.empty(n_segments, model.n_items, model.n_stages)
        weights = np.zeros(3)
        weigh_segments(
            stream,
            part.data,
            model.tables,
            model.opening,
            state.clusters,
            self._room.family.statistics(1),
            scratch.order,
            state.labels[part.agents],
            scratch.firsts,
            part.n_clusters,
            scratch.bounds,
            n_segments,
            new.kept,
            new.places,
            new.totals,
            new.counts,
            weights,
        )
        head = self._log_head(state, n_segments - part.n_clusters, part.n_clusters)
        head -= slope * (n_segments - part.n_clusters)
        if -rng.standard_exponential() > self._log_ratio(head, *weights):
            return False
        if new.kept.all():
            return False
        _adopt(state, part.agents[scratch.order], scratch.bounds[:n_segments], new)
        return True

    def _log_ratio(self, head: float, target: float, centers: float, surrogate: float) -> float:
        """Return ln of target over proposal, after over before.

        With f = p(lists, center) and an ordering of the part, the target is A(K) Π w(c) f(c, σ_c) and the
        proposal e^(slope K) Π w(c) B(c) r(σ_c | c), where w has what depends on sizes alone. Sums of ln f,
        ln r and ln B are over clusters that are new, less those gone.
        """
        return head + target - centers - surrogate

    def _log_head(self, state: ListState, n_more: int, n_chosen: int) -> float:
        """Return ln A after less before: new clusters beside all others, orderings of those of the part."""
        log_count = self._log_count(state)
        before, after = state.n_clusters, state.n_clusters + n_more
        return (
            log_count(after)
            - log_count(before)
            + math.lgamma(after + 1.0)
            - math.lgamma(before + 1.0)
            + math.lgamma(n_chosen + 1.0)
            - math.lgamma(n_chosen + n_more + 1.0)
            + n_more * math.log(self._share)
        )

    def _slope_of_part(self, state: ListState) -> float:
        """Return the derivative of ln A at K₀, of which a share is in the part."""
        from scipy.special import digamma

        assert self._expected is not None
        whole = self._slope(state, self._log_count(state))
        chosen = self._share * self._expected
        return whole + float(digamma(self._expected + 1.0) - digamma(chosen + 1.0)) + math.log(self._share)


@dataclasses.dataclass(frozen=True)
class Surrogate:
    """What stands for the family of the clusters in the dynamic program."""

    n_items: int
    n_stages: int

    @classmethod
    def of(cls, state: ListState) -> Surrogate:
        """Return the surrogate for these lists."""
        return cls(state.model.n_items, state.model.n_stages)

    def statistics(self, capacity: int) -> StageChoices:
        """Return room for ``capacity`` clusters, all empty."""
        stage = np.arange(self.n_stages)
        return StageChoices(
            pseudo_count=PSEUDO_COUNT,
            likeness=LIKENESS ** np.abs(stage[:, None] - stage[None, :]).astype(float),
            weights=np.zeros((capacity, self.n_items, self.n_stages)),
            totals=np.zeros((capacity, self.n_stages)),
        )


@dataclasses.dataclass
class _Part:
    """Some clusters of a state, numbered 0, 1, ..., and their agents, numbered likewise."""

    n_clusters: int
    agents: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray
    data: TopLists
    empty_scores: np.ndarray


class _Room:
    """What a move keeps for a state; named as a state of a mixture names it."""

    def __init__(self, state: ListState, n: int, prior: Any, family: Surrogate, large: float) -> None:
        self.state = state
        self.n = n
        self.prior = prior
        self.family = family
        self.empty_clusters = family.statistics
        self.agents = np.empty(n, dtype=np.int64)
        self.labels = np.empty(n, dtype=np.int32)
        self.sizes = np.empty(n, dtype=np.int64)
        # ln of the chance that a cluster of so many takes part, beside the share of all.
        self.log_chances = np.log(np.minimum(1.0, large / np.maximum(np.arange(n + 1.0), 1.0)))
        lists = state.model.lists
        left = np.log(family.n_items - np.arange(family.n_stages))
        lengths = np.diff(lists.starts)[lists.list_of]
        self.empty_scores = -np.concatenate([[0.0], np.cumsum(left)])[lengths]

    def part(self, n_chosen: int, n_agents: int) -> _Part:
        """Return the clusters that were chosen into this room."""
        agents = self.agents[:n_agents]
        lists = self.state.model.lists
        return _Part(
            n_chosen,
            agents,
            self.labels[:n_agents],
            self.sizes,
            lists._replace(list_of=lists.list_of[agents]),
            self.empty_scores[agents],
        )


@dataclasses.dataclass
class _Segments:
    """Proposed clusters; those not ``kept`` have new centers and sums over their lists."""

    kept: np.ndarray
    places: np.ndarray
    totals: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, n: int, n_items: int, n_stages: int) -> _Segments:
        return cls(
            np.zeros(n, dtype=np.bool_),
            np.empty((n, n_items), dtype=np.int16),
            np.empty((n, n_stages)),
            np.empty((n, n_stages)),
        )


def _shortened(scratch: Scratch, n: int) -> Scratch:
    """Return the arrays at hand, cut to so many agents."""
    table = scratch.scores.size > 0
    return dataclasses.replace(
        scratch,
        order=scratch.order[:n],
        kept_starts=scratch.kept_starts[:n],
        kept_terms=scratch.kept_terms[:n],
        scores=scratch.scores.reshape(-1)[: n * n].reshape(n, n) if table else scratch.scores,
    )


def _adopt(state: ListState, agents: np.ndarray, ends: np.ndarray, new: _Segments) -> None:
    """Make the segments of ``agents`` that are new clusters of the state; ``ends`` has the last one first."""
    firsts = np.append(ends[1:], 0)
    fresh = np.flatnonzero(~new.kept)
    state.make_room(state.n_clusters + len(fresh))
    clusters = state.clusters
    state.n_moved = 0
    # In slots after the last; those of clusters that are gone are closed afterwards.
    for k, segment in enumerate(fresh, state.n_clusters):
        members = agents[firsts[segment] : ends[segment]]
        state.labels[members] = k
        state.n_moved += len(members)
        clusters.places[:, k] = new.places[segment]
        clusters.totals[k] = new.totals[segment]
        clusters.counts[k] = new.counts[segment]
    state.n_clusters += len(fresh)
    state.count_members()
    state.compact()
