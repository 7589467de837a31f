"""``fit bayes-mallows``, and what other commands make of such models."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import permix

ITEMS = ("tea", "coffee", "milk", "juice", "cocoa", "water")
SHORT = ("--draws", 60, "--burn-in", 40, "--seed", 3)


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Two groups with opposite tastes."""
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    orders = [permix.Mallows(list(center), 0.35).sample(40, random_state=k).orders for k, center in CENTERS]
    permix.write(permix.Rankings.from_orders(np.concatenate(orders), items=ITEMS), path)
    return path


CENTERS = ((1, range(6)), (2, reversed(range(6))))


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory):
    """Thirty agents of one taste who are wrong in a tenth of their comparisons, and one who guesses."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    rng = np.random.default_rng(4)
    lines = ["agent,better,worse"]
    for agent in range(31):
        for _ in range(25):
            a, b = sorted(rng.choice(6, 2, replace=False).tolist())
            if rng.random() < (0.5 if agent == 30 else 0.03):
                a, b = b, a
            lines.append(f"a{agent},{ITEMS[a]},{ITEMS[b]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_fit_finds_the_groups_and_agrees_with_python(run, votes, tmp_path):
    fit, labels = tmp_path / "f.permix", tmp_path / "labels.csv"
    done = run("fit", "bayes-mallows", votes, "-k", 2, "-o", fit, *SHORT, "--labels", labels)
    assert done.exit_code == 0
    assert done.stdout.startswith("Can you trust this?")
    assert "Bayesian Mallows model of 2 groups" in done.stdout
    assert "members put tea first" in done.stdout
    assert "members put water first" in done.stdout
    model = permix.BayesianMallowsMixture(2, n_draws=60, n_burn_in=40, random_state=3, progress=False)
    model.fit(permix.read(votes))
    found = permix.load(fit)
    np.testing.assert_array_equal(found.labels_, model.labels_)
    np.testing.assert_array_equal(found.dispersions_, model.dispersions_)
    written = rows_of(labels)
    assert [int(row["group"]) - 1 for row in written] == model.labels_.tolist()
    assert permix.adjusted_rand(model.labels_, np.repeat([0, 1], 40)) > 0.8


def test_pictures_and_reports_are_written(run, votes, tmp_path):
    fit, picture, page = tmp_path / "f.permix", tmp_path / "p.svg", tmp_path / "r.md"
    command = ("fit", "bayes-mallows", votes, "-k", 1, "--distance", "footrule", "-o", fit, *SHORT)
    assert run(*command, "--picture", picture, "--report", page).exit_code == 0
    assert b"<svg" in picture.read_bytes()
    text = page.read_text()
    assert "Where each item stands in the center of group 1" in text
    assert "under the footrule distance" in text
    assert "Vitelli" in text


def test_errors_are_estimated_and_careless_agents_named(run, comparisons, tmp_path):
    fit = tmp_path / "f.permix"
    refused = run("fit", "bayes-mallows", comparisons, "-k", 1, "-o", fit, *SHORT)
    assert refused.exit_code == 1
    assert "fit bayes-mallows --errors bernoulli" in refused.stderr
    options = ("--errors", "bernoulli", "--errors-per-agent")
    done = run("fit", "bayes-mallows", comparisons, "-k", 1, "-o", fit, *SHORT, *options)
    assert done.exit_code == 0
    assert "1 agent errs clearly more often than the others" in done.stdout
    assert "Careless agents" in done.stdout
    report = json.loads(run("summary", fit, "--json").stdout)
    assert [row["agent"] for row in report["careless_agents"] if row["careless"]] == ["a30"]
    assert 0.01 < report["diagnostics"]["error_rate"]["mean"] < 0.1
    answer = json.loads(run("predict", fit, "--what", "careless", "--json").stdout)
    assert answer["rows"][0]["agent"] == "a30"
    assert answer["rows"][0]["careless"] == "yes"


def test_a_model_of_errors_reads_contradictions_of_new_agents(run, comparisons, tmp_path):
    fit, new = tmp_path / "f.permix", tmp_path / "new.csv"
    options = ("-k", 1, "--errors", "logistic", "-o", fit, *SHORT)
    assert run("fit", "bayes-mallows", comparisons, *options).exit_code == 0
    new.write_text(
        "agent,better,worse\nann,tea,milk\nann,milk,tea\nann,tea,milk\nbo,water,tea\nbo,tea,water\n"
    )
    for what in ("groups", "ranking", "pairwise", "recommend", "top", "score"):
        found = run("predict", fit, new, "--what", what)
        assert found.exit_code == 0, found.stderr
        assert "ann" in found.stdout
    pairs = json.loads(run("predict", fit, new, "--what", "pairwise", "--json").stdout)["rows"]
    about = {(row["agent"], row["better"], row["worse"]): row["probability"] for row in pairs}
    assert 0.5 < about["ann", "tea", "milk"] < 1.0  # stated, and not certain
    assert run("predict", fit, new, "--on-cycle", "error").exit_code == 1
    assert run("predict", fit, "--what", "careless").exit_code == 1


def test_predictions(run, votes, tmp_path):
    fit, new, out = tmp_path / "f.permix", tmp_path / "new.csv", tmp_path / "out.csv"
    run("fit", "bayes-mallows", votes, "-k", 2, "-o", fit, *SHORT)
    new.write_text("person,first,second\nann,tea,coffee\nbob,water,cocoa\n")
    layout = ("--agent-column", "person", "--layout", "orders")
    assert run("predict", fit, new, *layout, "-o", out).exit_code == 0
    groups = rows_of(out)
    assert groups[0]["group"] != groups[1]["group"]
    model = permix.load(fit)
    table = permix.read(new, agent_column="person", layout="orders", items=list(ITEMS))
    shares = model.predict_proba(permix.Preferences.from_rankings(table))
    assert [float(row["how_sure"]) for row in groups] == pytest.approx(shares.max(axis=1), abs=1e-6)
    assert [float(row["new"]) for row in groups] == pytest.approx([0.0, 0.0])
    ranked = run("predict", fit, new, *layout, "--what", "ranking").stdout
    assert "tea ≻ coffee ≻" in ranked
    assert "water ≻ cocoa ≻" in ranked
    top = run("predict", fit, new, *layout, "--what", "top", "--top", 2, "-o", out, "--force")
    assert top.exit_code == 0
    chances = rows_of(out)
    assert {row["item"] for row in chances if row["agent"] == "ann"} == {"tea", "coffee"}
    assert {row["probability"] for row in chances} == {"1.0"}
    assert run("sample", fit, "-n", 5, "-o", tmp_path / "s.soc").exit_code == 0


def test_the_number_of_groups_can_be_chosen(run, votes, tmp_path):
    fit = tmp_path / "f.permix"
    command = ("fit", "bayes-mallows", votes, "-o", fit, "--draws", 40, "--burn-in", 30)
    done = run(*command, "--select", "1-2", "--folds", 2, "--rule", "best")
    assert done.exit_code == 0
    assert permix.load(fit).n_clusters_ == 2
    chosen = permix.select_components(
        permix.read(votes), [1, 2], model="bayes-mallows", n_draws=40, n_burn_in=30, most=2, random_state=0
    )
    distances = chosen.table["distance"].tolist()
    assert distances[0] > 1.5 * distances[1]  # the elbow


def test_open_numbers_of_groups(run, votes, tmp_path):
    fit = tmp_path / "f.permix"
    done = run("fit", "bayes-mallows", votes, "-k", "mfm", "-o", fit, *SHORT)
    assert done.exit_code == 0
    report = json.loads(run("summary", fit, "--json").stdout)
    assert sum(report["posterior_number_of_groups"].values()) == pytest.approx(1.0)
    assert sum(report["posterior_number_of_possible_groups"].values()) == pytest.approx(1.0, abs=1e-4)
    wrong = run("fit", "bayes-mallows", votes, "-k", "many", "-o", tmp_path / "g.permix")
    assert wrong.exit_code == 2
    assert "mfm" in wrong.stderr


def test_comparisons_of_models_take_it_where_it_is_named(votes):
    table = permix.read(votes)
    options = {"max_size": 40, "test_size": 0.3, "random_state": 0, "progress": False}
    found = permix.compare(table, ["bayes-mallows", "kde"], **options)
    assert set(found.table.index) >= {"bayes-mallows -k mfm", "kde"}
