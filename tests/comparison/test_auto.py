"""The model that is chosen and fitted by itself: which, why, in which time, and what a file keeps of it."""

from __future__ import annotations

import json
import signal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import permix
from permix.comparison import auto
from permix.comparison.auto import AutoFit, choice_of, fit_auto
from permix.comparison.describe import describe
from permix.comparison.forms import FORMS
from permix.comparison.result import Scored, in_words
from permix.estimators import registry
from permix.estimators.archive import read_about
from permix.runtime.interrupts import Interrupts

VOTES = FORMS["votes"]


def leave_few_models(monkeypatch):
    """Leave models that take less than a second; one or two groups."""
    for name in ("DPMallowsMixture", "AngleMixture"):
        monkeypatch.delitem(registry.MODELS, name)
    monkeypatch.setattr("permix.comparison.compare.MOST_GROUPS", 2)
    monkeypatch.setattr("permix.selection.select_components.MOST_TIMES", 1)
    for place in ("permix.selection.select_components", "permix.comparison.forms"):
        monkeypatch.setattr(f"{place}.LEAST_HELD_OUT", 0)  # one part is held out, and not all in turn


@pytest.fixture
def few_models(monkeypatch):
    leave_few_models(monkeypatch)


@pytest.fixture(scope="module")
def camps():
    rng = np.random.default_rng(5)
    two = [permix.Mallows(range(6), 0.3), permix.Mallows([5, 4, 3, 2, 1, 0], 0.3, items=range(6))]
    votes = permix.Rankings.concat([camp.sample(60, rng) for camp in two])
    return votes.with_covariates({"side": ["left"] * 60 + ["right"] * 60})


@pytest.fixture(scope="module")
def fitted(camps):
    """The model that is chosen for them, and what was said on the way."""
    said = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_few_models(monkeypatch)
        return fit_auto(camps, minutes=5.0, random_state=0, say=said.append), said


def scored(label, mean, groups, stability, spread=0.1, seed=0):
    noise = np.random.default_rng(seed).normal(0.0, spread, 200)
    return Scored(label, label, mean + noise - noise.mean(), np.zeros(200), groups, stability)


def chosen_of(*entries):
    entries = sorted(entries, key=lambda entry: -entry.scores.mean())
    simple = scored("simple", -5.0, np.nan, np.nan, seed=99)
    chosen, why = choice_of(SimpleNamespace(entries=entries, counts=np.ones(200), simple=simple), VOTES)
    return chosen, " ".join(why)


def test_the_best_is_chosen_of_models_that_find_groups():
    assert chosen_of(scored("a", -1.0, 3, 1.0), scored("b", -2.0, 2, 1.0))[0].label == "a"
    chosen, why = chosen_of(scored("density", -1.0, np.nan, np.nan), scored("b", -2.0, 2, 1.0))
    assert chosen.label == "b"
    assert "density finds no groups; under b, the best model that does" in why
    assert "no better than a simple" not in why
    _, why = chosen_of(scored("density", -1.0, np.nan, np.nan), scored("b", -6.0, 2, 1.0))
    assert "which is no better than a simple description" in why


def test_of_equal_models_the_one_whose_groups_are_found_again_is_chosen():
    chosen, why = chosen_of(scored("a", -1.0, 9, 0.6, seed=1), scored("b", -1.001, 3, 0.9, seed=2))
    assert chosen.label == "b"
    assert "as good" in why


def test_groups_that_are_not_found_again_give_way_if_that_does_not_cost_too_much():
    shaky = scored("shaky", -1.0, 39, 0.0, 0.01, 1)
    chosen, why = chosen_of(shaky, scored("steady", -1.05, 9, 0.9, 0.01, 2))
    assert chosen.label == "steady"
    assert "mostly not found again" in why
    # The baseline is at -5: two thirds of what is gained on it suffice, half of it does not.
    chosen, why = chosen_of(shaky, scored("steady", -2.3, 9, 0.9, 0.01, 2))
    assert chosen.label == "steady"
    assert "0.27 times as probable" in why
    assert chosen_of(shaky, scored("steady", -3.0, 9, 0.9, 0.01, 2))[0].label == "shaky"


