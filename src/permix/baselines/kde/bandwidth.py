"""The dispersion of a density estimator, by the likelihood of agents left out."""

from __future__ import annotations

import warnings

import numpy as np

from permix.baselines.kde.parameters import KDEParameters
from permix.baselines.row_densities.row_pairs import RowPairs
from permix.baselines.row_densities.split_rows import SplitRows, split_rows
from permix.data.labels import Array
from permix.errors import Argument, PermixWarning
from permix.runtime.progress import Display

GRID, SAMPLED_GRID = 32, 12
# Precision of ln λ; where sums are sampled, their noise makes more of it idle.
PRECISION, SAMPLED_PRECISION = 1e-6, 0.02
# Where sums are sampled, at least this many agents are left out, one at a time, and more as long as there are
# not more than so many pairs with training rows.
FEWEST_LEFT_OUT, MOST_SAMPLED_PAIRS = 50, 20_000


def search_dispersion(
    rows: SplitRows, settings: KDEParameters, keys: Array, rng: np.random.Generator
) -> tuple[float, Array, bool]:
    """Return the best dispersion, all that were tried with their scores, and whether the user stopped it."""
    interrupted = False
    with Display(settings.progress) as meter:
        search = _Search(rows, settings, keys, rng, meter)
        try:
            search.run()
        except KeyboardInterrupt:
            if not search.tried:
                raise
            interrupted = True
    decay = search.best()
    said: tuple[str | Argument, ...] = ()
    if interrupted:
        said = (
            f"the search for the dispersion was interrupted; it is the best of {len(search.tried)} so far",
        )
    elif decay == search.largest:
        said = (
            "the likelihood of agents left out still grows at the smallest dispersion tried, "
            f"{np.exp(-decay):.2g}: agents are predicted best by others with the very same ranking. Choose "
            "another with ",
            Argument("dispersion"),
        )
    elif decay == 0.0:
        said = (
            "agents left out are predicted best by the uniform distribution (dispersion 1): the rankings of "
            "the others say nothing about them",
        )
    if said:
        warnings.warn(PermixWarning(*said), stacklevel=4)
    tried = np.array(sorted((np.exp(-decay), mean) for decay, mean in search.tried.items()))
    return float(np.exp(-decay)), tried.reshape(-1, 2), interrupted


class _Search:
    """The mean ln p of agents left out, one at a time, at λ tried so far."""

    def __init__(
        self, rows: SplitRows, settings: KDEParameters, keys: Array, rng: np.random.Generator, meter: Display
    ) -> None:
        self.meter = meter
        self.tried: dict[float, float] = {}
        table = rows.preferences
        n, m = table.n_agents, table.n_items
        self.closed = rows.is_closed
        # An unseen ranking next to a training row gets φ/n; an agent is moved with probability (m - 1) φ.
        self.largest = float(np.log(10.0 * n * (m - 1)))
        # Where all rankings are all but alike: distances of random rankings vary by this much.
        spread = np.sqrt(m * (m - 1) * (2 * m + 5) / 72)
        self.smallest = 0.05 / float(spread)
        queries, own, self.counts = rows, np.arange(len(table)), table.counts
        if not self.closed:
            size = min(n, max(FEWEST_LEFT_OUT, MOST_SAMPLED_PAIRS // len(table)))
            if n < 10**9:  # the most that such a draw takes; so few out of more hardly repeat
                self.counts = rng.multivariate_hypergeometric(table.counts, size, method="marginals")
            else:
                self.counts = rng.multinomial(size, table.counts / n)
            own = np.flatnonzero(self.counts)
            queries, self.counts = split_rows(table[own]), self.counts[own]
        sampling = (settings.n_samples, keys)
        self.pairs = RowPairs(queries, rows, own, sampling=sampling, n_jobs=settings.n_jobs, keep=True)

    def run(self) -> None:
        from scipy.optimize import minimize_scalar

        grid = np.geomspace(self.smallest, self.largest, GRID if self.closed else SAMPLED_GRID)
        grid[-1] = self.largest  # to the last bit, to know it again
        self.evaluate(np.concatenate([[0.0], grid]))
        scores = np.array([self.tried[float(decay)] for decay in grid])
        best = int(scores.argmax())
        if self.best() == 0.0 or best == len(grid) - 1:
            return
        # The best of the grid lies between neighbors that are no better: Brent's method in ln λ.
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
