"""Centers that are expected around a ranking: what may be given, and what new agents then say."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import permix
from permix.errors import DataError
from tests.bayes_mallows.cases import EXPECTED, data_of, expected_centers, model_of, settings_of
from tests.oracles import bayes_mallows as oracle

NAMES = ["ann", "bob", "cid"]
VOTES = permix.Rankings.from_orders([["ann", "bob", "cid"], ["bob", "ann", "cid"]], items=NAMES)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["ann", "bob", "dan"], "'dan', but the items are"),
        (["ann", "bob"], "does not rank 'cid'"),
        (["ann", "bob", "bob"], "does not rank 'cid'"),
        (["ann", "bob", "cid", "cid"], "ranks an item twice"),
        ("ann", "must be a ranking"),
        (VOTES, "must be one ranking, not 2"),
    ],
)
def test_rankings_that_cannot_be_expected(given, said):
    with pytest.raises(DataError, match=said):
        permix.BayesianMallowsMixture(center_prior=given, n_draws=2).fit(VOTES)


def test_a_dispersion_without_a_ranking_says_nothing():
    with pytest.raises(DataError, match="center_prior"):
        permix.BayesianMallowsMixture(center_dispersion=0.2, n_draws=2).fit(VOTES)


def test_expected_rankings_may_be_rankings_or_names_and_are_saved(tmp_path):
    fits = [
        permix.BayesianMallowsMixture(
            center_prior=given, center_dispersion=0.1, n_draws=20, n_burn_in=5, n_chains=1, random_state=0
        ).fit(VOTES)
        for given in (VOTES[1:], ["bob", "ann", "cid"])
    ]
    assert fits[0].centers_ == fits[1].centers_ == VOTES[1:]._replaced(agents=None)
    fits[0].save(tmp_path / "fit.permix")
    again = permix.load(tmp_path / "fit.permix")
    assert again.get_params()["center_prior"] == ("bob", "ann", "cid")
    assert np.array_equal(again.score_samples(VOTES), fits[0].score_samples(VOTES))


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_new_agents_are_expected_as_the_prior_of_centers_says(distance):
    """With a new group likely, what it may be matters: predictions match enumeration, and add up."""
    data = data_of("full")
    settings = settings_of(
        distance, "dp", **EXPECTED, n_draws=3000, n_burn_in=100, n_chains=1, random_state=1
    )
    fit = permix.BayesianMallowsMixture(**{name: getattr(settings, name) for name in settings.declared})
    fit.fit(data.table)
    every = permix.Rankings.from_orders([list(r) for r in permutations(range(4))], items=[0, 1, 2, 3])
    found, errors = fit.score_samples(every, return_error=True)
    found, errors = np.exp(found), 1.5 * np.exp(found) * errors  # draws are nearly independent
    assert found.sum() == pytest.approx(1.0)
    model = model_of(distance, "dp", centers=expected_centers(distance))
    known = oracle.posterior(model, data.agents).evidence
    right = np.array(
        [oracle.posterior(model, (*data.agents, oracle.full(r))).evidence for r in permutations(range(4))]
    )
    right /= known
    twin = model_of(distance, "dp")
    wrong = np.array(
        [oracle.posterior(twin, (*data.agents, oracle.full(r))).evidence for r in permutations(range(4))]
    )
    wrong /= oracle.posterior(twin, data.agents).evidence
    assert np.abs((found - right) / errors).max() < 4.0
    assert np.abs((wrong - right) / errors).max() > 8.0
    drawn = fit._fit.groups.n_draws  # answers are means over so many draws
    drawn_orders = [tuple(r.tolist()) for r in _drawn(fit, 4000)]
    shares = np.array([drawn_orders.count(r) for r in permutations(range(4))]) / 4000
    assert (
        np.abs((shares - right) / np.sqrt(right * (1.0 - right)) / (1 / 4000 + 1 / drawn) ** 0.5).max() < 4.0
    )


def _drawn(model, size):
    from permix.bayes_mallows.predict import draw_rankings

    return draw_rankings(model._fit, size, np.random.default_rng(0))[0]
