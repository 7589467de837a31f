"""``fit dp-mallows``, and what other commands make of such models."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

import permix
from permix.cli.report import print_answer
from permix.dp_mallows.report import answer
from permix.dp_mallows.tables import report as dp_mallows_report
from permix.dp_mallows.tables import show as print_dp_mallows
from permix.estimators.ranking_lists import as_top_lists
from permix.reporting import described, written
from permix.reporting.context import Context
from permix.reporting.words import OF_ALL
from tests.dp_mallows.cases import fit_of

DRINKS = ("tea", "coffee", "milk", "juice", "cocoa", "water")
SHORT = ("--draws", 60, "--burn-in", 40, "--seed", 3)


@pytest.fixture(scope="module")
def made():
    """Two groups with opposite tastes; lists of two to four drinks."""
    return permix.datasets.make_generalized_mallows_mixture(
        80,
        6,
        2,
        theta=1.6,
        lengths=(2, 4),
        weights=[0.6, 0.4],
        centers=np.array([[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]]),
        random_state=1,
    )


@pytest.fixture(scope="module")
def votes(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    permix.write(permix.Rankings.from_orders(np.asarray(made.data.orders), items=DRINKS), path)
    return path


@pytest.fixture(scope="module")
def lists(votes):
    return permix.read(votes)


@pytest.fixture(scope="module")
def model(lists):
    return permix.DPMallowsMixture(n_draws=60, n_burn_in=40, random_state=3, progress=False).fit(lists)


@pytest.fixture
def fit(model, tmp_path):
    path = tmp_path / "drinks.permix"
    model.save(path)
    return path


@pytest.fixture
def newcomers(tmp_path):
    path = tmp_path / "newcomers.csv"
    path.write_text("person,how many,first,second\nann,1,tea,coffee\nbob,3,water,\n")
    return path


NEW = ("--agent-column", "person", "--count-column", "how many", "--layout", "orders")


def table_in(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_fit_finds_the_groups_and_agrees_with_python(run, votes, model, made, tmp_path):
    fit, labels, picture = tmp_path / "f.permix", tmp_path / "labels.csv", tmp_path / "groups.svg"
    command = ["fit", "dp-mallows", votes, "-o", fit, *SHORT]
    code, out, err = run(*command, "--labels", labels, "--picture", picture)
    assert code == 0, err
    for words in ("80 agents, 6 items", "posterior probability", "Decay by rank", "Chains (2 × 60 draws"):
        assert words in out
    assert "<svg" in picture.read_text()
    assert not (tmp_path / "f.permix.chains").exists()
    rows = table_in(labels)
    assert list(rows[0]) == ["agent", "group", "how_sure"]
    assert [int(row["group"]) - 1 for row in rows] == model.labels_.tolist()
    assert permix.adjusted_rand(model.labels_, made.labels) > 0.5

    report = json.loads(run("summary", fit, "--json")[1])
    assert report["model"] == "DPMallowsMixture"
    assert report["number_of_groups"] == model.n_clusters_ == len(report["groups"])
    table, decays = model.summary(), model.decays()
    for e, part in enumerate(report["groups"]):
        assert part["agents"] == table["size"][e]
        assert part["share_low"] == table["share_low"][e]
        assert part["share_high"] == table["share_high"][e]
        center = model.center(e)
        assert part["center"] == center["item"].tolist()
        assert part["rank_high"] == center["rank_high"].tolist()
        np.testing.assert_allclose(part["theta"], decays.loc[e, "theta"])
        np.testing.assert_allclose(part["theta_low"], decays.loc[e, "theta_low"])
        assert part["lists_at_rank"] == decays.loc[e, "lists"].tolist()
    numbers = model.posterior_["posterior"]["n_groups"].to_numpy()
    assert report["posterior_number_of_groups"] == {
        str(k): float((numbers == k).mean()) for k in np.unique(numbers)
    }
    assert report["remarks"] == model._summaries.remarks()
    assert run("summary", fit)[1] == run("info", fit)[1] == out

    assert run(*command)[0] == 1  # it exists
    code, again, _ = run(*command, "--force", "--json")
    assert code == 0
    assert {**json.loads(again), "file": ""} == {**report, "file": ""}


def test_every_option_reaches_the_model(run, votes, tmp_path):
    fit, chains = tmp_path / "f.permix", tmp_path / "f.permix.chains"
    command = [
        "fit",
        "dp-mallows",
        votes,
        "-o",
        fit,
        "--draws",
        5,
        "--burn-in",
        2,
        "--thin",
        2,
        "--chains",
        1,
    ]
    options = ["--concentration", "gamma(2, 0.5)", "--prior-strength", 2, "--prior-rate", "1,0.5,0.5,0.25"]
    options += [
        "--assignments",
        "parallel",
        "--no-split-merge",
        "--initial-groups",
        4,
        "--loss",
        "binder",
        "--jobs",
        1,
    ]
    code, _, err = run(*command, *options, "--seed", 9, "--keep-chains", "--quiet")
    assert code == 0, err
    assert chains.is_dir()
    model = permix.load(fit)
    assert model.concentration == permix.Gamma(2.0, 0.5)
    assert (model.prior_strength, list(model.prior_rate)) == (2.0, [1.0, 0.5, 0.5, 0.25])
    assert (model.assignments, model.split_merge, model.n_initial_clusters) == ("parallel", False, 4)
    assert (model.n_draws, model.n_burn_in, model.n_thin, model.n_chains) == (5, 2, 2, 1)
    assert (model.random_state, model.n_jobs, model.loss) == (9, 1, "binder")
    report = json.loads(run("info", fit, "--json")[1])
    assert (report["assignments"], report["draws_per_chain"]) == ("parallel", 5)

    # The chains that were kept go on.
    command[command.index("--draws") + 1] = 9
    code, _, err = run(*command, *options, "--seed", 9, "--force")
    assert code == 0, err
    assert "found chains" in err
    longer = permix.load(fit)
    before, after = (m.posterior_["posterior"]["labels"].to_numpy() for m in (model, longer))
    assert after.shape[1] == 9
    np.testing.assert_array_equal(after[:, :5], before)

    code, _, err = run(
        "fit", "dp-mallows", votes, "-o", fit, "--sampler", "beta-gibbs", "--discount", 0.3,
        "--concentration", 0.5, "--draws", 4, "--burn-in", 0, "--force",
    )  # fmt: skip
    assert code == 0, err
    model = permix.load(fit)
    assert (model.sampler, model.discount, model.concentration) == ("beta-gibbs", 0.3, 0.5)
    assert "published approximation" in run("summary", fit)[1]


def test_labels_have_a_line_for_each_row_and_one_answer_for_each_list(run, lists, tmp_path):
    votes, fit, labels = tmp_path / "votes.csv", tmp_path / "f.permix", tmp_path / "labels.csv"
    rows = lists.collapse()
    # Every list is there twice, with a count and alone.
    orders = np.concatenate([rows.orders, rows.orders])
    counts = np.concatenate([rows.counts, np.ones(len(rows), dtype=np.int64)])
    twice = permix.Rankings._from_arrays(orders, rows.items, counts)
    permix.write(twice, votes)
    command = ["fit", "dp-mallows", votes, "-o", fit, "--labels", labels, "--draws", 20, "--burn-in", 5]
    code, _, err = run(*command)
    assert code == 0, err
    table, model = table_in(labels), permix.load(fit)
    assert list(table[0]) == ["agent", "count", "group", "how_sure"]
    assert [int(line["count"]) for line in table] == counts.tolist()
    assert [int(line["group"]) - 1 for line in table] == model.labels_.tolist()
    answers = [(line["group"], line["how_sure"]) for line in table]
    assert answers[: len(rows)] == answers[len(rows) :]
    assert all(1 / model.n_clusters_ - 1e-6 <= float(line["how_sure"]) <= 1 for line in table)


def test_predict_says_where_newcomers_belong(run, fit, model, newcomers, tmp_path):
    answer = tmp_path / "answer.csv"
    code, out, err = run("predict", fit, newcomers, *NEW, "-o", answer)
    assert code == 0, err
    new = permix.Rankings.from_orders(
        [["tea", "coffee"], ["water"]], items=model.items_, counts=[1, 3], agents=["ann", "bob"]
    )
    rows = table_in(answer)
    assert [row["agent"] for row in rows] == ["ann", "bob"]
    assert [row["count"] for row in rows] == ["1", "3"]
    assert [int(row["group"]) - 1 for row in rows] == model.predict(new).tolist()
    close = {"atol": 1e-6, "rtol": 0}
    np.testing.assert_allclose(
        [float(row["how_sure"]) for row in rows], model.predict_proba(new).max(axis=1), **close
    )
    np.testing.assert_allclose([float(row["new"]) for row in rows], model.predict_novelty(new), **close)
    scores = [float(row["log_probability"]) for row in rows]
    np.testing.assert_allclose(scores, model.score_samples(new), **close)
    assert f"mean log probability: {float(model.score(new)):.4g}" in out
    report = json.loads(run("predict", fit, newcomers, *NEW, "--json")[1])
    assert report["mean_log_probability"] == pytest.approx((scores[0] + 3 * scores[1]) / 4, abs=1e-6)
    assert len(report["rows"]) == 2


def test_predict_continues_short_lists(run, fit, model, newcomers, tmp_path):
    new = permix.Rankings.from_orders([["tea", "coffee"], ["water"]], items=model.items_)
    for length in (None, 3, 6):
        more = [] if length is None else ["--length", length]
        code, out, err = run("predict", fit, newcomers, *NEW, "--what", "ranking", "--json", *more)
        assert code == 0, err
        wanted = model.complete(new, length)
        assert [row["ranking"] for row in json.loads(out)["rows"]] == [
            [str(model.items_[item]) for item in row if item >= 0] for row in wanted.orders
        ]
    path = tmp_path / "full.soc"
    assert run("predict", fit, newcomers, *NEW, "--what", "ranking", "--length", 6, "-o", path)[0] == 0
    assert permix.read(path).is_full
    assert "tea ≻ coffee" in run("predict", fit, newcomers, *NEW, "--what", "ranking")[1]


def test_predict_orders_pairs_that_lists_leave_open(run, fit, model, newcomers):
    code, out, err = run("predict", fit, newcomers, *NEW, "--what", "pairwise", "--json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    # ann leaves 4 drinks in no order, bob 5
    assert [sum(row["agent"] == who for row in rows) for who in ("ann", "bob")] == [6, 10]
    new = permix.Rankings.from_orders([["tea", "coffee"], ["water"]], items=model.items_)
    pairs = [(["ann", "bob"].index(row["agent"]), row["better"], row["worse"]) for row in rows]
    np.testing.assert_allclose(
        [row["probability"] for row in rows], model.predict_pairwise(new, pairs), atol=1e-6, rtol=0
    )
    assert all(row["probability"] >= 0.5 for row in rows)
    assert {row["standard_error"] for row in rows} == {0.0}
    few = json.loads(run("predict", fit, newcomers, *NEW, "--what", "pairwise", "--top", 2, "--json")[1])
    assert len(few["rows"]) == 4


def test_sample_draws_lists(run, fit, model, tmp_path):
    drawn = model.sample(20, 5)
    path = tmp_path / "made.soi"
    assert run("sample", fit, "-n", 20, "--seed", 5, "-o", path)[0] == 0
    names = [[model.items_[item] for item in row if item >= 0] for row in drawn.orders]
    again = permix.read(path).expand()
    assert sorted([again.items[item] for item in row if item >= 0] for row in again.orders) == sorted(names)
    out = run("sample", fit, "-n", 20, "--seed", 5)[1].splitlines()
    assert [[name for name in line.split(",") if name] for line in out[1:]] == names
    assert json.loads(run("sample", fit, "-n", 20, "--seed", 5, "--json")[1])["rankings"] == names
    short = json.loads(run("sample", fit, "--length", 2, "--json")[1])["rankings"]
    assert {len(row) for row in short} == {2}


def test_many_groups_are_cut_and_chains_that_disagree_are_named(capsys):
    fit = fit_of()
    fit.draws.arrays["n_groups"] = np.arange(400).reshape(2, 200) + 1
    report = dp_mallows_report(fit)
    assert report["diagnostics"]["n_groups"]["note"] == "chains disagree"
    report["groups"] = report["groups"] * 40
    report["number_of_groups"] = len(report["groups"])
    print_answer(answer(fit, Context("table")))
    print_dp_mallows(report, "many")
    out = capsys.readouterr().out
    assert f"and {len(report['groups']) - 30} smaller groups" in out
    row = re.search(r"number of groups +from +to *\n *(\d+) +(\d+) +(\d+)", out)
    assert [int(number) for number in row.groups()] == [200, 20, 380]
    assert "NOT CONVERGED. The parts of the chain disagree on n_groups (R-hat" in out


def test_subset_rankings_are_refused_by_name(run, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("agent,1,2,3\nann,tea,milk,cola\nbob,tea,,\n")
    code, _, err = run("fit", "dp-mallows", votes, "--unlisted", "unknown", "-o", tmp_path / "f.permix")
    assert code == 1
    assert "bob" in err
    assert "--unlisted below" in err
    with pytest.raises(permix.errors.DataError):
        as_top_lists(permix.read(votes, unlisted="unknown"))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--concentration", "many"], 2, "--concentration many must be a number or gamma(SHAPE,RATE)"),
        (["--concentration", "gamma(1)"], 2, "gamma(SHAPE,RATE)"),
        (["--concentration", "gamma(1,x)"], 2, "gamma(SHAPE,RATE)"),
        (["--concentration", "-1"], 2, "--concentration -1.0 must be positive"),
        (["--concentration", "-0.5", "--discount", "0.5"], 2, "must be above -0.5, minus the discount"),
        (["--concentration", "gamma(1,1)", "--discount", "0.5"], 2, "--discount"),
        (["--prior-rate", "1,x"], 2, "--prior-rate 1,x must be a number"),
        (["--prior-rate", "1,1"], 1, "--prior-rate has 2 numbers"),
        (["--prior-strength", "0"], 2, "--prior-strength 0.0 must be a number, 0.0001 or more"),
        (["--sampler", "beta-gibbs", "--assignments", "parallel"], 2, "--sampler beta-gibbs"),
        (["--initial-groups", "500"], 1, "--initial-groups 500 are more than the 80 agents"),
        (["--on-cycle", "keep"], 2, "--on-cycle drop"),
        (["--picture", "groups.txt"], 2, "pictures end in"),
        (["--jobs", "0"], 2, "--jobs 0 must be a number of threads"),
    ],
)
def test_a_mistake_gets_one_clear_message(run, votes, tmp_path, arguments, code, words):
    found, _, err = run("fit", "dp-mallows", votes, "-o", tmp_path / "f.permix", *arguments)
    assert found == code
    assert words in " ".join(err.replace("│", " ").split())
    assert not (tmp_path / "f.permix").exists()


def test_options_that_say_nothing_are_refused(run, fit, newcomers):
    code, _, err = run("predict", fit, newcomers, *NEW, "--length", 3)
    assert code == 2
    assert "--length says nothing to a fit of dp-mallows about --what groups" in " ".join(
        err.replace("│", " ").split()
    )


def test_shares_are_said_to_be_of_the_population(run, fit, model):
    said = OF_ALL.format("agents")
    assert json.loads(run("summary", fit, "--json")[1])["shares_are"] == said
    assert said in run("summary", fit)[1]
    text = written(described(model, checks=False, progress=False), "md")
    assert said in text
    assert ") of the agents: " in text
