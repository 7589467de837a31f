"""The E-step by words against that row by row, which counts pairs one by one."""

import numpy as np
import pytest

from permix.data.rankings import Rankings
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.preference_input import as_preferences
from permix.kernels.kemeny_search import order_score
from permix.mallows.em import MallowsEM
from permix.mallows.parameters import MallowsParameters
from permix.mallows.rounds.levels import LevelRounds
from permix.mallows.rounds.words import WordRounds
from permix.runtime.threads import at_most
from tests.distributions.conditioning.test_pair_words import some_rows

KEY = np.array([5, 6], np.uint64)


def mixture(n_items, decays=(0.3, 0.9, 0.1), seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([rng.permutation(n_items) for _ in decays])
    return MallowsComponents(tuple(range(n_items)), np.array([0.5, 0.3, 0.2]), centers, np.array(decays))


def both_ways(preferences):
    """EM by words, and EM that does not know of words."""
    plain = Profile.of(preferences)
    plain.__dict__["_words"] = None
    found = [MallowsEM(profile, MallowsParameters(3), KEY) for profile in (Profile.of(preferences), plain)]
    assert isinstance(found[0].parts[0], WordRounds)
    assert isinstance(found[1].parts[0], LevelRounds)
    return found


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("n_items", [3, 10, 11, 13])
def test_e_step(n_items, full):
    by_words, by_rows = both_ways(some_rows(n_items, full))
    for seed in range(3):  # the same object: codes of centers that moved are renewed
        components = mixture(n_items, seed=seed // 2)
        (value, found), (other, expected) = (em.e_step(components, 0) for em in (by_words, by_rows))
        assert float(value) == pytest.approx(float(other), rel=1e-12)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-9)
        for k in range(3):
            assert found.against[k] == pytest.approx(order_score(found.wins[k], components.centers[k]))
    # The broken twin: one center's distances are one too large.
    by_words.parts[0].blocks[0].codes[0] += 1
    assert float(by_words.e_step(components, 0)[0]) != pytest.approx(float(other), rel=1e-6)


def test_probabilities_too_small_for_tables():
    by_words, by_rows = both_ways(some_rows(10, True))
    components = mixture(10, decays=(60.0, 45.0, 50.0))
    (value, found), (other, expected) = (em.e_step(components, 0) for em in (by_words, by_rows))
    assert float(value) < -750 * 40  # no row has a probability that a double can hold
    assert float(value) == pytest.approx(float(other), rel=1e-12)
    np.testing.assert_allclose(found.wins, expected.wins, atol=1e-9)


def test_rows_are_drawn_as_they_would_be_shared_out():
    em, _ = both_ways(some_rows(6, False))
    components = mixture(6)
    rng = np.random.default_rng(0)
    _, expected = em.e_step(components, 0)
    drawn = [em.exact_step(components, rng)[1] for _ in range(400)]
    for name in ("members", "wins", "against", "blocks"):
        values = np.array([getattr(each, name) for each in drawn])
        error = values.std(axis=0) / 20
        assert np.all(np.abs(values.mean(axis=0) - getattr(expected, name)) < 5 * error + 1e-9)
        assert values.std() > 0.1
    assert all(each.members.sum() == pytest.approx(expected.members.sum()) for each in drawn)


def test_blocks_of_rows_whatever_the_threads():
    rng = np.random.default_rng(0)
    orders = np.argsort(rng.random((100_000, 9)), axis=1)
    profile = Profile.of(as_preferences(Rankings.from_orders(orders)))
    assert len(profile.words.counts) > 1 << 16
    components, found = mixture(9), []
    for n_jobs in (1, 2):
        with at_most(n_jobs):
            found.append(MallowsEM(profile, MallowsParameters(3), KEY).e_step(components, 0))
    assert float(found[0][0]) == float(found[1][0])
    for one, two in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(one, two)
    assert found[0][1].members.sum() == pytest.approx(100_000)
