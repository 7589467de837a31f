"""Conditioning on preferences, as users see it: against enumeration over every poset on four items."""

from itertools import permutations

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions import Mallows, RepeatedInsertion
from permix.distributions.conditioned_bounds import largest_antichain
from permix.errors import CycleError, DataError, PermixWarning
from tests.oracles import posets_all as oracle
from tests.oracles.ranking_models import total_variation, total_variation_bound

CENTER = (2, 0, 3, 1)
CASES = [(4, relation) for relation in oracle.labelled_posets(4)]
CASES += [(5, relation) for relation in oracle.random_posets(5, 40, seed=2)]
CENTERS = {4: CENTER, 5: (3, 0, 4, 1, 2)}
DISPERSIONS = {4: (1.0, 0.2, 0.9, 0.5), 5: (0.3, 0.8, 0.4, 1.0, 0.6)}


def stated(relation, n):
    return Preferences.from_pairs([(0, a, b) for a, b in sorted(relation)], items=range(n), agents=[0])


@pytest.mark.parametrize("dispersion", [0.0, 0.3, 0.9, 1.0, "weighted"])
def test_every_poset(dispersion):
    """Normaliser, probabilities, marginals and bounds; AMP's own law; what counts as partitioned."""
    loosest = 0.0
    for n, relation in CASES:
        phi = DISPERSIONS[n] if dispersion == "weighted" else dispersion
        center, weight = CENTERS[n], oracle.geometric(phi)
        given = Mallows(center, phi, items=range(n)).condition(stated(relation, n))
        total, law = oracle.posterior(relation, center, weight)
        rows = list(permutations(range(n)))
        np.testing.assert_allclose(
            np.exp(given.amp_log_prob(rows)),
            [oracle.amp_law(relation, center, weight).get(row, 0.0) for row in rows],
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
        expected = [law.get(row, 0.0) for row in rows]
        np.testing.assert_allclose(np.exp(given.log_prob(rows)), expected, atol=1e-13)
        np.testing.assert_allclose(given.pairwise(), oracle.pairwise(law, n), atol=1e-12)
        np.testing.assert_allclose(given.rank_marginals(), oracle.rank_marginals(law, n), atol=1e-12)
    assert dispersion == 0.0 or loosest > 0.1  # a pair of bounds that are always equal would not be these


@pytest.mark.parametrize("method", ["auto", "exact", "amp", "mmp"])
def test_draws(method):
    """Frequencies: the posterior for all but AMP, which has its own law (equation 15)."""
    size = 3000
    weight = oracle.geometric(0.9)
    other_law_rejected = 0
    for seed, (n, relation) in enumerate(CASES[::6]):
        center = CENTERS[n]
        given = Mallows(center, 0.9, items=range(n)).condition(stated(relation, n))
        draws = given.sample(size, random_state=seed, method=method)
        laws = [oracle.posterior(relation, center, weight)[1], oracle.amp_law(relation, center, weight)]
        law, other = laws[::-1] if method == "amp" else laws
        bound = total_variation_bound(size / 2 if method == "mmp" else size, len(law))
        assert total_variation(draws.orders, law) < bound
        other_law_rejected += total_variation(draws.orders, other) > bound
        assert draws.metadata["method"] == ("exact" if method == "auto" else method)
        assert draws.metadata["exact"] == (method in ("auto", "exact") or oracle.is_partitioned(relation, n))
        if method == "mmp":
            assert 0.3 < given.acceptance_rate_ <= 1.0
            assert draws.metadata["acceptance_rate"] == given.acceptance_rate_
    assert other_law_rejected > 0


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
                "importance", n_samples=2000, random_state=seed, return_standard_error=True
            )
            assert np.all(np.abs(value - truth) <= 5 * error + 5 / 2000)
            assert np.all(getattr(given, what)(return_standard_error=True)[1] == 0.0)
    assert np.mean(wrong_within) < 0.5


def test_repeated_insertion():
    rng = np.random.default_rng(7)
    matrix = np.tril(rng.random((4, 4)))
    matrix[2, 0] = 0.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    model = RepeatedInsertion(CENTER, matrix, items=range(4))
    for relation in oracle.labelled_posets(4)[::5]:
        total, law = oracle.posterior(relation, CENTER, lambda i, place: matrix[i, place])
        given = model.condition(stated(relation, 4))
        if total == 0.0:
            assert given.log_normalizer() == -np.inf
            continue
        assert given.log_normalizer() == pytest.approx(np.log(total), abs=1e-12)
        np.testing.assert_allclose(given.pairwise(), oracle.pairwise(law, 4), atol=1e-12)
        np.testing.assert_allclose(given.rank_marginals(), oracle.rank_marginals(law, 4), atol=1e-12)
        draws = given.sample(2000, random_state=1)
        assert total_variation(draws.orders, law) < total_variation_bound(2000, len(law))
    with pytest.raises(DataError, match="Mallows models only"):
        given.bounds()
    rule = RepeatedInsertion(["a", "b"], lambda ranking, item: [1.0] if not ranking else [0.5, 0.5])
    with pytest.raises(DataError, match="function cannot be conditioned"):
        rule.condition(Preferences.from_pairs([(0, "a", "b")]))


def test_one_comparison_has_the_pairwise_probability():
    """P(a ≻ b) without preferences is the normaliser given a ≻ b: near by exact sums, far by draws."""
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
        given.sample(20, random_state=0, method="mmp", n_burn_in=0, n_thin=2)


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
    total, law = oracle.posterior(relation, range(4), oracle.geometric(0.7))
    assert given.log_normalizer() == pytest.approx(np.log(total), abs=1e-12)
    np.testing.assert_allclose(given.pairwise(), oracle.pairwise(law, 4), atol=1e-12)


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
