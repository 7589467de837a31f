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
from permix.dp_mallows.lists.clusters_jit import log_integrals
from permix.dp_mallows.state import ListState, with_prior
from permix.families.learning import FloatArray, slice_number, slice_step
from permix.moves.base import Info, Move


def log_likelihoods_by_place(
    tables: StageTables, totals: FloatArray, counts: FloatArray, strength: float, rates: FloatArray
) -> FloatArray:
    """Return ln p(lists | centers) of every place, summed over groups, under a prior of the decays.

    ``totals`` and ``counts``, (groups, places), are the skips of the groups' lists and how many there are.
    """
    prior = with_prior(tables, strength, rates)
    whole = np.empty(totals.shape)
    log_integrals(prior, prior.prior_a + totals, prior.prior_c + counts, whole)
    return np.asarray((whole - prior.prior_log_integral).sum(axis=0, where=counts > 0.0))


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

        def by_place(strength: float, rates: FloatArray) -> FloatArray:
            return log_likelihoods_by_place(state.tables, totals, counts, strength, rates)

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
