"""Grid co-clustering against enumeration: each cell family, each prior, and twins that must fail."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from permix.cocluster.grid.moves import OnColumns, OnRows, grid_moves
from permix.cocluster.grid.state import GridState
from permix.moves import Concentration, Cycle, Gibbs, SplitMerge
from permix.moves.gibbs_jit import conditional
from permix.partitions import DirichletProcess, Gamma, canonical_labels
from tests.cocluster.grid.cases import CASES, PRIORS, RULES, encoded, grid_of, set_labels
from tests.every_run import first_in_every_run
from tests.oracles.cocluster import exact_grid_posterior, log_matrix
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.partitions import sequential_probability

FAMILIES = pytest.mark.parametrize("name", CASES)
ALL_PRIORS = pytest.mark.parametrize("prior", PRIORS)
FLAWS = pytest.mark.parametrize("flaw", ["missing", "prior", "columns"])


@cache
def posterior(name, prior, flaw=None):
    _, naive, X = CASES[name]
    pairs, pi = exact_grid_posterior(naive, X, *RULES[prior], flaw)
    assert len(pairs) == 25
    return pairs, pi


# --- one line after another: matrices of transition probabilities, without chance ----------------


def transition_matrices(name, prior):
    """One exact matrix over pairs of partitions for each line's update, from the compiled conditional."""
    pairs, pi = posterior(name, prior)
    index = {pair: place for place, pair in enumerate(pairs)}
    state = grid_of(name, prior)
    matrices = np.zeros((6, len(pairs), len(pairs)))
    for place, pair in enumerate(pairs):
        if pi[place] == 0.0:
            matrices[:, place, place] = 1.0
            continue
        set_labels(state, np.array(pair[0]), np.array(pair[1]))
        for axis, side in enumerate(("rows", "columns")):
            mixture = state.side(side)
            for i in range(3):
                scores = np.empty(mixture.capacity + 1)
                n_options = conditional(
                    mixture.prior.joining,
                    mixture.prior.opening,
                    mixture.stats,
                    mixture.data,
                    mixture.empty_scores,
                    mixture.labels,
                    mixture.sizes,
                    mixture.n_clusters,
                    i,
                    scores,
                )
                weights = np.exp(scores[:n_options] - scores[:n_options].max())
                for k, probability in enumerate(weights / weights.sum()):
                    moved = mixture.labels.copy()
                    moved[i] = k
                    new = list(pair)
                    new[axis] = tuple(canonical_labels(moved).tolist())
                    matrices[3 * axis + i, place, index[tuple(new)]] += probability
    return matrices


@cache
def matrices_of(name, prior):
    return transition_matrices(name, prior)


@ALL_PRIORS
@FAMILIES
def test_every_update_leaves_the_posterior_invariant(name, prior):
    _, pi = posterior(name, prior)
    for matrix in matrices_of(name, prior):
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(pi @ matrix, pi, atol=1e-10)


@FLAWS
@FAMILIES
def test_invariance_rejects_broken_twins(name, flaw):
    _, broken = posterior(name, "dp", flaw)
    assert max(np.abs(broken @ matrix - broken).max() for matrix in matrices_of(name, "dp")) > 1e-4


# --- chains ---------------------------------------------------------------------------------------

N_STEPS = 6000
MOVES = {
    "recipe": grid_moves(3, 3),
    "gibbs": Cycle([OnRows([Gibbs()]), OnColumns([Gibbs()])]),
    "split-merge": Cycle([OnRows([SplitMerge(n_proposals=3)]), OnColumns([SplitMerge(n_proposals=3)])]),
    "restricted-gibbs": Cycle(
        [OnRows([SplitMerge("restricted-gibbs", 2, 3)]), OnColumns([SplitMerge("restricted-gibbs", 2, 3)])]
    ),
}


def frequencies_of(move, state, pairs, n_steps, seed):
    """Frequencies of pairs of partitions over a chain, and the effective number of draws by batch means."""
    index = {pair: place for place, pair in enumerate(pairs)}
    seen = {}
    rng = np.random.default_rng(seed)
    visits = np.empty(n_steps, dtype=np.int64)
    for step in range(-20, n_steps):
        move.step(rng, state)
        if step >= 0:
            raw = state.rows.labels.tobytes() + state.columns.labels.tobytes()
            if raw not in seen:
                record = state.record()
                seen[raw] = index[tuple(tuple(record[f"{s}_labels"].tolist()) for s in ("row", "column"))]
            visits[step] = seen[raw]
    frequencies = np.bincount(visits, minlength=len(pairs)) / n_steps
    batches = visits.reshape(100, -1)
    common = np.flatnonzero(frequencies > 0.02)
    p = frequencies[common]
    variance = np.stack([(batches == k).mean(axis=1) for k in common]).var(axis=1)
    return frequencies, min(float(np.median(p * (1 - p) / variance)) * 100, float(n_steps))


