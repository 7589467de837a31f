"""Rounds of EM over rows in shards: each worker shares its rows out, and the sums come back.

Sums are exact (:mod:`permix.runtime.exact_sums`), so that neither the number of shards nor the order in which
they are added changes a bit of them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.shards.loading import Shard
from permix.data.shards.sharded import Sharded
from permix.distributions.base import Estimate
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.rounds.drawn import DrawnRounds, DrawnSums, Draws, names_of_rows
from permix.mallows.rounds.grids import Grids
from permix.mallows.rounds.levels import LevelRounds
from permix.mallows.rounds.statistics import Statistics, responsibilities
from permix.runtime.exact_sums import on_grid
from permix.runtime.threads import over_rows


class Sums(NamedTuple):
    """What a shard answers to an E-step."""

    log_likelihood: Array  # (2,): rounded, and the rest
    statistics: Statistics

    def plus(self, other: Sums) -> Sums:
        """Return the sums over both."""
        statistics = Statistics(*map(np.add, self.statistics, other.statistics))
        return Sums(self.log_likelihood + other.log_likelihood, statistics)


class GridRounds(LevelRounds):
    """E-steps over the rows of one shard, with terms on grids."""

    def __init__(self, profile: Profile, n_components: int, grids: Grids) -> None:
        super().__init__(profile, n_components)
        self.grids = grids
        self._seen: MallowsComponents | None = None  # what ``_shares`` are of
        self._shares = np.empty((0, 0))

    def sums(self, components: MallowsComponents, look: bool) -> Sums:
        """Return log-likelihood and expected statistics."""
        grids, counts = self.grids, self.counts
        joint = self.log_joint(components)
        evidence = np.logaddexp.reduce(joint, axis=0)
        shares = responsibilities(joint.T, evidence).T
        self._seen, self._shares = components, shares
        found = Statistics.zeros(components.n_components, components.n_items)

        def work(first: int, last: int) -> None:
            for k in range(first, last):
                mine = on_grid(shares[k], grids.shares) * counts
                found.members[k] = found.rankings[k] = mine.sum()
                if look:
                    found.wins[k] = self._pair_sums(mine)
                sizes = self.profile.block_sizes
                found.blocks[k] = np.bincount(sizes, mine[self.profile.block_rows], components.n_items + 1)
                found.against[k] = counts @ on_grid(shares[k] * self.distances[k], grids.distances)
                found.spreads[k] = counts @ on_grid(shares[k] * (1.0 - shares[k]), grids.shares)

        over_rows(work, components.n_components, 4 * len(self.rows))
        rounded = on_grid(evidence, grids.logs)
        rest = on_grid(evidence - rounded, grids.rest_of_logs)
        return Sums(np.array([counts @ rounded, counts @ rest]), found)

    def gains_of(self, components: MallowsComponents, k: int) -> Array:
        """Return by how much the log-likelihood rises if neighbors in center k change places, (m - 1,)."""
        if self._seen is None or not _same(self._seen, components):  # another worker did the E-step
            self.sums(components, look=False)
        first, second = components.centers[k][:-1], components.centers[k][1:]
        less, more = np.expm1(-components.decays[k]), np.expm1(components.decays[k])
        losing, winning = (
            self._pair_sums(self.counts * on_grid(np.log1p(self._shares[k] * change), self.grids.gains))
            for change in (less, more)
        )
        return np.asarray(losing[first, second] + winning[second, first])


def _same(one: MallowsComponents, other: MallowsComponents) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("weights", "centers", "decays")
    )


class ShardedRounds:
    """E-steps over all shards, from the client's side: an ExactRows that holds no rows.

    ``drawn`` says whether some rows need Monte Carlo, and ``repeats`` how many agents say the same as one who
    is drawn at random, about: as they draw the same, the variance of sums is that much larger.
    """

    bounded = True

    def __init__(
        self,
        data: Sharded,
        n_components: int,
        largest_decay: float,
        drawn: bool = False,
        repeats: float = 1.0,
    ) -> None:
        self.data, self.k = data, n_components
        self.exact, self.repeats = not drawn, repeats
        self.grids = Grids.of(data.n_agents, data.n_items, largest_decay)
        self.counts = np.empty(0)

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; nothing is drawn."""
        assert rng is None
        found: Sums = self.data.reduced(_sums, (self.grids, components, look), Sums.plus)
        return float(found.log_likelihood.sum()), found.statistics

    def drawn_step(self, components: MallowsComponents, draws: Draws) -> tuple[Estimate, Statistics]:
        """Return the log-likelihood and the expected statistics, where rows need Monte Carlo."""
        found, drawn = self._drawn(components, draws)
        total = found.log_likelihood.sum() + drawn.log_likelihood.sum()
        error = math.sqrt(drawn.variance * self.repeats)
        return Estimate(float(total), error), drawn.added_to(found.statistics)

    def drawn_log_likelihood(self, components: MallowsComponents, draws: Draws) -> Estimate:
        """Return the log-likelihood, where rows need Monte Carlo, as ``total_log_likelihood`` does.

        Logarithms of estimates are too small by half their variance, which is put back.
        """
        found, drawn = self._drawn(components, draws)
        missing = 0.5 * drawn.variance
        total = found.log_likelihood.sum() + drawn.log_likelihood.sum() + missing
        return Estimate(float(total), math.sqrt(drawn.variance * self.repeats + (0.5 * missing) ** 2))

    def _drawn(self, components: MallowsComponents, draws: Draws) -> tuple[Sums, DrawnSums]:
        sums: tuple[Sums, DrawnSums] = self.data.reduced(_drawn_sums, (self.grids, components, draws), _both)
        return sums

    def log_joint(self, components: MallowsComponents) -> Array:
        """Rows are with the workers."""
        raise NotImplementedError

    def shares(self, k: int) -> Array:
        """Return nothing: rows are with the workers."""
        return self.counts

    def gains(
        self, components: MallowsComponents, k: int, shares: Array, leads: Array, least: float
    ) -> Array:
        """Return by how much the log-likelihood rises if neighbors in center k change places, (m - 1,)."""
        return np.asarray(self.data.reduced(_gains, (self.grids, components, k), np.add))


