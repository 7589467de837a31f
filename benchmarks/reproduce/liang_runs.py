"""Chains of Liang, Jordan & Taskar (2007), section 5.1: log probability against seconds for four samplers.

"For the samplers that use more than one type of move, we interleaved the moves, dividing the CPU time roughly
evenly among them": the move that has had least of it comes next. The concentration is drawn after each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.liang_split_merge import PublishedSplitMerge
from benchmarks.reproduce.report import tell
from permix.families import Family
from permix.moves import Concentration, Gibbs, Move, Projection, SplitMerge
from permix.moves.start import Start, seat_all_data
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma

# The paper's four, and two with permix's own split-merge in place of the published one. During burn-in
# "Perm" is the hill-climber along random projections (sections 4.2 and 5.1).
SAMPLERS = {
    "Gibbs": ("gibbs",),
    "Gibbs+SplitMerge": ("gibbs", "published split-merge"),
    "Gibbs+Perm": ("gibbs", "projection"),
    "Gibbs+SplitMerge+Perm": ("gibbs", "published split-merge", "projection"),
    "Gibbs+permix SplitMerge": ("gibbs", "split-merge"),
    "Gibbs+permix SplitMerge+Perm": ("gibbs", "split-merge", "projection"),
}
COLORS = dict(
    zip(SAMPLERS, ("tab:red", "tab:green", "tab:blue", "tab:purple", "olive", "black"), strict=True)
)
# Reached: within this share of the best log probability that any sampler had.
NEAR = 5e-4
# A chain is measured when the time spent has grown by this share.
RESOLUTION = 0.01
N_TIMES = 80


def moves_named(names: Sequence[str]) -> list[Move]:
    """Fresh moves."""
    known: dict[str, type[Move]] = {
        "gibbs": Gibbs,
        "published split-merge": PublishedSplitMerge,
        "split-merge": SplitMerge,
        "projection": Projection,
    }
    return [known[name]() for name in names]


@dataclass(frozen=True)
class Trace:
    """One chain: CPU seconds spent and what was reached from time to time, the start first."""

    seconds: np.ndarray
    log_probability: np.ndarray
    n_clusters: int

    @property
    def last(self) -> float:
        """Where it ended."""
        return float(self.log_probability[-1])

    def seconds_until(self, level: float) -> float:
        """CPU seconds until the level was first reached, infinite if it was not."""
        above = np.flatnonzero(self.log_probability >= level)
        return float(self.seconds[above[0]]) if above.size else np.inf

    def at(self, times: np.ndarray) -> np.ndarray:
        """Log probability at these times."""
        place = np.searchsorted(self.seconds, times, side="right") - 1
        return self.log_probability[np.maximum(place, 0)]


class Problem:
    """Data under a family, from which chains start; encoded once.

    Parameters
    ----------
    family : Family
    table : array or sparse matrix
    constant : float
        Added to log probabilities.
    """

    def __init__(self, family: Family, table: Any, constant: float = 0.0) -> None:
        self.family = family.resolve(table)
        self.data = self.family.encode(table)
        self.n = int(table.shape[0])
        self.constant = constant
        self.prior = DirichletProcess(Gamma(1.0, 1.0))
        self._empty_scores = self.state().empty_scores

    def state(self) -> MixtureState:
        """Return a state in which nothing is seated."""
        return MixtureState(self.family, self.data, self.n, self.prior, getattr(self, "_empty_scores", None))

    def log_probability(self, state: MixtureState) -> float:
        """Log of p(C, x), with the prior of the concentration."""
        return state.log_joint() + self.constant

    def of_labels(self, labels: np.ndarray) -> float:
        """Log probability of a given clustering, at the prior's mean concentration given its clusters."""
        state = self.state()
        state.set_labels(labels)
        state.concentration = max(state.n_clusters - 1, 1) / np.log(self.n)
        return self.log_probability(state)

    def trace(self, names: Sequence[str], init: Start, budget: float, seed: int) -> Trace:
        """Run one chain for so many CPU seconds; measuring is not counted, nor is the start."""
        rng = np.random.default_rng(seed)
        state = self.state()
        seat_all_data(rng, state, init)
        moves, concentration = moves_named(names), Concentration()
        spent = np.zeros(len(moves))
        seconds, reached = [0.0], [self.log_probability(state)]
        while spent.sum() < budget:
            turn = int(np.argmin(spent))
            start = time.process_time()
            moves[turn].step(rng, state)
            concentration.step(rng, state)
            spent[turn] += time.process_time() - start
            # The curve is drawn over logarithmic time; the log probability may cost more than a move.
            if (now := float(spent.sum())) > (1.0 + RESOLUTION) * seconds[-1]:
                seconds.append(now)
                reached.append(self.log_probability(state))
        seconds.append(float(spent.sum()))
        reached.append(self.log_probability(state))
        return Trace(np.array(seconds), np.array(reached), state.n_clusters)

    def compile(self, samplers: Sequence[str]) -> None:
        """Take every move once, so that compilation is not timed."""
        rng = np.random.default_rng(0)
        state = self.state()
        seat_all_data(rng, state, "sequential")
        for name in sorted({move for sampler in samplers for move in SAMPLERS[sampler]}):
            for move in (*moves_named([name]), Concentration()):
                move.step(rng, state)
        self.log_probability(state)


