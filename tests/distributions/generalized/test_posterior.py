"""Posterior of one generalized Mallows model against enumeration with SciPy's quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest

from permix import Rankings
from permix.convergence import ess_bulk
from permix.distributions.generalized import posterior as room
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.errors import ConvergenceWarning, DataError
from tests.oracles import generalized_mallows as oracle
from tests.oracles.ranking_models import total_variation, total_variation_bound

N = 4
DATA = [((0, 1, 2, 3), 1), ((1, 0), 2), ((3, 0, 1), 1), ((2,), 1)]
PRIOR = [((3, 2, 1, 0), 1), ((2, 3), 2), ((1,), 1)]
RATES = (1.0, 0.5, 0.2)


def table(data, n=N):
    return Rankings.from_orders([order for order, _ in data], n_items=n, counts=[c for _, c in data])


LISTS, PRIOR_LISTS = table(DATA), table(PRIOR)


def settings(prior):
    return {
        "prior_strength": 1.5,
        "prior_rate": RATES,
        "prior_rankings": PRIOR_LISTS if prior else None,
        "random_state": 1,
    }


def exact_distribution(prior, **options):
    return oracle.normalized(
        oracle.center_log_weights(DATA, N, 1.5, RATES, PRIOR if prior else (), **options)
    )


@pytest.fixture
def by_chains(monkeypatch):
    monkeypatch.setattr(room, "ENUMERATE_UP_TO", 0)


@pytest.mark.parametrize("prior", [False, True])
def test_exact_ranks_and_evidence(prior):
    found = GeneralizedMallows.posterior(LISTS, **settings(prior))
    distribution = exact_distribution(prior)
    assert found.exact
    assert np.allclose(found.rank_probabilities, oracle.rank_distribution(distribution, N), atol=1e-7)
    before = np.array(
        [
            [sum(p for c, p in distribution.items() if c.index(a) < c.index(b)) for b in range(N)]
            for a in range(N)
        ]
    )
    assert np.allclose(found.before_probabilities, before, atol=1e-7)
    weights = oracle.center_log_weights(DATA, N, 1.5, RATES, PRIOR if prior else ())
    nothing = oracle.center_log_weights([], N, 1.5, RATES, PRIOR if prior else (), n_stages=3)
    evidence = oracle.log_total(weights) - oracle.log_total(nothing)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-6)
    bound = total_variation_bound(len(found), math.factorial(N))
    assert total_variation(found.centers, distribution) < bound


@pytest.mark.parametrize(
    ("prior", "mistake"),
    [(False, {"beta": oracle.log_beta_infinite}), (True, {"averages": oracle.averages_over_all})],
)
def test_the_twins_are_rejected(prior, mistake):
    found = GeneralizedMallows.posterior(LISTS, **settings(prior))
    twin = oracle.rank_distribution(exact_distribution(prior, **mistake), N)
    assert np.abs(found.rank_probabilities - twin).max() > 1e-3


def test_an_informative_prior_informs():
    without = GeneralizedMallows.posterior(LISTS, **settings(False))
    found = GeneralizedMallows.posterior(LISTS, **settings(True))
    assert found.mean_ranks[3] < without.mean_ranks[3] - 0.2
    strong = GeneralizedMallows.posterior(LISTS, **{**settings(True), "prior_strength": 200.0})
    assert strong.consensus[:2] == (3, 2) or strong.consensus[:2] == (2, 3)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_one_list_has_the_probability_of_lemma_1(length):
    one = Rankings.from_orders([[3, 1, 0, 2][:length]], n_items=4)
    found = GeneralizedMallows.posterior(one, prior_strength=0.7, prior_rate=0.3, n_draws=1)
    assert found.log_evidence == pytest.approx(-np.log(math.perm(4, length)), abs=1e-7)


@pytest.mark.parametrize("stage", [0, 2])
def test_decays_of_exact_draws(stage):
    found = GeneralizedMallows.posterior(LISTS, **{**settings(False), "n_draws": 5000})
    exact = oracle.theta_mean(DATA, N, 1.5, RATES, stage)
    draws = found.theta[:, stage]
    # Five standard errors, plus the error of the difference quotient.
    assert abs(draws.mean() - exact) < 5 * draws.std() / np.sqrt(len(draws)) + 1e-5


# Chains, on the same case.


def effective(found):
    """Draws that would say as much if they were independent: the worst of decays, density and ranks."""
    quantities = [*found.theta.T, found.log_density, *np.argsort(found.centers, axis=1).T]
    return int(min(ess_bulk(values.reshape(found.n_chains, -1).astype(float)) for values in quantities))


@pytest.mark.parametrize("prior", [False, True])
def test_chains_have_the_exact_distribution(prior, by_chains):
    found = GeneralizedMallows.posterior(LISTS, **settings(prior), n_draws=6000, n_thin=3)
    assert not found.exact
    assert found.r_hat < 1.01
    assert 0 < found.acceptance_rate < 1
    size = effective(found)
    bound = total_variation_bound(size, math.factorial(N))
    assert bound < 0.05
    assert total_variation(found.centers, exact_distribution(prior)) < bound
    if prior:
        twin = exact_distribution(prior, averages=oracle.averages_over_all)
    else:
        twin = exact_distribution(prior, beta=oracle.log_beta_infinite)
        for stage in (0, 2):
            exact = oracle.theta_mean(DATA, N, 1.5, RATES, stage)
            draws = found.theta[:, stage]
            assert abs(draws.mean() - exact) < 5 * draws.std() / np.sqrt(size) + 1e-5
    assert total_variation(found.centers, twin) > bound


def test_chains_do_not_stick_where_decays_are_large(by_chains):
    """One list and a small rate: given a large decay the center hardly moves, yet the chains must."""
    data = [((0, 1, 2), 1)]
    found = GeneralizedMallows.posterior(
        table(data), prior_strength=0.5, prior_rate=0.05, n_draws=2500, n_thin=3, random_state=1
    )
    distribution = oracle.normalized(oracle.center_log_weights(data, N, 0.5, (0.05,) * 3))
    assert total_variation(found.centers, distribution) < total_variation_bound(
        effective(found), math.factorial(N)
    )


def test_chains_with_items_that_no_list_names(by_chains):
    data = [((0, 1), 2), ((1,), 1)]
    found = GeneralizedMallows.posterior(
        table(data, 5), prior_rate=0.3, n_draws=2500, n_thin=3, random_state=2
    )
    distribution = oracle.normalized(oracle.center_log_weights(data, 5, 1.0, (0.3,) * 4))
    assert total_variation(found.centers, distribution) < total_variation_bound(
        effective(found), math.factorial(5)
    )


def test_more_items():
    truth = GeneralizedMallows(np.random.default_rng(0).permutation(15), np.linspace(1.5, 0.5, 6))
    lists = truth.sample(300, random_state=1, lengths=6)
    found = GeneralizedMallows.posterior(lists, n_draws=400, random_state=3)
    assert not found.exact
    assert found.r_hat < 1.1
    assert found.consensus[:4] == truth.center[:4]
    low, high = found.theta_interval(1 - 1e-3).T
    assert np.all((low < truth.theta[:6]) & (truth.theta[:6] < high))
    again = GeneralizedMallows.posterior(lists, n_draws=400, random_state=3)
    assert np.array_equal(found.centers, again.centers)
    assert np.array_equal(found.theta, again.theta)


def test_chains_that_disagree_are_reported(by_chains):
    with pytest.warns(ConvergenceWarning, match="do not agree"):
        GeneralizedMallows.posterior(LISTS, n_draws=2, n_burn_in=0, random_state=1)


# Behavior.


def test_draws_are_models_and_summaries_are_theirs():
    found = GeneralizedMallows.posterior(LISTS, **settings(False), n_draws=50)
    assert len(found) == 200
    model = found.model(3)
    assert np.array_equal(model.center_order, found.centers[3])
    assert np.array_equal(model.theta, found.theta[3])
    assert np.allclose(found.theta_mean, found.theta.mean(axis=0))
    assert np.allclose(found.theta_interval(0.5)[:, 0], np.quantile(found.theta, 0.25, axis=0))
    assert np.allclose(found.rank_probabilities.sum(axis=0), 1)
    assert found.n_lists.tolist() == [5, 4, 2]
    assert repr(found).startswith("GeneralizedMallowsPosterior: 200 draws (exact), items by mean rank")
    assert "theta 3:" in repr(found)
    with pytest.raises(DataError, match="between 0 and 1"):
        found.theta_interval(89)


def test_prior_lists_may_be_longer_than_the_data():
    short = Rankings.from_orders([[0]], n_items=4)
    found = GeneralizedMallows.posterior(short, prior_rankings=PRIOR_LISTS, random_state=0)
    assert found.theta.shape[1] == 3
    assert found.n_lists.tolist() == [1, 0, 0]
    assert GeneralizedMallows.posterior(short, random_state=0).theta.shape[1] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior_strength": 0.0}, "prior_strength=0.0 must be a positive number"),
        ({"prior_strength": "strong"}, "prior_strength='strong'"),
        ({"prior_strength": np.nan}, "prior_strength=nan"),
        ({"prior_rate": 0.0}, "prior_rate=0.0 must be a positive number"),
        ({"prior_rate": [1.0, 1.0]}, "prior_rate has 2 numbers, but lists reach 3 stages"),
        ({"prior_rate": "low"}, "prior_rate='low'"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"n_chains": 0}, "n_chains=0"),
        ({"n_thin": 0}, "n_thin=0"),
        ({"n_burn_in": -1}, "n_burn_in=-1"),
        ({"prior_rankings": [[0, 1]]}, "prior_rankings must be Rankings, not list"),
        ({"prior_rankings": Rankings.from_orders([["x", "y"]])}, "different items"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(DataError, match=message):
        GeneralizedMallows.posterior(LISTS, **change)
