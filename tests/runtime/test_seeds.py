"""Seeds: what is taken, what is refused, and that the numbers are numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from permix.errors import DataError
from permix.runtime.seeds import generator, seed_sequence, stream_key


def drawn(rng: np.random.Generator) -> list[int]:
    return rng.integers(2**62, size=3).tolist()


@pytest.mark.parametrize(
    "seed", [0, 7, np.int64(7), 2**100, [3, 1], (3, 1), np.random.SeedSequence(5)], ids=repr
)
def test_seeds_are_numpys(seed):
    expected = drawn(np.random.default_rng(seed))
    assert drawn(generator(seed)) == expected
    assert drawn(np.random.default_rng(seed_sequence(seed))) == expected
    assert drawn(generator(seed)) == expected


def test_generators_go_on():
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    assert drawn(generator(np.random.RandomState(3))) == drawn(generator(np.random.RandomState(3)))
    assert drawn(generator()) != drawn(generator())
    again = np.random.default_rng(1)
    expected = again.integers(0, 2**64, size=2, dtype=np.uint64)
    np.testing.assert_array_equal(stream_key(rng), expected)


@pytest.mark.parametrize(
    "seed", [-1, True, 1.0, float("nan"), "7", [], [1, -1], [1.5], print, np.array([1, 2]), {}], ids=repr
)
def test_what_is_no_seed(seed):
    for make in (seed_sequence, generator, stream_key):
        with pytest.raises(DataError, match="random_state"):
            make(seed)
