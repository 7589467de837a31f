"""What reports, summaries and pictures say of Bayesian Mallows models."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import permix
from permix import plots
from permix.bayes_mallows.careless import agent_error_rows
from permix.bayes_mallows.report import answer, found_groups
from permix.bayes_mallows.results import GroupSummaries
from permix.bayes_mallows.words import errors_line
from permix.errors import DataError
from permix.reporting.context import Context

SHORT = {"n_draws": 100, "n_burn_in": 80, "random_state": 0, "progress": False}


def quietly(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few draws
        return model.fit(data)


@cache
def two_groups():
    made = permix.datasets.make_mallows_mixture(120, 6, 2, dispersion=0.35, random_state=1)
    return quietly(permix.BayesianMallowsMixture(2, **SHORT), made.data)


@cache
def with_errors(kind, per_agent=False):
    rng = np.random.default_rng(1)
    said = []
    for agent in range(20):
        for _ in range(25):
            a, b = sorted(rng.choice(6, 2, replace=False).tolist())
            wrong = rng.random() < (0.5 if agent == 7 else 0.04)
            said.append((f"a{agent}", b, a) if wrong else (f"a{agent}", a, b))
    table = permix.Preferences.from_pairs(said, items=range(6), on_cycle="keep")
    return quietly(permix.BayesianMallowsMixture(errors=kind, errors_per_agent=per_agent, **SHORT), table)


def test_the_answer_is_what_the_draws_say():
    model = two_groups()
    found = answer(model._fit, Context("votes"))
    assert found.sentences[0].startswith("Two groups of agents recur in both chains, among 120 agents")
    for group, order in enumerate(model.centers_.orders.tolist()):
        assert f"ranks item {order[0]} first" in found.sentences[1 + group]
    assert found.verdict.level != "bad"


def test_a_single_center_is_described_place_by_place():
    orders = [[0, 1, 2, 3], [0, 2, 1, 3]] * 8
    model = quietly(
        permix.BayesianMallowsMixture(**SHORT), permix.Rankings.from_orders(orders, items=range(4))
    )
    assert "Where each item stands in the center of group 1" in permix.report(
        model, format="md", checks=False
    )
    said = answer(model._fit, Context("votes")).sentences
    low, high = GroupSummaries(model._fit).place_intervals(0)
    sure = int((low == high).sum())
    assert sure == 2
    assert said[2].startswith(f"{sure} of the 4 places of its center are sure")
    assert "item 1 (2–3) and item 2 (2–3)" in said[2]


def test_rankings_of_members_are_around_the_centers():
    model = two_groups()
    found = found_groups(model._fit, GroupSummaries(model._fit))
    rng = np.random.default_rng(0)
    for group in range(2):
        drawn = found.draw(group, 4000, rng)
        center = model.centers_.orders[group]
        distance = permix.distance(drawn, [center.tolist()]).mean()
        expected = model.summary()["expected_distance"][group]
        assert distance == pytest.approx(expected, abs=0.15)
        # What members put first has a formula; a share of 4,000 has a standard error of 0.008 at most.
        first = found.groups[group].first
        np.testing.assert_allclose(first, np.bincount(drawn[:, 0], minlength=4) / 4000, atol=4 * 0.008)
        assert first.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["bernoulli", "logistic"])
def test_errors_in_words(kind):
    model = with_errors(kind)
    line = errors_line(model._fit)
    assert "of the comparisons" in line
    if kind == "bernoulli":
        mean = model.posterior_["posterior"]["error_rate"].values.mean()
        assert line.startswith(f"{round(100 * mean)}%")
    else:
        arrays = model._fit.draws.arrays
        near = float((1.0 / (1.0 + np.exp(arrays["error_level"]))).mean())
        assert line.startswith(f"{round(100 * near)}% of the comparisons of neighbors")


def test_careless_agents_are_named():
    model = with_errors("bernoulli", True)
    rows = agent_error_rows(model._fit)
    assert [row["agent"] for row in rows if row["careless"]] == ["a7"]
    rates = [row["rate"] for row in rows]
    assert rates == sorted(rates, reverse=True)
    assert model.agent_errors()["agent"].tolist() == [row["agent"] for row in rows]
    text = permix.report(model, format="md", checks=False)
    assert "1 agent errs clearly more often than the others" in text
    assert "| a7 |" in text
    with pytest.raises(DataError, match="errors_per_agent"):
        with_errors("bernoulli").agent_errors()


def test_reports_have_all_sections():
    text = permix.report(two_groups(), format="md")
    heads = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert heads[:5] == [
        "The answer",
        "Can you trust this?",
        "The groups",
        "How people split",
        "Every pair of items",
    ]
    assert "The most probable centers" in text
    assert "centers that hold 90%" in text


def test_reports_of_models_of_errors_say_what_is_not_checked():
    text = permix.report(with_errors("logistic"), format="md")
    assert "Not checked: checks and baselines take comparisons at their word" in text


def test_heat_draws_the_probabilities():
    model = two_groups()
    figure = plots.heat(model)
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) >= 2
    for group in range(2):
        drawn = np.asarray(panels[group].images[0].get_array())
        np.testing.assert_allclose(drawn, model.rank_probabilities(group).to_numpy())
        names = [tick.get_text() for tick in panels[group].get_yticklabels()]
        assert names == [str(item) for item in model.centers_.orders[group]]
    few = plots.heat(model, max_items=2)
    assert len(few.axes[0].get_yticklabels()) == 2
    with pytest.raises(DataError, match="no picture 'heat' of a MallowsMixture"):
        plots.heat(permix.MallowsMixture(1, progress=False).fit(model._fit.preferences))


def test_groups_that_overlap_are_not_joined_where_their_number_is_given(tmp_path):
    """The partition nearest to all draws has one group here, and all draws two."""
    centers = np.array([[0, 1, 2, 3, 4], [2, 1, 0, 3, 4]])
    made = permix.datasets.make_mallows_mixture(600, 5, 2, dispersion=0.4, centers=centers, random_state=5)
    model = quietly(permix.BayesianMallowsMixture(2, **{**SHORT, "n_burn_in": 400}), made.data)
    nearest = permix.point_estimate(model._fit.draws.arrays["labels"].reshape(-1, 600), random_state=0)
    assert nearest.n_clusters == 1
    assert model.n_clusters_ == 2
    assert sorted(model.centers_.orders.tolist()) == sorted(centers.tolist())
    assert model._fit.overlapping
    assert permix.adjusted_rand(model.point_estimate_.labels, made.labels) > 0.2
    assert "The groups overlap" in " ".join(answer(model._fit, Context("votes")).verdict.reasons)
    model.save(tmp_path / "fit.permix")
    assert permix.load(tmp_path / "fit.permix")._fit.overlapping