def test_models_that_were_cut_short_are_named():
    late = scored("slow", -2.0, 2, 1.0)._replace(cut_short=True)
    models, simple = [scored("a", -1.0, 3, 1.0), late], [scored("one group (baseline)", -5.0, 1, np.nan)]
    said = "slow had less time than needed, and might do better with more."
    words = in_words(VOTES, models, simple, np.ones(200), True)
    assert said in words
    assert "less probable than under a" not in words  # more time might tell otherwise
    models[1] = late._replace(cut_short=False)
    words = in_words(VOTES, models, simple, np.ones(200), True)
    assert "less time" not in words
    assert "less probable than under a" in words


def test_a_choice_of_numbers_that_time_ended_is_cut_short(monkeypatch, camps):
    """The time for choosing is a part of that for fitting, which may not have run out."""
    from permix.comparison import compare

    engine = SimpleNamespace(n_jobs=1)
    about = SimpleNamespace(selection=True)
    compared = SimpleNamespace(parameters=SimpleNamespace(declared=()), fit=lambda data, parameters: "a fit")
    candidate = compare.Candidate(about, compared, SimpleNamespace(options={}))
    chosen = SimpleNamespace(n_folds=2, fit="a fit", chosen=1)
    monkeypatch.setattr(compare, "chosen_number", lambda *_: chosen)
    for seconds, expected in ((0.0, True), (1000.0, False), (None, False)):
        assert compare.Engine.fitted(engine, candidate, camps, 0, seconds) == ("a fit", expected)


def test_what_is_fitted_and_kept(fitted, tmp_path):
    found, lines = fitted
    assert isinstance(found, AutoFit)
    assert not any((found.partial, found.cut_short, found.interrupted))
    assert found.chosen in ("mallows", "mean-shift")
    assert found.said[0].startswith("These are votes: 120 agents with rankings of all 6 items, without ties")
    assert "suit them" in found.said[1]
    assert any(line.startswith("stage 1 of 3: comparing") for line in lines)
    assert len(found.model.labels_) == 120
    file = tmp_path / "answer.permix"
    found.save(file)
    about = read_about(file)
    assert [row["said"] for row in about["chosen"]] == list(found.said)
    assert about["comparison"][0]["model"] == found.comparison.best
    loaded = permix.load(file)
    assert loaded.by_covariate("side").attrs["verdict"]
    assert repr(found).startswith("AutoFit: These are votes")


def test_the_same_seed_gives_the_same_model(few_models, camps):
    first, second = (fit_auto(camps, random_state=3, n_jobs=jobs) for jobs in (1, 2))
    assert first.chosen == second.chosen
    assert np.array_equal(first.model.labels_, second.model.labels_)
    assert first.comparison.table.drop(columns="seconds").equals(
        second.comparison.table.drop(columns="seconds")
    )


def test_answers_without_order_are_told(few_models, run, tmp_path):
    rng = np.random.default_rng(0)
    votes = permix.Rankings.from_orders([rng.permutation(4) for _ in range(200)])
    found = fit_auto(votes, random_state=0)
    assert any(sentence.startswith("No model predicts agents") for sentence in found.said)
    (row,) = found.tables()["no_better"]
    assert row["said"].startswith("No model predicts agents that were held out")
    file = tmp_path / "answer.permix"
    found.save(file)
    text = permix.report(file, format="md", checks=False, progress=False)
    answer = text.partition("## The answer")[2].partition("##")[0]
    brief, _, said = answer.strip().partition("\n\n")
    assert "**Not yet.** Groups of a model that predicts no better than a simple description" in brief
    assert said.startswith("No model predicts agents that were held out")
    assert found.comparison.no_better in run("summary", file)[1].replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "better"), [("empirical", "a list of these predicts better"), ("uniform", "")]
)
def test_chance_is_named_only_where_the_interval_allows_it(name, better):
    counts, form = np.ones(200), VOTES
    model = scored("a", -1.0, 2, 1.0, 0.01, 1)
    for mean, lost in ((-0.97, True), (-1.0, False)):
        simple = scored(f"{name} (baseline)", mean, np.nan, np.nan, 0.01, 2)
        said = in_words(form, [model], [simple], counts, beats=False)
        assert ("which may be chance" in said) is not lost
        assert ("held out as well as a simple" in said) is lost
        assert (better in said) is (lost or not better)
        assert "predicts as well" not in said or not lost


