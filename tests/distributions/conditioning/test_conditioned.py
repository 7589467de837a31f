"""Conditioning on preferences, as users see it: against enumeration over every poset on four items."""

import warnings
from itertools import permutations

import numpy as np
import pytest

from permix import Mallows, RepeatedInsertion
from permix.convergence import ess_mean
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.conditioning.annealing import ladder
from permix.distributions.conditioning.bounds import largest_antichain
from permix.distributions.conditioning.chain import scale_reduction
from permix.errors import CycleError, DataError, PermixWarning
from tests.every_run import first_in_every_run
from tests.oracles import posets_all as oracle
from tests.oracles.ranking_models import total_variation, total_variation_bound
from tests.reference.posets import Statement, closed_relation

CENTER = (2, 0, 3, 1)
CASES = [(4, relation) for relation in oracle.labeled_posets(4)]
CASES += [(5, relation) for relation in oracle.random_posets(5, 40, seed=2)]
CENTERS = {4: CENTER, 5: (3, 0, 4, 1, 2)}
DISPERSIONS = {4: (1.0, 0.2, 0.9, 0.5), 5: (0.3, 0.8, 0.4, 1.0, 0.6)}


def stated(relation, n):
    return Preferences.from_pairs([(0, a, b) for a, b in sorted(relation)], items=range(n), agents=[0])


EVERY_KIND = (0.9, "weighted", 0.0, 0.3, 1.0)


@pytest.mark.parametrize(
    ("dispersion", "step"),
    first_in_every_run(
        [*((which, 3) for which in EVERY_KIND), *((which, 1) for which in EVERY_KIND)], len(EVERY_KIND)
    ),
)
def test_every_poset(dispersion, step):
    """Normalizer, probabilities, marginals and bounds; AMP's own distribution; what counts as partitioned."""
    loosest = 0.0
    for n, relation in CASES[::step]:
        phi = DISPERSIONS[n] if dispersion == "weighted" else dispersion
        center, weight = CENTERS[n], oracle.geometric(phi)
        given = Mallows(center, phi, items=range(n)).condition(stated(relation, n))
        total, distribution = oracle.posterior(relation, center, weight)
        rows = list(permutations(range(n)))
        np.testing.assert_allclose(
            np.exp(given.amp_log_prob(rows)),
            [oracle.amp_distribution(relation, center, weight).get(row, 0.0) for row in rows],
            atol=1e-13,
        )
        assert given.is_exact
        assert given.is_partitioned == oracle.is_partitioned(relation, n)
        found = given.log_normalizer()
        assert found.standard_error == 0.0
        lower, upper = given.bounds()
        if total == 0.0:
            assert found == lower == -np.inf
            continue
        assert found == pytest.approx(np.log(total), abs=1e-12)
        assert lower - 1e-12 <= found <= upper + 1e-12
        assert upper <= 0.0
        loosest = max(loosest, upper - lower)
        expected = [distribution.get(row, 0.0) for row in rows]
        np.testing.assert_allclose(np.exp(given.log_prob(rows)), expected, atol=1e-13)
        np.testing.assert_allclose(given.pairwise(), oracle.pairwise(distribution, n), atol=1e-12)
        np.testing.assert_allclose(given.rank_marginals(), oracle.rank_marginals(distribution, n), atol=1e-12)
    assert dispersion == 0.0 or loosest > 0.1  # a pair of bounds that are always equal would not be these


@pytest.mark.parametrize("method", ["auto", "exact", "amp", "mmp", "published mmp"])
def test_draws(method):
    """Frequencies: the posterior for all but AMP, which has its own distribution (equation 15)."""
    local_moves, method = method != "published mmp", method.removeprefix("published ")
    size = 3000
    weight = oracle.geometric(0.9)
    other_distribution_rejected = 0
    for seed, (n, relation) in enumerate(CASES[::12]):
        center = CENTERS[n]
        given = Mallows(center, 0.9, items=range(n)).condition(stated(relation, n))
        draws = given.sample(size, random_state=seed, method=method, local_moves=local_moves)
        models = [
            oracle.posterior(relation, center, weight)[1],
            oracle.amp_distribution(relation, center, weight),
        ]
        distribution, other = models[::-1] if method == "amp" else models
        bound = total_variation_bound(size / 2 if method == "mmp" else size, len(distribution))
        assert total_variation(draws.orders, distribution) < bound
        other_distribution_rejected += total_variation(draws.orders, other) > bound
        assert draws.metadata["method"] == ("exact" if method == "auto" else method)
        assert draws.metadata["exact"] == (method in ("auto", "exact") or oracle.is_partitioned(relation, n))
        if method == "mmp":
            assert 0.3 < given.acceptance_rate_ <= 1.0
            assert draws.metadata["acceptance_rate"] == given.acceptance_rate_
            assert draws.metadata["local_moves"] == local_moves
            assert size / 2 < draws.metadata["effective_size"] <= size
    assert other_distribution_rejected > 0


