"""Tables as people have them: columns of all kinds, with gaps, without being told what they are."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import permix
from permix.dp_mixture.profile import in_words
from permix.dp_mixture.report import answer
from permix.dp_mixture.tables import report
from permix.errors import DataError
from permix.families.table_columns import columns_of, kind_of
from permix.reporting.context import Context


def quick(family=None, **options):
    defaults = {"n_draws": 40, "n_burn_in": 30, "random_state": 0, "progress": False}
    return permix.DPMixture(family, **{**defaults, **options})


@pytest.fixture(scope="module")
def people():
    """Two groups of sixty people, and which they are in; a tenth of the cells is missing."""
    rng = np.random.default_rng(8)
    group = np.repeat([0, 1], [70, 50])
    frame = pd.DataFrame(
        {
            "height": rng.normal([165.0, 182.0], 5.0, (120, 2))[np.arange(120), group],
            "visits": rng.poisson([1.0, 14.0], (120, 2))[np.arange(120), group],
            "town": np.where(rng.random(120) < 0.9, np.array(["Rome", "Oslo"])[group], "Bonn"),
            "smokes": rng.random(120) < np.array([0.1, 0.8])[group],
        }
    )
    frame["age"] = pd.cut(rng.normal([35, 60], 8, (120, 2))[np.arange(120), group], [0, 30, 45, 60, 99])
    for name in frame.columns:
        gaps = rng.random(120) < 0.1
        frame[name] = frame[name].astype("category" if name == "age" else object).where(~gaps)
    return frame.infer_objects(), group


@pytest.fixture(scope="module")
def fitted(people):
    return quick(n_draws=150).fit(people[0])


def test_a_frame_needs_no_preparation(people, fitted):
    group = people[1]
    assert fitted.family_.kinds == ("number", "count", "category", "category", "ordered")
    assert fitted.family_.levels[3] == ("False", "True")
    assert fitted.family_.levels[4][0] == "(0, 30]"
    assert permix.adjusted_rand(fitted.labels_, group) > 0.9
    assert {"size", "how_sure", "height", "town=Rome", "age=(0, 30]"} <= set(fitted.summary().columns)


def test_new_rows_with_gaps(people, fitted, tmp_path):
    frame = people[0]
    agree = np.mean(fitted.predict(frame) == fitted.labels_)
    assert agree > 0.95
    nothing = pd.DataFrame([[None] * 5], columns=frame.columns)
    # A row of which nothing is known: density one, and groups as likely as they are large.
    assert fitted.score_samples(nothing)[0] == pytest.approx(0.0, abs=1e-12)
    sizes = fitted.cluster_sizes_ + fitted.prior_.describe().get("pseudo_count", 0.0)
    probabilities = fitted.predict_proba(nothing)[0] / (1.0 - fitted.predict_novelty(nothing))
    np.testing.assert_allclose(probabilities, sizes / sizes.sum())
    drawn = pd.DataFrame(fitted.sample(300, random_state=1), columns=frame.columns)
    assert set(drawn["town"]) <= {"Rome", "Oslo", "Bonn"}
    assert fitted.predict(drawn).shape == (300,)
    fitted.save(tmp_path / "m.permix")
    back = permix.load(tmp_path / "m.permix")
    np.testing.assert_array_equal(back.score_samples(frame), fitted.score_samples(frame))
    assert back.family is None
    permix.plots.save(back, tmp_path / "m.png")
    with pytest.raises(DataError, match=r"row 2, column 'town': 'Riga' is not one of the known categories"):
        fitted.predict(frame[:4].assign(town=["Rome", "Riga", None, "Oslo"]))
    with pytest.raises(DataError, match=r"row 1, column 'height' is 'tall', and the column holds numbers"):
        fitted.predict(frame[:1].assign(height="tall"))
    with pytest.raises(DataError, match=r"row 1, column 'visits' is 2.5, and counts are whole numbers"):
        fitted.predict(frame[:1].assign(visits=2.5))


def test_profiles_are_means_and_shares_of_what_is_there(people, fitted):
    frame, labels = people[0], fitted.labels_
    profile = fitted.profile()
    for group in range(fitted.n_clusters_):
        members = frame[labels == group]
        for name in ("height", "visits"):
            cells, mine = frame[name].astype(float), members[name].astype(float)
            row = profile.loc[(group, name)]
            expected = [
                mine.mean(),
                cells.mean(),
                (mine.mean() - cells.mean()) / cells.std(ddof=0),
                mine.count(),
            ]
            np.testing.assert_allclose(row, expected)
        share, whole = members["town"].eq("Rome").sum() / members["town"].count(), frame["town"]
        row, overall = profile.loc[(group, "town=Rome")], whole.eq("Rome").sum() / whole.count()
        deviation = np.sqrt(overall * (1 - overall))
        np.testing.assert_allclose(row[:3], [share, overall, (share - overall) / deviation])
        assert profile.loc[group]["difference"].abs().is_monotonic_decreasing
    with pytest.raises(DataError, match="top_words is for the multinomial family"):
        fitted.top_words()


def test_a_group_without_entries_has_no_profile_there():
    frame = pd.DataFrame({"x": [0.5, 1.5, 9.5, 8.25], "y": [None, None, 3.5, 4.5]})
    family = permix.Mixed(within_share=0.5).resolve(frame)
    profile = family.profile(family.encode(frame), np.array([0, 0, 1, 1]), 2)
    np.testing.assert_allclose(profile.typical, [[1.0, np.nan], [8.875, 4.0]])
    assert profile.entries.tolist() == [[2, 0], [2, 2]]


def test_top_words_of_groups_of_documents():
    rng = np.random.default_rng(3)
    topics = np.array([[0.05, 0.6, 0.3, 0.05], [0.05, 0.05, 0.3, 0.6]])
    X = pd.DataFrame(
        [rng.multinomial(40, topics[i % 3 // 2]) for i in range(45)], columns=["it", "a", "the", "b"]
    )
    model = quick("multinomial").fit(X)
    assert model.n_clusters_ == 2
    assert model.top_words(1)[1].tolist() == ["a", "b"]
    assert model.top_words().shape == (2, 4)
    # Words that a group has less of than others are not typical of it, however many are asked for.
    for group, words in model.top_words().iterrows():
        profile = model.profile().loc[group]
        assert set(words.dropna()) == set(profile.index[profile["difference"] > 0])
    groups = report(model._fit)["groups"]
    assert [group["top_words"][0] for group in groups] == ["a", "b"]
    assert in_words(groups[0]) == "a"
    with pytest.raises(DataError, match="n must be at least 1"):
        model.top_words(0)
    shares = X[model.labels_ == 0].sum() / X[model.labels_ == 0].sum().sum()
    np.testing.assert_allclose(model.profile().loc[0]["typical"][X.columns], shares)


def test_gaps_among_numbers_are_taken_by_default():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-4, 1, (40, 3)), rng.normal(4, 1, (30, 3))])
    X[rng.random(X.shape) < 0.2] = np.nan
    model = quick("mixed", n_draws=100).fit(X)
    assert model.family_.kinds == ("number",) * 3
    present = ~np.isnan(X).all(axis=1)
    assert permix.adjusted_rand(model.labels_[present], np.repeat([0, 1], [40, 30])[present]) > 0.9
    assert quick(n_draws=5).fit(X).family_.name == "gaussian-niw"
    assert quick(n_draws=5).fit(X[:5]).family_.name == "gaussian-diagonal"
    # Columns that are called 0, 1, 2, as those of a frame made of an array.
    assert quick("mixed", n_draws=5).fit(pd.DataFrame(X)).family_.kinds == ("number",) * 3
    named = pd.DataFrame(X).assign(town=["Rome", "Oslo"] * 35)
    with pytest.raises(TypeError, match="feature names"):  # scikit-learn's rule
        quick(n_draws=5).fit(named)
    assert permix.Mixed({2: "number"}).resolve(named).kinds == ("number", "number", "number", "category")
    with pytest.raises(DataError, match="column 0 holds dates"):
        quick().fit(pd.DataFrame({0: pd.date_range("2020", periods=3)}))


def test_gaps_of_known_noise(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-4, 1, (40, 3)), rng.normal(4, 1, (30, 3))])
    family = permix.Gaussian(1.0, 0.0, 10.0)
    whole = quick(family).fit(X)
    assert whole.family_.gaps is False
    # A row without its last cell has the density of the others: the same as of a model without the column.
    fewer = quick(family).fit(X[:, :2])
    fewer._adopt(dataclasses.replace(fewer._fit, draws=whole._fit.draws, estimate=whole._fit.estimate))
    X[:, 2] = np.nan
    np.testing.assert_allclose(whole.score_samples(X[:9]), fewer.score_samples(X[:9, :2]))
    np.testing.assert_allclose(whole.predict_proba(X[:9]), fewer.predict_proba(X[:9, :2]))
    X[:5, 2] = -4.0
    model = quick(family).fit(X)
    assert model.family_.gaps is True
    assert permix.adjusted_rand(model.labels_, np.repeat([0, 1], [40, 30])) == 1.0
    model.save(tmp_path / "m.permix")
    np.testing.assert_array_equal(permix.load(tmp_path / "m.permix").predict(X), model.predict(X))
    permix.plots.save(model, tmp_path / "m.png")
    with pytest.raises(DataError, match="column 3 has no entry at all"):
        quick(family).fit(X[5:])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1.5, 2.5, 3.25, np.nan] * 2, "number"),
        (list(range(12)), "count"),
        ([18, 44, 31] * 6 + list(range(60, 70)), "number"),  # ages do not begin at zero
        ([0, 1, None] * 8, "category"),
        ([1.5, 2.0] * 8, "category"),
        (list(range(-3, 9)), "number"),
        ([True, False, None], "category"),
        (["a", "b", ""], "category"),
        (pd.Categorical(["low", "high"], ["low", "mid", "high"], ordered=True), "ordered"),
        (pd.Categorical(["low", "high"]), "category"),
        (pd.cut([1.0, 5.0, 9.0], 3), "ordered"),
        (pd.arrays.IntervalArray.from_breaks([0, 1, 2]), "category"),
        (pd.array([1, None, 40], dtype="Int64"), "number"),
        (pd.array([True, None], dtype="boolean"), "category"),
        ([f"person {i}" for i in range(20)], "category"),  # too few to tell
    ],
)
def test_what_columns_look_like(cells, kind):
    frame = pd.DataFrame({"x": cells})
    assert kind_of(0, columns_of(frame)[0]) == kind
    family = permix.Mixed().resolve(frame)
    assert family.kinds == (kind,)
    assert family.check_encoded(family.encode(frame), len(frame)) is None


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (pd.date_range("2020-01-01", periods=4), "column 'x' holds dates or times"),
        (["2020-01-31", "2021-02-28 12:30", None], r"column 'x' holds dates or times \(such as 2020-01-31\)"),
        (["31.1.2020", "28.2.2021"], "column 'x' holds dates or times"),
        (
            pd.period_range("2020-01", periods=4, freq="M"),
            r"column 'x' holds dates or times \(such as 2020-01\)",
        ),
        (
            [f"person {i}" for i in range(21)],
            "column 'x' has 21 different entries in 21 rows.*names* the rows",
        ),
        (list(range(7, 30)), r"column 'x' numbers the rows, from 7 to 29: .*Mixed\({'x': 'number'}\)"),
        ([None, None], "column 'x' has no entry at all"),
        ([[1], [2]], "row 1, column 'x' holds a list"),
        ([1.0, np.inf, 2.5], "row 2, column 'x' is infinite"),
        ([1.0, 1e150, 2.5], "row 2, column 'x' is 1e.150, and numbers beyond"),
    ],
)
def test_columns_that_cannot_be_read_are_named(cells, message):
    frame = pd.DataFrame({"x": cells, "y": ["a"] * len(cells)})
    with pytest.raises(DataError, match=message):
        quick().fit(frame)


def test_the_user_may_say_what_a_column_is():
    frame = pd.DataFrame({"name": [f"person {i}" for i in range(21)], "n": [0, 1, 2] * 7})
    family = permix.Mixed({"name": "category", "n": "number"}).resolve(frame)
    assert family.kinds == ("category", "number")
    assert permix.Mixed(["category", "count"]).resolve(frame).kinds == ("category", "count")
    for kinds, message in (
        ({"age": "number"}, "no column 'age'"),
        (["number"], "1 entries, and there are 2 columns"),
        ({"n": "integer"}, "kind of column 'n' must be one of number, count"),
        ("number", "kinds must be a mapping"),
    ):
        with pytest.raises(DataError, match=message):
            permix.Mixed(kinds).resolve(frame)


def test_categories_are_known_by_what_they_are_called():
    """A file in which no text is left among the numbers of a column has numbers there."""
    family = permix.Mixed().resolve(pd.DataFrame({"x": ["1", "2", "many"]}))
    np.testing.assert_array_equal(family.encode(pd.DataFrame({"x": [2, 1]})), [[1.0], [0.0]])
    family = permix.Mixed(["category"]).resolve(pd.DataFrame({"x": [1, 2.5]}))
    np.testing.assert_array_equal(family.encode(pd.DataFrame({"x": ["2.5", "1"]})), [[1.0], [0.0]])


def test_polars_frames_are_read_alike():
    rows = {"x": [1.5, None, 2.25], "town": ["Rome", None, "Oslo"], "smokes": [True, None, False]}
    grades = ["low", "high", None]
    ours = pd.DataFrame({**rows, "g": pd.Categorical(grades, ["low", "high"], ordered=True)})
    theirs = pl.DataFrame({**rows, "g": pl.Series(grades, dtype=pl.Enum(["low", "high"]))})
    family = permix.Mixed().resolve(ours)
    assert permix.Mixed().resolve(theirs) == family
    np.testing.assert_array_equal(family.encode(theirs), family.encode(ours))


def test_the_command_says_what_columns_are_read_as(run, people, tmp_path):
    frame = people[0]
    frame.drop(columns="age").assign(who=[f"p{i}" for i in range(120)]).to_csv(
        tmp_path / "people.csv", index=False
    )
    fit = ("fit", "dp-mixture", tmp_path / "people.csv", "-o", tmp_path / "p.permix", "--id", "who")
    few = ("--draws", 40, "--burn-in", 30)
    code, out, err = run(*fit, *few, "--column", "visits=number", "--labels", tmp_path / "labels.csv")
    assert code == 0, err
    assert "What the columns are read as" in out
    assert "3 categories: Bonn, Oslo, Rome" in out
    assert "What is typical of each group" in out
    assert "town=Oslo" in out.partition("What is typical")[2]
    assert permix.load(tmp_path / "p.permix").family_.kinds == ("number", "number", "category", "category")
    report = json.loads(run("summary", tmp_path / "p.permix", "--json")[1])
    assert report["columns_read_as"][0]["read_as"] == "numbers"
    assert report["columns_read_as"][0]["missing"] == int(frame["height"].isna().sum())
    assert report["groups"][0]["profile"][0]["feature"] in report["columns"]
    code, out, err = run("predict", tmp_path / "p.permix", tmp_path / "people.csv", "--id", "who")
    assert code == 0, err
    assert run("sample", tmp_path / "p.permix", "--size", 3)[1].startswith("height,visits,town,smokes\n")


@pytest.mark.parametrize("X", [[1.0, 2.0], [[1.0], [1.0, 2.0]], np.zeros((2, 2, 2)), 3.0, None])
def test_what_is_no_table_is_refused_as_by_scikit_learn(X):
    with pytest.raises(ValueError, match=r"Expected 2D|inhomogeneous|dim 3"):
        quick().fit(X)


def test_sentences_tell_shares_of_categories_from_averages():
    rng = np.random.default_rng(0)
    kind = np.repeat(["old", "new"], 40)
    table = pd.DataFrame({"status": kind, "length": np.where(kind == "old", 0.0, 9.0) + rng.normal(size=80)})
    model = permix.DPMixture(n_draws=100, n_burn_in=50, random_state=0, progress=False).fit(table)
    told = " ".join(answer(model._fit, Context("table")).sentences)
    assert "status=old in 100% of its rows (50% of all), and on average length" in told
    assert "status=new in 100% of its rows (50% of all), and on average length" in told
