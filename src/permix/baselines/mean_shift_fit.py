"""The work behind :class:`permix.BlurringMeanShift`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from permix.baselines.kde_density import KernelDensity, KernelSettings, RowPairs
from permix.baselines.kde_rows import SplitRows, split_rows
from permix.data.agent_table import refuse_too_many_agents
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, PermixWarning
from permix.runtime.progress import Display
from permix.runtime.settings import check_run_settings
from permix.runtime.threads import run_in_threads

# Pairs of lists in one piece of work: some milliseconds.
PIECE_PAIRS = 2**16
# A consensus is looked for among so many items, or twice its length where that is more.
CANDIDATES = 64
# Values of θ tried for the mixture before the best is made precise, and how precise in ln θ.
GRID, PRECISION = 24, 1e-6
# Lists have closed forms, which draw no random numbers.
NO_KEYS = np.zeros((3, 2), dtype=np.uint64)


@dataclass(frozen=True)
class MeanShiftSettings:
    """What a user may choose; see :class:`permix.BlurringMeanShift` for what each means."""

    length: int | None = None
    decay: float | None = None
    max_iter: int = 100
    n_jobs: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name in ("length", "decay", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())
        if self.length is not None and not _whole_from_1(self.length):
            raise DataError(
                f"length={self.length!r} must be a whole number from 1 (items that a center lists) or None"
            )
        if self.decay is not None and not (
            isinstance(self.decay, int | float)
            and not isinstance(self.decay, bool)
            and 0 < self.decay < float("inf")
        ):
            raise DataError(
                f"decay={self.decay!r} must be a positive number, or None to estimate it in every iteration"
            )
        if not _whole_from_1(self.max_iter):
            raise DataError(f"max_iter={self.max_iter!r} must be a whole number from 1")
        check_run_settings(self.n_jobs, self.progress)


def _whole_from_1(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


@dataclass(frozen=True, eq=False)
class MeanShiftFit:
    """A clustering of top lists.

    Attributes
    ----------
    settings : MeanShiftSettings
    centers : Rankings
        Where lists came to rest, the center of the largest cluster first; counts are cluster sizes.
    row_labels : int array
        Cluster of every row of the data.
    row_counts : int array
        Agents of every row.
    decays : float array
        θ of the kernel, one for each iteration.
    decay : float
        θ of the mixture of Mallows models around the centers, by maximum likelihood.
    converged : bool
        Whether no list moved in the last iteration.
    interrupted : bool
        Whether the user stopped it.
    """

    settings: MeanShiftSettings
    centers: Rankings
    row_labels: Array
    row_counts: Array
    decays: Array
    decay: float
    converged: bool
    interrupted: bool = False

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names."""
        return self.centers.items

    @cached_property
    def labels(self) -> Array:
        """Cluster of every agent, in the order of ``Rankings.expand()``."""
        refuse_too_many_agents(self.row_counts)
        return np.repeat(self.row_labels, self.row_counts)

    def log_density(self, lists: Rankings) -> Array:
        """Return ln p of every list under the mixture around the centers."""
        dispersion = float(np.exp(-self.decay))
        asked = KernelSettings(dispersion, n_jobs=self.settings.n_jobs, progress=self.settings.progress)
        around = Preferences.from_rankings(self.centers)
        mixture = KernelDensity(asked, around, dispersion, NO_KEYS, np.zeros((0, 2)))
        return mixture.log_density(Preferences.from_rankings(lists))[0]

    def predict(self, lists: Rankings) -> Array:
        """Return the most probable cluster of every list; of equal ones the larger."""
        best, labels = np.full(len(lists), -np.inf), np.zeros(len(lists), dtype=np.int64)
        shares = np.log(self.centers.counts / self.centers.n_agents)
        queries = split_rows(Preferences.from_rankings(lists))
        centers = Preferences.from_rankings(self.centers)
        with Display(self.settings.progress) as meter:
            for k in range(len(centers)):
                pairs = _pairs(queries, centers[k], self.settings)
                values = pairs.log_densities(np.array([self.decay]), meter)[0][:, 0] + shares[k]
                better = values > best
                labels[better], best[better] = k, values[better]
        return labels


def _pairs(
    lists: SplitRows, centers: Preferences, settings: MeanShiftSettings, keep: bool = False
) -> RowPairs:
    """Compare lists with Mallows models around centers."""
    own = np.full(len(lists.preferences), -1)
    asked = KernelSettings(n_jobs=settings.n_jobs)
    return RowPairs(lists, split_rows(centers), own, asked, NO_KEYS, keep)


def top_lists(preferences: Preferences) -> Rankings:
    """Return preferences that amount to top lists as such, or say whose do not."""
    sizes = np.diff(preferences.level_indptr)
    row = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(row)) - preferences.level_indptr[row]
    wrong = [
        (np.diff(preferences.pair_indptr) > 0, "compares items by pairs"),
        (sizes == 0, "lists nothing"),
        (np.bincount(row[preferences.levels != place], minlength=len(sizes)) > 0, "has ties"),
        (~preferences.rest_below & (sizes < preferences.n_items), "leaves open where unlisted items belong"),
    ]
    for found, what in wrong:
        if found.any():
            raise DataError(
                f"{preferences.row_name(int(np.argmax(found)))} {what}, but blurring mean-shift takes lists: "
                "some items in order, best first, and all others below them (unlisted='below')"
            )
    orders = np.full((len(sizes), int(sizes.max(initial=0))), -1, dtype=np.int32)
    orders[row, place] = preferences.level_items
    return Rankings._from_arrays(orders, preferences.items, counts=preferences.counts)


