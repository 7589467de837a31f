"""Families as users meet them: hyper-parameters, encoding, errors that name the cell."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from permix.errors import DataError
from permix.families import (
    Categorical,
    Gaussian,
    GaussianDiagonal,
    GaussianNIW,
    Multinomial,
    family_from_description,
)
from tests.families.cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_description_round_trip(name):
    family, X = CASES[name]
    back = family_from_description(family.describe()).resolve_saved()
    assert back == family
    assert hash(back) == hash(family)
    first, second = family.encode(X), back.encode(X)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (first, second)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert family.n_features == X.shape[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(noise_scale=0.0), "noise_scale must be positive"),
        (lambda: Gaussian(prior_scale=float("inf")), "prior_scale must be positive and finite"),
        (lambda: Gaussian(prior_mean=float("nan")), "prior_mean"),
        (lambda: Gaussian(noise_scale=[1, 2, 3]).resolve(np.zeros((2, 2))), "one for each of the 2 columns"),
        (lambda: GaussianNIW(prior_strength=-1), "prior_strength"),
        (lambda: GaussianNIW(degrees_of_freedom=1.0).resolve(np.eye(3)), "above 2 for 3 columns"),
        (lambda: GaussianNIW(scale=[1.0]).resolve(np.eye(3)), "3 × 3"),
        (lambda: GaussianNIW(scale=[[1.0, 2.0], [2.0, 1.0]]).resolve(np.eye(2)), "positive definite"),
        (lambda: Multinomial(pseudo_count=-0.1), "pseudo_count"),
        (lambda: Multinomial(document_length=-1), "document_length"),
        (lambda: Multinomial().resolve([[1.0, 2.5]]), "row 1, column 2 is 2.5"),
        (lambda: Multinomial().resolve([[1.0, 2.0], [0.0, -3.0]]), "row 2, column 2 is -3"),
        (lambda: Multinomial().resolve([[1.0, float("inf")]]), "row 1, column 2 is inf"),
        (lambda: Multinomial().resolve([[1.0, float("nan")]]), "column 2 has no entry at all"),
        (
            lambda: Multinomial(0.4).resolve([[1.0, 2.0, 0.0], [3.0, 1.0, float("nan")]]),
            "row 2 has counts in columns whose pseudo-counts sum to 0.8",
        ),
        (lambda: Categorical(levels=[["a", "a"]]), "all different"),
        (lambda: Categorical().resolve([[None, 1], [None, 2]]), "column 1 has no entry"),
        (
            lambda: Categorical(levels=[["a", "b"]]).encode([["c"]]),
            "row 1, column 1: 'c' is not a known answer",
        ),
        (lambda: Categorical(levels=[["a"]]).encode([["a", "b"]]), "2 features"),
        (lambda: Gaussian().resolve([1.0, 2.0]), "rows and columns"),
        (lambda: family_from_description({"name": "cauchy"}), "unknown family 'cauchy'"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("family", [Gaussian(gaps=False), GaussianDiagonal(gaps=False)])
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_cells_are_named(family, bad, word):
    X = np.zeros((3, 2))
    X[1, 1] = bad
    with pytest.raises(DataError, match=f"contains {word}: row 2, column 2[.] The"):
        family.resolve(X)
    X[2] = bad
    with pytest.raises(DataError, match=r"row 2, column 2 \(and 2 more, in columns 1, 2\)"):
        family.resolve(X)


def test_sparse_and_dense_counts_are_the_same():
    X = np.array([[0, 2, 1], [3, 0, 0], [0, 0, 0]])
    coo = sparse.coo_array((np.array([2, 1, 1, 2, 0]), ([0, 0, 1, 1, 2], [1, 2, 0, 0, 1])), shape=(3, 3))
    family = Multinomial()
    for a, b in zip(family.encode(X), family.encode(coo), strict=True):  # duplicates summed, zeros dropped
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["list", "object", "pandas", "polars"])
def test_categories_from_any_table(kind):
    rows = [["yes", 1, "a"], ["no", None, ""], ["yes", 3, "b"]]
    table = {
        "list": rows,
        "object": np.array(rows, dtype=object),
        "pandas": pd.DataFrame(rows, columns=list("xyz")),
        "polars": pl.DataFrame(rows, schema=["x", "y", "z"], orient="row"),
    }[kind]
    family = Categorical().resolve(table)
    assert family.levels == (("no", "yes"), (1, 3), ("a", "b"))
    np.testing.assert_array_equal(family.encode(table), [[1, 0, 0], [0, -1, -1], [1, 1, 1]])
    assert family.decode(np.array([[1, 0, 0]])).tolist() == [["yes", 1, "a"]]


def test_numeric_categories_come_back_as_numbers():
    family = Categorical().resolve(np.array([[1.0, 2.5], [3.0, np.nan]]))
    assert family.levels == ((1, 3), (2.5,))
    drawn = family.decode(np.array([[1, 0]]))
    assert drawn.dtype == np.float64
    assert drawn.tolist() == [[3.0, 2.5]]


def test_niw_defaults_follow_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal([5.0, -3.0], [2.0, 0.1], (400, 2))
    family = GaussianNIW().resolve(X)
    np.testing.assert_allclose(family.prior_mean, X.mean(axis=0))
    np.testing.assert_allclose(np.diag(family.scale) / X.var(axis=0), 0.3 * 5.0)
    constant = GaussianNIW().resolve(np.ones((4, 2)))  # no spread to take a scale from
    assert np.all(np.diag(constant.scale) > 0)


def test_constant_columns_whose_mean_is_rounded():
    for constant in (0.1, 1e6 + 0.1):
        X = np.column_stack([np.arange(100.0), np.full(100, constant)])
        assert GaussianNIW().resolve(X).scale[1, 1] == pytest.approx(0.3 * 5.0)


def test_encoded_data_are_a_copy():
    for family in (Gaussian(), GaussianNIW()):
        X = np.eye(3)
        encoded = family.resolve(X).encode(X)
        X[:] = 7.0
        assert encoded[0, 1] == 0.0


def test_pandas_ways_to_say_nothing():
    frame = pd.DataFrame(
        {
            "a": pd.array(["x", None, "y"], dtype="string"),
            "b": pd.array([1, None, 2], dtype="Int64"),
            "c": pd.Categorical(["u", None, "v"]),
        }
    )
    family = Categorical().resolve(frame)
    assert family.levels == (("x", "y"), (1, 2), ("u", "v"))
    np.testing.assert_array_equal(family.encode(frame), [[0, 0, 0], [-1, -1, -1], [1, 1, 1]])


def test_numpy_numbers_become_plain_ones():
    import json

    for family in (
        Gaussian(np.float32(1.5)),
        GaussianNIW(prior_strength=np.float32(0.5)),
        Multinomial(document_length=np.int64(2)),
        Categorical(levels=[np.arange(3), np.array(["a", "b"])]),
    ):
        json.dumps(family.describe())
    with pytest.raises(DataError, match="text or numbers, not datetime"):
        Categorical().resolve(pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2020-01-02"])}))
    with pytest.raises(DataError, match="whole number"):
        Multinomial(document_length=2.5)


@pytest.mark.parametrize("pointers", [[1, 2, 4], [0, 2, 3], [0, 5, 4], [0, -1, 4]])
def test_broken_row_pointers_do_not_reach_sparse_code(pointers):
    family = Multinomial().resolve([[1, 2], [3, 4]])
    data = family.encode([[1, 2], [3, 4]])
    family.check_encoded(data, 2)
    with pytest.raises(DataError, match="broken row pointers"):
        family.check_encoded(data._replace(indptr=np.array(pointers)), 2)


FAMILIES_OF_CELLS = [Gaussian(), GaussianNIW(), Multinomial(), Categorical()]


@pytest.mark.parametrize("family", FAMILIES_OF_CELLS, ids=lambda family: family.name)
def test_masks_and_dates_are_refused(family):
    X = np.ones((4, 2))
    masked = np.ma.masked_array(X, mask=False)
    family.resolve(masked)  # nothing is masked
    masked[2, 1] = np.ma.masked
    with pytest.raises(DataError, match="row 3, column 2 is masked"):
        family.resolve(masked).encode(masked)
    dates = np.array([["2020-01-01", "2020-01-02"]] * 4, dtype="datetime64[D]")
    mixed = X.astype(object)
    mixed[1, 0] = datetime.datetime(2020, 1, 1)
    for table, place in (
        (dates, "row 1, column 1"),
        (dates - dates[0, 0], "row 1"),
        (mixed, "row 2, column 1"),
    ):
        with pytest.raises(DataError, match=f"{place}.* is a date or time"):
            family.resolve(table).encode(table)


@pytest.mark.parametrize("family", FAMILIES_OF_CELLS[:2], ids=lambda family: family.name)
def test_numbers_too_large_to_be_squared(family):
    X = np.ones((4, 2))
    X[3, 1] = -1e155
    with pytest.raises(DataError, match=r"row 4, column 2 is -1e\+155, and numbers beyond 1e\+100"):
        family.resolve(X).encode(X)
    X[3, 1] = 1e99
    family.resolve(X).encode(X)


def test_numbers_too_small_to_be_squared():
    X = np.random.default_rng(0).normal(size=(9, 2)) * [1.0, 1e-160]
    with pytest.raises(DataError, match="column 2: its values differ too little"):
        GaussianNIW().resolve(X)


@pytest.mark.parametrize("family", ["gaussian-niw", "categorical"])
def test_the_estimator_names_masks_and_dates(family):
    from permix import DPMixture

    model = DPMixture(family=family)
    masked = np.ma.masked_array(np.ones((4, 2)), mask=[[False, False]] * 3 + [[False, True]])
    with pytest.raises(DataError, match="row 4, column 2 is masked"):
        model.fit(masked)
    frame = pd.DataFrame({"a": range(3), "when": pd.date_range("2020-01-01", periods=3)})
    for table in (frame, pl.from_pandas(frame)):
        with pytest.raises(DataError, match="column 'when' holds dates or times"):
            model.fit(table)
    with pytest.raises(DataError, match="row 1, column 'when' is a date or time"):
        model.fit(frame.astype(object))
