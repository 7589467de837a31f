"""Co-clusterings as files: the same model comes back, and what no fit writes is refused."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

import permix
from permix.cocluster.cells.families import GaussianCells
from permix.data.cells import Cells
from permix.errors import FileFormatError
from permix.estimators.archive import read_model
from permix.files import RESERVED, read_archive, write_archive
from tests.cocluster.cases import planted_grid, quick, quiet_fit

SHAPE = (12, 8)
SHORT = {"n_draws": 6, "n_burn_in": 8}


def named(X):
    rows, columns = np.nonzero(~np.isnan(X))
    names = [[f"{what}{i}" for i in range(size)] for what, size in zip("rc", SHAPE, strict=True)]
    return Cells(rows, columns, X[rows, columns], X.shape, *names)


@pytest.fixture(scope="module")
def models():
    """One small fit of each kind, and its data."""
    X = planted_grid(np.random.default_rng(6), shape=SHAPE)[0]
    numbers = planted_grid(np.random.default_rng(6), "gaussian", shape=SHAPE)[0]
    words = np.where(np.isnan(X), None, np.where(X == 1, "no", "yes"))
    mixed = {"n_row_clusters": 3, "n_column_clusters": 2, "membership": "mixed"}
    ensemble = permix.CoClusteringEnsemble(n_base=2, random_state=0, progress=False, **SHORT)
    base = permix.CoClustering(concentration=(2.0, 0.5), **SHORT)
    return {
        "grid": (quiet_fit(quick(concentration=permix.Gamma(2.0, 1.0), **SHORT), named(X)), X),
        "pair": (quiet_fit(quick(concentration=(permix.Gamma(2.0, 1.0), 3.0), **SHORT), X), X),
        "numbers": (quiet_fit(quick(family=GaussianCells(2.0), **SHORT), numbers), numbers),
        "words": (quiet_fit(quick(**SHORT), words), words),
        "mixed": (quiet_fit(quick("dirichlet", **SHORT, **mixed), X), X),
        "mixed numbers": (
            quiet_fit(quick("dirichlet", family="gaussian", **SHORT, **mixed), numbers),
            numbers,
        ),
        "mondrian": (quiet_fit(quick("mondrian", budget=1.5, **SHORT), X), X),
        "ensemble": (quiet_fit(ensemble.set_params(base=base), named(X)), X),
        "bases": (quiet_fit(_bases_alone(), bases=[([0] * 6 + [1] * 6, [0, 1] * 4)] * 3), None),
    }


def _bases_alone():
    return permix.CoClusteringEnsemble("mondrian", random_state=0, progress=False, **SHORT)


NAMES = ("grid", "pair", "numbers", "words", "mixed", "mixed numbers", "mondrian", "ensemble", "bases")


@pytest.mark.parametrize("name", NAMES)
def test_save_and_load_give_the_same_model(models, name, tmp_path):
    model, X = models[name]
    model.save(tmp_path / "m.permix")
    back = permix.load(tmp_path / "m.permix")
    assert type(back) is type(model)
    for attribute in ("row_labels_", "column_labels_", "block_labels_", "rows_"):
        np.testing.assert_array_equal(getattr(back, attribute), getattr(model, attribute))
    assert back.posterior_.identical(model.posterior_)
    pd.testing.assert_frame_equal(back.diagnostics(), model.diagnostics())
    assert (back.tree_ is None) == (model.tree_ is None)
    if model.tree_ is not None:
        np.testing.assert_array_equal(back.tree_.table(), model.tree_.table())
    asked, given = back.get_params(deep=False), model.get_params(deep=False)
    if given.get("base") is not None:
        asked["base"], given["base"] = (one["base"].get_params() for one in (asked, given))
    assert asked == given
    if X is None:
        with pytest.raises(permix.errors.DataError, match="give the matrix too"):
            back.predict_cells()
        return
    assert back.family_ == model.family_
    np.testing.assert_array_equal(back.predict_cells(), model.predict_cells())
    assert back.score_cells(X) == model.score_cells(X)
    np.testing.assert_array_equal(back.predict_cells(X[:2]), model.predict_cells(X[:2]))
    np.testing.assert_array_equal(back.predict(X[:2]), model.predict(X[:2]))
    if name == "grid":
        assert back.predict_cells(cells=[("r3", "c2")]) == model.predict_cells(cells=[(3, 2)])
        np.testing.assert_array_equal(quiet_fit(back, named(X)).row_labels_, model.row_labels_)
    if name == "ensemble":
        np.testing.assert_array_equal(back.base_scores(X), model.base_scores(X))
        assert back.base.concentration == (2.0, 0.5)
    # The command line reads it without scikit-learn.
    assert len(read_model(tmp_path / "m.permix")[1].blocks.table) == model.n_row_clusters_


@pytest.fixture(scope="module")
def saved(models, tmp_path_factory):
    """Manifest and arrays of each."""
    contents = {}
    for name, (model, _) in models.items():
        path = tmp_path_factory.mktemp("models") / "model.permix"
        model.save(path)
        manifest, arrays = read_archive(path)
        contents[name] = {key: value for key, value in manifest.items() if key not in RESERVED}, arrays
    return contents


def manifest_with(**changes):
    return lambda manifest, arrays: manifest.update(changes)


def facts_with(**changes):
    return lambda manifest, arrays: manifest["facts"].update(changes)


def settings_with(**changes):
    return lambda manifest, arrays: manifest["parameters"].update(changes)


def family_with(**changes):
    return lambda manifest, arrays: manifest["facts"]["fitted_family"].update(changes)


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


def put_int32(index, value):
    return lambda array: put(index, value)(array).astype(np.int32)


def _spread_from_one_block(sums):
    """Take squares out of one block and put them into another: all add up, no numbers have such sums."""
    sums = sums.copy()
    sums[..., 0, 0, 1] -= 1e3
    sums[..., 1, 1, 1] += 1e3
    return sums


def _first_row_moved(manifest, arrays):
    """A cell of the first row is said to be in the next cluster, which its blocks do not know."""
    counts = arrays["draws/row_memberships"].copy()
    line = counts[0, 0, 0]
    fullest = int(line.argmax())
    other = (fullest + 1) % len(line)
    line[fullest] -= 1
    line[other] += 1
    arrays["draws/row_memberships"] = counts
    labels = arrays["draws/row_labels"].copy()
    labels[0, 0, 0] = line.argmax()
    arrays["draws/row_labels"] = labels


def _rows_exchanged(manifest, arrays):
    """Every row has the memberships, and the label, of the row before it: clusters keep their cells."""
    for name in ("draws/row_memberships", "draws/row_labels"):
        arrays[name] = np.roll(arrays[name], 1, axis=2)


def _all_at_the_first(sums):
    """Every cell has the first level."""
    one = np.zeros_like(sums)
    one[..., 0] = sums.sum(axis=-1)
    return one


def _shifted(sums, by):
    """Cells go from the first level to the second, more than there are."""
    sums = sums.copy()
    sums[..., 0] -= by
    sums[..., 1] += by
    return sums


ANY = {
    "another kind": manifest_with(kind="Nonsense"),
    "parameters are text": manifest_with(parameters="abc"),
    "a setting is missing": lambda manifest, arrays: manifest["parameters"].pop("loss"),
    "a setting too many": settings_with(evil=1),
    "draws are text": settings_with(n_draws="many"),
    "negative draws": settings_with(n_burn_in=-1),
    "unknown prior": settings_with(prior="evil"),
    "budget is text": settings_with(budget="much"),
    "one concentration": settings_with(concentration=[1.0]),
    "concentration is a prior": settings_with(
        concentration=[{"prior": "DirichletProcess", "concentration": 1.0}, 1.0]
    ),
    "unknown family": settings_with(family="evil"),
    "seed is text": settings_with(random_state="x"),
    "unknown loss": settings_with(loss="zero-one"),
    "facts are text": manifest_with(facts="abc"),
    "a fact too many": facts_with(evil=1),
    "moves of another type": facts_with(moves=5),
    "moves of another number": facts_with(moves=["gibbs"] * 9),
    "interrupted is text": facts_with(interrupted="zz"),
    "seeds are text": facts_with(seeds="abc"),
    "no row labels": without("draws/row_labels"),
    "no likelihood": without("draws/log_likelihood"),
    "an array too many": lambda manifest, arrays: arrays.update(evil=np.zeros(3)),
    "a quantity too many": lambda manifest, arrays: arrays.update({"draws/evil": np.zeros((2, 6))}),
    "negative labels": array_by("draws/row_labels", lambda a: -a.astype(np.int64) - 1),
    "huge labels": array_by("draws/column_labels", put((0, 0, 0), 2**40)),
    "labels past the classes": array_by("draws/row_labels", put((1, 2, 3), 11)),
    "real labels": array_by("draws/row_labels", lambda a: a.astype(float)),
    "labels of fewer rows": array_by("draws/row_labels", lambda a: a[:, :, :-1]),
    "flat labels": array_by("draws/row_labels", np.ravel),
    "no draws": array_by("draws/row_labels", lambda a: a[:, :0]),
    "text for likelihood": array_by("draws/log_likelihood", lambda a: a.astype("U8")),
    "undefined likelihood": array_by("draws/log_joint", lambda a: a * np.nan),
    "numbers of clusters of another shape": array_by("draws/n_row_groups", np.ravel),
    "statistics of another shape": array_by("statistics/proposed", np.ravel),
}
MATRIX = {
    "no rows": without("data/rows"),
    "rows past the end": array_by("data/rows", put_int32(-1, 12)),
    "negative rows": array_by("data/rows", put_int32(0, -1)),
    "columns past the end": array_by("data/columns", put_int32(3, 8)),
    "columns of another type": array_by("data/columns", lambda a: a.astype(np.int64)),
    "fewer columns": array_by("data/columns", lambda a: a[:-1]),
    "cells twice": lambda manifest, arrays: arrays.update(
        {"data/columns": np.zeros_like(arrays["data/columns"])}
    ),
    "cells out of order": lambda manifest, arrays: arrays.update(
        {f"data/{name}": arrays[f"data/{name}"][::-1].copy() for name in ("rows", "columns", "values")}
    ),
    "no cells": lambda manifest, arrays: arrays.update(
        {name: arrays[name][:0] for name in ("data/rows", "data/columns", "data/values")}
    ),
    "values of another number": array_by("data/values", lambda a: a[:-1]),
    "names of another number": lambda manifest, arrays: arrays.update({"data/row_names": np.array(["a"])}),
    "names that are numbers": lambda manifest, arrays: arrays.update({"data/column_names": np.arange(8.0)}),
    "names twice": lambda manifest, arrays: arrays.update({"data/column_names": np.array(["a"] * 8)}),
    "no family": facts_with(fitted_family=None),
    "a strange family": family_with(name="evil"),
    "a family that is not resolved": lambda manifest, arrays: manifest["facts"]["fitted_family"].update(
        {"levels": None} if "levels" in manifest["facts"]["fitted_family"] else {"prior_mean": None}
    ),
    "pseudo-count is negative": family_with(pseudo_count=-1.0),
    "pseudo-count is a list": family_with(pseudo_count=[1.0]),
}
LEVELS = {
    "values of no level": array_by("data/values", put(0, 77.0)),
    "undefined values": array_by("data/values", put(0, np.nan)),
    "infinite values": array_by("data/values", put(0, np.inf)),
    "fewer levels": family_with(levels=[1, 2]),
    "doubled levels": family_with(levels=[1, 2, 2, 3]),
}
GRID = {
    "labels with a gap": array_by("draws/row_labels", lambda a: np.where(a == 0, 5, a)),
    "another number of clusters": array_by("draws/n_column_groups", lambda a: a + 1),
    "another number of blocks": array_by("draws/n_blocks", lambda a: a + 1),
    "huge estimate": array_by("row_estimate", put(0, 2**33)),
    "negative estimate": array_by("column_estimate", put(0, -1)),
    "short estimate": array_by("row_estimate", lambda a: a[:-1]),
    "estimate with a gap": array_by("row_estimate", lambda a: np.where(a == 0, a.max() + 1, a)),
    "estimate is text": lambda manifest, arrays: manifest["facts"]["row_estimate"].update(expected_loss="z"),
    "no estimate": facts_with(column_estimate=None),
    "a best draw": facts_with(best_draw=3),
    "another prior": settings_with(prior="mondrian"),
}
OWN = {
    "grid": GRID
    | LEVELS
    | {
        "negative concentration": array_by("draws/row_concentration", lambda a: -a),
        "undefined concentration": array_by("draws/column_concentration", lambda a: a * np.nan),
        "no concentration": without("draws/row_concentration"),
    },
    "numbers": {
        "no scale": family_with(prior_scale=0.0),
        "values are text": array_by("data/values", lambda a: np.full(len(a), "many")),
        "infinite values": array_by("data/values", put(0, np.inf)),
    },
    "words": {"values are numbers": array_by("data/values", lambda a: np.arange(len(a), dtype=float))},
    "mixed": {
        "negative memberships": array_by("draws/row_memberships", lambda a: -a.astype(np.int64)),
        "memberships of another shape": array_by("draws/column_memberships", lambda a: a[..., :1]),
        "blocks of another shape": array_by("draws/block_cells", lambda a: a[..., :1]),
        "negative blocks": array_by("draws/block_cells", lambda a: -a.astype(np.int64) - 1),
        "sums of another shape": array_by("draws/block_sums", lambda a: a[..., :1]),
        "other labels": array_by("draws/row_labels", lambda a: 2 - a),
        "more clusters": settings_with(n_row_clusters=30),
        "memberships of more cells": array_by("draws/row_memberships", lambda a: 2 * a),
        "memberships of fewer cells": array_by("draws/column_memberships", lambda a: a // 2),
        "memberships of other blocks": _first_row_moved,
        "memberships of other rows": _rows_exchanged,
        "blocks of more cells": array_by("draws/block_cells", lambda a: a + 1),
        "cells in other blocks": array_by("draws/block_cells", lambda a: a[..., ::-1, ::-1].copy()),
        "negative sums": array_by("draws/block_sums", lambda a: _shifted(a, a.max() + 1)),
        "sums of more cells": array_by("draws/block_sums", lambda a: a + 1),
        "real sums": array_by("draws/block_sums", lambda a: a.astype(float)),
        "sums of other blocks": array_by("draws/block_sums", lambda a: a[:, :, ::-1, ::-1].copy()),
        "sums of other levels": array_by("draws/block_sums", _all_at_the_first),
        "another number of blocks": array_by("draws/n_blocks", lambda a: a - 1),
        "another number of used clusters": array_by("draws/n_row_groups", lambda a: a - 1),
    },
    "mixed numbers": {
        "sums of the other sign": array_by("draws/block_sums", lambda a: -a),
        "sums of other numbers": array_by("draws/block_sums", lambda a: a + 1e3),
        "sums without digits": array_by("draws/block_sums", lambda a: a.astype(np.int8)),
        "sums of another size": array_by("draws/block_sums", lambda a: a.astype(np.float32)),
        "squares below the mean": array_by("draws/block_sums", _spread_from_one_block),
        "another scale": family_with(prior_scale=1e-300),
        "another pseudo-count": family_with(pseudo_count=2.0),
        "fewer than no moves": array_by("statistics/accepted", lambda a: -a - 1),
    },
    "mondrian": {
        "no tree": without("draws/tree_axis"),
        "axes out of range": array_by("draws/tree_axis", put((0, 0, 0), 2)),
        "cuts outside": array_by("draws/tree_cut", lambda a: a + 2.0),
        "cuts are undefined": array_by("draws/tree_cut", lambda a: a * np.nan),
        "times past the budget": array_by("draws/tree_time", lambda a: a + 50.0),
        "a tree that breaks off": array_by("draws/tree_axis", lambda a: np.zeros_like(a)),
        "a tree without cuts": array_by("draws/tree_axis", lambda a: np.full_like(a, -1)),
        "trees of another shape": array_by("draws/tree_time", lambda a: a[:, :-1]),
        "a best draw past the end": facts_with(best_draw=12),
        "no best draw": facts_with(best_draw=None),
        "another number of blocks": array_by("draws/n_blocks", lambda a: a + 1),
        "another number of row clusters": array_by("draws/n_row_groups", lambda a: a + 1),
        "another number of column clusters": array_by("draws/n_column_groups", lambda a: a - 1),
        "another number of cuts": array_by("draws/n_cuts", lambda a: a + 1),
        "a smaller budget": settings_with(budget=0.01),
        "another prior": settings_with(prior="dp", budget=1.0),
    },
    "ensemble": {
        "no bases": without("bases/base_rows"),
        "bases of fewer rows": array_by("bases/base_rows", lambda a: a[:-1]),
        "bases out of range": array_by("bases/base_columns", put_int32((0, 0), 99)),
        "blocks out of range": array_by("bases/base_blocks", put_int32(0, 99)),
        "one base": settings_with(n_base=1),
        "a strange base": settings_with(base={"evil": 1}),
    },
    "bases": {"a budget that is none": settings_with(budget=-1.0)},
}
CASES_OF_HOSTILITY = [
    (name, what)
    for name in ("grid", "numbers", "words", "mixed", "mixed numbers", "mondrian", "ensemble", "bases")
    for what in (
        *(ANY if name in ("grid", "mondrian", "bases") else ()),
        *(MATRIX if name in ("grid", "numbers") else ()),
        *OWN[name],
    )
]


@pytest.mark.parametrize(("name", "what"), CASES_OF_HOSTILITY)
def test_what_no_fit_writes_is_refused(saved, name, what, tmp_path):
    manifest, arrays = copy.deepcopy(saved[name])
    (OWN[name].get(what) or MATRIX.get(what) or ANY[what])(manifest, arrays)
    path = tmp_path / "hostile.permix"
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError, match=r"fit together|does not know"):
        permix.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_fit_writes_is_taken(saved, name, tmp_path):
    path = tmp_path / "honest.permix"
    write_archive(path, *saved[name])
    assert permix.load(path).n_row_clusters_ >= 1


def test_names_of_frames_come_back(models, tmp_path):
    X = models["grid"][1]
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(12)], columns=[f"c{j}" for j in range(8)])
    model = quiet_fit(quick(**SHORT), frame)
    model.save(tmp_path / "m.permix")
    back = permix.load(tmp_path / "m.permix")
    assert back.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    np.testing.assert_array_equal(back.predict_cells(frame[:2]), model.predict_cells(frame[:2]))
    with pytest.raises(permix.errors.DataError, match="column 'other' is unknown"):
        back.predict_cells(frame[:2].rename(columns={"c0": "other"}))


def test_numpy_settings_can_be_saved(models, tmp_path):
    given = {"n_draws": np.int64(5), "n_burn_in": np.int32(2), "pseudo_count": np.float64(2.0)}
    model = quiet_fit(quick(concentration=np.array([1.0, 2.0]), **given), models["grid"][1])
    model.save(tmp_path / "m.permix")
    back = permix.load(tmp_path / "m.permix")
    assert (back.n_draws, back.concentration) == (5, (1.0, 2.0))