@pytest.mark.parametrize("who", ["clock", "user"])
def test_what_was_done_is_kept_where_the_last_fit_is_stopped(
    few_models, fitted, camps, monkeypatch, tmp_path, who
):
    """The fit to the part that models were compared on is there, whoever stops the last one."""
    monkeypatch.setattr(auto, "FITTING", 0.0 if who == "clock" else 0.9)

    def stopped(self, data, settings):
        with Interrupts():
            if who == "user":
                signal.raise_signal(signal.SIGINT)
            raise KeyboardInterrupt

    compared = registry.part(fitted[0].about.compared)
    say = []
    original = type(compared).fit

    def fit_or_stop(self, data, settings):
        whole = data.n_agents == camps.n_agents
        return stopped(self, data, settings) if whole else original(self, data, settings)

    monkeypatch.setattr(type(compared), "fit", fit_or_stop)
    found = fit_auto(camps, random_state=0, say=say.append)
    assert found.partial
    assert found.interrupted == (who == "user")
    assert len(found.model.labels_) < camps.n_agents
    told = {row["what"]: row["value"] for row in found.tables()["ending"]}
    assert told["stopped"] == ("user" if who == "user" else "time")
    assert told["made on"] == "90 of 120 agents"  # a quarter was held out
    file = tmp_path / "answer.permix"
    found.save(file)
    text = permix.report(file, format="md", checks=False, progress=False)
    assert "With care." in text
    assert f"and was made on {told['made on']} only" in text
    assert ("by the user" in text) is (who == "user")


@pytest.mark.parametrize(
    ("form", "data", "said"),
    [
        (
            "votes",
            permix.Rankings.from_orders([["a"], ["b", "c"]], items=list("abcd")),
            "1 to 2 of 4 items, the rest below",
        ),
        (
            "votes",
            permix.Rankings.from_orders([["a", "b"]], items=list("abcd"), unlisted="unknown"),
            "2 of 4 items, the rest not asked",
        ),
        ("votes", permix.Preferences.from_levels([[["a", "b"], ["c"]]], items=list("abc")), "with ties"),
        (
            "votes",
            permix.Preferences.from_pairs([(0, "a", "b")], items=list("abc")),
            "1 comparisons by all agents",
        ),
        ("matrix", permix.Cells.coerce([[1, None], [0, 1]]), "2 rows by 2 columns, 75% of the cells filled"),
        (
            "table",
            pd.DataFrame({"x": [1.5, None], "y": ["a", "b"]}),
            "1 column of numbers and 1 column of text, 1 cells",
        ),
    ],
)
def test_data_are_described(form, data, said):
    assert said in describe(FORMS[form], data)


# -- the command -------------------------------------------------------------------------------------


def test_the_command_writes_an_ordinary_fit(few_models, camps, run, tmp_path):
    file, output, labels = tmp_path / "votes.soc", tmp_path / "answer.permix", tmp_path / "groups.csv"
    permix.write(camps, file)
    code, out, err = run("fit", "auto", file, "-o", output, "--labels", labels)
    assert code == 0, err
    assert "stage 1 of 3" in err
    assert "predicts best" in out
    assert len(pd.read_csv(labels)) == len(permix.read(file))
    code, out, _ = run("summary", output)
    assert code == 0
    assert "These are votes" in out
    code, out, _ = run("predict", output, file, "--json")
    assert code == 0
    code, out, _ = run("fit", "auto", file, "-o", output, "--force", "--json")
    report = json.loads(out)
    assert report["chosen"] in ("mallows", "mean-shift")
    assert report["comparison"]["better_than_baseline"] is True
    code, _, err = run("fit", "auto", file, "-o", output)
    assert code == 1
    assert "--force" in err


def test_where_no_model_could_be_compared_in_time_the_first_is_fitted(few_models, camps, monkeypatch):
    for name in ("MallowsKDE", "BlurringMeanShift"):  # done before any clock
        monkeypatch.delitem(registry.MODELS, name)
    monkeypatch.setattr(auto, "COMPARING", 1e-12)
    found = fit_auto(camps, random_state=0)
    assert found.comparison is None
    assert found.chosen == "mallows"
    assert not found.partial
    assert found.said[2].startswith(auto.NOTHING_COMPARED)
    assert list(found.tables()) == ["chosen"]
    monkeypatch.setattr(auto, "FITTING", 0.0)
    monkeypatch.setattr("permix.mallows.selection.MallowsCompared.fit", raise_interrupt)
    with pytest.raises(
        permix.errors.DataError, match="time ran out before there was a fit; allow more minutes"
    ):
        fit_auto(camps, random_state=0)


def raise_interrupt(self, data, settings):
    raise KeyboardInterrupt
