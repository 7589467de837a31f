"""The dispersion of a kernel density estimator, by the likelihood of agents left out."""

from __future__ import annotations

import warnings

import numpy as np

from permix.baselines.kde_density import KernelDensity, KernelSettings, RowPairs
from permix.baselines.kde_rows import SplitRows, split_rows
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import DataError, PermixWarning
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence

GRID, SAMPLED_GRID = 32, 12
# Precision of ln λ; where sums are sampled, their noise makes more of it idle.
PRECISION, SAMPLED_PRECISION = 1e-6, 0.02
# Where sums are sampled, at least this many agents are left out, one at a time, and more as long as there are
# not more than so many pairs with training rows.
FEWEST_LEFT_OUT, MOST_SAMPLED_PAIRS = 50, 20_000


def fit_kernel_density(preferences: Preferences, settings: KernelSettings) -> KernelDensity:
    """Fit the estimator: keep the rows, and choose the dispersion where it is not given."""
    if preferences.n_items < 2:
        raise DataError("there is one item only, and one way to rank it; pass rankings of two items or more")
    table = preferences.collapse()
    seeds = seed_sequence(settings.random_state)
    rng = np.random.default_rng(seeds)
    keys = rng.integers(0, 2**64, size=(3, 2), dtype=np.uint64)
    if settings.dispersion != "cv":
        return KernelDensity(settings, table, float(settings.dispersion), keys, np.zeros((0, 2)))
    if table.n_agents < 2:
        raise DataError(
            "cross-validation leaves one agent out and needs another to predict it from, but there is one "
            "agent only; pass dispersion= a number from 0 to 1"
        )
    rows = split_rows(table)
    with Display(settings.progress) as meter:
        search = _Search(rows, settings, keys, rng, meter)
        try:
            search.run()
        except KeyboardInterrupt:
            if not search.tried:
                raise
            search.interrupted = True
    decay = search.best()
    if search.interrupted:
        warnings.warn(
            f"the search for the dispersion was interrupted; it is the best of {len(search.tried)} so far",
            PermixWarning,
            stacklevel=3,
        )
    elif decay == search.largest:
        warnings.warn(
            f"the likelihood of agents left out still grows at the smallest dispersion tried, "
            f"{np.exp(-decay):.2g}: agents are predicted best by others with the very same ranking. Pass "
            "dispersion= to choose another",
            PermixWarning,
            stacklevel=3,
        )
    elif decay == 0.0:
        warnings.warn(
            "agents left out are predicted best by the uniform distribution (dispersion 1): the rankings of "
            "the others say nothing about them",
            PermixWarning,
            stacklevel=3,
        )
    return KernelDensity(settings, table, float(np.exp(-decay)), keys, search.table(), search.interrupted)


class _Search:
    """The mean ln p of agents left out, one at a time, at λ tried so far."""

    def __init__(
        self,
        rows: SplitRows,
        settings: KernelSettings,
        keys: Array,
        rng: np.random.Generator,
        meter: Display,
    ) -> None:
        self.meter = meter
        self.tried: dict[float, float] = {}
        self.interrupted = False
        table = rows.preferences
        n, m = table.n_agents, table.n_items
        self.closed = rows.is_closed
        # An unseen ranking next to a training row gets φ/n; an agent is moved with probability (m - 1) φ.
        self.largest = float(np.log(10.0 * n * (m - 1)))
        # Where the kernel is all but flat: distances of random rankings vary by this much.
        spread = np.sqrt(m * (m - 1) * (2 * m + 5) / 72)
        self.smallest = 0.05 / float(spread)
        self.queries, self.own, self.counts = rows, np.arange(len(table)), table.counts
        if not self.closed:
            size = min(n, max(FEWEST_LEFT_OUT, MOST_SAMPLED_PAIRS // len(table)))
            if n < 10**9:  # the most that this kind of draw takes; so few out of more hardly repeat
                self.counts = rng.multivariate_hypergeometric(table.counts, size, method="marginals")
            else:
                self.counts = rng.multinomial(size, table.counts / n)
            self.own = np.flatnonzero(self.counts)
            self.queries, self.counts = split_rows(table[self.own]), self.counts[self.own]
        self.pairs = RowPairs(self.queries, rows, self.own, settings, keys, keep=True)

    def run(self) -> None:
        from scipy.optimize import minimize_scalar

        grid = np.geomspace(self.smallest, self.largest, GRID if self.closed else SAMPLED_GRID)
        grid[-1] = self.largest  # to the last bit, to know it again
        self.evaluate(np.concatenate([[0.0], grid]))
        scores = np.array([self.tried[float(decay)] for decay in grid])
        best = int(scores.argmax())
        if self.best() == 0.0 or best == len(grid) - 1:
            return
        # The best of the grid lies between neighbours that are no better: Brent's method in ln λ.
        minimize_scalar(
            lambda log_decay: -float(self.evaluate(np.exp([log_decay]))[0]),
            bounds=(float(np.log(grid[max(best - 1, 0)])), float(np.log(grid[best + 1]))),
            method="bounded",
            options={"xatol": PRECISION if self.closed else SAMPLED_PRECISION},
        )

    def evaluate(self, decays: Array) -> Array:
        values = self.pairs.log_densities(np.asarray(decays, dtype=np.float64), self.meter)[0]
        means = self.counts @ values / self.counts.sum()
        self.tried.update(zip(map(float, decays), means.tolist(), strict=True))
        return np.asarray(means)

    def best(self) -> float:
        """λ of the highest mean; of equal ones the smallest."""
        return max(sorted(self.tried), key=self.tried.__getitem__)

    def table(self) -> Array:
        found = np.array(sorted((np.exp(-decay), mean) for decay, mean in self.tried.items()))
        return found.reshape(-1, 2)
