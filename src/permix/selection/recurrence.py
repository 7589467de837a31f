"""Which number of groups recurs in all restarts, where those of the chosen number do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from permix.estimators.selectable import MOST_LOOKED_AT, Selectable
from permix.runtime.progress import Display


def recurring(
    model: Selectable, table: Any, settings: Any, fit: Any, smaller: Sequence[int], seed: int
) -> dict[int, bool]:
    """Return whether all groups recur: of the fit, and of smaller numbers down to the first where they do.

    Restarts of numbers that are compared begin with the groups of smaller ones, so that they agree without
    having looked; those made here have beginnings of their own. Nothing where a model has no restarts.
    """
    recurs = model.recurs(fit)
    if recurs is None:
        return {}
    found = {int(settings.n_components): recurs}
    if recurs:
        return found
    part = table._bare()
    if part.n_agents > MOST_LOOKED_AT:
        _, part = part.split(MOST_LOOKED_AT, seed)
    quiet = settings.replaced(progress=False)
    with Display(settings.progress) as display:
        display.begin("which fewer groups recur")
        for number in sorted((n for n in smaller if n > 1), reverse=True):
            display.update(f"trying {number}")
            again = model.fit(part, quiet.replaced(n_components=number))
            if again.interrupted:
                break
            found[number] = bool(model.recurs(again))
            if found[number]:
                break
    return found
