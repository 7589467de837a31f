"""How probable is what an agent says under a group: exact for full rankings and for few items.

Under a center and a decay, P(what is said) is a sum over full rankings that agree with it, or, where
comparisons may be wrong, over all rankings, times the chance of the comparisons. A full ranking is one term.
Rankings of few items are listed. Under Kendall's distance levels over all items have closed forms. For the
rest, rankings are drawn by AMP (Lu & Boutilier 2014) around the center, and weighed.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import NamedTuple

import numpy as np

from permix.bayes_mallows.data import full_rankings
from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile, partition_log_normalizers
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import Jobs, amp_draws
from permix.distributions.distances.agreeing import agreeing_rankings
from permix.distributions.distances.normalizer import Normalizer, normalizer
from permix.estimators.preference_input import without_pairs
from permix.kernels.distances import row_distances
from permix.posterior.estimated import spaced

# All rankings of so many items are listed.
MOST_LISTED = 6
# Rankings drawn for each row and group where there is no exact way.
N_DRAWS = 32
# Numbers in memory at a time.
BLOCK = 2**22
# Rankings × groups × items that chances of groups go through at most; with fewer draws than this nothing is
# gained by them.
MOST_NUMBERS, FEWEST_DRAWS = 2**30, 50


class Under(NamedTuple):
    """Groups that rows are scored under."""

    settings: BayesianMallowsParameters
    centers: Array  # int32 (groups, items), best first
    decays: Array  # (groups,)
    errors: Array  # (groups, 2): level and slope of the log-odds of a comparison to be right

    @property
    def sums(self) -> Normalizer:
        return normalizer(self.settings.distance, self.centers.shape[1])

    @property
    def ranks(self) -> Array:
        return np.argsort(self.centers, axis=1).astype(np.int32)

    def only(self, kept: Array | slice) -> Under:
        """Return some of the groups."""
        return self._replace(centers=self.centers[kept], decays=self.decays[kept], errors=self.errors[kept])

    def log_norms(self) -> Array:
        """Ln Z of each group."""
        known = {decay: self.sums.log_z(decay) for decay in set(self.decays.tolist())}
        return np.array([known[decay] for decay in self.decays.tolist()])


def log_scores(table: Preferences, under: Under, key: Array) -> Array:
    """Return ln P(row | group), (rows, groups); where it is estimated, without bias before the logarithm."""
    out = np.empty((len(table), len(under.decays)))
    full, ranks = full_rankings(table)
    if under.settings.errors is not None:  # comparisons beside a full ranking have a chance of their own
        plain = np.diff(table.pair_indptr)[full] == 0
        full, ranks = full[plain], ranks[plain]
    out[full] = log_probabilities(ranks, under)
    rest = np.setdiff1d(np.arange(len(table)), full)
    if not len(rest):
        return out
    if table.n_items <= MOST_LISTED:
        out[rest] = _listed(table[rest], under)
    else:
        out[rest] = _drawn(table, rest, under, key)
    return out


def log_probabilities(ranks: Array, under: Under) -> Array:
    """Return ln P of full rankings, (rankings, groups)."""
    orders = np.argsort(ranks, axis=1).astype(np.int32)
    norms, sums = under.log_norms(), under.sums
    out = np.empty((len(ranks), len(under.decays)))
    ranks = np.ascontiguousarray(ranks, dtype=np.int32)
    for k, center in enumerate(under.ranks):
        if len(ranks):
            distances = row_distances(sums.code, orders, ranks, center[None])
            out[:, k] = -under.decays[k] * distances - norms[k]
    return out


def agreeing_with(table: Preferences, settings: BayesianMallowsParameters) -> tuple[Array, Array]:
    """Return the ranks of all rankings of a few items, and which of them agree with each row for certain."""
    n = table.n_items
    ranks = np.argsort(np.array(list(permutations(range(n))), dtype=np.int64), axis=1)
    firm = table if settings.errors is None else without_pairs(table)
    allowed = np.zeros((len(table), len(ranks)), dtype=np.bool_)
    listed = agreeing_rankings(firm, settings.distance)
    place = {tuple(row): at for at, row in enumerate(np.argsort(ranks, axis=1).tolist())}
    which = np.array([place[tuple(order)] for order in listed.orders.tolist()], dtype=np.int64)
    allowed[listed.row_of, which] = True
    return ranks, allowed


def _listed(table: Preferences, under: Under) -> Array:
    """Sum over all rankings."""
    ranks, allowed = agreeing_with(table, under.settings)
    log_p = log_probabilities(ranks, under)
    out = np.empty((len(table), len(under.decays)))
    for row in range(len(table)):
        values = log_p[allowed[row]]
        pairs = table.pairs[table.pair_indptr[row] : table.pair_indptr[row + 1]]
        if under.settings.errors is not None and len(pairs):
            values = values + log_said(ranks[allowed[row]], pairs, under.errors)
        out[row] = np.logaddexp.reduce(values, axis=0)
    return out


def log_said(ranks: Array, pairs: Array, errors: Array) -> Array:
    """Return ln P(comparisons | ranking), (rankings, groups)."""
    gaps = ranks[:, pairs[:, 1]] - ranks[:, pairs[:, 0]]
    out = np.zeros((len(ranks), len(errors)))
    kinds, which = np.unique(errors, axis=0, return_inverse=True)
    for kind, (level, slope) in enumerate(kinds.tolist()):
        odds = level + slope * (np.abs(gaps) - 1)
        said = -(np.log1p(np.exp(-odds)) + np.where(gaps < 0, odds, 0.0)).sum(axis=1)
        out[:, np.asarray(which).reshape(-1) == kind] = said[:, None]
    return out


def matched_decays(under: Under) -> Array:
    """Return decays of Kendall's distance that spread rankings about as much."""
    if under.settings.distance == "kendall":
        return under.decays
    sums, kendall = under.sums, normalizer("kendall", under.centers.shape[1])
    share = kendall.mean_distance(0.0) / sums.mean_distance(0.0)
    known = {
        decay: kendall.decay_at(share * sums.mean_distance(decay), 100.0)
        for decay in set(under.decays.tolist())
    }
    return np.array([known[decay] for decay in under.decays.tolist()])


