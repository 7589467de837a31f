"""How large groups are in the population that data are a sample of, given who is in which.

Given a partition, the shares of its groups have a Dirichlet distribution, whatever the data are: for the
two-parameter family of Pitman (1996), with concentration α and discount σ, n_k - σ for each of K groups and
α + σ K for all groups that nobody was seen of. A finite Dirichlet of n groups with pseudo-count γ is that of
α = n γ and σ = -γ, and a mixture of such is one of them, drawn given K and the number of observations.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from permix.partitions.priors import FloatArray, MixtureOfFiniteMixtures, PartitionPrior, _TwoParameter

# Draws of shares that quantiles are taken of, at least.
MOST_DRAWN = 2_000


def dirichlet_given(
    prior: PartitionPrior,
    sizes: npt.ArrayLike,
    rng: np.random.Generator,
    n_clusters: npt.ArrayLike | None = None,
    log_opening: float | None = None,
) -> FloatArray:
    """Return the Dirichlet parameters of the shares of groups given their sizes, and last of those not seen.

    A group may be several clusters of the partition together, ``n_clusters`` of them, or none. ``rng`` is for
    the number of all groups, where the prior has such. ``log_opening`` is ln(α + σ K), where the
    concentration is learned and ``prior`` does not have it.
    """
    seen = np.asarray(sizes, dtype=np.float64)
    times = np.ones(len(seen)) if n_clusters is None else np.asarray(n_clusters, dtype=np.float64)
    n_all = int(times.sum())
    if isinstance(prior, MixtureOfFiniteMixtures):
        chances = _chances(prior, n_all, round(float(seen.sum())))
        drawn = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
        discount, rest = -prior.pseudo_count, prior.pseudo_count * (drawn - n_all)
    else:
        assert isinstance(prior, _TwoParameter)
        concentration, discount, _ = prior._two_parameters()
        rest = concentration + discount * n_all if log_opening is None else math.exp(log_opening)
    return np.append(seen - discount * times, max(rest, 0.0))


@lru_cache(maxsize=64)  # draws of a chain have few numbers of clusters
def _chances(prior: MixtureOfFiniteMixtures, n_clusters: int, n: int) -> FloatArray:
    """Return the distribution function of the number of all groups."""
    return np.cumsum(prior.n_components_probabilities(n_clusters, n))


def draw_shares(parameters: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the shares; what is missing to one is of groups without members."""
    weights = rng.standard_gamma(parameters)
    return np.asarray(weights[..., :-1] / weights.sum(axis=-1, keepdims=True))


def summarized_shares(parameters: list[FloatArray], tail: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means of the shares over partitions, and points that leave out ``tail`` on either side.

    Shares are drawn given each partition, always the same.
    """
    stacked = np.array(parameters)
    means = (stacked[:, :-1] / stacked.sum(axis=1, keepdims=True)).mean(axis=0)
    times = math.ceil(MOST_DRAWN / len(stacked))
    drawn = draw_shares(np.tile(stacked, (times, 1)), np.random.default_rng(0))
    low, high = np.quantile(drawn, (tail, 1.0 - tail), axis=0)
    return np.asarray(means), np.asarray(low), np.asarray(high)
