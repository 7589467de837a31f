"""A generalized Mallows model given the beginning of a list: the stages that are left go on by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import Given, sample_size
from permix.errors import Argument, DataError
from permix.runtime.seeds import RandomState

if TYPE_CHECKING:
    from permix.distributions.generalized.generalized_mallows import GeneralizedMallows


class ListContinuation(Given):
    """How a list goes on that begins with given items. Made by ``GeneralizedMallows.condition(list)``.

    Attributes
    ----------
    distribution : GeneralizedMallows
    preferences : Rankings
        The list, one row.
    rest : GeneralizedMallows or None
        How the unlisted items are ordered: their order in the center, the decays of the later stages.
        None where the list is full.
    """

    def __init__(self, distribution: GeneralizedMallows, given: object) -> None:
        if not isinstance(given, Rankings):
            raise DataError(
                f"a generalized Mallows model can be conditioned on the top list of one agent, which is "
                f"Rankings with one row, not on {type(given).__name__}; where all theta are equal, "
                "Mallows(center, exp(-theta)).condition(...) takes any preferences"
            )
        self.distribution: GeneralizedMallows = distribution
        given = self._one_row(given, "list")
        if not given.unlisted_below[0]:
            raise DataError(
                f"{given.row_name(0)} leaves the items it does not rank unknown; a generalized Mallows "
                "model can only go on with a list whose unlisted items are below (",
                Argument("unlisted", "below"),
                ")",
            )
        self.preferences = given
        self._listed = given.orders[0, : given.lengths[0]]
        if self.log_normalizer() == -np.inf:
            raise DataError(
                f"{given.row_name(0)} has probability 0: it strays from the center at a stage whose theta is "
                "infinite"
            )
        self._unlisted = np.setdiff1d(np.arange(distribution.n_items), self._listed)
        names = [distribution.items[item] for item in self._unlisted]
        self.rest: GeneralizedMallows | None = None
        if names:
            left = [name for name in distribution.center if name in set(names)]
            self.rest = type(distribution)(left, distribution.theta[len(self._listed) :], names)

    def log_normalizer(self) -> float:
        """Log-probability of the list."""
        return float(self.distribution.log_prob(self.preferences)[0])

    def sample(self, size: int = 1, random_state: RandomState = None, lengths: int | None = None) -> Rankings:
        """Draw rankings that begin with the list, independently and exactly.

        Parameters
        ----------
        size, random_state
            As in :meth:`GeneralizedMallows.sample`.
        lengths : int, optional
            How many items each row lists, those given included; left out, all.
        """
        t = len(self._listed)
        n = self.n_items if lengths is None else lengths
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not t <= n <= self.n_items:
            raise DataError(f"lengths={lengths!r} must be from {t}, the items given, to {self.n_items}")
        out = np.empty((sample_size(size), n), dtype=np.int32)
        out[:, :t] = self._listed
        if self.rest is not None and n > t:
            out[:, t:] = self._unlisted[self.rest.sample(size, random_state, lengths=n - t).orders]
        return Rankings._from_arrays(out, self.items)

    def log_prob(self, rankings: object) -> Array:
        """Log-probability of longer lists and full rankings given this list; minus infinity for others."""
        table = self.distribution._rankings(rankings)
        t = len(self._listed)
        short = np.flatnonzero((table.lengths < t) | ~table.unlisted_below)
        if len(short):
            raise DataError(
                f"{table.row_name(int(short[0]))} does not reach beyond the {t} item(s) given; ask for lists "
                "that are at least as long, with the rest below"
            )
        out = self.distribution.log_prob(table)
        agrees = (table.orders[:, :t] == self._listed).all(axis=1)
        out[agrees] -= self.log_normalizer()
        out[~agrees] = -np.inf
        return out

    def pairwise(self) -> Array:
        """Matrix of P(item a before item b), exact."""
        n = self.n_items
        rank = np.full(n, n)
        rank[self._listed] = np.arange(len(self._listed))
        out = (rank[:, None] < rank[None, :]).astype(np.float64)
        if self.rest is not None:
            out[np.ix_(self._unlisted, self._unlisted)] = self.rest.pairwise()
        return out

    def rank_marginals(self) -> Array:
        """Matrix of P(item a has rank r), exact; column 0 is the best rank."""
        t = len(self._listed)
        out = np.zeros((self.n_items, self.n_items))
        out[self._listed, np.arange(t)] = 1.0
        if self.rest is not None:
            out[self._unlisted, t:] = self.rest.rank_marginals()
        return out

    def __repr__(self) -> str:
        names = " ≻ ".join(str(self.items[item]) for item in self._listed)
        return f"{self.distribution!r}\n  given a list that begins {names}"
