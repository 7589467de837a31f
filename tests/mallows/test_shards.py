"""Fits of data in shards are those of one table, to the last bit, wherever the work is done."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import threading
import warnings
from contextlib import suppress

import numpy as np
import pytest

import permix
from permix.data.shards.sharded import Sharded
from permix.datasets import make_mallows_mixture
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import ConvergenceWarning, DataError, FileFormatError, ShardError
from permix.files import write_archive
from permix.mallows import fit as fitting
from permix.mallows.rounds.drawn import Draws
from permix.mallows.rounds.levels import LevelRounds
from permix.mallows.rounds.sharded import ShardedRounds
from permix.mallows.rounds.sums import SumRounds
from permix.runtime.exact_sums import grid_of, on_grid
from permix.runtime.executors import Here
from permix.runtime.fingerprint import fingerprint
from permix.runtime.journal import Journal


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


@pytest.fixture(scope="module")
def open_votes(votes):
    """700 rankings of four of nine items, which leave the others open, among 500 lists; many say the same."""
    orders = [order[order >= 0] for order in votes.orders]
    few = permix.Rankings.from_orders(
        [np.sort(order[:3])[:: 1 - 2 * (at % 2)].tolist() for at, order in enumerate(orders[:700])],
        items=votes.items,
        unlisted="unknown",
    )
    tables = permix.Preferences.from_rankings(few), permix.Preferences.from_rankings(votes[700:1200])
    return permix.Preferences.concat(tables)


def three(items):
    rng = np.random.default_rng(0)
    centers = np.stack([rng.permutation(9) for _ in range(3)]).astype(np.int32)
    return MallowsComponents(items, np.array([0.5, 0.3, 0.2]), centers, np.array([0.31, 0.52, 0.77]))


DRAWS = Draws(np.array([3, 4], dtype=np.uint64), 5, 2, 4)


def test_rows_that_are_drawn_do_not_depend_on_shards(open_votes, monkeypatch):
    """The broken twin: random numbers by the number of a row in its shard."""

    def steps():
        for n in (1, 2, 7):
            data = Sharded.of(open_votes, n, Here(1))
            yield ShardedRounds(data, 3, 10.0, drawn=True).drawn_step(three(open_votes.items), DRAWS)

    first, *others = steps()
    for total, statistics in others:
        assert float(total) == float(first[0])
        assert total.standard_error == first[0].standard_error
        for found, known in zip(statistics, first[1], strict=True):
            assert np.array_equal(found, known)
    numbered = lambda table: np.arange(len(table), dtype=np.uint64)  # noqa: E731
    monkeypatch.setattr("permix.mallows.rounds.sharded.names_of_rows", numbered)
    assert len({float(total) for total, _ in steps()}) == 3


def test_rows_that_are_drawn_are_on_average_as_exact_sums_say(open_votes):
    """Log-likelihood, shares and tournaments of many rounds, against sums over all orders."""
    components = three(open_votes.items)
    table = open_votes.collapse()[:40]
    table = table._replaced(counts=np.ones(40, dtype=np.int64))
    rounds = ShardedRounds(Sharded.of(table, 2, Here(1)), 3, 10.0, drawn=True, repeats=1.0)
    profile = Profile.of(table)
    assert len(profile.partitioned) + len(profile.sampled) > 0
    exact = [part.e_step(components, None, True) for part in (SumRounds(profile, 3), LevelRounds(profile, 3))]
    found = [rounds.drawn_step(components, DRAWS._replace(sweep=sweep)) for sweep in range(400)]
    for name in ("members", "wins", "rankings"):
        truth = sum(getattr(statistics, name) for _, statistics in exact)
        drawn = np.array([getattr(statistics, name) for _, statistics in found])
        error = drawn.std(axis=0) / np.sqrt(len(drawn))
        assert np.abs(drawn.mean(axis=0) - truth).max() <= 5.0 * error.max() + 0.01 * table.n_agents
    totals = np.array([float(total) for total, _ in found])
    said = np.mean([total.standard_error**2 for total, _ in found])
    # The logarithm of an unbiased estimate is too small by half its variance.
    truth = sum(value for value, _ in exact)
    assert totals.mean() + said / 2 == pytest.approx(truth, abs=4.0 * totals.std() / 20 + 0.25 * said)
    assert 0.7 < totals.std() / np.sqrt(said) < 1.4


@pytest.mark.usefixtures("small_samples")
def test_rows_that_leave_items_open_are_fitted_in_shards(open_votes):
    one, other = (
        permix.MallowsMixture(2, random_state=0, n_init=1, n_particles=2, max_iter=8).fit(
            Sharded.of(open_votes, n, Here(1))
        )
        for n in (1, 3)
    )
    assert_same(one, other)
    error = one.log_likelihood_.standard_error
    assert 0.0 < error == other.log_likelihood_.standard_error
    scores = one.score_samples(open_votes, n_samples=64)
    assert float(one.log_likelihood_) == pytest.approx(scores.sum(), abs=5 * error + 2)


class Elsewhere(Here):
    """An executor to which all travels in bytes, as to workers."""

    remote = True

    def __init__(self):
        super().__init__(1)
        self.names = []

    def map_shards(self, work, shards, shared=None, reduce=None):
        self.names += [shard.name for shard in shards]
        sent = pickle.loads(pickle.dumps((work, list(shards), shared, reduce)))
        return pickle.loads(pickle.dumps(super().map_shards(*sent)))


@pytest.mark.usefixtures("small_samples")
def test_starts_are_left_to_workers_with_the_same_bits(votes):
    there = Elsewhere()
    assert_same(fitted(Sharded.of(votes, 2, there)), fitted(Sharded.of(votes, 2, Here(1))))
    assert {f"start {at}" for at in range(1, 5)} <= set(there.names)


class Ends(Here):
    """An executor whose client is gone after so many steps."""

    def __init__(self, n_steps):
        super().__init__(1)
        self.n_left = n_steps

    def map_shards(self, work, shards, shared=None, reduce=None):
        if isinstance(shared, tuple) and any(isinstance(each, MallowsComponents) for each in shared):
            self.n_left -= 1
            if self.n_left < 0:
                raise KeyboardInterrupt
        return super().map_shards(work, shards, shared, reduce)


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("drawn", [False, True])
def test_a_fit_goes_on_from_its_store_to_the_same_bytes(votes, open_votes, tmp_path, drawn):
    data = open_votes if drawn else votes
    k = 1 if drawn else 2
    model = permix.MallowsMixture(k, random_state=0, n_init=2, n_particles=2, max_iter=8)

    def fit(executor, store=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(Sharded.of(data, 3, executor, store))

    whole = Ends(1000)
    fit(whole).save(tmp_path / "whole.permix")
    n_steps = 1000 - whole.n_left
    assert n_steps > 5
    with pytest.raises(KeyboardInterrupt):
        fit(Ends(4), tmp_path / "store")
    rest = Ends(1000)
    fit(rest, tmp_path / "store").save(tmp_path / "resumed.permix")
    assert (tmp_path / "resumed.permix").read_bytes() == (tmp_path / "whole.permix").read_bytes()
    assert 1000 - rest.n_left == n_steps - 4
    # Again: nothing is left to do. Other data find nothing.
    done = Ends(0)
    fit(done, tmp_path / "store").save(tmp_path / "again.permix")
    assert (tmp_path / "again.permix").read_bytes() == (tmp_path / "whole.permix").read_bytes()
    whole_data = data
    for other in (whole_data[1:], whole_data[np.r_[1, 1 : len(whole_data)]]):
        data = other  # one agent fewer; as many, the first of whom says what the second does
        with pytest.raises(KeyboardInterrupt):
            fit(Ends(0), tmp_path / "store")


CLIENT = """
import os, signal, sys
import permix
from permix.mallows import fit as fitting
from permix.runtime.journal import Journal

