"""Shares that depend on columns of agents: chains against enumeration, recovery, files, words."""

from __future__ import annotations

import csv
import dataclasses
import json
from functools import cache

import numpy as np
import pytest

import permix
from permix.bayes_mallows.chain import by_agent
from permix.bayes_mallows.data import as_statements, bayes_model
from permix.bayes_mallows.fit import first_state, sweep_move
from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.report import answer
from permix.distributions.agent_weights import bayes
from permix.distributions.agent_weights.logit import log_weights
from permix.estimators.agent_weights.rows import verdict
from permix.reporting.context import Context
from tests.bayes_mallows.cases import data_of, expected, model_of, numbers_of, settings_of, z_scores
from tests.oracles import bayes_mallows as oracle
from tests.oracles.agent_weights import TwoGroups

BOUND = 5.0
PLACES = np.array([[1.0, 0.0], [1.0, 1.0]])


# -- coefficients given who is where ---------------------------------------------------------------


MATRIX = np.array([[1.0, 0.0], [1.0, 1.0]])
MEMBERS = np.array([[3.0, 0.0], [1.0, 2.0]])


def moments(draw, n=6000):
    rng, coefficients, found = np.random.default_rng(1), np.zeros((2, 2)), []
    for _ in range(n):
        coefficients = draw(rng, MATRIX, MEMBERS, coefficients)
        gap = coefficients[:, 0] - coefficients[:, 1]
        found.append([*gap, *gap**2, gap[0] * gap[1]])
    return np.array(found)


def by_quadrature():
    two = TwoGroups([[1, 0], [1, 0], [1, 0], [1, 1], [1, 1], [1, 1]])
    given = two.joint((0, 0, 0, 0, 1, 1))
    first, second = two.grid
    values = np.stack([first, second, first**2, second**2, first * second])
    return values @ (given / given.sum())


def test_coefficients_are_drawn_from_their_posterior():
    assert np.abs(z_scores(moments(bayes.draw_coefficients), by_quadrature())).max() < BOUND


def test_a_twin_that_takes_the_nearest_normal_distribution_is_rejected():
    def normal(rng, matrix, members, coefficients):
        near = bayes.nearest_normal(matrix, members)
        return (near.mode + np.linalg.solve(near.root.T, rng.standard_normal(4))).reshape(2, 2).T

    assert np.abs(z_scores(moments(normal, 3000), by_quadrature())).max() > 2 * BOUND


def test_the_nearest_normal_distribution_is_at_the_mode_with_its_curvature():
    rng = np.random.default_rng(0)
    matrix = np.column_stack([np.ones(6), rng.standard_normal(6)])
    members = rng.integers(0, 9, (6, 3)).astype(float)
    near = bayes.nearest_normal(matrix, members)

    def value(flat):
        return bayes.log_density(matrix, members, flat.reshape(3, 2).T)

    step = 1e-4 * np.eye(6)
    gradient = [(value(near.mode + s) - value(near.mode - s)) / 2e-4 for s in step]
    assert np.abs(gradient).max() < 1e-5
    precision = np.array(
        [
            [
                -(value(near.mode + a + b) - value(near.mode + a - b) - value(near.mode - a + b))
                - value(near.mode - a - b)
                for b in step
            ]
            for a in step
        ]
    )
    assert np.allclose(near.root @ near.root.T, precision / 4e-8, atol=2e-3)


# -- chains against enumeration --------------------------------------------------------------------


def of_columns(form):
    """The data with a column, its numbers for each agent, and the enumerated posterior with it."""
    table, agents = data_of(form).table, data_of(form).agents
    words = ["south"] * (len(table) - 1) + ["north"]
    if table.counts[-1] > 1:
        words = ["north", *["south"] * (len(table) - 1)]
    table = table.with_covariates({"region": words})
    matrix = np.array([[1.0, float(words[row] == "north")] for row in table.rows_of_agents()])
    return table, agents, matrix


def enumerated(distance, form, errors="none", **options):
    _, agents, matrix = of_columns(form)
    two = TwoGroups(matrix, **options)
    model = dataclasses.replace(model_of(distance, "two", errors), partitions=two.probability)
    found = oracle.posterior(model, agents)
    return np.append(expected(found, len(agents)), two.numbers(found.partitions, PLACES))


