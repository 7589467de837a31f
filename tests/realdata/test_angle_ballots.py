"""Angle-based mixtures on the ballots of Dublin West (2002), as a new user would fit them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from permix import AngleMixture, Rankings
from permix.datasets import load_preflib

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


@pytest.fixture
def ballots(data_folder):
    everybody = load_preflib("00001-00000002", ".soi").data.expand()
    rows = np.random.default_rng(0).choice(len(everybody), 2000, replace=False)
    return everybody[np.sort(rows)]


def one_name(model, items):
    """The sum of the probabilities of all ballots that name one candidate."""
    ones = Rankings.from_orders([[item] for item in items], items=items)
    return float(np.exp(model.score_samples(ones)).sum())


def test_default_fits_of_two_seeds_agree_and_their_probabilities_sum_to_one(ballots):
    models = [AngleMixture(4, random_state=seed, progress=False).fit(ballots) for seed in (0, 1)]
    for model in models:
        assert (model.normalizer_, model.converged_) == ("exact", True)
        assert one_name(model, ballots.items) == pytest.approx(1.0, abs=1e-6)
    first, second = models
    assert abs(float(first.log_likelihood_) - float(second.log_likelihood_)) < 0.1
    assert first.centers_ == second.centers_
    np.testing.assert_allclose(first.weights_, second.weights_, atol=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        balanced = AngleMixture(4, normalizer="balanced", random_state=0, n_draws=100, progress=False)
        # Its probabilities sum to one within its error: with four components, that of the worst.
        balanced.fit(ballots)
        error = max(abs(float(gap)) for gap in balanced.normalizer_errors_)
        assert abs(one_name(balanced, ballots.items) - 1.0) < np.expm1(error) + 1e-9
        assert error < 0.1
        # The approximation, by name: far from one.
        approximate = AngleMixture(
            4, inference="vi", normalizer="vmf", n_draws=100, random_state=0, progress=False
        ).fit(ballots)
    assert abs(one_name(approximate, ballots.items) - 1.0) > 0.1
