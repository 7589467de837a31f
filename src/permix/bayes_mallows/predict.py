"""What a fit says about agents, old and new: averages over posterior draws.

In each draw a new agent joins a group with a weight that its size gives, or one that the data did not have.
Where centers may be anywhere alike, all rankings are alike under that; else its center and decay are drawn
from the prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.group_prior import around, draw_groups, group_prior
from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.scores import Under, log_scores
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.draws import log_mean_exp
from permix.distributions.distances.normalizer import normalizer
from permix.runtime.seeds import RandomState, stream_key

# Rows times groups scored at a time.
BLOCK = 2**20


def all_groups(fit: BayesianMallowsFit, groups: GroupDraws) -> Under:
    """Return the groups of all draws with a new one for each draw after them."""
    n_draws = groups.n_draws
    new_centers, new_decays = new_groups(fit, n_draws, np.random.default_rng(0))
    return Under(
        fit.settings,
        np.concatenate([groups.centers, new_centers]),
        np.concatenate([groups.decays, new_decays]),
        np.concatenate([groups.errors[groups.draw_of], groups.errors]),
    )


class Distinct(NamedTuple):
    """Rows that differ, in what they say or in columns that weights depend on."""

    rows: Preferences
    numbers: Array | None  # columns as numbers, (rows, columns), where weights depend on any
    which: Array  # which of these each row is

    @classmethod
    def of(cls, table: Preferences, numbers: Array | None) -> Distinct:
        same = table.equal_rows()
        if numbers is not None:
            patterns = np.unique(numbers, axis=0, return_inverse=True)[1]
            same = same * len(table) + np.asarray(patterns).reshape(-1)
        _, first, which = np.unique(same, return_index=True, return_inverse=True)
        return cls(
            table._bare()[first],
            None if numbers is None else numbers[first],
            np.asarray(which).reshape(-1),
        )

    def log_weights(self, groups: GroupDraws, rows: Any = slice(None)) -> Array:
        """Ln weights of the groups of all draws for some rows, (1 or rows, groups)."""
        return groups.all_log_weights(None if self.numbers is None else self.numbers[rows])


def new_groups(fit: BayesianMallowsFit, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return centers, best first, and decays of groups that the data did not have."""
    n = len(fit.items)
    prior = group_prior(fit.settings, fit.items, normalizer(fit.settings.distance, n))
    if prior.center_decay == 0.0:  # what they come to on average
        return np.tile(np.arange(n, dtype=np.int32), (size, 1)), np.zeros(size)
    ranks, decays = draw_groups(prior, fit.settings.distance, size, rng)
    return np.argsort(ranks, axis=1).astype(np.int32), decays


def _blocks(
    fit: BayesianMallowsFit, asked: Distinct, random_state: RandomState
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield rows with ln (weight × P(row | group)) of all groups, and the draw that each group is of."""
    table, under = asked.rows, all_groups(fit, fit.groups)
    draw_of = np.append(fit.groups.draw_of, np.arange(fit.groups.n_draws))
    key = stream_key(random_state)
    step = max(1, BLOCK // len(draw_of))
    for start in range(0, len(table), step):
        rows = slice(start, min(start + step, len(table)))
        logs = asked.log_weights(fit.groups, rows)
        possible = np.any(np.isfinite(logs), axis=0)
        out = np.full((rows.stop - rows.start, len(draw_of)), -np.inf)
        some = table[np.arange(rows.start, rows.stop)]
        out[:, possible] = log_scores(some, under.only(possible), key)
        yield rows, out + logs, draw_of


def log_probability(
    fit: BayesianMallowsFit, table: Preferences, random_state: RandomState = 0
) -> tuple[Array, Array]:
    """Return ln P(row) of a new agent, and its Monte Carlo error, which takes draws as independent."""
    asked = Distinct.of(table, fit.numbers_of(table))
    values, errors = np.empty((2, len(asked.rows)))
    for rows, scores, draw_of in _blocks(fit, asked, random_state):
        order = np.argsort(draw_of, kind="stable")
        starts = np.searchsorted(draw_of[order], np.arange(fit.groups.n_draws))
        largest = scores.max(axis=1, keepdims=True)
        sums = np.add.reduceat(np.exp(scores - largest)[:, order], starts, axis=1)
        with np.errstate(divide="ignore"):
            values[rows], errors[rows] = log_mean_exp(np.log(sums) + largest)
    return values[asked.which], errors[asked.which]


def assign(fit: BayesianMallowsFit, table: Preferences, random_state: RandomState = 0) -> Array:
    """Return P(estimated group | row), and in the last column that of a group that the data did not have."""
    asked = Distinct.of(table, fit.numbers_of(table))
    out = np.zeros((len(asked.rows), fit.n_clusters + 1))
    linked = np.append(fit.overlap.linked, np.full(fit.groups.n_draws, fit.n_clusters))
    for rows, scores, _ in _blocks(fit, asked, random_state):
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        for group in range(fit.n_clusters + 1):
            out[rows, group] = shares[:, linked == group].sum(axis=1)
    out /= out.sum(axis=1, keepdims=True)
    return out[asked.which]


def draw_rankings(
    fit: BayesianMallowsFit, size: int, rng: np.random.Generator, of_draw: int | None = None
) -> tuple[Array, Array]:
    """Draw full rankings of new agents, (size, items), and their estimated groups, -1 for one of their own.

    Each is from a draw of its own choice, so that what is not known is in the sample, or all are from one.
    """
    groups, n = fit.groups, len(fit.items)
    draws = rng.integers(groups.n_draws, size=size) if of_draw is None else np.full(size, of_draw)
    orders, labels = np.empty((size, n), dtype=np.int32), np.full(size, -1)
    row = np.full(size, -1)
    for d in np.unique(draws).tolist():
        mine = np.flatnonzero(draws == d)
        weights = np.exp(groups.log_weights(d))
        chosen = rng.choice(len(weights), size=len(mine), p=weights / weights.sum())
        old = chosen < len(weights) - 1
        row[mine[old]] = groups.starts[d] + chosen[old]
    own = np.flatnonzero(row < 0)
    for agent, center, decay in zip(own, *new_groups(fit, len(own), rng), strict=True):
        orders[agent] = around(fit.settings.distance, float(decay), center, 1, rng)[0]
    for group in np.unique(row[row >= 0]).tolist():
        mine = np.flatnonzero(row == group)
        orders[mine] = around(
            fit.settings.distance, float(groups.decays[group]), groups.centers[group], len(mine), rng
        )
        labels[mine] = fit.overlap.linked[group]
    return orders, labels
