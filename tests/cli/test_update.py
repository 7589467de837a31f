"""``permix update``: files that come in one after another."""

from __future__ import annotations

import json

import pytest

import permix

RUNS = {"n_draws": 20, "n_burn_in": 10, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fit to comparisons by name, and two batches."""
    where = tmp_path_factory.mktemp("update")
    rows = [("ann", "tea", "milk"), ("bo", "milk", "water"), ("cy", "tea", "water"), ("cy", "tea", "milk")]
    said = permix.Preferences.from_pairs(rows, items=["tea", "milk", "water"])
    permix.BayesianMallowsMixture(**RUNS).fit(said).save(where / "fit.permix")
    (where / "batches").mkdir()
    (where / "batches" / "2.csv").write_text("agent,winner,loser\ndi,milk,tea\nbo,tea,water\n")
    (where / "batches" / "1.csv").write_text("agent,winner,loser\nbo,tea,milk\n")
    (where / "batches" / ".hidden").write_text("nothing")
    return where


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_a_folder_of_batches_is_taken_in_by_name(folder, run):
    out = folder / "now.permix"
    new = folder / "batches"
    code, told, _ = run("update", folder / "fit.permix", new, "-o", out, "--json", "--particles", 10)
    assert code == 0
    batches = json.loads(told)["batches"]
    assert [each["file"].rpartition("/")[2] for each in batches] == ["1.csv", "2.csv"]
    assert [(each["new_agents"], each["changed_agents"]) for each in batches] == [(0, 1), (1, 1)]
    now = permix.load(out)
    assert now._fit.preferences.agents.tolist() == ["ann", "bo", "cy", "di"]
    assert len(now.updates_) == 4  # two batches, two chains
    assert now._fit.draws.n_draws == 10


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_others_of_the_same_name(folder, run):
    out = folder / "others.permix"
    batch = folder / "batches" / "1.csv"
    code, told, progress = run("update", folder / "fit.permix", batch, "-o", out, "--new-agents")
    assert code == 0
    assert "1 new agent;" in progress
    assert "4 agents in all" in told


def test_what_cannot_be_done_is_refused(folder, run):
    votes = permix.Rankings.from_orders([["tea", "milk", "water"], ["milk", "tea", "water"]])
    permix.MallowsMixture(1).fit(votes).save(folder / "em.permix")
    batch = folder / "batches" / "1.csv"
    code, _, told = run("update", folder / "em.permix", batch, "-o", folder / "x.permix")
    assert code == 1
    assert "a MallowsMixture, which cannot take in new data" in told
    code, _, told = run("update", folder / "fit.permix", batch, "-o", folder / "em.permix")
    assert code == 1
    assert "--force" in told
    strangers = folder / "strangers.csv"
    strangers.write_text("agent,winner,loser\nbo,tea,gin\n")
    code, _, told = run("update", folder / "fit.permix", strangers, "-o", folder / "x.permix")
    assert code == 1
    assert "does not know 'gin'" in told
