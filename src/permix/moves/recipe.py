"""What ``moves="auto"`` means: a hill-climbing start, then moves that leave the posterior invariant."""

from __future__ import annotations

from permix.moves.balance import Opening
from permix.moves.base import Cycle, Move
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.naming import Moves, move_from
from permix.moves.projection import Projection
from permix.moves.split_merge import SplitMerge

# Climbing finds its top in a few steps, whatever the size of the data; what follows finds the posterior from
# there.
MAX_CLIMBS = 20


def moves_of(moves: Moves, burn_in_moves: Moves, n_burn_in: int) -> tuple[Move, Move]:
    """Return the moves of burn-in and of what follows."""
    following = _usual() if _is_auto(moves) else move_from(moves)
    if not _is_auto(burn_in_moves):
        return move_from(burn_in_moves), following
    climb = Cycle([Projection(), Gibbs(), SplitMerge(n_proposals=20), Concentration()])
    n_climbs = min(MAX_CLIMBS, n_burn_in // 2)
    return Opening(climb, n_climbs, following.during_burn_in()), following


def _is_auto(moves: Moves) -> bool:
    return moves == "auto" or (not isinstance(moves, str | Move) and list(moves) == ["auto"])


def _usual() -> Move:
    # Per second, permutation moves with exact orderings mix more slowly than splits and merges do.
    return Cycle([Gibbs(), SplitMerge(), Concentration()])
