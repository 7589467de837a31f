"""Compiled code is found by the content of its sources: never stale, shared, and never needed."""

from __future__ import annotations

import os
import random
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


@pytest.fixture
def answer(forks):
    def answer(folder, compiled=None, **more):
        """Run the program in a process of its own; return what it printed and what it said besides."""
        environment = os.environ | {"PERMIX_COMPILED": str(compiled or folder / "compiled"), **more}
        # Python itself would miss an edit of a file within a second if it kept its bytecode.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        done = forks.run(folder / "run.py", environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr

    return answer


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    status = path.stat()
    path.write_text(text.replace(old, new))
    # The same time stamp and the same size: only the content tells.
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_second_process_compiles_nothing_and_an_edit_anywhere_below_is_seen(package, answer):
    assert answer(package)[0] == ["8.0", "True"]
    assert answer(package)[0] == ["8.0", "False"]
    edit(package / "toy/helper.py", "2.0", "3.0")
    assert answer(package)[0] == ["12.0", "True"]
    edit(package / "toy/coin_weight.py", "+ 1.0", "+ 2.0")
    assert answer(package)[0] == ["15.0", "True"]
    edit(package / "toy/coin_weight.py", "+ 2.0", "+ 1.0")
    assert answer(package)[0] == ["12.0", "False"]


def test_what_is_kept_runs_before_numba_has_loaded_what_it_compiles_with(package, answer):
    """And it serves kernels that are compiled after it, when Numba has."""
    assert answer(package)[0] == ["8.0", "True"]
    program = """
import sys
import numba, numpy
import toy.coin_weight
from toy.caller import call
from toy.coin import Coin

print(call(Coin(3.0)), "numba.np.linalg" in sys.modules)

@numba.njit
def solved(coin):
    return numpy.linalg.solve(numpy.eye(2), numpy.full(2, call(coin)))[0]

print(solved(Coin(3.0)), "numba.np.linalg" in sys.modules)
"""
    environment = os.environ | {"PERMIX_COMPILED": str(package / "compiled")}
    command = [sys.executable, "-c", program]  # a fork would have loaded all of Numba
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["8.0", "False", "8.0", "True"]


def test_a_damaged_entry_is_compiled_again(package, answer):
    answer(package)
    for entry in (package / "compiled").glob("*.bin"):
        entry.write_bytes(entry.read_bytes()[:100])
    assert answer(package)[0] == ["8.0", "True"]
    assert answer(package)[0] == ["8.0", "False"]


@pytest.mark.parametrize("seed", range(3))
def test_an_entry_with_a_flipped_bit_is_compiled_again(package, answer, seed):
    """Not run: damaged machine code ends the process without a word."""
    answer(package)
    rng = random.Random(seed)
    for entry in (package / "compiled").glob("*.bin"):
        content = bytearray(entry.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        entry.write_bytes(content)
    assert answer(package)[0] == ["8.0", "True"]
    assert answer(package)[0] == ["8.0", "False"]


SWAPPED = {
    "sw/__init__.py": "",
    "sw/x1.py": "from permix.kernels.jit import kernel\n\n@kernel\ndef f(x):\n    return 10.0 * x\n",
    "sw/x2.py": "from permix.kernels.jit import kernel\n\n@kernel\ndef f(x):\n    return 20.0 * x\n",
    "sw/g.py": """
from permix.kernels.jit import kernel
from sw.x1 import f as first
from sw.x2 import f as second

@kernel
def g(x):
    return first(x) + 0.0 * second(x)
""",
    "run.py": "from sw.g import g\nprint(g(1.0))\n",
}


def test_files_that_change_places_are_not_taken_for_each_other(tmp_path, answer):
    for name, text in SWAPPED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert answer(tmp_path)[0] == ["10.0"]
    one, two = (tmp_path / "sw" / name for name in ("x1.py", "x2.py"))
    texts = one.read_text(), two.read_text()
    one.write_text(texts[1])
    two.write_text(texts[0])
    assert answer(tmp_path)[0] == ["20.0"]


def test_a_folder_that_cannot_be_made_costs_a_warning_only(package, answer):
    (package / "file").write_text("")
    printed, said = answer(package, package / "file" / "below")
    assert printed == ["8.0", "True"]
    assert said.count("compiled code is not kept") == 1
    assert "PERMIX_COMPILED" in said


ODD = {
    "odd/__init__.py": "",
    "odd/one.py": "from permix.kernels.jit import kernel\n\n@kernel\ndef one(x):\n    return x + 1.0\n",
    "odd/two.py": "import odd.nothing, odd.one\n\nONE = odd.one.one\n",
    "odd/nothing.py": "",
    "odd/three.py": """
from permix.kernels.jit import kernel
from .one import one as _one
from . import two

@kernel
def three(x):
    return 10.0 * _one(x)
""",
    "odd/made.py": """
from permix.kernels.jit import kernel

def make(c):
    @kernel
    def f(x):
        return x + c
    return f
""",
    "run.py": """
from numba.core import event
from odd.three import three

with event.install_recorder("numba:compile") as compiled:
    answer = three(1.0)
print(answer, len(compiled.buffer) > 0)
""",
    "edited.py": """
import odd.one, pathlib
path = pathlib.Path(odd.one.__file__)
path.write_text(path.read_text().replace("1.0", "5.0"))
print(odd.one.one(1.0))
""",
    "factory.py": "from odd.made import make\na, b = make(1.0), make(2.0)\nprint(a(1.0), b(1.0))\n",
}


@pytest.fixture
def odd(tmp_path):
    for name, text in ODD.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_relative_imports_are_followed(odd, answer):
    assert answer(odd)[0] == ["20.0", "True"]
    edit(odd / "odd/one.py", "1.0", "2.0")
    assert answer(odd)[0] == ["30.0", "True"]


def run_program(answer, folder, name):
    (folder / "run.py").write_text(ODD[name])
    return answer(folder)[0]


def test_a_file_edited_after_its_import_does_not_leave_its_old_code_behind(odd, answer):
    assert run_program(answer, odd, "edited.py") == ["2.0"]
    (odd / "run.py").write_text("from odd.one import one\nprint(one(1.0))\n")
    assert answer(odd)[0] == ["6.0"]


def test_functions_made_by_a_function_are_not_mixed_up(odd, answer):
    assert run_program(answer, odd, "factory.py") == ["2.0", "3.0"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions of another sort")
def test_a_folder_that_others_can_write_is_not_used(package, answer):
    """Entries are unpickled: one that somebody else put there would be code of theirs."""
    folder = package / "compiled"
    folder.mkdir()
    folder.chmod(0o777)
    printed, said = answer(package)
    assert printed == ["8.0", "True"]
    assert "can be written by others" in said
    assert not list(folder.iterdir())
    folder.chmod(0o700)
    assert answer(package)[0] == ["8.0", "True"]
    assert answer(package)[0] == ["8.0", "False"]
