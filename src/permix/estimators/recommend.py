"""What to recommend: items that an agent says nothing about, the best first, and which of them are tied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.estimators.agent_answers import RankSummary
from permix.estimators.checks import Whole

if TYPE_CHECKING:
    import pandas as pd

N_ITEMS = 5
# Values that differ by less than this, relative to their spread, are tied.
SAME = 1e-9
# Draws behind ranks where there is no exact way.
N_DRAWS = 500


class Recommended(NamedTuple):
    """One item for one agent."""

    agent: Any
    place: int  # from 1 on
    item: Any
    expected: float
    low: float
    high: float
    tied: int  # unseen items with this expected value, this one included


def best_first(
    expected: Array, unseen: Array, popularity: Array, n: int, *, small_is_good: bool = False
) -> Iterator[tuple[int, int, int]]:
    """Yield (place, item, how many are tied there) of the n best unseen items; popular ones break ties.

    Examples
    --------
    >>> values, everything = np.array([3.0, 5.0, 5.0, 1.0]), np.ones(4, dtype=bool)
    >>> list(best_first(values, everything, np.array([1, 1, 9, 1]), 2))
    [(1, 2, 2), (1, 1, 2)]
    """
    items = np.flatnonzero(unseen)
    values = expected[items] if small_is_good else -expected[items]
    scale = SAME * max(float(np.max(np.abs(values), initial=0.0)), 1e-300)
    steps = np.round(values / scale) if scale > 0.0 else values
    order = np.lexsort([np.arange(len(items)), -popularity[items], steps])
    for at in order[:n].tolist():
        yield int((steps < steps[at]).sum()) + 1, int(items[at]), int((steps == steps[at]).sum())


def ranked_items(
    table: Preferences, ranks: Callable[[Preferences], RankSummary], agents: list[Any], n: int
) -> Iterator[Recommended]:
    """Yield, for each row, the items it does not mention, by expected rank in its full ranking."""
    named = np.bincount(table.level_items, minlength=table.n_items) + np.bincount(
        table.pairs.ravel(), minlength=table.n_items
    )
    size = max(1, 2_000_000 // (N_DRAWS * table.n_items))
    for first in range(0, len(table), size):
        block = table[first : first + size]
        found = ranks(block)
        for row in range(len(block)):
            unseen = np.ones(table.n_items, dtype=np.bool_)
            unseen[block.level_items[slice(*block.level_indptr[row : row + 2])]] = False
            unseen[block.pairs[slice(*block.pair_indptr[row : row + 2])].ravel()] = False
            mean = found.mean[row]
            for place, item, tied in best_first(mean, unseen, named, n, small_is_good=True):
                ends = (float(found.low[row, item]), float(found.high[row, item]))
                name = table.items[item]
                yield Recommended(agents[first + row], place, name, float(mean[item]), *ends, tied)


def as_frame(found: Iterator[Recommended], columns: dict[str, str]) -> pd.DataFrame:
    """Return recommendations as a data frame; ``columns`` renames some."""
    import pandas as pd

    listed = list(found)
    frame = pd.DataFrame(listed, columns=list(Recommended._fields))
    frame.attrs["note"] = note_on_ties(listed, columns.get("agent", "agent"))
    return frame.rename(columns=columns)


def note_on_ties(found: list[Recommended], whom: str = "agent") -> str:
    """Say for how many agents what is left out is as good as what is listed; nothing if for none."""
    last: dict[Any, Recommended] = {}
    listed: dict[tuple[Any, int], int] = {}
    for one in found:
        last[one.agent] = one
        listed[one.agent, one.place] = listed.get((one.agent, one.place), 0) + 1
    cut = [one for one in last.values() if listed[one.agent, one.place] < one.tied]
    if not cut:
        return ""
    most = max(cut, key=lambda one: one.tied)
    who = f"1 {whom}" if len(cut) == 1 else f"{len(cut):,} {whom}s"
    return (
        f"For {who} more items are as good as the last one listed: for {whom} {most.agent}, for instance, "
        f"{most.tied} are tied. The model cannot tell them apart; those that most people know come first."
    )


def checked_number(n: int) -> int:
    """Return how many items to recommend."""
    return int(Whole(1)("n", n))
