"""Weights that depend on columns of agents: a multinomial logit beside the groups."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

import permix
from permix.distributions.agent_weights.design import Design
from permix.distributions.agent_weights.logit import log_likelihood, log_weights, maximize
from permix.distributions.agent_weights.model import Slopes, covariance_of, rebased
from permix.estimators.agent_weights.rows import verdict
from permix.mallows.report import answer
from permix.reporting.context import Context
from tests.oracles.ranking_models import mallows

ITEMS = ("a", "b", "c", "d", "e")
CENTERS = (ITEMS, tuple(reversed(ITEMS)))


def drawn_votes(n, slope, seed, form="full"):
    """Votes of two groups; log-odds of the second are -0.4 + slope (1 in the south, -1/2 a decade of age)."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south"], size=n, p=[0.6, 0.4])
    age = rng.integers(18, 90, n).astype(float)
    odds = -0.4 + slope * ((region == "south") - 0.05 * (age - 54))
    second = rng.random(n) < 1 / (1 + np.exp(-odds))
    drawn = [
        permix.Mallows(center, 0.5, items=ITEMS).sample(n, random_state=rng).orders for center in CENTERS
    ]
    orders = np.where(second[:, None], drawn[1], drawn[0])
    if form == "top":
        orders = orders[:, :2]
    names = [[ITEMS[item] for item in row] for row in orders]
    if form == "subset":
        names = [[name for name in row if name != ITEMS[j % 5]] for j, row in enumerate(names)]
    unlisted = {"unlisted": "unknown"} if form == "subset" else {}
    votes = permix.Rankings.from_orders(names, items=ITEMS, **unlisted)
    return votes.with_covariates({"region": region, "age": age})


def fitted(votes, columns=("region", "age"), **options):
    options = {"n_init": 2, "random_state": 0, "progress": False} | options
    return permix.MallowsMixture(2, weights_by=columns, **options).fit(votes)


@pytest.fixture(scope="module")
def votes():
    return drawn_votes(800, 1.0, seed=0)


@pytest.fixture(scope="module")
def model(votes):
    return fitted(votes)


def of(table, column):
    """The rows of one column, in the direction of the second center."""
    return table[table.column == column]


# -- the logit -------------------------------------------------------------------------------------


def a_problem(seed, k=3, n=80):
    rng = np.random.default_rng(seed)
    matrix = np.column_stack([np.ones(n), rng.standard_normal(n), rng.integers(0, 2, n)])
    log_f = 2.0 * rng.standard_normal((n, k))
    return log_f, matrix, rng.integers(1, 4, n)


@pytest.mark.parametrize("seed", range(3))
def test_the_climb_ends_where_general_optimizers_do(seed):
    log_f, matrix, counts = a_problem(seed)

    def loss(free):
        return -log_likelihood(log_f, matrix, counts, np.column_stack([np.zeros(3), free.reshape(3, 2)]))

    best = min(minimize(loss, start).fun for start in 0.5 * np.random.default_rng(9).standard_normal((4, 6)))
    coefficients, value = maximize(log_f, matrix, counts, np.zeros((3, 3)))
    assert value == pytest.approx(-best, abs=1e-5)
    assert np.abs(approx_fprime(coefficients[:, 1:].ravel(), loss)).max() < 1e-3


def test_weights_of_rows_are_probabilities_whatever_the_reference():
    matrix = a_problem(0)[1]
    coefficients = np.column_stack([np.zeros(3), np.arange(6.0).reshape(3, 2) / 3])
    weights = np.exp(log_weights(matrix, coefficients))
    assert weights.sum(axis=1) == pytest.approx(1.0)
    order = np.array([2, 0, 1])
    turned = rebased(coefficients, order)
    assert not turned[:, 0].any()
    assert np.allclose(np.exp(log_weights(matrix, turned)), weights[:, order])


def test_covariance_is_the_inverse_of_the_second_derivatives():
    """Also of a parameter of each component; here rows are normal around one mean for each."""
    rng = np.random.default_rng(4)
    _, matrix, counts = a_problem(1, k=2, n=200)
    data = rng.standard_normal(200) + 2.0 * (rng.random(200) < 0.5)
    means, coefficients = np.array([0.0, 2.1]), np.array([[0.0, 0.2], [0.0, -0.3], [0.0, 0.4]])

    def loss(free):
        f = -0.5 * (data[:, None] - free[3:]) ** 2
        return -log_likelihood(f, matrix, counts, np.column_stack([np.zeros(3), free[:3]]))

    at = np.concatenate([coefficients[:, 1], means])
    hessian = np.array([approx_fprime(at, lambda x, i=i: approx_fprime(x, loss)[i], 1e-4) for i in range(5)])
    slopes = Slopes(data[:, None] - means, np.full((200, 2), -1.0))
    found = covariance_of(-0.5 * (data[:, None] - means) ** 2, matrix, counts, coefficients, slopes)
    assert np.allclose(found, np.linalg.inv(hessian)[:3, :3], rtol=0.02, atol=1e-4)
    known = covariance_of(-0.5 * (data[:, None] - means) ** 2, matrix, counts, coefficients, None)
    assert np.all(np.diag(known) < np.diag(found))  # a twin that takes means as known is too sure


