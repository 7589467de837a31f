"""Simulation-based calibration of angle-based models with incomplete rankings.

Parameters come from the prior and rankings from the exact model, by enumeration of all rankings of four
items; then each ranking is cut to a top list or to a subset. Under an exact sampler the truth has a uniform
rank among the draws (Talts et al. 2018). Only the exact normalizer qualifies: under the approximate one,
probabilities of rankings do not sum to one, and no data can be drawn from such a model. How far that is from
harmless is the last test.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from permix import Rankings
from permix.angle.components import AngleComponents
from permix.angle.data import AngleData
from permix.angle.gibbs.moves import gibbs_sweep
from permix.angle.gibbs.state import AngleChainModel, AngleState
from permix.angle.parameters import AngleParameters
from tests.oracles import angle as oracle

pytestmark = pytest.mark.slow

T = 4
# Items listed by each agent, and whether the others are below.
PATTERNS = ((4, True), (1, True), (2, False), (3, False), (2, True), (4, False), (1, False), (3, True)) * 2
N_BURN_IN, N_DRAWS, N_THIN = 40, 19, 6
SMALLEST_P_VALUE = 1e-6


@dataclasses.dataclass(frozen=True)
class Setup:
    """Components, prior and sampler."""

    k: int = 1
    inference: str = "sir"
    normalizer: str = "exact"
    shape: float = 3.0
    rate: float = 0.6
    pseudo_count: float = 1.5

    def settings(self) -> AngleParameters:
        return AngleParameters(
            self.k,
            inference=self.inference,
            normalizer=self.normalizer,
            prior_shape=self.shape,
            prior_rate=self.rate,
            pseudo_count=self.pseudo_count,
        )


def draw_from_model(rng, setup):
    """Weights, tilts and incomplete rankings."""
    weights = rng.dirichlet(np.full(setup.k, setup.pseudo_count))
    directions = rng.standard_normal((setup.k, T - 1)) @ oracle.plane(T)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    kappas = rng.gamma(setup.shape, 1 / setup.rate, size=setup.k)
    labels = rng.choice(setup.k, size=len(PATTERNS), p=weights)
    rows = []
    for label, (length, below) in zip(labels, PATTERNS, strict=True):
        logs = kappas[label] * oracle.standardized(T) @ directions[label]
        p = np.exp(logs - logs.max())
        order = oracle.orders(T)[rng.choice(len(p), p=p / p.sum())]
        if not below:  # which items are missing does not depend on the ranking
            kept = set(rng.choice(T, length, replace=False).tolist())
            rows.append([item for item in order.tolist() if item in kept])
        else:
            rows.append(order[:length].tolist())
    return (weights, kappas, directions, labels), rows


def quantities(weights, kappas, directions, labels, rows):
    own = int(labels[0])
    tilts = kappas[:, None] * directions
    log_sums = oracle.exact_log_sum(tilts)
    weights_of = np.exp(oracle.standardized(T) @ tilts.T - log_sums)
    likelihood = 0.0
    for label, row, (_, below) in zip(labels, rows, PATTERNS, strict=True):
        likelihood += np.log(weights_of[oracle.compatible(T, tuple(row), below), label].sum())
    return {
        "concentration of agent 0": float(kappas[own]),
        "score of item 0": float(directions[own, 0]),
        "score of item 2 for agent 1": float(directions[int(labels[1]), 2]),
        "tilt of item 3": float(tilts[own, 3]),
        "weight of agent 0": float(weights[own]),
        "log likelihood": float(likelihood),
        "agents 0 and 5 together": float(labels[0] == labels[5]),
    }


def ranks_of_truth(setup, sampler, n_replicates, seed=11):
    rng = np.random.default_rng(seed)
    ranks: dict[str, list[int]] = {}
    for _ in range(n_replicates):
        truth, rows = draw_from_model(rng, setup)
        data = Rankings.from_orders(
            rows, n_items=T, unlisted=["below" if below else "unknown" for _, below in PATTERNS]
        )
        settings = sampler.settings()
        model = AngleChainModel(AngleData(data, 1), settings)
        directions = rng.standard_normal((setup.k, T - 1)) @ oracle.plane(T)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        start = AngleComponents(
            data.items, np.full(setup.k, 1 / setup.k), directions, np.full(setup.k, 3.0), model.normalizer
        )
        state, move, draws = AngleState(model, rng, start), gibbs_sweep(settings, T), []
        for sweep in range(1, N_BURN_IN + N_DRAWS * N_THIN + 1):
            move.step(rng, state)
            if sweep > N_BURN_IN and (sweep - N_BURN_IN) % N_THIN == 0:
                draws.append(quantities(state.weights, state.kappas, state.directions, state.labels, rows))
        assert len(draws) == N_DRAWS
        for name, value in quantities(*truth, rows).items():
            others = np.array([draw[name] for draw in draws])
            tied = np.isclose(others, value, rtol=0, atol=1e-12)
            rank = int((~tied & (others < value)).sum() + rng.integers(tied.sum() + 1))
            ranks.setdefault(name, []).append(rank)
    return ranks


def p_values(ranks):
    """Chi-square tests of uniform ranks in ten bins."""
    return {
        name: float(stats.chisquare(np.bincount(np.array(values) // 2, minlength=10)).pvalue)
        for name, values in ranks.items()
    }


@pytest.mark.parametrize("k", [1, 2])
def test_ranks_are_uniform(k):
    setup = Setup(k)
    found = p_values(ranks_of_truth(setup, setup, 400))
    assert min(found.values()) > SMALLEST_P_VALUE, found


def test_calibration_rejects_another_prior():
    setup = Setup(1)
    found = p_values(ranks_of_truth(setup, dataclasses.replace(setup, rate=1.2), 400))
    assert min(found.values()) < SMALLEST_P_VALUE, found


def test_what_the_approximate_normalizer_costs():
    """Quadrature on data of the exact model: near for κ about 2, and visibly off for κ about 8."""
    mild = Setup(1, shape=3.0, rate=1.5)
    near = dataclasses.replace(mild, inference="quadrature", normalizer="vmf")
    assert min(p_values(ranks_of_truth(mild, near, 300)).values()) > SMALLEST_P_VALUE
    strong = Setup(1, shape=30.0, rate=3.0)
    off = dataclasses.replace(strong, inference="quadrature", normalizer="vmf")
    exact, approximate = (
        p_values(ranks_of_truth(strong, sampler, 300))["concentration of agent 0"]
        for sampler in (strong, off)
    )
    assert exact > SMALLEST_P_VALUE
    assert approximate < SMALLEST_P_VALUE
