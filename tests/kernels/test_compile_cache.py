"""Compiled code is found by the content of its sources: never stale, shared, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PACKAGE = {
    "toy/__init__.py": "",
    "toy/contract.py": "def weight(stats):\n    raise NotImplementedError\n",
    "toy/helper.py": """
from permix.kernels.jit import kernel

@kernel
def scale(x):
    return 2.0 * x
""",
    "toy/coin.py": """
from typing import NamedTuple

class Coin(NamedTuple):
    heads: float
""",
    # The implementation lies in a file that the calling kernel does not import.
    "toy/coin_weight.py": """
from permix.kernels.jit import implements
from toy.coin import Coin
from toy.contract import weight

@implements(weight, Coin)
def coin_weight(stats):
    return stats.heads + 1.0
""",
    "toy/caller.py": """
from permix.kernels.jit import kernel
from toy.contract import weight
from toy.helper import scale

@kernel
def call(stats):
    return scale(weight(stats))
""",
    "run.py": """
from numba.core import event
import toy.coin_weight
from toy.caller import call
from toy.coin import Coin

with event.install_recorder("numba:compile") as compiled:
    answer = call(Coin(3.0))
print(answer, len(compiled.buffer) > 0)
""",
}


@pytest.fixture
def package(tmp_path):
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def answer(folder, compiled=None, **more):
    """Run the program in a process of its own; return what it printed and what it said besides."""
    environment = os.environ | {"PERMIX_COMPILED": str(compiled or folder / "compiled"), **more}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [environment.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(folder / "run.py")], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    status = path.stat()
    path.write_text(text.replace(old, new))
    # The same time stamp and the same size: only the content tells.
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_second_process_compiles_nothing_and_an_edit_anywhere_below_is_seen(package):
    assert answer(package)[0] == ["8.0", "True"]
    assert answer(package)[0] == ["8.0", "False"]
    edit(package / "toy/helper.py", "2.0", "3.0")
    assert answer(package)[0] == ["12.0", "True"]
    edit(package / "toy/coin_weight.py", "+ 1.0", "+ 2.0")
    assert answer(package)[0] == ["15.0", "True"]
    edit(package / "toy/coin_weight.py", "+ 2.0", "+ 1.0")
    assert answer(package)[0] == ["12.0", "False"]


def test_a_damaged_entry_is_compiled_again(package):
    answer(package)
    for entry in (package / "compiled").glob("*.bin"):
        entry.write_bytes(entry.read_bytes()[:100])
    assert answer(package)[0] == ["8.0", "True"]
    assert answer(package)[0] == ["8.0", "False"]


def test_a_folder_that_cannot_be_made_costs_a_warning_only(package):
    (package / "file").write_text("")
    printed, said = answer(package, package / "file" / "below")
    assert printed == ["8.0", "True"]
    assert said.count("compiled code is not kept") == 1
    assert "PERMIX_COMPILED" in said
