"""Which contest of a file with several is meant."""

from __future__ import annotations

from collections.abc import Mapping

from permix.errors import Argument, DataError

# Contests that an error message lists.
SHOWN = 12


def chosen_contest(contests: Mapping[str, str], asked: str | None, source: object) -> str:
    """Return the id of the contest asked for, by id or by name; of one contest alone, its own.

    ``contests`` are names by id.
    """
    if asked is None:
        if len(contests) == 1:
            return next(iter(contests))
        listed = [f"{number} ({name})" for number, name in contests.items()]
        more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
        raise DataError(
            f"{source} has {len(contests)} contests: {', '.join(listed[:SHOWN])}{more}. Say which with ",
            Argument("contest"),
        )
    wanted = str(asked)
    if wanted in contests:
        return wanted
    found = [number for number, name in contests.items() if name.casefold() == wanted.casefold()]
    if len(found) != 1:
        how_many = f"{len(found)} contests" if found else "no contest"
        shown = ", ".join(f"{number} ({name})" for number, name in list(contests.items())[:SHOWN])
        raise DataError(f"{source} has {how_many} called {wanted!r}; it has {shown}")
    return found[0]
