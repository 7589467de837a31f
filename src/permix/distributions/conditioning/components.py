"""The parameters of a mixture of Mallows models, checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.labels import Array, Label, OverItems
from permix.distributions.agent_weights.model import AgentWeights
from permix.distributions.mallows import Mallows
from permix.errors import DataError


@dataclass(frozen=True, eq=False)
class MallowsComponents(OverItems):
    """Mixture Σ_k π_k P(r | σ_k, φ_k) over full rankings."""

    items: tuple[Label, ...]  # names; arrays refer to items by position here
    weights: Array  # (K,): π_k, summing to one
    centers: Array  # int32 (K, m): central orderings σ_k, best first
    decays: Array  # (K,): λ_k = -ln φ_k, from 0 to infinity
    # How weights depend on what is known of agents, if they do; ``weights`` are then means over those fitted.
    by_agent: AgentWeights | None = None
    distance: str = "kendall"  # what λ_k is per unit of

    def __post_init__(self) -> None:
        # Own, writable, contiguous copies: compiled code is specialized for those.
        for name, kind in (("centers", np.int32), ("weights", np.float64), ("decays", np.float64)):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=kind, order="C"))
        centers, weights, decays = self.centers, self.weights, self.decays
        n_items, k = len(self.items), len(weights)
        if weights.ndim != 1 or k == 0 or centers.shape != (k, n_items) or decays.shape != (k,):
            raise DataError("weights, centers and decays must have one row for each group")
        if not (np.sort(centers, axis=1) == np.arange(n_items)).all():
            raise DataError("every center must list every item once")
        if not (weights >= 0.0).all() or not abs(weights.sum() - 1.0) <= 1e-5:
            raise DataError("weights must be 0 or more and sum to one")
        if not (decays >= 0.0).all():
            raise DataError("decays must be 0 or more")

    def with_values(self, weights: Array, centers: Array, decays: Array) -> MallowsComponents:
        """Return components with these arrays as they are, unchecked; the caller gives them away."""
        made = object.__new__(MallowsComponents)
        found = {"items": self.items, "weights": weights, "centers": centers, "decays": decays}
        made.__dict__.update(found, by_agent=self.by_agent, distance=self.distance)
        return made

    @property
    def n_components(self) -> int:
        """Number of components K."""
        return len(self.weights)

    @property
    def dispersions(self) -> Array:
        """φ_k = exp(-λ_k)."""
        return np.exp(-self.decays)

    @property
    def log_weights(self) -> Array:
        """Logarithms of π_k; minus infinity for a component of weight zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def log_weights_of(self, agents: AgentTable) -> Array:
        """Logarithms of π_k of some agents, (K,) or (rows, K) where they depend on what is known of these."""
        return self.log_weights if self.by_agent is None else self.by_agent.log_weights(agents)

    def component(self, k: int) -> Mallows:
        """Component k as a distribution of its own."""
        center = [self.items[item] for item in self.centers[k]]
        return Mallows(center, float(self.dispersions[k]), items=self.items, distance=self.distance)

    def sorted_by_weight(self) -> MallowsComponents:
        """Return the same mixture with the largest component first."""
        order = np.argsort(-self.weights, kind="stable")
        arrays = (self.weights[order], self.centers[order], self.decays[order])
        return MallowsComponents(self.items, *arrays, distance=self.distance)
