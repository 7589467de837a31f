"""Kernels that kernels call end as intermediate code: errors, arrays, contracts and caches work as ever."""

from __future__ import annotations

import os

import numpy as np

from permix.kernels.jit import kernel

PROGRAM = """
import numpy as np
from numba.core import event
from permix.kernels.jit import kernel

@kernel
def root(x):
    if x < 0.0:
        raise ValueError("a root of a negative number")
    return np.sqrt(x)

@kernel
def roots(values):
    found = np.empty(len(values))
    for place in range(len(values)):
        found[place] = root(values[place])
    return found, found.sum()

with event.install_recorder("numba:compile") as compiled:
    found, total = roots(np.array([4.0, 9.0]))
    try:
        roots(np.array([4.0, -9.0]))
    except ValueError as error:
        print(found.tolist(), total, error, len(compiled.buffer) > 0)
"""


def test_what_was_kept_answers_and_fails_like_what_was_compiled(tmp_path, forks):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"PERMIX_COMPILED": str(tmp_path / "compiled")}
    outputs = [forks.run(program, environment=environment).stdout for _ in range(2)]
    expected = "[2.0, 3.0] 5.0 a root of a negative number"
    assert outputs == [f"{expected} True\n", f"{expected} False\n"]


@kernel
def doubled(values):
    return 2.0 * values


@kernel
def total_of_doubled(values):
    return doubled(values).sum()


@kernel
def again(values):
    return total_of_doubled(values) + doubled(values)[0]


def test_nothing_is_compiled_for_python_that_python_does_not_call():
    values = np.arange(4.0)
    assert total_of_doubled(values) == 12.0
    assert not doubled.overloads
    assert (doubled(values) == 2 * values).all()
    assert len(doubled.overloads) == 1
    assert again(values + 1) == 22.0, "what was compiled for Python serves no kernel, and the other way round"


@kernel
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def test_a_kernel_that_calls_itself():
    assert factorial(10) == 3_628_800
