"""Words that stand where a candidate could: nobody was marked, several were, or the ballot does not count.

``None of the above`` and the like are options that voters may prefer, and no marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from permix.data.io.column_names import plain
from permix.errors import DataError

# At a rank, or in the place of a whole ranking; compared after `plain`.
_NOBODY = frozenset(
    [
        *("none", "nobody", "noone", "nothing", "nil", "n/a", "skip", "unranked", "notranked", "norank"),
        *(
            "noranking",
            "nopreference",
            "nofurtherpreference",
            "nochoice",
            "novote",
            "noballot",
            "noselection",
        ),
        *("prefernottosay", "prefernottoanswer", "rathernotsay", "dontknow", "don'tknow", "don’tknow"),
        *("noopinion", "noanswer", "noresponse", "nocandidate", "nomark", "notmarked", "unmarked"),
        *("notvoted", "didnotvote", "didn'tvote", "enthaltung", "ungültig", "voteblanc", "votenul"),
        *("bulletinblanc", "bulletinnul", "votoenblanco", "votonulo", "votonullo", "nontransferable"),
    ]
)
# Of ballots and of ranks; with ``vote``, ``ballot`` and the like after it, or without.
_STATE = re.compile(
    r"\(?(?:invalid|spoil(?:ed|t)|informal|void(?:ed)?|rejected|abstain(?:ed|s)?|abstention|exhausted|blank|"
    r"empty|null|skipped)(?:vote|ballot|ballotpaper|paper|rank|ranking|choice|selection|preference|contest)?s?\)?"
)
_SET = re.compile(r"frozenset\(|set\(\)|\{'|\{\"")
# Marks without a letter that people write where they have nothing; other signs may be names.
_NO_WORD = re.compile(r"[-–—._?…~]{1,5}")
# Numbers by which surveys say that there is no answer.
NO_ANSWER = (
    *(77, 88, 97, 98, 99, 777, 888, 998, 999, 9999),
    *(-7, -8, -9, -77, -88, -97, -98, -99, -999, -9999),
)
# What may stand before, and after, "write-in" in a name for everybody who was written in.
_KINDS = (
    "(?:un|non-?)?(?:certified|declared|registered|assigned|official|qualified|resolved|valid|listed|named)"
)
_WRITE_IN = re.compile(
    rf"\W*(?:(?:{_KINDS}|all|any|blank|in|misc|miscellaneous|other|scattered|the|total)[\s._-]+)*"
    r"write[\s._-]?ins?(?![a-z])(?:[\s._-]*(?:candidates?|names?|others?|totals?|votes?)(?![a-z]))*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_WHOLE = re.compile(r"[-+]?[0-9]{1,5}(?:\.0+)?")


def says_nobody(text: str) -> bool:
    """Whether an entry says that nobody was marked, or that a ballot does not count."""
    told = plain(text)
    return told in _NOBODY or is_no_word(text) or "undervote" in told or _STATE.fullmatch(told) is not None


def is_no_word(text: str) -> bool:
    """Whether an entry is a dash, a point or a question mark, and nothing else."""
    return _NO_WORD.fullmatch(text) is not None


def codes_among(names: Iterable[str]) -> list[str]:
    """Return 0, and numbers that surveys write for no answer, where they stand among names of candidates.

    Examples
    --------
    >>> codes_among(["Ann", "Bo", "0"]), codes_among(["101", "102", "0", "Ann"])
    (['0'], [])
    """
    listed = dict.fromkeys(names)
    numbers = [name for name in listed if _WHOLE.fullmatch(name)]
    words = sum(1 for name in listed if re.search(r"[^\W\d_]", name) and not is_mark(name))
    if len(numbers) >= words:
        return []  # candidates are called by numbers
    return [name for name in numbers if float(name) in (0, -1, *NO_ANSWER)]


def says_several(text: str) -> bool:
    """Whether an entry says that several were marked: ``overvote``, ``Overvote (2)``, ``RCV Over Vote``."""
    return "overvote" in plain(text)


def is_mark(text: str) -> bool:
    """Whether an entry is no candidate.

    Examples
    --------
    >>> [is_mark(text) for text in ("Spoiled ballot", "Abstain", "RCV Over Vote", "None of the above", "Ann")]
    [True, True, True, False, False]
    """
    return says_nobody(text) or says_several(text)


def is_write_in(name: str) -> bool:
    """Whether a name says that it stands for people who were written in, or for one of them.

    Examples
    --------
    >>> [is_write_in(name) for name in ("Write-in", "Undeclared write-ins", "UWI", "Write-In: Bo Smith")]
    [True, True, True, True]
    >>> [is_write_in(name) for name in ("Skip the write-ins", "Rewrite-in")]
    [False, False]
    """
    return plain(name) == "uwi" or _WRITE_IN.match(str(name)) is not None


def is_several_write_ins(name: str) -> bool:
    """Whether a name stands for all who were written in: not for one whom it names.

    Examples
    --------
    >>> is_several_write_ins("Write-in votes (2)"), is_several_write_ins("Write-In: Bo Smith")
    (True, False)
    """
    found = _WRITE_IN.match(str(name))
    return is_write_in(name) and (found is None or not _LETTERS.search(found["rest"]))


def refuse_sets(source: object, entries: Iterable[object]) -> None:
    """Refuse sets as Python writes them, which are no candidates: VoteKit's frames hold such."""
    for entry in entries:
        if isinstance(entry, str) and _SET.match(entry):
            raise DataError(
                f"{source}: {entry!r} is a set of candidates, as data frames of VoteKit hold them; such "
                "frames are read from .csv files (profile.to_csv, or profile.df.to_csv)"
            )
