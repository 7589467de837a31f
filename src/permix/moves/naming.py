"""Moves by name: what users may write instead of objects, and what saved files hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from permix.errors import DataError
from permix.moves.balance import Balanced
from permix.moves.base import Compound, Cycle, Move, RandomScan, Repeat
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.permutation import Permutation
from permix.moves.projection import Projection
from permix.moves.split_merge import SplitMerge

NAMED: dict[str, type[Move]] = {
    "gibbs": Gibbs,
    "split-merge": SplitMerge,
    "permutation": Permutation,
    "projection": Projection,
    "concentration": Concentration,
}
# Moves made of moves, by the names they have in files.
COMPOUND: dict[str, type[Compound]] = {
    "cycle": Cycle,
    "balanced": Balanced,
    "random-scan": RandomScan,
    "repeat": Repeat,
}
# In a description "move" is the name.
RENAMED = {"move": "of"}
Moves = str | Move | Sequence[str | Move]


def move_from(moves: Moves) -> Move:
    """Build one move from a name, a move, or a sequence of names and moves.

    Anything but a ready-made move is a cycle that ends with the update of the concentration.
    """
    if isinstance(moves, Move):
        return moves
    listed: list[str | Move] = [moves] if isinstance(moves, str) else list(moves)
    if not listed:
        raise DataError(f"moves is empty; known names are {', '.join(NAMED)}")
    cycle: list[Move] = []
    for entry in listed:
        if isinstance(entry, Move):
            cycle.append(entry)
        elif entry in NAMED:
            cycle.append(NAMED[entry]())
        else:
            raise DataError(f"unknown move {entry!r}; known names are auto, {', '.join(NAMED)}")
    if not any(isinstance(move, Concentration) for move in cycle):
        cycle.append(Concentration())
    return Cycle(cycle)


def describe_move(move: Move) -> dict[str, Any]:
    """Return a move as plain JSON values; a user's own move is named but cannot be rebuilt."""
    for name, cls in {**NAMED, **COMPOUND}.items():
        if type(move) is cls:
            assert dataclasses.is_dataclass(move)
            fields = dataclasses.fields(move)
            settings = {field.name: _plain(getattr(move, field.name)) for field in fields}
            return {"move": name, **{RENAMED.get(key, key): value for key, value in settings.items()}}
    return {"move": "custom", "class": f"{type(move).__module__}.{type(move).__qualname__}"}


def described_moves(moves: Moves) -> Any:
    """Return what a user gave as ``moves`` as plain JSON values."""
    if isinstance(moves, str):
        return moves
    if isinstance(moves, Move):
        return describe_move(moves)
    return [move if isinstance(move, str) else describe_move(move) for move in moves]


def _plain(value: Any) -> Any:
    if isinstance(value, Move):
        return describe_move(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()
    if hasattr(value, "__len__") and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value


def move_from_description(description: Mapping[str, Any]) -> Move:
    """Rebuild a move from what :func:`describe_move` gave."""
    name = description.get("move")
    back = {new: old for old, new in RENAMED.items()}
    settings = {back.get(key, key): _rebuilt(value) for key, value in description.items() if key != "move"}
    cls = {**NAMED, **COMPOUND}.get(str(name))
    if cls is None:
        raise DataError(
            f"cannot rebuild the move {description.get('class', name)!r}: it is not one of permix's own"
        )
    try:
        return cls(**settings)
    except TypeError as error:
        raise DataError(f"cannot rebuild the move {name!r} from {settings}: {error}") from None


def _rebuilt(value: Any) -> Any:
    if isinstance(value, Mapping):
        return move_from_description(value)
    return [_rebuilt(entry) for entry in value] if isinstance(value, list) else value
