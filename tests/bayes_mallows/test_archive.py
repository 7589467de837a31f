"""Files of Bayesian Mallows models: what comes back, and what is refused."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import permix
from permix.bayes_mallows.archive import SCHEMA
from permix.errors import DataError, FileFormatError
from tests.bayes_mallows.cases import data_of
from tests.bayes_mallows.test_report import with_errors

FORMS = ("full", "top", "subset", "levels", "pairs", "contradictions", "mixed")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("errors", [None, "bernoulli", "logistic"])
def test_what_is_saved_comes_back(form, errors, tmp_path):
    if form == "contradictions" and errors is None:
        return
    table, path = data_of(form).table, tmp_path / "fit.permix"
    options = {"n_draws": 20, "n_burn_in": 10, "random_state": 0, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = permix.BayesianMallowsMixture("mfm", errors=errors, **options)
        model = model.set_params(errors_per_agent=errors is not None).fit(table)
    model.save(path)
    again = permix.load(path)
    assert again.get_params() == model.get_params()
    for name, array in model._fit.draws.arrays.items():
        np.testing.assert_array_equal(array, again._fit.draws.arrays[name], err_msg=name)
    np.testing.assert_array_equal(model.predict_proba(table), again.predict_proba(table))
    np.testing.assert_array_equal(
        model.sample_completions(table, 5).orders, again.sample_completions(table, 5).orders
    )
    if errors is not None:
        assert model.agent_errors().equals(again.agent_errors())


def damaged(fit, name, change):
    arrays = dict(fit.draws.arrays)
    arrays[name] = change(arrays[name].copy())
    return dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, arrays=arrays))


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("group_centers", put((0, 0, 0, 0), 5)),  # an item twice
        ("group_centers", put((0, 0, 0, 0), 99)),
        ("group_sizes", put((0, 0, 0), 3)),
        ("group_decays", put((0, 0, 0), -1.0)),
        ("group_decays", put((0, 0, 0), np.nan)),
        ("group_shares", put((0, 0, 0), 2.0)),
        ("labels", put((0, 0, 0), 1)),
        ("error_rate", put((0, 0), -0.1)),
        ("agent_error_rate", put((0, 0, 0), np.inf)),
    ],
)
def test_damaged_draws_are_refused(name, change, tmp_path):
    fit = with_errors("bernoulli", True)._fit
    path = tmp_path / "fit.permix"
    again(fit, path)
    with pytest.raises((FileFormatError, DataError)):
        again(damaged(fit, name, change), path)


def again(fit, path):
    permix.BayesianMallowsMixture._from_fit(fit).save(path)
    permix.load(path)


def test_the_schema_has_all_that_chains_draw():
    for fit in (with_errors("bernoulli", True)._fit, with_errors("logistic")._fit):
        assert {f"draws/{name}" for name in fit.draws.arrays} <= set(SCHEMA.arrays)
