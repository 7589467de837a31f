"""Archives that are well formed but hold what no fit writes: each is refused before compiled code sees it."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import permix
from permix.errors import FileFormatError
from permix.files import RESERVED, read_archive, write_archive
from permix.registries import FAMILIES
from tests.families.cases import CASES

NAMES = list(CASES)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Manifest and arrays of one small fit per family."""
    contents = {}
    for name in NAMES:
        family, X = CASES[name]
        path = tmp_path_factory.mktemp("models") / "model.permix"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prior = permix.DirichletProcess(permix.Gamma(1.0, 1.0))
            # Climbs and splits are compiled for every family anew, and leave nothing of their own in files.
            moves = {"moves": "gibbs", "burn_in_moves": "gibbs"}
            settings = {"n_draws": 6, "n_burn_in": 4, "random_state": 0, "progress": False, **moves}
            permix.DPMixture(family, prior, **settings).fit(X).save(path)
        manifest, arrays = read_archive(path)
        contents[name] = {key: value for key, value in manifest.items() if key not in RESERVED}, arrays
    return contents


def family_with(**changes):
    return lambda manifest, arrays: manifest["facts"]["fitted_family"].update(changes)


def facts_with(**changes):
    return lambda manifest, arrays: manifest["facts"].update(changes)


def parameters_with(**changes):
    return lambda manifest, arrays: manifest["parameters"].update(changes)


def array_by(name, change):
    def edit(manifest, arrays):
        arrays[name] = change(arrays[name].copy())

    return edit


def without(name):
    return lambda manifest, arrays: arrays.pop(name)


def put(index, value):
    def change(array):
        array = array.astype(np.int64) if isinstance(value, int) and array.dtype.kind in "iu" else array
        array[index] = value
        return array

    return change


