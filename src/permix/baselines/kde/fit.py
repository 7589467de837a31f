"""The work behind :class:`permix.MallowsKDE`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from permix.baselines.kde.bandwidth import search_dispersion
from permix.baselines.kde.parameters import KDEParameters
from permix.baselines.row_densities.row_pairs import RowPairs
from permix.baselines.row_densities.sampled import draw_agreeing
from permix.baselines.row_densities.split_rows import SplitRows, split_rows
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import Estimate, sample_size
from permix.distributions.mallows import Mallows
from permix.errors import Argument, DataError
from permix.estimators.known import NOTHING, Known
from permix.runtime.progress import Display
from permix.runtime.seeds import generator, seed_sequence

# Items × rankings that are shuffled at once.
MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class KDEFit:
    """A fitted estimator p(v) = 1/n Σ_l 1/(|Ω(v_l)| Z) Σ_{s ∈ Ω(v_l)} Σ_{r ∈ Ω(v)} φ^d(r, s)."""

    model: ClassVar[str] = "MallowsKDE"

    settings: KDEParameters
    preferences: Preferences  # training rows v_l, identical ones merged; counts are how many agents gave each
    dispersion: float
    keys: Array  # (3, 2): of the random streams; used only where sums are sampled
    # (dispersions, 2): those that cross-validation looked at, ascending, and the mean ln p of agents left out
    tried: Array
    interrupted: bool = False  # whether the user stopped the search: the best dispersion so far is here
    known: Known = NOTHING  # of the items; rows that say the same are merged, and there are no groups

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows, none of which is anybody's alone, and of items."""
        return 0, self.preferences.n_items

    @property
    def decay(self) -> float:
        """λ = -ln φ."""
        with np.errstate(divide="ignore"):
            return float(0.0 - np.log(self.dispersion))

    @property
    def is_exact(self) -> bool:
        """Whether every training row partitions all items; then sums over such rows are closed form."""
        return self.rows.is_closed

    @cached_property
    def rows(self) -> SplitRows:
        """Training rows that partition all items, and the others."""
        return split_rows(self.preferences)

    @property
    def expected_distance(self) -> float:
        """How many pairs of items a draw orders unlike the ranking it is around, on average."""
        return Mallows(range(self.preferences.n_items), self.dispersion).expected_distance()

    def log_probability(self, queries: Preferences) -> tuple[Array, Array]:
        """Return ln p of every row, and the standard errors of these; 0 where exact."""
        settings = self.settings
        with Display(settings.progress) as meter:
            sampling = (settings.n_samples, self.keys)
            pairs = RowPairs(split_rows(queries), self.rows, sampling=sampling, n_jobs=settings.n_jobs)
            values, errors = pairs.log_densities(np.array([self.decay]), meter)
        return values[:, 0], errors[:, 0]

    @cached_property
    def log_likelihood(self) -> Estimate:
        """Log-likelihood of the training rows, none of them left out."""
        values, errors = self.log_probability(self.preferences)
        counts = self.preferences.counts
        # Errors of rows depend on each other; however they do, that of the sum is at most their sum.
        return Estimate(float(counts @ values), float(counts @ errors))

    def sample(self, size: int, random_state: Any = None) -> Rankings:
        """Draw a training row, a ranking that agrees with it, and one around that; as often as asked."""
        n_draws = sample_size(size)
        rng = generator(random_state)
        table, n_items = self.preferences, self.preferences.n_items
        rows = rng.choice(len(table), size=n_draws, p=table.counts / table.counts.sum())
        centers = np.empty((n_draws, n_items), dtype=np.int32)
        is_partition = np.zeros(len(table), dtype=np.bool_)
        is_partition[self.rows.partition_rows] = True
        closed, other = (np.flatnonzero(is_partition[rows] == is_one) for is_one in (True, False))
        number = np.cumsum(is_partition) - 1
        step = max(1, MOST_CELLS // n_items)
        for start in range(0, len(closed), step):
            some = closed[start : start + step]
            centers[some] = _shuffled_blocks(self.rows.partitions, number[rows[some]], n_items, rng)
        if len(other):
            centers[other] = draw_agreeing(table, rows[other], rng)
        # A Mallows model around s is one around the identity with its items renamed.
        places = Mallows(range(n_items), self.dispersion).sample(n_draws, rng).orders
        return Rankings._from_arrays(np.take_along_axis(centers, places, axis=1), table.items)


def fit_kde(preferences: Preferences, settings: KDEParameters) -> KDEFit:
    """Fit the estimator: keep the rows, and choose the dispersion where it is not given."""
    if preferences.n_items < 2:
        raise DataError("there is one item only, and one way to rank it; rankings need two items or more")
    table = preferences._bare().collapse()
    rng = np.random.default_rng(seed_sequence(settings.random_state))
    keys = rng.integers(0, 2**64, size=(3, 2), dtype=np.uint64)
    if settings.dispersion != "cv":
        return KDEFit(settings, table, settings.dispersion, keys, np.zeros((0, 2)))
    if table.n_agents < 2:
        raise DataError(
            "cross-validation leaves one agent out and needs another to predict it from, but there is "
            "one agent only; pass a number from 0 to 1 as ",
            Argument("dispersion"),
        )
    dispersion, tried, interrupted = search_dispersion(split_rows(table), settings, keys, rng)
    return KDEFit(settings, table, dispersion, keys, tried, interrupted)


def _shuffled_blocks(partitions: Any, rows: Array, n_items: int, rng: np.random.Generator) -> Array:
    """Return orderings that agree with partitions, each equally likely."""
    lengths = np.diff(partitions.indptr)
    # An item's number is its block, the rest behind all, plus a random fraction.
    numbers = rng.random((len(rows), n_items)) + n_items
    draw = np.repeat(np.arange(len(rows)), lengths[rows])
    ends = np.cumsum(lengths[rows])
    entry = np.arange(len(draw)) + np.repeat(partitions.indptr[rows] - (ends - lengths[rows]), lengths[rows])
    numbers[draw, partitions.items[entry]] += partitions.levels[entry] - n_items
    return np.argsort(numbers, axis=1).astype(np.int32)
