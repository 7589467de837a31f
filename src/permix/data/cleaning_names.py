"""Names that look alike in comparisons and ratings: made one, with a count of what that changed."""

from __future__ import annotations

import numpy as np

from permix.data.ballots import Entry
from permix.data.cleaning_candidates import names_alike
from permix.data.comparisons import Comparisons
from permix.data.csr import indptr_of
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import CycleError, DataError


def merged_names(stated: Preferences, audit: list[Entry]) -> Preferences:
    """Make one item of names that look alike, the first of them.

    Of an item that an agent rated twice, the better level counts; a comparison of an item with itself is left
    out. Both are counted. Agents who then contradict themselves are refused by name.
    """
    groups = names_alike(stated.items)
    if not groups:
        return stated
    target = np.arange(stated.n_items)
    for alike in groups:
        places = [stated.items.index(name) for name in alike]
        target[places] = places[0]
    kept = np.flatnonzero(target == np.arange(stated.n_items))
    code = np.searchsorted(kept, target)
    agent = np.repeat(np.arange(len(stated)), np.diff(stated.level_indptr))
    items, levels = code[stated.level_items], stated.levels
    # Levels go upward in a row, so that the first of two entries of one item is the better one.
    _, first = np.unique(agent * len(kept) + items, return_index=True)
    first = np.sort(first)
    by_pair = np.repeat(np.arange(len(stated)), np.diff(stated.pair_indptr))
    pairs = code[stated.pairs]
    differ = pairs[:, 0] != pairs[:, 1]
    for alike in groups:
        others = [stated.items.index(name) for name in alike[1:]]
        who = np.union1d(
            agent[np.isin(stated.level_items, others)], by_pair[np.isin(stated.pairs, others).any(1)]
        )
        n = int(stated.counts[who].sum())
        audit.append(Entry("names that look alike", f"merged into {alike[0]!r}", n, tuple(map(str, alike))))
    _told(audit, "items rated twice under such names", "the better rating counts", stated, agent, first)
    _told(audit, "items compared with themselves", "left out", stated, by_pair, np.flatnonzero(differ))
    names = tuple(stated.items[place] for place in kept.tolist())
    known = stated.item_attributes.take(kept) if stated.item_attributes else stated.item_attributes
    merged = stated._replaced(
        items=names,
        level_indptr=indptr_of(np.bincount(agent[first], minlength=len(stated))),
        level_items=items[first].astype(np.int32),
        levels=_closed(agent[first], levels[first]),
        pair_indptr=indptr_of(np.bincount(by_pair[differ], minlength=len(stated))),
        pairs=pairs[differ].astype(np.int32),
        item_attributes=known,
    )
    _refuse_contradictions(merged)
    return merged


def _told(audit: list[Entry], found: str, done: str, stated: Preferences, agent: Array, stay: Array) -> None:
    gone = np.delete(agent, stay)
    if len(gone):
        audit.append(Entry(found, done, int(stated.counts[np.unique(gone)].sum())))


def _closed(agent: Array, levels: Array) -> Array:
    """Number the levels of each agent from 0 on without gaps."""
    if not len(agent):
        return levels
    new = np.ones(len(agent), dtype=np.bool_)
    new[1:] = agent[1:] != agent[:-1]
    step = new | np.concatenate([[False], levels[1:] != levels[:-1]])
    place = np.cumsum(step)
    start = np.maximum.accumulate(np.where(new, np.arange(len(agent)), 0))
    return np.asarray(place - place[start], dtype=np.int32)


def _refuse_contradictions(merged: Preferences) -> None:
    """Refuse agents whose comparisons contradict each other now that some names are one."""
    if not len(merged.pairs):
        return
    whole = merged[merged.consistent]
    if not len(whole):
        return
    compared = Comparisons(whole.items, whole.agents, whole.pair_indptr, whole.pairs)
    try:
        Preferences._from_comparisons(compared, None, "error")
    except CycleError as error:
        raise DataError(
            f"with names that look alike as one, {error}. Rename the items in the file"
        ) from error
