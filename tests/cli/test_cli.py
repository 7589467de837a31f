"""The command line, run in this process as a shell would run it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

import permix

VOTES = """# FILE NAME: votes.soi
# TITLE: Lunch
# DATA TYPE: soi
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 9
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: soup
# ALTERNATIVE NAME 2: salad
# ALTERNATIVE NAME 3: [red]cake[/red]
5: 1,2,3
3: 2,1
1: 3
"""


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.soi"
    path.write_text(VOTES)
    return path


QUICK = ("--draws", 40, "--burn-in", 20)


def test_version_and_help(run):
    assert run("--version")[1].strip() == f"permix {permix.__version__}"
    for command in (
        [],
        ["info"],
        ["convert"],
        ["consensus"],
        ["fit"],
        ["fit", "dp-mixture"],
        ["fit", "mallows"],
        ["predict"],
        ["sample"],
        ["summary"],
        ["demo"],
    ):
        code, out, _ = run(*command, "--help")
        assert code == 0
        assert "Usage" in out
        if command and command != ["fit"]:
            assert "Example" in out


def test_info(run, votes):
    code, out, _ = run("info", votes)
    assert code == 0
    assert "Lunch" in out
    assert "[red]cake[/red]" in out  # names are shown as they are, not read as markup
    code, out, _ = run("info", votes, "--json")
    facts = json.loads(out)
    assert facts["agents"] == 9
    assert facts["first_choices"] == {"soup": 5, "salad": 3, "[red]cake[/red]": 1}
    assert facts["unlisted_items_are"] == "below"
    assert (
        json.loads(run("info", votes, "--json", "--unlisted", "unknown")[1])["unlisted_items_are"]
        == "unknown"
    )


def test_consensus(run, votes):
    result = json.loads(run("consensus", votes, "--json")[1])
    assert result["ranking"] == ["soup", "salad", "[red]cake[/red]"]
    assert result["proven_optimal"] is True
    # 3 voters have salad before soup, 1 has cake before both.
    assert result["disagreements"] == 5
    code, out, _ = run("consensus", votes, "--method", "borda")
    assert code == 0
    assert "soup" in out
    code, _, err = run("consensus", votes, "--method", "best")
    assert code == 2
    assert "best" in err


def test_convert(run, votes, tmp_path):
    target = tmp_path / "votes.csv"
    assert run("convert", votes, target)[0] == 0
    code, _, err = run("convert", votes, target)
    assert code == 1
    assert "--force" in err
    assert run("convert", votes, target, "--force")[0] == 0
    back = tmp_path / "again.soi.gz"
    assert run("convert", target, back)[0] == 0
    with gzip.open(back, "rt") as handle:
        assert "5: " in handle.read()
    first, second = permix.read(votes), permix.read(back)
    assert sorted(first.counts.tolist()) == sorted(second.counts.tolist())
    code, _, err = run("convert", votes, tmp_path / "votes.soc")
    assert code == 1
    assert ".soi" in err


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
    assert "2 clusters" in out
    assert "height" in out
    assert not fit.with_name("points.permix.chains").exists()
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = labels.read_text().splitlines()
    assert rows[0] == "name,cluster,confidence"
    assert rows[1].startswith("p0,1,")
    assert len(rows) == 51
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["cluster_sizes"] == [30, 20]
    assert report["columns"] == ["height", "weight"]
    assert report["diagnostics"]["n_clusters"]["mean"] >= 2
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
        (["--prior", "finite", "--components", "3"], 2),
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
    assert json.loads(out)["clusters"] == clusters


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
        reports.append(json.loads(out)["cluster_parameters"])
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "missing.soi"], ["missing.soi"]),
        (["summary", "points.csv"], ["points.csv"]),
        (["fit", "dp-mixture", "missing.csv", "-o", "x"], ["missing.csv"]),
        (["fit", "dp-mixture", "points.csv", "-o", "x"], ["'name'", "not numeric", "row 1", "'p0'", "--id"]),
        (["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "nam"], ["no column 'nam'", "height"]),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "name", "--init", "51"],
            ["init must be from 1 to 50 clusters"],
        ),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "name", "--init", "warm"],
            ["init must be", "'one-cluster'", "'warm'"],
        ),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "name", "--moves", "gibbs,gibs"],
            ["unknown move 'gibs'", "split-merge"],
        ),
        (
            ["fit", "dp-mixture", "points.csv", "-o", "x", "--id", "name", "--moves", "projection"],
            ["optimizer", "burn-in only"],
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
        (["info", "."], ["ending"]),
        (["consensus", "x.permix"], ["fitted model"]),
        (["convert", "pairs.csv", "out.toi"], ["contradict", "--on-cycle drop"]),
        (["fit", "dp-mixture", "empty.csv", "-o", "x"], ["empty.csv"]),
        (["fit", "dp-mixture", "headonly.csv", "-o", "x"], ["no rows"]),
        (["fit", "dp-mixture", "hole.csv", "-o", "x"], ["NaN", "row 2", "'b'"]),
        (["fit", "dp-mixture", "broken.npz", "-o", "x"], ["broken.npz"]),
    ],
)
def test_a_mistake_gets_one_clear_message(run, points, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "headonly.csv").write_text("a,b\n")
    (tmp_path / "old.permix").write_text("precious")
    (tmp_path / "pairs.csv").write_text("agent,better,worse\nann,x,y\nann,y,z\nann,z,x\nbob,x,y\n")
    (tmp_path / "hole.csv").write_text("a,b\n1,2\n3,\n")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    code, _, err = run(*arguments)
    assert code == 1
    assert err.startswith("permix: ")
    assert "Traceback" not in err
    assert "Errno" not in err
    for word in words:
        assert word in err
    assert (tmp_path / "old.permix").read_text() == "precious"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "dp-mixture"],
        ["consensus"],
        ["nonsense"],
        ["info", "x.csv", "--layout", "wide"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--family", "cauchy"],
        ["fit", "dp-mixture", "x.csv", "-o", "x", "--noise-scale", "2"],
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


def test_contradicting_agents_can_be_left_out(run, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("agent,better,worse\nann,x,y\nann,y,z\nann,z,x\nbob,x,y\n")
    code, out, err = run("consensus", pairs, "--on-cycle", "drop", "--json")
    assert code == 0
    ranking = json.loads(out)["ranking"]
    assert ranking.index("x") < ranking.index("y")
    assert "'ann'" in err


def test_a_column_of_counts_is_named(run, tmp_path):
    table = tmp_path / "ballots.csv"
    table.write_text("a,b,c,Wk\n1,2,3,232\n3,2,1,100\n")
    code, _, err = run("consensus", table, "--layout", "ranks")
    assert code == 1
    assert "Wk" in err
    assert "--count-column" in err
    found = json.loads(run("consensus", table, "--layout", "ranks", "--count-column", "Wk", "--json")[1])
    assert found["ranking"] == ["a", "b", "c"]
    assert found["disagreements"] == 300


def test_a_shorter_run_keeps_the_chains_of_a_longer_one(run, points, tmp_path):
    fit = tmp_path / "fit.permix"
    long, short = ("--draws", 80, "--burn-in", 20), ("--draws", 30, "--burn-in", 20)
    assert run("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--keep-chains", *long)[0] == 0
    code, _, err = run("fit", "dp-mixture", points, "-o", fit, "--id", "name", *short)
    assert code == 0
    assert "80 draws and is kept" in err
    assert permix.load(fit).posterior_["posterior"].sizes["draw"] == 30


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,c\n1,x,2\n2,y,1\n", "name them with --layout ranks"),
        ("a,b\nx,y\ny,x\n", "say --layout orders if each row"),
        ("pos1,pos2,Wk\nx,y,3\n", "name it with --agent-column or --count-column"),
        ("better,worse\nx,y\n", "no column for the agent; name it with --agent-column\n"),
        ("v1,v2,v3\n1,2,3\n2,3,1\n", "say --layout orders or --layout ranks"),
        ("a,b\n1,7\n2,1\n", "is set apart with --count-column or --agent-column"),
    ],
)
def test_messages_speak_of_options(run, tmp_path, text, words):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    code, _, err = run("info", path)
    assert code == 1
    assert words in err


def test_what_is_written_has_an_option_of_its_own(run, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("agent,better,worse\nann,x,y\nbob,y,x\n")
    code, _, err = run("convert", pairs, tmp_path / "out.csv", "--to-layout", "ratings")
    assert code == 1
    assert "comparisons do not fit --to-layout ratings; use --to-layout pairs" in err
    code, _, err = run("convert", pairs, tmp_path / "out.soi")
    assert code == 1
    assert "a .csv file with --to-layout pairs keeps them" in err


class Killed(BaseException):
    """Stands for a kill: nothing after it happens."""


@pytest.mark.parametrize("place", ["write_labels", "print_fit", "drop_chains"])
def test_a_fit_killed_just_after_finishing_is_recognised(run, points, tmp_path, monkeypatch, place):
    fit, labels = tmp_path / "fit.permix", tmp_path / "labels.csv"
    command = ("fit", "dp-mixture", points, "-o", fit, "--id", "name", "--labels", labels, *QUICK)

    def cut(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"permix.dp_mixture.command.{place}", cut)
        with pytest.raises(Killed):
            run(*command)
    assert fit.exists()
    before = fit.read_bytes()
    # The same command says what it found, without another step of any chain.
    with monkeypatch.context() as patch:
        patch.setattr("permix.sampling.chain.Chain._resume", cut)
        code, out, _ = run(*command)
    assert code == 0
    assert "clusters" in out
    assert fit.read_bytes() == before
    assert labels.exists()
    assert not [path for path in tmp_path.iterdir() if "chains" in path.name]
    # Done is done: what is there now is not overwritten by chance.
    assert run(*command)[0] == 1


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


def test_demo(run, tmp_path):
    code, out, err = run("demo", tmp_path / "demo")
    assert code == 0, err
    assert "agreement with the truth" in out
    assert {p.name for p in (tmp_path / "demo").iterdir()} == {
        "points.csv",
        "points.permix",
        "points.png",
        "votes.soc",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
def test_ctrl_c_keeps_what_was_done(points, tmp_path):
    fit = tmp_path / "fit.permix"
    command = [
        sys.executable,
        "-m",
        "permix",
        "fit",
        "dp-mixture",
        str(points),
        "-o",
        str(fit),
        "--id",
        "name",
    ]
    command += ["--draws", "10000000", "--burn-in", "50"]
    process = subprocess.Popen(
        command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        chains = tmp_path / "fit.permix.chains"
        deadline = time.monotonic() + 120
        while not list(chains.glob("chain-*/draws*")) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert permix.load(fit).n_clusters_ >= 2