def test_importance_sampling():
    """Within its own standard errors of the truth; what it says about a wrong dispersion is not."""
    wrong_within = []
    for seed, (n, relation) in enumerate(CASES[::5]):
        given = Mallows(CENTERS[n], 0.6, items=range(n)).condition(stated(relation, n))
        estimate = given.log_normalizer("importance", n_samples=2000, random_state=seed)
        assert abs(estimate - given.log_normalizer("exact")) <= 5 * estimate.standard_error + 1e-12
        other = Mallows(CENTERS[n], 0.3, items=range(n)).condition(stated(relation, n)).log_normalizer()
        wrong_within.append(abs(estimate - other) <= 5 * estimate.standard_error + 1e-12)
        for what in ("pairwise", "rank_marginals"):
            truth = getattr(given, what)()
            value, error = getattr(given, what)(
                "importance", n_samples=2000, random_state=seed, return_error=True
            )
            assert np.all(np.abs(value - truth) <= 5 * error + 5 / 2000)
            assert np.all(getattr(given, what)(return_error=True)[1] == 0.0)
    assert np.mean(wrong_within) < 0.5


def pairs_against(m, n_pairs, rng):
    """Comparisons that agree with some ordering, which is not the center."""
    hidden = rng.permutation(m).tolist()
    places = np.sort([rng.choice(m, 2, replace=False) for _ in range(n_pairs)], axis=1)
    return Preferences.from_pairs([(0, hidden[a], hidden[b]) for a, b in places], items=range(m))


def test_annealed_importance_sampling_where_draws_miss_what_matters():
    """Against the center AMP may never draw the rankings that count: too low then, where runs are right."""
    rng = np.random.default_rng(5)
    annealed, plain = [], []
    for seed in range(8):
        said = pairs_against(14, 10, rng)
        for dispersion in (0.15, list(rng.uniform(0.1, 0.4, 14))):
            given = Mallows(range(14), dispersion).condition(said)
            truth = given.log_normalizer("exact")
            runs = given.log_normalizer("annealed", random_state=seed)
            assert 0.0 < runs.standard_error < 0.4
            annealed.append((runs - truth) / runs.standard_error)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PermixWarning)
                draws = given.log_normalizer("importance", n_samples=2000, random_state=seed)
            plain.append((draws - truth) / draws.standard_error)
    # 16 answers with errors from 64 runs each.
    assert np.max(np.abs(annealed)) < 5
    assert np.sqrt(np.mean(np.square(annealed))) < 1.6
    assert np.min(plain) < -5


def test_auto_anneals_where_few_draws_count():
    said = ratings_against(60, 25, seed=3)
    given = Mallows(range(60), 0.8).condition(said)
    assert not given.is_exact
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = given.log_normalizer(random_state=0)
    again = given.log_normalizer("annealed", random_state=1)
    assert abs(found - again) < 5 * np.hypot(found.standard_error, again.standard_error)
    with pytest.warns(PermixWarning, match="effective draws"):
        draws = given.log_normalizer("importance", random_state=0)
    assert draws < found - 5
    lower, upper = given.bounds()
    assert lower < found < upper
    with pytest.raises(DataError, match="Mallows models with dispersions above 0"):
        RepeatedInsertion.mallows(range(60), 0.8).condition(said).log_normalizer("annealed")


