"""What the command line says: in its own words, whole, and with the exit code that tells what is wrong."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest
import typer

import permix
from permix.cli.app import build

VOTES = "pos1,pos2,pos3\na,b,c\nb,a,c\nc,b,a\na,c,b\na,b,c\n"
MATRIX = "id,x,y,z,note\n" + "".join(f"r{i},{i % 2},{1 - i % 2},{i % 2},n{i}\n" for i in range(8))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "matrix.csv").write_text(MATRIX)
    rows = "".join(f"{x},{y}\n" for x, y in np.random.default_rng(0).normal(size=(20, 2)).round(3))
    (tmp_path / "points.csv").write_text(f"x,y\n{rows}")
    return tmp_path


def commands(group=None, path=()):
    """Every command with its path."""
    group = typer.main.get_command(build()) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


# -- help ------------------------------------------------------------------------------------------


def test_help_is_whole_in_eighty_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for path, command in commands():
        code, out, _ = run(*path, "--help")
        assert code == 0
        said = " ".join(out.split())
        for parameter in command.params:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                assert parameter.param_type_name == "argument" or re.search(rf"{flag}(?![\w-])", out), flag
            # What an option is for is not squeezed into a column of a few letters.
            assert " ".join((parameter.help or "").split()).replace("- ", "-") in said.replace("- ", "-")
        # Words that an option may be are not broken.
        for words in re.findall(r"<[\w-]+(?:\|[\w-]+)+>", out):
            assert "\n" not in words
        for line in out.splitlines():
            assert len(line) <= 80 or "|" in line, line
        # Of the library's names, none: what is not written on a command line is not in its help.
        assert "permix." not in out
    code, out, _ = run("--help")
    assert "..." not in out.replace("[ARGS]...", "")


def test_criteria_that_cannot_work_are_not_offered(run):
    assert "--criterion" not in run("fit", "mallows", "--help")[1]
    assert "<held-out|dic|waic|bic|aic>" in run("fit", "angle", "--help")[1]


# -- exit codes ------------------------------------------------------------------------------------

FIT = {
    "mallows": ["votes.csv", "-k", 1],
    "dp-mallows": ["votes.csv"],
    "dp-mixture": ["points.csv"],
    "cocluster": ["matrix.csv", "--ignore", "note"],
}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mallows", ["--center-search", "best"], '--center-search best must be "local" or "exact"'),
        ("mallows", ["--layout", "list"], '--layout list must be "auto", "orders"'),
        ("mallows", ["--seed", -1], "--seed -1 must be a whole number, 0 or more\n"),
        ("dp-mallows", ["--concentration", -1], "--concentration -1.0 must be positive"),
        ("dp-mallows", ["--concentration", "x"], "--concentration x must be a number or gamma(SHAPE,RATE)"),
        ("dp-mallows", ["--concentration", "gamma(0,1)"], "the shape of gamma(SHAPE,RATE) must be positive"),
        ("dp-mallows", ["--discount", 1], "--discount 1.0 must be"),
        ("dp-mixture", ["--family", "gaussian", "--noise-scale", -1], "--noise-scale must be positive"),
        ("dp-mixture", ["--prior", "dp", "--concentration", -1], "--concentration must be positive, not -1"),
        ("dp-mixture", ["--prior", "pitman-yor", "--discount", 2], "--discount must be at least 0"),
        ("dp-mixture", ["--rate", 0], "--rate must be positive"),
        ("dp-mixture", ["--prior", "finite", "-k", 0], "the number of groups must be a whole number"),
        ("dp-mixture", ["--family", "round"], '--family round must be "gaussian-niw", '),
        ("cocluster", ["--row-groups", 3], "it belongs to --prior dirichlet"),
        ("cocluster", ["--concentration", 0], "--concentration 0.0 must be a positive number, gamma(SHAPE,R"),
        ("cocluster", ["--family", "round"], '"poisson" or "gaussian"\n'),
    ],
)
def test_a_wrong_option_is_exit_code_two(run, folder, name, options, words):
    code, _, err = run("fit", name, *FIT[name], *options, "-o", "fit.permix", "-q")
    assert (code, words in err) == (2, True), err
    assert "Value error" not in err
    assert not (folder / "fit.permix").exists()


@pytest.mark.parametrize("ending", ["html", "md", "HTML"])
def test_a_model_is_not_written_under_the_name_of_a_report(run, folder, ending):
    code, _, err = run("fit", "mallows", *FIT["mallows"], "-o", f"z.{ending}", "-q")
    assert code == 2
    assert f"name it z.permix; a report is written by --report z.{ending}" in err
    assert not (folder / f"z.{ending}").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "votes.csv", "--layout", "list"],
        ["consensus", "votes.csv", "--method", "best"],
        ["consensus", "votes.csv", "--time-limit", "-1"],
        ["convert", "votes.csv", "x.csv", "--to-layout", "list"],
    ],
)
def test_words_that_are_none_of_those_known(run, folder, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith(f"permix: {arguments[-2]} {float(arguments[-1]) if arguments[-1] == '-1' else ''}")
    assert " must be " in err


def test_words_may_be_capitals(run, folder):
    assert run("consensus", "votes.csv", "--method", "BORDA", "--json")[0] == 0


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("v.csv", "who,a,b\nx,5,3\ny,2,2\n", [], "--agent-column who; if it names items"),
        (
            "v.csv",
            "a,b\n7,9\n2,1\n",
            [],
            "ratings (higher is better) with --layout ratings; tables of answers",
        ),
        ("v.csv", "a,b,c\nx,y,1\ny,x,2\n", ["--layout", "orders"], "pos1, pos2"),
        (
            "v.csv",
            "user,voter,pos1\na,b,x\n",
            [],
            "could both be the agent; name it with --agent-column, or say which is an item with --item\n",
        ),
        ("v.csv", "a,b,c\n1,2,9\n2,1,8\n", ["--layout", "ranks"], "are left out with --ignore\n"),
        (
            "v.csv",
            "a,b\n1,x\n2,1\n",
            ["--layout", "ranks"],
            "no ranks are left out with --ignore\n",
        ),
        ("v.soc", "", [], "but the body has 5; correct the file, or read it all the same with --no-strict\n"),
        ("v.soc", "", ["--layout", "orders"], "--layout says nothing about a PrefLib file, as v.soc is"),
    ],
)
def test_words_of_python_are_not_said(run, folder, name, text, options, words):
    header = "# DATA TYPE: soc\n# NUMBER ALTERNATIVES: 2\n# NUMBER VOTERS: 4\n"
    names = "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n5: 1,2\n"
    (folder / name).write_text(text or header + names)
    code, _, err = run("info", name, *options)
    assert (code, words in err) == (1 + ("says nothing" in words), True), err
    assert not re.search(r"permix\.[A-Z]|\w=|items=", err), err


def test_rows_are_counted_from_one(run, folder):
    """The second row has a tie, and is called the second in Python too."""
    (folder / "ties.toc").write_text(
        "# DATA TYPE: toc\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n"
        "# ALTERNATIVE NAME 3: c\n1: 1,2,3\n1: {1,2},3\n"
    )
    code, _, err = run("fit", "dp-mallows", "ties.toc", "-o", "fit.permix", "--draws", 4)
    assert (code, "row 2 ties" in err) == (1, True), err
    with pytest.raises(permix.errors.DataError, match=r"^row 2 ties"):
        permix.DPMallowsMixture(n_draws=4).fit(permix.read(folder / "ties.toc"))


# -- files in each other's place -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["summary", "votes.csv"], "votes.csv is a table of data, not a fitted model; permix info votes.csv"),
        (["sample", "votes.csv"], "not a fitted model; permix fit makes one of data"),
        (
            ["predict", "votes.csv", "m.permix"],
            "the model comes first, as in permix predict m.permix votes.csv",
        ),
        (["predict", "votes.csv"], "the model comes first, as in permix predict MODEL.permix votes.csv"),
    ],
)
def test_data_in_the_place_of_a_model(run, folder, arguments, words):
    code, _, err = run(*arguments)
    assert (code, words in err) == (1, True), err
    assert arguments[0] == "predict" or "predict" not in err


# -- answers ---------------------------------------------------------------------------------------


def test_a_consensus_that_is_not_the_only_one(run, folder):
    assert "not the only one" not in run("consensus", "votes.csv")[1]
    assert json.loads(run("consensus", "votes.csv", "--json")[1])["another_as_good"] is None
    (folder / "tie.csv").write_text("pos1,pos2,pos3\na,b,c\nb,a,c\n")
    (folder / "cycle.csv").write_text("pos1,pos2,pos3\na,b,c\nb,c,a\nc,a,b\n")
    for name in ("tie.csv", "cycle.csv"):
        found = json.loads(run("consensus", name, "--json")[1])
        votes = permix.read(folder / name)
        other = permix.Rankings.from_orders([found["another_as_good"]], items=votes.items)
        assert found["another_as_good"] != found["ranking"]
        named = " ≻ ".join(found["another_as_good"])
        assert permix.distance_matrix(other, votes).sum() == found["disagreements"]
        assert f"other rankings have as few disagreements, such as {named}" in run("consensus", name)[1]


def test_columns_of_a_matrix_are_left_out(run, folder):
    command = ["fit", "cocluster", "matrix.csv", "--draws", 5, "--burn-in", 2, "-o", "fit.permix"]
    code, out, err = run(*command, "--ignore", "note")
    assert code == 0, err
    assert "8 rows x 3 columns" in err
    assert "8 rows, 3 columns" in out
    code, out, err = run("predict", "fit.permix", "matrix.csv", "--what", "groups", "--ignore", "note")
    assert code == 0, err
    code, _, err = run(*command, "--ignore", "none", "--force")
    assert (code, "there is no column 'none' to ignore" in err) == (1, True)


def test_a_column_of_a_file_without_header_is_left_out(run, folder):
    (folder / "orders.csv").write_text("7,x,y\n7,y,x\n8,x,y\n")
    for option in ("--ignore", "--count-column"):
        code, out, err = run("info", "orders.csv", "--no-header", option, 1, "--json")
        assert code == 0, err
        assert json.loads(out)["items"] == ["x", "y"]
    (folder / "named.csv").write_text("pos2,pos3\nx,y\ny,x\n")  # where places have names, these are heeded
    code, _, err = run("info", "named.csv")
    assert (code, "must run from 1" in err) == (1, True)
    (folder / "unnamed.csv").write_text("n,0,1\nm,1,1\nk,1,0\nl,0,0\n")
    command = ["fit", "cocluster", "unnamed.csv", "--no-header", "--draws", 5, "--burn-in", 2]
    code, _, err = run(*command, "--ignore", 1, "-o", "fit.permix")
    assert code == 0, err
    assert "4 rows x 2 columns" in err


@pytest.mark.parametrize("model", ["dp-mixture", "cocluster"])
def test_a_column_is_named_or_left_out(run, folder, model):
    command = ["fit", model, "matrix.csv", "-o", "fit.permix"]
    code, _, err = run(*command, "--id", "id", "--ignore", "id")
    assert (code, "--id and --ignore both name the column 'id'" in err) == (2, True)
    code, _, err = run(*command, "--ignore", "none")
    assert (code, "matrix.csv: there is no column 'none' to ignore; the columns are 'id'," in err) == (
        1,
        True,
    )


def test_what_is_wrong_comes_in_order(run, folder):
    code, _, err = run("info", "none.soc", "--ignore", "x")
    assert (code, err) == (1, "permix: there is no file none.soc\n")
    command = ["fit", "dp-mixture", "--ignore", 1, "-o", "fit.permix"]
    assert run(*command, "none.npy")[0] == 1
    np.save(folder / "there.npy", np.eye(3))
    code, _, err = run(*command, "there.npy")
    assert (code, "--ignore and --header are for CSV files" in err) == (2, True)


def test_data_from_a_pipe(run, folder):
    os.mkfifo(folder / "pipe.csv")
    for command in (
        ["info"],
        ["fit", "cocluster", "-o", "x.permix"],
        ["fit", "dp-mixture", "-o", "x.permix"],
    ):
        code, _, err = run(*command, "pipe.csv")
        assert (code, "pipe.csv is a pipe or a device; the data must be a file" in err) == (1, True)


def test_a_file_in_the_place_of_chains(run, folder):
    (folder / "fit.permix.chains").write_text("mine")
    code, _, err = run("fit", "dp-mixture", "points.csv", "-o", "fit.permix", "-q")
    said = "fit.permix.chains is a file, and chains are kept in a folder; move it, or give another --output"
    assert (code, said in err, "store" in err) == (1, True, False)


def test_the_usage_of_a_list(run):
    assert "warm-up [OPTIONS] [MODEL]...\n" in run("warm-up", "--help")[1]


# -- a fit that was killed -------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a kill: nothing after it happens."""


