"""What a fit of DPMallowsMixture does not depend on: threads, interruptions, counts or repeated rows."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from permix.data.rankings import Rankings
from permix.datasets import make_generalized_mallows_mixture
from permix.dp_mallows import fit as dp_mallows_fit
from permix.dp_mallows.fit import draw_clusters, exact_model, fit_dp_mallows, start_state, sweep_move
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.errors import DataError, PermixWarning
from permix.moves import Concentration
from permix.partitions import Gamma, canonical_labels
from permix.runtime import threads
from permix.sampling.loop import run_chains
from tests.dp_mallows.kill_child import N_BURN_IN, N_DRAWS, fit
from tests.every_run import first_in_every_run
from tests.oracles.dp_mallows import Enumeration, gaps
from tests.sampling.kill import kill_and_resume

VARIANTS = {
    "collapsed": {"assignments": "collapsed"},
    "parallel": {"assignments": "parallel"},
    "learned": {"assignments": "parallel", "concentration": Gamma(2.0, 1.0)},
    "pitman-yor": {"discount": 0.3, "prior_rate": [0.5, 1.0, 2.0, 1.0, 0.7]},
    "started at random": {"n_initial_clusters": 5, "split_merge": False},
    "beta-gibbs": {"sampler": "beta-gibbs"},
    "slice-gibbs": {"sampler": "slice-gibbs"},
}


def settings(name, **options):
    few = {"n_draws": 12, "n_burn_in": 4, "n_chains": 2, "random_state": 3, "progress": False, "n_jobs": 1}
    return DPMallowsParameters(**(few | VARIANTS[name] | options))


def votes():
    """Two kinds of agents over six items, lists of one to six, many of them twice or more."""
    rng = np.random.default_rng(4)
    rows = []
    for i in range(60):
        scores = np.arange(6) * (0.8 if i % 2 else -0.8) + rng.gumbel(size=6)
        rows.append(np.argsort(scores)[: rng.integers(1, 5) if i % 5 else 6].tolist())
    return Rankings.from_orders(rows, n_items=6, counts=rng.integers(1, 4, 60))


def fitted(rankings, chosen):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains this short disagree
        return fit_dp_mallows(rankings, chosen)


def assert_same(one, other):
    assert one.draws.arrays.keys() == other.draws.arrays.keys()
    for name, array in one.draws.arrays.items():
        assert other.draws.arrays[name].dtype == array.dtype
        assert other.draws.arrays[name].tobytes() == array.tobytes(), name
    np.testing.assert_array_equal(one.labels, other.labels)
    for field in dataclasses.fields(one.clusters):
        value = getattr(one.clusters, field.name)
        np.testing.assert_array_equal(getattr(other.clusters, field.name), value, err_msg=field.name)


@pytest.mark.parametrize("name", first_in_every_run(["collapsed", "parallel", "slice-gibbs"], 2))
def test_threads_do_not_matter(name, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_THREADS", 0)
    calls = []
    run_in_threads = threads.run_in_threads

    def counted(task, parts, *others, **options):
        if not others and not options:  # as over_rows calls it
            calls.append(len(parts))
        return run_in_threads(task, parts, *others, **options)

    monkeypatch.setattr(threads, "run_in_threads", counted)
    one = fitted(votes(), settings(name, n_jobs=1))
    assert not calls
    for n_jobs in (2, None):
        assert_same(one, fitted(votes(), settings(name, n_jobs=n_jobs)))
    # One chain leaves processors free: threads work within it.
    alone = fitted(votes(), settings(name, n_jobs=1, n_chains=1))
    calls.clear()
    assert_same(alone, fitted(votes(), settings(name, n_jobs=4, n_chains=1)))
    assert set(calls) == {16}


@pytest.mark.parametrize("name", first_in_every_run(VARIANTS, 3))
def test_counts_are_repeated_rows(name):
    rankings = votes()
    assert rankings.counts.max() > 1
    one, other = fitted(rankings, settings(name)), fitted(rankings.expand(), settings(name))
    assert_same(one, other)
    assert one.draws.arrays["labels"].shape[2] == rankings.n_agents


@pytest.mark.parametrize("name", VARIANTS)
def test_a_checkpoint_holds_all_that_matters(name):
    rankings, chosen = votes(), settings(name)
    move = sweep_move(chosen)
    rng = np.random.default_rng(5)
    state = start_state(rankings, chosen, rng)
    for _ in range(5):
        move.step(rng, state)
    held, at = state.checkpoint(), rng.bit_generator.state
    kept = {key: value.copy() for key, value in held.items()}
    other = start_state(rankings, chosen, np.random.default_rng(99))
    other.restore(held)
    assert other.log_joint() == state.log_joint()
    again = np.random.default_rng(0)
    again.bit_generator.state = at
    for _ in range(5):
        move.step(rng, state)
        move.step(again, other)
        assert state.record().keys() == other.record().keys()
        for key, value in state.record().items():
            assert np.array_equal(value, other.record()[key]), key
    for key, value in state.checkpoint().items():
        np.testing.assert_array_equal(other.checkpoint()[key], value, err_msg=key)
    for key, value in kept.items():
        np.testing.assert_array_equal(held[key], value, err_msg="a checkpoint is a copy")


def test_damaged_checkpoints_are_refused():
    chosen = settings("collapsed")
    state = start_state(votes(), chosen, np.random.default_rng(0))
    good = state.checkpoint()
    changes = {
        "labels": [
            good["labels"][:-1],
            good["labels"] + 1,
            np.where(good["labels"] == 0, -1, good["labels"]),
        ],
        "places": [good["places"][:-1], good["places"][:, :0], np.zeros_like(good["places"])],
        "theta": [good["theta"][:, :-1], good["theta"][:0]],
    }
    for name, values in changes.items():
        for value in values:
            with pytest.raises(DataError, match="checkpoint"):
                state.restore(good | {name: value})
    state.restore(good)


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", ["collapsed", "parallel", "learned", "slice-gibbs"])
def test_a_run_that_broke_off_goes_on(name, tmp_path, monkeypatch):
    """Every iteration is written; the run breaks off again and again, and ends with the same bytes."""
    undisturbed = fitted(votes(), settings(name, n_chains=1))
    monkeypatch.setitem(run_chains.__kwdefaults__, "checkpoint_seconds", 0.0)
    chosen = settings(name, n_chains=1, store=str(tmp_path / "store"))
    step = Concentration.step
    for breaks in (3, 6, 2):
        steps = iter(range(breaks))

        def limited(self, rng, state, steps=steps):
            if next(steps, None) is None:
                raise Stop
            return step(self, rng, state)

        with monkeypatch.context() as patched:
            patched.setattr(Concentration, "step", limited)
            with pytest.raises(Stop):
                fitted(votes(), chosen)
    assert_same(undisturbed, fitted(votes(), chosen))
    # More draws continue; other data do not.
    longer = chosen.replaced(n_draws=15)
    assert_same(fitted(votes(), longer.replaced(store=None)), fitted(votes(), longer))
    with pytest.raises(DataError):
        fitted(votes()[:-1], chosen)
    with pytest.raises(DataError):
        fitted(votes(), chosen.replaced(prior_strength=2.0))


def test_clusters_are_drawn_given_labels():
    rankings, chosen = votes(), settings("pitman-yor")
    result = fitted(rankings, chosen)
    clusters = result.clusters
    assert clusters.n_draws == chosen.n_draws * chosen.n_chains
    assert clusters.prior.discount == 0.3
    for d in range(clusters.n_draws):
        rows = clusters.of_draw(d)
        np.testing.assert_array_equal(np.bincount(clusters.labels[d]), clusters.sizes[rows])
        assert np.array_equal(np.sort(clusters.centers[rows], axis=1)[0], np.arange(6))
        assert np.all(clusters.theta[rows] > 0)
    model = exact_model(rankings, chosen)
    again = draw_clusters(model, chosen, result.draws)
    np.testing.assert_array_equal(again.centers, clusters.centers)
    np.testing.assert_array_equal(again.theta, clusters.theta)


@pytest.mark.slow
def test_killed_fit_equals_the_undisturbed_one(tmp_path):
    store = tmp_path / "chains"
    undisturbed = fit(None)  # first: it also compiles what the child will load
    command = [sys.executable, str(Path(__file__).with_name("kill_child.py")), str(store)]
    reached = kill_and_resume(command, store, 12, np.random.default_rng(6), N_BURN_IN + N_DRAWS)
    assert len(set(reached)) > 3, "the kills must fall on different moments"
    assert_same(undisturbed, fit(str(store)))


FOUR_LISTS = ((0, 1, 2, 3), (0, 1), (3, 2, 1, 0), (1, 0, 3))


def reported(clusters):
    """Draws as the oracle takes them: labels, centers by label, decays by label."""
    for d in range(clusters.n_draws):
        rows = clusters.of_draw(d)
        yield clusters.labels[d].tolist(), clusters.centers[rows], clusters.theta[rows]


def test_reported_centers_and_decays_have_the_posterior(monkeypatch):
    monkeypatch.setattr(dp_mallows_fit, "MAX_CLUSTER_DRAWS", 1000)
    rankings = Rankings.from_orders(FOUR_LISTS, n_items=4)
    run = {"n_draws": 1000, "n_burn_in": 20, "n_chains": 1, "random_state": 3, "n_jobs": 1}
    chosen = DPMallowsParameters(prior_strength=1.0, prior_rate=1.0, **run)
    result = dp_mallows_fit.fit_dp_mallows(rankings, chosen)
    exact = Enumeration(FOUR_LISTS, 4)
    for name, gap in gaps(exact, reported(result.clusters)).items():
        assert gap.distance < gap.bound, (name, gap)
    # The twin, which stays at the best item of every stage, is found out.
    monkeypatch.setattr(dp_mallows_fit, "CENTER_ROUNDS", 0)
    monkeypatch.setattr(dp_mallows_fit, "SMALL_ROUNDS", 0)
    model = dp_mallows_fit.exact_model(rankings, chosen)
    twin = dp_mallows_fit.draw_clusters(model, chosen, result.draws)
    seen = Counter(tuple(centers[labels[0]].tolist()) for labels, centers, _ in reported(twin))
    distribution = exact.center_of(0)
    assert sum(abs(seen[order] / 1000 - p) for order, p in distribution.items()) / 2 > 0.3


@pytest.mark.parametrize(
    "options",
    [
        {"prior_rate": 0.05},
        {"prior_rate": 1e-4},
        {"prior_strength": 0.01},
        {"prior_strength": 1e6},
        {"concentration": -0.3, "discount": 0.5},
        {"concentration": 1e-6},
        {"concentration": 1e4},
        {"assignments": "parallel", "prior_rate": 0.01},
    ],
)
def test_extreme_priors(options):
    rankings = Rankings.from_orders([[0, 1, 2, 3]] * 12 + [[3, 2]], n_items=4)
    chosen = DPMallowsParameters(n_draws=10, n_burn_in=5, n_chains=1, random_state=0, n_jobs=1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dp_mallows_fit.fit_dp_mallows(rankings, chosen)
    assert np.isfinite(result.draws.arrays["log_joint"]).all()
    assert (result.draws.arrays["n_groups"] >= 1).all()
    assert (result.draws.arrays["labels"] < 13).all()  # nobody is left without a cluster


@pytest.mark.parametrize("options", [{"prior_strength": 1e-300}, {"prior_rate": 1e12}, {"prior_rate": -1}])
def test_absurd_priors_are_refused(options):
    with pytest.raises(DataError, match="must be a number"):
        DPMallowsParameters(**options)


def test_more_initial_clusters_than_agents():
    rankings = Rankings.from_orders([[0, 1], [1, 0]], n_items=3)
    with pytest.raises(DataError, match="more than the 2 agents"):
        dp_mallows_fit.fit_dp_mallows(rankings, DPMallowsParameters(n_initial_clusters=5))


def test_overlapping_groups_are_shown_by_a_draw():
    made = make_generalized_mallows_mixture(150, 8, 4, theta=0.6, lengths=(1, 3), random_state=3)
    chosen = DPMallowsParameters(concentration=3.0, n_draws=60, n_burn_in=20, random_state=0, n_jobs=1)
    with pytest.warns(PermixWarning, match="groups overlap"):
        result = dp_mallows_fit.fit_dp_mallows(made.data, chosen)
    assert result.shows_a_draw
    kept = result.draws.arrays["labels"].reshape(-1, 150)
    assert any(
        np.array_equal(canonical_labels(row), canonical_labels(result.estimate.labels)) for row in kept
    )