def run_of(distance, form, errors="none", n_iterations=3000):
    table, *_ = of_columns(form)
    settings = settings_of(distance, "two", errors, weights_by=["region"])
    model = bayes_model(as_statements(table), settings)
    rng = np.random.default_rng(3)
    state, move, found = first_state(model, rng), sweep_move(model, settings), []
    for iteration in range(n_iterations):
        move.step(rng, state)
        if iteration >= 50:
            k = int(state.labels[model.in_turn[0]])
            shares = np.exp(log_weights(PLACES, state.coefficients))[:, k]
            slope = state.coefficients[1, 0] - state.coefficients[1, 1]
            found.append(np.concatenate([numbers_of(state), shares, [abs(slope)]]))
    return np.array(found)


right_run_of = cache(run_of)


def gap(found, means):
    return np.abs(z_scores(found, means)).max()


@pytest.mark.parametrize(
    ("distance", "form", "errors"),
    [
        ("kendall", "full", "none"),
        ("footrule", "top", "none"),
        ("ulam", "pairs", "none"),
        ("kendall", "contradictions", "bernoulli"),
    ],
)
def test_chains_have_the_posterior(distance, form, errors):
    assert gap(right_run_of(distance, form, errors), enumerated(distance, form, errors)) < BOUND


def test_a_twin_whose_assignments_forget_the_column_is_rejected(monkeypatch):
    def alike(matrix, coefficients):
        return np.broadcast_to(log_weights(matrix, coefficients).mean(axis=0), (len(matrix), 2))

    monkeypatch.setattr(by_agent, "log_weights", alike)
    found = run_of("kendall", "full", n_iterations=2000)
    assert gap(found, enumerated("kendall", "full")) > 2 * BOUND


def test_coefficients_go_with_their_groups():
    """However groups are numbered, who is where is as probable; a group that empties comes last."""
    table, *_ = of_columns("full")
    model = bayes_model(as_statements(table), settings_of("kendall", "two", weights_by=["region"]))
    state = first_state(model, np.random.default_rng(0))
    state.labels[model.in_turn] = [1, 1, 0, 1]
    state.n_clusters, state.coefficients = 2, np.array([[0.3, -1.0], [2.0, 0.5]])
    before = state.log_prior_by_columns()
    state.settle()
    assert state.labels[model.in_turn].tolist() == [0, 0, 1, 0]
    assert state.coefficients.tolist() == [[-1.0, 0.3], [0.5, 2.0]]
    assert state.log_prior_by_columns() == pytest.approx(before, abs=1e-12)
    state.coefficients = state.coefficients[:, ::-1]
    assert abs(state.log_prior_by_columns() - before) > 0.1  # a twin whose coefficients stay behind
    state.labels[:] = 1
    state.settle()
    assert state.coefficients.tolist() == [[-1.0, 0.3], [0.5, 2.0]]


def test_the_twin_without_the_column_has_another_posterior():
    found = right_run_of("kendall", "full", "none")
    assert gap(found, enumerated("kendall", "full", slope_counts=False)) > 2 * BOUND


def test_new_agents_are_as_probable_as_by_enumeration():
    """What somebody says, with either value of the column."""
    table, agents, matrix = of_columns("full")
    options = {"n_draws": 4000, "n_burn_in": 100, "n_chains": 1, "random_state": 0, "progress": False}
    model = permix.BayesianMallowsMixture(
        2, weights_by="region", decay_prior=permix.Gamma(2.0, 3.0), **options
    ).fit(table)
    fit = model._fit
    fit.__dict__["groups"] = GroupDraws.of(fit.draws.arrays, fit.settings, 4000)
    new = permix.Rankings.from_orders([(3, 2, 0, 1)] * 2, items=[0, 1, 2, 3])
    new = new.with_covariates({"region": ["south", "north"]})
    found, errors = model._log_densities(new)
    exact = []
    for place in PLACES:
        two = TwoGroups(np.vstack([matrix, place]))
        laws = dataclasses.replace(model_of("kendall", "two"), partitions=two.probability)
        exact.append(np.log(oracle.predictive(laws, agents, oracle.full((3, 2, 0, 1)))))
    # Draws follow one another: their errors are larger than those of independent ones.
    assert np.abs(found - exact).max() < 0.03
    assert abs(exact[0] - exact[1]) > 0.15
    assert max(errors) < 0.02


