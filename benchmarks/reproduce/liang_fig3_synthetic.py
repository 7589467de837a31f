"""Figure 3 a-h of Liang, Jordan & Taskar (2007): log probability against seconds, Gaussian clusters.

10,000 points, means from N(0, 2), unit noise, N(0, 100) assumed: (a-c) 40 clusters in 40 dimensions from
one, 40 and 300 initial clusters; (d-f) 20, 80, 160 clusters in 40 dimensions and (g-h) 40 clusters in 10
and 80 dimensions, from sequential prediction. Five runs each, of the start and of the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.liang_data import gaussian_clusters
from benchmarks.reproduce.liang_runs import (
    COLUMNS,
    REMARKS,
    SAMPLERS,
    Problem,
    curves,
    draw_curves,
    summarize,
    trace_all,
)
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from permix.families import Gaussian
from permix.moves.start import Start


@dataclass(frozen=True)
class Panel:
    """One panel, and what its axes say: the paper gives no numbers."""

    n_clusters: int
    n_features: int
    init: Start
    paper: str

    def __str__(self) -> str:
        start = f"from {self.init}" if isinstance(self.init, int) else "sequential"
        return f"{self.n_clusters} groups, {self.n_features}-d, {start}"


PANELS = {
    "a": Panel(40, 40, 1, "axis to -900,000; 250 s"),
    "b": Panel(40, 40, 40, "axis -650,000 to -610,000; 250 s"),
    "c": Panel(40, 40, 300, "axis -615,000 to -611,000; 250 s"),
    "d": Panel(20, 40, "sequential", "axis up to -600,000; 140 s"),
    "e": Panel(80, 40, "sequential", "axis up to -650,000; 600 s"),
    "f": Panel(160, 40, "sequential", "axis up to -650,000; 1200 s"),
    "g": Panel(40, 10, "sequential", "axis -800,000 to -650,000; 250 s"),
    "h": Panel(40, 80, "sequential", "axis -850,000 to -600,000; 250 s"),
}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default, but for the seconds."""

    panels: tuple[str, ...] = tuple(PANELS)
    samplers: tuple[str, ...] = tuple(SAMPLERS)
    n_points: int = 10_000
    n_runs: int = 5
    seconds: float = 5.0
    mean_variance: float = 2.0
    prior_scale: float = 10.0
    seed: int = 0


QUICK = Sizes(panels=("a", "d"), n_points=2000, n_runs=2, seconds=2.0)


def run(sizes: Sizes) -> Outcome:
    """Run all samplers on all panels."""
    rows: list[list[Any]] = []
    series: dict[str, Any] = {}
    for letter in sizes.panels:
        panel = PANELS[letter]
        made = gaussian_clusters(
            sizes.n_points, panel.n_features, panel.n_clusters, sizes.seed, sizes.mean_variance
        )
        problem = Problem(Gaussian(1.0, 0.0, sizes.prior_scale), made.data)
        truth = problem.of_labels(made.labels)
        tell(f"({letter}) {panel}")
        seeds = range(sizes.seed, sizes.seed + sizes.n_runs)
        runs = trace_all(problem, sizes.samplers, panel.init, sizes.seconds, seeds)
        series[f"({letter}) {panel}"] = {"truth": truth, **curves(runs, sizes.seconds)}
        for place, row in enumerate(summarize(runs)):
            first = [f"({letter}) {panel}", panel.paper, f"{truth:,.0f}"] if place == 0 else ["", "", ""]
            rows.append(first + row)
    return Outcome(
        "Figure 3 a-h: log probability after burn-in, Gaussian groups",
        ["panel", "paper", "true groups have", *COLUMNS],
        rows,
        [
            *REMARKS,
            "N(0, 2) and N(0, 100) are read as variances: one group then has -945,000 in panel (a) and the "
            "true groups -612,300 in (a) to (c), as the axes ask. Standard deviations would give "
            "-1,323,000 and -616,000.",
            "The axes of (g) and (h) cannot belong to 10,000 points in 10 and 80 dimensions, which have "
            "about -180,000 and -1,187,000; they lie where 40 dimensions do.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's panels with logarithmic time; dots: the true clusters."""
    n_rows = (len(outcome.series) + 2) // 3
    n_columns = min(3, len(outcome.series))
    figure.set_size_inches(4.2 * n_columns, 3.0 * n_rows)
    axes = np.atleast_1d(figure.subplots(n_rows, n_columns, squeeze=False)).ravel()
    for axis, (name, panel) in zip(axes, outcome.series.items(), strict=False):
        draw_curves(axis, panel, name)
        axis.axhline(panel["truth"], color="black", linewidth=0.8, linestyle=":")
    for axis in axes[len(outcome.series) :]:
        axis.set_axis_off()
    # The last place of a full figure is empty.
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize="small", loc="lower right")


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
