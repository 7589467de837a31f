"""NamedTuples passed by reference mean to compiled code what they mean by value."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest

from permix.kernels.by_reference import Reference, by_reference
from permix.kernels.first_runs import as_type, written
from permix.kernels.jit import implements, kernel


class ByValue(NamedTuple):
    numbers: np.ndarray
    table: np.ndarray
    scale: float
    offset: int
    negative: bool


@by_reference
class Referred(NamedTuple):
    numbers: np.ndarray
    table: np.ndarray
    scale: float
    offset: int
    negative: bool


def sign(parts):
    raise NotImplementedError


@implements(sign, ByValue, "parts")
def _sign_by_value(parts):
    return -1.0 if parts.negative else 1.0


@implements(sign, Referred, "parts")
def _sign(parts):
    return -1.0 if parts.negative else 1.0


@kernel
def _entry(parts, row, column):
    return sign(parts) * parts.scale * parts.table[row, column] + parts.numbers[row - parts.offset]


@kernel
def accumulate(parts, out):
    """Write to the arrays of a tuple while its fields are read again and again."""
    for row in range(parts.table.shape[0]):
        for column in range(parts.table.shape[1]):
            out[row] += _entry(parts, row, column)
            parts.numbers[row] += parts.table[row, column]
    if parts.table[0, 0] < 0.0:
        raise ValueError("negative")


def parts_of(cls: type, rng: np.random.Generator, negative: bool) -> tuple:
    shape = tuple(rng.integers(1, 6, 2))
    return cls(rng.normal(size=shape[0] + 2), rng.random(shape), float(rng.normal()), 0, negative)


@pytest.mark.parametrize("seed", range(5))
def test_same_as_by_value_and_as_python(seed: int) -> None:
    results = []
    for cls, run in [(ByValue, accumulate), (Referred, accumulate)]:
        parts = parts_of(cls, np.random.default_rng(seed), seed % 2 == 0)
        out = np.zeros(len(parts.table))
        run(parts, out)
        results.append((out, parts.numbers))
    parts = parts_of(ByValue, np.random.default_rng(seed), seed % 2 == 0)
    out = np.zeros(len(parts.table))
    for row, entries in enumerate(parts.table):
        for entry in entries:
            out[row] += (-1 if parts.negative else 1) * parts.scale * entry + parts.numbers[row]
            parts.numbers[row] += entry
    for found in results:
        np.testing.assert_allclose(found[0], out, rtol=1e-12)
        np.testing.assert_array_equal(found[1], parts.numbers)


def test_each_call_reads_its_own_tuple() -> None:
    # Compiled code is told that fields never change: it must not take those of another call for them.
    found = []
    for size in (1, 2, 3):
        parts = Referred(np.zeros(size), np.ones((size, 2)), float(size), 0, False)
        out = np.zeros(size)
        accumulate(parts, out)
        found.append(out.sum())
    assert found == [1 * 2 + 1, 2 * (2 * 2 + 1), 3 * (3 * 2 + 1)]


@pytest.mark.parametrize("fails", [False, True])
def test_arrays_are_neither_kept_nor_lost(fails: bool) -> None:
    parts = Referred(np.zeros(2), np.full((2, 2), -1.0 if fails else 1.0), 1.0, 0, False)
    before = sys.getrefcount(parts.numbers), sys.getrefcount(parts.table)
    for _ in range(10):
        try:
            accumulate(parts, np.zeros(2))
            assert not fails
        except ValueError:
            assert fails
    assert (sys.getrefcount(parts.numbers), sys.getrefcount(parts.table)) == before


def test_its_type_is_written_and_read() -> None:
    parts = parts_of(Referred, np.random.default_rng(0), True)
    kind = accumulate.typeof_pyval(parts)
    assert isinstance(kind, Reference)
    assert as_type(written(kind)) == kind
    plain = accumulate.typeof_pyval(ByValue(*parts))
    assert as_type(written(plain)) == plain
    assert plain != kind


def test_arrays_of_another_kind_are_another_type() -> None:
    parts = Referred(np.zeros(2), np.ones((2, 2)), 1.0, 0, False)
    other = parts._replace(table=np.ones((2, 2), np.float32))
    assert accumulate.typeof_pyval(parts) != accumulate.typeof_pyval(other)
    outs = np.zeros((2, 2))
    accumulate(parts, outs[0])
    parts.numbers[:] = 0.0
    accumulate(other, outs[1])
    np.testing.assert_array_equal(outs[0], outs[1])


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@by_reference
class Nested(NamedTuple):
    inner: Referred
    pair: Pair
    scales: np.ndarray


@kernel
def accumulate_nested(nested, out):
    for turn in range(nested.scales.size):
        accumulate(nested.inner, out)
        for at in range(out.size):
            out[at] += nested.scales[turn] * nested.pair.first[at] * nested.pair.second[at]


def test_tuples_within_tuples() -> None:
    inner = parts_of(Referred, np.random.default_rng(3), False)
    n = len(inner.table)
    expected, out = np.zeros(n), np.zeros(n)
    copied = inner._replace(numbers=inner.numbers.copy())
    pair = Pair(np.arange(n) + 1.0, np.full(n, 3.0))
    counts = [sys.getrefcount(array) for array in (*pair, inner.table)]
    scales = np.array([1.0, 10.0])
    accumulate_nested(Nested(inner, pair, scales), out)
    for scale in scales:
        accumulate(copied, expected)
        expected += scale * pair.first * pair.second
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    assert [sys.getrefcount(array) for array in (*pair, inner.table)] == counts
