"""What Rankings and Preferences have in common: rows of agents with ids and counts, never changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from permix.data.attributes import NONE, Attributes
from permix.data.labels import Array, Label, OverItems, clean_agents, clean_items, refuse_sums_beyond
from permix.errors import DataError
from permix.files import MAX_BYTES_VARIABLE, unpacking_limit
from permix.runtime.seeds import generator


class AgentTable(OverItems, ABC):
    """Rows of agents over common items; immutable."""

    items: tuple[Label, ...]  # everything else refers to items by their position here
    counts: Array  # how many agents gave each row
    metadata: dict[str, Any]  # what a file said about itself; not part of equality
    # What is known of agents and of items beside the answers; no model uses it. Not part of equality.
    covariates: Attributes
    item_attributes: Attributes
    _agents: Array | None
    # Names of the arrays that hold what rows say, and of those whose entries are items or -1.
    _statements: ClassVar[tuple[str, ...]]
    _of_items: ClassVar[tuple[str, ...]]

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        ways = [name for name in dir(self) if name.startswith("from_")]
        raise TypeError(f"build {type(self).__name__} with one of its methods {', '.join(ways)}")

    def _fill(
        self,
        items: tuple[Label, ...],
        n: int,
        counts: Array | None = None,
        agents: Array | None = None,
        metadata: Mapping[str, Any] | None = None,
        covariates: Attributes = NONE,
        item_attributes: Attributes = NONE,
        **statements: Array,
    ) -> Self:
        """Set attributes once, arrays read-only; counts of one and agents 0, 1, … where there are none."""
        counts = np.ones(n, dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        refuse_sums_beyond(counts)
        about = {"items": items, "_agents": clean_agents(agents, n), "metadata": dict(metadata or {})}
        beside = {
            "covariates": covariates.checked(n, "rows"),
            "item_attributes": item_attributes.checked(len(items), "items"),
        }
        self._store(counts=counts, **about, **beside, **statements)
        return self

    def _store(self, **values: object) -> None:
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; build a new one instead")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __setstate__(self, state: dict[str, object]) -> None:
        self._store(**state)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def n_agents(self) -> int:
        """Number of agents, each row taken as often as its count says."""
        return int(self.counts.sum())

    @property
    def agents(self) -> Array:
        """Agent id of each row (0, 1, … where none were given)."""
        return np.arange(len(self)) if self._agents is None else self._agents

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, items)``; lets scikit-learn's splitters index the rows."""
        return len(self), self.n_items

    def row_name(self, row: int) -> str:
        """Name a row for a message, by agent id where there is one."""
        return row_name(row, self._agents)

    @abstractmethod
    def _take(self, rows: Array) -> Self:
        """Return the rows at these positions."""

    @classmethod
    @abstractmethod
    def _from_arrays(cls, *args: Any, **kwargs: Any) -> Self:
        """Build from arrays that are known to be right; shared, not copied."""

    @classmethod
    def from_ranks(
        cls,
        ranks: object,
        items: Iterable[object] | None = None,
        unlisted: str = "below",
        counts: object | None = None,
        agents: object | None = None,
    ) -> Self:
        """Build from rank vectors: for each row the rank of every item, 1 = best.

        Only the order of the ranks within a row matters, so ranks with gaps (1, 3, 4 for a subset of a
        larger contest) are taken as they stand. Equal ranks are ties, which only :class:`permix.Preferences`
        hold.

        Parameters
        ----------
        ranks : 2-D array or data frame, shape (rows, items)
            Positive numbers; NaN or 0 = not ranked.
        items : sequence of str or int, optional
            Item names, one per column; the column names of a frame, else 0, 1, ….
        unlisted : {"below", "unknown"}
            What a row says about items it does not rank; for Rankings also one of them per row.
        counts, agents
            As in :meth:`permix.Rankings.from_orders`.

        Examples
        --------
        >>> from permix import Preferences, Rankings
        >>> Rankings.from_ranks([[2, 1, 3], [0, 1, 0]], items=["a", "b", "c"])
        Rankings: 2 agents over 3 items, top lists of 1 to 3 items
          0: b ≻ a ≻ c
          1: b ≻ rest
        >>> Preferences.from_ranks([[1, 1, 2, 0]], items=["a", "b", "c", "d"])
        Preferences: 1 agent over 4 items, levels of 3 items
          0: {a, b} ≻ c ≻ rest
        """
        values, names = _rank_matrix(ranks, items)
        return cls._from_rank_matrix(values, names, unlisted, counts, agents)

    @classmethod
    @abstractmethod
    def _from_rank_matrix(
        cls, values: Array, names: tuple[Label, ...], unlisted: Any, counts: object, agents: object
    ) -> Self:
        """Build from checked ranks; infinity where an item is not ranked."""

    def _replaced(self, **changes: object) -> Self:
        """Return a copy with some of the stored values replaced."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self._statements}
        values |= {"items": self.items, "counts": self.counts, "agents": self._agents}
        values |= {"metadata": self.metadata, "covariates": self.covariates}
        items: Any = changes.get("items", self.items)
        values["item_attributes"] = self.item_attributes.over(self.items, tuple(items))
        return type(self)._from_arrays(**(values | changes))

    def with_covariates(self, columns: Mapping[str, object]) -> Self:
        """Return the same with columns that say something of each row: precinct, age, region, ….

        No model uses them; see ``by_covariate`` of fitted models.

        Examples
        --------
        >>> from permix import Rankings
        >>> votes = Rankings.from_orders([["a", "b"], ["b", "a"]]).with_covariates({"age": [31, 58]})
        >>> votes[1].covariates["age"].tolist()
        [58.0]
        """
        return self._replaced(covariates=Attributes(columns))

    def with_item_attributes(self, columns: Mapping[str, object]) -> Self:
        """Return the same with columns that say something of each item: party, color, text, …."""
        return self._replaced(item_attributes=Attributes(columns))

    def _bare(self) -> Self:
        """Return what the rows say alone, without covariates."""
        return self._replaced(covariates=NONE) if self.covariates else self

    def _reindexed(self, items: tuple[Label, ...]) -> Self:
        """Return the same with its items, all of these, in this order."""
        if self.items == items:
            return self
        position = {name: index for index, name in enumerate(items)}
        new = np.array([position[name] for name in self.items] + [-1], dtype=np.int32)
        return self._replaced(items=items, **{name: new[getattr(self, name)] for name in self._of_items})

    @abstractmethod
    def _row_keys(self) -> list[bytes]:
        """One key per row, equal exactly when two rows say the same."""

    @classmethod
    @abstractmethod
    def _joined(cls, parts: list[Self], **common: Any) -> Self:
        """Join parts over the same items."""

    def __getitem__(self, key: object) -> Self:
        """Return rows: an integer gives one row; slices, index arrays and boolean masks give several."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # what scikit-learn's splitters write
        return self._take(row_positions(key, len(self)))

    def _beside(self, rows: Array | None = None) -> dict[str, Any]:
        """Return what goes with all rows, or with some, beside what they say."""
        of_rows = self.covariates if rows is None else self.covariates.take(rows)
        return {
            "metadata": self.metadata,
            "covariates": of_rows,
            "item_attributes": self.item_attributes,
        }

    def _taken_agents(self, rows: Array) -> Array | None:
        """Ids of some rows; a row keeps the id it had."""
        if self._agents is not None:
            return self._agents[rows]
        return None if np.array_equal(rows, np.arange(len(rows))) else rows.astype(np.int64)

    @classmethod
    def concat(cls, parts: Iterable[Self]) -> Self:
        """Join several tables over the same items, rows one after the other.

        Ids are kept; where no part had ids, the rows are numbered anew.

        Examples
        --------
        >>> from permix import Rankings
        >>> r = Rankings.from_orders([["a", "b"], ["b", "a"]])
        >>> Rankings.concat([r[:1], r[1:]]) == r
        True
        """
        if isinstance(parts, AgentTable | str | Mapping) or not isinstance(parts, Iterable):
            raise DataError(f"concat takes a list of tables: {cls.__name__}.concat([a, b])")
        listed = list(parts)
        if not listed:
            raise DataError("nothing to join: pass at least one part")
        for position, part in enumerate(listed):
            if not isinstance(part, cls):
                raise DataError(f"cannot join {cls.__name__} with {type(part).__name__}")
            items = listed[0].items
            if part.items != items:
                different = sorted(map(str, set(part.items) ^ set(items)))[:5]
                why = f"only one of them has {', '.join(different)}" if different else "the order differs"
                raise DataError(
                    f"parts 1 and {position + 1} are not over the same items ({why}); "
                    "build both with the same items=[...]"
                )
        agents: Array | None = None
        if any(part._agents is not None for part in listed):
            ids = [part.agents for part in listed]
            same_type = len({array.dtype for array in ids}) == 1
            agents = np.concatenate(ids if same_type else [array.astype(object) for array in ids])
        metadata = listed[0].metadata if len(listed) == 1 else {}
        counts = np.concatenate([part.counts for part in listed])
        return cls._joined(
            listed,
            items=items,
            counts=counts,
            agents=agents,
            metadata=metadata,
            covariates=Attributes.joined([part.covariates for part in listed]),
            item_attributes=listed[0].item_attributes,
        )

    def split(
        self, test_size: float | int = 0.25, random_state: int | np.random.Generator | None = None
    ) -> tuple[Self, Self]:
        """Split the agents at random into a training and a test part.

        Agents are split, not rows: a row given by many agents may appear in both parts with its count
        divided (a multivariate hypergeometric draw, the same as shuffling the expanded rows).

        Parameters
        ----------
        test_size : float or int
            Share of the agents (between 0 and 1, rounded to whole agents, at least one on each side) or
            their number.
        random_state : int, Generator or None
            Seed or generator.

        Returns
        -------
        train, test : tuple
            Two tables, rows in their old order.
        """
        n = self.n_agents
        if n == 0:
            raise DataError("there is nothing to split: the table has no rows")
        if isinstance(test_size, bool) or not isinstance(test_size, int | float | np.integer | np.floating):
            raise DataError(f"test_size={test_size!r} must be a share between 0 and 1 or a number of agents")
        if isinstance(test_size, int | np.integer):
            n_test = int(test_size)
        elif 0.0 < test_size < 1.0:
            n_test = min(max(round(float(test_size) * n), 1), n - 1)
        else:
            raise DataError(f"test_size={test_size} must lie between 0 and 1, or be a whole number of agents")
        if not 0 < n_test < n:
            said = f"cannot put {n_test} of {n} agents into the test part; both parts need at least one"
            raise DataError(said)
        if n >= 10**9:
            said = f"{n} agents are too many to split (the limit is a billion); divide the counts first"
            raise DataError(said)
        drawn = generator(random_state).multivariate_hypergeometric(self.counts, n_test, method="marginals")
        return self._with_counts(self.counts - drawn), self._with_counts(drawn)

    def _with_counts(self, counts: Array) -> Self:
        rows = np.flatnonzero(counts)
        return self._take(rows)._replaced(counts=counts[rows])

    def collapse(self) -> Self:
        """Merge rows that say the same into one with a count; agent ids are dropped.

        Rows with different covariates stay apart, so that none is lost. Rows stay in order of first
        appearance. :meth:`expand` undoes it, up to the order of rows.

        Examples
        --------
        >>> from permix import Rankings
        >>> Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]]).collapse().counts.tolist()
        [2, 1]
        """
        return self.collapsed_rows()[0]

    def collapsed_rows(self) -> tuple[Self, Array]:
        """Return what :meth:`collapse` does, and to which of its rows each row went."""
        same = self.equal_rows()
        if self.covariates:
            of_covariates = self.covariates.keys_of_rows()
            same = same * (int(of_covariates.max(initial=0)) + 1) + of_covariates
        _, first, group = np.unique(same, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")  # by first appearance
        which = np.argsort(order)[group]
        counts = np.zeros(len(first), dtype=np.int64)
        np.add.at(counts, which, self.counts)
        return self._take(first[order])._replaced(counts=counts, agents=None), which

    def equal_rows(self) -> Array:
        """Return a number for each row, the same for rows that say the same, in order of first appearance."""
        place_of: dict[bytes, int] = {}
        keys = self._row_keys()
        return np.fromiter((place_of.setdefault(key, len(place_of)) for key in keys), np.int64, len(keys))

    def expand(self) -> Self:
        """Repeat every row as often as its count says; all counts become one, given ids are repeated."""
        rows = self.rows_of_agents()
        agents = None if self._agents is None else self._agents[rows]
        return self._take(rows)._replaced(counts=np.ones(len(rows), dtype=np.int64), agents=agents)

    def rows_of_agents(self) -> Array:
        """Row of every agent, each row as often as its count says."""
        refuse_too_many_agents(self.counts)
        return np.repeat(np.arange(len(self)), self.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AgentTable) or self._statements != other._statements:
            return NotImplemented
        compared = ("counts", "agents", *self._statements)
        return self.items == other.items and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in compared
        )

    def __repr__(self) -> str:
        from permix.data.display import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from permix.data.display import html_of

        return html_of(self)


