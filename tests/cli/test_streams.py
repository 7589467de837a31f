"""Standard output that is closed, full or knows ASCII only, and memory that is not enough: one line each."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import permix

NAMES = ["Žižkov", "鮪", "é😀"]


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    permix.write(permix.Rankings.from_orders([NAMES, NAMES[::-1], NAMES]), path)
    return path


def shell(arguments, redirect="", **variables):
    """Run ``permix`` in a shell of its own; return the exit code, standard output and standard error."""
    line = f'exec "$0" -m permix "$@" {redirect}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **variables},
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


pytestmark = pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_closed_output(votes, options):
    code, _, err = shell(["info", votes, *options], ">&-")
    assert code == 0
    assert err == "permix: standard output is closed; what goes there is not shown\n"


def test_full_output(votes):
    code, _, err = shell(["info", votes, "--json"], ">/dev/full")
    assert code == 1
    assert err == "permix: standard output: No space left on device\n"


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_pipe_that_nobody_reads(votes, options):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "permix", "info", str(votes), *options],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 141  # as of any command that `| head` ends
    assert done.stderr.decode() == ""


def test_a_fit_whose_answer_nobody_reads_leaves_no_chains(votes, tmp_path):
    output = tmp_path / "x.permix"
    few = ["--draws", "20", "--burn-in", "5", "--chains", "1", "--quiet"]
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "permix", "fit", "dp-mallows", str(votes), "-o", str(output), *few]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert sorted(path.name for path in tmp_path.iterdir() if path != votes) == [output.name]


def test_without_compiled_code_nothing_works_and_that_is_said(votes):
    code, _, err = shell(["fit", "mallows", votes, "-k", "1", "-o", "x.permix"], NUMBA_DISABLE_JIT="1")
    assert code == 1
    assert err.startswith("permix: the environment variable NUMBA_DISABLE_JIT is set")


def test_output_that_knows_ascii_only(votes):
    code, out, err = shell(["info", votes], PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert "\\u017di\\u017ekov" in out
    code, out, err = shell(["consensus", votes, "--json"], PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert json.loads(out)["ranking"] == NAMES
    code, _, err = shell(["info", votes.with_name("ž.csv")], PYTHONIOENCODING="ascii")
    assert code == 1
    assert err.startswith("permix: there is no file")


def test_data_are_not_written_in_other_characters(run, votes, tmp_path):
    fit = tmp_path / "f.permix"
    assert run("fit", "mallows", votes, "-k", 1, "-o", fit, "-q")[0] == 0
    code, out, err = shell(["sample", fit, "-n", 2], PYTHONIOENCODING="ascii")
    assert code == 1
    assert "\\u" not in out
    assert err.startswith("permix: standard output takes ascii only")
    assert len(err.splitlines()) == 1
    code, out, _ = run("sample", fit, "-n", 2)
    assert code == 0
    assert "Žižkov" in out


def test_not_enough_memory_is_one_line(run, votes, monkeypatch):
    def no_room(*_: object) -> None:
        raise MemoryError("Unable to allocate 32.0 GiB")

    monkeypatch.setattr("permix.cli.inspect.describe_votes", no_room)
    code, _, err = run("info", votes)
    assert code == 1
    assert err.startswith("permix: there is not enough memory (Unable to allocate 32.0 GiB); ")
    assert len(err.splitlines()) == 1


def test_counts_of_billions_ask_for_no_memory(run, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(f"count,pos1,pos2,pos3\n{2**32},a,b,c\n{2**32},c,,\n")
    code, out, _ = run("info", path, "--json")
    assert code == 0
    assert json.loads(out)["mean_length"] == 2.0
    code, _, err = run("fit", "dp-mallows", path, "-o", tmp_path / "f.permix", "-q")
    assert code == 1
    assert "the counts stand for 8,589,934,592 agents" in err
    with pytest.raises(permix.errors.DataError, match="PERMIX_MAX_BYTES"):
        permix.read(path).expand()


def test_tables_lose_nothing_on_a_narrow_screen(monkeypatch, capsys):
    from permix.cli import output

    monkeypatch.setattr(output, "terminal_width", lambda: 60)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    columns = ["found", "how many", "what was done", *(f"group {k}" for k in range(1, 6))]
    words = "ballots with entries that are marks and no candidates at all"
    rows = [[words, 1249, "read as ranks left empty", *(f"63% (59–6{k})" for k in range(1, 6))]]
    output.print_table("What was done", columns, rows)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 60
    assert "…" not in shown
    for said in (*columns, "1,249", *(f"63% (59–6{k})" for k in range(1, 6))):
        assert said in shown, said
    assert set(words.split()) <= set(shown.split())
