"""Chains over agents in shards draw from the posterior, and the same bits however agents are divided."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import permix
from permix.data.shards.sharded import Sharded
from permix.datasets import make_generalized_mallows_mixture
from permix.dp_mallows.moves import Centers
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.results import ClusterSummaries
from permix.dp_mallows.sharded import fit as sharded_fit
from permix.dp_mallows.sharded import moves as sharded_moves
from permix.dp_mallows.sharded.fit import sampled, sharded_model, stages_of
from permix.dp_mallows.sharded.moves import PlaceAll, Proposal, ShardedSplitMerge, shares_of
from permix.dp_mallows.sharded.singles import Batch, Singles
from permix.dp_mallows.sharded.state import ShardedState
from permix.errors import DataError, FileFormatError, ShardError
from permix.kernels.streams import draw_key
from permix.moves import Concentration, Cycle
from permix.runtime import threads
from permix.runtime.executors import Here
from permix.sampling import chain as chain_of_sampling
from permix.sampling.loop import run_chains
from tests.dp_mallows.list_cases import agrees, visits_of
from tests.dp_mallows.test_moves import CASES, posterior


def state_of(name, n_shards=1, seed=0, n_clusters=2):
    """A state of a case whose agents are all on record."""
    case = CASES[name]
    lists = permix.Rankings.from_orders([list(row) for row in case.lists], items=range(4))
    data = Sharded.of(lists, n_shards, Here(1))
    settings = DPMallowsParameters(
        prior=case.prior, prior_strength=case.strength, prior_rate=case.rates, n_initial_clusters=n_clusters
    )
    on_record, sample = sampled(data, np.array([1, 2], dtype=np.uint64), 10)
    assert on_record.tolist() == list(range(len(case.lists)))
    state = ShardedState(sharded_model(data, on_record, sample, stages_of(data), settings), 0)
    rng = np.random.default_rng(seed)
    places = np.stack([rng.permutation(4) for _ in range(n_clusters)], axis=1).astype(np.int16)
    nobody = np.full(n_clusters, -1, dtype=np.int64)
    state.place(places, np.ones((3, n_clusters)), np.ones(n_clusters), draw_key(rng), nobody)
    return state


MOVES = {
    "split-merge": [PlaceAll, ShardedSplitMerge],
    "singles": [PlaceAll, Singles],
    "all": [PlaceAll, ShardedSplitMerge, Singles],
}


def chain(name):
    return Cycle([*(move() for move in MOVES[name]), Centers()])


def visits(name, moves, n_steps, seed=1):
    return visits_of(state_of(name, 2), chain(moves), posterior(name).partitions, n_steps, seed, checks=20)


def suits(name, moves, n_steps, seed=1):
    enumeration = posterior(name)
    return agrees(visits(name, moves, n_steps, seed), enumeration.partitions, enumeration.chances)


@pytest.mark.parametrize(("name", "moves"), [("five", "split-merge"), ("pitman-yor", "singles")])
def test_chains_visit_partitions_as_often_as_the_posterior_says(name, moves):
    assert suits(name, moves, 800)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five", "pitman-yor", "other decays", "mfm"])
@pytest.mark.parametrize("moves", MOVES)
def test_long_chains(name, moves):
    assert suits(name, moves, 20_000)


def no_allocation(monkeypatch):
    monkeypatch.setattr(sharded_moves, "blind_allocation", lambda first, second: 0.0)


def centers_are_cheap(monkeypatch):
    right = Proposal.centers

    def centers(self, *given):
        gain, places = right(self, *given)
        return gain + 1.0, places

    monkeypatch.setattr(Proposal, "centers", centers)


def nobody_stays(monkeypatch):
    nobody = property(lambda self: np.full(self.n_clusters, -1))
    monkeypatch.setattr(ShardedState, "staying", nobody)


def a_birth_is_too_easy(monkeypatch):
    right = Batch._log_single
    monkeypatch.setattr(Batch, "_log_single", lambda self, *given: right(self, *given) + 1.0)


TWINS = {
    no_allocation: "split-merge",
    centers_are_cheap: "split-merge",
    nobody_stays: "split-merge",
    a_birth_is_too_easy: "singles",
}


@pytest.mark.parametrize("twin", TWINS)
def test_broken_twins_are_found_out(twin, monkeypatch):
    twin(monkeypatch)
    assert not suits("five", TWINS[twin], 800)


def sizes_of_two(shares, n_steps, rng):
    """How often two clusters of five agents who say nothing have 4 and 1, if all but one of each move."""
    sizes, uneven = np.array([3, 2]), 0
    for _ in range(n_steps):
        weights = shares(rng, sizes.astype(float), 0.0)
        first = 1 + rng.binomial(3, weights[0] / weights.sum())
        sizes = np.array([first, 5 - first])
        uneven += sizes.max() == 4
    return uneven / n_steps


def test_shares_make_up_for_those_who_stay():
    # A Dirichlet process weighs 5 partitions into 4 and 1 by 3! 0!, and 10 into 3 and 2 by 2! 1!.
    rng = np.random.default_rng(0)
    assert sizes_of_two(shares_of, 20_000, rng) == pytest.approx(0.6, abs=0.02)
    # The twin, which forgets that any member of a cluster might have stayed.
    assert sizes_of_two(lambda rng, sizes, _: rng.standard_gamma(sizes), 20_000, rng) < 0.55
    # A Pitman-Yor process with discount d weighs them by (1 - d)(2 - d)(3 - d) and (1 - d)(1 - d)(2 - d).
    exact = 5 * (3 - 0.8) / (5 * (3 - 0.8) + 10 * (1 - 0.8))
    drawn = sizes_of_two(lambda rng, sizes, _: shares_of(rng, sizes, 0.8), 20_000, rng)
    assert drawn == pytest.approx(exact, abs=0.02)
    # The twin, which forgets the discount.
    assert sizes_of_two(lambda rng, sizes, _: shares_of(rng, sizes, 0.0), 20_000, rng) < exact - 0.1


# Fits.


@pytest.fixture(scope="module")
def votes():
    """Lists of 600 agents in three groups."""
    made = make_generalized_mallows_mixture(600, 6, 3, theta=1.2, lengths=(1, 5), random_state=2)
    return made.data


@pytest.fixture
def few_is_many(monkeypatch):
    """Fits go over shards from 50 agents on, 80 of whom are on record."""
    monkeypatch.setattr(sharded_fit, "MANY_AGENTS", 50)
    monkeypatch.setattr(sharded_fit, "ON_RECORD", 80)


def fitted(data, **options):
    few = {"n_draws": 12, "n_burn_in": 6, "n_chains": 2, "random_state": 3, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains this short disagree
        return permix.DPMallowsMixture(**(few | options)).fit(data)


@pytest.fixture(scope="module")
def one(votes):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sharded_fit, "MANY_AGENTS", 50)
        patched.setattr(sharded_fit, "ON_RECORD", 80)
        return fitted(Sharded.of(votes, 1, Here(1)))


def assert_same(model, other):
    for name, array in model._fit.draws.arrays.items():
        assert other._fit.draws.arrays[name].tobytes() == array.tobytes(), name
    for name in ("starts", "sizes", "centers", "theta", "labels"):
        assert np.array_equal(getattr(model._fit.clusters, name), getattr(other._fit.clusters, name)), name


@pytest.mark.usefixtures("few_is_many")
def test_the_same_bits_however_agents_are_divided(votes, one, monkeypatch):
    assert sum(one._fit.draws.statistics["accepted"][:, 1:3].ravel()) > 0  # clusters came and went
    assert_same(fitted(Sharded.of(votes, 2, Here(1))), one)
    assert_same(fitted(Sharded.of(votes, 7, Here(2, most_held=3)), n_jobs=1), one)
    monkeypatch.setattr(threads, "WORTH_THREADS", 0)
    assert_same(fitted(Sharded.of(votes, 1, Here(2)), n_jobs=2), one)


def test_who_belongs_where_follows_from_what_is_sent():
    """A worker that lost its shard finds the same labels, after splits, merges and births as well."""
    state, move, rng = state_of("five"), chain("all"), np.random.default_rng(3)
    n_edits = 0
    for _ in range(60):
        move.step(rng, state)
        n_edits += len(state.placing.edits)
        state.model.data.forget()
        again = state._look()
        for mine, theirs in zip(state.seen, again, strict=True):
            assert np.array_equal(mine, theirs)
    assert n_edits > 20


def test_a_checkpoint_holds_all_that_matters():
    state, move, rng = state_of("five"), chain("all"), np.random.default_rng(4)
    kinds = set()
    for _ in range(40):
        move.step(rng, state)
        other = state_of("five", n_shards=3)
        other.restore({name: value.copy() for name, value in state.checkpoint().items()})
        kinds |= {(edit.division is not None, edit.agent >= 0) for edit in state.placing.edits}
        for name, value in state.record().items():
            assert np.array_equal(other.record()[name], value), name
    assert len(kinds) == 3  # splits, births, and merges
    good = state.checkpoint()
    damaged = {
        "places": np.zeros_like(good["places"]),
        "placing_words": good["placing_words"] | np.uint64(0x7FFF),
        "placing_theta": good["placing_theta"][:-1],
        "edits": np.full((1, 5), 7),
        "placing_seated": good["placing_seated"][:-1],
    }
    for name, value in damaged.items():
        with pytest.raises(DataError, match="checkpoint"):
            other.restore(good | {name: value})


class Stop(Exception):
    pass


@pytest.mark.usefixtures("few_is_many")
def test_a_run_that_broke_off_goes_on(votes, one, tmp_path, monkeypatch):
    """The client dies and begins again, with other shards, and ends with the same bytes."""
    monkeypatch.setitem(run_chains.__kwdefaults__, "checkpoint_seconds", 0.0)
    monkeypatch.setattr(chain_of_sampling, "REFRESH", 4)
    chosen = {"store": str(tmp_path / "store"), "n_jobs": 1}
    step = Concentration.step
    for breaks, n_shards in ((9, 2), (14, 3)):
        steps = iter(range(breaks))

        def limited(self, rng, state, steps=steps):
            if next(steps, None) is None:
                raise Stop
            return step(self, rng, state)

        with monkeypatch.context() as patched:
            patched.setattr(Concentration, "step", limited)
            with pytest.raises(Stop):
                fitted(Sharded.of(votes, n_shards, Here(1)), **chosen)
    assert_same(fitted(Sharded.of(votes, 4, Here(1)), **chosen), one)
    with pytest.raises(DataError, match="belongs to another run"):
        fitted(Sharded.of(votes[:-1], 4, Here(1)), **chosen)


def test_files_and_answers(votes, one, tmp_path):
    one.save(tmp_path / "fit.permix")
    again = permix.load(tmp_path / "fit.permix")
    assert again.summary().equals(one.summary())
    assert abs(int(again.cluster_sizes_.sum()) - 600) <= again.n_clusters_
    clusters = one._fit.clusters  # a new agent may be of a group of its own
    new = np.mean([np.exp(clusters.log_weights(d)[-1]) for d in range(clusters.n_draws)])
    assert again.weights_.sum() == pytest.approx(1.0 - new)
    assert not hasattr(again, "labels_")
    assert len(again.point_estimate_.labels) == 80
    for d in range(one._fit.clusters.n_draws):
        assert one._fit.clusters.sizes[one._fit.clusters.of_draw(d)].sum() == 600
    # Intervals of shares are those of 600 agents: chains count all, though 80 are on record.
    summaries = ClusterSummaries(again._fit)
    share, (low, high) = summaries.shares[0], summaries.share_intervals[:, 0]
    assert high - low > 0.9 * 2 * 1.645 * np.sqrt(share * (1 - share) / 601)
    permix.report(again, tmp_path / "report.md")
    said = (tmp_path / "report.md").read_text()
    assert "600 agents" in said
    assert "a random sample of 80" in said
    data = Sharded.of(votes, 3)
    written = permix.predict_shards(again, data, tmp_path / "answers")
    assert written["agents"].sum() == 600
    scores = np.repeat(one.score_samples(votes), votes.counts)
    assert np.average(written["score"], weights=written["agents"]) == pytest.approx(scores.mean(), abs=1e-9)
    with pytest.raises(DataError, match="shard by shard"):
        one.predict(data)


def test_files_that_do_not_fit_together_are_refused(one, tmp_path):
    for name, value in {"sampled_from": 599, "less": 79}.items():
        twin = permix.DPMallowsMixture()._adopt(dataclasses.replace(one._fit, sampled_from=value))
        twin.save(tmp_path / f"{name}.permix")
        with pytest.raises(FileFormatError):
            permix.load(tmp_path / f"{name}.permix")


@pytest.mark.usefixtures("few_is_many")
def test_what_shards_refuse(votes, monkeypatch):
    data = Sharded.of(votes, 2, Here(1))
    for options in ({"sampler": "beta-gibbs"}, {"assignments": "collapsed"}, {"n_initial_clusters": 81}):
        with pytest.raises(DataError, match=next(iter(options))):
            fitted(data, **options)
    monkeypatch.setattr(sharded_fit, "MOST_PAIRS", 100)
    with pytest.raises(DataError, match="counts for each group"):
        fitted(data)
    subsets = permix.Rankings.from_orders([[0, 1], [2, 1]] * 40, items=range(4), unlisted="unknown")
    with pytest.raises(ShardError, match=r"rows 1 to 40: .*takes top lists"):
        fitted(Sharded.of(subsets, 2, Here(1)))


def test_few_agents_are_fitted_as_a_table(votes):
    shards = fitted(Sharded.of(votes, 3, Here(1)))
    assert_same(shards, fitted(permix.Preferences.from_rankings(votes).collapse()))
    assert not hasattr(shards, "labels_")