def _rank_matrix(ranks: object, items: Iterable[object] | None) -> tuple[Array, tuple[Label, ...]]:
    """Check a matrix of ranks; what is not ranked becomes infinity. Also the item names."""
    if items is None and hasattr(ranks, "columns"):
        items = list(ranks.columns)
    raw = ranks.to_numpy() if hasattr(ranks, "to_numpy") else ranks
    try:
        values = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("ranks must be numbers in rows of equal length, one column per item") from None
    if values.ndim != 2:
        raise DataError(f"ranks must be a table of rows × items, not an array of shape {values.shape}")
    n = values.shape[1]
    names = tuple(range(n)) if items is None else clean_items(items)
    if len(names) != n:
        raise DataError(f"ranks has {n} columns but items has {len(names)} names; they must agree")
    if not names:
        raise DataError("ranks has no columns; every item needs one")
    for row, column in np.argwhere(np.isinf(values) | (values < 0))[:1]:
        raise DataError(
            f"row {row + 1}: rank {values[row, column]:g} of item {names[column]!r} is not a "
            "positive number; write NaN or 0 for items that are not ranked"
        )
    values[np.isnan(values) | (values == 0)] = np.inf
    return values, names


def refuse_too_many_agents(counts: Array) -> None:
    """Refuse counts that stand for more agents than there is room for, with one number each.

    A file of a few bytes may say that a row stands for a billion agents.
    """
    n_bytes, most = 8.0 * float(counts.sum(dtype=np.float64)), unpacking_limit()
    if n_bytes > most:
        raise DataError(
            f"the counts stand for {n_bytes / 8:,.0f} agents (row {int(np.argmax(counts)) + 1} "
            f"alone for {int(counts.max()):,}), which have no room in {most:,} bytes; divide the counts, or "
            f"allow more by the environment variable {MAX_BYTES_VARIABLE}"
        )


