"""Split-merge moves against enumeration: every family, every prior, and twins that must fail."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from permix.errors import DataError
from permix.families import Gaussian
from permix.families.contract_jit import score_new_data
from permix.moves import Concentration, Cycle, Gibbs
from permix.moves.split_merge import _WORKSPACES, SplitMerge
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma
from tests.every_run import first_in_every_run, pairs_in_every_run, turns_in_every_run
from tests.families.cases import CASES
from tests.moves.mixture_cases import PRIORS, chain_frequencies, posterior, state_of, visits_of
from tests.oracles.mixtures import exact_posterior, naive_marginal, total_variation, total_variation_bound
from tests.oracles.twins import GreedySpec
from tests.reference.informed_split_merge import informed_matrix
from tests.reference.split_merge import split_merge_matrix

VARIANTS = ("sequential", "restricted-gibbs", "informed")
# Both are compiled for two families in every run, with marginals that are quick and that are not; and for
# all in the slow one. That of the twins is the one in which a wrong launch shows most.
OFTEN = ("gaussian-niw", "multinomial")
SLOW_CASES = set(CASES) - set(OFTEN)


def move_of(variant, n_proposals=1, n_scans=1):
    return SplitMerge(variant, None if variant == "sequential" else n_scans, n_proposals)


@cache
def matrix_of(name, prior, variant, flaw=None, n_scans=1):
    """Over the partitions of four data."""
    family, X = CASES[name]
    target = (
        posterior(name, prior, 4)[0],
        lambda members: naive_marginal(family, X[sorted(members)]),
        PRIORS[prior].log_prob,
    )
    if variant == "informed":
        return informed_matrix(*target, PRIORS[prior].tables(4).joining.tolist(), n_scans, flaw)
    return split_merge_matrix(*target, n_scans if variant == "restricted-gibbs" else 0, flaw)


# --- the reference leaves the posterior invariant, and its twins do not --------------------------


HOW = (("sequential", 0), ("restricted-gibbs", 1), ("restricted-gibbs", 3), ("informed", 1), ("informed", 2))


@pytest.mark.parametrize(("name", "prior", "how"), pairs_in_every_run(CASES, PRIORS, HOW, slow=SLOW_CASES))
def test_reference_is_reversible(name, prior, how):
    variant, n_scans = how
    _, pi = posterior(name, prior, 4)
    matrix = matrix_of(name, prior, variant, n_scans=n_scans)
    np.testing.assert_allclose(matrix[pi > 0].sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(pi @ matrix, pi, atol=1e-10)
    flow = pi[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-10)


FLAWS = [
    ("sequential", "reverse"),
    ("sequential", "prior"),
    ("sequential", "pairs"),
    ("restricted-gibbs", "reverse"),
    ("restricted-gibbs", "prior"),
    ("restricted-gibbs", "launch"),
    ("informed", "reverse"),
    ("informed", "prior"),
    ("informed", "pairs"),
    ("informed", "launch"),
]


@pytest.mark.parametrize(("prior", "twin"), turns_in_every_run(PRIORS, FLAWS))
def test_invariance_rejects_broken_twins(prior, twin):
    variant, flaw = twin
    _, pi = posterior("gaussian-niw", prior, 4)
    matrix = matrix_of("gaussian-niw", prior, variant, flaw)
    assert np.abs(pi @ matrix - pi).max() > 1e-4


# --- compiled code makes the transitions of the reference ----------------------------------------


def chance_of(visits, matrix):
    """Chance of transitions as far from a matrix as those of this chain in any of its cells (Bonferroni).

    Where a chain goes from one state, visit after visit, are independent draws: counts are binomial.
    """
    counts = np.zeros(matrix.shape, dtype=np.int64)
    np.add.at(counts, (visits[:-1], visits[1:]), 1)
    n_exits = counts.sum(axis=1, keepdims=True)
    distribution = binom(n_exits, np.clip(matrix, 0.0, 1.0))
    tails = np.minimum(distribution.cdf(counts), distribution.sf(counts - 1))
    return 2.0 * tails[n_exits[:, 0] > 0].min() * matrix.size


@cache
def transitions(name, prior, variant, n_steps):
    partitions, _ = posterior(name, prior, 4)
    return visits_of(move_of(variant), state_of(name, PRIORS[prior], 4), partitions, n_steps, seed=1)


def n_steps(name, variant):
    """Enough for every twin to be found out, most of them many times over: a wrong launch differs least."""
    return 30_000 if name == "gaussian-niw" and variant != "sequential" else 5_000


COMPARED = [*((name, "dp") for name in CASES), *(("multinomial", prior) for prior in PRIORS if prior != "dp")]


@pytest.mark.parametrize(
    ("name", "prior", "variant"),
    [
        pytest.param(*case, variant, marks=pytest.mark.slow if case[0] in SLOW_CASES else ())
        for case in COMPARED
        for variant in VARIANTS
    ],
)
def test_transitions_are_those_of_the_reference(name, prior, variant):
    visits = transitions(name, prior, variant, n_steps(name, variant))
    assert chance_of(visits, matrix_of(name, prior, variant)) > 1e-6


@pytest.mark.parametrize(("variant", "flaw"), FLAWS)
def test_transitions_reject_broken_twins(variant, flaw):
    visits = transitions("gaussian-niw", "dp", variant, n_steps("gaussian-niw", variant))
    assert chance_of(visits, matrix_of("gaussian-niw", "dp", variant, flaw)) < 1e-6


# --- chains over the 52 partitions of five data --------------------------------------------------


N_STEPS = 4000
SETS = {
    "sequential": move_of("sequential", 5),
    "restricted-gibbs": move_of("restricted-gibbs", 5, n_scans=2),
    "informed": move_of("informed", 5, n_scans=2),
    "all": Cycle([move_of("sequential", 2), Gibbs(), move_of("restricted-gibbs", 2, n_scans=3)]),
    "learned number": Cycle([Gibbs(), move_of("sequential", None)]),
}


@pytest.mark.parametrize(("name", "prior", "moves"), pairs_in_every_run(CASES, PRIORS, SETS, slow=SLOW_CASES))
def test_chain_visits_partitions_as_often_as_the_posterior_says(name, prior, moves):
    partitions, pi = posterior(name, prior, 5)
    assert len(partitions) == 52
    state = state_of(name, PRIORS[prior], 5)
    if moves == "learned number":
        SETS[moves].moves[1].rate = 0.6
    frequencies, n_effective = chain_frequencies(SETS[moves], state, partitions, N_STEPS, seed=2)
    assert n_effective > N_STEPS / 20
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)


@pytest.mark.parametrize(("prior", "variant"), turns_in_every_run(PRIORS, VARIANTS))
def test_frequencies_reject_a_broken_prior(prior, variant):
    partitions, pi = posterior("multinomial", prior, 5)
    state = state_of("multinomial", GreedySpec(PRIORS[prior]), 5)
    # Some twins need more steps than what is right: their distribution may differ by less than the bound.
    n_steps = N_STEPS if prior in ("pitman-yor", "finite") else 4 * N_STEPS
    frequencies, n_effective = chain_frequencies(SETS[variant], state, partitions, n_steps, seed=2)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_data(variant):
    partitions, pi = posterior("multinomial", "dp", 2)
    state = state_of("multinomial", PRIORS["dp"], 2)
    frequencies, n_effective = chain_frequencies(move_of(variant), state, partitions, N_STEPS, seed=3)
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)


def test_learned_concentration_mixes_over_its_prior():
    family, X = CASES["gaussian-isotropic"]
    gamma = Gamma(2.0, 1.5)
    grid = np.linspace(0.005, 14.0, 200)
    density = grid ** (gamma.shape - 1) * np.exp(-gamma.rate * grid)
    density /= density.sum()

    def log_prior(labels):
        values = [DirichletProcess(alpha).log_prob(np.array(labels)) for alpha in grid]
        return float(np.log(np.dot(density, np.exp(values))))

    partitions, pi = exact_posterior(family, X[:4], log_prior)

    def distance(move, concentration):
        state = state_of("gaussian-isotropic", DirichletProcess(gamma), 4)
        state.concentration = concentration
        frequencies, n_effective = chain_frequencies(move, state, partitions, N_STEPS, seed=4)
        return total_variation(frequencies, pi) / total_variation_bound(pi, n_effective)

    move = SETS["sequential"]
    assert distance(Cycle([move, Concentration()]), gamma.mean) < 1.0
    assert distance(move, 4.0) > 1.0  # never updated: the wrong distribution


# --- what a step leaves behind -------------------------------------------------------------------


def scores_of(state, stats, n_clusters):
    scores = np.empty((state.n, n_clusters))
    score_new_data(stats, state.data, state.n, n_clusters, scores)
    return scores


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", first_in_every_run([*OFTEN, *sorted(SLOW_CASES)], 2))
def test_statistics_stay_right(name, variant):
    state = state_of(name, PRIORS["dp"], 12)
    rng = np.random.default_rng(5)
    state.sweep(rng)
    accepted = work = 0
    for _ in range(150):
        info = move_of(variant, 2).step(rng, state)
        accepted += info.accepted
        assert info.proposed == 2
        work += info.work
        k = state.n_clusters
        np.testing.assert_array_equal(np.unique(state.labels), np.arange(k))
        before = scores_of(state, state.stats, k), state.sizes.copy(), state.log_joint()
        state.refresh()
        after = scores_of(state, state.stats, k), state.sizes, state.log_joint()
        for kept, recomputed in zip(before, after, strict=True):
            np.testing.assert_allclose(kept, recomputed, rtol=0, atol=1e-8)
    assert accepted > 15
    assert work > 150
    # Clusters that proposals work on are empty again, to the last bit.
    workspace = _WORKSPACES[state]
    np.testing.assert_array_equal(scores_of(state, workspace.sides, 2), np.tile(state.empty_scores, (2, 1)).T)
    assert (workspace.union is None) == state.family.quick_marginal
    if workspace.union is not None:
        np.testing.assert_array_equal(scores_of(state, workspace.union, 1)[:, 0], state.empty_scores)


@pytest.mark.parametrize("variant", first_in_every_run(VARIANTS))
def test_room_is_made_for_new_clusters(variant):
    rng = np.random.default_rng(6)
    X = np.repeat(np.arange(40.0), 2)[:, None] * 30.0 + rng.normal(size=(80, 1))
    family = Gaussian(noise_scale=1.0, prior_scale=500.0).resolve(X)
    state = MixtureState(family, family.encode(X), 80, DirichletProcess(1.0))
    state.set_labels(np.zeros(80, dtype=int))
    move = move_of(variant, 400)
    before = state.capacity
    for _ in range(10):
        assert move.step(rng, state).proposed == 400
    assert state.n_clusters > before
    log_likelihood = state.log_likelihood()
    state.refresh()
    assert state.log_likelihood() == pytest.approx(log_likelihood, abs=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_same_result(variant):
    """Also for a copy of the move, and for states that take turns with one move."""

    def start():
        state = state_of("multinomial", PRIORS["pitman-yor"], 12)
        state.sweep(np.random.default_rng(7))
        return state

    def labels_after(move, state, other=None):
        rng = np.random.default_rng(8)
        for _ in range(50):
            move.step(rng, state)
            if other is not None:
                move.step(np.random.default_rng(9), other)
        return state.labels.copy()

    move = move_of(variant, 5)
    expected = labels_after(move, start())
    np.testing.assert_array_equal(labels_after(copy.deepcopy(move), start()), expected)
    np.testing.assert_array_equal(labels_after(move, start(), other=start()), expected)
    other = state_of("multinomial", PRIORS["pitman-yor"], 9)
    other.sweep(np.random.default_rng(7))
    np.testing.assert_array_equal(labels_after(move, start(), other), expected)


# --- edges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", first_in_every_run(VARIANTS))
def test_one_datum_has_no_pair(variant):
    state = state_of("gaussian-isotropic", PRIORS["dp"], 1)
    rng = np.random.default_rng(10)
    state.sweep(rng)
    assert move_of(variant).step(rng, state)[1:3] == (0, 0)


@pytest.mark.parametrize("variant", first_in_every_run(VARIANTS))
def test_no_more_clusters_than_a_finite_prior_has(variant):
    state = state_of("gaussian-isotropic", PRIORS["finite"], 12)
    rng = np.random.default_rng(11)
    state.sweep(rng)
    reached = set()
    for _ in range(300):
        move_of(variant, 3).step(rng, state)
        reached.add(state.n_clusters)
    assert max(reached) == PRIORS["finite"].n


@pytest.mark.parametrize("variant", first_in_every_run(VARIANTS))
@pytest.mark.parametrize(("start", "numbers"), [((0, 1, 0), {2, 3}), ((0, 0, 0), {1})])
def test_impossible_data_stay_where_they_are(variant, start, numbers):
    """Data that no cluster can hold give no number to compare: such proposals are refused."""
    X = np.array([[0.0], [1e200], [1.0]])
    family = Gaussian().resolve(X[:1])  # a fit would refuse the second
    state = MixtureState(family, family.encode(X), 3, DirichletProcess(1.0))
    state.set_labels(np.array(start))
    rng = np.random.default_rng(13)
    n_companions = state.sizes[state.labels[1]]
    seen = set()
    for _ in range(300):
        move_of(variant).step(rng, state)
        assert state.sizes[state.labels[1]] == n_companions
        seen.add(state.n_clusters)
    assert seen == numbers


def test_every_datum_must_be_seated():
    state = state_of("gaussian-isotropic", PRIORS["dp"], 5)
    with pytest.raises(DataError, match="every datum in a group"):
        SplitMerge().step(np.random.default_rng(14), state)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"proposal": "smart"}, "one of sequential, restricted-gibbs, informed"),
        ({"n_proposals": 0}, "n_proposals must be a whole number, at least 1"),
        ({"n_proposals": 2.0}, "n_proposals must be a whole number"),
        ({"proposal": "restricted-gibbs", "n_scans": 0}, "n_scans must be a whole number, at least 1"),
        ({"proposal": "restricted-gibbs", "n_scans": True}, "n_scans must be a whole number"),
        ({"n_scans": 3}, "does nothing with sequential allocation"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(DataError, match=message):
        SplitMerge(**settings)
