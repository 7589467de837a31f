"""Uncertainty about a partition: the credible ball of Wade & Ghahramani (2018, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from permix.errors import DataError
from permix.partitions.geometry import FloatArray, Loss, check_partition, loss_table, losses_to, n_clusters_of
from permix.partitions.labels import IntArray, as_draws
from permix.partitions.point_estimate import PointEstimate

# Distances closer than this are equal up to rounding.
SAME_DISTANCE = 1e-9


@dataclass(frozen=True)
class CredibleBall:
    """The draws nearest to an estimate that reach a posterior probability; see :func:`credible_ball`.

    Attributes
    ----------
    level : float
        Probability asked for.
    coverage : float
        Fraction of draws in the ball, at least ``level``.
    loss : {"vi", "binder"}
        The distance.
    radius : float
        Greatest distance from the estimate to a draw in the ball.
    distances : ndarray, shape (draws,)
        Distance of every draw, chains one after another.
    members : ndarray of bool, shape (draws,)
        Which draws are in the ball.
    horizontal : ndarray of int32, shape (bounds, n)
        Partitions in the ball that are farthest from the estimate.
    upper : ndarray of int32, shape (bounds, n)
        Upper vertical bound: those with the fewest groups and, among these, farthest.
    lower : ndarray of int32, shape (bounds, n)
        Lower vertical bound: those with the most groups and, among these, farthest.
    """

    level: float
    coverage: float
    loss: str
    radius: float
    distances: FloatArray = field(repr=False)
    members: npt.NDArray[np.bool_] = field(repr=False)
    horizontal: IntArray = field(repr=False)
    upper: IntArray = field(repr=False)
    lower: IntArray = field(repr=False)

    def __repr__(self) -> str:
        def bound(partitions: IntArray) -> str:
            clusters = sorted({n_clusters_of(partition) for partition in partitions})
            return f"{len(partitions)} with {' or '.join(map(str, clusters))} groups"

        name = {"vi": "variation of information, bits", "binder": "Binder, fraction of pairs"}[self.loss]
        return (
            f"CredibleBall: radius {self.radius:.6g} ({name})\n"
            f"  draws in the ball       {self.members.sum()} of {len(self.members)}"
            f" ({self.coverage:.1%}, asked for {self.level:.1%})\n"
            f"  farthest (horizontal)   {bound(self.horizontal)}\n"
            f"  fewest groups (upper)   {bound(self.upper)}\n"
            f"  most groups (lower)     {bound(self.lower)}"
        )


def credible_ball(
    draws: npt.ArrayLike,
    estimate: PointEstimate | npt.ArrayLike,
    level: float = 0.95,
    loss: Loss | None = None,
) -> CredibleBall:
    """Smallest ball around an estimate that holds a given posterior probability.

    Parameters
    ----------
    draws : array-like of int, shape (draws, n) or (chains, draws, n)
        Posterior label vectors.
    estimate : PointEstimate or array-like of int, shape (n,)
        The center.
    level : float, default 0.95
        Probability that the ball must hold, in (0, 1].
    loss : {"vi", "binder"}, optional
        The distance; None takes that of a PointEstimate, otherwise "vi".

    Returns
    -------
    CredibleBall

    Examples
    --------
    >>> from permix.partitions import credible_ball
    >>> ball = credible_ball([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], [0, 0, 1, 1], level=0.9)
    >>> ball.horizontal
    array([[0, 0, 0, 1]], dtype=int32)
    """
    if not 0.0 < level <= 1.0:
        raise DataError(f"level must be greater than 0 and at most 1, not {level}")
    usual = estimate.loss if isinstance(estimate, PointEstimate) else "vi"
    distance = usual if loss is None else loss
    loss_table(distance, 0)  # names a wrong loss
    labels = estimate.labels if isinstance(estimate, PointEstimate) else estimate
    all_draws = as_draws(draws)
    center = check_partition(labels, all_draws.shape[1])
    distances = losses_to(center, all_draws, distance)
    # The least radius at which the fraction of draws within reaches the level.
    needed = int(np.ceil(level * len(distances) - 1e-9))
    radius = float(np.sort(distances)[max(needed, 1) - 1])
    members = distances <= radius + SAME_DISTANCE

    inside, reach = all_draws[members], distances[members]
    n_clusters = np.array([n_clusters_of(draw) for draw in inside])
    fewest, most = n_clusters == n_clusters.min(), n_clusters == n_clusters.max()
    return CredibleBall(
        level=float(level),
        coverage=float(members.mean()),
        loss=distance,
        radius=radius,
        distances=distances,
        members=members,
        horizontal=_farthest(inside, reach),
        upper=_farthest(inside[fewest], reach[fewest]),
        lower=_farthest(inside[most], reach[most]),
    )


def _farthest(partitions: IntArray, distances: FloatArray) -> IntArray:
    """The distinct partitions at the greatest distance."""
    return np.unique(partitions[distances >= distances.max() - SAME_DISTANCE], axis=0)
