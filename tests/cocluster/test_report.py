"""Numbers that reports of matrices show, beside plain loops."""

from __future__ import annotations

import dataclasses
import re
import warnings

import numpy as np
import pytest

import permix
from permix.cocluster.block_pictures import borders
from permix.cocluster.cells.group_values import GroupValues
from permix.cocluster.report import answer
from permix.reporting import described, written
from permix.reporting.context import Context


def fit_of(matrix, **options):
    chains = {"n_draws": 12, "n_burn_in": 20, "random_state": 0, "progress": False}
    model = permix.CoClustering(**{**chains, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", permix.errors.PermixWarning)
        return model.fit(matrix)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    rows, columns = np.repeat([0, 1], 15), np.repeat([0, 1, 0], 4)
    mean = np.array([[1.0, 5.0], [4.0, 2.0]])[rows][:, columns]
    matrix = np.clip(np.rint(mean + rng.normal(0, 0.7, mean.shape)), 1, 5)
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    return fit_of(matrix)


def test_means_are_those_of_plain_loops(model):
    values = GroupValues(model._fit)
    n, means = values.by_column
    cells = model._fit.known_cells
    dense = np.full(cells.shape, np.nan)
    dense[cells.rows, cells.columns] = cells.values
    labels = model._fit.labels("row")
    for k in range(values.n_groups):
        for j in range(cells.shape[1]):
            own = dense[labels == k, j]
            others = dense[labels != k, j]
            assert n[k, j] == np.isfinite(own).sum()
            assert means[0, k, j] == pytest.approx(np.nanmean(own))
            assert values.elsewhere[0, k, j] == pytest.approx(np.nanmean(others))
    np.testing.assert_allclose(values.overall[0], np.nanmean(dense, axis=0))
    n, means = values.by_column_group
    of_columns = model._fit.labels("column")
    for k in range(values.n_groups):
        for g in range(values.n_column_groups):
            block = dense[np.ix_(labels == k, of_columns == g)]
            assert means[0, k, g] == pytest.approx(np.nanmean(block))
            assert n[k, g] == np.isfinite(block).sum()


def test_the_report_names_the_columns_that_divide(model):
    text = written(described(model, checks=False, progress=False), "md")
    assert "Two groups of rows" in text
    assert "The matrix in the order of its groups" in text


def test_the_answer_says_which_columns_are_one_group_and_where_rows_are_high(model):
    told = answer(model._fit, Context("votes")).sentences
    fit, values = model._fit, GroupValues(model._fit)
    n_groups = values.n_column_groups
    assert told[1].startswith(f"The columns fall into {n_groups} groups: column group 1 (")
    labels = fit.labels("column")
    first = [f"column {j + 1}" for j in np.flatnonzero(labels == 1)[:2]]
    assert f"such as “{first[0]}”" in told[1]
    _n, means = values.by_column_group
    for k, sentence in enumerate(told[2 : 2 + values.n_groups]):
        high, low = int(np.nanargmax(means[0, k])), int(np.nanargmin(means[0, k]))
        assert f"is highest in column group {high + 1} (mean {means[0, k, high]:.3g})" in sentence
        assert f"lowest in column group {low + 1} ({means[0, k, low]:.3g})" in sentence


def test_groups_of_columns_that_are_not_listed_are_named_where_they_are_spoken_of(model, monkeypatch):
    values = GroupValues(model._fit)
    every = " ".join(answer(model._fit, Context("votes")).sentences[2:])
    monkeypatch.setattr("permix.cocluster.report.SENTENCES", 1)
    told = answer(model._fit, Context("votes")).sentences
    sizes = np.bincount(values.column_labels)
    large = int(np.argmax(sizes))
    assert f"column group {large + 1} (8 such as “column " in told[1]
    assert f"column group {large + 1} (“" not in told[2]
    spoken = {int(number) - 1 for number in re.findall(r"column group (\d+)", told[2])} - {large}
    assert spoken
    for j in spoken:
        member = int(np.flatnonzero(values.column_labels == j)[0]) + 1
        assert f"column group {j + 1} (“column {member}” and {sizes[j] - 1} more)" in told[2]
    assert "(“column" not in every.replace("apart in “", "")  # all are listed


def test_a_number_of_column_groups_that_few_draws_have_is_not_said_alone(model):
    arrays = dict(model._fit.draws.arrays)
    arrays["n_column_groups"] = np.full_like(arrays["n_column_groups"], 7)
    other = dataclasses.replace(model._fit, draws=dataclasses.replace(model._fit.draws, arrays=arrays))
    assert "(7 groups in 90% of the draws): column group 1" in answer(other, Context("votes")).sentences[1]
    assert "of the draws)" not in answer(model._fit, Context("votes")).sentences[1]


def test_answers_of_words_and_of_yes_and_no():
    rng = np.random.default_rng(2)
    agree = np.array([[0.95, 0.05], [0.1, 0.9]])[np.repeat([0, 1], 20)][:, np.repeat([0, 1], 6)]
    ones = (rng.random(agree.shape) < agree).astype(int)
    rows, columns = (at.ravel() for at in np.indices(ones.shape))
    texts = [f"Statement {j} is right." for j in range(12)]
    words = permix.Cells.from_long(rows, columns, np.where(ones.ravel(), "agree", "disagree"))
    model = fit_of(words.with_item_attributes({"text": texts}))
    told = answer(model._fit, Context("votes")).sentences
    assert "“1: Statement 0 is right”" in told[1]
    assert "gree” most often in column group" in told[2]
    # Checks name statements by their texts, and write shares as shares.
    text = written(described(model, progress=False), "md")
    assert "Column shares of " in text
    assert re.search(r"\n\| column 1: Statement 0 is right\. \| \d+% \| \d+% to \d+% \|", text)
    assert "has 1 most often in column group" in answer(fit_of(ones)._fit, Context("votes")).sentences[2]


def test_borders_are_lines_between_blocks():
    table = np.array([[0, 0, 1], [2, 2, 1]])
    assert borders(table, [0, 2, 5], [0, 1, 2, 4]) == [(0, 2, 2, 2), (2, 0, 2, 5)]


def test_nested_cuts_are_drawn():
    rng = np.random.default_rng(1)
    model = fit_of(rng.integers(0, 2, (12, 9)), prior="mondrian")
    text = written(described(model, checks=False, progress=False), "html")
    assert ("The nested cuts" in text) == (model._fit.tree is not None)
    assert "nan" not in text.split("<main")[1].split("</main>")[0].lower().replace("finance", "")


def test_rows_are_unsure_for_few_cells_only_where_they_have_fewer():
    rng = np.random.default_rng(5)
    full = rng.integers(1, 4, (20, 6)).astype(float)
    gaps = full.copy()
    gaps[:5, 2:] = np.nan

    def told(matrix):
        fit = fit_of(matrix)._fit
        estimate = dataclasses.replace(fit.row_estimate, placed=np.arange(20) >= 5)
        return " ".join(answer(dataclasses.replace(fit, row_estimate=estimate), Context("votes")).sentences)

    assert "; 5 of 20 rows could be in several groups." in told(full)
    said = (
        "; 5 of 20 rows, which have fewer cells (2 in the median, the others 6), could be in several groups."
    )
    assert said in told(gaps)


def test_levels_that_are_no_answers_or_too_many_are_trusted_with_care():
    rng = np.random.default_rng(6)
    words = np.array(["agree", "disagree", "No opinion"])
    many = np.array([f"{k}" if k % 4 else "Bonn" for k in range(240)]).reshape(60, 4)
    told = {}
    for name, matrix in (
        ("clean", words[rng.integers(0, 2, (20, 5))]),
        ("silent", words[rng.integers(0, 3, (20, 5))]),
        ("many", many),
    ):
        found = answer(fit_of(matrix)._fit, Context("votes")).verdict
        told[name] = " ".join(found.reasons)
        assert name == "clean" or found.level != "good"
    assert "taken for" not in told["clean"]
    assert "'No opinion' is taken for an answer like the others; --missing 'No opinion' " in told["silent"]
    assert "The cells have 181 different values, and each is taken for a level of its own" in told["many"]
    with pytest.warns(permix.errors.PermixWarning, match=r"missing=\['No opinion'\] makes such cells"):
        permix.CoClustering(n_draws=4, n_burn_in=4, random_state=0, progress=False).fit(
            permix.Cells.coerce(words[rng.integers(0, 3, (20, 5))])
        )


def test_what_shares_are_of_is_said_of_rows_and_of_columns(model):
    told = answer(model._fit, Context("votes")).sentences
    assert re.match(r"Group \d, \d+% \([\d.]+–[\d.]+\) of the rows, ", told[2])
    text = written(described(model, checks=False, progress=False), "md")
    assert "Shares are those in the population that these rows are a sample of" in text
    assert "Shares are of these columns: intervals say how sure groups are, not how far a sample" in text