def cut(*_, **__):
    raise Killed


KILLED = ["fit", "mallows", "votes.csv", "-k", 1, "-o", "fit.permix", "--labels", "labels.csv"]


@pytest.fixture
def killed(run, folder, monkeypatch):
    """Kill a fit after its model was saved, before its labels are; nothing is fitted from then on."""
    with monkeypatch.context() as patch:
        patch.setattr("permix.mallows.answers.labels", cut)
        with pytest.raises(Killed):
            run(*KILLED)
    assert (folder / "fit.permix.unfinished").exists()
    with monkeypatch.context() as patch:
        patch.setattr("permix.mallows.answers.fit_mallows", cut)
        yield folder


def test_a_fit_killed_just_after_it_was_saved_is_recognized(run, killed):
    folder, command = killed, KILLED
    before = (folder / "fit.permix").read_bytes()
    # Another command, and the same one on other data, are not taken for it.
    assert run("fit", "mallows", "votes.csv", "-k", 2, "-o", "fit.permix")[0] == 1
    (folder / "votes.csv").write_text(VOTES + "c,a,b\n")
    assert run(*command)[0] == 1
    (folder / "votes.csv").write_text(VOTES)
    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert json.loads(out)["agents"] == 5
    assert (folder / "fit.permix").read_bytes() == before
    assert len((folder / "labels.csv").read_text().splitlines()) == 6
    assert not (folder / "fit.permix.unfinished").exists()
    # Done is done: what is there now is not overwritten by chance.
    code, _, err = run(*command)
    assert (code, "exists already" in err) == (1, True)


