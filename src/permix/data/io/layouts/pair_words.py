"""Which of two columns holds the item preferred, and which are the two sides of a match, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from permix.data.io.column_names import plain
from permix.data.labels import Label

# Words of columns that hold the item preferred, or the other one, whatever else is in their names.
_PREFERRED = frozenset(["better", "winner", "winning", "victor", "chosen", "preferred", "favored"])
_OTHER = frozenset(
    ["worse", "loser", "losing", "rejected", "unchosen", "dispreferred", "unpreferred", "inferior"]
)
# Of these words alone nobody can be sure; beside each other they say enough for advice.
_MORE = _PREFERRED | {"more", "higher", "superior", "top", "best", "first", "won"}
_LESS = _OTHER | {"less", "lower", "bottom", "worst", "second", "lost"}
_NO = ("not", "non", "un")
_ENDS = (("a", "b"), ("1", "2"), ("left", "right"), ("x", "y"), ("first", "second"))


def _side(
    name: Label, preferred: frozenset[str], other: frozenset[str]
) -> tuple[bool, tuple[str, ...]] | None:
    """Say whether a name is that of the item preferred, and what else is in it; None: neither."""
    words = re.findall(r"[^\W\d_]+|[0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name)).lower())
    denied = any(word in _NO for word in words)
    told = [word for word in words if word in preferred or word in other]
    if len(told) != 1:
        return None
    rest = tuple(word for word in words if word != told[0] and word not in _NO)
    return (told[0] in preferred) != denied, rest


def opposed(names: Sequence[Label], for_advice: bool = False) -> tuple[int, int] | None:
    """Return the columns of the item preferred and of the other one, as ``Chosen`` and ``Not Chosen`` are.

    The rest of both names must be the same. With ``for_advice``, words are enough that may mean something
    else in other tables, such as ``more`` and ``less``.
    """
    words = (_MORE, _LESS) if for_advice else (_PREFERRED, _OTHER)
    sides = [_side(name, *words) for name in names]
    up = [at for at, side in enumerate(sides) if side is not None and side[0]]
    down = [at for at, side in enumerate(sides) if side is not None and not side[0]]
    if len(up) != 1 or len(down) != 1:
        return None
    first, second = sides[up[0]], sides[down[0]]
    return (up[0], down[0]) if first is not None and second is not None and first[1] == second[1] else None


def sides_of_anything(names: Sequence[Label]) -> tuple[int, int, tuple[str, str]] | None:
    """Return the only two columns called as sides, as ``essay_a`` and ``essay_b``, and the ends."""
    called = [plain(name) for name in names]
    found = []
    for pair in _ENDS:
        for at, name in enumerate(called):
            for base in (name.removesuffix(pair[0]), name.removeprefix(pair[0])):
                apart = len(pair[0]) > 1 or pair[0].isdigit() or _parted(names[at], pair[0])
                if base in ("", name) or not apart:
                    continue
                other = f"{base}{pair[1]}" if name.startswith(base) else f"{pair[1]}{base}"
                if called.count(other) == 1 and not _third(called, base):
                    found.append((at, called.index(other), pair))
    return found[0] if len(found) == 1 else None


def _parted(name: Label, end: str) -> bool:
    """Whether a letter stands for itself, as in ``essay_a``, and ends no word, as in ``data``."""
    return re.search(rf"(?:[\s._-]{end}|[a-z]{end.upper()})\Z|\A{end}[\s._-]", str(name)) is not None or (
        re.search(rf"[\s._-]{end}\Z", str(name), re.IGNORECASE) is not None
    )


def _third(called: Sequence[str], base: str) -> bool:
    return any(f"{base}{end}" in called or f"{end}{base}" in called for end in ("c", "3", "z", "third"))
