"""Posterior predictive checks of models of rankings, in the terms of the data.

A replicated data set has the agents of the observed one: each draws a full ranking from the model, and says
of it what the agent said of theirs: lists of the same length, the same items ranked, levels of the same
sizes, the same comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, Wording
from permix.estimators.checks import Whole
from permix.posterior.checks import (
    FEWEST_REPLICATES,
    N_REPLICATES,
    Aspect,
    Aspects,
    FitChecks,
    compare,
    replicated,
)
from permix.runtime.seeds import RandomState, generator

# Of more agents than this, or so many that items × agents are more than that, a random part is replicated.
MOST_AGENTS, MOST_CELLS = 4000, 1_000_000
# Pairs are those of the items most often named, and so many random pairs of agents are compared.
MOST_ITEMS = 25
AGENT_PAIRS = 1000
UNKNOWN = -1

DrawOrders = Callable[[np.random.Generator, int], Array]


def check_rankings(
    table: Preferences | Rankings,
    draw_orders: DrawOrders,
    n_replicates: int = N_REPLICATES,
    random_state: RandomState = 0,
) -> FitChecks:
    """Compare data with replicated ones; ``draw_orders(rng, n)`` draws n full rankings, (n, items)."""
    n_replicates = Whole(FEWEST_REPLICATES)("n_replicates", n_replicates)
    rng = generator(random_state)
    design = Design(Preferences.from_rankings(table) if isinstance(table, Rankings) else table, rng)

    def draw(stream: np.random.Generator) -> Aspects:
        return design.aspects(*design.said_of(draw_orders(stream, design.n)))

    return compare(design.aspects(*design.observed), replicated(draw, n_replicates, rng), design.n)


class Design:
    """What every agent says about their ranking, whatever it is.

    Statements are a table of places (agents, items): the level of each item, items × 2 for those below all
    listed ones, -1 where nothing is said; and whether each comparison goes as it was observed.
    """

    def __init__(self, table: Preferences, rng: np.random.Generator) -> None:
        rows, t = table.rows_of_agents(), table.n_items
        most = max(min(MOST_AGENTS, MOST_CELLS // t), 100)
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        self.names = [str(item) for item in table.items]
        self.n, self.t = len(rows), t
        self.lengths = np.diff(table.level_indptr)[rows]
        below = table.rest_below[rows]
        agent = np.repeat(np.arange(self.n), self.lengths)
        begins = table.level_indptr[rows]
        position = np.arange(len(agent)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        entry = np.repeat(begins, self.lengths) + position
        listed = np.zeros((self.n, t), dtype=np.bool_)
        listed[agent, table.level_items[entry]] = True
        # Level of the p-th item of an agent's ranking, among those the agent speaks of.
        self.level_at = np.full((self.n, t), 2 * t, dtype=np.int32)
        self.level_at[agent, position] = table.levels[entry]
        self.spoken_of = listed | below[:, None]
        self.all_spoken_of = bool(self.spoken_of.all())
        places = np.where(self.spoken_of, 2 * t, UNKNOWN).astype(np.int32)
        places[agent, table.level_items[entry]] = table.levels[entry]
        n_pairs = np.diff(table.pair_indptr)[rows]
        self.pair_agent = np.repeat(np.arange(self.n), n_pairs)
        offset = np.arange(len(self.pair_agent)) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)
        self.pairs = table.pairs[np.repeat(table.pair_indptr[rows], n_pairs) + offset]
        self.observed = (places, np.ones(len(self.pairs), dtype=np.bool_))
        self._choose(rng, listed, below)

    def _choose(self, rng: np.random.Generator, listed: Array, below: Array) -> None:
        """Choose the items and the pairs of agents that are looked at."""
        named = listed.sum(axis=0) + np.bincount(self.pairs.ravel(), minlength=self.t)
        self.shown = np.sort(np.argsort(-named, kind="stable")[:MOST_ITEMS])
        self.first, self.second = np.triu_indices(len(self.shown), 1)
        self.place_of = np.full(self.t, -1)
        self.place_of[self.shown] = np.arange(len(self.shown))
        # Those with a sole first item; whether it is sole is the same in all replicated data.
        self.have_first = (self.lengths > 0) & (self.level_at[:, min(1, self.t - 1)] > 0)
        self.are_lists = self.have_first & below & (self.lengths < self.t)
        self.left, self.right = rng.integers(self.n, size=(2, AGENT_PAIRS))
        apart = self.left != self.right
        self.left, self.right = self.left[apart], self.right[apart]

    def said_of(self, orders: Array) -> tuple[Array, Array]:
        """Return what the agents say if their rankings are these."""
        ranks = np.empty((self.n, self.t), dtype=np.int32)
        np.put_along_axis(ranks, orders.astype(np.int64), np.arange(self.t, dtype=np.int32)[None], axis=1)
        agrees = ranks[self.pair_agent, self.pairs[:, 0]] < ranks[self.pair_agent, self.pairs[:, 1]]
        position: Array = ranks
        if not self.all_spoken_of:
            position = np.where(self.spoken_of, ranks, self.t).argsort(axis=1, kind="stable").argsort(axis=1)
        places = np.take_along_axis(self.level_at, position, axis=1)
        return np.where(self.spoken_of, places, UNKNOWN), agrees

    def aspects(self, places: Array, agrees: Array) -> dict[str, Aspect]:
        """Return the numbers that describe what the agents say."""
        found: dict[str, Aspect] = {}
        first = np.where(places == 0, 1, 0).argmax(axis=1)
        if self.have_first.any():
            chosen = np.bincount(first[self.have_first], minlength=self.t)
            found["first choices"] = Aspect(self.names, chosen / self.have_first.sum())
        found["pairwise majorities"] = self._majorities(places, agrees)
        if len(np.unique(self.lengths[self.are_lists])) > 1:
            found["list lengths by first choice"] = self._lengths(first)
        found["agreement between two agents"] = self._agreement(places)
        return found

    def _majorities(self, places: Array, agrees: Array) -> Aspect:
        """Share of those who order two items that put the first before the second."""
        k = len(self.shown)
        wins = np.zeros((k, k))
        part = places[:, self.shown]
        known = part != UNKNOWN
        for a in range(k - 1):
            both = known[:, [a]] & known[:, a + 1 :]
            wins[a, a + 1 :] = (both & (part[:, [a]] < part[:, a + 1 :])).sum(axis=0)
            wins[a + 1 :, a] = (both & (part[:, [a]] > part[:, a + 1 :])).sum(axis=0)
        if len(self.pairs):
            better = np.where(agrees, self.pairs[:, 0], self.pairs[:, 1])
            worse = np.where(agrees, self.pairs[:, 1], self.pairs[:, 0])
            at = self.place_of[better], self.place_of[worse]
            looked_at = (at[0] >= 0) & (at[1] >= 0)
            np.add.at(wins, (at[0][looked_at], at[1][looked_at]), 1.0)
        ahead, behind = wins[self.first, self.second], wins[self.second, self.first]
        with np.errstate(invalid="ignore"):
            shares = ahead / (ahead + behind)
        names = [self.names[item] for item in self.shown]
        entries = [f"{names[a]} before {names[b]}" for a, b in zip(self.first, self.second, strict=True)]
        return Aspect(entries, shares)

    def _lengths(self, first: Array) -> Aspect:
        """Mean length of the lists that begin with each item: do those who choose it say more, or less?"""
        chosen = first[self.are_lists]
        n = np.bincount(chosen, minlength=self.t)
        with np.errstate(invalid="ignore"):
            means = np.bincount(chosen, self.lengths[self.are_lists], minlength=self.t) / n
        return Aspect(self.names, means)

    def _agreement(self, places: Array) -> Aspect:
        """Share of the pairs of items, ordered by two random agents, on which they agree: mean and spread."""
        signs = []
        for agents in (self.left, self.right):
            part = places[agents][:, self.shown]
            known = part != UNKNOWN
            sign = np.sign(part[:, self.first] - part[:, self.second])
            signs.append(np.where(known[:, self.first] & known[:, self.second], sign, 0))
        both = (signs[0] != 0) & (signs[1] != 0)
        n = both.sum(axis=1)
        alike = (both & (signs[0] == signs[1])).sum(axis=1)[n > 0] / n[n > 0]
        enough = len(alike) > 1
        values = [alike.mean(), alike.std()] if enough else [np.nan, np.nan]
        return Aspect(["mean", "spread"], np.array(values))


def needed(data: Any) -> Any:
    """Return the data, which fits of some models do not keep."""
    if data is None:
        raise DataError(
            "fits of this model do not keep the data: give those that were fitted",
            Wording(", fit_checks(X)", ", permix predict MODEL DATA --what checks"),
        )
    return data


def fixed(sample: Callable[[int, np.random.Generator], Any]) -> DrawOrders:
    """Return how a model with one set of parameters draws orders; ``sample(size, rng)`` gives Rankings."""
    return lambda rng, n: np.asarray(sample(n, rng).orders)
