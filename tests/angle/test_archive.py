"""Saved mixtures of angle-based models: nothing is lost, and nothing that no fit writes gets in."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest

import permix
from permix import AngleMixture, Rankings
from permix.errors import FileFormatError
from permix.estimators.archive import read_model
from permix.files import RESERVED, read_archive, write_archive
from tests.estimators.conventions import few_draws

FULL = Rankings.from_orders(
    [["tea", "milk", "water", "juice"], ["milk", "tea", "water", "juice"], ["juice", "water", "tea", "milk"]],
    counts=[6, 4, 5],
)
PARTIAL = Rankings.from_orders(
    [["tea", "milk"], ["milk", "tea", "water"], ["juice"], ["water", "juice"], ["juice", "tea"]],
    items=("tea", "milk", "water", "juice"),
    unlisted=["below", "unknown", "below", "unknown", "unknown"],
    counts=[3, 1, 2, 2, 1],
)

LISTS = Rankings.from_orders([["tea", "milk"], ["juice"], ["water", "juice"]], items=PARTIAL.items)


def fitted(data, k=2, **options):
    values = {"random_state": 3, "progress": False, "n_init": 2}
    options = few_draws({"n_components": k, **options}, data, n_draws=8, n_burn_in=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AngleMixture(**(values | options)).fit(data)


CASES = {
    **{
        f"{inference}, {'full' if data is FULL else 'partial'}, K = {k}": (data, k, {"inference": inference})
        for inference in ("vi", "em", "sir", "quadrature")
        for data in (FULL, PARTIAL)
        for k in (1, 2)
    },
    "published": (FULL, 2, {"inference": "vi", "bound": "published"}),
    "approximate sir": (PARTIAL, 2, {"inference": "sir", "normalizer": "vmf"}),
    "approximate sir of one": (FULL, 1, {"inference": "sir", "normalizer": "vmf"}),
    "direction": (
        FULL,
        1,
        {"inference": "vi", "prior_strength": 2.0, "prior_direction": [1.0, 2.0, 3.0, 0.0]},
    ),
    "top lists": (LISTS, 2, {}),
    "directions by name": (
        PARTIAL,
        2,
        {
            "inference": "quadrature",
            "prior_strength": 2.0,
            "prior_direction": {"tea": 0.0, "milk": 1.0, "water": 2.0, "juice": 5.0},
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_model_comes_back_as_it_was(case, tmp_path):
    data, k, options = CASES[case]
    model = fitted(data, k, **options)
    path = tmp_path / "votes.permix"
    model.save(path)
    back = permix.load(path)
    assert isinstance(back, AngleMixture)
    before, after = model.get_params(), back.get_params()
    direction = (before.pop("prior_direction"), after.pop("prior_direction"))
    assert before == after
    assert (direction[0] is None) == (direction[1] is None)
    for name in ("weights_", "directions_", "concentrations_", "labels_", "history_"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    assert back.items_ == model.items_
    assert back.centers_ == model.centers_
    assert (back.elbo_, back.converged_, back.n_iter_) == (model.elbo_, model.converged_, model.n_iter_)
    assert back.normalizer_ == model.normalizer_
    assert float(back.log_likelihood_) == float(model.log_likelihood_)
    np.testing.assert_allclose(back.score_samples(FULL), model.score_samples(FULL), rtol=1e-12)
    np.testing.assert_array_equal(back.predict_proba(PARTIAL), model.predict_proba(PARTIAL))
    pd.testing.assert_frame_equal(back.summary(), model.summary())
    pd.testing.assert_frame_equal(back.consensus(), model.consensus())
    assert back.sample(5, random_state=0) == model.sample(5, random_state=0)
    if model._fit.draws is not None:
        for name, array in model._fit.draws.arrays.items():
            np.testing.assert_array_equal(back._fit.draws.arrays[name], array)
        assert back.posterior_["posterior"].equals(model.posterior_["posterior"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = back.fit(data)
    np.testing.assert_allclose(again.weights_, model.weights_, atol=1e-9)  # and can be fitted again
    again.save(path)
    assert permix.load(path).items_ == model.items_


def archive_of(data, k, path, **options):
    fitted(data, k, **options).save(path)
    manifest, arrays = read_archive(path)
    return {key: value for key, value in manifest.items() if key not in RESERVED}, arrays


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Honest files: one of each kind of posterior."""
    folder = tmp_path_factory.mktemp("honest")
    return {
        "vi": archive_of(FULL, 2, folder / "vi.permix", inference="vi"),
        "chain": archive_of(PARTIAL, 2, folder / "chain.permix", inference="quadrature"),
        "direct": archive_of(
            FULL,
            1,
            folder / "direct.permix",
            inference="quadrature",
            prior_strength=1.5,
            prior_direction=[1.0, 2.0, 3.0, 0.0],
        ),
        "em": archive_of(FULL, 2, folder / "em.permix", inference="em"),
    }


