"""Figure 3 k-l of Liang, Jordan & Taskar (2007): autocorrelation of two statistics after burn-in.

1000 MNIST digits reduced to two dimensions; permutations are drawn uniformly, so that all four samplers
leave the posterior invariant. Statistics: number of clusters (k) and size of the largest (l), lags 0 to 90.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.liang_data import digits
from benchmarks.reproduce.liang_runs import COLORS, Problem
from benchmarks.reproduce.liang_split_merge import PublishedSplitMerge
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from permix.convergence import ess_bulk
from permix.families import Gaussian
from permix.moves import Concentration, Cycle, Gibbs, Move, Permutation, SplitMerge
from permix.moves.start import seat_all_data
from permix.moves.state import MixtureState

SAMPLERS = {
    "Gibbs": (Gibbs,),
    "Gibbs+SplitMerge": (Gibbs, PublishedSplitMerge),
    "Gibbs+Perm": (Gibbs, Permutation),
    "Gibbs+SplitMerge+Perm": (Gibbs, PublishedSplitMerge, Permutation),
    "Gibbs+permix SplitMerge": (Gibbs, SplitMerge),
    "Gibbs+permix SplitMerge+Perm": (Gibbs, SplitMerge, Permutation),
}
STATISTICS = {"k": "number of groups", "l": "largest group size"}
N_TIMED = 50  # steps that tell what one costs
PAPER = {"k": "little difference", "l": "those with split-merge mix faster"}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default. It does not say how long its chains were."""

    samplers: tuple[str, ...] = tuple(SAMPLERS)
    n_images: int = 1000
    n_features: int = 2
    noise_scale: float = 4.0
    prior_scale: float = 10.0
    n_runs: int = 5
    n_burn_in: int = 500
    n_turns: int = 20_000
    turn_milliseconds: float = 1.0
    last_lag: int = 90
    seed: int = 0


QUICK = Sizes(n_runs=2, n_turns=4000)


@dataclass(frozen=True)
class Chain:
    """What was recorded after every turn, and CPU seconds for all of them."""

    n_clusters: np.ndarray
    largest: np.ndarray
    seconds: float

    def statistic(self, panel: str) -> np.ndarray:
        """The statistic of a panel."""
        return self.n_clusters if panel == "k" else self.largest


def chain(problem: Problem, name: str, sizes: Sizes, seed: int) -> Chain:
    """Burn in, then record after every turn.

    A turn is as many steps of one move as take a given CPU time; moves take turns, as the paper interleaves
    them, and lags are comparable in time. How many is measured once, after burn-in, and stays
    fixed: a schedule that followed the chain would change what it converges to.
    """
    rng = np.random.default_rng(seed)
    state = problem.state()
    seat_all_data(rng, state, "sequential")
    moves, concentration = [kind() for kind in SAMPLERS[name]], Concentration()
    burn_in = Cycle([*moves, concentration]).during_burn_in()
    for _ in range(sizes.n_burn_in):
        burn_in.step(rng, state)
    costs = np.array([seconds_per_step(move, rng, state) for move in moves])
    repeats = np.maximum(np.rint(sizes.turn_milliseconds / 1e3 / costs), 1).astype(int)
    n_clusters, largest = np.empty(sizes.n_turns), np.empty(sizes.n_turns)
    start = time.process_time()
    for turn in range(sizes.n_turns):
        place = turn % len(moves)
        for _ in range(repeats[place]):
            moves[place].step(rng, state)
        concentration.step(rng, state)
        n_clusters[turn] = state.n_clusters
        largest[turn] = state.sizes_in_use.max()
    return Chain(n_clusters, largest, time.process_time() - start)


def seconds_per_step(move: Move, rng: np.random.Generator, state: MixtureState) -> float:
    """CPU seconds of a step, averaged over a few."""
    start = time.process_time()
    for _ in range(N_TIMED):
        move.step(rng, state)
    return max((time.process_time() - start) / N_TIMED, 1e-9)


def autocorrelation(values: np.ndarray, last_lag: int) -> np.ndarray:
    """Footnote 7 of the paper, lags 0 to ``last_lag``; one where the statistic never changes."""
    n = len(values)
    centered = values - values.mean()
    variance = float(np.mean(centered**2))
    if variance == 0.0:
        return np.ones(last_lag + 1)
    products = [float(centered[: n - lag] @ centered[lag:]) / (n - lag - 1) for lag in range(last_lag + 1)]
    return np.array(products) / variance


def run(sizes: Sizes) -> Outcome:
    """Run all samplers and compare autocorrelations."""
    data = digits(sizes.n_features, sizes.n_images, sizes.seed)
    problem = Problem(Gaussian(sizes.noise_scale, 0.0, sizes.prior_scale), data)
    lags = [lag for lag in (1, 10, 30, 60, 90) if lag <= sizes.last_lag]
    series: dict[str, Any] = {panel: {} for panel in STATISTICS}
    rows: dict[str, list[list[Any]]] = {panel: [] for panel in STATISTICS}
    for name in sizes.samplers:
        tell(name)
        chain(problem, name, Sizes(n_burn_in=2, n_turns=6), 0)  # compile
        runs = [chain(problem, name, sizes, sizes.seed + run) for run in range(sizes.n_runs)]
        for panel in STATISTICS:
            values = np.array([run.statistic(panel) for run in runs])
            found = np.array([autocorrelation(row, sizes.last_lag) for row in values])
            series[panel][name] = [
                found.min(axis=0).tolist(),
                found.mean(axis=0).tolist(),
                found.max(axis=0).tolist(),
            ]
            seconds = sum(run.seconds for run in runs)
            rows[panel].append(
                [
                    f"({panel}) {STATISTICS[panel]}" if not rows[panel] else "",
                    PAPER[panel] if not rows[panel] else "",
                    name,
                    *[f"{found.mean(axis=0)[lag]:.3f}" for lag in lags],
                    f"{values.mean():.2f} ± {values.mean(axis=1).std():.2f}",
                    f"{ess_bulk(values) / seconds:.0f}",
                ]
            )
    return Outcome(
        f"Figure 3 k-l: autocorrelation, {sizes.n_images:,} digits in {sizes.n_features} dimensions",
        ["panel", "paper", "sampler", *[f"lag {lag}" for lag in lags], "mean", "independent draws a second"],
        rows["k"] + rows["l"],
        [
            f"A lag is one turn: as many steps of one move as take {sizes.turn_milliseconds:g} ms of CPU "
            "time, at least one. The paper does not say what its lags count.",
            "All leave the posterior invariant, so that their means must agree; ± is the standard "
            "deviation over runs.",
            "Covariance 16 I and standardized pixels as for figure 3 i; the paper does not say.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw both panels."""
    figure.set_size_inches(9, 3.6)
    for axis, (panel, samplers) in zip(figure.subplots(1, 2), outcome.series.items(), strict=True):
        for name, (low, middle, high) in samplers.items():
            axis.plot(middle, color=COLORS[name], label=name, linewidth=1.2)
            axis.fill_between(range(len(low)), low, high, color=COLORS[name], alpha=0.2, linewidth=0)
        axis.set(
            title=f"({panel}) MNIST: {STATISTICS[panel]}",
            xlabel="lag",
            ylabel="autocorrelation",
            ylim=(-0.05, 1),
        )
    axis.legend(fontsize="small")


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
