"""Closed forms for preferences that partition all items, against enumeration; tournaments against loops."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile, partition_log_normalizers
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.partitioned_jit import best_decay
from permix.distributions.conditioning.tournaments_jit import LANES, count_drawn, disagreements
from permix.kernels.comparisons import weigh_levels_compiled
from permix.kernels.mallows import dispersion_from_mean, log_normalizer
from tests.oracles import posets_all as oracle
from tests.reference.posets import orders_from_places

ITEMS = tuple(range(4))
POSETS = oracle.labeled_posets(4)


def agents_of(relations, n=4):
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def said(preferences, row):
    """All pairs (better, worse) that a row implies."""
    n = preferences.n_items
    listed = preferences.level_items[
        preferences.level_indptr[row] : preferences.level_indptr[row + 1]
    ].tolist()
    rest = [b for b in range(n) if b not in listed] if preferences.rest_below[row] else []
    return oracle.closure({*preferences.to_pairs(row), *((a, b) for a in listed for b in rest)}, n)


def components_of(centers, dispersions):
    k = len(centers)
    with np.errstate(divide="ignore"):
        return MallowsComponents(ITEMS, np.full(k, 1 / k), np.array(centers), -np.log(dispersions))


def test_weak_orders_among_all_posets():
    """Comparisons that put all items into levels become levels; no others do, and nothing else changes."""
    preferences = agents_of(POSETS)
    profile = Profile.of(preferences)
    weak = [k for k, relation in enumerate(POSETS) if relation and oracle.is_partitioned(relation, 4)]
    assert profile.partitioned.tolist() == weak
    assert len(weak) == 74  # ordered set partitions of four items, but for the one with a single block
    assert profile.sampled.tolist() == [k for k, r in enumerate(POSETS) if r and k not in weak]
    for k in range(219):
        assert said(profile.preferences, k) == POSETS[k]


@pytest.mark.parametrize("dispersions", [(0.3, 0.8), (1.0, 0.001)])
def test_probability_of_partitions(dispersions):
    centers = [(2, 0, 3, 1), (1, 3, 0, 2)]
    profile = Profile.of(agents_of(POSETS))
    components = components_of(centers, np.array(dispersions))
    found, distances = partition_log_normalizers(components, profile)
    for at, row in enumerate(profile.partitioned):
        for k in range(2):
            total, _ = oracle.posterior(POSETS[row], centers[k], oracle.geometric(dispersions[k]))
            assert found[at, k] == pytest.approx(np.log(total), abs=1e-10)
            rank = {item: place for place, item in enumerate(centers[k])}
            assert distances[at, k] == sum(rank[a] > rank[b] for a, b in POSETS[row])


def test_point_masses():
    """φ = 0: the center has probability one, all else none."""
    profile = Profile.of(agents_of(POSETS))
    found, distances = partition_log_normalizers(components_of([(0, 1, 2, 3)], np.zeros(1)), profile)
    assert np.array_equal(np.exp(found[:, 0]), (distances[:, 0] == 0).astype(float))


def random_profile(rng, n_agents, n_items):
    """Full rankings, top lists, levels and pairs, some with the rest below, some with the rest unknown."""
    groups, below = [], []
    for _ in range(n_agents):
        order = rng.permutation(n_items)[: rng.integers(1, n_items + 1)]
        cuts = np.sort(rng.choice(len(order), rng.integers(0, len(order)), replace=False))
        groups.append([g.tolist() for g in np.split(order, cuts[cuts > 0])])
        below.append(bool(rng.integers(2)))
    parts = [
        Preferences.from_levels([g], items=range(n_items), rest_below=b)
        for g, b in zip(groups, below, strict=True)
    ]
    return Preferences.concat(parts)


@pytest.mark.parametrize(("n_items", "n"), [(5, 60), (70, 15)])
def test_disagreements(n_items, n):
    rng = np.random.default_rng(1)
    preferences = random_profile(rng, n, n_items)
    centers = np.array([rng.permutation(n_items) for _ in range(3)], np.int32)
    rows = np.arange(n)
    out = np.empty((n, 3), np.int64)
    ranks = np.argsort(centers, axis=1)
    disagreements(0, n, preferences.arrays(), rows, ranks, out)
    for row in range(n):
        pairs = np.array(list(said(preferences, row)), dtype=int).reshape(-1, 2)
        for k in range(3):
            assert out[row, k] == np.sum(ranks[k][pairs[:, 0]] > ranks[k][pairs[:, 1]])


def test_weighted_pairs():
    rng = np.random.default_rng(2)
    preferences = random_profile(rng, 50, 6)
    weights = rng.random(50) * (rng.random(50) < 0.8)
    counts, above = np.zeros((6, 6)), np.zeros(6)
    weigh_levels_compiled(preferences.arrays(), np.arange(50), weights, counts, above)
    expected = np.zeros((6, 6))
    for row in range(50):
        for a, b in said(preferences, row):
            expected[a, b] += weights[row]
    np.testing.assert_allclose(counts, expected, atol=1e-12)


@pytest.mark.parametrize(("n_items", "dtype"), [(7, np.uint8), (256, np.uint8), (9, np.uint16)])
def test_tournament_of_drawn_rankings(n_items, dtype):
    rng = np.random.default_rng(3)
    size = 2 * LANES + 17 if n_items < 100 else LANES + 3
    places = (rng.random((size, n_items)) * np.arange(1, n_items + 1)).astype(dtype)
    ranks = np.argsort(orders_from_places(places, range(n_items)), axis=1)
    weights = np.sort(rng.integers(1, 4, size))
    drawn = rng.permutation(size)
    drawn = drawn[np.argsort(weights[drawn], kind="stable")]
    wins = np.zeros((n_items, n_items))
    count_drawn(3, size, drawn, places, weights, wins)
    expected = np.zeros((n_items, n_items))
    for row in drawn[3:]:
        expected += weights[row] * np.triu(ranks[row][:, None] < ranks[row][None, :], 1)
    np.testing.assert_array_equal(wins, expected)


@pytest.mark.parametrize(("n", "share"), [(2, 0.3), (10, 0.01), (10, 0.3), (10, 0.499999), (300, 0.2)])
def test_decay_of_full_rankings(n, share):
    mean = share * n * (n - 1) / 2
    for start in (0.0, 1e-9, 0.4, 999.0, 1e3):
        found = best_decay(50 * mean, 50.0, np.zeros(n + 1), 1e3, start)
        assert found == pytest.approx(dispersion_from_mean(mean, n), rel=1e-12)


def test_decay_with_blocks_maximizes_the_likelihood():
    rng = np.random.default_rng(4)
    for _ in range(20):
        n = int(rng.integers(3, 12))
        blocks = np.zeros(n + 1)
        blocks[2:n] = rng.random(n - 2) * 5
        total = 20.0
        most = total * n * (n - 1) / 2 - sum(blocks[s] * s * (s - 1) / 2 for s in range(n + 1))
        distance = rng.uniform(0.02, 0.45) * most

        def loss(decay, n=n, blocks=blocks, distance=distance, total=total):
            inside = sum(blocks[s] * log_normalizer(decay, s) for s in range(2, n + 1))
            return decay * distance + total * log_normalizer(decay, n) - inside

        best = minimize_scalar(loss, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-9})
        found = best_decay(distance, total, blocks, 50.0, rng.uniform(0.0, 2.0))
        assert loss(found) <= best.fun + 1e-9
        assert found == pytest.approx(best.x, abs=1e-5)


def test_decay_at_the_ends():
    blocks = np.zeros(6)
    for start in (0.0, 0.3, 6.9999, 7.0):
        assert best_decay(0.0, 10.0, blocks, 7.0, start) == 7.0
        assert best_decay(1e-6, 10.0, blocks, 7.0, start) == 7.0
        assert (
            best_decay(10.0 * 5, 10.0, blocks, 7.0, start) == 0.0
        )  # half of all pairs and more: no order at all
        assert best_decay(90.0, 10.0, blocks, 7.0, start) == 0.0
