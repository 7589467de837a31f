"""The arithmetic of the scripts that reproduce Liang, Jordan & Taskar (2007), and of the peers' benchmark."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import dp_mixture
from benchmarks.peers import dp_packages
from benchmarks.reproduce import liang_data, liang_fig2, liang_fig3_mixing, liang_fig3_synthetic, liang_runs
from benchmarks.reproduce.liang_split_merge import PublishedSplitMerge
from permix.datasets.fetch import DataNotFound
from permix.errors import FileFormatError
from permix.families import Gaussian
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess
from tests.every_run import first_in_every_run
from tests.moves.mixture_cases import PRIORS, chain_frequencies, posterior, state_of
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.twins import GreedySpec

# Data.


def test_gaussian_clusters_have_the_variances_of_the_paper():
    made = liang_data.gaussian_clusters(4000, 20, 50, seed=0, n_held_out=3000)
    # 1000 means: the relative standard error of their variance is √(2/1000).
    assert np.var(made.means) == pytest.approx(2.0, rel=4 * math.sqrt(2 / 1000))
    noise = made.data - made.means[made.labels]
    assert np.var(noise) == pytest.approx(1.0, rel=4 * math.sqrt(2 / noise.size))
    assert made.held_out.shape == (3000, 20)
    # Held-out points come from the same clusters: nearest means are at noise distance.
    nearest = ((made.held_out[:, None] - made.means) ** 2).sum(axis=2).min(axis=1)
    assert nearest.mean() == pytest.approx(20.0, rel=0.05)


def test_the_true_density_integrates_to_one():
    means = np.array([[-1.0], [2.0], [2.5]])
    grid = np.linspace(-12, 14, 4001)[:, None]
    density = np.exp(np.logaddexp.reduce(liang_data.log_joint_of_truth(grid, means), axis=1))
    assert np.trapezoid(density, grid[:, 0]) == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(
        np.exp(liang_data.log_joint_of_truth(np.array([[0.5]]), means))[0],
        np.exp(-0.5 * (0.5 - means[:, 0]) ** 2) / math.sqrt(2 * math.pi) / 3,
    )


def test_only_variances_fit_the_axes_of_figure_3():
    """Panels (a) and (c): one cluster near -945,000, the true ones between -615,000 and -611,000."""
    made = liang_data.gaussian_clusters(10_000, 40, 40, seed=0)
    problem = liang_runs.Problem(Gaussian(1.0, 0.0, 10.0), made.data)
    assert -615_000 < problem.of_labels(made.labels) < -611_000
    assert -960_000 < problem.of_labels(np.zeros(10_000, dtype=int)) < -900_000
    other = liang_data.gaussian_clusters(10_000, 40, 40, seed=0, mean_variance=4.0)
    wide = liang_runs.Problem(Gaussian(1.0, 0.0, 10.0), other.data)
    assert wide.of_labels(np.zeros(10_000, dtype=int)) < -1_300_000
    far = liang_runs.Problem(Gaussian(1.0, 0.0, 100.0), made.data)
    assert far.of_labels(made.labels) < -615_000


def write_images(folder: Path, pixels: np.ndarray, magic: int = 2051) -> None:
    (folder / "mnist").mkdir(exist_ok=True)
    header = np.array([magic, *pixels.shape], dtype=">i4").tobytes()
    path = folder / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(header + pixels.astype(np.uint8).tobytes()))


def test_images_are_read_and_standardized(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (50, 3, 4))
    pixels[:, 0, 0] = 0  # a pixel that is always white
    pixels[:, 1, 1] //= 50  # a faint one counts as much as the others
    write_images(tmp_path, pixels)
    monkeypatch.setenv("PERMIX_DATA", str(tmp_path))
    np.testing.assert_array_equal(liang_data.mnist_images(), pixels.reshape(50, 12))
    components = liang_data.digits(11)
    assert components.var(axis=0).sum() == pytest.approx(11.0)
    np.testing.assert_allclose(np.cov(components.T, bias=True), np.diag(components.var(axis=0)), atol=1e-10)
    assert (np.diff(components.var(axis=0)) <= 1e-12).all()
    assert liang_data.digits(2, n_images=20).shape == (20, 2)


def test_what_is_no_image_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PERMIX_DATA", str(tmp_path))
    monkeypatch.setenv("PERMIX_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataNotFound, match="MNIST"):
        liang_data.mnist_images()
    write_images(tmp_path, np.zeros((2, 2, 2)), magic=2049)
    with pytest.raises(FileFormatError, match="not a file of images"):
        liang_data.mnist_images()


# Figure 2.


def segmentations(n):
    """All ways to cut n points into segments, as lists of (first, last + 1)."""
    for cuts in itertools.product((False, True), repeat=n - 1):
        bounds = [0, *(place + 1 for place, cut in enumerate(cuts) if cut), n]
        yield list(itertools.pairwise(bounds))


def test_the_profile_sums_to_all_segmentations():
    made = liang_data.gaussian_clusters(9, 3, 3, seed=1)
    found = liang_fig2.program(made.data, made.labels, liang_fig2.Sizes())
    for r in (1, 5, 9):
        brute = np.logaddexp.reduce(
            [
                sum(found.scores[first, last - 1] + found.slope for first, last in segments)
                for segments in segmentations(r)
            ]
        )
        assert np.logaddexp.reduce(found.profile(r, r)) == pytest.approx(brute, abs=1e-10)
        assert found.sums[r] == pytest.approx(brute, abs=1e-10)
    # Nothing is left out where ε is far below what matters for nine points; a beam of one leaves much out.
    assert found.epsilon_sum == pytest.approx(found.sums[9], abs=1e-10)
    narrow = liang_fig2.program(made.data, made.labels, liang_fig2.Sizes(width=1, epsilon=0.2))
    assert narrow.width_sum < found.sums[9] - 1e-3
    assert narrow.epsilon_kept < found.epsilon_kept


def test_segment_scores_are_marginal_likelihoods():
    made = liang_data.gaussian_clusters(6, 2, 2, seed=2)
    one_cluster = np.zeros(6, dtype=int)
    found = liang_fig2.program(made.data, one_cluster, liang_fig2.Sizes())
    family = Gaussian(1.0, 0.0, 10.0).resolve(made.data)
    state = MixtureState(family, family.encode(made.data), 6, DirichletProcess(1.0))
    state.set_labels(one_cluster)
    # B' of all six: (6 - 1)!/6! = 1/6 times the marginal likelihood; α = 1.
    assert found.scores[0, 5] == pytest.approx(state.log_likelihood() - math.log(6), abs=1e-10)


# The published split-merge.

N_STEPS = 20_000


@pytest.mark.parametrize("prior", first_in_every_run(PRIORS))
def test_published_split_merge_visits_partitions_as_the_posterior_says(prior):
    partitions, pi = posterior("gaussian-isotropic", prior, 5)
    for broken, prior_spec in ((False, PRIORS[prior]), (True, GreedySpec(PRIORS[prior]))):
        state = state_of("gaussian-isotropic", prior_spec, 5)
        move = PublishedSplitMerge(n_proposals=5)
        frequencies, n_effective = chain_frequencies(move, state, partitions, N_STEPS, seed=1)
        assert n_effective > N_STEPS / 20
        off = total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)
        assert off == broken


def test_published_split_merge_keeps_statistics_right():
    made = liang_data.gaussian_clusters(400, 5, 8, seed=9)
    state = liang_runs.Problem(Gaussian(1.0, 0.0, 10.0), made.data).state()
    state.set_labels(np.arange(400) % 3)
    info = PublishedSplitMerge(n_proposals=200).step(np.random.default_rng(0), state)
    assert info.proposed == 200
    assert info.accepted > 2
    kept, value, sizes = state.labels.copy(), state.log_likelihood(), state.sizes_in_use.copy()
    state.refresh()
    np.testing.assert_array_equal(state.labels, kept)
    np.testing.assert_array_equal(state.sizes_in_use, sizes)
    assert state.log_likelihood() == pytest.approx(value, abs=1e-6)


# Figure 3, burn-in.


def trace_of(seconds, values, n_clusters=3):
    return liang_runs.Trace(np.array(seconds), np.array(values), n_clusters)


def test_traces_know_when_they_reached_a_level():
    run = trace_of([0.0, 0.5, 2.0, 3.0], [-100.0, -50.0, -10.0, -20.0])
    assert run.seconds_until(-60.0) == 0.5
    assert run.seconds_until(-5.0) == np.inf
    assert run.last == -20.0
    assert run.at(np.array([0.1, 0.5, 2.5, 9.0])).tolist() == [-100.0, -50.0, -10.0, -20.0]


def test_summary_is_relative_to_the_best_of_all_samplers():
    rows = liang_runs.summarize(
        {
            "Gibbs": [trace_of([0.0, 1.0], [-9000.0, -8000.0]), trace_of([0.0, 4.0], [-9000.0, -6001.0])],
            "Gibbs+Perm": [trace_of([0.0, 0.25], [-9000.0, -6000.0], 7)] * 3,
        }
    )
    assert rows[0] == ["Gibbs", "-7,000", "-8,000 … -6,001", "3", "not", "1 of 2"]
    assert rows[1] == ["Gibbs+Perm", "-6,000", "-6,000 … -6,000", "7", "0.25", "3 of 3"]


def test_a_trace_starts_and_ends_where_its_chain_does():
    made = liang_data.gaussian_clusters(300, 5, 4, seed=3)
    problem = liang_runs.Problem(Gaussian(1.0, 0.0, 10.0), made.data, constant=-7.0)
    problem.compile(tuple(liang_runs.SAMPLERS))
    bare = liang_runs.Problem(Gaussian(1.0, 0.0, 10.0), made.data)
    assert problem.of_labels(made.labels) == pytest.approx(bare.of_labels(made.labels) - 7.0)
    run = problem.trace(("gibbs", "split-merge", "projection"), "one-group", 0.1, seed=0)
    assert run.seconds[0] == 0.0
    assert (np.diff(run.seconds) >= 0).all()
    assert run.seconds[-1] >= 0.1
    one = problem.state()
    one.set_labels(np.zeros(300, dtype=int))
    assert run.log_probability[0] == pytest.approx(problem.log_probability(one))
    # 300 points, 4 clusters in 5 dimensions: hundreds of moves find what the truth has, or better.
    assert run.last > problem.of_labels(made.labels) - 30.0
    panel = liang_runs.curves({"Gibbs": [run, run]}, 0.1)
    assert panel["Gibbs"][1][-1] == run.at(np.array([0.1]))[0]


def test_panels_are_those_of_the_figure():
    panels = liang_fig3_synthetic.PANELS
    assert [(p.n_clusters, p.n_features) for p in panels.values()] == [
        *[(40, 40)] * 3,
        (20, 40),
        (80, 40),
        (160, 40),
        (40, 10),
        (40, 80),
    ]
    assert [panels[letter].init for letter in "abcd"] == [1, 40, 300, "sequential"]


# Figure 3, mixing.


def test_autocorrelation_of_a_known_process():
    rng = np.random.default_rng(4)
    n, rho = 200_000, 0.8
    noise = rng.standard_normal(n)
    values = np.empty(n)
    values[0] = noise[0]
    for t in range(1, n):
        values[t] = rho * values[t - 1] + math.sqrt(1 - rho**2) * noise[t]
    found = liang_fig3_mixing.autocorrelation(values, 20)
    # Bartlett: the standard error is at most √((1 + ρ²)/(1 - ρ²)/n) < 0.005.
    np.testing.assert_allclose(found, rho ** np.arange(21), atol=0.02)
    assert liang_fig3_mixing.autocorrelation(np.full(50, 3.0), 5).tolist() == [1.0] * 6


def test_autocorrelation_by_hand():
    # Footnote 7: mean 2, variance 1/2; lag 1: products (-1)(0), (0)(1), (1)(0) over 4 - 1 - 1.
    found = liang_fig3_mixing.autocorrelation(np.array([1.0, 2.0, 3.0, 2.0]), 2)
    np.testing.assert_allclose(found, [4 / 3, 0.0, -2.0])


@pytest.mark.slow
def test_mixing_chains_agree_on_the_posterior():
    made = liang_data.gaussian_clusters(40, 2, 3, seed=5)
    problem = liang_runs.Problem(Gaussian(1.0, 0.0, 10.0), made.data)
    sizes = liang_fig3_mixing.Sizes(n_burn_in=200, n_turns=6000, turn_milliseconds=0.05)
    chains = {name: liang_fig3_mixing.chain(problem, name, sizes, 0) for name in liang_fig3_mixing.SAMPLERS}
    for panel in liang_fig3_mixing.STATISTICS:
        means, errors = [], []
        for chain in chains.values():
            values = chain.statistic(panel)
            time = 1 + 2 * np.maximum(liang_fig3_mixing.autocorrelation(values, 200)[1:], 0).sum()
            means.append(values.mean())
            errors.append(values.std() * math.sqrt(time / len(values)))
        # Four means, each within four standard errors of the first.
        for mean, error in zip(means[1:], errors[1:], strict=True):
            assert abs(mean - means[0]) < 4 * math.hypot(error, errors[0])
        assert min(errors) < 0.2 * np.std(chains["Gibbs"].statistic(panel))


# Peers.


def test_scorer_knows_the_best_and_the_loss():
    made = liang_data.gaussian_clusters(500, 10, 4, seed=6, n_held_out=400)
    scorer = dp_mixture.Scorer(made)
    found = scorer.found(1.0, made.labels, scorer.true_density - 0.25, "")
    assert (found["rand"], found["groups"]) == (1.0, 4)
    assert found["loss"] == pytest.approx(0.25)
    assert scorer.best > 0.9
    assert scorer.rand(np.arange(500) % 4) < 0.05
    assert math.isnan(scorer.found(1.0, made.labels, None, "")["loss"])


@pytest.mark.slow
def test_permix_is_compared_with_scikit_learn(capsys):
    settings = {**dp_mixture.SETTINGS, "n_burn_in": 20, "n_draws": 10}
    rows = dp_mixture.compare(
        400, 8, 3, peers=("sklearn", "bnpy"), pythons={"bnpy": sys.executable}, settings=settings
    )
    row = rows[0]
    assert (row["what"], row["peer"]) == ("400 × 8, 3 groups", "sklearn")
    ours, theirs = (float(value) for value in str(row["held-out loss"]).split(" / "))
    assert ours < theirs
    assert row["ratio"] == pytest.approx(row["reference"] / row["ours"])
    if len(rows) == 1:  # bnpy is not installed here
        assert "bnpy cannot be imported here, left out" in capsys.readouterr().out


@pytest.mark.slow
def test_a_package_that_fails_is_told(monkeypatch):
    made = liang_data.gaussian_clusters(20, 2, 2, seed=7, n_held_out=5)
    scorer = dp_mixture.Scorer(made)
    # 20 points cannot have 50 components.
    answer = dp_mixture.fit_package(scorer, "sklearn", sys.executable, 50)
    assert isinstance(answer, str)
    assert answer.startswith("failed: ValueError")
    monkeypatch.setattr(dp_mixture, "LONGEST", 0.01)
    assert dp_mixture.fit_package(scorer, "sklearn", sys.executable, 2) == "not done after 0 s"


@pytest.mark.slow
def test_packages_run_without_permix(tmp_path):
    """The file must work in an environment that has the package alone."""
    made = liang_data.gaussian_clusters(60, 2, 2, seed=8, n_held_out=5)
    np.savez(tmp_path / "data.npz", data=made.data, held_out=made.held_out, n_components=3, seed=0)
    code = (
        "import sys; sys.modules['permix'] = None; sys.modules['benchmarks'] = None\n"
        f"sys.argv = ['', 'sklearn', {str(tmp_path / 'data.npz')!r}]\n"
        f"import runpy; runpy.run_path({dp_packages.__file__!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert len(answer["labels"]) == 60
    assert answer["log_density"] < 0
