"""Pictures of mixtures: drawn without complaint for every family, and they show what they should."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from permix import plots
from permix.dp_mixture.fit import fit_mixture
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.errors import DataError
from permix.families import Gaussian
from tests.families.cases import CASES


def fitted(X, family):
    moves = {"moves": "gibbs", "burn_in_moves": "gibbs"}
    chains = {"n_draws": 20, "n_burn_in": 10, "random_state": 0, "progress": False}
    return fit_mixture(X, DPMixtureParameters(family, **moves, **chains))


@pytest.mark.filterwarnings("ignore::permix.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_overview_of_every_family(name, tmp_path):
    family, X = CASES[name]
    fit = fitted(X, family)
    if name == next(iter(CASES)):  # to write it takes longer than to draw it
        path = tmp_path / "overview.png"
        plots.save(fit, path)
        assert path.read_bytes().startswith(b"\x89PNG")
    figure = plots.overview(fit)
    left, middle, right = figure.axes[:3]
    assert sum(len(collection.get_offsets()) for collection in left.collections) == len(X)
    heights = [bar.get_height() for bar in middle.patches]
    assert sum(heights) == pytest.approx(2.0)  # one distribution for each chain
    image = np.asarray(right.images[0].get_array())
    assert image.shape == (len(X), len(X))
    np.testing.assert_allclose(np.diag(image), 1.0)


@pytest.mark.filterwarnings("ignore::permix.errors.ConvergenceWarning")
@pytest.mark.parametrize("columns", [1, 2])
def test_one_and_two_columns_are_drawn_as_they_are(columns):
    X = np.random.default_rng(0).normal(size=(15, columns))
    fit = fitted(X, Gaussian(noise_scale=0.5))
    axes = plots.groups(fit)
    drawn = np.concatenate([np.asarray(collection.get_offsets()) for collection in axes.collections])
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(X[:, 0]))
    assert axes.get_xlabel() == "column 1"


@pytest.mark.filterwarnings("ignore::permix.errors.ConvergenceWarning")
def test_of_many_groups_the_largest_have_colors():
    """Thirty places far apart, five of them visited more often."""
    X = np.repeat(1000.0 * np.arange(30), [3] * 5 + [1] * 25)[:, None]
    axes = plots.groups(fitted(X, Gaussian(noise_scale=0.5, prior_scale=20_000.0)))
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == [
        *(f"{k + 1} (3)" for k in range(5)),
        *(f"{k + 1} (1)" for k in range(5, 12)),
        "18 others (18)",
    ]
    assert sum(len(collection.get_offsets()) for collection in axes.collections) == len(X)
    assert len(axes.collections) == 13


def test_what_is_not_fitted_is_refused():
    with pytest.raises(DataError, match="a object is no model"):
        plots.n_groups(object())


def test_pictures_of_chains_that_disagree_say_so():
    """One chain is held where it started, at one group for each row."""
    import dataclasses

    family, X = CASES["gaussian-isotropic"]
    fit = fitted(X, family)
    arrays = dict(fit.draws.arrays)
    rng = np.random.default_rng(0)
    apart = rng.normal(size=arrays["log_joint"].shape) + np.array([[0.0], [50.0]])
    fit.draws = dataclasses.replace(fit.draws, arrays={**arrays, "log_joint": apart})
    said = [text.get_text() for text in plots.overview(fit).texts]
    assert any(
        text.startswith("NOT CONVERGED: the chains disagree on") and "log_joint" in text for text in said
    )
    fit.draws = dataclasses.replace(fit.draws, arrays={**arrays, "log_joint": apart % 1.0})
    assert not any("log_joint" in text.get_text() for text in plots.overview(fit).texts)
