"""Saved groups of top lists: nothing is lost, and nothing that no fit writes gets in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import permix
from permix import BlurringMeanShift, Rankings
from permix.baselines.mean_shift.archive import SCHEMA
from permix.distributions.base import Estimate
from permix.estimators.archive import rebuilt
from tests.baselines.archives import assert_refused, contents, edited, fact, parameter, put
from tests.baselines.mean_shift.test_shift import CASES, DATA, as_rankings, fitted


@pytest.fixture
def archive():
    lists, n_items, length = CASES["mixed"]
    table = as_rankings(lists, n_items).collapse()
    return contents(SCHEMA, BlurringMeanShift(length, progress=False).fit(table)._fit)


def test_archives_come_back(tmp_path):
    model = BlurringMeanShift(np.int64(4), decay=0.5, n_jobs=1, progress=False).fit(DATA)
    model.save(tmp_path / "model.permix")
    back = permix.load(tmp_path / "model.permix")
    assert back.get_params() == model.get_params()
    assert back.centers_ == model.centers_
    for name in ("labels_", "cluster_sizes_", "history_"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    assert (back.decay_, back.n_iter_, back.converged_) == (model.decay_, model.n_iter_, model.converged_)
    assert back.log_likelihood_ == model.log_likelihood_
    np.testing.assert_array_equal(back.score_samples(DATA), model.score_samples(DATA))
    np.testing.assert_array_equal(back.predict(DATA), model.predict(DATA))


def test_infinite_decays_come_back():
    fit = fitted([(2,), (2, 0)], 5)._fit
    assert math.isinf(rebuilt(SCHEMA, *contents(SCHEMA, fit)).decays[0])


def test_an_unknown_log_likelihood_comes_back_if_interrupted():
    fit = BlurringMeanShift(progress=False).fit(Rankings.from_orders([["a", "b"], ["b", "a"]]))._fit
    unknown = replace(fit, log_likelihood=Estimate(math.nan, math.nan), interrupted=True)
    assert math.isnan(rebuilt(SCHEMA, *contents(SCHEMA, unknown)).log_likelihood)
    assert_refused(SCHEMA, contents(SCHEMA, unknown), fact(interrupted=False))


HOSTILE = {
    "no array": lambda manifest, arrays: arrays.pop("decays"),
    "another array": lambda manifest, arrays: arrays.update(more=np.zeros(3)),
    "items": fact(items=[0, 1]),
    "items twice": fact(items=[0, 1, 2, 3, 4, 5, 5]),
    "items not names": fact(items=[0, 1, 2, 3, 4, 5, 6.0]),
    "parameters": parameter(more=1),
    "length": parameter(length=-1),
    "max_iter": parameter(max_iter=1),
    "other decay": parameter(decay=0.123),
    "n_jobs": parameter(n_jobs="2"),
    "progress": parameter(progress=2),
    "decay": fact(decay=0.0),
    "decay text": fact(decay="0.5"),
    "converged": fact(converged=1),
    "interrupted": fact(interrupted=None),
    "decays negative": edited("decays", put(0, -1.0)),
    "decays nan": edited("decays", put(0, np.nan)),
    "no decays": edited("decays", lambda array: array[:0]),
    "item beyond": edited("centers", put((0, 0), 7)),
    "item below": edited("centers", put((0, 0), -2)),
    "empty center": edited("centers", put(0, -1)),
    "no columns": edited("centers", lambda array: array[:, :0]),
    "hole": edited("centers", put((0, 1), -1)),
    "item twice in a center": lambda manifest, arrays: put((0, 1), arrays["centers"][0, 0])(
        arrays["centers"]
    ),
    "centers alike": lambda manifest, arrays: put(0, arrays["centers"][1])(arrays["centers"]),
    "centers flat": edited("centers", lambda array: array.ravel()),
    "centers of other numbers": edited("centers", lambda array: array.astype(np.int64)),
    "likelihood of no number": edited("log_likelihood", put(0, np.inf)),
    "likelihood unknown": edited("log_likelihood", put(slice(None), np.nan)),
    "sizes": edited("cluster_sizes", put(0, 10**6)),
    "sizes short": edited("cluster_sizes", lambda array: array[:-1]),
    "sizes backwards": edited("cluster_sizes", lambda array: array[::-1]),
    "labels beyond": edited("row_labels", put(0, 99)),
    "labels below": edited("row_labels", put(0, -1)),
    "labels short": edited("row_labels", lambda array: array[:-1]),
    "counts zero": edited("row_counts", put(0, 0)),
    "counts too large": edited("row_counts", put(slice(None), 2**62)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(name, archive):
    assert len(np.unique(archive[1]["cluster_sizes"])) > 1
    assert_refused(SCHEMA, archive, HOSTILE[name])
