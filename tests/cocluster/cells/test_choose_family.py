"""Which family cells get where none is asked for, in Python and on the command line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import permix
from permix.cocluster.cells.choose_family import family_for
from permix.errors import ConvergenceWarning, PermixWarning
from tests.cocluster.cases import QUICK, planted_grid, quiet_fit

TOLD = "different values, not all whole, and are taken for numbers: "


@pytest.fixture(scope="module")
def numbers():
    """Numbers in two decimals, as continuous ratings are."""
    X, *truth = planted_grid(np.random.default_rng(2), "gaussian")
    return X.round(2), *truth


def two_decimals(n):
    return np.random.default_rng(0).uniform(-10, 10, n).round(2)


@pytest.mark.parametrize(
    ("values", "family"),
    [
        (two_decimals(5000), "gaussian"),
        (two_decimals(24), "gaussian"),  # a small matrix, hardly a value twice
        (np.arange(5000) % 51 / 10, "gaussian"),
        (np.arange(5000) % 50 / 10, "categorical"),
        (np.arange(12) % 10 / 2 + 0.5, "categorical"),  # half stars
        (np.arange(24) % 13 / 4, "gaussian"),
        (np.arange(26) % 13 / 4, "categorical"),
        (np.arange(-500.0, 500.0), "categorical"),  # whole, however many: refused or warned about
        (np.arange(200), "categorical"),
        (np.array(["1.5", "2.25", "x"] * 40, dtype=object), "categorical"),
        (np.array([]), "categorical"),
    ],
)
def test_the_family_follows_the_values(values, family):
    assert family_for(values) == family


@pytest.mark.parametrize("prior", ["mfm", "mondrian"])
def test_numbers_are_taken_for_numbers(prior, numbers, tmp_path):
    X, rows, _ = numbers
    with pytest.warns(PermixWarning, match=rf"\d+ {TOLD}family='gaussian'; family='categorical' takes"):
        model = permix.CoClustering(prior, **QUICK).fit(X)
    assert (model.family, model.family_.name) == ("auto", "gaussian")
    assert permix.adjusted_rand(model.row_labels_, rows) > 0.9
    assert not hasattr(model, "predict_cells_proba")
    asked = quiet_fit(permix.CoClustering(prior, "gaussian", **QUICK), X)
    assert np.array_equal(model.predict_cells(), asked.predict_cells())
    model.save(tmp_path / "fit.permix")
    again = permix.load(tmp_path / "fit.permix")
    assert (again.family, again.family_) == ("auto", model.family_)


def test_an_ensemble_takes_its_bases_families(numbers):
    with pytest.warns(PermixWarning, match=TOLD) as told:
        model = permix.CoClusteringEnsemble(n_base=2, **QUICK).fit(numbers[0])
    assert model.family_.name == "gaussian"
    assert sum(TOLD in str(one.message) for one in told) == 1


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_ratings_stay_levels(step):
    X, *_ = planted_grid(np.random.default_rng(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = permix.CoClustering(**QUICK).fit(X * step)
    assert model.family_.levels == tuple(level * step for level in (1, 2, 3))


def test_the_command_says_so_once(run, numbers, tmp_path):
    """Cells held out are judged with the others: a part of them could have fewer different values."""
    pd.DataFrame(numbers[0]).add_prefix("joke ").to_csv(tmp_path / "numbers.csv", index=False)
    command = ("fit", "cocluster", tmp_path / "numbers.csv", "--draws", 20, "--burn-in", 20, "--seed", 1)
    for more in ((), ("--held-out", 0.2), ("--prior", "mondrian")):
        code, out, err = run(*command, *more, "-o", tmp_path / "fit.permix", "--force", "--json")
        assert code == 0
        assert json.loads(out)["family"] == "gaussian"
        assert err.count(f"{TOLD}--family gaussian; --family categorical takes levels") == 1
    levels = ",".join(map(str, np.unique(numbers[0][~np.isnan(numbers[0])])))
    code, out, err = run(*command, "--levels", levels, "-o", tmp_path / "fit.permix", "--force", "--json")
    assert code == 0
    assert json.loads(out)["family"] == "categorical"
    assert TOLD not in err
