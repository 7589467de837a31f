"""The command line, run in this process as a shell would run it."""

from __future__ import annotations

import gzip
import json
from functools import partial

import pytest

import permix
from tests.cli.refusals import assert_refused
from tests.every_run import first_in_every_run

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


def test_items_that_nobody_compares_are_told(run, votes, tmp_path):
    """Only x and y, and z and w, are compared: the place between says nothing, and no share of nobody."""
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("agent,better,worse\nann,x,y\nbob,x,y\ncy,z,w\n")
    _, out, _ = run("consensus", pairs)
    assert "nobody prefers one of the two items" in out
    assert "few agents" not in out
    assert "nan" not in out
    assert "nobody prefers" not in run("consensus", votes)[1]
    pairs.write_text(pairs.read_text() + "".join(f"a{k},x,y\n" for k in range(60)))
    assert "few agents answered them. --min-support" in run("consensus", pairs)[1]


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "missing.soi"], ["missing.soi"]),
        (["summary", "points.csv"], ["points.csv"]),
        (["info", "."], ["folder", "Dominion"]),
        (["consensus", "x.permix"], ["fitted model"]),
        (["convert", "pairs.csv", "out.toi"], ["contradict", "--on-cycle drop"]),
    ],
)
def test_a_mistake_gets_one_clear_message(run, points, tmp_path, monkeypatch, arguments, words):
    assert_refused(run, tmp_path, monkeypatch, arguments, words)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "dp-mixture"],
        ["consensus"],
        ["nonsense"],
        ["info", "x.csv", "--layout", "long-list"],
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,c\n1,x,2\n2,y,1\n", "say --layout ranks --ignore b"),
        ("a,b\nx,y\ny,x\n", "say --layout orders if each row"),
        ("pos1,pos2,Wk\nx,y,3\n", "name it with --agent-column or --count-column"),
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


# Chains of the length that a user gets take ten seconds.
@pytest.mark.parametrize("n_draws", first_in_every_run([80, "auto"]))
def test_demo(run, tmp_path, monkeypatch, n_draws):
    estimator = partial(permix.DPMixture, n_draws=n_draws)
    monkeypatch.setattr("permix.dp_mixture.estimator.DPMixture", estimator)
    code, out, err = run("demo", tmp_path / "demo")
    assert code == 0, err
    assert "agreement with the truth" in out
    assert {p.name for p in (tmp_path / "demo").iterdir()} == {
        "points.csv",
        "points.permix",
        "points.png",
        "votes.soc",
    }