# -- recovery --------------------------------------------------------------------------------------


def second_is_reversed(model):
    return model.centers_.orders[1].tolist() == [4, 3, 2, 1, 0]


def true_signs(model):
    return 1.0 if second_is_reversed(model) else -1.0


def test_coefficients_are_found_again(model):
    sign = true_signs(model)
    for column, truth in (("region", 1.0), ("age", -0.05)):
        row = of(model.coefficients_, column).iloc[0]
        assert abs(sign * row.estimate - truth) < 4 * row.standard_error
        assert row.low < row.estimate < row.high
        assert min(abs(row.low), abs(row.high)) > 0.0
        assert row.low * row.high > 0.0


def test_the_likelihood_is_at_a_maximum_and_above_that_without_columns(votes, model):
    plain = permix.MallowsMixture(2, n_init=2, random_state=0, progress=False).fit(votes)
    by_agent = model._fit.components.by_agent
    gain = float(model.log_likelihood_) - float(plain.log_likelihood_)
    assert gain > 20.0
    assert by_agent.p_value < 1e-9
    assert by_agent.gain == pytest.approx(gain, rel=0.1)  # with the components of either fit
    log_f = np.array(
        [
            [
                math.log(mallows(tuple(ITEMS.index(i) for i in c.center), c.dispersion)[tuple(row)])
                for c in model.components_
            ]
            for row in votes.orders.tolist()
        ]
    )
    matrix, counts = by_agent.design.matrix(votes), votes.counts
    value = log_likelihood(log_f, matrix, counts, by_agent.coefficients)
    assert value == pytest.approx(float(model.log_likelihood_), abs=1e-6)
    assert maximize(log_f, matrix, counts, by_agent.coefficients)[1] == pytest.approx(value, abs=1e-4)


def test_shares_by_value_are_means_over_the_others(votes, model):
    by_agent = model._fit.components.by_agent
    table = model.weights_by_
    assert table.groupby(["column", "value"], sort=False).share.sum().to_numpy() == pytest.approx(1.0)
    everybody_south = votes.with_covariates({"region": ["south"] * 800, "age": votes.covariates["age"]})
    expected = np.exp(by_agent.log_weights(everybody_south)).mean(axis=0)
    south = table[(table.column == "region") & (table.value == "south")]
    assert south.share.to_numpy() == pytest.approx(expected)
    assert np.all((south.low < south.share) & (south.share < south.high))
    assert model.weights_ == pytest.approx(np.exp(by_agent.log_weights(votes)).mean(axis=0))


@pytest.mark.parametrize("form", ["top", "subset"])
def test_other_forms_of_data(form):
    model = fitted(drawn_votes(500, 1.5, seed=1, form=form), n_init=1, n_particles=4)
    for column, truth in (("region", 1.5), ("age", -0.075)):
        row = of(model.coefficients_, column).iloc[0]
        away = model.centers_.orders[1].tolist().index(4) < 2
        assert abs((1 if away else -1) * row.estimate - truth) < 4 * row.standard_error


def test_drawn_rankings(monkeypatch):
    """Where sums are too many EM draws rankings, and coefficients are found as well."""
    from permix.mallows import em

    monkeypatch.setattr(em, "are_few", lambda profile, k: False)
    model = fitted(drawn_votes(200, 2.0, seed=2, form="subset"), "region", n_init=1, n_particles=4)
    row = of(model.coefficients_, "region").iloc[0]
    assert abs(abs(row.estimate) - 2.0) < 4 * row.standard_error


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    held, p_values = [], []
    for seed in range(60):
        model = fitted(drawn_votes(400, 1.0, seed), n_init=1)
        row = of(model.coefficients_, "region").iloc[0]
        truth = true_signs(model)
        held.append(row.low <= truth <= row.high)
        none = fitted(drawn_votes(400, 0.0, seed + 100), n_init=1)
        p_values.append(none._fit.components.by_agent.p_value)
    assert 0.75 < np.mean(held) < 0.99  # 90 % of 60, within four standard errors
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) < 0.05) < 0.2


# -- no effect -------------------------------------------------------------------------------------


