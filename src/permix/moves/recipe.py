"""What ``moves="auto"`` means: a hill-climbing start, then moves that leave the posterior invariant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from permix.errors import Argument, DataError
from permix.moves.balance import Opening
from permix.moves.base import Cycle, Move
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.hyperparameters import Hyperparameters
from permix.moves.missing_cells import MissingCells
from permix.moves.naming import (
    Moves,
    describe_move,
    move_from,
    optimizers_in,
    updates_hyperparameters,
    updates_missing_cells,
)
from permix.moves.projection import Projection
from permix.moves.split_merge import SplitMerge

# Climbing finds its top in a few steps, whatever the size of the data; what follows finds the posterior from
# there.
MAX_CLIMBS = 20


def moves_of(
    moves: Moves, burn_in_moves: Moves, n_burn_in: int, *, learns: bool = False, fills: bool = False
) -> tuple[Move, Move]:
    """Return the moves of burn-in and of what follows.

    Burn-in begins by climbing, or with what was asked for, and goes on with what follows, in the version that
    learns. What was asked for goes on to the end where there is nothing to learn. Where missing cells are
    filled in (``fills``) and hyper-parameters of the family are learned (``learns``), both end with updates
    of them.
    """
    if _is_auto(moves):
        # Per second, permutation moves with exact orderings mix more slowly than splits and merges do.
        following: Move = Cycle([Gibbs(), SplitMerge(n_proposals=None), Concentration()])
    else:
        following = move_from(moves)
    if optimizers_in(following):
        raise DataError(
            f"{', '.join(optimizers_in(following))} in ",
            Argument("moves"),
            " is an optimizer, for burn-in only: it does not leave the posterior invariant, so the draws "
            "would be wrong. Name it in ",
            Argument("burn_in_moves"),
            ".",
        )
    following = _with_updates(following, learns, fills)
    learning = following.during_burn_in()
    if _is_auto(burn_in_moves):
        splits = SplitMerge(n_proposals=None).during_burn_in()
        climb = _with_updates(Cycle([Projection(), Gibbs(), splits, Concentration()]), learns, fills)
        return Opening(climb, min(MAX_CLIMBS, n_burn_in // 2), learning), following
    given = _with_updates(move_from(burn_in_moves, "burn_in_moves"), learns, fills)
    if n_burn_in == 0:
        raise DataError(Argument("burn_in_moves"), " are given, but ", Argument("n_burn_in"), " is 0")
    return (given if learning is following else Opening(given, n_burn_in // 2, learning)), following


def _with_updates(move: Move, learns: bool, fills: bool) -> Move:
    """Add updates of missing cells that are filled in and of hyper-parameters, unless they are there."""
    added: list[Move] = [MissingCells()] if fills and not updates_missing_cells(move) else []
    added += [Hyperparameters()] if learns and not updates_hyperparameters(move) else []
    return Cycle([move, *added]) if added else move


def checked_moves(moves: Moves, name: str) -> Moves:
    """Return what a user gave as ``moves`` or ``burn_in_moves``, if moves can be made of it."""
    if not _is_auto(moves):
        move_from(moves, name)
    return moves


def describe_burn_in(move: Move) -> Any:
    """Return what a chain does during burn-in as plain JSON values."""
    if isinstance(move, Opening):
        return {"first": describe_move(move.first), "n_steps": move.n_steps}
    return describe_move(move)


def _is_auto(moves: Moves) -> bool:
    if isinstance(moves, str):
        return moves == "auto"
    return not isinstance(moves, Move) and isinstance(moves, Iterable) and list(moves) == ["auto"]