fitting.MOST_EXACT = 200
get = Journal.get

def until_killed(self, step, compute):
    if self.n_made == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return get(self, step, compute)

Journal.get = until_killed
data = permix.read_sharded(sys.argv[1], store=sys.argv[2])
permix.MallowsMixture(3, random_state=0, n_init=4).fit(data)
"""


@pytest.mark.usefixtures("small_samples")
def test_a_client_that_is_killed_goes_on(votes, tmp_path, forks):
    (tmp_path / "votes").mkdir()
    for at in range(3):
        permix.write(votes[at::3], tmp_path / f"votes/part-{at}.soi")
    (tmp_path / "client.py").write_text(CLIENT)
    words = [str(tmp_path / "votes"), str(tmp_path / "store")]
    ended = forks.run(tmp_path / "client.py", *words)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert len(list((tmp_path / "store").glob("step-*"))) == 3
    data = permix.read_sharded(tmp_path / "votes", store=tmp_path / "store")
    fitted(data).save(tmp_path / "resumed.permix")
    assert data.journal.n_found == 3
    fitted(permix.read_sharded(tmp_path / "votes")).save(tmp_path / "whole.permix")
    assert (tmp_path / "resumed.permix").read_bytes() == (tmp_path / "whole.permix").read_bytes()


@pytest.mark.usefixtures("small_samples")
def test_a_shard_that_vanishes_stops_the_fit_with_its_name_and_nothing_is_lost(votes, tmp_path):
    files = [tmp_path / f"part-{at}.soi" for at in range(3)]
    for at, file in enumerate(files):
        permix.write(votes[at::3], file)
    gone = tmp_path / "gone"

    class Loses(Ends):
        def map_shards(self, *arguments, **options):
            try:
                return super().map_shards(*arguments, **options)
            except KeyboardInterrupt:
                files[1].rename(gone)
                self.n_left = 1000
                self.forget(arguments[1])
                return super().map_shards(*arguments, **options)

    data = permix.read_sharded(tmp_path / "part-*.soi", executor=Loses(3), store=tmp_path / "store")
    with pytest.raises(ShardError, match=r"part-1\.soi"):
        fitted(data)
    files[1].write_text("# no votes\n")
    with pytest.raises(ShardError, match=r"part-1\.soi"):  # and damaged, before any work
        fitted(data)
    gone.rename(files[1])
    fitted(data)
    assert data.journal.n_found == 3


def test_a_step_that_is_damaged_or_of_others_is_refused(tmp_path):
    journal = Journal(tmp_path, "data")
    found = journal.get(("work", 1.5), lambda: (None, np.arange(3.0), Draws(np.arange(2), 1, 2, 3)))
    assert isinstance(found[2], Draws)
    assert journal.get(("work", 1.5), dict)[2].sweep == 1
    (path,) = tmp_path.glob("step-*")
    text = b'{"parts": [], "type": "os:stat_result"}'
    write_archive(path, {"kind": "step", "result": json.loads(text)}, {})
    with pytest.raises(FileFormatError, match=r"not a step.*delete it"):
        journal.get(("work", 1.5), dict)
    path.write_bytes(b"PK")
    with pytest.raises(FileFormatError, match="damaged"):
        journal.get(("work", 1.5), dict)
    with pytest.raises(TypeError, match="no result that can be kept"):
        journal.get(("work", 2.5), lambda: object())
    with pytest.raises(TypeError, match="has no fingerprint"):
        journal.get(("work", object()), dict)
    assert len({fingerprint(x) for x in (1, 1.0, "1", (1,), [1], np.array(1), np.array([1]), True)}) == 8


def test_other_models_say_that_they_take_no_shards(votes):
    with pytest.raises(DataError, match="not fitted to data in shards yet"):
        permix.AngleClassifier().fit(Sharded.of(votes, 2), [0] * 1500)


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
@pytest.mark.parametrize("n_kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_on_workers_that_are_killed(votes, cluster, n_kills):
    """Two worker processes give the same bits, and killing them costs time, not the result."""
    from distributed import Client

    from permix.runtime.on_dask import OnDask

    one = fitted(Sharded.of(votes, 1, Here(1)))
    with Client(cluster) as client:
        assert_same(fitted(Sharded.of(votes, 7, OnDask(client))), one)
        done, killed = threading.Event(), []

        def kill():
            choose = random.Random(0)
            while not done.wait(choose.uniform(0.1, 0.5)) and len(killed) < n_kills:
                cluster.scale(2)  # a worker that could not be started again is replaced
                running = [nanny.process.pid for nanny in cluster.workers.values() if nanny.process.pid]
                if len(running) == 2 and len(client.scheduler_info(n_workers=-1)["workers"]) == 2:
                    with suppress(ProcessLookupError):  # it ended meanwhile
                        os.kill(running[choose.randrange(2)], signal.SIGKILL)
                        killed.append(running)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            for _ in range(20 * n_kills):
                assert_same(fitted(Sharded.of(votes, 7, OnDask(client))), one)
                if len(killed) >= n_kills:
                    break
        finally:
            done.set()
            thread.join()
        assert len(killed) == n_kills


def test_what_cannot_be_fitted_in_shards(votes):
    with pytest.raises(DataError, match="not fitted to data in shards yet"):
        permix.AngleClassifier().fit(Sharded.of(votes, 2), [0] * 1500)
