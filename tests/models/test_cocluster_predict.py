"""Predictions of fitted co-clusterings against computation by hand from their draws."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import permix
from permix.data.cells import Cells
from permix.errors import DataError
from tests.models.cocluster_cases import planted_grid, planted_mondrian, quick, quiet_fit

NAMES = tuple(f"film{j}" for j in range(24))
PEOPLE = tuple(f"p{i}" for i in range(40))


@pytest.fixture(scope="module")
def cells():
    X, _, _ = planted_grid(np.random.default_rng(1))
    rows, columns = np.nonzero(~np.isnan(X))
    return Cells(rows, columns, X[rows, columns], X.shape, PEOPLE, NAMES)


@pytest.fixture(scope="module")
def parts(cells):
    return cells.split(0.25, random_state=0)


@pytest.fixture(scope="module")
def fitted(parts):
    return quiet_fit(quick(), parts[0])


@pytest.fixture(scope="module")
def nested():
    X, _, _ = planted_mondrian(np.random.default_rng(2))
    return X, quiet_fit(quick("mondrian"), X)


@pytest.fixture(scope="module")
def numbers():
    X, _, _ = planted_grid(np.random.default_rng(4), "gaussian")
    return X, quiet_fit(quick(family="gaussian"), X)


def block_ids(model, chain, draw):
    """Block of every cell in one draw, from the draws themselves."""
    posterior = model.posterior_["posterior"].isel(chain=chain, draw=draw)
    rows, columns = posterior["row_labels"].to_numpy(), posterior["column_labels"].to_numpy()
    if model.tree_ is None:
        return rows[:, None].astype(int) * 1000 + columns
    tree = permix.partitions.mondrian.MondrianTree.from_preorder(
        *(posterior[f"tree_{name}"].to_numpy() for name in ("axis", "cut", "time")), model.budget
    )
    return tree.table()[rows][:, columns]


def by_hand(model, X, levels):
    """Average over all draws of (count of a level + 1) / (cells + levels) in the block of every cell."""
    total = np.zeros((*X.shape, len(levels)))
    for chain, draw in itertools.product(range(2), range(60)):
        blocks = block_ids(model, chain, draw)
        for block in np.unique(blocks):
            inside = blocks == block
            values = X[inside]
            values = values[~np.isnan(values)]
            counts = np.array([(values == level).sum() for level in levels])
            total[inside] += (counts + 1.0) / (len(values) + len(levels))
    return total / 120


@pytest.mark.parametrize("which", ["fitted", "nested"])
def test_probabilities_by_hand(which, fitted, nested, parts):
    X, model = (parts[0].dense(), fitted) if which == "fitted" else nested
    levels = model.family_.levels
    expected = by_hand(model, X, levels)
    ours = model.predict_proba()
    np.testing.assert_allclose(ours, expected, rtol=1e-10)
    np.testing.assert_allclose(ours.sum(axis=-1), 1.0)
    np.testing.assert_array_equal(model.predict(), np.array(levels)[expected.argmax(axis=-1)])
    np.testing.assert_allclose(model.predict_mean(), expected @ np.array(levels, dtype=float))
    filled = ~np.isnan(X)
    codes = np.searchsorted(levels, X[filled])
    score = np.log(expected[filled][np.arange(len(codes)), codes]).mean()
    assert model.score(X) == pytest.approx(score, rel=1e-10)
    assert model.perplexity(X) == pytest.approx(np.exp(-score), rel=1e-10)


def test_held_out_cells(fitted, parts):
    kept, held_out = parts
    held = held_out.dense()
    filled = ~np.isnan(held)
    codes = np.searchsorted(fitted.family_.levels, held[filled])
    expected = np.log(fitted.predict_proba()[filled][np.arange(len(codes)), codes]).mean()
    assert fitted.score(held_out) == pytest.approx(expected, rel=1e-10)
    assert fitted.score(held) == pytest.approx(expected, rel=1e-10)
    # Better than guessing by overall shares, as a co-clustering must be here.
    shares = np.array([(kept.values == level).mean() for level in fitted.family_.levels])
    assert fitted.perplexity(held_out) < np.exp(-np.log(shares[codes]).mean()) - 0.3
    # Rows and columns in another order, and only some of them, are matched by name.
    places = np.nonzero(filled)
    shuffled = Cells.from_long(
        [PEOPLE[i] for i in places[0][::-1]], [NAMES[j] for j in places[1][::-1]], held[filled][::-1]
    )
    assert fitted.score(shuffled) == pytest.approx(expected, rel=1e-10)


def test_cells_by_name_and_by_number(fitted):
    table = fitted.predict_proba()
    asked = [("p3", "film7"), ("p39", "film0"), ("p3", "film7")]
    np.testing.assert_allclose(fitted.predict_proba(cells=asked), table[[3, 39, 3], [7, 0, 7]])
    np.testing.assert_allclose(
        fitted.predict_proba(cells=np.array([[3, 7], [39, 0]])), table[[3, 39], [7, 0]]
    )
    assert fitted.predict(cells=asked).shape == (3,)
    assert fitted.predict(cells=[]).shape == (0,)
    for bad, message in (
        ([("nobody", "film7")], "nobody"),
        ([("p3", "film99")], "film99"),
        ([(3, 24)], "24"),
        ([(3,)], "pairs"),
        (["p3"], "pairs"),
        ("p3", "sequence"),
    ):
        with pytest.raises(DataError, match=message):
            fitted.predict(cells=bad)


def test_completion_keeps_what_is_known(fitted, parts):
    X = parts[0].dense()
    table = fitted.complete()
    filled = ~np.isnan(X)
    np.testing.assert_array_equal(table[filled], X[filled])
    np.testing.assert_array_equal(table[~filled], fitted.predict()[~filled])


def test_numbers(numbers):
    X, model = numbers
    assert model.predict().shape == X.shape
    np.testing.assert_array_equal(model.predict(), model.predict_mean())
    residual = X - model.predict()
    assert np.nanstd(residual) == pytest.approx(1.0, abs=0.1)
    # ln density of N(0, 1) noise, but for what is not known of means and variances.
    assert model.score(X) == pytest.approx(-0.5 * np.log(2 * np.pi * np.e), abs=0.1)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba()
    with pytest.raises(DataError, match="gaussian have no levels"):  # what the command line says
        model._answers.predict_proba()


def test_new_rows(fitted, parts):
    X = parts[0].dense()
    new = X[[0, 1, 2]]
    rows = fitted.predict_rows(new)
    np.testing.assert_array_equal(rows, fitted.row_labels_[:3])
    shares = fitted.predict_rows_proba(new)
    assert shares.shape == (3, fitted.n_row_clusters_)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # What a copy of a fitted row is predicted to say is nearly what that row is predicted to say.
    difference = np.abs(fitted.predict_proba(new) - fitted.predict_proba()[:3])
    assert difference.max() < 0.1
    completed = fitted.complete(new)
    np.testing.assert_array_equal(completed[~np.isnan(new)], new[~np.isnan(new)])
    assert not np.isnan(completed).any()
    asked = fitted.predict_proba(new, cells=[(2, 5), (0, "film3")])
    np.testing.assert_allclose(asked, fitted.predict_proba(new)[[2, 0], [5, 3]])
    assert fitted.score_samples(new).shape == (3,)
    # A row of answers in which every film is liked by those who like the others less is nobody's.
    assert fitted.score_samples(new).max() < 0.0


def test_few_answers_already_tell(fitted, parts):
    """The more is known of a new row, the surer its cluster."""
    X = parts[0].dense()
    row = next(i for i in range(40) if (~np.isnan(X[i])).sum() > 12)
    known = np.flatnonzero(~np.isnan(X[row]))
    sureness = []
    for n in (1, 4, len(known)):
        new = np.full((1, 24), np.nan)
        new[0, known[:n]] = X[row, known[:n]]
        sureness.append(fitted.predict_rows_proba(new)[0, fitted.row_labels_[row]])
    assert sureness[0] < sureness[1] + 0.05
    assert sureness[2] > 0.95 > sureness[0]


def test_new_rows_of_a_mondrian(nested):
    X, model = nested
    new = X[:4]
    assert model.predict(new).shape == (4, X.shape[1])
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=-1), 1.0)
    np.testing.assert_array_equal(model.predict_rows(new), model.row_labels_[:4])


def test_new_rows_with_other_columns(fitted):
    some = Cells.from_long(["new", "new"], ["film3", "film1"], [1, 2])
    full = np.full((1, 24), np.nan)
    full[0, [3, 1]] = [1, 2]
    np.testing.assert_allclose(fitted.predict_proba(some), fitted.predict_proba(full))
    np.testing.assert_array_equal(fitted.complete(some), fitted.complete(full))
    with pytest.raises(DataError, match="film77"):
        fitted.predict(Cells.from_long(["new"], ["film77"], [1]))


def test_new_rows_that_cannot_be(fitted):
    with pytest.raises(ValueError, match="24 features"):
        fitted.predict(np.ones((2, 5)))
    row = np.full((1, 24), np.nan)
    row[0, 2] = 7.0
    with pytest.raises(DataError, match=r"column.*film2.*7.0 is none of the known values \(1, 2, 3\)"):
        fitted.predict(row)
    with pytest.raises(DataError, match="no filled cell"):
        fitted.predict(np.full((1, 24), np.nan))


def test_frames_keep_their_names():
    X, _, _ = planted_grid(np.random.default_rng(1))
    frame = pd.DataFrame(X, index=PEOPLE, columns=NAMES)
    model = quiet_fit(quick(n_draws=5), frame)
    assert model.feature_names_in_.tolist() == list(NAMES)
    assert model.posterior_["posterior"]["column"].to_numpy().tolist() == list(NAMES)
    assert model.posterior_["posterior"]["row"].to_numpy().tolist() == list(PEOPLE)
    assert model.predict(cells=[("p0", "film3")]).shape == (1,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"film0": "other"}))
