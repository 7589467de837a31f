"""The published sampler that benchmarks compare with is a right one, or the comparison proves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.peers.published_mallows import Published
from tests.bayes_mallows.cases import (
    chain_numbers,
    data_of,
    expected,
    model_of,
    posterior_of,
    settings_of,
    z_scores,
)
from tests.oracles import bayes_mallows as oracle

# In Monte Carlo errors (t with 39 degrees): one of sixty numbers is beyond this in one chain of a thousand.
BOUND = 5.0


def gaps(distance, form, prior="one", errors="none", found=None):
    """How many Monte Carlo errors a chain is from the enumerated answer, or from another."""
    data, move = data_of(form), Published(step_of_decay=0.8, leap=2)  # for four agents and items
    numbers = chain_numbers(data, settings_of(distance, prior, errors), 12_000, move=move)
    means = expected(found or posterior_of(distance, form, prior, errors), len(data.agents))
    return np.abs(z_scores(numbers[:, : len(means)], means)).max()


@pytest.mark.parametrize(
    ("distance", "form", "prior", "errors"),
    [
        ("footrule", "full", "one", "none"),
        ("kendall", "full", "two", "none"),
        ("footrule", "pairs", "two", "none"),
        ("kendall", "pairs", "one", "none"),
        ("footrule", "contradictions", "one", "bernoulli"),
    ],
)
def test_the_published_sampler_has_the_posterior(distance, form, prior, errors):
    assert gaps(distance, form, prior, errors) < BOUND


def test_twins_are_rejected():
    full = oracle.without_normalizers(model_of("footrule"), data_of("full").agents)
    assert gaps("footrule", "full", found=full) > 4 * BOUND
    once = oracle.said_once(model_of("kendall", errors="bernoulli"), data_of("contradictions").agents)
    assert gaps("kendall", "contradictions", errors="bernoulli", found=once) > 2 * BOUND
