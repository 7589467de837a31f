"""What the elections share: a DP mixture of generalized Mallows models beside mixtures of Mallows models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import permix
from benchmarks.reproduce.top_lists import in_order, per_agent
from permix.data.rankings import Rankings


@dataclass(frozen=True)
class Election:
    """What was found in one election.

    Attributes
    ----------
    n_voters : int
    n_clusters : int
        In the point estimate.
    clusters_in_draws : float
        Mean number over draws.
    described : list of (share, θ, center)
        Clusters of the last draw with at least 1 % of the voters, the largest first. Where clusters overlap,
        draws do not agree on who belongs together, and the point estimate joins them.
    held_out : dict
        Mean log probability of held-out ballots, by model.
    seconds : float
        Of the fit.
    """

    n_voters: int
    n_clusters: int
    clusters_in_draws: float
    described: list[tuple[float, np.ndarray, np.ndarray]]
    held_out: dict[str, float]
    seconds: float


def analyze(
    ballots: Rankings,
    n_draws: int,
    n_burn_in: int,
    n_components: tuple[int, ...],
    n_init: int,
    seed: int,
) -> Election:
    """Fit to four fifths of the voters, score the rest."""
    train, test = ballots.split(0.2, random_state=seed)
    start = time.perf_counter()
    model = permix.DPMallowsMixture(
        assignments="parallel",
        n_draws=n_draws,
        n_burn_in=n_burn_in,
        random_state=seed,
        progress=False,
    ).fit(train)
    seconds = time.perf_counter() - start
    held_out = {"DP mixture": per_agent(model.score_samples(test), test)}
    for n in n_components:
        mixture = permix.MallowsMixture(n, n_init=n_init, random_state=seed, progress=False).fit(train)
        held_out[f"Mallows, K = {n}"] = per_agent(mixture.score_samples(test), test)
    lengths = np.repeat(test.lengths, test.counts)
    n_items = ballots.n_items
    held_out["uniform"] = float(
        -np.mean([np.log(np.arange(n_items, n_items - t, -1.0)).sum() for t in lengths])
    )
    clusters = model._fit.clusters
    last = clusters.of_draw(clusters.n_draws - 1)
    shares = clusters.sizes[last] / train.n_agents
    described = [
        (float(shares[row]), clusters.theta[last][row], clusters.centers[last][row])
        for row in np.argsort(-shares)
        if shares[row] >= 0.01
    ]
    counts = np.asarray(model._fit.draws.arrays["n_groups"])
    return Election(
        ballots.n_agents, int(model.n_clusters_), float(counts.mean()), described, held_out, seconds
    )


def rows_of(name: str, found: Election, names: Sequence[Any], n_named: int) -> list[list[Any]]:
    """Rows of the table: one for each cluster of at least 1 % of the voters."""
    return [
        [
            name if rank == 0 else "",
            f"{share:.1%}",
            ", ".join(f"{value:.2f}" for value in theta[:5]),
            in_order(center, names, n_named),
        ]
        for rank, (share, theta, center) in enumerate(found.described)
    ]


def remark_of(name: str, found: Election) -> str:
    """One sentence on number of clusters, held-out probability and time."""
    scores = "; ".join(f"{model} {value:.3f}" for model, value in found.held_out.items())
    return (
        f"{name}: {found.n_voters:,} voters; {found.n_clusters} groups in the estimate, "
        f"{found.clusters_in_draws:.1f} in a draw; held-out log p per ballot: {scores}; "
        f"{found.seconds:.0f} s."
    )
