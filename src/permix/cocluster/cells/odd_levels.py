"""Levels that are no answers, or too many to be answers: what a fit warns of, and its verdict says again."""

from __future__ import annotations

from permix.cocluster.cells.choose_family import MANY_LEVELS
from permix.cocluster.cells.families import CellFamily
from permix.errors import Argument, Message

OTHERS = (Argument("family", "gaussian"), " takes numbers, ", Argument("family", "poisson"), " counts")


def doubts_about(family: CellFamily, n_cells: int) -> list[Message]:
    """Say what is odd about the levels of so many cells, and the way out."""
    from permix.data.io.column_names import plain
    from permix.data.io.forms.scales import UNANSWERED

    if not family.has_levels:
        return []
    levels, n = tuple(getattr(family, "levels", None) or ()), family.n_slots
    found = []
    if n > MANY_LEVELS and (n > 2 * MANY_LEVELS or n > 0.2 * n_cells):
        said = f"the cells have {n} different values, and each is taken for a level of its own; "
        found.append(Message(said, *OTHERS))
    silent = [level for level in levels if isinstance(level, str) and plain(level) in UNANSWERED]
    if silent:
        named = " and ".join(repr(level) for level in silent)
        said = f"{named} {'is' if len(silent) == 1 else 'are'} taken for an answer like the others; "
        found.append(Message(said, Argument("missing", silent), " makes such cells missing"))
    return found
