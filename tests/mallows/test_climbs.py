"""Whole climbs in compiled code, and the search by crossing optima."""

import numpy as np
import pytest

from permix.datasets import make_mallows_mixture
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.preference_input import as_preferences
from permix.mallows import climb_jit, em
from permix.mallows.crossings import Optima, matched
from permix.mallows.em import Follow, MallowsEM, Run
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.start import first_components
from tests.distributions.conditioning.test_pair_words import some_rows
from tests.mallows.test_em import KEY, SILENT


def climbed(preferences, k=3, seed=0, **settings):
    """One climb from agents far from each other: its EM object, and where it ended."""
    profile = Profile.of(preferences)
    settings = MallowsParameters(k, **settings)
    em = MallowsEM(profile, settings, KEY)
    assert em.whole is not None
    return em, em.climb(first_components(profile, settings, np.random.default_rng(seed)), SILENT)


def best_gain(em, components):
    """Largest gain of an exchange of neighbors, by sums over all rows."""
    joint = em.whole.log_joint(components)
    shares = np.exp(joint - np.logaddexp.reduce(joint, axis=0))
    return max(em.whole.gains(components, k, shares[k]).max() for k in range(components.n_components))


@pytest.mark.parametrize("full", [True, False], ids=["full rankings", "lists with ties"])
def test_a_climb_ends_where_nothing_gains(full):
    """No round of EM and no exchange raises the likelihood, which is that of what is returned."""
    for seed in range(4):
        em, run = climbed(some_rows(7, full), seed=seed, tol=1e-9, max_iter=2000)
        assert run.converged
        found, following = em.round(run.components, 0)
        assert float(found) == pytest.approx(float(run.log_likelihood), abs=1e-8)
        np.testing.assert_array_equal(following.centers, run.components.centers)
        assert float(em.e_step(following, 0)[0]) - float(found) <= 1e-6
        assert best_gain(em, run.components) <= 1e-6
        assert np.diff(run.history[:, 0]).min() >= -1e-9


def test_bounds_leave_out_no_exchange():
    """The exchange that is found is the best of all, and where none is found none gains."""
    rng = np.random.default_rng(3)
    for full in (True, False):
        em, _ = climbed(some_rows(7, full))
        words, n_found = em.whole.words, 0
        rows, ties = (words.columns, words.counts), len(words.against) > 0
        for _ in range(20):
            centers = np.array([rng.permutation(7) for _ in range(3)])
            mixture = MallowsComponents(
                tuple(range(7)), rng.dirichlet(np.full(3, 3.0)), centers, rng.random(3) * 1.5
            )
            joint = em.whole.log_joint(mixture)
            shares = np.exp(joint - np.logaddexp.reduce(joint, axis=0))
            wins = em.whole.e_step(mixture, None, True)[1].wins
            places, gains = np.empty(3, dtype=np.int64), np.empty(3)
            given = rows, ties, shares * words.counts, wins, mixture.centers, mixture.decays, 4.0
            climb_jit._find_exchanges(*given, np.empty(7), places, gains)
            for k in range(3):
                exact = em.whole.gains(mixture, k, shares[k])
                assert places[k] == (exact.argmax() if exact.max() > 4.0 else -1)
                assert gains[k] == pytest.approx(max(exact.max(), 4.0))
            n_found += (places >= 0).sum()
        assert 10 < n_found < 50  # of 60: both answers occur


def test_parts_of_a_climb_end_where_a_whole_one_does(monkeypatch):
    """Climbs that look for Ctrl-C every few rounds, and those that Ctrl-C ends."""
    whole = climbed(some_rows(7, False), tol=1e-9, max_iter=2000)[1]
    monkeypatch.setattr(em, "WORK_AT_ONCE", 1)
    parts = climbed(some_rows(7, False), tol=1e-9, max_iter=2000)[1]
    np.testing.assert_array_equal(parts.components.centers, whole.components.centers)
    assert float(parts.log_likelihood) == pytest.approx(float(whole.log_likelihood), abs=1e-6)
    assert parts.converged
    seen = []
    profile = Profile.of(some_rows(7, False))
    one = MallowsEM(profile, MallowsParameters(3), KEY)
    follow = Follow(lambda _, value: seen.append(value), lambda: len(seen) > 4)
    start = first_components(profile, MallowsParameters(3), np.random.default_rng(0))
    stopped = one.climb(start, follow)
    assert not stopped.converged
    assert len(seen) == 5
    assert float(one.e_step(stopped.components, 0)[0]) == pytest.approx(seen[-1])


def test_centers_are_matched():
    centers = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]])
    partners, places = matched(centers, centers[[2, 0, 1]])
    np.testing.assert_array_equal(partners, [1, 2, 0])
    assert places == 0
    swapped = centers.copy()
    swapped[1] = [3, 2, 0, 1]
    assert matched(centers, swapped)[1] == 2


def test_of_a_family_the_best_is_kept():
    def run(centers, value):
        mixture = MallowsComponents(tuple(range(6)), np.full(2, 0.5), centers, np.ones(2))
        return Run(mixture, value, np.zeros((1, 2)), True)

    forth, back = np.arange(6), np.arange(6)[::-1]
    near = forth[[1, 0, 2, 3, 4, 5]]
    optima = Optima(100)
    for centers, value in [((forth, back), -10.0), ((near, back), -9.0), ((back, back), -9.5)]:
        optima.add(run(np.array(centers), value))
    assert [each.log_likelihood for each in optima.runs] == [-9.0, -9.5]
    optima.add(run(np.array([forth, back]), -12.0))
    assert len(optima.runs) == 2
    new = np.array([2, 3, 0, 1, 5, 4])
    for seed in range(20):
        crossed = optima.crossed(np.random.default_rng(seed), lambda: new)
        assert (crossed.centers == new).all(axis=1).sum() == 1
        assert crossed.weights.sum() == pytest.approx(1.0)


def test_crossings_find_what_starts_do_not():
    """Eight groups that overlap: fits with other seeds come to the same optimum, single climbs rarely."""
    data = as_preferences(make_mallows_mixture(800, 7, 8, dispersion=0.6, random_state=2).data)
    fits = [fit_mallows(data, MallowsParameters(8, n_init=4, random_state=seed)) for seed in range(3)]
    best = max(float(fit.log_likelihood) for fit in fits)
    assert all(float(fit.log_likelihood) > best - 0.1 for fit in fits)
    single = [float(climbed(data, 8, seed)[1].log_likelihood) for seed in range(12)]
    assert sum(value > best - 0.1 for value in single) <= 2
