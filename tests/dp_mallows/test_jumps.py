"""Births and deaths of groups with nobody's group given, against enumeration."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

from permix.dp_mallows import jumps
from permix.dp_mallows.jumps import Jumps
from permix.dp_mallows.lists.jumps_jit import jump
from permix.dp_mallows.moves import Centers
from permix.moves import Cycle
from permix.partitions import MixtureOfFiniteMixtures
from tests.dp_mallows.list_cases import FIVE, agrees, check_statistics, model_of, seated, visits_of
from tests.oracles.dp_mallows import Enumeration, blocks, mixture_of_finite_mixtures
from tests.oracles.partitions import finite_dirichlet_rule, sequential_probability, shifted_poisson

PRIOR = MixtureOfFiniteMixtures(2.0, 0.7)
DECAYS = (1.5, (0.5, 1.0, 1.5))


@cache
def posterior(n_lists=5):
    rule = mixture_of_finite_mixtures(PRIOR.rate, PRIOR.pseudo_count)
    return Enumeration(FIVE[:n_lists], 4, rule, *DECAYS)


def state(n_lists=5):
    return seated(model_of(FIVE[:n_lists], 4, PRIOR, *DECAYS))


# The twins are at 1.8 times what an exact chain would show, or more.
N_STEPS = 2500


def chain_agrees(move, n_steps=N_STEPS, seed=1, n_lists=5):
    known = posterior(n_lists)
    visits = visits_of(state(n_lists), Cycle([Centers(), move]), known.partitions, n_steps, seed)
    return agrees(visits, known.partitions, known.chances)


@pytest.mark.parametrize("splits", [0.0, 1.0])
def test_jumps_have_the_posterior(splits):
    assert chain_agrees(Jumps(3, splits))


@pytest.mark.slow
@pytest.mark.parametrize("splits", [0.0, 0.5, 1.0])
def test_long_chains_of_jumps(splits):
    assert chain_agrees(Jumps(2, splits), 60_000, seed=2)


class OtherRate(Jumps):
    """Broken twin: births and deaths are weighed by another prior of the number of groups."""

    def step(self, rng, state):
        state.prior_spec = dataclasses.replace(PRIOR, rate=1.5 * PRIOR.rate)
        info = super().step(rng, state)
        state.prior_spec = PRIOR
        return info


def test_another_prior_has_another_distribution():
    assert not chain_agrees(OtherRate(3))


def test_groups_without_agents_count(monkeypatch):
    monkeypatch.setattr(jumps, "chances_of_empty", lambda *known: np.ones(1))
    assert not chain_agrees(Jumps(3))


def test_jumps_are_accepted_both_ways(monkeypatch):
    rng, here = np.random.default_rng(4), state()
    accepted = np.zeros(4, dtype=np.int64)

    def noted(*known):
        n = jump(*known)
        accepted[:] += known[-1]
        return n

    monkeypatch.setattr(jumps, "jump", noted)
    for _ in range(200):
        Jumps(8).step(rng, here)
        check_statistics(here)
    assert (accepted > 10).all()


def test_posterior_of_the_number_of_possible_groups():
    """By enumeration over partitions for every number of components, which are then weighed by the prior."""
    chances = shifted_poisson(PRIOR.rate, 30)
    evidences = np.zeros(30)
    for k, chance in chances.items():
        rule = finite_dirichlet_rule(k, PRIOR.pseudo_count)
        known = posterior()
        for labels in known.partitions:
            lists = [[FIVE[i] for i in block] for block in blocks(labels)]
            log_marginals = sum(known.log_marginal(part) for part in lists)
            evidences[k] += chance * sequential_probability(labels, rule) * np.exp(log_marginals)
    exact = evidences / evidences.sum()
    numbers = [max(labels) + 1 for labels in posterior().partitions]
    counts = np.round(1e6 * posterior().chances).astype(int)
    found = PRIOR.n_components_posterior(np.repeat(numbers, counts), 5)
    np.testing.assert_allclose(found[:30], exact[: len(found)], atol=1e-5)
    shown = np.bincount(numbers, weights=posterior().chances)  # groups that have agents are fewer
    assert abs(shown[1] - exact[1]) > 0.01
