"""Numbers and names as sentences have them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

from permix.data.attributes import in_short
from permix.estimators.wording import listed as listed

# Numbers with more decimals are written with a power of ten.
MOST_DECIMALS = 8
# A name in a sentence or a picture has at most so many characters; tables have all of it.
IN_A_SENTENCE = 60
# Groups that a sentence lists one by one; of more it says how many.
MOST_TOLD = 8
NUMBERS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
# Characters that turn the direction of what follows them, which a name must not do to a page.
TURNING = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u200f", "\u061c"}
FIRST_STRONG, POP = "\u2068", "\u2069"


def shown(name: Any, most: int | None = None) -> str:
    r"""Return a name, which may come from a stranger, as text that stays in its place.

    Control characters become blanks, and names with letters written from right to left are isolated, so
    that what stands beside them keeps its order.

    Examples
    --------
    >>> shown("Ann\nBo"), shown("a" * 12, 8)
    ('Ann Bo', 'aaaaaaa…')
    """
    kept = "".join(
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") else char
        for char in str(name)
        if char not in TURNING
    )
    text = " ".join(kept.split()) or "(no name)"
    if most is not None:
        text = in_short(text, most)
    turns = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text)
    return f"{FIRST_STRONG}{text}{POP}" if turns else text


def in_a_list(name: str) -> str:
    """Put a name in quotes that would read as several names in a list.

    Examples
    --------
    >>> in_a_list("Ann Lee"), in_a_list("Lee, Ann")
    ('Ann Lee', '“Lee, Ann”')
    """
    return f"“{name}”" if ", " in name or " and " in name else name


def count_of(n: int, thing: str) -> str:
    """Return "1 group", "2 groups"."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def spelled(n: int) -> str:
    """Return a small number as a word.

    Examples
    --------
    >>> spelled(3), spelled(30)
    ('three', '30')
    """
    return NUMBERS[n] if 0 <= n < len(NUMBERS) else f"{n:,}"


def capital(text: str) -> str:
    """Begin a sentence."""
    return text[:1].upper() + text[1:]


def percent(share: float) -> str:
    """Write a share; what is neither none nor all is not rounded to that.

    Examples
    --------
    >>> percent(0.463), percent(0.0004), percent(0.9999), percent(0.0)
    ('46%', '<1%', '>99%', '0%')
    """
    if math.isnan(share):
        return "–"
    whole = round(100 * share)
    if whole == 0 and share > 0:
        return "<1%"
    return ">99%" if whole == 100 and share < 1 else f"{whole}%"


#: What intervals of shares are not, where draws divide those who were fitted.
THESE = "Shares are of these {}: intervals say how sure groups are, not how far a sample may be off."
#: What they are where shares are drawn given who is in which group.
OF_ALL = (
    "Shares are those in the population that these {} are a sample of, drawn at random: intervals hold how "
    "sure groups are, and how far such a sample may be off."
)


def interval(share: float, low: float | None, high: float | None) -> str:
    """Write a share with its interval.

    Examples
    --------
    >>> interval(0.46, 0.41, 0.512)
    '46% (41–51)'

    Where whole percents do not tell the ends apart, they have a digit more.

    >>> interval(0.251, 0.2488, 0.2533)
    '25.1% (24.9–25.3)'
    >>> interval(0.012, 0.002, 0.03)
    '1% (<1–3)'
    """
    if low is None or high is None:
        return percent(share)
    if low < high and round(100 * low) == round(100 * high):
        return f"{100 * share:.1f}% ({100 * low:.1f}–{100 * high:.1f})"
    return f"{percent(share)} ({percent(low)[:-1]}–{percent(high)[:-1]})"