def n_sampled(data: Sharded) -> int:
    """Return how many rows have no closed form."""
    return sum(data.map(_n_sampled))


# Work of shards: functions of this module, so that other processes know them.


def _profile(shard: Shard) -> Profile:
    if "profile" not in shard.memo:
        shard.memo["profile"] = Profile.of(shard.table)
    found: Profile = shard.memo["profile"]
    return found


def _rounds(shard: Shard, k: int, grids: Grids) -> GridRounds:
    known = shard.memo.get("rounds")
    if known is None or known.grids != grids or len(known.known) != k:
        known = shard.memo["rounds"] = GridRounds(_profile(shard), k, grids)
    found: GridRounds = known
    return found


def _sums(shard: Shard, shared: tuple[Grids, MallowsComponents, bool]) -> Sums:
    grids, components, look = shared
    return _rounds(shard, components.n_components, grids).sums(components, look)


def _gains(shard: Shard, shared: tuple[Grids, MallowsComponents, int]) -> Array:
    grids, components, k = shared
    return _rounds(shard, components.n_components, grids).gains_of(components, k)


def _drawn_sums(shard: Shard, shared: tuple[Grids, MallowsComponents, Draws]) -> tuple[Sums, DrawnSums]:
    grids, components, draws = shared
    if "drawn" not in shard.memo:
        shard.memo["drawn"] = DrawnRounds(_profile(shard), names_of_rows(shard.table))
    rounds: DrawnRounds = shard.memo["drawn"]
    return _sums(shard, (grids, components, True)), rounds.sums(components, draws, grids)


def _both(one: tuple[Sums, DrawnSums], other: tuple[Sums, DrawnSums]) -> tuple[Sums, DrawnSums]:
    return one[0].plus(other[0]), one[1].plus(other[1])


def _n_sampled(shard: Shard, _: Any) -> int:
    return len(_profile(shard).sampled)
