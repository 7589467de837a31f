"""The posterior of one angle-based model given full rankings, by quadrature or SIR (section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from permix.angle.components import AnglePrior, largest_concentration
from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import bessel_ratio
from permix.distributions.angle.concentration import LEAST, ConcentrationPosterior
from permix.distributions.angle.scores import draw_direction
from permix.errors import Argument, DataError

# Nodes of the grid: the whole posterior within e^-37 of its mode, about 17 standard deviations.
N_NODES = 512
# A proposal is wider than the posterior by this factor, so that no candidate weighs too much.
WIDER = 1.5


@dataclass(frozen=True, eq=False)
class Evidence:
    """What full rankings of one component say: their number N, β m = β₀ m₀ + Σ y, and the prior."""

    n: float
    length: float
    direction: Array
    prior: AnglePrior
    # The largest κ of the prior: up to it no ranking gets a probability above one, whatever the direction.
    # It depends on the number of items alone, so that a Gibbs sampler has one posterior to converge to.
    cap: float

    @classmethod
    def of(cls, sums: Array, n: float, prior: AnglePrior, scores: Array, component: int = 0) -> Evidence:
        """Collect what Σ y of a component and its number of rankings say."""
        vector = sums + prior.pulls[component]
        length = float(np.linalg.norm(vector))
        if length <= 1e-12:  # nothing is known: any direction, θ is uniform
            length, vector = 0.0, np.arange(len(sums)) - (len(sums) - 1) / 2.0
        direction = vector / np.linalg.norm(vector)
        return cls(n, length, direction, prior, largest_concentration(len(scores)))

    @property
    def order(self) -> float:
        """Order ν = (t-3)/2 of the Bessel functions."""
        return 0.5 * (len(self.direction) - 3.0)

    @property
    def posterior(self) -> ConcentrationPosterior:
        """p(κ | Y)."""
        known = (self.prior.strength, self.prior.shape, self.prior.rate)
        return ConcentrationPosterior(self.order, self.n, self.length, *known)

    def grid(self, n_nodes: int = N_NODES) -> tuple[Array, Array, float]:
        """Return nodes κ, their probabilities, and ln of the integral of p(κ | Y) without its constant."""
        return self.posterior.grid(self.cap, n_nodes)

    def log_density(self, kappas: Array) -> Array:
        """Return ln p(κ | Y) as a density of κ, without its constant; minus infinity above the cap."""
        return np.where(kappas <= self.cap, self.posterior.log_density(kappas) - np.log(kappas), -np.inf)

    def proposal(self) -> tuple[float, float]:
        """Return shape and rate of a Gamma distribution somewhat wider than p(κ | Y)."""
        shape, rate = self.posterior.laplace_gamma()
        mean = min(shape / rate, self.cap)
        return shape / WIDER**2, shape / WIDER**2 / mean

    def log_weights(self, kappas: Array, shape: float, rate: float) -> Array:
        """Return ln p(κ | Y) less that of a Gamma that κ was drawn from, without constants."""
        return self.log_density(kappas) - ((shape - 1.0) * np.log(kappas) - rate * kappas)

    def mean_tilts(self, kappas: Array) -> Array:
        """Return the length of E[κθ | κ] for each κ, κ A(βκ)."""
        return np.asarray(kappas * bessel_ratio(self.order, self.length * kappas))

    def directions_given(self, kappas: Array, rng: np.random.Generator) -> Array:
        """Draw θ | κ ~ von Mises–Fisher(m, βκ) in the zero-sum plane for each κ."""
        return np.array([draw_direction(rng, self.direction, self.length * kappa) for kappa in kappas])


class Resampled(NamedTuple):
    """Draws of κ, and the effective number of candidates they come from, (Σ w)² / Σ w²."""

    kappas: Array
    effective: float


def resample(
    evidence: Evidence,
    n_draws: int,
    n_candidates: int,
    rng: np.random.Generator,
    proposal: tuple[float, float] | None = None,
) -> Resampled:
    """Draw κ: candidates from a Gamma distribution, chosen by weight.

    The paper's proposal has mean κ̂ and a variance to be guessed; here it follows the posterior's own width.
    """
    shape, rate = evidence.proposal() if proposal is None else proposal
    candidates = np.maximum(rng.gamma(shape, 1.0 / rate, size=n_candidates), LEAST)
    log_weights = evidence.log_weights(candidates, shape, rate)
    if not np.isfinite(log_weights).any():
        raise DataError(
            "no candidate of SIR has any weight: the concentration is held at the largest value at which "
            "probabilities stay below one; use ",
            Argument("normalizer", "auto"),
        )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    chosen = rng.choice(n_candidates, size=n_draws, p=weights)
    return Resampled(candidates[chosen], float(1.0 / (weights**2).sum()))
