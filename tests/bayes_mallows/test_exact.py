"""Chains of Bayesian Mallows models against enumeration of everything."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bayes_mallows.cases import (
    ERRORS,
    FORMS,
    PRIORS,
    chain_numbers,
    data_of,
    expected,
    model_of,
    posterior_of,
    settings_of,
    z_scores,
)
from tests.every_run import turns_in_every_run
from tests.oracles import bayes_mallows as oracle

# In Monte Carlo errors (t with 39 degrees): one of sixty numbers is beyond this in one chain of a thousand.
BOUND = 5.0
TURNS = ("contradictions", "pairs", "mixed")


def gaps(distance, form, prior="one", errors="none", found=None, n_iterations=3000):
    """How many Monte Carlo errors a chain is from the enumerated answer, or from another."""
    data = data_of(form)
    numbers = chain_numbers(data, settings_of(distance, prior, errors), n_iterations)
    found = found or posterior_of(distance, form, prior, errors)
    return np.abs(z_scores(numbers, expected(found, len(data.agents)))).max()


@pytest.mark.parametrize(("distance", "form", "prior"), turns_in_every_run(oracle.DISTANCES, FORMS, PRIORS))
def test_chains_have_the_posterior(distance, form, prior):
    assert gaps(distance, form, prior) < BOUND


@pytest.mark.parametrize(
    ("distance", "form", "errors"), turns_in_every_run(oracle.DISTANCES, TURNS, ERRORS[1:])
)
def test_chains_with_errors_have_the_posterior(distance, form, errors):
    assert gaps(distance, form, "one", errors) < BOUND


def test_a_twin_without_normalizers_is_rejected():
    agents = data_of("full").agents
    twin = oracle.without_normalizers(model_of("footrule"), agents)
    assert gaps("footrule", "full", found=twin) > 4 * BOUND


def test_a_twin_that_counts_comparisons_once_is_rejected():
    agents = data_of("contradictions").agents
    twin = oracle.said_once(model_of("kendall", errors="bernoulli"), agents)
    assert gaps("kendall", "contradictions", errors="bernoulli", found=twin) > 2 * BOUND