# What holds for every model (types, shapes, missing pieces) is tested over all of them in tests/estimators.
ANY = {
    "no family": family_with(name="evil"),
    "family is a number": facts_with(fitted_family=3),
    "no prior": facts_with(fitted_prior={"prior": "evil"}),
    "a prior with an endless series": facts_with(
        fitted_prior={"prior": "MixtureOfFiniteMixtures", "rate": 1e300, "pseudo_count": 1.0}
    ),
    "a gamma for a prior": facts_with(fitted_prior={"prior": "Gamma", "shape": 1.0, "rate": 1.0}),
    "a prior that was not asked for": facts_with(
        fitted_prior={
            "prior": "DirichletProcess",
            "concentration": {"prior": "Gamma", "shape": 2.0, "rate": 1.0},
        }
    ),
    "another family than asked for": lambda manifest, arrays: parameters_with(
        family=OTHER[manifest["facts"]["fitted_family"]["name"]]
    )(manifest, arrays),
    "moves as a dictionary": facts_with(moves={"gibbs": 1}),
    "a move too many": lambda manifest, arrays: manifest["facts"]["moves"].append("gibbs"),
    "loss is unknown": facts_with(loss="zzz"),
    "an unknown start": parameters_with(init="warm"),
    "more groups at the start than rows": parameters_with(init=10**6),
    "an optimizer after burn-in": parameters_with(moves="projection"),
    "negative numbers of clusters": array_by("draws/n_groups", lambda a: -a),
    "other numbers of clusters": array_by("draws/n_groups", lambda a: a + 1),
    "huge labels": array_by("draws/labels", put((0, 0, 0), 2**40)),
    "labels of fewer observations": array_by("draws/labels", lambda a: a[:, :, :-1]),
    "no draws": array_by("draws/labels", lambda a: a[:, :0]),
    "huge estimate": array_by("point_estimate", put(0, 2**33)),
    "estimate with a gap": array_by("point_estimate", lambda a: np.where(a == 0, a.max() + 1, a)),
    "negative concentration": array_by("draws/concentration", lambda a: -a),
    "no concentration": without("draws/concentration"),
    "a concentration for a prior without": facts_with(
        fitted_prior={"prior": "MixtureOfFiniteMixtures", "rate": 1.0, "pseudo_count": 1.0}
    ),
    "names of another number": lambda manifest, arrays: arrays.update(feature_names=np.array(["a"])),
    "data of another family": lambda manifest, arrays: arrays.update(
        {f"data/{OTHER[manifest['facts']['fitted_family']['name']]}/table": np.zeros((12, 3))}
    ),
    "no data": lambda manifest, arrays: [
        arrays.pop(name) for name in list(arrays) if name.startswith("data/")
    ],
}
OTHER = {name: "gaussian" if name != "gaussian" else "gaussian-niw" for name in FAMILIES}
OWN = {
    "gaussian-isotropic": {
        "noise for other columns": family_with(noise_scale=[1.0], prior_scale=[1.0]),
        "noise for very many columns": family_with(noise_scale=[1.0] * 10_000, prior_scale=[1.0] * 10_000),
        "noise that was not asked for": family_with(noise_scale=[9.0, 9.0, 9.0]),
        "scalar noise": family_with(noise_scale=1.0),
        "scalar mean": family_with(prior_mean=0.0),
        "nested mean": family_with(prior_mean=[[0.0, 0.0, 0.0]]),
        "negative scale": family_with(prior_scale=[-1.0, 1.0, 1.0]),
        "short data": array_by("data/gaussian/table", lambda a: a[:-1]),
        "wide data": array_by("data/gaussian/table", lambda a: np.hstack([a, a])),
        "data are text": array_by("data/gaussian/table", lambda a: a.astype("U8")),
        "undefined data": array_by("data/gaussian/table", put((0, 0), np.nan)),
    },
    "gaussian-niw": {
        "scale is not positive": family_with(scale=[[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        "a strength that was not asked for": family_with(prior_strength=0.625),
        "scale is small": family_with(scale=[[1.0]]),
        "no scale": family_with(scale=None),
        "no freedom": family_with(degrees_of_freedom=None),
        "too little freedom": family_with(degrees_of_freedom=0.5),
        "strength is a list": family_with(prior_strength=[1.0]),
    },
    "gaussian-diagonal": {
        "no scale": family_with(scale=None),
        "a strength that was not asked for": family_with(prior_strength=0.625),
        "draws of what was given": lambda manifest, arrays: arrays.update(
            {"draws/prior_strength": np.full(arrays["draws/log_joint"].shape, 0.5)}
        ),
    },
    "multinomial": {
        "columns out of range": array_by(
            "data/multinomial/indices", lambda a: put(0, 10**6)(a).astype(np.int32)
        ),
        "negative columns": array_by("data/multinomial/indices", lambda a: put(0, -5)(a).astype(np.int32)),
        "doubled columns": array_by("data/multinomial/indices", lambda a: np.full_like(a, 1)),
        "pointers run backwards": array_by("data/multinomial/indptr", lambda a: a[::-1]),
        "pointers past the end": array_by("data/multinomial/indptr", lambda a: a + 10**6),
        "pointers of another number": array_by("data/multinomial/indptr", lambda a: a[:-1]),
        "undefined counts": array_by("data/multinomial/values", put(0, np.nan)),
        "negative counts": array_by("data/multinomial/values", put(0, -3.0)),
        "endless counts": array_by("data/multinomial/values", put(0, 1e300)),
        "other totals": array_by("data/multinomial/totals", lambda a: a + 1),
        "endless documents": family_with(document_length=2**62),
        "no length": family_with(document_length=None),
        "pseudo-counts of fewer words": family_with(pseudo_count=[1.0]),
    },
    "categorical": {
        "codes out of range": array_by(
            "data/categorical/table", lambda a: put((0, 0), 99)(a).astype(np.int32)
        ),
        "codes below missing": array_by(
            "data/categorical/table", lambda a: put((0, 0), -2)(a).astype(np.int32)
        ),
        "codes of another type": array_by("data/categorical/table", lambda a: a.astype(np.int64)),
        "no levels": family_with(levels=None),
        "no columns": lambda manifest, arrays: (
            manifest["facts"]["fitted_family"].update(levels=[]),
            arrays.update({"data/categorical/table": np.empty((12, 0), np.int32)}),
        ),
        "levels of fewer columns": family_with(levels=[[0, 1, 2]]),
        "an empty column": family_with(levels=[[], [0, 1, 2], [0, 1, 2], [0, 1, 2]]),
        "pseudo-count is a list": family_with(pseudo_count=[1.0, 2.0]),
    },
    "mixed": {
        "codes out of range": array_by("data/mixed/table", put((0, 2), 99.0)),
        "half a code": array_by("data/mixed/table", put((0, 2), 0.5)),
        "negative counts": array_by("data/mixed/table", put((0, 3), -1.0)),
        "endless numbers": array_by("data/mixed/table", put((0, 0), np.inf)),
        "short data": array_by("data/mixed/table", lambda a: a[:-1]),
        "no kinds": family_with(kinds=None),
        "kinds of fewer columns": family_with(kinds=["number"]),
        "an unknown kind": family_with(kinds=["number", "number", "category", "count", "date"]),
        "another kind than asked for": family_with(
            kinds=["number", "number", "category", "number", "ordered"]
        ),
        "no levels": family_with(levels=None),
        "levels of numbers": family_with(levels=[[1], [], [0, 1, 2], [], [0, 1]]),
        "levels that repeat": family_with(levels=[[], [], [0, 0, 2], [], [0, 1]]),
        "scale is zero": family_with(scale=[0.0, 1.0, 1.0, 1.0, 1.0]),
        "scale is nested": family_with(scale=[[1.0] * 5]),
        "scale of fewer columns": family_with(scale=[1.0]),
        "mean of counts is negative": family_with(prior_mean=[0.0, 0.0, 0.0, -1.0, 0.0]),
        "no share": family_with(within_share=None),
    },
}
CASES_OF_HOSTILITY = [(name, what) for name in NAMES for what in (*ANY, *OWN.get(name, ()))]


@pytest.mark.parametrize(("name", "what"), CASES_OF_HOSTILITY)
def test_what_no_fit_writes_is_refused(saved, name, what, tmp_path):
    manifest, arrays = copy.deepcopy(saved[name])
    (OWN.get(name, {}).get(what) or ANY[what])(manifest, arrays)
    path = tmp_path / "hostile.permix"
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError, match=r"fit together|does not know"):
        permix.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_fit_writes_is_taken(saved, name, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *saved[name])
    assert permix.load(path).n_clusters_ >= 1


def test_large_files_need_a_word(saved, tmp_path):
    path = tmp_path / "model.permix"
    write_archive(path, *saved["categorical"])
    with pytest.raises(FileFormatError, match="max_bytes"):
        permix.load(path, max_bytes=100)
