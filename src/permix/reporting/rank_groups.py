"""Groups of agents with a central ranking each, as reports of all models of rankings describe them.

A model says how large each group is, what its center is, how sure that is, and draws rankings of members. How
members rank, where groups differ and where they agree follows from these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.reporting.ballots import longest_of
from permix.reporting.context import Context
from permix.reporting.words import IN_A_SENTENCE, shown

# Rankings drawn of each group: this many, or fewer where items or groups are many.
MOST_DRAWS, FEWEST_DRAWS, MOST_ENTRIES, ALL_ENTRIES = 4000, 100, 2_000_000, 20_000_000
# Items that pictures and tables of pairs have.
MOST_ITEMS = 20
TAIL = 0.05


class RankedGroup(NamedTuple):
    """One group; shares and their intervals are of all agents."""

    share: float
    low: float | None  # 5 % and 95 % ends of the share
    high: float | None
    agents: int  # whose most probable group it is
    how_sure: float  # how probably a member is in it, on average
    order: Array  # its center: items, best first; items that it leaves out are not listed
    # Between which places each item of the center may stand in it, best first; None where nobody knows.
    places: tuple[Array, Array] | None = None
    found: int | None = None  # in how many chains, or restarts, it was found
    facts: tuple[tuple[str, str], ...] = ()  # what else is known of it: what, and how much


@dataclass(frozen=True, eq=False)
class RankedGroups:
    """All groups, the largest first."""

    names: Sequence[str]  # of items, as tables show them
    groups: Sequence[RankedGroup]
    n_agents: int
    draw: Callable[[int, int, np.random.Generator], Array]  # (group, n, rng) -> full rankings (n, items)
    share_is: str  # what intervals of shares are
    center_is: str  # what a center is
    places_are: str = ""  # what intervals of places are
    runs: int = 0  # chains, or restarts, that groups are looked for in
    run_name: str = "chain"
    probabilities: Array | None = None  # (rows, groups)
    counts: Array | None = None  # agents of each row
    kind: str = "group"  # what the groups are called: classes of a classifier are given
    titles: Sequence[str] = field(default=())  # of groups, where they have names
    longest: int | None = None  # how many items the longest ballot ranks; None where it may be all

    @cached_property
    def short(self) -> list[str]:
        """Names for sentences and pictures."""
        cut = [shown(name, IN_A_SENTENCE) for name in self.names]
        # "puts 7 first" would be a riddle.
        return [f"item {name}" if name.isdecimal() else name for name in cut]

    @property
    def n_told(self) -> int:
        """How many places of a center ballots tell of."""
        return self.n_items if self.longest is None else self.longest

    def title(self, k: int) -> str:
        """Return what a group is called."""
        return self.titles[k] if self.titles else f"{self.kind} {k + 1}"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.names)

    @cached_property
    def shares(self) -> Array:
        """Shares of all agents."""
        return np.array([group.share for group in self.groups])

    # -- centers ---------------------------------------------------------------------------------

    @cached_property
    def places(self) -> Array:
        """Place of every item in every center, 1 = first; items that it leaves out share what is left."""
        n = self.n_items
        out = np.empty((len(self.groups), n))
        for k, group in enumerate(self.groups):
            listed = len(group.order)
            out[k] = (listed + 1 + n) / 2
            out[k, group.order] = np.arange(1, listed + 1)
        return out

    @cached_property
    def places_elsewhere(self) -> Array:
        """The same, on average over all other groups by their shares; NaN where there are none."""
        total = self.shares @ self.places
        left = 1.0 - self.shares[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(
                left > 1e-9, (total - self.shares[:, None] * self.places) / np.maximum(left, 1e-12), np.nan
            )

    @cached_property
    def consensus(self) -> Array:
        """Items by their mean place over all groups."""
        return np.argsort(self.shares @ self.places, kind="stable")

    def nearest(self, k: int) -> int | None:
        """Return the group whose center is most like that of a group; None where there is no other."""
        if len(self.groups) == 1:
            return None
        apart = np.abs(np.log(self.places / self.places[k])).sum(axis=1)
        apart[k] = np.inf
        return int(apart.argmin())

    def telling(self, k: int, other: int | None = None) -> list[int]:
        """Return the items by which a group differs most: one that it puts higher, one that it puts lower.

        It is compared with one other group, or with the mean of all. Places are compared on a logarithmic
        scale, since the top of a ranking says more than its end.
        """
        if len(self.groups) == 1:
            return []
        own, others = self.places[k], self.places_elsewhere[k] if other is None else self.places[other]
        ratio = np.log(others / own)
        near = np.minimum(own, others) <= max(3.0, self.n_items / 2)
        near &= np.minimum(own, others) <= self.n_told
        apart = np.abs(own - others) >= max(1.0, 0.08 * self.n_items)
        found = []
        for sign in (1.0, -1.0):
            gain = np.where(near & apart, sign * ratio, 0.0)
            best = int(np.argmax(gain))
            if gain[best] > 0.25:
                found.append(best)
        return found

    # -- rankings of members ---------------------------------------------------------------------

    @cached_property
    def _ranks(self) -> list[Array]:
        """Ranks of all items in rankings drawn of each group, from 0."""
        each = min(MOST_ENTRIES, ALL_ENTRIES // len(self.groups)) // max(self.n_items, 1)
        n = int(np.clip(each, FEWEST_DRAWS, MOST_DRAWS))
        found = []
        for k, rng in enumerate(np.random.default_rng(0).spawn(len(self.groups))):
            orders = np.asarray(self.draw(k, n, rng))
            ranks = np.empty(orders.shape, dtype=np.int32)
            np.put_along_axis(ranks, orders.astype(np.int64), np.arange(orders.shape[1])[None], axis=1)
            found.append(ranks)
        return found

    @cached_property
    def mean_ranks(self) -> Array:
        """Mean rank of every item among the members of every group, 1 = first."""
        return np.array([ranks.mean(axis=0) + 1.0 for ranks in self._ranks])

    @cached_property
    def mean_ranks_elsewhere(self) -> Array:
        """The same, on average over all other groups."""
        total = self.shares @ self.mean_ranks
        left = np.maximum(1.0 - self.shares[:, None], 1e-12)
        return np.asarray((total - self.shares[:, None] * self.mean_ranks) / left)

    def rank_range(self, k: int) -> tuple[Array, Array]:
        """Return between which ranks 90 % of the members of a group have every item."""
        ends = np.quantile(self._ranks[k], (TAIL, 1.0 - TAIL), axis=0, method="inverted_cdf") + 1
        return np.minimum(ends[0], self.mean_ranks[k]), np.maximum(ends[1], self.mean_ranks[k])

    @cached_property
    def first(self) -> Array:
        """Share of the members of every group that put every item first."""
        return np.array([(ranks == 0).mean(axis=0) for ranks in self._ranks])

    @cached_property
    def compared(self) -> Array:
        """The items whose pairs are compared, in the order of the consensus: those at the top of centers."""
        if self.n_items <= MOST_ITEMS:
            return self.consensus
        chosen: list[int] = []
        for place in range(self.n_items):
            for group in self.groups:
                if place < len(group.order) and int(group.order[place]) not in chosen:
                    chosen.append(int(group.order[place]))
            if len(chosen) >= MOST_ITEMS:
                break
        kept = set(chosen[:MOST_ITEMS])
        return np.array([item for item in self.consensus.tolist() if item in kept])

    @cached_property
    def before(self) -> Array:
        """P(a before b) among the members of every group, (groups, compared items, compared items)."""
        out = []
        for ranks in self._ranks:
            some = ranks[:, self.compared]
            out.append((some[:, :, None] < some[:, None, :]).mean(axis=0))
        return np.array(out)

    @cached_property
    def before_overall(self) -> Array:
        """The same of all agents."""
        return np.einsum("k,kab->ab", self.shares / self.shares.sum(), self.before)

    def dividing_pairs(self, most: int) -> list[tuple[int, int]]:
        """Return the pairs on which groups differ most, as places among the compared items.

        By the variance of P(a before b) between groups, weighed by their shares: how people split. The item
        that most of all agents prefer comes first.
        """
        if len(self.groups) == 1:
            return []
        weights = self.shares / self.shares.sum()
        spread = np.einsum("k,kab->ab", weights, (self.before - self.before_overall) ** 2)
        return self._pairs(spread, most, 0.05**2)

    def agreed_pairs(self, most: int) -> list[tuple[int, int]]:
        """Return the pairs that most members of every group order alike, the surest first."""
        least = self.before.min(axis=0)
        return self._pairs(np.maximum(least, least.T), most, 2.0 / 3.0)

    def _pairs(self, score: Array, most: int, limit: float) -> list[tuple[int, int]]:
        a, b = np.triu_indices(len(score), 1)
        values = score[a, b]
        chosen = [at for at in np.argsort(-values, kind="stable").tolist() if values[at] > limit][:most]
        pairs = [(int(a[at]), int(b[at])) for at in chosen]
        return [(x, y) if self.before_overall[x, y] >= 0.5 else (y, x) for x, y in pairs]


def as_far_as_told(found: RankedGroups, context: Context) -> RankedGroups:
    """Return groups that know how many places of a center ballots tell of."""
    return replace(found, longest=longest_of(context.about))


def membership_numbers(probabilities: Array, counts: Array) -> tuple[Array, Array]:
    """Return, of each group, those who are most probably in it, and how probably on average."""
    n_groups, labels = probabilities.shape[1], probabilities.argmax(axis=1)
    agents = np.bincount(labels, counts, n_groups)
    return agents, np.bincount(labels, counts * probabilities.max(axis=1), n_groups) / np.maximum(agents, 1)
