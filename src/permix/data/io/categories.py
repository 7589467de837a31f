"""Categories of ``.cat`` files: which is best, and which of them a level of a row is.

PrefLib does not say whether categories go from best to worst. Their names do where they are plain words
(``Yes``, ``Approved``, ``strongly disagree``, ``4 stars``, ``-1``); otherwise the caller must say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.errors import Argument, DataError

# Only the order of these numbers matters; words of one scale are comparable, others rarely meet.
_WORDS = {
    4.0: "best excellent love loved outstanding always",
    2.0: "yes approve approved approval agree agreed like liked for favor favour support supported accept "
    "accepted good positive up upvote favorable favourable preferred pro want wanted satisfied important "
    "likely often useful helpful interested true",
    1.0: "acceptable ok okay fair satisfactory ifneedbe",
    0.0: "neutral maybe perhaps skip skipped pass passed abstain abstained abstention undecided indifferent "
    "unsure neither average medium mixed noopinion noresponse dontknow blank",
    -2.0: "no disapprove disapproved disapproval disagree disagreed dislike disliked against oppose opposed "
    "reject rejected bad poor negative down downvote unfavorable unfavourable con unacceptable insufficient "
    "unwanted veto vetoed dissatisfied unsatisfied unimportant unlikely rarely useless unhelpful false",
    -4.0: "worst terrible hate hated awful conflict never",
}
_VALUE = {word: value for value, words in _WORDS.items() for word in words.split()}
_MORE = re.compile(r"(?:very|strongly|strong|definitely|completely|absolutely|totally|fully|highly)(.+)")
_LESS = re.compile(r"(?:somewhat|rather|slightly|weakly|weak|mostly|probably|mildly|tendto|leaning|lean)(.+)")
_NOT = re.compile(r"not(.+)")
_SCORE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(stars?|points?|pts?|thumbs|out of \d+|/\s*\d+)?")
DIRECTIONS = ("best-first", "worst-first")


def category_order(names: Sequence[str], said: Any, source: object) -> tuple[int, ...]:
    """Return the places of the categories, best first: as the caller ``said``, else as their names say.

    Examples
    --------
    >>> category_order(["Disapproved", "Neutral", "Approved"], None, "x.cat")
    (2, 1, 0)
    """
    forward, shown = tuple(range(len(names))), ", ".join(map(repr, names))
    if said is None:
        order = forward if len(names) < 2 else _by_names(names)
        if order is None:
            raise DataError(
                f"{source}: the names of the categories, {shown}, do not say which is best; say ",
                *(Argument("categories", "best-first"), " or ", Argument("categories", "worst-first")),
                *(", or name all of them, best first, with ", Argument("categories")),
            )
        return order
    if isinstance(said, str):
        if said not in DIRECTIONS:
            raise DataError(
                Argument("categories", said),
                f" is neither best-first nor worst-first nor a list of the names, best first; {source} has "
                f"{shown}",
            )
        return forward if said == "best-first" else forward[::-1]
    listed = [str(name) for name in said]
    if sorted(listed) != sorted(names) or len(set(names)) < len(names):
        raise DataError(
            f"{source}: the order of the categories must name each of {shown} once, best first; it is "
            f"{', '.join(map(repr, listed))}"
        )
    return tuple(names.index(name) for name in listed)


def _by_names(names: Sequence[str]) -> tuple[int, ...] | None:
    """Order by what the names say, None where they do not say enough."""
    values = _scores(names) or [_value(name) for name in names]
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) == len(names) and len({value for _, value in known}) == len(names):
        return tuple(place for place, _ in sorted(known, key=lambda pair: -pair[1]))
    # Names in between may be any, if the outer ones are known and the known ones go one way.
    if values[0] is None or values[-1] is None or values[0] == values[-1]:
        return None
    steps = np.sign([later - earlier for (_, earlier), (_, later) in pairwise(known)])
    if np.all(steps <= 0):
        return tuple(range(len(names)))
    return tuple(range(len(names)))[::-1] if np.all(steps >= 0) else None


def word_value(name: str) -> float | None:
    """How good a word of a scale is, None where it is not known; only the order of values matters."""
    bare = re.sub(r"[\W_\d]", "", name.lower())
    return 0.0 if re.fullmatch(r"neither.+nor.+", bare) else _value(name)


def _value(name: str) -> float | None:
    """How good a word is, None where it is not known; of ``Neutral/Skipped`` the first part counts."""
    for part in re.split(r"[/(),;]", name.lower()):
        value = _word_value(re.sub(r"[\W_\d]", "", part))
        if value is not None:
            return value
    return None


def _word_value(word: str) -> float | None:
    if word in _VALUE:
        return _VALUE[word]
    for pattern, factor in ((_MORE, 1.5), (_LESS, 0.5), (_NOT, -1.0)):
        match = pattern.fullmatch(word)
        if match is not None and (value := _word_value(match[1])) is not None:
            return factor * value
    return None


def _scores(names: Sequence[str]) -> list[float | None] | None:
    """Names that are scores, as 4 stars or -1 are; bare numbers could be ranks, unless some are negative."""
    found = list(filter(None, (_SCORE.fullmatch(name.strip().lower()) for name in names)))
    values = [float(match[1]) for match in found]
    telling = len(found) == len(names) and (min(values) < 0 or all(match[2] for match in found))
    return [*values] if telling else None


def category_names(metadata: dict[str, Any]) -> list[str] | None:
    """Names of the categories that levels came from, best first; None where they came from none."""
    order = metadata.get("CATEGORY ORDER")
    if order is None:
        return None
    return [str(metadata.get(f"CATEGORY NAME {place + 1}", f"Category {place + 1}")) for place in order]


def categories_of_levels(obj: Any) -> Array | None:
    """Category of every entry of ``obj.levels``, 0 = best; None where some row does not say."""
    order = obj.metadata.get("CATEGORY ORDER")
    if order is None:
        return None
    empty = obj.metadata.get("EMPTY CATEGORIES", {})
    result = np.zeros(len(obj.levels), dtype=np.int64)
    for row, (start, end) in enumerate(pairwise(obj.level_indptr.tolist())):
        left_out = empty.get(str(obj.agents[row]), ())
        used = np.array([rank for rank, place in enumerate(order) if place not in left_out])
        levels = obj.levels[start:end]
        if end > start:
            if int(levels[-1]) + 1 != len(used):
                return None
            result[start:end] = used[levels]
    return result


def category_scale(obj: Any) -> dict[int, str]:
    """Ratings that a table gives to the categories of a ``.cat`` file, best first; empty where it cannot."""
    names = category_names(obj.metadata)
    if names is None or not hasattr(obj, "levels") or categories_of_levels(obj) is None:
        return {}
    return {len(names) - rank: name for rank, name in enumerate(names)}
