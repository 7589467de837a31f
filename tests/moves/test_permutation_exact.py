"""The permutation move against enumeration: every family, prior, method and order; twins that must fail."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from permix.moves import Concentration, Cycle, Gibbs, permutation
from permix.moves.permutation import LearningPermutation, Permutation, scratch_for
from permix.moves.projection import Projection
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma, canonical_labels
from tests.every_run import first_in_every_run, pairs_in_every_run, turns_in_every_run
from tests.families.cases import CASES, MOST_CASES, SLOW_CASES
from tests.moves.mixture_cases import PRIORS as FIXED
from tests.moves.mixture_cases import chain_frequencies, state_of
from tests.moves.test_permutation_kernels import assert_up_to_date
from tests.moves.test_permutation_oracle import plane
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.permutation_augmented import Augmented, projection_orders
from tests.oracles.twins import GreedySpec

PRIORS = {**FIXED, "learned": DirichletProcess(Gamma(2.0, 1.5))}
METHODS = ("exact", "approximate", "beam")
ORDERS = ("uniform", "markov")
# Far from the best slope, and a beam so narrow that much is left out: the correction has work to do.
SETTINGS = {"n_clusters": 0.3, "width": 2, "tolerance": 0.01}


@cache
def augmented(name, prior, order="uniform", n=4):
    family, X = CASES[name]
    return Augmented(family, X[:n], PRIORS[prior], order)


# --- one step from every partition --------------------------------------------------------------

N_STEPS = 90


def step_counts(move, state, model, seed, n_steps=N_STEPS):
    """Where steps lead from every partition; rows of those that the prior does not allow stay empty."""
    rng = np.random.default_rng(seed)
    index = {labels: place for place, labels in enumerate(model.partitions)}
    counts = np.zeros((len(index), len(index)), np.int64)
    for row in np.flatnonzero(model.posterior > 0.0):
        labels = np.array(model.partitions[row])
        for _ in range(n_steps):
            state.set_labels(labels)
            move.step(rng, state)
            counts[row, index[tuple(canonical_labels(state.labels).tolist())]] += 1
    return counts


def chi_square_probability(counts, matrix):
    """P of a chi-square as large as that of the counts; rare cells of a row count as one."""
    assert np.all(counts[matrix == 0.0] == 0)
    statistic, freedom = 0.0, 0
    for observed, row in zip(counts, matrix, strict=True):
        if not observed.any():
            continue
        expected = row * observed.sum()
        common = expected >= 5.0
        observed = np.append(observed[common], observed[~common].sum())
        expected = np.append(expected[common], expected[~common].sum())
        if expected[-1] < 1.0:  # not even together: merge them with the rarest of the common ones
            rarest = int(np.argmin(expected[:-1]))
            observed[rarest] += observed[-1]
            expected[rarest] += expected[-1]
            observed, expected = observed[:-1], expected[:-1]
        statistic += float(((observed - expected) ** 2 / expected).sum())
        freedom += len(expected) - 1
    return float(chi2.sf(statistic, freedom))


def oracle_matrix(model, method, slope):
    if method == "exact":
        return model.transition_matrix(model.exact_step)
    beam = (SETTINGS["width"], SETTINGS["tolerance"]) if method == "beam" else (None, 0.0)
    return model.transition_matrix(lambda order, labels: model.metropolis_step(order, labels, slope, *beam))


def slope_of(move, state):
    move._expected = move.n_clusters
    return move._slope(state, move._log_count(state))


@pytest.mark.parametrize(
    ("name", "prior", "method", "order"), pairs_in_every_run(CASES, PRIORS, METHODS, ORDERS, slow=SLOW_CASES)
)
def test_steps_follow_the_exact_transition_matrix(name, prior, method, order):
    model = augmented(name, prior, order)
    state = state_of(name, PRIORS[prior], 4)
    move = Permutation(method, order, **SETTINGS)
    matrix = oracle_matrix(model, method, slope_of(move, state))
    np.testing.assert_allclose(model.posterior @ matrix, model.posterior, atol=1e-10)
    counts = step_counts(move, state, model, seed=1)
    assert chi_square_probability(counts, matrix) > 1e-6
    assert_up_to_date(state)


class Uncorrected(Permutation):
    """Takes every proposal: the ratio is that of the approximation to itself."""

    def _log_count(self, state):
        slope = slope_of(Permutation(self.method, self.order, n_clusters=self.n_clusters), state)
        return lambda k: slope * k

    def _slope(self, state, log_count):
        return log_count(1)


@pytest.mark.parametrize("name", MOST_CASES)
def test_steps_reject_moves_with_a_mistake(name, monkeypatch):
    model = augmented(name, "dp")
    state = state_of(name, PRIORS["dp"], 4)
    right = Permutation("beam", **SETTINGS)
    slope = slope_of(right, state)
    matrix = oracle_matrix(model, "beam", slope)
    beam = (slope, SETTINGS["width"], SETTINGS["tolerance"])

    def twin_is_rejected(move, wrong):
        """The twin makes the mistake it was made for, which is one, and the test above sees it."""
        counts = step_counts(move, state, model, seed=2, n_steps=200)
        assert chi_square_probability(counts, wrong) > 1e-6
        assert np.abs(model.posterior @ wrong - model.posterior).max() > 1e-3
        return np.any(counts[matrix == 0.0]) or chi_square_probability(counts, matrix) < 1e-6

    def uncorrected(order, labels):
        proposal = model.proposal_distribution(order, *beam)
        return proposal if labels in proposal else {labels: 1.0}

    assert twin_is_rejected(Uncorrected("beam", **SETTINGS), model.transition_matrix(uncorrected))
    monkeypatch.setattr(permutation.program, "in_beam", lambda *arguments: True)
    # From outside the beam the ratio still weighs the numbers of clusters, as if both were inside.
    escaping = model.transition_matrix(lambda order, labels: escape(model, order, labels, *beam))
    assert twin_is_rejected(right, escaping)


def escape(model, order, labels, slope, width, tolerance):
    distribution = dict.fromkeys([*model.proposal_distribution(order, slope, width, tolerance), labels], 0.0)
    k = max(labels) + 1
    for new, probability in model.proposal_distribution(order, slope, width, tolerance).items():
        k_new = max(new) + 1
        accept = min(1.0, np.exp(model.head(k_new) - model.head(k) - slope * (k_new - k)))
        distribution[new] += probability * accept
        distribution[labels] += probability * (1.0 - accept)
    return distribution


def test_steps_reject_a_slope_that_keeps_adapting():
    """The version for burn-in, used as a sampler, is the chain that the oracle knows to be wrong."""
    model = augmented("gaussian-unequal", "finite")
    state = state_of("gaussian-unequal", PRIORS["finite"], 4)
    move = Permutation("approximate")
    learning = move.during_burn_in()
    assert isinstance(learning, LearningPermutation)
    assert not learning.exact
    slopes = {k: slope_of(Permutation("approximate", n_clusters=float(k)), state) for k in range(1, 5)}
    adapting = model.transition_matrix(
        lambda order, labels: model.metropolis_step(order, labels, slopes[max(labels) + 1])
    )
    counts = step_counts(learning, state, model, seed=3)
    assert chi_square_probability(counts, adapting) > 1e-6
    assert np.abs(model.posterior @ adapting - model.posterior).max() > 0.01


def test_projection_draws_from_its_target_and_is_no_sampler():
    model = plane("dp")
    state = MixtureState(model.family, model.family.encode(model.X), 4, PRIORS["dp"])
    hill_climber = model.transition_matrix(
        model.unweighted_step, lambda labels: projection_orders(model.X, labels)
    )
    counts = step_counts(Projection(max_turns=0), state, model, seed=4, n_steps=500)
    assert chi_square_probability(counts, hill_climber) > 1e-6
    assert chi_square_probability(counts, model.transition_matrix(model.unweighted_step)) < 1e-6
    assert not Projection().exact
    assert np.abs(model.posterior @ hill_climber - model.posterior).max() > 0.01


# --- chains -------------------------------------------------------------------------------------

N_CHAIN = 10_000


def distance_and_bound(move, state, model, n_steps=N_CHAIN, seed=1):
    frequencies, n_effective = chain_frequencies(move, state, model.partitions, n_steps, seed)
    assert n_effective > n_steps / 20
    bound = total_variation_bound(model.posterior, n_effective)
    return total_variation(frequencies, model.posterior), bound


def assert_chain_is_right(name, prior, move, n_steps=N_CHAIN, seed=1):
    model = augmented(name, prior, "uniform", 5)
    assert len(model.partitions) == 52
    state = state_of(name, PRIORS[prior], 5)
    distance, bound = distance_and_bound(move, state, model, n_steps, seed)
    assert distance < bound
    assert_up_to_date(state)


# Methods and orders take turns. The slow test below has all combinations.
TURNS = [
    pytest.param(
        *(name, prior, METHODS[(i + j) % 3], ORDERS[(i + j + j // 2) % 2]),
        marks=[pytest.mark.slow] if name in SLOW_CASES else [],
    )
    for i, name in enumerate(CASES)
    for j, prior in enumerate(FIXED)
]


# Half of all families with all priors, so that each of them, each method and each order are there.
EVERY_OTHER = [
    turn if (place + place // len(FIXED)) % 2 == 0 else pytest.param(*turn.values, marks=pytest.mark.slow)
    for place, turn in enumerate(TURNS)
]


@pytest.mark.parametrize(("name", "prior", "method", "order"), EVERY_OTHER)
def test_chain_visits_partitions_as_often_as_the_posterior_says(name, prior, method, order):
    assert_chain_is_right(name, prior, Permutation(method, order, width=2))


@pytest.mark.parametrize(("name", "prior", "method", "order"), TURNS[::4] + TURNS[11:12])
def test_interleaved_with_gibbs(name, prior, method, order):
    move = Cycle([Permutation(method, order, width=2), Gibbs()])
    assert_chain_is_right(name, prior, move, N_CHAIN // 2, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True], ids=["alone", "with-gibbs"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("prior", FIXED)
@pytest.mark.parametrize("name", MOST_CASES)
def test_every_combination(name, prior, method, order, together):
    move = Permutation(method, order, width=2)
    assert_chain_is_right(name, prior, Cycle([move, Gibbs()]) if together else move, 40_000, seed=3)


class Unweighted(Permutation):
    """Forgets p(π | C)."""

    def step(self, rng, state):
        if self._scratch is None:
            self._scratch = scratch_for(None, state, self.method, self.width, "given")
        return super().step(rng, state)

    def _log_count(self, state):
        return state.prior.log_new_clusters


@pytest.mark.parametrize(
    ("twin", "n_steps"),
    [
        pytest.param(Unweighted("exact"), 3000, id="unweighted"),
        pytest.param(Uncorrected("approximate", n_clusters=0.3), 3000, id="uncorrected"),
        pytest.param(LearningPermutation(Permutation("approximate")), N_CHAIN, id="adapting"),
        pytest.param(Projection(), 5000, id="projection"),
    ],
)
@pytest.mark.parametrize("name", first_in_every_run(["multinomial", "gaussian-unequal"]))
def test_chains_reject_moves_with_a_mistake(name, twin, n_steps):
    model = augmented(name, "finite", "uniform", 5)
    distance, bound = distance_and_bound(twin, state_of(name, PRIORS["finite"], 5), model, n_steps)
    assert distance > bound


def test_chains_reject_a_broken_prior():
    model = augmented("gaussian-isotropic", "dp", "uniform", 5)
    state = state_of("gaussian-isotropic", GreedySpec(PRIORS["dp"]), 5)
    distance, bound = distance_and_bound(Permutation(n_clusters=2.0), state, model, n_steps=20_000)
    assert distance > bound


# --- a concentration that is learned ------------------------------------------------------------


@pytest.mark.parametrize(("method", "integrate"), turns_in_every_run(METHODS, [True, False]))
def test_learned_concentration(method, integrate):
    """With Gibbs at the present α in between, which sees whether α fits the clusters it is left with."""
    model = augmented("multinomial", "learned", "uniform", 5)
    state = state_of("multinomial", PRIORS["learned"], 5)
    move = [Permutation(method, width=2, integrate=integrate), Gibbs()]
    cycle = Cycle(move if integrate else [*move, Concentration()])
    distance, bound = distance_and_bound(cycle, state, model, N_CHAIN // 4)
    assert distance < bound


def test_learned_concentration_given_the_number_of_clusters():
    """After a step α follows p(α | K, n): its mean for each K against quadrature."""
    state = state_of("multinomial", PRIORS["learned"], 5)
    state.set_labels(np.zeros(5, np.int64))
    move, rng = Permutation("beam"), np.random.default_rng(7)
    grid = np.linspace(1e-4, 40.0, 100_001)
    rising = np.prod([grid + i for i in range(5)], axis=0)
    values: dict[int, list[float]] = {}
    for _ in range(10_000):
        move.step(rng, state)
        values.setdefault(state.n_clusters, []).append(state.concentration)
    for k in (1, 2, 3):
        density = grid * np.exp(-1.5 * grid) * grid**k / rising
        mean = np.dot(grid, density) / density.sum()
        deviation = np.sqrt(np.dot(grid**2, density) / density.sum() - mean**2)
        assert abs(np.mean(values[k]) - mean) < 5 * deviation / np.sqrt(len(values[k]))


class Forgetful(Permutation):
    """Sums over α but leaves it as it was."""

    def step(self, rng, state):
        before = state.concentration
        info = super().step(rng, state)
        state.concentration = before
        return info


def test_learned_concentration_rejects_one_that_is_never_drawn():
    model = augmented("multinomial", "learned", "uniform", 5)
    state = state_of("multinomial", PRIORS["learned"], 5)
    state.concentration = 8.0
    cycle = Cycle([Forgetful("exact"), Gibbs()])
    distance, bound = distance_and_bound(cycle, state, model, N_CHAIN // 4)
    assert distance > bound


# --- burn-in ------------------------------------------------------------------------------------


def test_burn_in_learns_the_number_of_clusters_and_then_leaves_it():
    state = state_of("gaussian-isotropic", PRIORS["dp"], 12)
    state.set_labels(np.arange(12))
    move, rng = Permutation("beam"), np.random.default_rng(1)
    learning, seen = move.during_burn_in(), []
    for _ in range(400):
        learning.step(rng, state)
        seen.append(state.n_clusters)
    learned = move.checkpoint()["expected"]
    assert abs(learned - np.mean(seen[200:])) < 0.5
    for _ in range(50):
        move.step(rng, state)
    assert move.checkpoint()["expected"] == learned
    again = Permutation("beam")
    again.restore(move.checkpoint())
    assert again.checkpoint()["expected"] == learned
    for told in (Permutation("exact"), Permutation("beam", n_clusters=3.0)):
        assert told.during_burn_in() is told


# --- one move, many states ----------------------------------------------------------------------


@pytest.mark.parametrize("move", [Permutation(method, n_clusters=2.0) for method in METHODS] + [Projection()])
@pytest.mark.parametrize("name", MOST_CASES)
def test_a_used_move_repeats_a_fresh_one(name, move):
    """Nothing of earlier steps, or of another state, is left in the arrays a move works in."""

    def walk(step_of):
        rng, state = np.random.default_rng(5), state_of(name, PRIORS["dp"], 12)
        state.set_labels(np.arange(12) % 4)  # few enough in each for a beam
        visits = []
        for _ in range(30):
            step_of().step(rng, state)
            visits.append(state.labels.tolist())
        assert_up_to_date(state)
        return visits

    other = state_of(name, PRIORS["dp"], 5)
    other.set_labels(np.arange(5))
    for _ in range(3):
        move.step(np.random.default_rng(1), other)
    fresh = walk(lambda: dataclasses.replace(move))
    assert walk(lambda: move) == fresh
    assert len({tuple(labels) for labels in fresh}) > 5


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2])
def test_very_few_data(n, method, order):
    model = augmented("gaussian-isotropic", "dp", order, n)
    state = state_of("gaussian-isotropic", PRIORS["dp"], n)
    move = Permutation(method, order, **SETTINGS)
    matrix = oracle_matrix(model, method, slope_of(move, state))
    counts = step_counts(move, state, model, seed=6)
    assert n == 1 or chi_square_probability(counts, matrix) > 1e-6


def test_no_more_clusters_than_a_finite_prior_has_components():
    """Six groups far apart, three components."""
    rng = np.random.default_rng(0)
    X = np.repeat(100.0 * rng.normal(size=(6, 2)), 5, axis=0) + rng.normal(size=(30, 2))
    family = plane("dp").family
    state = MixtureState(family, family.encode(X), 30, PRIORS["finite"])
    state.set_labels(np.zeros(30, np.int64))
    move = Projection()
    for _ in range(40):
        move.step(rng, state)
        assert state.n_clusters <= 3
    assert state.n_clusters == 3
