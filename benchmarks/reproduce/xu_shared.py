"""What the reproductions of Xu, Alvo & Yu (2018) share: simulated data, estimators, divergences, pictures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.timing import timed
from permix import Angle, AngleMixture, Rankings
from permix.angle.components import AnglePrior
from permix.angle.direct import Evidence, resample
from permix.angle.parameters import AngleParameters
from permix.distributions.angle.bessel_jit import bessel_ratio
from permix.distributions.angle.scores import standard_scores
from permix.errors import PermixWarning

# Priors of κ. The paper's are "small numbers close to zero": 0.1, as its table 2 gives away. SIR has the
# conjugate prior (equation 4) with ν₀ close to zero, which is flat in κ.
SMALL_PRIOR = {"prior_shape": 1e-3, "prior_rate": 1e-3}
PAPER_PRIOR = {"prior_shape": 0.1, "prior_rate": 0.1}
FLAT_PRIOR = {"prior_shape": 1.0, "prior_rate": 1e-3}
# Models are compared by the exact normalizer up to so many items, above by the approximation.
EXACT_ITEMS = 20


@contextmanager
def quiet() -> Iterator[None]:
    """Keep back the library's warnings, where what they warn of is the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        yield


def model(inference: str, n_components: int = 1, seed: int = 0, **settings: Any) -> AngleMixture:
    """Return a model with the paper's priors (EM has none) and normalizer, unless told otherwise."""
    prior = {} if inference == "em" else PAPER_PRIOR
    wanted: dict[str, Any] = {"normalizer": "vmf", **prior, **settings}
    return AngleMixture(
        n_components,
        inference=inference,
        random_state=seed,
        progress=False,
        **wanted,  # type: ignore[arg-type]
    )


