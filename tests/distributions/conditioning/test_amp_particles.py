"""Sequential Monte Carlo: unbiased for P(v) and for the posterior on every poset; fast paths agree."""

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.amp_particles_jit import particle_rows
from permix.distributions.conditioning.draws import Jobs
from tests.every_run import first_in_every_run
from tests.oracles import posets_all as oracle
from tests.reference.posets import orders_from_places

KEY = np.array([21, 22], np.uint64)
CENTER = (2, 0, 3, 1)
POSETS = oracle.labeled_posets(4)


def run(preferences, agents, center, dispersion, n_particles, sweep=0, first_row=0):
    centers = np.array([center], np.int32)
    n = len(center)
    found = np.empty(len(agents))
    places = np.empty((len(agents), n), np.uint8)
    models = geometric_models(np.array([-np.log(dispersion)]), n)
    jobs = Jobs.of(preferences.arrays(), agents, np.zeros(len(agents)), centers, models)
    numbers = np.arange(first_row, first_row + len(agents))
    particle_rows(0, len(agents), numbers, KEY, sweep, jobs, n_particles, found, places)
    return found, orders_from_places(places, center)


def agents_of(relations, n):
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def worst_deviation(found, orders, truth):
    """Largest deviation of mean(Ẑ · 1[draw = r]) from P(r, v), over r, in standard errors."""
    weights = np.exp(found)
    worst = 0.0
    for order in truth:
        hits = weights * (orders == np.array(order)).all(axis=1)
        # A rare ordering may not be hit; if it is, a hit weighs about as much as others.
        variance = max(hits.var(ddof=1), truth[order] * weights.mean())
        worst = max(worst, abs(hits.mean() - truth[order]) / np.sqrt(variance / len(hits)))
    return worst


def joint_distribution(relation, center, dispersion):
    total, distribution = oracle.posterior(relation, center, oracle.geometric(dispersion))
    return {order: total * p for order, p in distribution.items()}


@pytest.mark.parametrize(
    ("dispersion", "n_particles", "step"),
    first_in_every_run([(0.15, 2, 3), (0.15, 2, 1), (0.5, 5, 1), (1.0, 3, 1)]),
)
def test_unbiased_on_every_poset(dispersion, n_particles, step):
    """The mean of Ẑ over draws of r is P(r, v) exactly, however few the particles."""
    posets = POSETS[::step]
    n, size = len(posets), 1500
    found, orders = run(agents_of(posets, 4), np.repeat(np.arange(n), size), CENTER, dispersion, n_particles)
    found, orders = found.reshape(n, size), orders.reshape(n, size, 4)
    deviations = [
        worst_deviation(found[k], orders[k], joint_distribution(posets[k], CENTER, dispersion))
        for k in range(n)
    ]
    # About 3000 normal deviates; beyond 5.5 once in 10^4 runs. Rare orderings have skewed means.
    assert max(deviations) < 6.5
    assert np.mean(np.array(deviations) > 3.0) < 0.06
    for k in range(n):
        assert all(oracle.respects(order, posets[k]) for order in set(map(tuple, orders[k].tolist())))


def test_draws_without_their_weights_are_noticed():
    """The broken twin: particles as they come, which is AMP's distribution and not the posterior."""
    posets = POSETS[::3]
    n, size = len(posets), 1500
    found, orders = run(agents_of(posets, 4), np.repeat(np.arange(n), size), CENTER, 0.15, 1)
    found, orders = found.reshape(n, size), orders.reshape(n, size, 4)
    worst = 0.0
    for k in range(n):
        truth = joint_distribution(posets[k], CENTER, 0.15)
        flat = np.full(size, np.log(sum(truth.values())))
        worst = max(worst, worst_deviation(flat, orders[k], truth))
    assert worst > 20


def random_ratings(rng, n_agents, n_items, n_rated, n_levels):
    rows = []
    for agent in range(n_agents):
        for item in rng.choice(n_items, n_rated, replace=False):
            rows.append((agent, int(item), int(rng.integers(n_levels))))
    return Preferences.from_ratings(rows, items=range(n_items))


