"""Moves by name: what users may write instead of objects, and what saved files hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from permix.errors import Argument, DataError
from permix.moves.balance import Balanced
from permix.moves.base import Compound, Cycle, Move, RandomScan, Repeat
from permix.moves.concentration import Concentration
from permix.moves.hyperparameters import Hyperparameters
from permix.registries import MOVES, move_names

# Moves made of moves, by the names they have in files.
COMPOUND: dict[str, type[Compound]] = {
    "cycle": Cycle,
    "balanced": Balanced,
    "random-scan": RandomScan,
    "repeat": Repeat,
}
Moves = str | Move | Sequence[str | Move]


def move_from(moves: Moves, name: str = "moves") -> Move:
    """Build one move from a name, a move, or a sequence of these; ``name`` is the user's word for it.

    Whatever is given ends with an update of the concentration, unless there is one in it: a chain that should
    learn the concentration and never does would be wrong.
    """
    listed: list[Any]
    if isinstance(moves, Move):
        listed = [moves]
    elif isinstance(moves, str):
        listed = [part.strip() for part in moves.split(",")]
    elif isinstance(moves, Iterable):
        listed = list(moves)
    else:
        raise DataError(Argument(name, moves), f" must be a name, a move or a list of these; {_known(name)}")
    if not listed:
        raise DataError(Argument(name), f" is empty; {_known(name)}")
    cycle = [_one_move(entry, name) for entry in listed]
    if all(isinstance(move, Concentration | Hyperparameters) for move in cycle):
        raise DataError("nothing in ", Argument(name), " changes the groups: add 'gibbs'")
    if not any(updates_concentration(move) for move in cycle):
        cycle.append(Concentration())
    return cycle[0] if len(cycle) == 1 else Cycle(cycle)


def _one_move(entry: Any, name: str) -> Move:
    if isinstance(entry, Move):
        return entry
    if isinstance(entry, str) and entry in MOVES:
        return MOVES[entry]()
    if isinstance(entry, str) and entry == "auto":
        raise DataError("'auto' in ", Argument(name), f" stands alone; {_known(name)}")
    if isinstance(entry, type) and issubclass(entry, Move):
        raise DataError(f"{name} takes moves, not classes: write {entry.__name__}()")
    raise DataError(f"unknown move {entry!r} in ", Argument(name), f"; {_known(name)}")


def _known(name: str) -> str:
    return f"known names are auto, {', '.join(move_names(burn_in=name != 'moves'))}"


def updates_concentration(move: Move) -> bool:
    """Say whether a move draws the concentration anew, where that is learned."""
    if isinstance(move, Compound):
        return any(updates_concentration(part) for part in move.moves)
    return move.draws_concentration


def updates_hyperparameters(move: Move) -> bool:
    """Say whether a move draws the family's hyper-parameters anew, where these are learned."""
    if isinstance(move, Compound):
        return any(updates_hyperparameters(part) for part in move.moves)
    return move.draws_hyperparameters


def updates_missing_cells(move: Move) -> bool:
    """Say whether a move draws missing cells anew, where these are filled in."""
    if isinstance(move, Compound):
        return any(updates_missing_cells(part) for part in move.moves)
    return move.draws_missing_cells


def optimizers_in(move: Move) -> list[str]:
    """Names of the moves in it that are for burn-in only."""
    if isinstance(move, Compound):
        return [name for part in move.moves for name in optimizers_in(part)]
    return [] if move.exact else [str(describe_move(move).get("class", describe_move(move)["move"]))]


def describe_move(move: Move) -> dict[str, Any]:
    """Return a move as plain JSON values; a user's own move is named but cannot be rebuilt."""
    compound = next((name for name, cls in COMPOUND.items() if type(move) is cls), None)
    name = compound or MOVES.name_of(type(move))
    if name is None:
        return {"move": "custom", "class": f"{type(move).__module__}.{type(move).__qualname__}"}
    assert dataclasses.is_dataclass(move)
    settings = {field.name: _plain(getattr(move, field.name)) for field in dataclasses.fields(move)}
    # "move" is the name: what is repeated is "of".
    return {"move": name, **{"of" if key == "move" else key: value for key, value in settings.items()}}


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
    given = {key: _rebuilt(value) for key, value in description.items() if key != "move"}
    settings = {"move" if key == "of" else key: value for key, value in given.items()}
    cls: Any = {**MOVES, **COMPOUND}.get(str(name))
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
