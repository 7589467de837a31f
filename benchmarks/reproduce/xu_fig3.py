"""Figures 3 and 15 of Xu, Alvo & Yu (2018): the posterior by SIR, quadrature and variational inference.

t = 3 with N = 20 and 100, κ = 1 and θ = (-0.71, 0, 0.71); t = 3 and 5 with N up to 200 (appendix D). The
symmetric Kullback-Leibler divergence between the posteriors of κ is 0.45 (N = 20) and 0.44 (N = 100) in the
paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.report import Outcome, run_from_command_line
from benchmarks.reproduce.xu_shared import FLAT_PRIOR, PAPER_PRIOR, evidence_of, model, paper_sir, quiet
from permix import Angle

PAPER = {(3, 20): 0.45, (3, 100): 0.44}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_items: tuple[int, ...] = (3, 3, 3, 5, 5, 5)
    n_rankings: tuple[int, ...] = (20, 100, 200, 20, 100, 200)
    concentration: float = 1.0
    n_draws: int = 10_000
    n_candidates: int = 100_000
    variance: float = 0.2
    n_data_sets: int = 50
    seed: int = 0


QUICK = Sizes(n_draws=2000, n_candidates=20_000, n_data_sets=10)


def gamma_log_density(x: np.ndarray, shape: float, rate: float) -> np.ndarray:
    """Return ln of a Gamma density."""
    from math import lgamma

    return np.asarray(shape * np.log(rate) - lgamma(shape) + (shape - 1.0) * np.log(x) - rate * x)


def symmetric(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """Return KL(p, q) + KL(q, p) of two log-densities on a grid."""
    p, q = p - p.max(), q - q.max()
    p = p - np.log(np.trapezoid(np.exp(p), x))
    q = q - np.log(np.trapezoid(np.exp(q), x))
    return float(np.trapezoid((np.exp(p) - np.exp(q)) * (p - q), x))


def histogram_divergence(a: np.ndarray, b: np.ndarray, n_bins: int = 20) -> float:
    """Return the same between draws, as from a histogram (half a draw added to every bin)."""
    edges = np.linspace(min(a.min(), b.min()), max(a.max(), b.max()), n_bins + 1)
    p, q = (np.histogram(draws, edges)[0] + 0.5 for draws in (a, b))
    p, q = p / p.sum(), q / q.sum()
    return float(((p - q) * np.log(p / q)).sum())


def measure(n_items: int, n: int, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
    """Compare the ways on one data set."""
    direction = np.arange(n_items) - (n_items - 1) / 2.0
    rankings = Angle(direction, sizes.concentration, "exact").sample(n, random_state=rng)
    evidence = evidence_of(rankings, FLAT_PRIOR)
    nodes, probabilities, _ = evidence.grid()
    mean = float(nodes @ probabilities)
    sd = float(np.sqrt(probabilities @ (nodes - mean) ** 2))
    x = np.linspace(max(1e-6, mean - 12 * sd), min(mean + 12 * sd, 0.999999 * evidence.cap), 20_000)
    exact = evidence.log_density(x)
    found: dict[str, Any] = {"mean": mean, "sd": sd}
    ways = {
        "paper": ("published", PAPER_PRIOR),
        "published": ("published", FLAT_PRIOR),
        "tight": ("tight", FLAT_PRIOR),
    }
    for name, (bound, prior) in ways.items():
        with quiet():
            q = model("vi", bound=bound, **prior).fit(rankings)._fit.variational
        a, b = float(q.shapes[0]), float(q.rates[0])
        found[name] = symmetric(x, exact, gamma_log_density(x, a, b))
        found[f"{name} mean"], found[f"{name} sd"] = a / b, np.sqrt(a) / b
        found[f"{name} draws"] = rng.gamma(a, 1.0 / b, size=sizes.n_draws)
    _, kappas, effective = paper_sir(rankings, sizes.variance, rng, sizes.n_draws, sizes.n_candidates)
    found |= {"sir draws": kappas, "sir mean": kappas.mean(), "sir sd": kappas.std(), "effective": effective}
    found["histogram"] = histogram_divergence(kappas, found["paper draws"])
    thetas = evidence.directions_given(kappas[:1000], rng)
    others = evidence.directions_given(found["tight draws"][:1000], rng)
    found["theta"] = float(np.abs(thetas.mean(axis=0) - others.mean(axis=0)).max())
    found["theta sd"] = float(np.abs(thetas.std(axis=0) / others.std(axis=0) - 1.0).max())
    return found


def run(sizes: Sizes) -> Outcome:
    """Measure every setting over several data sets; the picture shows the first of each."""
    rng = np.random.default_rng(sizes.seed)
    rows: list[list[Any]] = []
    series: dict[str, Any] = {}
    for t, n in zip(sizes.n_items, sizes.n_rankings, strict=True):
        runs = [measure(t, n, sizes, rng) for _ in range(sizes.n_data_sets)]

        def typical(name: str, runs: list[dict[str, Any]] = runs) -> float:
            return float(np.median([found[name] for found in runs]))

        rows.append(
            [
                t,
                n,
                PAPER.get((t, n), ""),
                f"{typical('paper'):.2g}",
                f"{typical('histogram'):.2f}",
                f"{typical('published'):.2g}",
                f"{typical('tight'):.4f}",
                f"{typical('mean'):.3f}, {typical('sd'):.3f}",
                f"{typical('sir mean'):.3f}, {typical('sir sd'):.3f}",
                f"{typical('published mean'):.3f}, {typical('published sd'):.3f}",
                f"{typical('tight mean'):.3f}, {typical('tight sd'):.3f}",
                f"{typical('theta'):.3f}",
            ]
        )
        series[f"t = {t}, N = {n}"] = {
            "SIR": runs[0]["sir draws"].tolist(),
            "VI, published bound": runs[0]["published draws"].tolist(),
            "VI, tight bound": runs[0]["tight draws"].tolist(),
        }
    return Outcome(
        f"Figures 3 and 15: posterior of κ, medians over {sizes.n_data_sets} data sets",
        [
            "t",
            "N",
            "paper: symmetric KLD",
            "as the paper",
            "same, histograms",
            "published bound",
            "tight bound",
            "κ by quadrature",
            "SIR of the paper",
            "VI published",
            "VI tight",
            "θ: SIR - VI",
        ],
        rows,
        [
            "Symmetric KLD: KL(p, q) + KL(q, p) of the posteriors of κ, p by quadrature with a flat prior; "
            "'as the paper': VI with "
            "the published bound and a₀ = b₀ = 0.1; 'histograms': the same between draws of SIR and of VI "
            "in 20 bins; "
            "'published' and 'tight bound': both sides with the flat prior. κ: mean and standard "
            "deviation. θ: largest difference of posterior means.",
            f"SIR as in the paper: Gamma proposal with mean κ̂ and variance {sizes.variance}.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw histograms of κ."""
    figure.set_size_inches(4 * len(outcome.series), 3.4)
    for axis, (title, draws) in zip(
        figure.subplots(1, len(outcome.series), squeeze=False)[0], outcome.series.items(), strict=True
    ):
        for name, values in draws.items():
            axis.hist(values, bins=60, density=True, histtype="step", label=name)
        axis.set(title=title, xlabel="κ")
        axis.legend(fontsize=6)


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
