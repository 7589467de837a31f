"""Fits among many that are compared: starts on a part of the agents, several optima with everybody."""

import numpy as np
import pytest

import permix
from permix.estimators.preference_input import as_preferences
from permix.mallows import restarts
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters


def lists(n_agents=900, n_groups=6, seed=3):
    """Lists of three of seven items, from groups that overlap."""
    made = permix.datasets.make_mallows_mixture(
        n_agents, 7, n_groups, dispersion=0.6, observed="top", top=3, random_state=seed
    )
    return as_preferences(made.data)


def settings(k, **options):
    return MallowsParameters(k, progress=False, **{"n_init": 3, "random_state": 0} | options)


@pytest.fixture
def searched(monkeypatch):
    """Numbers of rows that starts were tried on."""
    sizes, original = [], restarts.KendallRows.part

    def spy(rows, rng):
        part = original(rows, rng)
        sizes.append(len(part.profile.stated))
        return part

    monkeypatch.setattr(restarts.KendallRows, "part", spy)
    return sizes


def test_starts_of_compared_fits_are_tried_on_fewer_agents(monkeypatch, searched):
    monkeypatch.setattr(restarts, "MOST_COMPARED", 40)
    data = lists()
    n_rows = len(data.collapse())
    two = fit_mallows(data, settings(2))
    assert searched == [n_rows]
    three = fit_mallows(data, settings(3), two.components)
    again = fit_mallows(data, settings(3), three.components)
    assert max(searched[1:]) < 60 < n_rows / 2
    for fit in (three, again):  # with everybody nevertheless, and at rest there
        assert fit.probabilities.shape == (900, 3)
        assert float(fit.log_likelihood) > float(two.log_likelihood)
        rested = fit_mallows(data, settings(3, n_init=1), fit.components)
        assert float(rested.log_likelihood) >= float(fit.log_likelihood) - 1e-6


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(restarts, "MOST_COMPARED", 40)
    data = lists()
    two = fit_mallows(data, settings(2)).components
    one, other = (fit_mallows(data, settings(4, n_jobs=n), two) for n in (1, 3))
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    np.testing.assert_array_equal(one.start_log_likelihoods, other.start_log_likelihoods)


@pytest.mark.parametrize("most", [40, 4000])
def test_what_a_part_of_the_agents_led_to_is_kept(monkeypatch, most):
    """One fresh start is behind a good optimum for some seed; with that optimum known the fit never is."""
    monkeypatch.setattr(restarts, "MOST_COMPARED", most)
    data = lists()
    good = fit_mallows(data, settings(6, n_init=10))
    value = float(good.log_likelihood)
    forgot = []
    for seed in range(4):
        one = settings(6, n_init=1, random_state=seed)
        assert float(fit_mallows(data, one, good.components).log_likelihood) >= value - 1e-6
        forgot.append(float(fit_mallows(data, one).log_likelihood))
    assert min(forgot) < value - 0.5


def test_parts_are_agents_and_not_rows():
    """The mean number of different rows of parts is what was asked for; what many say stays in."""
    counts = np.array([400, 90] + [1] * 60 + [3] * 30)
    share = restarts.share_with_rows(counts, 40.0)
    rng = np.random.default_rng(0)
    found = np.array([(rng.binomial(counts, share) > 0).sum() for _ in range(2000)])
    assert found.mean() == pytest.approx(40.0, abs=5 * found.std() / np.sqrt(2000))
    rows = 40 / len(counts)  # the twin takes rows: its parts have as few different ones, of fewer agents
    assert abs(share - rows) > 0.05
    assert restarts.share_with_rows(counts, 1000.0) == pytest.approx(1.0, abs=1e-6)
