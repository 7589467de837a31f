"""Draws whose length differs are padded; everything else must have one shape."""

from __future__ import annotations

import numpy as np
import pytest

from permix.sampling.draws import assemble, own_copy, stack


def record(n):
    return own_copy(
        {"tree_axis": np.arange(n), "tree_cut": np.arange(n) / 2, "labels": np.zeros(3, dtype=int)}
    )


def test_ragged_quantities_are_padded_within_and_between_blocks():
    chains = [[stack([record(1), record(3)]), stack([record(2)])], [stack([record(4), record(1), record(1)])]]
    arrays = assemble(chains, np.arange(3))
    assert arrays["tree_axis"].shape == arrays["tree_cut"].shape == (2, 3, 4)
    assert arrays["tree_axis"][0].tolist() == [[0, -1, -1, -1], [0, 1, 2, -1], [0, 1, -1, -1]]
    np.testing.assert_array_equal(arrays["tree_cut"][1, 1], [0, np.nan, np.nan, np.nan])


def test_type_does_not_depend_on_blocks():
    whole = assemble([[stack([record(1), record(3), record(2)])]], np.arange(3))
    parts = assemble([[stack([record(1)]), stack([record(3)]), stack([record(2)])]], np.arange(3))
    for name in whole:
        assert whole[name].dtype == parts[name].dtype
        np.testing.assert_array_equal(whole[name], parts[name])


def test_other_quantities_must_not_differ_in_length():
    with pytest.raises(ValueError, match="shape"):
        stack([own_copy({"labels": np.zeros(3)}), own_copy({"labels": np.zeros(2)})])