def test_annealing_starts_exactly_from_levels():
    """Under the uniform model, levels over some items have probability Π sizes! / total!, and no error."""
    said = ratings_against(40, 12, seed=6)
    sizes = np.bincount(said.levels)
    given = Mallows(range(40), 1.0).condition(said)
    found = given.log_normalizer("annealed", random_state=0)
    expected = np.sum([np.sum(np.log(np.arange(1, size + 1))) for size in [*sizes]])
    expected -= np.sum(np.log(np.arange(1, 13)))
    assert found == pytest.approx(expected, abs=1e-9)
    assert found.standard_error < 1e-9


def test_steps_of_annealing():
    """From the uniform model to the full one, more of them for more items; equal shares for nothing to do."""
    shares = ladder(np.full(50, 0.2))
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert np.all(np.diff(shares) > 0)
    assert shares[1] < shares[-1] - shares[-2]
    assert len(ladder(np.full(100, 0.2))) > len(shares)
    assert len(ladder(np.zeros(5))) > 1


def test_repeated_insertion():
    rng = np.random.default_rng(7)
    matrix = np.tril(rng.random((4, 4)))
    matrix[2, 0] = 0.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    model = RepeatedInsertion(CENTER, matrix, items=range(4))
    for relation in oracle.labeled_posets(4)[::5]:
        total, distribution = oracle.posterior(relation, CENTER, lambda i, place: matrix[i, place])
        given = model.condition(stated(relation, 4))
        if total == 0.0:
            assert given.log_normalizer() == -np.inf
            continue
        assert given.log_normalizer() == pytest.approx(np.log(total), abs=1e-12)
        np.testing.assert_allclose(given.pairwise(), oracle.pairwise(distribution, 4), atol=1e-12)
        np.testing.assert_allclose(given.rank_marginals(), oracle.rank_marginals(distribution, 4), atol=1e-12)
        draws = given.sample(2000, random_state=1)
        assert total_variation(draws.orders, distribution) < total_variation_bound(2000, len(distribution))
    with pytest.raises(DataError, match="Mallows models only"):
        given.bounds()
    rule = RepeatedInsertion(["a", "b"], lambda ranking, item: [1.0] if not ranking else [0.5, 0.5])
    with pytest.raises(DataError, match="function cannot be conditioned"):
        rule.condition(Preferences.from_pairs([(0, "a", "b")]))


@pytest.mark.parametrize("kind", ["one", "each", "any"])
def test_levels_and_comparisons_together(kind):
    """Levels, with the rest below or unknown, and comparisons in one statement, against enumeration."""
    rng = np.random.default_rng(11)
    n = 5
    matrix = np.tril(rng.random((n, n)))
    matrix /= matrix.sum(axis=1, keepdims=True)
    seen = set()
    for _ in range(30):
        center = rng.permutation(n).tolist()
        model, weight = {
            "one": (Mallows(center, 0.6, range(n)), oracle.geometric(0.6)),
            "each": (Mallows(center, DISPERSIONS[n], range(n)), oracle.geometric(DISPERSIONS[n])),
            "any": (RepeatedInsertion(center, matrix, range(n)), lambda i, place: matrix[i, place]),
        }[kind]
        hidden = rng.permutation(n).tolist()
        rest_below = bool(rng.random() < 0.5)
        listed = hidden[: rng.integers(0, n + 1)]
        if not rest_below:
            listed = [item for item in hidden if rng.random() < 0.6]
        level = np.unique(np.sort(rng.integers(0, 3, len(listed))), return_inverse=True)[1]
        pairs = [(a, b) for i, a in enumerate(hidden) for b in hidden[i + 1 :] if rng.random() < 0.2]
        said = Preferences._from_arrays(
            items=range(n),
            level_indptr=np.array([0, len(listed)]),
            level_items=np.array(listed, dtype=np.int32),
            levels=level.astype(np.int32),
            rest_below=np.array([rest_below]),
            pair_indptr=np.array([0, len(pairs)]),
            pairs=np.array(pairs, dtype=np.int32).reshape(-1, 2),
        )
        groups = [[x for x, v in zip(listed, level, strict=True) if v == w] for w in range(3)]
        relation = closed_relation(Statement([g for g in groups if g], rest_below, pairs), n)
        total, distribution = oracle.posterior(relation, center, weight)
        given = model.condition(said)
        seen.add((bool(pairs), rest_below, given.is_partitioned))
        assert given.log_normalizer() == pytest.approx(np.log(total), abs=1e-12)
        np.testing.assert_allclose(given.pairwise(), oracle.pairwise(distribution, n), atol=1e-12)
        np.testing.assert_allclose(given.rank_marginals(), oracle.rank_marginals(distribution, n), atol=1e-12)
        for method in ("exact", "mmp"):
            draws = given.sample(1000, random_state=1, method=method, n_thin=2)
            assert total_variation(draws.orders, distribution) < total_variation_bound(600, len(distribution))
        if kind != "any":
            lower, upper = given.bounds()
            assert lower - 1e-12 <= np.log(total) <= upper + 1e-12
    assert len(seen) >= 5


