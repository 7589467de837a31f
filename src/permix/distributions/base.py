"""What every distribution over rankings has: a center, items by name, and the same questions to ask."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.labels import Array, Label, OverItems, some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, Message
from permix.runtime.seeds import RandomState, stream_key
from permix.runtime.threads import over_rows

Table = TypeVar("Table", bound=AgentTable)
Center = Sequence[object] | Rankings | Array
Items = Iterable[object] | None


class Estimate(float):
    """A number known up to a Monte Carlo error, and that error; otherwise a plain float.

    Attributes
    ----------
    standard_error : float
        Standard error of the number; 0 where it is exact.

    Examples
    --------
    >>> estimate = Estimate(1.5, standard_error=0.1)
    >>> estimate + 1, estimate.standard_error
    (2.5, 0.1)
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float = 0.0) -> Self:
        """Make the number."""
        self = super().__new__(cls, value)
        self.standard_error = float(standard_error)
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[float, float]]:
        return type(self), (float(self), self.standard_error)

    def __repr__(self) -> str:
        return f"{float(self)!r} (standard error {self.standard_error:.2g})"


class Distribution(OverItems, abc.ABC):
    """Base of all distributions over full rankings of named items."""

    name: ClassVar[str]
    _items: tuple[Label, ...]

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names; arrays refer to items by their position here."""
        return self._items

    @property
    @abc.abstractmethod
    def mode(self) -> tuple[Label, ...]:
        """A most probable ranking, best first."""

    @abc.abstractmethod
    def sample(self, size: int = 1, random_state: RandomState = None) -> Rankings:
        """Draw full rankings independently.

        Parameters
        ----------
        size : int
            Number of rankings.
        random_state : int, SeedSequence, Generator or None
            The same seed gives the same rankings, whatever the number of threads; and the first rows of
            a larger sample are those of a smaller one.

        Returns
        -------
        Rankings
        """

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return name and parameters as plain JSON values."""

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if type(other) is type(self) else NotImplemented

    def _identity(self) -> object:
        """What equal distributions have in common."""
        return self.describe()

    def __hash__(self) -> int:
        return hash((type(self), self._items))


def chain_text(names: Iterable[Label], most: int = 8) -> str:
    """First names of a ranking, best first, and how many more there are."""
    listed = [str(name) for name in names]
    rest = f" ≻ … ({len(listed) - most} more)" if len(listed) > most else ""
    return " ≻ ".join(listed[:most]) + rest