def fact_with(**changes):
    return lambda manifest, arrays: manifest["facts"].update(changes)


def setting_with(**changes):
    return lambda manifest, arrays: manifest["parameters"].update(changes)


def array_by(name, change):
    def edit(manifest, arrays):
        arrays[name] = change(arrays[name].copy())

    return edit


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


ANY = {
    "other number of components": setting_with(n_components=3),
    "components are true": setting_with(n_components=True),
    "components are real": setting_with(n_components=2.0),
    "restarts are text": setting_with(n_init="many"),
    "tolerance is negative": setting_with(tol=-1.0),
    "tolerance is true": setting_with(tol=True),
    "inference is unknown": setting_with(inference="evil"),
    "inference is a list": setting_with(inference=["vi"]),
    "normalizer is unknown": setting_with(normalizer="evil"),
    "another normalizer": fact_with(normalizer="exact"),
    "unknown normalizer": fact_with(normalizer="evil"),
    "shape is 0": setting_with(prior_shape=0.0),
    "rate is text": setting_with(prior_rate="0.1"),
    "threads are text": setting_with(n_jobs="all"),
    "progress is a number": setting_with(progress=1),
    "objective is text": fact_with(objective="good"),
    "fewer items": fact_with(items=["tea", "coffee", "water"]),
    "items twice": fact_with(items=["tea", "tea", "water", "milk"]),
    "items are lists": fact_with(items=[["a"], ["b"], ["c"], ["d"]]),
    "truncated directions": array_by("directions", lambda a: a[:, :-1]),
    "directions are long": array_by("directions", lambda a: 2 * a),
    "directions off the plane": array_by("directions", lambda a: np.full_like(a, 0.5)),
    "undefined directions": array_by("directions", put((0, 0), np.nan)),
    "directions are whole": array_by("directions", lambda a: a.astype(np.int64)),
    "directions are flat": array_by("directions", np.ravel),
    "weights are too large": array_by("weights", lambda a: 2 * a),
    "weights are undefined": array_by("weights", lambda a: a * np.nan),
    "weights are text": array_by("weights", lambda a: a.astype("U8")),
    "weights in two dimensions": array_by("weights", lambda a: a[None]),
    "negative concentration": array_by("concentrations", put(0, -0.1)),
    "endless concentration": array_by("concentrations", put(0, np.inf)),
    "one concentration more": array_by("concentrations", lambda a: np.append(a, 1.0)),
    "no rows": lambda manifest, arrays: arrays.update(
        probabilities=arrays["probabilities"][:0], counts=np.empty(0, np.int64)
    ),
    "rows are flat": array_by("probabilities", np.ravel),
    "rows do not sum to one": array_by("probabilities", put((0, 0), 7.0)),
    "undefined probabilities": array_by("probabilities", put((0, 0), np.nan)),
    "single precision": array_by("probabilities", lambda a: a.astype(np.float32)),
    "counts of nobody": array_by("counts", put(0, 0)),
    "counts that overflow": array_by("counts", lambda a: np.full_like(a, 2**62)),
    "counts of fewer rows": array_by("counts", lambda a: a[:-1]),
    "real counts": array_by("counts", lambda a: a.astype(float)),
    "history in two dimensions": array_by("history", lambda a: a[None]),
    "undefined history": array_by("history", lambda a: np.append(a, np.nan)),
    "restarts in two dimensions": array_by("start_objectives", lambda a: a[None]),
    "guarded by numbers": array_by("guarded", lambda a: a.astype(float)),
    "guarded too often": array_by("guarded", lambda a: np.append(a, True)),
    "likelihood alone": array_by("log_likelihood", lambda a: a[:1]),
    "endless likelihood": array_by("log_likelihood", put(0, np.inf)),
    "undefined error": array_by("log_likelihood", put(1, np.nan)),
    "negative error": array_by("log_likelihood", put(1, -1.0)),
}
SPECIAL = {
    "vi": {
        "no rate": lambda manifest, arrays: arrays.pop("variational/rates"),
        "shape below 0": array_by("variational/shapes", put(0, -1.0)),
        "endless rate": array_by("variational/rates", put(0, np.inf)),
        "negative length": array_by("variational/lengths", put(0, -1.0)),
        "undefined length": array_by("variational/lengths", put(0, np.nan)),
        "three shapes": array_by("variational/shapes", lambda a: np.append(a, 1.0)),
        "directions of q are long": array_by("variational/directions", lambda a: 3 * a),
        "directions of q are few": array_by("variational/directions", lambda a: a[:1]),
        "no count": array_by("variational/counts", put(0, 0.0)),
        "q under maximum likelihood": setting_with(inference="em"),
        "evidence of two": lambda manifest, arrays: arrays.update(evidence=np.array([15.0, 3.0])),
        "no objective": fact_with(objective=None),
        "all first": array_by("agreed", put(0, 4)),
    },
    "chain": {
        "no draws": lambda manifest, arrays: arrays.pop("draws/weights"),
        "moves are numbers": fact_with(moves=[1]),
        "fewer moves": fact_with(moves=["allocation"]),
        "seeds are text": fact_with(seeds="abc"),
        "an objective": fact_with(objective=1.0),
        "truncated draws": array_by("draws/concentrations", lambda a: a[:, :-1]),
        "undefined draws": array_by("draws/concentrations", put((0, 0, 0), np.nan)),
        "negative draws": array_by("draws/concentrations", put((0, 0, 0), -1.0)),
        "weights of draws": array_by("draws/weights", lambda a: 2 * a),
        "long directions": array_by("draws/directions", lambda a: 2 * a),
        "directions of draws off the plane": array_by("draws/directions", lambda a: np.full_like(a, 0.5)),
        "flat directions": array_by("draws/directions", lambda a: a[..., 0]),
        "labels beyond": array_by("draws/labels", put((0, 0, 0), 2)),
        "labels of fewer agents": array_by("draws/labels", lambda a: a[:, :, :-1]),
        "real labels": array_by("draws/labels", lambda a: a.astype(float)),
        "a chain less": array_by("draws/labels", lambda a: a[:1]),
        "no concentrations": lambda manifest, arrays: arrays.pop("draws/concentrations"),
        "draws of something else": lambda manifest, arrays: arrays.update({"draws/evil": np.zeros((2, 8))}),
        "accepted of one chain": array_by("statistics/accepted", lambda a: a[:1]),
        "accepted is text": array_by("statistics/accepted", lambda a: a.astype("U8")),
    },
    "direct": {
        "evidence is short": array_by("evidence", lambda a: a[:1]),
        "evidence is long": array_by("evidence", lambda a: np.append(a, 1.0)),
        "evidence is text": array_by("evidence", lambda a: a.astype("U8")),
        "length beyond all rankings": array_by("evidence", put(1, 99.0)),
        "undefined length": array_by("evidence", put(1, np.nan)),
        "nobody": array_by("evidence", put(0, 0.0)),
        "prior without a direction": setting_with(prior_direction=None),
        "direction of fewer items": setting_with(prior_direction=[1.0, 2.0, 3.0]),
        "direction of other items": setting_with(prior_direction={"items": ["x"], "scores": [1.0]}),
        "direction without scores": setting_with(prior_direction={"items": ["x"]}),
        "direction is flat": setting_with(prior_direction=[1.0, 1.0, 1.0, 1.0]),
        "strength is negative": setting_with(prior_strength=-1.0),
    },
    "em": {
        "q from nowhere": setting_with(inference="vi"),
        "draws from nowhere": setting_with(inference="sir"),
        "moves from nowhere": fact_with(moves=["parameters"]),
        "seeds from nowhere": fact_with(seeds=[{}]),
    },
}


