"""EM over full rankings, listed: exact under each distance.

What an agent said has the probability of all full rankings that agree with it. These are listed, once for all
rows; every round takes the distances of the different ones from the centers, and shares each row out to the
components and to the rankings it agrees with. The M-step has weighted full rankings: their center
(``centers``), and the dispersion whose mean distance is theirs (``Normalizer.decay_at``).

At rest, each center looks further: at its nearest neighbors, by the likelihood itself, which counts that
agents change components with it; and where centers are searched for, from other starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.distances.centers import Centers, centers_for
from permix.distributions.distances.log_sums import MOST_SUBSETS
from permix.distributions.distances.normalizer import normalizer
from permix.errors import Argument, DataError
from permix.mallows.distances.listed import Listed
from permix.mallows.em import MallowsEM
from permix.mallows.em_jit import NEGLIGIBLE
from permix.mallows.parameters import MallowsParameters
from permix.mallows.rounds.exchanges import Exchange
from permix.mallows.rounds.statistics import shared_out

# Rankings that rows agree with beyond which starts are tried on a part of the rows.
MOST_ENTRIES = 200_000
# Agents of a part, for each component.
LEAST_AGENTS = 200
# What a ranking costs: searches for centers under Ulam's distance look at all moves of each.
COSTS = {"ulam": 200.0, "cayley": 20.0}
# Values that fit into one word.
MOST_BITS = 64
# Neighbors of a center whose likelihoods are computed.
MOST_TRIED = 3
# A start's groups are not as wide as if nobody agreed.
WIDEST = 0.9


def log_scores(distances: Array, decays: Array, log_z: Array) -> Array:
    """Return ln P of rankings at these distances, (K, rankings); 0 times infinity is 0."""
    with np.errstate(invalid="ignore"):
        scores = np.where(distances > 0.0, -decays[:, None] * distances, 0.0)
    return np.asarray(scores - log_z[:, None])


class Weighted(NamedTuple):
    """What the M-step needs; sums over agents."""

    members: Array  # (K,): expected number of agents of each component
    against: Array  # (K,): their distances from the present center
    weights: Array  # (K, rankings): how many agents are there with each ranking


@dataclass(frozen=True)
class ListedRows:
    """Rows under a distance, as the restarts see them and as EM does."""

    profile: Profile
    settings: MallowsParameters
    listed: Listed  # of rows that said something
    counts: Array  # (rows,) of these
    centers: Centers

    @classmethod
    def of(cls, profile: Profile, settings: MallowsParameters) -> ListedRows:
        """List the full rankings that rows agree with; refused where they are too many."""
        rows = profile.stated
        _need_sums(settings.distance, profile.preferences.n_items)
        table = profile.preferences[rows] if len(rows) < len(profile.preferences) else profile.preferences
        listed = Listed.of(table, settings.distance)
        counts = profile.counts[rows].astype(np.float64)
        return cls(profile, settings, listed, counts, centers_for(settings.distance, listed.orders))

    @property
    def n_agents(self) -> int:
        """How many agents said something."""
        return self.profile.n_agents

    def em(self, key: Array, log_weights: Array | None = None) -> MallowsEM:
        """Return EM over the rows."""
        return DistanceEM(self, key, log_weights)

    def part(self, rng: np.random.Generator) -> ListedRows:
        """Return the rows, or a random part of those with very many rankings."""
        n_entries = int(self.listed.starts[-1])
        cost = COSTS.get(self.settings.distance, 1.0) * n_entries / MOST_ENTRIES
        if cost <= 2.0:
            return self
        # Agents, and not rows: short lists agree with very many rankings, and many agents make them.
        n_kept = max(int(self.n_agents / cost), LEAST_AGENTS * self.settings.n_components)
        drawn = rng.multinomial(n_kept, self.counts / self.counts.sum())
        some = np.flatnonzero(drawn)
        part = self.profile.preferences[self.profile.stated[some]]._replaced(counts=drawn[some])
        return ListedRows.of(Profile.of(part), self.settings)

    # Starts.

    def center(self, rng: np.random.Generator) -> Array:
        """Return a full ranking that agrees with an agent drawn at random."""
        return self._agreeing(self.counts, rng)

    def _agreeing(self, chances: Array, rng: np.random.Generator) -> Array:
        row = int(rng.choice(len(chances), p=chances / chances.sum()))
        first, last = self.listed.starts[row : row + 2]
        entry = int(rng.integers(first, last))
        return self.listed.orders[entry if self.listed.entries is None else self.listed.entries[entry]]

    def start(self, rng: np.random.Generator) -> MallowsComponents:
        """Return components at agents that are drawn with chances by their distance from those before."""
        k, listed = self.settings.n_components, self.listed
        sums = normalizer(self.settings.distance, self.centers.n_items)
        chances, nearest = self.counts, np.full(listed.n_rows, np.inf)
        centers = np.empty((k, self.centers.n_items), dtype=np.int32)
        for center in centers:
            center[:] = self._agreeing(chances, rng)
            distances = self.centers.distances(center[None])[0]
            if listed.entries is not None:
                distances = np.minimum.reduceat(distances[listed.entries], listed.starts[:-1])
            nearest = np.minimum(nearest, distances)
            chances = self.counts * nearest if nearest.any() else self.counts
        mean = float(self.counts @ nearest / self.counts.sum())
        most = -math.log(self.settings.min_dispersion)
        decay = sums.decay_at(min(mean, WIDEST * sums.mean_distance(0.0)), most)
        items, weights = self.profile.preferences.items, np.full(k, 1.0 / k)
        return MallowsComponents(items, weights, centers, np.full(k, decay), distance=self.settings.distance)


def _need_sums(distance: str, n_items: int) -> None:
    """Refuse more items than there are exact sums over all rankings of, before anything takes long."""
    most = {"spearman": MOST_SUBSETS, "ulam": MOST_BITS}.get(distance, n_items)
    if n_items > most:
        raise DataError(
            Argument("distance", distance),
            f" has exact sums over rankings of up to {most} items, but there are {n_items}; use ",
            Argument("distance", "footrule"),
            ", which takes any number",
        )


class DistanceEM(MallowsEM):
    """One run of EM from given components, without Monte Carlo."""

    bold = False

    def __init__(self, rows: ListedRows, key: Array, log_weights: Array | None = None) -> None:
        self._begin(rows.profile, rows.settings, key, log_weights)
        self.rows, self.exact, self.n_agents = rows, True, rows.n_agents
        self.parts = []
        self.sums = normalizer(rows.settings.distance, rows.centers.n_items)
        # Centers, and distances from them, of the last round.
        self._known: tuple[Array, Array] = (np.empty((0, 0)), np.empty((0, 0)))

    @cached_property
    def _stated(self) -> Array:
        return self.profile.stated

    def distances(self, centers: Array) -> Array:
        """Return the distances of all rankings from the centers, (K, rankings)."""
        known, distances = self._known
        if known.shape == centers.shape:
            moved = (known != centers).any(axis=1)
            if moved.any():
                distances = distances.copy()
                distances[moved] = self.rows.centers.distances(centers[moved])
        else:
            distances = self.rows.centers.distances(centers)
        self._known = (centers.copy(), distances)
        return distances

    def scores(self, components: MallowsComponents) -> Array:
        """Return ln P(ranking | component), (K, rankings)."""
        log_z = self.sums.values(components.decays)[0]
        return log_scores(self.distances(components.centers), components.decays, log_z)

    def log_priors(self, components: MallowsComponents) -> Array:
        """Return ln π_k, (K, 1), or (K, rows) where it depends on what is known of rows."""
        if self.log_weights is None:
            return components.log_weights[:, None]
        return np.asarray(self.log_weights[self._stated].T)

    def log_joint(self, components: MallowsComponents) -> tuple[Array, Array]:
        """Return ln P(row, component), (rows, K), and how many agents say it."""
        sums = np.array([self.rows.listed.log_sums(each) for each in self.scores(components)])
        return (sums + self.log_priors(components)).T, self.rows.counts

    def weigh(self, counts: Array) -> None:
        """Let rows stand for so many agents each, more than 0."""
        self.rows = replace(self.rows, counts=counts)

    def labels(self, components: MallowsComponents) -> Array:
        """Return the most probable component of every row."""
        return np.asarray(self.log_joint(components)[0].argmax(axis=1))

    def exact_step(
        self, components: MallowsComponents, rng: np.random.Generator | None = None, look: bool = True
    ) -> tuple[float, Any]:
        """Return the log-likelihood and the weights of rankings; without ``look`` their distances alone."""
        listed, scores = self.rows.listed, self.scores(components)
        sums = [listed.log_sums(each) for each in scores]
        joint = np.array(sums) + self.log_priors(components)
        value, shares = shared_out(joint, self.rows.counts, rng)
        weights = np.array([listed.weights(*each) for each in zip(scores, sums, shares, strict=True)])
        distances = self._known[1]
        return value, Weighted(shares.sum(axis=1), (weights * distances).sum(axis=1), weights)

    def m_step(
        self, components: MallowsComponents, statistics: Any, look: bool = True, bold: bool = False
    ) -> MallowsComponents:
        """Maximize over weights, centers (where ``look``) and dispersions."""
        found: Weighted = statistics
        centers, totals = components.centers, found.against
        if look:
            centers, totals = self.rows.centers.nearest(found.weights, centers)
        decays, behind = components.decays.copy(), found.weights.sum(axis=1)
        some = behind > 0.0
        decays[some] = self.sums.decays_at(totals[some] / behind[some], decays[some], self.most)
        weights = found.members / found.members.sum()
        return components.with_values(weights, np.ascontiguousarray(centers, dtype=np.int32), decays)

    def exchanges(self, components: MallowsComponents, statistics: Any, least: float) -> list[Exchange]:
        """Return a better center for each component that has one, judged by the likelihood."""
        found: Weighted = statistics
        rows, joint = self.rows, self.log_joint(components)[0].T
        changes = []
        for k in np.flatnonzero(found.members > NEGLIGIBLE).tolist():
            better = self._better_neighbor(components, k, joint, found.weights[k])
            if better is not None and better.gain > least:
                changes.append(better)
        if changes or rows.centers.exact:
            return changes
        centers, totals = rows.centers.nearest(found.weights, components.centers, thorough=True)
        gains = components.decays * (found.against - totals)  # of the bound that EM raises
        return [Exchange(k, centers[k], float(gains[k])) for k in np.flatnonzero(gains > least).tolist()]

    def _better_neighbor(
        self, components: MallowsComponents, k: int, joint: Array, weights: Array
    ) -> Exchange | None:
        """Return the neighbor of a center that raises the likelihood most, of those that promise to."""
        rows, listed, decay = self.rows, self.rows.listed, float(components.decays[k])
        neighbors = rows.centers.neighbors(weights, components.centers[k], components.n_items)
        others = np.logaddexp.reduce(np.delete(joint, k, axis=0), axis=0, initial=-np.inf)
        evidence = np.logaddexp(others, joint[k])
        shares = np.exp(joint[k] - evidence)
        present = self.scores(components)[k]
        changes = -decay * (rows.centers.distances(neighbors) - self.distances(components.centers)[k])
        # To the second order: what EM sees, and what it does not, that agents change components and rankings.
        sums = listed.log_sums(present)
        promised = np.empty(len(changes))
        for at, change in enumerate(changes):
            mean, square = (shares * listed.means(present, sums, each) for each in (change, change**2))
            promised[at] = rows.counts @ (mean + 0.5 * (square - mean**2))
        best: Exchange | None = None
        for at in np.argsort(-promised, kind="stable")[:MOST_TRIED].tolist():
            if promised[at] <= 0.0:
                break
            there = listed.log_sums(present + changes[at]) - sums + joint[k]
            gain = float(rows.counts @ (np.logaddexp(others, there) - evidence))
            if best is None or gain > best.gain:
                best = Exchange(k, np.ascontiguousarray(neighbors[at], dtype=np.int32), gain)
        return best
