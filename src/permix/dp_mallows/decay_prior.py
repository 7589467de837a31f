"""The prior of the decays, learned along with the groups.

Decays of place j have density ∝ exp(-ν (r_j θ + ln ψ_j(θ))) (Meilă & Chen 2010, equation 7): the prior is
worth ν lists, which skip r_j items on average. Given who belongs where and the centers, decays integrated
out, every r_j is independent of the others, with log density

    Σ_groups ln B̃eta(ν r_j + S_j, ν + N_j + 1) - ln B̃eta(ν r_j, ν + 1) + ln p(r_j)

in ln r_j, on which a slice step is taken; then one on the sum of these over places, as a function of ln ν.
Places that no list reaches have the rate of the last one that some list does.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from permix.distributions.generalized.finite_beta_jit import StageTables
from permix.dp_mallows.lists.clusters_jit import log_likelihoods_by_place
from permix.dp_mallows.state import ListState
from permix.families.learning import FloatArray, slice_number, slice_step
from permix.moves.base import Info, Move


class ByPlace:
    """ln p(lists | centers) of every place, summed over groups, as a function of the prior of the decays.

    ``totals`` and ``counts``, (groups, places), are the skips of the groups' lists and how many there are.
    Places whose rate is the one last asked about are not computed again: slice steps ask about all places
    until the last of them is done.
    """

    def __init__(self, tables: StageTables, totals: FloatArray, counts: FloatArray) -> None:
        self._given = tables, totals, counts
        n_places = totals.shape[1]
        self._strength, self._rates, self._values = math.nan, np.full(n_places, np.nan), np.empty(n_places)

    def __call__(self, strength: float, rates: FloatArray) -> FloatArray:
        wanted = (rates != self._rates) | (strength != self._strength)
        log_likelihoods_by_place(*self._given, strength, rates, wanted, self._values)
        self._strength, self._rates = strength, rates.copy()
        return self._values.copy()


@dataclasses.dataclass
class LearnDecayPrior(Move):
    """Draw what is learned of the prior of the decays by slice steps; nothing where all of it is given.

    With more than so many ``groups``, now and then: the time it takes grows with their number. That stays as
    it is, so it may say how often.
    """

    groups: float = math.inf

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """Draw all rates, then the strength, each given the other."""
        learned = state.model.learned
        if not learned or (self.groups < math.inf and rng.random() * state.n_clusters >= self.groups):
            return Info("decay-prior", 0, 0)
        strength, rates = state.strength, state.rates
        used = slice(None, state.n_clusters)
        totals, counts = state.clusters.totals[used], state.clusters.counts[used]
        by_place = ByPlace(state.tables, totals, counts)
        rate, size = learned.get("prior_rate"), learned.get("prior_strength")
        if rate is not None:

            def of_rates(logs: FloatArray) -> FloatArray:
                inside = rate.within(np.exp(logs))
                return rate.log_density(logs) + by_place(strength, inside)

            rates = rate.within(np.exp(slice_step(rng, np.log(rates), of_rates)))
        if size is not None:

            def of_strength(log: float) -> float:
                inside = float(size.within(math.exp(log)))
                return size.log_density_of(log) + float(by_place(inside, rates).sum())

            strength = float(size.within(math.exp(slice_number(rng, math.log(strength), of_strength))))
        state.take_decay_prior(strength, rates)
        return Info("decay-prior", 1, 1)
