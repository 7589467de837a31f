"""Blurring mean-shift: all lists move to the consensus around them, until none moves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.data.labels import Array
from permix.errors import Argument, PermixWarning
from permix.runtime.progress import Display
from permix.runtime.threads import run_in_threads

# Pairs of lists in one piece of work: some milliseconds.
PIECE_PAIRS = 2**16
# A consensus is looked for among so many items, or twice its length where that is more.
CANDIDATES = 64


class Lists(NamedTuple):
    """Distinct lists, padded by -1, in a fixed order; how long they are, and how many agents have each."""

    orders: Array
    lengths: Array
    counts: Array


def distinct_lists(orders: Array, counts: Array) -> tuple[Lists, Array]:
    """Return the distinct rows in lexicographic order, and which of them every row is."""
    found, number = np.unique(orders, axis=0, return_inverse=True)
    number = number.reshape(-1)
    totals = np.zeros(len(found), dtype=np.int64)
    np.add.at(totals, number, counts)
    return Lists(found, np.count_nonzero(found >= 0, axis=1), totals), number


class BlurringShift:
    """Lists on the move: ``points`` is where they are now, ``place`` which of them every list is at."""

    def __init__(
        self, data: Lists, n_items: int, most: int, settings: MeanShiftParameters, meter: Display
    ) -> None:
        self.points, self.place = data, np.arange(len(data.orders))
        self.n_items, self.most, self.settings, self.meter = n_items, most, settings, meter
        self.n_agents = float(data.counts.sum())
        self.decays: list[float] = []
        self.converged = self.interrupted = self.moved = False

    def run(self) -> None:
        """Shift all lists until none moves."""
        while len(self.decays) < self.settings.max_iter and not self.converged:
            try:
                decay = self.heuristic_decay() if self.settings.decay is None else float(self.settings.decay)
                orders = self.shifted(decay)
            except KeyboardInterrupt:
                if not self.decays:
                    raise
                self.interrupted = True
                return
            self.decays.append(decay)
            width = self.points.orders.shape[1]
            self.converged = bool(
                np.array_equal(orders[:, :width], self.points.orders[:, : self.most])
                and np.all(self.points.lengths <= self.most)
                and np.all(orders[:, width:] < 0)
            )
            if not self.converged:
                self.moved = True
                self.points, number = distinct_lists(orders, self.points.counts)
                self.place = number[self.place]

    def heuristic_decay(self) -> float:
        """Return θ at which a draw of the infinite model is as far from its center as agents are apart.

        The mean distance of a list of length t from the center of the infinite generalized Mallows model
        with one θ is t / (e^θ - 1); so ln(1 + mean length / mean distance).
        """
        from permix.baselines.mean_shift.shift_jit import distance_sums

        points = self.points
        counts = points.counts.astype(np.float64)
        sums = np.zeros(len(counts))
        work = (points.orders, points.lengths, counts, self.n_items, sums)
        self._in_pieces("distances", lambda first, last: distance_sums(first, last, *work))
        if not sums.any():
            return float("inf")
        mean_distance = 2.0 * sums.sum() / (self.n_agents * (self.n_agents - 1.0))
        return float(np.log1p(counts @ points.lengths / self.n_agents / mean_distance))

    def shifted(self, decay: float) -> Array:
        """Return the weighted consensus around every point."""
        from permix.baselines.mean_shift.shift_jit import shift_lists, weight_table

        points, n = self.points, self.n_items
        longest = int(points.lengths.max())
        table = weight_table(decay, longest * longest)
        counts = points.counts.astype(np.float64)
        n_candidates = min(n, max(CANDIDATES, 2 * self.most))
        orders = np.full((len(counts), self.most), -1, dtype=np.int32)
        work = (points.orders, points.lengths, counts, n, table, n_candidates, orders)
        self._in_pieces("consensus", lambda first, last: shift_lists(first, last, *work))
        return orders

    def _in_pieces(self, what: str, work: Callable[[int, int], None]) -> None:
        size = len(self.points.orders)
        step = max(1, min(PIECE_PAIRS // size, -(-size // 8)))
        starts = range(0, size, step)
        self.meter.begin(f"iteration {len(self.decays) + 1}, {what} of {size} lists", len(starts))

        def piece(start: int) -> None:
            work(start, min(start + step, size))
            self.meter.step()

        run_in_threads(piece, starts, self.settings.n_jobs)

    def warn(self) -> None:
        """Say what the user should know."""
        done = f"after {len(self.decays)} iterations"
        if self.interrupted:
            what = PermixWarning(f"interrupted; groups are those {done}")
        elif not self.converged:
            said = f"lists still move {done}; go further with a larger "
            what = PermixWarning(said, Argument("max_iter"))
        elif not self.moved and len(self.place) > 1:
            why = f"lists are too far from each other for a decay of {self.decays[0]:.3g}"
            said = f"no list moved, so that every distinct one is a group of its own: {why}. "
            what = PermixWarning(f"{said}Join some with a smaller ", Argument("decay"))
        else:
            return
        warnings.warn(what, stacklevel=4)
