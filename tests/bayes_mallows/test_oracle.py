"""The enumeration of Bayesian Mallows models against what is known in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest

from tests.oracles import bayes_mallows as oracle
from tests.oracles.partitions import dirichlet_process_rule, finite_dirichlet_rule, finite_mixtures_rule

DECAYS = oracle.gamma(2.0, 3.0, 6.0, 12)
RATES = oracle.beta_below_half(1.0, 5.0, 6)
SLOPES = oracle.both(oracle.middles(lambda x: 1.0, 0.0, 3.0, 4), oracle.gamma(1.0, 1.0, 4.0, 4))
RULES = {
    "dirichlet process": dirichlet_process_rule(0.7),
    "two components": finite_dirichlet_rule(2, 1.0),
    "finite mixtures": finite_mixtures_rule({1: 0.5, 2: 0.3, 3: 0.2}, 1.5),
}
ERRORS = {
    "none": {},
    "bernoulli": {"says": oracle.bernoulli, "errors": RATES},
    "bernoulli per agent": {"says": oracle.bernoulli, "errors": RATES, "per_agent": True},
    "logistic": {"says": oracle.logistic, "errors": SLOPES},
}
EVERY_DISTANCE = pytest.mark.parametrize("distance", oracle.DISTANCES)


def a_model(distance="kendall", n=4, **options):
    return oracle.Model(n, distance, DECAYS, **options)


# -- distances -------------------------------------------------------------------------------------


@EVERY_DISTANCE
def test_distances_do_not_depend_on_names(distance):
    """Right-invariant: all columns hold the same numbers, and renaming items changes nothing."""
    found = oracle.distances(distance, 4)
    assert np.array_equal(found, found.T)
    assert not np.diag(found).any()
    assert np.array_equal(np.sort(found, axis=0), np.sort(found, axis=0)[:, :1].repeat(24, axis=1))
    function = oracle.DISTANCES[distance]
    for names in permutations(range(4)):
        a, b = (2, 0, 3, 1), (0, 3, 1, 2)
        renamed = [tuple(names[item] for item in order) for order in (a, b)]
        assert function(*renamed) == function(a, b)


def test_a_distance_that_compares_places_depends_on_names():
    a, b = (0, 1, 2, 3), (3, 1, 2, 0)
    names = (1, 0, 2, 3)
    renamed = [tuple(names[item] for item in order) for order in (a, b)]
    assert oracle.footrule_of_places(a, b) != oracle.footrule_of_places(*renamed)


def test_distances_from_the_identity():
    """By hand: the last item moved to the front."""
    a, b = (3, 0, 1, 2), (0, 1, 2, 3)
    known = {"kendall": 3, "footrule": 6, "spearman": 12, "cayley": 3, "hamming": 4, "ulam": 1}
    assert {name: function(a, b) for name, function in oracle.DISTANCES.items()} == known


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("decay", [0.0, 0.3, 2.0])
def test_closed_forms_of_normalizers(n, decay):
    q = math.exp(-decay)
    known = {
        "kendall": math.prod(sum(q**k for k in range(i)) for i in range(1, n + 1)),
        "cayley": math.prod(1 + i * q for i in range(1, n)),
        "hamming": math.factorial(n) * q**n * sum((1 / q - 1) ** j / math.factorial(j) for j in range(n + 1)),
    }
    for distance, value in known.items():
        column = oracle.distances(distance, n)[:, 0]
        assert np.exp(-decay * column).sum() == pytest.approx(value, rel=1e-12)


# -- probabilities add up --------------------------------------------------------------------------


def every_datum(form, n=4):
    """All that can be said in one form."""
    if form == "full":
        return [oracle.full(r) for r in permutations(range(n))]
    if form == "top":
        return [oracle.top(best, n) for best in permutations(range(n), 2)]
    if form == "subset":
        return [oracle.subset(r) for r in permutations((0, 2, 3))]
    if form == "levels":
        return [oracle.levels(a, tuple(sorted({0, 1, 2, 3} - set(a)))) for a in combinations(range(4), 2)]
    asked = [(0, 1), (2, 0), (0, 1)] if form == "pairs" else [(3, 1)]
    return [oracle.compared(*said) for said in product(*[((a, b), (b, a)) for a, b in asked])]


@EVERY_DISTANCE
@pytest.mark.parametrize("form", ["full", "top", "subset", "levels", "pairs", "pair"])
def test_probabilities_of_all_that_can_be_said_add_up(distance, form):
    model = a_model(distance)
    known = [oracle.top((1, 3), 4), oracle.compared((2, 0))]
    total = sum(oracle.predictive(model, known, each) for each in every_datum(form) if possible(each))
    assert total == pytest.approx(1.0)


def possible(pairs):
    return any(oracle.no_errors(r, pairs) for r in oracle.orderings(4))


@pytest.mark.parametrize("errors", ["bernoulli", "bernoulli per agent", "logistic"])
def test_probabilities_of_comparisons_with_errors_add_up(errors):
    model = a_model("footrule", **ERRORS[errors])
    known = [oracle.compared((1, 3), (3, 1), (0, 2))]
    total = sum(oracle.predictive(model, known, each) for each in every_datum("pairs"))
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("rule", RULES)
def test_probabilities_under_mixtures_add_up(rule):
    model = a_model("cayley", rule=RULES[rule])
    known = [oracle.full((0, 1, 2, 3)), oracle.full((3, 2, 1, 0))]
    total = sum(oracle.predictive(model, known, each) for each in every_datum("full"))
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("errors", ERRORS)
def test_everything_in_an_answer_is_a_distribution(rule, errors):
    model = a_model("ulam", n=3, rule=RULES[rule], **ERRORS[errors])
    agents = [oracle.full((0, 1, 2)), oracle.compared((2, 1)), oracle.nothing()]
    found = oracle.posterior(model, agents)
    assert sum(found.partitions.values()) == pytest.approx(1.0)
    assert found.n_groups.sum() == pytest.approx(1.0)
    assert found.n_groups[0] == 0.0
    for rows in (found.centers, found.decays, found.rankings, found.errors):
        assert np.all(rows >= 0.0)
        assert np.allclose(np.atleast_2d(rows).sum(axis=1), 1.0)
    for agent in range(3):
        assert np.allclose(found.before(agent) + found.before(agent).T, 1.0 - np.eye(3))
        assert np.allclose(found.rank_probabilities(agent).sum(axis=0), 1.0)
        assert np.allclose(found.center_rank_probabilities(agent).sum(axis=1), 1.0)
        assert found.decay_cdf(np.inf, agent) == pytest.approx(1.0)


# -- closed forms ----------------------------------------------------------------------------------


@EVERY_DISTANCE
def test_one_full_ranking_leaves_its_distribution_around_it(distance):
    """By symmetry the center has the model's distribution around what was said, and the evidence is 1/n!."""
    model = replace(a_model(distance), decays=oracle.point(0.4))
    said = (2, 0, 3, 1)
    found = oracle.posterior(model, [oracle.full(said)])
    expected = np.exp(-0.4 * oracle.distances(distance, 4)[:, oracle.orderings(4).index(said)])
    assert np.allclose(found.centers[0], expected / expected.sum())
    assert found.evidence == pytest.approx(1 / 24)
    assert found.rankings[0][oracle.orderings(4).index(said)] == pytest.approx(1.0)


