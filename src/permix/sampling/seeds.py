"""One generator per chain, spawned from whatever the caller gave as ``random_state``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.errors import DataError


def seed_sequence(random_state: object = None) -> np.random.SeedSequence:
    """Turn a seed into a fresh :class:`numpy.random.SeedSequence`.

    Parameters
    ----------
    random_state : None, int, SeedSequence, Generator or RandomState
        ``None`` takes entropy from the operating system. A ``SeedSequence`` is copied, so the
        caller's object does not change. A ``Generator`` or ``RandomState`` gives four words.

    Returns
    -------
    numpy.random.SeedSequence
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.SeedSequence):
        return rebuild(describe(random_state))
    if isinstance(random_state, np.random.Generator):
        words = random_state.integers(0, 2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence([int(word) for word in words])
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence([int(word) for word in words])
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state >= 0:
            return np.random.SeedSequence(int(random_state))
        raise DataError(f"random_state must not be negative, but is {random_state}.")
    raise DataError(
        "random_state must be None, an integer, or a numpy SeedSequence, Generator or RandomState; "
        f"it is a {type(random_state).__name__}."
    )


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
    return np.random.SeedSequence(
        description["entropy"],
        spawn_key=tuple(description["spawn_key"]),
        pool_size=description["pool_size"],
        n_children_spawned=description["n_children_spawned"],
    )