def steps_of(prior):
    """The chains that the twins below are compared with are the long ones."""
    return N_STEPS if prior == "dp" else N_STEPS // 2


@cache
def chain(name, prior, moves):
    n_steps = steps_of(prior)
    return frequencies_of(MOVES[moves], grid_of(name, prior), posterior(name, prior)[0], n_steps, seed=5)


# The recipe for cells of levels and of numbers, whose chains the twins below need as well; the others after
# Gibbs alone, which compiles least.
RECIPE = ("categorical", "gaussian")
EVERY = [(name, "dp", "recipe") for name in RECIPE]
EVERY += [(name, "finite", "gibbs") for name in CASES if name not in RECIPE]
EVERY += [("categorical", "mfm", "recipe"), ("gaussian", "mfm", "split-merge")]
OTHERS = [case for case in product(CASES, PRIORS, MOVES) if case not in EVERY]


@pytest.mark.parametrize(("name", "prior", "moves"), first_in_every_run(EVERY + OTHERS, len(EVERY)))
def test_chain_visits_partitions_as_often_as_the_posterior_says(name, prior, moves):
    _, pi = posterior(name, prior)
    frequencies, n_effective = chain(name, prior, moves)
    assert n_effective > steps_of(prior) / 20
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)


@FLAWS
@pytest.mark.parametrize("name", first_in_every_run(dict.fromkeys([*RECIPE, *CASES]), 2))
def test_frequencies_reject_broken_twins(name, flaw):
    _, broken = posterior(name, "dp", flaw)
    frequencies, n_effective = chain(name, "dp", "recipe")
    assert total_variation(frequencies, broken) > total_variation_bound(broken, n_effective)


@pytest.mark.parametrize("name", ["categorical", "gaussian"])
def test_priors_are_told_apart(name):
    """The twin of mixtures of finite mixtures: Dirichlet processes, whose posterior the chain must reject."""
    _, other = posterior(name, "dp")
    moves = next(moves for case, prior, moves in EVERY if (case, prior) == (name, "mfm"))
    frequencies, n_effective = chain(name, "mfm", moves)
    assert total_variation(frequencies, other) > total_variation_bound(other, n_effective)


def test_chain_of_rows_alone_keeps_columns():
    """Given the columns, rows follow their conditional distribution."""
    name = "categorical"
    state = grid_of(name, "dp")
    columns = (0, 1, 0)
    set_labels(state, np.zeros(3, dtype=np.int64), np.array(columns))
    pairs, pi = posterior(name, "dp")
    kept = np.array([pair[1] == columns for pair in pairs])
    given = np.where(kept, pi, 0.0) / pi[kept].sum()
    frequencies, n_effective = frequencies_of(OnRows([Gibbs()]), state, pairs, N_STEPS, seed=2)
    assert total_variation(frequencies, given) < total_variation_bound(given, n_effective)


def test_learned_concentrations_mix_over_their_priors():
    """With α ~ Gamma for rows, partitions are distributed as a mixture of those at fixed α, by quadrature."""
    _, naive, X = CASES["categorical"]
    gamma = Gamma(2.0, 1.5)
    grid = np.linspace(0.005, 14.0, 200)
    density = grid ** (gamma.shape - 1) * np.exp(-gamma.rate * grid)
    density /= density.sum()
    pairs, _ = posterior("categorical", "dp")

    def mean_prior(rows):
        values = [np.exp(DirichletProcess(alpha).log_prob(np.array(rows))) for alpha in grid]
        return float(np.dot(density, values))

    prior_of_rows = {rows: mean_prior(rows) for rows in {pair[0] for pair in pairs}}
    pi = np.array(
        [
            prior_of_rows[rows]
            * sequential_probability(columns, RULES["dp"][1])
            * np.exp(log_matrix(naive, X, rows, columns))
            for rows, columns in pairs
        ]
    )
    pi /= pi.sum()
    matrix = encoded(*[CASES["categorical"][i] for i in (0, 2)])
    state = GridState(matrix, DirichletProcess(gamma), PRIORS["dp"][1])
    frequencies, n_effective = frequencies_of(grid_moves(3, 3), state, pairs, N_STEPS // 2, seed=3)
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)
    record = state.record()
    assert record["row_concentration"] == state.rows.concentration
    assert "column_concentration" not in record
    # Never updated, at a concentration far from its prior: the wrong distribution.
    state.rows.concentration = 12.0
    frequencies, n_effective = frequencies_of(MOVES["gibbs"], state, pairs, N_STEPS // 4, seed=4)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


def test_recipe_learns_concentrations():
    moves = [move for part in grid_moves(5, 4).moves for move in part.moves]
    assert sum(isinstance(move, Concentration) for move in moves) == 2
