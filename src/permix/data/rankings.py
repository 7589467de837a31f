"""Rankings: orderings of items, best first, that say what was listed and what the rest means."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from permix.data.agent_table import AgentTable, row_name
from permix.data.csr import indptr_of
from permix.data.labels import Array, Label, as_column, clean_agents, clean_counts, encode_items
from permix.errors import DataError, NoRows, ParameterError
from permix.kernels.pairwise_counts import PreferenceArrays, preference_pair_counts

if TYPE_CHECKING:
    import pandas as pd

# From so many entries on, compiled code looks for items listed twice: sorting copies of all rows takes
# seconds.
MANY_ENTRIES = 4_000_000


class Rankings(AgentTable):
    """Rankings without ties: full, top-t (the rest is below) or of a subset (the rest is unknown).

    Build one with :meth:`from_orders`, :meth:`from_ranks` or a reader such as ``permix.read_preflib``.

    Attributes
    ----------
    orders : ndarray of int32, shape (rows, longest)
        Item indices, best first, padded by -1.
    lengths : ndarray of int64
        Number of items listed in each row.
    unlisted_below : ndarray of bool
        True where items that are not listed are below those listed; False where nothing is known about
        them. Full rows are always True.
    items, counts, agents, metadata
        Item names, multiplicities, agent ids, what a file said about itself.

    Examples
    --------
    >>> from permix import Rankings
    >>> Rankings.from_orders([["salmon", "tuna", "egg"], ["egg", "salmon"]], agents=["anna", "bo"])
    Rankings: 2 agents over 3 items, top lists of 2 to 3 items
      anna: salmon ≻ tuna ≻ egg
      bo: egg ≻ salmon ≻ rest
    """

    orders: Array
    lengths: Array
    unlisted_below: Array
    _statements: ClassVar = ("orders", "unlisted_below")
    _of_items: ClassVar = ("orders",)

    @classmethod
    def _from_arrays(
        cls,
        orders: Array,
        items: Iterable[Label],
        counts: Array | None = None,
        agents: Array | None = None,
        unlisted_below: Array | bool = True,
        metadata: dict[str, Any] | None = None,
        **beside: Any,
    ) -> Self:
        names = tuple(items)
        orders = np.asarray(orders, dtype=np.int32)
        lengths = np.count_nonzero(orders >= 0, axis=1).astype(np.int64)
        longest = int(lengths.max(initial=0))
        below = np.asarray(unlisted_below, dtype=np.bool_) | (lengths == len(names))
        orders = np.ascontiguousarray(orders[:, :longest])
        beside |= {"orders": orders, "lengths": lengths, "unlisted_below": below}
        return object.__new__(cls)._fill(names, len(orders), counts, agents, metadata, **beside)

    @classmethod
    def from_orders(
        cls,
        orders: object,
        items: Iterable[object] | None = None,
        n_items: int | None = None,
        unlisted: str = "below",
        counts: object | None = None,
        agents: object | None = None,
    ) -> Self:
        """Build from orderings, best first.

        Parameters
        ----------
        orders : sequence of sequences or 2-D array
            One ordering per row, by item name or by number. ``None``, NaN, ``-1`` or ``""`` at the end of
            a row is padding.
        items : sequence of str or int, optional
            All item names, also those nobody listed. Left out, the names found are the items: sorted when
            all are integers, else in order of first appearance. With names that are not integers, rows of
            integers are 0-based positions in ``items``.
        n_items : int, optional
            Instead of ``items``: entries are integers from 0 to ``n_items - 1``.
        unlisted : {"below", "unknown"} or one of them per row
            What a row says about items it does not list.
        counts : sequence of int, optional
            How many agents gave each row.
        agents : sequence of str or int, optional
            Agent ids; 0, 1, … when left out.

        Examples
        --------
        >>> from permix import Rankings
        >>> Rankings.from_orders([[2, 0, 1], [1, 2, -1]], n_items=3).orders
        array([[ 2,  0,  1],
               [ 1,  2, -1]], dtype=int32)
        """
        flat, sizes = _flatten(orders)
        ids = clean_agents(agents, len(sizes))
        ends = np.cumsum(sizes)

        def where(position: int) -> str:
            return row_name(int(np.searchsorted(ends, position, side="right")), ids)

        names, codes = encode_items(flat, items, n_items, where)
        if not names:
            raise NoRows("there are no rankings and no items; pass items= for an empty table")
        return cls._checked(padded(codes, sizes), names, unlisted, counts, ids)

    @classmethod
    def _from_rank_matrix(
        cls, values: Array, names: tuple[Label, ...], unlisted: object, counts: object, agents: object
    ) -> Self:
        ids = clean_agents(agents, len(values))
        best_first = np.argsort(values, axis=1, kind="stable")
        ascending = np.take_along_axis(values, best_first, axis=1)
        with np.errstate(invalid="ignore"):
            tied = (ascending[:, 1:] == ascending[:, :-1]) & np.isfinite(ascending[:, 1:])
        for row, place in np.argwhere(tied)[:1]:
            first, second = (names[best_first[row, place + step]] for step in (0, 1))
            raise DataError(
                f"{row_name(row, ids)}: {first!r} and {second!r} share rank {ascending[row, place]:g}; "
                "rankings have no ties. Use Preferences.from_ranks, which keeps them"
            )
        orders = np.where(np.isfinite(ascending), best_first, -1).astype(np.int32)
        return cls._checked(orders, names, unlisted, counts, ids)

    @classmethod
    def _checked(
        cls, orders: Array, names: tuple[Label, ...], unlisted: object, counts: object, ids: Array | None
    ) -> Self:
        """Build after a look at every row, at what the rest means and at the counts."""
        _check_orders(orders, names, ids)
        below = _unlisted_below(unlisted, len(orders))
        counts = clean_counts(counts, len(orders), lambda row: row_name(row, ids))
        return cls._from_arrays(orders, names, counts, ids, below)

    @property
    def unlisted(self) -> str:
        """What unlisted items mean: "below", "unknown", or "mixed" where rows differ."""
        if self.unlisted_below.all():
            return "below"
        partial = self.lengths < self.n_items
        return "mixed" if self.unlisted_below[partial].any() else "unknown"

    @property
    def is_full(self) -> bool:
        """Whether every row ranks every item."""
        return bool((self.lengths == self.n_items).all())

    def ranks(self, missing: float = np.nan) -> Array:
        """Rank vectors: the rank of every item in every row, 1 = best, ``missing`` = not ranked."""
        result = np.full((len(self), self.n_items), missing, dtype=np.float64)
        row, place = np.nonzero(self.orders >= 0)
        result[row, self.orders[row, place]] = place + 1
        return result

    def pairwise_counts(self) -> Array:
        """Count, for every pair of items, the agents who put the first before the second.

        Returns
        -------
        ndarray of float, shape (items, items)
            ``W[a, b]`` agents say a before b; an unlisted item is behind all listed ones where the row
            says so, and not compared where it does not.

        Examples
        --------
        >>> from permix import Rankings
        >>> Rankings.from_orders([[0, 1, 2], [1]], n_items=3, counts=[3, 2]).pairwise_counts()
        array([[0., 3., 3.],
               [2., 0., 5.],
               [0., 0., 0.]])
        """
        everybody = np.ones(len(self), dtype=np.bool_)
        return preference_pair_counts(self.arrays(), everybody, self.counts, self.n_items, repeats=False)

    def arrays(self) -> PreferenceArrays:
        """Return the same as :class:`permix.Preferences` stores it: every listed item is a level."""
        row, place = np.nonzero(self.orders >= 0)
        none = np.zeros(len(self) + 1, dtype=np.int64), np.zeros((0, 2), dtype=np.int32)
        items, levels = self.orders[row, place], place.astype(np.int32)
        return PreferenceArrays(indptr_of(self.lengths), items, levels, self.unlisted_below, *none)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per ranking and items by name.

        Columns ``agent``, ``count``, ``unlisted`` (only where some row is not full), ``1st``, ``2nd``, ….
        """
        from permix.data.to_pandas import rankings_to_frame

        return rankings_to_frame(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.orders, dtype=dtype, copy=copy)

    def _take(self, rows: Array) -> Self:
        return type(self)._from_arrays(
            self.orders[rows],
            self.items,
            self.counts[rows],
            self._taken_agents(rows),
            self.unlisted_below[rows],
            **self._beside(rows),
        )

    def _row_keys(self) -> list[bytes]:
        rows = np.column_stack([self.orders, self.unlisted_below.astype(np.int32)]).astype(np.int32)
        data, width = rows.tobytes(), 4 * rows.shape[1]
        return [data[start : start + width] for start in range(0, len(data), width)]

    @classmethod
    def _joined(cls, parts: list[Self], **common: Any) -> Self:
        listed = np.concatenate([part.orders[part.orders >= 0] for part in parts])
        orders = padded(listed, np.concatenate([part.lengths for part in parts]))
        below = np.concatenate([part.unlisted_below for part in parts])
        return cls._from_arrays(orders, unlisted_below=below, **common)