def random_direction(n_items: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a unit vector with sum zero."""
    direction = rng.normal(size=n_items)
    direction -= direction.mean()
    return np.asarray(direction / np.linalg.norm(direction))


def simulated(n_items: int, n: int, concentration: float, rng: np.random.Generator) -> tuple[Angle, Rankings]:
    """Draw a direction, and rankings around it."""
    normalizer = "exact" if n_items <= EXACT_ITEMS else "vmf"
    truth = Angle(random_direction(n_items, rng), concentration, normalizer)  # type: ignore[arg-type]
    return truth, truth.sample(n, random_state=rng)


def divergence(truth: Angle, tilts: np.ndarray) -> float:
    """Return the Kullback-Leibler divergence of the model with these tilts κθ from the true one.

    KL = (η₀ - η)'E₀[y] - ln Z₀ + ln Z needs no enumeration: by the exact normalizer up to 20 items.
    """
    concentration = float(np.linalg.norm(tilts))
    if concentration == 0.0:
        from math import lgamma

        log_sum = lgamma(truth.n_items + 1.0)
    else:
        estimated = Angle(tilts, concentration, truth.normalizer, truth.items)  # type: ignore[arg-type]
        log_sum = estimated.log_normalizer()
    return float((truth.tilts - tilts) @ truth.mean_scores() - truth.log_normalizer() + log_sum)


def evidence_of(rankings: Rankings, prior_of: dict[str, float] = PAPER_PRIOR) -> Evidence:
    """Return what full rankings say about one component."""
    scores = standard_scores(rankings.n_items)
    sums = np.zeros(rankings.n_items)
    np.add.at(sums, rankings.orders, rankings.counts[:, None] * scores[None, :])
    prior = AnglePrior.of(AngleParameters(inference="sir", **prior_of), rankings.items)  # type: ignore[arg-type]
    return Evidence.of(sums, float(rankings.n_agents), prior, scores)


def gamma_of(mean: float, variance: float) -> tuple[float, float]:
    """Return shape and rate of a Gamma distribution."""
    return mean * mean / variance, mean / variance


def paper_sir(
    rankings: Rankings,
    variance: float,
    rng: np.random.Generator,
    n_draws: int = 1000,
    n_candidates: int = 10_000,
) -> tuple[float, np.ndarray, float]:
    """Return E[κ] and draws of κ by the paper's SIR, whose proposal has mean κ̂ and a guessed variance.

    The third value is what the candidates are worth. The prior is flat in κ.
    """
    evidence = evidence_of(rankings, FLAT_PRIOR)
    mle = float(model("em").fit(rankings).concentrations_[0])
    drawn = resample(evidence, n_draws, n_candidates, rng, gamma_of(mle, variance))
    return float(drawn.kappas.mean()), drawn.kappas, drawn.effective


def shrunk(concentrations: np.ndarray, probabilities: np.ndarray, evidence: Evidence) -> np.ndarray:
    """Return E[κθ] = E[κ A(βκ)] m, the posterior mean of the tilts."""
    ratio = bessel_ratio(evidence.order, evidence.length * concentrations)
    return float(probabilities @ (concentrations * ratio)) * evidence.direction


def estimates(
    rankings: Rankings, variance: float, rng: np.random.Generator
) -> dict[str, tuple[float, list[np.ndarray]]]:
    """Seconds and tilts by every method: with E[κ] and m, and, for posteriors, E[κθ]."""
    evidence = evidence_of(rankings)

    def sir_of_paper() -> tuple[float, np.ndarray, float]:
        mean, kappas, effective = paper_sir(rankings, variance, rng)
        evidence.directions_given(kappas, rng)
        return mean, kappas, effective

    def both(kappas: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        return [float(kappas @ weights) * evidence.direction, shrunk(kappas, weights, evidence)]

    found: dict[str, tuple[float, list[np.ndarray]]] = {}
    seconds, mle = timed(model("em").fit, rankings)
    found["MLE"] = seconds, [mle.concentrations_[0] * mle.directions_[0]]
    seconds, (_, kappas, _) = timed(sir_of_paper)
    found["SIR, the paper's proposal"] = seconds, both(kappas, np.full(len(kappas), 1.0 / len(kappas)))
    seconds, sir = timed(model("sir").fit, rankings)
    kappas = np.asarray(sir.posterior_["posterior"]["concentrations"]).ravel()
    found["SIR, ours"] = seconds, both(kappas, np.full(len(kappas), 1.0 / len(kappas)))
    seconds, vi = timed(model("vi").fit, rankings)
    q = vi._fit.variational
    from permix.distributions.angle.gamma_jit import gamma_nodes

    nodes, weights = gamma_nodes(q.shapes[0], q.rates[0])
    found["VI"] = seconds, both(nodes, weights / weights.sum())
    nodes, probabilities, _ = evidence.grid()
    found["quadrature"] = float("nan"), both(nodes, probabilities)
    # What the prior does, apart from the proposal of SIR.
    nodes, probabilities, _ = evidence_of(rankings, FLAT_PRIOR).grid()
    found["quadrature, flat prior"] = float("nan"), both(nodes, probabilities)
    found["uniform"] = float("nan"), [np.zeros(rankings.n_items)]
    return found


def all_rankings(n_items: int) -> Rankings:
    """Return all n! rankings."""
    from itertools import permutations

    return Rankings.from_orders(np.array(list(permutations(range(n_items))), dtype=np.int32))


def draw_lines(
    figure: Any,
    panels: list[tuple[str, str, str, dict[str, tuple[list[float], list[float]]]]],
    logarithmic: bool = False,
) -> None:
    """Draw panels: (title, name of x, name of y, curves by name)."""
    figure.set_size_inches(5 * len(panels), 3.8)
    for axis, (title, x_name, y_name, curves) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        for name, (x, y) in curves.items():
            axis.plot(x, y, marker=".", label=name)
        axis.set(title=title, xlabel=x_name, ylabel=y_name)
        if logarithmic:
            axis.set_yscale("log")
        axis.legend(fontsize=7)


def mean_of(runs: list[dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> tuple[float, float]:
    """Return mean and standard error over repetitions."""
    values = np.array([value(run) for run in runs])
    spread = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), spread
