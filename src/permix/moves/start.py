"""Where a chain starts."""

from __future__ import annotations

from typing import Literal

import numpy as np

from permix.errors import DataError
from permix.moves.state import MixtureState
from permix.partitions.priors import PartitionPrior

Start = Literal["both", "sequential", "one-cluster", "random"] | int
STARTS = ("both", "sequential", "one-cluster", "random")


def check_start(init: Start, n: int, prior: PartitionPrior) -> None:
    """Refuse a start that does not exist or that these data or this prior cannot have."""
    if isinstance(init, str) and init in STARTS:
        return
    if isinstance(init, bool) or not isinstance(init, int):
        raise DataError(f"init must be {', '.join(map(repr, STARTS))} or a number of clusters, got {init!r}")
    most = prior.most_clusters(n)
    if not 1 <= init <= most:
        raise DataError(f"init must be from 1 to {most:,} clusters for these data and this prior, got {init}")


def start_of_chain(init: Start, chain: int) -> Start:
    """Return where a chain starts: with ``"both"`` from sequential prediction and from one cluster in turn.

    Chains that start alike may all stay where they are and agree; chains from either side then do not.
    """
    if init == "both":
        return "sequential" if chain % 2 == 0 else "one-cluster"
    return init


def seat_all_data(rng: np.random.Generator, state: MixtureState, init: Start) -> None:
    """Put every datum into a cluster.

    ``"sequential"``: sequential prediction in random order, each datum by its conditional given those before
    it. ``"one-cluster"``: all together. A number: so many clusters of about equal size, at random.
    ``"random"``: a partition drawn from the prior.
    """
    if init == "sequential":
        state.sweep(rng, rng.permutation(state.n))
    elif init == "one-cluster":
        state.set_labels(np.zeros(state.n, dtype=np.int64))
    elif init == "random":
        state.set_labels(state.prior_spec.sample(state.n, rng))
    else:
        assert isinstance(init, int)
        state.set_labels(rng.permutation(state.n) % init)
