"""Simulation-based calibration of mixtures of generalized Mallows models.

Partition, centers, decays and lists are drawn from the model. Then any quantity of parameters and lists has
for the truth a uniform rank among its values for the draws of an exact sampler (Talts et al. 2018). The
distance from the true center is no such quantity, since the truth is always nearest to itself: distances are
taken from a fixed ordering and from a list.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from permix import Rankings
from permix.dp_mallows.fit import start_state, sweep_move
from permix.dp_mallows.parameters import DPMallowsParameters
from tests.oracles.partitions import pitman_yor_rule, sequential_probability
from tests.reference import dp_mallows as reference
from tests.reference.permutations import kendall, stage_code

pytestmark = pytest.mark.slow


@dataclasses.dataclass(frozen=True)
class Settings:
    """The model, how many items each agent lists, and how long chains are."""

    n_items: int = 5
    lengths: tuple[int, ...] = (5, 3, 2, 5, 1, 4, 2, 3, 5, 2, 1, 3, 4, 2)
    concentration: float = 1.0
    discount: float = 0.0
    strength: float = 1.0
    rates: float | tuple[float, ...] = 1.0
    n_burn_in: int = 40
    n_draws: int = 19
    n_thin: int = 6

    def rate(self, stage: int) -> float:
        return self.rates[stage] if isinstance(self.rates, tuple) else self.rates


CASES = {
    "dirichlet process": Settings(),
    "pitman-yor": Settings(
        n_items=4,
        lengths=(4, 2, 1, 3, 2, 3, 4, 2, 1, 2, 3, 2),
        concentration=0.6,
        discount=0.3,
        strength=2.0,
        rates=(0.5, 1.0, 1.5),
    ),
}


class Draw(NamedTuple):
    """One state of a chain: labels by agent, and centers (best first) and decays by label."""

    labels: Any
    centers: Any
    theta: Any


DrawsOf = Callable[[str, list[tuple[int, ...]], Settings, np.random.Generator], Iterable[Draw]]


def reference_draws(
    sampler: str, rankings: list[tuple[int, ...]], settings: Settings, rng: np.random.Generator
) -> Iterable[Draw]:
    """Draws of a sampler in plain NumPy."""
    n_stages = max(map(len, (ranking[: settings.n_items - 1] for ranking in rankings)))
    rates = [settings.rate(j) for j in range(n_stages)]
    state = reference.SAMPLERS[sampler](
        rng,
        rankings,
        settings.n_items,
        settings.concentration,
        settings.discount,
        settings.strength,
        rates,
    )
    for sweep in range(1, settings.n_burn_in + settings.n_draws * settings.n_thin + 1):
        state.sweep()
        if sweep > settings.n_burn_in and (sweep - settings.n_burn_in) % settings.n_thin == 0:
            # Beta-Gibbs keeps no decays of clusters of one list; all of its decays follow from equation 12.
            theta = [
                state.beta_theta(cluster) if sampler == "beta-gibbs" else cluster.theta
                for cluster in state.clusters
            ]
            yield Draw(state.labels.copy(), [cluster.center for cluster in state.clusters], theta)


def compiled_draws(
    assignments: str, rankings: list[tuple[int, ...]], settings: Settings, rng: np.random.Generator
) -> Iterable[Draw]:
    """Draws of the sampler behind DPMallowsMixture, from a start at random, split-merge moves included."""
    chosen = DPMallowsParameters(
        assignments=assignments,
        concentration=settings.concentration,
        discount=settings.discount,
        prior_strength=settings.strength,
        prior_rate=[settings.rate(j) for j in range(settings.n_items - 1)],
        n_initial_clusters=3,
        n_jobs=1,
    )
    state = start_state(Rankings.from_orders(rankings, n_items=settings.n_items), chosen, rng)
    move = sweep_move(chosen)
    for sweep in range(1, settings.n_burn_in + settings.n_draws * settings.n_thin + 1):
        move.step(rng, state)
        if sweep > settings.n_burn_in and (sweep - settings.n_burn_in) % settings.n_thin == 0:
            centers = [center.tolist() for center in state.centers()]
            yield Draw(state.labels.copy(), centers, state.clusters.theta[: state.n_clusters].tolist())


# The model, forwards.


def draw_from_model(rng: np.random.Generator, settings: Settings) -> tuple[Draw, list[tuple[int, ...]]]:
    n = settings.n_items
    rule = pitman_yor_rule(settings.concentration, settings.discount)
    labels: list[int] = []
    for _ in settings.lengths:
        weights = rule([labels.count(k) for k in range(max(labels, default=-1) + 1)])
        labels.append(reference.choose(rng, np.log(weights)))
    centers, theta = [], []
    for _ in range(max(labels) + 1):
        centers.append(rng.permutation(n).tolist())
        theta.append(
            [
                reference.draw_theta(
                    rng, settings.strength * settings.rate(j), settings.strength + 1, n - 1 - j
                )
                for j in range(n - 1)
            ]
        )
    rankings = []
    for label, length in zip(labels, settings.lengths, strict=True):
        left, ranking = list(centers[label]), []
        for j in range(length):
            decay = theta[label][j] if j < n - 1 else 0.0
            ranking.append(left.pop(reference.choose(rng, -decay * np.arange(n - j))))
        rankings.append(tuple(ranking))
    return Draw(np.array(labels), centers, theta), rankings


# What is ranked.


def quantities(draw: Draw, rankings: list[tuple[int, ...]], settings: Settings) -> dict[str, float]:
    n, own = settings.n_items, int(draw.labels[0])
    lists = [ranking[: n - 1] for ranking in rankings]
    codes = [stage_code(r, draw.centers[k]) for r, k in zip(lists, draw.labels, strict=True)]
    rule = pitman_yor_rule(settings.concentration, settings.discount)
    log_joint = math.log(sequential_probability(draw.labels.tolist(), rule))
    log_likelihood = 0.0
    for k, theta in enumerate(draw.theta):
        log_joint -= math.lgamma(n + 1)
        for j in range(n - 1):
            here = [code[j] for i, code in enumerate(codes) if draw.labels[i] == k and len(code) > j]
            if here:
                a, b, m = settings.strength * settings.rate(j), settings.strength + 1, n - 1 - j
                log_joint += reference.log_finite_beta(a + sum(here), b + len(here), m)
                log_joint -= reference.log_finite_beta(a, b, m)
                log_likelihood -= theta[j] * sum(here) + len(here) * float(reference.log_psi(theta[j], m))
    center = list(map(int, draw.centers[own]))
    return {
        "clusters": float(len(draw.centers)),
        "agents 0 and 1 together": float(draw.labels[0] == draw.labels[1]),
        "log joint": log_joint,
        "log likelihood": log_likelihood,
        "first decay of agent 0": float(draw.theta[own][0]),
        "second decay of agent 0": float(draw.theta[own][1]),
        "center of agent 0 from its list": float(sum(codes[0])),
        "center of agent 0 from a fixed ordering": float(kendall(center, list(range(n)))),
    }


def ranks_of_truth(
    draws_of: DrawsOf, sampler: str, settings: Settings, n_replicates: int, seed: int
) -> dict[str, np.ndarray]:
    """Rank of the truth among the draws, ties broken at random, for each quantity and replicate."""
    rng = np.random.default_rng(seed)
    ranks: dict[str, list[int]] = {}
    for _ in range(n_replicates):
        truth, rankings = draw_from_model(rng, settings)
        drawn = [quantities(d, rankings, settings) for d in draws_of(sampler, rankings, settings, rng)]
        assert len(drawn) == settings.n_draws
        for name, value in quantities(truth, rankings, settings).items():
            # Logs that differ by rounding only are the same.
            others = np.array([draw[name] for draw in drawn])
            tied = np.isclose(others, value, rtol=0, atol=1e-9)
            rank = int((~tied & (others < value)).sum() + rng.integers(tied.sum() + 1))
            ranks.setdefault(name, []).append(rank)
    return {name: np.array(values) for name, values in ranks.items()}


def p_values(ranks: dict[str, np.ndarray], n_draws: int) -> dict[str, float]:
    """Chi-square tests of uniform ranks in ten bins."""
    assert (n_draws + 1) % 10 == 0
    return {
        name: float(stats.chisquare(np.bincount(values * 10 // (n_draws + 1), minlength=10)).pvalue)
        for name, values in ranks.items()
    }


# Eight quantities a test: a false alarm less than once in 100,000 tests.
SMALLEST_P_VALUE = 1e-6

EXACT: dict[str, tuple[DrawsOf, str, int]] = {
    "plain": (reference_draws, "exact", 120),
    "collapsed": (compiled_draws, "collapsed", 300),
    "parallel": (compiled_draws, "parallel", 300),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", EXACT)
def test_ranks_are_uniform(name, case):
    draws_of, sampler, n_replicates = EXACT[name]
    ranks = ranks_of_truth(draws_of, sampler, CASES[case], n_replicates, seed=19)
    found = p_values(ranks, CASES[case].n_draws)
    assert min(found.values()) > SMALLEST_P_VALUE, found


def test_calibration_rejects_beta_gibbs():
    # Ten rounds of its centers in each sweep: it needs less thinning, and more time.
    settings = dataclasses.replace(CASES["dirichlet process"], n_burn_in=20, n_thin=3)
    found = p_values(ranks_of_truth(reference_draws, "beta-gibbs", settings, 120, seed=19), settings.n_draws)
    assert min(found.values()) < SMALLEST_P_VALUE, found


def test_calibration_rejects_another_prior():
    """A sampler that takes twice the rates; the truth and its scores keep the right ones."""

    def mistaken(sampler, rankings, settings, rng):
        return reference_draws(sampler, rankings, dataclasses.replace(settings, rates=2.0), rng)

    settings = CASES["dirichlet process"]
    found = p_values(ranks_of_truth(mistaken, "exact", settings, 80, seed=19), settings.n_draws)
    assert min(found.values()) < SMALLEST_P_VALUE, found
