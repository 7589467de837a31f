"""Dirichlet-process mixtures of generalized Mallows models made by hand, for tests that need no sampler."""

from __future__ import annotations

import numpy as np

from permix.data.rankings import Rankings
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.moves.state import first_concentration, learned_concentration
from permix.partitions import DirichletProcess
from permix.partitions.point_estimate import PointEstimate
from permix.sampling import Draws

FOUR = ("tea", "coffee", "water", "milk")
LISTS = [(0, 1), (0, 1, 2), (3, 2), (3,), (0, 2, 1, 3)]


def cluster_draws(labels, n_items, n_stages, seed=0, prior=None, decays=(0.1, 2.5)):
    """Clusters with random centers and decays for given labels (draws × agents)."""
    rng = np.random.default_rng(seed)
    labels = np.asarray(labels, dtype=np.int32)
    numbers = labels.max(axis=1) + 1
    rows = int(numbers.sum())
    return ClusterDraws(
        starts=np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64),
        sizes=np.concatenate([np.bincount(row) for row in labels]).astype(np.int64),
        centers=np.array([rng.permutation(n_items) for _ in range(rows)], dtype=np.int32),
        theta=rng.uniform(*decays, (rows, n_stages)),
        labels=labels,
        concentration=rng.uniform(0.5, 2.0, len(labels)),
        prior=DirichletProcess() if prior is None else prior,
    )


def fit_of(
    lists=LISTS,
    items=FOUR,
    counts=(2, 1, 2, 1, 1),
    labels=((0, 0, 0, 1, 1, 1, 0), (0, 0, 1, 2, 2, 2, 0), (0, 0, 0, 1, 1, 1, 1)),
    estimate=(0, 0, 0, 1, 1, 1, 0),
    seed=0,
    agents=None,
    clusters=None,
    **settings,
):
    """A fit of agents in the order of the expanded lists; the draws of one chain are the labels given."""
    n_items = len(items)
    rankings = Rankings.from_orders([list(row) for row in lists], n_items=n_items, counts=counts)
    rankings = rankings._replaced(items=tuple(items), agents=None if agents is None else np.array(agents))
    chosen = {"n_draws": len(labels), "n_chains": 1, "random_state": 5} | settings
    asked = DPMallowsParameters(**chosen)
    if clusters is None:
        n_stages = min(int(rankings.lengths.max()), n_items - 1)
        prior = asked.partition_prior()
        clusters = cluster_draws(labels, n_items, n_stages, seed, prior)
        if learned_concentration(prior) is None:
            clusters.concentration[:] = first_concentration(prior)
    kept = np.asarray(clusters.labels, dtype=np.uint8)[None]
    rng = np.random.default_rng(seed)
    scalars = rng.normal(-20.0, 1.0, (2, *kept.shape[:2]))
    arrays = {
        "labels": kept,
        "n_groups": kept.max(axis=2).astype(np.int64) + 1,
        "largest_group": np.array([[np.bincount(row).max() for row in kept[0]]]),
        "log_likelihood": scalars[0],
        "log_joint": scalars[1],
    }
    if learned_concentration(asked.partition_prior()) is not None:
        arrays["concentration"] = clusters.concentration[None].copy()
    shapes = {"prior_strength": (), "prior_rate": (clusters.theta.shape[1],)}
    for name in asked.learned():
        arrays[name] = rng.uniform(0.5, 2.0, (*kept.shape[:2], *shapes[name]))
    found = np.asarray(estimate, dtype=np.int32)
    return DPMallowsFit(
        settings=asked,
        items=tuple(items),
        rankings=rankings,
        draws=Draws(
            arrays=arrays,
            statistics={
                "moves": ["assignments", "centers"],
                "proposed": np.array([[30, 20]]),
                "accepted": np.array([[30, 7]]),
            },
            n_draws=kept.shape[1],
            seeds=({"entropy": 5},),
        ),
        estimate=PointEstimate(
            labels=found,
            n_clusters=int(found.max()) + 1,
            sizes=np.bincount(found),
            loss=asked.loss,
            expected_loss=0.25,
            best_draw_loss=0.3,
            n_runs=3,
        ),
        clusters=clusters,
    )


def as_draws(clusters):
    """Clusters as the naive reference takes them: a list of (clusters, weight of a new one) per draw."""
    draws = []
    for d in range(clusters.n_draws):
        rows = clusters.of_draw(d)
        weights = np.exp(clusters.log_weights(d))
        draws.append(
            (
                [
                    (weights[k], clusters.centers[c].tolist(), clusters.theta[c].tolist())
                    for k, c in enumerate(range(rows.start, rows.stop))
                ],
                weights[-1],
            )
        )
    return draws


def members_of(clusters, estimate):
    """The estimated cluster that every cluster of every draw is most like, in a list of one, with sets."""
    estimate = np.asarray(estimate)
    estimated = [set(np.flatnonzero(estimate == e).tolist()) for e in range(estimate.max() + 1)]

    def spoken_for(agents):
        likeness = [len(agents & other) ** 2 / (len(agents) * len(other)) for other in estimated]
        return [likeness.index(max(likeness))]

    return [
        [spoken_for(set(np.flatnonzero(row == k).tolist())) for k in range(row.max() + 1)]
        for row in np.asarray(clusters.labels)
    ]
