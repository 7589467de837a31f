"""Figure 9 of Meilă & Chen (2010): the Jester jokes, DP mixture against density estimates.

The 70 most frequently rated of the 100 jokes, the five best of each user, N = 100, 1000, 3000 users for
training and 3000 for testing; KDE with widths 0.03, 0.1, 0.4 and 1. The paper finds 4 to 9 clusters with all
θ_j in (0.03, 0.06). (Jester: Goldberg, Roeder, Gupta and Perkins, 2001.)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

import permix
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.top_lists import spread, theta_by_rank
from permix.data.rankings import Rankings
from permix.datasets import load_jester

LOG10 = float(np.log(10.0))


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_train: tuple[int, ...] = (100, 1000, 3000)
    n_test: int = 3000
    n_replicates: int = 10
    n_jokes: int = 70
    length: int = 5
    widths: tuple[float, ...] = (0.03, 0.1, 0.4, 1.0)
    n_draws: int = 500
    n_burn_in: int = 500
    seed: int = 0


QUICK = Sizes(n_train=(100, 1000), n_replicates=2, n_draws=150, n_burn_in=150)


def best_jokes(ratings: np.ndarray, n_jokes: int, length: int, rng: np.random.Generator) -> Rankings:
    """Top lists of the users who rated all of the most frequently rated jokes; ties are broken at random.

    Whoever left one of them unrated might like it best, so that the rest would not be below the list.
    """
    rated = ~np.isnan(ratings)
    jokes = np.sort(np.argsort(-rated.sum(axis=0), kind="stable")[:n_jokes])
    users = rated[:, jokes].all(axis=1)
    liked = ratings[np.ix_(users, jokes)]
    order = np.lexsort((rng.random(liked.shape), -liked), axis=1)[:, :length]
    return Rankings.from_orders(order, items=[f"joke {joke + 1}" for joke in jokes])


def measure(train: Rankings, test: Rankings, sizes: Sizes, seed: int) -> dict[str, Any]:
    """All numbers of one replicate; log-likelihoods are decimal, as in the figure."""
    model = permix.DPMallowsMixture(
        n_draws=sizes.n_draws, n_burn_in=sizes.n_burn_in, random_state=seed, progress=False
    ).fit(train)
    theta = theta_by_rank(model._fit.clusters)
    counts = np.asarray(model._fit.draws.arrays["n_groups"])
    sizes_of = np.bincount(model.labels_)
    found: dict[str, Any] = {
        "DPM": float(np.mean(model.score_samples(test))) / LOG10,
        "groups": float(model.n_clusters_),
        "groups in a draw": float(counts.mean()),
        "large groups": float(np.sum(sizes_of >= 0.01 * len(train))),
        "theta": theta.tolist(),
    }
    for width in sizes.widths:
        kde = permix.MallowsKDE(dispersion=float(np.exp(-width)), random_state=seed, progress=False).fit(
            train
        )
        found[f"KDE {width:g}"] = float(np.mean(kde.score_samples(test))) / LOG10
    return found


def run(sizes: Sizes) -> Outcome:
    """Fit all models for every size."""
    ratings = load_jester(download=False).data
    lists = best_jokes(ratings, sizes.n_jokes, sizes.length, np.random.default_rng(sizes.seed))
    kdes = [f"KDE {width:g}" for width in sizes.widths]
    rows: list[list[Any]] = [
        ["paper", "axis -16 to -8", *["below DPM" for _ in kdes], "", "4 to 9", "", "0.03 to 0.06"]
    ]
    series: dict[str, dict[str, list[Any]]] = {}
    for n_train in sizes.n_train:
        collected: dict[str, list[Any]] = defaultdict(list)
        for replicate in range(sizes.n_replicates):
            tell(f"N = {n_train}, replicate {replicate + 1} of {sizes.n_replicates}")
            rng = np.random.default_rng([sizes.seed, replicate, n_train])
            chosen = rng.permutation(len(lists))[: n_train + sizes.n_test]
            found = measure(lists[chosen[:n_train]], lists[chosen[n_train:]], sizes, replicate)
            for name, value in found.items():
                collected[name].append(value)
        series[str(n_train)] = dict(collected)
        theta = np.mean(collected["theta"], axis=0)
        clusters = collected["groups"]
        rows.append(
            [
                n_train,
                spread(collected["DPM"]),
                *[spread(collected[name]) for name in kdes],
                spread(collected["groups in a draw"], 1),
                f"{min(clusters):.0f} to {max(clusters):.0f}",
                spread(collected["large groups"], 1),
                ", ".join(f"{value:.3f}" for value in theta),
            ]
        )
    falling = np.prod(sizes.n_jokes - np.arange(sizes.length, dtype=float))
    return Outcome(
        f"Figure 9: Jester, the best {sizes.length} of {sizes.n_jokes} jokes",
        ["N", "DPM, log10 p", *kdes, "groups in a draw", "in the estimate", "of at least 1 %", "θ_j"],
        rows,
        [
            f"Users: the {len(lists):,} who rated all {sizes.n_jokes} jokes; whoever left one out might like "
            "it best. The paper does not say whom it takes.",
            f"Decimal log-likelihood per test list; uniform lists have {-np.log10(falling):.2f}, so that "
            "the paper's axis can only be decimal.",
            "θ_j is averaged over groups by size.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw test log-likelihood against training size."""
    figure.set_size_inches(6, 4)
    axis = figure.subplots()
    panels = list(outcome.series.values())
    for name in panels[0]:
        if name == "DPM" or name.startswith("KDE"):
            axis.semilogx(
                [int(n) for n in outcome.series], [np.mean(panel[name]) for panel in panels], "o-", label=name
            )
    axis.set(xlabel="N", ylabel="log10 p of a test list")
    axis.legend()


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
