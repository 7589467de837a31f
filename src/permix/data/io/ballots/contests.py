"""Which contest of a file with several is meant."""

from __future__ import annotations

from collections.abc import Mapping

from permix.errors import Argument, DataError, Part

# Contests that an error message lists.
SHOWN = 12


def chosen_contest(
    contests: Mapping[str, str],
    asked: str | None,
    source: object,
    what: str = "contests",
    way_out: tuple[Part, ...] = (),
) -> str:
    """Return the id of the contest asked for, by id or by name; of one contest alone, its own.

    ``contests`` are names by id; ``way_out`` says what to do where they are none.
    """
    if not contests:
        raise DataError(f"{source} lists no {what}, so there is nothing to read")
    if asked is None:
        if len(contests) == 1:
            return next(iter(contests))
        said = f"{source} has {len(contests)} {what}: {_listed(contests)}. Say which with "
        raise DataError(said, Argument("contest"), *((". ", *way_out) if way_out else ()))
    wanted = str(asked)
    if wanted in contests:
        return wanted
    # Blanks and case do not matter; a part of a name will do where one contest alone has it.
    called, part = {number: _folded(name) for number, name in contests.items()}, _folded(wanted)
    found = [number for number, name in called.items() if name == part]
    found = found or [number for number, name in called.items() if part and part in name]
    if len(found) != 1:
        said = f"{len(found)} contests whose names contain" if found else "no contest called"
        likely = {number: contests[number] for number in found or contests}
        raise DataError(f"{source} has {said} {wanted!r}; it has {_listed(likely)}")
    return found[0]


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _listed(contests: Mapping[str, str]) -> str:
    listed = [name if name == number else f"{number} ({name})" for number, name in contests.items()]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"{', '.join(listed[:SHOWN])}{more}"
