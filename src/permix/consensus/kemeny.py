"""Kemeny's consensus: the ordering with the fewest pairwise disagreements."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.consensus.linear_ordering import Bounds, LinearOrdering, order_score
from permix.data import Preferences, Rankings
from permix.data.shards.sharded import Sharded
from permix.errors import DataError, PermixWarning
from permix.estimators.checks import Choice, Real
from permix.kernels.subset_orders import best_order_by_subsets
from permix.runtime.interrupts import Interrupts
from permix.runtime.seeds import RandomState, generator

Array = npt.NDArray[Any]

METHODS = ("auto", "exact", "local", "borda")
SUBSETS_UP_TO = 20  # items of one component: 2^20 subsets take 8 MB and some hundredths of a second
AUTO_INTEGER_UP_TO = 100  # items of one component that "auto" hands to the integer program, ...
AUTO_SECONDS = 5.0  # ... and how long it may take when no time limit is given


@dataclass(frozen=True, eq=False, repr=False)
class KemenyResult:
    """An ordering and how good it is.

    Attributes
    ----------
    order : ndarray of int
        Item indices, best first.
    ranking : tuple
        The same by name.
    score : int or float
        Total disagreements: over all pairs, the votes (or the weight) that put the later item first.
    lower_bound : int or float
        No ordering has a smaller score than this.
    optimal : bool
        Whether the score is proven to be the smallest possible.
    method : str
        What found the ordering: "borda", "local search", "majorities" (they contain no cycle), "dynamic
        programming" or "integer programming".
    items : tuple
        All item names, in the order of the data.
    """

    order: Array
    ranking: tuple[int | str, ...]
    score: float
    lower_bound: float
    optimal: bool
    method: str
    items: tuple[int | str, ...]

    def to_rankings(self) -> Rankings:
        """Return the ordering as :class:`permix.Rankings` with one row."""
        return Rankings._from_arrays(self.order[None].astype(np.int32), self.items)

    def __repr__(self) -> str:
        names = [str(name) for name in self.ranking]
        shown = " ≻ ".join(names if len(names) <= 12 else [*names[:10], "…", names[-1]])
        unproven = f"not proven optimal, no ordering is below {self.lower_bound:.12g}"
        quality = "optimal" if self.optimal else unproven
        return f"KemenyResult: {shown}\n  {self.score:.12g} disagreements ({quality}; {self.method})"


def another_as_good(order: Array, weights: Array) -> Array | None:
    """Return an ordering with as few disagreements that differs in the place of one item, if there is one.

    ``weights[a, b]`` count those who put a before b. Exact for whole numbers.
    """
    margins = (weights - weights.T)[np.ix_(order, order)]
    for place, ahead in enumerate(margins):
        # What moving the item there costs, one place after another: downwards, then upwards.
        for step, passed in ((1, ahead[place + 1 :]), (-1, -ahead[:place][::-1])):
            same = np.flatnonzero(np.cumsum(passed) == 0)
            if len(same):
                rest = np.delete(order, place)
                return np.insert(rest, place + step * (int(same[0]) + 1), order[place])
    return None


def kemeny(
    rankings_or_preferences: object,
    method: str = "auto",
    time_limit: float | None = None,
    random_state: RandomState = None,
) -> KemenyResult:
    """Find the ordering of the items with which the data disagree least.

    Every agent counts 1 for each pair of items that the ordering puts the other way round, or k where the
    agent stated that comparison k times. Pairs an agent says nothing about count nothing.

    Parameters
    ----------
    rankings_or_preferences : Rankings, Preferences, Sharded, or ndarray of shape (items, items)
        The data. An array gives the weights themselves: entry ``[a, b]`` for those who put a before b.
    method : {"auto", "exact", "local", "borda"}
        ``borda`` sorts items by pairwise wins less losses. ``local`` improves that until no item has a better
        place, several times from disturbed orderings. ``exact`` finds and proves the best: items that
        majorities separate are handled apart, and what is left by dynamic programming over subsets (up to 20
        items at a time) or integer programming. ``auto`` is ``exact`` where that is a matter of seconds, else
        ``local``.
    time_limit : float, optional
        Seconds after which the best ordering found so far is returned. Ctrl-C does the same, as soon as the
        step at hand is done.
    random_state : int, SeedSequence or Generator, optional
        For the disturbances of the local search. Left out, a fixed seed: the same data give the same answer.

    Returns
    -------
    KemenyResult
        Its ``optimal`` is True only when no ordering can be better (for weights that are not whole numbers:
        better by more than a millionth of the largest). Of equally good orderings the same is always chosen.

    Examples
    --------
    >>> import permix
    >>> votes = permix.Rankings.from_orders(
    ...     [["egg", "tuna", "eel"], ["tuna", "eel", "egg"], ["eel", "egg", "tuna"]], counts=[4, 3, 2]
    ... )
    >>> permix.kemeny(votes)
    KemenyResult: egg ≻ tuna ≻ eel
      10 disagreements (optimal; dynamic programming)
    """
    method = Choice(*METHODS)("method", method)
    time_limit = Real(above=0.0, special=(None,))("time_limit", time_limit)
    rng = generator(0 if random_state is None else random_state)
    weights, items = _pairwise_weights(rankings_or_preferences)
    # Work on items sorted by wins less losses: "the smaller index" then means the stronger item wherever a
    # choice is free.
    by_wins = np.argsort((weights - weights.T).sum(axis=0), kind="stable")
    with Interrupts() as interrupts:
        search = _Search(np.ascontiguousarray(weights[np.ix_(by_wins, by_wins)]), rng, interrupts)
        if method != "borda":
            search.run(method, time_limit)
    if interrupts.interrupted:
        said = "kemeny was interrupted; it returns the best ordering found so far"
        warnings.warn(said, PermixWarning, stacklevel=2)
    order = by_wins[search.order()]
    order.flags.writeable = False
    score, bound = search.bounds()
    return KemenyResult(
        order=order,
        ranking=tuple(items[i] for i in order),
        score=_plain(score),
        lower_bound=_plain(bound),
        optimal=bound >= score,
        method=search.method,
        items=items,
    )


class _Search:
    """Orderings of the components of the majority graph, each with its bounds, improved step by step."""

    def __init__(self, weights: Array, rng: np.random.Generator, interrupts: Interrupts) -> None:
        self.weights, self.rng, self.interrupts = weights, rng, interrupts
        self.whole = bool((weights == np.rint(weights)).all())
        self._start("borda", [np.arange(len(weights))])

    def _start(self, method: str, components: list[Array]) -> None:
        self.method, self.components = method, components
        self.best = [self._as_given(items) for items in components]

    def run(self, method: str, time_limit: float | None) -> None:
        deadline = None if time_limit is None else time.monotonic() + time_limit
        self._start("majorities", list(_components(self.weights)))
        large = []
        for index, items in enumerate(self.components):
            if self.interrupts.stopped:
                return
            if len(items) > 1 and (method == "local" or len(items) > SUBSETS_UP_TO):
                large.append(index)
            elif len(items) > 1:
                self._by_subsets(index)
        for index in large:
            self._locally(index, deadline)
        if method == "local" or not large:
            return
        if method == "auto" and deadline is None:
            deadline = time.monotonic() + AUTO_SECONDS
        for index in sorted(large, key=lambda index: len(self.components[index])):
            if self.interrupts.stopped:
                return
            if method == "exact" or len(self.components[index]) <= AUTO_INTEGER_UP_TO:
                self._by_integers(index, deadline)

    def order(self) -> Array:
        ordered = zip(self.components, self.best, strict=True)
        return np.concatenate([items[best.order] for items, best in ordered])

    def bounds(self) -> tuple[float, float]:
        """Score of the whole ordering and a lower bound of all orderings."""
        score = order_score(self.weights, self.order())
        # Between components the majority order is kept, at the least cost any ordering can have there.
        gap = sum(best.score - best.lower_bound for best in self.best)
        # Scores of whole numbers are exact; of others, gaps within rounding are none.
        if not self.whole and gap <= 1e-12 * score:
            gap = 0.0
        return score, score - gap

    def _part(self, items: Array) -> Array:
        return np.ascontiguousarray(self.weights[np.ix_(items, items)])

    def _as_given(self, items: Array) -> Bounds:
        """Return the items in their present order; each pair costs at least its minority."""
        part, order = self._part(items), np.arange(len(items))
        least = float(np.triu(np.minimum(part, part.T), 1).sum())
        return Bounds(order, order_score(part, order), least)

    def _by_subsets(self, index: int) -> None:
        order, score = best_order_by_subsets(self._part(self.components[index]))
        self.best[index] = self.best[index]._replace(order=order, score=score, lower_bound=score)
        self.method = "dynamic programming"

    def _locally(self, index: int, deadline: float | None) -> None:
        from permix.kernels.kemeny_search import iterated_local_search

        part = self._part(self.components[index])
        n = len(part)
        net, tolerance = part - part.T, 1e-12 * float(part.sum())
        kicks = int(np.clip(5e7 / n**2, 1, 200))  # a second or so at any size
        order = self.best[index].order.copy()
        for n_kicks in (0, *[1] * kicks):
            if self.interrupts.stopped or (deadline is not None and time.monotonic() >= deadline):
                break
            score = float(iterated_local_search(self.rng, part, net, order, n_kicks, tolerance))
            if score < self.best[index].score:
                self.best[index] = self.best[index]._replace(order=order.copy(), score=score)
        self.method = "local search"

    def _by_integers(self, index: int, deadline: float | None) -> None:
        start = self.best[index]
        program = LinearOrdering(self._part(self.components[index]), start, self.whole)
        program.run(deadline, self.interrupts)
        self.best[index] = program.best
        if program.proven or program.best.score < start.score:
            self.method = "integer programming"


def _components(weights: Array) -> Iterator[Array]:
    """Split the items where no majority cycle runs, in an order that breaks no majority.

    The strongly connected components of "a beats b" (strictly more put a before b), best first. An
    ordering that keeps them apart in this order pays the least possible for every pair between two of
    them, so each can be ordered for itself (the extended Condorcet criterion). Where majorities leave the
    order of components open, the one with the strongest item comes first.
    """
    n = len(weights)
    reach = np.packbits((weights > weights.T) | np.eye(n, dtype=np.bool_), axis=1)
    for item in range(n):  # Warshall: whoever reaches the item reaches what it reaches
        through = (reach[:, item // 8] >> (7 - item % 8) & 1).astype(np.bool_)
        reach[through] |= reach[item]
    reaches = np.unpackbits(reach, axis=1, count=n).astype(np.bool_)
    strongest = np.argmax(reaches & reaches.T, axis=1)  # of the component of each item
    firsts, label = np.unique(strongest, return_inverse=True)
    between = reaches[np.ix_(firsts, firsts)]
    np.fill_diagonal(between, False)
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    waiting_for = between.sum(axis=0)
    ready = [(int(members[c][0]), c) for c in np.flatnonzero(waiting_for == 0).tolist()]
    heapq.heapify(ready)
    while ready:
        _, component = heapq.heappop(ready)
        yield members[component]
        beaten = np.flatnonzero(between[component])
        waiting_for[beaten] -= 1
        for c in beaten[waiting_for[beaten] == 0].tolist():
            heapq.heappush(ready, (int(members[c][0]), c))


def _pairwise_weights(data: object) -> tuple[Array, tuple[int | str, ...]]:
    """Matrix of pairwise weights and item names."""
    if isinstance(data, Sharded):
        return data.pairwise_counts().astype(np.float64), data.items
    if isinstance(data, Rankings | Preferences):
        if not len(data):
            raise DataError("there are no rows, so there is nothing to agree on; pass at least one")
        return np.asarray(data.pairwise_counts(), dtype=np.float64), data.items
    if not isinstance(data, np.ndarray):
        raise DataError(
            f"kemeny takes Rankings, Preferences or a matrix of pairwise weights, not {type(data).__name__}; "
            "build Rankings.from_orders(...) from lists"
        )
    if data.ndim != 2 or data.shape[0] != data.shape[1] or not data.size:
        raise DataError(
            f"pairwise weights must be a square matrix items × items, not of shape {data.shape}; "
            "for orderings, one per row, pass Rankings.from_orders(array)"
        )
    try:
        weights = data.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"pairwise weights must be numbers, not {data.dtype}") from None
    for bad, what in (
        (~np.isfinite(weights), "not a finite number"),
        (weights < 0, "negative"),
        (np.eye(len(weights)) * weights != 0, "on the diagonal, where an item would beat itself"),
    ):
        if bad.any():
            a, b = np.argwhere(bad)[0]
            raise DataError(
                f"pairwise weight [{a}, {b}] is {weights[a, b]:g}, which is {what}; entry [a, b] is the "
                "weight of those who put a before b, 0 or more (orderings go in as Rankings)"
            )
    return weights, tuple(range(len(weights)))


def _plain(value: float) -> float:
    """Whole numbers as ``int``."""
    return int(value) if float(value).is_integer() else float(value)
