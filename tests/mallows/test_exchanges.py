"""Exchanges of neighbors and exact sums against enumeration, and the optimum by exhaustive search."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.datasets import make_mallows_mixture
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.preference_input import as_preferences
from permix.kernels.kemeny_search import order_score
from permix.mallows.agreement import agreement
from permix.mallows.em import MallowsEM
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.predict import predict_proba
from permix.mallows.rounds.sums import SumRounds
from tests.distributions.conditioning.test_pair_words import some_rows
from tests.mallows.test_em import COMPONENTS, KEY, POSETS, agents_of, enumerated
from tests.oracles import posets_all as oracle


def three_components(n_items, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([rng.permutation(n_items) for _ in range(3)])
    return MallowsComponents(
        tuple(range(n_items)), np.array([0.5, 0.3, 0.2]), centers, np.array([0.3, 0.9, 0.1])
    )


def em_of(preferences, words=True, k=3):
    profile = Profile.of(preferences)
    if not words:
        profile.__dict__["_words"] = None
    return MallowsEM(profile, MallowsParameters(k), KEY)


def test_e_step_by_sums():
    """Partial orders that do not partition the items: no noise any more."""
    partial = [relation for relation in POSETS if not oracle.is_partitioned(relation, 4)]
    em = em_of(agents_of(partial, 4), k=2)
    assert em.exact
    assert [type(part) for part in em.parts] == [SumRounds]
    for decays in (COMPONENTS.decays, COMPONENTS.decays * 2.0):  # the same object: sums are renewed
        components = MallowsComponents(COMPONENTS.items, COMPONENTS.weights, COMPONENTS.centers, decays)
        found, statistics = em.e_step(components, 0)
        total, members, wins = enumerated(components, partial)
        assert float(found) == pytest.approx(total, abs=1e-9)
        np.testing.assert_allclose(statistics.members, members, atol=1e-9)
        np.testing.assert_allclose(statistics.wins, wins, atol=1e-9)
        for k in range(2):
            assert statistics.against[k] == pytest.approx(order_score(wins[k], components.centers[k]))
    # The broken twin: sums of the decays before.
    em.parts[0].known[1][:] = COMPONENTS.decays
    assert float(em.e_step(COMPONENTS, 0)[0]) != pytest.approx(enumerated(COMPONENTS, partial)[0], abs=0.1)


def incomplete(n_items):
    rng = np.random.default_rng(4)
    orders = [rng.permutation(n_items)[: rng.integers(2, n_items)].tolist() for _ in range(30)]
    return Preferences.from_rankings(Rankings.from_orders(orders, n_items=n_items, unlisted="unknown"))


@pytest.mark.parametrize("case", ["full", "lists", "levels", "sums", "words and sums"])
def test_gains_are_differences_of_the_likelihood(case):
    n = 6
    data = {"sums": incomplete(n), "full": some_rows(n, True)}.get(case, some_rows(n, False))
    if case == "words and sums":
        data = Preferences.concat([data, incomplete(n)])
    em = em_of(data, words=case != "levels")
    components = three_components(n)
    now = float(em.e_step(components, 0)[0])
    for k in range(3):
        gains, without_share = np.zeros(n - 1), np.zeros(n - 1)
        for part in em.parts:
            joint = part.log_joint(components)
            shares = np.exp(joint[k] - np.logaddexp.reduce(joint, axis=0))
            given = np.zeros(n - 1), -np.inf
            gains += part.gains(components, k, shares, *given)
            without_share += part.gains(components, k, np.ones_like(shares), *given)
        for at in range(n - 1):
            centers = components.centers.copy()
            centers[k, [at, at + 1]] = centers[k, [at + 1, at]]
            changed = MallowsComponents(components.items, components.weights, centers, components.decays)
            assert float(em.e_step(changed, 0)[0]) - now == pytest.approx(gains[at], abs=1e-8)
        # The broken twin: everybody belongs to the component, as if there were no others.
        assert np.abs(without_share - gains).max() > 0.1


N_ITEMS = 6
RANKINGS = np.array(list(permutations(range(N_ITEMS))))
RANKS = np.argsort(RANKINGS, axis=1)
DISTANCES = np.triu(RANKS[:, :, None] > RANKS[:, None, :], 1).sum(axis=(1, 2))


def single_comparisons(seed, n_agents=2000, dispersion=0.85):
    """One comparison from each agent, of a Mallows model so broad that centers are hard to tell apart."""
    rng = np.random.default_rng(seed)
    weights = dispersion**DISTANCES
    ranks = RANKS[rng.choice(len(RANKS), n_agents, p=weights / weights.sum())]
    pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in range(n_agents)])
    places = np.take_along_axis(ranks, pairs, axis=1)
    first, second = np.take_along_axis(pairs, np.argsort(places, axis=1), axis=1).T
    named = list(zip(range(n_agents), first.tolist(), second.tolist(), strict=True))
    stated = np.zeros((N_ITEMS, N_ITEMS))
    np.add.at(stated, (first, second), 1.0)
    return Preferences.from_pairs(named, items=range(N_ITEMS)), stated


def best_of_centers(stated):
    """Log-likelihoods of all centers, each at its best dispersion, the largest first.

    P(a before b) is summed over all rankings and depends on the places of a and b in the center alone.
    """
    above = RANKS[:, :, None] < RANKS[:, None, :]
    by_place = np.array([stated[np.ix_(center, center)] for center in RANKINGS])

    def values(decay):
        weights = np.exp(-decay * DISTANCES)
        logs = np.log(np.tensordot(weights / weights.sum(), above, axes=1) + np.eye(N_ITEMS))
        return (by_place * logs).sum(axis=(1, 2))

    rough = np.array([values(decay) for decay in np.linspace(0.0, 1.0, 21)]).max(axis=0)
    found = []
    for center in np.argsort(-rough)[:20]:
        best = minimize_scalar(
            lambda decay, at=center: -values(decay)[at], bounds=(0.0, 1.0), method="bounded"
        )
        found.append(-best.fun)
    return np.sort(found)[::-1]


@pytest.mark.parametrize("seed", range(8))
def test_single_comparisons_reach_the_optimum(seed):
    data, stated = single_comparisons(seed)
    best, second = best_of_centers(stated)[:2]
    fit = fit_mallows(data, MallowsParameters(1, random_state=seed))
    assert float(fit.log_likelihood) == pytest.approx(best, abs=0.02)
    assert second < best - 0.04  # the search can tell the best center from the next one
    assert fit.log_likelihood.standard_error == 0.0
    assert fit.probabilities.shape == (2000, 1)


def test_agents_who_say_the_same_are_one_row():
    data, _ = single_comparisons(0)
    settings = MallowsParameters(2, random_state=0, n_init=1)
    data = data[:250]
    apart, together = fit_mallows(data, settings), fit_mallows(data.collapse(), settings)
    assert len(together.counts) <= N_ITEMS * (N_ITEMS - 1)
    assert float(apart.log_likelihood) == float(together.log_likelihood)
    np.testing.assert_array_equal(apart.components.centers, together.components.centers)
    np.testing.assert_array_equal(apart.probabilities, together.probabilities[data.equal_rows()])


def test_groups_are_matched_by_their_agents():
    rng = np.random.default_rng(0)
    data = Preferences.from_rankings(
        Rankings.from_orders([rng.permutation(4).tolist() for _ in range(200)], n_items=4)
    )
    centers = np.array([(0, 1, 2, 3), (3, 2, 1, 0)])
    other = np.array([(3, 2, 1, 0), (1, 0, 2, 3)])
    found, changed = (
        MallowsComponents(tuple(range(4)), np.full(2, 0.5), each, np.ones(2)) for each in (centers, other)
    )
    em = em_of(data, k=2)
    matches = agreement(em, found, [found, changed]).matches
    np.testing.assert_array_equal(matches[0], 1.0)
    labels = [predict_proba(c, data).argmax(axis=1) for c in (found, changed)]
    for k in range(2):
        mine = labels[0] == k
        expected = [np.sum(mine & (labels[1] == j)) / np.sum(mine | (labels[1] == j)) for j in range(2)]
        assert matches[1, k] == pytest.approx(max(expected))
    assert matches[1].max() < 1.0  # the broken twin would call them the same
    # Random rankings do not tell these two apart, but they do tell a sharp mixture from both.
    sharp = MallowsComponents(tuple(range(4)), np.array([0.9, 0.1]), centers, np.full(2, 5.0))
    shares = agreement(em, found, [found, sharp]).shares
    np.testing.assert_array_equal(shares, [[0.5, 0.5], [np.nan, np.nan]])
    # As likely by chance: the shares are those of the groups that match.
    near = MallowsComponents(tuple(range(4)), np.array([0.45, 0.55]), centers[::-1].copy(), np.ones(2))
    np.testing.assert_array_equal(agreement(em, found, [near]).shares, [[0.55, 0.45]])


def test_restarts_that_agree_are_counted():
    made = make_mallows_mixture(300, 6, 2, dispersion=0.3, random_state=1)
    fit = fit_mallows(as_preferences(made.data), MallowsParameters(2, n_init=4, random_state=0))
    assert fit.at_best.sum() >= 3
    assert fit.verdict == f"{fit.at_best.sum()} of {len(fit.at_best)} restarts reached this optimum"
    assert fit.group_matches.shape == (len(fit.at_best), 2)
    assert (fit.recurrences >= fit.at_best.sum()).all()
    lonely = dataclasses.replace(fit, start_log_likelihoods=np.array([-3.0, -1.0, -2.0]), restart_shares=None)
    assert lonely.at_best.tolist() == [False, True, False]
    assert lonely.verdict.startswith("Only 1 of 3 restarts")
