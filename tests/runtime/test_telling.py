"""Lines on standard error fit the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from permix.runtime.telling import lines_of

LONG = "permix: " + "words that go on " * 12 + "--an-option-with-hyphens " * 3


@pytest.mark.parametrize("width", [60, 80, 300])
def test_lines_fit_and_lose_nothing(width):
    lines = lines_of(LONG, width)
    assert len(lines) > 1
    assert max(map(len, lines)) <= min(width, 100)
    assert " ".join(line.strip() for line in lines).split() == LONG.split()
    assert all(line.startswith("  ") for line in lines[1:])
    assert lines_of(LONG, None) == [LONG]


def test_a_long_name_is_not_broken():
    path = "/a" * 60
    assert path in [line.strip() for line in lines_of(f"permix: there is no file {path}", 60)]


def error_on_a_terminal(tmp_path, columns):
    """What ``permix info`` of a file that is not there writes to a terminal, line by line."""
    ours, theirs = pty.openpty()
    name = "a file with a long name " * 5 + ".csv"
    done = subprocess.run(
        [sys.executable, "-m", "permix", "info", name],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": str(columns)},
        check=False,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        said = terminal.read1(65536).decode()
    assert done.returncode == 1
    return said.splitlines()


def test_messages_are_wrapped_in_terminals_only(tmp_path):
    lines = error_on_a_terminal(tmp_path, 60)
    assert lines[0].startswith("permix: there is no file")
    assert len(lines) > 1
    assert max(map(len, lines)) <= 60
    assert len(error_on_a_terminal(tmp_path, 60)) > len(error_on_a_terminal(tmp_path, 100))