def test_what_was_there_before_is_not_taken_for_the_fit(run, folder, monkeypatch):
    command = ["fit", "mallows", "votes.csv", "-k", 1, "-o", "fit.permix", "--json"]
    (folder / "votes.csv").write_text(VOTES + "c,a,b\n")
    assert run(*command)[0] == 0  # the same settings, six agents
    (folder / "votes.csv").write_text(VOTES)

    with monkeypatch.context() as patch:
        patch.setattr("permix.estimators.archive.write_archive", cut)
        with pytest.raises(Killed):
            run(*command, "--force")
    code, _, err = run(*command)
    assert (code, "fit.permix exists already" in err) == (1, True)
    assert json.loads(run(*command, "--force")[1])["agents"] == 5


def test_a_killed_fit_is_answered_from_what_it_saved_alone(run, killed):
    other = (killed / "fit.permix").read_bytes() + b" "  # a byte more is another file
    (killed / "fit.permix").write_bytes(other)
    code, _, err = run(*KILLED)
    assert (code, "fit.permix exists already" in err) == (1, True)
    assert (killed / "fit.permix").read_bytes() == other


def test_a_killed_fit_replaces_no_other_files(run, killed):
    (killed / "labels.csv").write_text("mine")
    code, _, err = run(*KILLED)
    assert (code, "labels.csv exists already" in err) == (1, True)
    assert (killed / "labels.csv").read_text() == "mine"
    assert run(*KILLED, "--force")[0] == 0  # from the fit that was saved