def refused(archive, edit, path):
    manifest, arrays = copy.deepcopy(archive)
    edit(manifest, arrays)
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError, match=r"fit together|does not know"):
        read_model(path)[1]


@pytest.mark.parametrize("kind", ["vi", "chain"])
@pytest.mark.parametrize("what", ANY)
def test_what_no_fit_writes_is_refused(archives, kind, what, tmp_path):
    refused(archives[kind], ANY[what], tmp_path / "hostile.permix")


@pytest.mark.parametrize(("kind", "what"), [(kind, what) for kind, each in SPECIAL.items() for what in each])
def test_what_no_such_fit_writes_is_refused(archives, kind, what, tmp_path):
    refused(archives[kind], SPECIAL[kind][what], tmp_path / "hostile.permix")


@pytest.mark.parametrize("kind", ["vi", "chain", "direct", "em"])
def test_what_a_fit_writes_is_taken(archives, kind, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *archives[kind])
    assert read_model(path)[1].components.n_items == 4


def test_a_seed_that_is_an_object_is_not_kept(tmp_path):
    model = fitted(FULL, 2, random_state=np.random.default_rng(0), tol=np.float32(0.5))
    model.save(tmp_path / "fit.permix")
    back = read_model(tmp_path / "fit.permix")[1].settings
    assert back.random_state is None
    assert back.tol == 0.5


def test_large_files_need_a_word(archives, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *archives["vi"])
    with pytest.raises(FileFormatError, match="max_bytes"):
        read_model(path, max_bytes=100)
