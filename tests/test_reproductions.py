"""The scripts that reproduce the papers: their own arithmetic, and each of them at a tiny size."""

from __future__ import annotations

import importlib
import itertools
import shlex

import numpy as np
import pytest

import permix
from benchmarks.reproduce import __main__ as index
from benchmarks.reproduce import (
    lu_boutilier_fig3,
    lu_boutilier_fig4,
    lu_boutilier_fig5,
    lu_boutilier_fig8,
    lu_boutilier_table1,
    lu_boutilier_table3,
    meila_chen_college,
    meila_chen_fig6,
    meila_chen_fig7,
    meila_chen_fig9,
    top_lists,
)
from benchmarks.reproduce.likelihoods import (
    exact_log_likelihoods,
    full_log_likelihoods,
    monte_carlo_log_likelihoods,
    particle_log_likelihoods,
    random_mixture,
)
from benchmarks.reproduce.report import run_from_command_line
from benchmarks.reproduce.sushi import remove, reveal
from permix import Mallows, Preferences, Rankings
from permix.datasets import make_generalized_mallows_mixture, make_mallows_mixture
from permix.dp_mallows.draws import ClusterDraws
from tests.every_run import first_in_every_run

TINY = {
    "apa": "--years 1998 --n-voters 300 --n-draws 10 --n-burn-in 10 --n-components 1 --n-init 1",
    "irish_2002": (
        "--areas Meath Dublin\\ West --n-voters 300 --n-draws 10 --n-burn-in 10 --n-components 1 --n-init 1"
    ),
    "liang_fig2": "--n-points 60 --data-sets 10x3 2x4 --first 40 --last 44 --longest 20",
    "liang_fig3_ap": "--n-documents 60 --n-runs 2 --seconds 0.05",
    "liang_fig3_mixing": (
        "--n-images 80 --n-runs 2 --n-burn-in 10 --n-turns 60 --last-lag 20 --turn-milliseconds 0.1"
    ),
    "liang_fig3_mnist": "--n-images 100 --n-features 5 --n-runs 2 --seconds 0.05",
    "liang_fig3_synthetic": "--panels a c g --n-points 400 --n-runs 2 --seconds 0.05",
    "lu_boutilier_fig3": "--n-agents 2 --alphas 0.5 --dispersions 0.5 1.0 --n-items 4 6",
    "lu_boutilier_fig4": "--n-instances 2 --n-agents 4 --n-items 4 --n-components 2 --n-draws 1 20",
    "lu_boutilier_fig5": (
        "--n-instances 2 --alphas 0.5 1.0 --n-items 5 --n-components 1 --n-agents 20 --n-init 1"
    ),
    "lu_boutilier_fig6": "--alphas 1.0 0.5 --n-components 1 2 --n-init 1 --n-train 60",
    "lu_boutilier_fig7": ("--n-components 1 2 --n-init 1 --n-train 30 --n-validation 10 --n-particles 4"),
    "lu_boutilier_fig8": "--n-components 1 2 --n-init 1 --n-train 60 --n-test 20 --n-draws 5",
    "lu_boutilier_table1": "--n-init 1 --n-train 100",
    "lu_boutilier_table2": "--n-init 1 --n-train 30 --n-validation 10",
    "lu_boutilier_table3": "--n-test 50",
    "meila_chen_college": (
        "--n-applicants 300 --n-courses 40 --n-kinds 3 --n-runs 2 --n-sweeps 20 --n-draws 10 "
        "--concentration 1"
    ),
    "meila_chen_fig6": "--data-sets 1 4 --n-runs 2 --n-sweeps 5 --n-lists 200",
    "meila_chen_fig7": "--n-items 10 --a 2 10 --b 4",
    "meila_chen_fig8": ("--n-train 50 100 --n-test 50 --n-replicates 2 --n-draws 20 --n-burn-in 20"),
    "meila_chen_fig9": "--n-train 50 --n-test 50 --n-replicates 2 --widths 0.1 --n-draws 10 --n-burn-in 10",
    "wang_fig2": "--n 30 --n-iterations 20",
    "wang_fig4": "--n-users 30 --n-bases 2 --n-iterations 12",
    "wang_table2_3": (
        "--n-repeats 2 --n-bases 2 --n-iterations 6 --n-mondrian-iterations 6 --n-mixed-iterations 6 "
        "--n-kept 2 --n-synthetic 30 --n-users 30"
    ),
    "xu_fig11_12": "--n-draws 3 --n-burn-in 3 --n-held-out 2",
    "xu_fig14": "--n-genes 12 --n-init 2 --n-folds 2 --n-splits 1",
    "xu_fig3": "--n-items 3 --n-rankings 20 --n-draws 200 --n-candidates 1000 --n-data-sets 2",
    "xu_fig4_to_7": (
        "--figure4-items 10 --figure4-rankings 25 --figure6-items 5 --figure6-rankings 100 --n-repetitions 2"
    ),
    "xu_fig8": "--n-rankings 10 20 --n-repetitions 2 --n-draws 50",
    "xu_fig9": "--n-items 6 --n-rankings 60 --step 2 --n-draws 10 --n-burn-in 5 --n-repetitions 2",
    "xu_table1": "--n-items 3 4 --figure-items 3 5 --n-directions 5",
    "xu_table2": "--n-draws 50",
    "xu_table3_4": "--n-components 1 2 3 --n-init 1 --n-draws 10 --n-burn-in 5 --n-folds 2",
}
# One of each paper is run every time, the others by `make test-slow`.
SYNTHETIC = (
    "liang_fig2",
    "lu_boutilier_fig4",
    "meila_chen_fig7",
    "wang_fig2",
    "xu_table1",
    "liang_fig3_synthetic",
    "lu_boutilier_fig3",
    "lu_boutilier_fig5",
    "meila_chen_college",
    "meila_chen_fig6",
    "meila_chen_fig8",
    "xu_fig3",
    "xu_fig4_to_7",
    "xu_fig8",
    "xu_fig9",
)
# Chains of some ten sweeps do not agree, and say so.
TINY_CHAINS = pytest.mark.filterwarnings("ignore::permix.errors.ConvergenceWarning")


