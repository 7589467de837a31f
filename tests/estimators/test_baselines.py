"""Baselines beside scores: proper distributions, against enumeration, and what commands say about them."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import permix
from permix import Rankings
from permix.cli.app import build
from permix.errors import DataError, ParameterError
from permix.estimators.base import ScoreMixin
from permix.estimators.baselines import (
    empirical_log_probabilities,
    in_words,
    one_generalized_mallows,
    uniform_log_probabilities,
)
from permix.estimators.preference_input import as_preferences
from permix.estimators.registry import MODELS, part
from tests.estimators.examples import EXAMPLES, fitted
from tests.estimators.test_fit_checks import T, rows_of_all_kinds
from tests.estimators.test_sums_to_one import OBSERVATIONS, data_of

SCORING = [name for name in sorted(MODELS) if issubclass(part(MODELS[name].estimator), ScoreMixin)]


def agrees(table, row, order):
    """Whether a full ranking agrees with a row."""
    rank = {item: place for place, item in enumerate(order)}
    items, stated = table.closure(row)
    listed = table.level_items[table.level_indptr[row] : table.level_indptr[row + 1]].tolist()
    rest = [item for item in range(T) if item not in listed] if table.rest_below[row] else []
    if any(rank[a] > rank[b] for a in listed for b in rest):
        return False
    return all(rank[items[a]] < rank[items[b]] for a, b in np.argwhere(stated))


def test_uniform_probabilities_count_rankings_that_agree():
    table = rows_of_all_kinds()
    found = np.exp(uniform_log_probabilities(table))
    for row in range(len(table)):
        share = np.mean([agrees(table, row, order) for order in permutations(range(T))])
        assert found[row] == pytest.approx(share, rel=0.15 if np.diff(table.pair_indptr)[row] else 1e-12)


@pytest.mark.parametrize("form", list(OBSERVATIONS))
def test_baselines_sum_to_one(form):
    known = as_preferences(data_of(form))
    for what, observations in OBSERVATIONS[form].items():
        table = as_preferences(observations)
        uniform = uniform_log_probabilities(table)
        loose = 0.1 if form == "pairs" else 1e-9
        assert np.exp(uniform).sum() == pytest.approx(1.0, abs=loose), what
        empirical = empirical_log_probabilities(table, known, uniform)
        assert np.exp(empirical).sum() == pytest.approx(1.0, abs=loose), what
        # The twin: without the agent who may say anything, forms that nobody was asked have no probabilities.
        assert (np.exp(empirical) > 0.0).all()
    one = one_generalized_mallows(known)
    assert (one is None) == (form not in ("full", "lists"))
    if one is not None:
        for observations in OBSERVATIONS[form].values():
            assert np.exp(one(as_preferences(observations))).sum() == pytest.approx(1.0)


def test_empirical_shares_are_those_of_agents_asked_the_same():
    known = Rankings.from_orders([[0, 1], [1, 0], [2], [0, 1]], n_items=3, counts=[3, 1, 5, 2])
    asked = as_preferences(Rankings.from_orders([[0, 1], [2, 0], [2]], n_items=3))
    uniform = uniform_log_probabilities(asked)
    np.testing.assert_allclose(np.exp(uniform), [1 / 6, 1 / 6, 1 / 3])
    found = np.exp(empirical_log_probabilities(asked, as_preferences(known), uniform))
    np.testing.assert_allclose(found, [(5 + 1 / 6) / 7, (1 / 6) / 7, (5 + 1 / 3) / 6])
    # Rankings of two items in which the third was not asked are another form.
    other = Rankings.from_orders([[0, 1]], n_items=3, unlisted="unknown")
    one = as_preferences(other)
    alone = np.exp(empirical_log_probabilities(one, as_preferences(known), uniform_log_probabilities(one)))
    np.testing.assert_allclose(alone, [0.5])


@pytest.mark.parametrize("name", SCORING)
def test_every_score_has_baselines(name):
    model, data = fitted(name), EXAMPLES[name].data()
    found = model.score_against_baselines(data)
    assert found.table.loc["this model", "score"] == pytest.approx(model.score(data))
    assert {"one group"} < set(found.table.index)
    np.testing.assert_allclose(found.table["times"], np.exp(model.score(data) - found.table["score"]))
    assert found.verdict.endswith(".")
    assert "under one group" in found.verdict
    assert isinstance(found.table, pd.DataFrame)


@pytest.mark.parametrize("name", SCORING)
def test_data_that_the_fit_keeps_need_not_be_passed_again(name):
    model = fitted(name)
    if name in ("MallowsMixture", "AngleMixture", "BlurringMeanShift"):
        with pytest.raises(DataError, match=r"keeps no data: .* score_against_baselines\(X\)"):
            model.score_against_baselines()
        return
    passed = model.score_against_baselines(EXAMPLES[name].data()).table
    pd.testing.assert_frame_equal(model.score_against_baselines().table, passed)


def test_baselines_may_know_other_data():
    votes = data_of("full")
    model = permix.MallowsMixture(2, random_state=0, progress=False).fit(votes[:20])
    held_out = model.score_against_baselines(votes[20:], votes[:20])
    assert (
        held_out.table.loc["empirical", "score"]
        < model.score_against_baselines(votes[20:]).table.loc["empirical", "score"]
    )
    with pytest.raises(DataError, match="leave fitted_to out"):
        fitted("DPMixture").score_against_baselines(
            EXAMPLES["DPMixture"].data(), EXAMPLES["DPMixture"].data()
        )
    approximate = permix.AngleMixture(1, normalizer="vmf", random_state=0, progress=False).fit(votes)
    with pytest.raises(ParameterError, match="where models are compared"):
        approximate.score_against_baselines(votes)


def test_words():
    said = in_words(-1.0, {"uniform": -31.0, "one group": -1.0, "empirical": -0.5}, "It")
    assert "exp(30) times as probable as if all answers were equally probable" in said
    assert "1.000 times as probable as under one group" in said
    assert "0.61 times" in said


@pytest.mark.parametrize("command", ["mallows", "angle"])
def test_fits_are_compared_on_the_command_line_and_in_files(tmp_path, command):
    votes, fit = tmp_path / "votes.soc", tmp_path / "f.permix"
    permix.write(data_of("full"), votes)
    run, app = CliRunner(), build()
    shown = run.invoke(app, ["fit", command, str(votes), "-k", "2", "--starts", "2", "-o", str(fit), "-q"])
    assert shown.exit_code == 0, shown.output
    report = json.loads(run.invoke(app, ["summary", str(fit), "--json"]).output)
    first, _, by_heart = report["against_baselines"].partition(" and ")
    assert " and ".join(first.rsplit(", ", 1)) in shown.output
    # The shares of equal answers know those who were fitted by heart: nothing to trust a fit by.
    assert "equal answers" in by_heart
    assert "equal answers" not in shown.output
    assert report["baselines"]["uniform"] == pytest.approx(-np.log(24))
    assert report["baselines"]["one group"] <= report["log_likelihood_per_agent"] + 1e-6
    assert report["baselines"]["empirical"] < 0.0
    model = permix.load(fit)
    again = model.score_against_baselines(permix.read(votes)).table["score"]
    assert report["baselines"]["one group"] == pytest.approx(again["one group"], abs=1e-4)
    assert report["baselines"]["empirical"] == pytest.approx(again["empirical"])
    kept = model.score_against_baselines()
    assert report["against_baselines"] == f"Under this model, w{kept.verdict[1:]}"
    np.testing.assert_allclose(kept.table["score"][1:], list(report["baselines"].values()))
    answer = ["predict", str(fit), str(votes), "--json"]
    facts = json.loads(run.invoke(app, answer).output)
    if command == "angle":
        difference = facts["mean_log_probability"] - facts["uniform_log_probability"]
        assert facts["times_as_probable_as_uniform"] == pytest.approx(np.exp(difference))
