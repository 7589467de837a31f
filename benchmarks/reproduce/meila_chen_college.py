"""Section 8 of Meilă & Chen (2010), figures 10 and 11 and table 1: applications to colleges.

The real applications are not public; these are generated, of the same shape: 53,757 lists of up to ten out of
533 courses, 30 kinds of applicants of the sizes of the paper's clusters. α = ν = 100, four chains of 500
sweeps. The paper reports 177 clusters, 114 of them singletons, 35 of at least 0.1 % and 27 of at least 1 %
of the data (23 to 27 over four runs), the largest with 8.1, 6.2, 6.0, 5.8 and 5.7 %, and θ_j that fall with
the rank.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.top_lists import in_order, log_joint, theta_by_rank, vi
from permix.datasets.generators_college import make_college_applications
from permix.dp_mallows.fit import fit_dp_mallows
from permix.dp_mallows.parameters import DPMallowsParameters

LARGE = 0.05  # the paper's border between large and small clusters in figure 11


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_applicants: int = 53_757
    n_courses: int = 533
    n_kinds: int = 30
    n_runs: int = 4
    n_sweeps: int = 500
    n_draws: int = 100
    n_initial_clusters: int = 20
    concentration: float = 100.0
    prior_strength: float = 100.0
    seed: int = 0


QUICK = Sizes(n_applicants=5000, n_courses=200, n_kinds=10, n_runs=2, n_sweeps=150, n_draws=50)


def sizes_in_words(counts: np.ndarray, n: int) -> list[Any]:
    """Number of clusters, of singletons, of those with 0.1 % and with 1 %, and shares of the largest."""
    counts = np.sort(counts[counts > 0])[::-1]
    return [
        len(counts),
        int(np.sum(counts == 1)),
        int(np.sum(counts >= 0.001 * n)),
        int(np.sum(counts >= 0.01 * n)),
        ", ".join(f"{count / n:.1%}" for count in counts[:5]),
    ]


def run(sizes: Sizes) -> Outcome:
    """Fit, and describe as the paper does."""
    made = make_college_applications(
        sizes.n_applicants, sizes.n_courses, sizes.n_kinds, random_state=sizes.seed
    )
    lists, n = made.data, sizes.n_applicants
    known = np.argmax(log_joint(lists, made.centers, made.theta, made.weights), axis=1)
    rows: list[list[Any]] = [
        ["paper", 177, 114, 35, "27 (23 to 27)", "8.1%, 6.2%, 6.0%, 5.8%, 5.7%", "", "falling"],
        [
            "truth",
            *sizes_in_words(np.bincount(made.labels), n),
            vi(known, made.labels),
            _numbers(made.theta[0]),
        ],
    ]
    series: dict[str, Any] = {"theta": [], "large": [], "small": [], "sizes": []}
    seconds, remarks = [], []
    for chain in range(sizes.n_runs):
        tell(f"run {chain + 1} of {sizes.n_runs}")
        start = time.perf_counter()
        fit = fit_dp_mallows(
            lists,
            DPMallowsParameters(
                concentration=sizes.concentration,
                prior_strength=sizes.prior_strength,
                n_initial_clusters=sizes.n_initial_clusters,
                n_burn_in=sizes.n_sweeps - sizes.n_draws,
                n_draws=sizes.n_draws,
                n_chains=1,
                random_state=sizes.seed + chain,
                progress=False,
            ),
        )
        seconds.append(time.perf_counter() - start)
        last = np.asarray(fit.draws.arrays["labels"])[0, -1]
        theta = theta_by_rank(fit.clusters)
        series["theta"].append(theta.tolist())
        series["large"].append(theta_by_rank(fit.clusters, LARGE).tolist())
        series["small"].append(theta_by_rank(fit.clusters, 0.0, LARGE).tolist())
        series["sizes"].append(np.sort(np.bincount(last))[::-1].tolist())
        rows.append(
            [
                f"run {chain + 1}, last draw",
                *sizes_in_words(np.bincount(last), n),
                vi(last, made.labels),
                _numbers(theta),
            ]
        )
        rows.append(
            [
                f"run {chain + 1}, estimate",
                *sizes_in_words(np.bincount(fit.labels), n),
                vi(fit.labels, made.labels),
                "",
            ]
        )
        if chain == 0:
            remarks = largest_clusters(fit, lists)
    for row in rows[1:]:
        row[6] = f"{row[6]:.3f}"
    return Outcome(
        f"College applications: {n:,} lists, {sizes.n_courses} courses, α = {sizes.concentration:g}, "
        f"ν = {sizes.prior_strength:g}",
        ["", "groups", "singletons", "≥ 0.1 %", "≥ 1 %", "largest", "VI to truth", "θ_j, weighted by size"],
        rows,
        [
            f"Generated data: the truth is {sizes.n_kinds} groups. VI in nats; beside the truth stands that "
            "of the partition by the true parameters. Every applicant is of one of the groups, so that there "
            "are no singletons; in the real data some lists are like nobody else's.",
            f"θ_j in groups of at least {LARGE:.0%}: {_mean(series['large'])}; in smaller ones: "
            f"{_mean(series['small'])}.",
            f"{np.mean(seconds):.0f} seconds a run of {sizes.n_sweeps} sweeps, from a random start with "
            f"{sizes.n_initial_clusters} groups, point estimate included.",
            *remarks,
        ],
        series,
    )


def largest_clusters(fit: Any, lists: Any) -> list[str]:
    """Table 1: the first courses of the centers of the five largest clusters, from the last draw."""
    clusters = fit.clusters
    last = clusters.of_draw(clusters.n_draws - 1)
    order = np.argsort(-clusters.sizes[last])[:5]
    return [
        f"Group {rank + 1} ({clusters.sizes[last][row] / lists.n_agents:.1%}): "
        + in_order(clusters.centers[last][row], lists.items, 10)
        for rank, row in enumerate(order)
    ]


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw figures 10 and 11."""
    figure.set_size_inches(10, 3.8)
    left, right = figure.subplots(1, 2)
    left.semilogy(np.arange(1, len(outcome.series["sizes"][0]) + 1), outcome.series["sizes"][0], ".")
    left.set(xlabel="group", ylabel="size")
    for name, label in (("theta", "all groups"), ("small", "small groups"), ("large", "large groups")):
        for number, theta in enumerate(outcome.series[name]):
            right.plot(
                np.arange(1, len(theta) + 1),
                theta,
                color={"theta": "black", "small": "tab:blue", "large": "tab:orange"}[name],
                label=label if number == 0 else None,
            )
    right.set(xlabel="rank", ylabel="θ")
    right.legend()


def _mean(runs: list[list[float]]) -> str:
    """Average over the runs that had such clusters."""
    found = [run for run in runs if np.isfinite(run).all()]
    return _numbers(np.mean(found, axis=0)) if found else "there are none"


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
