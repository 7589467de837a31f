"""What is shown of a fit: cells as they are, and groups of those who can be told apart."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pytest

import permix
from permix.cocluster.answers import labels
from permix.cocluster.fit import CoClusterFit, estimates
from permix.cocluster.tables import report, show, shown_blocks
from permix.errors import ConvergenceWarning
from permix.estimators.archive import read_model, write_model

SURE, UNSURE, N_DRAWS = 12, 20, 40


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A conversation: three groups in which all draws agree, and people who voted once."""
    path = tmp_path_factory.mktemp("polis") / "votes.csv"
    rng = np.random.default_rng(1)
    votes = [(who, what, [1, -1, 0][who % 3]) for who in range(SURE) for what in range(4)]
    votes += [(who, who % 3, 1) for who in range(SURE, SURE + UNSURE)]
    lines = [f"1,{what},{who},{vote}\n" for who, what, vote in votes]
    path.write_text("timestamp,comment-id,voter-id,vote\n" + "".join(lines))
    cells = permix.read_cells(path)
    made = permix.CoClustering(n_draws=N_DRAWS, n_burn_in=0, random_state=0, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(cells)
    fitted = made._fitted()
    rows = np.tile(np.arange(SURE + UNSURE) % 3, (2, N_DRAWS, 1))
    rows[..., SURE:] = rng.integers(3, size=(2, N_DRAWS, UNSURE))
    three, columns = np.full((2, N_DRAWS), 3), np.zeros((2, N_DRAWS, 4), dtype=np.int64)
    told = {"row_labels": rows, "n_row_groups": three, "n_blocks": three}
    told |= {"column_labels": columns, "n_column_groups": np.ones_like(three)}
    draws = dataclasses.replace(fitted.draws, arrays={**fitted.draws.arrays, **told})
    parts = (fitted.settings, fitted.cells, fitted.matrix, draws)
    return CoClusterFit(*parts, *estimates(draws, fitted.settings, fitted.shape))


def test_people_with_one_answer_are_unsure_and_votes_are_words(fit, capsys):
    found = report(fit)
    show(found, "title")
    out = capsys.readouterr().out
    assert "Blocks: percent agree / disagree / pass" in out
    assert "20 of 32 rows are unsure: no group has them in most draws" in out
    assert "(they have 1 cell in the median, the others 4)" in out
    assert "Of the filled cells as they are" in out
    assert found["levels"] == ["agree", "disagree", "pass"]
    assert (found["row_groups"], found["row_group_placed"]) == (3, [4, 4, 4])
    assert sum(found["row_group_sizes"]) == SURE + UNSURE
    assert found["row_group_how_sure"] == [1.0, 1.0, 1.0]
    assert fit.labels("row")[:SURE].tolist() == [0, 1, 2] * 4
    listed = labels(fit, fit.cells).rows
    assert [line[-1] for line in listed] == ["yes"] * SURE + ["no"] * UNSURE
    # What is shown are shares of the votes themselves, counted here from scratch.
    for block, shares in enumerate(found["block_shares"]):
        votes = fit.cells.values[fit.labels("row")[fit.cells.rows] == block]
        assert shares == pytest.approx([np.mean(votes == level) for level in found["levels"]])


def test_files_keep_who_is_placed(fit, tmp_path):
    path = tmp_path / "f.permix"
    write_model(fit, path)
    again = read_model(path)[1]
    np.testing.assert_array_equal(again.placed("row"), fit.placed("row"))
    there, here = report(again), report(fit)
    for name in ("row_group_placed", "row_group_members", "row_group_how_sure", "median_cells_of_rows"):
        assert there[name] == here[name]
    assert again.placed("column").all()


def test_constant_columns_show_their_value():
    """The prior is spread over all levels of the file and must not be in what is called a mean."""
    X = np.zeros((12, 6))
    X[:, 3:] = np.random.default_rng(0).integers(1, 9, (12, 3))
    model = permix.CoClustering(n_draws=20, n_burn_in=20, random_state=0, progress=False).fit(X)
    found = json.loads(json.dumps(report(model._fitted())))
    zero = model.blocks_.table[:, model.column_labels_[0]]
    assert model.column_labels_[0] not in model.column_labels_[3:]
    assert [found["block_values"][block] for block in zero] == [0.0] * len(zero)
    # The twin: with the prior's pull, that is not so.
    assert min(model.block_parameters_["probabilities"][zero] @ np.array(found["levels"])) > 0.0


def test_blocks_of_many_words_show_the_most_frequent():
    found = {
        "levels": ["a", "b", "c", "d"],
        "block_values": ["b", None],
        "block_shares": [[0.1, 0.6, 0.2, 0.1], [None] * 4],
    }
    assert shown_blocks(found) == ["b (60%)", "–"]


def test_one_row_is_unsure_in_the_singular(fit, capsys):
    sizes = [len(fit.labels("row")) - 2, 1, 1]
    about = {"row_group_sizes": sizes, "row_group_placed": [sizes[0], 1, 0], "pseudo_count": 1.0}
    show(report(fit) | about, "title")
    out = capsys.readouterr().out
    assert "1 of 32 rows is unsure: no group has it in most draws (it has 1 cell, the others 4 in the" in out
    assert "Groups were found without it." in out
    assert "a prior worth 1 cell at" in out
