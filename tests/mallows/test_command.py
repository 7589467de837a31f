"""``fit mallows``, and what ``predict`` and ``sample`` make of it, on small generated data."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import permix
from permix.cli.output import fitting
from permix.cli.rank_answers import open_pairs
from permix.cli.report import print_answer
from permix.mallows.report import answer
from permix.mallows.results import warn_if_unsettled
from permix.mallows.tables import report as mallows_report
from permix.mallows.tables import show as print_mallows
from permix.reporting.context import Context

DRINKS = ("tea", "coffee", "milk", "juice", "cocoa")
CENTERS = np.array([[0, 1, 2, 3, 4], [4, 2, 3, 1, 0]])


@pytest.fixture(scope="module")
def made():
    """Two kinds of agents who like nearly opposite things."""
    return permix.datasets.make_mallows_mixture(
        150, 5, 2, dispersion=[0.3, 0.4], weights=[0.6, 0.4], centers=CENTERS, random_state=3
    )


@pytest.fixture
def votes(made, tmp_path):
    path = tmp_path / "votes.csv"
    orders = np.asarray(made.data.orders)
    permix.write(permix.Rankings.from_orders(orders, items=DRINKS), path)
    return path


@pytest.fixture
def fit(run, votes, tmp_path):
    path = tmp_path / "drinks.permix"
    code, _, err = run("fit", "mallows", votes, "-k", 2, "-o", path, "--starts", 2)
    assert code == 0, err
    return path


@pytest.fixture
def newcomers(tmp_path):
    path = tmp_path / "newcomers.csv"
    path.write_text("agent,better,worse\nann,tea,juice\nann,coffee,juice\nbob,cocoa,tea\n")
    return path


def posterior(components, accepts):
    """Enumerate what a mixture believes of an agent: components, and all rankings with probabilities."""
    orders = np.array(list(itertools.permutations(range(5))))
    agree = np.array([accepts([components.items[item] for item in order]) for order in orders])
    distributions = [components.component(k) for k in range(components.n_components)]
    joint = (
        np.stack([np.exp(distribution.log_prob(orders)) * agree for distribution in distributions])
        * components.weights[:, None]
    )
    return joint.sum(axis=1) / joint.sum(), orders, joint.sum(axis=0) / joint.sum()


def puts(*pairs):
    return lambda names: all(names.index(better) < names.index(worse) for better, worse in pairs)


ANN = puts(("tea", "juice"), ("coffee", "juice"))
BOB = puts(("cocoa", "tea"))


def table_in(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_fit_finds_the_two_kinds(run, votes, made, tmp_path):
    fit, labels, picture = tmp_path / "f.permix", tmp_path / "labels.csv", tmp_path / "picture.svg"
    command = ["fit", "mallows", votes, "-k", 2, "--starts", 3, "-o", fit]
    code, out, err = run(*command, "--labels", labels, "--plot", picture)
    assert code == 0, err
    for words in ("150 agents", "2 groups", "tea ≻ coffee ≻ milk ≻ juice ≻ cocoa", "converged after"):
        assert words in out
    assert "<svg" in picture.read_text()
    rows = table_in(labels)
    assert list(rows[0]) == ["agent", "group", "how_sure"]
    assert [row["agent"] for row in rows] == [str(number) for number in range(1, 151)]
    found = np.array([int(row["group"]) for row in rows]) - 1
    assert permix.adjusted_rand(found, made.labels) > 0.9

    report = json.loads(run("summary", fit, "--json")[1])
    assert report["model"] == "MallowsMixture"
    assert [part["center"] for part in report["groups"]] == [
        [DRINKS[item] for item in center] for center in CENTERS
    ]
    assert [part["agents"] for part in report["groups"]] == np.bincount(found).tolist()
    model = permix.load(fit)
    assert report["log_likelihood"] == float(model.log_likelihood_)
    assert report["log_likelihood_standard_error"] == 0.0  # full rankings need no Monte Carlo
    np.testing.assert_allclose([part["share"] for part in report["groups"]], model.weights_)
    np.testing.assert_allclose(
        [part["expected_distance"] for part in report["groups"]],
        [distribution.expected_distance() for distribution in model.components_],
    )
    assert run("summary", fit)[1] == run("info", fit)[1]
    assert report["converged"]

    first = fit.read_bytes()
    assert run(*command)[0] == 1  # it exists
    assert run(*command, "--force")[0] == 0
    assert fit.read_bytes() == first
    assert json.loads(run(*command, "--force", "--json", "--max-iter", 1)[1])["converged"] is False
    assert "--max-iter goes further" in run("summary", fit)[1]


def test_the_data_choose_the_number_of_components(run, votes, tmp_path):
    fit = tmp_path / "f.permix"
    command = ["fit", "mallows", votes, "--select", "1,2", "--starts", 2, "-o", fit, "--force"]
    chosen = json.loads(run(*command, "--json")[1])
    assert chosen["selection"]["best"] == 2
    assert [row["n_groups"] for row in chosen["selection"]["table"]] == [1, 2, 3]  # 2 was the largest
    assert not chosen["selection"]["best_is_the_largest_tried"]
    assert len(chosen["groups"]) == 2
    assert chosen["agents"] == 150  # the model kept is fitted to all
    assert chosen["selection"]["folds"] == 5  # so few are all held out once
    assert chosen["selection"]["agents_held_out"] == 150
    code, out, _ = run(*command, "--picture", tmp_path / "kinds.png")
    assert code == 0
    assert "best, chosen" in out
    assert "difference  error" in out
    for name in ("kinds.png", "kinds-selection.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert "kinds-selection.png" in out


@pytest.mark.parametrize("folds", [[], ["--folds", 2]])
def test_the_rule_decides_between_best_and_fewest(run, votes, tmp_path, folds):
    command = ["fit", "mallows", votes, "--select", "2-4", "--starts", 2, "-o", tmp_path / "f.permix"]
    for rule in ([], ["--rule", "best"]):
        code, out, err = run(*command, *folds, *rule, "--force", "--json")
        assert code == 0, err
        report = json.loads(out)
        chosen = report["selection"]["best" if rule else "within_one_standard_error"]
        assert report["selection"]["chosen"] == len(report["groups"]) == chosen
        assert report["selection"]["folds"] == (2 if folds else 5)
        assert report["agents"] == 150


def stop_at(number, monkeypatch):
    """As if the user stopped the fit with so many groups."""
    from permix.mallows import selection as module

    whole = module.fit_mallows

    def stopped(preferences, settings, *smaller):
        if settings.n_components == number:
            raise KeyboardInterrupt
        return whole(preferences, settings, *smaller)

    monkeypatch.setattr(module, "fit_mallows", stopped)


def test_interrupted_folds_say_how_to_go_on(run, votes, tmp_path, monkeypatch):
    stop_at(2, monkeypatch)
    fit = tmp_path / "f.permix"
    code, out, err = run("fit", "mallows", votes, "--select", "1,2", "--folds", 2, "-o", fit)
    assert code == 130
    assert "-k 1 fits one" in err
    assert "held out once" in out
    assert not fit.exists()


def test_a_choice_that_was_stopped_is_kept_with_columns_beside_the_votes(run, tmp_path, monkeypatch):
    """The models that were tried are of a part of the agents, and the columns of all of them."""
    votes = tmp_path / "ballots.csv"
    lines = [f"{'NSW'[k % 3]},{'Ann,Bob,Cy' if k % 4 else 'Cy,Bob,Ann'}" for k in range(1200)]
    votes.write_text("\n".join(["precinct,rank1,rank2,rank3", *lines]) + "\n")
    stop_at(3, monkeypatch)
    fit = tmp_path / "f.permix"
    command = ("fit", "mallows", votes, "--select", "1-4", "--group-column", "precinct", "-o", fit)
    code, _, err = run(*command, "--starts", 2)
    assert code == 130
    assert "interrupted" in err
    assert "kept what was finished: 1, 2 group" in err.replace("\n", " ")
    assert run("summary", fit)[0] == 0
    assert not permix.load(fit)._fit.known.rows


def test_too_few_agents_held_out_are_noticed(run, tmp_path):
    votes = tmp_path / "few.csv"
    votes.write_text("pos1,pos2,pos3\n" + "a,b,c\nb,a,c\nc,b,a\n" * 4)
    command = ["fit", "mallows", votes, "--select", "1,2", "--starts", 1, "-o", tmp_path / "f.permix"]
    _, out, _ = run(*command)
    assert "each of 12 agents held out once, in 5 parts" in out
    _, out, err = run(*command, "--force", "--folds", 4)
    assert "only 12 agents" in err
    assert "--folds" not in err
    assert "each of 12 agents held out once, in 4 parts" in out


def test_kinds_of_files(run, tmp_path):
    ratings = tmp_path / "ratings.csv"
    # Every other agent did not rate the first drink; all agree on the rest.
    lines = [
        f"u{agent},{drink},{5 - DRINKS.index(drink)}\n" for agent in range(9) for drink in DRINKS[agent % 2 :]
    ]
    ratings.write_text("user,item,rating\n" + "".join(lines))
    fit = tmp_path / "fit.permix"
    code, out, err = run("fit", "mallows", ratings, "--layout", "ratings", "-k", 1, "-o", fit, "--json")
    assert code == 0, err
    assert json.loads(out)["groups"][0]["center"] == list(DRINKS)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("agent,better,worse\nann,x,y\nann,y,x\nbob,x,y\ncyd,x,y\n")
    command = ["fit", "mallows", pairs, "-k", 1, "-o", fit, "--force", "--json"]
    code, _, err = run(*command)
    assert code == 1
    assert "--on-cycle drop" in err
    code, out, err = run(*command, "--on-cycle", "drop")
    assert code == 0, err
    assert json.loads(out)["agents"] == 2


def test_components_of_new_agents(run, fit, newcomers, tmp_path):
    target = tmp_path / "kinds.csv"
    code, out, err = run("predict", fit, newcomers, "-o", target)
    assert code == 0, err
    assert "2 rows" in out
    rows = table_in(target)
    components = permix.load(fit)._fit.components
    for row, name, said in zip(rows, ["ann", "bob"], [ANN, BOB], strict=True):
        truth, _, _ = posterior(components, said)
        assert row["agent"] == name
        np.testing.assert_allclose([float(row["p1"]), float(row["p2"])], truth, atol=1e-6)
        assert int(row["group"]) == truth.argmax() + 1
        assert float(row["how_sure"]) == pytest.approx(truth.max(), abs=1e-6)
    assert json.loads(run("predict", fit, newcomers, "--json")[1])["rows"][1]["p1"] == float(rows[1]["p1"])
    assert "bob" in run("predict", fit, newcomers)[1]
    code, _, err = run("predict", fit, newcomers, "-o", target)
    assert code == 1
    assert "--force" in err


def test_a_table_need_not_name_all_items(run, fit, tmp_path):
    """Two top lists over four of five drinks: what they leave out is below, the fifth drink too."""
    tops = tmp_path / "tops.csv"
    tops.write_text("who,1st,2nd,votes\nann,tea,milk,3\nbob,cocoa,juice,1\n")
    code, out, err = run("predict", fit, tops, "--agent-column", "who", "--count-column", "votes", "--json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [row["count"] for row in rows] == [3, 1]
    components = permix.load(fit)._fit.components
    truth, _, _ = posterior(components, lambda names: names[:2] == ["tea", "milk"])
    assert rows[0]["p1"] == pytest.approx(truth[0], abs=1e-6)
    # Where the rest is unknown, only the two are compared.
    out = run("predict", fit, tops, "--agent-column", "who", "--unlisted", "unknown", "--json")[1]
    truth, _, _ = posterior(components, puts(("tea", "milk")))
    assert json.loads(out)["rows"][0]["p1"] == pytest.approx(truth[0], abs=1e-6)


@pytest.mark.parametrize(
    ("table", "options", "ids"),
    [
        ("agent,better,worse\n0,tea,milk\n1,milk,tea\n", [], [0, 1]),
        ("who,pos1,pos2\n0,tea,milk\n1,milk,tea\n", ["--agent-column", "who"], [0, 1]),
        ("user,pos1,pos2\n7,tea,milk\n3,milk,tea\n", [], [7, 3]),
        ("pos1,pos2\ntea,milk\nmilk,tea\n", [], [1, 2]),
    ],
)
def test_agents_are_called_as_the_file_calls_them(run, fit, tmp_path, table, options, ids):
    file = tmp_path / "some.csv"
    file.write_text(table)
    code, out, err = run("predict", fit, file, "--json", *options)
    assert code == 0, err
    assert [row["agent"] for row in json.loads(out)["rows"]] == ids


def test_completed_rankings(run, fit, newcomers, tmp_path):
    rows = json.loads(run("predict", fit, newcomers, "--what", "ranking", "--json")[1])["rows"]
    components = permix.load(fit)._fit.components
    for row, said in zip(rows, [ANN, BOB], strict=True):
        assert said(row["ranking"])
        _, orders, chances = posterior(components, said)
        costs = permix.distance_matrix(orders) @ chances
        place = [components.items.index(name) for name in row["ranking"]]
        found = int(np.flatnonzero((orders == place).all(axis=1))[0])
        assert costs[found] == pytest.approx(costs.min())
    for name in ("completed.soc", "completed.csv"):
        target = tmp_path / name
        code, out, err = run("predict", fit, newcomers, "--what", "ranking", "-o", target)
        assert code == 0, err
        assert "2 rankings" in out
        written = permix.read(target)
        names = [[written.items[item] for item in order] for order in written.orders]
        assert names == [row["ranking"] for row in rows]
    assert " ≻ ".join(rows[0]["ranking"]) in run("predict", fit, newcomers, "--what", "ranking")[1]


def test_pairs_an_agent_did_not_state(run, fit, newcomers, tmp_path):
    target = tmp_path / "pairs.csv"
    assert run("predict", fit, newcomers, "--what", "pairwise", "-o", target)[0] == 0
    rows = table_in(target)
    components = permix.load(fit)._fit.components
    stated = {"ann": {("tea", "juice"), ("coffee", "juice")}, "bob": {("cocoa", "tea")}}
    for name, said in (("ann", ANN), ("bob", BOB)):
        _, orders, chances = posterior(components, said)
        places = np.argsort(orders, axis=1)
        mine = [row for row in rows if row["agent"] == name]
        found = {frozenset((row["better"], row["worse"])) for row in mine}
        assert len(found) == len(mine) == 10 - len(stated[name])
        assert not found & {frozenset(pair) for pair in stated[name]}
        for row in mine:
            better, worse = (components.items.index(row[side]) for side in ("better", "worse"))
            truth = chances[places[:, better] < places[:, worse]].sum()
            assert float(row["probability"]) == pytest.approx(truth, abs=1e-6)
            assert truth >= 0.5 - 1e-9
    top = json.loads(run("predict", fit, newcomers, "--what", "pairwise", "--top", 2, "--json")[1])["rows"]
    assert [row["agent"] for row in top] == ["ann", "ann", "bob", "bob"]
    chances = sorted((float(row["probability"]) for row in rows if row["agent"] == "bob"), reverse=True)
    assert [row["probability"] for row in top[2:]] == chances[:2]


def test_open_pairs_leave_out_all_that_is_implied():
    said = permix.Preferences.from_levels([[["a"], ["b", "c"]]], items=list("abcde"), rest_below=True)
    before = np.full((5, 5), 0.5)
    before[1, 2], before[2, 1] = 0.2, 0.8
    better, worse, chance = open_pairs(said, 0, before)
    assert list(zip(better.tolist(), worse.tolist(), chance.tolist(), strict=True)) == [
        (2, 1, 0.8),
        (3, 4, 0.5),
    ]


def test_a_long_answer_is_cut_in_the_terminal_only(run, fit, votes):
    out = run("predict", fit, votes)[1]
    assert "and more" in out
    assert len(out.splitlines()) < 60
    assert len(json.loads(run("predict", fit, votes, "--json")[1])["rows"]) == 150


def test_new_rankings(run, fit, tmp_path):
    target = tmp_path / "made.soc"
    code, out, err = run("sample", fit, "-n", 400, "-o", target)
    assert code == 0, err
    assert "400 rankings" in out
    drawn = permix.read(target)
    assert drawn.n_agents == 400
    assert drawn.is_full
    assert set(drawn.items) == set(DRINKS)
    # First choices: binomial, so within five standard deviations of what the model says.
    model = permix.load(fit)
    first = sum(
        w * distribution.rank_marginals()[:, 0]
        for w, distribution in zip(model.weights_, model.components_, strict=True)
    )
    for item, chance in zip(model.items_, first, strict=True):
        share = drawn.counts[[drawn.items[order[0]] == item for order in drawn.orders]].sum() / 400
        assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / 400)
    printed = run("sample", fit, "-n", 3)[1]
    rows = list(csv.reader(io.StringIO(printed)))
    assert rows[0] == ["pos1", "pos2", "pos3", "pos4", "pos5"]
    assert all(sorted(row) == sorted(DRINKS) for row in rows[1:])
    assert len(rows) == 4
    assert json.loads(run("sample", fit, "-n", 3, "--json")[1])["rankings"] == rows[1:]
    assert run("sample", fit, "-n", 30)[1] == run("sample", fit, "-n", 30)[1]
    assert run("sample", fit, "-n", 30)[1] != run("sample", fit, "-n", 30, "--seed", 1)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "mallows", "missing.soi", "-k", "1", "-o", "x"], ["missing.soi"]),
        (
            ["fit", "mallows", "votes.csv", "-k", "1", "-o", "x", "--labels", "votes.csv"],
            ["is also the input"],
        ),
        (["fit", "mallows", "votes.csv", "-k", "1", "-o", "x", "--labels", "x"], ["given twice"]),
        (["fit", "mallows", "votes.csv", "-k", "400", "-o", "x"], ["--groups 400", "150 agents"]),
        (["fit", "mallows", "drinks.permix", "-k", "1", "-o", "x"], ["fitted model"]),
        (["predict", "votes.csv", "strangers.csv"], ["votes.csv", "the model comes first"]),
        (["predict", "drinks.permix", "strangers.csv"], ["does not know", "'beer'"]),
        (["predict", "drinks.permix", "drinks.permix"], ["fitted model"]),
        (["sample", "drinks.permix", "-o", "made.xyz"], ["made.xyz", ".soc"]),
    ],
)
def test_a_mistake_gets_one_clear_message(run, fit, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strangers.csv").write_text("agent,better,worse\nann,beer,tea\n")
    code, _, err = run(*arguments)
    assert code == 1
    assert err.startswith("permix: ")
    assert "Traceback" not in err
    for word in words:
        assert word in err


FIT = ["fit", "mallows", "votes.csv", "-o", "x"]
PREDICT = ["predict", "drinks.permix", "votes.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (FIT, "-k"),
        ([*FIT, "-k", "2", "--select", "1-3"], "exclude each other"),
        ([*FIT, "-k", "2", "--folds", "3"], "--folds belongs to --select"),
        ([*FIT, "-k", "2", "--rule", "best"], "--rule belongs to --select"),
        ([*FIT, "--select", "3-1"], "1-10"),
        ([*FIT, "--select", "few"], "1-10"),
        ([*FIT, "-k", "0"], "--groups 0 must be a whole number"),
        ([*FIT, "-k", "1", "--jobs", "0"], "--jobs 0 must be a number of threads"),
        ([*FIT, "-k", "1", "--plot", "x.gif"], ".png, .svg, .pdf"),
        ([*FIT, "-k", "1", "--on-cycle", "keep"], "--on-cycle drop"),
        (["fit", "mallows", "votes.csv", "-k", "1", "-o", "model.csv"], "model.permix"),
        (["fit", "mallows", "votes.csv", "-k", "1", "-o", "model.soc.gz"], "model.permix"),
        (
            [*PREDICT, "--what", "groups", "--top", "3"],
            "--top says nothing to a fit of mallows about --what groups",
        ),
        ([*PREDICT, "--id", "agent"], "says nothing to a fit of mallows about --what groups"),
        ([*PREDICT, "--what", "fortune"], "fortune"),
        ([*PREDICT, "--on-cycle", "keep"], "--on-cycle drop"),
        ([*PREDICT, "-o", "kinds.soc"], ".csv or .tsv"),
        ([*PREDICT, "--what", "pairwise", "-o", "kinds.soc"], ".csv or .tsv"),
        (["sample", "drinks.permix", "-n", "0"], "-n"),
    ],
)
def test_wrong_use_is_exit_code_two(run, fit, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*arguments)
    assert code == 2
    # The message stands in a frame, folded to its width.
    assert words.replace(" ", "") in err.translate(str.maketrans("", "", " \n│"))


def test_the_first_and_the_last_names_that_fit():
    names = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr"]
    whole = " ≻ ".join(names)
    assert fitting(names, len(whole)) == whole
    for width in range(22, len(whole)):
        text = fitting(names, width)
        assert len(text) <= width
        head, _, rest = text.partition(" ≻ … ")
        number, last = rest.split(" more … ≻ ")
        assert last == "qr"
        shown = head.split(" ≻ ")
        assert shown == names[: len(shown)]
        assert int(number) == len(names) - len(shown) - 1
    assert fitting(["a" * 50, "b", "c" * 40], 40) == "aaaaaaaaaaa… ≻ … 1 more … ≻ ccccccccccc…"
    assert fitting(["ab"], 1) == "ab"
    assert fitting(["ab", "cd"], 1) == "ab ≻ cd"


def test_draws_that_agree_are_not_certain(run, tmp_path):
    """Twenty-four items and one comparison have no exact sum: the answer comes from draws, and says so."""
    items = tuple(f"i{number:02}" for number in range(24))
    rows = permix.Rankings.from_orders([list(items)] * 30 + [[*items[1::-1], *items[2:]]])
    fit, new, target = tmp_path / "f.permix", tmp_path / "new.csv", tmp_path / "pairs.tsv"
    permix.MallowsMixture(1, random_state=0).fit(rows).save(fit)
    new.write_text("agent,better,worse\nann,i03,i00\n")
    command = ["predict", fit, new, "--what", "pairwise"]
    code, _, err = run(*command, "-o", target, "--samples", 98)
    assert code == 0, err
    with open(target, newline="", encoding="utf-8") as handle:
        found = list(csv.DictReader(handle, delimiter="\t"))
    assert len(found) == 275
    assert max(float(row["probability"]) for row in found) == pytest.approx(0.99)
    assert all(float(row["standard_error"]) > 0 for row in found)
    top = json.loads(run(*command, "--top", 1, "--json")[1])["rows"]
    assert [top[0]["better"], top[0]["worse"]] != ["i00", "i04"]  # not just the first of many that agree
    assert int(top[0]["worse"][1:]) - int(top[0]["better"][1:]) > 10
    assert top[0]["probability"] == pytest.approx(201 / 202, abs=1e-6)
    more = json.loads(run(*command, "--samples", 2000, "--top", 1, "--json")[1])["rows"][0]
    assert more["probability"] == pytest.approx(2001 / 2002, abs=1e-6)


def test_nothing_open_is_said(run, fit, votes, tmp_path):
    assert "nothing is open" in run("predict", fit, votes, "--what", "pairwise")[1]
    out = run("predict", fit, votes, "--what", "pairwise", "-o", tmp_path / "none.csv")[1]
    assert "0 rows; nothing is open" in out


def a_fit(centers, decays, weights, probabilities, **more):
    """Parameters that no data were asked about."""
    from permix.distributions.base import Estimate
    from permix.distributions.conditioning.components import MallowsComponents
    from permix.mallows.parameters import MallowsParameters
    from permix.mallows.results import MallowsFit

    values = {
        "settings": MallowsParameters(len(weights), max_iter=20),
        "components": MallowsComponents(DRINKS, weights, centers, decays),
        "probabilities": np.array(probabilities),
        "counts": np.ones(len(probabilities), dtype=np.int64),
        "log_likelihood": Estimate(-0.001, 0.0),
        "history": np.column_stack([np.arange(26.0), np.zeros(26)]),
        "start_log_likelihoods": np.array([-10.0, -10.5, -12.0]),
        "group_matches": np.tile([[1.0], [0.7], [0.2]], len(weights)),
        "converged": True,
        "interrupted": False,
    }
    return MallowsFit(**(values | more))


def test_what_a_reader_should_know_is_said(capsys):
    center = list(range(5))
    fit = a_fit(
        [center, center, center[::-1]],
        [1.0, -np.log(1e-3), 0.5],
        [0.5, 0.3, 0.2],
        [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]],
    )
    print_answer(answer(fit, Context("votes")))
    print_mallows(mallows_report(fit), "x")
    out = capsys.readouterr().out
    assert "groups 1 and 2 have the same center" in out
    assert "group 2: the dispersion is at the lower limit, 0.001" in out
    assert "group 3 is nobody's most probable group" in out
    assert out.startswith("Can you trust this? With care.\n- Only 1 of 3 restarts reached this optimum")
    assert "2 of 3 (63%)" in out
    assert "log-likelihood 0.00 nats (-0.0005 per agent; 1 nat more: 2.7 times as probable)" in out
    fine = a_fit([center, center[::-1]], [1.0, 0.5], [0.6, 0.4], [[0.6, 0.4], [0.2, 0.8]])
    assert mallows_report(fine)["remarks"] == []
    alone = dataclasses.replace(
        fine,
        start_log_likelihoods=np.array([-10.0, -10.0, -12.0]),
        group_matches=np.array([[1.0, 1.0], [0.9, 0.5], [0.7, 0.4]]),
    )
    print_answer(answer(alone, Context("votes")))
    print_mallows(mallows_report(alone), "x")
    out = capsys.readouterr().out
    assert "2 of 3 restarts reached this optimum" in out
    assert "does not recur" in out
    assert "group 2 does not recur in any other restart" in out
    # Rounds that average out noise come after the climb and are none of its iterations.
    assert mallows_report(dataclasses.replace(fine, converged=False))["iterations"] == 20


@pytest.mark.parametrize(
    ("n_at_best", "shares", "level", "said"),
    [
        (4, [0.6, 0.4], "good", "All groups are found in all 4 restarts that fit as well as chance can tell"),
        (4, [[0.6, np.nan]], "care", "Group 2 is not found in every restart"),  # the last fits as well
        (2, [0.6, 0.4], "care", "Group 2 is not found in every restart"),
        (1, [0.6, 0.4], "care", "Group 2 is found in no other restart"),
    ],
)
def test_a_restart_that_ends_lower_is_doubt_only_where_few_reach_the_best(n_at_best, shares, level, said):
    center = list(range(5))
    found = np.tile(np.nan, (n_at_best + 1, 2))
    found[:n_at_best] = [0.6, 0.4]
    if np.ndim(shares) == 2:
        found[-1] = shares[0]
    fit = a_fit(
        [center, center[::-1]],
        [1.0, 0.5],
        [0.6, 0.4],
        [[0.6, 0.4], [0.2, 0.8]],
        start_log_likelihoods=np.array([-10.0] * n_at_best + [-60.0]),
        group_matches=np.array([[1.0, 1.0]] * n_at_best + [[0.9, 0.3]]),
        restart_shares=found,
    )
    verdict = answer(fit, Context("votes")).verdict
    assert verdict.level == level
    assert any(reason.startswith(said) for reason in verdict.reasons)


def test_an_unsettled_fit_never_rose_by_less_than_nothing():
    fit = a_fit([list(range(5))], [1.0], [1.0], [[1.0]], converged=False)
    with pytest.warns(permix.errors.ConvergenceWarning, match="after 20 iterations, which still rose by 1 "):
        warn_if_unsettled(fit)
    falling = np.column_stack([-np.arange(26.0), np.ones(26)])
    with pytest.warns(permix.errors.ConvergenceWarning) as caught:
        warn_if_unsettled(dataclasses.replace(fit, history=falling))
    assert "rose" not in str(caught[0].message)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to this process")
def test_ctrl_c_keeps_the_best_so_far(run, made, tmp_path):
    fit, pairs = tmp_path / "fit.permix", tmp_path / "pairs.csv"
    lines = [
        f"{agent},{DRINKS[order[a]]},{DRINKS[order[b]]}\n"
        for agent, order in enumerate(made.data.orders)
        for a, b in ((0, 2), (1, 3), (1, 4))
    ]
    pairs.write_text("agent,better,worse\n" + "".join(lines))
    # Comparisons need Monte Carlo: 200 starts would take many minutes.
    command = ["fit", "mallows", pairs, "-k", 2, "-o", fit, "--jobs", 1, "--tol", 0, "--particles", 64]
    assert run(*command, "--starts", 1, "--max-iter", 1)[0] == 0  # all is compiled

    def interrupt_once_it_runs():
        for _ in range(600):
            time.sleep(0.05)
            if any("permix-worker" in thread.name for thread in threading.enumerate()):
                time.sleep(0.3)
                os.kill(os.getpid(), signal.SIGINT)
                return

    hand = threading.Thread(target=interrupt_once_it_runs)
    hand.start()
    code, out, err = run(*command, "--force", "--starts", 200)
    hand.join()
    assert code == 130
    assert "holds the best so far" in err
    assert "interrupted after" in out
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["interrupted"] is True
    assert len(report["start_log_likelihoods"]) < 200
    assert report["answer"]["trust"]["level"] != "good"
    assert any("stopped early, by the user" in said for said in report["answer"]["trust"]["reasons"])
    assert len(report["groups"]) == 2
