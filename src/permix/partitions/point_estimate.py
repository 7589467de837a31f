"""One partition to stand for many: the minimizer of the posterior expected loss."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from permix.errors import DataError, PermixWarning, Wording
from permix.partitions.geometry import Loss
from permix.partitions.labels import IntArray, canonical_labels
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import RandomState, generator
from permix.runtime.threads import run_in_threads

if TYPE_CHECKING:
    from permix.partitions.weighted_draws import WeightedDraws

# Runs take so many labels, of so many draws at least; all draws then improve the best partition found.
LABELS_OF_A_RUN, DRAWS_OF_A_RUN = 1_000_000, 64
# A run visits all observations about so often, and a quarter of that where it begins from what others found.
VISITS = 24


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
    placed : ndarray of bool, shape (n,), optional
        Who is in their group in most draws, where that is not everybody; the losses are of these. See
        :mod:`permix.posterior.placed`.
    """

    labels: IntArray = field(repr=False)
    n_clusters: int
    sizes: npt.NDArray[np.int64] = field(repr=False)
    loss: str
    expected_loss: float
    best_draw_loss: float
    n_runs: int
    best_draw: IntArray | None = field(default=None, repr=False, compare=False)
    placed: npt.NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)

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
        Number of runs, the one from the best draw included. None makes 8, and fewer, down to 4, for more
        than 600,000 labels.
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
    Memory follows draws × observations; there is no matrix of pairs. With more than a million labels the
    runs use some evenly spaced draws (at least 64), and the best partition they find is then improved, by
    moves of single observations and by merging groups, on all draws until nothing improves. With more than
    3 · 10⁸ label comparisons between all draws, the best draw is sought among those that are nearest to a
    few. Expected losses are always over all draws. Ctrl-C during the search returns the best partition found
    so far, with a warning.

    Examples
    --------
    >>> from permix import point_estimate
    >>> estimate = point_estimate([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], random_state=1)
    >>> estimate.labels
    array([0, 0, 1, 1], dtype=int32)
    """
    from permix.partitions.weighted_draws import WeightedDraws

    with Display(progress) as display:
        display.begin("comparing draws")
        all_draws = WeightedDraws.collapsed(draws, loss)
    n = all_draws.n
    some_draws = all_draws.evenly_spaced(max(LABELS_OF_A_RUN // max(n, 1), DRAWS_OF_A_RUN))
    # Eight where a run is quick; a run's time follows the number of labels.
    usual = max(4, min(8, 5 * LABELS_OF_A_RUN // max(some_draws.labels.size, 1)))
    n_runs = usual if n_runs is None else _positive(n_runs, "n_runs")
    limit = None if max_clusters is None else _positive(max_clusters, "max_clusters")
    if n == 0:
        return PointEstimate(np.zeros(0, np.int32), 0, np.zeros(0, np.int64), loss, 0.0, 0.0, 0)
    capacity = min(n, 2 * int(all_draws.n_clusters.max()) + 16 if limit is None else limit)
    with Display(progress) as display:
        display.begin("comparing draws")
        candidates, losses = all_draws.compared(capacity, n_jobs)
        best_draw = all_draws.labels[candidates[np.argmin(losses)]]
        allowed = all_draws.n_clusters[candidates] <= capacity
        starts: list[IntArray | None] = [None] * n_runs
        if allowed.any():
            starts[0] = all_draws.labels[candidates[allowed][np.argmin(losses[allowed])]]
        labels, n_done, interrupted = _search(
            all_draws, some_draws, capacity, starts, generator(random_state), n_jobs, display
        )
    if labels is None:
        raise KeyboardInterrupt
    if interrupted:
        warnings.warn(
            "the search was interrupted; this is the best partition so far", PermixWarning, stacklevel=2
        )
    sizes = np.bincount(labels)
    if limit is None and len(sizes) == capacity < n:
        more = Wording("; point_estimate(draws, max_clusters=...) allows more", "; there may be more")
        said = f"the estimate uses all {capacity} groups that the search allows by default"
        warnings.warn(PermixWarning(said, more), stacklevel=2)
    mean = all_draws.expected_loss(labels)
    return PointEstimate(labels, len(sizes), sizes, loss, mean, float(losses.min()), n_done, best_draw)


def _search(
    all_draws: WeightedDraws,
    some_draws: WeightedDraws,
    capacity: int,
    starts: list[IntArray | None],
    rng: np.random.Generator,
    n_jobs: int | None,
    display: Display,
) -> tuple[IntArray | None, int, bool]:
    """The best partition that a run from each start found, how many ended, and whether Ctrl-C ended them."""
    from permix.partitions.search import MAX_REBUILDS, Layout, Search

    some_only = some_draws is not all_draws
    of_last = VISITS // 4 if some_only else 0
    display.begin("finding the partition nearest to all draws", VISITS * len(starts) + of_last)
    with Interrupts() as interrupts:

        def run(
            draws: Layout, rng: np.random.Generator, start: IntArray | None, rebuilds: int
        ) -> IntArray | None:
            visits = _Visits(display, VISITS if rebuilds else of_last, all_draws.n)
            labels = Search(draws, rng, interrupts.flag, visits.tell).run(start, rebuilds)
            visits.end()
            return None if labels is None else canonical_labels(labels)

        layout = Layout(some_draws, capacity)
        generators = rng.spawn(len(starts))
        tasks = zip(generators, starts, strict=True)
        found = run_in_threads(
            lambda task: run(layout, *task, MAX_REBUILDS), tasks, n_jobs, interrupts=interrupts
        )
        complete = [labels for labels in (*found, starts[0]) if labels is not None]
        best = min(complete, key=all_draws.expected_loss, default=None)
        if some_only and not interrupts.interrupted:  # all draws have the last word
            layout = Layout(all_draws, capacity)
            best = run_in_threads(lambda start: run(layout, rng, start, 0), [best], interrupts=interrupts)[0]
    return best, len(found), interrupts.interrupted


class _Visits:
    """Shows how far a run is whose length nobody knows: it counts as ``expected`` visits of all n."""

    def __init__(self, display: Display, expected: int, n: int) -> None:
        self._display, self._expected, self._n = display, expected, n
        self._shown, self._visited = 0, 0

    def tell(self, visited: int) -> None:
        self._visited += visited
        self._show(min(self._visited // self._n, self._expected - 1))

    def end(self) -> None:
        self._show(self._expected)

    def _show(self, done: int) -> None:
        self._display.step(done - self._shown)
        self._shown = done


def _positive(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise DataError(f"{name} must be a whole number, at least 1, not {value!r}")
    return int(value)
