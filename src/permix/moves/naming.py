"""Moves by name: what users may write instead of objects, and what saved files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from permix.errors import DataError
from permix.moves.base import Cycle, Move, RandomScan, Repeat
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs

NAMED: dict[str, type[Move]] = {"gibbs": Gibbs, "concentration": Concentration}


def move_from(moves: str | Move | Sequence[str | Move]) -> Move:
    """Build one move from "auto", a name, a move, or a sequence of names and moves.

    Anything but a ready-made move is a cycle that ends with the update of the concentration.
    """
    if isinstance(moves, Move):
        return moves
    listed: list[str | Move] = [moves] if isinstance(moves, str) else list(moves)
    if listed == ["auto"]:
        listed = ["gibbs"]
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
    for name, cls in NAMED.items():
        if type(move) is cls:
            return {"move": name}
    if isinstance(move, Cycle):
        return {"move": "cycle", "moves": [describe_move(part) for part in move.moves]}
    if isinstance(move, RandomScan):
        weights = None if move.weights is None else [float(weight) for weight in move.weights]
        return {
            "move": "random-scan",
            "moves": [describe_move(part) for part in move.moves],
            "weights": weights,
        }
    if isinstance(move, Repeat):
        return {"move": "repeat", "of": describe_move(move.move), "times": move.times}
    return {"move": "custom", "class": f"{type(move).__module__}.{type(move).__qualname__}"}


def move_from_description(description: Mapping[str, Any]) -> Move:
    """Rebuild a move from what :func:`describe_move` gave."""
    name = description.get("move")
    if name in NAMED:
        return NAMED[name]()
    if name == "cycle":
        return Cycle([move_from_description(part) for part in description["moves"]])
    if name == "random-scan":
        parts = [move_from_description(part) for part in description["moves"]]
        return RandomScan(parts, description["weights"])
    if name == "repeat":
        return Repeat(move_from_description(description["of"]), int(description["times"]))
    raise DataError(
        f"cannot rebuild the move {description.get('class', name)!r}: it is not one of permix's own"
    )
