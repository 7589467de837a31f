"""Posterior of one generalized Mallows model under its conjugate prior: draws of center and decays."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from permix.convergence import split_r_hat
from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.distributions.base import aligned, chain_text, whole_number
from permix.distributions.generalized import center_posterior_jit as center_posterior
from permix.distributions.generalized.finite_beta_jit import StageTables, stage_tables
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.distributions.generalized.list_statistics import list_statistics, top_lists
from permix.distributions.generalized.list_statistics_jit import ListStatistics
from permix.errors import ConvergenceWarning, DataError
from permix.runtime.seeds import RandomState, generator, stream_key
from permix.runtime.threads import run_in_threads

# Items up to which all n! centers are gone through: 40,320 take a tenth of a second.
ENUMERATE_UP_TO = 8
# Chains that agree stay below this R-hat; many quantities are looked at, so the usual 1.01 would cry wolf.
LARGEST_R_HAT = 1.1


@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedMallowsPosterior:
    """Draws of center and decays of one generalized Mallows model, and what they say.

    Attributes
    ----------
    items : tuple
        Item names.
    centers : int32 array (draws, items)
        Central orderings, best first, by position in ``items``; chain after chain.
    theta : float array (draws, stages)
        Decays of the stages that some list reached; those of later stages follow their prior.
    log_density : float array (draws,)
        Logarithm, up to a constant, of the posterior probability of each center, decays integrated out.
    rank_probabilities : float array (items, items)
        P(item a has rank r in the center), rows by position in ``items``, column 0 = best.
    before_probabilities : float array (items, items)
        P(the center puts item a before item b).
    n_lists : float array (stages,)
        Lists that reach each stage, those of the prior not counted.
    n_chains : int
        Chains of equal length that the draws come from.
    exact : bool
        True where all centers were gone through: draws are independent, and probabilities of ranks have no
        Monte Carlo error. False where they come from Markov chains.
    log_evidence : float or None
        Log-probability of the lists, center and decays integrated out; None unless ``exact``.
    r_hat : float or None
        Largest R-hat over decays, density and ranks of items; None where draws are independent.
    acceptance_rate : float or None
        Share of proposals accepted with decays integrated out; None where draws are independent.
    """

    items: tuple[Label, ...]
    n_lists: Array
    n_chains: int
    exact: bool
    centers: Array
    theta: Array
    log_density: Array
    rank_probabilities: Array
    before_probabilities: Array
    log_evidence: float | None = None
    r_hat: float | None = None
    acceptance_rate: float | None = None

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def mean_ranks(self) -> Array:
        """Mean rank of each item in the center, 1 = best, by position in ``items``."""
        return self.rank_probabilities @ np.arange(1, len(self.items) + 1)

    @property
    def consensus(self) -> tuple[Label, ...]:
        """Items by mean rank in the center, best first."""
        return tuple(self.items[item] for item in np.argsort(self.mean_ranks, kind="stable"))

    @property
    def theta_mean(self) -> Array:
        """Mean decay of each stage."""
        return np.asarray(self.theta.mean(axis=0))

    def theta_interval(self, probability: float = 0.89) -> Array:
        """Equal-tailed interval of each decay, one row (lower, upper) per stage."""
        if not 0.0 < probability < 1.0:
            raise DataError(f"probability={probability!r} must lie between 0 and 1")
        tail = 0.5 * (1.0 - probability)
        return np.quantile(self.theta, [tail, 1.0 - tail], axis=0).T

    def model(self, draw: int) -> GeneralizedMallows:
        """One draw as a distribution; stages that no list reached have decay 0."""
        center = Rankings._from_arrays(self.centers[draw][None], self.items)
        return GeneralizedMallows(center, self.theta[draw])

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"{self.n_chains} chains, R-hat {self.r_hat:.3f}"
        draws = f"{len(self)} draws ({how})"
        lines = [f"GeneralizedMallowsPosterior: {draws}, items by mean rank {chain_text(self.consensus)}"]
        for stage, (low, high) in enumerate(self.theta_interval()[:8]):
            mean, n_lists = self.theta_mean[stage], self.n_lists[stage]
            lines.append(f"  theta {stage + 1}: {mean:.3g} ({low:.3g} to {high:.3g}), {n_lists:g} lists")
        if self.theta.shape[1] > 8:
            lines.append(f"  … ({self.theta.shape[1] - 8} more)")
        return "\n".join(lines)


def draw_posterior(
    rankings: Rankings,
    prior: tuple[float, float | Sequence[float] | Array, Rankings | None],
    rounds: tuple[int, int, int, int],
    random_state: RandomState,
) -> GeneralizedMallowsPosterior:
    """Do what :meth:`GeneralizedMallows.posterior` says."""
    lists = top_lists(rankings)
    prior_strength, prior_rate, prior_rankings = prior
    is_number = isinstance(prior_strength, int | float | np.number) and not isinstance(prior_strength, bool)
    if not is_number or not 0.0 < prior_strength < math.inf:
        raise DataError(f"prior_strength={prior_strength!r} must be a positive number")
    names = ("n_draws", "n_burn_in", "n_thin", "n_chains")
    for name, value, least in zip(names, rounds, (1, 0, 1, 1), strict=True):
        whole_number(name, value, least)
    strength, n = float(prior_strength), lists.n_items
    everything, nothing = [(lists, np.ones(n))], [(lists, np.zeros(n))]
    n_lists = list_statistics(everything).lists
    if prior_rankings is not None:
        before = aligned(top_lists(prior_rankings, "prior_rankings"), lists.items)
        reached = list_statistics([(before, np.ones(n))]).lists
        share = np.zeros(n)
        share[: len(reached)] = strength / reached
        everything.append((before, share))
        nothing.append((before, share))
        n_lists = np.append(n_lists, np.zeros(max(0, len(reached) - len(n_lists))))
    # Prior lists add to the skips only: ν counts them in the exponent of ψ, whether they are given or not.
    stats = list_statistics(everything)._replace(lists=n_lists)
    rates = _rates(prior_rate, len(n_lists))
    tables = stage_tables(n, len(n_lists), rates, strength, int(n_lists.max(initial=0)))
    rng = generator(random_state)
    if n <= ENUMERATE_UP_TO:
        found = _by_enumeration(stats, tables, rounds[0] * rounds[3], rng)
        before_data = list_statistics(nothing)._replace(lists=np.zeros(len(n_lists)))
        found["log_evidence"] = found.pop("log_total") - _all_centers(before_data, tables)[3]
    else:
        found = _by_chains(stats, tables, rounds, rng)
    return GeneralizedMallowsPosterior(items=lists.items, n_lists=n_lists, n_chains=rounds[3], **found)


def _rates(prior_rate: object, n_stages: int) -> Array:
    """Check r_j, one number or one per stage."""
    try:
        rates = np.asarray(prior_rate, dtype=np.float64)
    except (TypeError, ValueError):
        rates = np.full(1, np.nan)
    if rates.ndim > 1 or not rates.size or not np.all((rates > 0) & np.isfinite(rates)):
        raise DataError(f"prior_rate={prior_rate!r} must be a positive number or one per stage")
    if rates.ndim == 0:
        return np.full(n_stages, float(rates))
    if len(rates) < n_stages:
        raise DataError(f"prior_rate has {len(rates)} numbers, but lists reach {n_stages} stages")
    return np.array(rates[:n_stages])


def _all_centers(stats: ListStatistics, tables: StageTables) -> tuple[Array, Array, Array, float]:
    """All centers, their skips, their log densities with decays integrated out, and the log of the sum."""
    n, n_stages = stats.n_items, len(stats.lists)
    orders = np.array(list(itertools.permutations(range(n))), dtype=np.int64)
    ranks = np.argsort(orders, axis=1)[:, stats.items]
    skips = ranks @ stats.totals.T
    pairs = zip(stats.stage, stats.item, stats.earlier, stats.weight, strict=True)
    for stage, item, earlier, weight in pairs:
        skips[:, stage] -= weight * (ranks[:, earlier] < ranks[:, item])
    logs = np.zeros(len(orders))
    for stage in range(n_stages):
        # Totals that differ by rounding only may count as different: that costs time, not truth.
        values, which = np.unique(skips[:, stage], return_inverse=True)
        logs += center_posterior.marginal_densities(tables, stats.lists, stage, values)[which]
    peak = logs.max()
    return orders, skips, logs, float(peak + np.log(np.exp(logs - peak).sum()))


def _by_enumeration(
    stats: ListStatistics, tables: StageTables, n_draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    orders, skips, logs, log_total = _all_centers(stats, tables)
    weights = np.exp(logs - log_total)
    ranks, before = _rank_probabilities(orders, weights)
    drawn = rng.choice(len(orders), size=n_draws, p=weights / weights.sum())
    theta = np.empty((n_draws, skips.shape[1]))
    center_posterior.draw_decays(stream_key(rng), tables, stats.lists, skips[drawn], theta)
    return {
        "centers": orders[drawn].astype(np.int32),
        "theta": theta,
        "log_density": logs[drawn],
        "rank_probabilities": ranks,
        "before_probabilities": before,
        "exact": True,
        "log_total": log_total,
    }


def _by_chains(
    stats: ListStatistics, tables: StageTables, rounds: tuple[int, int, int, int], rng: np.random.Generator
) -> dict[str, Any]:
    n_draws, n_burn_in, n_thin, n_chains = rounds
    centers = np.empty((n_chains, n_draws, stats.n_items), dtype=np.int32)
    theta = np.empty((n_chains, n_draws, len(stats.lists)))
    density = np.empty((n_chains, n_draws))
    key = stream_key(rng)

    def run(chain: int, rounds: tuple[int, int, int]) -> float:
        place = (centers[chain], theta[chain], density[chain])
        return float(center_posterior.run_center_chain(key, chain, stats, tables, *rounds, *place))

    run(0, (0, 0, 1))  # compile, or load from the cache, once
    rates = run_in_threads(lambda chain: run(chain, (n_burn_in, n_draws, n_thin)), range(n_chains))
    orders = centers.reshape(-1, stats.n_items)
    ranks, before = _rank_probabilities(orders, np.full(len(orders), 1.0 / len(orders)))
    places = np.argsort(centers, axis=2)
    r_hat = max(
        float(split_r_hat(values).max(initial=1.0))
        for values in (theta, density[..., None], places[..., stats.items].astype(np.float64))
    )
    if not r_hat <= LARGEST_R_HAT:  # NaN, for too few draws, included
        warnings.warn(
            f"the {n_chains} chains of {n_draws} draws do not agree (R-hat {r_hat:.3g} over decays and "
            "ranks); raise n_burn_in and n_draws",
            ConvergenceWarning,
            stacklevel=4,
        )
    return {
        "centers": orders,
        "theta": theta.reshape(len(orders), -1),
        "log_density": density.reshape(-1),
        "rank_probabilities": ranks,
        "before_probabilities": before,
        "exact": False,
        "r_hat": r_hat,
        "acceptance_rate": float(np.mean(rates)),
    }


def _rank_probabilities(orders: Array, weights: Array) -> tuple[Array, Array]:
    """P(item at rank) and P(item before item) of weighted orderings."""
    n = orders.shape[1]
    ranks = np.argsort(orders, axis=1)
    at = np.stack([np.bincount(ranks[:, item], weights, minlength=n) for item in range(n)])
    before = np.stack([weights @ (ranks[:, item : item + 1] < ranks) for item in range(n)])
    return at, before
