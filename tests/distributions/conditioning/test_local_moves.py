"""Local moves: what they draw on every poset of four items, by enumeration, and their chain with AMP."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import (
    general_models,
    geometric_models,
    weighted_models,
)
from permix.distributions.conditioning.amp_jit import amp_log_prob
from permix.distributions.conditioning.draws import Jobs, mmp_draws
from permix.distributions.conditioning.local_moves_jit import (
    allowed_window,
    choose_place,
    cumulate_places,
    limits_by_step,
    local_models,
    local_sweep,
    move_item,
    new_scratch,
    new_state,
    set_places,
)
from permix.kernels.orders import insertion_code
from permix.runtime.threads import at_most
from tests.every_run import first_in_every_run
from tests.oracles import posets_all as oracle
from tests.oracles.ranking_models import total_variation, total_variation_bound

KEY = np.array([5, 6], np.uint64)
CENTER = (2, 0, 3, 1)
POSETS = oracle.labeled_posets(4)


def some_probabilities(n, zeros):
    rng = np.random.default_rng(3)
    matrix = np.tril(rng.random((n, n)) + 0.05)
    for i, place in zeros:
        matrix[i, place] = 0.0
    return matrix / matrix.sum(axis=1, keepdims=True)


MATRIX = some_probabilities(4, [(2, 1), (3, 0), (3, 2)])
MODELS = {
    "0.3": (geometric_models(-np.log([0.3]), 4), oracle.geometric(0.3)),
    "0.9": (geometric_models(-np.log([0.9]), 4), oracle.geometric(0.9)),
    "1": (geometric_models(np.zeros(1), 4), oracle.geometric(1.0)),
    "weighted": (
        weighted_models(-np.log([[1.0, 0.2, 0.9, 0.5]])),
        oracle.geometric((1.0, 0.2, 0.9, 0.5)),
    ),
    "some certain": (
        weighted_models(np.array([[0.3, np.inf, 0.0, 0.5]])),
        oracle.geometric((0.7, 0.0, 1.0, float(np.exp(-0.5)))),
    ),
    "any": (general_models(MATRIX[None]), lambda i, place: MATRIX[i, place]),
}


def agents_of(relations, n):
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def state_of(order, center):
    """The state, whose items are numbered by the center, of an ordering."""
    state = new_state(len(order))
    set_places(state, np.array(oracle.insertion_places(order, center)))
    return state


def distribution_of_move(item, order, center, limits, tables):
    """The orderings that reinserting an item leads to, with probabilities, from the kernels."""
    state = state_of(order, center)
    x = center.index(item)
    scratch = new_scratch(len(order))
    first, last = allowed_window(x, state, limits)
    left, right = cumulate_places(x, state, tables, 0, first, last, scratch)
    chances = np.diff(scratch.weights[: right - left + 1], prepend=0.0)
    rest = [other for other in order if other != item]
    return {
        (*rest[:place], item, *rest[place:]): chance / chances.sum()
        for place, chance in zip(range(left, right + 1), chances, strict=True)
    }


def reinsertion_by_enumeration(item, order, posterior):
    """The posterior cut down to orderings in which all others stand as they do."""
    rest = [other for other in order if other != item]
    joint = {
        new: posterior.get(new, 0.0)
        for place in range(len(order))
        for new in [(*rest[:place], item, *rest[place:])]
    }
    total = sum(joint.values())
    return {new: mass / total for new, mass in joint.items()}


def difference(one, other):
    return max(abs(one.get(order, 0.0) - other.get(order, 0.0)) for order in {*one, *other})


@pytest.mark.parametrize("kind", first_in_every_run(dict.fromkeys(["0.3", "any", *MODELS]), 2))
def test_every_move_has_the_conditional_distribution(kind):
    """For every poset, ordering and item: P(new place | all others). Then πP = π for a whole step."""
    models, weight = MODELS[kind]
    tables = local_models(models)
    preferences = agents_of(POSETS, 4)
    ranks = np.argsort(CENTER)
    orders = np.array(list(permutations(range(4))), np.int32)
    twins = {"AMP unweighted": 0.0, "uphill": 0.0}
    for agent, relation in enumerate(POSETS):
        posterior = oracle.posterior(relation, CENTER, weight)[1]
        if posterior is None:
            continue
        limits = limits_by_step(preferences.arrays(), agent, ranks)
        states = [order for order, mass in posterior.items() if mass > 0.0]
        number = {order: i for i, order in enumerate(states)}
        target = np.array([posterior[order] for order in states])
        prior, log_weight, log_q = (np.empty(24) for _ in range(3))
        amp_log_prob(
            preferences.arrays(),
            agent,
            np.array(CENTER, np.int32),
            models,
            0,
            orders,
            prior,
            log_weight,
            log_q,
        )
        rows = [orders.tolist().index(list(order)) for order in states]
        q, scores = np.exp(log_q[rows]), log_weight[rows]
        proposals = q[None, :] * np.minimum(1.0, np.exp(scores[None, :] - scores[:, None]))
        proposals += np.diag(1.0 - proposals.sum(axis=1))
        step, uphill = proposals.copy(), np.eye(len(states))
        for item in CENTER:
            sweep = np.zeros((len(states), len(states)))
            wrong = np.zeros_like(sweep)
            for order in states:
                distribution = distribution_of_move(item, order, CENTER, limits, tables)
                assert difference(distribution, reinsertion_by_enumeration(item, order, posterior)) < 1e-13
                for new, chance in distribution.items():
                    if chance > 0.0:
                        sweep[number[order], number[new]] = chance
                        # A twin that weighs a place by its square.
                        wrong[number[order], number[new]] = chance**2
            step = step @ sweep
            uphill = uphill @ (wrong / wrong.sum(axis=1, keepdims=True))
        assert np.abs(target @ step - target).max() < 1e-10
        unweighted = np.tile(q / q.sum(), (len(states), 1))
        twins["AMP unweighted"] = max(twins["AMP unweighted"], np.abs(target @ unweighted - target).max())
        twins["uphill"] = max(twins["uphill"], np.abs(target @ uphill - target).max())
    assert twins["uphill"] > 0.01 or kind == "1"
    assert twins["AMP unweighted"] > 0.01


# Posets take turns between the kinds.
@pytest.mark.parametrize(
    ("kind", "first", "step"),
    first_in_every_run(
        [*((kind, k, 12) for k, kind in enumerate(MODELS)), *((kind, 0, 4) for kind in MODELS)], len(MODELS)
    ),
)
def test_draws_follow_the_posterior(kind, first, step):
    """AMP and sweeps in turn; states two steps apart are nearly independent."""
    models, weight = MODELS[kind]
    size = 3000
    preferences = agents_of(POSETS, 4)
    some = range(first, len(POSETS), step)
    possible = [a for a in some if oracle.posterior(POSETS[a], CENTER, weight)[1] is not None]
    agents = np.array(possible)
    jobs = Jobs.of(preferences.arrays(), agents, 0 * agents, np.array([CENTER]), models)
    orders, distances, rates = mmp_draws(KEY, 0, jobs, size, 30, 2, local_moves=True)
    rejected = 0
    for job, agent in enumerate(possible):
        relation = POSETS[agent]
        distribution = oracle.posterior(relation, CENTER, weight)[1]
        bound = total_variation_bound(size / 2, len(distribution))
        assert total_variation(orders[job], distribution) < bound
        rejected += total_variation(orders[job], oracle.amp_distribution(relation, CENTER, weight)) > bound
        places = [oracle.insertion_places(order, CENTER) for order in orders[job, :5].tolist()]
        np.testing.assert_array_equal(distances[job, :5], [6 - sum(place) for place in places])
        assert rates[job] == 1.0 if oracle.is_partitioned(relation, 4) else 0.0 < rates[job] <= 1.0
    assert rejected > 0 or kind == "0.3"


@pytest.mark.parametrize("reach", [2, 3])
def test_moves_within_stretches_keep_the_posterior(reach):
    """Items that stay in a random stretch of ranks; stretches that never change are rejected."""
    n, center = 5, (3, 0, 4, 1, 2)
    relation = oracle.closure({(4, 3), (2, 0)}, n)
    models = geometric_models(-np.log([0.6]), n)
    tables = local_models(models)._replace(reach=np.array([reach]))
    preferences = agents_of([relation], n)
    ranks = np.argsort(center)
    limits = limits_by_step(preferences.arrays(), 0, ranks)
    distribution = oracle.posterior(relation, center, oracle.geometric(0.6))[1]
    rng = np.random.default_rng(reach)
    size = 8000
    for fixed in (False, True):
        state = state_of(next(iter(distribution)), center)
        scratch = new_scratch(n)
        draws = np.empty((size, n), np.int32)
        for row in draws:
            for _ in range(6):
                uniforms = rng.random(n + 1)
                uniforms[n] *= not fixed
                local_sweep(state, tables, 0, limits, uniforms, scratch)
            row[:] = np.array(center)[state.order]
        bound = total_variation_bound(size / 2, len(distribution))
        assert (total_variation(draws, distribution) < bound) != fixed


def test_reach_follows_the_dispersion():
    """Also where a decay is a negative zero, as -ln 1 is."""
    assert local_models(geometric_models(-np.log([0.98, 0.5, 1.0, 1e-9]), 5000)).reach.tolist() == [
        1584,
        47,
        5000,
        16,
    ]
    assert local_models(weighted_models(np.array([[0.0, 1.0, 0.5, *[9.0] * 97]]))).reach.tolist() == [64]
    assert local_models(general_models(some_probabilities(30, [])[None])).reach.tolist() == [30]


def random_statement(rng, m):
    """Levels over some items, with or without the rest below, and comparisons that agree with them."""
    hidden = rng.permutation(m)
    listed = np.sort(rng.choice(m, m // 2, replace=False))
    rest_below = bool(rng.random() < 0.3)
    if rest_below:
        listed = np.arange(m // 3)
    levels = np.unique(np.sort(rng.integers(0, 5, len(listed))), return_inverse=True)[1]
    pairs = [(hidden[a], hidden[b]) for a, b in np.sort(rng.integers(0, m, (m // 4, 2)), axis=1) if a < b]
    return Preferences._from_arrays(
        items=range(m),
        level_indptr=np.array([0, len(listed)]),
        level_items=hidden[listed].astype(np.int32),
        levels=levels.astype(np.int32),
        rest_below=np.array([rest_below]),
        pair_indptr=np.array([0, len(pairs)]),
        pairs=np.array(pairs, dtype=np.int32).reshape(-1, 2),
    )


@pytest.mark.parametrize("kind", ["one", "each", "any"])
def test_larger_rankings_stay_allowed_and_consistent(kind):
    """Ranks and insertion places follow the moves; every state agrees with what was said."""
    m = 70
    models = {
        "one": geometric_models(np.array([0.05]), m),
        "each": weighted_models(np.linspace(0.0, 0.3, m)[None]),
        "any": general_models(some_probabilities(m, [(5, 2), (40, 7)])[None]),
    }[kind]
    rng = np.random.default_rng(1)
    for seed in range(6):
        said = random_statement(rng, m)
        center = rng.permutation(m).astype(np.int32)
        jobs = Jobs.of(said.arrays(), np.zeros(1), np.zeros(1), center[None], models)
        draws, distances, _ = mmp_draws(KEY, seed, jobs, 15, 3, 1, local_moves=True)
        allowed = amp_log_prob(said.arrays(), 0, center, models, 0, draws[0], *np.empty((3, 15)))
        assert allowed.all()
        assert len(np.unique(draws[0], axis=0)) == 15
        ranks = np.argsort(draws[0], axis=1)
        places = np.empty((15, m), np.int64)
        for row in range(15):
            insertion_code(ranks[row], center, places[row])
        np.testing.assert_array_equal(distances[0], np.sum(np.arange(m) - places, axis=1))


def test_moving_one_item():
    center = (3, 0, 4, 1, 2)
    for order in list(permutations(range(5)))[::7]:
        for item in range(5):
            for new in range(5):
                state = state_of(order, center)
                move_item(center.index(item), new, state)
                rest = [other for other in order if other != item]
                expected = (*rest[:new], item, *rest[new:])
                assert tuple(center[x] for x in state.order) == expected
                assert state.places.tolist() == oracle.insertion_places(expected, center)
                np.testing.assert_array_equal(state.rank[state.order], np.arange(5))


def test_choosing_a_place():
    cumulated = np.cumsum([0.0, 0.5, 0.0, 0.25, 0.25, 0.0])
    chosen = [choose_place(cumulated, 6, u) for u in (0.0, 0.49, 0.5, 0.74, 0.75, 1.0 - 2.0**-53, 1.0)]
    assert chosen == [1, 1, 3, 3, 4, 4, 4]  # never a place of weight zero, whatever rounding does


def test_partitioned_preferences_need_no_sweep():
    """AMP is exact there: the same states as without local moves, all proposals accepted."""
    m = 30
    levels = Preferences.from_levels([[[5, 3, 9], [1], [20, 21]]], items=range(m), rest_below=True)
    jobs = Jobs.of(
        levels.arrays(),
        np.zeros(1),
        np.zeros(1),
        np.arange(m)[None],
        geometric_models(np.array([0.1]), m),
    )
    _, distances, rates = mmp_draws(KEY, 0, jobs, 50, 5, 1, local_moves=True)
    assert rates[0] == 1.0
    assert len(np.unique(distances)) > 20
    for better, worse in pairwise([[5, 3, 9], [1], [20, 21]]):
        orders = mmp_draws(KEY, 0, jobs, 5, 5, 1, local_moves=True)[0][0]
        ranks = np.argsort(orders, axis=1)
        assert np.all(ranks[:, better].max(axis=1) < ranks[:, worse].min(axis=1))


def test_threads_do_not_matter():
    rng = np.random.default_rng(4)
    m = 40
    pairs = [(agent, *rng.choice(m, 2, replace=False).tolist()) for agent in range(60)]
    table = Preferences.from_pairs(pairs, items=range(m), agents=range(60))
    jobs = Jobs.of(
        table.arrays(),
        np.arange(60),
        np.zeros(60),
        np.arange(m)[None],
        geometric_models(np.array([0.1]), m),
    )
    results = []
    for n_threads in (1, 3):
        with at_most(n_threads):
            results.append(mmp_draws(KEY, 7, jobs, 4, 20, 3, local_moves=True))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_sweeps_mix_where_proposals_do_not():
    """Ratings against the center: AMP is accepted once in a hundred times; the sweeps do not mind."""
    m, size = 60, 1500
    rng = np.random.default_rng(0)
    ratings = np.full(m, np.nan)
    ratings[rng.choice(m, 30, replace=False)] = rng.integers(1, 6, 30)
    table = Preferences.from_ratings(ratings[None], items=range(m))
    models = geometric_models(-np.log([0.9]), m)
    jobs = Jobs.of(table.arrays(), np.zeros(1), np.zeros(1), np.arange(m)[None], models)
    correlations = []
    for local_moves in (True, False):
        _, distances, rates = mmp_draws(KEY, 0, jobs, size, 100, 1, local_moves=local_moves)
        assert rates[0] < 0.05
        correlations.append(np.corrcoef(distances[0, :-5], distances[0, 5:])[0, 1])
    assert abs(correlations[0]) < 5 / np.sqrt(size)
    assert correlations[1] > 0.5
