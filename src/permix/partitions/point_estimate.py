"""One partition to stand for many: the minimizer of the posterior expected loss."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from permix.errors import DataError, PermixWarning, Wording
from permix.partitions.geometry import FloatArray, Loss, loss_scale, loss_table, losses_to
from permix.partitions.labels import IntArray, as_draws, canonical_labels
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import RandomState, generator
from permix.runtime.threads import run_in_threads

if TYPE_CHECKING:
    from permix.partitions.search_jit import Draws

Numbers = npt.NDArray[np.int64]
# All draws are compared with all others while that takes no more than this many label comparisons
# (about ten seconds on one core); beyond, evenly spaced draws are compared with all.
LARGEST_COMPARISON = 10**10


@dataclass(frozen=True)
class PointEstimate:
    """A partition that summarizes posterior draws; see :func:`point_estimate`.

    Attributes
    ----------
    labels : ndarray of int32, shape (n,)
        Group of each observation, numbered by first appearance.
    n_clusters : int
        Number of groups.
    sizes : ndarray of int64
        Group sizes.
    loss : {"vi", "binder"}
        The loss whose posterior mean was minimized.
    expected_loss : float
        Its mean over all draws at ``labels`` (variation of information in bits).
    best_draw_loss : float
        The least mean loss of a draw; not below ``expected_loss`` unless ``max_clusters`` ruled that
        draw out.
    n_runs : int
        Number of searches that were completed.
    best_draw : ndarray of int32, shape (n,), optional
        The draw of least mean loss.
    """

    labels: IntArray = field(repr=False)
    n_clusters: int
    sizes: npt.NDArray[np.int64] = field(repr=False)
    loss: str
    expected_loss: float
    best_draw_loss: float
    n_runs: int
    best_draw: IntArray | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        name = {"vi": "variation of information, bits", "binder": "Binder, fraction of pairs"}[self.loss]
        sizes = ", ".join(map(str, sorted(self.sizes.tolist(), reverse=True)[:10]))
        more = ", ..." if self.n_clusters > 10 else ""
        return (
            f"PointEstimate: {len(self.labels)} observations in {self.n_clusters} groups\n"
            f"  sizes          {sizes}{more}\n"
            f"  expected loss  {self.expected_loss:.6g} ({name})\n"
            f"  best draw      {self.best_draw_loss:.6g}"
        )


def point_estimate(
    draws: npt.ArrayLike,
    loss: Loss = "vi",
    max_clusters: int | None = None,
    n_runs: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> PointEstimate:
    """Partition of least posterior expected loss.

    A stochastic search in the spirit of salso (Dahl, Johnson & Müller 2022) on the expected loss
    itself, not on a bound. One run starts from the best draw, the others allocate the observations
    one by one in random order; each then moves single observations, merges groups, and dissolves
    and rebuilds groups until nothing improves. The result is at least as good as the best draw.

    Parameters
    ----------
    draws : array-like of int, shape (draws, n) or (chains, draws, n)
        Posterior label vectors; labels need not agree between draws.
    loss : {"vi", "binder"}, default "vi"
        Variation of information, or Binder's loss (which tends to leave many small groups).
    max_clusters : int, optional
        Largest number of groups allowed. None allows twice the largest number in a draw, plus 16.
    n_runs : int, optional
        Number of runs, the one from the best draw included. None makes 8, and fewer, down to 3, for more
        than four million labels.
    random_state : int, Generator, SeedSequence or None
        Source of randomness.
    n_jobs : int, optional
        Number of threads; None or -1 uses all processors. The result does not depend on it.
    progress : bool, optional
        True shows a display, False does not; by default it appears after two seconds in a terminal or a
        notebook.

    Returns
    -------
    PointEstimate

    Notes
    -----
    Memory follows draws × observations; there is no matrix of pairs. With very many draws (more than
    10¹⁰ label comparisons between all of them) the best draw is sought among evenly spaced ones;
    expected losses are always over all draws. Ctrl-C during the search returns the best partition
    found so far, with a warning.

    Examples
    --------
    >>> from permix import point_estimate
    >>> estimate = point_estimate([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], random_state=1)
    >>> estimate.labels
    array([0, 0, 1, 1], dtype=int32)
    """
    from permix.partitions.search import Search

    distinct, weights = collapse_draws(as_draws(draws))
    n = distinct.shape[1]
    # Eight where a run is quick; a run's time follows the number of labels.
    usual = max(3, min(8, 32_000_000 // max(distinct.size, 1)))
    n_runs = usual if n_runs is None else _positive(n_runs, "n_runs")
    limit = None if max_clusters is None else _positive(max_clusters, "max_clusters")
    f = loss_table(loss, n)
    if n == 0:
        return _result(np.zeros(0, np.int32), distinct, weights, loss, 0.0, 0)
    n_clusters = distinct.max(axis=1).astype(np.int64) + 1
    capacity = min(n, 2 * int(n_clusters.max()) + 16 if limit is None else limit)

    candidates, totals = _losses_of_draws(distinct, n_clusters, weights, f, n_jobs)
    best_draw_loss = max(float(totals.min()), 0.0) / float(weights.sum() * loss_scale(loss, n))
    allowed = n_clusters[candidates] <= capacity
    starts: list[IntArray | None] = [None] * n_runs
    if allowed.any():
        starts[0] = distinct[candidates[allowed][np.argmin(totals[allowed])]]

    shared, space = _lay_out(distinct, n_clusters, weights, f, capacity)
    generators = generator(random_state).spawn(n_runs)
    with Interrupts() as interrupts, Display(progress) as display:
        display.begin("finding the partition nearest to all draws", n_runs)

        def search(task: tuple[np.random.Generator, IntArray | None]) -> IntArray | None:
            labels = Search(shared, capacity, space, task[0], interrupts.flag).run(task[1])
            display.step()
            return labels

        found = run_in_threads(search, zip(generators, starts, strict=True), n_jobs, interrupts=interrupts)
    complete = [canonical_labels(labels) for labels in found if labels is not None]
    if starts[0] is not None:
        complete.append(starts[0])
    if interrupts.interrupted:
        if not complete:
            raise KeyboardInterrupt
        warnings.warn(
            "the search was interrupted; this is the best partition so far", PermixWarning, stacklevel=2
        )
    results = [_result(labels, distinct, weights, loss, best_draw_loss, len(found)) for labels in complete]
    best = min(results, key=lambda result: result.expected_loss)
    best = replace(best, best_draw=distinct[candidates[np.argmin(totals)]])
    if limit is None and best.n_clusters == capacity < n:
        more = Wording("; point_estimate(draws, max_clusters=...) allows more", "; there may be more")
        said = f"the estimate uses all {capacity} groups that the search allows by default"
        warnings.warn(PermixWarning(said, more), stacklevel=2)
    return best


def collapse_draws(draws: IntArray) -> tuple[IntArray, FloatArray]:
    """Distinct canonical draws, sorted, and how often each occurs.

    Sorting makes everything that follows independent of the order of the draws.
    """
    counts = dict(sorted(Counter(draw.tobytes() for draw in draws).items()))
    distinct = np.frombuffer(bytearray().join(counts), np.int32).reshape(len(counts), draws.shape[1])
    return distinct, np.array(list(counts.values()), np.float64)


def _result(
    labels: IntArray, distinct: IntArray, weights: FloatArray, loss: str, best_draw_loss: float, n_runs: int
) -> PointEstimate:
    sizes = np.bincount(labels)
    mean = float(np.average(losses_to(labels, distinct, loss), weights=weights))
    return PointEstimate(labels, len(sizes), sizes, loss, mean, best_draw_loss, n_runs)


def _losses_of_draws(
    distinct: IntArray, n_clusters: Numbers, weights: FloatArray, f: FloatArray, n_jobs: int | None
) -> tuple[Numbers, FloatArray]:
    """Candidate draws and their total unscaled loss over all draws."""
    from permix.partitions.geometry_jit import losses_to_draws, sums_over_sizes, total_losses_of_pairs

    n_draws, n = distinct.shape
    if n_draws * n_draws * n <= 2 * LARGEST_COMPARISON:
        sums = sums_over_sizes(distinct, n_clusters, f)
        bounds = np.linspace(0, n_draws, min(n_draws, 64) + 1).astype(int)
        shares = run_in_threads(
            lambda ends: total_losses_of_pairs(*ends, distinct, n_clusters, sums, weights, f),
            pairwise(bounds),
            n_jobs,
        )
        return np.arange(n_draws), np.sum(shares, axis=0)
    n_candidates = max(LARGEST_COMPARISON // (n_draws * n), 16)
    candidates = np.unique(np.linspace(0, n_draws - 1, n_candidates).astype(np.int64))
    totals = run_in_threads(
        lambda c: weights @ losses_to_draws(distinct[c], n_clusters[c], distinct, n_clusters, f),
        candidates,
        n_jobs,
    )
    return candidates, np.array(totals)


def _lay_out(
    distinct: IntArray, n_clusters: Numbers, weights: FloatArray, f: FloatArray, capacity: int
) -> tuple[Draws, tuple[int, int]]:
    """The draws for compiled code, and the space a run needs (number of tables, length of lists)."""
    from permix.partitions.search_jit import Draws

    n_draws, n = distinct.shape
    # A list has one entry for its length and at most one for each member.
    longest = n_draws * n + int(n_clusters.sum())
    places = np.empty((n, n_draws), np.int32 if longest < 2**31 else np.int64)
    all_places = []
    n_tables = list_length = 0
    for m, labels in enumerate(distinct):
        sizes = np.bincount(labels)
        in_list = sizes < capacity
        list_ends = list_length + np.cumsum(np.where(in_list, 1 + sizes, 0))
        table_ends = n_tables + np.cumsum(~in_list)
        all_places.append(np.where(in_list, list_ends - 1 - sizes, -table_ends))
        places[:, m] = all_places[m][labels]
        n_tables, list_length = int(table_ends[-1]), int(list_ends[-1])
    by_place = (np.concatenate(all_places), np.repeat(weights, n_clusters))
    draws = Draws(places, *by_place, weights, f, np.diff(f, append=0.0), float(weights.sum()))
    return draws, (n_tables, list_length)


def _positive(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise DataError(f"{name} must be a whole number, at least 1, not {value!r}")
    return int(value)
