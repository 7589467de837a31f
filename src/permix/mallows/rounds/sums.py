"""Rounds of EM over rows that leave much open, by sums over their down-sets: exact, where these are few."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.kernels.kemeny_search import order_score
from permix.kernels.mallows import log_normalizer
from permix.kernels.pairwise_counts import PreferenceArrays
from permix.mallows.downsets_jit import items_before, normalizer_rows
from permix.mallows.rounds.statistics import Statistics, shared_out
from permix.runtime.threads import over_rows

# Down-sets of all different rows together up to which rounds are exact: some milliseconds each.
MOST_SETS = 2**15
# Probabilities of pairs that are kept, one for each row, component and pair.
MOST_PAIRS = 2**24
# Many runs begin from one profile; its down-sets are counted once.
_n_sets: WeakKeyDictionary[Profile, int] = WeakKeyDictionary()


class SumRounds:
    """E-steps with one number of components."""

    bounded = False

    def __init__(self, profile: Profile, n_components: int, log_weights: Array | None = None) -> None:
        """Begin; ``log_weights`` (rows of the profile, K) are those of rows where these differ."""
        self.log_weights = log_weights
        m = profile.preferences.n_items
        self.rows, self.arrays = profile.sampled, profile.arrays
        self.counts = profile.counts[self.rows].astype(np.float64)
        self.known = np.full((n_components, m), -1, dtype=np.int32), np.full(n_components, np.nan)
        self.log_probabilities = np.empty((n_components, len(self.rows)))
        self.pairs = np.empty((n_components, len(self.rows), m, m))  # P(a before b | row, component)
        self.weights = np.empty(
            (n_components, len(self.rows))
        )  # P(component | row) times agents, of the last E-step

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; with a generator components are drawn."""
        total, weights = shared_out(self.log_joint(components), self.counts, rng)
        self.weights = weights
        statistics = Statistics.zeros(components.n_components, components.n_items)
        statistics.members[:] = statistics.rankings[:] = weights.sum(axis=1)
        statistics.spreads[:] = statistics.members - (weights**2 / self.counts).sum(axis=1)
        for k, center in enumerate(components.centers):
            np.einsum("i,iab->ab", weights[k], self.pairs[k], out=statistics.wins[k])
            statistics.against[k] = order_score(statistics.wins[k], center)
        return total, statistics

    def log_joint(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | component k), (K, rows)."""
        self._renew(components)
        own = self.log_weights
        weights = components.log_weights[:, None] if own is None else own[self.rows].T
        return np.asarray(self.log_probabilities + weights)

    def shares(self, k: int) -> Array:
        """Return P(component k | row) at the components of the last E-step."""
        return np.asarray(self.weights[k] / self.counts)

    def gains(
        self, components: MallowsComponents, k: int, shares: Array, leads: Array, least: float
    ) -> Array:
        """Return by how much the log-likelihood rises if neighbors in center k change places, (m - 1,)."""
        self._renew(components)
        center, decay = components.centers[k], components.decays[k]
        before = self.pairs[k][:, center[:-1], center[1:]]
        factors = before * np.expm1(-decay) + (1.0 - before) * np.expm1(decay)
        return np.asarray((self.counts[:, None] * np.log1p(shares[:, None] * factors)).sum(axis=0))

    def _renew(self, components: MallowsComponents) -> None:
        """Sum again where a center or a decay is new."""
        centers, decays = self.known
        new = np.flatnonzero((centers != components.centers).any(axis=1) | (decays != components.decays))
        if len(new):
            part = components.centers[new], components.decays[new]
            found = sums_of_rows(self.arrays, self.rows, *part, MOST_SETS, with_pairs=True)
            self.log_probabilities[new], self.pairs[new] = (each.swapaxes(0, 1) for each in found[1:])
            centers[new], decays[new] = part


def are_few(profile: Profile, n_components: int) -> bool:
    """Say whether sums over the down-sets of all rows that need them are worth their time."""
    n_rows, m = len(profile.sampled), profile.preferences.n_items
    # No row has fewer than m + 1 sets.
    if n_rows * (m + 1) > MOST_SETS or n_rows * n_components * m * m > MOST_PAIRS:
        return False
    if profile not in _n_sets:
        nothing = np.empty((0, m), dtype=np.int32), np.empty(0)
        n_sets = sums_of_rows(profile.arrays, profile.sampled, *nothing, MOST_SETS, with_pairs=False)[0]
        _n_sets[profile] = int(n_sets.sum()) if (n_sets > 0).all() else MOST_SETS + 1
    return _n_sets[profile] <= MOST_SETS


def sums_of_rows(
    arrays: PreferenceArrays, rows: Array, centers: Array, decays: Array, limit: int, with_pairs: bool
) -> tuple[Array, Array, Array]:
    """Return how many down-sets rows have (-1: too many), ln P(row | component), P(a before b | both)."""
    n_rows, k, m = len(rows), *centers.shape
    n_sets, found = np.empty(n_rows, dtype=np.int64), np.empty((n_rows, k))
    pairs = np.empty((n_rows, k, m, m) if with_pairs else (0, 0, 0, 0))
    log_totals = np.array([log_normalizer(decay, m) for decay in decays])
    work = (arrays, rows, items_before(centers), decays, log_totals, limit, found, n_sets, pairs)
    over_rows(normalizer_rows, n_rows, 100 * (k + 1) * m, *work)
    return n_sets, found, pairs
