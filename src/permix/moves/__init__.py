"""Sampler moves, one per file, and moves made of moves.

:data:`permix.registries.MOVES` lists those that have names.
"""

from __future__ import annotations

from permix.moves.balance import Balanced
from permix.moves.base import Cycle, Info, Move, RandomScan, Repeat
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.hyperparameters import Hyperparameters
from permix.moves.missing_cells import MissingCells
from permix.moves.naming import describe_move, move_from, move_from_description
from permix.moves.permutation import Permutation
from permix.moves.projection import Projection
from permix.moves.split_merge import SplitMerge

__all__ = [
    "Balanced",
    "Concentration",
    "Cycle",
    "Gibbs",
    "Hyperparameters",
    "Info",
    "MissingCells",
    "Move",
    "Permutation",
    "Projection",
    "RandomScan",
    "Repeat",
    "SplitMerge",
    "describe_move",
    "move_from",
    "move_from_description",
]