def test_one_comparison_has_the_pairwise_probability():
    """P(a ≻ b) without preferences is the normalizer given a ≻ b: near by exact sums, far by draws."""
    m = 40
    model = Mallows(range(m), 0.85)
    table = model.pairwise()
    for a, b in [(0, 1), (39, 38), (10, 16), (25, 12), (0, 15)]:
        given = model.condition(Preferences.from_pairs([(0, a, b)], items=range(m)))
        assert given.is_exact
        assert np.exp(given.log_normalizer()) == pytest.approx(table[a, b], rel=1e-10)
        assert given.pairwise()[a, b] == pytest.approx(1.0)
    far = model.condition(Preferences.from_pairs([(0, 30, 3)], items=range(m)))
    assert not far.is_exact
    estimate = far.log_normalizer(random_state=0)
    assert 0 < estimate.standard_error < 0.2
    assert abs(estimate - np.log(table[30, 3])) < 5 * estimate.standard_error
    lower, upper = far.bounds()
    assert lower <= np.log(table[30, 3]) <= upper
    with pytest.raises(DataError, match="not affordable"):
        far.log_normalizer("exact")
    draws = far.sample(20, random_state=0)
    assert draws.metadata["method"] == "mmp"
    assert np.all(draws.ranks()[:, 30] < draws.ranks()[:, 3])


def test_many_disjoint_comparisons():
    """Comparisons of different items are independent under the uniform model: P(v) = 2^-30."""
    items = range(60)
    disjoint = Preferences.from_pairs([(0, a, a + 30) for a in range(30)], items=items)
    given = Mallows(items, 1.0).condition(disjoint)
    assert not given.is_exact
    estimate = given.log_normalizer(random_state=3)
    assert abs(estimate - 30 * np.log(0.5)) < 5 * estimate.standard_error
    assert abs(estimate - 31 * np.log(0.5)) > 5 * estimate.standard_error


def test_few_effective_draws_are_reported():
    """Example 2: AMP hardly ever puts a free item of the center's top below a long chain."""
    items = range(60)
    chain = Preferences.from_pairs([(0, a, a + 1) for a in range(1, 59)], items=items)
    given = Mallows(items, 1.0).condition(chain)
    with pytest.warns(PermixWarning, match="effective draws"):
        given.pairwise("importance", n_samples=300, random_state=0)
    with pytest.warns(PermixWarning, match="effective draws"):
        given.log_normalizer("importance", n_samples=300, random_state=0)
    with pytest.warns(PermixWarning, match="chain accepted"):
        given.sample(20, random_state=0, method="mmp", n_burn_in=0, n_thin=2, local_moves=False)


def ratings_against(m, rated, seed):
    """Ratings that have nothing to do with the center 0, 1, 2, …"""
    rng = np.random.default_rng(seed)
    ratings = np.full(m, np.nan)
    ratings[rng.choice(m, rated, replace=False)] = rng.integers(1, 6, rated)
    return Preferences.from_ratings(ratings[None], items=range(m))


def test_local_moves_give_good_draws_where_proposals_are_refused():
    given = Mallows(range(100), 0.95).condition(ratings_against(100, 30, seed=4))
    assert not given.is_exact
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draws = given.sample(400, random_state=0)
    assert draws.metadata["method"] == "mmp"
    assert draws.metadata["local_moves"]
    assert draws.metadata["acceptance_rate"] < 0.05
    assert draws.metadata["effective_size"] > 200
    with pytest.warns(PermixWarning, match="local_moves=True"):
        published = given.sample(400, random_state=0, n_burn_in=100, n_thin=1, local_moves=False)
    assert published.metadata["effective_size"] < 100
    assert len(given.sample(7, random_state=0)) == 7
    assert len(given.sample(0, random_state=0)) == 0


