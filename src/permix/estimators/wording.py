"""Words that remarks of several models share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from permix.errors import Argument, Message


def groups_named(which: Sequence[int]) -> str:
    """Name groups, which are counted from 0, as users count them.

    Examples
    --------
    >>> groups_named([1]), groups_named([0, 2])
    ('group 2', 'groups 1 and 3')
    """
    return f"group{'' if len(which) == 1 else 's'} {listed([str(k + 1) for k in which])}"


def listed(names: Sequence[str]) -> str:
    """Join names by commas and "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def alike(orders: Any, what: str) -> list[str]:
    """Say which groups have the same ranking."""
    by_order: dict[tuple[int, ...], list[int]] = {}
    for k, order in enumerate(orders.tolist()):
        by_order.setdefault(tuple(order), []).append(k)
    return [f"{groups_named(same)} {what}" for same in by_order.values() if len(same) > 1]


def nobodys(n_members: Any) -> list[str]:
    """Say which groups are nobody's most probable one."""
    which = [k for k, n in enumerate(n_members.tolist()) if n == 0]
    if not which:
        return []
    verb = "is" if len(which) == 1 else "are"
    return [f"{groups_named(which)} {verb} nobody's most probable group; fewer may be enough"]


def cut_short(said: str, max_iter: int) -> Message:
    """Say, at the end of a sentence, by which arguments a climb comes to rest."""
    return Message(said, Argument("max_iter", max_iter), " or ", Argument("tol"))


def part_of_all(fit: Any) -> str:
    """Say, within a sentence, that the rows of a fit are a sample of those fitted, where they are."""
    n_rows = int(fit.counts.sum())
    if fit.sampled_from is None or fit.sampled_from <= n_rows:
        return ""
    return f"; numbers of agents in groups are those in a random sample of {n_rows:,}, scaled to all"
