"""What holds for every estimator (names, types, shapes), over everything that is registered."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import permix
from permix import plots
from permix.estimators.base import ScoreMixin
from permix.estimators.registry import MODELS, part
from tests.estimators.examples import EXAMPLES, NAMES, fitted

# What a model cannot have, and why.
HAS_NO = {
    ("MallowsKDE", "labels_"): "an estimate of a density has no groups",
    ("MallowsKDE", "predict"): "an estimate of a density has no groups",
    ("MallowsKDE", "predict_proba"): "an estimate of a density has no groups",
    ("AngleClassifier", "labels_"): "classes are given, not found",
    ("AngleClassifier", "score_samples"): "its score is the share of right answers, as of every classifier",
    ("AngleClassifier", "log_likelihood_"): "it is as many fits as there are classes",
}


def having(attribute):
    return [name for name in NAMES if (name, attribute) not in HAS_NO]


def data_of(name):
    return EXAMPLES[name].data()


def n_rows(name):
    return len(data_of(name))


@pytest.mark.parametrize("name", having("labels_"))
def test_labels_have_one_entry_for_each_row(name):
    labels = fitted(name).labels_
    assert labels.shape == (n_rows(name),)
    assert labels.dtype.kind == "i"
    assert labels.min() >= 0


@pytest.mark.parametrize("name", having("predict"))
def test_predict_gives_the_group_of_each_row(name):
    groups = fitted(name).predict(data_of(name))
    assert groups.shape == (n_rows(name),)


@pytest.mark.parametrize("name", having("predict_proba"))
def test_predict_proba_gives_probabilities_of_groups(name):
    shares = fitted(name).predict_proba(data_of(name))
    assert shares.ndim == 2
    assert len(shares) == n_rows(name)
    model = fitted(name)
    novelty = model.predict_novelty(data_of(name)) if hasattr(model, "predict_novelty") else 0.0
    np.testing.assert_allclose(shares.sum(axis=1) + novelty, 1.0, atol=1e-9)
    assert np.all(shares >= 0.0)
    groups = shares.argmax(axis=1)
    np.testing.assert_array_equal(
        model.predict(data_of(name)), getattr(model, "classes_", np.arange(99))[groups]
    )


@pytest.mark.parametrize("name", having("score_samples"))
def test_score_is_the_mean_of_score_samples_over_agents(name):
    model, data = fitted(name), data_of(name)
    scores = model.score_samples(data)
    assert scores.shape == (n_rows(name),)
    again, errors = model.score_samples(data, return_error=True)
    np.testing.assert_array_equal(again, scores)
    assert errors.shape == scores.shape
    assert np.all(errors >= 0.0)
    score = model.score(data)
    assert type(score) is float
    assert score == pytest.approx(np.average(scores, weights=getattr(data, "counts", None)), abs=1e-12)


def test_a_column_called_counts_is_no_number_of_agents():
    class Flat(ScoreMixin):
        def _log_densities(self, X):
            return np.array([0.0, 1.0]), np.zeros(2)

    assert Flat().score(pd.DataFrame({"counts": [1, 9]})) == 0.5
    rankings = permix.Rankings.from_orders([[0, 1], [1, 0]], counts=[1, 9])
    assert Flat().score(rankings) == 0.9


@pytest.mark.parametrize("name", NAMES)
def test_summary_and_diagnostics_are_frames(name):
    model = fitted(name)
    assert isinstance(model.summary(), pd.DataFrame)
    assert isinstance(model.diagnostics(), pd.DataFrame)
    assert len(model.summary()) > 0


@pytest.mark.parametrize("name", NAMES)
def test_samplers_have_a_posterior_and_ascents_a_history(name):
    model = fitted(name)
    parameters = model.get_params()
    draws = getattr(model._fit, "draws", None)
    if draws is not None:
        assert "posterior_" not in vars(model)  # built on first use
        assert isinstance(model.posterior_, xr.DataTree)
        assert "posterior" in model.posterior_.children
    elif "n_init" in parameters and name != "AngleClassifier":
        assert isinstance(model.history_, pd.DataFrame)


@pytest.mark.parametrize("name", having("log_likelihood_"))
def test_log_likelihood_is_a_float(name):
    assert isinstance(fitted(name).log_likelihood_, float)


@pytest.mark.parametrize("name", NAMES)
def test_names_have_one_meaning(name):
    """Parameters that several models share are the same declaration, or at least the same kind of value."""
    known = {
        "n_init": int,
        "max_iter": int,
        "tol": float,
        "n_draws": str,  # "auto"
        "n_burn_in": int,
        "n_thin": int,
        "n_chains": int,
        "n_components": int,
    }
    for parameter, about in type(fitted(name))._parameters_class.declared.items():
        if parameter in known and about.default is not None:
            assert type(about.default) is known[parameter], parameter
        assert not parameter.startswith(("alpha", "beta", "theta", "kappa", "lambda"))


@pytest.mark.parametrize("name", NAMES)
def test_estimators_can_be_cloned(name):
    copy = clone(fitted(name))
    assert not [key for key in vars(copy) if key.endswith("_") and not key.startswith("_")]
    assert repr(copy.get_params()) == repr(fitted(name).get_params())


@pytest.mark.parametrize("name", NAMES)
def test_pictures_take_axes_or_a_figure_and_nothing_else_by_position(name):
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    mpl.use("Agg")
    about = MODELS[name]
    pictures = part(about.pictures).PICTURES if about.pictures else {}
    assert set(pictures) <= set(plots.PICTURES)
    for picture, draw in pictures.items():
        parameters = inspect.signature(draw).parameters
        kinds = [parameter.kind for parameter in list(parameters.values())[1:]]
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds), picture
        assert ("ax" in parameters) != ("figure" in parameters), picture
        if picture in ("roc", "mondrian"):  # these need data, or a prior, that the example has not
            continue
        if "ax" in parameters:
            figure, axes = plt.subplots()
            assert getattr(plots, picture)(fitted(name), ax=axes) is axes
            plt.close(figure)
            assert isinstance(getattr(plots, picture)(fitted(name)), Axes)
        else:
            figure = Figure()
            assert getattr(plots, picture)(fitted(name), figure=figure) is figure
            assert figure.axes
        with pytest.raises(permix.errors.DataError, match=r"x\.png"):
            getattr(plots, picture)(fitted(name), **{"ax" if "ax" in parameters else "figure": "x.png"})
    plt.close("all")
