"""Recommendations: unseen items by expected value, how sure that is, and ties."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import permix
from permix.cocluster.block_predict import block_sums
from permix.estimators.recommend import best_first

ITEMS = list("abcde")


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(3)
    values = np.kron(np.array([[5.0, 1.0], [2.0, 4.0]]), np.ones((8, 6))) + rng.integers(-1, 1, (16, 12))
    values[rng.random(values.shape) < 0.35] = np.nan
    names = [f"u{row}" for row in range(16)]
    frame = pd.DataFrame(values, index=names, columns=[f"film{column}" for column in range(12)])
    return permix.Cells.from_frame(frame)


@pytest.fixture(scope="module")
def blocks(matrix):
    return permix.CoClustering(n_draws=80, n_burn_in=80, random_state=0, progress=False).fit(matrix)


def test_the_best_come_first_and_ties_are_told_and_counted():
    values = np.array([3.0, 5.0, 5.0, 1.0, 5.0])
    unseen = np.array([True, True, True, True, False])
    known = np.array([1, 1, 9, 1, 99])
    assert list(best_first(values, unseen, known, 3)) == [(1, 2, 2), (1, 1, 2), (3, 0, 1)]
    assert list(best_first(values, unseen, known, 1, small_is_good=True)) == [(1, 3, 1)]
    assert list(best_first(values, np.zeros(5, dtype=bool), known, 3)) == []
    nearly = np.array([1.0, 1.0 + 1e-13, 0.5])  # the same number but for rounding
    assert [tied for _, _, tied in best_first(nearly, np.ones(3, dtype=bool), np.zeros(3), 3)] == [2, 2, 1]


def test_expected_values_of_fitted_rows_and_their_spread_over_draws(blocks, matrix):
    found = blocks.recommend("u3", n=4)
    table = pd.DataFrame(blocks.predict_cells_mean(), matrix.row_names, matrix.column_names)
    filled = {matrix.column_name(at) for at in matrix.columns[matrix.rows == 3]}
    unseen = table.loc["u3"].drop(list(filled)).sort_values(ascending=False)
    assert not filled & set(found["column"])
    assert found["expected"].tolist() == pytest.approx(unseen.iloc[:4].tolist(), abs=1e-9)
    assert found["row"].unique().tolist() == ["u3"]
    # By hand, draw by draw: the mean of the cell's block, and what it may be.
    fit, column = blocks._fit, matrix.column_index(found["column"][0])
    means, variances = [], []
    for draw in fit.predictive.draws:
        family = fit.predictive.family_of(draw)
        block = draw.block_of(np.array([3]), np.array([column]))[0]
        n, sums = block_sums(fit.known_matrix, draw)
        counts = sums[block] + family.pseudo_count
        shares = counts / counts.sum()
        levels = np.array(family.levels, dtype=float)
        means.append(shares @ levels)
        variances.append((shares @ levels**2 - (shares @ levels) ** 2) / (counts.sum() + 1.0))
        assert n[block] == sums[block].sum()
    spread = np.sqrt(np.mean(variances) + np.var(means))
    assert found["expected"][0] == pytest.approx(np.mean(means))
    expected_low = max(np.mean(means) - 1.645 * spread, min(fit.family.levels))
    assert found["low"][0] == pytest.approx(expected_low)
    # The twin that forgets that draws differ, or that blocks have few cells, is narrower.
    assert spread > 1.001 * np.sqrt(np.mean(variances))
    assert spread > 1.001 * np.std(means)


def test_rows_by_name_by_number_several_all_and_new(blocks, matrix):
    everybody = blocks.recommend(n=1)
    assert everybody["row"].tolist() == list(matrix.row_names)
    assert blocks.recommend(["u0", "u5"], 1)["row"].tolist() == ["u0", "u5"]
    new = pd.DataFrame([[5.0, 5.0, 4.0, 1.0]], columns=["film0", "film1", "film2", "film8"])
    found = blocks.recommend(new, 12)
    assert len(found) == 8
    assert not set(new.columns) & set(found["column"])
    asked = [(0, name) for name in found["column"]]
    assert found["expected"].tolist() == pytest.approx(blocks.predict_cells_mean(new, asked).tolist())
    assert (found["low"] <= found["expected"]).all()
    assert (found["high"] >= found["expected"]).all()
    with pytest.raises(permix.errors.DataError, match="n=0"):
        blocks.recommend("u0", 0)


def test_text_has_no_order_to_recommend_by():
    answers = np.array([["yes", None], ["no", "yes"], ["yes", "no"]], dtype=object)
    model = permix.CoClustering(n_draws=20, n_burn_in=10, random_state=0, progress=False).fit(answers)
    with pytest.raises(permix.errors.DataError, match="no expected value"):
        model.recommend(0)


@pytest.mark.parametrize("name", ["MallowsMixture", "AngleMixture", "DPMallowsMixture"])
def test_rankings_by_expected_rank_of_what_is_not_mentioned(name):
    votes = permix.Mallows(ITEMS, 0.2).sample(60, 0)
    given = {"DPMallowsMixture": {"n_draws": 100, "n_burn_in": 100, "progress": False}}.get(name, {})
    model = getattr(permix, name)(random_state=0, **given).fit(votes)
    someone = permix.Rankings.from_orders([["c"], ["a", "b", "c", "d", "e"]], items=ITEMS)
    found = model.recommend(someone, 3)
    assert set(found["agent"]) == {0}  # nothing is left to tell the other
    assert found["item"].tolist() == ["a", "b", "d"]
    assert found["expected_rank"].is_monotonic_increasing
    assert (found["expected_rank"] > 1.0).all()  # c is first
    assert ((found["low"] <= found["expected_rank"]) & (found["expected_rank"] <= found["high"])).all()


def test_expected_ranks_are_those_of_enumeration():
    center = permix.Mallows(["a", "b", "c", "d"], 0.5)
    votes = center.sample(400, 1)
    model = permix.MallowsMixture(1, random_state=0, progress=False).fit(votes)
    someone = permix.Rankings.from_orders([["c"]], items=list("abcd"))
    orders = permix.Rankings.from_orders(
        [["c", *rest] for rest in permutations_of("abd")], items=list("abcd")
    )
    weights = np.exp(model.score_samples(orders))
    weights /= weights.sum()
    ranks = np.argsort(np.asarray(orders.orders), axis=1) + 1
    found = model.recommend(someone, 3).set_index("item")["expected_rank"]
    for place, item in enumerate("abcd"):
        if item != "c":
            assert found[item] == pytest.approx(weights @ ranks[:, place], abs=1e-6)


def permutations_of(items):
    from itertools import permutations

    return permutations(items)


# -- the command -------------------------------------------------------------------------------------


def test_top_alone_recommends(run, tmp_path, blocks):
    model = tmp_path / "films.permix"
    blocks.save(model)
    code, out, err = run("predict", model, "--top", 2, "--json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    expected = blocks.recommend(n=2)
    assert [row["column"] for row in rows] == expected["column"].tolist()
    assert [row["expected"] for row in rows] == pytest.approx(expected["expected"].round(4).tolist())
    code, out, _ = run("predict", model, "--json")  # all missing cells, with their means
    assert code == 0
    first = json.loads(out)["rows"][0]
    levels = [float(name[2:-1]) for name in first if name.startswith("p(")]
    shares = [first[name] for name in first if name.startswith("p(")]
    assert first["mean"] == pytest.approx(np.dot(levels, shares), abs=1e-4)


def test_agents_of_a_file_get_recommendations(run, tmp_path):
    votes = permix.Mallows(ITEMS, 0.2).sample(60, 0)
    permix.MallowsMixture(1, random_state=0, progress=False).fit(votes).save(tmp_path / "m.permix")
    file = tmp_path / "new.csv"
    file.write_text("pos1,pos2\nc,\na,b\n")
    code, out, err = run("predict", tmp_path / "m.permix", file, "--what", "recommend", "--top", 2, "--json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["agent"], row["item"]) for row in rows] == [(1, "a"), (1, "b"), (2, "c"), (2, "d")]
    code, out, _ = run("predict", tmp_path / "m.permix", file, "--what", "recommend")
    assert "by expected rank" in out


def test_lists_that_end_in_the_midst_of_a_tie_are_told():
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((10, 6)))
    ratings[0, 1:] = np.nan
    model = permix.CoClustering(n_draws=30, n_burn_in=60, random_state=0, progress=False).fit(ratings)
    found = model.recommend(0, 2)
    assert (found["place"] == 1).all()
    expected = model.predict_cells_mean(cells=[(0, column) for column in range(1, 12)])
    tied = int(np.isclose(expected, expected.max(), rtol=1e-9, atol=0.0).sum())
    assert tied > 2
    assert found["tied"].tolist() == [tied, tied]
    note = found.attrs["note"]
    told = f"for row 1, for instance, {tied} are tied"
    assert note.startswith(f"For 1 row more items are as good as the last one listed: {told}")
    assert model.recommend(0, tied).attrs["note"] == ""  # all that are tied are listed