def as_pairs(preferences):
    pairs = [(row, a, b) for row in range(len(preferences)) for a, b in preferences.to_pairs(row)]
    return Preferences.from_pairs(pairs, items=range(preferences.n_items), agents=range(len(preferences)))


@pytest.mark.parametrize("n_particles", [2, 7, 16, 128])
def test_levels_side_by_side_equal_pairs_one_by_one(n_particles):
    """Levels go through lanes, the pairs they imply do not; the random numbers are the same."""
    rng = np.random.default_rng(5)
    preferences = random_ratings(rng, 40, 30, 12, 4)
    center = rng.permutation(30)
    rows = np.repeat(np.arange(40), 3)
    ours, drawn = run(preferences, rows, center, 0.6, n_particles)
    theirs, drawn_too = run(as_pairs(preferences), rows, center, 0.6, n_particles)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_array_equal(drawn, drawn_too)


def test_unbiased_side_by_side_with_resampling():
    rng = np.random.default_rng(6)
    preferences = random_ratings(rng, 6, 6, 4, 3)
    center = (3, 1, 5, 0, 2, 4)
    size = 4000
    found, orders = run(preferences, np.repeat(np.arange(6), size), center, 0.2, 8)
    for agent in range(6):
        relation = oracle.closure(preferences.to_pairs(agent), 6)
        truth = joint_distribution(relation, center, 0.2)
        rows = slice(agent * size, (agent + 1) * size)
        weights = np.exp(found[rows])
        error = weights.std(ddof=1) / np.sqrt(size)
        assert abs(weights.mean() - sum(truth.values())) < 5 * error + 1e-12
        assert worst_deviation(found[rows], orders[rows], truth) < 6.5


def test_resampling_helps():
    """With many conflicting ratings sixteen particles together beat sixteen draws of AMP."""
    rng = np.random.default_rng(7)
    preferences = random_ratings(rng, 30, 60, 25, 5)
    center = np.arange(60)
    together, _ = run(preferences, np.repeat(np.arange(30), 40), center, 0.95, 16)
    alone, _ = run(preferences, np.repeat(np.arange(30), 640), center, 0.95, 1)
    together = together.reshape(30, 40)
    alone = alone.reshape(30, 40, 16)
    alone = np.logaddexp.reduce(alone, axis=2) - np.log(16)
    assert np.median(together.std(axis=1) / alone.std(axis=1)) < 1.0
    assert together.mean() > alone.mean() + 0.1  # the estimate of P(v) has no bias; its logarithm has less


def test_rows_are_numbered():
    """Work cut into pieces gives what it gives in one piece."""
    rng = np.random.default_rng(8)
    preferences = random_ratings(rng, 20, 15, 6, 3)
    rows = np.arange(20)
    whole, drawn = run(preferences, rows, rng.permutation(15), 0.7, 8)
    center = np.random.default_rng(8)
    random_ratings(center, 20, 15, 6, 3)
    order = center.permutation(15)
    later, drawn_later = run(preferences, rows[7:], order, 0.7, 8, first_row=7)
    np.testing.assert_array_equal(later, whole[7:])
    np.testing.assert_array_equal(drawn_later, drawn[7:])


@pytest.mark.parametrize("dispersion", [1e-300, 1.0])
def test_ends_of_the_dispersion(dispersion):
    preferences = agents_of([frozenset({(1, 0)}), frozenset({(0, 1)})], 3)
    found, orders = run(preferences, [0, 1], (0, 1, 2), dispersion, 4)
    assert found[1] == pytest.approx(np.log(1.0 if dispersion < 1 else 0.5))
    assert found[0] == pytest.approx(np.log(dispersion) if dispersion < 1 else np.log(0.5))
    assert orders[0].tolist().index(1) < orders[0].tolist().index(0)
