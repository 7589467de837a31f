"""Figure 9 of Xu, Alvo & Yu (2018): incomplete rankings, k of the items dropped at random from every ranking.

κ = 1; t = 10 with N = 500 and 1000, t = 20 with N = 500, k up to t - 2; Gibbs sampling with the parameters
by SIR, variational inference and quadrature. Divergence of the estimated model from the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.xu_shared import divergence, draw_lines, mean_of, model, quiet, simulated
from benchmarks.timing import timed
from permix.data.rankings import Rankings

WAYS = ("sir", "vi", "quadrature")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default (it does not give the number of draws)."""

    n_items: tuple[int, ...] = (10, 10, 20)
    n_rankings: tuple[int, ...] = (500, 1000, 500)
    step: int = 1
    concentration: float = 1.0
    n_draws: int = 1000
    n_burn_in: int = 300
    n_repetitions: int = 10
    seed: int = 0


QUICK = Sizes(step=3, n_draws=200, n_burn_in=100, n_repetitions=2)


def dropped(rankings: Rankings, k: int, rng: np.random.Generator) -> Rankings:
    """Drop k items from every ranking at random; the rest keeps its order."""
    n, t = rankings.orders.shape
    kept = rng.random((n, t)).argsort(axis=1) >= k  # by place in the ordering
    orders = np.asarray(rankings.orders)[kept].reshape(n, t - k)
    return Rankings.from_orders(orders, items=rankings.items, unlisted="unknown" if k else "below")


def measure(t: int, n: int, k: int, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
    """Return time and divergence by every way on one data set."""
    truth, rankings = simulated(t, n, sizes.concentration, rng)
    incomplete = dropped(rankings, k, rng)
    seed = int(rng.integers(2**31))
    found = {}
    # Only where items are missing are there chains; of full rankings draws are independent, and VI climbs.
    chains = {"n_draws": sizes.n_draws, "n_burn_in": sizes.n_burn_in, "n_chains": 1} if k else {}
    for way in WAYS:
        with quiet():
            seconds, fitted = timed(model(way, seed=seed, **chains).fit, incomplete)
        posterior = fitted._fit.posterior
        mean = (posterior.concentrations[..., None] * posterior.directions).mean(axis=(0, 1))[0]
        found[way] = {
            "kld": divergence(truth, fitted.concentrations_[0] * fitted.directions_[0]),
            "shrunk": divergence(truth, mean),
            "seconds": seconds,
        }
    return found


def run(sizes: Sizes) -> Outcome:
    """Measure over the number of dropped items."""
    rng = np.random.default_rng(sizes.seed)
    rows: list[list[Any]] = []
    series: dict[str, Any] = {}
    for t, n in zip(sizes.n_items, sizes.n_rankings, strict=True):
        for k in sorted({*range(0, t - 1, sizes.step), t - 2}):
            tell(f"t = {t}, N = {n}, {k} missing")
            runs = [measure(t, n, k, sizes, rng) for _ in range(sizes.n_repetitions)]
            row: list[Any] = [t, n, k]
            for value in ("kld", "shrunk", "seconds"):
                for way in WAYS:
                    mean, _ = mean_of(runs, lambda run, way=way, value=value: run[way][value])
                    row.append(f"{mean:.2f}" if value == "seconds" else f"{mean:.4f}")
                    if value == "kld":
                        series.setdefault(f"t = {t}, N = {n}", {}).setdefault(way, []).append((k, mean))
            rows.append(row)
    return Outcome(
        f"Figure 9: KLD by the number of missing items, means over {sizes.n_repetitions} data sets",
        [
            "t",
            "N",
            "missing",
            *WAYS,
            *(f"{way}, E[κθ]" for way in WAYS),
            *(f"s: {way}" for way in WAYS),
        ],
        rows,
        [
            "First three: posterior means of κ and direction; then the posterior mean of κθ. Seconds of "
            "one chain of "
            f"{sizes.n_draws + sizes.n_burn_in} sweeps.",
            "In the paper VI is better with few missing items and SIR with many. SIR and quadrature draw "
            "from the same posterior, VI from one near it.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw figure 9."""
    panels = [
        (
            title,
            "missing items",
            "KLD",
            {way: tuple(map(list, zip(*points, strict=True))) for way, points in curves.items()},
        )
        for title, curves in outcome.series.items()
    ]
    draw_lines(figure, panels)  # type: ignore[arg-type]


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
