"""Chains of Bayesian Mallows models against enumeration of everything."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from permix.bayes_mallows.chain import moves
from permix.bayes_mallows.chain.labels_jit import swap_neighbors
from permix.bayes_mallows.chain.shares_jit import move_shares
from tests.bayes_mallows.cases import (
    ERRORS,
    EXPECTED,
    FORMS,
    PRIORS,
    chain_numbers,
    data_of,
    expected,
    expected_centers,
    five_of,
    model_of,
    posterior_of,
    settings_of,
    z_scores,
)
from tests.every_run import first_in_every_run, turns_in_every_run
from tests.oracles import bayes_mallows as oracle

# In Monte Carlo errors (t with 39 degrees): one of sixty numbers is beyond this in one chain of a thousand.
BOUND = 5.0
TURNS = ("contradictions", "pairs", "mixed")


def gaps(distance, form, prior="one", errors="none", found=None, n_iterations=3000, **options):
    """How many Monte Carlo errors a chain is from the enumerated answer, or from another."""
    data = data_of(form)
    numbers = chain_numbers(data, settings_of(distance, prior, errors, **options), n_iterations)
    found = found or posterior_of(distance, form, prior, errors)
    means = expected(found, len(data.agents))
    return np.abs(z_scores(numbers[:, : len(means)], means)).max()


@pytest.mark.parametrize(("distance", "form", "prior"), turns_in_every_run(oracle.DISTANCES, FORMS, PRIORS))
def test_chains_have_the_posterior(distance, form, prior):
    assert gaps(distance, form, prior) < BOUND


@pytest.mark.parametrize(
    ("distance", "form", "errors"), turns_in_every_run(oracle.DISTANCES, TURNS, ERRORS[1:])
)
def test_chains_with_errors_have_the_posterior(distance, form, errors):
    assert gaps(distance, form, "one", errors) < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("distance", oracle.DISTANCES)
@pytest.mark.parametrize("form", TURNS)
@pytest.mark.parametrize("errors", ERRORS[1:])
@pytest.mark.parametrize("prior", ["two", "dp", "pitman-yor", "mfm"])
def test_chains_with_errors_and_groups_have_the_posterior(distance, form, errors, prior):
    assert gaps(distance, form, prior, errors) < BOUND


def test_errors_and_an_open_number_of_groups_together():
    assert gaps("kendall", "contradictions", "mfm", "bernoulli per agent") < BOUND


# One distance of each sort: of pairs, of places, and without costs. Over four items every one is tried above.
SORTS = (("kendall", "full"), ("spearman", "subset"), ("ulam", "top"))


@pytest.mark.parametrize(
    ("distance", "form"),
    first_in_every_run(
        dict.fromkeys([*SORTS, *product(oracle.DISTANCES, ("full", "top", "subset", "pairs"))]), len(SORTS)
    ),
)
def test_chains_over_five_items_have_the_posterior(distance, form):
    data = five_of(form)
    numbers = chain_numbers(data, settings_of(distance, "dp"), 3000)
    found = oracle.posterior(model_of(distance, "dp", n=5), data.agents)
    assert np.abs(z_scores(numbers, expected(found, 3))).max() < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("distance", oracle.DISTANCES)
def test_chains_over_five_items_with_errors_have_the_posterior(distance):
    data = five_of("contradictions")
    numbers = chain_numbers(data, settings_of(distance, "one", "bernoulli"), 4000)
    found = oracle.posterior(model_of(distance, "one", "bernoulli", n=5), data.agents)
    assert np.abs(z_scores(numbers, expected(found, 3))).max() < BOUND


@pytest.mark.parametrize(
    ("distance", "form", "prior"), turns_in_every_run(oracle.DISTANCES, ("full", "pairs"), ("dp", "two"))
)
def test_centers_that_are_expected_around_a_ranking(distance, form, prior):
    found = oracle.posterior(
        model_of(distance, prior, centers=expected_centers(distance)), data_of(form).agents
    )
    assert gaps(distance, form, prior, found=found, **EXPECTED) < BOUND


@pytest.mark.parametrize("distance", ["kendall", "ulam"])
def test_a_twin_that_expects_centers_anywhere_is_rejected(distance):
    assert gaps(distance, "pairs", "dp", n_iterations=1500, **EXPECTED) > 2 * BOUND


@pytest.mark.parametrize("distance", ["kendall", "footrule", "cayley"])
def test_errors_that_hardly_ever_happen_are_no_errors(distance):
    """Under Beta(1, 20,000) a comparison is wrong once in 20,000: what is consistent is taken at its word."""
    found = posterior_of(distance, "pairs")
    rare = {"error_prior": (1.0, 2e4)}
    assert gaps(distance, "pairs", errors="bernoulli", found=found, n_iterations=6000, **rare) < BOUND
    # The twin whose errors are frequent.
    assert gaps(distance, "pairs", errors="bernoulli", found=found) > 2 * BOUND


def test_a_twin_without_normalizers_is_rejected():
    agents = data_of("full").agents
    twin = oracle.without_normalizers(model_of("footrule"), agents)
    assert gaps("footrule", "full", found=twin) > 4 * BOUND


def test_a_twin_that_counts_comparisons_once_is_rejected():
    agents = data_of("contradictions").agents
    twin = oracle.said_once(model_of("kendall", errors="bernoulli"), agents)
    assert gaps("kendall", "contradictions", errors="bernoulli", found=twin) > 2 * BOUND


@pytest.mark.parametrize("distance", ["kendall", "footrule", "spearman", "hamming"])
def test_swaps_of_neighbors_with_groups_summed_out_are_exact(distance, monkeypatch):
    """With more agents pinned, two groups take part more often."""
    monkeypatch.setattr(moves, "MOST_PINNED", 0.6)
    assert gaps(distance, "full", "two") < BOUND
    assert gaps(distance, "top", "dp") < BOUND


# Under Hamming's distance the twin differs too little to tell.
@pytest.mark.parametrize("distance", first_in_every_run(["spearman", "footrule", "kendall"]))
def test_a_twin_that_forgets_the_pinned_agents_is_rejected(distance, monkeypatch):
    def forgetful(rng, metric, members, bound, *others):
        return swap_neighbors(rng, metric, members, bound[:0], *others)

    monkeypatch.setattr(moves, "MOST_PINNED", 0.6)
    monkeypatch.setattr(moves, "swap_neighbors", forgetful)
    n_iterations = 3000 if distance == "spearman" else 30_000  # draws of shares make up for some of it
    assert gaps(distance, "full", "two", n_iterations=n_iterations) > 2 * BOUND


def often(step):
    """Groups are moved, and then items swapped ten times."""
    groups = moves.Groups.step

    def both(self, rng, state):
        info = groups(self, rng, state)
        for _ in range(10):
            step(self, rng, state)
        state.recount()
        return info

    return both


@pytest.mark.parametrize(
    ("distance", "form", "prior"), [("kendall", "full", "two"), ("ulam", "full", "pitman-yor")]
)
def test_shares_and_decays_with_groups_summed_out_are_exact(distance, form, prior, monkeypatch):
    monkeypatch.setattr(moves, "MOST_PINNED", 0.6)
    assert gaps(distance, form, prior, n_iterations=4000) < BOUND


@pytest.mark.parametrize("forgotten", ["nothing", "pinned agents", "prior of decays"])
def test_twins_of_shares_and_decays_are_rejected(forgotten, monkeypatch):
    """Twenty times in each iteration, so that other moves make up for less of it."""
    monkeypatch.setattr(moves, "MOST_PINNED", 0.6)

    def twin(rng, metric, table, prior, members, free, bound, *others):
        if forgotten == "pinned agents":
            bound = bound[:0]
        elif forgotten == "prior of decays":
            prior = prior._replace(rate=0.0)
        for _ in range(20):
            move_shares(rng, metric, table, prior, members, free, bound, *others)

    monkeypatch.setattr(moves, "move_shares", twin)
    gap = gaps("kendall", "full", "two", n_iterations=8000)
    assert (gap < BOUND) == (forgotten == "nothing"), gap


@pytest.mark.parametrize(
    ("distance", "form", "errors"),
    [("footrule", "contradictions", "logistic"), ("ulam", "pairs", "none"), ("kendall", "top", "none")],
)
def test_swaps_in_centers_and_rankings_together_are_exact(distance, form, errors, monkeypatch):
    """Made often, after all other moves."""
    monkeypatch.setattr(moves.Groups, "step", often(moves.SharedSwaps.step))
    assert gaps(distance, form, "one", errors) < BOUND


# Under Ulam's distance three of six pairs are stated by somebody: the twin has little to swap.
@pytest.mark.parametrize(
    ("distance", "form", "errors", "n_iterations"),
    first_in_every_run(
        [("footrule", "contradictions", "logistic", 3000), ("kendall", "top", "none", 12_000)]
    ),
)
def test_a_twin_that_swaps_in_rankings_alone_is_rejected(distance, form, errors, n_iterations, monkeypatch):
    swap = moves.SharedSwaps.step

    def forgetful(self, rng, state):
        before = state.centers.copy()
        swap(self, rng, state)
        state.centers[:] = before

    monkeypatch.setattr(moves.Groups, "step", often(forgetful))
    assert gaps(distance, form, "one", errors, n_iterations=n_iterations) > 1.5 * BOUND
