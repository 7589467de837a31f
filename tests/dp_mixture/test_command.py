"""``permix fit dp-mixture``, and ``summary``, ``predict`` and ``sample`` of what it fits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import permix
from permix.dp_mixture.answers import labels
from permix.dp_mixture.table_source import Table
from permix.registries import FAMILIES, MOVES, PRIORS, move_names
from tests.cli.refusals import assert_refused
from tests.every_run import first_in_every_run

QUICK = ("--draws", 40, "--burn-in", 20)


def test_fit_and_summary(run, points, tmp_path):
    fit, labels, picture = tmp_path / "points.permix", tmp_path / "labels.csv", tmp_path / "points.png"
    code, out, err = run(
        "fit",
        "dp-mixture",
        points,
        "-o",
        fit,
        "--id",
        "name",
        "--labels",
        labels,
        "--picture",
        picture,
        *QUICK,
    )
    assert code == 0, err
    assert "2 groups" in out
    assert "height" in out
    assert not fit.with_name("points.permix.chains").exists()
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = labels.read_text().splitlines()
    assert rows[0] == "name,group,how_sure"
    assert rows[1].startswith("p0,1,")
    assert len(rows) == 51
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["number_of_groups"] == 2
    assert [group["size"] for group in report["groups"]] == [30, 20]
    assert len(report["groups"][0]["parameters"][report["main_parameter"]]) == 2
    assert report["columns"] == ["height", "weight"]
    assert report["diagnostics"]["n_groups"]["mean"] >= 2
    assert run("summary", fit)[1] == run("info", fit)[1]
    model = permix.load(fit)
    assert model.feature_names_in_.tolist() == ["height", "weight"]
    assert model.random_state == 0


def test_same_seed_same_answer(run, points, tmp_path):
    def report(name, seed):
        fit = tmp_path / name
        run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--seed", seed, *QUICK)
        return fit.read_bytes()

    # Times differ from run to run, so compare the draws.
    one, two, other = (permix.load(tmp_path / n) for n, s in (("a", 1), ("b", 1), ("c", 2)) if report(n, s))
    assert one.posterior_["posterior"].identical(two.posterior_["posterior"])
    assert not one.posterior_["posterior"].identical(other.posterior_["posterior"])


@pytest.mark.parametrize(
    ("options", "clusters"),
    [
        (["--family", "gaussian", "--noise-scale", "1", "--prior-scale", "6"], 2),
        (["--prior", "finite", "--groups", "3"], 2),
        (["--prior", "pitman-yor", "--discount", "0.1", "--concentration", "0.5"], 2),
        (["--prior", "dp", "--concentration", "0.5"], 2),
        (["--prior", "mfm", "--rate", "2"], 2),
        (
            [
                "--moves",
                "gibbs,split-merge,permutation",
                "--burn-in-moves",
                "projection,gibbs",
                "--init",
                "7",
            ],
            2,
        ),
    ],
)
def test_fit_options(run, points, tmp_path, options, clusters):
    fit = tmp_path / "fit.permix"
    code, out, err = run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--json", *options, *QUICK)
    assert code == 0, err
    assert json.loads(out)["number_of_groups"] == clusters


def test_other_kinds_of_data(run, tmp_path):
    survey = tmp_path / "survey.csv"
    survey.write_text("a,b\n" + "yes,1\n" * 10 + "no,2\n" * 10 + ",2\n")
    code, out, err = run(
        "fit", "dp-mixture", survey, "-o", tmp_path / "s", "--family", "categorical", "--json", *QUICK
    )
    assert code == 0, err
    assert json.loads(out)["columns"] == ["a=no", "a=yes", "b=1", "b=2"]
    counts = np.array([[9, 0, 1], [8, 1, 0], [0, 9, 9], [1, 8, 7]])
    sparse.save_npz(tmp_path / "counts.npz", sparse.csr_matrix(counts))
    np.save(tmp_path / "counts.npy", counts)
    reports = []
    for name in ("counts.npz", "counts.npy"):
        path = tmp_path / name
        code, out, err = run(
            "fit",
            "dp-mixture",
            path,
            "-o",
            tmp_path / f"{name}.permix",
            "--family",
            "multinomial",
            "--json",
            *QUICK,
        )
        assert code == 0, err
        reports.append(json.loads(out)["groups"])
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "dp-mixture", "missing.csv", "-o", "x"], ["missing.csv"]),
        (["fit", "dp-mixture", "points.csv", "-o", "x"], ["'name'", "50 different entries", "p0", "--id"]),
        (["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "nam"], ["no column 'nam'", "height"]),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "name", "--init", "51"],
            ["--init 51 must be from 1 to 50 groups"],
        ),
        (["fit", "dp-mixture", "points.csv", "-o", "no/x", "--id", "name"], ["folder no"]),
        (["fit", "dp-mixture", "points.csv", "-o", ".", "--id", "name"], ["is a folder"]),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--labels", "points.csv", "--id", "name"],
            ["is also the input"],
        ),
        (["fit", "dp-mixture", "points.csv", "-o", "x", "--labels", "x", "--id", "name"], ["given twice"]),
        (["fit", "dp-mixture", "points.csv", "-o", "x", "--labels", "no/l.csv"], ["folder no"]),
        (["fit", "dp-mixture", "points.csv", "-o", "old.permix", "--id", "name"], ["--force"]),
        (["fit", "dp-mixture", ".", "-o", "x"], ["is a folder"]),
        (["fit", "dp-mixture", "empty.csv", "-o", "x"], ["empty.csv"]),
        (["fit", "dp-mixture", "headonly.csv", "-o", "x"], ["no rows"]),
        (
            ["fit", "dp-mixture", "hole.csv", "-o", "x", "--family", "multinomial", "--pseudo-count", "0.4"],
            ["row 2 has counts in columns", "sum to 0.4", "Raise --pseudo-count"],
        ),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--family", "gaussian"],
            ["'name'", "not numeric", "row 1", "'p0'", "--id", "--family mixed"],
        ),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "name", "--column", "no=count"],
            ["column 'no'"],
        ),
        (["fit", "dp-mixture", "broken.npz", "-o", "x"], ["broken.npz"]),
    ],
)
def test_a_mistake_gets_one_clear_message(run, points, tmp_path, monkeypatch, arguments, words):
    assert_refused(run, tmp_path, monkeypatch, arguments, words)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--family", "cauchy"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--noise-scale", "2"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--column", "age=years"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--column", "age"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--column", "age=count", "--family", "gaussian"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--prior", "crp"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--prior", "finite"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--concentration", "0.5"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--draws", "0"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--jobs", "0"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--picture", "x.foo"],
        ["fit", "dp-mixture", "x.csv", "-o", "model.csv"],
    ],
)
def test_wrong_use_is_exit_code_two(run, arguments):
    assert run(*arguments)[0] == 2


@pytest.mark.parametrize(
    ("moves", "words"),
    [("gibbs,gibs", ["unknown move 'gibs'", "split-merge"]), ("projection", ["optimizer", "burn-in only"])],
)
def test_moves_that_cannot_be_are_named(run, points, tmp_path, moves, words):
    code, _, err = run("fit", "dp-mixture", points, "-o", tmp_path / "x", "--id", "name", "--moves", moves)
    assert code == 2
    assert all(word in err for word in words)


def test_an_option_that_cannot_be_so_is_named(run, points, tmp_path):
    code, _, err = run("fit", "dp-mixture", points, "-o", tmp_path / "x", "--init", "warm")
    assert code == 2
    starts = '"both", "sequential", "one-group", "random", or a whole number, 1 or more'
    assert err == f"permix: --init warm must be {starts}\n"


def test_a_shorter_run_keeps_the_chains_of_a_longer_one(run, points, tmp_path):
    fit = tmp_path / "fit.permix"
    long, short = ("--draws", 80, "--burn-in", 20), ("--draws", 30, "--burn-in", 20)
    assert run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--keep-chains", *long)[0] == 0
    code, _, err = run("fit", "dp-mixture", points, "-o", fit, "--id", "name", *short)
    assert code == 0
    assert "80 draws and is kept" in err
    assert permix.load(fit).posterior_["posterior"].sizes["draw"] == 30


class Killed(BaseException):
    """Stands for a kill: nothing after it happens."""


@pytest.mark.parametrize("place", ["dp_mixture.answers.labels", "cli.run.drop_chains"])
def test_a_fit_killed_just_after_finishing_is_recognized(run, points, tmp_path, monkeypatch, place):
    fit, labels = tmp_path / "fit.permix", tmp_path / "labels.csv"
    command = ("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--labels", labels, *QUICK)
    command += ("--family", "gaussian")  # nothing about it is tried out before the chains that are kept

    def cut(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"permix.{place}", cut)
        with pytest.raises(Killed):
            run(*command)
    assert fit.exists()
    before = fit.read_bytes()
    # The same command says what it found, without another step of any chain.
    with monkeypatch.context() as patch:
        patch.setattr("permix.sampling.chain.Chain._resume", cut)
        code, out, _ = run(*command)
    assert code == 0
    assert "groups" in out
    assert fit.read_bytes() == before
    assert labels.exists()
    assert not [path for path in tmp_path.iterdir() if "chains" in path.name]
    # Done is done: what is there now is not overwritten by chance.
    assert run(*command)[0] == 1


def test_output_that_is_lost_leaves_no_chains(run, points, tmp_path, monkeypatch):
    def cut(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("permix.dp_mixture.tables.show", cut)
    with pytest.raises(Killed):
        run("fit", "dp-mixture", points, "-o", tmp_path / "fit.permix", "--id", "name", *QUICK)
    left = {path.name for path in tmp_path.iterdir() if path != points}
    assert left == {"fit.permix"}


def test_codes_for_missing_are_remembered(run, tmp_path):
    table, fit, new = tmp_path / "t.csv", tmp_path / "m.permix", tmp_path / "new.csv"
    rng = np.random.default_rng(0)
    points = np.round(rng.normal(size=(40, 2)) + 9 * (np.arange(40) % 2)[:, None], 3)
    points[:6, 0] = -99
    table.write_text("\n".join(["x,y", *(f"{x:g},{y:g}" for x, y in points)]) + "\n")
    options = ("--family", "gaussian-diagonal", "--chains", 1, *QUICK)
    assert run("fit", "dp-mixture", table, "-o", fit, "--missing", -99, *options)[0] == 0
    new.write_text("x,y\n-99,9\n9,9\n")
    code, out, err = run("predict", fit, new, "--json")
    assert code == 0
    assert "-99 stands for a missing cell in new.csv, as in the data of m.permix" in err
    assert max(row["new"] for row in json.loads(out)["rows"]) < 0.5
    # New rows need not hold the code, and --missing takes its place.
    new.write_text("x,y\n9,9\n")
    assert "no cell holds" not in run("predict", fit, new)[2]
    code, out, err = run("predict", fit, table, "--missing", 7, "--json")
    assert "as in the data of" not in err
    assert json.loads(out)["rows"][0]["new"] > 0.5


def test_text_that_makes_columns_independent_is_named(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(
        "a,b,Status\n" + "".join(f"{i % 5},{i % 7},{'good' if i % 2 else 'bad'}\n" for i in range(30))
    )
    command = ("fit", "dp-mixture", table, "--chains", 1, *QUICK)
    said = "the text column Status takes part in the fit; --group-column Status compares"
    assert said in run(*command, "-o", tmp_path / "x.permix")[2]
    assert said not in run(*command, "-o", tmp_path / "y.permix", "--family", "mixed")[2]


def test_chains_half_removed_do_not_stay(run, points, tmp_path, monkeypatch):
    fit = tmp_path / "fit.permix"
    command = ("fit", "dp-mixture", points, "-o", fit, "--id", "name", *QUICK)

    def cut(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("permix.cli.inspect.shutil.rmtree", cut)
        with pytest.raises(Killed):
            run(*command)
    (tmp_path / ".fit.permix.chains.tmp").mkdir(exist_ok=True)
    assert run(*command, "--force")[0] == 0
    assert not [path for path in tmp_path.iterdir() if "chains" in path.name]


def test_existing_chains_of_other_settings_are_refused(run, points, tmp_path):
    fit = tmp_path / "fit.permix"
    run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--keep-chains", *QUICK)
    assert fit.with_name("fit.permix.chains").is_dir()
    code, _, err = run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--seed", 5, *QUICK)
    assert code == 1
    assert "--seed was 0 and is now 5" in err


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
def test_ctrl_c_keeps_what_was_done(points, tmp_path):
    fit = tmp_path / "fit.permix"
    # Chains are written ten times a second, not every five seconds.
    program = "from permix.sampling.loop import run_chains\n"
    program += "run_chains.__kwdefaults__['checkpoint_seconds'] = 0.1\n"
    program += "from permix.cli import main\nmain()"
    command = [sys.executable, "-c", program, "fit", "dp-mixture", str(points), "-o", str(fit)]
    command += ["--id", "name", "--draws", "10000000", "--burn-in", "50", "--chains", "2"]
    process = subprocess.Popen(
        command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        chains = tmp_path / "fit.permix.chains"
        deadline = time.monotonic() + 120
        while (
            len({path.parent for path in chains.glob("chain-*/draws*")}) < 2 and time.monotonic() < deadline
        ):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert permix.load(fit).n_clusters_ >= 2


# --- what is registered is offered ---------------------------------------------------------------


def test_help_offers_what_is_registered(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    out = " ".join(run("fit", "dp-mixture", "--help")[1].split())
    for name in (*FAMILIES, *PRIORS, *MOVES):
        assert name in out
    for registry in (FAMILIES, PRIORS):
        for name, entry in registry.entries.items():
            for setting, about in entry.settings.items():
                assert f"--{setting.replace('_', '-')}" in out
                assert about.help in out, name
    assert ", ".join(move_names()) in out


# Climbs, splits and merges compile most of all: with all families in the slow run.
@pytest.mark.parametrize("moves", first_in_every_run(["gibbs", "auto"]))
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_fitted_shown_and_asked(run, tmp_path, family, moves):
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.poisson(1, (12, 3)), rng.poisson([9, 1, 4], (12, 3))])
    table = tmp_path / "rows.csv"
    table.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in rows.tolist()) + "\n")
    fit = tmp_path / "fit.permix"
    options = ("--family", family, "--moves", moves, "--burn-in-moves", moves)
    code, out, err = run("fit", "dp-mixture", table, "-o", fit, *options, *QUICK)
    assert code == 0, err
    assert f"{family} family" in out
    # Of categories and documents the table shows the shares of those who are in a group.
    shown = "shares" if family in ("categorical", "multinomial") else FAMILIES[family].main_parameter
    assert f"({shown} of" in out
    assert json.loads(run("summary", fit, "--json")[1])["family"] == family
    code, out, err = run("predict", fit, table, "--json")
    assert code == 0, err
    assert len(json.loads(out)["rows"]) == 24
    code, out, err = run("sample", fit, "-n", 3)
    assert code == 0, err
    assert len(out.splitlines()) == 4


def test_predictions_need_the_fitted_columns(run, points, tmp_path):
    fit = tmp_path / "fit.permix"
    assert run("fit", "dp-mixture", points, "-o", fit, "--id", "name", *QUICK)[0] == 0
    code, _, err = run("predict", fit, points)
    assert code == 1
    assert "not fitted to column 'name'" in err
    assert "--id" in err
    assert "--ignore name" in err
    new = tmp_path / "new.csv"
    new.write_text("weight,height\n5,5\n-5,-5\n")
    rows = json.loads(run("predict", fit, new, "--json")[1])["rows"]
    assert [row["group"] for row in rows] == [2, 1]
    assert {"row", "group", "how_sure", "new"} == set(rows[0])
    new.write_text("weight\n5\n")
    assert "no column 'height'" in run("predict", fit, new)[2]
    assert run("predict", fit, new, "--layout", "orders")[0] == 2


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_rows_that_are_alike_get_one_answer(sparse_rows, tmp_path):
    rows = np.array([[1, 0], [1, 0], [0, 2], [1, 0], [0, 2], [5, 5]])
    table = Table(tmp_path, sparse.csr_array(rows) if sparse_rows else rows, list("abcdef"), "row")
    assert table.alike().tolist() == [0, 0, 1, 0, 1, 2]
    # The second and the last but one are elsewhere in the point estimate, which the file does not repeat.
    fit = SimpleNamespace(
        n=6,
        n_clusters=3,
        labels=np.array([0, 1, 0, 0, 1, 2]),
        how_sure=np.array([0.9, 0.5, 0.6, 0.7, 0.5, 1]),
    )
    answer = labels(fit, table)
    assert list(answer.rows) == [
        ("a", 1, 0.8), ("b", 1, 0.8), ("c", 1, 0.6), ("d", 1, 0.8), ("e", 1, 0.6), ("f", 3, 1.0)
    ]  # fmt: skip