@EVERY_DISTANCE
def test_without_spread_nothing_is_learned(distance):
    model = replace(a_model(distance), decays=oracle.point(0.0))
    found = oracle.posterior(model, [oracle.full((0, 1, 2, 3)), oracle.top((1,), 4)])
    assert np.allclose(found.centers, 1 / 24)
    assert found.evidence == pytest.approx(1 / 24 / 4)


def test_decays_by_hand():
    """Two equal rankings: p(decay | data) ∝ prior × Z(2 decay) / Z(decay)², here under Kendall."""
    model = a_model("kendall")
    found = oracle.posterior(model, [oracle.full((0, 1, 2, 3))] * 2)

    def z(decay):
        return math.prod(sum(math.exp(-decay * k) for k in range(i)) for i in range(1, 5))

    weights = np.array([p * z(2 * v) / z(v) ** 2 for v, p in zip(DECAYS.values, DECAYS.prior, strict=True)])
    assert np.allclose(found.decays[0], weights / weights.sum())
    assert found.evidence == pytest.approx(weights.sum() / 24)


def test_an_informed_center_and_no_data():
    prior = np.arange(1.0, 25.0) / 300
    found = oracle.posterior(a_model(centers=prior), [oracle.nothing()])
    assert np.allclose(found.centers[0], prior)
    assert np.allclose(found.decays[0], DECAYS.prior)
    assert found.evidence == pytest.approx(1.0)


def test_agents_who_say_nothing_are_seated_by_the_prior():
    """Two agents of a Dirichlet process are together with probability 1 / (1 + concentration)."""
    model = a_model(rule=RULES["dirichlet process"])
    found = oracle.posterior(model, [oracle.nothing()] * 2)
    assert found.together[0, 1] == pytest.approx(1 / 1.7)
    assert found.n_groups == pytest.approx([0.0, 1 / 1.7, 0.7 / 1.7])