def test_no_other_move_divides_agents():
    """Moves that know nothing of columns have no place, even where there are as many groups as agents."""
    table, *_ = of_columns("full")
    settings = settings_of("kendall", "two", weights_by=["region"]).replaced(n_components=4)
    model = bayes_model(as_statements(table), settings)
    named = [type(move).__name__ for move in sweep_move(model, settings).moves]
    assert named == ["AssignmentsByColumns", "Groups", "Coefficients"]


# -- recovery --------------------------------------------------------------------------------------

ITEMS = ("a", "b", "c", "d", "e")


def drawn_votes(n, slope, seed):
    """Votes of two groups; log-odds of the second are -0.4 + slope (1 in the south, -1/2 a decade of age)."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south"], size=n, p=[0.6, 0.4])
    age = rng.integers(18, 90, n).astype(float)
    odds = -0.4 + slope * ((region == "south") - 0.05 * (age - 54))
    second = rng.random(n) < 1 / (1 + np.exp(-odds))
    drawn = [
        permix.Mallows(center, 0.5, items=ITEMS).sample(n, random_state=rng).orders
        for center in (ITEMS, ITEMS[::-1])
    ]
    orders = np.where(second[:, None], drawn[1], drawn[0])
    votes = permix.Rankings.from_orders([[ITEMS[item] for item in row] for row in orders], items=ITEMS)
    return votes.with_covariates({"region": region, "age": age})


def fitted(votes, **options):
    options = {
        "n_draws": 300,
        "n_burn_in": 200,
        "n_chains": 2,
        "random_state": 0,
        "progress": False,
    } | options
    return permix.BayesianMallowsMixture(2, weights_by=["region", "age"], **options).fit(votes)


@pytest.fixture(scope="module")
def votes():
    return drawn_votes(800, 1.0, seed=0)


@pytest.fixture(scope="module")
def model(votes):
    return fitted(votes)


def test_coefficients_are_recovered(model):
    """Within three posterior standard deviations; the intervals are as wide as those of likelihood."""
    sign = 1.0 if model.centers_[0].orders[0, 0] == 0 else -1.0
    table = model.coefficients_.set_index("column")
    for column, truth in (("region", 1.0), ("age", -0.05)):
        row = table.loc[column]
        assert abs(row.estimate - sign * truth) < 3.0 * row.standard_error
        assert row.low < row.estimate < row.high
        assert not row.low <= 0.0 <= row.high
    assert table.loc["region", "standard_error"] == pytest.approx(0.19, rel=0.3)
    assert verdict(by_columns(model)).startswith("Shares of groups depend on region and age")


def by_columns(model):
    return model._by_columns("coefficients_")


def test_where_there_is_no_effect_none_is_found():
    model = fitted(drawn_votes(600, 0.0, seed=2))
    found = by_columns(model)
    assert found.p_value > 0.05
    assert verdict(found).startswith("No sign that shares of groups depend on region and age")
    table = model.coefficients_
    slopes = table[table.column != "(constant)"]
    assert (np.abs(slopes.estimate) < 3.0 * slopes.standard_error).all()


def test_shares_by_value_are_probabilities_within_their_intervals(model, votes):
    table = model.weights_by_
    assert list(table.columns) == ["column", "value", "group", "share", "low", "high"]
    assert table.groupby(["column", "value"]).share.sum().to_numpy() == pytest.approx(1.0)
    assert ((table.low <= table.share) & (table.share <= table.high)).all()
    share = table[table.column == "region"].set_index(["value", "group"]).share
    south = np.mean(np.asarray(votes.covariates["region"]) == "south")
    mixed = south * share["south", 0] + (1 - south) * share["north", 0]
    assert mixed == pytest.approx(model.weights_[0], abs=0.03)


def test_new_agents_are_placed_by_their_columns(model, votes):
    one = votes[[0, 0]].with_covariates({"region": ["south", "north"], "age": [20.0, 90.0]})
    toward = int(model.coefficients_.set_index("column").estimate["region"] > 0)
    found = model.predict_proba(one)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found[0, toward] > found[1, toward]
    drawn = model.sample_completions(one, 400, random_state=0).labels
    assert (drawn[0] == toward).mean() >= (drawn[1] == toward).mean()
    with pytest.raises(permix.errors.DataError, match="not known of these agents"):
        model.predict(votes[:2].with_covariates({"age": [20.0, 30.0]}))


def test_criteria_take_columns_into_account(model, votes):
    options = {"n_draws": 300, "n_burn_in": 200, "n_chains": 2, "random_state": 0, "progress": False}
    without = permix.BayesianMallowsMixture(2, **options)
    assert model.loo().log_density > without.fit(votes).loo().log_density + 50.0


# -- refusals, files, words ------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["mfm", "dp", permix.FiniteDirichlet(2)])
def test_an_open_number_of_groups_is_refused(votes, number):
    open_model = permix.BayesianMallowsMixture(number, weights_by="region", progress=False)
    with pytest.raises(permix.errors.DataError, match="needs a number of groups, because"):
        open_model.fit(votes[:20])


def test_updates_are_refused(model, votes):
    with pytest.raises(permix.errors.DataError, match="fit all data together"):
        model.update(votes[:3])


def test_without_columns_there_are_no_coefficients(votes):
    plain = permix.BayesianMallowsMixture(n_draws=20, n_burn_in=10, n_chains=1, progress=False)
    with pytest.raises(AttributeError, match="weights_by"):
        _ = plain.fit(votes[:9]).coefficients_


def test_one_group_has_nothing_to_depend(votes):
    one = permix.BayesianMallowsMixture(
        1, weights_by="region", n_draws=20, n_burn_in=10, n_chains=2, progress=False
    ).fit(votes[:50])
    assert one.coefficients_.attrs["verdict"] == "With one group, nothing can depend on region"
    assert one.weights_by_.share.to_numpy() == pytest.approx(1.0)


def test_files_keep_everything(tmp_path, model, votes):
    model.save(tmp_path / "m.permix")
    again = permix.load(tmp_path / "m.permix")
    assert again.coefficients_.equals(model.coefficients_)
    assert again.weights_by_.equals(model.weights_by_)
    assert again.get_params()["weights_by"] == ("region", "age")
    assert np.array_equal(again.predict_proba(votes[:50]), model.predict_proba(votes[:50]))
    assert again.waic() == model.waic()


def test_rows_with_counts_are_so_many_agents(votes):
    few = votes[:150]
    counted = fitted(few.collapse(), n_draws=200)
    alone = fitted(few, n_draws=200)
    assert counted.coefficients_.estimate.abs().to_numpy() == pytest.approx(
        alone.coefficients_.estimate.abs().to_numpy(), abs=0.25
    )


def test_stopped_chains_go_on_where_they_were(tmp_path, votes):
    whole = fitted(votes[:60], n_draws=30, n_burn_in=10)
    fitted(votes[:60], n_draws=12, n_burn_in=10, store=str(tmp_path / "chains"))
    resumed = fitted(votes[:60], n_draws=30, n_burn_in=10, store=str(tmp_path / "chains"))
    arrays = (each._fit.draws.arrays["coefficients"] for each in (whole, resumed))
    assert np.array_equal(*arrays)


def test_the_answer_says_on_what_shares_depend(model):
    assert "Shares of groups depend on region and age (part of the posterior" in " ".join(
        answer(model._fit, Context("votes")).sentences
    )


def test_the_command(tmp_path, run, votes):
    known = (votes.covariates[column] for column in ("region", "age"))
    rows = zip(votes.orders[:200], *known, strict=False)
    data, out, page = tmp_path / "votes.csv", tmp_path / "m.permix", tmp_path / "page.md"
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "age", 1, 2, 3, 4, 5])
        writer.writerows([r, f"{a:g}", *(ITEMS[item] for item in order)] for order, r, a in rows)
    options = ["-k", 2, "--draws", 100, "--weights-by", "region", "--weights-by", "age"]
    done = run("fit", "bayes-mallows", data, *options, "-o", out, "--report", page)
    assert done.exit_code == 0, done.stderr
    for text in (done.stdout, page.read_text()):
        assert "Shares of groups, if all agents had this value" in text
        assert "Shares of groups depend on region and age" in " ".join(text.split())
    found = json.loads(run("summary", out, "--json").stdout)["weights_by"]
    assert found["columns"] == ["region", "age"]
    assert found["interval"] == "90% of the posterior draws"
    assert {row["group"] for row in found["coefficients"]} == {2}
    answers = tmp_path / "p.csv"
    done = run("predict", out, data, "-o", answers)
    assert done.exit_code == 0, done.stderr
    assert answers.read_text().splitlines()[0].endswith("region,age")
