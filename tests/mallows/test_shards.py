"""Fits of data in shards are those of one table, to the last bit, wherever the work is done."""

from __future__ import annotations

import os
import random
import signal
import threading
import warnings

import numpy as np
import pytest

import permix
from permix.data.shards.sharded import Sharded
from permix.datasets import make_mallows_mixture
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import DataError
from permix.mallows import fit as fitting
from permix.mallows.rounds.levels import LevelRounds
from permix.mallows.rounds.sharded import ShardedRounds
from permix.runtime.exact_sums import grid_of, on_grid
from permix.runtime.executors import Here


@pytest.fixture(scope="module")
def votes():
    """1,500 lists of different lengths over nine items."""
    drawn = make_mallows_mixture(1500, 9, 3, dispersion=0.6, random_state=1).data
    lists = [order[: 3 + at % 7].tolist() for at, order in enumerate(drawn.orders)]
    return permix.Rankings.from_orders(lists, items=drawn.items)


@pytest.fixture
def small_samples(monkeypatch):
    """Samples of 200 agents, so that few data are many."""
    monkeypatch.setattr(fitting, "MOST_EXACT", 200)


def fitted(data, **options):
    return permix.MallowsMixture(3, random_state=0, n_init=4, **options).fit(data)


def assert_same(one, other):
    assert float(one.log_likelihood_) == float(other.log_likelihood_)
    assert np.array_equal(one.weights_, other.weights_)
    assert np.array_equal(one.dispersions_, other.dispersions_)
    assert one.centers_ == other.centers_
    assert np.array_equal(one._fit.history, other._fit.history)
    assert np.array_equal(one._fit.probabilities, other._fit.probabilities)


@pytest.mark.usefixtures("small_samples")
def test_the_same_bits_however_agents_are_divided(votes):
    one = fitted(Sharded.of(votes, 1, Here(1)))
    for n_shards, executor in ((2, Here(1)), (7, Here(2)), (7, Here(1, most_held=2))):
        assert_same(fitted(Sharded.of(votes, n_shards, executor)), one)
    # The optimum is that of one table, up to where climbs stop.
    near, table = (fitted(data, tol=1e-10) for data in (Sharded.of(votes, 3), votes))
    assert float(near.log_likelihood_) == pytest.approx(float(table.log_likelihood_), abs=1e-4)
    assert near.weights_ == pytest.approx(table.weights_, abs=1e-4)
    assert near.centers_ == table.centers_
    assert float(one.log_likelihood_) == pytest.approx(float(one.score_samples(votes).sum()), abs=1e-6)
    assert one.summary()["agents"].sum() == pytest.approx(1500)
    assert not hasattr(one, "labels_")


def test_few_rows_are_fitted_as_a_table(votes):
    assert_same(fitted(Sharded.of(votes, 3)), fitted(permix.Preferences.from_rankings(votes).collapse()))


def test_sums_do_not_depend_on_shards_and_those_of_floats_do(votes):
    """The broken twin: plain sums differ in their last bits between divisions."""
    rng = np.random.default_rng(0)
    mixture = MallowsComponents(
        votes.items,
        np.array([0.5, 0.3, 0.2]),
        np.stack([rng.permutation(9) for _ in range(3)]).astype(np.int32),
        np.array([0.31, 0.52, 0.77]),
    )
    exact = [ShardedRounds(Sharded.of(votes, n), 3, 10.0).e_step(mixture, None, True) for n in (1, 2, 7)]
    for total, statistics in exact[1:]:
        assert total == exact[0][0]
        for found, first in zip(statistics, exact[0][1], strict=True):
            assert np.array_equal(found, first)
    tables = [permix.Preferences.from_rankings(votes[at::7]) for at in range(7)]
    steps = [LevelRounds(Profile.of(table), 3).e_step(mixture, None, True) for table in tables]
    whole = LevelRounds(Profile.of(permix.Preferences.from_rankings(votes)), 3).e_step(mixture, None, True)
    assert sum(value for value, _ in steps) != whole[0] or not np.array_equal(
        sum(statistics.wins for _, statistics in steps), whole[1].wins
    )
    # Both are right.
    assert exact[0][0] == pytest.approx(whole[0], abs=1e-8)
    for name in ("members", "wins", "blocks", "against", "spreads"):
        assert getattr(exact[0][1], name) == pytest.approx(getattr(whole[1], name), rel=1e-9, abs=1e-7)


def test_terms_on_a_grid_add_up_exactly():
    rng = np.random.default_rng(1)
    terms = rng.random(10_000) * 900.0
    rounded = on_grid(terms, grid_of(10_000, 900.0))
    sums = {float(np.sum(rounded[rng.permutation(10_000)])) for _ in range(20)}
    assert len(sums) == 1
    assert len({float(np.sum(terms[rng.permutation(10_000)])) for _ in range(20)}) > 1
    assert np.abs(rounded - terms).max() <= 0.5 / grid_of(10_000, 900.0) < 1e-8
    # A grid that is too fine is of no use.
    fine = on_grid(terms, 2.0**24 * grid_of(10_000, 900.0))
    assert len({float(np.sum(fine[rng.permutation(10_000)])) for _ in range(20)}) > 1


