"""Posterior predictive checks: their numbers against plain loops, verdicts, and wrong models found out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import permix
from permix import Preferences, Rankings
from permix.cli.app import build
from permix.dp_mixture.checks import table_aspects
from permix.errors import DataError, ParameterError
from permix.estimators.ranking_checks import Design, check_rankings
from permix.posterior.checks import Aspect, compare, unusual_share
from tests.estimators.examples import EXAMPLES, NAMES, fitted

T = 4
KEEPS_DATA = {
    "BayesianMallowsMixture",
    "DPMallowsMixture",
    "MallowsKDE",
    "DPMixture",
    "CoClustering",
    "CoClusteringEnsemble",
}


# -- what the agents of a replicated data set say ------------------------------------------------------


def rows_of_all_kinds():
    levels = [
        [[2], [0], [3], [1]],  # full
        [[1]],  # a list of one
        [[3], [0]],  # a list of two
        [[1, 2], [0], [3]],  # ties at the top
        [[0], [1, 3]],  # a tie below, the rest below it
        [[2], [3], [0]],  # of a subset
        [[3], [1, 2]],  # of a subset, with a tie
    ]
    below = [True] * 5 + [False] * 2
    pairs = [("p", 0, 1), ("p", 3, 2), ("q", 1, 2)]
    first = Preferences.from_levels(levels, items=range(T), rest_below=below)
    return Preferences.concat([first, Preferences.from_pairs(pairs, items=range(T))])


def naively_said(table, row, order):
    """Place of each item as an agent with this ranking would say it, in the form of a row; None if not."""
    start, end = table.level_indptr[row : row + 2]
    items, levels = table.level_items[start:end].tolist(), table.levels[start:end].tolist()
    spoken_of = list(range(T)) if table.rest_below[row] else items
    said = [item for item in order if item in spoken_of]
    places = [levels[at] if at < len(levels) else "rest" for at in range(len(said))]
    return dict(zip(said, places, strict=True))


def test_agents_say_as_much_as_they_did():
    table, rng = rows_of_all_kinds(), np.random.default_rng(0)
    design = Design(table, rng)
    for _ in range(20):
        orders = np.array([rng.permutation(T) for _ in range(design.n)])
        places, agrees = design.said_of(orders)
        for row in range(len(table)):
            expected = naively_said(table, row, orders[row].tolist())
            for item in range(T):
                place = expected.get(item, -1)
                assert places[row, item] == (2 * T if place == "rest" else place)
        ranks = np.argsort(orders, axis=1)
        stated = zip(design.pair_agent, design.pairs, strict=True)
        assert agrees.tolist() == [bool(ranks[agent, a] < ranks[agent, b]) for agent, (a, b) in stated]
    # The rankings that were observed say what was observed.
    full = Rankings.from_orders([[2, 0, 3, 1], [1, 3, 0, 2]])
    mine = Design(Preferences.from_rankings(full), rng)
    np.testing.assert_array_equal(mine.said_of(full.orders)[0], mine.observed[0])


def test_numbers_are_those_of_plain_loops():
    lists = Rankings.from_orders([[0, 1], [0], [1, 2, 0, 3], [2, 0], [2]], n_items=T, counts=[3, 2, 2, 1, 4])
    design = Design(Preferences.from_rankings(lists), np.random.default_rng(1))
    found = design.aspects(*design.observed)
    rows = [row for row, n in zip(lists.orders.tolist(), lists.counts, strict=True) for _ in range(n)]
    rows = [[item for item in row if item >= 0] for row in rows]
    first = [sum(row[0] == item for row in rows) / 12 for item in range(T)]
    np.testing.assert_allclose(found["first choices"].values, first)
    wins = lists.pairwise_counts()
    for entry, value in zip(*found["pairwise majorities"], strict=True):
        a, b = (int(part) for part in entry.split(" before "))
        assert value == pytest.approx(wins[a, b] / (wins[a, b] + wins[b, a]))
    lengths = [[len(row) for row in rows if row[0] == item and len(row) < T] for item in range(T)]
    for item, value in enumerate(found["list lengths by first choice"].values):
        assert np.isnan(value) if not lengths[item] else value == pytest.approx(np.mean(lengths[item]))
    agreements = []
    for i, j in zip(design.left, design.right, strict=True):
        both = []
        for a in range(T):
            for b in range(a):
                signs = []
                for row in (rows[i], rows[j]):
                    place = [row.index(item) if item in row else T for item in (a, b)]
                    signs.append(np.sign(place[0] - place[1]))
                if signs[0] and signs[1]:
                    both.append(signs[0] == signs[1])
        agreements.append(np.mean(both))
    np.testing.assert_allclose(
        found["agreement between two agents"].values, [np.mean(agreements), np.std(agreements)]
    )


def test_columns_are_described_as_pandas_does():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + 2.0
    found = table_aspects(table, ["a", "b", "c"])
    frame = pd.DataFrame(table, columns=["a", "b", "c"])
    np.testing.assert_allclose(found["column means"].values, frame.mean())
    np.testing.assert_allclose(found["column spreads"].values, frame.std(ddof=0))
    flatness = frame.var(ddof=0) / (0.5 * (frame.max() - frame.min())) ** 2
    np.testing.assert_allclose(found["column flatness"].values, flatness)
    expected = frame.corr().to_numpy()[np.triu_indices(3, 1)]
    np.testing.assert_allclose(found["correlations"].values, expected)
    table[::3, 1] = np.nan
    gaps = table_aspects(table, ["a", "b", "c"])
    np.testing.assert_allclose(gaps["column means"].values, np.nanmean(table, axis=0))


# -- how unusual a data set is -------------------------------------------------------------------------


def test_data_like_the_replicated_are_unusual_as_rarely_as_they_should():
    """Ranks among exchangeable data sets are uniform, whatever the dependence of the numbers."""
    rng = np.random.default_rng(3)
    mix = rng.normal(size=(6, 6))
    shares = np.array(
        [unusual_share(rng.normal(size=6) @ mix, rng.normal(size=(100, 6)) @ mix) for _ in range(600)]
    )
    assert (shares <= 0.1).mean() == pytest.approx(0.1, abs=4 * 0.0123)
    assert shares.mean() == pytest.approx(0.5, abs=4 * 0.0118)
    # The twin: observed numbers with half the spread are unusual far too rarely.
    twin = [
        unusual_share(0.5 * rng.normal(size=6) @ mix, rng.normal(size=(100, 6)) @ mix) for _ in range(600)
    ]
    assert np.mean(twin) > 0.7


def test_numbers_that_never_change():
    made = np.ones((100, 2))
    assert unusual_share(np.ones(2), made) == 1.0
    assert unusual_share(np.array([1.0, 1.5]), made) == pytest.approx(1 / 51)
    observed = {"it": Aspect(["a", "b"], np.array([np.nan, np.nan]))}
    with pytest.raises(DataError, match="say too little"):
        compare(observed, [observed] * 100, 3)


# -- verdicts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_checks(name):
    model = fitted(name)
    found = model.fit_checks(None if name in KEEPS_DATA else EXAMPLES[name].data(), n_replicates=100)
    assert found.verdict.startswith("The model ")
    assert list(found.table) == ["aspect", "entry", "observed", "mean", "low", "high", "tail"]
    assert ((found.table["low"] <= found.table["high"]) & (found.table["tail"] > 0)).all()
    assert set(found.table["aspect"]) == set(found.aspects["aspect"])
    again = model.fit_checks(None if name in KEEPS_DATA else EXAMPLES[name].data(), n_replicates=100)
    assert again.table.equals(found.table)
    if name in ("DPMixture", "CoClustering", "CoClusteringEnsemble"):  # those that were fitted may be given
        assert model.fit_checks(EXAMPLES[name].data(), n_replicates=100).table.equals(found.table)
        with pytest.raises(DataError, match=r"(was fitted, and this is another|were fitted, and these are)"):
            model.fit_checks(EXAMPLES[name].data()[::-1], n_replicates=100)
    if name not in KEEPS_DATA:
        with pytest.raises(DataError, match=r"do not keep the data.*fit_checks\(X\)"):
            model.fit_checks()
    with pytest.raises(ParameterError, match="n_replicates=99"):
        model.fit_checks(None if name in KEEPS_DATA else EXAMPLES[name].data(), n_replicates=99)


def two_camps():
    forward, backward = permix.Mallows(range(6), 0.2), permix.Mallows(range(6)[::-1], 0.2)
    rng = np.random.default_rng(5)
    return Rankings.concat([forward.sample(150, rng), backward.sample(150, rng)])


def test_one_group_does_not_reproduce_two_camps_and_two_groups_do():
    votes = two_camps()
    one = permix.MallowsMixture(1, random_state=0, progress=False).fit(votes).fit_checks(votes)
    assert not one.aspects["reproduced"].all()
    assert "but not" in one.verdict or "does not reproduce" in one.verdict
    assert "agreement between two agents" in one.verdict
    two = permix.MallowsMixture(2, random_state=0, progress=False).fit(votes).fit_checks(votes)
    assert two.aspects["reproduced"].all()
    assert two.verdict == (
        "The model reproduces first choices, pairwise majorities and agreement between two agents."
    )


def test_lists_that_depend_on_the_first_choice_are_found_out():
    rng = np.random.default_rng(6)
    drawn = permix.Mallows(range(5), 0.7).sample(300, rng).orders.tolist()
    depends = [row[: 1 if row[0] == 0 else 3] for row in drawn]
    by_chance = [row[: int(rng.integers(1, 4))] for row in drawn]
    truth = permix.Mallows(range(5), 0.7)
    for rows, reproduced in ((depends, False), (by_chance, True)):
        table = Rankings.from_orders(rows, n_items=5)
        found = check_rankings(table, lambda rng, n: truth.sample(n, rng).orders, 100)
        judged = found.aspects.set_index("aspect")["reproduced"]
        assert judged["list lengths by first choice"] == reproduced


def test_correlated_columns_are_not_reproduced_by_round_groups():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(200, 1))
    data = np.column_stack([x, x + 0.3 * rng.normal(size=(200, 1))])
    quick = {
        "prior": permix.FiniteDirichlet(1),
        "n_draws": 20,
        "n_burn_in": 0,
        "random_state": 0,
        "progress": False,
    }
    round_groups = permix.DPMixture(permix.Gaussian(noise_scale=1.0), **quick).fit(data).fit_checks()
    judged = round_groups.aspects.set_index("aspect")["reproduced"]
    assert judged["column means"]
    assert not judged["correlations"]
    any_groups = permix.DPMixture(permix.GaussianNIW(), **quick).fit(data).fit_checks()
    assert any_groups.aspects.set_index("aspect")["reproduced"]["correlations"]


def test_margins_are_not_reproduced_by_one_block():
    rng = np.random.default_rng(8)
    matrix = (rng.random((30, 20)) < np.repeat([0.2, 0.8], 15)[:, None]).astype(int)
    quick = {"prior": "dirichlet", "n_draws": 20, "n_burn_in": 20, "random_state": 0, "progress": False}
    for n_groups, reproduced in ((1, False), (2, True)):
        model = permix.CoClustering(n_row_clusters=n_groups, n_column_clusters=1, **quick).fit(matrix)
        judged = model.fit_checks().aspects.set_index("aspect")["reproduced"]
        assert judged["row means"] == reproduced
        assert judged["levels"]


def test_the_picture_has_every_number_and_marks_those_outside():
    import matplotlib as mpl

    mpl.use("Agg")
    votes = two_camps()
    found = (
        permix.MallowsMixture(1, random_state=0, progress=False)
        .fit(votes)
        .fit_checks(votes, n_replicates=100)
    )
    axes = permix.plots.checks(found)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == len(found.table)
    places = axes.collections[-1].get_offsets()
    outside = (
        (found.table["observed"] < found.table["low"]) | (found.table["observed"] > found.table["high"])
    ).sum()
    assert (np.abs(places[:, 0]) > 1).sum() == outside > 0
    with pytest.raises(DataError, match="fit_checks"):
        permix.plots.checks(fitted("DPMixture"))


# -- the command line ----------------------------------------------------------------------------------


def test_the_verdict_comes_first(tmp_path):
    votes, lists = tmp_path / "votes.soi", tmp_path / "lists.permix"
    permix.write(two_camps(), votes)
    run, app = CliRunner(), build()
    fit = tmp_path / "one.permix"
    assert run.invoke(app, ["fit", "mallows", str(votes), "-k", "1", "-o", str(fit), "-q"]).exit_code == 0
    asked = ["predict", str(fit), str(votes), "--what", "checks", "--samples", "100"]
    shown = run.invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("The model ")
    assert "agreement between two agents" in shown.output.partition("\n")[0]
    answer = json.loads(run.invoke(app, [*asked, "--json"]).output)
    assert answer["verdict"] == shown.output.partition("\n")[0]
    assert answer["tail_of_agreement_between_two_agents"] <= 0.02
    assert [row["tail"] for row in answer["rows"]] == sorted(row["tail"] for row in answer["rows"])
    # A file that does not hold the data says how to give them; one that does needs none.
    refused = run.invoke(app, ["summary", str(fit), "--checks"])
    assert refused.exit_code == 1
    assert "permix predict MODEL DATA --what checks" in str(refused.exception or refused.output)
    model = fitted("DPMallowsMixture")
    model.save(lists)
    told = run.invoke(app, ["summary", str(lists), "--checks"])
    assert told.output.startswith("The model "), told.output
    report = json.loads(run.invoke(app, ["summary", str(lists), "--checks", "--json"]).output)
    assert report["checks"]["verdict"] == told.output.partition("\n")[0]
    too_few = run.invoke(app, [*asked[:-1], "50"])
    assert "--samples 50" in str(too_few.exception or too_few.output)
