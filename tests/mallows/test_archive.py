"""Saved mixtures of Mallows models: nothing is lost, and nothing that no fit writes gets in."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from permix.estimators.load import KINDS, _found, load_fit, load_mixture

import permix
from permix.errors import DataError, FileFormatError
from permix.files import RESERVED, read_archive, write_archive
from permix.mallows.archive import save_mallows
from permix.mallows.fit import MallowsSettings
from tests.mallows.cases import fit_of, two_kinds


@pytest.fixture
def archive(tmp_path):
    """Manifest and arrays of an honest file, as they go into ``write_archive``."""
    path = tmp_path / "honest.permix"
    save_mallows(fit_of(two_kinds()), path)
    manifest, arrays = read_archive(path)
    return {key: value for key, value in manifest.items() if key not in RESERVED}, arrays


@pytest.mark.parametrize("items", [("tea", "coffee", "water"), (3, 7, 10_000), ("a", 2, "ü ≻ 'x'")])
def test_a_fit_comes_back_as_it_was(tmp_path, items):
    fit = fit_of(two_kinds(items), converged=False, interrupted=True)
    path = tmp_path / "fit.permix"
    save_mallows(fit, path)
    back = load_fit(path)
    assert back.settings == fit.settings
    assert back.components.items == items
    for name in ("weights", "centers", "decays"):
        np.testing.assert_array_equal(getattr(back.components, name), getattr(fit.components, name))
    for name in ("probabilities", "counts", "history", "restart_log_likelihoods", "labels"):
        np.testing.assert_array_equal(getattr(back, name), getattr(fit, name))
    assert (back.log_likelihood, back.log_likelihood.standard_error) == (-33.5, 0.25)
    assert (back.converged, back.interrupted, back.n_iterations) == (False, True, 3)


def test_a_seed_that_is_an_object_is_not_kept(tmp_path):
    rng = np.random.default_rng(0)
    fit = fit_of(
        two_kinds(),
        settings=MallowsSettings(2, n_restarts=np.int64(3), tol=np.float32(0.5), random_state=rng),
    )
    save_mallows(fit, tmp_path / "fit.permix")
    back = load_fit(tmp_path / "fit.permix").settings
    assert back.random_state is None
    assert (back.n_restarts, back.tol) == (3, 0.5)


def test_the_estimator_comes_back(tmp_path):
    fit = fit_of(two_kinds())
    save_mallows(fit, tmp_path / "fit.permix")
    model = permix.load(tmp_path / "fit.permix")
    assert isinstance(model, permix.MallowsMixture)
    assert model.get_params() == {
        field.name: getattr(fit.settings, field.name) for field in dataclasses.fields(fit.settings)
    }
    assert model.centers_.items == ("tea", "coffee", "water", "milk")


def test_the_other_reader_names_what_it_found(tmp_path):
    save_mallows(fit_of(two_kinds()), tmp_path / "fit.permix")
    with pytest.raises(FileFormatError, match="holds no DPMixture but a MallowsFit"):
        load_mixture(tmp_path / "fit.permix")


def test_nothing_is_written_over_a_folder(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        save_mallows(fit_of(two_kinds()), tmp_path)


def manifest_with(**changes):
    return lambda manifest, arrays: manifest.update(changes)


def setting_with(**changes):
    return lambda manifest, arrays: manifest["settings"].update(changes)


def array_by(name, change):
    def edit(manifest, arrays):
        arrays[name] = change(arrays[name].copy())

    return edit


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


HOSTILE = {
    "another kind": manifest_with(kind="Nonsense"),
    "another model's kind": manifest_with(kind="DPMixture"),
    "no settings": manifest_with(settings=None),
    "settings unknown": setting_with(evil=1),
    "settings left out": lambda manifest, arrays: manifest["settings"].pop("tol"),
    "other number of components": setting_with(n_components=3),
    "no components": setting_with(n_components=0),
    "components are true": setting_with(n_components=True),
    "components are real": setting_with(n_components=2.0),
    "restarts are text": setting_with(n_restarts="many"),
    "tolerance is text": setting_with(tol="small"),
    "tolerance is negative": setting_with(tol=-1.0),
    "tolerance is true": setting_with(tol=True),
    "search is unknown": setting_with(center_search="evil"),
    "search is a list": setting_with(center_search=["local"]),
    "floor is 1": setting_with(min_dispersion=1.0),
    "floor is text": setting_with(min_dispersion="0.5"),
    "threads are text": setting_with(n_jobs="all"),
    "threads are true": setting_with(n_jobs=True),
    "progress is a number": setting_with(progress=1),
    "seed is text": manifest_with(random_state="zz"),
    "seed is negative": manifest_with(random_state=-1),
    "converged is a number": manifest_with(converged=1),
    "converged is missing": lambda manifest, arrays: manifest.pop("converged"),
    "interrupted is text": manifest_with(interrupted="no"),
    "items are text": manifest_with(items="abcd"),
    "no items": manifest_with(items=[]),
    "items left out": lambda manifest, arrays: manifest.pop("items"),
    "fewer items": manifest_with(items=["tea", "coffee", "water"]),
    "more items": manifest_with(items=["tea", "coffee", "water", "milk", "juice"]),
    "items twice": manifest_with(items=["tea", "tea", "water", "milk"]),
    "items are real": manifest_with(items=[0.0, 1.0, 2.0, 3.0]),
    "items are lists": manifest_with(items=[["a"], ["b"], ["c"], ["d"]]),
    "items are true": manifest_with(items=[True, 2, 3, 4]),
    "negative items": manifest_with(items=[-1, 2, 3, 4]),
    "one array more": lambda manifest, arrays: arrays.update(more=np.zeros(3)),
    "one array less": lambda manifest, arrays: arrays.pop("counts"),
    "center repeats": array_by("centers", put((0, 0), 1)),
    "center below 0": array_by("centers", put((0, 0), -1)),
    "center beyond": array_by("centers", put((0, 0), 4)),
    "centers are real": array_by("centers", lambda a: a.astype(float)),
    "centers are wide": array_by("centers", lambda a: a.astype(np.int64)),
    "centers are flat": array_by("centers", np.ravel),
    "one center less": array_by("centers", lambda a: a[:1]),
    "weights are too large": array_by("weights", lambda a: 2 * a),
    "weights are negative": array_by("weights", lambda a: np.array([1.3, -0.3])),
    "weights are undefined": array_by("weights", lambda a: a * np.nan),
    "weights are text": array_by("weights", lambda a: a.astype("U8")),
    "weights grow": array_by("weights", lambda a: a[::-1]),
    "weights of one kind": array_by("weights", lambda a: a[:1]),
    "weights in two dimensions": array_by("weights", lambda a: a[None]),
    "negative decay": array_by("decays", put(0, -0.1)),
    "undefined decay": array_by("decays", put(0, np.nan)),
    "whole decay": array_by("decays", lambda a: a.astype(np.int64)),
    "three decays": array_by("decays", lambda a: np.append(a, 1.0)),
    "no rows": lambda manifest, arrays: arrays.update(
        probabilities=np.empty((0, 2)), counts=np.empty(0, np.int64)
    ),
    "rows of three": array_by("probabilities", lambda a: np.hstack([a, np.zeros((len(a), 1))])),
    "rows are flat": array_by("probabilities", np.ravel),
    "rows do not sum to one": array_by("probabilities", put((0, 0), 0.0)),
    "negative probabilities": array_by("probabilities", put(0, (1.5, -0.5))),
    "undefined probabilities": array_by("probabilities", put((0, 0), np.nan)),
    "single precision": array_by("probabilities", lambda a: a.astype(np.float32)),
    "counts of nobody": array_by("counts", put(0, 0)),
    "negative counts": array_by("counts", put(0, -3)),
    "counts that overflow": array_by("counts", lambda a: np.full_like(a, 2**62)),
    "counts of fewer rows": array_by("counts", lambda a: a[:-1]),
    "real counts": array_by("counts", lambda a: a.astype(float)),
    "history of three": array_by("history", lambda a: np.hstack([a, a[:, :1]])),
    "flat history": array_by("history", np.ravel),
    "undefined history": array_by("history", put((0, 0), np.nan)),
    "negative error": array_by("history", put((0, 1), -1.0)),
    "no history": array_by("history", lambda a: a[:0]),
    "no restart": array_by("restart_log_likelihoods", lambda a: a[:0]),
    "restarts in two dimensions": array_by("restart_log_likelihoods", lambda a: a[None]),
    "more restarts than asked": array_by("restart_log_likelihoods", lambda a: np.append(a, a)),
    "endless restart": array_by("restart_log_likelihoods", put(0, np.inf)),
    "likelihood alone": array_by("log_likelihood", lambda a: a[:1]),
    "endless likelihood": array_by("log_likelihood", put(0, np.inf)),
    "undefined error": array_by("log_likelihood", put(1, np.nan)),
    "likelihood is text": array_by("log_likelihood", lambda a: a.astype("U8")),
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
    assert load_fit(path).components.n_components == 2


def test_large_files_need_a_word(archive, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *archive)
    with pytest.raises(FileFormatError, match="max_bytes"):
        load_fit(path, max_bytes=100)


def test_every_kind_of_file_has_a_reader_and_an_estimator():
    for kind in KINDS.values():
        assert callable(_found(kind.rebuild))
        assert hasattr(_found(kind.estimator), "_from_fit")
