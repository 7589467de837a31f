"""Preferences: what each agent stated, as levels of tied items and as pairwise comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from permix.data.agent_table import AgentTable, row_name
from permix.data.comparisons import Comparisons, choice_rows, read_pairs, sorted_pairs
from permix.data.csr import gather, indptr_of, row_bytes
from permix.data.labels import Array, Label, clean_counts, resolve_item
from permix.data.levels import Levels, Scores, levels_from_scores, matrix_scores, read_groups, read_ratings
from permix.data.rankings import Rankings, padded
from permix.errors import Argument, CycleError, DataError, Message, ParameterError, PermixWarning, Wording
from permix.kernels.pairwise_counts import PreferenceArrays, preference_pair_counts

if TYPE_CHECKING:
    import pandas as pd


class Preferences(AgentTable):
    """Any consistent partial order per agent; memory follows what was stated.

    Build one with :meth:`from_pairs`, :meth:`from_ratings`, :meth:`from_rankings`, :meth:`from_ranks`,
    :meth:`from_levels` or :meth:`from_choices`. An agent's statements are of two kinds: *levels* (groups
    of items from best to worst; the order within a group is open) and *pairs* (better, worse). What they
    imply together is worked out on demand: :meth:`closure`, :meth:`prefers`, :meth:`to_pairs`.

    A comparison may be stated several times, and is stored and written as often. Where comparisons are votes
    (:meth:`pairwise_counts`, :func:`permix.kemeny`) it counts that many times; the order that an agent holds,
    and so a model of such orders (:class:`permix.MallowsMixture`), is the same whether it is stated once or
    often.

    Attributes
    ----------
    level_indptr, level_items, levels : ndarray
        Agent ``i`` listed ``level_items[level_indptr[i]:level_indptr[i + 1]]`` at ``levels`` (0 = best,
        consecutive) there.
    rest_below : ndarray of bool
        True where items outside the levels are below all of them. Always True where all items are listed,
        always False where none is.
    pair_indptr, pairs : ndarray
        Agent ``i`` stated ``pairs[pair_indptr[i]:pair_indptr[i + 1]]``, rows (better, worse).
    consistent : ndarray of bool
        False for agents whose comparisons contradict each other (only with ``on_cycle="keep"``).
    items, counts, agents, metadata
        Item names, multiplicities, agent ids, what a file said about itself.

    Examples
    --------
    >>> from permix import Preferences
    >>> Preferences.from_pairs([("anna", "salmon", "tuna"), ("anna", "tuna", "egg"), ("bo", "egg", "tuna")])
    Preferences: 2 agents over 3 items, 3 comparisons
      anna: salmon ≻ tuna, tuna ≻ egg
      bo: egg ≻ tuna
    """

    _statements: ClassVar = (*PreferenceArrays._fields, "consistent")
    level_indptr: Array
    level_items: Array
    levels: Array
    rest_below: Array
    _of_items: ClassVar = ("level_items", "pairs")
    pair_indptr: Array
    pairs: Array
    consistent: Array

    @classmethod
    def _from_arrays(
        cls,
        *,
        items: Iterable[Label],
        level_indptr: Array | None = None,
        level_items: Array | None = None,
        levels: Array | None = None,
        rest_below: Array | bool = False,
        pair_indptr: Array | None = None,
        pairs: Array | None = None,
        consistent: Array | None = None,
        **about: Any,
    ) -> Self:
        """Build; levels or pairs may be left out. Items within a level come sorted by index."""
        names = tuple(items)
        indptr = level_indptr if level_indptr is not None else pair_indptr
        if indptr is None:
            raise TypeError("level_indptr or pair_indptr must be given")
        n = len(indptr) - 1
        level_indptr, pair_indptr = (
            np.zeros(n + 1, np.int64) if given is None else np.asarray(given, dtype=np.int64)
            for given in (level_indptr, pair_indptr)
        )
        listed = np.diff(level_indptr)
        below = (np.asarray(rest_below, dtype=np.bool_) | (listed == len(names))) & (listed > 0)
        pairs = np.zeros((0, 2), np.int32) if pairs is None else np.ascontiguousarray(pairs, dtype=np.int32)
        return object.__new__(cls)._fill(
            names,
            n,
            **about,
            level_indptr=level_indptr,
            level_items=_int32(level_items),
            levels=_int32(levels),
            rest_below=below,
            pair_indptr=pair_indptr,
            pairs=pairs,
            consistent=np.ones(n, np.bool_) if consistent is None else np.asarray(consistent, np.bool_),
        )

    @classmethod
    def from_pairs(
        cls,
        pairs: object,
        items: Iterable[object] | None = None,
        agents: object | None = None,
        counts: object | None = None,
        on_cycle: str = "error",
    ) -> Self:
        """Build from pairwise comparisons, one row (agent, better, worse) each.

        Parameters
        ----------
        pairs : array of three columns, list of triples, or data frame
            A frame (pandas, polars) has columns ``agent``, ``better``, ``worse``, or usual names for them
            (``voter``, ``winner``, ``loser``). The rows of an agent need not be together; they stay in the
            order they are stated in. A row given k times is a comparison stated k times: k votes where votes
            are counted.
        items : sequence of str or int, optional
            All item names. Left out, the names found: sorted when all are integers, else by first
            appearance. With names that are not integers, integer entries are positions in ``items``.
        agents : sequence of str or int, optional
            All agent ids, in the order wanted, also of agents who stated nothing. Left out, the ids found,
            ordered like item names.
        counts : sequence of int, optional
            How many people each agent stands for, in the order of ``agents``.
        on_cycle : {"error", "drop", "keep"}
            What to do about an agent whose comparisons contradict each other: raise
            :class:`~permix.errors.CycleError` with one cycle by name, leave the agent out with a warning, or
            keep the raw comparisons for models with an error term (``consistent`` is False there).

        Examples
        --------
        >>> from permix import Preferences
        >>> votes = Preferences.from_pairs([(0, "a", "b"), (0, "b", "c"), (1, "c", "a")])
        >>> votes.prefers(0, "a", "c")
        True
        """
        return cls._from_comparisons(read_pairs(pairs, items, agents), counts, on_cycle)

    @classmethod
    def from_choices(
        cls,
        choices: Iterable[Any],
        items: Iterable[object] | None = None,
        agents: object | None = None,
        **options: Any,
    ) -> Self:
        """Build from choices: rows (agent, chosen item, alternatives it was chosen from).

        The chosen item is better than every alternative; it may itself be among the alternatives or not.
        Other parameters, ``counts`` and ``on_cycle`` among them, as in :meth:`from_pairs`.

        Examples
        --------
        >>> from permix import Preferences
        >>> Preferences.from_choices([("anna", "salmon", ["tuna", "salmon", "egg"])])
        Preferences: 1 agent over 3 items, 2 comparisons
          anna: salmon ≻ tuna, salmon ≻ egg
        """
        return cls._from_comparisons(read_pairs(choice_rows(choices), items, agents), **options)

    @classmethod
    def from_ratings(
        cls,
        ratings: object,
        items: Iterable[object] | None = None,
        agents: object | None = None,
        counts: object | None = None,
        unrated: str = "unknown",
        layout: str = "auto",
    ) -> Self:
        """Build from ratings: higher is better, items with equal ratings are tied and their order is open.

        Parameters
        ----------
        ratings : data frame, array, list of triples, or scipy sparse matrix
            A long table with columns ``agent``, ``item``, ``rating`` or usual names for them (``user``,
            ``movie``, ``stars``), triples in that order, or a matrix agents × items where NaN is not rated;
            in a sparse matrix the stored entries are the ratings, stored zeros included.
        items, agents, counts
            As in :meth:`from_pairs`; for a matrix, names of its columns and rows.
        unrated : {"unknown", "below"}
            What is said about items an agent did not rate: nothing, or that they are below all rated ones.
        layout : {"auto", "long", "matrix"}
            Needed only for an array of three columns, which could be either.

        Examples
        --------
        >>> from permix import Preferences
        >>> import numpy as np
        >>> Preferences.from_ratings([[5, 3, 5, np.nan]], items=["a", "b", "c", "d"])
        Preferences: 1 agent over 4 items, levels of 3 items
          0: {a, c} ≻ b (3 of 4 items)
        """
        below = _below(unrated, "unrated")
        return cls._from_scores(read_ratings(ratings, items, agents, layout), below, counts)

    @classmethod
    def _from_rank_matrix(
        cls, values: Array, names: tuple[Label, ...], unlisted: str, counts: object, agents: object
    ) -> Self:
        below = _below(unlisted, "unlisted")
        row, column = np.nonzero(np.isfinite(values))
        scores = matrix_scores(row, column, -values[row, column], values.shape, names, agents, "rank")
        return cls._from_scores(scores, below, counts)

    @classmethod
    def from_levels(
        cls,
        levels: Iterable[Any],
        items: Iterable[object] | None = None,
        rest_below: object = True,
        counts: object | None = None,
        agents: object | None = None,
    ) -> Self:
        """Build from groups of tied items, best group first, one list of groups per agent.

        Parameters
        ----------
        levels : sequence of sequences of groups
            A group is a list of items, or one item alone.
        rest_below : bool or one per agent
            Whether items an agent does not list are below those listed (else nothing is known about them).
        items, counts, agents
            As in :meth:`from_pairs`.

        Examples
        --------
        >>> from permix import Preferences
        >>> Preferences.from_levels([[["a", "b"], "c"], ["c", "a"]])
        Preferences: 2 agents over 3 items, levels of 2 to 3 items
          0: {a, b} ≻ c
          1: c ≻ a ≻ rest
        """
        names, ids, built = read_groups(levels, items, agents)
        n = len(built.indptr) - 1
        below = np.asarray(rest_below)
        if below.dtype.kind != "b" or below.shape not in ((), (n,)):
            raise DataError(f"rest_below must be True, False or one of them for each of the {n} agents")
        return cls._from_levels(names, ids, built, np.broadcast_to(below, n), counts)

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> Self:
        """Build from rankings; every listed item is a level of its own.

        Examples
        --------
        >>> from permix import Preferences, Rankings
        >>> Preferences.from_rankings(Rankings.from_orders([["b", "a"]], items=["a", "b", "c"]))
        Preferences: 1 agent over 3 items, levels of 2 items
          0: b ≻ a ≻ rest
        """
        about: dict[str, Any] = {"counts": rankings.counts, "agents": rankings._agents}
        about |= {**rankings._beside(), **rankings.arrays()._asdict()}
        return cls._from_arrays(items=rankings.items, **about)

    @classmethod
    def _from_scores(cls, scores: Scores, below: bool, counts: object | None) -> Self:
        return cls._from_levels(scores.items, scores.agents, levels_from_scores(scores), below, counts)

    @classmethod
    def _from_levels(
        cls, items: tuple[Label, ...], agents: Array | None, levels: Levels, below: Any, counts: object | None
    ) -> Self:
        return cls._from_arrays(
            items=items,
            level_indptr=levels.indptr,
            level_items=levels.items,
            levels=levels.levels,
            rest_below=below,
            counts=clean_counts(counts, len(levels.indptr) - 1, lambda row: row_name(row, agents)),
            agents=agents,
        )

    @classmethod
    def _from_comparisons(
        cls, stated: Comparisons, counts: object | None = None, on_cycle: str = "error"
    ) -> Self:
        result = cls._from_arrays(
            items=stated.items,
            pair_indptr=stated.indptr,
            pairs=stated.pairs,
            counts=clean_counts(counts, len(stated.indptr) - 1, lambda row: row_name(row, stated.agents)),
            agents=stated.agents,
        )
        return result._with_cycles(on_cycle)

    def _with_cycles(self, on_cycle: str) -> Self:
        """Find agents who contradict themselves and do what ``on_cycle`` says about them."""
        if on_cycle not in ("error", "drop", "keep"):
            raise ParameterError("on_cycle", on_cycle, "'error', 'drop' or 'keep'")
        if len(self.pairs) == 0:
            return self
        from permix.kernels.posets import consistent_agents

        consistent = consistent_agents(self.arrays(), self.n_items)
        if consistent.all():
            return self
        bad = np.flatnonzero(~consistent)
        if on_cycle == "error":
            raise self._cycle_error(int(bad[0]), len(bad))
        if on_cycle == "keep":
            return self._replaced(consistent=consistent)
        first = ", ".join(repr(agent) for agent in self.agents[bad[:5]].tolist())
        why = f"{len(bad)} of {len(self)} agents left out because their comparisons contradict each other"
        # The line that called the constructor.
        warnings.warn(f"{why}: {first}{', …' if len(bad) > 5 else ''}", PermixWarning, stacklevel=4)
        return self[consistent]

    def _cycle_error(self, row: int, n_bad: int = 1) -> CycleError:
        drop, keep = Argument("on_cycle", "drop"), Argument("on_cycle", "keep")
        errors = Wording('BayesianMallowsMixture(errors="bernoulli")', "fit bayes-mallows --errors bernoulli")
        raw: tuple[str | Wording, ...] = (" to keep them: ", errors, " has a model of errors")
        way_out = ("Mend them, or pass ", drop, " to leave such agents out, or ", keep, *raw)
        return self._cycle_error_with(row, n_bad, way_out)

    def _cycle_error_with(
        self, row: int, n_bad: int, way_out: tuple[str | Argument | Wording, ...]
    ) -> CycleError:
        """Return the error about one of so many contradicting agents; ``way_out`` says what to do."""
        from permix.kernels.posets import find_cycle

        found = find_cycle(self.arrays(), row, self.n_items).tolist()
        start = found.index(next(item for item in self.mentioned(row).tolist() if item in found))
        cycle = [self.items[item] for item in found[start:] + found[:start]]
        agent = self.agents[row : row + 1].tolist()[0]
        closed = [*cycle, cycle[0]]
        chain = " ≻ ".join(map(str, closed if len(closed) <= 12 else [*closed[:6], "…", *closed[-5:]]))
        more = f" ({n_bad} agents contradict themselves in all)" if n_bad > 1 else ""
        said = f"agent {agent!r}: these comparisons contradict each other: {chain}{more}. "
        return CycleError(Message(said, *way_out), agent=agent, cycle=tuple(closed))

    @property
    def n_statements(self) -> int:
        """Number of stored statements: items placed in levels plus pairwise comparisons."""
        return len(self.level_items) + len(self.pairs)

    def arrays(self) -> PreferenceArrays:
        """Return the stored arrays as a NamedTuple for compiled code."""
        return PreferenceArrays(*[getattr(self, name) for name in PreferenceArrays._fields])

    def mentioned(self, row: int) -> Array:
        """Indices of the items that row ``row`` speaks of by name, levels first, then pairs."""
        row = self._row(row)
        listed = self.level_items[self.level_indptr[row] : self.level_indptr[row + 1]]
        compared = self.pairs[self.pair_indptr[row] : self.pair_indptr[row + 1]].ravel()
        both = np.concatenate([listed, compared])
        _, first = np.unique(both, return_index=True)
        return both[np.sort(first)]

    def closure(self, row: int) -> tuple[Array, Array]:
        """Everything row ``row`` implies about the items it mentions.

        Returns
        -------
        mentioned : ndarray of int32
            Item indices, as in :meth:`mentioned`.
        better : ndarray of bool
            ``better[i, j]``: item ``mentioned[i]`` is better than ``mentioned[j]``. Where ``rest_below`` is
            True for the row, items not mentioned are below all listed ones; they are not in the matrix.
        """
        from permix.kernels.posets import closure_of

        mentioned, better = closure_of(self.arrays(), self._consistent_row(row), self.n_items)
        return mentioned, better

    def prefers(self, row: int, better: object, worse: object) -> bool:
        """Say whether row ``row`` implies that one item (name or index) is better than another.

        Examples
        --------
        >>> from permix import Preferences
        >>> p = Preferences.from_levels([[["a", "b"], "c"]], items=["a", "b", "c", "d"])
        >>> p.prefers(0, "a", "c"), p.prefers(0, "a", "b"), p.prefers(0, "c", "d")
        (True, False, True)
        """
        from permix.kernels.posets import implies

        row = self._consistent_row(row)
        index = {name: position for position, name in enumerate(self.items)}
        first, second = (resolve_item(item, self.items, index) for item in (better, worse))
        return bool(implies(self.arrays(), row, first, second, self.n_items))

    def to_pairs(self, row: int) -> list[tuple[Label, Label]]:
        """Fewest comparisons (better, worse), by name, that say all that row ``row`` says by name.

        This is the covering relation over the mentioned items. Items that are only known to be below the
        listed ones (``rest_below``) are not mentioned.

        Examples
        --------
        >>> from permix import Preferences
        >>> Preferences.from_pairs([(0, "a", "b"), (0, "b", "c"), (0, "a", "c")]).to_pairs(0)
        [('a', 'b'), ('b', 'c')]
        """
        mentioned, better = self.closure(row)
        steps = better.astype(np.float32)
        covers = better & ~(steps @ steps > 0)
        return [(self.items[mentioned[i]], self.items[mentioned[j]]) for i, j in np.argwhere(covers).tolist()]

    def pairwise_counts(self, closure: bool = True) -> Array:
        """Count, for every pair of items, the votes that put the first above the second.

        An agent has as many votes for a pair as comparisons that state it, and one where the pair only
        follows from levels or from other comparisons. ``counts`` multiplies them.

        Parameters
        ----------
        closure : bool
            Count what the statements of an agent imply together (True), or only what levels imply and
            comparisons state (False). Agents who contradict themselves count as stated either way.

        Returns
        -------
        ndarray of float, shape (items, items)
            ``W[a, b]`` votes put a above b.

        Examples
        --------
        >>> from permix import Preferences
        >>> trials = [(0, "a", "b")] * 9 + [(0, "b", "a"), (1, "b", "a")]
        >>> Preferences.from_pairs(trials, on_cycle="keep").pairwise_counts()
        array([[0., 9.],
               [2., 0.]])
        """
        implied = self.consistent if closure else np.zeros(len(self), dtype=np.bool_)
        return preference_pair_counts(self.arrays(), implied, self.counts, self.n_items, repeats=True)

    def to_rankings(self) -> Rankings:
        """Return the same as :class:`Rankings`; refused where there are ties, comparisons or no levels."""
        sizes = np.diff(self.level_indptr)
        agent = np.repeat(np.arange(len(self)), sizes)
        place = np.arange(len(self.level_items)) - np.repeat(self.level_indptr[:-1], sizes)
        no_ranking = (np.diff(self.pair_indptr) > 0) | (sizes == 0)
        no_ranking[agent[self.levels != place]] = True
        if no_ranking.any():
            raise DataError(
                f"{self.row_name(int(np.argmax(no_ranking)))} has ties or comparisons, which rankings cannot "
                "hold; keep working with Preferences"
            )
        orders = padded(self.level_items, sizes)
        about = (self.items, self.counts, self._agents, self.rest_below)
        return Rankings._from_arrays(orders, *about, **self._beside())

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per statement and items by name.

        Comparisons have columns ``agent, better, worse``; levels have ``agent, item, level`` (1 = best)
        and ``rest`` ("below" or "unknown"). Columns nobody needs are left out, so comparisons alone go
        straight back into :meth:`from_pairs`; ``count`` is there where some count is not one.
        """
        from permix.data.to_pandas import preferences_to_frame

        return preferences_to_frame(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        raise TypeError("Preferences have no array form; see .pairs, .level_items and .pairwise_counts()")

    def _row(self, row: int) -> int:
        if isinstance(row, bool) or not isinstance(row, int | np.integer):
            raise IndexError(f"{row!r} is not a row number; rows are counted from 0")
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} rows")
        return int(row) % len(self)

    def _consistent_row(self, row: int) -> int:
        row = self._row(row)
        if not self.consistent[row]:
            raise self._cycle_error(row)
        return row

    def _take(self, rows: Array) -> Self:
        level_indptr, level_places = gather(self.level_indptr, rows)
        pair_indptr, pair_places = gather(self.pair_indptr, rows)
        return type(self)._from_arrays(
            items=self.items,
            level_indptr=level_indptr,
            level_items=self.level_items[level_places],
            levels=self.levels[level_places],
            rest_below=self.rest_below[rows],
            pair_indptr=pair_indptr,
            pairs=self.pairs[pair_places],
            counts=self.counts[rows],
            agents=self._taken_agents(rows),
            consistent=self.consistent[rows],
            **self._beside(rows),
        )

    def _row_keys(self) -> list[bytes]:
        """Agents say the same when levels, rest and comparisons (each as often) are alike, in any order."""
        agent = np.repeat(np.arange(len(self)), np.diff(self.pair_indptr))
        pairs = sorted_pairs(agent, self.pairs, self.n_items)
        flags = self.rest_below + 2 * self.consistent
        head = np.column_stack([flags, np.diff(self.level_indptr)])  # the length of a key tells n_pairs
        levels = np.column_stack([self.level_items, self.levels])
        return row_bytes(head, (self.level_indptr, levels), (self.pair_indptr, pairs))

    @classmethod
    def _joined(cls, parts: list[Self], **common: Any) -> Self:
        for name in cls._statements:
            stored = [getattr(part, name) for part in parts]
            sizes_only = name.endswith("indptr")
            joined = np.concatenate([np.diff(indptr) for indptr in stored] if sizes_only else stored)
            common[name] = indptr_of(joined) if sizes_only else joined
        return cls._from_arrays(**common)


def _int32(values: Array | None) -> Array:
    return np.zeros(0, dtype=np.int32) if values is None else np.ascontiguousarray(values, dtype=np.int32)


def _below(word: str, name: str) -> bool:
    if word not in ("below", "unknown"):
        raise DataError(f"{name}={word!r} must be 'below' or 'unknown'")
    return word == "below"
