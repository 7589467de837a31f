"""Weights of draws that follow new data, against enumeration, without any moves that would mend them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import permix
from permix.bayes_mallows.following.follow import Particles
from tests.bayes_mallows.cases import EXPECTED, FORMS, data_of, expected_centers, model_of
from tests.bayes_mallows.following.cases import evidence, followed, gaps, means_of, settings_for
from tests.every_run import turns_in_every_run
from tests.oracles import bayes_mallows as oracle

# In errors with 29 degrees of freedom, of some thirty numbers.
BOUND = 5.0
PRIORS = ("one", "two", "dp", "mfm")


class Forgetful(Particles):
    """The twin that forgets by how much weights grow."""

    def take(self, log_increments):
        return super().take(np.zeros_like(log_increments))


class Once(Particles):
    """The twin that lets the last agent of a step count twice."""

    def take(self, log_increments):
        log_increments = log_increments.copy()
        log_increments[:, -1] *= 2.0
        return super().take(log_increments)


def halves(form):
    """The first row of some data, and the others, as permix takes them and as the oracle does."""
    data = data_of(form)
    n = int(data.table.counts[0])
    return data.table[:1], data.table[1:], data.agents[:n], data.agents[n:]


def check(found, model, before, new, bound=BOUND):
    """Say whether weighted means and the evidence are right."""
    right = oracle.posterior(model, (*before, *new))
    weights = np.exp(found.log_weights)
    error = weights.std() / math.sqrt(len(weights)) + 1e-3 * weights.mean()
    gap = abs(math.exp(found.log_evidence) - evidence(model, before, new)) / error
    return gap < bound, np.abs(gaps(found, means_of(right, len((*before, *new))))).max() < bound


@pytest.mark.parametrize(
    ("distance", "form", "prior"), turns_in_every_run(oracle.DISTANCES, FORMS[:5], PRIORS)
)
def test_draws_that_follow_new_agents_have_the_posterior(distance, form, prior):
    old, new, before, after = halves(form)
    found = followed(old, new, settings_for(distance, prior))
    assert check(found, model_of(distance, prior), before, after) == (True, True)


@pytest.mark.parametrize(
    ("distance", "errors"),
    turns_in_every_run(("kendall", "hamming", "ulam"), ("bernoulli", "logistic", "bernoulli per agent")),
)
def test_draws_that_follow_comparisons_with_errors_have_the_posterior(distance, errors):
    old, new, before, after = halves("contradictions")
    found = followed(old, new, settings_for(distance, "dp", errors))
    assert check(found, model_of(distance, "dp", errors), before, after) == (True, True)


def test_groups_that_open_where_centers_are_expected_around_a_ranking():
    old, new, before, after = halves("full")
    found = followed(old, new, settings_for("cayley", "dp", **EXPECTED))
    model = model_of("cayley", "dp", centers=expected_centers("cayley"))
    assert check(found, model, before, after) == (True, True)
    assert False in check(found, model_of("cayley", "dp"), before, after)


SAID = [("ann", 0, 1), ("bo", 2, 0), ("bo", 2, 3)]
MORE = [("ann", 1, 3), ("ann", 1, 2), ("cy", 0, 3)]


def _pairs(rows):
    return permix.Preferences.from_pairs(rows, items=[0, 1, 2, 3], on_cycle="keep")


def _agents(rows, names):
    return tuple(oracle.compared(*[pair for name, *pair in rows if name == agent]) for agent in names)


@pytest.mark.parametrize(
    ("distance", "errors"),
    turns_in_every_run(("kendall", "spearman"), ("none", "bernoulli", "logistic per agent")),
)
def test_draws_that_follow_what_known_agents_say_have_the_posterior(distance, errors):
    settings, model = settings_for(distance, "two", errors), model_of(distance, "two", errors)
    found = followed(_pairs(SAID), _pairs(MORE), settings)
    names = ("ann", "bo", "cy")
    right = oracle.posterior(model, _agents([tuple(row) for row in SAID + MORE], names))
    assert np.abs(gaps(found, means_of(right, 3))).max() < BOUND
    known = oracle.posterior(model, _agents(SAID, names[:2])).evidence
    weights = np.exp(found.log_weights)
    error = weights.std() / math.sqrt(len(weights))
    assert abs(math.exp(found.log_evidence) - right.evidence / known) < BOUND * error


@pytest.mark.parametrize("twin", [Forgetful, Once])
def test_twins_with_wrong_weights_are_rejected(twin):
    old, new, before, after = halves("full")
    found = followed(old, new, settings_for("kendall", "dp"), particles=twin)
    assert check(found, model_of("kendall", "dp"), before, after, bound=2 * BOUND) == (False, False)
