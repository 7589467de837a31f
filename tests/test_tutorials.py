"""Commands in the tutorials, run as they stand there, print what the page shows.

In a block of ``console``, lines that begin with ``$`` are commands, and those below each are what it prints;
``...`` stands for any lines, and at the end of a line for the rest of it. Spaces at will, since tables are as
wide as the terminal.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import permix
from permix.datasets import EXAMPLES, make_grid_coclusters, make_mallows_mixture

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
README = ROOT / "README.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_of(text):
    """Pairs of a command and the lines that the page shows below it."""
    found = []
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def missing_lines(expected, printed):
    """Lines of the page that were not printed, in their order."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    wanted = [" ".join(line.split()) for line in expected]

    def shown(line):
        start = line.removesuffix("...")
        return any(one == line or (start != line and one.startswith(start)) for one in lines)

    return [line for line in wanted if line not in ("", "...") and not shown(line)]


# Lessons that begin with a file; commands on the other pages are about files that their Python makes.
FROM_A_FILE = [page for page in PAGES if "$ permix example" in page.read_text(encoding="utf-8")]


@pytest.mark.tutorial
@pytest.mark.parametrize("page", FROM_A_FILE, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for command, expected in commands_of(page.read_text(encoding="utf-8")):
        run_and_compare(command, expected)


@pytest.mark.tutorial
def test_commands_of_the_readme_print_what_it_shows(tmp_path, monkeypatch):
    """Files that are the user's own are made here; ``make`` is left to whoever runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    votes = make_mallows_mixture(300, 6, 3, dispersion=0.3, random_state=1).data
    for name, some in (("votes.csv", votes), ("ballots.csv", votes[:150]), ("newcomers.csv", votes[:9])):
        permix.write(some, name)
    stars = make_grid_coclusters(40, 15, 3, 2, missing=0.4, random_state=1).data
    cells = [f"u{i},film {j},{stars[i, j] + 1}" for i, j in zip(*np.nonzero(stars >= 0), strict=True)]
    Path("ratings.csv").write_text("\n".join(["user,item,rating", *cells]), encoding="utf-8")
    run_and_compare("permix demo", [])
    commands = commands_of(README.read_text(encoding="utf-8"))
    ours = [(command, expected) for command, expected in commands if command.startswith("permix ")]
    assert len(ours) >= 10
    assert all(command.startswith(("permix ", "make ")) for command, _ in commands)
    for command, expected in ours:
        again = " --force" if " -o groups" in command else ""  # three ways to make one file
        run_and_compare(command.partition(" #")[0] + again, expected)


def run_and_compare(command, expected):
    """Run a command as it stands on a page, which must end well and print what the page shows."""
    program, *arguments = shlex.split(command, comments=True)
    assert program == "permix", f"{program} is called"
    done = subprocess.run(
        [sys.executable, "-m", "permix", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    missing = missing_lines(expected, done.stdout)
    assert not missing, f"{command}\ndid not print {missing[0]!r} (in this order), but\n{done.stdout}"


def test_there_are_lessons_from_files():
    assert len(FROM_A_FILE) == len(EXAMPLES)


def test_what_is_not_printed_is_noticed():
    page = "```console\n$ permix info 'a b.csv'  # says what it is\nkind   rankings\n...\nagents 3\n```\n"
    ((command, expected),) = commands_of(page)
    assert shlex.split(command, comments=True) == ["permix", "info", "a b.csv"]
    assert missing_lines(expected, "x\nkind rankings\nrows 3\nagents  3\n") == []
    assert missing_lines(expected, "agents 3\nkind rankings\n") == ["agents 3"]
    assert missing_lines(expected, "kind rankings\nagents 4\n") == ["agents 3"]
    assert missing_lines(["Group 1, 45%, ..."], "Group 1, 45%, puts Ann first") == []
    assert missing_lines(["Group 1, 45%, ..."], "Group 1, 44%, puts Ann first") == ["Group 1, 45%, ..."]
