"""Predictions of fitted co-clusterings against computation by hand from their draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import permix
from permix.cocluster.block_predict import block_sums
from permix.cocluster.cells.families import CategoricalCells
from permix.data.cells import Cells
from permix.errors import DataError
from permix.posterior.stacking import draws_of_chains
from tests.cocluster.cases import planted_grid, planted_mondrian, quick, quiet_fit

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


def block_ids(model, posterior, chain, draw):
    """Block of every cell in one draw, from the draws themselves."""
    rows, columns = (posterior[name][chain, draw] for name in ("row_labels", "column_labels"))
    if model.tree_ is None:
        return rows[:, None].astype(int) * 1000 + columns
    tree = permix.partitions.mondrian.MondrianTree.from_preorder(
        *(posterior[f"tree_{name}"][chain, draw] for name in ("axis", "cut", "time")), model.budget
    )
    return tree.table()[rows][:, columns]


def by_hand(model, X, levels, pseudo_count=None):
    """Average over draws of (count of a level + β) / (cells + levels β) in the block of every cell.

    β is that of the draw, or the given one. The short chains disagree: each counts by its weight.
    """
    total = np.zeros((*X.shape, len(levels)))
    weights = model._fit.chain_weights
    every = np.arange(120) if weights is None else draws_of_chains(weights, 60, 200)
    posterior = {str(name): array.to_numpy() for name, array in model.posterior_["posterior"].items()}
    for chain, draw in (divmod(int(place), 60) for place in every):
        blocks = block_ids(model, posterior, chain, draw)
        learned = float(posterior["pseudo_count"][chain, draw])
        beta = learned if pseudo_count is None else pseudo_count
        for block in np.unique(blocks):
            inside = blocks == block
            values = X[inside]
            values = values[~np.isnan(values)]
            counts = np.array([(values == level).sum() for level in levels])
            total[inside] += (counts + beta) / (len(values) + beta * len(levels))
    return total / len(every)


@pytest.mark.parametrize("which", ["fitted", "nested"])
def test_probabilities_by_hand(which, fitted, nested, parts):
    X, model = (parts[0].dense(), fitted) if which == "fitted" else nested
    levels = model.family_.levels
    expected = by_hand(model, X, levels)
    ours = model.predict_cells_proba()
    np.testing.assert_allclose(ours, expected, rtol=1e-10)
    np.testing.assert_allclose(ours.sum(axis=-1), 1.0)
    np.testing.assert_array_equal(model.predict_cells(), np.array(levels)[expected.argmax(axis=-1)])
    np.testing.assert_allclose(model.predict_cells_mean(), expected @ np.array(levels, dtype=float))
    filled = ~np.isnan(X)
    codes = np.searchsorted(levels, X[filled])
    score = np.log(expected[filled][np.arange(len(codes)), codes]).mean()
    assert model.score_cells(X) == pytest.approx(score, rel=1e-10)
    assert model.perplexity(X) == pytest.approx(np.exp(-score), rel=1e-10)
    # The twin: one pseudo-count for all draws is not enough, not even their mean.
    twin = by_hand(model, X, levels, model.family_.pseudo_count)
    assert np.abs(ours - twin).max() > 1e-5


def test_held_out_cells(fitted, parts):
    kept, held_out = parts
    held = held_out.dense()
    filled = ~np.isnan(held)
    codes = np.searchsorted(fitted.family_.levels, held[filled])
    expected = np.log(fitted.predict_cells_proba()[filled][np.arange(len(codes)), codes]).mean()
    assert fitted.score_cells(held_out) == pytest.approx(expected, rel=1e-10)
    assert fitted.score_cells(held) == pytest.approx(expected, rel=1e-10)
    # Better than guessing by overall shares, as a co-clustering must be here.
    shares = np.array([(kept.values == level).mean() for level in fitted.family_.levels])
    assert fitted.perplexity(held_out) < np.exp(-np.log(shares[codes]).mean()) - 0.3
    # Rows and columns in another order, and only some of them, are matched by name.
    places = np.nonzero(filled)
    shuffled = Cells.from_long(
        [PEOPLE[i] for i in places[0][::-1]], [NAMES[j] for j in places[1][::-1]], held[filled][::-1]
    )
    assert fitted.score_cells(shuffled) == pytest.approx(expected, rel=1e-10)


def test_cells_by_name_and_by_number(fitted):
    table = fitted.predict_cells_proba()
    asked = [("p3", "film7"), ("p39", "film0"), ("p3", "film7")]
    np.testing.assert_allclose(fitted.predict_cells_proba(cells=asked), table[[3, 39, 3], [7, 0, 7]])
    np.testing.assert_allclose(
        fitted.predict_cells_proba(cells=np.array([[3, 7], [39, 0]])), table[[3, 39], [7, 0]]
    )
    assert fitted.predict_cells(cells=asked).shape == (3,)
    assert fitted.predict_cells(cells=[]).shape == (0,)
    for bad, message in (
        ([("nobody", "film7")], "nobody"),
        ([("p3", "film99")], "film99"),
        ([(3, 24)], "24"),
        ([(3,)], "pairs"),
        (["p3"], "pairs"),
        ("p3", "sequence"),
    ):
        with pytest.raises(DataError, match=message):
            fitted.predict_cells(cells=bad)


def test_completion_keeps_what_is_known(fitted, parts):
    X = parts[0].dense()
    table = fitted.complete()
    filled = ~np.isnan(X)
    np.testing.assert_array_equal(table[filled], X[filled])
    np.testing.assert_array_equal(table[~filled], fitted.predict_cells()[~filled])


def test_numbers(numbers):
    X, model = numbers
    assert model.predict_cells().shape == X.shape
    np.testing.assert_array_equal(model.predict_cells(), model.predict_cells_mean())
    residual = X - model.predict_cells()
    assert np.nanstd(residual) == pytest.approx(1.0, abs=0.1)
    # ln density of N(0, 1) noise, but for what is not known of means and variances.
    assert model.score_cells(X) == pytest.approx(-0.5 * np.log(2 * np.pi * np.e), abs=0.1)
    assert not hasattr(model, "predict_cells_proba")
    with pytest.raises(AttributeError, match="predict_cells_proba"):
        model.predict_cells_proba()
    with pytest.raises(DataError, match="gaussian have no levels"):  # what the command line says
        model._answers.predict_cells_proba()


def test_new_rows(fitted, parts):
    X = parts[0].dense()
    new = X[[0, 1, 2]]
    rows = fitted.predict(new)
    np.testing.assert_array_equal(rows, fitted.row_labels_[:3])
    shares = fitted.predict_proba(new)
    assert shares.shape == (3, fitted.n_row_clusters_)
    np.testing.assert_allclose(shares.sum(axis=1) + fitted.predict_novelty(new), 1.0)
    # What a copy of a fitted row is predicted to say is nearly what that row is predicted to say.
    difference = np.abs(fitted.predict_cells_proba(new) - fitted.predict_cells_proba()[:3])
    assert difference.max() < 0.1
    completed = fitted.complete(new)
    np.testing.assert_array_equal(completed[~np.isnan(new)], new[~np.isnan(new)])
    assert not np.isnan(completed).any()
    asked = fitted.predict_cells_proba(new, cells=[(2, 5), (0, "film3")])
    np.testing.assert_allclose(asked, fitted.predict_cells_proba(new)[[2, 0], [5, 3]])
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
        sureness.append(fitted.predict_proba(new)[0, fitted.row_labels_[row]])
    assert sureness[0] < sureness[1] + 0.05
    assert sureness[2] > 0.95 > sureness[0]


def test_new_rows_of_a_mondrian(nested):
    X, model = nested
    new = X[:4]
    assert model.predict_cells(new).shape == (4, X.shape[1])
    np.testing.assert_allclose(model.predict_cells_proba(new).sum(axis=-1), 1.0)
    np.testing.assert_array_equal(model.predict(new), model.row_labels_[:4])


def test_new_rows_with_other_columns(fitted):
    some = Cells.from_long(["new", "new"], ["film3", "film1"], [1, 2])
    full = np.full((1, 24), np.nan)
    full[0, [3, 1]] = [1, 2]
    np.testing.assert_allclose(fitted.predict_cells_proba(some), fitted.predict_cells_proba(full))
    np.testing.assert_array_equal(fitted.complete(some), fitted.complete(full))
    with pytest.raises(DataError, match="film77"):
        fitted.predict_cells(Cells.from_long(["new"], ["film77"], [1]))


def test_new_rows_that_cannot_be(fitted):
    with pytest.raises(DataError, match="24 features"):
        fitted.predict_cells(np.ones((2, 5)))
    with pytest.raises(DataError, match="double brackets"):
        fitted.predict_cells([1.0, 2.0])
    row = np.full((1, 24), np.nan)
    row[0, 2] = 7.0
    with pytest.raises(DataError, match=r"column.*film2.*7 is none of the known values \(1, 2, 3\)"):
        fitted.predict_cells(row)
    with pytest.raises(DataError, match="no filled cell, hence nothing to score"):
        fitted.score_cells(np.full((40, 24), np.nan))


def test_frames_keep_their_names():
    X, _, _ = planted_grid(np.random.default_rng(1))
    frame = pd.DataFrame(X, index=PEOPLE, columns=NAMES)
    model = quiet_fit(quick(n_draws=5), frame)
    assert model.feature_names_in_.tolist() == list(NAMES)
    assert model.posterior_["posterior"]["column"].to_numpy().tolist() == list(NAMES)
    assert model.posterior_["posterior"]["row"].to_numpy().tolist() == list(PEOPLE)
    assert model.predict_cells(cells=[("p0", "film3")]).shape == (1,)
    with pytest.raises(DataError, match=r"column 'other' is unknown; the fitted columns are 'film0'"):
        model.predict_cells(frame.rename(columns={"film0": "other"}))
    assert model.cells_.column_names == NAMES


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_are_aligned_by_name(fitted, parts, make):
    """Some of the columns, in any order; also where the first looks like names of rows."""
    X = parts[0].dense()[:3]
    chosen = [7, 3, 12, 0]
    X[:, 7] = [1.0, 2.0, 3.0]
    some = np.full_like(X, np.nan)
    some[:, chosen] = X[:, chosen]
    frame = make({NAMES[j]: X[:, j] for j in chosen})
    for ask in (fitted.predict_cells_proba, fitted.complete, fitted.predict_proba, fitted.score_samples):
        np.testing.assert_allclose(ask(frame), ask(some))
    with pytest.raises(DataError, match="column 'movie' is unknown"):
        fitted.predict_cells(make({"film3": [1.0, 2.0], "movie": [1.0, 1.0]}))
    held_out = pd.DataFrame(parts[1].dense(), index=PEOPLE, columns=NAMES)
    held_out = held_out.iloc[::-1, ::-1].drop(columns="film4")
    table = parts[1].dense()
    table[:, 4] = np.nan
    assert fitted.score_cells(held_out) == pytest.approx(fitted.score_cells(table), rel=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("which", ["fitted", "nested", "numbers"])
def test_rows_of_which_nothing_is_known(which, request):
    """The prior answers: each class of rows by its weight, in every draw."""
    found = request.getfixturevalue(which)
    model = found if which == "fitted" else found[1]
    n_columns = model.n_features_in_
    nothing = np.full((2, n_columns), np.nan)
    fit = model._fit
    total = 0.0
    for draw in fit.predictive.draws:
        n, sums = block_sums(fit.matrix, draw)
        family = fit.family.at(draw.pseudo_count)
        means = family.means(n, sums)[draw.table]
        weights = np.append(draw.row_log_weights, draw.new_row_log_weight)
        weights = np.exp(weights - np.logaddexp.reduce(weights))
        new = family.means(np.zeros(1, int), np.zeros((1, fit.family.n_slots)))[0]
        total = total + (weights[:-1] @ means + weights[-1] * new)[draw.column_classes]
    expected = np.tile(total / len(fit.predictive.draws), (2, 1))
    forms = [nothing, np.ma.masked_all((2, n_columns)), csr_array((2, n_columns))]
    if which == "fitted":
        forms.append(pd.DataFrame(nothing, columns=NAMES))
        forms.append(pd.DataFrame(nothing[:, :3], columns=["film5", "film0", "film9"]))
    for form in forms:
        np.testing.assert_allclose(model.predict_cells_mean(form), expected, rtol=1e-9)
        np.testing.assert_allclose(model.score_samples(form), 0.0, atol=1e-12)
        weights = np.exp(np.append(fit.blocks.row_log_weights, fit.blocks.new_row_log_weight))
        shares = np.tile(weights[:-1] / weights.sum(), (2, 1))
        np.testing.assert_allclose(model.predict_proba(form), shares)
    # One row with cells beside one without.
    some = nothing.copy()
    some[0, 0] = fit.cells.values[0]
    np.testing.assert_allclose(model.predict_cells_mean(some)[1], expected[0], rtol=1e-9)


def test_cells_of_new_rows_given_as_cells(fitted, parts):
    X = parts[0].dense()[:3]
    rows, columns = np.nonzero(~np.isnan(X))
    new = Cells(rows, columns, X[rows, columns], X.shape, ["x", "y", "z"], NAMES)
    table = fitted.predict_cells_proba(new)
    asked = Cells.from_long(["z", "x"], ["film2", "film5"], [1, 1])
    np.testing.assert_allclose(fitted.predict_cells_proba(new, cells=asked), table[[2, 0], [2, 5]])
    with pytest.raises(DataError, match="no row 'w'; the rows are 'x', 'y', 'z'"):
        fitted.predict_cells(new, cells=Cells.from_long(["w"], ["film2"], [1]))
    by_position = Cells([1, 2], [2, 5], [1, 1], (3, 24))
    np.testing.assert_allclose(fitted.predict_cells_proba(new, cells=by_position), table[[1, 2], [2, 5]])
    with pytest.raises(DataError, match="cells has 2 rows, and there are 3 new ones"):
        fitted.predict_cells(new, cells=Cells([1], [2], [1], (2, 24)))


def test_levels_that_no_fitted_cell_has(fitted, parts):
    held = np.full((40, 24), np.nan)
    held[3, 2], held[3, 1] = 4.0, 1.0
    for ask in (fitted.score_cells, fitted.perplexity):
        with pytest.raises(
            DataError, match=r"'p3'.*'film2'.*4 is none.*CategoricalCells\(levels=\[1, 2, 3, 4\]\)"
        ):
            ask(held)
    family = CategoricalCells(levels=[4, 3, 2, 1])
    wider = quiet_fit(quick(family=family, n_draws=5), parts[0])
    assert wider.family_.levels == (4, 3, 2, 1)
    assert wider.perplexity(held) > 1.0
    zeros = quiet_fit(quick(family="bernoulli", n_draws=3), np.eye(4))
    with pytest.raises(DataError, match=r"2 is none of the known values \(0, 1\).*family='categorical'"):
        zeros.score_cells(2 * np.eye(4))


def test_names_are_not_taken_by_position():
    """A fit without names refuses names, in any order; numbers and the absence of names are fine."""
    X, _, _ = planted_grid(np.random.default_rng(1))
    model = quiet_fit(quick(n_draws=5), X)
    new, expected = X[:3], model.predict_proba(X[:3])
    for make in (pd.DataFrame, pl.DataFrame):
        frame = make({name: new[:, j] for j, name in enumerate(NAMES)})
        for ask in (model.predict_cells, model.complete, model.predict_proba, model.score_samples):
            with pytest.raises(DataError, match=r"names of columns .*the fitted one has none"):
                ask(frame)
    with pytest.raises(DataError, match=r"names of rows .*the fitted one has none"):
        model.score_cells(pd.DataFrame(X, index=PEOPLE))
    np.testing.assert_allclose(model.predict_proba(pd.DataFrame(new)), expected)
    shuffled = pd.DataFrame(X).sample(frac=1, random_state=0)
    np.testing.assert_allclose(model.predict_proba(shuffled.loc[[0, 1, 2]].iloc[:, ::-1]), expected)
    assert model.score_cells(shuffled) == pytest.approx(model.score_cells(X), rel=1e-12)
    asked = Cells.from_long(["x"], [0], [1], column_names=range(24), new_rows=True)
    with pytest.raises(DataError, match="names of rows"):
        model.predict_cells(pd.DataFrame(new), cells=asked)


def test_the_cell_that_is_no_number(fitted):
    row = [None] * 24
    row[1], row[3] = "3", "good"
    with pytest.raises(DataError, match=r"'film3': 'good' is none of .*\(1, 2, 3\)\. It is text"):
        fitted.predict_cells([row])
    row[3] = "?"
    with pytest.raises(DataError, match=r"'film3': '\?' is none of .*missing='\?'"):
        fitted.predict_cells([row])
    row[1], row[3] = None, -1
    with pytest.raises(DataError, match=r"'film3': -1 is none of .*missing=-1"):
        fitted.predict_cells([row])


def test_numbers_among_levels_that_are_text():
    """Without the word in it, a row is read as numbers: they are the levels of the same name."""
    table = [["1", "no"], ["2", "1"], ["1", "2"], ["no", "1"]]
    model = quiet_fit(quick(n_draws=5), table)
    np.testing.assert_array_equal(
        model.predict_cells_proba([[1.0, None]]), model.predict_cells_proba([["1", None]])
    )
    assert model.complete([[1, 2.0]]).tolist() == [["1", "2"]]
    held = [[None, None], [None, None], [None, "1"], [None, None]]
    numbers = np.full((4, 2), np.nan)
    numbers[2, 1] = 1
    assert model.score_cells(numbers) == model.score_cells(held)
    with pytest.raises(DataError, match=r"'7' is none of.*levels=\['1', '2', 'no', '7'\]"):
        model.predict_cells([[1, 7]])


@pytest.mark.filterwarnings("error")
def test_perplexity_of_the_absurd():
    model = quiet_fit(quick(family="poisson", n_draws=5), np.random.default_rng(0).poisson(4, (8, 5)))
    held = np.full((8, 5), np.nan)
    held[1, 2] = 99999
    assert model.perplexity(held) == np.inf
    assert np.isfinite(model.score_cells(held))


def test_text_where_numbers_belong():
    for family, said in (
        ("bernoulli", r"row 1, column 1: 'no' is none of .*Write 0 and 1, or fit with family='categorical'"),
        ("gaussian", r"row 1, column 1: 'no' is not a number.*family='categorical' takes text"),
        ("poisson", r"row 1, column 1: 'no' is not a number.*family='categorical' takes text"),
    ):
        with pytest.raises(DataError, match=said):
            quick(family=family).fit([["no", "yes"], ["yes", "no"]])
    with pytest.raises(DataError, match=r"row 1, column 2: '\?' is not a number.*missing='\?'"):
        quick(family="gaussian").fit([["1", "?"], ["2", "3"]])
    with pytest.raises(DataError, match=r"-1 is not a count.*missing=-1"):
        quick(family="poisson").fit([[1, -1], [2, 3]])


def test_what_every_estimator_has(fitted, parts):
    X = parts[0].dense()[:5]
    np.testing.assert_array_equal(fitted.labels_, fitted.row_labels_)
    scores, errors = fitted.score_samples(X, return_error=True)
    np.testing.assert_array_equal(scores, fitted.score_samples(X))
    np.testing.assert_array_equal(errors, 0.0)  # exact given the draws
    assert fitted.score(X) == pytest.approx(scores.mean(), rel=1e-12)
    assert isinstance(fitted.score(X), float)
    table = fitted.summary()
    expected = ["of", "group", "size", "placed", "share", "how_sure", "found_in_chains", "agreement"]
    assert list(table.columns) == [*expected, "members"]
    for of, labels, names in (
        ("rows", fitted.row_labels_, PEOPLE),
        ("columns", fitted.column_labels_, NAMES),
    ):
        own = table[table["of"] == of]
        assert own["size"].tolist() == np.bincount(labels).tolist()
        assert own["share"].sum() == pytest.approx(1.0)
        assert own["how_sure"].between(0.0, 1.0).all()
        first = [names[i] for i in np.flatnonzero(labels == 0)]
        members, n_placed = own["members"].tolist()[0], own["placed"].tolist()[0]
        assert set(members) == set(first)
        # Those who are placed come first, either part in the order of the data.
        for part in (members[:n_placed], members[n_placed:]):
            assert part == [name for name in first if name in part]
    found = fitted.diagnostics()
    assert {"n_row_groups", "log_joint"} <= set(found.index)
    assert {"r_hat", "ess_bulk"} <= set(found.columns)


def test_errors_of_scores_under_mixed_membership():
    X = planted_grid(np.random.default_rng(8), shape=(20, 12))[0]
    mixed = quick("dirichlet", n_row_clusters=3, n_column_clusters=2, membership="mixed", n_draws=10)
    fitted = quiet_fit(mixed, X)
    scores, errors = fitted.score_samples(X[:3], return_error=True)
    assert np.isfinite(scores).all()
    assert (errors > 0.0).all()
    nothing = np.full((1, 12), np.nan)
    assert fitted.score_samples(nothing, return_error=True)[1] == pytest.approx([0.0], abs=1e-6)


def test_a_generator_gives_its_first_words_to_the_chains():
    X = planted_grid(np.random.default_rng(1), shape=(12, 8))[0]
    words = np.random.default_rng(3).integers(0, 2**32, size=4, dtype=np.uint32)
    by_hand = np.random.SeedSequence([int(word) for word in words])
    fits = [
        quiet_fit(quick(n_draws=5, random_state=state), X) for state in (np.random.default_rng(3), by_hand)
    ]
    for name, array in fits[0]._fit.draws.arrays.items():
        np.testing.assert_array_equal(array, fits[1]._fit.draws.arrays[name])
