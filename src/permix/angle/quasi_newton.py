"""Maximum likelihood of mixtures by a proper normalizer: EM's direction, bent by what earlier steps showed.

One pass over the data has the log-likelihood and its gradient in tilts and log-weights. Divided by what the
information would be if all components were known, the gradient is a step of EM, whose pace is set by how much
they overlap; limited-memory BFGS (Jamshidian & Jennrich 1997, who call it QN2) starts from that and learns
the rest, in a fraction of the passes. No step is taken unless the likelihood grows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from permix.angle.components import EMPTY, AngleComponents
from permix.data.labels import Array
from permix.distributions.angle.normalizers import log_sums_and_gradients

# Steps remembered, and the share of the promised gain that a step must bring.
MEMORY = 20
WORTH = 1e-4
# A step changes no tilts by more than their own length or this, and no log-weight by more than the second.
LONGEST, HEAVIEST = 2.0, 2.0


class Summed:
    """Full rankings whose components are known: Σ y (K, items), and how many each component has."""

    def __init__(self, sums: Array, masses: Array, scores: Array) -> None:
        self.sums, self.masses, self.scores = sums, masses, scores
        self.n_items, self.n_agents = len(scores), float(masses.sum())

    def uphill(self, tilts: Array, log_weights: Array, normalizer: str) -> tuple[float, Array, Array]:
        """Return the log-likelihood, its gradient in the tilts, and the masses; as data do."""
        log_sums, expected = log_sums_and_gradients(normalizer, tilts, self.scores)
        total = float((tilts * self.sums).sum() + self.masses @ (log_weights - log_sums))
        return total, self.sums - self.masses[:, None] * expected, self.masses


class Position:
    """Tilts and log-weights, with the log-likelihood and its gradient there."""

    def __init__(self, values: Array, data: Any, normalizer: str) -> None:
        t = data.n_items
        k = len(values) // (t + 1)
        self.tilts = values[: k * t].reshape(k, t)
        log_weights = values[k * t :] - np.logaddexp.reduce(values[k * t :])
        self.values, self.weights = np.append(self.tilts, log_weights), np.exp(log_weights)
        self.total, slope, self.masses = data.uphill(self.tilts, log_weights, normalizer)
        self.expected = data.n_agents * self.weights
        self.gradient = np.append(slope, self.masses - self.expected)

    def step_of_em(self, gradient: Array) -> Array:
        """Divide by the information that all components would have if they were known.

        It is that of a von Mises–Fisher distribution, A'(κ) along the tilts and A(κ)/κ across, with a close
        bound (Amos 1974) in the place of A.
        """
        k, t = self.tilts.shape
        slopes = gradient[: k * t].reshape(k, t)
        length = np.linalg.norm(self.tilts, axis=1)
        root = np.hypot(length, 0.5 * t)
        base = 0.5 * t - 1.0 + root
        across, along = base, base * base / (base - length * length / root)
        units = self.tilts / np.maximum(length, 1e-300)[:, None]
        steps = across[:, None] * slopes
        steps += ((along - across) * np.einsum("kt,kt->k", units, slopes))[:, None] * units
        steps /= np.where(self.masses < EMPTY, np.inf, self.masses)[:, None]
        return np.append(steps, gradient[k * t :] / np.maximum(self.masses, self.expected))

    def longest(self, direction: Array) -> float:
        """Return the share of a direction that may be gone at once."""
        k, t = self.tilts.shape
        lengths = np.linalg.norm(direction[: k * t].reshape(k, t), axis=1)
        most = np.maximum(LONGEST, np.linalg.norm(self.tilts, axis=1))
        excess = max(float((lengths / most).max()), float(np.abs(direction[k * t :]).max()) / HEAVIEST)
        return 1.0 / max(1.0, excess)


def rise(
    start: AngleComponents,
    data: Any,
    max_iter: int,
    tol: float,
    follow: Callable[[float], bool] | None = None,
) -> tuple[AngleComponents, list[float], bool]:
    """Climb from these components; ``data`` are rankings or :class:`Summed`.

    Returns where it ended, the log-likelihood after each step, and whether it converged.
    """
    with np.errstate(divide="ignore"):
        log_weights = np.maximum(np.log(start.weights), -700.0)
    end, history, converged = climbed(start.tilts, log_weights, start.normalizer, data, max_iter, tol, follow)
    tilts = end.tilts - end.tilts.mean(axis=1, keepdims=True)
    kappas = np.linalg.norm(tilts, axis=1)
    known = kappas > 0.0
    directions = np.where(known[:, None], tilts / np.where(known, kappas, 1.0)[:, None], start.directions)
    return AngleComponents(start.items, end.weights, directions, kappas, start.normalizer), history, converged


def climbed(
    tilts: Array,
    log_weights: Array,
    normalizer: str,
    data: Any,
    max_iter: int,
    tol: float,
    follow: Callable[[float], bool] | None = None,
) -> tuple[Position, list[float], bool]:
    """Climb until two steps in turn gain less than ``tol`` an agent, or until nothing is left to gain."""
    here = Position(np.append(tilts, log_weights), data, normalizer)
    memory: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
    history, small = [here.total], 0
    while small < 2 and len(history) <= max_iter and (follow is None or follow(here.total)):
        direction = _bent(here, memory)
        promised = float(direction @ here.gradient)
        there = _better(here, direction, promised, data, normalizer)
        if there is None:  # what was learnt misleads, or this is the top
            small = 0 if memory else 2
            memory.clear()
            continue
        small = small + 1 if there.total - here.total < tol * data.n_agents else 0
        change, bent = there.values - here.values, here.gradient - there.gradient
        curvature = float(change @ bent)
        if curvature > 1e-12 * float(np.linalg.norm(change) * np.linalg.norm(bent)):
            memory.append((change, bent, 1.0 / curvature))
        here = there
        history.append(here.total)
    return here, history, small == 2


def _better(here: Position, direction: Array, promised: float, data: Any, normalizer: str) -> Position | None:
    """Return a position along the direction that brings its share of what is promised, or None."""
    size = here.longest(direction)
    while promised > 1e-15 * abs(here.total) and size > 1e-9:
        there = Position(here.values + size * direction, data, normalizer)
        if there.total >= here.total + WORTH * size * promised:
            return there
        # The top of the parabola through both ends.
        bend = 2.0 * (here.total + size * promised - there.total) / size
        size *= min(max(promised / bend, 0.1), 0.5) if bend < np.inf else 0.1
    return None


def _bent(here: Position, memory: deque[tuple[Array, Array, float]]) -> Array:
    """Return the step of EM, corrected by what was learnt: the two loops of limited-memory BFGS."""
    gradient, along = here.gradient, []
    for change, bend, scale in reversed(memory):
        along.append(scale * float(change @ gradient))
        gradient = gradient - along[-1] * bend
    step = here.step_of_em(gradient)
    for (change, bend, scale), share in zip(memory, reversed(along), strict=True):
        step = step + (share - scale * float(bend @ step)) * change
    return step
