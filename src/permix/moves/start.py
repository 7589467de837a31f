"""Where a chain starts."""

from __future__ import annotations

from typing import Literal

import numpy as np

from permix.errors import Argument, DataError
from permix.moves.state import MixtureState
from permix.partitions.priors import PartitionPrior

Start = Literal["both", "sequential", "one-group", "random"] | int


def check_start(init: Start, n: int, prior: PartitionPrior) -> None:
    """Refuse a number of groups that these data or this prior cannot have."""
    most = prior.most_clusters(n)
    if isinstance(init, int) and not 1 <= init <= most:
        raise DataError(
            Argument("init", init), f" must be from 1 to {most:,} groups for these data and this prior"
        )


def start_of_chain(init: Start, chain: int) -> Start:
    """Return where a chain starts: with ``"both"`` from sequential prediction and from one cluster in turn.

    Chains that start alike may all stay where they are and agree; chains from either side then do not.
    """
    if init == "both":
        return "sequential" if chain % 2 == 0 else "one-group"
    return init


def seat_all_data(rng: np.random.Generator, state: MixtureState, init: Start) -> None:
    """Put every datum into a cluster.

    ``"sequential"``: sequential prediction in random order, each datum by its conditional given those before
    it. ``"one-group"``: all together. A number: so many clusters of about equal size, at random.
    ``"random"``: a partition drawn from the prior.
    """
    if init == "sequential":
        state.sweep(rng, rng.permutation(state.n))
    elif init == "one-group":
        state.set_labels(np.zeros(state.n, dtype=np.int64))
    elif init == "random":
        state.set_labels(state.prior_spec.sample(state.n, rng))
    else:
        assert isinstance(init, int)
        state.set_labels(rng.permutation(state.n) % init)
