"""Maximum likelihood of mixtures by a proper normalizer: EM's direction, bent by what earlier steps showed.

One pass over the data has the log-likelihood and its gradient in tilts and log-weights. Divided by what the
information would be if all components were known, the gradient is a step of EM, whose pace is set by how much
they overlap; limited-memory BFGS (Jamshidian & Jennrich 1997, who call it QN2) starts from that and learns
the rest, in a fraction of the passes. No step is taken unless the likelihood grows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from permix.angle.components import EMPTY, AngleComponents
from permix.angle.data import AngleData
from permix.data.labels import Array

# Steps remembered, and the share of the promised gain that a step must bring.
MEMORY = 20
WORTH = 1e-4
# A step changes no tilts by more than their own length or this, and no log-weight by more than the second.
LONGEST, HEAVIEST = 2.0, 2.0


class Position:
    """Tilts and log-weights, with the log-likelihood and its gradient there."""

    def __init__(self, values: Array, data: AngleData, normalizer: str) -> None:
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
    data: AngleData,
    max_iter: int,
    tol: float,
    follow: Callable[[float], bool] | None = None,
) -> tuple[AngleComponents, list[float], bool]:
    """Climb until two steps in turn gain less than ``tol`` an agent.

    Returns where it ended, the log-likelihood after each step, and whether it converged.
    """
    with np.errstate(divide="ignore"):
        log_weights = np.maximum(np.log(start.weights), -700.0)
    here = Position(np.append(start.tilts, log_weights), data, start.normalizer)
    memory: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
    history, small = [here.total], 0
    while small < 2 and len(history) <= max_iter and (follow is None or follow(here.total)):
        direction = _bent(here, memory)
        promised = float(direction @ here.gradient)
        if promised <= 0.0 and memory:
            memory.clear()
            continue
        size = here.longest(direction)
        there = Position(here.values + size * direction, data, start.normalizer)
        while there.total < here.total + WORTH * size * promised and size > 1e-9:
            # The top of the parabola through both ends.
            bend = 2.0 * (here.total + size * promised - there.total) / size
            size *= min(max(promised / bend, 0.1), 0.5) if np.isfinite(bend) else 0.1
            there = Position(here.values + size * direction, data, start.normalizer)
        if not there.total >= here.total:
            if not memory:
                small = 2
                break
            memory.clear()
            continue
        small = small + 1 if there.total - here.total < tol * data.n_agents else 0
        change, bend = there.values - here.values, here.gradient - there.gradient
        curvature = float(change @ bend)
        if curvature > 1e-12 * float(np.linalg.norm(change) * np.linalg.norm(bend)):
            memory.append((change, bend, 1.0 / curvature))
        here = there
        history.append(here.total)
    tilts = here.tilts - here.tilts.mean(axis=1, keepdims=True)
    kappas = np.linalg.norm(tilts, axis=1)
    known = kappas > 0.0
    directions = np.where(known[:, None], tilts / np.where(known, kappas, 1.0)[:, None], start.directions)
    parts = (here.weights, directions, kappas, start.normalizer)
    return AngleComponents(start.items, *parts), history, small == 2


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