def test_marginals_from_the_chain():
    """Within their standard errors of the exact ones; those of another dispersion are not."""
    said = ratings_against(14, 8, seed=1)
    given = Mallows(range(14), 0.8).condition(said)
    assert given.is_exact
    other = Mallows(range(14), 0.6).condition(said)
    for what in ("pairwise", "rank_marginals"):
        value, error = getattr(given, what)("mmp", n_samples=4000, random_state=3, return_error=True)
        truth, wrong = getattr(given, what)(), getattr(other, what)()
        # The largest of some 180 t-distributed numbers with 31 degrees of freedom.
        assert np.all(np.abs(value - truth) <= 6 * error + 1e-3)
        assert not np.all(np.abs(value - wrong) <= 6 * error + 1e-3)
        assert 0.0 < error.max() < 0.05
    far = Mallows(range(60), 0.9).condition(ratings_against(60, 25, seed=2))
    table = far.pairwise(n_samples=500, random_state=0)
    np.testing.assert_allclose(table + table.T + np.eye(60), 1.0, atol=1e-12)


def test_effective_size():
    """Of an autoregressive series with correlation ρ: n (1 - ρ) / (1 + ρ)."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20_000)
    series = np.empty_like(noise)
    series[0] = noise[0] / np.sqrt(1 - 0.8**2)
    for t in range(1, len(noise)):
        series[t] = 0.8 * series[t - 1] + noise[t]
    assert ess_mean(series[None]) == pytest.approx(20_000 * 0.2 / 1.8, rel=0.15)
    assert ess_mean(noise[None]) > 15_000
    assert ess_mean(np.zeros((1, 7))) == 7
    assert ess_mean(np.zeros((1, 0))) == 0


def test_scale_reduction():
    rng = np.random.default_rng(1)
    same = np.argsort(rng.random((4, 500, 6)), axis=2)
    assert scale_reduction(same) < 1.02
    apart = same.copy()
    apart[0] = np.sort(apart[0], axis=1)
    assert scale_reduction(apart) > 1.2
    assert scale_reduction(np.tile(np.arange(6), (4, 9, 1))) == 1.0


def test_chains_that_disagree_are_reported():
    """Two long chains against the center stand apart, the one or the other first: moves cannot swap them."""
    m = 60
    against = Preferences.from_pairs([(0, a + 2, a) for a in range(m - 2)], items=range(m))
    given = Mallows(range(m), 0.9).condition(against)
    with pytest.warns(PermixWarning, match="chains disagree"):
        given.sample(2000, random_state=1, method="mmp")


def test_bounds_of_long_orders():
    """Parts with too many down-sets are cut in two; long chains need no deep recursion."""
    m, phi = 1500, 0.9
    for gap in (1, 2):
        pairs = [(0, a, a + gap) for a in range(1, m - gap)]
        given = Mallows(range(m), phi).condition(Preferences.from_pairs(pairs, items=range(m)))
        lower, upper = given.bounds()
        assert gap > 1 or lower <= given.log_normalizer() <= upper
        assert -np.inf < lower < upper


def test_cutting_parts_in_two_is_a_bound(monkeypatch):
    """With every part cut, the bound is lower than with exact sums, and holds."""
    looser = 0
    for n, relation in CASES[::3]:
        for phi in (0.4, 1.0):
            given = Mallows(CENTERS[n], phi, items=range(n)).condition(stated(relation, n))
            exact_parts = given.bounds().lower
            with monkeypatch.context() as patch:
                patch.setattr("permix.distributions.conditioning.bounds.CHEAP_DOWN_SETS", 1)
                cut = given.bounds().lower
            assert cut <= exact_parts + 1e-12 <= given.log_normalizer() + 2e-12
            looser += cut < exact_parts - 1e-9
    assert looser > 0


def test_narrow_orders_of_many_items_are_exact():
    """a2 ≻ a3 ≻ … ≻ am leaves one free item: m rankings, whose probabilities can be summed directly."""
    m, phi = 300, 0.9
    chain = Preferences.from_pairs([(0, a, a + 1) for a in range(1, m - 1)], items=range(m))
    model = Mallows(range(m), phi)
    given = model.condition(chain)
    assert given.is_exact
    assert not given.is_partitioned
    distances = np.arange(m)  # the free item, first in the center, at rank i has i items before it
    total = np.log(np.sum(phi**distances)) + model.log_prob([list(range(m))])[0]
    assert given.log_normalizer() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(given.rank_marginals()[0], phi**distances / np.sum(phi**distances), rtol=1e-9)
    draws = given.sample(200, random_state=5)
    assert np.all(np.diff(draws.ranks()[:, 1:], axis=1) > 0)


def test_rankings_as_preferences():
    """A full ranking leaves nothing open; a top list leaves its rest to the model; a subset its gaps."""
    items = ["a", "b", "c", "d", "e"]
    model = Mallows(items, 0.5)
    full = Rankings.from_orders([["e", "c", "a", "b", "d"]], items=items)
    given = model.condition(full)
    assert given.log_normalizer() == pytest.approx(model.log_prob(full)[0], abs=1e-12)
    assert given.sample(3, random_state=0).orders.tolist() == [full.orders[0].tolist()] * 3
    assert given.bounds() == pytest.approx((given.log_normalizer(),) * 2)
    top = Rankings.from_orders([["e", "c"]], items=items)
    assert model.condition(top).log_normalizer() == pytest.approx(model.log_prob(top)[0], abs=1e-12)
    subset = Rankings.from_orders([["e", "c"]], items=items, unlisted="unknown")
    assert model.condition(subset).log_normalizer() == pytest.approx(model.log_prob(subset)[0], abs=1e-12)
    assert model.condition(top).pairwise()[2, 0] == 1.0
    assert 0.0 < model.condition(subset).pairwise()[2, 0] < 1.0


def test_ratings_leave_unrated_items_free():
    items = ["a", "b", "c", "d"]
    ratings = Preferences.from_ratings([[np.nan, 5, 3, 5]], items=items)
    relation = frozenset({(1, 2), (3, 2)})
    given = Mallows(items, 0.7).condition(ratings)
    total, distribution = oracle.posterior(relation, range(4), oracle.geometric(0.7))
    assert given.log_normalizer() == pytest.approx(np.log(total), abs=1e-12)
    np.testing.assert_allclose(given.pairwise(), oracle.pairwise(distribution, 4), atol=1e-12)


def test_nothing_said():
    model = Mallows(CENTER, 0.4, items=range(4))
    for nothing in (
        Preferences.from_pairs([], items=range(4), agents=[0]),
        Preferences.from_levels([[[0, 1, 2, 3]]], items=range(4)),
        Preferences.from_levels([[[0, 1]]], items=range(4), rest_below=False),
    ):
        given = model.condition(nothing)
        assert given.log_normalizer() == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(given.pairwise(), model.pairwise(), atol=1e-12)
        np.testing.assert_allclose(given.rank_marginals(), model.rank_marginals(), atol=1e-12)
        assert given.bounds().lower == pytest.approx(0.0, abs=1e-12)


def test_items_by_name_in_another_order():
    model = Mallows(["a", "b", "c"], 0.5)
    said = Preferences.from_pairs([(0, "c", "a")], items=["c", "b", "a"])
    assert model.condition(said).pairwise()[2, 0] == 1.0
    assert "given c ≻ a" in repr(model.condition(said))
    assert model.condition(said).sample(1, random_state=0).items == ("a", "b", "c")


def test_the_same_seed_gives_the_same_draws():
    given = Mallows(range(30), 0.9).condition(Preferences.from_pairs([(0, 25, 2)], items=range(30)))
    for method in ("amp", "mmp"):
        first, second = (given.sample(5, random_state=3, method=method) for _ in range(2))
        np.testing.assert_array_equal(first.orders, second.orders)
        other = given.sample(5, random_state=4, method=method)
        assert not np.array_equal(first.orders, other.orders)
    assert given.log_normalizer(random_state=1) == given.log_normalizer(random_state=1)


def test_refusals():
    model = Mallows(["a", "b", "c"], 0.5)
    one = Preferences.from_pairs([(0, "a", "b")], items=["a", "b", "c"])
    with pytest.raises(DataError, match="one agent, but here are 2"):
        model.condition(Preferences.from_pairs([(0, "a", "b"), (1, "b", "c")]))
    with pytest.raises(DataError, match="different items"):
        model.condition(Preferences.from_pairs([(0, "a", "x")]))
    with pytest.raises(DataError, match="needs Preferences or Rankings"):
        model.condition([("a", "b")])
    bad = Preferences.from_pairs([(0, "a", "b"), (0, "b", "a")], items=["a", "b", "c"], on_cycle="keep")
    with pytest.raises(CycleError):
        model.condition(bad)
    with pytest.raises(DataError, match="must be one of"):
        model.condition(one).sample(1, method="gibbs")
    with pytest.raises(DataError, match="n_samples"):
        model.condition(one).log_normalizer("importance", n_samples=0)
    with pytest.raises(DataError, match="is not full"):
        model.condition(one).log_prob([["a", "b"]])


def test_impossible_preferences():
    """Dispersion 0 is the center alone; preferences against it have probability zero."""
    for m in (3, 40):
        items = list(range(m))
        model = Mallows(items, 0.0)
        against = Preferences.from_pairs([(0, m - 1, 0)], items=items)
        agrees = Preferences.from_pairs([(0, 0, m - 1)], items=items)
        given = model.condition(against)
        assert given.log_normalizer() == -np.inf
        for ask in ("sample", "pairwise", "rank_marginals"):
            with pytest.raises(DataError, match="no ranking of positive probability"):
                getattr(given, ask)()
        with pytest.raises(DataError, match="no ranking of positive probability"):
            given.log_prob([items])
        assert model.condition(agrees).log_normalizer() == 0.0
        assert model.condition(agrees).sample(2, random_state=0).orders.tolist() == [items] * 2


def test_possible_or_not_with_some_certain_insertions():
    """Steps of dispersion 0 come after all before them: whether that agrees is known without any draw."""
    for relation in oracle.labeled_posets(4)[::2]:
        for dispersions in ((1.0, 0.0, 0.5, 1.0), (1.0, 0.7, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0)):
            given = Mallows(CENTER, dispersions, items=range(4)).condition(stated(relation, 4))
            total, _ = oracle.posterior(relation, CENTER, oracle.geometric(dispersions))
            assert given._problem.is_possible == (total > 0.0)
    m = 40
    dispersions = [0.0 if i % 2 else 1.0 for i in range(m)]
    model = Mallows(range(m), dispersions)
    impossible = model.condition(Preferences.from_pairs([(0, 39, 0)], items=range(m)))
    assert not impossible.is_exact
    assert impossible.log_normalizer() == -np.inf
    assert impossible.log_normalizer().standard_error == 0.0
    with pytest.raises(DataError, match="no ranking of positive probability"):
        impossible.sample(1)
    possible = model.condition(Preferences.from_pairs([(0, 38, 0), (0, 36, 2)], items=range(m)))
    draws = possible.sample(20, random_state=0)
    assert np.all(np.isfinite(model.log_prob(draws)))


def test_no_draw_of_positive_probability_proves_nothing():
    """With any insertion probabilities a normalizer of which no draw saw anything has no standard error."""
    m = 30
    matrix = np.tril(np.ones((m, m)))
    matrix[m - 1] = 0.0
    matrix[m - 1, 0] = 1.0  # the last item goes to the top
    matrix /= matrix.sum(axis=1, keepdims=True)
    model = RepeatedInsertion(range(m), matrix)
    # Item 0 cannot be above it; with a matrix, draws alone are asked.
    given = model.condition(Preferences.from_pairs([(0, 0, m - 1), (0, 20, 3)], items=range(m)))
    assert not given.is_exact
    with pytest.warns(PermixWarning, match="none of 50 draws"):
        estimate = given.log_normalizer(n_samples=50, random_state=0)
    assert estimate == -np.inf
    assert np.isnan(estimate.standard_error)
    with pytest.raises(DataError, match="no draw was found"):
        given.sample(1)


@pytest.mark.parametrize("n", [4, 5])
def test_largest_antichain(n):
    for relation in (r for size, r in CASES if size == n):
        below = np.zeros((n, n), np.bool_)
        for a, b in relation:
            below[a, b] = True
        found = largest_antichain(below)
        assert not below[np.ix_(found, found)].any()
        best = max(
            len(chosen)
            for code in range(2**n)
            if not below[np.ix_(chosen := [i for i in range(n) if code >> i & 1], chosen)].any()
        )
        assert found.sum() == best