def test_no_effect_where_there_is_none():
    """Of eight intervals of 90 %, fewer than five hold 0 with a probability of 0.5 %."""
    held, p_values = 0, []
    for seed in range(4):
        model = fitted(drawn_votes(300, 0.0, seed), n_init=1)
        rows = [of(model.coefficients_, column).iloc[0] for column in ("region", "age")]
        held += sum(row.low < 0.0 < row.high for row in rows)
        by_agent = model._fit.components.by_agent
        p_values.append(by_agent.p_value)
        seems = "Shares of groups" if by_agent.p_value <= 0.05 else "No sign that shares of groups"
        assert verdict(by_agent).startswith(f"{seems} depend on region and age")
    assert held >= 5
    assert max(p_values) > 0.05
    assert min(p_values) > 1e-4


def test_a_column_that_is_shuffled_loses_its_effect(votes):
    """The broken twin: the same votes beside other agents' regions."""
    rng = np.random.default_rng(1)
    shuffled = votes.with_covariates({"region": rng.permutation(votes.covariates["region"])})
    row = of(fitted(shuffled, "region").coefficients_, "region").iloc[0]
    assert abs(row.estimate) < 3 * row.standard_error


# -- separation ------------------------------------------------------------------------------------


def test_a_value_whose_agents_are_all_in_one_group_is_said():
    orders = [list("abcde")] * 30 + [list("edcba")] * 30 + [list("abcde")] * 5
    region = ["north", "south"] * 30 + ["east"] * 5
    votes = permix.Rankings.from_orders(orders).with_covariates({"region": region})
    with pytest.warns(permix.errors.PermixWarning, match="no finite coefficient fits best for.*region east"):
        model = fitted(votes, "region")
    east = of(model.coefficients_, "region").set_index("value").loc["east"]
    assert math.isinf(east.estimate)
    assert math.isinf(east.low)
    assert math.isinf(east.high)
    south = of(model.coefficients_, "region").set_index("value").loc["south"]
    assert south.low < 0.0 < south.high
    assert south.standard_error < 2.0
    shares = model.weights_by_.set_index(["value", "group"]).share
    in_first = shares["east", 0]
    assert max(in_first, 1.0 - in_first) > 1.0 - 1e-4


# -- new agents ------------------------------------------------------------------------------------


def test_new_agents_are_placed_by_what_they_say_and_what_they_are(model):
    said = permix.Preferences.from_pairs([("x", "a", "e"), ("y", "a", "e")], items=ITEMS)
    known = said.with_covariates({"region": ["north", "south"], "age": [54.0, 54.0]})
    weights = np.exp(model._fit.components.by_agent.log_weights(known))
    first = [mallows(tuple(ITEMS.index(i) for i in c.center), c.dispersion) for c in model.components_]
    p = np.array([sum(v for r, v in f.items() if r.index(0) < r.index(4)) for f in first])
    expected = weights * p / (weights @ p)[:, None]
    assert model.predict_proba(known) == pytest.approx(expected)
    assert model.score_samples(known) == pytest.approx(np.log(weights @ p))
    assert expected[0, 0] != pytest.approx(expected[1, 0], abs=0.05)


def test_probabilities_of_all_rankings_add_up_for_every_agent(model):
    from itertools import permutations

    votes = permix.Rankings.from_orders([list(r) for r in permutations(ITEMS)], items=ITEMS)
    here = votes.with_covariates({"region": ["south"] * 120, "age": [30.0] * 120})
    assert np.exp(model.score_samples(here)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": [40.0]}, "weights depend on region here, which is not known of these agents"),
        ({"region": ["west"], "age": [40.0]}, "row 1 has region 'west', which nobody had"),
        ({"region": ["north"], "age": [math.nan]}, "row 1 has no age"),
        ({"region": [1.0], "age": [40.0]}, "the column 'region' has numbers, and words"),
    ],
)
def test_new_agents_of_whom_too_little_is_known_are_refused(model, columns, message):
    someone = permix.Rankings.from_orders([list(ITEMS)]).with_covariates(columns)
    with pytest.raises(permix.errors.DataError, match=message):
        model.predict_proba(someone)


def test_the_chain_of_the_paper_has_one_weight_for_all(model, votes):
    with pytest.raises(permix.errors.DataError, match="method='auto'"):
        model.sample_completions(votes[:2], method="sp")
    assert model.sample_completions(votes[:2], 3, random_state=0).labels.shape == (2, 3)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "known", "message"),
    [
        (
            "county",
            {"region": ["n", "s", "n"]},
            "names 'county', but the columns known of the agents are: 'region'",
        ),
        ("region", {}, "the columns known of the agents are: none"),
        ("region", {"region": ["n"] * 3}, "all agents have the same region"),
        ("age", {"age": [4.0] * 3}, "all agents have the same age"),
        ("region", {"region": ["n", "", "s"]}, "row 2 has no region"),
        (
            ("region", "land"),
            {"region": ["n", "s", "n"], "land": ["A", "B", "A"]},
            "'land' follows from 'region'",
        ),
    ],
)
def test_columns_that_say_nothing_are_refused(columns, known, message):
    orders = [["a", "b"], ["b", "a"], ["a", "b"]]
    votes = permix.Rankings.from_orders(orders).with_covariates(known)
    with pytest.raises(permix.errors.DataError, match=message):
        fitted(votes, columns)


