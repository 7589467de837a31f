"""The permutation-augmented move: a whole clustering is drawn at once (Liang, Jordan & Taskar 2007)."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import permix.moves.permutation_jit as program
from permix.errors import DataError
from permix.families.base import check_number
from permix.moves.base import Info, Move, check_at_least
from permix.moves.state import MixtureState, PartitionState, learned_concentration
from permix.partitions.concentration_jit import draw_concentration, log_mean_power
from permix.partitions.priors import Gamma, PriorTables

FloatArray = npt.NDArray[np.float64]
Method = Literal["beam", "approximate", "exact"]
Order = Literal["uniform", "markov"]
# The table of all segments takes 8 n² bytes; the exact program also takes n³/6 steps.
MOST_DATA = {"approximate": 5000, "exact": 1000}


@dataclasses.dataclass
class Permutation(Move):
    """Draw an ordering of the data given the groups, then groups given the ordering.

    In the ordering every group is a segment. All ways to cut it into segments are then summed over by
    dynamic programming and one is drawn, so that many groups may change at once. Sections are those of
    Liang, Jordan & Taskar (2007).

    Parameters
    ----------
    method : "beam", "approximate" or "exact"
        "exact" draws from p(C | π, x) itself, in O(n³) (section 3.1), and is for a few hundred data.
        "approximate" replaces 1/K! by β^-K, in O(n²), and corrects by a Metropolis step (section 3.2). "beam"
        also follows only a few segments at each position, in O(n) (section 3.3).
    order : "uniform" or "markov"
        How an ordering is drawn: uniformly, or by Markov Gibbs scans, which put similar data of a group
        side by side (section 4.1) and cost O(m²) for a group of m.
    width : int
        Segments kept by the beam at each position.
    tolerance : float
        Share of the sum that the beam may leave out at each position beyond that.
    n_clusters : float, optional
        Number of groups K₀ about which 1/K! is approximated: β = exp Ψ(K₀ + 1). Left out, it is learned
        during burn-in as the mean number of groups and then stays fixed; a β that follows the chain after
        burn-in would make it wrong. Without burn-in it is the prior mean.
    integrate : bool
        Where the concentration is learned: sum over it inside the program, and draw it anew given the
        groups. Otherwise the move keeps its present value.

    Notes
    -----
    The posterior is left invariant by every setting. With the beam the current clustering may not be among
    those summed over; then it could not be proposed from the new one either, and it stays. So a narrow beam
    alone may never reach some clusterings: take it together with :class:`~permix.moves.Gibbs`.
    """

    method: Method = "beam"
    order: Order = "uniform"
    width: int = 5
    tolerance: float = 0.0
    n_clusters: float | None = None
    integrate: bool = True

    def __post_init__(self) -> None:
        if self.method not in ("beam", "approximate", "exact"):
            raise DataError(f"method must be 'beam', 'approximate' or 'exact', got {self.method!r}")
        if self.order not in ("uniform", "markov"):
            raise DataError(
                f"order must be 'uniform' or 'markov', got {self.order!r}; random projections are an "
                "optimizer for burn-in: see permix.moves.Projection"
            )
        check_beam(self.width, self.tolerance)
        if self.n_clusters is not None:
            check_number(self.n_clusters, "n_clusters")
        if not isinstance(self.integrate, bool):
            raise DataError(f"integrate must be True or False, got {self.integrate!r}")
        self.draws_concentration = self.integrate
        self._expected = self.n_clusters
        self._scratch: Scratch | None = None

    def during_burn_in(self) -> Move:
        """Return the version that learns K₀, where that is needed and not given."""
        return self if self.method == "exact" or self.n_clusters is not None else LearningPermutation(self)

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Draw an ordering and propose a clustering that cuts it into segments."""
        state.require_seated("permutation")
        if self._expected is None:
            self._expected = state.prior_spec.expected_clusters(state.n)
        scratch = self._scratch = scratch_for(self._scratch, state, self.method, self.width, self.order)
        clusters = (state.labels, state.sizes, state.n_clusters, scratch.order, scratch.firsts)
        if self.order == "uniform":
            program.draw_uniform_order(rng, *clusters)
        else:
            program.draw_markov_order(rng, scratch.single, state.data, *clusters)
        log_count = self._log_count(state)
        if self.method == "exact":
            program.fill_scores(scratch.stats, *scratch.points(state), scratch.scores)
            program.exact_program(scratch.scores, scratch.sums)
            weights = np.array([-np.inf, *map(log_count, range(1, state.n + 1))])
            sums = (scratch.scores, scratch.sums, weights)
            n_segments = int(program.draw_exact(rng, *sums, scratch.work, scratch.bounds))
            accepted = n_segments > 0
        else:
            slope = self._slope(state, log_count)
            n_segments = self._propose(rng, state, scratch, slope)
            log_ratio = -math.inf
            if n_segments > 0:
                # Equation 5 differs from equation 4 by A(K) against e^(slope K) alone.
                log_ratio = log_count(n_segments) - log_count(state.n_clusters)
                log_ratio -= slope * (n_segments - state.n_clusters)
            accepted = -rng.standard_exponential() <= log_ratio
        work = self._work(state.n, state.sizes_in_use)
        state.n_moved = state.adopt_segments(scratch.order, scratch.bounds, n_segments) if accepted else 0
        gamma = self._summed_over(state)
        if gamma is not None:
            given = (gamma.shape, gamma.rate, state.n_clusters, state.n)
            state.concentration = float(draw_concentration(rng, *given))
        return Info("permutation", 1, int(accepted), work=work)

    def _work(self, n: int, sizes: np.ndarray) -> float:
        # Factors are times measured beside those of a sweep.
        work = 5.0 * n * (self.width + 1) if self.method == "beam" else 2.5 * n * n
        if self.method == "exact":
            work += 0.15 * n**3
        if self.order == "markov":
            work += 5.0 * float(np.square(sizes, dtype=np.float64).sum())
        return work

    def _summed_over(self, state: PartitionState) -> Gamma | None:
        """The prior of the concentration, where the program sums over it."""
        return learned_concentration(state.prior_spec) if self.integrate else None

    def _log_count(self, state: PartitionState) -> Callable[[int], float]:
        """Return ln A(K) as a function of K, up to a constant; the concentration may be summed over."""
        gamma = self._summed_over(state)
        if gamma is not None:
            n = state.n
            return lambda k: _log_mean_power(gamma.shape, gamma.rate, k, n) - math.lgamma(k + 1.0)
        prior = state.prior
        return lambda k: prior.log_new_clusters(k) - math.lgamma(k + 1.0)

    def _slope(self, state: PartitionState, log_count: Callable[[int], float]) -> float:
        """Derivative of ln A(K) at K₀: for a Dirichlet process ln α - Ψ(K₀ + 1) (section 3.2, corrected)."""
        from scipy.special import digamma

        assert self._expected is not None
        at = self._expected
        if self._summed_over(state) is not None:
            below = max(math.floor(at), 1)
            return log_count(below + 1) - log_count(below)
        prior = state.prior
        if prior.discount < 0.0:
            at = min(at, state.prior_spec.most_clusters(state.n) - 0.5)
        return prior.opening_between(at) - float(digamma(at + 1.0))

    def _propose(self, rng: np.random.Generator, state: MixtureState, scratch: Scratch, slope: float) -> int:
        """Draw a clustering from the approximation; returns its number of groups, -1 when it is none."""
        points = scratch.points(state)
        if self.method == "approximate":
            program.fill_scores(scratch.stats, *points, scratch.scores)
            program.approximate_program(scratch.scores, slope, scratch.sums[0])
            sums = (scratch.scores, scratch.sums[0])
            return int(program.draw_approximate(rng, *sums, scratch.work, scratch.bounds))
        kept, beam = (scratch.kept_starts, scratch.kept_terms), (slope, self.width, self.tolerance)
        program.beam_program(scratch.stats, *points, *beam, scratch.firsts[:0], *kept)
        if not program.in_beam(scratch.kept_starts, scratch.firsts, state.n_clusters):
            return -1
        return int(program.draw_beam(rng, *kept, scratch.bounds))

    def checkpoint(self) -> dict[str, np.ndarray]:
        """K₀, where known."""
        return {} if self._expected is None else {"expected": np.array(self._expected)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        known = dict(arrays)
        if "expected" in known:
            self._expected = float(known.pop("expected"))
        super().restore(known)


@dataclasses.dataclass
class LearningPermutation(Move):
    """A permutation move that approximates 1/K! about the present number of groups, and averages it.

    Not exact: for burn-in only (section 3.2). In the mean the t-th step has weight t.
    """

    move: Permutation
    exact = False

    def __post_init__(self) -> None:
        self._n_steps = 0
        self._mean = 0.0

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Do a step of the move, then learn."""
        self.move._expected = float(max(state.n_clusters, 1))
        info = self.move.step(rng, state)
        self._n_steps += 1
        self._mean += (state.n_clusters - self._mean) * min(1.0, 2.0 / (self._n_steps + 1.0))
        self.move._expected = self._mean
        return info

    def checkpoint(self) -> dict[str, np.ndarray]:
        """The mean so far."""
        return {"n_steps": np.array(self._n_steps), "mean": np.array(self._mean)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._n_steps = int(arrays["n_steps"])
        self._mean = float(arrays["mean"])


@dataclasses.dataclass
class Scratch:
    """Arrays a move works in, made once for a state."""

    key: tuple[MixtureState, int, str, int, str]  # what the arrays were made for
    order: np.ndarray
    firsts: np.ndarray
    bounds: np.ndarray
    size_weights: FloatArray
    stats: Any
    single: Any
    kept_starts: np.ndarray
    kept_terms: FloatArray
    scores: FloatArray
    sums: FloatArray
    work: FloatArray

    def points(self, state: MixtureState) -> tuple[Any, Any, Any, Any, Any]:
        """The data in their order, as programs over segments take them."""
        return self.single, state.data, state.empty_scores, self.order, self.size_weights


def scratch_for(
    scratch: Scratch | None, state: MixtureState, method: Method, width: int, order: str
) -> Scratch:
    """Return the arrays at hand, or new ones when they belong to another state."""
    key = (state, state.family_version, method, width, order)
    if scratch is not None and scratch.key[0] is state and scratch.key[1:] == key[1:]:
        return scratch
    n = state.n
    table = method != "beam"
    if table and n > MOST_DATA[method]:
        raise DataError(
            f"Permutation(method={method!r}) is for at most {MOST_DATA[method]:,} data, these are {n:,}: "
            "use method='beam'"
        )
    n_slots = 1 if table else min(width, n) + 1
    return Scratch(
        key=key,
        order=np.empty(n, dtype=np.int64),
        firsts=np.empty(n + 1, dtype=np.int64),
        bounds=np.empty(n + 1, dtype=np.int64),
        # Only prior weights of joining enter, and these do not change with the concentration.
        size_weights=size_weights(state.prior, order == "uniform"),
        stats=state.empty_clusters(n_slots),
        single=state.empty_clusters(1) if order == "markov" else None,
        kept_starts=np.empty((0 if table else n, n_slots), dtype=np.int32),
        kept_terms=np.empty((0 if table else n, n_slots)),
        scores=np.empty((n, n) if table else (0, 0)),
        sums=np.empty((n + 1 if method == "exact" else 1, n + 1)),
        work=np.empty(n + 1),
    )


def size_weights(prior: PriorTables, uniform: bool) -> FloatArray:
    """Ln of what B owes to a cluster's size m alone; m = 1 ... n.

    ``uniform`` says whether the ordering is uniform within clusters: then it includes 1/m!.
    """
    steps = prior.joining[:-1]
    if uniform:
        steps = np.stack([steps, -np.log(np.arange(1, len(prior.joining)))], axis=1).ravel()
    return np.append(-np.inf, np.cumsum(steps)[int(uniform) :: 1 + int(uniform)])


_log_mean_power = functools.lru_cache(maxsize=10_000)(log_mean_power)


def check_beam(width: int, tolerance: float) -> None:
    """Refuse settings of a beam that make no sense."""
    check_at_least(width, "width", 1)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0.0 <= tolerance < 1.0:
        raise DataError(f"tolerance must be a number, at least 0 and below 1, got {tolerance!r}")
