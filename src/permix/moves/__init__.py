"""Sampler moves, one per file, and moves made of moves."""

from __future__ import annotations

from permix.moves.base import Cycle, Info, Move, RandomScan, Repeat
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.naming import describe_move, move_from, move_from_description

__all__ = [
    "Concentration",
    "Cycle",
    "Gibbs",
    "Info",
    "Move",
    "RandomScan",
    "Repeat",
    "describe_move",
    "move_from",
    "move_from_description",
]
