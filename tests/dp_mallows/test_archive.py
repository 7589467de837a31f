"""Saved mixtures of generalized Mallows models: nothing is lost, and nothing that no fit writes gets in."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import permix
from permix.dp_mallows.archive import CLUSTERS
from permix.dp_mallows.draws import ClusterDraws
from permix.errors import DataError, FileFormatError
from permix.estimators.archive import read_model, write_model
from permix.files import RESERVED, read_archive, write_archive
from permix.partitions import Gamma
from tests.dp_mallows.cases import fit_of


def load_fit(path, **options):
    return read_model(path, **options)[1]


@pytest.fixture
def archive(tmp_path):
    """Manifest and arrays of an honest file, as they go into ``write_archive``."""
    path = tmp_path / "honest.permix"
    write_model(fit_of(agents=["anna", "bo", "1", "3", "4"]), path)
    manifest, arrays = read_archive(path)
    return {key: value for key, value in manifest.items() if key not in RESERVED}, arrays


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"items": (3, 7, 10_000, 12)},
        {"items": ("a", 2, "ü ≻ 'x'", "d")},
        {"agents": np.array(["anna", 7, "7", "ü", 0], dtype=object)},
        {"agents": [3, 1, 4, 15, 9]},
        {"concentration": Gamma(2.0, 0.5), "prior_rate": [0.5, 1.0, 2.0]},
        {"sampler": "slice-gibbs", "prior_strength": 2, "loss": "binder", "n_jobs": 3},
        {"discount": 0.25, "concentration": -0.1, "n_initial_clusters": 2},
        {"prior": "mfm"},
        {"prior": permix.MixtureOfFiniteMixtures(2.0, 0.5)},
        {"lists": [(0, 1), (2,), (3, 2), (3,), (0, 2)]},
    ],
)
def test_a_fit_comes_back_as_it_was(tmp_path, options):
    fit = fit_of(**options)
    write_model(fit, tmp_path / "fit.permix")
    back = load_fit(tmp_path / "fit.permix")
    assert back.settings.as_dict() == fit.settings.as_dict()
    assert back.items == fit.items
    assert back.rankings == fit.rankings
    assert back.rankings.agents.tolist() == fit.rankings.agents.tolist()
    for name in CLUSTERS:
        found, truth = getattr(back.clusters, name), getattr(fit.clusters, name)
        np.testing.assert_array_equal(found, truth)
        assert found.dtype == truth.dtype
    assert back.clusters.prior == fit.clusters.prior
    assert set(back.draws.arrays) == set(fit.draws.arrays)
    for name, values in fit.draws.arrays.items():
        np.testing.assert_array_equal(back.draws.arrays[name], values)
    assert back.draws.statistics["moves"] == fit.draws.statistics["moves"]
    assert back.draws.seeds == fit.draws.seeds
    np.testing.assert_array_equal(back.estimate.labels, fit.estimate.labels)
    for name in ("n_clusters", "loss", "expected_loss", "best_draw_loss", "n_runs"):
        assert getattr(back.estimate, name) == getattr(fit.estimate, name)


def test_a_seed_that_is_an_object_is_not_kept(tmp_path):
    fit = fit_of(random_state=np.random.default_rng(0), n_draws=np.int64(3))
    write_model(fit, tmp_path / "fit.permix")
    assert load_fit(tmp_path / "fit.permix").settings.random_state is None


def test_the_estimator_comes_back(tmp_path):
    fit = fit_of()
    write_model(fit, tmp_path / "fit.permix")
    model = permix.load(tmp_path / "fit.permix")
    assert isinstance(model, permix.DPMallowsMixture)
    assert model.get_params() == fit.settings.as_dict()
    assert model.items_ == fit.items


def test_nothing_is_written_over_a_folder(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        write_model(fit_of(), tmp_path)


def test_times_are_not_kept(tmp_path):
    one, other = fit_of(), fit_of()
    other.draws.statistics["seconds"] = np.array([[9.0, 8.0]])
    write_model(one, tmp_path / "one.permix")
    write_model(other, tmp_path / "other.permix")
    assert (tmp_path / "one.permix").read_bytes() == (tmp_path / "other.permix").read_bytes()


def setting_with(**changes):
    return lambda manifest, arrays: manifest["parameters"].update(changes)


def fact_with(**changes):
    return lambda manifest, arrays: manifest["facts"].update(changes)


def kind_of(name):
    return lambda manifest, arrays: manifest.update(kind=name)


def array_by(name, change):
    def edit(manifest, arrays):
        arrays[name] = change(arrays[name].copy())

    return edit


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


def drop(name):
    return lambda manifest, arrays: arrays.pop(name)


HOSTILE = {
    "another kind": kind_of("Nonsense"),
    "another model's kind": kind_of("MallowsMixture"),
    "no parameters": lambda manifest, arrays: manifest.update(parameters=None),
    "a parameter unknown": setting_with(evil=1),
    "a parameter left out": lambda manifest, arrays: manifest["parameters"].pop("loss"),
    "sampler is a list": setting_with(sampler=["exact"]),
    "strength is text": setting_with(prior_strength="1"),
    "strength is 0": setting_with(prior_strength=0),
    "strength is true": setting_with(prior_strength=True),
    "discount is 1": setting_with(discount=1.0),
    "split-merge is a number": setting_with(split_merge=1),
    "no initial clusters": setting_with(n_initial_clusters=0),
    "threads are true": setting_with(n_jobs=True),
    "concentration is text": setting_with(concentration="1"),
    "concentration is negative": setting_with(concentration=-1.0),
    "concentration is another prior": setting_with(
        concentration={"prior": "DirichletProcess", "concentration": 1.0}
    ),
    "concentration should have been drawn": setting_with(
        concentration={"prior": "Gamma", "shape": 1.0, "rate": 1.0}
    ),
    "rate is text": setting_with(prior_rate="1"),
    "rate is 0": setting_with(prior_rate=0.0),
    "rates are a table": setting_with(prior_rate=[[1.0]]),
    "no rates": setting_with(prior_rate=[]),
    "fewer rates than places": setting_with(prior_rate=[1.0, 1.0]),
    "published and parallel": setting_with(sampler="beta-gibbs", assignments="parallel"),
    "seed is text": setting_with(random_state="zz"),
    "seed is negative": setting_with(random_state=-1),
    "items are text": fact_with(items="abcd"),
    "one item": fact_with(items=["tea"]),
    "fewer items": fact_with(items=["tea", "coffee", "water"]),
    "more items": fact_with(items=["tea", "coffee", "water", "milk", "juice"]),
    "items twice": fact_with(items=["tea", "tea", "water", "milk"]),
    "items are real": fact_with(items=[0.0, 1.0, 2.0, 3.0]),
    "moves are text": fact_with(moves="all"),
    "a move more": fact_with(moves=["assignments", "centers", "more"]),
    "seeds are numbers": fact_with(seeds=[1]),
    "seeds of two chains": fact_with(seeds=[{"entropy": 5}, {"entropy": 6}]),
    "interrupted is a number": fact_with(interrupted=1),
    "estimate of another loss": fact_with(loss="evil"),
    "more facts": fact_with(evil=1),
    "loss of the estimate is text": fact_with(expected_loss="0"),
    "runs are real": fact_with(n_runs=1.5),
    "one array more": lambda manifest, arrays: arrays.update(more=np.zeros(3)),
    "one array of data more": lambda manifest, arrays: arrays.update({"data/more": np.zeros(3)}),
    "no lists": drop("data/orders"),
    "no counts": drop("data/counts"),
    "no centers": drop("clusters/centers"),
    "no labels": drop("draws/labels"),
    "no estimate": drop("point_estimate"),
    "names without kinds": drop("data/agents_are_numbers"),
    "list of nothing": array_by("data/orders", put((3, 0), -1)),
    "list with a gap": array_by("data/orders", put((0, 0), -1)),
    "item twice": array_by("data/orders", put((0, 0), 1)),
    "item beyond": array_by("data/orders", put((0, 0), 4)),
    "item below -1": array_by("data/orders", put((3, 1), -2)),
    "lists are real": array_by("data/orders", lambda a: a.astype(float)),
    "lists are wide": array_by("data/orders", lambda a: a.astype(np.int64)),
    "lists are flat": array_by("data/orders", np.ravel),
    "empty column": array_by("data/orders", lambda a: np.hstack([a, np.full((5, 1), -1, np.int32)])),
    "shorter lists": array_by("data/orders", lambda a: a[:, :2]),
    "fewer lists": array_by("data/orders", lambda a: a[:4]),
    "counts of nobody": array_by("data/counts", put(0, 0)),
    "counts of more": array_by("data/counts", put(0, 3)),
    "counts that overflow": array_by("data/counts", lambda a: np.full_like(a, 2**62)),
    "fewer names": array_by("data/agents", lambda a: a[:-1]),
    "names are numbers": array_by("data/agents_are_numbers", put(0, True)),
    "labels of one agent less": array_by("draws/labels", lambda a: a[:, :, :-1]),
    "labels of a draw less": array_by("draws/labels", lambda a: a[:, :-1]),
    "label beyond": array_by("draws/labels", put((0, 0, 0), 200)),
    "an agent more in the draws": array_by(
        "draws/labels", lambda a: np.concatenate([a, a[:, :, :1]], axis=2)
    ),
    "undefined log joint": array_by("draws/log_joint", put((0, 0), np.nan)),
    "other number of clusters": array_by("draws/n_groups", put((0, 0), 3)),
    "estimate skips a label": array_by("point_estimate", lambda a: 2 * a),
    "estimate of fewer": array_by("point_estimate", lambda a: a[:-1]),
    "estimate is negative": array_by("point_estimate", put(0, -1)),
    "starts late": array_by("clusters/starts", put(0, 1)),
    "starts go back": array_by("clusters/starts", put(1, 6)),
    "starts end early": array_by("clusters/starts", put(3, 6)),
    "starts are 32 bits": array_by("clusters/starts", lambda a: a.astype(np.int32)),
    "no draws": lambda manifest, arrays: arrays.update(
        {
            "clusters/starts": np.zeros(1, np.int64),
            "clusters/labels": np.zeros((0, 7), np.int32),
            "clusters/sizes": np.zeros(0, np.int64),
            "clusters/centers": np.zeros((0, 4), np.int32),
            "clusters/theta": np.zeros((0, 3)),
            "clusters/concentration": np.zeros(0),
        }
    ),
    "sizes of others": array_by("clusters/sizes", put(0, 5)),
    "cluster label beyond": array_by("clusters/labels", put((0, 0), 2)),
    "cluster label negative": array_by("clusters/labels", put((0, 0), -1)),
    "empty cluster": array_by("clusters/labels", put(0, 0)),
    "center repeats": array_by("clusters/centers", put((0, 0), 9)),
    "center twice": array_by("clusters/centers", lambda a: np.zeros_like(a)),
    "one center less": array_by("clusters/centers", lambda a: a[:-1]),
    "centers of three items": array_by("clusters/centers", lambda a: a[:, :3]),
    "centers are wide": array_by("clusters/centers", lambda a: a.astype(np.int64)),
    "negative decay": array_by("clusters/theta", put((0, 0), -0.1)),
    "endless decay": array_by("clusters/theta", put((0, 0), np.inf)),
    "undefined decay": array_by("clusters/theta", put((0, 0), np.nan)),
    "one stage less": array_by("clusters/theta", lambda a: a[:, :2]),
    "one stage more": array_by("clusters/theta", lambda a: np.hstack([a, a[:, :1]])),
    "single precision": array_by("clusters/theta", lambda a: a.astype(np.float32)),
    "no concentration": array_by("clusters/concentration", put(0, 0.0)),
    "undefined concentration": array_by("clusters/concentration", put(0, np.nan)),
    "concentrations of fewer": array_by("clusters/concentration", lambda a: a[:-1]),
    "acceptance of one move": array_by("statistics/accepted", lambda a: a[:, :1]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_no_fit_writes_is_refused(archive, what, tmp_path):
    manifest, arrays = copy.deepcopy(archive)
    HOSTILE[what](manifest, arrays)
    path = tmp_path / "hostile.permix"
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError, match=r"fit together|does not know"):
        load_fit(path)


def test_what_a_fit_writes_is_taken(archive, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *archive)
    assert isinstance(load_fit(path).clusters, ClusterDraws)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "fit.permix"
    write_model(fit_of(), path)
    content = path.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            load_fit(path)


def test_large_files_need_a_word(tmp_path):
    write_model(fit_of(), tmp_path / "fit.permix")
    with pytest.raises(FileFormatError, match="max_bytes"):
        load_fit(tmp_path / "fit.permix", max_bytes=100)
