"""How probable groups are for agents: given the groups of draws, and by how often agents were in them."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import permix
from permix.bayes_mallows import fit, scores
from permix.bayes_mallows.data import full_rankings
from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.scores import mean_chances
from permix.datasets import make_mallows_mixture


def fitted(data, n_components=2):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = permix.BayesianMallowsMixture(
            n_components, n_draws=250, n_chains=2, random_state=0, progress=False, n_jobs=1
        )
        return model.fit(data)._fitted()


@pytest.fixture(scope="module")
def votes():
    return make_mallows_mixture(200, 5, 2, dispersion=0.4, random_state=1).data


@pytest.fixture(scope="module")
def found(votes):
    return fitted(votes)


def again(of_fit, groups=None):
    """Return the same fit, with nothing computed as yet but for the groups."""
    made = dataclasses.replace(of_fit)
    made.__dict__["groups"] = of_fit.groups if groups is None else groups
    return made


def by_count(of_fit, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(fit, "mean_chances", lambda *_: None)
        return again(of_fit, of_fit.groups).probabilities


def chances_of(of_fit, groups):
    ranks = full_rankings(of_fit.preferences)[1]
    return mean_chances(ranks, groups, of_fit.overlap.linked, of_fit.n_clusters, of_fit.settings)


@pytest.mark.parametrize("n_components", [2, "dp"])
def test_chances_are_how_often_agents_are_in_groups(n_components, votes, found, monkeypatch):
    of_fit = found if n_components == 2 else fitted(votes, n_components)
    assert of_fit.n_clusters == 2
    exact = of_fit.probabilities
    assert (exact.max(axis=1) < 0.9).any()
    assert exact.sum(axis=1) == pytest.approx(1.0)
    counted = by_count(of_fit, monkeypatch)
    error = np.sqrt(exact * np.abs(1.0 - exact) / of_fit.groups.n_draws)
    assert (np.abs(exact - counted) < 6.0 * error + 0.02).all()
    assert np.abs(exact - counted).mean() < 0.02


def test_a_twin_with_other_shares_is_rejected(found, monkeypatch):
    """Both groups are about as large, so that shares left out would not be missed."""
    alike = dataclasses.replace(found.groups, shares=np.where(found.overlap.linked == 0, 0.8, 0.2))
    counted = by_count(found, monkeypatch)
    wrong = np.abs(chances_of(found, alike) - counted).mean()
    assert wrong > 3.0 * np.abs(chances_of(found, found.groups) - counted).mean()


def test_halves_of_the_draws_agree_more_than_by_count(found, monkeypatch):
    """Draws in between others have centers near theirs, but agents are drawn into groups anew."""
    arrays = found.draws.arrays
    halves = [{name: array[:, at::2] for name, array in arrays.items()} for at in range(2)]
    fits = [again(found, GroupDraws.of(half, found.settings)) for half in halves]
    exact, counted = ([each.probabilities for each in fits], [by_count(each, monkeypatch) for each in fits])
    assert np.abs(exact[0] - exact[1]).mean() < 0.5 * np.abs(counted[0] - counted[1]).mean()


def test_long_work_is_left_to_counts(found, monkeypatch):
    monkeypatch.setattr(scores, "MOST_NUMBERS", 10)
    assert chances_of(found, found.groups) is None


def test_rows_that_leave_something_open_are_counted(votes, monkeypatch):
    orders = votes.orders.tolist()
    of_fit = fitted(permix.Rankings.from_orders([*orders[:100], *(order[:3] for order in orders[100:])]))
    assert of_fit.n_clusters == 2
    full, _ = full_rankings(of_fit.preferences)
    exact, counted = of_fit.probabilities, by_count(of_fit, monkeypatch)
    open_rows = np.setdiff1d(np.arange(len(exact)), full)
    assert len(open_rows)
    assert np.array_equal(exact[open_rows], counted[open_rows])
    assert not np.array_equal(exact[full], counted[full])
