"""Rows that are left out, by the joint probability of all; and chains that do not mix."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from permix.dp_mixture.fit import fit_mixture
from permix.dp_mixture.left_out import log_left_out
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.dp_mixture.predict import MixturePredictive, chain_weights, draws_at, log_density
from permix.families import Categorical, Gaussian, GaussianNIW
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, MixtureOfFiniteMixtures

RNG = np.random.default_rng(0)
TABLES = {
    "gaussian": (Gaussian(noise_scale=1.0), RNG.normal(size=(9, 2))),
    "niw": (GaussianNIW(), RNG.normal(size=(9, 2))),
    "categorical": (Categorical(), RNG.integers(3, size=(9, 3)).astype(str).astype(object)),
}
MOVES = {"moves": "gibbs", "burn_in_moves": "gibbs"}
QUICK = {"n_draws": 20, "n_burn_in": 10, "random_state": 0, "progress": False, **MOVES}


def fitted(family, X, prior, **changes):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_mixture(X, DPMixtureParameters(family, prior, **{**QUICK, **changes}))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("prior", [DirichletProcess(0.7), MixtureOfFiniteMixtures()], ids=["dp", "mfm"])
def test_a_row_given_the_others_is_a_ratio_of_joint_probabilities(name, prior):
    """p(x | others, their partition): sums of p(all, partition) over p(others, partition)."""
    family, X = TABLES[name]
    fit = fitted(family, X, prior)
    draws = draws_at(fit, np.array([3, 25]))
    rows = np.array([0, 4, 8])
    found = log_left_out(MixturePredictive(fit), draws, rows)

    def log_joint(data, n, labels):
        state = MixtureState(family, data, n, prior)
        state.set_labels(labels)
        return state.log_joint()

    for draw, values in zip(draws, found, strict=True):
        family = fit.family.with_values(draw.learned) if draw.learned else fit.family
        for row, value in zip(rows, values, strict=True):
            rest = np.arange(fit.n) != row
            without = log_joint(fit.family.encode(X[rest]), fit.n - 1, draw.labels[rest])
            total = -np.inf
            for group in [*np.unique(draw.labels[rest]), 99]:
                labels = draw.labels.astype(np.int64).copy()
                labels[row] = group
                total = np.logaddexp(total, log_joint(fit.data, fit.n, labels))
            assert value == pytest.approx(total - without, abs=1e-8)


def test_a_chain_that_predicts_left_out_rows_counts():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(-6, 1, (60, 2)), rng.normal(6, 1, (40, 2))])
    fit = fitted(Gaussian(noise_scale=1.0), X, DirichletProcess(1.0))
    arrays = {name: array.copy() for name, array in fit.draws.arrays.items()}
    arrays["labels"][1] = 0
    arrays["n_groups"][1] = 1
    arrays["log_joint"] = rng.normal(size=(2, 20)) + np.array([[0.0], [-500.0]])
    stuck = dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, arrays=arrays))
    assert chain_weights(stuck)[0] > 0.95
    # The other way round the other chain is right: weights follow predictions, not the order of chains.
    flipped = {name: array[::-1].copy() for name, array in arrays.items()}
    turned = dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, arrays=flipped))
    assert chain_weights(turned)[1] > 0.95
    whole = dataclasses.replace(
        fit, draws=dataclasses.replace(fit.draws, arrays={n: a[:1] for n, a in arrays.items()})
    )
    stacked, alone = (log_density(each, each.data, each.n)[0].mean() for each in (stuck, whole))
    assert stacked == pytest.approx(alone, abs=0.1)