def test_too_many_values_are_refused():
    known = {"name": [f"n{j}" for j in range(101)]}
    with pytest.raises(permix.errors.DataError, match="101 different values"):
        Design.of(permix.Rankings.from_orders([["a", "b"]] * 101).with_covariates(known), ["name"])


@pytest.mark.parametrize("wrong", [3, ["a", "a"], [""], [1]])
def test_names_of_columns_are_checked(votes, wrong):
    with pytest.raises(permix.errors.ParameterError, match="a name or a list of different names"):
        fitted(votes, wrong)


def test_without_columns_there_are_no_coefficients(votes):
    model = permix.MallowsMixture(1, progress=False).fit(votes[:5])
    with pytest.raises(AttributeError, match="weights_by"):
        _ = model.coefficients_


# -- files, counts, words --------------------------------------------------------------------------


def test_rows_with_counts_are_so_many_agents(votes):
    few = votes[:150]
    one_by_one = fitted(few, "region")
    counted = fitted(few.with_covariates({"region": few.covariates["region"]}).collapse(), "region")
    assert float(counted.log_likelihood_) == pytest.approx(float(one_by_one.log_likelihood_), abs=1e-3)
    assert counted.coefficients_.estimate.to_numpy() == pytest.approx(
        one_by_one.coefficients_.estimate.to_numpy(), abs=0.01
    )


def test_files_keep_everything(tmp_path, model, votes):
    model.save(tmp_path / "m.permix")
    again = permix.load(tmp_path / "m.permix")
    assert again.coefficients_.equals(model.coefficients_)
    assert again.weights_by_.equals(model.weights_by_)
    assert again.get_params()["weights_by"] == ("region", "age")
    assert np.array_equal(again.predict_proba(votes), model.predict_proba(votes))


def test_groups_beside_a_column_that_the_fit_used(model):
    table = model.by_covariate("region")
    assert "region was used in the fit" in table.attrs["note"]
    assert "coefficients, and not shuffled agents" in table.attrs["verdict"]
    assert "not" not in permix.plots.by_covariate(model, "region").get_title()


def test_the_answer_says_on_what_shares_depend(model):
    said = " ".join(answer(model._fit, Context("votes")).sentences)
    assert "Shares of groups depend on region and age (likelihood ratio" in said


def test_more_groups_are_chosen_with_columns(votes):
    choice = permix.select_components(
        votes[:200], [1, 2], model="mallows", weights_by="region", n_init=1, random_state=0, progress=False
    )
    assert choice.chosen == 2


def test_the_command(tmp_path, run, votes):
    known = (votes.covariates[column] for column in ("region", "age"))
    rows = zip(votes.orders[:300], *known, strict=False)
    lines = [",".join([r, f"{a:g}", *(ITEMS[item] for item in order)]) for order, r, a in rows]
    data, out, page = tmp_path / "votes.csv", tmp_path / "m.permix", tmp_path / "page.md"
    data.write_text("\n".join(["region,age,1,2,3,4,5", *lines]))
    options = ["-k", 2, "--starts", 1, "--weights-by", "region", "--weights-by", "age"]
    code, shown, err = run("fit", "mallows", data, *options, "-o", out, "--report", page)
    assert code == 0, err
    for text in (shown, page.read_text()):
        assert "Shares of groups, if all agents had this value" in text
        assert "Shares of groups depend on region and age" in " ".join(text.split())
    found = json.loads(run("summary", out, "--json")[1])["weights_by"]
    assert found["columns"] == ["region", "age"]
    assert found["references"]["region"] == "north"
    assert {row["group"] for row in found["coefficients"]} == {2}
    answers = tmp_path / "p.csv"
    code, _, err = run("predict", out, data, "-o", answers)
    assert code == 0, err
    assert answers.read_text().startswith("agent,group,how_sure,p1,p2,region,age")


def test_the_command_names_its_option(tmp_path, run):
    data = tmp_path / "votes.csv"
    data.write_text("region,1,2\nnorth,a,b\nnorth,b,a\n")
    code, _, err = run("fit", "mallows", data, "-k", 2, "--weights-by", "region", "-o", tmp_path / "m.permix")
    assert code == 1
    assert "--weights-by: all agents have the same region" in err