def fit_mean_shift(rankings: Rankings, settings: MeanShiftSettings) -> MeanShiftFit:
    """Cluster top lists by exponential blurring mean-shift."""
    n_items = rankings.n_items
    if n_items < 2:
        raise DataError("there is one item only, and one way to rank it; pass rankings of two items or more")
    asked = min(settings.length or int(rankings.lengths.max()), n_items)
    # A full ranking says no more than all its items but the last.
    data, row_of = distinct_lists(rankings.orders[:, : n_items - 1], rankings.counts)
    with Display(settings.progress) as meter:
        shift = BlurringShift(data, n_items, min(asked, n_items - 1), settings, meter)
        shift.run()
        by_size = np.argsort(-shift.points.counts, kind="stable")
        label = np.argsort(by_size)
        orders = shift.points.orders[by_size]
        centers = Rankings._from_arrays(
            _completed(orders, n_items) if asked == n_items else orders,
            rankings.items,
            counts=shift.points.counts[by_size],
        )
        decay = mixture_decay(data, centers, shift)
    shift.warn()
    return MeanShiftFit(
        settings,
        centers,
        label[shift.place][row_of],
        np.array(rankings.counts),
        np.array(shift.decays),
        decay,
        shift.converged,
        shift.interrupted,
    )


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
    """Lists on the move.

    Attributes
    ----------
    points : Lists
        Where lists are now.
    place : int array
        Which of the points every list of the data is at.
    decays : list of float
    converged, interrupted : bool
    """

    def __init__(
        self, data: Lists, n_items: int, most: int, settings: MeanShiftSettings, meter: Display
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
        from permix.baselines.mean_shift_jit import distance_sums

        points = self.points
        counts = points.counts.astype(np.float64)
        sums = np.zeros(len(counts))
        self._in_pieces(
            "distances",
            lambda first, last: distance_sums(
                first, last, points.orders, points.lengths, counts, self.n_items, sums
            ),
        )
        if not sums.any():
            return float("inf")
        mean_distance = 2.0 * sums.sum() / (self.n_agents * (self.n_agents - 1.0))
        return float(np.log1p(counts @ points.lengths / self.n_agents / mean_distance))

    def shifted(self, decay: float) -> Array:
        """Return the weighted consensus around every point."""
        from permix.baselines.mean_shift_jit import kernel_table, shift_lists

        points, n = self.points, self.n_items
        longest = int(points.lengths.max())
        table = kernel_table(decay, longest * longest)
        counts = points.counts.astype(np.float64)
        n_candidates = min(n, max(CANDIDATES, 2 * self.most))
        orders = np.full((len(counts), self.most), -1, dtype=np.int32)
        lengths = np.zeros(len(counts), dtype=np.int64)
        self._in_pieces(
            "consensus",
            lambda first, last: shift_lists(
                first,
                last,
                points.orders,
                points.lengths,
                counts,
                n,
                table,
                self.most,
                n_candidates,
                orders,
                lengths,
            ),
        )
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
        if self.interrupted:
            what = f"interrupted; clusters are those after {len(self.decays)} iterations"
        elif not self.converged:
            what = f"lists still move after {len(self.decays)} iterations; pass a larger max_iter"
        elif not self.moved and len(self.place) > 1:
            what = (
                "no list moved, so that every distinct one is a cluster of its own: lists are too far from "
                f"each other for decay {self.decays[0]:.3g}. Pass a smaller one to join some"
            )
        else:
            return
        warnings.warn(what, PermixWarning, stacklevel=4)


def _completed(orders: Array, n_items: int) -> Array:
    """Add the last item to rows that list all others."""
    width = orders.shape[1]
    if width < n_items - 1:
        return orders
    lacking = np.count_nonzero(orders >= 0, axis=1) == n_items - 1
    last = np.where(lacking, n_items * (n_items - 1) // 2 - orders.sum(axis=1, dtype=np.int64), -1)
    return np.column_stack([orders, last])


def mixture_decay(data: Lists, centers: Rankings, shift: BlurringShift) -> float:
    """Return the θ at which the data are most probable under the mixture around the centers.

    It is looked for between where the model is all but uniform and where it is all but the centers alone.
    Interrupted, it is the best so far, or else the last θ of the kernel.
    """
    from scipy.optimize import minimize_scalar

    n, m = float(data.counts.sum()), centers.n_items
    rows = Preferences.from_rankings(Rankings._from_arrays(data.orders, centers.items, counts=data.counts))
    pairs = _pairs(split_rows(rows), Preferences.from_rankings(centers), shift.settings, keep=True)
    grid = np.geomspace(0.05 / m**1.5, np.log(10.0 * n * (m - 1)), GRID)
    tried: dict[float, float] = {}

    def log_likelihood(decays: Array) -> Array:
        values = data.counts @ pairs.log_densities(decays, shift.meter)[0]
        tried.update(zip(map(float, decays), values.tolist(), strict=True))
        return np.asarray(values)

    try:
        best = int(log_likelihood(grid).argmax())
        ends = grid[[max(best - 1, 0), min(best + 1, GRID - 1)]]
        minimize_scalar(
            lambda log_decay: -float(log_likelihood(np.exp([log_decay]))[0]),
            bounds=tuple(np.log(ends)),
            method="bounded",
            options={"xatol": PRECISION},
        )
    except KeyboardInterrupt:
        shift.interrupted = True
        if not tried:
            return float(min(shift.decays[-1], grid[-1]))
    return max(sorted(tried), key=tried.__getitem__)
