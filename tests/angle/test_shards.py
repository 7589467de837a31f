"""Angle-based mixtures of data in shards: the same bits however agents are divided."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.angle import fit as fitting
from permix.angle.components import AngleComponents
from permix.angle.data import AngleData, TopLists
from permix.angle.passes import sums as passes
from permix.angle.passes.sharded import ShardedRankings
from permix.data.shards.sharded import Sharded
from permix.datasets import make_mallows_mixture
from permix.errors import DataError, ShardError
from permix.runtime.executors import Here


@pytest.fixture(scope="module")
def votes():
    """1,200 full rankings of seven items, and lists of different lengths made of them."""
    full = make_mallows_mixture(1200, 7, 2, dispersion=0.6, random_state=1).data
    lists = [order[: 2 + at % 5].tolist() for at, order in enumerate(full.orders)]
    return {"full": full, "lists": permix.Rankings.from_orders(lists, items=full.items)}


@pytest.fixture
def small_samples(monkeypatch):
    """Tables of 100 rows, and samples of 200 agents, so that few data are many."""
    monkeypatch.setattr(fitting, "MOST_ROWS", 100)
    monkeypatch.setattr(fitting, "SHOWN_AGENTS", 200)


def fitted(data, k=2, **options):
    return permix.AngleMixture(k, random_state=0, n_init=2, progress=False, **options).fit(data)


def assert_same(one, other):
    assert float(one.log_likelihood_) == float(other.log_likelihood_)
    for name in ("weights_", "directions_", "concentrations_"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(one._fit.history, other._fit.history)
    assert np.array_equal(one._fit.probabilities, other._fit.probabilities)


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize(("which", "k"), [("full", 2), ("full", 1), ("lists", 2)])
def test_the_same_bits_however_agents_are_divided(votes, which, k):
    data = votes[which]
    one = fitted(Sharded.of(data, 1, Here(1)), k)
    for n_shards, executor in ((2, Here(1)), (7, Here(2)), (7, Here(1, most_held=2))):
        assert_same(fitted(Sharded.of(data, n_shards, executor), k), one)
    near, table = (fitted(each, k, tol=1e-11) for each in (Sharded.of(data, 3), data))
    assert float(near.log_likelihood_) == pytest.approx(float(table.log_likelihood_), abs=1e-5)
    assert near.directions_ == pytest.approx(table.directions_, abs=1e-3)
    assert near.concentrations_ == pytest.approx(table.concentrations_, abs=1e-2)
    assert float(one.log_likelihood_) == pytest.approx(float(one.score_samples(data).sum()), abs=1e-6)
    assert one.summary()["agents"].sum() == pytest.approx(1200, abs=1)
    assert not hasattr(one, "labels_")


def mixture(items, k=3):
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(k, len(items)))
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return AngleComponents(items, np.full(k, 1.0 / k), directions, np.array([2.1, 4.2, 8.3]), "exact")


@pytest.mark.parametrize("which", ["full", "lists"])
def test_sums_do_not_depend_on_shards_and_those_of_floats_do(votes, which, monkeypatch):
    """The broken twin does not round terms: sums of different divisions differ in their last bits."""
    known = mixture(votes[which].items)

    def steps(*divisions):
        each = [ShardedRankings(Sharded.of(votes[which], n, Here(1))) for n in divisions]
        return [data.uphill(known.tilts, np.log(known.weights), "exact") for data in each]

    def alike(found, first):
        return all(np.array_equal(mine, other) for mine, other in zip(found, first, strict=True))

    one, two, seven = steps(1, 2, 7)
    assert alike(two, one)
    assert alike(seven, one)
    kind = AngleData if which == "full" else TopLists
    assert alike(kind(votes[which]).uphill(known.tilts, np.log(known.weights), "exact"), one)
    monkeypatch.setattr(passes, "rounders_of", lambda *grids: np.zeros(len(grids)))
    plain = steps(1, 7)
    assert not alike(*plain)
    for mine, other in zip(plain[0], one, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-8)


@pytest.mark.usefixtures("small_samples")
def test_files_scores_and_answers(votes, tmp_path):
    data = Sharded.of(votes["lists"], 3)
    model = fitted(data)
    assert model.score(data) == pytest.approx(model.score(votes["lists"]), abs=1e-9)
    assert model.score(data) == model.score(Sharded.of(votes["lists"], 5))
    assert model.aic(data) == pytest.approx(model.aic(votes["lists"]), abs=1e-6)
    assert model.bic(data) == pytest.approx(model.bic(votes["lists"]), abs=1e-6)
    model.save(tmp_path / "fit.permix")
    again = permix.load(tmp_path / "fit.permix")
    assert again.summary().equals(model.summary())
    assert again.diagnostics().equals(model.diagnostics())
    from permix.angle.tables import report

    shown = report(again._fit)
    assert shown["agents"] == 1200
    assert shown["bic"] == pytest.approx(model.bic(data), abs=1e-6)
    permix.report(again, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert "1,200 agents" in text
    assert "a random sample of 200" in text
    written = permix.predict_shards(again, data, tmp_path / "answers")
    import pandas as pd

    answers = pd.concat([pd.read_parquet(file) for file in written["file"]])
    assert np.array_equal(answers["group"], model.predict(votes["lists"]))
    assert answers["score"].to_numpy() == pytest.approx(model.score_samples(votes["lists"]), abs=1e-12)


@pytest.mark.usefixtures("small_samples")
def test_what_cannot_be_fitted_in_shards(votes):
    subsets = permix.Rankings.from_orders(
        [order[:3].tolist() for order in votes["full"].orders], items=votes["full"].items, unlisted="unknown"
    )
    with pytest.raises(DataError, match="need draws"):
        fitted(Sharded.of(subsets, 2))
    with pytest.raises(DataError, match="need draws"):
        fitted(Sharded.of(votes["full"], 2), inference="sir")
    ratings = np.random.default_rng(0).integers(1, 9, size=(400, 7))
    ties = permix.Preferences.from_ratings(ratings, items=votes["full"].items)
    tied = np.array([len(set(row)) < 7 for row in ratings.tolist()])
    late = ties._take(np.append(np.flatnonzero(~tied), np.flatnonzero(tied)))
    first = int((~tied).sum()) + 1
    with pytest.raises(ShardError, match=rf"rows 1 to 200: agent {first} ties .* lists have no ties"):
        fitted(Sharded.of(late, 2))


def test_few_rows_are_fitted_as_a_table(votes):
    few = votes["full"][:300]
    one, table = fitted(Sharded.of(few, 3)), fitted(few)
    assert float(one.log_likelihood_) == float(table.log_likelihood_)
    assert one._fit.n_agents == 300


@pytest.mark.slow
@pytest.mark.usefixtures("small_samples")
def test_two_worker_processes_give_the_same_bits(votes):
    distributed = pytest.importorskip("distributed", reason="needs permix[dask]")
    from permix.runtime.on_dask import OnDask

    one = fitted(Sharded.of(votes["lists"], 1, Here(1)))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started,
        distributed.Client(started) as client,
    ):
        assert_same(fitted(Sharded.of(votes["lists"], 7, OnDask(client))), one)