def outcome_of(name, tmp_path, extra=()):
    module = importlib.import_module(f"benchmarks.reproduce.{name}")
    draw = getattr(module, "draw", None)
    arguments = [*shlex.split(TINY[name]), *extra]
    if draw is not None:
        arguments += ["--plot", str(tmp_path / "figure.png")]
    outcome = run_from_command_line(module.__doc__, module.Sizes(), module.QUICK, module.run, draw, arguments)
    if draw is not None and outcome is not None:
        assert (tmp_path / "figure.png").stat().st_size > 1000
    return outcome


def test_every_script_is_tried():
    assert sorted(TINY) == index.known()
    for name in TINY:
        module = importlib.import_module(f"benchmarks.reproduce.{name}")
        assert {"Sizes", "QUICK", "run"} <= set(dir(module)), name


@TINY_CHAINS
@pytest.mark.parametrize("name", first_in_every_run(SYNTHETIC, 5))
def test_synthetic_script(name, tmp_path, capsys):
    outcome = outcome_of(name, tmp_path)
    assert all(len(row) == len(outcome.columns) for row in outcome.rows)
    assert outcome.remarks
    assert outcome.title in capsys.readouterr().out


@TINY_CHAINS
@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("name", sorted(set(TINY) - set(SYNTHETIC)))
def test_script_with_real_data(name, tmp_path, data_folder):
    outcome = outcome_of(name, tmp_path)
    assert all(len(row) == len(outcome.columns) for row in outcome.rows)
    assert outcome.remarks


