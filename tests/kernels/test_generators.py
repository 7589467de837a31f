"""Kernels draw what NumPy draws, from any bit generator, and ask nothing of ctypes when they are called."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest

from permix.kernels.jit import kernel


@kernel
def draw_each(rng, out):
    for at in range(0, out.size, 4):
        out[at] = rng.random()
        out[at + 1] = rng.standard_exponential()
        out[at + 2] = rng.standard_normal()
        out[at + 3] = rng.integers(0, 1000)


def refuse(*arguments):
    raise AssertionError("ctypes was asked")


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "Philox", "MT19937", "SFC64"])
def test_kernels_draw_what_numpy_draws(name, monkeypatch):
    ours, theirs = (np.random.Generator(getattr(np.random, name)(3)) for _ in range(2))
    drawn = np.empty(400)
    draw_each(ours, drawn)
    draws = (theirs.random, theirs.standard_exponential, theirs.standard_normal)
    expected = [[*(draw() for draw in draws), theirs.integers(0, 1000)] for _ in range(100)]
    assert np.array_equal(drawn, np.ravel(expected))
    monkeypatch.setattr(ctypes, "cast", refuse)
    draw_each(ours, drawn)
    draw_each(theirs, again := np.empty(400))
    assert np.array_equal(drawn, again)


def test_no_references_are_kept():
    rng = np.random.default_rng(0)
    things = rng, rng.bit_generator, rng.bit_generator.capsule
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(20):
        draw_each(rng, np.empty(4))
    assert [sys.getrefcount(thing) for thing in things] == before