def refuse_to_write(obj: object) -> None:
    """Refuse what the writers of files do not know."""
    if not isinstance(obj, AgentTable):
        raise DataError(f"only Rankings and Preferences can be written, not a {type(obj).__name__}")


def row_positions(key: object, n: int) -> Array:
    """Turn an integer, slice, index array or boolean mask into row positions."""
    if isinstance(key, slice):
        return np.arange(n)[key]
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not -n <= key < n:
            raise IndexError(f"row {key} of {n} rows")
        return np.array([int(key) % n])
    rows = np.asarray(key)
    if rows.ndim == 1 and rows.size == 0:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise IndexError("rows are chosen by an integer, a slice, integer positions or a boolean mask")
    if rows.dtype.kind == "b":
        if len(rows) != n:
            raise IndexError(f"the mask has {len(rows)} entries for {n} rows")
        return np.flatnonzero(rows)
    for outside in (rows.min(), rows.max()):
        if not -n <= outside < n:
            raise IndexError(f"row {outside} of {n} rows")
    return np.where(rows < 0, rows + n, rows).astype(np.int64)


def row_name(row: int, agents: Array | None) -> str:
    """Name a row for a message."""
    if agents is None:
        return f"row {row + 1}"
    agent = agents[row].item() if isinstance(agents[row], np.generic) else agents[row]
    return f"row {row + 1} (agent {agent!r})"
