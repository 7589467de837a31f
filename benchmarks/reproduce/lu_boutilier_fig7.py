"""Figure 7 of Lu & Boutilier (2014): MovieLens, log-likelihood by number of components.

The 200 most rated films of MovieLens 1M; ratings 1 to 5 as preferences, ties open. 3986 users train, 1994
validate. For each K = 1..20 the best of 20 EM runs. The paper shows a plot only: average log-likelihoods, by
importance sampling with K·T = 120 draws of AMP, on an axis from -51.4 to -49.6, best at K = 10 and K = 5.
One EM run took the authors 15 to 20 minutes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.likelihoods import monte_carlo_log_likelihoods, particle_log_likelihoods
from benchmarks.reproduce.movielens import N_TRAIN, N_VALIDATION, films
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters

TOTAL_DRAWS = 120  # K·T


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_components: tuple[int, ...] = tuple(range(1, 21))
    n_init: int = 20
    n_train: int = N_TRAIN
    n_validation: int = N_VALIDATION
    n_particles: int = 64
    seed: int = 0


QUICK = Sizes(n_components=(1, 5, 10), n_init=2, n_train=1000, n_validation=500, n_particles=32)


def run(sizes: Sizes) -> Outcome:
    """Fit every K; the paper's and the better log-likelihood on both parts."""
    data = films(sizes.n_train, sizes.n_validation, sizes.seed)
    parts = {"train": data.train, "validation": data.validation}
    rng = np.random.default_rng(sizes.seed)
    paper: dict[str, list[float]] = {"train": [], "validation": []}
    better: dict[str, list[float]] = {"train": [], "validation": []}
    rows: list[list[Any]] = []
    for k in sizes.n_components:
        start = time.perf_counter()
        settings = MallowsParameters(
            n_components=k, n_init=sizes.n_init, random_state=sizes.seed + k, progress=False
        )
        components = fit_mallows(data.train, settings).components
        seconds = (time.perf_counter() - start) / sizes.n_init
        for name, part in parts.items():
            draws = max(TOTAL_DRAWS // k, 1)
            paper[name].append(float(monte_carlo_log_likelihoods(part, components, draws, rng).mean()))
            better[name].append(
                float(particle_log_likelihoods(part, components, sizes.n_particles, rng).mean())
            )
        spread = f"{components.dispersions.min():.3f}-{components.dispersions.max():.3f}"
        numbers = [f"{line[name][-1]:.2f}" for line in (paper, better) for name in ("validation", "train")]
        rows.append([k, "-51.4 to -49.6", *numbers, spread, f"{seconds:.1f}"])
        tell(f"K = {k}: {numbers[0]} on validation, {seconds:.1f} seconds per start")
    best = {
        name: sizes.n_components[int(np.argmax(line["validation"]))]
        for name, line in (("the paper's estimate", paper), ("the better one", better))
    }
    return Outcome(
        "Figure 7: MovieLens, average log-likelihood of users",
        [
            "K",
            "paper's axis",
            "validation, K·T=120",
            "train, K·T=120",
            "validation",
            "train",
            "φ",
            "seconds per start",
        ],
        rows,
        [
            f"Best on validation: {', '.join(f'K = {k} by {name}' for name, k in best.items())}; the "
            "paper: K = 10 and K = 5.",
            "The columns K·T=120 are importance sampling as in the paper, which is too low, the more so "
            "the fewer draws T = 120/K there are; the next two are sequential Monte Carlo with "
            f"{sizes.n_particles} particles for each user and component.",
            data.remark,
            "One EM run took the authors 15-20 minutes (two cores, C++).",
        ],
        {"n_components": list(sizes.n_components), "K·T = 120": paper, "sequential Monte Carlo": better},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's plot, and ours beside it."""
    figure.set_size_inches(10, 4.2)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, name in zip(axes, ("K·T = 120", "sequential Monte Carlo"), strict=True):
        for part, values in outcome.series[name].items():
            axis.plot(outcome.series["n_components"], values, marker=".", label=part)
        axis.set_title(name)
        axis.set_xlabel("groups")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.legend()
    axes[0].set_ylabel("average log-likelihood")


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
