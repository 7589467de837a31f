"""Whole climbs in compiled code, and the search by crossing optima."""

import numpy as np
import pytest

from permix.datasets import make_mallows_mixture
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.optima import Optima, matched
from permix.estimators.preference_input import as_preferences
from permix.mallows.climbs import Follow, Run
from permix.mallows.em import MallowsEM
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.rounds.exchanges import exchanged, find_exchanges
from permix.mallows.start import first_components
from tests.distributions.conditioning.test_pair_words import some_rows
from tests.mallows.test_em import KEY, SILENT


def climbed(preferences, k=3, seed=0, **settings):
    """One climb from agents far from each other: its EM object, and where it ended."""
    profile = Profile.of(preferences)
    settings = MallowsParameters(k, **settings)
    em = MallowsEM(profile, settings, KEY)
    return em, em.climb(first_components(profile, settings, np.random.default_rng(seed)), SILENT)


def all_gains(em, components):
    """Gains of all exchanges of neighbors, (K, m - 1), by sums over all rows."""
    joints = [part.log_joint(components) for part in em.parts]
    shares = [np.exp(joint - np.logaddexp.reduce(joint, axis=0)) for joint in joints]
    leads = np.zeros(components.n_items - 1)
    return np.array(
        [
            sum(
                part.gains(components, k, mine[k], leads, -np.inf)
                for part, mine in zip(em.parts, shares, strict=True)
            )
            for k in range(components.n_components)
        ]
    )


def without_words(preferences):
    profile = Profile.of(preferences)
    profile.__dict__["_words"] = None
    return profile


@pytest.mark.parametrize("search", ["local", "exact"])
@pytest.mark.parametrize("full", [True, False], ids=["full rankings", "lists with ties"])
@pytest.mark.parametrize("words", [True, False], ids=["words", "levels"])
def test_a_climb_ends_where_nothing_gains(full, words, search):
    """No round of EM and no exchange raises the likelihood, which is that of what is returned."""
    settings = MallowsParameters(3, tol=1e-9, max_iter=2000, center_search=search)
    for seed in range(4 if search == "local" else 1):
        profile = (Profile.of if words else without_words)(some_rows(7, full))
        em = MallowsEM(profile, settings, KEY)
        run = em.climb(first_components(profile, settings, np.random.default_rng(seed)), SILENT)
        assert run.converged
        found, statistics = em.e_step(run.components, 0)
        following = em.m_step(run.components, statistics)
        assert float(found) == pytest.approx(float(run.log_likelihood), abs=1e-8)
        np.testing.assert_array_equal(following.centers, run.components.centers)
        assert float(em.e_step(following, 0)[0]) - float(found) <= 1e-6
        assert all_gains(em, run.components).max() <= 1e-6
        assert np.diff(run.history[:, 0]).min() >= -1e-9


@pytest.mark.parametrize("full", [True, False], ids=["full rankings", "lists with ties"])
def test_bounds_leave_out_no_exchange(full):
    """The exchange that is found is the best of all, and where none is found none gains."""
    rng, n_found = np.random.default_rng(3), 0
    em, _ = climbed(some_rows(7, full))
    for _ in range(20):
        centers = np.array([rng.permutation(7) for _ in range(3)])
        mixture = MallowsComponents(
            tuple(range(7)), rng.dirichlet(np.full(3, 3.0)), centers, rng.random(3) * 1.5
        )
        exact = all_gains(em, mixture)
        now, statistics = em.exact_step(mixture)
        exchanges = {each.k: each for each in find_exchanges(em.parts, mixture, statistics, 4.0)}
        for k, gains in enumerate(exact):
            assert (k in exchanges) == (gains.max() > 4.0)
            if k in exchanges:
                swapped = mixture.centers[k].copy()
                at = gains.argmax()
                swapped[[at, at + 1]] = swapped[[at + 1, at]]
                np.testing.assert_array_equal(exchanges[k].center, swapped)
                assert exchanges[k].gain == pytest.approx(gains.max())
                value = em.exact_step(exchanged(mixture, [exchanges[k]]))[0]
                assert value - now == pytest.approx(gains.max(), abs=1e-8)
        n_found += len(exchanges)
    assert 5 < n_found < 55  # of 60: both answers occur


def test_a_climb_that_the_user_stops():
    """It ends with the present round, wherever that is, and with the likelihood of what it returns."""
    profile = Profile.of(some_rows(7, False))
    em = MallowsEM(profile, MallowsParameters(3, tol=1e-9), KEY)
    start = first_components(profile, MallowsParameters(3), np.random.default_rng(0))
    n_rounds = len(em.climb(start, SILENT).history) + 3
    for n in range(1, n_rounds, 3):
        seen = []
        follow = Follow(lambda _, value, seen=seen: seen.append(value), lambda n=n, seen=seen: len(seen) >= n)
        stopped = em.climb(start, follow)
        assert not stopped.converged
        assert len(seen) == n
        assert float(stopped.log_likelihood) == seen[-1]
        if n > 3:  # then no round draws
            assert float(em.e_step(stopped.components, 0)[0]) == pytest.approx(seen[-1])


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
    optima = Optima(100, 0.01)
    for centers, value in [((forth, back), -10.0), ((near, back), -9.0), ((back, back), -9.5)]:
        optima.add(run(np.array(centers), value))
    assert [each.log_likelihood for each in optima.runs] == [-9.0, -9.5]
    optima.add(run(np.array([forth, back]), -12.0))
    assert len(optima.runs) == 2
    new = np.array([2, 3, 0, 1, 5, 4])
    n_new = []
    for seed in range(40):
        crossed = optima.crossed(np.random.default_rng(seed), lambda: new)
        n_new.append(int((crossed.centers == new).all(axis=1).sum()))
        assert crossed.weights.sum() == pytest.approx(1.0)
    assert set(n_new) == {0, 1}  # every other one, or so, has a center anew
    assert 8 <= sum(n_new) <= 32


def test_crossings_find_what_starts_do_not():
    """Eight groups that overlap: fits with other seeds come to the same optimum, single climbs rarely."""
    data = as_preferences(make_mallows_mixture(800, 7, 8, dispersion=0.6, random_state=2).data)
    fits = [fit_mallows(data, MallowsParameters(8, n_init=4, random_state=seed)) for seed in range(3)]
    best = max(float(fit.log_likelihood) for fit in fits)
    assert all(float(fit.log_likelihood) > best - 0.1 for fit in fits)
    single = [float(climbed(data, 8, seed)[1].log_likelihood) for seed in range(12)]
    assert sum(value > best - 0.1 for value in single) <= 2
