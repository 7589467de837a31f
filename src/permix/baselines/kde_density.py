"""The work behind :class:`permix.MallowsKDE`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from permix.baselines.kde_closed import ClosedPairs
from permix.baselines.kde_rows import SplitRows, split_rows
from permix.baselines.kde_sampled import SampledPairs, draw_agreeing
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import sample_size
from permix.distributions.mallows import Mallows
from permix.errors import DataError
from permix.runtime.progress import Display
from permix.runtime.seeds import generator
from permix.runtime.settings import check_run_settings

# Items × rankings that are shuffled at once.
MOST_CELLS = 2**22


@dataclass(frozen=True)
class KernelSettings:
    """What a user may choose; see :class:`permix.MallowsKDE` for what each means."""

    dispersion: Any = "cv"
    n_samples: int = 32
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        chosen = self.dispersion
        if not (isinstance(chosen, str) and chosen == "cv"):
            is_number = isinstance(chosen, int | float | np.integer | np.floating)
            if isinstance(chosen, bool) or not is_number or not 0.0 <= chosen <= 1.0:
                raise DataError(
                    f"dispersion={chosen!r} must be 'cv' (chosen by cross-validation) or a number from 0 "
                    "(no smoothing) to 1 (all rankings alike)"
                )
        if (
            isinstance(self.n_samples, bool)
            or not isinstance(self.n_samples, int | np.integer)
            or self.n_samples < 2
        ):
            raise DataError(f"n_samples={self.n_samples!r} must be a whole number, 2 or more")
        object.__setattr__(self, "n_samples", int(self.n_samples))
        check_run_settings(self.n_jobs, self.progress)


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """A fitted estimator p(v) = 1/n Σ_l 1/(|Ω(v_l)| Z) Σ_{s ∈ Ω(v_l)} Σ_{r ∈ Ω(v)} φ^d(r, s).

    Attributes
    ----------
    settings : KernelSettings
    preferences : Preferences
        Training rows v_l, alike ones merged; their counts are how many agents gave each.
    dispersion : float
        φ.
    keys : uint64 array (3, 2)
        Of the random streams; used only where sums are sampled.
    tried : float array (dispersions, 2)
        Dispersions that cross-validation looked at, ascending, and the mean ln p of agents left out.
    interrupted : bool
        Whether the user stopped the search for the dispersion: the best one so far is here.
    """

    settings: KernelSettings
    preferences: Preferences
    dispersion: float
    keys: Array
    tried: Array
    interrupted: bool = False

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
        """Training rows by kind."""
        return split_rows(self.preferences)

    def log_density(self, queries: Preferences) -> tuple[Array, Array]:
        """Return ln p of every row, and the standard errors of these; 0 where exact."""
        with Display(self.settings.progress) as meter:
            own = np.full(len(queries), -1)
            pairs = RowPairs(split_rows(queries), self.rows, own, self.settings, self.keys, keep=False)
            values, errors = pairs.log_densities(np.array([self.decay]), meter)
        return values[:, 0], errors[:, 0]

    def sample(self, size: int, random_state: Any = None) -> Rankings:
        """Draw a training row, a ranking that agrees with it, and one around that; as often as asked."""
        n_draws = sample_size(size)
        rng = generator(random_state)
        table, n_items = self.preferences, self.preferences.n_items
        rows = rng.choice(len(table), size=n_draws, p=table.counts / table.counts.sum())
        centers = np.empty((n_draws, n_items), dtype=np.int32)
        is_partition = np.zeros(len(table), dtype=np.bool_)
        is_partition[self.rows.partition_rows] = True
        closed = np.flatnonzero(is_partition[rows])
        number = np.cumsum(is_partition) - 1
        step = max(1, MOST_CELLS // n_items)
        for start in range(0, len(closed), step):
            some = closed[start : start + step]
            centers[some] = _shuffled_blocks(self.rows.partitions, number[rows[some]], n_items, rng)
        other = np.flatnonzero(~is_partition[rows])
        if len(other):
            centers[other] = draw_agreeing(table, rows[other], rng)
        # A Mallows model around s is one around the identity with its items renamed.
        places = Mallows(range(n_items), self.dispersion).sample(n_draws, rng).orders
        return Rankings._from_arrays(np.take_along_axis(centers, places, axis=1), table.items)


class RowPairs:
    """Densities of queries from training rows at any λ, closed form where there is one.

    Parameters
    ----------
    queries, training : SplitRows
    own : int array
        For each query the training row from which one agent is left out; -1 for none.
    settings : KernelSettings
    keys : uint64 array (3, 2)
    keep : bool
        Whether densities will be wanted at further λ.
    """

    def __init__(
        self,
        queries: SplitRows,
        training: SplitRows,
        own: Array,
        settings: KernelSettings,
        keys: Array,
        keep: bool,
    ) -> None:
        counts = training.preferences.counts
        number = np.full(len(training.preferences) + 1, -1)
        number[training.partition_rows] = np.arange(len(training.partition_rows))
        self.queries = queries
        self.n_agents = counts.sum() - (own >= 0)
        self.closed = ClosedPairs(
            queries.partitions,
            training.partitions,
            counts[training.partition_rows],
            number[own[queries.partition_rows]],
            training.preferences.n_items,
            settings.n_jobs,
            keep,
        )
        self.is_closed = queries.is_closed and training.is_closed
        self.sampled = SampledPairs(queries, training, own, settings.n_samples, keys, settings.n_jobs)

    def log_densities(self, decays: Array, meter: Display) -> tuple[Array, Array]:
        """Return ln p and its standard errors for every query (rows) and λ (columns)."""
        shape = (len(self.queries.preferences), len(decays))
        total, variance = np.full(shape, -np.inf), np.full(shape, -np.inf)
        if not self.is_closed:
            total, variance = self.sampled.log_sums(decays, meter)
        closed = self.queries.partition_rows
        total[closed] = np.logaddexp(total[closed], self.closed.log_sums(decays, meter))
        with np.errstate(invalid="ignore"):
            errors = np.where(variance > -np.inf, np.exp(0.5 * variance - total), 0.0)
        return total - np.log(self.n_agents)[:, None], errors


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
