"""Priors over partitions against enumeration, and the tables that samplers read."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from permix.errors import DataError
from permix.families import Gaussian
from permix.moves.state import MixtureState
from permix.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    MixtureOfFiniteMixtures,
    PitmanYor,
    canonical_labels,
    prior_from_description,
)
from permix.partitions.concentration import log_rising_factorial
from tests.every_run import first_in_every_run
from tests.oracles.partitions import (
    dirichlet_process_rule,
    finite_dirichlet_rule,
    finite_mixtures_rule,
    pitman_yor_rule,
    restricted_growth_strings,
    sequential_probability,
    shifted_poisson,
    sizes_of,
)

PRIORS = {
    "dp": (DirichletProcess(0.7), dirichlet_process_rule(0.7)),
    "dp-large": (DirichletProcess(25.0), dirichlet_process_rule(25.0)),
    "py": (PitmanYor(1.3, 0.4), pitman_yor_rule(1.3, 0.4)),
    "py-negative": (PitmanYor(-0.3, 0.6), pitman_yor_rule(-0.3, 0.6)),
    "py-no-discount": (PitmanYor(2.0, 0.0), dirichlet_process_rule(2.0)),
    "finite": (FiniteDirichlet(3, 0.5), finite_dirichlet_rule(3, 0.5)),
    "finite-many": (FiniteDirichlet(40, 1.0), finite_dirichlet_rule(40, 1.0)),
    "mfm": (MixtureOfFiniteMixtures(), finite_mixtures_rule(shifted_poisson(1.0), 1.0)),
    "mfm-many": (MixtureOfFiniteMixtures(7.5, 0.3), finite_mixtures_rule(shifted_poisson(7.5), 0.3)),
}
LEARNED = DirichletProcess(Gamma(2.0, 1.5))

each_prior = pytest.mark.parametrize(("prior", "rule"), PRIORS.values(), ids=PRIORS.keys())


# --- probability of a partition -----------------------------------------------------------------


@pytest.mark.parametrize("prior", [p for p, _ in PRIORS.values()] + [LEARNED], ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 7])
def test_probabilities_of_all_partitions_sum_to_one(prior, n):
    total = math.fsum(math.exp(prior.log_prob(labels)) for labels in restricted_growth_strings(n))
    assert total == pytest.approx(1.0, rel=1e-9 if prior is LEARNED else 1e-12)


@each_prior
def test_probability_equals_sequential_construction_in_any_order(prior, rule):
    labels = (0, 0, 1, 0, 2)
    for order in permutations(range(5)):
        assert math.exp(prior.log_prob(labels)) == pytest.approx(
            sequential_probability(labels, rule, order), rel=1e-12
        )
    for labels in restricted_growth_strings(6):
        expected = sequential_probability(labels, rule)
        assert math.exp(prior.log_prob(labels)) == pytest.approx(expected, rel=1e-12)


def test_the_sequential_oracle_rejects_a_wrong_rule():
    broken = pitman_yor_rule(1.3, 0.3)
    prior = PRIORS["py"][0]
    differences = [
        abs(math.exp(prior.log_prob(labels)) - sequential_probability(labels, broken))
        for labels in restricted_growth_strings(5)
    ]
    assert max(differences) > 1e-3


@pytest.mark.parametrize("prior", [p for p, _ in PRIORS.values()] + [LEARNED], ids=str)
def test_sequential_weights_are_ratios_of_partition_probabilities(prior):
    labels = [0, 1, 0, 2, 0]
    sizes = sizes_of(labels)
    weights = prior.sequential_log_weights(sizes)
    assert np.exp(weights).sum() == pytest.approx(1.0)
    for seat in range(4):
        ratio = prior.log_prob([*labels, seat]) - prior.log_prob(labels)
        assert weights[seat] == pytest.approx(ratio, abs=1e-8)
    raw = prior.sequential_log_weights(sizes, normalized=False)
    np.testing.assert_allclose(raw - raw[0], weights - weights[0], atol=1e-12)


def test_finite_prior_forbids_more_clusters_than_components():
    prior = FiniteDirichlet(2, 0.8)
    assert prior.log_prob([0, 1, 2]) == -math.inf
    assert prior.sequential_log_weights([3, 1])[-1] == -math.inf
    assert prior.sample(500, 3).max() == 1
    assert FiniteDirichlet(1).log_prob([5, 5, 5]) == 0.0


def test_learned_concentration_is_the_average_over_its_prior():
    gamma = Gamma(2.0, 1.5)
    alphas = np.random.default_rng(1).gamma(gamma.shape, 1 / gamma.rate, 40_000)
    for labels in [(0, 0, 0, 0), (0, 1, 2, 3), (0, 0, 1, 0)]:
        k = max(labels) + 1
        direct = math.prod(map(math.gamma, sizes_of(labels))) * alphas**k
        for i in range(4):
            direct = direct / (alphas + i)
        error = direct.std() / math.sqrt(len(alphas))
        assert abs(math.exp(LEARNED.log_prob(labels)) - direct.mean()) < 5 * error


def test_the_enumeration_of_finite_mixtures_rejects_a_wrong_table():
    """V of one observation too few: the seats of a sampler that forgets the datum it is seating."""
    prior, rule = PRIORS["mfm"]
    weights = np.array(rule([2, 1, 1]))
    right = np.array(prior.sequential_log_weights([2, 1, 1]))
    np.testing.assert_allclose(right, np.log(weights / weights.sum()), rtol=1e-12)
    broken = seat_weights(prior.tables(4), np.array([2, 1, 1]))
    assert np.abs(broken - np.logaddexp.reduce(broken) - right).max() > 1e-2


@pytest.mark.parametrize(("rate", "pseudo_count"), [(1.0, 1.0), (7.5, 0.3), (0.01, 20.0)])
@pytest.mark.parametrize("n", [1, 7, 3000])
def test_table_of_finite_mixtures_against_high_precision(rate, pseudo_count, n):
    """The series of V_n to 120 terms, the last below 1e-60, in 60 digits, for few and for many groups."""
    import mpmath

    def exact(t):
        terms = (
            mpmath.exp(-rate) * mpmath.mpf(rate) ** (k - 1) / mpmath.factorial(k - 1)
            * mpmath.ff(k, t) / mpmath.rf(mpmath.mpf(pseudo_count) * k, n)
            for k in range(max(t, 1), t + 120)
        )  # fmt: skip
        return mpmath.log(mpmath.fsum(terms))

    log_new = MixtureOfFiniteMixtures(rate, pseudo_count).tables(n).opening
    assert len(log_new) == n + 1
    assert log_new[n] == -np.inf
    with mpmath.workdps(60):
        for t in sorted({0, 1, min(5, n - 1), n // 2, n - 1} & set(range(n))):
            expected = float(mpmath.log(pseudo_count) + exact(t + 1) - exact(t))
            assert log_new[t] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_number_of_components_given_the_groups():
    """Against the joint of K and the partition, summed over the partitions of six observations."""
    rate, pseudo_count = 1.7, 0.6
    prior = MixtureOfFiniteMixtures(rate, pseudo_count)
    numbers = shifted_poisson(rate, 60)
    for t in (1, 3, 6):
        joint = {
            k: weight
            * sum(
                math.exp(FiniteDirichlet(k, pseudo_count).log_prob(p))
                for p in restricted_growth_strings(6)
                if max(p) + 1 == t
            )
            for k, weight in numbers.items()
        }
        total = sum(joint.values())
        actual = prior.n_components_probabilities(t, 6)
        expected = [joint.get(k, 0.0) / total for k in range(len(actual))]
        np.testing.assert_allclose(actual, expected, atol=1e-12)
        assert actual.sum() == pytest.approx(1.0, abs=1e-11)
        # Not the prior: a group that shows no observations is improbable.
        assert np.abs(actual - [numbers.get(k, 0.0) for k in range(len(actual))]).max() > 0.05


# --- sampling and moments -----------------------------------------------------------------------


def total_variation_bound(n_cells: int, n_draws: int) -> float:
    """Mean of the total variation is below sqrt(cells / draws) / 2; McDiarmid adds the deviation at 1e-6."""
    return 0.5 * math.sqrt(n_cells / n_draws) + math.sqrt(math.log(1e6) / (2 * n_draws))


def total_variation(draws: np.ndarray, probability) -> float:
    cells = list(restricted_growth_strings(draws.shape[1]))
    rows, counts = np.unique(draws, axis=0, return_counts=True)
    observed = {tuple(row): count / len(draws) for row, count in zip(rows.tolist(), counts, strict=True)}
    assert set(observed) <= set(cells)  # numbered by first appearance
    return 0.5 * sum(abs(observed.get(cell, 0.0) - probability(cell)) for cell in cells)


@pytest.mark.parametrize("name", [*PRIORS, "learned"])
def test_samples_match_the_probabilities(name):
    prior = LEARNED if name == "learned" else PRIORS[name][0]
    draws = prior.sample(5, random_state=11, size=20_000)
    bound = total_variation_bound(52, 20_000)
    assert total_variation(draws, lambda cell: math.exp(prior.log_prob(cell))) < bound
    broken = FiniteDirichlet(6, 2.0)  # a different prior must be told apart
    assert total_variation(draws, lambda cell: math.exp(broken.log_prob(cell))) > bound


def test_sample_shapes_and_seeds():
    prior = PitmanYor(1.0, 0.9)
    assert prior.sample(7, 1).shape == (7,)
    assert prior.sample(7, 1, size=3).shape == (3, 7)
    assert prior.sample(0, 1).shape == (0,)
    np.testing.assert_array_equal(
        prior.sample(50, 5, size=2), prior.sample(50, np.random.default_rng(5), size=2)
    )
    draws = prior.sample(300, 2, size=4)
    np.testing.assert_array_equal(draws, canonical_labels(draws))


@pytest.mark.parametrize("prior", [p for p, _ in PRIORS.values()] + [LEARNED], ids=str)
@pytest.mark.parametrize("n", [0, 1, 6])
def test_expected_clusters_against_enumeration(prior, n):
    exact = sum(len(set(p)) * math.exp(prior.log_prob(p)) for p in restricted_growth_strings(n))
    assert prior.expected_clusters(n) == pytest.approx(exact, rel=1e-9)


# --- extreme values -----------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1e-10, 0.3, 1.0, 15.5, 16.0, 40.0, 1e5, 1e10])
@pytest.mark.parametrize("n", [0, 1, 5, 20, 1000, 10**6])
def test_rising_factorial_against_high_precision(x, n):
    import mpmath

    with mpmath.workdps(60):
        exact = float(mpmath.loggamma(mpmath.mpf(x) + n) - mpmath.loggamma(mpmath.mpf(x)))
    assert log_rising_factorial(x, n) == pytest.approx(exact, rel=2e-15, abs=1e-15)


# A mixture of finite mixtures sums hundreds of terms for every number of clusters.
@pytest.mark.parametrize("n", first_in_every_run([20_000, 10**6]))
@pytest.mark.parametrize(
    "prior",
    [
        DirichletProcess(1e-10),
        DirichletProcess(1e10),
        PitmanYor(1e-10, 0.999),
        PitmanYor(1e10, 1e-12),
        FiniteDirichlet(10**7, 1e-6),
        FiniteDirichlet(10**7, 1e4),
        MixtureOfFiniteMixtures(1e-10, 1e-10),
        MixtureOfFiniteMixtures(100.0, 1e10),
        DirichletProcess(Gamma(0.01, 0.01)),
    ],
    ids=str,
)
def test_extreme_parameters_stay_finite(prior, n):
    labels = np.arange(n) // 3
    assert np.isfinite(prior.log_prob(labels))
    assert np.isfinite(prior.log_prob(np.zeros(n, np.int8)))
    assert 1.0 - 1e-9 <= prior.expected_clusters(1000) <= 1000.0 + 1e-9
    assert np.isfinite(prior.sequential_log_weights([n - 2, 1])).all()
    prior.sample(1000, 1)


def test_concentration_limits():
    assert DirichletProcess(1e-10).log_prob([0] * 50) == pytest.approx(0.0, abs=1e-8)
    assert DirichletProcess(1e10).log_prob(range(50)) == pytest.approx(0.0, abs=1e-6)
    assert DirichletProcess(1e10).expected_clusters(50) == pytest.approx(50.0)


# --- the tables that samplers read --------------------------------------------------------------


def seat_weights(tables, sizes):
    return np.append(tables.joining[sizes], tables.opening[len(sizes)])


@each_prior
def test_tables(prior, rule):
    for sizes in ([], [1], [4], [2, 1], [5, 3, 1]):
        weights = np.array(rule(sizes))
        with np.errstate(divide="ignore"):
            expected = np.log(weights / weights.sum())
        actual = seat_weights(prior.tables(sum(sizes) + 1), np.array(sizes, np.int64))
        actual -= np.logaddexp.reduce(actual)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@each_prior
def test_probability_of_a_partition_from_tables(prior, rule):
    exact = math.log(sequential_probability([0, 0, 1, 1, 1, 2], rule))
    assert prior.tables(6).log_prob(np.array([2, 3, 1])) == pytest.approx(exact, rel=1e-12)


@each_prior
def test_weights_between_whole_numbers_of_groups(prior, rule):
    tables = prior.tables(9)
    for k in (1, 2):
        assert tables.opening_between(k) == pytest.approx(tables.opening[k], rel=1e-14)
        middle = np.log(np.exp(tables.opening[k : k + 2]).mean())
        assert tables.opening_between(k + 0.5) == pytest.approx(middle, rel=1e-12)


def test_tables_of_a_learned_concentration_stand_at_its_mean():
    assert LEARNED.tables(9).concentration == pytest.approx(2.0 / 1.5)


# --- specifications -----------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [p for p, _ in PRIORS.values()] + [LEARNED, Gamma(2, 3)], ids=str)
def test_description_round_trip(prior):
    import json

    assert prior_from_description(json.loads(json.dumps(prior.describe()))) == prior


def test_numpy_numbers_are_stored_as_plain_ones():
    prior = FiniteDirichlet(np.int64(3), np.float32(0.5))
    assert type(prior.n) is int
    assert type(prior.pseudo_count) is float
    assert type(DirichletProcess(2).concentration) is float


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DirichletProcess(0.0), "DirichletProcess.concentration must be positive"),
        (lambda: DirichletProcess(-1.0), "must be positive"),
        (lambda: DirichletProcess(math.nan), "finite number or a Gamma prior"),
        (lambda: DirichletProcess(math.inf), "finite number"),
        (lambda: DirichletProcess("1"), "finite number"),
        (lambda: DirichletProcess(True), "finite number"),
        (lambda: PitmanYor(1.0, 1.0), "less than 1"),
        (lambda: PitmanYor(1.0, -0.1), "at least 0"),
        (lambda: PitmanYor(-0.5, 0.5), "must exceed -discount = -0.5"),
        (lambda: PitmanYor(0.0, 0.0), "must exceed"),
        (lambda: PitmanYor(math.nan, 0.5), "finite number"),
        (lambda: PitmanYor(Gamma(), 0.5), "only DirichletProcess"),
        (lambda: FiniteDirichlet(0), "at least 1"),
        (lambda: FiniteDirichlet(2.5), "whole number"),
        (lambda: FiniteDirichlet(2, 0.0), "must be positive"),
        (lambda: MixtureOfFiniteMixtures(0.0), "MixtureOfFiniteMixtures.rate must be positive"),
        (lambda: MixtureOfFiniteMixtures(1.0, -1.0), "pseudo_count must be positive"),
        (lambda: MixtureOfFiniteMixtures(1.0, 1e101), "pseudo_count must be 1e.100 at most"),
        (lambda: FiniteDirichlet(3, 1e308), "pseudo_count must be 1e.100 at most"),
        (lambda: MixtureOfFiniteMixtures(1e9), "at most 10,000"),
        (lambda: MixtureOfFiniteMixtures().n_components_probabilities(4, 3), "cannot show 4 groups"),
        (lambda: MixtureOfFiniteMixtures().n_components_probabilities(0, 3), "cannot show 0 groups"),
        (lambda: Gamma(0.0, 1.0), "Gamma.shape must be positive"),
        (lambda: Gamma(1.0, math.nan), "Gamma.rate"),
        (lambda: DirichletProcess().log_prob([0.5, 1.0]), "must be integers"),
        (lambda: DirichletProcess().log_prob([[0, 1]]), "shape"),
        (lambda: DirichletProcess().sequential_log_weights([2, 0]), "positive whole numbers"),
        (lambda: DirichletProcess().sample(-1), "n must be a whole number"),
        (lambda: DirichletProcess().expected_clusters(2.5), "n must be a whole number"),
        (lambda: prior_from_description({"prior": "Mondrian"}), "must be one of"),
        (lambda: prior_from_description([1]), "must be one of"),
        (
            lambda: prior_from_description({"prior": "PitmanYor", "color": 1}),
            "does not describe a PitmanYor",
        ),
        (
            lambda: prior_from_description({"prior": "DirichletProcess", "concentration": "x"}),
            "finite number",
        ),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(DataError, match=message):
        build()


def test_a_state_reads_its_prior_at_the_present_concentration():
    points = np.zeros((5, 1))
    family = Gaussian().resolve(points)
    state = MixtureState(family, family.encode(points), 5, DirichletProcess(Gamma(1.0, 1.0)))
    for concentration in (0.5, 8.0):
        state.concentration = concentration
        expected = DirichletProcess(concentration).tables(5)
        assert np.array_equal(state.prior.opening, expected.opening)
        assert np.array_equal(state.prior.joining, expected.joining)
    fixed = MixtureState(family, family.encode(points), 5, FiniteDirichlet(3, 2.0))
    assert np.array_equal(fixed.prior.opening, FiniteDirichlet(3, 2.0).tables(5).opening)
