"""What models of rankings answer about agents: pairs asked about, full rankings drawn, ranges of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.io.columns import in_row, long_columns
from permix.data.labels import Array, as_column, encode_items
from permix.data.rankings import Rankings
from permix.distributions.base import sample_size
from permix.errors import DataError
from permix.estimators.checks import Choice, Whole
from permix.runtime.seeds import RandomState, generator

if TYPE_CHECKING:
    import pandas as pd

# Answers larger than this are refused; ask for less at a time.
MOST_BYTES = 4 * 2**30


class Questions(NamedTuple):
    """Pairs (a, b) that agents are asked about: P(a before b).

    Agent j is asked about ``first[span[j, 0]:span[j, 1]]`` and ``second`` there; the answers go to
    ``out_start[j]`` and on. ``everything``: these are all pairs a < b, in this order.
    """

    span: Array
    first: Array
    second: Array
    everything: bool
    out_start: Array
    n_answers: int

    @classmethod
    def all_pairs(cls, n_rows: int, n_items: int, begin: int = 0, end: int | None = None) -> Questions:
        """Ask agents ``begin`` to ``end - 1`` of ``n_rows`` about every pair a < b."""
        first, second = (side.astype(np.int32) for side in np.triu_indices(n_items, 1))
        end = n_rows if end is None else end
        span = np.zeros((n_rows, 2), dtype=np.int64)
        span[begin:end, 1] = len(first)
        out_start = (np.arange(n_rows) - begin) * len(first)
        return cls(span, first, second, True, out_start, (end - begin) * len(first))

    @classmethod
    def triples(cls, rows: Array, first: Array, second: Array, n_rows: int) -> Questions:
        """Ask about (row, a, b), sorted by row."""
        ends = np.cumsum(np.bincount(rows, minlength=n_rows))
        span = np.column_stack([np.concatenate([[0], ends[:-1]]), ends])
        return cls(span, first, second, False, span[:, 0].copy(), len(rows))

    def of(self, rows: Array) -> tuple[Array, Array, Array, Array]:
        """Arguments of compiled code for some of the agents."""
        return self.span[rows], self.first, self.second, self.out_start[rows]


class RankSummary(NamedTuple):
    """Where items may stand in each agent's full ranking, 1 = best; arrays (agents, items).

    Attributes
    ----------
    mean : ndarray of float
        Expected rank.
    low, high : ndarray of int
        The item has a better rank than ``low`` with probability 5 % at most, a worse one than ``high`` with
        probability 5 % at most; ``mean`` lies between them.
    """

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Completions:
    """Full rankings drawn for every agent.

    Attributes
    ----------
    orders : int32 ndarray (agents, draws, items)
        Items by position in ``items``, best first.
    labels : int ndarray (agents, draws)
        The group each was drawn with.
    exact : bool ndarray (agents,)
        Whether the draws are independent and exactly from the posterior.
    acceptance_rates : ndarray (agents,)
        Share of proposals that the chain SP took; NaN for agents who needed no chain.
    preferences : Preferences or Rankings
        What the agents said.
    """

    orders: Array
    labels: Array
    exact: Array
    acceptance_rates: Array
    preferences: AgentTable

    def to_rankings(self) -> Rankings:
        """All draws as :class:`permix.Rankings`, those of one agent together under the agent's id."""
        _, size, n_items = self.orders.shape
        agents = np.repeat(self.preferences.agents, size)
        return Rankings._from_arrays(self.orders.reshape(-1, n_items), self.preferences.items, agents=agents)


def questions_about(pairs: Any, table: AgentTable) -> tuple[Questions, Array]:
    """Questions sorted by agent, and the place of each in the order they were asked in."""
    row_column, a_column, b_column = long_columns(pairs, ("row", "a", "b"))
    rows, n = as_column(row_column, "row"), len(table)
    if len(rows) == 0:
        empty = np.zeros(0, dtype=np.int64)
        return Questions.triples(empty, empty.astype(np.int32), empty.astype(np.int32), n), empty
    if rows.dtype.kind not in "iu":
        raise DataError("pairs are (row, a, b) with rows of the preferences counted from 0")
    for at in np.flatnonzero((rows < 0) | (rows >= n)).tolist():
        raise DataError(f"pairs, {in_row(at)}: there is no row {rows[at]}; rows are counted 0 to {n - 1}")
    coded = []
    for column in (a_column, b_column):
        entries = as_column(column, "item")
        _, codes = encode_items(entries, table.items, None, lambda at: f"pairs, {in_row(at)}")
        for at in np.flatnonzero(codes < 0).tolist():
            raise DataError(f"pairs, {in_row(at)}: an item is missing")
        coded.append(codes)
    for at in np.flatnonzero(coded[0] == coded[1]).tolist():
        name = table.items[coded[0][at]]
        raise DataError(f"pairs, {in_row(at)}: {name!r} is compared with itself; leave the row out")
    order = np.argsort(rows, kind="stable")
    return Questions.triples(rows[order].astype(np.int64), coded[0][order], coded[1][order], n), order


def sample_rankings(components: Any, size: int, random_state: RandomState) -> tuple[Rankings, Array]:
    """Draw full rankings from a mixture of distributions, independently, with the group of each."""
    rng = generator(random_state)
    shares = components.weights / components.weights.sum()  # to the last bit, which choice() asks for
    labels = rng.choice(components.n_components, size=sample_size(size), p=shares)
    orders = np.empty((len(labels), components.n_items), dtype=np.int32)
    for k in range(components.n_components):
        rows = np.flatnonzero(labels == k)
        if len(rows):
            orders[rows] = components.component(k).sample(len(rows), random_state=rng).orders
    return Rankings._from_arrays(orders, components.items), labels


def refuse_too_large(n_bytes: int, what: str, instead: str) -> None:
    """Refuse an answer that memory would not hold; ``instead`` says what to ask for."""
    if n_bytes > MOST_BYTES:
        size = f"{n_bytes / 2**30:.1f} GiB"
        raise DataError(f"the answer, {what}, would take {size}; ask for {instead} instead")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is none of those allowed."""
    Choice(*allowed)(name, value)


def whole_number(name: str, value: int, least: int) -> int:
    """Return a whole number of at least ``least``."""
    return int(Whole(least)(name, value))


def same_for_equal_rows(values: Array, table: AgentTable) -> Array:
    """Give rows that say the same one answer: the mean of what was drawn for each of them."""
    group = table.equal_rows()
    sums = np.zeros((int(group.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(sums, group, values)
    sizes = np.bincount(group).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray((sums / np.maximum(sizes, 1))[group])


def starts_table(objective: str, reached: Array) -> pd.DataFrame:
    """Return what every start of a climb reached, and how far that is from the best."""
    import pandas as pd

    best = np.max(reached, initial=-np.inf)
    columns = {objective: reached, "below_best": best - reached, "near_best": reached >= best - 1.0}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(reached), name="start"))