@pytest.mark.parametrize("name", sorted(set(TINY) - set(SYNTHETIC)))
def test_without_data_the_script_says_so(name, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("PERMIX_DATA", raising=False)
    monkeypatch.setenv("PERMIX_CACHE", str(tmp_path / "cache"))
    assert outcome_of(name, tmp_path) is None
    assert "not found" in capsys.readouterr().out


def test_index_lists_all_and_runs_one(capsys):
    index.main([])
    listed = capsys.readouterr().out
    assert all(name in listed for name in TINY)
    index.main(["lu_boutilier_fig3", *TINY["lu_boutilier_fig3"].split(), "--json"])
    assert '"title": "Figure 3' in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no reproduction 'fig33'"):
        index.main(["fig33"])
    with pytest.raises(SystemExit, match="'fig6' may be lu_boutilier_fig6 or meila_chen_fig6"):
        index.main(["fig6"])


# Figure 3.


def by_permutations(preferences, dispersion):
    """Number, KL(P, Q), KL(Q, P) and entropy by going through all permutations."""
    m = preferences.n_items
    posterior = Mallows(np.arange(m), dispersion).condition(preferences)
    orders = np.array(list(itertools.permutations(range(m))))
    log_p, log_q = posterior.log_prob(orders), posterior.amp_log_prob(orders)
    agree = np.isfinite(log_p)
    p, q = np.exp(log_p[agree]), np.exp(log_q[agree])
    difference = log_p[agree] - log_q[agree]
    return agree.sum(), p @ difference, -q @ difference, -p @ log_p[agree]


@pytest.mark.parametrize("dispersion", [0.3, 1.0])
def test_divergence_equals_that_over_all_permutations(dispersion):
    made = make_mallows_mixture(
        6, 6, 1, dispersion=0.7, observed="pairs", pair_fraction=0.3, centers=[np.arange(6)], random_state=1
    )
    ratios = []
    for row in range(6):
        found = lu_boutilier_fig3.divergence(made.data[row], dispersion)
        count, from_posterior, from_amp, entropy = by_permutations(made.data[row], dispersion)
        assert found.n_rankings == count
        np.testing.assert_allclose(
            [found.from_posterior, found.from_amp, found.entropy, found.amp_total],
            [from_posterior, from_amp, entropy, 1.0],
            atol=1e-12,
        )
        ratios.append(found.ratio)
        # The twin: divergences of another model's posterior must not pass.
        other = lu_boutilier_fig3.divergence(made.data[row], 0.9 * dispersion)
        assert abs(other.entropy - entropy) > 1e-6
    assert max(ratios) > 0.01


def test_divergence_normalizer_equals_the_down_set_sum():
    made = make_mallows_mixture(
        3, 10, 1, dispersion=0.5, observed="pairs", centers=[np.arange(10)], random_state=2
    )
    for row in range(3):
        found = lu_boutilier_fig3.divergence(made.data[row], 0.4)
        exact = Mallows(np.arange(10), 0.4).condition(made.data[row]).log_normalizer(method="exact")
        assert found.log_normalizer == pytest.approx(float(exact), abs=1e-10)


def test_a_full_ranking_has_ratio_zero():
    full = Preferences.from_pairs([(0, 1, 0), (0, 0, 2)], items=range(3))
    found = lu_boutilier_fig3.divergence(full, 0.5)
    assert (found.n_rankings, found.ratio, found.other_ratio) == (1, 0.0, 0.0)


# Log-likelihoods.


def test_likelihoods_agree():
    rng = np.random.default_rng(3)
    components = random_mixture(2, 6, rng, 0.3, 0.8)
    orders = np.stack([rng.permutation(6) for _ in range(8)])
    rankings = Rankings.from_orders(orders, n_items=6)
    np.testing.assert_allclose(
        full_log_likelihoods(rankings, components),
        exact_log_likelihoods(Preferences.from_rankings(rankings), components),
        rtol=1e-12,
    )
    stated = reveal(rankings, 0.4, rng)
    exact = exact_log_likelihoods(stated, components)
    # 20,000 draws: the standard error of each is below 0.02 here; six of them.
    sampled = monte_carlo_log_likelihoods(stated, components, 20_000, rng)
    particles = particle_log_likelihoods(stated, components, 2000, rng)
    np.testing.assert_allclose(sampled, exact, atol=0.12)
    np.testing.assert_allclose(particles, exact, atol=0.12)
    assert np.abs(sampled - full_log_likelihoods(rankings, components)).max() > 0.5


# Revealed and removed pairs, tables.


def test_remove_takes_the_same_number_from_everyone():
    rng = np.random.default_rng(4)
    rankings = Rankings.from_orders(np.stack([rng.permutation(10) for _ in range(40)]), n_items=10)
    for alpha, n_left in ((0.0, 0), (0.25, 12), (0.5, 23), (0.75, 34), (1.0, 45)):
        stated = remove(rankings, alpha, rng)
        assert (np.diff(stated.pair_indptr) == n_left).all()
        ranks = np.argsort(rankings.orders, axis=1)
        agents = np.repeat(np.arange(40), np.diff(stated.pair_indptr))
        assert (ranks[agents, stated.pairs[:, 0]] < ranks[agents, stated.pairs[:, 1]]).all()
    counts = np.diff(reveal(rankings, 0.5, rng).pair_indptr)
    assert counts.min() < counts.max()  # independent pairs: not the same number


def test_open_pairs_and_distances():
    rankings = Rankings.from_orders([[2, 0, 1, 3]], n_items=4)
    stated = Preferences.from_pairs([(0, 2, 0), (0, 0, 3)], items=range(4))
    unknown = lu_boutilier_table3.open_pairs(rankings, stated)[0]
    # Known are 2 ≻ 0, 0 ≻ 3 and so 2 ≻ 3: ranks (0, 1), (1, 3) and (0, 3).
    assert sorted(map(tuple, np.argwhere(unknown).tolist())) == [(0, 2), (1, 2), (2, 3)]
    assert lu_boutilier_table3.by_distance(unknown[None]).tolist() == [2, 1, 0]


def test_table_3_as_printed():
    left = {alpha: 1 - sum(counts) / 45_000 for alpha, counts in lu_boutilier_table3.COUNTS.items()}
    assert [round(left[alpha], 3) for alpha in (0.0, 0.25, 0.5, 0.75)] == [0.0, 0.419, 0.763, 0.925]


def test_losses_by_hand():
    rankings = Rankings.from_orders([[0, 1, 2], [2, 1, 0]], n_items=3)
    before = np.zeros((2, 3, 3))
    before[0] = [[0, 0.9, 0.8], [0.1, 0, 0.6], [0.2, 0.4, 0]]
    before[1] = [[0, 0.3, 0.25], [0.7, 0, 0.5], [0.75, 0.5, 0]]
    unknown = np.triu(np.ones((2, 3, 3), dtype=bool), 1)
    unknown[1, 0, 1] = False  # 2 ≻ 1 is known of the second
    average, people, curve = lu_boutilier_fig8.losses(before, rankings, unknown)
    assert average == pytest.approx(((0.1 + 0.4 + 0.2) / 3 + (0.3 + 0.25) / 2) / 2)
    assert people == 2
    np.testing.assert_allclose(curve, [(0.1 + 0.4 + 0.3) / 3, (0.2 + 0.25) / 2])


def test_table_1_as_printed():
    items = tuple(lu_boutilier_table1.PAPER[0][2].split(", "))
    model = lu_boutilier_table1.printed_model(items)
    assert model.weights.sum() == pytest.approx(1.0)
    assert model.centers[0].tolist() == list(range(10))
    reverse = np.arange(10)[None, ::-1]
    assert lu_boutilier_table1.kendall_distances(model.centers[:1], reverse).tolist() == [[45]]


def test_figure_4_panels_follow_the_sizes():
    outcome = lu_boutilier_fig4.run(
        lu_boutilier_fig4.Sizes(n_instances=2, n_agents=4, n_items=(4,), n_components=(1, 2), n_draws=(50,))
    )
    assert {name: list(panel) for name, panel in outcome.series.items()} == {
        "items": ["4"],
        "groups": ["1", "2"],
        "draws": ["50"],
    }
    assert all(0.8 < value < 1.2 for value in outcome.series["draws"]["50"])


def test_figure_5_learned_is_near_the_truth():
    value = lu_boutilier_fig5.instance(1.0, 6, 1, 300, 1, np.random.default_rng(5))
    assert 0.99 < value < 1.01


# Meilă & Chen.


@pytest.mark.parametrize("lengths", [(1, 4), 4])
def test_log_joint_is_the_distribution_that_made_the_lists(lengths):
    """Probabilities of all lists of each length sum to one under each component, weights included."""
    rng = np.random.default_rng(6)
    centers = np.stack([rng.permutation(5) for _ in range(2)])
    theta, weights = rng.uniform(0.1, 2.0, (2, 4)), np.array([0.3, 0.7])
    for length in range(1, 6):
        orders = np.array(list(itertools.permutations(range(5), length)))
        scores = top_lists.log_joint(Rankings.from_orders(orders, n_items=5), centers, theta, weights)
        np.testing.assert_allclose(np.exp(scores).sum(axis=0), weights, rtol=1e-12)
    # Mean of the stages of drawn lists: the joint of the component that made them has the right θ.
    made = make_generalized_mallows_mixture(
        4000, 5, 2, theta=theta, lengths=lengths, centers=centers, weights=weights, random_state=7
    )
    best = top_lists.mean_log_likelihood(top_lists.log_joint(made.data, centers, theta, weights))
    for other in (theta[:, ::-1], 0.5 * theta, theta[::-1]):
        twin = top_lists.mean_log_likelihood(top_lists.log_joint(made.data, centers, other, weights))
        assert twin < best


def test_theta_by_rank_weighs_by_size():
    clusters = ClusterDraws(
        starts=np.array([0, 2, 3]),
        sizes=np.array([6, 4, 10]),
        centers=np.tile(np.arange(3), (3, 1)),
        theta=np.array([[1.0, 0.5], [2.0, 1.0], [3.0, 0.0]]),
        labels=np.zeros((2, 10), dtype=np.int32),
        concentration=np.ones(2),
        prior=permix.DirichletProcess(),
    )
    np.testing.assert_allclose(top_lists.theta_by_rank(clusters), [(6 + 8 + 30) / 20, (3 + 4) / 20])
    np.testing.assert_allclose(top_lists.theta_by_rank(clusters, 0.0, 0.6), [2.0, 1.0])
    np.testing.assert_allclose(top_lists.theta_by_rank(clusters, 0.6), [36 / 16, 3 / 16])
    assert np.isnan(top_lists.theta_by_rank(clusters, 0.7, 0.8)).all()


def test_averages():
    rankings = Rankings.from_orders([[0, 1], [1, 0]], n_items=2, counts=[3, 1])
    assert top_lists.per_agent(np.array([-1.0, -5.0]), rankings) == -2.0
    assert top_lists.spread([1.0, 3.0], 1) == "2.0 ± 1.4"
    assert top_lists.spread([0.25], 2) == "0.25"
    assert top_lists.in_order(np.array([1, 0, 2]), "abc", 2) == "b ≻ a"
    assert top_lists.vi([0, 0, 1, 1], [0, 0, 0, 0]) == pytest.approx(np.log(2))


def test_figure_7_against_integrals_in_many_digits():
    # 1 - Beta(a, b) / B̃(a, b, n), with mpmath at 30 digits.
    for a, b, n, error in ((10, 4, 10, 0.3193), (8, 8, 20, 1.64e-3), (2, 32, 50, 6.55e-21)):
        assert meila_chen_fig7.relative_error(a, b, n) == pytest.approx(error, rel=5e-3)
    # b = 2: B̃ is the sum over stages, Beta(a, 2) = 1/(a (a+1)); for n = 0, ψ = 1 and B̃ = 1/a.
    assert meila_chen_fig7.relative_error(3, 2, 0) == pytest.approx(1 - 1 / 4)


def test_figure_6_finds_the_first_sweep():
    run = meila_chen_fig6.Trace(np.array([1.0, 0.5, 0.02, 0.3]), 3, 0.1)
    assert run.sweeps_until(0.6) == 1
    assert run.sweeps_until(0.01) == np.inf


def test_figure_9_takes_who_rated_all():
    nan = np.nan
    ratings = np.array(
        [
            [1.0, 5.0, 3.0, nan],
            [2.0, 1.0, nan, 9.0],
            [4.0, 4.0, -1.0, 7.0],
            [nan, 1.0, 1.0, nan],
            [0.0, 2.0, 3.0, nan],
        ]
    )
    lists = meila_chen_fig9.best_jokes(ratings, 3, 2, np.random.default_rng(0))
    assert lists.items == ("joke 1", "joke 2", "joke 3")
    assert len(lists) == 3  # the second and the fourth left one of the three unrated
    assert lists.orders[[0, 2]].tolist() == [[1, 2], [2, 1]]
    assert sorted(lists.orders[1].tolist()) == [0, 1]
    first = {
        int(meila_chen_fig9.best_jokes(ratings, 3, 2, np.random.default_rng(seed)).orders[1, 0])
        for seed in range(20)
    }
    assert first == {0, 1}  # ties are broken at random


def test_college_sizes_in_words():
    counts = np.array([1, 500, 0, 9, 1, 489])
    assert meila_chen_college.sizes_in_words(counts, 1000) == [5, 2, 5, 2, "50.0%, 48.9%, 0.9%, 0.1%, 0.1%"]
