"""Draws from the chain MMP for one agent: how many chains, how far the draws can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.convergence import ess_mean, split_r_hat
from permix.data.labels import Array
from permix.distributions.conditioning.amp_jit import weighted_marginals
from permix.distributions.conditioning.draws import mmp_draws
from permix.distributions.conditioning.exact import Problem

# Effective draws, or accepted proposals, below which an answer comes with a warning.
FEW_EFFECTIVE = 100
CHAINS = 4  # with local moves; each starts from its own draw of AMP
# States per chain from which their disagreement can be judged, and how large it may be (R-hat of ranks).
ENOUGH, LARGEST_SCALE_REDUCTION = 100, 1.2
MOST_LOOKED_AT = 2000  # states per chain, so that judging costs little memory
BATCHES = 32  # of successive states, whose means tell the standard error


def is_few(effective: float, size: int) -> bool:
    """Say whether so few weighted draws count that neither their mean nor its error can be trusted.

    A standard error knows of no ranking that was never drawn. On partial orders of 16 items against the
    center, answers many errors away from the truth had up to 3 % effective draws.
    """
    return effective < min(max(FEW_EFFECTIVE, 0.05 * size), 0.5 * size)


def run_chain(
    problem: Problem, key: Array, size: int, n_burn_in: int, n_thin: int, local_moves: bool
) -> tuple[Array, dict[str, Any], str]:
    """Draw ``size`` states: of several chains with local moves, of one as published without.

    Returns orderings, chain after chain; how it went, for metadata; and what a user should know and do, empty
    where all is well.
    """
    n_chains = max(1, min(CHAINS, size)) if local_moves else 1
    length = -(-size // n_chains)
    how = (length, n_burn_in, n_thin, bool(local_moves))
    states, distances, rates = mmp_draws(key, 0, problem.jobs(n_chains), *how)
    rate = float(rates.mean())
    effective = min(float(size), ess_mean(np.asarray(distances, dtype=np.float64)))
    steps = n_burn_in + size * n_thin
    trouble = ""
    if not local_moves and rate * steps < min(FEW_EFFECTIVE, 0.5 * steps):
        trouble = (
            f"the chain accepted {rate:.2%} of {steps} proposals, so many draws are the same; pass a "
            "larger n_thin, or local_moves=True"
        )
    elif local_moves and length >= ENOUGH and scale_reduction(states) > LARGEST_SCALE_REDUCTION:
        trouble = (
            f"{n_chains} chains disagree about the ranks of items, so the draws are not from the "
            "posterior yet; pass a larger n_burn_in and n_thin"
        )
    elif local_moves and effective < min(FEW_EFFECTIVE, 0.2 * size):
        trouble = (
            f"the draws depend on each other and count for {effective:.0f} of {size}; pass a larger n_thin"
        )
    about = {"acceptance_rate": rate, "local_moves": bool(local_moves), "effective_size": effective}
    return states.reshape(-1, problem.n_items)[:size], about, trouble


def scale_reduction(orders: Array) -> float:
    """Return the largest R-hat of the ranks of items; ``orders`` (chains, states, items). 1: they agree."""
    some = orders[:, :: -(-orders.shape[1] // MOST_LOOKED_AT)]
    return float(split_r_hat(np.argsort(some, axis=2).astype(np.float64)).max())


def by_batches(orders: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Pairwise and rank marginals of successive states, with standard errors from means of batches."""
    batches = np.array_split(orders, min(BATCHES, len(orders)))
    n, share = orders.shape[1], np.array([len(batch) / len(orders) for batch in batches])
    totals, squares = np.zeros((2, 2, n, n))
    for batch, part in zip(batches, share, strict=True):
        means = np.stack(weighted_marginals(batch, np.full(len(batch), 1.0 / len(batch)))[::2])
        totals += part * means
        squares += part * means**2
    errors = np.sqrt(np.maximum(squares - totals**2, 0.0) / (len(batches) - 1))
    return (totals[0], errors[0]), (totals[1], errors[1])