def _drawn(table: Preferences, rows: Array, under: Under, key: Array) -> Array:
    """Weigh rankings drawn by AMP."""
    soft, n, n_groups = under.settings.errors is not None, table.n_items, len(under.decays)
    out = np.full((len(rows), n_groups), np.nan)
    firm = without_pairs(table) if soft else table
    if under.settings.distance == "kendall":
        profile = Profile.of(firm[rows])
        exact = profile.partitioned
        if soft:
            exact = exact[np.diff(table.pair_indptr)[rows][exact] == 0]
        components = MallowsComponents(
            table.items, np.full(n_groups, 1.0 / n_groups), under.centers, under.decays
        )
        found, _ = partition_log_normalizers(components, profile)
        out[exact] = found[np.isin(profile.partitioned, exact)]
    left = np.flatnonzero(np.isnan(out[:, 0]))
    decays, norms, ranks = matched_decays(under), under.log_norms(), under.ranks
    kendall = normalizer("kendall", n)
    log_kendall = np.array([kendall.log_z(decay) for decay in decays.tolist()])
    models = geometric_models(decays, n)
    step = max(1, BLOCK // (n_groups * N_DRAWS * n))
    for start in range(0, len(left), step):
        some = rows[left[start : start + step]]
        agents, groups = np.repeat(some, n_groups), np.tile(np.arange(n_groups), len(some))
        jobs = Jobs.of(firm.arrays(), agents, groups, under.centers, models)
        orders, distances, weights = amp_draws(key, start, jobs, N_DRAWS)
        if under.settings.distance != "kendall":
            drawn = orders.reshape(-1, n)
            drawn_ranks = np.argsort(drawn, axis=1).astype(np.int32)
            centers = np.repeat(np.tile(ranks, (len(some), 1)), N_DRAWS, axis=0)
            own = row_distances(under.sums.code, drawn, drawn_ranks, centers).reshape(weights.shape)
            weights = weights - own * under.decays[groups, None] - norms[groups, None]
            weights += distances * decays[groups, None] + log_kendall[groups, None]
        if soft:
            for at, row in enumerate(agents.tolist()):
                pairs = table.pairs[table.pair_indptr[row] : table.pair_indptr[row + 1]]
                places = np.argsort(orders[at], axis=1)
                weights[at] += log_said(places, pairs, under.errors[groups[at : at + 1]])[:, 0]
        means = np.logaddexp.reduce(weights, axis=1) - math.log(N_DRAWS)
        out[left[start : start + step]] = means.reshape(len(some), n_groups)
    return out


def mean_chances(
    ranks: Array, groups: GroupDraws, linked: Array, n_groups: int, settings: BayesianMallowsParameters
) -> Array | None:
    """Return P(estimated group | data) of full rankings, (rankings, groups).

    Which group an agent was in, draw by draw, averages to it. So does P(group | groups and shares of the
    draw, ranking), with less noise, as nothing is drawn: agents between two groups are in the same one then
    whatever the seed.

    ``linked`` is the estimated group that each group of the draws speaks for. None where that takes too long,
    and where shares differ between agents.
    """
    if groups.coefficients is not None or not len(ranks):
        return None
    different, which = np.unique(ranks, axis=0, return_inverse=True)
    per_draw = different.size * different.shape[1] * len(groups.decays) / groups.n_draws
    n_draws = int(min(groups.n_draws, MOST_NUMBERS // per_draw))
    if n_draws < min(FEWEST_DRAWS, groups.n_draws):
        return None
    under = Under(settings, groups.centers, groups.decays, np.zeros((len(groups.decays), 2)))
    total = np.zeros((len(different), n_groups))
    for d in spaced(groups.n_draws, n_draws).tolist():
        rows = np.arange(groups.starts[d], groups.starts[d + 1])
        logs = log_probabilities(different, under.only(rows)) + np.log(groups.shares[rows])
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        for k, group in enumerate(linked[rows].tolist()):
            total[:, group] += chances[:, k]
    total /= total.sum(axis=1, keepdims=True)
    return np.asarray(total[np.asarray(which).reshape(-1)])
