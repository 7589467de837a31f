"""Repeated insertion with any probabilities: a matrix of them, or a function of the ranking so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.distributions.base import (
    Center,
    Estimate,
    Items,
    RankingDistribution,
    read_only,
    sample_size,
    whole_number,
)
from permix.distributions.insertion_jit import general_steps, insertion_log_prob_rows
from permix.distributions.mallows import Mallows
from permix.errors import DataError
from permix.runtime.seeds import RandomState, generator
from permix.runtime.threads import over_rows

# Called with the ranking so far (names, best first) and the item to insert.
Rule = Callable[[tuple[Label, ...], Label], Sequence[float]]
# How far the sum of probabilities may be from one; beyond that it is a mistake rather than rounding.
TOLERANCE = 1e-8


class RepeatedInsertion(RankingDistribution):
    """Rankings grown by inserting the items of a center one after the other (RIM, GRIM).

    Parameters
    ----------
    center : sequence of items, or Rankings with one row
        The items in the order in which they are inserted.
    probabilities : matrix, rows of growing length, or function
        ``probabilities[i][j]``: that the i-th item of the center is put at place j = 0..i of the ranking of
        the items before it, 0 being the best place. A matrix is lower triangular; rows sum to one.
        A function ``f(ranking, item)`` gets the ranking so far, a tuple of names, and the next
        item; it returns the ``len(ranking) + 1`` probabilities. With a function every distribution over
        rankings can be written (GRIM; Lu & Boutilier 2014, theorem 8).
    items : sequence of str or int, optional
        Names and order of the items, as in :class:`Mallows`.

    Notes
    -----
    With a matrix all answers are exact. With a function, ``sample`` and ``log_prob`` of full rankings are
    exact and run at the speed of the function; ``entropy`` and ``expected_distance`` are Monte Carlo
    estimates that carry their standard error; the rest has no formula.

    Examples
    --------
    >>> from permix import RepeatedInsertion
    >>> model = RepeatedInsertion(["a", "b", "c"], [[1.0], [0.2, 0.8], [0.1, 0.2, 0.7]])
    >>> model.mode
    ('a', 'b', 'c')
    >>> float(np.exp(model.log_prob([["c", "a", "b"]]))[0].round(3))
    0.08
    """

    name: ClassVar[str] = "repeated-insertion"

    def __init__(
        self, center: Center, probabilities: Rule | Sequence[Sequence[float]] | Array, items: Items = None
    ) -> None:
        super().__init__(center, items)
        self._rule: Rule | None = None
        self._matrix = np.zeros((0, 0))
        if callable(probabilities):
            self._rule = probabilities
        else:
            self._matrix = _matrix(probabilities, self.center)

    @classmethod
    def mallows(
        cls, center: Center, dispersion: float | Sequence[float] | Array, items: Items = None
    ) -> RepeatedInsertion:
        """Write the Mallows model with these parameters as repeated insertion.

        Examples
        --------
        >>> from permix import RepeatedInsertion
        >>> RepeatedInsertion.mallows(["a", "b"], 0.25).probabilities
        array([[1. , 0. ],
               [0.2, 0.8]])
        """
        model = Mallows(center, dispersion, items)
        return cls(model.center, np.exp(model.insertion_log_probabilities()), model.items)

    @property
    def probabilities(self) -> Array | Rule:
        """Insertion probabilities: a lower triangular matrix, or the function given."""
        return read_only(self._matrix) if self._rule is None else self._rule

    @property
    def mode(self) -> tuple[Label, ...]:
        """A most probable ranking: every item at its most probable place, the last of equals."""
        self._need_matrix("mode")
        ranking: list[Label] = []
        for i, item in enumerate(self.center):
            ranking.insert(i - int(np.argmax(self._matrix[i, i::-1])), item)
        return tuple(ranking)

    def sample(self, size: int = 1, random_state: RandomState = None) -> Rankings:
        """Draw full rankings exactly; see :meth:`Distribution.sample`."""
        if self._rule is None:
            return self._insert(general_steps(self._matrix), size, random_state)
        out = np.empty((sample_size(size), self.n_items), dtype=np.int32)
        index = {name: position for position, name in enumerate(self.items)}
        for row, (ranking, _) in enumerate(self._grown(len(out), random_state)):
            out[row] = [index[name] for name in ranking]
        return Rankings._from_arrays(out, self.items)

    def entropy(self, n_draws: int = 1000, random_state: RandomState = None) -> float:
        """Entropy in nats: exact for a matrix, an :class:`Estimate` for a function.

        Parameters
        ----------
        n_draws, random_state
            For a function only: rankings drawn, over which the entropies of the insertions are
            averaged (chain rule). The result carries its ``standard_error``.
        """
        return self._expected(_entropy, n_draws, random_state)

    def expected_distance(self, n_draws: int = 1000, random_state: RandomState = None) -> float:
        """Expected Kendall distance from the center; arguments and exactness as for :meth:`entropy`."""
        return self._expected(_displacement, n_draws, random_state)

    def _expected(self, of_step: Callable[[Array], float], n_draws: int, random_state: RandomState) -> float:
        """Sum a function of the probabilities of each insertion, its mean over rankings so far."""
        if self._rule is None:
            return sum(of_step(self._matrix[i, : i + 1]) for i in range(self.n_items))
        grown = self._grown(whole_number("n_draws", n_draws, 2), random_state)
        values = np.array([sum(map(of_step, chances), 0.0) for _, chances in grown])
        return Estimate(float(values.mean()), float(values.std(ddof=1)) / np.sqrt(len(values)))

    def _insertion_probabilities(self, what: str) -> Array:
        self._need_matrix(what)
        return self._matrix

    def insertion_log_probabilities(self) -> Array:
        """Matrix of log-probabilities, by step of insertion and place; minus infinity above the diagonal."""
        self._need_matrix("insertion_log_probabilities")
        with np.errstate(divide="ignore"):
            return np.log(self._matrix)

    def _described(self) -> dict[str, Any]:
        self._need_matrix("describe")
        return {"probabilities": [self._matrix[i, : i + 1].tolist() for i in range(self.n_items)]}

    def _identity(self) -> object:
        return self.items, self.center, self._rule, self._matrix.tolist()

    def _parameters_text(self) -> str:
        return "" if self._rule is None else f"function {getattr(self._rule, '__name__', 'given')}, "

    def _need_matrix(self, what: str) -> None:
        if self._rule is not None:
            raise DataError(
                f"{what} has no formula where the insertion probabilities are a function; "
                "estimate it from .sample(...), or give the probabilities as a matrix"
            )

    def _score_top_lists(self, table: Rankings, out: Array) -> None:
        if self._rule is not None:
            self._score_by_rule(table, out)
            return
        tails = np.zeros((0, 0))
        if not table.is_full:  # P(place >= j) at step i
            tails = np.ascontiguousarray(np.minimum(1.0, np.cumsum(self._matrix[:, ::-1], axis=1)[:, ::-1]))
        rows = (table.orders, table.lengths, np.argsort(self._order))
        work = (*rows, np.zeros(0), self._matrix, tails, out)
        over_rows(insertion_log_prob_rows, len(table), self.n_items, *work)

    def _before(self, first: Array, second: Array) -> Array:
        self._need_matrix("the probability of a pair")
        return self._before_by_steps(first, second, np.zeros(0), self._matrix)

    def _score_by_rule(self, table: Rankings, out: Array) -> None:
        if not table.is_full:
            row = int(np.argmax(table.lengths < self.n_items))
            raise DataError(
                f"{table.row_name(row)} is not full; where the insertion probabilities are a function, only "
                "full rankings have a probability that can be computed"
            )
        for row, order in enumerate(table.orders):
            rank = {self.items[item]: place for place, item in enumerate(order)}
            growing: list[Label] = []
            for item in self.center:
                place = sum(rank[other] < rank[item] for other in growing)
                chance = self._asked(growing, item)[place]
                out[row] += np.log(chance) if chance > 0 else -np.inf
                growing.insert(place, item)

    def _grown(self, size: int, random_state: RandomState) -> Iterator[tuple[list[Label], list[Array]]]:
        """Draw rankings by the function, with the probabilities of their insertions."""
        rng = generator(random_state)
        for _ in range(size):
            names: list[Label] = []
            chances: list[Array] = []
            for item in self.center:
                chances.append(self._asked(names, item))
                ends = np.cumsum(chances[-1])
                names.insert(int(np.searchsorted(ends / ends[-1], rng.random(), side="right")), item)
            yield names, chances

    def _asked(self, growing: list[Label], item: Label) -> Array:
        """Ask the function and check what it says."""
        assert self._rule is not None
        return _row(self._rule(tuple(growing), item), len(growing) + 1, item)


def _entropy(chances: Array) -> float:
    positive = chances[chances > 0]
    return float(-(positive @ np.log(positive))) + 0.0


def _displacement(chances: Array) -> float:
    """Mean number of items before which an item is put that the center puts after them."""
    return float(chances @ np.arange(len(chances) - 1, -1, -1))


def _matrix(probabilities: Any, center: tuple[Label, ...]) -> Array:
    """Check insertion probabilities, full rows or rows of growing length, and make the rows sum to one."""
    try:
        rows = list(probabilities)
    except TypeError:
        raise DataError("probabilities must be a lower triangular matrix or a function") from None
    n = len(center)
    if len(rows) != n:
        raise DataError(
            f"probabilities has {len(rows)} rows, but the center has {n} items; give one row each"
        )
    matrix = np.zeros((n, n))
    for i, item in enumerate(center):
        matrix[i, : i + 1] = _row(rows[i], i + 1, item, n)
    return matrix


def _row(chances: Any, places: int, item: Label, padded: int = 0) -> Array:
    """Check the insertion probabilities of one item, padded by zeros or not, and make them sum to one."""
    whose = f"the insertion probabilities of {item!r}"
    try:
        row = np.array(chances, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{whose} are not numbers: {chances!r}") from None
    if row.shape == (padded,) and not row[places:].any():
        row = row[:places]
    if row.shape != (places,):
        raise DataError(
            f"{whose} have shape {row.shape}, but it can go to {places} place(s): give {places} number(s), "
            "the best place first"
        )
    if not np.all(row >= 0):  # NaN included
        at = int(np.argmin(row >= 0))
        raise DataError(f"{whose} have {row[at]:g} at place {at + 1}; they must be 0 or more")
    total = float(row.sum())
    if not abs(total - 1.0) <= TOLERANCE:
        raise DataError(f"{whose} sum to {total:.10g}, not to 1; divide them by their sum")
    rounding = abs(total - 1.0) <= places * np.finfo(np.float64).eps
    return row if rounding else row / total  # so that what was made to sum to one stays as it is
