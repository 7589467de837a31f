"""Words that remarks of several models share."""

from __future__ import annotations

from collections.abc import Sequence


def groups_named(which: Sequence[int]) -> str:
    """Name groups, which are counted from 0, as users count them.

    Examples
    --------
    >>> groups_named([1]), groups_named([0, 2])
    ('group 2', 'groups 1 and 3')
    """
    numbers = [str(k + 1) for k in which]
    if len(numbers) == 1:
        return f"group {numbers[0]}"
    return f"groups {', '.join(numbers[:-1])} and {numbers[-1]}"
