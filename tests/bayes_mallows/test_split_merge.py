"""Splits and merges of groups against enumeration, without other moves of labels; and where chains start."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.bayes_mallows.chain import split_merge
from permix.bayes_mallows.chain.climb import climbed, log_mixture
from permix.bayes_mallows.chain.moves import Groups, LatentRankings
from permix.bayes_mallows.chain.split_merge import SplitMerge
from permix.bayes_mallows.data import bayes_model
from permix.bayes_mallows.fit import first_state, sweep_move
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.moves import Cycle
from tests.bayes_mallows.cases import (
    EXPECTED,
    chain_numbers,
    data_of,
    expected,
    expected_centers,
    model_of,
    posterior_of,
    settings_of,
    z_scores,
)
from tests.every_run import turns_in_every_run
from tests.oracles import bayes_mallows as oracle

BOUND = 5.0


def gaps(distance, form, prior, found=None, n_iterations=1200, **options):
    """How many Monte Carlo errors a chain is from the enumerated answer."""
    latent = [] if form == "full" else [LatentRankings()]
    move = Cycle([*latent, SplitMerge(4), Groups()])
    data = data_of(form)
    numbers = chain_numbers(data, settings_of(distance, prior, **options), n_iterations, move=move)
    found = found or posterior_of(distance, form, prior)
    return np.abs(z_scores(numbers, expected(found, len(data.agents)))).max()


@pytest.mark.parametrize(
    ("distance", "form", "prior"),
    turns_in_every_run(oracle.DISTANCES, ("full", "top"), ("dp", "pitman-yor", "mfm")),
)
def test_splits_and_merges_alone_have_the_posterior(distance, form, prior):
    assert gaps(distance, form, prior) < BOUND


def test_splits_and_merges_know_where_centers_are_expected():
    agents = data_of("full").agents
    found = oracle.posterior(model_of("footrule", "dp", centers=expected_centers("footrule")), agents)
    assert gaps("footrule", "full", "dp", found=found, **EXPECTED) < BOUND


@pytest.mark.parametrize("name", ["log_choice_of_two", "log_prior_of_two"])
def test_twins_that_forget_a_part_of_the_ratio_are_rejected(name, monkeypatch):
    monkeypatch.setattr(split_merge, name, lambda *_: 0.0)
    assert gaps("kendall", "full", "mfm", n_iterations=2500) > 2 * BOUND


@pytest.mark.parametrize("place", ["splitting", "merging"])
def test_twins_that_take_proposals_for_granted_are_rejected(place, monkeypatch):
    """The probability of what is proposed is left out in one direction: there all is 3 nats more probable."""
    divide = split_merge.divide

    def twin(*given):
        splitting = given[7]
        return divide(*given) + (3.0 if splitting == (place == "splitting") else 0.0)

    monkeypatch.setattr(split_merge, "divide", twin)
    assert gaps("kendall", "full", "mfm", n_iterations=2500) > 2 * BOUND


def groups_of_three(seed):
    """Rankings around three centers that are near each other."""
    rng = np.random.default_rng(seed)
    centers = [list(range(8)), [1, 0, 2, 3, 7, 6, 5, 4], [7, 6, 5, 4, 3, 2, 1, 0]]
    drawn = [permix.Mallows(center, 0.6).sample(150, rng).orders for center in centers]
    return permix.Preferences.from_rankings(permix.Rankings.from_orders(np.concatenate(drawn).tolist()))


def test_chains_of_one_group_and_of_many_come_to_the_same():
    settings = BayesianMallowsParameters("mfm")
    model = bayes_model(groups_of_three(0), settings)
    for chain in range(2):
        rng = np.random.default_rng(chain)
        state, move = first_state(model, rng, chain), sweep_move(model, settings)
        for _ in range(150):
            move.step(rng, state)
        assert np.count_nonzero(state.sizes_in_use > 75) == 3


def test_starts_are_as_probable_as_the_groups_that_rankings_were_drawn_from():
    settings = BayesianMallowsParameters(3)
    model = bayes_model(groups_of_three(1), settings)
    truth = first_state(model, np.random.default_rng(0))
    truth.set_labels(np.repeat(np.arange(3), 150)[np.argsort(model.in_turn)], np.random.default_rng(0))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        state = climbed(lambda rng=rng: first_state(model, rng), sweep_move(model, settings), rng)
        assert log_mixture(state) > log_mixture(truth) - 10.0  # draws are some nats below the best