def _flatten(orders: Any) -> tuple[Array, Array]:
    """All entries of all rows in one column, and how many each row has."""
    raw = orders.to_numpy() if hasattr(orders, "to_numpy") else orders
    if isinstance(raw, np.ndarray) and raw.ndim == 2:
        if raw.dtype.kind == "f":  # NaN is padding; anything else must be whole
            raw = np.where(np.isnan(raw), -1.0, raw)
        return as_column(raw.ravel(), "item"), np.full(len(raw), raw.shape[1], dtype=np.int64)
    try:
        rows = list(raw)
        sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    except TypeError:
        raise DataError(
            "orders must be a sequence of rows, each a sequence of items, best first; "
            "wrap a single ranking in a list"
        ) from None
    for row, entries in enumerate(rows):
        if isinstance(entries, str | dict | set | frozenset):
            raise DataError(
                f"row {row + 1} is a {type(entries).__name__}; "
                "give a list of items, best first, such as ['a', 'b']"
            )
    if rows and all(isinstance(entries, np.ndarray) for entries in rows):
        return as_column(np.concatenate(rows), "item"), sizes
    return as_column(list(chain.from_iterable(rows)), "item"), sizes


def padded(codes: Array, sizes: Array) -> Array:
    """Rows of given sizes as one array padded by -1."""
    longest = int(sizes.max(initial=0))
    if (sizes == longest).all():
        return codes.reshape(len(sizes), longest)
    rows = np.full((len(sizes), longest), -1, dtype=np.int32)
    rows[np.arange(longest) < sizes[:, None]] = codes
    return rows


