"""Rows as words of their pairs: distances, blocks and counts against plain loops."""

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.pair_words import MOST_ITEMS, pair_words
from permix.distributions.conditioning.tournaments_jit import disagreements


def some_rows(n_items, full, seed=0, n_rows=40):
    """Full rankings, or those with top lists and levels; some rows twice."""
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(n_rows):
        order = rng.permutation(n_items)
        cuts = np.arange(1, n_items)
        if not full:
            order = order[: rng.integers(1, n_items + 1)]
            cuts = np.flatnonzero(rng.random(len(order)) < 0.6)
        groups.append([group.tolist() for group in np.split(order, cuts[cuts > 0])])
    counts = rng.integers(1, 5, n_rows + 3)
    return Preferences.from_levels(
        groups + groups[:3], items=range(n_items), rest_below=True, counts=counts.tolist()
    )


def wrong_distance(words, centers):
    """The broken twin: pairs left open count as reversed where the center has the later item first."""
    return words._replace(against=words.against[:0]).distances(centers)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("n_items", [2, 3, 10, 11, 12, MOST_ITEMS])
def test_distances_and_blocks(n_items, full):
    profile = Profile.of(some_rows(n_items, full))
    words, which = pair_words(profile)
    rng = np.random.default_rng(1)
    centers = np.array([rng.permutation(n_items) for _ in range(3)], np.int32)
    plain = np.empty((len(profile.partitioned), 3), np.int64)
    ranks = np.argsort(centers, axis=1)
    disagreements(0, len(plain), profile.arrays, profile.partitioned, ranks, plain)
    np.testing.assert_array_equal(words.distances(centers)[:, which].T, plain)
    assert plain.max() > 0
    blocks = np.zeros((len(plain), n_items + 1))
    np.add.at(blocks, (profile.block_rows, profile.block_sizes), 1)
    np.testing.assert_array_equal(words.blocks[words.shapes[which]], blocks)
    assert (blocks.sum() == 0) == (full or len(words.against) == 0)
    if not full and n_items > 3:
        assert np.any(plain != wrong_distance(words, centers)[:, which].T)


def test_rows_that_say_the_same_are_one():
    profile = Profile.of(some_rows(7, False))
    words, _ = pair_words(profile)
    collapsed = Profile.of(profile.preferences[profile.partitioned].collapse())
    assert len(words.counts) == len(collapsed.partitioned) < len(profile.partitioned)
    assert sorted(words.counts) == sorted(collapsed.counts)
    assert words.counts.sum() == profile.counts[profile.partitioned].sum()
    # A top list and the same with the last item named are the same; the full ranking is one shape.
    orders = [[0, 1, 2, 3], [0, 1, 2], [0, 1]]
    same, _ = pair_words(Profile.of(Preferences.from_rankings(Rankings.from_orders(orders, n_items=4))))
    assert sorted(same.counts) == [1.0, 2.0]


@pytest.mark.parametrize("full", [True, False])
def test_places_and_losses_are_those_of_rows(full):
    """How many items a row puts before each, and over all agents, how much more often before than after."""
    words, which = pair_words(profile := Profile.of(some_rows(12, full)))
    lost = np.zeros(12)
    for at, row in enumerate(profile.partitioned):
        levels = np.full(12, 12)
        begin, end = profile.preferences.level_indptr[row : row + 2]
        levels[profile.preferences.level_items[begin:end]] = profile.preferences.levels[begin:end]
        before = (levels[None] < levels[:, None]).sum(axis=1)
        np.testing.assert_array_equal(words.n_before(which[at]), before)
        lost += profile.counts[row] * (before - (levels[None] > levels[:, None]).sum(axis=1))
    np.testing.assert_allclose(words.lost(), lost)
    assert lost.any()


def test_many_items_and_many_shapes_are_left_to_others():
    assert pair_words(Profile.of(some_rows(MOST_ITEMS + 1, True))) is None
    assert pair_words(Profile.of(some_rows(MOST_ITEMS, False, n_rows=400))) is None
    assert pair_words(Profile.of(some_rows(11, False, n_rows=400))) is not None