def test_output_that_is_lost_leaves_no_mark(run, folder, monkeypatch):
    monkeypatch.setattr("permix.mallows.tables.show", cut)
    with pytest.raises(Killed):
        run(*KILLED)
    assert (folder / "labels.csv").exists()
    assert not (folder / "fit.permix.unfinished").exists()


@pytest.mark.parametrize("text", ["mine", "[]", "{}", "[" * 200_000])
def test_a_file_that_is_no_mark_is_not_touched(run, folder, text):
    (folder / "fit.permix.unfinished").write_text(text)
    for more in ([], ["--force"]):
        code, _, err = run(*KILLED, *more)
        assert (code, "move it, or give another --output" in err) == (1, True)
    assert (folder / "fit.permix.unfinished").read_text() == text
    assert not (folder / "fit.permix").exists()
    (folder / "fit.permix.unfinished").unlink()
    code, _, err = run(*KILLED[:-1], "fit.permix.unfinished")
    assert (code, "is given twice" in err) == (1, True)


def test_a_link_in_the_place_of_the_mark_stays(run, folder):
    (folder / "fit.permix.unfinished").symlink_to("nowhere")
    assert run(*KILLED)[0] == 1
    assert (folder / "fit.permix.unfinished").is_symlink()


def test_chains_that_go_on_replace_what_they_wrote_and_nothing_else(run, folder):
    command = ["fit", "dp-mixture", "points.csv", "-o", "fit.permix", "--burn-in", 5, "--keep-chains", "-q"]
    assert run(*command, "--draws", 10, "--labels", "labels.csv")[0] == 0
    (folder / "mine.csv").write_text("mine")
    code, _, err = run(*command, "--draws", 20, "--labels", "mine.csv")
    assert (code, "mine.csv exists already" in err) == (1, True)
    assert (folder / "mine.csv").read_text() == "mine"
    before = (folder / "fit.permix").read_bytes()
    assert run(*command, "--draws", 20, "--labels", "labels.csv")[0] == 0
    assert (folder / "fit.permix").read_bytes() != before
    (folder / "labels.csv").write_text("edited")
    assert run(*command, "--draws", 30, "--labels", "labels.csv")[0] == 1
    assert (folder / "labels.csv").read_text() == "edited"
