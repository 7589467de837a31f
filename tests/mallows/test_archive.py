"""Saved mixtures of Mallows models: nothing is lost, and nothing that no fit writes gets in."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import permix
from permix.errors import DataError, FileFormatError
from permix.estimators.archive import read_model, write_model
from permix.files import RESERVED, read_archive, write_archive
from permix.mallows.parameters import MallowsParameters
from tests.mallows.cases import fit_of, two_kinds


@pytest.fixture
def archive(tmp_path):
    """Manifest and arrays of an honest file, as they go into ``write_archive``."""
    path = tmp_path / "honest.permix"
    write_model(fit_of(two_kinds()), path)
    manifest, arrays = read_archive(path)
    return {key: value for key, value in manifest.items() if key not in RESERVED}, arrays


@pytest.mark.parametrize("items", [("tea", "coffee", "water"), (3, 7, 10_000), ("a", 2, "ü ≻ 'x'")])
def test_a_fit_comes_back_as_it_was(tmp_path, items):
    fit = fit_of(two_kinds(items), converged=False, interrupted=True)
    path = tmp_path / "fit.permix"
    write_model(fit, path)
    back = read_model(path)[1]
    assert back.settings.as_dict() == fit.settings.as_dict()
    assert back.components.items == items
    for name in ("weights", "centers", "decays"):
        np.testing.assert_array_equal(getattr(back.components, name), getattr(fit.components, name))
    for name in ("probabilities", "counts", "history", "start_log_likelihoods", "labels"):
        np.testing.assert_array_equal(getattr(back, name), getattr(fit, name))
    assert (back.log_likelihood, back.log_likelihood.standard_error) == (-33.5, 0.25)
    assert (back.converged, back.interrupted, back.n_iterations) == (False, True, 3)


def test_a_seed_that_is_an_object_is_not_kept(tmp_path):
    rng = np.random.default_rng(0)
    fit = fit_of(
        two_kinds(),
        settings=MallowsParameters(2, n_init=np.int64(3), tol=np.float32(0.5), random_state=rng),
    )
    write_model(fit, tmp_path / "fit.permix")
    back = read_model(tmp_path / "fit.permix")[1].settings
    assert back.random_state is None
    assert (back.n_init, back.tol) == (3, 0.5)


def test_the_estimator_comes_back(tmp_path):
    fit = fit_of(two_kinds())
    write_model(fit, tmp_path / "fit.permix")
    model = permix.load(tmp_path / "fit.permix")
    assert isinstance(model, permix.MallowsMixture)
    assert model.get_params() == fit.settings.as_dict()
    assert model.centers_.items == ("tea", "coffee", "water", "milk")


def test_nothing_is_written_over_a_folder(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        write_model(fit_of(two_kinds()), tmp_path)


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


HOSTILE = {
    "other number of groups": setting_with(n_components=3),
    "fewer items": fact_with(items=["tea", "coffee", "water"]),
    "more items": fact_with(items=["tea", "coffee", "water", "milk", "juice"]),
    "items twice": fact_with(items=["tea", "tea", "water", "milk"]),
    "items are real": fact_with(items=[0.0, 1.0, 2.0, 3.0]),
    "items are lists": fact_with(items=[["a"], ["b"], ["c"], ["d"]]),
    "items are true": fact_with(items=[True, 2, 3, 4]),
    "negative items": fact_with(items=[-1, 2, 3, 4]),
    "center repeats": array_by("centers", put((0, 0), 1)),
    "center below 0": array_by("centers", put((0, 0), -1)),
    "center beyond": array_by("centers", put((0, 0), 4)),
    "weights are too large": array_by("weights", lambda a: 2 * a),
    "weights are negative": array_by("weights", lambda a: np.array([1.3, -0.3])),
    "weights grow": array_by("weights", lambda a: a[::-1]),
    "negative decay": array_by("decays", put(0, -0.1)),
    "no rows": lambda manifest, arrays: arrays.update(
        probabilities=np.empty((0, 2)), counts=np.empty(0, np.int64)
    ),
    "rows do not sum to one": array_by("probabilities", put((0, 0), 0.0)),
    "negative probabilities": array_by("probabilities", put(0, (1.5, -0.5))),
    "counts of nobody": array_by("counts", put(0, 0)),
    "negative counts": array_by("counts", put(0, -3)),
    "counts that overflow": array_by("counts", lambda a: np.full_like(a, 2**62)),
    "negative error": array_by("history", put((0, 1), -1.0)),
    "no history": array_by("history", lambda a: a[:0]),
    "no restart": array_by("start_log_likelihoods", lambda a: a[:0]),
    "more restarts than allowed": array_by("start_log_likelihoods", lambda a: np.tile(a, 5)),
    "endless restart": array_by("start_log_likelihoods", put(0, np.inf)),
    "endless likelihood": array_by("log_likelihood", put(0, np.inf)),
    "undefined error": array_by("log_likelihood", put(1, np.nan)),
    "negative error of the likelihood": array_by("log_likelihood", put(1, -1.0)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_no_fit_writes_is_refused(archive, what, tmp_path):
    manifest, arrays = copy.deepcopy(archive)
    HOSTILE[what](manifest, arrays)
    path = tmp_path / "hostile.permix"
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError, match=r"fit together|does not know"):
        read_model(path)[1]


def test_what_a_fit_writes_is_taken(archive, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *archive)
    assert read_model(path)[1].components.n_components == 2


def test_large_files_need_a_word(archive, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *archive)
    with pytest.raises(FileFormatError, match="max_bytes"):
        read_model(path, max_bytes=100)
