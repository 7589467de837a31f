"""Rounds of EM over rows as words of their pairs."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.pair_words import PairWords
from permix.kernels.lanes import LANES
from permix.mallows.em_jit import ROWS, WordRows, neighbor_gain, share_out, tabulate
from permix.mallows.rounds.exchanges import gain_bounds
from permix.mallows.rounds.statistics import Statistics
from permix.runtime.threads import over_rows

NO_UNIFORMS = np.empty(0)


class WordRounds:
    """E-steps with one number of components."""

    bounded = True

    def __init__(self, words: PairWords, n_components: int) -> None:
        k, m, n_rows = n_components, words.n_items, len(words.counts)
        n_pairs = m * (m - 1) // 2
        n_codes = len(words.blocks) * (n_pairs + 1)
        n_fours, n_bytes = -(-k // LANES), -(-n_pairs // 8) * (2 if len(words.against) else 1)
        tables = {
            "known": np.full((k, m), -1, dtype=np.int32),
            "moved": np.empty(k, dtype=np.bool_),
            "logs": np.empty((k, n_codes)),
            "chances": np.empty((k, n_codes)),
        }
        self._counts, self.k = words.counts, k
        self.blocks = [
            WordRows(
                np.ascontiguousarray(words.said[:, rows]),
                np.ascontiguousarray(words.against[:, rows]),
                words.counts[rows],
                words.shapes[rows],
                words.blocks,
                inverses=1.0 / words.counts[rows],
                **tables,
                codes=np.empty((k, n), dtype=np.uint16),
                shares=np.zeros((n_fours * LANES, n)),
                scales=np.empty(n),
                tallies=np.empty((n_fours, n_bytes * 256 * LANES)),
                by_shape=np.empty((k, len(words.blocks))),
                sums=np.empty((3, k)),
                wins=np.zeros((k, m, m)),
            )
            for rows, n in ((slice(at, at + ROWS), min(ROWS, n_rows - at)) for at in range(0, n_rows, ROWS))
        ]

    @property
    def counts(self) -> Array:
        """How many agents are behind each row."""
        return self._counts

    @counts.setter
    def counts(self, counts: Array) -> None:
        self._counts = counts
        for at, rows in enumerate(self.blocks):
            here = counts[at * ROWS : (at + 1) * ROWS]
            self.blocks[at] = rows._replace(counts=here, inverses=1.0 / here)

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; with a generator components are drawn."""
        blocks, k = self.blocks, self.k
        tabulate(blocks[0], components.weights, components.centers, components.decays)
        uniforms = NO_UNIFORMS if rng is None else rng.random(len(self.counts))

        def work(first: int, last: int) -> None:
            for at in range(first, last):
                share_out(blocks[at], uniforms[at * ROWS : (at + 1) * ROWS], look)

        if len(blocks) == 1:  # one block is for one thread, and takes no longer than to ask for more
            share_out(blocks[0], uniforms, look)
        else:
            over_rows(work, len(blocks), ROWS * k)
        by_shape = _over([rows.by_shape for rows in blocks])
        total, against, squares = _over([rows.sums for rows in blocks])
        wins = _over([rows.wins for rows in blocks]) if look else np.zeros((k, 1, 1))
        members = by_shape.sum(axis=1)
        sizes = by_shape @ blocks[0].blocks
        return float(total[0]), Statistics(members, members.copy(), wins, sizes, against, members - squares)

    def log_joint(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | component k), (K, rows)."""
        self.e_step(components, None, look=False)
        logs = self.blocks[0].logs
        return np.stack([logs[k][self._of(k, "codes")] for k in range(self.k)])

    def shares(self, k: int) -> Array:
        """Return P(component k | row) at the components of the last E-step."""
        return self._of(k, "shares") / self.counts

    def gains(
        self, components: MallowsComponents, k: int, shares: Array, leads: Array, least: float
    ) -> Array:
        """Return by how much the log-likelihood rises if neighbors in center k change places, (m - 1,)."""
        center, decay = components.centers[k].tolist(), float(components.decays[k])
        gains = np.full(len(leads), -np.inf)
        bounds = gain_bounds(leads, decay, float(self.counts @ (shares * (1.0 - shares))))
        best = least
        for place in np.argsort(-bounds).tolist():  # the most promising first, while others could be better
            if best > -np.inf and not bounds[place] > best:
                break
            gains[place] = sum(
                neighbor_gain(rows, shares[at * ROWS : (at + 1) * ROWS], *center[place : place + 2], decay)
                for at, rows in enumerate(self.blocks)
            )
            best = max(best, gains[place]) if least > -np.inf else least
        return gains

    def _of(self, k: int, name: str) -> Array:
        """Return what all rows have of a component."""
        found = [getattr(rows, name)[k] for rows in self.blocks]
        return found[0] if len(found) == 1 else np.concatenate(found)


def _over(found: list[Array]) -> Array:
    """Return the sum over blocks of rows, of which there is often one."""
    return np.asarray(found[0].copy() if len(found) == 1 else sum(found[1:], found[0]))
