"""Random projections: a hill-climber over clusterings, for burn-in (Liang et al. 2007, section 4.2)."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.moves.base import Info, Move, check_at_least
from permix.moves.permutation import Scratch, check_beam, scratch_for
from permix.moves.permutation_jit import beam_program, draw_beam
from permix.moves.projection_jit import project_all
from permix.moves.state import MixtureState

# Tries to find a clustering with no more clusters than a finite prior allows.
MAX_TRIES = 12


@dataclasses.dataclass
class Projection(Move):
    """Order groups, and the data in each, along a random direction; then draw groups that are segments.

    An optimizer: the probability of such an ordering given the groups is not known, so the posterior is not
    left invariant. Use it during burn-in only; chains refuse it afterwards.

    Parameters
    ----------
    width : int
        Segments followed at each position.
    tolerance : float
        Share of the sum that may be left out at each position beyond that.
    max_turns : int
        Within a group the direction is first turned a random number of times, at most so many, towards the
        group's main axis; 0 leaves it as it was drawn, as in the paper.

    Notes
    -----
    Clusterings are drawn with probability proportional to p(C, x) among those that cut the ordering into
    segments, by the program of :class:`~permix.moves.Permutation` without p(π | C).
    """

    width: int = 5
    tolerance: float = 0.0
    max_turns: int = 3
    exact = False

    def __post_init__(self) -> None:
        check_beam(self.width, self.tolerance)
        check_at_least(self.max_turns, "max_turns", 0)
        self._scratch: Scratch | None = None
        self._scales: np.ndarray | None = None

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Draw a direction and a clustering along it."""
        state.require_seated("projection")
        before = self._scratch
        scratch = self._scratch = scratch_for(before, state, "beam", self.width, "given")
        if self._scales is None or scratch is not before:
            self._scales = state.family.direction_scales(state.data)
        scales = self._scales
        direction = rng.standard_normal(len(scales)) * scales
        turns = int(rng.integers(self.max_turns + 1))
        order_along(state, direction, scales, turns, scratch.order, scratch.firsts)
        n_segments = -1
        firsts, kept = scratch.firsts[: state.n_clusters], (scratch.kept_starts, scratch.kept_terms)
        # For a Dirichlet process w_new is the same for every new cluster, and nothing is approximated.
        prior = state.prior
        slope = prior.opening_between(state.n_clusters - 0.5)
        for attempt in range(MAX_TRIES):
            beam = (slope, self.width, self.tolerance)
            beam_program(scratch.stats, *scratch.points(state), *beam, firsts, *kept)
            n_segments = int(draw_beam(rng, *kept, scratch.bounds))
            if n_segments <= 0 or prior.log_new_clusters(n_segments) > -np.inf:
                break
            # More clusters than a finite prior has components: make new ones less probable.
            slope -= 10.0 * 2.0**attempt
            n_segments = -1
        found = n_segments > 0
        state.n_moved = state.adopt_segments(scratch.order, scratch.bounds, n_segments) if found else 0
        return Info("projection", 1, int(found), work=5.0 * state.n * (self.width + 1))


def order_along(
    state: MixtureState,
    direction: np.ndarray,
    scales: np.ndarray,
    n_turns: int,
    order: np.ndarray,
    firsts: np.ndarray,
) -> None:
    """List clusters by the mean of their projections on ``direction``, and the data of each by their own.

    Sorting is left to NumPy: in compiled code it takes long to compile.
    """
    clusters = (state.labels, state.sizes, state.n_clusters)
    projections, means = np.empty(state.n), np.empty(state.n_clusters)
    project_all(state.stats, state.data, direction, scales, n_turns, *clusters, projections, means)
    by_mean = np.argsort(means)
    order[:] = np.lexsort((projections, np.argsort(by_mean)[state.labels]))
    firsts[0] = 0
    np.cumsum(state.sizes[by_mean], out=firsts[1 : state.n_clusters + 1])
