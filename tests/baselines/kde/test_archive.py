"""Saved density estimates: nothing is lost, and nothing that no fit writes gets in."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix import MallowsKDE, Preferences
from permix.baselines.kde.archive import SCHEMA
from permix.errors import DataError
from permix.estimators.archive import rebuilt
from tests.baselines.archives import assert_refused, contents, edited, fact, parameter, put

# Comparisons, levels with the rest below, levels of all items, and levels with the rest unknown.
DATA = Preferences.concat(
    [
        Preferences.from_pairs([(0, 0, 1), (0, 1, 2), (1, 4, 3)], items=range(5), counts=[2, 1]),
        Preferences.from_levels([[[0], [1, 2]]], items=range(5), rest_below=[True]),
        Preferences.from_levels([[[0], [1, 2], [3, 4]]], items=range(5)),
        Preferences.from_levels([[[3], [4]]], items=range(5), rest_below=[False]),
    ]
)


@pytest.fixture
def archive():
    return contents(SCHEMA, MallowsKDE(0.5, n_samples=8, random_state=3).fit(DATA)._fit)


@pytest.mark.parametrize("dispersion", [0.5, "cv"])
@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")  # the best dispersion is at an end
def test_archives_come_back(tmp_path, dispersion):
    model = MallowsKDE(dispersion, n_samples=np.int64(8), random_state=3, progress=False).fit(DATA)
    model.save(tmp_path / "model.permix")
    back = permix.load(tmp_path / "model.permix")
    assert back.get_params() == model.get_params()
    assert back.preferences_ == model.preferences_
    np.testing.assert_array_equal(back.score_samples(DATA), model.score_samples(DATA))
    np.testing.assert_array_equal(back.cv_scores_["score"], model.cv_scores_["score"])
    assert back.sample(5, random_state=0) == model.sample(5, random_state=0)


HOSTILE = {
    "no array": lambda manifest, arrays: arrays.pop("keys"),
    "another array": lambda manifest, arrays: arrays.update(more=np.zeros(3)),
    "dispersion": fact(dispersion=1.5),
    "dispersion not asked for": fact(dispersion=0.4),
    "dispersion text": fact(dispersion="0.5"),
    "items": fact(items=[0, 1, 2]),
    "items twice": fact(items=[0, 1, 2, 3, 3]),
    "items not names": fact(items=[0, 1, 2, 3, 4.0]),
    "n_samples": parameter(n_samples=1),
    "n_jobs": parameter(n_jobs="2"),
    "parameters": parameter(more=1),
    "seed": parameter(random_state=-1),
    "interrupted": fact(interrupted=1),
    "keys": edited("keys", lambda array: array[:2]),
    "keys signed": edited("keys", lambda array: array.astype(np.int64)),
    "tried": edited("tried", lambda array: np.array([[0.5, -1.0]])),
    "counts zero": edited("training/counts", put(0, 0)),
    "counts too large": edited("training/counts", put(slice(None), 2**62)),
    "counts floats": edited("training/counts", lambda array: array.astype(float)),
    "items beyond": edited("training/pairs", put((0, 0), 5)),
    "items negative": edited("training/level_items", put(0, -1)),
    "pairs alike": edited("training/pairs", lambda array: np.zeros_like(array)),
    "pairs flat": edited("training/pairs", lambda array: array.ravel()),
    "rows beyond": edited("training/pair_indptr", put(-1, 10**6)),
    "rows backwards": edited("training/pair_indptr", put(1, 10**6)),
    "rows too few": lambda manifest, arrays: [
        edited(f"training/{name}_indptr", lambda array: np.append(0, array[2:]))(manifest, arrays)
        for name in ("level", "pair")
    ],
    "level items twice": edited("training/level_items", lambda array: np.zeros_like(array)),
    "levels from 1": edited("training/levels", lambda array: array + 1),
    "levels with gaps": edited("training/levels", lambda array: array * 2),
    "rest of nothing": edited("training/rest_below", lambda array: np.ones_like(array)),
    "rest missing": edited("training/rest_below", lambda array: np.zeros_like(array)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(name, archive):
    assert_refused(SCHEMA, archive, HOSTILE[name])


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
@pytest.mark.parametrize(
    "change",
    [
        put((0, 0), -0.5),
        put((-1, 0), 1.5),
        put((0, 0), np.nan),
        put((0, 1), np.inf),
        put((0, 1), np.nan),
        lambda array: array[::-1],
        lambda array: array[:0],
        lambda array: array[:, :1],
    ],
)
def test_dispersions_tried(change):
    searched = MallowsKDE(progress=False).fit(DATA[[2, 3]])
    assert_refused(SCHEMA, contents(SCHEMA, searched._fit), edited("tried", change))


def test_cycles_in_archives_are_refused(archive):
    manifest, arrays = archive
    at = arrays["training/pair_indptr"][0]
    assert arrays["training/pair_indptr"][1] - at > 1
    arrays["training/pairs"][at + 1] = arrays["training/pairs"][at, ::-1]
    with pytest.raises(DataError, match="comparisons"):
        rebuilt(SCHEMA, manifest, arrays)
