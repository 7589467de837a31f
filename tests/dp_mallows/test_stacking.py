"""Chains that do not mix count by how well they predict lists that are left out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import permix
from permix.dp_mallows.fit import fit_dp_mallows
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.predict import ListPredictive
from permix.errors import ConvergenceWarning
from permix.estimators.ranking_lists import as_top_lists


@pytest.fixture(scope="module")
def stuck():
    """Two groups of opposite opinion; one chain finds them, the other is held at a single group."""
    made = permix.datasets.make_mallows_mixture(200, 5, 2, dispersion=0.2, random_state=3)
    settings = DPMallowsParameters(n_draws=20, n_burn_in=20, random_state=0, progress=False)
    fit = fit_dp_mallows(as_top_lists(made.data), settings)
    one = np.zeros(fit.clusters.labels.shape[1], np.int64)
    arrays = dict(fit.draws.arrays)
    arrays["labels"] = arrays["labels"].copy()
    arrays["labels"][1] = one
    arrays["log_joint"] = np.random.default_rng(0).normal(size=(2, 20)) + np.array([[0.0], [-90.0]])
    from permix.dp_mallows.fit import draw_clusters, exact_model

    draws = dataclasses.replace(fit.draws, arrays=arrays)
    clusters = draw_clusters(exact_model(fit.rankings, settings), settings, draws)
    return dataclasses.replace(fit, draws=draws, clusters=clusters)


def test_the_chain_that_predicts_left_out_lists_counts(stuck):
    weights = ListPredictive(stuck).draw_weights
    assert weights.mean() == pytest.approx(1.0)
    assert weights[:20].sum() > 0.95 * weights.sum()
    stacked = ListPredictive(stuck).log_probability(stuck.rankings)[0].mean()
    averaged = ListPredictive(stuck, stacked=False).log_probability(stuck.rankings)[0].mean()
    assert stacked > averaged + 0.05


def test_probabilities_still_sum_to_one(stuck):
    from itertools import permutations

    every = permix.Rankings.from_orders(list(permutations(range(5))), items=stuck.items)
    logs = ListPredictive(stuck).log_probability(as_top_lists(every))[0]
    assert np.exp(logs).sum() == pytest.approx(1.0)


def test_chains_that_agree_count_alike():
    made = permix.datasets.make_mallows_mixture(100, 4, 1, dispersion=0.2, random_state=3)
    settings = DPMallowsParameters(n_draws=400, n_burn_in=100, random_state=0, progress=False)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fit = fit_dp_mallows(as_top_lists(made.data), settings)
    assert set(ListPredictive(fit).draw_weights) == {1.0}
