"""``fit angle``, and what other commands make of such models."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest

import permix
from permix.angle.tables import report as angle_report
from permix.angle.tables import show as print_angle
from permix.errors import PermixWarning

DRINKS = ("tea", "coffee", "milk", "juice", "cocoa", "water")
SHORT = ("--draws", 40, "--burn-in", 20)


VI = ("--inference", "vi", "--normalizer", "vmf")


def by(inference):
    """Options that ask for an inference, and for the approximate normalizer where it rests on that."""
    approximate = ("--normalizer", "vmf") if inference in ("vi", "quadrature") else ()
    return ("--inference", inference, *approximate)


@pytest.fixture(scope="module")
def made():
    """Two groups with opposite tastes."""
    return permix.datasets.make_angle_mixture(
        120,
        6,
        2,
        concentration=[12.0, 7.0],
        weights=[0.6, 0.4],
        directions=[[-3, -2.6, 0, 0.5, 2, 3.1], [2, 3, 0.5, 0, -2, -3.5]],
        random_state=1,
    )


@pytest.fixture(scope="module")
def votes(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    permix.write(permix.Rankings.from_orders(np.asarray(made.data.orders), items=DRINKS), path)
    return path


@pytest.fixture(scope="module")
def full(votes):
    return permix.read(votes)


@pytest.fixture(scope="module")
def lists(full, tmp_path_factory):
    """The same people, some of whom name two to four drinks only."""
    path = tmp_path_factory.mktemp("lists") / "lists.csv"
    lengths = [2, 3, 4, 6]
    orders = [[full.items[i] for i in row[: lengths[n % 4]]] for n, row in enumerate(full.orders.tolist())]
    permix.write(permix.Rankings.from_orders(orders, items=DRINKS), path)
    return path


@pytest.fixture(scope="module")
def model(full):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        return permix.AngleMixture(2, inference="vi", normalizer="vmf", random_state=3, progress=False).fit(
            full
        )


@pytest.fixture
def fit(model, tmp_path):
    path = tmp_path / "drinks.permix"
    model.save(path)
    return path


def table_in(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_fit_finds_the_kinds_and_agrees_with_python(run, votes, model, made, full, tmp_path):
    fit, labels, picture = tmp_path / "f.permix", tmp_path / "labels.csv", tmp_path / "kinds.svg"
    command = ["fit", "angle", votes, "-k", 2, *VI, "-o", fit, "--seed", 3]
    code, out, err = run(*command, "--labels", labels, "--picture", picture)
    assert code == 0, err
    assert err == ""
    for words in (
        "120 agents, 6 items",
        "by variational inference",
        "Scores of the centers",
        "normalizer off by",
    ):
        assert words in out
    assert "tea ≻ coffee" in out
    assert "<svg" in picture.read_text()
    rows = table_in(labels)
    assert list(rows[0]) == ["agent", "group", "how_sure"]
    assert [int(row["group"]) - 1 for row in rows] == model.labels_.tolist()
    assert permix.adjusted_rand(model.labels_, made.labels) > 0.8

    report = json.loads(run("summary", fit, "--json")[1])
    assert (report["model"], report["inference"], report["normalizer"]) == ("AngleMixture", "vi", "vmf")
    assert report["elbo"] == pytest.approx(model.elbo_)
    assert report["log_evidence"] is None
    assert report["log_likelihood"] == pytest.approx(float(model.log_likelihood_))
    # Under the approximation nothing is offered for comparison.
    assert report["aic"] is report["bic"] is None
    table, scores = model.summary(), model.consensus()
    assert list(table)[-1] == "center"
    for k, part in enumerate(report["groups"]):
        assert part["agents"] == table["agents"][k]
        assert part["share"] == pytest.approx(model.weights_[k])
        assert part["concentration_low"] == pytest.approx(table["low"][k])
        assert part["concentration_high"] == pytest.approx(table["high"][k])
        assert part["normalizer_error"] == pytest.approx(float(model.normalizer_errors_[k]))
        mine = scores[scores["group"] == k]
        assert part["center"] == mine["item"].tolist()
        for name, column in (("score", "score"), ("score_low", "low"), ("score_high", "high")):
            assert part[name] == pytest.approx(dict(zip(mine["item"], mine[column], strict=True)))
        assert list(part["rank_high"].values()) == mine["rank_high"].tolist()
    assert "DIC" not in out
    assert run("summary", fit)[1] == out
    assert run("info", fit)[1] == run("summary", fit)[1]

    assert run(*command)[0] == 1  # it exists
    code, again, _ = run(*command, "--force", "--json")
    again = json.loads(again)
    assert {**again, "file": ""} == {**report, "file": ""}
    code, out, _ = run(*command, "--force", "--no-criteria")
    assert code == 0
    assert "DIC" not in out


@pytest.mark.parametrize("inference", ["em", "sir", "quadrature"])
@pytest.mark.parametrize("k", [1, 2])
def test_every_inference_with_full_rankings(run, votes, tmp_path, inference, k):
    fit = tmp_path / "f.permix"
    command = ["fit", "angle", votes, "-k", k, *by(inference), "-o", fit, "--quiet"]
    chained = inference == "sir" or (inference == "quadrature" and k == 2)
    draws = SHORT if chained else SHORT[:2] if inference == "quadrature" else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        code, out, err = run(*command, *draws)
    assert code == 0, err
    assert not (tmp_path / "f.permix.chains").exists()
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["normalizer"] == ("vmf" if inference == "quadrature" else "exact")
    assert report["inference"] == inference
    assert len(report["groups"]) == k
    assert report["groups"][0]["center"][:2] == ["tea", "coffee"]
    assert ("score_low" in report["groups"][0]) == (inference != "em")
    assert ("DIC" in out) == (inference == "sir")
    assert ("diagnostics" in report) == chained == ("Chains (2 × 40 draws" in out)
    assert (report["log_evidence"] is not None) == (inference == "quadrature" and k == 1)
    if chained:
        assert "by draws from the posterior (Markov chains" in out
        assert "Gibbs" not in out
        assert f"concentration {k}" in report["diagnostics"]


@pytest.mark.parametrize("inference", ["vi", "em", "sir"])
def test_incomplete_rankings(run, lists, tmp_path, inference):
    fit, labels = tmp_path / "f.permix", tmp_path / "labels.csv"
    # Top lists of few items need no draws for maximum likelihood.
    draws = () if inference == "em" else SHORT
    command = ["fit", "angle", lists, "-k", 2, *by(inference), "-o", fit, *draws]
    code, out, err = run(*command, "--labels", labels, "--json")
    assert code == 0, err
    report = json.loads(out)
    tops = [part["center"][:2] for part in report["groups"]]
    assert tops[0] == ["tea", "coffee"]
    assert sorted(tops[1]) == ["cocoa", "water"]
    assert ("diagnostics" in report) == (inference != "em")
    assert "dic" not in report
    assert len(table_in(labels)) == 120
    if inference == "vi":
        code, out, err = run(*command, "--criteria", "--force")
        assert (code, "left out where models are compared" in " ".join(err.split())) == (2, True)
        assert "with variational updates" in run("summary", fit)[1]
    elif inference == "sir":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PermixWarning)
            code, out, err = run(*command, "--criteria", "--force")
        assert (code, "DIC" in out) == (0, True), err


def test_options_reach_the_model(run, votes, lists, tmp_path):
    fit, store = tmp_path / "f.permix", tmp_path / "f.permix.chains"
    options = ["--inference", "sir", "--normalizer", "vmf", "--prior-shape", 2, "--prior-rate", 0.1]
    options += ["--pseudo-count", 3, "--starts", 2, "--max-iter", 50, "--draws", 5, "--burn-in", 2]
    options += ["--thin", 2, "--chains", 1, "--seed", 9, "--jobs", 1, "--keep-chains"]
    command = ["fit", "angle", lists, "-k", 2, "-o", fit, *options, "--quiet"]
    code, _, err = run(*command)
    assert code == 0, err
    assert store.is_dir()
    model = permix.load(fit)
    assert (model.inference, model.normalizer, model.n_components) == ("sir", "vmf", 2)
    assert (model.prior_shape, model.prior_rate, model.pseudo_count) == (2.0, 0.1, 3.0)
    assert (model.n_init, model.max_iter, model.n_draws, model.n_burn_in) == (2, 50, 5, 2)
    assert (model.n_thin, model.n_chains, model.random_state, model.n_jobs) == (2, 1, 9, 1)
    # The chains in the store go on.
    command[command.index("--draws") + 1] = 9
    code, _, err = run(*command[:-1], "--force")
    assert code == 0, err
    assert "found chains" in err
    longer = permix.load(fit).posterior_["posterior"]["completed_log_likelihood"].to_numpy()
    before = model.posterior_["posterior"]["completed_log_likelihood"].to_numpy()
    assert longer.shape == (1, 9)
    np.testing.assert_array_equal(longer[:, :5], before)

    command = ["fit", "angle", votes, "-k", 1, "-o", fit, "--force"]
    code, out, err = run(*command, *VI, "--bound", "published", "--tol", 1e-3)
    assert code == 0, err
    assert "note: --bound published" in out
    model = permix.load(fit)
    assert (model.bound, model.tol) == ("published", 1e-3)
    code, _, err = run(*command, "--inference", "sir", "--normalizer", "vmf", "--candidates", 500)
    assert code == 0, err
    assert permix.load(fit).n_candidates == 500


def test_wrong_use_is_refused(run, votes, tmp_path):
    base = ["-o", tmp_path / "f.permix"]
    for arguments, words in (
        ([votes, "-k", 2, "--inference", "em", "--criteria"], "--criteria averages over a posterior"),
        ([votes, "-k", 2, "--criterion", "dic"], "--criterion belongs to --select"),
        ([votes], "say how many groups with -k"),
        ([votes, "-k", 2, "--picture", "x.txt"], "pictures end in"),
        ([votes, "-k", 2, "--inference", "gibbs"], '--inference gibbs must be "em", "sir"'),
        ([votes, "-k", 2, "--prior-rate", -1], "--prior-rate -1.0 must be a positive number"),
        ([votes, "-k", 2, "--inference", "vi"], "ask for it with --normalizer vmf, or use --inference em"),
        ([votes, "-k", 2, "--draws", 9], "em climbs and draws nothing on these data; leave out --draws"),
        ([votes, "-k", 2, "--chains", 3], "em climbs and draws nothing on these data; leave out --chains"),
        ([votes, "-k", 2, "--bound", "published"], "--inference em has no evidence bound; leave out --bound"),
        (
            [votes, "-k", 2, "--inference", "sir", "--candidates", 99],
            "--inference sir runs chains on these data; leave out --candidates",
        ),
        (
            [votes, "--select", "1-2", "--draws", 9],
            "em climbs and draws nothing on these data",
        ),
        ([votes, "--select", "1-2", "--criterion", "dic"], "--criterion dic averages over a posterior"),
        ([votes, "--select", "1-2", "--criterion", "bic", "--rule", "one-se"], "--rule one-se needs errors"),
    ):
        code, _, err = run("fit", "angle", *arguments, *base)
        assert (code, words in err) == (2, True), err
    for arguments, words in (
        ([votes, "-k", 500], "--groups 500 is more than the 120 agents"),
        ([tmp_path / "none.csv", "-k", 2], "no file"),
    ):
        code, _, err = run("fit", "angle", *arguments, *base)
        assert (code, words in err) == (1, True), err
    assert not (tmp_path / "f.permix").exists()


def test_numbers_of_components_are_chosen(run, votes, tmp_path):
    fit, picture = tmp_path / "f.permix", tmp_path / "kinds.png"
    command = ["fit", "angle", votes, "--select", "1-3", "--inference", "em", "--starts", 3, "-o", fit]
    code, out, err = run(*command, "--picture", picture)
    assert code == 0, err
    assert "each of 120 agents held out once, in 5 parts" in out
    assert "mixture of 2 groups by maximum likelihood" in out
    assert "normalizer off by" not in out
    assert (tmp_path / "kinds-selection.png").read_bytes().startswith(b"\x89PNG")
    code, out, err = run(*command, "--criterion", "bic", "--force", "--json", "--picture", picture)
    report = json.loads(out)
    assert (report["selection"]["criterion"], report["selection"]["chosen"]) == ("bic", 2)
    assert report["selection"]["table"][1]["bic"] == pytest.approx(report["bic"])
    code, _, err = run(*command, "--normalizer", "vmf", "--force")
    assert (code, "--normalizer vmf must be left out" in " ".join(err.split())) == (2, True), err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        command[command.index("em")] = "sir"
        code, out, err = run(*command, *SHORT, "--criterion", "dic", "--force")
    assert code == 0, err
    assert "DIC of 120 agents" in out


def test_predict_and_sample(run, fit, model, tmp_path):
    newcomers, answer = tmp_path / "newcomers.csv", tmp_path / "answer.csv"
    newcomers.write_text(
        "person,how many,first,second,third,fourth,fifth,sixth\n"
        "ann,1,tea,coffee,milk,juice,cocoa,water\nbob,3,water,cocoa,,,,\n"
    )
    new = ("--agent-column", "person", "--count-column", "how many", "--layout", "orders")
    code, out, err = run("predict", fit, newcomers, *new, "-o", answer)
    assert code == 0, err
    rankings = permix.Rankings.from_orders(
        [list(DRINKS), ["water", "cocoa"]], items=model.items_, counts=[1, 3]
    )
    rows = table_in(answer)
    assert [row["agent"] for row in rows] == ["ann", "bob"]
    assert [row["count"] for row in rows] == ["1", "3"]
    assert [int(row["group"]) for row in rows] == [1, 2]
    close = {"atol": 1e-6, "rtol": 0}
    np.testing.assert_allclose(
        [[float(row["p1"]), float(row["p2"])] for row in rows], model.predict_proba(rankings), **close
    )
    np.testing.assert_allclose(
        [float(row["log_probability"]) for row in rows], model.score_samples(rankings), **close
    )
    # A mean of probabilities that do not sum to one would be a score to compare by.
    assert "mean log probability" not in out
    assert "mean_log_probability" not in json.loads(run("predict", fit, newcomers, *new, "--json")[1])
    code, _, err = run("predict", fit, newcomers, *new, "--samples", 20)
    said = " ".join(err.replace("│", " ").split())
    assert (code, "--samples says nothing to a fit of angle about --what groups" in said) == (2, True)
    completed = json.loads(run("predict", fit, newcomers, *new, "--what", "ranking", "--json")[1])["rows"]
    assert completed[0] == {"agent": "ann", "ranking": list(DRINKS)}
    order = model.complete(rankings, n_samples=200, random_state=0).orders[1]
    assert completed[1]["ranking"] == [model.items_[i] for i in order]
    assert completed[1]["ranking"][:2] == ["water", "cocoa"]
    rest = ("--what", "pairwise", "--samples", 100, "--top", 2, "--json")
    pairs = json.loads(run("predict", fit, newcomers, *new, *rest)[1])["rows"]
    assert [pair["agent"] for pair in pairs] == ["bob", "bob"]  # the other's ranking is full
    for pair in pairs:
        assert {pair["better"], pair["worse"]} <= {"tea", "coffee", "milk", "juice"}
        assert 0.5 <= pair["probability"] < 1.0
        assert pair["standard_error"] > 0.0
    stranger = tmp_path / "stranger.csv"
    stranger.write_text("first,second\ntea,wine\n")
    code, _, err = run("predict", fit, stranger, "--layout", "orders")
    assert (code, "wine" in err) == (1, True), err

    drawn = tmp_path / "drawn.csv"
    assert run("sample", fit, "-n", 50, "--seed", 4, "-o", drawn)[0] == 0
    assert permix.read(drawn).n_agents == 50
    ordered = json.loads(run("sample", fit, "-n", 3, "--seed", 4, "--json")[1])["rankings"]
    assert ordered == [[model.items_[i] for i in row] for row in model.sample(3, 4).orders]


def test_interrupted_climbs_and_chains_are_kept(run, votes, lists, tmp_path, monkeypatch):
    from dataclasses import replace

    import permix.angle.answers as module

    real = module.fit_as_asked
    monkeypatch.setattr(module, "fit_as_asked", lambda *given: replace(real(*given), interrupted=True))
    fit = tmp_path / "f.permix"
    code, out, err = run("fit", "angle", votes, "-k", 2, "-o", fit)
    assert code == 130
    assert "holds the best so far" in err
    assert "interrupted after" in out
    assert "DIC" not in out
    assert permix.load(fit).n_components == 2
    fit = tmp_path / "g.permix"
    code, out, err = run("fit", "angle", lists, "-k", 1, "--inference", "sir", "-o", fit, *SHORT)
    assert code == 130
    assert "the same command goes on from" in err
    assert (tmp_path / "g.permix.chains").is_dir()
    monkeypatch.setattr(module, "fit_as_asked", real)
    code, out, err = run("fit", "angle", lists, "-k", 1, "--inference", "sir", "-o", fit, *SHORT)
    assert code == 0, err
    assert "found chains" in err
    assert not (tmp_path / "g.permix.chains").exists()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "fit_as_asked", stopped)
    code, _, err = run("fit", "angle", votes, "-k", 2, "-o", tmp_path / "h.permix")
    assert (code, "before there was anything to keep" in err) == (130, True)


def test_notes_say_what_to_know(run, model, capsys):
    from dataclasses import replace

    fit = model._fit
    report = angle_report(fit)
    off = [k + 1 for k, error in enumerate(model.normalizer_errors_) if abs(error) > 0.05]
    assert off == [1, 2]
    assert any("groups 1 and 2: the von Mises–Fisher normalizer is off" in note for note in report["remarks"])
    held = angle_report(replace(fit, guarded=np.array([False, True])))
    assert "group 2: the von Mises–Fisher normalizer would give a ranking" in held["remarks"][0]
    alike = replace(fit.components, directions=fit.components.directions[[0, 0]])
    assert any(
        "rank the items alike" in note for note in angle_report(replace(fit, components=alike))["remarks"]
    )
    nobody = angle_report(replace(fit, probabilities=np.tile([0.9, 0.1], (120, 1))))
    assert any("group 2 is nobody's" in note for note in nobody["remarks"])
    print_angle(angle_report(replace(fit, converged=False)), "x")
    assert "a larger --max-iter" in capsys.readouterr().out


def test_long_lists_are_cut_for_people_and_whole_for_machines(run, tmp_path, capsys):
    made = permix.datasets.make_angle_mixture(200, 40, 1, concentration=60.0, random_state=0)
    model = permix.AngleMixture(normalizer="vmf", random_state=0, progress=False).fit(made.data)
    report = angle_report(model._fit)
    assert report["groups"][0]["normalizer_error_standard_error"] > 0
    print_angle(report, "x")
    out = capsys.readouterr().out
    assert "the first 30 of 40 items; --json shows all" in out
    assert " ± " in out
    assert len(report["groups"][0]["score"]) == 40