def trace_all(
    problem: Problem, samplers: Sequence[str], init: Start, budget: float, seeds: Sequence[int]
) -> dict[str, list[Trace]]:
    """Run every sampler with every seed."""
    problem.compile(samplers)
    runs = {}
    for name in samplers:
        tell(f"  {name}")
        runs[name] = [problem.trace(SAMPLERS[name], init, budget, seed) for seed in seeds]
    return runs


def summarize(runs: Mapping[str, Sequence[Trace]]) -> list[list[Any]]:
    """One row per sampler: where chains ended, clusters, seconds until near the best of all."""
    best = max(float(run.log_probability.max()) for traces in runs.values() for run in traces)
    rows = []
    for name, traces in runs.items():
        ends = [run.last for run in traces]
        reached = np.array([run.seconds_until(best - NEAR * abs(best)) for run in traces])
        median = float(np.median(reached))
        rows.append(
            [
                name,
                f"{np.median(ends):,.0f}",
                f"{min(ends):,.0f} … {max(ends):,.0f}",
                f"{np.median([run.n_clusters for run in traces]):.0f}",
                f"{median:.2f}" if np.isfinite(median) else "not",
                f"{int(np.isfinite(reached).sum())} of {len(traces)}",
            ]
        )
    return rows


COLUMNS = ["sampler", "ours: reached", "over runs", "groups", "s until near best", "runs there"]
REMARKS = [
    f"Near the best: within {NEAR:.2%} of the highest log probability that any run had. Seconds are of CPU "
    "time, without the start and without measuring; medians.",
    "Perm is the hill-climber along random projections, as in the paper's burn-in; it gets the same share of "
    "CPU time as each other move.",
    "SplitMerge draws pairs uniformly, as published; permix's own, below, proposes as many splits as merges "
    "and screens merges by their marginal likelihoods.",
]


def curves(runs: Mapping[str, Sequence[Trace]], budget: float) -> dict[str, Any]:
    """Lowest, median and highest log probability of each sampler on a common grid of times."""
    times = np.geomspace(budget / 1000.0, budget, N_TIMES)
    found: dict[str, Any] = {"seconds": times.tolist()}
    for name, traces in runs.items():
        values = np.array([run.at(times) for run in traces])
        found[name] = [
            values.min(axis=0).tolist(),
            np.median(values, axis=0).tolist(),
            values.max(axis=0).tolist(),
        ]
    return found


def draw_curves(axis: Any, panel: Mapping[str, Any], title: str) -> None:
    """Draw one panel of figure 3: medians, and the range over runs."""
    for name in SAMPLERS:
        if name in panel:
            low, middle, high = panel[name]
            axis.semilogx(panel["seconds"], middle, color=COLORS[name], label=name, linewidth=1.2)
            axis.fill_between(panel["seconds"], low, high, color=COLORS[name], alpha=0.2, linewidth=0)
    axis.set(title=title, xlabel="CPU seconds", ylabel="log probability")
    axis.title.set_fontsize("small")
