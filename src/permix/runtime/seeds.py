"""What ``random_state`` means, everywhere: generators, sequences to spawn from, and keys of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from permix.errors import DataError

RandomState = (
    int
    | np.integer[Any]
    | Sequence[int]
    | np.random.SeedSequence
    | np.random.Generator
    | np.random.RandomState
    | None
)


def seed_sequence(random_state: object = None) -> np.random.SeedSequence:
    """Turn a seed into a fresh :class:`numpy.random.SeedSequence`.

    ``None`` takes entropy from the operating system. A ``SeedSequence`` is copied, so the caller's object
    does not change. A ``Generator`` or ``RandomState`` gives four words.
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.SeedSequence):
        return rebuild(describe(random_state))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(0, 2**32, size=4, dtype=np.uint32).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(0, 2**32, size=4, dtype=np.uint32).tolist())
    if _is_seed(random_state):
        return np.random.SeedSequence(int(random_state))
    if isinstance(random_state, (list, tuple)) and random_state and all(map(_is_seed, random_state)):
        return np.random.SeedSequence([int(word) for word in random_state])
    raise DataError(
        f"random_state={random_state!r} must be None, a whole number from 0, several of these, or a numpy "
        "SeedSequence, Generator or RandomState"
    )


def _is_seed(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


def generator(random_state: object = None) -> np.random.Generator:
    """Make a generator of a seed; a ``Generator`` is returned as it is, and goes on where it was."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.default_rng(random_state)
    return np.random.default_rng(seed_sequence(random_state))


def stream_key(random_state: object = None) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Draw the key of the counter-based streams, of which each row has its own."""
    return generator(random_state).integers(0, 2**64, size=2, dtype=np.uint64)


def describe(sequence: np.random.SeedSequence) -> dict[str, Any]:
    """Return what identifies a seed sequence, in a form that JSON holds."""
    entropy = sequence.entropy
    return {
        "entropy": int(entropy)
        if isinstance(entropy, (int, np.integer))
        else [int(e) for e in entropy or ()],
        "spawn_key": [int(key) for key in sequence.spawn_key],
        "pool_size": int(sequence.pool_size),
        "n_children_spawned": int(sequence.n_children_spawned),
    }


def rebuild(description: Mapping[str, Any]) -> np.random.SeedSequence:
    """Undo :func:`describe`."""
    return np.random.SeedSequence(**description)