class Given(OverItems):
    """A distribution and the preferences of one agent, one row, in the order of its items."""

    distribution: RankingDistribution

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names."""
        return self.distribution.items

    def _one_row(self, table: Table, what: str) -> Table:
        if len(table) != 1:
            raise DataError(
                f"condition(...) needs the {what} of one agent, but here are {len(table)} rows; take one of "
                "them, such as [0]"
            )
        return aligned(table, self.items)


class RankingDistribution(Distribution):
    """Base of distributions over full rankings that grow around a center by repeated insertion.

    The items of the center are inserted one after the other, best first, into the ranking of those before
    them: ``center_order[i]`` is the item inserted at step i = 0, 1, ….
    """

    # What to do about rankings of a subset of the items.
    _about_subsets: ClassVar[Message] = Message(
        "its probability is a sum over all rankings that agree. Use "
        ".condition(rankings[row]).log_normalizer()"
    )

    def __init__(self, center: object, items: Items) -> None:
        table = central_ordering(center, items)
        self._items = table.items
        # Compiled code is specialized for writable arrays, so those kept for it are; users see views.
        self._order = np.array(table.orders[0], dtype=np.int32)

    @property
    def center_order(self) -> Array:
        """The central ordering by position in ``items``, best first."""
        return read_only(self._order)

    @property
    def center(self) -> tuple[Label, ...]:
        """Names of the items in the central ordering, best first."""
        return tuple(self._items[index] for index in self._order)

    @property
    def mode(self) -> tuple[Label, ...]:
        """The center; other rankings are as probable where a dispersion is 1, or a decay 0."""
        return self.center

    def log_prob(self, rankings: object) -> Array:
        """Log-probability of each row, whatever its count.

        Parameters
        ----------
        rankings : Rankings, or rows of items by name or number
            Full rankings; top lists, whose probability is that of all rankings that begin so; or one or
            two items with the rest unknown. Longer rankings of a subset of the items need
            ``condition(rankings[row]).log_normalizer()``.

        Returns
        -------
        ndarray of float, one per row
        """
        table = self._rankings(rankings)
        out = np.zeros(len(table))
        top = np.flatnonzero(table.unlisted_below)
        if len(top) == len(table):
            self._score_top_lists(table, out)
            return out
        long = np.flatnonzero(~table.unlisted_below & (table.lengths > 2))
        if len(long):
            raise DataError(
                f"{table.row_name(int(long[0]))} ranks {table.lengths[long[0]]} of {self.n_items} items "
                f"and leaves the rest unknown ({len(long)} such row(s)); ",
                *self._about_subsets.parts,
            )
        scores = np.zeros(len(top))
        self._score_top_lists(table[top], scores)
        out[top] = scores
        pairs = np.flatnonzero(~table.unlisted_below & (table.lengths == 2))
        if len(pairs):
            with np.errstate(divide="ignore"):
                out[pairs] = np.log(self._before(table.orders[pairs, 0], table.orders[pairs, 1]))
        return out  # a single item out of an unknown rest says nothing: probability 1

    @abc.abstractmethod
    def _score_top_lists(self, table: Rankings, out: Array) -> None:
        """Set ``out`` to the log-probabilities of rows that leave nothing unknown."""

    @abc.abstractmethod
    def _before(self, first: Array, second: Array) -> Array:
        """P(one item before another) for some pairs."""

    def _insert(
        self, steps: tuple[Array, Array, Array, Array], size: int, random_state: RandomState
    ) -> Rankings:
        """Draw by repeated insertion; ``steps`` say where items go (see ``insertion_jit.sample_rows``)."""
        from permix.distributions.insertion_jit import place_scratch, sample_rows

        key = stream_key(random_state)
        out = np.empty((sample_size(size), self.n_items), dtype=np.int32)

        def draw(first: int, last: int) -> None:
            places = place_scratch(self.n_items, last - first)
            sample_rows(key, first, last, self._order[None], *steps, places, out)

        over_rows(draw, len(out), self.n_items)
        return Rankings._from_arrays(out, self.items)

    def _before_by_steps(self, first: Array, second: Array, decays: Array, matrix: Array) -> Array:
        """Answer some pairs by steps of insertion: by the table of all, n³ operations, or by n² for each."""
        from permix.distributions.insertion_jit import pair_order

        pairs, row = np.unique(np.stack([first, second], axis=1), axis=0, return_inverse=True)
        if len(pairs) >= self.n_items:
            return np.asarray(self.pairwise()[first, second])
        step_of = np.argsort(self._order)
        found = np.empty(len(pairs))
        for at, (a, b) in enumerate(step_of[pairs].tolist()):
            earlier_first, later_first = pair_order(decays, matrix, min(a, b), max(a, b))
            found[at] = earlier_first if a < b else later_first
        return np.asarray(found[row.reshape(-1)])

    @abc.abstractmethod
    def entropy(self) -> float:
        """Entropy in nats."""

    @abc.abstractmethod
    def expected_distance(self) -> float:
        """Expected Kendall distance from the center."""

    def pairwise(self) -> Array:
        """Matrix of P(item a before item b), by position in ``items``, 0 on the diagonal.

        Exact, in n³ operations.
        """
        from permix.distributions.insertion_jit import insertion_marginals

        return self._by_item(insertion_marginals(self._insertion_probabilities("pairwise"))[1])

    def rank_marginals(self) -> Array:
        """Matrix of P(item a has rank r), exact, in n³ operations.

        Returns
        -------
        ndarray, shape (items, items)
            Rows by position in ``items``; column 0 is the best rank. Rows and columns sum to one.
        """
        from permix.distributions.insertion_jit import insertion_marginals

        places = insertion_marginals(self._insertion_probabilities("rank_marginals"))[0]
        return np.ascontiguousarray(places.T[np.argsort(self._order)])

    def _insertion_probabilities(self, what: str) -> Array:
        """Matrix of insertion probabilities, asked for by the method ``what``."""
        return np.exp(self.insertion_log_probabilities())

    @abc.abstractmethod
    def insertion_log_probabilities(self) -> Array:
        """Matrix of the log-probability that ``center_order[i]`` is inserted at place j = 0..i.

        Entries above the diagonal are minus infinity. It has n² entries.
        """

    def describe(self) -> dict[str, Any]:
        """Return name and parameters as plain JSON values; infinity, which JSON lacks, as text.

        Insertion probabilities given as a function cannot be described.
        """
        about = {"name": self.name, "items": list(self.items), "center": list(self.center)}
        return about | self._described()

    @abc.abstractmethod
    def _described(self) -> dict[str, Any]:
        """Return the parameters beside the center as plain JSON values."""

    def condition(self, preferences: object) -> Any:
        """Return this distribution given what one agent said.

        Parameters
        ----------
        preferences : Preferences or Rankings
            One row.

        Returns
        -------
        The conditioned distribution, with ``sample``, ``log_prob``, ``log_normalizer``, ``pairwise`` and
        ``rank_marginals``.
        """
        from permix.distributions.conditioning.conditioned import Conditioned

        return Conditioned(self, preferences)

    def __repr__(self) -> str:
        parameters = self._parameters_text()
        return f"{type(self).__name__}: {self.n_items} items, {parameters}center {chain_text(self.center)}"

    def _by_item(self, by_step: Array) -> Array:
        """Turn a matrix over pairs of steps into one over pairs of items."""
        step_of = np.argsort(self._order)
        return np.ascontiguousarray(by_step[np.ix_(step_of, step_of)])

    def _parameters_text(self) -> str:
        return ""

    def _rankings(self, rankings: object) -> Rankings:
        """Rows over this distribution's items: Rankings, or orderings by name or index."""
        if isinstance(rankings, Preferences):
            raise DataError(
                f"{self.name} gives probabilities of rankings; for preferences, whose probability is that of "
                "all rankings that agree, use .condition(preferences[row]).log_normalizer()"
            )
        return rankings_over(rankings, self.items)


