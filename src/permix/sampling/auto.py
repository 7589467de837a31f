"""When chains of a length nobody has set have run long enough, judged by their draws alone.

Chains run in stages. After each, the quantities that are one number per draw are judged, as
:func:`permix.convergence.trust_in` does: over all draws, or, where chains were still on their way, over the
second half. Stages end after fixed numbers of draws, and nothing but the draws decides, so that a fit depends
neither on threads, nor on the speed of the machine, nor on how often it was interrupted and continued.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from permix.convergence import ASKED, ENOUGH, INTERRUPTED, LIMIT, trust_in, without_rounding_errors
from permix.sampling.protocol import Array

# Draws of each chain after which chains are judged. Each stage doubles the work, so that at most half of it
# is in vain.
STAGES = (250, 500, 1000, 2000, 4000, 8000)
# One more for chains that disagree, in models whose chains are given patience.
LAST_STAGE = 16000
# Chains may make so many draws, whatever the data ...
ALWAYS = 1000
# ... and more while draws times the numbers that an iteration goes through are no more than this.
MOST_NUMBERS = 100_000_000
# Chains with a larger R-hat are at places of their own.
APART = 1.1
# Of longer runs so many draws of each chain are kept, evenly spaced: more say hardly more, and fill files.
MOST_KEPT = 1000
# Fewer where draws of all chains would hold more numbers, such as labels of a million rows: summaries take up
# to 16 bytes for each.
MOST_NUMBERS_KEPT = 2**27
FEWEST_KEPT = 20


class Kept(NamedTuple):
    """Which of the draws made are kept, and what ended the run."""

    draws: Array
    ended: str

    @classmethod
    def of(cls, first: int | None, n_made: int, most: int, judged: bool, room: int) -> Kept:
        """Keep draws from ``first`` on, or the second half where these do not suffice (None).

        Where nobody judged, because the number of draws was given, all are kept, as far as there is ``room``
        for so many.
        """
        most_kept = min(MOST_KEPT, room)
        if first is not None:
            return cls(evenly(first, n_made, most_kept), ENOUGH)
        if not judged:
            return cls(evenly(0, n_made, room), ASKED if n_made == most else INTERRUPTED)
        return cls(evenly(n_made // 2, n_made, most_kept), LIMIT if n_made == most else INTERRUPTED)


def room_for(numbers: int) -> int:
    """Return how many draws of each chain may be kept where one draw of all chains holds so many numbers."""
    return max(MOST_NUMBERS_KEPT // max(numbers, 1), FEWEST_KEPT)


def stages(size: int, patience: int = 1) -> tuple[int, ...]:
    """Return after how many draws chains are judged, for iterations that go through ``size`` numbers.

    ``patience`` times as many numbers may be gone through, as far as chains disagree (:func:`disagree`).
    """
    most = max(ALWAYS, patience * MOST_NUMBERS // max(size, 1))
    known = (*STAGES, LAST_STAGE) if patience > 1 else STAGES
    return tuple(stage for stage in known if stage <= most)


def disagree(scalars: Mapping[str, Array]) -> bool:
    """Say whether chains are at places of their own, so that more draws are needed to say anything at all.

    Judged by the second half of the draws, (chain, draw). Chains that agree by and large have R-hats above
    1.01 as long as effective draws are few: that is no reason to go on beyond the usual limit.
    """
    halves = (values[:, values.shape[1] // 2 :].astype(np.float64) for values in scalars.values())
    return any(trust_in(without_rounding_errors(half)).r_hat > APART for half in halves)


def suffices(scalars: Mapping[str, Array]) -> bool:
    """Say whether all quantities, (chain, draw), can be trusted."""
    return all(
        trust_in(without_rounding_errors(values.astype(np.float64))).suffices for values in scalars.values()
    )


def first_to_keep(scalars: Mapping[str, Array]) -> int | None:
    """Return from which draw on the draws suffice: from the first, from the middle, or not at all (None)."""
    n_made = next(iter(scalars.values())).shape[1] if scalars else 0
    for first in (0, n_made // 2):
        if suffices({name: values[:, first:] for name, values in scalars.items()}):
            return first
    return None


def evenly(first: int, n_made: int, most: int) -> Array:
    """Return which draws from ``first`` on are kept: all, or ``most`` of them, the last among them."""
    step = max(1, -(-(n_made - first) // most))
    return np.arange(n_made - 1, first - 1, -step)[::-1]