def test_fixed_number_of_components_by_named_assignments():
    """Sum over assignments to two named components and over their parameters, without partitions."""
    model = a_model("hamming", n=3, rule=RULES["two components"])
    agents = [oracle.full((0, 1, 2)), oracle.full((0, 2, 1)), oracle.full((2, 1, 0))]
    p = np.exp(model.log_rankings())
    places = [oracle.orderings(3).index(r) for r in ((0, 1, 2), (0, 2, 1), (2, 1, 0))]
    total, same = 0.0, 0.0
    for z in product(range(2), repeat=3):
        sizes = [z.count(0), z.count(1)]
        weight = math.prod(math.factorial(size) for size in sizes) / math.factorial(4)  # Dirichlet(1, 1)
        for k in range(2):
            mine = [r for r, label in zip(places, z, strict=True) if label == k]
            weight *= sum(
                DECAYS.prior[i] / 6 * math.prod(p[i, r, center] for r in mine)
                for i in range(len(DECAYS.prior))
                for center in range(6)
            )
        total += weight
        same += weight * (z[0] == z[1])
    found = oracle.posterior(model, agents)
    assert found.evidence == pytest.approx(total)
    assert found.together[0, 1] == pytest.approx(same / total)


def test_prediction_is_the_ranking_of_an_agent_who_says_nothing():
    model = a_model("spearman", rule=RULES["finite mixtures"])
    agents = [oracle.top((0, 1), 4), oracle.compared((2, 3))]
    silent = oracle.posterior(model, [*agents, oracle.nothing()]).rankings[-1]
    for r in ((0, 1, 2, 3), (3, 1, 0, 2)):
        asked = oracle.predictive(model, agents, oracle.full(r))
        assert silent[oracle.orderings(4).index(r)] == pytest.approx(asked)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_agent", [False, True])
def test_a_rate_of_zero_is_no_errors(per_agent):
    agents = [oracle.compared((0, 1), (1, 2)), oracle.compared((3, 2))]
    with_rate = a_model(says=oracle.bernoulli, errors=oracle.point(0.0), per_agent=per_agent)
    a, b = oracle.posterior(a_model(), agents), oracle.posterior(with_rate, agents)
    assert a.evidence == pytest.approx(b.evidence)
    assert np.allclose(a.centers, b.centers)
    assert np.allclose(a.rankings, b.rankings)


def test_contradictions_have_a_probability():
    """a > b > c > a by one agent, each wrong with probability 0.1: one or two are, for any ranking."""
    model = a_model(n=3, says=oracle.bernoulli, errors=oracle.point(0.1))
    found = oracle.posterior(model, [oracle.compared((0, 1), (1, 2), (2, 0))])
    assert found.evidence == pytest.approx((3 * 0.9**2 * 0.1 + 3 * 0.9 * 0.1**2) / 6)


def test_logistic_errors_by_hand():
    """One comparison of three items, where all rankings are alike: neighbors are confused more often."""
    b0, b1 = 0.5, 1.5
    model = a_model(n=3, says=oracle.logistic, errors=oracle.Grid(np.array([[b0, b1]]), np.ones(1)))
    found = oracle.posterior(replace(model, decays=oracle.point(0.0)), [oracle.compared((0, 2))])
    near, far = 1 / (1 + math.exp(b0)), 1 / (1 + math.exp(b0 + b1))
    assert found.evidence == pytest.approx(0.5)
    of_far = found.rankings[0][oracle.orderings(3).index((2, 1, 0))]
    assert of_far == pytest.approx(far / 3)
    assert found.rankings[0][oracle.orderings(3).index((2, 0, 1))] == pytest.approx(near / 3)


def test_levels_hold_beside_comparisons_that_may_be_wrong():
    """The item on top is known; whether the other two are as stated is not."""
    model = a_model(n=3, says=oracle.bernoulli, errors=oracle.point(0.2))
    agent = (*oracle.surely(oracle.levels((0,), (1, 2))), *oracle.compared((1, 2)))
    found = oracle.posterior(replace(model, decays=oracle.point(0.0)), [agent])
    assert found.evidence == pytest.approx(1 / 6)  # 0.8 and 0.2, of a sixth each
    assert found.before()[0, 1] == pytest.approx(1.0)
    assert found.before()[1, 2] == pytest.approx(0.8)


def test_a_careless_agent_is_told_from_a_careful_one():
    agents = [oracle.compared((0, 1), (1, 0), (0, 1), (1, 0)), oracle.compared(*[(0, 1)] * 4)]
    model = a_model(n=3, **ERRORS["bernoulli per agent"])
    careless, careful = oracle.posterior(model, agents).mean_errors()
    assert careless > RATES.prior @ RATES.values > careful


# -- broken twins ----------------------------------------------------------------------------------


def test_a_twin_without_normalizers_does_not_add_up():
    model = a_model("footrule")
    total = sum(oracle.without_normalizers(model, [each]).evidence for each in every_datum("full"))
    assert abs(total - 1.0) > 0.1
    right = oracle.posterior(model, [oracle.full((0, 1, 2, 3))] * 2).decays
    assert (
        np.abs(right - oracle.without_normalizers(model, [oracle.full((0, 1, 2, 3))] * 2).decays).sum() > 0.1
    )


def test_a_twin_that_counts_comparisons_once_does_not_add_up():
    model = a_model(**ERRORS["bernoulli"])
    total = sum(oracle.said_once(model, [each]).evidence for each in every_datum("pairs"))
    assert abs(total - 1.0) > 0.1
