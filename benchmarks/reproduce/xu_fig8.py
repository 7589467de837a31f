"""Figure 8 of Xu, Alvo & Yu (2018): predictive densities against the exact one.

t = 5, κ = 1, N from 10 to 100: divergence of the variational predictive density (closed form of section
3.2, and by quadrature) and of the maximum-likelihood model from the exact predictive density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.xu_shared import (
    FLAT_PRIOR,
    all_rankings,
    draw_lines,
    mean_of,
    model,
    quiet,
    simulated,
)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_items: int = 5
    n_rankings: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    concentration: float = 1.0
    n_repetitions: int = 10
    n_draws: int = 2000
    seed: int = 0


QUICK = Sizes(n_rankings=(10, 20, 50, 100), n_repetitions=5, n_draws=1000)


def kl(p: np.ndarray, q: np.ndarray) -> float:
    """Return the divergence of q from p, both as logarithms; q is normalized first."""
    p, q = p - np.logaddexp.reduce(p), q - np.logaddexp.reduce(q)
    return float(np.exp(p) @ (p - q))


def measure(n: int, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
    """Return divergences on one data set."""
    _, rankings = simulated(sizes.n_items, n, sizes.concentration, rng)
    everything = all_rankings(sizes.n_items)
    seed = int(rng.integers(2**31))
    found: dict[str, Any] = {}
    with quiet():
        exact = model("quadrature", seed=seed, **FLAT_PRIOR).fit(rankings).score_samples(everything)
        true = model(
            "sir", seed=seed, normalizer="exact", n_draws=sizes.n_draws, n_burn_in=200, n_jobs=1, **FLAT_PRIOR
        ).fit(rankings)
        posterior = true._fit.posterior
        y = _scores(everything)
        flat = posterior.concentrations[..., None] * posterior.directions
        logs = y @ flat.reshape(-1, sizes.n_items).T
        logs -= np.logaddexp.reduce(logs, axis=0)
        truth = np.logaddexp.reduce(logs, axis=1) - np.log(logs.shape[1])
        vi = model("vi", **FLAT_PRIOR).fit(rankings)
        published = model("vi", bound="published", **FLAT_PRIOR).fit(rankings)
        mle = model("em").fit(rankings)
        found["sum"] = float(np.exp(vi.score_samples(everything)).sum())
        ways = {
            "VI, closed form": published.score_samples(everything, method="second-order"),
            "VI, quadrature": published.score_samples(everything),
            "VI, tight, closed form": vi.score_samples(everything, method="second-order"),
            "VI, tight, quadrature": vi.score_samples(everything),
            "MLE": mle.score_samples(everything),
        }
    found["kld"] = {name: kl(exact, value) for name, value in ways.items()}
    found["true"] = {name: kl(truth, value) for name, value in ways.items()} | {"exact": kl(truth, exact)}
    return found


def _scores(rankings: Any) -> np.ndarray:
    from permix.angle.data import AngleData

    return AngleData(rankings).dense()


def run(sizes: Sizes) -> Outcome:
    """Measure over N."""
    rng = np.random.default_rng(sizes.seed)
    rows: list[list[Any]] = []
    series: dict[str, Any] = {}
    for n in sizes.n_rankings:
        tell(f"N = {n}")
        runs = [measure(n, sizes, rng) for _ in range(sizes.n_repetitions)]
        row: list[Any] = [n]
        for name in runs[0]["kld"]:
            value, _ = mean_of(runs, lambda run, name=name: run["kld"][name])
            series.setdefault(name, []).append((n, value))
            row.append(f"{value:.5f}")
        for name in ("exact", "VI, tight, quadrature", "MLE"):
            row.append(f"{mean_of(runs, lambda run, name=name: run['true'][name])[0]:.5f}")
        row.append(f"{mean_of(runs, lambda run: run['sum'])[0]:.5f}")
        rows.append(row)
    return Outcome(
        f"Figure 8: KLD from the exact predictive density, t = {sizes.n_items}, means over "
        f"{sizes.n_repetitions}",
        [
            "N",
            "VI published, closed form",
            "VI published, quadrature",
            "VI tight, closed form",
            "VI tight, quadrature",
            "MLE",
            "exact normalizer: quadrature",
            "VI tight",
            "MLE ",
            "Σ of densities",
        ],
        rows,
        [
            "'Exact' is one quadrature, under the approximate normalizer as in the paper; the three "
            "columns after MLE "
            "compare with the posterior under the exact normalizer, from draws.",
            "All priors flat in κ. The paper gives curves only: both fall with N, MLE is far above VI at "
            "small N.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw figure 8."""
    curves = {name: tuple(map(list, zip(*points, strict=True))) for name, points in outcome.series.items()}
    draw_lines(figure, [("t = 5", "N", "KLD", curves)], logarithmic=True)  # type: ignore[list-item]


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