@pytest.mark.usefixtures("small_samples")
def test_files_and_answers(votes, tmp_path):
    data = Sharded.of(votes, 3)
    model = fitted(data)
    model.save(tmp_path / "fit.permix")
    again = permix.load(tmp_path / "fit.permix")
    assert again.summary().equals(model.summary())
    assert not hasattr(again, "labels_")
    from permix.mallows.tables import report

    shown = report(again._fit)
    assert shown["agents"] == 1500
    assert abs(sum(group["agents"] for group in shown["groups"]) - 1500) <= 1
    assert shown["log_likelihood_per_agent"] == pytest.approx(model.score_samples(votes).mean())
    permix.report(again, tmp_path / "report.md")
    assert "1,500 agents" in (tmp_path / "report.md").read_text()
    assert "a random sample of 200" in (tmp_path / "report.md").read_text()
    written = permix.predict_shards(again, data, tmp_path / "answers")
    assert written["agents"].sum() == 1500
    import pandas as pd

    answers = pd.concat([pd.read_parquet(file) for file in written["file"]])
    assert answers["agent"].tolist() == list(range(1, 1501))
    assert np.array_equal(answers["group"], model.predict(votes))
    assert answers["score"].to_numpy() == pytest.approx(model.score_samples(votes), abs=1e-12)
    with pytest.raises(DataError, match="shard by shard"):
        model.predict(data)
    with pytest.raises(DataError, match="do not have the items of the model"):
        permix.predict_shards(model, Sharded.of(renamed(votes), 2), tmp_path)
    with pytest.raises(DataError, match="is not empty"):
        permix.predict_shards(model, data, tmp_path / "answers")
    with pytest.raises(DataError, match="takes data in shards"):
        permix.predict_shards(model, votes, tmp_path / "more")
    with pytest.raises(DataError, match="data in shards are taken by"):
        permix.select_components(data, [1, 2])


def renamed(votes):
    return votes._replaced(items=tuple(f"item {name}" for name in votes.items))


@pytest.mark.usefixtures("small_samples")
def test_what_cannot_be_fitted_in_shards(votes):
    subsets = permix.Rankings.from_orders(
        [order[order >= 0][:4].tolist() for order in votes.orders], items=votes.items, unlisted="unknown"
    )
    with pytest.raises(DataError, match="must be full rankings, or top lists"):
        fitted(Sharded.of(subsets, 2))
    with pytest.raises(DataError, match="AngleMixture is not fitted to data in shards yet"):
        permix.AngleMixture(2).fit(Sharded.of(votes, 2))


def test_consensus(votes):
    assert permix.kemeny(Sharded.of(votes, 7)).order.tolist() == permix.kemeny(votes).order.tolist()


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs permix[dask]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as started:
        yield started


def test_chains_on_workers(votes, cluster, monkeypatch):
    """Chains of DPMallowsMixture over two worker processes, too; the labels stay with the workers."""
    from distributed import Client

    from permix.dp_mallows.sharded import fit as chains
    from permix.runtime.on_dask import OnDask

    monkeypatch.setattr(chains, "MANY_AGENTS", 200)
    monkeypatch.setattr(chains, "ON_RECORD", 100)
    few = {
        "n_draws": 4,
        "n_burn_in": 1,
        "n_chains": 1,
        "random_state": 0,
        "progress": False,
        "prior_rate": 1.0,
    }

    def draws(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chains this short disagree
            return permix.DPMallowsMixture(**few).fit(data)._fit.draws.arrays

    here = draws(Sharded.of(votes, 1, Here(1)))
    with Client(cluster) as client:
        there = draws(Sharded.of(votes, 5, OnDask(client)))
    for name, array in here.items():
        assert there[name].tobytes() == array.tobytes(), name


@pytest.mark.usefixtures("small_samples")
def test_on_workers_that_are_killed(votes, cluster):
    """Two worker processes give the same bits, and killing them costs time, not the result."""
    from distributed import Client

    from permix.runtime.on_dask import OnDask

    one = fitted(Sharded.of(votes, 1, Here(1)))
    with Client(cluster) as client:
        assert_same(fitted(Sharded.of(votes, 7, OnDask(client))), one)
        done, killed = threading.Event(), []

        def kill():
            choose = random.Random(0)
            while not done.wait(choose.uniform(0.1, 0.5)) and len(killed) < 3:
                running = [nanny.process.pid for nanny in cluster.workers.values() if nanny.process.pid]
                if len(running) == 2 and len(client.scheduler_info(n_workers=-1)["workers"]) == 2:
                    os.kill(running[choose.randrange(2)], signal.SIGKILL)
                    killed.append(running)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            for _ in range(100):
                assert_same(fitted(Sharded.of(votes, 7, OnDask(client))), one)
                if len(killed) >= 2:
                    break
        finally:
            done.set()
            thread.join()
        assert killed