def ordinal(n: int) -> str:
    """Return "1st", "2nd".

    Examples
    --------
    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def one_digit(value: float) -> str:
    """Write a mean rank.

    Examples
    --------
    >>> one_digit(6.54), one_digit(3.0)
    ('6.5', '3')
    """
    rounded = round(value, 1)
    return f"{rounded:.0f}" if rounded == round(rounded) else f"{rounded:.1f}"


def named(numbers: Sequence[int], most: int = 8) -> str:
    """Name groups, which are counted from 0, as users count them; of many the first ones."""
    words = [str(k + 1) for k in numbers[:most]]
    if len(numbers) > most:
        words.append(f"{len(numbers) - most} more")
    return f"group{'' if len(numbers) == 1 else 's'} {listed(words)}"


def how_often(found: Sequence[int], n_runs: int, run: str, never: int) -> str:
    """Say in how many runs which groups recur, the most frequent first; ``never`` is how many say nothing.

    Examples
    --------
    >>> how_often([8, 8, 6, 7, 6, 1], 8, "restart", 1)
    'groups 1 and 2 recur in all 8 restarts, group 4 in 7, groups 3 and 5 in 6, and group 6 in no other'
    >>> how_often([2, 2, 1, 2, 0, 2, 2, 1, 2], 2, "chain", 0)
    '6 of them recur in both chains, 2 in 1, and 1 in no chain'
    """
    many = len(found) > MOST_TOLD
    said: list[str] = []
    for times in sorted(set(found), reverse=True):
        which = [k for k, each in enumerate(found) if each == times]
        runs = all_of(n_runs, run) if times == n_runs else f"{times}"
        if times <= never:
            runs = f"no {run}" if never == 0 else "no other"
        them = f"{len(which):,}" if many else named(which, len(found))
        if not said:  # the first one has the verb and the noun
            verb = "recurs" if len(which) == 1 else "recur"
            if times != n_runs and times > never:
                runs = f"{times} of {n_runs} {run}s"
            said.append(f"{them}{' of them' if many else ''} {verb} in {runs}")
        else:
            said.append(f"{them} in {runs}")
    return f"{', '.join(said[:-1])}, and {said[-1]}" if len(said) > 2 else " and ".join(said)


def all_of(n: int, run: str) -> str:
    """Return "both chains", "all 6 restarts"."""
    return f"both {run}s" if n == 2 else f"all {n} {run}s"


def others(n: int) -> str:
    """Begin a sentence about the groups that have none of their own."""
    return "The last group holds" if n == 1 else f"The other {n:,} groups hold"


def number(value: Any, digits: int = 3) -> str:
    """Write a number for a cell: whole ones with commas, others with so many digits.

    Examples
    --------
    >>> number(4187.3), number(43.6123), number(0.0519), number(999.7), number(12)
    ('4,187', '43.6', '0.0519', '1,000', '12')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    # 4187.3 is 4,187 for people, not 4.19e+03.
    return f"{value:.{digits}g}" if abs(value) < 10.0**digits - 0.5 else f"{value:,.0f}"


def told_apart(values: Sequence[float]) -> list[str]:
    """Write numbers of one column, all with as many decimals as show by how much they differ.

    Examples
    --------
    >>> told_apart([141.517, 140.484, 138.43]), told_apart([214.969, 214.62]), told_apart([5137.2, 4185.4])
    (['141.5', '140.5', '138.4'], ['214.97', '214.62'], ['5,137', '4,185'])
    """
    known = [value for value in map(float, values) if math.isfinite(value)]
    size, gap = max(map(abs, known), default=0.0), max(known, default=0.0) - min(known, default=0.0)
    digits = [2 - math.floor(math.log10(size))] if size > 0.0 else [0]
    digits += [1 - math.floor(math.log10(gap))] if gap > 0.0 else []
    decimals = max(0, *digits)
    if decimals > MOST_DECIMALS:
        return [number(float(value)) for value in values]
    # + 0.0: no minus before a zero.
    return [f"{value + 0.0:,.{decimals}f}" if math.isfinite(value) else "–" for value in map(float, values)]
