"""Collapsed Gibbs against enumeration: every family, every prior, and twins that must fail."""

from __future__ import annotations

import numpy as np
import pytest

from permix.moves import Concentration, Cycle, Gibbs
from permix.moves.gibbs_jit import conditional
from permix.partitions import DirichletProcess, Gamma, canonical_labels
from tests.every_run import chosen_in_every_run, first_in_every_run
from tests.families.cases import CASES
from tests.moves.mixture_cases import PRIORS, chain_frequencies, posterior, state_of
from tests.oracles.mixtures import exact_posterior, total_variation, total_variation_bound
from tests.oracles.twins import CARELESS, TEMPERED, GreedySpec


def transition_matrices(name, prior_spec, n, twin=None):
    """One exact matrix over partitions for each datum's update, from the compiled conditional."""
    partitions = [tuple(labels) for labels in posterior(name, "dp", n)[0]]
    index = {labels: position for position, labels in enumerate(partitions)}
    state = state_of(name, prior_spec, n, twin)
    matrices = np.zeros((n, len(partitions), len(partitions)))
    for row, labels in enumerate(partitions):
        state.set_labels(np.array(labels))
        for i in range(n):
            scores = np.empty(state.capacity + 1)
            n_options = conditional(
                state.prior.joining,
                state.prior.opening,
                state.stats,
                state.data,
                state.empty_scores,
                state.labels,
                state.sizes,
                state.n_clusters,
                i,
                scores,
            )
            weights = np.exp(scores[:n_options] - scores[:n_options].max())
            for k, probability in enumerate(weights / weights.sum()):
                moved = np.array(labels)
                moved[i] = k if k < state.n_clusters else n
                matrices[i, row, index[tuple(canonical_labels(moved).tolist())]] += probability
    return matrices


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", CASES)
def test_posterior_is_invariant(name, prior):
    _, pi = posterior(name, prior, 4)
    sweep = np.eye(len(pi))
    for matrix in transition_matrices(name, PRIORS[prior], 4):
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(pi @ matrix, pi, atol=1e-10)
        # Each single update is reversible as well.
        flow = pi[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, atol=1e-10)
        sweep = sweep @ matrix
    np.testing.assert_allclose(pi @ sweep, pi, atol=1e-10)


# Every twin compiles the sweep anew.
ONE_CASE = first_in_every_run(CASES)


@pytest.mark.parametrize("twin", [TEMPERED, CARELESS])
@pytest.mark.parametrize("name", ONE_CASE)
def test_invariance_rejects_broken_families(name, twin):
    _, pi = posterior(name, "dp", 4)
    worst = max(np.abs(pi @ matrix - pi).max() for matrix in transition_matrices(name, PRIORS["dp"], 4, twin))
    assert worst > 1e-4


@pytest.mark.parametrize("prior", ["dp", "pitman-yor", "mfm"])
def test_invariance_rejects_a_broken_prior(prior):
    _, pi = posterior("gaussian-isotropic", prior, 4)
    matrices = transition_matrices("gaussian-isotropic", GreedySpec(PRIORS[prior]), 4)
    assert max(np.abs(pi @ matrix - pi).max() for matrix in matrices) > 1e-4


N_SWEEPS = 20_000


def assert_chain_is_right(name, prior, n_sweeps):
    partitions, pi = posterior(name, prior, 5)
    assert len(partitions) == 52
    state = state_of(name, PRIORS[prior], 5)
    frequencies, n_effective = chain_frequencies(Gibbs(), state, partitions, n_sweeps, seed=1)
    assert n_effective > n_sweeps / 20
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)


# The conditionals are compared to the last digit above, for all: chains show that sweeps draw from them.
@pytest.mark.parametrize(("name", "prior"), chosen_in_every_run(CASES, PRIORS))
def test_chain_visits_partitions_as_often_as_the_posterior_says(name, prior):
    assert_chain_is_right(name, prior, N_SWEEPS // 4)


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", CASES)
def test_long_chains_visit_partitions_as_often_as_the_posterior_says(name, prior):
    assert_chain_is_right(name, prior, N_SWEEPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_frequencies_reject_a_broken_family(name):
    partitions, pi = posterior(name, "dp", 5)
    state = state_of(name, PRIORS["dp"], 5, twin=TEMPERED)
    frequencies, n_effective = chain_frequencies(Gibbs(), state, partitions, N_SWEEPS, seed=1)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


@pytest.mark.parametrize(
    ("prior", "n_sweeps"),
    first_in_every_run([("pitman-yor", N_SWEEPS // 4), *((prior, N_SWEEPS) for prior in PRIORS)]),
)
def test_frequencies_reject_a_broken_prior(prior, n_sweeps):
    partitions, pi = posterior("gaussian-isotropic", prior, 5)
    state = state_of("gaussian-isotropic", GreedySpec(PRIORS[prior]), 5)
    frequencies, n_effective = chain_frequencies(Gibbs(), state, partitions, n_sweeps, seed=1)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


def test_learned_concentration_mixes_over_its_prior():
    """With α ~ Gamma, the distribution of partitions is the mixture of those at fixed α, by quadrature."""
    family, X = CASES["gaussian-isotropic"]
    gamma = Gamma(2.0, 1.5)
    grid = np.linspace(0.005, 14.0, 200)
    density = grid ** (gamma.shape - 1) * np.exp(-gamma.rate * grid)
    density /= density.sum()

    def log_prior(labels):
        values = [DirichletProcess(alpha).log_prob(np.array(labels)) for alpha in grid]
        return float(np.log(np.dot(density, np.exp(values))))

    partitions, pi = exact_posterior(family, X[:4], log_prior)
    state = state_of("gaussian-isotropic", DirichletProcess(gamma), 4)
    move = Cycle([Gibbs(), Concentration()])
    n_sweeps = N_SWEEPS // 8

    def frequencies_of(step, seed):
        index = {labels: position for position, labels in enumerate(partitions)}
        rng = np.random.default_rng(seed)
        counts = np.zeros(len(partitions))
        for _ in range(n_sweeps):
            step.step(rng, state)
            counts[index[tuple(canonical_labels(state.labels).tolist())]] += 1
        return counts / n_sweeps

    # Successive sweeps of four points are nearly independent; a quarter of them is a safe count.
    bound = total_variation_bound(pi, n_sweeps / 4)
    assert total_variation(frequencies_of(move, 3), pi) < bound
    state.concentration = 4.0
    assert total_variation(frequencies_of(Gibbs(), 4), pi) > bound  # never updated: the wrong distribution
