"""The work behind :class:`permix.BlurringMeanShift`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.baselines.mean_shift.shift import BlurringShift, Lists, distinct_lists
from permix.baselines.row_densities.row_pairs import RowPairs
from permix.baselines.row_densities.split_rows import split_rows
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import Estimate
from permix.estimators.agent_answers import refuse_too_large
from permix.estimators.known import NOTHING, Known
from permix.posterior.estimated import Memberships
from permix.runtime.progress import Display

# Values of θ tried for the mixture before the best is made precise, and how precise in ln θ.
GRID, PRECISION = 24, 1e-6


@dataclass(frozen=True, eq=False)
class MeanShiftFit:
    """A clustering of top lists."""

    model: ClassVar[str] = "BlurringMeanShift"

    settings: MeanShiftParameters
    centers: Rankings  # where lists came to rest, that of the largest cluster first; counts are cluster sizes
    row_labels: Array  # cluster of every row of the data, in the order of ``centers``
    row_counts: Array  # agents of every row
    decays: Array  # θ of the weights, one for each iteration
    decay: float  # θ of the mixture of Mallows models around the centers, by maximum likelihood
    log_likelihood: Estimate  # ln P(data) under that mixture; NaN if the user stopped before it was known
    converged: bool  # whether no list moved in the last iteration
    interrupted: bool = False  # whether the user stopped it
    known: Known = NOTHING  # of the rows and items, beside what was fitted

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of items."""
        return len(self.row_labels), len(self.items)

    def memberships(self) -> Memberships:
        """Return to which groups rows belong."""
        return Memberships(self.row_labels, len(self.centers), self.row_counts)

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names."""
        return self.centers.items

    @property
    def center_names(self) -> list[list[str]]:
        """Names of the items of each center."""
        return [[str(self.items[item]) for item in row if item >= 0] for row in self.centers.orders.tolist()]

    def log_probability(self, lists: Rankings) -> Array:
        """Return ln p of every list under the mixture around the centers."""
        pairs = _pairs(lists, self.centers, self.settings)
        with Display(self.settings.progress) as meter:
            return pairs.log_densities(np.array([self.decay]), meter)[0][:, 0]

    def log_joint(self, lists: Rankings) -> Iterator[Array]:
        """Yield ln p(list and center) of every list, one center after the other."""
        shares = np.log(self.centers.counts / self.centers.n_agents)
        queries = split_rows(Preferences.from_rankings(lists))
        centers = Preferences.from_rankings(self.centers)
        with Display(self.settings.progress) as meter:
            for k in range(len(centers)):
                pairs = RowPairs(queries, split_rows(centers[k]), n_jobs=self.settings.n_jobs)
                yield pairs.log_densities(np.array([self.decay]), meter)[0][:, 0] + shares[k]

    def predict(self, lists: Rankings) -> Array:
        """Return the most probable cluster of every list; of equal ones the larger."""
        best, labels = np.full(len(lists), -np.inf), np.zeros(len(lists), dtype=np.int64)
        for k, values in enumerate(self.log_joint(lists)):
            better = values > best
            labels[better], best[better] = k, values[better]
        return labels

    def predict_proba(self, lists: Rankings) -> Array:
        """Return P(center | list) of every list (rows) and center (columns)."""
        n_centers = len(self.centers)
        refuse_too_large(8 * len(lists) * n_centers, f"{len(lists)} × {n_centers} groups", "fewer lists")
        joint = np.column_stack(list(self.log_joint(lists)))
        chances = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _pairs(lists: Rankings, centers: Rankings, settings: MeanShiftParameters, keep: bool = False) -> RowPairs:
    """Compare lists with Mallows models around centers."""
    rows, around = (split_rows(Preferences.from_rankings(table)) for table in (lists, centers))
    return RowPairs(rows, around, n_jobs=settings.n_jobs, keep=keep)


def fit_mean_shift(rankings: Rankings, settings: MeanShiftParameters) -> MeanShiftFit:
    """Cluster top lists by exponential blurring mean-shift."""
    n_items = rankings.n_items
    asked = min(settings.length or int(rankings.lengths.max()), n_items)
    # A full ranking says no more than all its items but the last.
    data, row_of = distinct_lists(rankings.orders[:, : n_items - 1], rankings.counts)
    with Display(settings.progress) as meter:
        shift = BlurringShift(data, n_items, min(asked, n_items - 1), settings, meter)
        shift.run()
        by_size = np.argsort(-shift.points.counts, kind="stable")
        label = np.argsort(by_size)
        orders = shift.points.orders[by_size]
        if asked == n_items:
            orders = _completed(orders, n_items)
        sizes = shift.points.counts[by_size]
        centers = Rankings._from_arrays(orders, rankings.items, counts=sizes)
        decay, log_likelihood = mixture_decay(data, centers, shift)
    shift.warn()
    rows = (label[shift.place][row_of], np.array(rankings.counts))
    ending = (shift.converged, shift.interrupted)
    return MeanShiftFit(settings, centers, *rows, np.array(shift.decays), decay, log_likelihood, *ending)


def _completed(orders: Array, n_items: int) -> Array:
    """Add the last item to rows that list all others."""
    width = orders.shape[1]
    if width < n_items - 1:
        return orders
    lacking = np.count_nonzero(orders >= 0, axis=1) == n_items - 1
    last = np.where(lacking, n_items * (n_items - 1) // 2 - orders.sum(axis=1, dtype=np.int64), -1)
    return np.column_stack([orders, last])


def mixture_decay(data: Lists, centers: Rankings, shift: BlurringShift) -> tuple[float, Estimate]:
    """Return the θ at which the data are most probable under the mixture around the centers, and ln P(data).

    It is looked for between where the model is all but uniform and where it is all but the centers alone.
    Interrupted, it is the best so far, or else the last θ of the weights.
    """
    from scipy.optimize import minimize_scalar

    n, m = float(data.counts.sum()), centers.n_items
    lists = Rankings._from_arrays(data.orders, centers.items, counts=data.counts)
    pairs = _pairs(lists, centers, shift.settings, keep=True)
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
            return float(min(shift.decays[-1], grid[-1])), Estimate(np.nan, np.nan)
    decay = max(sorted(tried), key=tried.__getitem__)
    return decay, Estimate(tried[decay])