def rankings_over(rankings: object, items: tuple[Label, ...], of: str = "center") -> Rankings:
    """Rows over these items: Rankings, or orderings by name or index; ``of`` is who has the items."""
    if isinstance(rankings, Rankings):
        return aligned(rankings, items, of)
    rows: Any = rankings
    if not isinstance(rows, np.ndarray) and not hasattr(rows, "to_numpy"):
        if not isinstance(rows, Iterable):
            raise DataError(f"rankings={rows!r} must be Rankings, or rows of items, best first")
        rows = list(rows)
        if rows and (isinstance(rows[0], str) or not hasattr(rows[0], "__len__")):
            raise DataError("rankings are rows of items; wrap a single ranking in a list: [ranking]")
    return Rankings.from_orders(rows, items=items)


def central_ordering(center: object, items: Items) -> Rankings:
    """Check a center: one full ordering, by names or indices, or a one-row Rankings."""
    if isinstance(center, Rankings):
        if items is not None:
            raise DataError("the center is a Rankings, which has its own items; leave items out")
        table = center
    else:
        if isinstance(center, str | Mapping | Set) or not isinstance(center, Iterable):
            raise DataError(f"center={center!r} must be a sequence of items, best first")
        values = list(center)
        if not values:
            raise DataError("the center is empty; it lists every item, best first")
        if isinstance(values[0], list | tuple | np.ndarray):
            raise DataError("the center is one ordering of items, best first, not a table of them")
        try:
            table = Rankings.from_orders([values], items=items)
        except DataError as error:
            raise DataError(f"center: {error}") from None
    if len(table) != 1:
        raise DataError(
            f"the center is one ranking, but here are {len(table)}; take one of them, such as [0]"
        )
    if not table.is_full:
        ranked = set(table.orders[0].tolist())
        left_out = [name for index, name in enumerate(table.items) if index not in ranked]
        raise DataError(f"the center must rank every item, but leaves out {some_names(left_out)}")
    return table


def aligned(table: Table, items: tuple[Label, ...], of: str = "center") -> Table:
    """Return the table with its items in this order; both must have the same items."""
    wanted, known = set(items), set(table.items)
    strangers = [name for name in table.items if name not in wanted]
    absent = [name for name in items if name not in known]
    if strangers or absent:
        reasons = [f"the {of} does not rank {some_names(strangers)}"] * bool(strangers)
        reasons += [f"the data do not know {some_names(absent)}"] * bool(absent)
        raise DataError(
            f"the data and the {of} are over different items: {'; '.join(reasons)}. "
            "Build both with the same items="
        )
    return table._reindexed(items)


def read_only(array: Array) -> Array:
    """Return a view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def sample_size(size: int) -> int:
    """Check the number of draws."""
    return whole_number("size", size, 0)


def whole_number(name: str, value: int, least: int) -> int:
    """Check a number of draws or steps."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DataError(f"{name}={value!r} must be a whole number, {least} or more")
    return int(value)


def distribution_from_description(description: Mapping[str, Any]) -> Distribution:
    """Rebuild what ``describe`` of a distribution gave, for example from a file.

    Examples
    --------
    >>> from permix import Mallows
    >>> model = Mallows(["b", "a"], 0.5)
    >>> distribution_from_description(model.describe()) == model
    True
    """
    from permix.distributions.angle.angle import Angle
    from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
    from permix.distributions.insertion import RepeatedInsertion
    from permix.distributions.mallows import Mallows

    settings = dict(description)
    kinds: dict[str, Callable[..., Distribution]] = {
        kind.name: kind for kind in (Angle, GeneralizedMallows, Mallows, RepeatedInsertion)
    }
    name = settings.pop("name", None)
    if name not in kinds:
        raise DataError(f"{name!r} is not a known distribution; known are {', '.join(sorted(kinds))}")
    return kinds[name](**settings)
