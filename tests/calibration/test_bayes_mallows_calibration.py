"""Simulation-based calibration of Bayesian Mallows models (Talts et al. 2018).

Groups, centers, decays, rates of errors, rankings and what agents say of them are drawn from the model. Then
any quantity has for the truth a uniform rank among its values for the draws of an exact sampler.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import permix
from permix.bayes_mallows.data import as_statements, bayes_model
from permix.bayes_mallows.fit import first_state, sweep_move
from tests.bayes_mallows.cases import DECAY_PRIOR, ERROR_PRIORS, PRIORS, settings_of
from tests.oracles import bayes_mallows as oracle
from tests.oracles.partitions import sequential_probability

pytestmark = pytest.mark.slow

N_ITEMS, N_AGENTS, N_DRAWS, N_BURN_IN, N_THIN = 5, 12, 19, 60, 6
# Eight quantities a test: a false alarm less than once in 100,000 tests.
SMALLEST_P_VALUE = 1e-6


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, and what agents say of their rankings."""

    distance: str
    form: str
    prior: str

    @property
    def errors(self):
        return "bernoulli" if self.form == "compared" else "none"


CASES = {
    "full rankings, two groups": Case("kendall", "full", "two"),
    "full rankings, open number": Case("footrule", "full", "mfm"),
    "top lists, two groups": Case("footrule", "top", "two"),
    "top lists, open number": Case("kendall", "top", "mfm"),
    "comparisons with errors, two groups": Case("kendall", "compared", "two"),
    "comparisons with errors, open number": Case("footrule", "compared", "mfm"),
}


@dataclasses.dataclass
class Draw:
    """All that is not known; orderings of centers and agents as numbers in ``oracle.orderings``."""

    labels: list
    centers: list
    decays: list
    rankings: list
    rate: float


def draw_from_model(case, rng):
    """Draw the truth."""
    labels = []
    for _ in range(N_AGENTS):
        weights = PRIORS[case.prior][1]([labels.count(k) for k in range(max(labels, default=-1) + 1)])
        labels.append(int(rng.choice(len(weights), p=np.array(weights) / np.sum(weights))))
    far = oracle.distances(case.distance, N_ITEMS)
    groups = range(max(labels) + 1)
    centers = [int(rng.integers(len(far))) for _ in groups]
    decays = [float(rng.gamma(DECAY_PRIOR[0], 1.0 / DECAY_PRIOR[1])) for _ in groups]
    rankings = []
    for k in labels:
        weights = np.exp(-decays[k] * far[:, centers[k]])
        rankings.append(int(rng.choice(len(far), p=weights / weights.sum())))
    rate = 1.0
    while rate >= 0.5:
        rate = float(rng.beta(*ERROR_PRIORS["bernoulli"]))
    return Draw(labels, centers, decays, rankings, rate)


def said(case, truth, rng):
    """Let agents say something of their rankings."""
    orders = [oracle.orderings(N_ITEMS)[r] for r in truth.rankings]
    if case.form != "compared":
        lengths = [N_ITEMS if case.form == "full" else 1 + agent % 3 for agent in range(N_AGENTS)]
        lists = [order[:length] for order, length in zip(orders, lengths, strict=True)]
        table = permix.Rankings.from_orders(lists, items=list(range(N_ITEMS)), unlisted="below")
        return permix.Preferences.from_rankings(table)
    rows, pairs = [], list(combinations(range(N_ITEMS), 2))
    for agent, order in enumerate(orders):
        for which in rng.choice(len(pairs), 4):  # the same may be asked twice
            a, b = sorted(pairs[which], key=order.index)
            rows.append((agent, b, a) if rng.random() < truth.rate else (agent, a, b))
    return permix.Preferences.from_pairs(rows, items=list(range(N_ITEMS)), on_cycle="keep")


def draws(table, settings, rng):
    """Draw from the posterior by a chain, thinned."""
    model = bayes_model(as_statements(table), settings)
    state, move = first_state(model, rng), sweep_move(model, settings)
    number = {order: at for at, order in enumerate(oracle.orderings(N_ITEMS))}

    def numbers(ranks):
        return [number[tuple(order)] for order in np.argsort(ranks, axis=1).tolist()]

    for step in range(1, N_BURN_IN + N_DRAWS * N_THIN + 1):
        move.step(rng, state)
        if step > N_BURN_IN and (step - N_BURN_IN) % N_THIN == 0:
            used = slice(None, state.n_clusters)
            yield Draw(
                state.labels[model.in_turn].tolist(),
                numbers(state.centers[used]),
                state.decays[used].tolist(),
                numbers(state.rankings[model.ranking_of[model.in_turn]]),
                float(state.rates[0]),
            )


def quantities(case, draw):
    far, own = oracle.distances(case.distance, N_ITEMS), draw.labels[0]
    fixed = oracle.distances("kendall", N_ITEMS)[0]
    log_likelihood = 0.0
    for k, ranking in zip(draw.labels, draw.rankings, strict=True):
        log_likelihood -= draw.decays[k] * far[ranking, draw.centers[k]]
        log_likelihood -= math.log(np.exp(-draw.decays[k] * far[:, 0]).sum())
    log_prior = math.log(sequential_probability(tuple(draw.labels), PRIORS[case.prior][1]))
    return {
        "groups": float(len(draw.centers)),
        "agents 0 and 1 together": float(draw.labels[0] == draw.labels[1]),
        "log likelihood": log_likelihood,
        "log prior of groups": log_prior,
        "decay of agent 0": draw.decays[own],
        "center of agent 0 from a fixed ordering": float(fixed[draw.centers[own]]),
        "ranking of agent 0 from a fixed ordering": float(fixed[draw.rankings[0]]),
        "rate of errors": draw.rate if case.form == "compared" else 0.0,
    }


def p_values(case, n_replicates, seed=23, **mistaken):
    """Chi-square tests of uniform ranks in ten bins; settings of the sampler may be ``mistaken``."""
    rng, ranks = np.random.default_rng(seed), {}
    settings = settings_of(case.distance, case.prior, case.errors)
    settings = settings.replaced(**mistaken)
    for _ in range(n_replicates):
        truth = draw_from_model(case, rng)
        drawn = [quantities(case, draw) for draw in draws(said(case, truth, rng), settings, rng)]
        for name, value in quantities(case, truth).items():
            others = np.array([each[name] for each in drawn])
            tied = np.isclose(others, value, rtol=0, atol=1e-9)  # ties are broken at random
            rank = int((~tied & (others < value)).sum() + rng.integers(tied.sum() + 1))
            ranks.setdefault(name, []).append(rank * 10 // (N_DRAWS + 1))
    return {
        name: float(stats.chisquare(np.bincount(each, minlength=10)).pvalue) for name, each in ranks.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_ranks_are_uniform(name):
    found = p_values(CASES[name], 300)
    assert min(found.values()) > SMALLEST_P_VALUE, found


@pytest.mark.parametrize("name", ["full rankings, two groups", "comparisons with errors, open number"])
def test_a_sampler_with_another_prior_of_decays_is_rejected(name):
    found = p_values(CASES[name], 200, decay_prior=permix.Gamma(2.0, 1.0))
    assert min(found.values()) < SMALLEST_P_VALUE, found


def test_a_sampler_with_another_prior_of_errors_is_rejected():
    found = p_values(CASES["comparisons with errors, two groups"], 200, error_prior=(6.0, 3.0))
    assert found["rate of errors"] < SMALLEST_P_VALUE, found