def _check_orders(orders: Array, names: tuple[Label, ...], agents: Array | None) -> None:
    """Refuse empty rows, gaps and items listed twice."""
    listed = orders >= 0
    empty = np.flatnonzero(~listed.any(axis=1))
    if empty.size:
        raise DataError(
            f"{row_name(empty[0], agents)} is empty ({empty.size} such row(s)); a ranking of nothing says "
            "nothing. Leave such rows out"
        )
    for row, place in np.argwhere(listed[:, 1:] & ~listed[:, :-1])[:1]:
        raise DataError(
            f"{row_name(row, agents)}: place {place + 1} is empty but {names[orders[row, place + 1]]!r} "
            "follows; missing entries may only stand at the end of a row. Close the gap"
        )
    row, item = repeated_item(orders, len(names))
    if row >= 0:
        places = np.flatnonzero(orders[row] == item) + 1
        raise DataError(
            f"{row_name(row, agents)}: {names[item]!r} is listed twice, at places {places[0]} and "
            f"{places[1]}; keep one of them"
        )


def repeated_item(orders: Array, n_items: int) -> tuple[int, int]:
    """Return a row and an item that it lists twice, or (-1, -1)."""
    if orders.size > MANY_ENTRIES:
        from permix.kernels.orders import first_repeated

        return first_repeated(np.ascontiguousarray(orders, dtype=np.int32), n_items)
    ascending = np.sort(orders, axis=1)
    for row, place in np.argwhere((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] >= 0))[:1]:
        return int(row), int(ascending[row, place])
    return -1, -1


def _unlisted_below(unlisted: object, n: int) -> Array:
    """Turn "below" / "unknown", or one of them per row, into a boolean array."""
    kinds = np.asarray(unlisted)
    if kinds.ndim == 0:
        kinds = np.full(n, kinds[()])
    if kinds.shape != (n,):
        raise DataError(
            f"unlisted has shape {kinds.shape} but there are {n} rows; give one word or one per row"
        )
    bad = (kinds != "below") & (kinds != "unknown")
    if n and np.any(bad):
        raise ParameterError("unlisted", kinds.tolist()[int(np.argmax(bad))], "'below' or 'unknown'")
    return np.asarray(kinds == "below", dtype=np.bool_)
